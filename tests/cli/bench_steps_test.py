"""Groups `steps` and `models` of bench/run without a GPU: their rows, the plans that they compile;
of steps the optimizer and checks, the table of figures; with PyTorch on the CPU also the steps of
rivals."""
import importlib
import importlib.util
import json
import math
import pathlib
import re
import sys
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import layers, models_rows, report, steps_rows, steps_table
from weft_command import CommandTest

KINDS = ('', '_master', '_mean', '_square')  # of tensors that a step carries
CEILINGS = (4e12, 7e14)
HAS_TORCH = importlib.util.find_spec('torch') is not None
WEIGHTS = ('wq', 'bq', 'wk', 'bk', 'wv', 'bv', 'wo', 'bo', 'gamma1', 'beta1', 'w1', 'b1', 'w2',
           'b2', 'gamma2', 'beta2')
DECODER_TABLES = ('token_table', 'position_table', 'gamma_last', 'beta_last')
ENCODER_TABLES = ('token_table', 'type_table', 'position_table', 'gamma0', 'beta0', 'w_pool',
                  'b_pool')


def group():
    """The module of the group; without PyTorch over a stand-in, which computes nothing."""
    names = ('torch', 'torch.nn', 'torch.nn.functional', 'torch.nn.attention')
    if not HAS_TORCH:
        with mock.patch.dict(sys.modules, {name: mock.MagicMock() for name in names}):
            return importlib.import_module('weftbench.steps')
    return importlib.import_module('weftbench.steps')


class RowsTest(unittest.TestCase):
    def test_names_differ_and_say_everything(self):
        names = [row.name() for row in steps_rows.rows()]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(names[:2], ['gpt2 12 layers step B=4 L=1024 f16',
                                     'gpt2 12 layers step B=4 L=1024 bf16'])

    def test_parameters_are_those_of_the_models(self):
        known = {('gpt2', 1024): 124439808, ('gpt2-medium', 1024): 354823168,
                 ('bert-base', 512): 109482240, ('bert-large', 512): 335141888}
        found = {(row.layer.preset, row.length): row.parameters() for row in steps_rows.rows()}
        self.assertEqual(known, {name: found[name] for name in known})

    def test_flop_leave_out_hidden_scores_alone(self):
        layer = layers.Layer('gpt2', hidden=768, heads=12, feed_forward=3072)
        one = steps_rows.Row(layer, 2, 3, 1)
        head = 2 * 3 * 768 * 50257
        self.assertEqual(one.flop(), 3 * (2 * layer.flop(3, 1) + head))
        long = steps_rows.Row(layer, 2, 1, 1000)
        scores = 4 * 2 * 1000 * 1000 * 768
        hidden = 2 * layer.flop(1, 1000) + 1000 * head / 3 - long.flop() / 3
        self.assertAlmostEqual(hidden / scores, 999 / 2000)

    def test_steps_of_twelve_layers_are_reported_in_both_types(self):
        """BERT-base and GPT-2, B=8 L=512, against torch.compile; nothing must be reached."""
        rows = [row for row in steps_rows.rows() if (row.batch, row.length) == (8, 512)
                and row.layers == 12]
        names = [f'{preset} 12 layers step B=8 L=512 {dtype}' for preset in ('bert-base', 'gpt2')
                 for dtype in ('f16', 'bf16')]
        self.assertEqual([row.name() for row in rows], names)
        lines = [line(row, weft=10, compiled=12) for row in rows]
        for cells, name in zip(steps_table.rows_of(lines)[1:], names):
            self.assertEqual((cells[0], cells[7:10]), (name, ['1.200x', '-', '']))
        self.assertEqual(steps_table.asked(lines), [])

    def test_must_is_asked_of_three_models(self):
        asked = {row.layer.preset for row in steps_rows.rows() if row.must}
        self.assertEqual(asked, {'gpt2', 'gpt2-medium', 'bert-large'})


class GraphTest(CommandTest):
    """What the group compiles takes what it gives."""
    def setUp(self):
        super().setUp()
        self.steps = group()

    def check(self, layer, tables, results):
        row = steps_rows.Row(layer, 2, 1, 16)
        folder = self.folder / 'step'
        self.weft('compile', *map(str, row.compile_arguments()), '--stop-after', 'emit', '-o',
                  folder)
        plan = json.loads((folder / 'plan.json').read_text())
        named = lambda role: {
            tensor['logical']
            for tensor in plan['tensors'] if tensor['role'] == role
        }
        arguments, returned = named('argument'), named('result')
        parameters = {f'layer{index}_{name}' for index in (1, 2) for name in WEIGHTS} | set(tables)
        tensors = {name: mock.MagicMock() for name in parameters}
        data = mock.MagicMock(gradients=[mock.MagicMock(), mock.MagicMock()], scale=4.0)
        if HAS_TORCH:
            import torch
            tensors = {name: torch.zeros(1) for name in parameters}
            data = types.SimpleNamespace(tokens=torch.zeros(1, 16), second=torch.zeros(1, 16),
                                         gradients=[torch.zeros(1)] * 2, scale=4.0)
        self.assertEqual(arguments, set(self.steps.given_tensors(row, tensors, data)))
        carried = {f'{name}{kind}_next' for name in parameters for kind in KINDS}
        self.assertEqual(returned, carried | set(results))

    def test_decoder(self):
        self.check(steps_rows.GPT2, DECODER_TABLES, ['loss', 'gradient_check'])

    def test_encoder(self):
        self.check(steps_rows.BERT_BASE, ENCODER_TABLES,
                   ['layer2_norm2', 'pooled', 'gradient_check'])


