"""bench/run without a GPU: statistics, tables, JSON lines, workload files, and how it refuses."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

from weftbench import attention_plans, operator_table, report, results, statistics  # noqa: E402
from weft_command import CommandTest  # noqa: E402


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
    result.samples = {'weft': [1e-3, 1.1e-3, 1.2e-3], 'eager': [2e-3, 2.2e-3, 2.4e-3], 'jax': [3e-3] * 3, 'copy by hand': [1e-4] * 3}
    result.failures = {'torch.compile': 'RuntimeError: no'}
    result.errors = {'weft': 4e-4}
    return result


def operators_of(rows):
    """As explain --movement gives them, every row in the paper's kernel, contractions alone."""
    return [{'results': row['result'].split(), 'flop': 1e9 * float(row['gflop']), 'elementsRead': 4e6, 'elementsWritten': 4e6,
             'kernels': [f'{row["kernel"]}{"12"[index > 25]}' if row['kernel'] else f'product{index}']} for index, row in enumerate(rows)]


class OperatorTableTest(unittest.TestCase):
    rows = operator_table.paper_rows()
    peaks = operator_table.Peaks(tensor_flops=1e15, fma_flops=1e14, bandwidth=4e12)

    def test_the_table_agrees_with_itself(self):
        """Sums of the paper's columns are those that it prints under the table."""
        self.assertEqual(len(self.rows), 46)
        for name, gflop, torch_us in (('contraction', 335.007, 4951), ('normalization', 0.575, 2063), ('elementwise', 0.105, 1096)):
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
        return operators, operator_table.Times(torch={index: [2e-6] * 3 for index in range(46)},
                                               ours={name: [ours] * 3 for one in operators for name in one['kernels']})

    def test_a_fused_kernel_is_compared_with_all_that_it_fuses(self):
        operators, times = self.times()
        groups = operator_table.groups(self.rows, operators)
        self.assertEqual(sorted(index for group in groups for index in group.rows), list(range(46)))
        fused = next(group for group in groups if group.rows[0] == 6)
        self.assertEqual((fused.rows, fused.kernels), ([6, 7, 8, 9], ['DRLN1']))
        self.assertEqual(operator_table.torch_samples(fused, times), [8e-6] * 3)
        text = operator_table.print_table(self.rows, operators, times, dict.fromkeys(times.ours, 2e6), self.peaks)
        line = next(line for line in text.splitlines() if line.startswith('Output bias '))
        self.assertEqual(line.split()[8:14], ['1.0', '41.0', '50', 'memory', '8.00x', '1.68'])

    def test_a_bias_that_a_product_adds_faster_costs_nothing(self):
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
        text = operator_table.print_table(self.rows, operators, times, dict.fromkeys(times.ours, 1), self.peaks)
        line = next(line for line in text.splitlines() if line.startswith('Output bias '))
        self.assertEqual(line.split()[-7:], ['-', '-', '-', '-', '-', '1.68', 'DRLN1'])
        theirs, mine, count = operator_table.totals(self.rows, operators, times)
        self.assertEqual(count, 42)
        self.assertIsNone(operator_table.totals(self.rows, operators, operator_table.Times()))
        self.assertEqual(operator_table.torch_samples(operator_table.Group([0], []), operator_table.Times()), None)


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
        self.assertEqual(re.split(r' {2,}', line), ['layer', '1.100', '2.200', '2.000x', '0.0014', 'eager'])

    def test_without_ours_there_is_no_ratio(self):
        result = example()
        del result.samples['weft']
        self.assertNotIn('2.000x', report.workload_table(result, self.ceilings))
        self.assertEqual(re.split(r' {2,}', report.summary_table([result], self.ceilings).splitlines()[1])[1], '-')

    def test_json_line(self):
        value = json.loads(report.json_line(example(), self.ceilings))
        self.assertAlmostEqual(value['contenders']['weft']['ms'], 1.1)
        self.assertEqual(value['contenders']['eager']['n'], 3)
        self.assertEqual(value['failures'], {'torch.compile': 'RuntimeError: no'})


class ResultsTest(unittest.TestCase):
    def test_tables(self):
        memory = report.Result(report.Workload('memory: layer'), extra={'weft': '10 MB', 'eager': '12 MB'})
        lines = [json.dumps({'machine': 'a GPU'}), report.json_line(example(), ReportTest.ceilings, 'encoder'),
                 report.json_line(memory, ReportTest.ceilings, 'memory')]
        text = results.document('\n'.join(lines))
        self.assertTrue(text.startswith('a GPU\n\n## encoder\n'))
        self.assertIn('| ms | weft | eager | jax | best copy | best rival / weft | weft / floor |', text)
        self.assertIn('| layer | 1.100 | 2.200 | 3.000 | 0.1000 | 2.00 | 770.00 |', text)
        self.assertIn('- layer: torch.compile: RuntimeError: no', text)
        self.assertIn('## memory\n|  | weft | eager |\n', text)

    def test_forms_of_one_rival_share_a_column(self):
        self.assertEqual(results.column_of('eager + SDPA no_grad'), 'eager + SDPA')
        self.assertEqual(results.column_of('copy by Triton, 1024 a block'), 'best copy')


class WorkloadFilesTest(CommandTest):
    """Every graph of bench/workloads compiles; extents are small here."""

    def test_each_compiles(self):
        files = sorted((ROOT / 'bench/workloads').glob('*.mlir.in'))
        self.assertGreaterEqual(len(files), 3)
        for file in files:
            text = re.sub(r'@(heads|rows|columns|batch|m|n|k)@', '16', file.read_text())
            self.write('graph.mlir', text)
            self.weft('compile', 'graph.mlir', '-o', file.stem, env={'WEFT_NVRTC': 'none'})


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
                    kernels = self.emitted(attention_plans.with_combine(combine), *attention_plans.arguments(length, batch))
                    self.assertEqual(len(kernels), 3)
                    softmax = next(kernel for kernel in kernels if 'combine' in kernel['knobs'])
                    self.assertEqual(softmax['knobs']['combine'], combine)
                    self.assertEqual(softmax['block'][0], min(attention_plans.MOST_THREADS, length))

    def test_softmax_alone(self):
        text = (ROOT / 'bench/workloads/softmax_f32.mlir.in').read_text()
        self.write('graph.mlir', re.sub(r'@(rows|columns)@', '256', text))
        for combine in attention_plans.COMBINES:
            kernels = self.emitted(attention_plans.with_combine(combine), 'graph.mlir')
            self.assertEqual([kernel['knobs']['combine'] for kernel in kernels], [combine])

    def test_tiles(self):
        for tile in attention_plans.TILES:
            kernels = self.emitted(attention_plans.with_tile(tile), *attention_plans.arguments(256, 1), '--no-library')
            products = [kernel for kernel in kernels if 'tileM' in kernel['knobs']]
            self.assertEqual([kernel['knobs']['tileM'] for kernel in products], [tile[0]] * 2)

    def test_selected_softmax(self):
        for combine in ('linear', 'tree'):
            kernels = self.emitted(lambda plan: None, *attention_plans.arguments(1024, 1), '--softmax', combine)
            self.assertIn(combine, [kernel['knobs'].get('combine') for kernel in kernels])


class RunTest(unittest.TestCase):
    def run_bench(self, *arguments):
        return subprocess.run([sys.executable, ROOT / 'bench/run', *arguments], capture_output=True, text=True, check=False)

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
