"""Plans for targets before sm_90a: mma.sync take what follows them, with and without a
library beside them."""
import json
import unittest

from weft_command import CommandTest


class Warps(CommandTest):
    def fused(self, *arguments):
        """Names of the kernels of warps with more than the contraction, and the plan."""
        self.weft('compile', *arguments, '--profile', 'none', '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertFalse([
            kernel['name'] for kernel in plan['kernels'] if kernel['family'] == 'gemm-sm90'
        ])
        kernels = [kernel for kernel in plan['kernels'] if kernel['family'] == 'gemm-sm80']
        texts = {
            kernel['name']: (self.folder / 'out' / kernel['source']).read_text()
            for kernel in kernels
        }
        limit = 'weft::sm80::limitFragmentsInFlight'
        return {name for name, text in texts.items() if limit in text}, plan

    def test_a_layer_without_a_library_is_its_gemms_norms_and_softmax(self):
        for device in ('a100', 'rtx3090'):
            fused, plan = self.fused('bert-large', '--device', device, '--no-library',
                                     '--attention', 'unfused')
            self.assertEqual(
                fused, {
                    'q_product_k_product_v_projection_bias__p_h_b_j',
                    'attention_projection_bias_residual__b_j_i',
                    'hidden_projection_bias_gelu__b_j_u',
                    'feed_forward_projection_bias_residual__b_j_i'
                })
            others = {
                kernel['name'].split('__')[0]
                for kernel in plan['kernels'] if kernel['family'] == 'loop'
            }
            self.assertEqual(others, {'softmax', 'layer_norm'})

    def test_a_decomposed_softmax_begins_behind_the_gemm(self):
        fused, plan = self.fused('bert-large', '--device', 'a100', '--no-library', '--attention',
                                 'decomposed')
        self.assertTrue(
            [name for name in fused if name.startswith('score_contraction_local_softmax__h_b_j_k')])
        others = {
            kernel['name'].split('__')[0]
            for kernel in plan['kernels'] if kernel['family'] == 'loop'
        }
        self.assertLessEqual({'reduce_subvectors', 'layer_norm'}, others)
        self.assertNotIn('local_softmax', others)
        # Warps of other tiles hold no whole sub-vectors, and an edited plan is told so.
        product = next(kernel for kernel in plan['kernels']
                       if kernel['name'].startswith('score_contraction_local_softmax'))
        product['knobs'].update({'tileM': 128, 'tileN': 64, 'warpsM': 2, 'warpsN': 2})
        (self.folder / 'out/plan.json').write_text(json.dumps(plan))
        self.fails(2, 'emit', 'out',
                   says=[product['name'], '32 columns a warp, and sub-vectors of 64'])

    def test_masks_are_drawn_behind_gemms(self):
        fused, _ = self.fused('paper-encoder', '--device', 'a100', '--no-library')
        self.assertTrue([name for name in fused if 'bias_relu_dropout' in name])
        self.assertEqual(len([name for name in fused if 'bias_dropout_residual' in name]), 2)

    def test_with_a_library_they_stand_where_they_are_cheaper(self):
        fused, plan = self.fused('bert-large', '--device', 'a100')
        self.assertTrue([name for name in fused if 'bias_gelu' in name])
        self.assertTrue([kernel for kernel in plan['kernels'] if kernel['family'] == 'cublaslt'])


if __name__ == '__main__':
    unittest.main()
