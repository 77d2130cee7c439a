"""Bad models and dimensions: message, exit code, and nothing left behind."""
import json
import re
import unittest

from weft_command import CommandTest, TINY

BERT = {
    'model_type': 'bert', 'hidden_size': 64, 'num_attention_heads': 4, 'intermediate_size': 128,
    'hidden_act': 'gelu', 'max_position_embeddings': 128, 'layer_norm_eps': 1e-12,
    'hidden_dropout_prob': 0.1, 'attention_probs_dropout_prob': 0.1
}


class BadModel(CommandTest):
    def rejects(self, code, *arguments, says=()):
        before = self.files()
        self.fails(code, 'compile', *arguments, '-o', 'out', says=says)
        self.assertNothingLeft(before)

    def config(self, **changes):
        values = {**BERT, **changes}
        return self.write(
            'config.json',
            json.dumps({key: value
                        for key, value in values.items() if value is not None}))

    def test_unknown_preset_names_the_nearest(self):
        self.rejects(2, 'bert-larg', says=["unknown preset 'bert-larg'", "nearest is 'bert-large'"])

    def test_missing_file(self):
        self.rejects(2, 'nowhere/config.json', says=['nowhere/config.json'])

    def test_truncated_config(self):
        path = self.config()
        path.write_text(path.read_text()[:40])
        self.rejects(2, 'config.json', says=['config.json', 'not valid JSON'])

    def test_config_that_is_no_object(self):
        self.write('config.json', '[1, 2]')
        self.rejects(2, 'config.json', says=['config.json', 'object'])

    def test_hidden_size_not_divisible_by_heads(self):
        self.config(num_attention_heads=5)
        self.rejects(2, 'config.json', says=['config.json', 'hidden_size', '64', '5'])

    def test_other_contradictions(self):
        llama = {
            'model_type': 'llama', 'hidden_size': 64, 'num_attention_heads': 4,
            'intermediate_size': 128
        }
        for changes, says in (({'num_key_value_heads': 3}, [
                "'num_attention_heads' = 4", "'num_key_value_heads' = 3"
        ]), ({'num_key_value_heads': 0}, ["'num_key_value_heads' = 0",
                                          '1..']), ({'head_dim': 15}, ['p=15', 'even']),
                              ({'hidden_size': -64}, ["'hidden_size' = -64", '1..']),
                              ({'hidden_size': 1 << 62},
                               ["'hidden_size' = 4611686018427387904", '1..'
                                ]), ({'hidden_size': 64.5}, ["'hidden_size' = 64.5", 'integer'])):
            self.write('config.json', json.dumps({**llama, **changes}))
            with self.subTest(changes):
                self.rejects(2, 'config.json', says=says)
        self.write('config.json', json.dumps(llama).replace('}', ', "hidden_size": 128}'))
        self.rejects(2, 'config.json', says=["'hidden_size' occurs twice"])

    def test_wrong_type_of_a_key(self):
        self.config(hidden_size='large')
        self.rejects(2, 'config.json', says=['hidden_size', 'integer'])

    def test_missing_key(self):
        self.config(num_attention_heads=None)
        self.rejects(2, 'config.json', says=['num_attention_heads'])

    def test_unknown_family(self):
        self.config(model_type='mamba')
        self.rejects(3, 'config.json', says=['mamba', 'bert'])

    def test_key_that_changes_the_mathematics(self):
        self.config(position_embedding_type='relative_key')
        self.rejects(3, 'config.json', says=['position_embedding_type', 'relative_key'])

    def test_harmless_keys_are_listed(self):
        self.config(vocab_size=100, torch_dtype='float32')
        result = self.weft('import', 'config.json', '--json')
        self.assertIn('vocab_size', result.json()['ignoredKeys'])

    def test_unknown_keys_are_rejected_unless_allowed(self):
        self.config(frobnicate=3)
        self.rejects(3, 'config.json', says=["key 'frobnicate' = 3", '--allow-key frobnicate'])
        lines = self.weft('import', 'config.json', '--allow-key', 'frobnicate').err.splitlines()
        self.assertIn('weft: note: keys left out by --allow-key: frobnicate', lines)
        self.rejects(2, 'config.json', '--allow-key', 'frobnicate', '--allow-key', 'frobnicat',
                     says=['--allow-key frobnicat:', "'frobnicate'"])
        self.rejects(2, 'bert-base', '--allow-key', 'frobnicate',
                     says=['bert-base', 'no config.json'])

    def test_mathematics_that_a_family_has_not(self):
        for key, value in {'norm_type': 'rms', 'use_gated_mlp': True, 'alibi': True}.items():
            self.config(**{key: value})
            with self.subTest(key):
                self.rejects(3, 'config.json',
                             says=[f"key '{key}' = ", 'changes the mathematics of a layer'])

    def test_element_type_is_obeyed_or_overridden_aloud(self):
        def imported(*flags):
            result = self.weft('import', 'config.json', *flags)
            kind = {'f16': 'xf16,', 'bf16': 'xbf16,', 'f32': 'xf32,'}
            return [name for name, text in kind.items() if text in result.out], result.err

        for asked, built in {'bfloat16': 'bf16', 'float16': 'f16', 'float32': 'f32'}.items():
            self.config(torch_dtype=asked)
            with self.subTest(asked):
                types, notes = imported()
                self.assertEqual(types, [built])
                self.assertIn(
                    f'config.json asks for {asked} elements (torch_dtype), which are {built} here',
                    notes)
                self.assertNotIn('do not change the mathematics: torch_dtype', notes)
        types, notes = imported('--dtype', 'bf16')
        self.assertEqual(types, ['bf16'])
        self.assertIn(
            'config.json asks for float32 elements (torch_dtype); --dtype bf16 overrides it', notes)
        self.weft('compile', 'config.json', '-o', 'out', '--stop-after', 'emit', '--tf32',
                  '--profile', 'none')
        self.assertEqual(json.loads((self.folder / 'out/plan.json').read_text())['dtype'], 'f32')
        self.config(torch_dtype='bfloat16')
        self.fails(2, 'import', 'config.json', '--tf32',
                   says=["elements of 'config.json' are bf16"])
        self.config(torch_dtype='float64')
        self.fails(3, 'import', 'config.json', says=["key 'torch_dtype' = \"float64\"", '--dtype'])
        self.assertEqual(imported('--dtype', 'f16')[0], ['f16'])

    def test_dropout_and_neutral_keys_stand_apart(self):
        self.config(vocab_size=100)
        keys = 'attention_probs_dropout_prob, hidden_dropout_prob'

        def imported(*flags):
            result = self.weft('import', 'config.json', *flags)
            streams = set(re.findall(r'weft\.dropout.*stream = (\d+)', result.out))
            return len(streams), result.err.splitlines()

        ops, lines = imported()
        self.assertEqual(ops, 0)
        self.assertIn('weft: note: keys that do not change the mathematics: vocab_size', lines)
        self.assertIn(f'weft: note: dropout of training, built with --train: {keys}', lines)
        ops, lines = imported('--train')
        self.assertEqual(ops, 3)
        self.assertIn(f'weft: note: dropout of training: {keys}', lines)
        ops, lines = imported('--train', '--dropout', '0')
        self.assertEqual(ops, 0)
        self.assertIn(f'weft: note: dropout of training, which --dropout 0 overrides: {keys}',
                      lines)
        self.config(hidden_dropout_prob=None)
        self.assertIn(
            'weft: note: dropout of training: attention_probs_dropout_prob, '
            'hidden_dropout_prob = 0.1',
            imported('--train')[1])

    def test_dropout_that_no_layer_has(self):
        self.config(layerdrop=0.1)
        self.rejects(3, 'config.json', '--train', says=["key 'layerdrop'", '--dropout P'])
        self.weft('import', 'config.json')

    def test_more_steps_than_learned_positions(self):
        self.config()
        self.rejects(2, 'config.json', '--dim', 'j=256',
                     says=['j=256', "'max_position_embeddings' = 128"])
        self.assertEqual(self.weft('import', 'config.json', '--json').json()['dims']['j'], 128)
        gpt2 = {'model_type': 'gpt2', 'n_embd': 64, 'n_head': 4, 'n_positions': 32}
        self.write('gpt2.json', json.dumps(gpt2))
        self.rejects(2, 'gpt2.json', '--dim', 'j=64', says=['j=64', "'n_positions' = 32"])

    def test_window_of_a_family_without_one(self):
        llama = {
            'model_type': 'llama', 'hidden_size': 64, 'num_attention_heads': 4,
            'intermediate_size': 128
        }
        self.write('llama.json', json.dumps({**llama, 'sliding_window': 16}))
        self.rejects(3, 'llama.json', says=["'sliding_window' = 16", 'mistral'])
        self.write('llama.json', json.dumps({**llama, 'sliding_window': None}))
        self.weft('import', 'llama.json')


