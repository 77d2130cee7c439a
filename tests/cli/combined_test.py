"""Layers of one graph that are best in different forms: the forms of several variants, combined."""
import json
import re
import unittest

from weft_command import CommandTest

DIMS = ['--dim', 'b=1', '--dim', 'j=128', '--dim', 'h=4', '--dim', 'i=256', '--dim', 'u=512']


def with_odd_heads(text):
    """Two layers of BERT: heads of the first have 20 elements, which no fused attention takes."""
    lines = text.split('\n')
    wide = [line.split(' ')[0] for line in lines if line.startswith('!') and '64x' in line]
    odd = [
        line.replace(name + ' ', name + 'o ', 1).replace('64x', '20x') for line in lines
        for name in wide if line.startswith(name + ' ')
    ]
    result = []
    for line in lines:
        if line.startswith('module'):
            result += odd
        if line.strip().startswith('weft.graph'):
            line = re.sub(r'(%layer1_\w+: )(!\w+)',
                          lambda m: m[1] + m[2] + ('o' if m[2] in wide else ''), line)
        elif '%layer1_' in line.split('=')[0]:
            for name in sorted(wide, key=len, reverse=True):
                line = re.sub(re.escape(name) + r'\b', name + 'o', line)
        result.append(line)
    return '\n'.join(result)


class CombinedTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('import', 'bert-base', '--layers', '2', *DIMS, '--dim', 'p=64', '-o', 'two.mlir')
        text = with_odd_heads((self.folder / 'two.mlir').read_text())
        (self.folder / 'mixed.mlir').write_text(text)

    def select(self, *flags):
        return self.weft('select', 'mixed.mlir', '--profile', 'none', '--json', *flags).json()

    def test_attention_is_fused_in_the_layer_alone_that_a_kernel_takes(self):
        selected = self.select()
        best, *others = selected['variants']
        self.assertIn('fuse-attention+for-layer2_', best['name'])
        self.assertLess(best['seconds'], min(other['seconds'] for other in others))
        self.assertLessEqual(selected['lowerBound'], best['seconds'])
        self.assertFalse(selected['searchLimits']['reached'])
        alone = self.select('--variant', best['name'])
        self.assertEqual([variant['name'] for variant in alone['variants']], [best['name']])
        self.assertEqual(alone['variants'][0]['seconds'], best['seconds'])
        # A pinned score of the second layer is stored, so that no layer is fused.
        scores = self.select('--pin', 'layer2_score=h,b,j,k')['variants']
        self.assertNotIn('fuse-attention', scores[0]['name'])

    def test_the_plan_is_written_and_explained(self):
        self.weft('compile', 'mixed.mlir', '--profile', 'none', '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        kernels = [kernel['name'] for kernel in plan['kernels']]
        self.assertEqual(sum(name.startswith('attention') for name in kernels), 1)
        self.assertEqual(sum('softmax' in name for name in kernels), 1)
        self.weft('explain', 'out', '--all')
        self.weft('run', 'out', '--check')

    def test_variants_of_equal_layers_are_as_many_as_of_one(self):
        one = self.weft('select', 'bert-base', *DIMS, '--dim', 'p=64', '--json').json()
        two = self.weft('select', 'two.mlir', '--json').json()
        self.assertEqual(len(two['variants']), len(one['variants']))
        self.assertFalse(two['searchLimits']['reached'])


class RejectedChoiceTest(CommandTest):
    def test_a_form_that_no_variant_has_is_an_error(self):
        core = ['attention', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'p=16']
        self.fails(3, 'select', *core, '--stacking', 'three',
                   says=['--stacking three: no projections can be stacked', 'nearest is'])
        self.fails(3, 'select', *core, '--norms', 'deferred',
                   says=['--norms deferred: no norm can be deferred', 'nearest is'])
        self.fails(3, 'select', 'bert-base', '--dim', 'b=1', '--dim', 'j=16', '--norms', 'deferred',
                   says=['--norms deferred: no norm can be deferred'])


if __name__ == '__main__':
    unittest.main()
