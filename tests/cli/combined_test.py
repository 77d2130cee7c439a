"""Layers of one graph that are best in different forms: the forms of several variants, combined."""
import json
import re
import unittest

from weft_command import LAYER, CommandTest

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


class SitesTest(CommandTest):
    """--attention, --stacking and --norms of single sites."""
    MODEL = ['bert-base', '--layers', '3', *DIMS, '--dim', 'p=64', '--profile', 'none']

    SOFTMAX = r'%(\w+probability)\w* = weft.softmax '

    def graph(self, *flags):
        self.weft('compile', *self.MODEL, *flags, '--stop-after', 'emit', '-o', 'out',
                  '--overwrite')
        return (self.folder / 'out/graph.mlir').read_text()

    def softmaxes(self):
        text = self.weft('import', *self.MODEL[:-2]).out
        return self.some(re.findall(r'%(\w+) = weft.softmax ', text))

    def test_a_layer_has_the_attention_that_is_asked_of_it(self):
        softmaxes = self.softmaxes()
        self.assertEqual(len(softmaxes), 3)
        for train in ([], ['--train']):
            with self.subTest(train):
                graph = self.graph('--attention', f'fused,{softmaxes[1]}=unfused', *train)
                self.assertEqual(re.findall(self.SOFTMAX, graph), [softmaxes[1]])
                self.assertEqual(graph.count('weft.online_softmax_contract '), 2)
                self.weft('emit', 'out', '--check')
        # A name without its layer is that of all layers, and one with it goes first.
        name = softmaxes[0].removeprefix('layer1_')
        graph = self.graph('--attention', f'{name}=unfused,{softmaxes[2]}=fused')
        self.assertEqual(re.findall(self.SOFTMAX, graph), softmaxes[:2])
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertTrue(plan['variant'].endswith('fuse-attention'), plan['variant'])

    def test_projections_of_a_layer_are_stacked_as_asked(self):
        graph = self.graph('--stacking', 'separate,layer3_k_product=three')
        self.assertEqual(re.findall(r'%(layer\d)_q_product(?:_\d+)? = weft.contract ', graph),
                         ['layer1', 'layer2'])

    def test_a_pin_that_no_site_can_hold_is_an_error(self):
        softmax = self.softmaxes()[1]
        for code, flags, says in (
            (2, ['--attention', 'layer9_probs=fused'], ["no softmax 'layer9_probs'", softmax]),
            (2, ['--norms', 'layer2_nrm1=decomposed'], ["no norm 'layer2_nrm1'", 'layer2_norm1']),
            (2, ['--stacking', 'layer2_x=two'], ["no projection 'layer2_x'"]),
            (2, ['--attention', f'{softmax}=fsed'], ["unknown value 'fsed'", "'fused'"]),
            (2, ['--attention', 'fused,unfused'], ['two values for all other sites']),
            (3, ['--stacking', 'layer2_attention_product=two'], ['is stacked with no other']),
            (3, ['--norms', 'layer2_norm1=deferred'], ['nearest is --norms layer2_norm1=fused']),
            (3, ['--train', '--norms', 'layer2_norm1=decomposed'], ['statistics']),
        ):
            with self.subTest(flags):
                self.fails(code, 'compile', *self.MODEL, *flags, '--stop-after', 'select',
                           says=says)


class ExcludedVariantsTest(CommandTest):
    def test_a_time_above_the_best_of_its_variant_is_marked(self):
        flags = [*LAYER, '--train', '--recompute', 'none', '--profile', 'none']
        variants = self.weft('select', *flags, '--json').json()['variants']
        marked = self.some([one for one in variants if one['isAtMost']])
        exact = [one for one in variants if not one['isAtMost']]
        self.assertTrue(exact[0]['chosen'])
        table = self.weft('select', *flags).out.split('\n\n')[0]
        self.assertEqual(table.count('  <= '), len(marked))
        self.assertIn('\n<=: ', table)

        def alone(one):
            found = self.weft('select', *flags, '--variant', one['name'], '--json').json()
            return found['variants'][0]['seconds']

        for one in (marked[0], marked[-1]):
            self.assertLessEqual(alone(one), one['seconds'] * (1 + 1e-9))
            self.assertLessEqual(one['lowerBound'], alone(one) * (1 + 1e-9))
        self.assertAlmostEqual(alone(exact[-1]) / exact[-1]['seconds'], 1, delta=0.005)


class RejectedChoiceTest(CommandTest):
    def test_a_form_that_no_variant_has_is_an_error(self):
        core = ['attention', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'p=16']
        self.fails(3, 'select', *core, '--stacking', 'three',
                   says=['--stacking three: no projections can be stacked', 'nearest is'])
        self.fails(3, 'select', *core, '--norms', 'deferred',
                   says=['--norms deferred: no norm can be deferred', 'nearest is'])
        for layers in ([], ['--layers', '2']):
            with self.subTest(layers):
                self.fails(3, 'select', 'bert-base', *layers, '--dim', 'b=1', '--dim', 'j=16',
                           '--norms', 'deferred',
                           says=['--norms deferred: no norm can be deferred'])


if __name__ == '__main__':
    unittest.main()
