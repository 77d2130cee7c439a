"""--train: the backward pass as text, and what is refused."""
import unittest

from weft_command import LAYER, CommandTest


class Train(CommandTest):
    def test_forward_and_backward_stand_in_one_graph(self):
        text = self.weft('compile', *LAYER, '--train', '--stop-after', 'differentiate').out
        self.assertIn('%d_hidden = weft.relu_dx %d_active, %active_kept', text)
        self.assertIn('%d_x = weft.add', text)
        self.assertIn('{weft.gradient_of = "wq"}', text)
        self.assertEqual(self.weft('import', *LAYER, '--train').out, text.removeprefix('// variant: unchanged\n'))
        self.assertNotIn('d_hidden', self.weft('import', *LAYER).out)

    def test_a_differentiated_graph_is_a_model(self):
        (self.folder / 'both.mlir').write_text(self.weft('import', *LAYER, '--train').out)
        fused = self.weft('compile', 'both.mlir', '--start-from', 'algebra', '--stacking', 'separate', '--attention', 'unfused',
                          '--stop-after', 'fuse').out
        self.assertIn('weft.softmax_dx', fused)
        again = self.weft('compile', 'both.mlir', '--train', '--stop-after', 'differentiate', code=2)
        self.assertIn('has a backward pass already', again.err)

    def test_gradients_and_recomputed_tensors_are_chosen_by_name(self):
        text = self.weft('import', *LAYER, '--train', '--gradients-of', 'w1,b1', '--recompute', 'active_kept,active').out
        self.assertIn('%active_kept_again = weft.dropout %active_again', text)
        self.assertIn('weft.saved = ["norm1", "hidden", "residual2", "mean2", "rstd2"]', text)
        self.assertNotIn('d_wq', text)

    def test_what_is_refused(self):
        for arguments, message in [
                (['--stop-after', 'differentiate'], '--stop-after differentiate: there is a backward pass with --train only'),
                (['--recompute', 'active'], '--recompute: chooses among gradients; add --train'),
                (['--train', '--recompute', 'active_kep'], "recompute 'active_kep': no such tensor; nearest is 'active_kept'"),
                (['--train', '--recompute', 'score'], "recompute 'score': only element-wise ops are computed again"),
                (['--train', '--gradients-of', 'gamma3'], "gradient of 'gamma3': no such argument; nearest is 'gamma1'")]:
            with self.subTest(arguments=arguments):
                result = self.weft('compile', *LAYER, *arguments, *([] if '--stop-after' in arguments else ['--stop-after', 'fuse']), code=2)
                self.assertIn(message, result.err)
                self.assertLess(len(result.err), 1000)


if __name__ == '__main__':
    unittest.main()
