"""Groups `profile-choice` and `odd-lengths` of bench/run without a GPU: rows, what is compiled for
them, their table on the page of results, and usage."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import __main__ as bench, builds, pairs_table, profile_choice_rows, report, results
from weft_command import CommandTest, WEFT  # noqa: E402

CEILINGS = (4e12, 7e14)
PRICED = ROOT / 'tests/unit/select/estimates_compete_mlir_test.cpp'
HAS_TORCH = importlib.util.find_spec('torch')


class RowsTest(CommandTest):
    def test_random_words_are_those_of_the_standard_library(self):
        random = profile_choice_rows.MersenneTwister64(5489)
        words = [random() for _ in range(10000)]
        # Of [rand.predef] in the C++ standard.
        self.assertEqual(words[-1], 9981545732273789042)

    def test_rows_are_every_tenth_layer_of_the_test_of_prices(self):
        text = PRICED.read_text(encoding='utf-8')
        self.assertIn(f'std::mt19937_64 random({profile_choice_rows.SEED});', text)
        self.assertIn(f'draws({profile_choice_rows.LAYERS})', text)
        # As the test itself names them.
        self.assertEqual([
            f'{row.heads} heads of {row.head_dim}, B={row.batch} L={row.length} {row.dtype}'
            for row in profile_choice_rows.rows()
        ], ['31 heads of 96, B=1 L=6629 f16', '18 heads of 64, B=27 L=960 f16',
            '24 heads of 64, B=206 L=64 f16', '21 heads of 64, B=1 L=3117 f16',
            '19 heads of 64, B=40 L=240 bf16'])
        self.assertEqual({(row.family, row.training, row.dropout, row.feed_forward / row.hidden)
                          for row in profile_choice_rows.rows()}, {('encoder', False, 0.0, 4.0)})

    def test_halves_go_up_as_in_the_test(self):
        self.assertEqual([profile_choice_rows.nearest(value) for value in (0.5, 1.5, 2.5, 2.4)],
                         [1, 2, 3, 2])

    def plan(self, *arguments):
        self.weft('compile', *map(str, arguments), '--stop-after', 'emit', '--overwrite', '-o',
                  'out')
        return json.loads((self.folder / 'out/plan.json').read_text())

    def test_drawn_rows_are_planned_with_the_profile_and_without(self):
        row = profile_choice_rows.rows()[2]
        config = self.write('row.json', json.dumps(row.config()))
        seconds = [self.plan(*row.compile_arguments(config), *flags)['predictedSeconds']
                   for flags in ([], ['--profile=none'])]
        self.assertNotEqual(*seconds)  # a margin for what was never measured

    def test_of_the_other_rows_the_profile_decides_the_plan(self):
        for layer, *size in profile_choice_rows.PROFILED:
            plans = [self.plan(*layer.compile_arguments(*size), *flags)
                     for flags in ([], ['--profile=none'])]
            count, none = (sum(bool(one['measured']) for one in plan['kernels']) for plan in plans)
            self.assertGreater(count, 3, layer)
            self.assertEqual(none, 0)
            self.assertNotEqual(*([one['configuration'] for one in plan['kernels']]
                                  for plan in plans))


def line_of(name, group, samples, most=1.03, scale=1.0, what='with / without profile'):
    result = report.Result(report.Workload(name), samples=samples)
    result.extra['kernels of both builds'] = '2 differ'
    result.record['pair'] = pairs_table.record(result, 'weft a', 'weft b', what, most, scale)
    if len(samples) < 2:
        result.failures['weft b'] = 'WeftFailed: no'
    return json.loads(report.json_line(result, CEILINGS, group))


class TableTest(unittest.TestCase):
    lines = [
        line_of('one', 'profile-choice', {'weft a': [1e-3, 1.1e-3, 2e-3],
                                          'weft b': [1e-3, 1e-3, 2e-3]}),
        line_of('two', 'profile-choice', {'weft a': [1.2e-3] * 3, 'weft b': [1e-3] * 3}),
        line_of('three', 'profile-choice', {'weft a': [1e-3] * 3})
    ]

    def test_rows_and_verdicts(self):
        one, two, three = pairs_table.rows_of(self.lines)[1:]
        self.assertEqual(one[1:3] + one[4:], ['1.100', '1.000', 'with / without profile', '1.03',
                                              'reached', '2 differ'])
        self.assertTrue(one[3].startswith('1.000 '))  # the median of the ratios of rounds
        self.assertEqual((two[3], two[6]), ('1.200 (+-0.0%)', 'MISSED'))
        self.assertEqual((three[2], three[3], three[6]), ('-', '-', 'no figure'))
        self.assertIn('MISSED', pairs_table.text(self.lines))
        self.assertEqual(pairs_table.text([]), '')

    def test_a_ratio_may_be_by_token(self):
        samples = {'weft a': [0.8e-3] * 3, 'weft b': [1e-3] * 3}
        line = line_of('layer', 'odd-lengths', samples, 1.05, 784 / 777)
        self.assertAlmostEqual(pairs_table.median(line), 0.8e-3 / 777 / (1e-3 / 784))

    def test_what_is_asked_for_reaches_the_page(self):
        for line, (what, figure, least) in zip(self.lines, pairs_table.asked(self.lines)):
            self.assertIn(line['workload'], what)
            self.assertAlmostEqual(least, 1 / 1.03)
        odd = line_of('layer', 'odd-lengths', {'weft a': [1e-3] * 3, 'weft b': [1e-3] * 3}, 1.05,
                      what='time per token')
        page = results.document(['\n'.join(map(json.dumps, [
            {'machine': 'a GPU', 'command': 'bench/run profile-choice odd-lengths'}, *self.lines,
            odd]))])
        self.assertIn('| two, inverse of with / without profile | 0.833 | 0.97 | **missed** |',
                      page)
        self.assertIn('| three, inverse of with / without profile | - | 0.97 | **missed** |', page)
        self.assertIn('| one, inverse of with / without profile | 1.000 | 0.97 |  |', page)
        self.assertIn('## Plans chosen with and without the profile\n', page)
        self.assertIn('## Lengths that are no multiple of 8\n', page)
        self.assertIn('| layer | 1.000 | 1.000 | 1.000 (+-0.0%) | time per token | 1.05 | reached |'
                      ' 2 differ |', page)
        self.assertIn('- weft b: WeftFailed: no (1 of 3 rows)', page)


@unittest.skipUnless(HAS_TORCH, 'needs PyTorch, on the CPU')
class MeasuredTest(CommandTest):
    """What is compiled, checked and timed; the compiler, the GPU and the clock are stand-ins."""
    def setUp(self):
        super().setUp()
        self.settings = bench.Settings(folder=self.folder, weft='w', library='l', rounds=3,
                                       weft_flags=['--no-library'])

    def timed(self, result, contenders, rounds):
        self.contenders = [one.name for one in contenders]
        for number, one in enumerate(contenders):
            result.samples[one.name] = [(number + 1) * 1e-3] * rounds

    def test_the_profile_is_all_that_differs(self):
        from weftbench import ours, profile_choice, transfer
        compiled = []

        def compile_artifact(settings, name, arguments, edit=None, entry=None):
            compiled.append((settings.weft, settings.folder.name, settings.weft_flags, name))
            (settings.folder / 'kernels').mkdir(exist_ok=True)
            return types.SimpleNamespace(folder=settings.folder, plan={'kernels': []},
                                         summary=lambda: 'a plan', device_bytes=lambda: 0,
                                         parameter_bytes=lambda: 0)

        self.settings.only = ['23/']
        with mock.patch.object(ours, 'compile_artifact', compile_artifact), \
                mock.patch.object(transfer, 'operands', lambda draw: (None, None, None)), \
                mock.patch.object(transfer, 'checked', lambda *_: (lambda: None, 1e-4)), \
                mock.patch.object(transfer.timing, 'GraphContender',
                                  lambda name, call: types.SimpleNamespace(name=name)), \
                mock.patch.object(profile_choice.timing, 'measure', self.timed):
            found = list(profile_choice.run(self.settings))
        self.assertEqual(len(found), len(profile_choice_rows.rows()))
        self.assertEqual(self.contenders, ['weft with profile', 'weft without'])
        self.assertEqual(compiled[:2], [
            ('w', 'weft-with-profile', ['--no-library'], found[0].workload.name),
            ('w', 'weft-without', ['--no-library', '--profile=none'], found[0].workload.name)])
        self.assertEqual(found[0].record, {'pair': {
            'names': self.contenders, 'what': 'with / without profile', 'most': 1.03,
            'ratio': {'median': 0.5, 'spread': 0.0}, 'kernels': 'equal'}})
        self.assertEqual(found[0].errors, {'weft with profile': 1e-4, 'weft without': 1e-4})
        self.assertEqual(self.settings.builds, [])

    def test_a_layer_that_fails_is_a_row_without_a_figure(self):
        from weftbench import profile_choice
        with mock.patch.object(profile_choice.timing, 'measure', self.timed), \
                mock.patch.object(profile_choice.transfer, 'operands',
                                  mock.Mock(side_effect=RuntimeError('no memory'))):
            self.settings.only = ['23/10 ']
            found, = profile_choice.run(self.settings)
        self.assertIn('no memory', found.failures['weft'])
        self.assertIsNone(found.record['pair']['ratio'])

    def small_operands(self):
        import torch
        from weftbench import encoder
        return mock.patch.object(encoder, 'operands', lambda layer, batch, length: (
            None, torch.zeros(batch, length, layer.hidden, dtype=torch.float16)))

    def test_profiled_layers_are_rows_too(self):
        from weftbench import profile_choice
        given = []

        def our_contenders(result, settings, layer, module, x, batch, length):
            given.append((layer.name(batch, length), tuple(x.shape)))
            return [types.SimpleNamespace(name=build.label) for build in settings.builds]

        self.settings.only = ['paper-encoder', 'L=4096']
        with mock.patch.object(profile_choice.encoder, 'our_contenders', our_contenders), \
                self.small_operands(), \
                mock.patch.object(profile_choice.timing, 'measure', self.timed):
            found = list(profile_choice.run(self.settings))
        self.assertEqual(given, [('paper-encoder B=8 L=512', (8, 512, 1024)),
                                 ('paper-encoder B=96 L=128', (96, 128, 1024)),
                                 ('bert-large B=1 L=4096', (1, 4096, 1024))])
        self.assertEqual([one.workload.name for one in found], [name for name, _ in given])
        self.assertEqual(found[0].record['pair']['ratio']['median'], 0.5)

    def test_both_lengths_are_timed_together_by_token(self):
        from weftbench import odd_lengths
        given = []

        def our_contenders(result, settings, layer, module, x, batch, length):
            given.append((x.shape, batch, length))
            result.errors['weft'], result.extra['weft plan'] = 1e-4 * length, f'plan {length}'
            return [types.SimpleNamespace(name='weft')]

        with mock.patch.object(odd_lengths.encoder, 'our_contenders', our_contenders), \
                self.small_operands(), \
                mock.patch.object(odd_lengths.timing, 'measure', self.timed):
            found, = odd_lengths.run(self.settings)
        self.assertEqual(given, [((3, 777, 1024), 3, 777), ((3, 784, 1024), 3, 784)])
        self.assertEqual(self.contenders, ['weft L=777', 'weft L=784'])
        self.assertAlmostEqual(found.record['pair']['ratio']['median'], 0.5 * 784 / 777)
        self.assertEqual(found.record['pair']['most'], 1.05)
        self.assertEqual(found.errors, {'weft L=777': 1e-4 * 777, 'weft L=784': 1e-4 * 784})
        self.assertEqual(found.extra['weft plan L=784'], 'plan 784')
        self.assertEqual(found.workload.name, 'bert-large B=3 L=777 beside L=784')
        self.assertEqual(found.ours(), self.contenders)


class UsageTest(unittest.TestCase):
    def test_what_the_groups_take(self):
        for words, says in (
                (['odd-lengths', '--rivals-only'], 'odd-lengths compares plans of weft'),
                (['profile-choice', '--weft-flag=--profile=a'], 'takes no --weft-flag=--profile'),
                (['profile-choice', '--weft', 'a', '--weft', 'b'], 'takes one --weft')):
            done = subprocess.run([sys.executable, ROOT / 'bench/run', *words],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, ' '.join(done.stderr.split()))

    def test_their_lines_are_kept_for_their_tables(self):
        for group in pairs_table.GROUPS:
            self.assertIn(group, bench.GROUPS)
            self.assertIs(results.TABLES[group], pairs_table)
            self.assertIn(group, results.GROUPS)

    def test_flags_of_a_build_are_none_unless_said(self):
        self.assertEqual(builds.Build('weft', 'a', 'b').flags, ())


if __name__ == '__main__':
    unittest.main()
