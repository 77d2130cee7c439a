"""Scores with biases: --score and --mask document of the attention preset, and the presets that use
them: ALiBi, T5, the decoder layer with cross attention. All ways to run one are one function, and
fused attention takes every one of them."""
import json
import pathlib
import re
import unittest

from weft_command import CORE, WEFT, CommandTest

FORMS = {
    'alibi': ['--score', 'alibi'],
    'capped': ['--score', 'softcap=20'],
    'relative': ['--score', 'relative=5'],
    'documents': ['--mask', 'document'],
    'all': ['--score', 'softcap=20,alibi,relative=5', '--mask', 'causal,document'],
    'grouped': ['--dim', 'g=2', '--score', 'alibi,relative=3', '--mask', 'causal'],
}
# Six heads: no power of two.
ATTENTION = ['attention', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=6', '--dim', 'p=16']
SMALL = ['--dim', 'b=2', '--dim', 'j=24', '--dim', 'h=3', '--dim', 'i=48', '--dim', 'u=32']
LAYERS = {
    'bloom-560m': SMALL,
    'mpt-7b': SMALL,
    'deberta-base': SMALL,
    't5-base-encoder': [*SMALL, '--dim', 'p=16'],
    't5-base-decoder': [*SMALL, '--dim', 'p=16', '--dim', 'm=17'],
    'transformer-decoder': [*SMALL, '--dim', 'm=17']
}
NO_BUILD = {'WEFT_NVRTC': 'none'}


class ScoreFormsTest(CommandTest):
    def kernels(self, folder):
        kernels = self.weft('explain', folder, '--json').json()['kernels']
        return [' '.join(re.search(r'= (\w+)', op)[1] for op in kernel['ops'])
                for kernel in kernels]

    def fused(self, model, flags, count, device='h200'):
        """Compiles it fused, and gives the kernels that hold the attentions."""
        self.weft('compile', model, *flags, '--attention', 'fused', '--device', device,
                  '--stop-after', 'emit', '-o', 'out', '--overwrite')
        attentions = [ops for ops in self.kernels('out') if 'online_softmax_contract' in ops]
        self.assertEqual(len(attentions), count, attentions)
        for ops in attentions:
            self.assertTrue(ops.startswith('contract '), ops)
        return attentions

    def test_every_form_is_one_kernel_on_both_architectures(self):
        for name, flags in FORMS.items():
            for device in ('h200', 'a100'):
                with self.subTest(name, device=device):
                    ops = self.fused('attention', [*ATTENTION[1:], *flags], 1, device)[0]
                    self.assertEqual('alibi' in ops, 'alibi' in flags[-1] or 'all' in name
                                     or name == 'grouped')
                    self.weft('run', 'out', '--check')

    def check_kinds(self, model, flags, kinds):
        """Compiles a model in each kind, and evaluates its kernels beside the graph as it was
        imported, in fp64 and unrounded."""
        self.weft('import', model, *flags, '-o', 'imported.mlir')
        for kind in kinds:
            with self.subTest(model, flags=flags, kind=kind):
                self.weft('compile', model, *flags, '--attention', kind, '--stop-after', 'emit',
                          '-o', 'out', '--overwrite')
                self.weft('run', 'out', '--check')
                self.checkSame('imported.mlir', 'out/graph.mlir')

    def test_every_kind_of_attention_is_the_same_function(self):
        for flags in FORMS.values():
            self.check_kinds('attention', [*ATTENTION[1:], *flags],
                             ('unfused', 'decomposed', 'recomposed', 'fused'))

    def test_slopes_are_part_of_the_first_gemm(self):
        """Unfused attention may compute them in its epilogue."""
        self.weft('compile', *CORE, '--score', 'alibi', '--attention', 'unfused', '--fuse',
                  'score,score_sloped', '--stop-after', 'emit', '-o', 'out')
        self.assertIn('contract alibi', self.kernels('out'))

    def test_layers_compile_fused_on_both_architectures(self):
        for model, flags in LAYERS.items():
            attentions = 2 if '--dim m=17' in ' '.join(flags) else 1
            for device in ('h200', 'a100'):
                with self.subTest(model, device=device):
                    found = self.fused(model, flags, attentions, device)
                    word = 'alibi' if model in ('bloom-560m', 'mpt-7b') else 'relative_bias'
                    self.assertEqual(sum(word in ops for ops in found),
                                     0 if model == 'transformer-decoder' else 1)
                    self.weft('run', 'out', '--check')

    def test_layers_are_one_function_unfused(self):
        for model, flags in LAYERS.items():
            self.check_kinds(model, flags, ('unfused', ))

    def test_presets_choose_fused_attention_by_themselves(self):
        """At their own extents; keys and values of a memory are one GEMM."""
        for model, device, families in (('bloom-560m', 'h200', ['attention-sm90']),
                                        ('t5-base-encoder', 'h200', ['attention-sm90']),
                                        ('transformer-decoder', 'a100', ['attention-sm80'] * 2)):
            with self.subTest(model):
                self.weft('compile', model, '--device', device, '--stop-after', 'emit', '-o', 'out',
                          '--overwrite')
                plan = json.loads((self.folder / 'out/plan.json').read_text())
                self.assertIn('fuse-attention', plan['rewrites'])
                self.assertEqual([
                    kernel['family']
                    for kernel in plan['kernels'] if kernel['family'].startswith('attention')
                ], families)
        self.assertIn('stack-cross_k_product-cross_v_product', plan['rewrites'])

    def test_the_decoder_layer_trains(self):
        self.weft('compile', 'transformer-decoder', *LAYERS['transformer-decoder'], '--train',
                  '--attention', 'unfused', '--stacking', 'three', '-o', 'out', env=NO_BUILD)
        self.weft('run', 'out', '--check')
        results = [tensor['name']
                   for tensor in json.loads((self.folder / 'out/plan.json').read_text())['tensors']
                   if tensor['role'] == 'result']
        self.assertTrue(any('memory' in name for name in results), results)


class BadScoreFormsTest(CommandTest):
    def rejects(self, *arguments, says):
        self.fails(2, 'compile', *arguments, '-o', 'out', says=says)
        self.assertNothingLeft({})

    def test_words(self):
        for form, says in {
                'alib': ["--score alib: unknown form; nearest is 'alibi'"],
                'softcap': ['--score softcap: expected a positive bound of scores'],
                'softcap=0': ['--score softcap=0: expected a positive bound'],
                'softcap=-5': ['--score softcap=-5: expected a positive bound'],
                'softcap=inf': ['--score softcap=inf: expected a positive bound'],
                'softcap=5x': ['--score softcap=5x: expected a positive bound'],
                'relative': ['--score relative: expected the farthest distance'],
                'relative=0': ['--score relative=0: expected the farthest distance'],
                'relative=1048577': ['1 to 1048576'],
                'alibi,alibi': ["'alibi' is given twice"],
                'relative=2,relative=3': ["--score relative=3: 'relative' is given twice"]
        }.items():
            with self.subTest(form):
                self.rejects(*CORE, '--score', form, says=says)

    def test_models_without_the_choice(self):
        self.rejects('gpt2', '--score', 'alibi',
                     says=['gpt2: --score alibi', "nearest is the preset 'attention'"])

    def test_documents_of_more_queries_than_keys(self):
        self.rejects(*CORE, '--dim', 'k=8', '--mask', 'document',
                     says=['j=16 queries stand at the last of k=8 keys', 'k is at least j'])

    def test_t5_trains_beside_its_biases(self):
        layer = ['t5-base-encoder', *LAYERS['t5-base-encoder'], '--train', '--optimizer', 'adamw']
        answer = self.fails(
            3, 'compile', *layer, '-o', 'out',
            says=['t5-base-encoder', '--train', "the gradient of 'relative_table'"])
        self.assertNothingLeft({})
        others = answer.err.split()[-1]
        self.assertNotIn('relative_table', others)
        self.weft('compile', *layer, '--gradients-of', others, '--stop-after', 'emit', '-o', 'out')
        results = {tensor['logical'] for tensor in self.assertWholeArtifact('out')['tensors']
                   if tensor['role'] == 'result'}
        self.assertIn('wq_next', results)
        self.assertNotIn('relative_table_next', results)
        self.fails(3, 'compile', 'deberta-base', '--train', '-o', 'other',
                   says=['deberta-base', "the gradient of 'b", "'wq', ",
                         'biases of scores by distance', '--gradients-of'])
        self.weft('compile', 'deberta-base', '--train', '--gradients-of', 'w1,w2', '--stop-after',
                  'emit', '-o', 'other')
        self.fails(3, 'compile', 'deberta-base', '--train', '--gradients-of', 'w1,x', '-o', 'third',
                   says=["the gradient of 'x' is not written"])


if __name__ == '__main__':
    unittest.main()
