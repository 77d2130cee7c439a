"""bench/run without a GPU: statistics, tables, JSON lines, workload files, and how it rejects."""
import dataclasses
import importlib.util
import json
import math
import pathlib
import re
import subprocess
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import (__main__ as bench, artifact_graph, attention_plans, layers, operator_table,
                       recomposition, report, results, sequential, statistics)
import safetensors_file
import without_torch
from weft_command import CommandTest, WEFT  # noqa: E402


class StatisticsTest(unittest.TestCase):
    def test_median_and_middle_80_percent(self):
        summary = statistics.summarize([5.0, 1.0, 3.0, 2.0, 4.0])
        self.assertEqual((summary.median, summary.n), (3.0, 5))
        self.assertAlmostEqual(summary.p10, 1.4)
        self.assertAlmostEqual(summary.p90, 4.6)
        self.assertAlmostEqual(summary.spread, 3.2 / 3)

    def test_broken_samples_never_become_figures(self):
        for samples in ([], [1.0, float('nan')], [float('inf')], [1.0, 0.0], [-1.0]):
            with self.assertRaises(statistics.BadSample):
                statistics.summarize(samples)
        with self.assertRaises(statistics.BadSample):
            statistics.ratio([1.0], [1.0, 2.0])

    def test_ratios_pair_rounds(self):
        pair = statistics.ratio([2.0, 4.0, 8.0], [1.0, 2.0, 4.0])
        self.assertEqual((pair.median, pair.spread), (2.0, 0.0))

    def test_floor_is_the_larger_term(self):
        self.assertEqual(statistics.floor_seconds(100, 10, 50, 1), 10)
        self.assertEqual(statistics.floor_seconds(100, 0, 50, 1), 2)
        self.assertIsNone(statistics.floor_seconds(0, 0, 50, 1))


def example():
    result = report.Result(report.Workload('layer', bytes_moved=4e6, flop=1e9, note='forward'))
    result.samples = {
        'weft': [1e-3, 1.1e-3, 1.2e-3], 'eager': [2e-3, 2.2e-3, 2.4e-3], 'jax': [3e-3] * 3,
        'copy by hand': [1e-4] * 3
    }
    result.failures = {'torch.compile': 'RuntimeError: no'}
    result.errors = {'weft': 4e-4}
    return result


def operators_of(rows):
    """As explain --movement gives them, every row in the paper's kernel, contractions alone."""
    return [{
        'results': row['result'].split(), 'flop': 1e9 * float(row['gflop']), 'elementsRead': 4e6,
        'elementsWritten': 4e6,
        'kernels': [f'{row["kernel"]}{"12"[index > 25]}' if row['kernel'] else f'product{index}']
    } for index, row in enumerate(rows)]


