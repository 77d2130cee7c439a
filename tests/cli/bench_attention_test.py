"""Group `attention` of bench/run without a GPU: its rows, their graphs, the fp64 results that they
are held to, and the table."""
import dataclasses
import importlib.util
import json
import math
import pathlib
import struct
import subprocess
import sys
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import attention_rows, attention_table, report
import safetensors_file
from weft_command import CommandTest, WEFT  # noqa: E402

CEILINGS = (4e12, 7e14)


def small(row):
    """The row with few elements, and the same masks and groups."""
    groups = 2 if row.groups else 0
    return dataclasses.replace(row, batch=2, heads=6, groups=groups, head_dim=16, keys=24,
                               queries=row.queries and 3, window=row.window and 5)


SMALL = list(dict.fromkeys(map(small, attention_rows.ROWS)))
ADVERSARIAL = attention_rows.ADVERSARIAL_ROWS
RANDOM = [row for row in ADVERSARIAL if row.scores == attention_rows.RANDOM]


class RowsTest(CommandTest):
    def test_names_differ_and_parts_are_known(self):
        names = [row.name() for row in attention_rows.ROWS]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([row.name() for row in attention_rows.ROWS[13:16]],
                         ['d=128 32/8 heads causal L=8192 B=2',
                          'd=128 32/8 heads 1 query L=32768 B=1',
                          'd=64 32 heads L=512 B=32 forward+backward'])

    def test_section_3(self):
        """16k tokens and 2048 columns each; flop as published rates count them."""
        for part, count in ((attention_rows.FORWARD, 4), (attention_rows.TRAINING, 14)):
            rows = [row for row in attention_rows.ROWS if row.part == part]
            self.assertEqual(len(rows), 10)
            self.section_3(rows, count)

    def section_3(self, rows, count):
        for row in rows:
            self.assertEqual((row.batch * row.keys, row.heads * row.head_dim), (16384, 2048))
            dense = count * row.batch * row.heads * row.keys**2 * row.head_dim
            self.assertAlmostEqual(row.flop() / dense, 0.5 if row.causal else 1, delta=2e-4)

    def test_pairs_are_those_that_see_each_other(self):
        for row in SMALL:
            seen = [(j, k) for j in range(row.length) for k in range(row.keys) if row.sees(j, k)]
            self.assertEqual(row.pairs(), len(seen), row)
        window = next(row for row in SMALL if row.window)
        self.assertEqual([k for k in range(24) if window.sees(10, k)], [6, 7, 8, 9, 10])

    def test_sampled_queries_hold_the_ends(self):
        for row in attention_rows.ROWS:
            sampled = row.sampled_queries()
            self.assertEqual(sampled, sorted(set(sampled)))
            self.assertEqual((sampled[0], sampled[-1]), (0, row.length - 1))
            self.assertGreaterEqual(len(sampled), min(row.length, 64))

    def test_full_rows_import_with_the_rivals_memory(self):
        for row in attention_rows.ROWS:
            self.write('row.mlir', row.graph())
            dims = self.weft('import', 'row.mlir', '--json').json()['dims']
            self.assertEqual(
                (dims['b'], dims['j'], dims['k'], dims['p'], dims['w']),
                (row.batch, row.length, row.keys, row.head_dim, row.head_dim))
            self.assertEqual(
                dims['g'] * dims['r'] if row.groups else dims['h'], row.heads)

    def test_training_rows_compile(self):
        """A layout of v that both entry points would read is compared with the plan's."""
        for row in attention_rows.ROWS:
            if row.trains and row.keys == 4096:
                self.write('row.mlir', row.graph())
                self.weft('compile', 'row.mlir', '--train', '--profile', 'none', '--stop-after',
                          'emit', '-o', 'out', '--overwrite')

    def test_adversarial_rows_are_others_and_compile(self):
        names = [row.name() for row in [*attention_rows.ROWS, *ADVERSARIAL]]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual([row.trains for row in ADVERSARIAL[:24]], 12 * [False] + 12 * [True])
        for row in ADVERSARIAL:
            self.assertIn('adversarial', row.name())
        forward, trained = ({(row.head_dim, row.causal, row.scores) for row in rows}
                            for rows in (ADVERSARIAL[:12], ADVERSARIAL[12:24]))
        self.assertEqual(forward, trained)
        self.assertEqual(len(trained), 12)
        self.write('row.mlir', ADVERSARIAL[23].graph())
        self.weft('import', 'row.mlir')

    def test_adversarial_rows_with_random_scores(self):
        """Odd lengths, a head dim that is no multiple of 16, one query, and a bias that trains."""
        self.assertEqual([row.name() for row in RANDOM], [
            'd=64 32 heads causal L=333 B=2 adversarial random scores',
            'd=72 16 heads L=777 B=2 adversarial random scores',
            'd=64 32 heads causal L=333 B=2 forward+backward adversarial random scores',
            'd=72 16 heads L=777 B=2 forward+backward adversarial random scores',
            'd=64 32 heads 1 query L=333 B=2 adversarial random scores',
            'd=64 16 heads bias L=1024 B=2 forward+backward adversarial random scores'])
        for row in RANDOM:
            self.assertFalse(row.cancels)
            self.write('row.mlir', row.graph())
            self.weft('compile', 'row.mlir', *['--train'] * row.trains, '--stop-after', 'emit',
                      '-o', 'out', '--overwrite')
            of_plan = json.loads((self.folder / 'out/plan.json').read_text())['kernels']
            self.assertTrue(any('attention' in one['family'] for one in of_plan), row)
        from weftbench import artifact_graph
        gradients = artifact_graph.gradients_by_result((self.folder / 'out/graph.mlir').read_text())
        found = {artifact_graph.gradient_of(gradients, name) for name in gradients} - {''}
        self.assertEqual(found, set(RANDOM[-1].gradients))
        self.assertEqual(RANDOM[-1].gradients, ('q', 'k', 'v', 'bias'))
        # Forward: operands and results; backward: these again, and a gradient of each.
        elements = 4 * 2 * 1024 * 1024 + 16 * 1024 * 1024
        self.assertEqual(RANDOM[-1].bytes_moved(), 2 * (3 * elements))

    def test_the_rival_of_a_bias_is_named(self):
        row, errors = RANDOM[-1], {'q': 2e-4, 'k': 2e-4, 'v': 2e-4, 'bias': 3e-4}
        line = line_of(row, weft=1.0, eager=4.0)
        line['contenders']['weft']['error'] = line['contenders']['eager']['error'] = 3e-4
        line['gradients'] = {'weft': {**errors, 'bias': 6e-4}, 'eager': errors}
        self.assertEqual(attention_table.error_text(line), '2.000x (eager)')
        self.assertIn(f'above in {row.name()}, gradient of bias, against eager 2.000x',
                      attention_table.errors([line])[0])
        self.assertIn('attention, error of cuDNN, or of eager / of weft, worst of 1 rows',
                      [what for what, *_ in attention_table.asked([line])])
        for name in ('SDPA efficient', 'cuDNN'):
            line['contenders'][name] = line['contenders']['eager']
            line['gradients'][name] = {**errors, 'bias': 6e-4}
            self.assertEqual(attention_table.error_rival(line), name)
        self.assertEqual(attention_table.error_text(line), '1.000x')

    def test_adversarial_scores(self):
        """The scores of some queries and keys, scaled, of elements as fp16 holds them."""
        def half(value):
            return struct.unpack('e', struct.pack('e', value))[0]

        for row in ADVERSARIAL[:24]:
            def score(query, key, row=row):
                products = (half(row.element(False, query, column)) *
                            half(row.element(True, key, column)) for column in range(row.head_dim))
                return sum(products) / math.sqrt(row.head_dim)

            of_queries = [[score(query, key) for key in range(12)] for query in range(1, 5)]
            if row.scores == attention_rows.EQUAL:
                self.assertEqual(len({value for line in of_queries for value in line}), 1)
                self.assertAlmostEqual(of_queries[0][0], math.sqrt(row.head_dim) / 4)
            elif row.scores == attention_rows.ONE_HUGE:
                for line in of_queries:
                    self.assertEqual(max(line), line[attention_rows.HUGE_KEY])
                    self.assertGreater(line[attention_rows.HUGE_KEY] - sorted(line)[-2], 15)
            else:
                values = [value for line in of_queries for value in line]
                for value in values:
                    self.assertAlmostEqual(abs(value), 6e4, delta=100)
                    self.assertLess(abs(value), 65504)  # the largest that fp16 has
                self.assertEqual({value > 0 for value in values}, {False, True})

    def test_small_rows_compile(self):
        for row in SMALL:
            self.write('row.mlir', row.graph())
            self.weft('compile', 'row.mlir', '--attention', 'unfused', '-o', 'out', '--overwrite',
                      env={'WEFT_NVRTC': 'none'})
            plan = json.loads((self.folder / 'out/plan.json').read_text())
            given = {
                tensor['logical']: [tensor['axes'][place] for place in tensor['order']]
                for tensor in plan['tensors'] if tensor['role'] in ('argument', 'result')
            }
            each, shared = (['g', 'r'], ['g']) if row.groups else (['h'], ['h'])
            self.assertEqual(
                given, {
                    'q': ['b', 'j', *each, 'p'], 'k': ['b', 'k', *shared, 'p'],
                    'v': ['b', 'k', *shared, 'w'], 'y': ['b', 'j', *each, 'w']
                })


