"""Group `varlen` of bench/run without a GPU: its rows, the plans that it compiles, the table of its
figures, usage; with PyTorch on the CPU also rivals and the fp64 reference."""
import importlib
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import report, varlen_mixed_rows, varlen_rows, varlen_table
from weft_command import CommandTest

CEILINGS = (4e12, 7e14)
HAS_TORCH = importlib.util.find_spec('torch') is not None
WEIGHTS = ('wq', 'bq', 'wk', 'bk', 'wv', 'bv', 'wo', 'bo', 'gamma1', 'beta1', 'w1', 'b1', 'w2',
           'b2', 'gamma2', 'beta2')


class RowsTest(unittest.TestCase):
    def test_names_differ(self):
        names = [row.name() for row in varlen_rows.rows()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), 3 * 5 + 2 * 3 * 2)  # the sweep's 60% are rows of the grid
        self.assertEqual(names[0], 'bert-base 12 layers B=1 L=64 60%')

    def test_lengths_are_those_of_the_workloads(self):
        for batch, length, tokens in ((1, 256, 154), (1, 1024, 614), (16, 256, 2480),
                                      (16, 1024, 9919)):
            self.assertEqual(varlen_rows.Row(batch, length).tokens(), tokens)

    def test_lengths_have_their_mean_and_fit(self):
        for row in varlen_rows.rows():
            self.assertEqual(len(row.lengths()), row.batch)
            self.assertGreaterEqual(min(row.lengths()), 1)
            self.assertLessEqual(max(row.lengths()), row.length)
            self.assertAlmostEqual(row.tokens() / (row.batch * row.length), row.mean, delta=0.03)
        self.assertEqual(set(varlen_rows.Row(16, 128, 1.0).lengths()), {128})

    def test_flop_of_full_sequences_are_those_of_padded_ones(self):
        row = varlen_rows.Row(16, 128, 1.0, layers=3)
        self.assertEqual(row.flop(), 3 * row.layer.flop(16, 128))
        self.assertLess(varlen_rows.Row(16, 128, layers=3).flop(), 0.65 * row.flop())

    def test_must(self):
        self.assertEqual(varlen_rows.Row(16, 256).must(), 1.2)
        self.assertIsNone(varlen_rows.Row(16, 256, 0.2).must())


class BatchesTest(unittest.TestCase):
    def test_batches_reach_weft_line_by_line(self):
        """As --lengths takes batches: as many lengths a line as there are sequences."""
        row = varlen_mixed_rows.rows()[0]
        lines = varlen_mixed_rows.lengths_text(row.draws()).splitlines()
        self.assertEqual(len(lines), varlen_mixed_rows.BATCHES)
        for draw, line in zip(row.draws(), lines):
            self.assertEqual([int(word) for word in line.split()], draw.lengths())
            self.assertEqual(len(draw.lengths()), row.batch)


def group():
    """The module of the group; without PyTorch over a stand-in, which computes nothing."""
    stubs = {name: mock.MagicMock() for name in ('torch', 'torch.nn', 'torch.nn.functional')}
    if not HAS_TORCH:
        with mock.patch.dict(sys.modules, stubs):  # what is imported here is forgotten again
            return importlib.import_module('weftbench.varlen')
    return importlib.import_module('weftbench.varlen')


class PlansTest(CommandTest):
    """What the group compiles."""
    def setUp(self):
        super().setUp()
        self.varlen = group()

    def test_both_plans_take_lengths_and_the_names_of_the_weights(self):
        row = varlen_rows.Row(2, 16, layers=2)
        arguments = self.varlen.compile_arguments(types.SimpleNamespace(folder=self.folder), row)
        self.assertEqual(list(arguments), varlen_table.OURS)
        for own in arguments.values():
            graph = self.weft('compile', *map(str, own), '--stop-after', 'import').out
            found = set(re.findall(r'%(\w+): [^,)]*\{[^}]*weft\.parameter', graph))
            self.assertEqual(
                found, {
                    varlen_rows.layer_prefix(row, index) + name
                    for index in range(2) for name in WEIGHTS
                })
            self.assertIn('%x: ', graph)
            self.assertIn('%lengths: ', graph)
        self.assertIn('weft.pack', graph)

    def test_a_layer_alone_has_names_without_a_number(self):
        row = varlen_rows.Row(2, 16, layers=1)
        own = self.varlen.compile_arguments(types.SimpleNamespace(folder=self.folder), row)
        graph = self.weft('compile', *map(str, own[varlen_table.PACKED]), '--stop-after',
                          'import').out
        self.assertIn(f'%{varlen_rows.layer_prefix(row, 0)}wq: ', graph)

    def test_a_rival_that_pytorch_lacks_is_told(self):
        result = report.Result(varlen_rows.Row(1, 64).workload())

        def lacks():
            raise ImportError('no module of that name')

        self.assertEqual(self.varlen.rival_contender(result, 'flash', lacks, None, None), [])
        self.assertEqual(result.failures,
                         {'flash': 'not available: ImportError: no module of that name'})