class ModelsTest(CommandTest):
    """Rows of group `models`, and what their plans take."""
    def test_rows_are_a_third_of_a_step(self):
        for row in models_rows.rows():
            step = steps_rows.Row(row.layer, row.layers, row.batch, row.length)
            self.assertAlmostEqual(3 * row.flop(), step.flop())
            self.assertLess(row.workload().bytes_moved, step.workload().bytes_moved)
        self.assertEqual([row.name() for row in models_rows.rows()], [
            'bert-base 12 layers forward B=8 L=512 f16', 'gpt2 12 layers forward B=8 L=512 f16',
            'bert-large 24 layers forward B=8 L=512 f16'
        ])

    def check(self, layer, tables, arguments, results):
        row = models_rows.Row(layer, 2, 1, 16)
        folder = self.folder / 'model'
        self.weft('compile', *map(str, row.compile_arguments()), '--stop-after', 'emit', '-o',
                  folder)
        plan = json.loads((folder / 'plan.json').read_text())
        named = lambda role: [
            tensor['logical'] for tensor in plan['tensors'] if tensor['role'] == role
        ]
        self.assertEqual(set(named('argument')), set(arguments))
        self.assertEqual(named('result'), results)
        parameters = {f'layer{index}_{name}' for index in (1, 2) for name in WEIGHTS} | set(tables)
        self.assertEqual(set(named('parameter')), parameters)

    def test_decoder(self):
        self.check(steps_rows.GPT2, DECODER_TABLES, ['tokens'], ['logits'])

    def test_encoder(self):
        self.check(steps_rows.BERT_BASE, ENCODER_TABLES, ['tokens', 'types'],
                   ['layer2_norm2', 'pooled'])


class AdmittedTest(unittest.TestCase):
    """Results of artifacts, whatever the group: right ones have an error and a workspace."""
    def admit(self, check):
        ours = group().ours
        result = types.SimpleNamespace(errors={}, failures={}, extra={})
        artifact = types.SimpleNamespace(device_bytes=lambda: 5e6, parameter_bytes=lambda: 3e6)
        return ours.admitted(result, 'weft', artifact, check), result

    def test_a_right_one(self):
        admitted, result = self.admit(lambda: 1e-3)
        self.assertTrue(admitted)
        self.assertEqual((result.errors, result.failures, result.extra),
                         ({'weft': 1e-3}, {}, {'weft workspace': '2.0 MB'}))
        self.assertEqual(self.admit(lambda: None)[1].errors, {})  # it keeps its errors itself

    def test_a_wrong_one(self):
        def check():
            raise group().ours.reference.WrongResult('off')

        admitted, result = self.admit(check)
        self.assertFalse(admitted)
        self.assertEqual((result.errors, result.failures, result.extra), ({}, {'weft': 'off'}, {}))


