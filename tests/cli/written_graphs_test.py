"""Graphs written by hand, as no preset is: what is compiled is read back, and what is not supported
is said in one sentence. Extents are small: each compiles in a second."""
import json
import re
import unittest

from weft_command import CommandTest

# Heads of one key: axes of one element may stand anywhere in an order.
ONE_KEY = '''
!q = tensor<1x5x16x24xbf16, #weft.axes<b, h, j, p>>
!k = tensor<1x5x1x24xbf16, #weft.axes<b, h, k, p>>
!v = tensor<24x5x1x1xbf16, #weft.axes<w, h, k, b>>
!s = tensor<1x5x16x1xbf16, #weft.axes<b, h, j, k>>
!o = tensor<1x5x16x24xbf16, #weft.axes<b, h, j, w>>
weft.graph @one_key(%q: !q, %k: !k, %v: !v) -> (!q, !o) {
  %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.125} : !q, !k -> !s
  %probability = weft.softmax %score over k {empty_row = zero} : !s
  %context = weft.contract "bhjk,whkb->bhjw" %probability, %v : !s, !v -> !o
  weft.return %q, %context : !q, !o
}
'''
# Keys that are values as well, of one head that all queries share.
SHARED = '''
!q = tensor<2x4x31x64xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x31x64xf16, #weft.axes<b, k, p>>
!s = tensor<2x4x31x31xf16, #weft.axes<b, h, j, k>>
weft.graph @shared(%q: !q, %k: !k) -> !q {
  %score = weft.contract "bhjp,bkp->bhjk" %q, %k {scale = 0.125} : !q, !k -> !s
  %probability = weft.softmax %score over k {empty_row = zero} : !s
  %context = weft.contract "bhjk,bkw->bhjw" %probability, %k : !s, !k -> !q
  weft.return %context : !q
}
'''
# Values by number, foreign axes, values of another width, tanh and a second addend on scores.
NUMBERED = '''
!q = tensor<3x5x90x48xf16, #weft.axes<n, u, r, y>>
!k = tensor<3x5x130x48xf16, #weft.axes<n, u, s, y>>
!v = tensor<3x5x130x80xf16, #weft.axes<n, u, s, z>>
!s = tensor<3x5x90x130xf16, #weft.axes<n, u, r, s>>
!o = tensor<3x5x90x80xf16, #weft.axes<n, u, r, z>>
weft.graph @numbered(%a: !q, %b: !k, %c: !v, %e: !s) -> !o {
  %0 = weft.contract "nury,nusy->nurs" %a, %b {scale = 0.2} : !q, !k -> !s
  %1 = weft.tanh %0 : !s
  %2 = weft.add %1, %e along (n, u, r, s) : !s, !s -> !s
  %3 = weft.softmax %2 over s {empty_row = zero} : !s
  %4 = weft.contract "nurs,nusz->nurz" %3, %c : !s, !v -> !o
  weft.return %4 : !o
}
'''
TWICE = '''
!x = tensor<4x8xf32, #weft.axes<b, i>>
weft.graph @twice(%x: !x) -> (!x, !x) {
  %y = weft.gelu %x : !x
  weft.return %y, %y : !x, !x
}
'''
# Numbers without axes, as losses are.
SCALARS = '''
!x = tensor<f32, #weft.axes<>>
weft.graph @scalars(%x: !x) -> (!x, !x) {
  %y = weft.dropout %x {p = 0.3, stream = 1} : !x
  %z = weft.gelu %y : !x
  weft.return %y, %z : !x, !x
}
'''
# An activation that nobody reads.
UNREAD = TWICE.replace('  weft.return', '''  %z = weft.silu %x : !x
  %w = weft.tanh %z : !x
  weft.return''')
# A mask by a table of tiles, which no fused attention reads.
TABLE = SHARED.replace('%k: !k)', '%k: !k, %t: tensor<1x1xi1, #weft.axes<tj, tk>>)').replace(
    '%score over', '%masked over').replace(
        '  %probability', '  %masked = weft.mask block %score, %t {query = j, key = k, size = 32} :'
        ' !s, tensor<1x1xi1, #weft.axes<tj, tk>>\n  %probability')