class OperatorTableTest(unittest.TestCase):
    rows = operator_table.paper_rows()
    peaks = operator_table.Peaks(tensor_flops=1e15, fma_flops=1e14, bandwidth=4e12)

    def test_the_table_agrees_with_itself(self):
        """Accumulators of the paper's columns are those that it prints under the table."""
        self.assertEqual(len(self.rows), 46)
        for name, gflop, torch_us in (('contraction', 335.007, 4951),
                                      ('normalization', 0.575, 2063), ('elementwise', 0.105, 1096)):
            rows = [row for row in self.rows if row['class'] == name]
            self.assertAlmostEqual(sum(float(row['gflop']) for row in rows), gflop, delta=0.0065)
            self.assertAlmostEqual(sum(float(row['torch_us']) for row in rows), torch_us, delta=10)
        self.assertAlmostEqual(sum(float(row['ours_us'] or 0) for row in self.rows), 6739, delta=20)

    def test_names_of_stacked_tensors(self):
        self.assertTrue(operator_table.is_stack_of('d_wv_d_wq_d_wk', ['d_wq', 'd_wk', 'd_wv']))
        self.assertFalse(operator_table.is_stack_of('d_wv_d_wq', ['d_wq', 'd_wk', 'd_wv']))
        self.assertFalse(operator_table.is_stack_of('d_wv_d_wq_d_wk_x', ['d_wq', 'd_wk', 'd_wv']))

    def times(self, ours=1e-6):
        operators = operators_of(self.rows)
        return operators, operator_table.Times(
            torch={index: [2e-6] * 3
                   for index in range(46)},
            ours={name: [ours] * 3
                  for one in operators
                  for name in one['kernels']})

    def test_a_fused_kernel_is_compared_with_all_that_it_fuses(self):
        operators, times = self.times()
        groups = operator_table.groups(self.rows, operators)
        self.assertEqual(sorted(index for group in groups for index in group.rows), list(range(46)))
        fused = next(group for group in groups if group.rows[0] == 6)
        self.assertEqual((fused.rows, fused.kernels), ([6, 7, 8, 9], ['DRLN1']))
        self.assertEqual(operator_table.torch_samples(fused, times), [8e-6] * 3)
        text = operator_table.print_table(self.rows, operators, times,
                                          dict.fromkeys(times.ours, 2e6), self.peaks)
        line = next(line for line in text.splitlines() if line.startswith('Output bias '))
        self.assertEqual(line.split()[8:14], ['1.0', '41.0', '50', 'memory', '8.00x', '1.68'])

    def test_a_bias_that_a_gemm_adds_faster_costs_nothing(self):
        group = operator_table.Group(rows=[10, 11, 12], kernels=['k'])
        times = operator_table.Times(torch={10: [5.0], 11: [2.0], 12: [1.0]}, ours={'k': [4.0]})
        self.assertEqual(operator_table.torch_samples(group, times), [8.0])
        times.with_bias[10] = [6.0]
        self.assertEqual(operator_table.torch_samples(group, times), [7.0])
        times.with_bias[10] = [7.5]
        self.assertEqual(operator_table.torch_samples(group, times), [8.0])

    def test_missing_figures_are_no_figures(self):
        operators, times = self.times()
        del times.ours['DRLN1']
        text = operator_table.print_table(self.rows, operators, times, dict.fromkeys(times.ours, 1),
                                          self.peaks)
        line = next(line for line in text.splitlines() if line.startswith('Output bias '))
        self.assertEqual(line.split()[-7:], ['-', '-', '-', '-', '-', '1.68', 'DRLN1'])
        theirs, mine, count = operator_table.totals(self.rows, operators, times)
        self.assertEqual(count, 42)
        self.assertIsNone(operator_table.totals(self.rows, operators, operator_table.Times()))
        self.assertEqual(
            operator_table.torch_samples(operator_table.Group([0], []), operator_table.Times()),
            None)


class ReportTest(unittest.TestCase):
    ceilings = (4e12, 7e14)

    def test_workload_table(self):
        text = report.workload_table(example(), self.ceilings)
        row = {line.split('  ')[0]: line for line in text.splitlines()}
        self.assertIn('2.000x (+-0.0%)', row['eager'])
        self.assertIn('4.0e-04', row['weft'])
        self.assertIn('torch.compile: no figure: RuntimeError: no', text)
        self.assertIn('weft reaches 9.1% of the rate of the best copy', text)
        self.assertIn('floor 0.0014 ms', text)

    def test_copies_are_no_rivals_and_the_best_rival_is_named(self):
        line = report.summary_table([example()], self.ceilings).splitlines()[1]
        self.assertEqual(re.split(r' {2,}', line),
                         ['layer', '1.100', '2.200', '2.000x', '0.0014', 'eager'])

    def test_without_ours_there_is_no_ratio(self):
        result = example()
        del result.samples['weft']
        self.assertNotIn('2.000x', report.workload_table(result, self.ceilings))
        self.assertEqual(
            re.split(r' {2,}',
                     report.summary_table([result], self.ceilings).splitlines()[1])[1], '-')

    def test_json_line(self):
        value = json.loads(report.json_line(example(), self.ceilings))
        self.assertAlmostEqual(value['contenders']['weft']['ms'], 1.1)
        self.assertEqual(value['contenders']['eager']['n'], 3)
        self.assertEqual(value['failures'], {'torch.compile': 'RuntimeError: no'})


