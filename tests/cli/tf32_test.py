"""--tf32 from the command line to a plan: what it marks, what carries it, and where it makes no
sense."""
import json
import unittest

from weft_command import CommandTest

SMALL = [
    '--dim', 'b=2', '--dim', 'j=64', '--dim', 'h=4', '--dim', 'p=16', '--dim', 'i=64', '--dim',
    'u=128'
]


class Tf32(CommandTest):
    def plan(self, *flags):
        # Products of stored scores are by the families of GEMMs.
        self.weft('compile', 'paper-encoder', *SMALL, '--dtype', 'f32', '--profile', 'none',
                  '--attention', 'unfused', *flags, '-o', 'out')
        return json.loads((self.folder / 'out/plan.json').read_text())

    def test_library_gemms_say_what_they_read(self):
        for flags, types in ((['--tf32'], {'tf32,tf32->f32'}), ([], {'f32'})):
            plan = self.plan(*flags)
            found = {kernel['library']['dtype'] for kernel in plan['kernels'] if kernel['library']}
            self.assertLessEqual(found, types)
            graph = (self.folder / 'out/graph.mlir').read_text()
            self.assertEqual('precision = tf32' in graph, bool(flags))
            self.assertEqual(
                any(op.endswith(' in tf32') for kernel in plan['kernels'] for op in kernel['ops']),
                bool(flags))
            self.assertTrue(all(tensor['dtype'] != 'tf32' for tensor in plan['tensors']))

    def test_kernels_of_ours_without_the_library(self):
        plan = self.plan('--tf32', '--no-library')
        ours = [kernel for kernel in plan['kernels'] if kernel['family'] == 'gemm-sm90']
        self.assertTrue(ours)
        for kernel in ours:
            self.assertTrue(kernel['cubin'], 'built, unless there is no NVRTC')
            self.assertIn('weft/sm90_tf32.cuh',
                          (self.folder / 'out' / kernel['source']).read_text())
            maps = {
                parameter['map']['dtype']
                for parameter in kernel['parameters'] if parameter['map']
            }
            self.assertLessEqual(maps, {'tf32'})
        full = self.plan('--no-library')
        self.assertFalse(
            [kernel for kernel in full['kernels'] if kernel['family'] == 'gemm-sm90'])

    def test_gradients_and_an_artifact_of_its_graph_carry_it(self):
        self.plan('--tf32', '--train', '--no-library')
        self.weft('import', 'paper-encoder', *SMALL, '--dtype', 'f32', '--tf32', '-o', 'layer.mlir')
        text = (self.folder / 'layer.mlir').read_text()
        self.assertEqual(text.count('weft.contract'), text.count('precision = tf32'))
        self.weft('emit', 'out')

    def test_it_is_said_wherever_a_plan_is_described(self):
        self.plan()
        (self.folder / 'out').rename(self.folder / 'full')
        first = self.weft('compile', 'paper-encoder', *SMALL, '--dtype', 'f32', '--profile', 'none',
                          '--attention', 'unfused', '--tf32', '-o', 'out').out
        for text in (first, self.weft('explain', 'out').out, self.weft('explain', 'out',
                                                                       '--all').out):
            self.assertIn('f32 (contractions tf32), for h200', text.splitlines()[0])
        self.assertIn('inference, f32, for h200', self.weft('explain', 'full').out.splitlines()[0])
        for folder, precision in (('out', 'tf32'), ('full', '')):
            summary = self.weft('explain', folder, '--json').json()['summary']
            self.assertEqual((summary['dtype'], summary['contractions']), ('f32', precision))
        said = self.weft('diff', 'full', 'out', '--json', code=1).json()
        self.assertIn({'what': 'contractions', 'a': 'f32', 'b': 'tf32'}, said['decisions'])
        self.assertEqual(said['graph'], [])
        self.assertEqual(
            [group['computes'] for group in said['groups'] if 'rewrite' in group['why']], [])
        contracted = [
            group for group in said['groups']
            if any(' contract ' in op for kernel in group['kernels']['b'] for op in kernel['ops'])
        ]
        for group in self.some(contracted):
            self.assertEqual(group['why'][0], 'precision')
        self.assertIn('(--tf32)', self.weft('diff', 'full', 'out', code=1).out)

    def test_what_makes_no_sense(self):
        self.fails(
            2, 'compile', 'paper-encoder', *SMALL, '--tf32', '-o', 'out', says=[
                "--tf32: is a precision of f32 GEMMs, and the elements of 'paper-encoder' are "
                "f16; add --dtype f32"
            ])
        self.weft('import', 'paper-encoder', *SMALL, '-o', 'half.mlir')
        self.fails(2, 'select', 'half.mlir', '--tf32',
                   says=['contractions of', 'have operands of f16'])


if __name__ == '__main__':
    unittest.main()