def line(row, failures=(), **ms):
    """The JSON line of a row in which contenders took so long."""
    result = report.Result(row.workload())
    names = {'padded': varlen_table.PADDED, 'packed': varlen_table.PACKED,
             'compiled': varlen_table.COMPILED, 'flash': varlen_table.FLASH}
    for name, value in ms.items():
        result.samples[names[name]] = [value / 1e3] * 3
    result.failures.update(failures)
    best = result.best(result.ours())
    ratios = {
        name: samples[0] / result.samples[best][0]
        for name, samples in result.samples.items() if name not in result.ours()
    } if best else {}
    result.record['varlen'] = varlen_table.record(row, best, ratios)
    return json.loads(report.json_line(result, CEILINGS, 'varlen'))


class TableTest(unittest.TestCase):
    def test_the_best_of_both_sides_counts_and_all_are_shown(self):
        text = varlen_table.text([
            line(varlen_rows.Row(16, 256), padded=1.6, packed=1.0, compiled=1.8, flash=1.25)
        ])
        cells = re.split(r'  +', text.splitlines()[1])
        self.assertEqual(cells[:8], ['bert-base 12 layers B=16 L=256 60%', '1.600', '1.000', '-',
                                     '1.800', '1.250', '-', '1.250x'])
        self.assertEqual(cells[8], '1.20x')
        self.assertIn('B=16, 1 rows: geometric mean of the best rival / weft 1.250x', text)

    def test_a_row_without_a_figure_leaves_no_mean(self):
        text = varlen_table.text([
            line(varlen_rows.Row(1, 64), compiled=1),
            line(varlen_rows.Row(1, 128, 0.2), packed=1, flash=2)
        ])
        self.assertIn('B=1: no geometric mean: no figure of bert-base 12 layers B=1 L=64', text)
        self.assertIn('mean 20%, 1 rows: geometric mean of the best rival / weft 2.000x', text)

    def test_the_sweep_has_one_mean_and_its_worst_row(self):
        """Over the 18 rows of means alone: rows of other lengths do not count."""
        sweep = [line(row, packed=1, flash=1.25) for row in varlen_rows.sweep()]
        self.assertEqual(len(sweep), 18)
        others = [line(varlen_rows.Row(8, 512), packed=1, flash=9)]
        text = varlen_table.text(sweep + others)
        self.assertIn('sweep: geometric mean of the best rival / weft 1.250x (must 1.20x: met); '
                      'least 1.250x', text)
        slow = line(varlen_rows.Row(16, 512, 1.0), packed=1, flash=0.9)
        last = next(n for n, one in enumerate(sweep) if one['workload'] == slow['workload'])
        text = varlen_table.text([*sweep[:last], slow, *sweep[last + 1:]])
        self.assertIn('sweep: geometric mean of the best rival / weft 1.227x', text)
        self.assertIn('least 0.900x, bert-base 12 layers B=16 L=512 100% (must 0.97x: missed)',
                      text)
        text = varlen_table.text([line(varlen_rows.Row(1, 128), padded=1), *sweep[4:6]])
        self.assertIn('sweep, 2 of 18 rows (the others have no figure): geometric mean', text)
        self.assertNotIn('sweep', varlen_table.text(others))

    def test_rivals_that_are_not_available_are_named_once(self):
        failures = {varlen_table.FLASH: varlen_table.UNAVAILABLE + 'ImportError'}
        text = varlen_table.text([
            line(varlen_rows.Row(1, length), failures, packed=1, compiled=1)
            for length in (64, 128)
        ])
        self.assertIn(f'{varlen_table.FLASH}: not available: ImportError (2 rows)', text)