class ResultsTest(unittest.TestCase):
    head = json.dumps({
        'machine': 'a GPU\nceilings', 'command': 'bench/run encoder memory', 'date': '2026-01-02'
    })

    def line(self, name, weft, rival, group='encoder'):
        result = report.Result(report.Workload(name, bytes_moved=4e6, flop=1e9))
        result.samples = {'weft': [weft] * 3, 'eager no_grad': [rival] * 3}
        return report.json_line(result, ReportTest.ceilings, group)

    def test_page(self):
        memory = report.Result(report.Workload('memory: layer'),
                               extra={'weft': '10 MB', 'eager': '12 MB'})
        text = results.document([
            '\n'.join([
                self.head,
                report.json_line(example(), ReportTest.ceilings, 'encoder'),
                self.line('paper-encoder B=8 L=512', 1e-4, 1.2e-4),
                self.line('bert-large B=1 L=128', 1e-4, 1.2e-4),
                self.line('odd', 2e-4, 1.2e-4),
                report.json_line(memory, ReportTest.ceilings, 'memory')
            ])
        ])
        self.assertIn(
            '## Layers, forward\n`bench/run encoder memory`, 2026-01-02, a GPU; ceilings.', text)
        self.assertIn('| layer | 1.100 | 2.200 | 2.000 |  | 0.0014 | eager |', text)
        self.assertIn('| odd | 0.2000 | 0.1200 | **0.600** |  | 0.0014 | eager no_grad |', text)
        self.assertIn('- torch.compile: RuntimeError: no (1 of 4 rows)', text)
        self.assertIn('|  | weft | eager |\n', text)
        asked = text[text.index('## What is asked for'):text.index('## Layers')].splitlines()
        self.assertEqual(asked[3:5], [
            '| paper-encoder B=8 L=512 | 1.200 | 1.35 | **missed** |',
            '| bert-large B=1 L=128 | 1.200 | 1.00 |  |'
        ])

    def test_runs_of_one_day_and_machine_share_a_table(self):
        second = self.head.replace('memory', '--only two')
        pages = [
            results.document([
                '\n'.join([self.head, self.line('one', 1e-4, 2e-4)]),
                '\n'.join([head, self.line('two', 1e-4, 2e-4)])
            ]) for head in (second, second.replace('2026', '2027'))
        ]
        self.assertIn('`bench/run encoder memory`, `bench/run encoder --only two`, 2026-01-02',
                      pages[0])
        self.assertEqual([page.count('| one |') + page.count('| two |') for page in pages], [2, 2])
        self.assertEqual([page.count('| which |') for page in pages], [1, 2])
        self.assertRegex(pages[1], r'### Layers, forward, \S+\n`bench/run encoder --only two`,')

    def pipelined(self, length, took='two', **milliseconds):
        """A JSON line of group seed004: slices of a batch at once, where auto took one of them."""
        result = report.Result(report.Workload(attention_plans.pipelined_name(length)))
        names = dict(turn=attention_plans.IN_TURN, one=attention_plans.ONE_CALL,
                     two='weft --pipeline 2', four='weft --pipeline 4',
                     auto='weft --pipeline auto')
        result.samples = {names[name]: [1e-3 * one] * 3 for name, one in milliseconds.items()}
        kernels = dict(one=3, two=6, four=12)
        result.extra = {
            f'{names[name]} plan': f'{kernels[took if name == "auto" else name]} kernels'
            for name in milliseconds if name != 'turn'
        }
        if 'two' not in milliseconds:
            result.failures['weft --pipeline 2'] = 'WrongResult: far off'
        return report.json_line(result, ReportTest.ceilings, 'seed004')

    def test_pipelined_batches_are_held_to_what_is_asked_for(self):
        softmax = report.Result(report.Workload('softmax fp32 256x256'))
        softmax.samples = {'weft tree': [1e-3] * 3}
        lines = [self.pipelined(1024, 'one', turn=4, one=2, two=2.2, four=2.5, auto=2.01),
                 self.pipelined(2048, turn=4, one=3, two=2.5, four=2, auto=2.5),
                 report.json_line(softmax, ReportTest.ceilings, 'seed004')]
        text = results.document(['\n'.join([self.head, *lines])])
        asked = text[text.index('## What is asked for'):text.index('## Attention')].splitlines()
        self.assertEqual(asked[3:5], [
            '| fp32 attention B=4, fastest number of slices / the one that --pipeline auto took, '
            'worst of 2 of 6 lengths | 0.800 | 1.00 | **missed** |',
            '| fp32 attention N=2048 B=4, slices at once against one call and calls in turn '
            '| 1.500 | 1.15 |  |'])
        self.assertIn('| ms | weft in turn | weft one call | weft --pipeline 2 | weft --pipeline 4 '
                      '| weft --pipeline auto | without slices / with | must | auto took '
                      '| fastest plan / the one auto took |', text)
        # Its plan and the fastest one are one and the same: what they took apart is no miss.
        self.assertIn('| attention fp32 N=1024 B=4 | 4.000 | 2.000 | 2.200 | 2.500 | 2.010 '
                      '| 0.909x |  | weft one call | 1.000x |', text)
        # A slower plan is a miss, be it timed under auto as fast as the fastest.
        self.assertIn('| 2.000 | 2.200 | 2.500 | 2.000 | 0.909x |  | weft --pipeline 2 | 0.909x |',
                      results.document(['\n'.join([self.head, self.pipelined(
                          1024, turn=4, one=2, two=2.2, four=2.5, auto=2)])]))
        self.assertIn('| softmax fp32 256x256 | 1.000 |', text)
        # Without one of the plans nothing is known of the fastest.
        text = results.document(['\n'.join([self.head, self.pipelined(
            2048, 'four', turn=4, one=3, four=2, auto=2)])])
        self.assertEqual(text.count('| - | 1.15 | **missed** |'), 1)
        self.assertEqual(text.count('| - | 1.00 | **missed** |'), 1)
        self.assertIn('- weft --pipeline 2: WrongResult: far off (1 of 1 rows)', text)

    def test_forms_of_one_rival_share_a_column(self):
        self.assertEqual(results.column_of('eager + SDPA no_grad'), 'eager + SDPA')
        self.assertEqual(results.column_of('copy by Triton, 1024 a block'), 'best copy')

    def test_the_page_is_of_the_lines_that_are_kept(self):
        kept = sorted((ROOT / 'bench' / 'results').glob('*.jsonl'))
        self.assertTrue(kept)
        self.assertEqual((ROOT / 'bench' / 'RESULTS.md').read_text(encoding='utf-8'),
                         results.document([path.read_text(encoding='utf-8') for path in kept]))