def line_of(row, errors=(), **milliseconds):
    """The JSON line of a row with these figures; 'copy' stands for a copy of as many bytes."""
    result = report.Result(row.workload())
    result.errors.update(errors)
    for name, value in milliseconds.items():
        result.samples[name.replace('_', '-')] = [1e-3 * value] * 3
    result.record['attention'] = attention_table.record(row, result)
    return json.loads(report.json_line(result, CEILINGS, 'attention'))


class TableTest(unittest.TestCase):
    rows = attention_rows.ROWS

    def forward(self, **milliseconds):
        return [
            line_of(row, **milliseconds) for row in self.rows
            if row.part == attention_rows.FORWARD
        ]

    def test_a_row(self):
        line = line_of(self.rows[1], weft=1.0, cuDNN=1.25, flash_2=2.0, FA4=1.1)
        cells = attention_table.text([line]).splitlines()[1].split()
        self.assertEqual(cells[-9:], ['1.000', '550', '440', '275', '500', '1.250x', '1.100x',
                                      '-', '0.7854'])

    def test_errors_beside_those_of_cudnn(self):
        def said(*errors):
            lines = [
                line_of(row, {'weft': ours, 'cuDNN': cudnn}, weft=1.0, cuDNN=1.2)
                for row, (ours, cudnn) in zip(self.rows, errors)
            ]
            lines.append(line_of(self.rows[9], weft=1.0))
            text = attention_table.text(lines).splitlines()
            return text[1].split()[-2], text[-1]

        one, two = self.rows[0].name(), self.rows[1].name()
        said_of = 'error of weft / of cuDNN, 2 of 3 rows (must: 1.20x):'
        self.assertEqual(said((3e-4, 4e-4), (4.4e-4, 4e-4)), (
            '0.750x', f'{said_of} at most 1.100x, {two}'))
        self.assertEqual(said((5e-4, 4e-4), (0.0, 0.0)), (
            '1.250x', f'{said_of} above in {one} 1.250x'))
        self.assertIn('above in ' + one + ' infx', said((1e-4, 0.0))[1])

    def test_of_adversarial_rows_errors_count_alone(self):
        lines = [line_of(row, {'weft': ours, 'cuDNN': 4e-4}, weft=1.0, cuDNN=0.5)
                 for row, ours in zip(ADVERSARIAL, (4e-4, 5e-4))]
        text = attention_table.text(lines).splitlines()
        self.assertEqual([line.split()[-2] for line in text[1:3]], ['1.000x', '1.250x'])
        self.assertEqual(text[3:], [
            'error of weft / of cuDNN, 2 of 2 rows (must: 1.20x): above in '
            f'{ADVERSARIAL[1].name()} 1.250x'])
        self.assertEqual(attention_table.asked(lines), [
            ('attention, error of cuDNN / of weft, worst of 2 rows', 0.8, 1 / 1.2)])

    def test_of_adversarial_gradients_each_error_counts(self):
        row = ADVERSARIAL[23]
        result = report.Result(row.workload())
        result.samples = {'weft': [1.2] * 3, 'weft atomics': [1.0] * 3, 'cuDNN': [0.5] * 3}
        errors = {'weft': (3e-4, 3e-4, 3e-4), 'weft atomics': (1e-7, 3e-4, 2e-3),
                  'cuDNN': (2e-7, 2e-4, 2e-3)}
        result.errors = {name: max(of_three) for name, of_three in errors.items()}
        result.record['gradients'] = {name: dict(zip('qkv', of_three))
                                      for name, of_three in errors.items()}
        result.record['attention'] = attention_table.record(row, result)
        line = json.loads(report.json_line(result, CEILINGS, 'attention'))
        self.assertEqual(line['gradients']['cuDNN'], {'q': 2e-7, 'k': 2e-4, 'v': 2e-3})
        text = attention_table.text([line]).splitlines()
        self.assertEqual(text[1].split()[-2], '1.500x')
        self.assertEqual(text[2:], [
            'error of weft / of cuDNN, 1 of 1 rows (must: 1.20x): above in '
            f'{row.name()}, gradient of k 1.500x'])
        (what, reached, must), = attention_table.asked([line])
        self.assertAlmostEqual(reached, 1 / 1.5)
        self.assertEqual((what, must), (
            'attention, error of cuDNN / of weft, worst of 1 rows', 1 / 1.2))
        del line['contenders']['cuDNN']
        self.assertEqual(attention_table.errors([line]), [])

    def test_means_by_head_dim(self):
        lines = self.forward(weft=1.0, cuDNN=1.2, flash_2=2.0, FA4=0.9)
        lines[0] = line_of(self.rows[0], weft=1.0, cuDNN=1.2 * 2**5, FA4=0.9)
        said = attention_table.means(lines)
        self.assertEqual(said, [
            'd=64, 5 rows: geometric mean of cuDNN / weft 2.400x (must: 1.05x), of the best '
            'rival / weft 0.900x',
            'd=128, 5 rows: geometric mean of cuDNN / weft 1.200x (must: 1.00x), of the best '
            'rival / weft 0.900x'])

    def test_training_has_separate_means(self):
        lines = [line_of(row, weft=2.0, cuDNN=2.2) for row in self.rows if row.trains]
        said = attention_table.text(lines).splitlines()
        self.assertEqual(said[-2:], [
            f'd={dim} forward+backward, 5 rows: geometric mean of cuDNN / weft 1.100x (must: '
            f'{must}x), of the best rival / weft 1.100x'
            for dim, must in ((64, '1.08'), (128, '1.03'))])

    def test_the_price_of_the_same_bits(self):
        rows = [row for row in self.rows if row.trains][:2]
        result = report.Result(rows[0].workload())
        result.samples = {'weft': [1.2] * 3, 'weft atomics': [1.0] * 3, 'cuDNN': [1.5] * 3}
        record = attention_table.record(rows[0], result)
        self.assertEqual((record['ours'], record['ratios']), ('weft atomics', {'cuDNN': 1.5}))
        lines = [{**line_of(row, weft=1.0, cuDNN=1.1), 'attention': {**record, 'order': order}}
                 for row, order in zip(rows, (record['order'], 1.0))]
        self.assertIn(f'2 rows: geometric mean 1.095x, at most 1.200x, {rows[0].name()} (must: '
                      '1.10x)', attention_table.order(lines)[0])
        asked = {what: (value, must) for what, value, must in attention_table.asked(lines)}
        value, must = asked['attention, sums in any order / same bits in every launch, worst of 2 '
                            'rows']
        self.assertLess(value, must)

    def test_a_missing_figure_leaves_no_mean(self):
        for name, rest in (('weft', {'cuDNN': 1.0}), ('cuDNN', {'weft': 1.0})):
            lines = self.forward(weft=1.0, cuDNN=1.0)
            lines[2] = line_of(self.rows[2], **rest)
            said = attention_table.means(lines)
            self.assertIn('d=64: no geometric mean', said[0], name)
            self.assertIn(self.rows[2].name(), said[0])
            self.assertIn('d=128, 5 rows', said[1])

    def test_rows_that_count_alone(self):
        window, grouped, decode = self.rows[10], self.rows[13], self.rows[14]
        lines = [
            line_of(window, weft=1.0, cuDNN=1.5, flash_2=1.4, FA4=0.8),
            line_of(grouped, weft=1.0),
            line_of(decode, weft=0.05, cuDNN=0.1, copy=0.04)
        ]
        said = attention_table.verdicts(lines)
        self.assertIn('cuDNN and flash-2 / weft 1.400x (must: 1.00x), FA4 / weft 0.800x', said[0])
        self.assertIn('/ weft - (must: 1.00x), FA4 / weft -', said[1])
        self.assertIn("keys and values at 80.0% of the best copy's rate", said[2])
        self.assertIn('2684 GB/s', attention_table.text(lines))
        self.assertEqual(attention_table.text([]), '')


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class TorchTest(CommandTest):
    """Results are held to what weft's graph and the rivals compute; wrong ones get no figure."""
    def setUp(self):
        super().setUp()
        import torch
        from weftbench import attention
        torch.manual_seed(0)
        self.torch, self.attention = torch, attention

    def tensors(self, row):
        return [self.torch.randn(shape) for shape in row.shapes()]

    def safetensors(self, name, tensors):
        return safetensors_file.write(
            self.folder / name, {
                key: ('F32', value.shape, value.float().flatten().tolist())
                for key, value in tensors.items()
            })

    def test_expected_rows_are_the_graphs(self):
        for row in SMALL:
            q, k, v = self.tensors(row)
            every = list(range(row.length))
            y = self.attention.expected_rows(row, q, k, v, every)
            grouped = lambda t: t.unflatten(2, (row.groups, -1)) if row.groups else t
            graph = self.write('row.mlir', row.graph().replace('xf16', 'xf32'))
            done = subprocess.run([
                pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs',
                self.safetensors('inputs', {'q': grouped(q), 'k': k, 'v': v}), '--expect',
                self.safetensors('expected', {'y': grouped(y)}), '--absolute', '1e-6',
                '--relative', '2e-6'
            ], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn(': equal:', done.stdout)
            some = self.attention.expected_rows(row, q, k, v, every[-2:])
            self.assertTrue(self.torch.allclose(some, y[:, -2:], rtol=1e-12, atol=1e-14))

    def test_adversarial_tensors_hold_the_scores_of_the_row(self):
        for row in ADVERSARIAL[:3]:
            row = dataclasses.replace(small(row), scores=row.scores)
            q, k, v = self.attention.tensors_of(row, 'cpu')
            half = lambda value: float(self.torch.tensor(value, dtype=self.torch.float16))
            for is_key, tensor in ((False, q), (True, k)):
                self.assertEqual(tensor[1, 9, 2, 5].item(), half(row.element(is_key, 9, 5)))
            self.assertGreater(v.unique().numel(), 100)
            check = self.attention.Checker(row, (q, k, v))
            right = self.attention.expected_rows(row, q, k, v, list(range(row.length)))
            self.assertEqual(check(right), 0)

    def test_visible_keys_are_those_of_the_row(self):
        for row in SMALL:
            queries = row.sampled_queries()
            self.assertEqual(
                self.attention.visible(row, queries, 'cpu').tolist(),
                [[row.sees(j, k) for k in range(row.keys)] for j in queries])

    def test_sdpa_computes_the_same(self):
        from torch.nn.attention import SDPBackend
        for row in (row for row in SMALL if not row.window):
            q, k, v = self.tensors(row)
            check = self.attention.Checker(row, (q, k, v))
            out = self.attention.by_sdpa(row, SDPBackend.MATH)(q, k, v)
            self.assertLess(check(out), 1e-6)

    def test_gradients_are_those_of_sdpa(self):
        from torch.nn.attention import SDPBackend
        from weftbench import attention_training, reference
        rows = [row for row in SMALL if row.trains]
        self.assertEqual({row.causal for row in rows}, {False, True})
        rows.append(dataclasses.replace(rows[0], groups=2))
        rows.append(small(RANDOM[-1]))
        for row in rows:
            tensors = [tensor.float() for tensor in self.attention.tensors_of(row, 'cpu')]
            self.assertEqual(len(tensors), len(row.gradients))
            d_out = self.torch.randn_like(tensors[0])
            seen = self.attention.visible(row, range(row.length), 'cpu')
            check = attention_training.Checker(row, seen, tensors, d_out)
            leaves = [tensor.requires_grad_() for tensor in tensors]
            out = self.attention.by_sdpa(row, SDPBackend.MATH)(*leaves)
            found = dict(zip(row.gradients, self.torch.autograd.grad(out, leaves, d_out)))
            self.assertEqual(set(found), set(check.expected))
            self.assertLess(check(found), 1e-5)
            for name in found:
                with self.assertRaisesRegex(reference.WrongResult, f'gradient of {name}'):
                    check({**found, name: found[name] * 1.1})
                with self.assertRaisesRegex(reference.WrongResult, f'gradient of {name}'):
                    check({**found, name: found[name] * float('nan')})

    def test_errors_of_adversarial_gradients_are_relative_to_their_terms(self):
        """With equal scores the terms of a query's gradient sum to zero."""
        from torch.nn.attention import SDPBackend
        from weftbench import attention_training, reference
        for row in ADVERSARIAL[12:18]:
            row = dataclasses.replace(small(row), scores=row.scores)
            halves = self.attention.tensors_of(row, 'cpu')
            d_out = self.torch.randn_like(halves[0])
            seen = self.attention.visible(row, range(row.length), 'cpu')
            check = attention_training.Checker(row, seen, halves, d_out)

            def gradients(type_, row=row, halves=halves, d_out=d_out):
                leaves = [tensor.to(type_).requires_grad_() for tensor in halves]
                out = self.attention.by_sdpa(row, SDPBackend.MATH)(*leaves)
                return dict(zip('qkv', self.torch.autograd.grad(out, leaves, d_out.to(type_))))

            exact, rounded = gradients(self.torch.float64), gradients(self.torch.float16)
            self.assertLess(check(exact), 1e-10)
            errors = check.errors(rounded)
            self.assertTrue(all(0 <= error < 5e-3 for error in errors.values()), errors)
            self.assert_norms_are_of_terms(row, seen, halves, d_out, check.norms)
            for name in ('q', 'k', 'v'):
                for wrong in (exact[name] + 0.1 * check.norms[name], exact[name] * float('nan')):
                    with self.assertRaisesRegex(reference.WrongResult, f'gradient of {name}'):
                        check({**exact, name: wrong})

    def assert_norms_are_of_terms(self, row, seen, halves, d_out, norms):
        """Every product by itself."""
        torch = self.torch
        q, k, v, d_out = (tensor.double() for tensor in (*halves, d_out))
        score = torch.einsum('bnhp,bkhp->bhnk', q, k) / math.sqrt(row.head_dim)
        p = torch.softmax(score.masked_fill(~seen, float('-inf')), -1)
        out = torch.einsum('bhnk,bkhw->bnhw', p, v)
        of_rows = (out * d_out).sum(-1).transpose(1, 2)[..., None]
        s = p * (torch.einsum('bnhw,bkhw->bhnk', d_out, v).abs() + of_rows.abs())
        s /= math.sqrt(row.head_dim)
        for name, terms in (('q', torch.einsum('bhnk,bkhp->bhnkp', s, k)),
                            ('k', torch.einsum('bhnk,bnhp->bhnkp', s, q)),
                            ('v', torch.einsum('bhnk,bnhw->bhnkw', p, d_out))):
            self.assertAlmostEqual(norms[name] / float(terms.norm()), 1, places=9)

    def test_errors_of_each_gradient_are_kept(self):
        from weftbench import attention_training
        result = report.Result(ADVERSARIAL[23].workload())
        attention_training.keep_errors(result, 'cuDNN', {'q': 1e-4, 'k': 3e-4, 'v': 2e-4})
        self.assertEqual(result.errors, {'cuDNN': 3e-4})
        self.assertEqual(result.record['gradients']['cuDNN']['v'], 2e-4)
        self.assertIn('cuDNN errors: gradient of q 1.0e-04, gradient of k 3.0e-04',
                      report.workload_table(result, CEILINGS))

    def test_rivals_of_adversarial_training_rows_are_held_to_the_terms(self):
        from weftbench import attention_training
        row = dataclasses.replace(small(ADVERSARIAL[12]), scores=ADVERSARIAL[12].scores)
        halves = self.attention.tensors_of(row, 'cpu')
        d_out = self.torch.randn_like(halves[0])
        seen = self.attention.visible(row, range(row.length), 'cpu')
        check = attention_training.Checker(row, seen, halves, d_out)
        result = report.Result(row.workload())

        def by_sdpa(row, _):
            from torch.nn.attention import SDPBackend
            return self.attention.by_sdpa(row, SDPBackend.MATH)

        with mock.patch.object(attention_training.timing, 'GraphContender',
                               lambda name, call: name):
            found = attention_training.rival_contenders(
                types.SimpleNamespace(rivals=True), result, row, halves, d_out, check, by_sdpa,
                lambda row: lambda q, k, v: v * 2)
        self.assertEqual(found, ['cuDNN', 'flash-2'])
        self.assertEqual(set(result.record['gradients']), {'cuDNN', 'flash-2'})
        self.assertIn('FA4', result.failures)

    def test_wrong_results(self):
        from weftbench import reference
        row = dataclasses.replace(SMALL[0], keys=400)
        q, k, v = self.tensors(row)
        check = self.attention.Checker(row, (q, k, v))
        right = self.attention.expected_rows(row, q, k, v, list(range(row.length)))
        self.assertLess(check(right), 1e-15)
        hidden = next(j for j in range(row.length) if j not in check.queries)
        poisoned, shifted = right.clone(), right.roll(1, 1)
        poisoned[1, hidden, 3, 0] = float('nan')
        for wrong in (poisoned, shifted):
            with self.assertRaises(reference.WrongResult):
                check(wrong)

    def test_rivals_that_fail_or_are_wrong_say_so(self):
        row = SMALL[0]
        sets = [self.tensors(row)]
        check = self.attention.Checker(row, sets[0])
        wrong = types.ModuleType('flash_attn.cute')
        wrong.flash_attn_func = lambda q, k, v, causal: (v * 2, None)
        result = report.Result(row.workload())
        with mock.patch.dict(sys.modules, {'flash_attn.cute': wrong}), \
                mock.patch.object(self.attention, 'by_sdpa', self.fake_sdpa), \
                mock.patch.object(self.attention.timing, 'GraphContender',
                                  lambda name, call, sets: name):
            found = self.attention.rival_contenders(types.SimpleNamespace(rivals=True), result, row,
                                                    sets, check)
        self.assertEqual(found, ['flash-2'])
        self.assertIn('no cuDNN here', result.failures['cuDNN'])
        self.assertIn('WrongResult: relative error', result.failures['FA4'])

    def test_a_missing_package_is_said(self):
        for row in (SMALL[0], next(row for row in SMALL if row.window)):
            result = report.Result(row.workload())
            sets = [self.tensors(row)]
            check = self.attention.Checker(row, sets[0])
            with mock.patch.dict(sys.modules, {'flash_attn.cute': None, 'cudnn': None}):
                self.attention.rival_contenders(types.SimpleNamespace(rivals=True), result, row,
                                                sets, check)
            self.assertIn('flash_attn.cute', result.failures['FA4'])
            self.assertTrue(result.failures['cuDNN'])

    def fake_sdpa(self, row, backend):
        from torch.nn.attention import SDPBackend
        if backend == SDPBackend.CUDNN_ATTENTION:
            raise RuntimeError('no cuDNN here')
        return lambda q, k, v: self.attention.expected_rows(row, q, k, v, list(range(row.length)))

    def test_ours_is_checked_and_a_wrong_result_has_no_figure(self):
        torch, row = self.torch, SMALL[0]
        sets = [self.tensors(row)]
        check = self.attention.Checker(row, sets[0])
        right = self.attention.expected_rows(row, *sets[0], list(range(row.length)))

        class Artifact:
            """Takes its inputs in another order than the graph lists them."""
            def __init__(self, factor):
                self.factor = factor

            def input_names(self):
                return ['k', 'v', 'q']

            def poisoned_outputs(self):
                return [torch.full_like(right, float('nan'))]

            def launch(self, inputs, outputs):
                assert [t.data_ptr() for t in inputs] == [sets[0][i].data_ptr() for i in (1, 2, 0)]
                outputs[0].copy_(right * self.factor)

            def device_bytes(self):
                return 3_000_000

            def parameter_bytes(self):
                return 1_000_000

        settings = types.SimpleNamespace(folder=self.folder, ours=True)
        for factor, figures in ((1.0, ['weft']), (1.01, [])):
            result = report.Result(row.workload())
            with mock.patch.object(self.attention.ours, 'artifacts',
                                   lambda *_, factor=factor: {'weft': Artifact(factor)}), \
                    mock.patch.object(torch.cuda, 'synchronize', lambda: None), \
                    mock.patch.object(self.attention.timing, 'GraphContender',
                                      lambda name, call, sets: name):
                found = self.attention.our_contenders(settings, result, row, sets, check)
            self.assertEqual(found, figures)
            self.assertEqual('weft' in result.failures, not figures)
        self.assertTrue((self.folder / 'd-16-6-heads-L-24-B-2.mlir').exists())


class UsageTest(unittest.TestCase):
    def test_the_group_is_known(self):
        done = subprocess.run([sys.executable, ROOT / 'bench/run', 'atention'],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('attention', done.stderr)

    def test_adversarial_rows_are_of_this_group(self):
        done = subprocess.run([sys.executable, ROOT / 'bench/run', 'encoder', '--adversarial'],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--adversarial belongs to group attention', done.stderr)


if __name__ == '__main__':
    unittest.main()
