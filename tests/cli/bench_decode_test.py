"""Group `decode` of bench/run without a GPU: its rows and the plan that it compiles; with PyTorch
on the CPU also a rival against the fp64 reference."""
import importlib.util
import math
import pathlib
import re
import statistics
import sys
import types
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import decode_rows
from weft_command import CommandTest

HAS_TORCH = importlib.util.find_spec('torch') is not None


class RowsTest(unittest.TestCase):
    def test_lengths_are_lognormal_and_fit(self):
        row = decode_rows.Row(4096)
        held = row.held()
        self.assertEqual(held, row.held())
        self.assertNotEqual(held, decode_rows.Row(4096, seed=2).held())
        self.assertLess(max(held), row.longest)
        self.assertGreaterEqual(min(held), 0)
        self.assertAlmostEqual(statistics.median(held), 2000, delta=150)
        logs = [math.log(length + 1) for length in held]
        self.assertAlmostEqual(statistics.pstdev(logs), 1, delta=0.1)

    def test_bytes_are_weights_and_what_is_seen(self):
        row = decode_rows.ROWS[0]
        self.assertEqual(row.batch, 64)
        self.assertEqual(row.weight_elements(),
                         sum(map(math.prod, decode_rows.shapes(row).values())))
        self.assertEqual(row.bytes_moved() - 2 * row.weight_elements(),
                         sum(length + 1 for length in row.held()) * 8 * 128 * 2 * 2)


class PlanTest(CommandTest):
    def test_the_plan_takes_caches_lengths_and_the_weights(self):
        row = decode_rows.Row(2, 64)
        lengths = self.write('held.txt', ' '.join(map(str, row.held())))
        graph = self.weft('compile', *map(str, row.compile_arguments(lengths)), '--stop-after',
                          'import').out
        found = dict(re.findall(r'%(\w+): [^,)]*\{[^}]*weft\.(parameter)', graph))
        self.assertEqual(set(found), set(decode_rows.shapes(row)))
        for name in ('x', 'lengths', 'key_cache', 'value_cache'):
            self.assertIn(f'%{name}: ', graph)
        for name, shape in decode_rows.shapes(row).items():
            self.assertIn(f'tensor<{"x".join(map(str, shape))}xf16', graph, name)


@unittest.skipUnless(HAS_TORCH, 'needs PyTorch')
class RivalsTest(unittest.TestCase):
    def test_a_padded_rival_computes_the_layer(self):
        import torch
        from weftbench import decode_modules, reference

        class Small(decode_rows.Row):
            hidden, heads, groups, head, inner = 32, 4, 2, 8, 48
            held = lambda self: [3, 0, 7]

        row = Small(3, 8)
        torch.manual_seed(0)
        tensors = {name: torch.randn(shape) for name, shape in decode_rows.shapes(row).items()}
        caches = decode_modules.Caches(row, 'cpu', torch.float32)
        x = torch.randn(row.batch, row.hidden)
        expected = decode_modules.expected_of(row, tensors, x, caches)
        forms = decode_modules.forms(types.SimpleNamespace(torch_compile=False), row, tensors,
                                     caches)
        out = forms['padded SDPA']()(x)
        self.assertLess(reference.relative_error(out, expected), 2e-3)  # angles in f16
        self.assertEqual(reference.check(out, expected, 1e-2),
                         reference.relative_error(out, expected))


if __name__ == '__main__':
    unittest.main()