def small(layer, **changes):
    """The layer with few elements; no two of its extents are equal."""
    return dataclasses.replace(layer, hidden=24, heads=3,
                               **({'feed_forward': 40} if layer.feed_forward else {}), **changes)


def small_arguments(layer):
    """Of weft, for the small layer on two sequences of 20."""
    extents = dict(b=2, j=20, h=3, i=24, **({'u': 40} if layer.feed_forward else {}))
    return [
        layer.preset,
        *(flag for name, extent in extents.items() for flag in ('--dim', f'{name}={extent}'))
    ]


class LayersTest(CommandTest):
    """Sizes that the floors and the rivals go by are those of weft's own graphs."""
    def test_flop_and_weights(self):
        for layer in {layer for layer, _, _ in layers.FORWARD + layers.TRAINING}:
            for batch, length in layers.SHAPES:
                arguments = layer.compile_arguments(batch, length)
                # Fused attention counts its softmax too, which no GEMM computes.
                operators = self.weft('explain', *arguments, '--attention', 'unfused',
                                      '--movement', '--json').json()['operators']
                self.assertEqual(
                    layer.flop(batch, length),
                    sum(one['flop'] for one in operators if one['class'] == 'contraction'))
                text = self.weft('import', *arguments).out
                types = re.findall(r'^(!\w+) = tensor<(\w+),', text, re.MULTILINE)
                extents = {
                    name: [int(extent) for extent in shape.split('x')[:-1]]
                    for name, shape in types
                }
                parameters = re.findall(r'%\w+: (!\w+) \{[^}]*\bweft\.parameter\b[^}]*}', text)
                self.assertEqual(layer.weight_elements(),
                                 sum(math.prod(extents[name]) for name in parameters))

    def test_training_is_three_times_the_gemms(self):
        for layer, batch, length in layers.TRAINING:
            # A fused attention computes scores a second time.
            operators = self.weft('explain', *layer.compile_arguments(batch, length), '--train',
                                  '--attention', 'unfused', '--movement',
                                  '--json').json()['operators']
            self.assertEqual(
                layer.training_workload(batch, length).flop,
                sum(one['flop'] for one in operators if one['class'] == 'contraction'))

    def test_attention_stands_beside_the_encoder(self):
        for workloads, name in ((layers.FORWARD, layers.Layer.name), (layers.TRAINING,
                                                                      layers.Layer.training_name)):
            names = [name(*workload) for workload in workloads]
            self.assertEqual(len(names), len(set(names)))
            for batch, length in ((8, 512), (96, 128)):
                for layer in (layers.PAPER, layers.PAPER_ATTENTION):
                    self.assertIn((layer, batch, length), workloads)


