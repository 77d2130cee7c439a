"""Products with several strides along a group of axes, from a graph to kernels: no transpose comes
first, and pins that nothing took are taken."""
import json
import unittest

from weft_command import CommandTest

# The projection behind attention: rows (b,j) and k (h,p) of a tensor [b,h,j,p] that a caller
# brings.
PROJECTION = '''
!x = tensor<4x8x256x64xf16, #weft.axes<b, h, j, p>>
!w = tensor<8x64x512xf16, #weft.axes<h, p, i>>
!y = tensor<4x256x512xf16, #weft.axes<b, j, i>>
weft.graph @projection(%x: !x, %w: !w {weft.parameter}) -> !y {
  %y = weft.contract "bhjp,hpi->bji" %x, %w : !x, !w -> !y
  weft.return %y : !y
}
'''
# What attention writes, [b,j,h,w], of values that lie as they were projected: B and C have the
# batch in two runs.
CONTEXT = '''
!s = tensor<4x8x256x256xf16, #weft.axes<b, h, j, k>>
!v = tensor<4x256x8x64xf16, #weft.axes<b, k, h, w>>
!y = tensor<4x256x8x64xf16, #weft.axes<b, j, h, w>>
weft.graph @context(%s: !s, %v: !v) -> !y {
  %y = weft.contract "bhjk,bkhw->bjhw" %s, %v : !s, !v -> !y
  weft.return %y : !y
}
'''
# The same behind an element-wise kernel that may write any layout.
ACTIVATION = PROJECTION.replace('%y = weft.contract "bhjp,hpi->bji" %x',
                                '%a = weft.relu %x : !x\n  %y = weft.contract "bhjp,hpi->bji" %a')


class Strides(CommandTest):
    def plan(self, text, *flags):
        (self.folder / 'graph.mlir').write_text(text)
        self.weft('compile', 'graph.mlir', '--device', 'h200', '--stop-after', 'emit', *flags, '-o',
                  'out')
        return json.loads((self.folder / 'out/plan.json').read_text())

    def families(self, plan):
        return [kernel['family'] for kernel in plan['kernels']]

    def test_no_transpose_comes_first(self):
        plan = self.plan(PROJECTION, '--profile', 'none')
        self.assertEqual(self.families(plan), ['gemm-sm90'])
        kernel = plan['kernels'][0]
        maps = [parameter['map'] for parameter in kernel['parameters'] if parameter['map']]
        self.assertIn([64, 8, 256, 4], [one['extents'] for one in maps])
        text = (self.folder / 'out' / kernel['source']).read_text()
        self.assertIn('weft/sm90_strides.cuh', text)
        self.assertIn('.columns = {{p, h}}, .rows = {{j, b}}', text)
        # What is emitted from the plan is the same.
        self.weft('emit', 'out')
        self.assertEqual((self.folder / 'out' / kernel['source']).read_text(), text)

    def test_no_transpose_comes_behind(self):
        for profile in (['--profile', 'none'], []):
            plan = self.plan(CONTEXT, *profile)
            self.assertEqual(self.families(plan), ['gemm-sm90'])
            kernel = plan['kernels'][0]
            text = (self.folder / 'out' / kernel['source']).read_text()
            self.assertIn('y_dimensions = {.columns = {{w}}, .rows = {{j}}, .batch = {{h, b}}',
                          text)
            self.assertIn('v_dimensions = {.columns = {{w}}, .rows = {{k}}, .batch = {{h, b}}',
                          text)
        # Who follows takes the result as it is written best: nothing has several strides then, and
        # nothing is transposed.
        followed = CONTEXT.replace('%y = weft.contract', '%c = weft.contract').replace(
            '  weft.return', '  %y = weft.relu %c : !y\n  weft.return')
        plan = self.plan(followed, '--profile', 'none')
        self.assertNotIn('transpose', self.families(plan))

    def test_where_no_map_takes_it_a_transpose_does(self):
        plan = self.plan(
            PROJECTION.replace('64x', '40x').replace('x64', 'x40'), '--profile', 'none')
        self.assertEqual(sorted(self.families(plan)), ['gemm-sm90', 'transpose'])

    def test_pins_that_no_other_layout_meets(self):
        for profile in (['--profile', 'none'], []):
            plan = self.plan(ACTIVATION, '--pin', 'a=bhjp', *profile)
            self.assertEqual(self.families(plan), ['loop', 'gemm-sm90'])
            product = plan['kernels'][1]
            self.assertIn('weft/sm90_strides.cuh',
                          (self.folder / 'out' / product['source']).read_text())
            self.assertFalse(product['measured'])

    def test_without_pins_a_profile_that_has_none_offers_none(self):
        plan = self.plan(ACTIVATION)
        for kernel in self.some(kernel for kernel in plan['kernels'] if kernel['source']):
            self.assertNotIn('sm90_strides', (self.folder / 'out' / kernel['source']).read_text())


if __name__ == '__main__':
    unittest.main()
