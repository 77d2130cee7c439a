"""bench/run bytetransformer without a GPU: flags of every step that weft takes, rows of every
point, figures marked as predicted, what a run with a GPU would show, runs that go on, and bad
words."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
import weftbench
from weftbench import (__main__ as bench, bytetransformer, bytetransformer_rows as rows,
                       bytetransformer_tables as tables, figure_run, layers, report, results,
                       varlen_rows)
import without_torch
from weft_command import CommandTest, WEFT

SVG = '{http://www.w3.org/2000/svg}'


def texts(drawn):
    return [element.text for element in xml.etree.ElementTree.fromstring(drawn).iter(SVG + 'text')]


def made(point, source=figure_run.PREDICTED):
    """Entries without weft: each step and plan takes less than the one before."""
    scale = 1e-9 * point.work.batch * point.work.length * point.work.mean
    names = [name for step in rows.STEPS for name in (step.name, rows.ATTENTION + step.name)] \
        if point.is_of_steps() else [rows.PADDED, rows.PACKED]
    return [figure_run.entry(name, scale * (20 - index), source)
            for index, name in enumerate(names)]


class Rows(unittest.TestCase):
    def test_points_are_those_of_the_seed(self):
        points = rows.points()
        self.assertEqual(list(points), list(rows.FIGURES))
        for figure, own in points.items():
            names = [point.name() for point in own]
            self.assertEqual(len(names), len(set(names)))
            self.assertEqual({point.work.batch for point in own}, {1, 8, 16})
            self.assertTrue(all(name.startswith(figure + ' ') for name in names))
        lengths = lambda figure: [point.work.length for point in points[figure]]
        self.assertLessEqual(max(lengths('fig11')), 384)
        self.assertGreaterEqual(min(lengths('fig12')), 448)
        self.assertEqual((min(lengths('fig15')), max(lengths('fig15'))), (64, 1024))
        means = {point.work.mean for point in points['fig15']}
        self.assertEqual(means, {tenth / 10 for tenth in range(1, 11)})
        self.assertEqual({point.work.preset for point in points['fig16']},
                         {'albert-base', 'distilbert', 'deberta-base'})

    def test_shared_weights_are_counted_once_and_have_no_number(self):
        own, shared = (varlen_rows.Row(1, 64, layers=12, layer=layer)
                       for layer in (layers.DISTILBERT, layers.ALBERT_BASE))
        self.assertEqual(own.bytes_moved() - shared.bytes_moved(),
                         11 * 2 * layers.DISTILBERT.weight_elements())
        self.assertEqual([varlen_rows.layer_prefix(row, 1) for row in (own, shared)],
                         ['layer2_', ''])

    def test_gains(self):
        self.assertAlmostEqual(rows.gain(1.24, 1), 24)
        self.assertIsNone(rows.gain(None, 1))
        self.assertAlmostEqual(rows.mean_gain([(2, 1), (8, 1), (None, 1)]), 300)
        self.assertIsNone(rows.mean_gain([]))
        steps = [step.gain for step in rows.STEPS]
        total = 1
        for gain in steps[1:]:
            total *= 1 + gain / 100
        self.assertAlmostEqual(100 * (total - 1), rows.TOTAL_GAIN, delta=1)  # as the seed has it


class Tables(unittest.TestCase):
    def figure(self, name, source=figure_run.PREDICTED, more=lambda point: []):
        return tables.Figure(name, [(point, made(point, source) + more(point))
                                    for point in rows.points()[name]])

    def test_every_point_is_a_row_and_is_marked_as_predicted(self):
        for name in rows.FIGURES:
            with self.subTest(name):
                figure = self.figure(name)
                said = tables.text_of(figure)
                for point in rows.points()[name]:
                    line, = (line for line in said.splitlines()
                             if line.startswith(point.name().split(' ', 1)[1] + ' '))
                    self.assertTrue(line.endswith('predicted'), line)
                    self.assertNotIn(' - ', line)
                legend = [text for text in texts(tables.drawn(figure)) if '(predicted)' in text]
                self.assertGreater(len(legend), 0)
                self.assertNotIn('measured', said.replace('measured by itself', ''))

    def test_step_gains_stand_beside_those_of_the_seed(self):
        said = tables.text_of(self.figure('fig14'))
        for before, after in zip(rows.STEPS, rows.STEPS[1:]):
            line, = (line for line in said.splitlines()
                     if line.startswith(after.name + '  ') and '%' in line)
            names = [step.name for step in rows.STEPS]
            ours = rows.percent(rows.gain(20 - 2 * names.index(before.name),
                                          20 - 2 * names.index(after.name)))
            self.assertEqual(line.count(f'{ours} predicted'), 3)
            self.assertTrue(line.endswith(f'{after.gain:+g}%'))
        self.assertRegex(said, r'fused MHA over baseline .*\+66.7% predicted .*\+60%')

    def test_the_least_mean(self):
        said = tables.text_of(self.figure('fig15'))
        self.assertRegex(said, r'packed takes up to 90% less time \(L=\d+\), predicted; seed: up '
                         'to 66%')

    def test_measured_figures_are_told_from_predicted_ones(self):
        rival = lambda point: [figure_run.entry('flash varlen + compile', 1e-3,
                                                figure_run.MEASURED)]
        figure = self.figure('fig15', figure_run.MEASURED, rival)
        said = tables.text_of(figure)
        self.assertEqual(figure.rivals(), ['flash varlen + compile'])
        self.assertIn('than flash varlen + compile', said)
        self.assertNotIn('predicted', said)
        self.assertNotIn('stroke-dasharray', tables.drawn(figure))

        cores = lambda point: [figure_run.entry(name, seconds, figure_run.MEASURED)
                               for name, seconds in (('fused, padded tensors', 1e-3),
                                                     ('eager', 5e-3), ('flash varlen', 2e-3))]
        said = tables.text_of(self.figure('fig11', more=cores))
        self.assertRegex(said, r'than PyTorch +\+400.0% +\+617%')
        self.assertIn('+100.0%', tables.text_of(self.figure('fig13', more=cores)))

    def test_a_step_without_a_figure_says_why(self):
        point = rows.points()['fig14'][0]
        entries = [one for one in made(point) if rows.FUSED not in one['name']]
        entries.append(figure_run.failure(rows.FUSED, 'weft select: exit 3'))
        figure = tables.Figure('fig14', [(point, entries)])
        self.assertRegex(tables.text_of(figure), r'fused MHA +- ')
        self.assertEqual(figure_run.failures_text([(point.name(), entries)]), [
            f'fused MHA: no figure: weft select: exit 3 (1 points, first: {point.name()})'])


class Attention(unittest.TestCase):
    def test_kernels_between_the_projections(self):
        tensor = lambda role, buffer, dtype='f16': {'role': role, 'buffer': buffer, 'dtype': dtype}
        tensors = [tensor('argument', 0), tensor('parameter', 1), tensor('parameter', 2),
                   tensor('temporary', 1), tensor('temporary', 9), tensor('temporary', 9, 'i32'),
                   tensor('temporary', 9), tensor('temporary', 9), tensor('result', 3)]
        kernel = lambda ops, inputs, outputs, seconds: {
            'ops': ops, 'inputs': inputs, 'outputs': outputs, 'seconds': seconds}
        plan = {'tensors': tensors, 'kernels': [
            kernel(['offsets'], [0], [5], 1),
            kernel(['contract'], [3, 0, 5], [4], 2),  # stacked weights lie where weights do
            kernel(['unpack'], [4, 5], [6], 4),
            kernel(['softmax'], [6, 5], [7], 8),
            kernel(['contract'], [7, 2, 5], [8], 16)]}
        self.assertEqual(bytetransformer.attention_seconds(plan), 4 + 8)


class Command(CommandTest):
    def setUp(self):
        super().setUp()
        for one in (mock.patch.dict(os.environ, WEFT_CACHE_DIR=str(self.cache)),
                    mock.patch.object(figure_run, 'has_gpu', lambda: False)):
            one.start()
            self.addCleanup(one.stop)

    def bench(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = bench.main(['bytetransformer', '--weft', WEFT, '--figures',
                               str(self.folder / 'drawn'), *map(str, words)])
        return code, said.getvalue()

    def test_weft_takes_the_flags_of_every_step(self):
        """Of a small layer of one sequence; and packs, skips and fuses as the steps say."""
        settings = types.SimpleNamespace(weft=WEFT, weft_flags=[], folder=self.folder)
        work = rows.Work('bert-base', 1, 2, 128)
        small = ['--dim', 'h=2', '--dim', 'i=128', '--dim', 'u=256', '--profile', 'none',
                 '--stop-after', 'fuse', '-o', str(self.folder / 'graph.mlir'), '--overwrite']
        for step in rows.STEPS:
            arguments = bytetransformer.step_arguments(settings, work, step)
            self.weft('compile', *arguments, *small)
            graph = (self.folder / 'graph.mlir').read_text()
            self.assertEqual('weft.pack' in graph, step.packs)
            self.assertIn('gelu', graph)

    def test_predicted_figures_of_one_point(self):
        lines = self.folder / 'points.jsonl'
        code, said = self.bench('--only', 'fig14 B=1 L=128', '--json', lines)
        self.assertEqual(code, 0, said)
        self.assertIn('no GPU: every figure is predicted', said)
        self.assertIn(str(self.folder / 'drawn/bytetransformer-fig14.svg'), said)
        legend = texts((self.folder / 'drawn/bytetransformer-fig14.svg').read_text())
        for step in rows.STEPS:
            self.assertIn(f'{step.name} (predicted)', legend)
        head, point = map(json.loads, lines.read_text().splitlines())
        self.assertIn('no GPU: every figure is predicted', head['machine'])
        self.assertEqual(head['command'][:len('bench/run bytetransformer --only')],
                         'bench/run bytetransformer --only')
        self.assertEqual(point['workload'], 'fig14 B=1 L=128 60%')
        self.assertEqual(point['failures'], {})
        seconds = {one['name']: one['seconds'] for one in point['entries']}
        self.assertEqual({one['source'] for one in point['entries']}, {'predicted'})
        self.assertLess(seconds['layernorm fusion'], seconds['baseline'])
        self.assertLess(seconds['bias + GELU fusion'], seconds['layernorm fusion'])
        self.assertLess(seconds['attention, fused MHA'], seconds['attention, rm padding'])

    def test_a_run_goes_on_where_its_budget_ended(self):
        asked = []
        self.enterContext(mock.patch.object(
            bytetransformer, 'model_of',
            lambda settings, work, measured: asked.append(work.name()) or
            made(rows.Point('fig15', work))))
        only = ['--folder', self.folder / 'kept', '--only', 'fig15 B=8']
        code, said = self.bench(*only, '--budget', 0)
        self.assertEqual((code, asked), (0, []))
        self.assertIn('not begun, --budget is spent: bert-base 12 layers B=8 L=64 60%', said)
        self.assertIn('the same --folder goes on', said)
        self.bench(*only)
        self.assertEqual(len(asked), 5)
        with open(self.folder / 'kept/bytetransformer.jsonl', 'a', encoding='utf-8') as lines:
            lines.write('{"key": ')  # as a killed run leaves it
        code, said = self.bench(*only)
        self.assertEqual((code, len(asked)), (0, 5), said)
        self.assertIn('B=8 L=1024 60%', said)
        self.bench(*only, '--weft-flag=--profile=none')  # other figures
        self.assertEqual(len(asked), 10)

    def test_lines_come_as_points_are_done_and_reach_the_page(self):
        """Of a GPU that there is not, whose second point ends the run."""
        asked, lines = [], self.folder / 'points.jsonl'

        def model(_, work):
            asked.append(work.length)
            if work.length == 128 and len(asked) == 2:
                raise KeyboardInterrupt
            rival = figure_run.entry('flash varlen + compile', 1e-3, figure_run.MEASURED)
            return [*made(rows.Point('fig15', work), figure_run.MEASURED), rival,
                    figure_run.failure('nested', 'not there')]

        module = types.SimpleNamespace(where=lambda: 'a GPU', model=model)
        command = ['--only', 'fig15 B=8', '--folder', self.folder / 'kept', '--json', lines]
        with mock.patch.object(figure_run, 'has_gpu', lambda: True), \
                mock.patch.object(bytetransformer, 'predicted_model', lambda *_: []), \
                mock.patch.object(weftbench, 'bytetransformer_gpu', module, create=True):
            self.assertRaises(KeyboardInterrupt, self.bench, *command)
            self.assertEqual([json.loads(line).get('workload') for line in
                              lines.read_text().splitlines()], [None, 'fig15 B=8 L=64 60%'])
            code, said = self.bench(*command)
        self.assertEqual((code, asked), (0, [64, 128, 128, 256, 512, 1024]), said)
        page = results.document([lines.read_text()])
        self.assertIn('## Figs. 11 to 16 of ByteTransformer\n`bench/run bytetransformer --only ',
                      page)
        self.assertIn('**fig15: 12 layers of BERT-base end to end**', page)
        self.assertIn('\n| ms | weft padded | weft packed | flash varlen + compile | source of '
                      'ours |', page)
        self.assertRegex(page, r'\n\| B=8 L=1024 60% \| [\d.]+ \| [\d.]+ \| 1\.0000 \| '
                         r'measured \|')
        self.assertRegex(page, r'\n\| than flash varlen \+ compile \| [-+][\d.]+% \| - \|')
        self.assertIn('No figure:\n- nested: not there (5 of 5 rows)', page)

    def test_bad_words(self):
        (self.folder / 'file').write_text('')
        for words, says in ((['--only', 'fig99'], '--only fig99: no point has it in its name; '
                             'figures: fig11, fig12, fig13, fig14, fig15, fig16'),
                            (['--only', 'fig14 B=1 L=128', '--weft-flag=--nonsense'],
                             '--nonsense'),
                            (['--folder', self.folder / 'file'], 'file: File exists'),
                            (['--json', self.folder / 'none/x'], 'No such file'),
                            (['--weft', self.folder / 'none'], 'none: No such file')):
            with self.subTest(words):
                code, said = self.bench(*words) if '--weft' not in words else self.alone(*words)
                self.assertEqual(code, 2, said)
                self.assertIn(says, said)
        self.enterContext(mock.patch.object(bytetransformer, 'model_of',
                                            lambda settings, work, measured:
                                            made(rows.Point('fig15', work))))
        code, said = self.alone('--weft', WEFT, '--only', 'fig15 B=1 L=64', '--figures',
                                self.folder / 'file')
        self.assertEqual(code, 2, said)
        self.assertIn(f'--figures {self.folder}/file: ', said)

    def alone(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = bench.main(['bytetransformer', *map(str, words)])
        return code, said.getvalue()

    def test_no_other_group_beside_it(self):
        done = subprocess.run([ROOT / 'bench/run', 'bytetransformer', 'norm'], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('bytetransformer runs without other groups', done.stderr)


class Measured(CommandTest):
    """What is compiled and compared on a GPU, over a stand-in for PyTorch."""
    def setUp(self):
        super().setUp()
        self.module = without_torch.imported('bytetransformer_gpu')
        self.launches = without_torch.Launches(self, self.module)
        self.settings = bench.Settings(weft=WEFT, folder=self.folder, rounds=3)

    def test_medians_and_reasons_become_entries(self):
        result = report.Result(report.Workload('layer'))
        result.samples = {'fused': [3.0, 1.0, 2.0]}
        result.errors = {'fused': 1e-4}
        result.failures = {'eager': 'out of memory'}
        self.assertEqual(figure_run.entries_of(result), [
            {'name': 'fused', 'seconds': 2.0, 'source': 'measured', 'error': 1e-4},
            {'name': 'eager', 'seconds': None, 'source': '', 'reason': 'out of memory'}])

    def shown(self, entries):
        self.assertEqual({one['source'] for one in entries if one['seconds']}, {'measured'})
        return [one['name'] for one in entries if one['seconds']], \
            {one['name']: one['reason'] for one in entries if not one['seconds']}

    def test_every_step_is_compiled_as_it_is_predicted(self):
        self.launches.wrong = '--ragged j --attention unfused'
        work = rows.Work('bert-base', 1, 8, 128)
        arguments = {step.name: bytetransformer.step_arguments(self.settings, work, step)
                     for step in rows.STEPS}
        names, reasons = self.shown(self.module.steps(self.settings, work, arguments))
        self.assertEqual(names, [step.name for step in rows.STEPS if step.name != 'rm padding'])
        self.assertEqual(reasons, {'rm padding': 'WrongResult: far off'})
        self.assertEqual([*self.launches.compiled.values()],
                         [[*map(str, one)] for one in arguments.values()])

    def test_attention_alone(self):
        names, reasons = self.shown(self.module.attention(
            self.settings, rows.Work('bert-base', 1, 8, 128), rows.CORES))
        self.assertEqual(names, [*rows.CORES, 'eager', 'padded SDPA', 'flash varlen'])
        self.assertEqual(reasons, {})
        for kind, words in zip(rows.CORES.values(), self.launches.compiled.values()):
            self.assertEqual(words[-4:], ['--mask', 'padding', '--attention', kind])
            self.weft('select', *words, '--profile', 'none')

    def test_models(self):
        work = rows.Work('albert-base', 12, 8, 128)
        names, _ = self.shown(self.module.model(self.settings, work))
        self.assertEqual(names[:2], [rows.PADDED, rows.PACKED])
        predicted = bytetransformer.model_arguments(self.settings, work)
        for words, own in zip(self.launches.compiled.values(), predicted.values()):
            self.assertEqual([one for one in words if 'lengths' not in one],
                             [one for one in map(str, own) if 'lengths' not in one])


if __name__ == '__main__':
    unittest.main()