def mixed_line(row, one, each, missing=(), captures=(2, 2)):
    """The JSON line of a row of mixed batches: milliseconds of each planned batch."""
    result = report.Result(row.workload())
    result.samples[varlen_mixed_rows.ONE] = [sum(one) / 1e3] * 3
    result.samples[varlen_mixed_rows.EACH] = [sum(each) / 1e3] * 3
    losses = {draw.index: a / b for draw, a, b in zip(row.planned(), one, each)}
    result.record['varlen'] = varlen_mixed_rows.record(row, losses, dict(missing), list(captures),
                                                       0.1)
    return json.loads(report.json_line(result, CEILINGS, 'varlen'))


class MixedTest(unittest.TestCase):
    """100 batches of random lengths through one artifact."""
    def test_batches_differ_fit_and_stay_the_same(self):
        row, = (one for one in varlen_mixed_rows.rows() if one.length == 1024)
        draws = row.draws()
        self.assertEqual((len(draws), len(row.planned())), (100, 10))
        self.assertEqual(len({tuple(draw.lengths()) for draw in draws}), 100)
        for draw in draws:
            self.assertEqual(len(draw.lengths()), row.batch)
            self.assertTrue(all(1 <= length <= row.length for length in draw.lengths()))
            self.assertEqual(draw.lengths(), draw.lengths())
        fills = sorted(draw.tokens() / (row.batch * row.length) for draw in draws)
        self.assertLess(fills[10], 0.25)
        self.assertGreater(fills[-10], 0.85)
        self.assertEqual(draws[3].name(), 'bert-base 12 layers B=16 L=1024 batch 3')

    def test_the_table_has_the_loss_of_sums_and_of_the_worst_batch(self):
        row = varlen_mixed_rows.rows()[0]
        text = varlen_table.text([mixed_line(row, [1.0, 3.3], [1.0, 3.0], {20: 'no plan'})])
        cells = re.split(r'  +', text.splitlines()[1])
        self.assertEqual(cells, ['bert-base 12 layers B=16 L=256 100 batches', '4.300', '4.000',
                                 '2', '1.075', '1.100', '100.000', '0'])
        self.assertIn('no plan of batch 20: no plan', text)
        self.assertIn('must 1.05, record 1.02', text)
        captured = varlen_table.text([mixed_line(row, [1], [1], captures=(2, 5))])
        self.assertEqual(re.split(r'  +', captured.splitlines()[1])[-1], '3')

    def test_both_tables_stand_side_by_side(self):
        text = varlen_table.text([line(varlen_rows.Row(16, 256), packed=1, flash=2),
                                  mixed_line(varlen_mixed_rows.rows()[0], [1], [1])])
        self.assertIn('best / weft', text)
        self.assertIn('one / plans', text)