class StepTest(unittest.TestCase):
    def setUp(self):
        self.steps = group()

    def test_scalars_make_adamw(self):
        """The textbook's step against keep * p - step_size * mean / (sqrt(square) + epsilon)."""
        modules = self.steps.steps_modules
        (beta1, beta2), rate = modules.BETAS, modules.RATE
        mean = square = 0.0
        ours = theirs = 0.7
        for step in range(1, 6):
            gradient = math.sin(3.0 * step)
            mean = beta1 * mean + (1 - beta1) * gradient
            square = beta2 * square + (1 - beta2) * gradient**2
            given = self.steps.scalars(step)
            ours = given['keep'] * ours - given['step_size'] * mean / (math.sqrt(square) +
                                                                       given['epsilon'])
            theirs *= 1 - rate * modules.WEIGHT_DECAY
            theirs -= rate * (mean / (1 - beta1**step)) / (
                math.sqrt(square / (1 - beta2**step)) + modules.EPSILON)
            self.assertAlmostEqual(ours, theirs, delta=1e-12)

    def test_steps_alternate_between_two_places(self):
        tensor = lambda name: {'name': name, 'order': [0], 'extents': [1], 'dtype': 'f32'}
        launched = []
        artifact = types.SimpleNamespace(
            inputs=[tensor('tokens'), tensor('w'), tensor('w_mean')],
            outputs=[tensor('tokens_next'), tensor('w_mean_next'), tensor('stepped')],
            plan={'tensors': [{'logical': 'tokens'}, {'logical': 'tokens_next'},
                              {'logical': 'w_mean_next', 'nextOf': 'w_mean'},
                              {'logical': 'stepped', 'nextOf': 'w'}]},
            poisoned_outputs=lambda: ['L', 'M1', 'W1'],
            launch=lambda read, written: launched.append((read, written)))
        named = lambda tensor, given: given[tensor['name']]
        given = {'tokens': 'T', 'w': 'W0', 'w_mean': 'M0'}
        with mock.patch.object(self.steps.OurStep, 'argument', staticmethod(named)):
            step = self.steps.OurStep(None, artifact, given, None)
        for turn in (0, 1, 0):
            step.launch(turn)
        there, back = (['T', 'W0', 'M0'], ['L', 'M1', 'W1']), (['T', 'W1', 'M1'],
                                                                ['L', 'M0', 'W0'])
        self.assertEqual(launched, [there, back, there])
        artifact.outputs[2]['order'] = [1, 0]
        with mock.patch.object(self.steps.OurStep, 'argument', staticmethod(named)):
            with self.assertRaisesRegex(self.steps.WrongLosses, 'w is read in another layout'):
                self.steps.OurStep(None, artifact, given, None)

    def test_a_step_that_updates_nothing_is_wrong(self):
        expected = [10.0, 9.6, 9.0, 8.0]
        self.assertEqual(self.steps.loss_error([10.0] * 4, expected), 1)
        self.assertAlmostEqual(self.steps.checked([10.0, 9.6, 9.02, 8.0], expected), 0.01)
        for wrong in ([10.0] * 4, [10.0, 9.6, 9.0, 8.2], [10.0, 9.6, 9.0, math.nan],
                      [math.nan, 9.6, 9.0, 8.0]):
            with self.assertRaisesRegex(self.steps.WrongLosses, 'expected 10, 9.6, 9, 8'):
                self.steps.checked(wrong, expected)


def line(row, failures=(), **ms):
    """The JSON line of a row in which contenders took so long."""
    result = report.Result(row.workload())
    names = {'weft': report.OURS, 'eager': 'eager + SDPA autocast',
             'compiled': 'torch.compile autocast', 'masters': 'torch.compile masters'}
    for name, value in ms.items():
        result.samples[names[name]] = [value / 1e3] * 3
    result.errors = {report.OURS: 2e-3}
    result.failures.update(failures)
    ratios = {
        name: samples[0] / result.samples[report.OURS][0]
        for name, samples in result.samples.items() if name != report.OURS
    } if 'weft' in ms else {}
    result.record['steps'] = steps_table.record(row, ratios)
    return json.loads(report.json_line(result, CEILINGS, 'steps'))


class TableTest(unittest.TestCase):
    def cells(self, *lines):
        return [re.split(r'  +', text) for text in steps_table.text(list(lines)).splitlines()[1:]]

    def test_the_faster_form_of_torch_compile_counts(self):
        row = steps_rows.rows()[0]
        cells, = self.cells(line(row, weft=10, eager=20, compiled=12, masters=11))
        self.assertEqual(cells[:6], [row.name(), '10.000', '20.000', '-', '12.000', '11.000'])
        self.assertEqual(cells[6:10], ['2.000x', '1.100x', '1.00x', 'reached'])
        self.assertEqual(cells[-1], '2.0e-03')

    def test_a_miss_is_said_and_a_missing_figure_too(self):
        row, free = steps_rows.rows()[0], steps_rows.rows()[-1]
        slow, none, other = self.cells(line(row, weft=10, masters=9), line(row, masters=9),
                                       line(free, weft=10, masters=9))
        self.assertEqual(slow[7:10], ['0.900x', '1.00x', 'MISSED'])
        self.assertEqual(none[7:10], ['-', '1.00x', 'no figure'])
        self.assertNotIn('MISSED', other)


@unittest.skipUnless(HAS_TORCH, 'needs PyTorch')
class RivalsTest(unittest.TestCase):
    """Both forms of mixed precision train as f32 does, on the CPU."""
    def test_losses(self):
        import torch
        steps = group()
        modules = steps.steps_modules
        for layer in (steps_rows.GPT2, steps_rows.BERT_BASE):
            small = layers.Layer(layer.preset, 32, 2, 64, layer.activation, epsilon=1e-5)
            for dtype in ('bf16', 'f16'):
                row = steps_rows.Row(small, 2, 2, 8, dtype)

                def make():
                    torch.manual_seed(0)
                    return modules.module_of(row)

                data = modules.Data(row, 'cpu')
                expected = modules.Step(make(), data, 'cpu', torch.float32).losses(4)
                for form in steps_table.FORMS:
                    step = modules.step_of(form, make(), data, 'cpu', modules.DTYPES[dtype])
                    self.assertLess(steps.checked(step.losses(4), expected), steps.LIMIT)
                    self.assertEqual(step.losses(4), step.losses(4))


if __name__ == '__main__':
    unittest.main()