class ArtifactGraphTest(CommandTest):
    """Every result of a training artifact is known for what it is, whatever stacking has named
    it."""
    def gradients(self, *arguments):
        self.weft('compile', *arguments, '-o', 'plan', env={'WEFT_NVRTC': 'none'})
        by_result = artifact_graph.gradients_by_result(
            (self.folder / 'plan/graph.mlir').read_text())
        plan = json.loads((self.folder / 'plan/plan.json').read_text())
        return {
            tensor['logical']: artifact_graph.gradient_of(by_result, tensor['logical'])
            for tensor in plan['tensors'] if tensor['role'] == 'result'
        }

    def test_every_stacking(self):
        for stacking in ('separate', 'two', 'three'):
            found = self.gradients(*small_arguments(layers.PAPER_ATTENTION), '--train',
                                   '--stacking', stacking)
            self.assertEqual(sorted(found.values()),
                             sorted(['', 'x', 'wq', 'bq', 'wk', 'bk', 'wv', 'bv', 'wo', 'bo']))
            self.assertEqual(found['attention'], '')
            self.assertEqual(found['d_wo'], 'wo')

    def test_forward_has_none(self):
        self.assertEqual(self.gradients(*small_arguments(layers.PAPER_ATTENTION)),
                         {'attention': ''})

    def test_names_and_errors(self):
        head = '  weft.graph @g(%x: !a, %d_y: !a {weft.gradient_of = "y"}) -> '
        text = head + '(!a, !a {weft.gradient_of = "x"}) attributes {weft.saved = ["q"]} {\n'
        text += '    weft.return %y, %sum_7 : !a, !a\n  }\n'
        by_result = artifact_graph.gradients_by_result(text)
        self.assertEqual(by_result, {'y': '', 'sum_7': 'x'})
        self.assertEqual(artifact_graph.gradient_of(by_result, 'sum'), 'x')
        with self.assertRaisesRegex(artifact_graph.UnknownResult,
                                    "no result 'd_x' .results: y, sum_7."):
            artifact_graph.gradient_of(by_result, 'd_x')
        with self.assertRaisesRegex(artifact_graph.UnknownResult,
                                    'returns 1 values and declares 2'):
            artifact_graph.gradients_by_result(text.replace('%y, %sum_7', '%y'))
        with self.assertRaises(artifact_graph.UnknownResult):
            artifact_graph.gradients_by_result('module {\n}\n')


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class ReferenceTest(CommandTest):
    """reference.py is weft's interpreter, masks included, and the rivals compute the same
    layers."""
    def write_tensors(self, name, tensors):
        return safetensors_file.write(
            self.folder / name, {
                key: ('F32', value.shape, value.detach().float().flatten().tolist())
                for key, value in tensors.items()
            })

    def test_gradients_are_the_interpreters(self):
        import torch
        from weftbench import reference, rivals, training
        for layer in (layers.PAPER, layers.PAPER_ATTENTION):
            layer = small(layer)
            graph = self.write(
                'graph.mlir',
                self.weft('import', *small_arguments(layer), '--train', '--dtype', 'f32').out)
            torch.manual_seed(0)
            tensors = rivals.module_of(layer).tensors()
            x, dy = torch.randn(2, 20, 24), torch.randn(2, 20, 24)
            expected = training.expected_results(layer, tensors, x, dy,
                                                 reference.Dropout(layer.dropout, seed=5, step=3))
            names = artifact_graph.gradients_by_result(graph.read_text())
            upstream = re.search(r'%(\w+): !\w+ \{weft\.gradient_of', graph.read_text())[1]
            done = subprocess.run([
                pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs',
                self.write_tensors('inputs', {**tensors, 'x': x, upstream: dy}), '--expect',
                self.write_tensors('expected', {name: expected[of]
                                                for name, of in names.items()}), '--dropout-seed',
                '5', '--dropout-step', '3', '--absolute', '1e-6', '--relative', '2e-6'
            ], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(len(re.findall(': equal:', done.stdout)), len(expected), done.stdout)

    def test_rivals_compute_the_same(self):
        import torch
        from weftbench import reference, rivals
        for layer in (layers.PAPER, layers.PAPER_ATTENTION, layers.BERT_BASE):
            layer = small(layer, dropout=0.0)
            torch.manual_seed(0)
            module, x = rivals.module_of(layer), torch.randn(2, 20, 24)
            expected = reference.result_of(layer, {**module.tensors(), 'x': x},
                                           reference.Dropout(0))
            for sdpa in (False, True):
                self.assertLess(
                    reference.relative_error(rivals.twin(module, sdpa)(x).detach(), expected), 1e-6)
            if importlib.util.find_spec('jax'):
                call, wait = rivals.jax_layer(layer, module.tensors(), x)
                self.assertLess(
                    reference.relative_error(torch.tensor(wait(call()).tolist()), expected), 5e-3)


class WorkloadFilesTest(CommandTest):
    """Every graph of bench/workloads compiles; extents are small here."""
    def test_each_compiles(self):
        files = sorted((ROOT / 'bench/workloads').glob('*.mlir.in'))
        self.assertGreaterEqual(len(files), 3)
        for file in files:
            text = re.sub(r'@(heads|rows|columns|batch|m|n|k)@', '16', file.read_text())
            self.write('graph.mlir', text)
            self.weft('compile', 'graph.mlir', '-o', file.stem, env={'WEFT_NVRTC': 'none'})


def combine_of(kernel):
    """Plans leave out a knob that has its usual value."""
    return kernel['knobs'].get('combine', 'shuffle')


class AttentionPlansTest(CommandTest):
    """Group seed004: every plan that it edits is one that weft emits. Cubins are not built here."""
    def emitted(self, edit, *arguments):
        quiet = {'WEFT_NVRTC': 'none'}
        self.weft('compile', *arguments, '-o', 'plan', env=quiet)
        path = self.folder / 'plan/plan.json'
        plan = json.loads(path.read_text())
        edit(plan)
        path.write_text(json.dumps(plan))
        self.weft('emit', 'plan', env=quiet)
        return json.loads(path.read_text())['kernels']

    def test_combines(self):
        """Also a batch of one head: along the axis of one head every stride is the same place."""
        for length in (attention_plans.LENGTHS[0], attention_plans.LENGTHS[-1]):
            for batch in (1, 4):
                for combine in attention_plans.COMBINES:
                    kernels = self.emitted(attention_plans.with_combine(combine),
                                           *attention_plans.arguments(length, batch))
                    self.assertEqual(len(kernels), 3)
                    softmax = next(kernel for kernel in kernels
                                   if kernel['knobs'].get('reduction') == 'block')
                    self.assertEqual(combine_of(softmax), combine)
                    self.assertEqual(softmax['block'][0], min(attention_plans.MOST_THREADS, length))

    def test_pipelines(self):
        """A batch of four as the benchmark runs it: kernels of every number of slices."""
        batch = attention_plans.PIPELINED_BATCH
        for slices in attention_plans.PIPELINES:
            kernels = self.emitted(lambda plan: None, *attention_plans.arguments(256, batch),
                                   '--pipeline', slices)
            if slices != 'auto':
                self.assertEqual(len(kernels), 3 * int(slices))

    def test_softmax_alone(self):
        text = (ROOT / 'bench/workloads/softmax_f32.mlir.in').read_text()
        self.write('graph.mlir', re.sub(r'@(rows|columns)@', '256', text))
        for combine in attention_plans.COMBINES:
            kernels = self.emitted(attention_plans.with_combine(combine), 'graph.mlir')
            self.assertEqual([combine_of(kernel) for kernel in kernels], [combine])

    def test_tiles(self):
        for tile in attention_plans.TILES:
            kernels = self.emitted(attention_plans.with_tile(tile),
                                   *attention_plans.arguments(256, 1), '--no-library')
            products = [kernel for kernel in kernels if 'tileM' in kernel['knobs']]
            self.assertEqual([kernel['knobs']['tileM'] for kernel in products], [tile[0]] * 2)

    def test_selected_softmax(self):
        for combine in ('linear', 'tree'):
            kernels = self.emitted(lambda plan: None, *attention_plans.arguments(1024, 1),
                                   '--softmax', combine)
            self.assertIn(combine, [kernel['knobs'].get('combine') for kernel in kernels])


class PipelinedTest(unittest.TestCase):
    """What group seed004 measures of slices at once, over a stand-in for PyTorch and artifacts."""
    def setUp(self):
        self.module = without_torch.imported('seed004')
        self.compiled, self.launched, self.wrong = [], [], ''
        for where, name, stand_in in (
                (self.module.ours, 'compile_artifact', self.compile),
                (self.module.reference, 'check', self.check),
                (self.module, 'expected', lambda *_: None),
                (self.module.timing, 'GraphContender', lambda name, call: (name, call)),
                (self.module.timing, 'measure', self.measure)):
            patched = mock.patch.object(where, name, stand_in)
            patched.start()
            self.addCleanup(patched.stop)

    def compile(self, _, name, arguments, edit=None):
        self.compiled.append((name, arguments))
        artifact = mock.MagicMock()
        artifact.poisoned_outputs.return_value = [name]
        artifact.launch.side_effect = lambda *_: self.launched.append(name)
        return artifact

    def check(self, out, *_):
        if self.wrong and self.wrong in out:
            raise self.module.reference.WrongResult('far off')
        return 1e-7

    def measure(self, result, contenders, rounds):
        for name, call in contenders:
            self.launched.clear()
            call(0)
            self.calls[name] = list(self.launched)
            result.samples[name] = [1e-3] * rounds

    def results(self, length):
        self.calls = {}
        settings = bench.Settings(folder=None, rounds=3, only=[f'N={length} B'])
        return list(self.module.pipelined(settings))

    def test_every_plan_is_compiled_checked_and_launched(self):
        names = [attention_plans.pipelined_name(length) for length in attention_plans.LENGTHS]
        self.assertEqual([result.workload.name for length in attention_plans.LENGTHS
                          for result in self.results(length)], names)
        self.compiled.clear()
        result, = self.results(8192)
        plans = ['weft one call', 'weft --pipeline 2', 'weft --pipeline 4', 'weft --pipeline auto']
        self.assertEqual(list(result.samples), ['weft in turn', *plans])
        self.assertEqual(list(result.errors), list(result.samples))
        self.assertEqual(self.calls['weft in turn'], ['seed004 8192 in turn'] * 4)
        self.assertEqual({arguments[2] for _, arguments in self.compiled[:4]}, {'b=1'})
        self.assertEqual([(arguments[2], arguments[-2:]) for _, arguments in self.compiled[4:]],
                         [('b=4', ['--pipeline', slices]) for slices in ('1', '2', '4', 'auto')])
        self.assertEqual(len({name for name, _ in self.compiled[4:]}), 4)
        self.assertEqual([name for name in result.extra if name.endswith(' plan')],
                         [f'{name} plan' for name in plans])

    def test_a_wrong_result_has_no_figure(self):
        for self.wrong, name in (('in turn', 'weft in turn'), ('pipeline 2', 'weft --pipeline 2')):
            result, = self.results(256)
            self.assertEqual(result.failures, {name: 'WrongResult: far off'})
            self.assertEqual(len(result.samples), 4)
            self.assertNotIn(name, result.samples)


class SequentialTest(unittest.TestCase):
    PROGRAM = sequential.program_beside(WEFT)

    def test_baseline(self):
        result = report.Result(report.Workload('attention'), samples={'weft chosen': [1e-5] * 3})
        baseline = sequential.Baseline(self.PROGRAM, 8)
        baseline.add(result, 32)
        seconds = baseline.known[32]
        self.assertLess(seconds['error'], 1e-6)
        steps = [seconds[step] for step in ('score', 'softmax', 'weighted')]
        self.assertTrue(all(0 < step <= seconds['seconds'] for step in steps), seconds)
        self.assertEqual(result.extra['weft chosen over one CPU thread'],
                         f"{seconds['seconds'] / 1e-5:.1f}x")

    def test_failures_are_rows(self):
        result = report.Result(report.Workload('attention'))
        sequential.Baseline(self.PROGRAM, 8).add(result, 0)
        self.assertIn('Value 0 not in range', result.failures['one CPU thread'])
        sequential.Baseline('no-such-program', 8).add(result, 32)
        self.assertIn('no-such-program', result.failures['one CPU thread'])
        self.assertEqual(result.extra, {})


class RecompositionTest(CommandTest):
    """Predictions for an A100 beside "Recomposing Softmax Layers"."""
    def test_the_rank_of_bert(self):
        plans = {
            form: recomposition.plan_of(WEFT, 'bert-large', 'a100', form, recomposition.LENGTH)
            for form in recomposition.FORMS
        }
        seconds = {form: plan['predictedSeconds'] for form, plan in plans.items()}
        # As the source has them: recomposed, whole, decomposed.
        self.assertEqual(sorted(seconds, key=seconds.get), ['SDF', 'whole', 'SD'])
        self.assertEqual([recomposition.sweeps(plans[form]) for form in ('whole', 'SD', 'SDF')],
                         [4, 6, 2])
        # Of two statistics a tile of 64 keys, each in 4 bytes and written and read once, and of
        # the factor: 24 bytes where the softmax moves 64 x 4.
        scores = 4 * 16 * recomposition.LENGTH**2
        self.assertEqual(recomposition.traffic_of_softmax(plans['whole']), scores)
        self.assertEqual(recomposition.statistics_bytes(plans['SDF']), scores * 24 // 256)

    def test_what_is_not_emitted_is_selected(self):
        self.assertIsNone(recomposition.plan_of(WEFT, 'bert-large', 't4', 'whole', 256))
        self.assertGreater(recomposition.seconds_of(WEFT, 'bert-large', 't4', 'whole', 256), 0)


class RunTest(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([sys.executable, ROOT / 'bench/run', *arguments], capture_output=True,
                              text=True, check=False)

    def test_usage(self):
        done = self.run_bench('encoders')
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown group 'encoders' (known: encoder, training, norm,", done.stderr)
        self.assertEqual(self.run_bench('norm', '--rounds', '0').returncode, 2)

    @unittest.skipIf(importlib.util.find_spec('torch'), 'PyTorch is here')
    def test_without_torch(self):
        done = self.run_bench('encoder')
        self.assertEqual(done.returncode, 3)
        self.assertIn('needs PyTorch', done.stderr)


if __name__ == '__main__':
    unittest.main()