class WrittenGraphs(CommandTest):
    def plan(self, text, *flags):
        (self.folder / 'graph.mlir').write_text(text)
        self.weft('compile', 'graph.mlir', '--profile', 'none', '--stop-after', 'emit', *flags,
                  '-o', 'out', '--overwrite')
        self.weft('explain', 'out')
        return json.loads((self.folder / 'out/plan.json').read_text())

    def test_flags_that_build_a_preset_are_rejected_of_a_file(self):
        self.write('shared.mlir', SHARED)
        for flags, own in ((['--residual', 'f32'], 'its own sums'),
                           (['--cache', '64'], 'its own caches'),
                           (['--mask', 'causal'], 'its own mask ops')):
            with self.subTest(flags=flags):
                self.fails(2, 'compile', 'shared.mlir', *flags, '-o', 'out',
                           says=['cannot be set, a .mlir file holds', own])

    def test_orders_along_axes_of_one_element_are_those_of_the_tensor(self):
        plan = self.plan(ONE_KEY, '--attention', 'fused', '--no-library')
        texts = {kernel['source']: (self.folder / 'out' / kernel['source']).read_text()
                 for kernel in plan['kernels']}
        self.weft('emit', 'out')
        for source, text in texts.items():
            self.assertEqual((self.folder / 'out' / source).read_text(), text)

    def test_keys_that_are_values_are_fused(self):
        for device in ('h200', 'a100'):
            plan = self.plan(SHARED, '--attention', 'fused', '--device', device)
            self.assertEqual(len(plan['kernels']), 1)
            queries, keys, values = plan['kernels'][0]['inputs']
            self.assertEqual(keys, values)
        self.plan(SHARED, '--train')

    def test_gradients_of_a_value_that_is_returned_twice_have_two_names(self):
        plan = self.plan(TWICE, '--train')
        self.assertEqual([tensor['name'] for tensor in plan['tensors']
                          if tensor['role'] == 'argument'], ['x', 'd_y', 'd_y_2'])

    def test_what_no_result_depends_on_is_not_computed(self):
        (self.folder / 'graph.mlir').write_text(UNREAD)
        for train in ([], ['--train']):
            imported = self.weft('import', 'graph.mlir', *train, '-o', f'{len(train)}.mlir')
            self.assertIn('not computed, since no result depends on it: z, w', imported.err)
            text = (self.folder / f'{len(train)}.mlir').read_text()
            self.assertIn('weft.gelu', text)
            self.assertNotRegex(text, 'weft.(silu|tanh)')

    def test_tables_of_biases_are_named_where_they_would_be_trained(self):
        scored = ('attention', '--dim', 'j=16', '--score', 'relative=16', '--train', '-o',
                  'out.mlir')
        error = self.weft('import', *scored, code=3).err
        self.assertIn("the gradient of 'relative_table' is not written: biases of scores by "
                      'distance have none by their tables', error)
        self.assertIn('--gradients-of q,k,v', error)
        self.assertNotIn('see current operation', error)
        self.weft('import', *scored, '--gradients-of', 'q,k,v')
        counted = ('attention', '--dim', 'j=16', '--mask', 'padding', '--train')
        error = self.weft('import', *counted, '--gradients-of', 'lengths', code=2).err
        self.assertIn("gradient of 'lengths': its elements are 'i32'", error)
        self.assertIn('(--gradients-of q,k,v)', error)

    def test_no_more_is_offered_than_is_legal(self):
        plan = self.weft('compile', 'attention', '--dim', 'b=2', '--dim', 'h=4', '--dim', 'j=256',
                         '--attention', 'fused', '--profile', 'none', '--stop-after', 'emit', '-o',
                         'out').out
        counts = re.search(r'coverage +([\d,]+) of ([\d,]+) legal', plan).groups()
        offered, legal = (int(count.replace(',', '')) for count in counts)
        self.assertLessEqual(offered, legal)

    def test_numbers_without_axes_are_dropped(self):
        self.assertEqual(len(self.plan(SCALARS)['kernels']), 1)

    def test_numbered_values_are_trained(self):
        """A name means one tensor in all rewritten graphs, so no layout is asked of another one."""
        plan = self.plan(NUMBERED, '--train')
        axes = {tensor['name']: ''.join(tensor['axes']) for tensor in plan['tensors']}
        self.assertEqual(axes['contract_2'], 'nurz')
        names = set(re.findall(r'%(\w+)', (self.folder / 'out/graph.mlir').read_text()))
        self.assertFalse({name for name in names if name.isdigit()})
        fused = self.plan(NUMBERED, '--attention', 'fused')
        self.assertEqual(len(fused['kernels']), 1)

    def test_fused_attention_names_why_not(self):
        (self.folder / 'graph.mlir').write_text(TABLE)
        for train in ([], ['--train']):
            error = self.weft('compile', 'graph.mlir', '--attention', 'fused', *train, '-o', 'out',
                              code=3).err
            self.assertIn("--attention fused: 'context' fits no kernel: F027", error)
            self.assertIn('the nearest alternative is --attention auto, which takes it', error)
            self.assertLess(len(error), 400)
        error = self.weft('compile', 'graph.mlir', '--attention', 'fused', '--fuse-rules', 'paper',
                          '-o', 'out', code=2).err
        self.assertIn('--attention fused with --fuse-rules paper', error)


if __name__ == '__main__':
    unittest.main()
