"""Parts of stacked projections reach a fused attention without copies, whatever the length and the
width of heads: what else could read them must not crowd out the layouts that make them views. A
result that regroups the axes of a computed tensor is written by the kernel that computes it."""
import json
import unittest

from weft_command import CommandTest

COMMON = ['--device', 'h200', '--profile', 'none', '--stop-after', 'emit']


class Views(CommandTest):
    def launched(self, *arguments):
        self.weft('compile', *arguments, *COMMON, '-o', 'out', '--overwrite')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertIn('fuse-attention', plan['variant'])
        self.assertIn("stack-q", plan["variant"])
        return plan, [kernel['name'] for kernel in plan['kernels']
                      if kernel['knobs'].get('family') != 'view']

    def test_no_kernel_copies_parts_of_projections(self):
        for arguments in (['gpt2', '--dim', 'b=2', '--dim', 'j=348'],
                          ['gpt2', '--dim', 'b=2', '--dim', 'j=333', '--dim', 'h=20',
                           '--dim', 'i=1280', '--dim', 'u=5120'],
                          ['bert-base', '--dim', 'b=4', '--dim', 'j=128', '--dim', 'h=15',
                           '--dim', 'p=96', '--dim', 'i=1440', '--dim', 'u=3840'],
                          ['bert-base', '--dim', 'b=1', '--dim', 'j=2752', '--dim', 'h=9',
                           '--dim', 'p=96', '--dim', 'i=864', '--dim', 'u=2304']):
            with self.subTest(arguments=arguments):
                plan, launched = self.launched(*arguments)
                copies = [name for name in launched
                          if name.startswith(('slice', 'transpose', 'bias__'))]
                self.assertEqual(copies, [])
                self.assertLess(plan['predictedSeconds'], 1.05 * plan['lowerBoundSeconds'])


# Results that regroup axes of x, a computed tensor, or of an argument.
REGROUPED = """
!in = tensor<4x16x64xf16, #weft.axes<g, r, w>>
!out = tensor<64x64xf16, #weft.axes<h, w>>
!parts = tensor<64x4x16xf16, #weft.axes<h, s, t>>
!split = tensor<4x16x4x16xf16, #weft.axes<g, r, s, t>>
module {
  weft.graph @regrouped(%%a: !in) -> (%s) {
    %%x = weft.relu %%a : !in
    %s
    weft.return %s : %s
  }
}
"""
MERGED = '%y = weft.merge_axes %x {axis = g, count = 2} : !in -> !out'
SPLIT = '%z = weft.split_axis %x {axis = w, sizes = [4, 16]} : !in -> !split'


class Results(CommandTest):
    def plan(self, *arguments):
        self.weft('compile', *arguments, *COMMON, '-o', 'out', '--overwrite')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        buffers = {tensor['name']: tensor['buffer'] for tensor in plan['tensors']}
        copies = [kernel['name'].split('__')[0] for kernel in plan['kernels']
                  if kernel['knobs'].get('family') != 'view'
                  and kernel['name'].startswith(('merge', 'split'))]
        return plan, buffers, copies

    def regrouped(self, body, results, types):
        graph = self.write('graph.mlir', REGROUPED % (types, body, results, types))
        return self.plan(graph)

    def test_grouped_attention_writes_its_result(self):
        for flags in ([], ['--attention', 'unfused'], ['--attention', 'unfused', '--chunks', '4']):
            plan, buffers, copies = self.plan('attention', '--dim', 'h=16', '--dim', 'g=4', *flags)
            self.assertEqual(copies, [], flags)
            self.assertEqual(buffers['weighted'], buffers['attention'])
        self.weft('explain', 'out', '--memory')  # which checks the plan

    def test_the_backward_pass_is_given_the_result_that_it_reads(self):
        plan, buffers, copies = self.plan('attention', '--dim', 'h=16', '--dim', 'g=4', '--train',
                                          '--attention', 'fused')
        self.assertEqual(copies, [])
        self.assertEqual(buffers['weighted'], buffers['attention'])
        self.assertEqual(buffers['d_q_grouped'], buffers['d_q'])
        backward = plan['entryPoints']['backward']
        read = {plan['tensors'][tensor]['name'] for kernel in backward
                for tensor in plan['kernels'][kernel]['inputs']}
        self.assertIn('weighted', read)
        self.weft('explain', 'out', '--memory')  # which checks the plan

    def test_one_buffer_is_one_result(self):
        for body, results, types, copied in (
            (MERGED, '%y', '!out', []),
            (SPLIT, '%z', '!split', []),
            (MERGED, '%x, %y', '!in, !out', ['merge_axes']),
            (f'{MERGED}\n{SPLIT}', '%y, %z', '!out, !split', ['merge_axes', 'split_axis']),
            (MERGED.replace('%x', '%a'), '%x, %y', '!in, !out', ['merge_axes']),
            (f'{MERGED}\n%z = weft.split_axis %y {{axis = w, sizes = [4, 16]}} : !out -> !parts',
             '%z', '!parts', ['split_axis'])):
            with self.subTest(results=results, body=body):
                plan, buffers, copies = self.regrouped(body, results, types)
                self.assertEqual(copies, copied)
                results = [tensor['buffer'] for tensor in plan['tensors']
                           if tensor['role'] in ('argument', 'result')]
                self.assertEqual(len(set(results)), len(results))


if __name__ == '__main__':
    unittest.main()