class BadDimension(CommandTest):
    def rejects(self, *dims, says=()):
        flags = [part for dim in dims for part in ('--dim', dim)]
        self.fails(2, 'compile', 'paper-encoder', *flags, '-o', 'out', says=says)
        self.assertNothingLeft({})

    def test_unknown(self):
        self.rejects('z=4', says=["'z'", 'known:'])

    def test_zero(self):
        self.rejects('j=0', says=['--dim j=0', 'at least 1'])

    def test_negative(self):
        self.rejects('j=-3', says=['--dim j=-3', 'at least 1'])

    def test_overflowing(self):
        self.rejects('j=99999999999999999999', says=['--dim j=', 'larger than 9223372036854775807'])

    def test_gemm_overflows(self):
        self.rejects('b=4611686018427387904', says=['4611686018427387904'])

    def test_no_number(self):
        self.rejects('j=many', says=['--dim j=many', 'positive integer'])

    def test_no_equals(self):
        self.rejects('j', says=['--dim j', 'NAME=VALUE'])

    def test_twice(self):
        self.rejects('j=4', 'j=8', says=["'j' is given twice"])

    def test_contradiction(self):
        self.rejects('i=100', 'h=16', says=['100'])


class BadGraph(CommandTest):
    GRAPH = ('!a = tensor<4x8xf32, #weft.axes<i, k>>\n!b = tensor<8x6xf32, #weft.axes<k, j>>\n'
             '!c = tensor<4x6xf32, #weft.axes<i, j>>\n'
             'weft.graph @product(%x: !a, %y: !b) -> (!c) {\n'
             '  %z = weft.contract "SPEC" %x, %y : !a, !b -> !c\n  weft.return %z : !c\n}\n')

    def rejects(self, text, code=2, says=()):
        self.write('graph.mlir', text)
        before = self.files()
        self.fails(code, 'compile', 'graph.mlir', '-o', 'out', says=['graph.mlir', *says])
        self.assertNothingLeft(before)

    def test_the_good_graph_imports(self):
        self.write('graph.mlir', self.GRAPH.replace('SPEC', 'ik,kj->ij'))
        first = self.weft('import', 'graph.mlir').out
        self.assertIn('weft.contract "ik,kj->ij"', first)
        self.write('again.mlir', first)
        self.assertEqual(self.weft('import', 'again.mlir').out, first)

    def test_truncated(self):
        self.rejects(self.GRAPH.replace('SPEC', 'ik,kj->ij')[:-30])

    def test_no_graph(self):
        self.rejects('module {}\n', says=['no weft.graph'])

    def test_garbage(self):
        self.rejects('\x01\x02 not mlir')

    def test_unknown_letter(self):
        self.rejects(self.GRAPH.replace('SPEC', 'ik,kj->iz'), says=['5:', 'z'])

    def test_repeated_letter(self):
        self.rejects(self.GRAPH.replace('SPEC', 'ii,kj->ij'), says=['5:', 'i'])

    def test_extents_disagree(self):
        self.rejects(self.GRAPH.replace('SPEC', 'ik,kj->ij').replace('8x6', '9x6'), says=['8', '9'])


class Unsupported(CommandTest):
    def test_dtype(self):
        self.fails(3, 'compile', *TINY, '--dtype', 'f64', '-o', 'out', says=['f64', 'f16'])

    def test_target(self):
        self.fails(3, 'compile', *TINY, '--target', 'sm_91', '-o', 'out',
                   says=["'sm_91'", 'sm_90a'])

    def test_device(self):
        self.fails(2, 'compile', *TINY, '--device', 'h20', '-o', 'out', says=['h20', 'h200'])

    def test_model_only_devices_select_but_do_not_emit(self):
        for device in ('v100', 't4'):
            for target in ([], ['--target', 'sm_80'], ['--target', 'sm_80', '--stop-after',
                                                       'emit']):
                self.fails(3, 'compile', *TINY, '--device', device, *target, '-o', 'out',
                           says=[device, 'model-only'])
            self.assertIn('candidate kernels', self.weft('select', *TINY, '--device', device).out)
        self.assertNothingLeft({})


if __name__ == '__main__':
    unittest.main()
