"""Group `transfer` of bench/run without a GPU: the draws, the layers that weft builds of them, the
table, what adds up, usage; with PyTorch on the CPU also rivals and the fp64 reference."""
import collections
import dataclasses
import importlib.util
import json
import math
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
from weftbench import artifact_graph, report, results, transfer_draws, transfer_table
import safetensors_file
from weft_command import CommandTest, WEFT  # noqa: E402

MANY = 4000


def near(share, count, probability):
    """Whether a share of so many draws is within four standard deviations."""
    return abs(share - probability) < 4 * math.sqrt(probability * (1 - probability) / count)


class DrawsTest(unittest.TestCase):
    """The distribution is the stated one."""
    drawn = transfer_draws.draws(20, 0, MANY)

    def assertShare(self, probability, is_one, among=None):
        among = self.drawn if among is None else among
        share = sum(map(is_one, among)) / len(among)
        self.assertTrue(near(share, len(among), probability), f'{share} is not {probability}')

    def assertLogUniform(self, values, smallest, largest):
        """Each quarter of the logarithms has a quarter of the values."""
        self.assertGreaterEqual(min(values), smallest)
        self.assertLessEqual(max(values), largest)
        quarter = math.log(largest / smallest) / 4
        for number in range(4):
            share = sum(
                int(min(3, math.log(value / smallest) // quarter)) == number
                for value in values) / len(values)
            self.assertAlmostEqual(share, 0.25, delta=0.03)

    def test_shares(self):
        for family in transfer_draws.FAMILIES:
            self.assertShare(1 / 3, lambda one, f=family: one.family == f)
        self.assertShare(1 / 2, lambda one: one.head_dim == 64)
        for head_dim in (80, 96, 128):
            self.assertShare(1 / 6, lambda one, d=head_dim: one.head_dim == d)
        self.assertShare(1 / 2, lambda one: one.dtype == 'f16')
        self.assertEqual({one.dtype for one in self.drawn}, {'f16', 'bf16'})
        self.assertShare(1 / 4, lambda one: one.training)
        for heads in range(8, 33):
            self.assertShare(1 / 25, lambda one, h=heads: one.heads == h)

    def test_groups_are_divisors_each_as_often(self):
        of_24 = collections.Counter(one.groups for one in transfer_draws.draws(3, 0, 20 * MANY)
                                    if one.family == 'grouped' and one.heads == 24)
        self.assertEqual(sorted(of_24), [1, 2, 3, 4, 6, 8, 12, 24])
        for count in of_24.values():
            self.assertTrue(near(count / of_24.total(), of_24.total(), 1 / 8), of_24)
        for one in self.drawn:
            self.assertEqual(one.heads % one.groups, 0)
            self.assertTrue(one.family == 'grouped' or one.groups == one.heads)

    def test_feed_forward(self):
        ungated = [one for one in self.drawn if one.family != 'grouped']
        wide = lambda one: one.feed_forward == 4 * one.hidden
        self.assertShare(3 / 4, wide, ungated)
        for one in self.drawn:
            exact = 8 * one.hidden / 3
            if one.family == 'grouped':
                self.assertEqual(one.feed_forward % 64, 0)
                self.assertTrue(0 <= one.feed_forward - exact < 64)
            elif not wide(one):
                self.assertTrue(0 <= one.feed_forward - exact < 1)
        self.assertTrue(any(one.feed_forward % 2 for one in ungated))

    def test_lengths_and_tokens(self):
        self.assertLogUniform([one.length for one in self.drawn], 64, 8192)
        by_chance = 1 / 64
        self.assertShare(1 / 2 + by_chance / 2, lambda one: one.length % 64 == 0)
        for one in self.drawn:
            self.assertGreaterEqual(one.batch, 1)
            self.assertTrue(512 <= one.batch * one.length <= 32768, one.name())
        # Where sequences are short, rounding the batch hardly moves the tokens.
        self.assertLogUniform([one.batch * one.length for one in self.drawn if one.length <= 128],
                              512, 32768)
        for tokens, length, batch in ((512, 8192, 1), (32768, 8192, 4), (600, 400, 2),
                                      (512, 511, 2), (32768, 64, 512), (1300, 500, 3)):
            self.assertEqual(transfer_draws.batch_of(tokens, length), batch)

    def test_dropout_belongs_to_training_of_encoders(self):
        for one in self.drawn:
            self.assertEqual(one.dropout,
                             0.1 if one.training and one.family == 'encoder' else 0.0)

    def test_a_draw_depends_on_seed_and_index_alone(self):
        """Also on other machines and versions of Python: these stay what they are."""
        self.assertEqual(transfer_draws.draws(5, 10, 3), transfer_draws.draws(5, 0, 13)[10:])
        names = [one.name() for one in transfer_draws.draws(7, 0, 60)]
        self.assertEqual(names[3], '7/3 encoder 11x96 ff 4224 B=5 L=960 bf16 training')
        self.assertEqual(names[5], '7/5 grouped 25/5x80 ff 5376 B=9 L=3456 f16')
        self.assertEqual(len(set(names)), 60)
        self.assertNotEqual(transfer_draws.draw(8, 5).name()[2:], names[5][2:])

    def test_even_widths(self):
        one = dataclasses.replace(self.drawn[0], heads=8, head_dim=64, feed_forward=2048,
                                  length=72)
        self.assertTrue(one.even)
        for change in (dict(length=73), dict(length=76), dict(feed_forward=2047)):
            self.assertFalse(dataclasses.replace(one, **change).even)


def small(family, **changes):
    """A draw with few elements; no two of its extents are equal."""
    values = dict(seed=0, index=0, family=family, dtype='f16', heads=4,
                  groups=2 if family == 'grouped' else 4, head_dim=6, feed_forward=40, batch=3,
                  length=20, training=False, dropout=0.0)
    return transfer_draws.Draw(**{**values, **changes})


class WeftTest(CommandTest):
    """weft builds the layer that was drawn."""
    # Of each family: op -> how many stand in a layer; the mask is one of `causal`.
    OPS = {
        'encoder': {'weft.gelu ': 1, 'weft.layer_norm ': 2},
        'decoder': {'weft.gelu_tanh ': 1, 'weft.layer_norm ': 2, 'weft.mask causal': 1},
        'grouped': {'weft.silu ': 1, 'weft.rms_norm ': 2, 'weft.rotary ': 2, 'weft.mask causal': 1}
    }

    def arguments(self, draw):
        return draw.compile_arguments(self.write('config.json', json.dumps(draw.config())))

    def check(self, draw):
        text = self.weft('import', *self.arguments(draw)).out
        shapes = {
            name: shape.split('x')
            for name, shape in re.findall(r'^(!\w+) = tensor<(\w+),', text, re.MULTILINE)
        }
        extents = {name: [int(size) for size in shape[:-1]] for name, shape in shapes.items()}
        x = re.search(r'%x: (!\w+)', text)[1]
        self.assertEqual(extents[x], [draw.batch, draw.length, draw.hidden])
        parameters = dict(re.findall(r'%(\w+): (!\w+) \{[^}]*weft\.parameter\}', text))
        self.assertEqual(draw.weight_elements(),
                         sum(math.prod(extents[kind]) for kind in parameters.values()))
        self.assertEqual({shapes[kind][-1] for kind in (x, *parameters.values())}, {draw.dtype})
        query = extents[parameters['wq']]
        heads = [draw.groups, draw.heads // draw.groups] if draw.family == 'grouped' else \
            [draw.heads]
        self.assertEqual(query, [draw.head_dim, *heads, draw.hidden])
        inner = extents[parameters['w_gate' if draw.family == 'grouped' else 'w1']]
        self.assertEqual(inner, [draw.feed_forward, draw.hidden])
        for op, count in self.OPS[draw.family].items():
            if draw.training:  # backward passes turn and mask again
                self.assertGreaterEqual(text.count(op), count, op)
            else:
                self.assertEqual(text.count(op), count, op)
        self.assertEqual('weft.mask' in text, draw.causal)
        self.assertEqual('weft.dropout' in text, draw.dropout > 0)
        self.assertEqual('weft.gradient_of = "wq"' in text, draw.training)

    def test_drawn_layers(self):
        drawn = [one for seed in (1, 2, 3) for one in transfer_draws.draws(seed, 0, 32)]
        self.assertEqual(
            {(one.family, one.training) for one in drawn},
            {(family, training) for family in transfer_draws.FAMILIES
             for training in (False, True)})
        for draw in drawn:
            with self.subTest(draw.name()):
                self.check(draw)

    def test_what_the_table_reads_of_a_plan(self):
        for draw in (*map(small, transfer_draws.FAMILIES),
                     small('encoder', dtype='bf16', training=True, dropout=0.1)):
            self.weft('compile', *self.arguments(draw), '--stop-after', 'emit', '-o', 'plan',
                      '--overwrite')
            plan = json.loads((self.folder / 'plan/plan.json').read_text())
            self.assertEqual(plan['dtype'], draw.dtype)
            self.assertIn('measurement', plan)
            for kernel in self.some(plan['kernels']):
                self.assertIsInstance(kernel['measured'], bool)

    def test_flop_is_that_of_the_contractions(self):
        """Of causal scores both count those on and below the diagonal."""
        for family in transfer_draws.FAMILIES:
            draw = small(family)
            # Fused attention counts its softmax too, which no GEMM computes.
            operators = self.weft('explain', *self.arguments(draw), '--attention', 'unfused',
                                  '--movement', '--json').json()['operators']
            flop = sum(one['flop'] for one in operators if one['class'] == 'contraction')
            self.assertEqual(draw.flop(), flop)
            trained = dataclasses.replace(draw, training=True).workload()
            self.assertEqual(trained.flop, 3 * draw.flop())
            self.assertEqual(trained.bytes_moved, 2 * draw.workload().bytes_moved)


CEILINGS = (4e12, 7e14)


def line(index, ratio=None, status=transfer_table.RIGHT, seed=7, **changes):
    """A measured draw: weft takes 1 ms, the best rival as many as the ratio."""
    draw = dataclasses.replace(transfer_draws.draw(seed, index), **changes)
    record = {
        'draw': draw.data(), 'status': status, 'reason': '', 'prices': 'estimated',
        'ratio': {'median': ratio, 'spread': 0.01, 'rival': 'eager flash'} if ratio else None
    }
    result = report.Result(draw.workload(), record=record)
    if status == transfer_table.RIGHT:
        result.samples['weft'] = [1e-3] * 3
    else:
        record['reason'] = result.failures['weft'] = 'WeftFailed: exit 3: no such kernel'
    if ratio:
        result.samples['eager flash'] = [ratio * 1e-3] * 3
        result.samples['torch.compile'] = [2 * ratio * 1e-3] * 3
    return json.loads(report.json_line(result, CEILINGS, 'transfer'))


def header(first=0, count=4, **changes):
    return {
        'sampler': 1, 'device': 'a GPU', 'weft': 'abc', 'weftFlags': [], 'compileLimit': 120.0,
        'rounds': 15, 'rivals': 'all', 'seed': 7, 'first': first, 'count': count, **changes
    }


EVEN = dict(heads=8, head_dim=64, feed_forward=2048, length=512)
ODD = {**EVEN, 'length': 777}


class TableTest(unittest.TestCase):
    def test_scores(self):
        self.assertEqual(transfer_table.score(line(0, 1.5)), 1.5)
        for status in (transfer_table.REJECTED, transfer_table.WRONG):
            self.assertEqual(transfer_table.score(line(0, 3.0, status)), 0.5)
            self.assertEqual(transfer_table.score(line(0, None, status)), 0.5)
        self.assertIsNone(transfer_table.score(line(0, None)))
        self.assertIsNone(transfer_table.score(line(0, None, transfer_table.ABSENT)))

    def test_summary(self):
        lines = [
            line(0, 2.0),
            line(1, 1.0),
            line(2, None, transfer_table.REJECTED),
            line(3, None, transfer_table.WRONG),
            line(4, None)
        ]
        one = transfer_table.summarize(lines)
        self.assertAlmostEqual(one.mean, (2.0 * 1.0 * 0.5 * 0.5)**0.25)
        self.assertEqual((one.draws, one.compared, one.rejected, one.wrong), (5, 4, 1, 1))
        self.assertEqual((one.worst, one.won), (0.5, 0.25))
        self.assertIn(one.worst_name, (lines[2]['workload'], lines[3]['workload']))
        nothing = transfer_table.summarize([])
        self.assertEqual((nothing.mean, nothing.worst, nothing.won), (None, None, None))

    def test_even_and_odd_widths_are_apart(self):
        lines = [line(0, 1.2, **EVEN), line(1, 0.8, **EVEN), line(2, 4.0, **ODD)]
        even, odd = transfer_table.summary_rows(lines)[1:]
        self.assertEqual(even[:6], ['even', '2', '2', '0.980x', '0.800x', '50%'])
        self.assertEqual(odd[:6], ['odd', '1', '1', '4.000x', '4.000x', '100%'])

    def test_inference_and_training_are_apart(self):
        trained = {**EVEN, 'training': True}
        lines = [line(0, 1.2, **EVEN), line(1, 0.8, **trained), line(2, 4.0, **ODD)]
        found = {row[0]: row[1:6] for row in transfer_table.summary_rows(lines)[1:]}
        self.assertEqual(found['even, inference'], ['1', '1', '1.200x', '1.200x', '100%'])
        self.assertEqual(found['odd, inference'], ['1', '1', '4.000x', '4.000x', '100%'])
        self.assertEqual(found['even, training'], ['1', '1', '0.800x', '0.800x', '0%'])
        self.assertEqual(found['odd, training'], ['0', '0', '-', '-', '-'])
        self.assertEqual(len(transfer_table.summary_rows(lines[::2])), 3)  # none is trained

    def test_inference_of_even_and_of_odd_widths_is_asked_for(self):
        even, odd = ({**widths, 'training': False} for widths in (EVEN, ODD))
        lines = [line(0, 1.2, **even), line(1, None, transfer_table.WRONG, **even),
                 line(2, 9.0, **{**even, 'training': True}), line(3, 1.1, seed=9, **odd),
                 line(4, None, **odd)]
        name = 'layers of seed 7, 9, {} widths, inference, geometric mean of {} draws'
        (even, mean, must), odd = transfer_table.asked(lines)
        self.assertEqual((even, must), (name.format('even', '2 of 2'), 1.0))
        self.assertAlmostEqual(mean, (1.2 * 0.5)**0.5)
        self.assertEqual(odd[0], name.format('odd', '1 of 2'))
        self.assertAlmostEqual(odd[1], 1.1)
        self.assertEqual(transfer_table.asked(lines[2:3]), [])
        self.assertIsNone(transfer_table.asked(lines[4:])[0][1])
        page = results.document(['\n'.join(map(json.dumps, [
            {'machine': 'a GPU', 'transfer': header()}, *lines]))])
        self.assertIn(f'| {even} | 0.775 | 1.00 | **missed** |\n| {odd[0]} | 1.100 | 1.00 |  |',
                      page)

    def test_rows_name_the_best_rival(self):
        head, right, rejected = transfer_table.rows(
            [line(0, 1.25), line(1, 0.9, transfer_table.REJECTED)])
        self.assertEqual(right[1:4], ['1.000', '1.250', '1.25x'])
        self.assertEqual(right[5:], ['estimated', 'eager flash'])
        self.assertEqual(rejected[1:4], ['-', '0.9000', '0.50x (rejected)'])

    def test_nothing_is_dropped(self):
        lines = [line(1, 1.1), line(2, None, transfer_table.REJECTED), line(3)]
        text = transfer_table.text([transfer_table.Run(header(0, 8), lines)])
        self.assertIn(f'{lines[1]["workload"]}: rejected: WeftFailed: exit 3: no such kernel', text)
        self.assertIn(f'{lines[2]["workload"]}: no ratio: no rival has a figure', text)
        self.assertIn('not measured of seed 7: 0, 4-7\n', text)
        self.assertIn('\n2 of the 32 inference draws that a verdict takes\n', text)
        self.assertIn('not measured of seed 7: 0-3', transfer_table.text([
            transfer_table.Run(header(), [])]))
        files = ['\n'.join(map(json.dumps, [{'machine': 'a GPU', 'transfer': one}, *own]))
                 for one, own in ((header(0, 3), lines[:1]), (header(3, 8), lines[2:]))]
        page = results.document(files)
        self.assertIn('\n- not measured of seed 7: 0, 2, 4-10\n', page)
        self.assertIn('\n- 1 of the 32 inference draws that a verdict takes\n', page)


class AddedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='weft-transfer-')
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, head, lines):
        path = self.folder / name
        first = {'machine': 'a GPU\nceilings', 'transfer': head}
        path.write_text('\n'.join(map(json.dumps, [first, *lines])) + '\n')
        return path

    def bench(self, *arguments):
        return subprocess.run([sys.executable, ROOT / 'bench/run', *map(str, arguments)],
                              capture_output=True, text=True, check=False)

    def test_runs_add_up(self):
        a = self.write('a', header(0, 3), [line(0, 2.0, **EVEN), line(1, 0.5, **EVEN)])
        b = self.write('b', header(2, 2), [line(2, 1.0, **EVEN)])
        c = self.write('c', header(5, 1, seed=9), [line(5, 3.0, seed=9, **ODD)])
        done = self.bench('transfer', '--add', a, b, c)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r'even +3 +3 +1\.000x +0\.500x +33% +0 +0 ')
        self.assertRegex(done.stdout, r'odd +1 +1 +3\.000x +3\.000x +100% +0 +0 ')
        self.assertIn('not measured of seed 7: 3\n', done.stdout)
        self.assertIn('a GPU\n3 runs, 15 rounds', done.stdout)

    def test_a_draw_that_a_later_run_made_up_for_is_measured(self):
        a = self.write('a', header(0, 2), [line(0, 2.0)])
        b = self.write('b', header(1, 1), [line(1, 2.0)])
        self.assertNotIn('not measured', self.bench('transfer', '--add', a, b).stdout)

    def assertRejected(self, says, *paths):
        done = self.bench('transfer', '--add', *paths)
        self.assertEqual((done.returncode, done.stdout), (2, ''))
        self.assertIn(says, done.stderr)
        self.assertNotIn('Traceback', done.stderr)

    def test_what_does_not_add_up(self):
        a = self.write('a', header(), [line(0, 2.0)])
        for name, value, says in (('device', 'another GPU', 'another machine than'),
                                  ('rounds', 5, 'another rounds than'),
                                  ('weft', 'def', 'another weft command than'),
                                  ('weftFlags', ['--measure'], 'another flags of weft compile'),
                                  ('sampler', 2, 'another version of the distribution')):
            other = self.write('b', header(**{name: value}), [line(1, 2.0)])
            self.assertRejected(says, a, other)
        self.assertRejected('draw 0 of seed 7 stands in', a,
                            self.write('b', header(), [line(0, 1.0)]))
        self.assertRejected('draw 0 of seed 7 stands in', a, a)

    def test_bad_files(self):
        self.assertRejected('none: No such file', self.folder / 'none')
        self.assertRejected('is no text', self.write_bytes(b'\xff\xfe'))
        self.assertRejected('line 1 is not JSON', self.write_bytes(b'weft\n'))
        for other in (b'', b'3\n', b'{"machine": "a GPU"}\n{"workload": "x"}\n',
                      b'{"transfer": {"sampler": 1}}\n', b'{"transfer": 3}\n'):
            self.assertRejected('no run of group transfer', self.write_bytes(other))
        good = line(0, 2.0)
        for change, says in (({'draw': {'seed': 7}}, 'no index of a draw'),
                             ({'status': None}, 'no status of a draw'),
                             ({'status': 'fast'}, "unknown status 'fast'"),
                             ({'ratio': {'median': math.nan}}, 'no positive number'),
                             ({'ratio': {'median': 0}}, 'no positive number'),
                             ({'ratio': {}}, 'no positive number')):
            path = self.write('b', header(), [good, {**good, **change}])
            self.assertRejected(f'{path}: line 3: ', path)
            self.assertRejected(says, path)

    def write_bytes(self, content):
        path = self.folder / 'bytes'
        path.write_bytes(content)
        return path

    def test_usage(self):
        for says, *arguments in (
            ('takes --seed N and --count M', ), ('takes --seed N and --count M', '--seed', '1'),
            ('must be at least 0', '--seed', '-1', '--count', '3'),
            ('must be at least 0', '--seed', '1', '--count', '3', '--first', '-1'),
            ('--count must be at least 1', '--seed', '1', '--count', '0'),
            ('--count must be at least 1', '--seed', '1', '--count', '-4'),
            ('invalid int value', '--seed', 'x', '--count', '3'),
            ('--compile-limit must be', '--seed', '1', '--count', '3', '--compile-limit', '0'),
            ('--add measures nothing', '--seed', '1', '--add', 'file'),
            ("'transfer' takes one --weft", '--seed', '1', '--count', '1', '--weft', 'a', '--weft',
             'b')):
            done = self.bench('transfer', *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(says, done.stderr)
        done = self.bench('norm', '--seed', '3')
        self.assertEqual(done.returncode, 2)
        self.assertIn('--seed belongs to groups transfer and masks', done.stderr)
        done = self.bench('masks', '--seed', '3', '--count', '1', '--compile-limit', '9')
        self.assertEqual(done.returncode, 2)
        self.assertIn('--compile-limit belongs to group transfer', done.stderr)
        self.assertIn('group masks takes --seed N', self.bench('masks').stderr)
        self.assertEqual(self.bench('norm', 'transfer', '--add', 'file').returncode, 2)

    @unittest.skipIf(importlib.util.find_spec('torch'), 'PyTorch is here')
    def test_without_torch(self):
        done = self.bench('transfer', '--seed', '1', '--count', '1')
        self.assertEqual(done.returncode, 3)
        self.assertIn('needs PyTorch', done.stderr)


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class TorchTest(CommandTest):
    """Rivals, reference and weft's interpreter compute the same layers."""
    def setUp(self):
        super().setUp()
        import torch
        from weftbench import reference, transfer, transfer_modules, transfer_reference
        self.torch, self.reference, self.transfer = torch, reference, transfer
        self.modules, self.whole = transfer_modules, transfer_reference
        torch.manual_seed(0)

    def layer(self, draw, dtype=None):
        """Module, x and dy; norms and biases are not left at ones and zeros."""
        module = self.modules.module_of(draw).to(dtype or self.torch.float64).train(draw.training)
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.data += 0.2 * self.torch.randn_like(parameter)
        x, dy = (self.torch.randn(draw.batch, draw.length, draw.hidden,
                                  dtype=dtype or self.torch.float64) for _ in range(2))
        return module, x, dy

    def draws(self, **changes):
        yield from (small(family, **changes) for family in transfer_draws.FAMILIES)
        yield small('grouped', groups=1, **changes)
        yield small('grouped', groups=4, **changes)

    def test_rivals_compute_the_reference(self):
        for draw in self.draws():
            module, x, _ = self.layer(draw)
            expected = self.whole.result_of(draw, module.tensors(), x, self.reference.Dropout(0))
            for name, one in self.modules.groupings(module).items():
                error = self.reference.relative_error(one(x).detach(), expected)
                self.assertLess(error, 1e-12, draw.name() + name)

    def test_gradients_of_rivals(self):
        for draw in self.draws(training=True):
            module, x, dy = self.layer(draw)
            found = self.whole.results_of(draw, module.tensors(), x, dy, self.reference.Dropout(0))
            x.requires_grad_()
            parameters = dict(module.named_parameters())
            of = dict(
                zip(['x', *parameters],
                    self.torch.autograd.grad(module(x), [x, *parameters.values()], dy)))
            self.assertLess(self.reference.relative_error(found['x'], of['x']), 1e-11)
            # The module's gradients under the graph's names: by its own renaming of weights.
            for name, parameter in parameters.items():
                parameter.data = of[name]
            for name, expected in module.tensors().items():
                scale = 'bq' if name == 'bk' else name  # that of bk is zero but for rounding
                error = (found[name] - expected).norm() / module.tensors()[scale].norm()
                self.assertLess(float(error), 1e-11, f'{draw.name()}: {name}')

    def test_pieces_add_up(self):
        """However few sequences are computed at a time, masks included."""
        for draw in self.draws(training=True, dropout=0.1, batch=5):
            module, x, dy = self.layer(draw)
            dropout = self.reference.Dropout(0.1, seed=5, step=3)
            arguments = (draw, module.tensors(), x, dy, dropout)
            expected = self.whole.results_of(*arguments)
            with mock.patch.object(self.whole, 'MOST_TOKENS', 2 * draw.length):
                self.assertEqual(self.whole.pieces(draw), [(0, 2), (2, 4), (4, 5)])
                found = self.whole.results_of(*arguments)
                result = self.whole.result_of(draw, module.tensors(), x, dropout)
            self.assertLess(self.reference.relative_error(result, expected['']), 1e-13)
            for name in expected.keys() - {'bk'}:
                self.assertLess(self.reference.relative_error(found[name], expected[name]), 1e-12)

    def test_long_sequences_go_one_by_one(self):
        self.assertEqual(self.whole.sequences_at_once(8192), 1)
        self.assertEqual(self.whole.sequences_at_once(64), 64)

    def write_tensors(self, name, tensors):
        return safetensors_file.write(
            self.folder / name, {
                key: ('F32', value.shape, value.detach().float().flatten().tolist())
                for key, value in tensors.items()
            })

    def test_reference_is_the_interpreters(self):
        for draw in self.draws(training=True, dropout=0.1):
            config = self.write('config.json', json.dumps(draw.config()))
            in_f32 = ['f32' if one == draw.dtype else one for one in draw.compile_arguments(config)]
            graph = self.write('graph.mlir', self.weft('import', *in_f32).out)
            module, x, dy = (one.float() for one in self.layer(draw))
            expected = self.whole.results_of(draw, module.tensors(), x, dy,
                                             self.reference.Dropout(0.1, seed=5, step=3))
            names = artifact_graph.gradients_by_result(graph.read_text())
            upstream = re.search(r'%(\w+): !\w+ \{weft\.gradient_of', graph.read_text())[1]
            done = subprocess.run([
                pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs',
                self.write_tensors('inputs', {**module.tensors(), 'x': x, upstream: dy}),
                '--expect',
                self.write_tensors('expected', {name: expected[of]
                                                for name, of in names.items()}), '--dropout-seed',
                '5', '--dropout-step', '3', '--absolute', '1e-5', '--relative', '5e-6'
            ], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, draw.name() + done.stdout + done.stderr)
            self.assertEqual(len(re.findall(': equal:', done.stdout)), len(expected), done.stdout)

    def test_both_ways_to_group_heads(self):
        ways = lambda draw: list(self.modules.groupings(self.modules.module_of(draw)))
        self.assertEqual(ways(small('grouped')), [' grouped', ' repeated'])
        self.assertEqual(ways(small('grouped', groups=4)), [''])
        self.assertEqual(ways(small('encoder')), [''])
        settings = types.SimpleNamespace(rivals=True, torch_compile=False)
        module = self.modules.module_of(small('grouped'))
        self.assertEqual(len(self.modules.forms(settings, module)), 6)
        settings.rivals = False
        self.assertEqual(self.modules.forms(settings, module), {})

    def test_a_rival_that_fails_says_why(self):
        def call():
            import warnings
            warnings.warn('heads are odd')
            raise RuntimeError('No available kernel')

        self.assertEqual(self.modules.why_not(lambda: 1), '')
        self.assertEqual(self.modules.why_not(call),
                         'RuntimeError: No available kernel; heads are odd')

    def run_group(self, artifact_of, draw):
        """The group on the CPU: no clock, one artifact of ours that `artifact_of` makes of the
        drawn module."""
        from weftbench import ours, timing
        torch, transfer = self.torch, self.transfer

        def measure(result, contenders, rounds):
            for contender in contenders:
                contender.call(0)
                result.samples[contender.name] = [1e-3] * rounds

        contender = lambda name, call: types.SimpleNamespace(name=name, call=call)
        made, module_of = [], self.modules.module_of

        def module(one):
            made.append(module_of(one))
            return made[0]

        settings = types.SimpleNamespace(ours=True, rivals=True, torch_compile=False, rounds=3)
        with mock.patch.object(transfer, 'DEVICE', 'cpu'), \
                mock.patch.object(torch.cuda, 'synchronize'), \
                mock.patch.object(timing, 'measure', measure), \
                mock.patch.object(timing, 'GraphContender', contender), \
                mock.patch.object(self.modules, 'module_of', module), \
                mock.patch.object(transfer, 'compiled',
                                  lambda *_: {'weft': artifact_of(draw, made[0])}), \
                mock.patch.object(ours, 'weft', None):
            return transfer.measured(settings, draw)

    def fake(self, broken=()):
        """An artifact that computes by PyTorch, but results named in `broken` wrongly."""
        torch, whole, reference = self.torch, self.whole, self.reference

        class Fake:
            plan = {'kernels': [{'source': 'k.cu', 'measured': True},
                                {'source': 'l.cu', 'measured': False},
                                {'source': '', 'measured': False}], 'measurement': None}

            def __init__(self, draw, module):
                self.draw, self.names = draw, ['']
                if draw.training:
                    self.names += [*module.tensors(), 'x']

            def gradients(self):
                return [name for name in self.names if name not in missing]

            def input_names(self):
                return ['x', 'd_y'][:1 + self.draw.training]

            def set_parameters(self, tensors):
                self.tensors = tensors

            def set_dropout_key(self, seed, step):
                self.dropout = reference.Dropout(self.draw.dropout, seed, step)

            def poisoned_outputs(self):
                return [torch.empty(0) for _ in self.gradients()]

            def device_bytes(self):
                return 3

            def parameter_bytes(self):
                return 1

            def launch(self, inputs, out):
                if self.draw.training:
                    found = whole.results_of(self.draw, self.tensors, *inputs, self.dropout)
                else:
                    found = {'': whole.result_of(self.draw, self.tensors, *inputs, self.dropout)}
                for name, tensor in zip(self.gradients(), out, strict=True):
                    tensor.resize_(found[name].shape).copy_(found[name])
                    if name in broken:
                        tensor.flatten()[-1] = math.nan

        missing = [name[1:] for name in broken if name.startswith('-')]
        return Fake

    def test_a_right_draw_has_a_ratio(self):
        for draw in self.draws():
            for one in (draw, dataclasses.replace(draw, training=True, dtype='bf16')):
                result = self.run_group(self.fake(), one)
                self.assertEqual(result.record['status'], 'right', result.failures)
                self.assertEqual(result.record['prices'], '1/2 measured')
                self.assertLess(result.errors['weft'], 1e-6)
                rivals = result.rivals()
                self.assertTrue(rivals, result.failures)
                self.assertEqual(result.record['ratio']['median'], 1.0)
                # No rival is silently left out.
                left = {name.split(' ')[1] for name in [*rivals, *result.failures]}
                self.assertEqual(left, {'cuDNN', 'flash', 'efficient'})

    def test_a_draw_without_rivals_has_none(self):
        """On a CPU no fused attention has dropout."""
        result = self.run_group(self.fake(), small('encoder', training=True, dropout=0.1))
        self.assertEqual((result.record['status'], result.record['ratio']), ('right', None))
        self.assertIn('dropout', result.failures['eager flash'])

    def test_a_wrong_draw_has_none(self):
        training = small('grouped', training=True)
        for draw, broken, says in ((small('encoder'), [''], 'relative error nan'),
                                   (training, ['w_up'], 'gradient of w_up nan (PyTorch in f16: '),
                                   (training, ['-wk'], 'no result is the gradient of wk')):
            result = self.run_group(self.fake(broken), draw)
            self.assertEqual(result.record['status'], 'wrong')
            self.assertIn(says, result.record['reason'])
            self.assertNotIn('weft', result.samples)
            self.assertIsNone(result.record['ratio'])
            self.assertTrue(result.rivals())

    def test_a_rejected_draw_is_a_result(self):
        from weftbench import ours

        def reject(draw, module):
            raise ours.WeftFailed('weft compile: exit 3: no such kernel')

        result = self.run_group(reject, small('decoder'))
        self.assertEqual((result.record['status'], result.record['reason']),
                         ('rejected', 'WeftFailed: weft compile: exit 3: no such kernel'))
        self.assertTrue(result.rivals())

    def test_a_command_that_takes_too_long_is_rejected(self):
        from weftbench import ours
        slow = self.write('slow', '#!/bin/sh\nexec sleep 60\n')
        slow.chmod(0o755)
        settings = types.SimpleNamespace(weft=str(slow), compile_limit=0.2)
        with self.assertRaisesRegex(ours.WeftFailed, 'weft compile: not done after 0.2 s'):
            ours.weft(settings, 'compile')


if __name__ == '__main__':
    unittest.main()
