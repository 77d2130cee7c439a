"""weft run without a GPU: checks, rejections, and what an unbuilt or racing plan says."""
import json
import pathlib
import unittest

from time_test import has_driver
from weft_command import TINY, WEFT, CommandTest

STAND_IN = pathlib.Path(WEFT).parents[1] / 'tests/fakecuda'


class RunTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '--no-library', '-o', 'plan', env={'WEFT_NVRTC': 'none'})

    def test_check(self):
        self.assertIn('checked', self.weft('run', 'plan', '--check').out)
        listed = self.weft('run', 'plan', '--check', '--json').json()
        self.assertEqual(len(listed['kernels']), len(listed['entryPoints']['forward']))

    def test_usage(self):
        self.fails(2, 'run', says=['DIR'])
        self.fails(2, 'run', 'nowhere', says=['nowhere is no artifact'])
        self.fails(2, 'run', 'plan', '--repeat', '0', says=['--repeat 0: at least one launch'])
        self.fails(2, 'run', 'plan', '--kernel', 'x', '--outputs', 'f',
                   says=['--kernel runs on random operands'])

    def test_inputs_make_sense(self):
        """Weights are scaled by what they are summed over, so that layers keep their scale."""
        plan = json.loads((self.folder / 'plan/plan.json').read_text())
        scales = {tensor['logical']: tensor['scale'] for tensor in plan['tensors']}
        self.assertAlmostEqual(scales['w1'], 32**-0.5)
        self.assertAlmostEqual(scales['w2'], 64**-0.5)
        self.assertAlmostEqual(scales['wq'], 32**-0.5)  # also where it is read as part of a stack
        self.assertEqual(scales['x'], 1)

    def test_racing_plan(self):
        path = self.folder / 'plan/plan.json'
        plan = json.loads(path.read_text())
        last = plan['kernels'][-1]
        self.assertTrue(last['after'])
        last['after'] = []
        path.write_text(json.dumps(plan))
        self.fails(2, 'run', 'plan', '--check', says=[last['name'], 'does not wait for it'])

    @unittest.skipIf(has_driver(), 'a CUDA driver is here')
    def test_no_driver(self):
        self.fails(3, 'run', 'plan', says=['no CUDA driver'])

    @unittest.skipUnless((STAND_IN / 'libcuda.so.1').exists(),
                         'the stand-in for the driver is not built')
    def test_not_built(self):
        self.fails(3, 'run', 'plan', says=['was not built', 'weft emit plan'],
                   env={'LD_LIBRARY_PATH': str(STAND_IN)})


if __name__ == '__main__':
    unittest.main()