class UsageTest(unittest.TestCase):
    def test_mixed(self):
        self.rejects('encoder', '--mixed', says='--mixed belongs to group varlen')
        self.rejects('varlen', '--mixed', '--rivals-only', says='takes no --rivals-only')

    def rejects(self, *arguments, says):
        done = subprocess.run([sys.executable, ROOT / 'bench/run', *arguments], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(says, done.stderr)

    def test_layers(self):
        self.rejects('encoder', '--layers', '3', says='--layers belongs to group varlen')
        self.rejects('varlen', '--layers', '13', says='--layers must be 1 to 12')
        self.rejects('varlen', '--weft', 'a', '--weft', 'b', says="group 'varlen' takes one --weft")


def nested(attention, longest):
    """Attention of nested tensors [batch, heads, *, head], which PyTorch has on a GPU alone."""
    def run(*tensors):
        import torch
        tokens = [tensor.transpose(1, 2) for tensor in tensors]
        offsets = tokens[0].offsets()
        mixed = attention(*(one.values() for one in tokens), offsets.int(), longest)
        return torch.nested.nested_tensor_from_jagged(mixed, offsets).transpose(1, 2)

    return run


@unittest.skipUnless(HAS_TORCH, 'needs PyTorch')
class RivalsTest(unittest.TestCase):
    """Every rival against fp64, sequence by sequence, on the CPU."""
    def test_rivals_compute_the_layers(self):
        import torch
        from weftbench import varlen, varlen_modules
        attend = torch.nn.functional.scaled_dot_product_attention
        torch.manual_seed(0)
        for mean in (0.6, 1.0):
            row = varlen_rows.Row(4, 24, mean, layers=2)
            modules = varlen_modules.modules_of(row)
            x = torch.randn(row.batch, row.length, row.layer.hidden)
            batch = varlen_modules.Batch(row.lengths(), row.length, 'cpu')

            def attention(q, k, v, offsets, longest):
                self.assertEqual((offsets.dtype, longest), (torch.int32, max(row.lengths())))
                ends = offsets.tolist()
                turned = lambda one, begin, end: one[begin:end].transpose(0, 1)
                return torch.cat([
                    attend(*(turned(one, begin, end) for one in (q, k, v))).transpose(0, 1)
                    for begin, end in zip(ends, ends[1:])
                ])

            with torch.no_grad():
                check = varlen.Checker(batch, varlen.expected_of(row, modules, x))
                sizes = (batch, modules, row.layer.heads, row.layer.epsilon)
                outs = [form(x) for form in (varlen_modules.padded_form(*sizes),
                                             varlen_modules.packed_form(*sizes, attention))]
                with mock.patch.object(torch.nn.functional, 'scaled_dot_product_attention',
                                       nested(attention, max(row.lengths()))):
                    outs.append(varlen_modules.nested_form(*sizes)(x))
                for out in outs:
                    self.assertEqual(out.shape, x.shape)
                    self.assertLess(check(out), 1e-5)
                with self.assertRaises(Exception):
                    check(out + 1)

    def test_a_row_is_checked_before_it_is_timed(self):
        import torch
        from weftbench import ours, timing, varlen, varlen_modules
        row = varlen_rows.Row(2, 16, layers=2)
        compiled = []

        class Artifact:
            """In the place of weft: computes the layers by a rival, the packed plan wrongly."""
            def __init__(self, _settings, name, arguments):
                compiled.append((name, arguments))
                self.wrong = '--ragged' in arguments

            def set_parameters(self, tensors):
                self.heads_first = tensors['layer1_wq'].shape

            def input_names(self):
                return ['x', 'lengths']

            def poisoned_outputs(self):
                return [torch.full((2, 16, 768), float('nan'), dtype=torch.float16)]

            def launch(self, inputs, outputs):
                x, lengths = inputs
                batch = varlen_modules.Batch(lengths.tolist(), 16, 'cpu')
                torch.manual_seed(0)
                modules = [module.half() for module in varlen_modules.modules_of(row)]
                outputs[0].copy_(varlen_modules.padded_form(batch, modules, 12, 1e-12)(x))
                if self.wrong:
                    outputs[0][1, 0] += 1

            summary = lambda self: ''
            device_bytes = parameter_bytes = lambda self: 0

        timed = []
        settings = types.SimpleNamespace(folder=pathlib.Path(tempfile.mkdtemp()), ours=True,
                                         rivals=True, torch_compile=False, rounds=1, layers=2,
                                         mixed=False, wants=lambda name: name == row.name())
        with mock.patch.multiple(varlen, DEVICE='cpu'), \
                mock.patch.object(varlen_rows, 'BATCHES', (2, )), \
                mock.patch.object(varlen_rows, 'LENGTHS', (16, )), \
                mock.patch.object(ours, 'compile_artifact', Artifact), \
                mock.patch.object(timing, 'GraphContender', lambda name, call: (name, call)), \
                mock.patch.object(timing, 'measure', lambda _, given, __: timed.extend(given)), \
                mock.patch.object(torch.cuda, 'synchronize', lambda: None), \
                mock.patch.object(torch.cuda, 'empty_cache', lambda: None):
            result, = varlen.run(settings)
        self.assertEqual([name for name, _ in compiled], [
            'bert-base 2 layers B=2 L=16 padded', 'bert-base 2 layers B=2 L=16 60% packed'
        ])
        self.assertEqual([name for name, _ in timed], [varlen_table.PADDED, varlen_table.EAGER])
        self.assertLess(result.errors[varlen_table.PADDED], 5e-3)
        self.assertIn('relative error', result.failures[varlen_table.PACKED])
        self.assertEqual(result.record['varlen']['tokens'], row.tokens())

    def test_weights_are_those_of_the_graph(self):
        from weftbench import varlen, varlen_modules
        row = varlen_rows.Row(1, 64, layers=1)
        self.assertEqual(set(varlen.tensors_of(row, varlen_modules.modules_of(row))), set(WEIGHTS))


if __name__ == '__main__':
    unittest.main()
