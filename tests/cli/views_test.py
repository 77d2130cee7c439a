"""Parts of stacked projections reach a fused attention without copies, whatever the length and the
width of heads: what else could read them must not crowd out the layouts that make them views."""
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


if __name__ == '__main__':
    unittest.main()
