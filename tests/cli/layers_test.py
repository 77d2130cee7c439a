"""--layers and --part model: what is built, how it is told, and what is rejected."""
import json
import math
import re
import unittest

import safetensors_file
from weft_command import CommandTest

DIMS = [
    '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'i=32', '--dim', 'u=64', '--stacking',
    'three'
]
CONFIG = {
    'model_type': 'gpt2', 'n_embd': 32, 'n_head': 2, 'n_layer': 2, 'n_positions': 16,
    'vocab_size': 24, 'torch_dtype': 'float16'
}


class LayersTest(CommandTest):
    def compile(self, *arguments, **options):
        return self.weft('compile', *arguments, '--stop-after', 'emit', '-o', 'out', **options)

    def test_repeated_kernels_share_their_text(self):
        said = self.compile('gpt2', '--layers', '4', *DIMS).prose()
        self.assertIn('4 layers, inference', said)
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        sources = {}
        for kernel in plan['kernels']:
            if kernel['source']:
                sources.setdefault(kernel['source'], []).append(kernel['name'])
        self.assertEqual(len(list((self.folder / 'out/kernels').glob('*.cu'))), len(sources))
        hidden = [names for file, names in sources.items() if 'gelu' in file]
        self.assertEqual([len(names) for names in hidden], [4])
        self.assertTrue(all(name.startswith('layer') for name in hidden[0]))
        self.assertIn('as weft wrote it', self.weft('emit', 'out', '--check').out)
        explained = self.weft('explain', 'out').prose()
        self.assertIn('x4', explained)
        everything = self.weft('explain', 'out', '--all').prose()
        self.assertIn('no fused candidate crosses a cut', everything)
        self.weft('explain', 'out', '--fusion', 'layer3_norm2,layer3_active')
        self.fails(3, 'explain', 'out', '--layout', 'layer3_q', says=['decided one by one'])
        self.weft('run', 'out', '--check')

    def test_ids_outside_the_vocabulary_end_a_run(self):
        """Before a GPU is looked for; and each kernel that reads a table by them reports."""
        self.compile('bert-base', '--part', 'model', '--layers', '1', '--dim', 'v=24', *DIMS)
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        reported = [plan['tensors'][parameter['tensor']]['logical'] for kernel in plan['kernels']
                    for parameter in kernel['parameters'] if parameter['kind'] == 'status']
        self.assertEqual(sorted(reported), ['tokens', 'types'])

        def inputs(**changed):
            given = {'tokens': [n % 24 for n in range(32)], 'types': [n % 2 for n in range(32)]}
            for name, (place, value) in changed.items():
                given[name][place] = value
            return str(safetensors_file.write(
                self.folder / 'inputs',
                {name: ('I32', [2, 16], values) for name, values in given.items()}))

        self.weft('run', 'out', '--check', '--inputs', inputs())
        for flags in (['--check'], []):
            for changed, says in (
                    ({'tokens': (5, 99)}, "'tokens' [0, 5] is 99, and its table has rows 0 to 23"),
                    ({'tokens': (31, 24)}, "'tokens' [1, 15] is 24, and its table has rows 0 to"),
                    ({'types': (16, -1)}, "'types' [1, 0] is -1, and its table has rows 0 to 1")):
                with self.subTest(flags=flags, changed=changed):
                    self.fails(2, 'run', 'out', *flags, '--inputs', inputs(**changed), says=[says])

    def test_marks_of_layers_decide_and_no_names(self):
        """Two equal contractions, of layers by names alone, and by marks under other names."""
        def plan_of(first, second, marks):
            marks = [f' {{weft.layer = {number} : i64}}' if marks else '' for number in (1, 2)]
            (self.folder / 'two.mlir').write_text(f"""
!x = tensor<64x64xf16, #weft.axes<b, i>>
!w = tensor<64x64xf16, #weft.axes<o, i>>
!y = tensor<64x64xf16, #weft.axes<b, o>>
!v = tensor<64x64xf16, #weft.axes<i, o>>
weft.graph @two(%x: !x, %w1: !w {{weft.parameter}}, %w2: !v {{weft.parameter}}) -> !x {{
  %{first} = weft.contract "oi,bi->bo" %w1, %x{marks[0]} : !w, !x -> !y
  %{second} = weft.contract "io,bo->bi" %w2, %{first}{marks[1]} : !v, !y -> !x
  weft.return %{second} : !x
}}
""")
            self.compile('two.mlir', '--profile', 'none')
            kernels = json.loads((self.folder / 'out/plan.json').read_text())['kernels']
            return [(kernel['name'].split('_')[0], kernel.get('layer', 0), kernel['source'])
                    for kernel in kernels if kernel['source']]
        (name, layer, source), (other, other_layer, other_source) = plan_of(
            'layer1_y', 'layer2_y', False)
        self.assertEqual((name, layer, other, other_layer), ('layer1', 0, 'layer2', 0))
        self.assertIn('layer1_y', source)
        self.assertIn('layer2_y', other_source)
        (name, layer, source), (other, other_layer, other_source) = plan_of(
            'lower', 'upper', True)
        self.assertEqual((name, layer, other, other_layer), ('lower', 1, 'upper', 2))
        self.assertEqual(source, other_source)
        self.assertIn('as weft wrote it', self.weft('emit', 'out', '--check').out)

    def test_layers_of_two_kinds_stand_by_turns(self):
        (self.folder / 'neo.json').write_text(
            json.dumps({
                'model_type': 'gpt_neo', 'hidden_size': 32, 'num_heads': 2, 'num_layers': 5,
                'window_size': 4, 'intermediate_size': 64
            }))
        self.compile('neo.json', '--layers', 'all', '--dim', 'j=16', '--stacking', 'three',
                     '--attention', 'fused')
        graph = (self.folder / 'out/graph.mlir').read_text()
        self.assertEqual((graph.count('weft.mask causal'), graph.count('weft.mask window')), (3, 2))
        said = self.weft('explain', 'out').prose()
        self.assertRegex(said, r'layer1_attention_mask +x3')
        self.assertRegex(said, r'layer2_attention_mask +x2')
        self.assertRegex(said, r' q_k_v_projection +x5')
        self.assertIn('5 layers in 6 parts', self.weft('explain', 'out', '--all').prose())
        self.assertIn('of which 4 are decided', self.weft('explain', 'out', '--all').prose())

    def test_select_folds_repeated_layers(self):
        flags = [*DIMS, '--profile', 'none']
        said = self.weft('select', 'gpt2', '--layers', '4', *flags).out
        of_layers = [line for line in said.splitlines() if re.search(r' us +1\.\.4 ', line)]
        self.assertGreater(len(of_layers), 2, said)
        for line in of_layers:
            self.assertNotIn('layer2_', line)
        # What the rows take is the plan, as the steps are.
        steps = [variant['steps'] for variant in
                 self.weft('select', 'gpt2', '--layers', '4', *flags, '--json').json()['variants']
                 if variant['chosen']][0]
        table = said.split('runner-up')[1].split('\n\n')[0]
        times = re.findall(r'^ *([\d.]+) (ns|us|ms) ', table, re.MULTILINE)
        unit = {'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3}
        self.assertLess(len(times), len(steps) / 2)
        self.assertAlmostEqual(sum(float(time) * unit[of] for time, of in times),
                               sum(step['seconds'] for step in steps), delta=2e-8 * len(times))
        self.assertNotIn(' layers ', self.weft('select', 'gpt2', *flags).out.split('runner-up')[0])

    def test_bound_and_states_of_layers_are_those_of_their_parts(self):
        """Also where limits of the search cut a part: then the bound is of what was searched."""
        flags = ['gpt2', '--layers', '3', '--train', *DIMS, '--profile', 'none']
        for memory, is_of_all in (([], True), (['--search-memory', '8M'], False)):
            answer = self.weft('select', *flags, *memory, '--json').json()
            self.assertEqual(answer['searchLimits']['boundIsOfAll'], is_of_all)
            self.assertGreater(answer['lowerBound'], 0)
            self.assertLessEqual(answer['lowerBound'], answer['plan']['seconds'] * (1 + 1e-9))
            said = self.weft('select', *flags, *memory).prose()
            self.assertRegex(said, r'states, at most [1-9]\d* at one cut')
            self.assertEqual(' in all variants that were searched, ratio' in said, not is_of_all)

    def test_diff_folds_repeated_layers(self):
        flags = [*DIMS, '--profile', 'none', '--stop-after', 'emit']
        for folder, attention in (('a', 'fused'), ('b', 'unfused')):
            self.weft('compile', 'gpt2', '--layers', '4', *flags, '--attention', attention, '-o',
                      folder)
        said = self.weft('diff', 'a', 'b', '--json', code=1).json()
        text = self.weft('diff', 'a', 'b', code=1).out
        repeated = [group for group in said['folded'] if group['groups'] > 1]
        self.assertTrue(repeated)
        self.assertEqual(sum(group['groups'] for group in said['folded']), len(said['groups']))
        for side in ('a', 'b'):
            self.assertAlmostEqual(sum(group['seconds'][side] for group in said['folded']),
                                   sum(group['seconds'][side] for group in said['groups']))
        weighted = [group for group in repeated if group['layers'] == [1, 2, 3, 4]]
        self.assertTrue(weighted, said['folded'])
        self.assertIn(f"  {weighted[0]['computes']}, each of layers 1..4: ", text)
        self.assertRegex(text, r' x4 ')
        for layer in ('layer2_', 'layer3_', 'layer4_'):
            self.assertNotIn(layer, text)

    def test_explain_all_prices_the_variants_of_every_part(self):
        self.compile('gpt2', '--layers', '4', *DIMS[:-2], '--profile', 'none')
        parts = json.loads((self.folder / 'out/report.json').read_text())['parts']
        self.assertEqual(sum(part['places'] for part in parts), 5)
        said = self.weft('explain', 'out', '--all').out
        self.assertRegex(said, r"variants of layers 1\.\.3: 'layer1_\w+' to 'layer2_norm1'\n")
        several = [part for part in parts if len(part['variants']) > 1]
        tables = said.split('\nvariants of ')[1:]
        self.assertEqual(len(tables), len(self.some(several)))
        for part, table in zip(several, tables):
            self.assertEqual(sum(variant['chosen'] for variant in part['variants']), 1)
            rows = table.split('\n\n')[0]
            self.assertEqual(len(re.findall(r' us .* us', rows)), len(part['variants']), rows)
            if len(part['layers']) > 1:
                self.assertNotIn('layer1_', rows.split('\n', 1)[1])
        self.assertEqual([len(part['variants']) for part in
                          self.weft('explain', 'out', '--json').json()['parts']],
                         [len(part['variants']) for part in parts])

    def test_the_report_has_what_is_of_a_part_once(self):
        """And a question about any layer is answered as about the first that is alike."""
        counts = {}
        for layers in ('4', '6'):
            self.compile('gpt2', '--layers', layers, *DIMS, '--profile', 'none', '--overwrite')
            report = json.loads((self.folder / 'out/report.json').read_text())
            self.assertEqual((report['fusions'], report['fusionPrices'], report['layouts']),
                             ([], [], {}))
            counts[layers] = [[len(part[member]) for member in ('fusions', 'fusionPrices')]
                              for part in report['parts']]
            placed = [op for part in report['parts'] for place in part['placed']
                      for op in place['ops']]
            self.assertEqual(sorted(placed), list(range(len(report['opLabels']))))
        self.assertEqual(counts['4'], counts['6'])
        self.assertGreater(sum(min(part) > 0 for part in counts['4']), 1)
        for pair in ('layer{0}_active,layer{0}_residual2', 'layer{0}_residual1,layer{0}_norm2'):
            texts = [self.weft('explain', 'out', '--fusion', pair.format(layer)).out
                     for layer in (2, 3, 5)]
            self.assertNotIn('no pattern', texts[1])
            self.assertEqual(texts[0].replace('layer2_', 'layer3_'), texts[1])
            self.assertEqual(texts[2].replace('layer5_', 'layer3_'), texts[1])

    def test_training_runs_through_the_layers_and_back(self):
        workspace = {}
        for layers in ('3', '5'):
            said = self.compile('bert-base', '--layers', layers, '--train', '--recompute', 'none',
                                '--attention', 'unfused', *DIMS[:10], '--stacking', 'separate',
                                '--overwrite').prose()
            self.assertIn(f'{layers} layers, training', said)
            plan = json.loads((self.folder / 'out/plan.json').read_text())
            workspace[layers] = plan['workspaceBytes']
            names = {point: [plan['kernels'][number]['name'] for number in kernels]
                     for point, kernels in plan['entryPoints'].items()}
            for point, order in (('forward', 1), ('backward', -1)):
                of_layers = [name for name in names[point] if '_q_' in name and 'wq' not in name]
                found = [name[name.index('layer') + 5] for name in of_layers]
                self.assertEqual(found[::order], sorted(found), of_layers)
        saved = (workspace['5'] - workspace['3']) / 2
        self.assertGreater(saved, 10 * 2 * 16 * 32 * 2)  # ten tensors of the input's size
        self.assertLess(workspace['5'], 8 * saved)
        results = {tensor['logical'] for tensor in plan['tensors'] if tensor['role'] == 'result'}
        self.assertEqual(len(results), 1 + 1 + 5 * 16)
        self.assertIn('as weft wrote it', self.weft('emit', 'out', '--check').out)
        self.weft('run', 'out', '--check')
        everything = self.weft('explain', 'out', '--all').prose()
        self.assertIn("cut behind 'norm2' and 'd_residual2'", everything)

    def test_an_edit_is_of_all_layers(self):
        self.compile('bert-base', '--layers', '3', *DIMS)
        file = next((self.folder / 'out/kernels').glob('*gelu*.cu'))
        file.write_text('// faster\n' + file.read_text())
        said = self.weft('emit', 'out', env={'WEFT_NVRTC': 'none'})
        self.assertIn('the edit is kept', said.err)
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        edited = [kernel['name'] for kernel in plan['kernels'] if kernel.get('edited')]
        self.assertEqual(len(edited), 3)

    def test_a_model_of_ids_has_the_type_of_its_weights(self):
        """Of its arguments, weights of tokens alone hold floats, and f32."""
        said = self.compile('gpt2', '--part', 'model', '--layers', '1', '--dim', 'b=1', '--dim',
                            'j=32', '--train').prose()
        self.assertIn('model, training, f16, for h200', said)
        self.weft('emit', 'out', '--check')

    def test_a_config_is_taken_whole(self):
        (self.folder / 'tiny.json').write_text(json.dumps(CONFIG))
        said = self.compile('tiny.json', '--part', 'model', '--stacking', 'three')
        self.assertIn('model of 2 layers', said.prose())
        self.assertIn('vocabulary v=24', said.prose())
        self.assertNotIn('vocab_size', said.err)
        graph = self.weft('import', 'tiny.json', '--part', 'model').out
        self.assertEqual(graph.count('weft.gelu_tanh'), 2)
        untied = {**CONFIG, 'tie_word_embeddings': False}
        (self.folder / 'untied.json').write_text(json.dumps(untied))
        self.assertNotIn('%output_weight', graph)
        self.assertIn('%output_weight', self.weft('import', 'untied.json', '--part', 'model').out)
        for code, key in ((3, 'vocab_size'), (2, 'n_layer')):
            lacks = {name: value for name, value in CONFIG.items() if name != key}
            (self.folder / 'lacks.json').write_text(json.dumps(lacks))
            self.fails(code, 'import', 'lacks.json', '--part', 'model', says=['--part model'])

    def test_one_layer_alone_computes_a_tensor_again(self):
        self.compile('gpt2', '--layers', '3', '--train', '--recompute', 'layer2_active',
                     '--attention', 'unfused', '--profile', 'none', *DIMS)
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        read = {plan['tensors'][tensor]['logical'] for kernel in plan['entryPoints']['backward']
                for tensor in plan['kernels'][kernel]['inputs']}
        self.assertEqual([f'layer{layer}_active' in read for layer in (1, 2, 3)],
                         [True, False, True])
        report = json.loads((self.folder / 'out/report.json').read_text())
        self.assertEqual({one['tensor']: one['recomputed'] for one in report['saved']
                          if one['tensor'].endswith('_active')},
                         {'layer1_active': False, 'layer2_active': True, 'layer3_active': False})
        self.assertIn([2], [part['layers'] for part in report['parts']])
        self.compile('gpt2', '--layers', '3', '--train', '--recompute', 'active', '--attention',
                     'unfused', '--profile', 'none', *DIMS, '--overwrite')
        report = json.loads((self.folder / 'out/report.json').read_text())
        saved = [(one['tensor'], one['recomputed'], one['bytes']) for one in report['saved']
                 if one['tensor'].endswith('active')]
        self.assertEqual(saved, [(f'layer{layer}_active', True, 2 * 2 * 16 * 64)
                                 for layer in (1, 2, 3)])
        self.fails(2, 'compile', 'gpt2', '--layers', '3', '--train', '--recompute',
                   'layer4_active', *DIMS, '--stop-after', 'select', says=['layer4_active'])

    def test_weights_of_another_type_are_all_named(self):
        (self.folder / 'tiny.json').write_text(json.dumps({**CONFIG, 'n_layer': 1}))
        self.compile('tiny.json', '--part', 'model', '--stacking', 'three')
        integers = {'wte.weight': [24, 32], 'h.0.ln_1.bias': [32]}
        weights = {name: ('I64', shape, [0] * math.prod(shape))
                   for name, shape in integers.items()}
        weights['wpe.weight'] = ('I32', [16, 32], [0] * 512)
        weights['ln_f.bias'] = ('F32', [32], [0] * 32)
        safetensors_file.write(self.folder / 'weights.safetensors', weights)
        said = self.fails(2, 'run', 'out', '--weights', 'weights.safetensors', says=[
            "'wte.weight' is I64 [24, 32]; expected [24, 32] of F32, F16 or BF16",
            "'h.0.ln_1.bias' is I64 [32]; expected [32] of F32, F16 or BF16",
            "'wpe.weight' is I32 [16, 32]; expected [at least 16, 32] of F32, F16 or BF16",
            "'h.0.ln_1.weight' is missing"
        ])
        self.assertNotIn("'ln_f.bias'", said.err)

    def test_rejections(self):
        for code, arguments, says in (
            (2, ['bert-base', '--layers', '13'], ['the model has 12 layers', '--layers all']),
            (2, ['gpt2', '--layers', '0'], ['at least 1 layer']),
            (2, ['gpt2', '--layers', 'two'], ["a number of layers or 'all'"]),
            (2, ['gpt2', '--part', 'models'], ["nearest is 'model'"]),
            (2, ['bert-base', '--layers', '2', '--dim', 'k=8'], ['k=8 must equal j=512']),
            (3, ['gpt2', '--layers', '2', '--train', '--chunks', '2'], ['--chunks']),
            (3, ['gpt2', '--layers', '2', '--part', 'attention'], ['--part layer']),
            (3, ['t5-base-encoder', '--layers', '2'], ['nearest are bert-base']),
            (3, ['attention', '--part', 'model'], ['nearest are bert-base']),
            (3, ['gpt-neo-1.3b-local', '--part', 'model'], ['nearest is --layers']),
            (3, ['masked-token', '--layers', '2'], ['the model has 4']),
            (3, ['gpt2', '--layers', '2', '--pin', 'layer1_q=phbj'], ['--pin']),
            (3, ['gpt2', '--layers', '2', '--chunks', '2'], ['--chunks', '--attention fused']),
        ):
            with self.subTest(arguments):
                self.fails(code, 'compile', *arguments, '--stop-after', 'select', says=says)
        (self.folder / 'deep.json').write_text(json.dumps({**CONFIG, 'n_layer': 1244}))
        self.fails(3, 'import', 'deep.json', '--layers', 'all', says=['1244 layers', 'at most 256'])
        self.compile('gpt-neo-1.3b-local', '--layers', '2', *DIMS)
        self.fails(3, 'run', 'out', '--weights', 'x', says=['weft models lists them'])
        self.compile('gpt2', '--layers', '2', *DIMS, '--overwrite')
        self.fails(2, 'run', 'out', '--weights', 'nowhere', says=['nowhere'])
        self.fails(3, 'opt', 'gpt2', '--layers', '2', says=['decided one by one'])

    def test_one_layer_is_as_without(self):
        one = self.weft('import', 'gpt2', *DIMS[:10]).out
        self.assertEqual(self.weft('import', 'gpt2', '--layers', '1', *DIMS[:10]).out, one)


if __name__ == '__main__':
    unittest.main()
