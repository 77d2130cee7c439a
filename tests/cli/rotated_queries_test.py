"""Queries that a fused attention turns when it loads them: chosen by price, the same results as
before, and named by explain."""
import json
import pathlib
import unittest

from weft_command import CommandTest, WEFT

GRAPH = '''
!bhgjp = tensor<2x2x3x7x32xf16, #weft.axes<b, h, g, j, p>>
!bhkp = tensor<2x2x40x32xf16, #weft.axes<b, h, k, p>>
!bhgjk = tensor<2x2x3x7x40xf16, #weft.axes<b, h, g, j, k>>
!b = tensor<2xi32, #weft.axes<b>>
weft.graph @cached(%q: !bhgjp, %k: !bhkp, %v: !bhkp, %lengths: !b) -> !bhgjp {
  %q_turned = weft.rotary %q, %lengths along (b) {dim = p, position = j, STYLE} : !bhgjp, !b
  %k_turned = weft.rotary %k {dim = p, position = k, STYLE} : !bhkp
  %score = weft.contract "bhgjp,bhkp->bhgjk" %q_turned, %k_turned {scale = 0.25}
      : !bhgjp, !bhkp -> !bhgjk
  %masked = weft.mask causal %score, %lengths along (b) {query = j, key = k} : !bhgjk, !b
  %y = weft.online_softmax_contract "bhgjk,bhkp->bhgjp" %masked, %v : !bhgjk, !bhkp -> !bhgjp
  weft.return %y : !bhgjp
}
'''
NAME = 'attention_rotary_mask'


class RotatedQueriesTest(CommandTest):
    def test_the_graph_computes_what_it_did(self):
        for device in ('a100', 'h200'):
            for style in ('style = halved', 'style = interleaved', 'turned = 16'):
                with self.subTest(device, style=style):
                    graph = self.write('graph.mlir', GRAPH.replace('STYLE', style))
                    self.weft('compile', graph, '--device', device, '-o',
                              'fused.mlir', '--stop-after', 'select')
                    fused = (self.folder / 'fused.mlir').read_text()
                    self.assertIn(f'weft.kernel @{NAME} ', fused)
                    self.assertEqual(fused.count('weft.kernel @rotary '), 1)
                    self.checkSame('graph.mlir', 'fused.mlir', '--round', within='0')

    def test_a_decoder_rotates_queries_on_load_where_that_is_cheaper(self):
        """The stack leaves queries and keys apart; explain names the kernel and both prices."""
        layer = ('llama-3-8b', '--dim', 'b=1', '--dim', 'j=256', '--device', 'a100')
        env = {'WEFT_NVRTC': 'none'}
        self.weft('compile', *layer, '-o', 'out', env=env)
        self.assertIn('turn-apart-q-k-v', self.weft('explain', 'out', '--all').out)
        text = self.weft('explain', 'out', '--kernel', NAME).out
        self.assertIn('rotary', text)
        plan = json.loads((self.folder / 'out' / 'plan.json').read_text())
        self.assertIn(NAME, [kernel['name'].split('__')[0] for kernel in plan['kernels']])
        self.weft('compile', *layer, '-o', 'apart', '--no-fuse', 'q_turned,score', env=env)
        apart = json.loads((self.folder / 'apart' / 'plan.json').read_text())
        self.assertNotIn(NAME, [kernel['name'].split('__')[0] for kernel in apart['kernels']])


if __name__ == '__main__':
    unittest.main()
