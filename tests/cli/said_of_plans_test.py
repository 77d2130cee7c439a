"""What is said of a plan holds for that plan: its element type, what its estimates rest on, whether
it fits its GPU, and how it is profiled."""
import json
import unittest

from weft_command import CommandTest, LAYER, ROOT, TINY

TOKENS = [
    'masked-token',
    *(word for dim in ('b=2', 'j=8', 'h=2', 'i=8', 'u=8', 'v=8') for word in ('--dim', dim))
]
EMIT = ['--stop-after', 'emit']


class SaidOfPlans(CommandTest):
    def first(self, *arguments):
        return self.weft('compile', *arguments, *EMIT, '-o', 'out').prose()

    def test_a_model_that_begins_with_indices_has_the_type_of_its_weights(self):
        for flags in ([], ['--train', '--optimizer', 'adamw']):
            self.assertIn(', f32, for h200', self.first(*TOKENS, *flags))
            self.assertEqual(
                json.loads((self.folder / 'out/plan.json').read_text())['dtype'], 'f32')
            self.weft('emit', 'out')
        self.assertEqual(self.weft('import', *TOKENS, '--json').json()['dtype'], 'f32')

    def test_every_model_compiles_by_default(self):
        for model in self.some(self.weft('models', '--json').json()['models']):
            self.assertEqual(
                self.weft('import', model['name'], '--json').json()['dtype'], model['dtypes'][0])

    def test_the_error_of_estimates_is_of_what_was_measured(self):
        known = 'of f16 kernels profiled on h200 (weft profile DIR)'
        unknown = 'error unknown: it was measured of f16 kernels on h200 alone'
        for flags, isKnown in (([], True), (['--device', 'a100'], False),
                               (['--dtype', 'f32'], False), (['--dtype', 'bf16'], False)):
            self.first(*TINY, *flags)
            said = ' '.join(self.weft('explain', 'out', '--json').json()['warnings'])
            self.assertEqual((known in said, unknown in said), (isKnown, not isKnown), said)
            self.assertEqual(', and a100 is known by its data sheet alone' in said, 'a100' in flags)

    def test_a_plan_that_its_gpu_cannot_hold_says_so(self):
        self.assertRegex(
            self.first('bert-large', '--dim', 'b=100000'),
            r'! takes [78]\d\d GB \(parameters, arguments, results, workspace\); h200 has 141 GB')
        self.assertNotIn('! takes ', self.first(*TINY))
        for device in self.some(self.weft('devices', '--json').json()['devices']):
            self.assertGreater(device['memoryBytes'], 1e9)
            self.assertIn('GB', device['sources']['memoryBytes'])

    def test_an_artifact_is_profiled_as_what_it_was_compiled_from(self):
        for flags in (['--train'], ['--device', 'a100', '--dtype',
                                    'f32'], ['--no-library', '--pin', 'score=bhjk']):
            asked = self.weft('profile', *TINY, *flags, '--dry-run').out
            self.first(*TINY, *flags)
            self.assertEqual(self.weft('profile', 'out', '--dry-run').out, asked)
        self.assertNotEqual(self.weft('profile', *TINY, '--dry-run').out, asked)
        for flags in (['--dim', 'b=3'], ['--train'], ['--device',
                                                      'h100'], ['--attention', 'unfused']):
            self.fails(2, 'profile', 'out', *flags, '--dry-run',
                       says=[f"{flags[0]}: 'out' is an artifact"])
        self.assertIn('(weft profile DIR)', self.weft('explain', 'out').prose())

    def test_a_target_is_one_that_the_device_runs(self):
        self.first(*TINY, '--device', 'rtx3090', '--target', 'sm_80')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertEqual((plan['device'], plan['target']), ('rtx3090', 'sm_80'))
        profile = str(ROOT / 'profiles/h200/encoders.txt')
        for command, flags, says in (
            ('compile', ['--target', 'sm_80', '-o', 'other'], ['h200 (sm_90a)', '--device a100']),
            ('compile', ['--target', 'sm_80', '--profile', profile, '-o', 'other'], ['h200']),
            ('compile', ['--device', 'a100', '--target', 'sm_90a', '-o', 'other'],
             ['a100 (sm_80)', '--device h100 or h200']),
            ('compile', ['--device', 'a100', '--target', 'sm_86', '-o', 'other'], ['a100 (sm_80)']),
            ('compile', ['--target', 'sm_99', '--stop-after', 'select'], ["'sm_99'", 'sm_90a']),
            ('select', ['--target', 'sm_75'], ["'sm_75'", 'sm_80']),
            ('select', ['--device', 't4', '--target', 'sm_80'], ['t4 (sm_75)']),
            ('profile', ['--target', 'sm_86', '--dry-run'], ['h200 (sm_90a)', '--device'])):
            with self.subTest(command=command, flags=flags):
                self.fails(3, command, *TINY, *flags, says=says)
        self.assertFalse((self.folder / 'other').exists())

    def test_products_that_a_mask_leaves_out_are_not_counted(self):
        # A window of 256, measured in strided views: with all keys it is 575% of the peak.
        self.first('gpt-neo-1.3b-local', '--dim', 'j=4096')
        peak = 989e12
        kernels = json.loads((self.folder / 'out/plan.json').read_text())['kernels']
        self.assertTrue(any(one['measured'] and one['family'] == 'attention-sm90'
                            for one in kernels))
        self.first('gpt-neo-1.3b-local', '--dim', 'j=4096', '--profile', 'none', '--overwrite')
        estimated = json.loads((self.folder / 'out/plan.json').read_text())['kernels']
        flop = lambda plan: {one['flop'] for one in plan if one['family'] == 'attention-sm90'}
        self.assertEqual(flop(kernels), flop(estimated))
        for one in kernels:
            self.assertLessEqual(one['flop'], 1.15 * peak * one['seconds'], one['name'])

    def test_axes_have_their_words(self):
        said = self.first('llama-3-8b', '--dim', 'j=16', '--profile', 'none')
        for words in ('batch b=1', 'sequence j=16 k=16', 'heads h=32', 'key heads g=8 r=4',
                      'head p=128 w=128', 'hidden i=4096', 'feed-forward u=14336'):
            self.assertIn(words, said)
        self.assertTrue(
            self.first('attention', '--dim', 'j=16').startswith('attention attention, inference'))
        self.assertNotIn('up to 0.00 us',
                         self.first('llama-3-8b', '--dim', 'j=1', '--profile', 'none'))

    def test_small_times_are_not_zeros(self):
        small = ['attention', *(word for dim in ('b=1', 'j=64', 'h=2', 'g=2', 'p=16', 'w=16')
                                for word in ('--dim', dim))]
        said = self.first(*small)
        self.assertRegex(said, r'roofline \d+(\.\d+)? ns')
        self.assertNotRegex(said, r'(?<![\d.])0\.0\d us')
        self.assertNotRegex(self.weft('explain', 'out').prose(), r'(?<![\d.])0\.0\d us')

    def test_one_is_singular(self):
        self.write(
            'relu.mlir', '!t = tensor<8x64xf16, #weft.axes<b, i>>\nmodule {\n'
            '  weft.graph @g(%x: !t) -> !t {\n    %y = weft.relu %x : !t\n'
            '    weft.return %y : !t\n  }\n}\n')
        said = self.first('relu.mlir') + self.weft('select', 'relu.mlir').prose()
        for wrong in (r'\b1 of 1 kernels', r'(?<![\d,.])1 (kernels|variants|launches|transposes)'):
            self.assertNotRegex(said, wrong)
        self.assertIn('1 of 1 kernel ', said)
        self.assertIn('1 variant,', said)

    def test_an_option_that_forbids_a_fusion_is_named_as_the_cause(self):
        pair = 'hidden_product,hidden'
        for flags, cause in ((['--no-fuse', pair], f'--no-fuse {pair} keeps them apart'),
                             (['--fuse-rules', 'none'], '--fuse-rules none forbids it'),
                             (['--fuse-rules', 'paper'], '--fuse-rules paper forbids it')):
            self.first(*TINY, *flags)
            said = self.weft('explain', 'out', '--fusion', pair)
            self.assertIn(f'are not fused; fusing them: no plan does: {cause}', said.prose())
            price, = self.weft('explain', 'out', '--fusion', pair, '--json').json()['prices']
            self.assertEqual(price['whyNone'], cause)
        self.first(*TINY, '--no-fuse', pair)
        self.assertIn(f'F050 forbidden-by-option (--no-fuse {pair})',
                      self.weft('explain', 'out', '--fusion', pair).prose())
        self.first(*TINY, '--fuse', pair)
        self.assertIn(f'separating them: no plan does: --fuse {pair} fuses them',
                      self.weft('explain', 'out', '--fusion', pair).prose())

    def test_select_says_why_a_slower_variant_is_chosen_where_it_is_shown(self):
        traded = ['bert-large', '--attention', 'decomposed', '--memory-trade', '25']
        said = self.weft('select', *traded)
        rows = said.out.split('\n\n')[0]
        self.assertRegex(' '.join(rows.split()), r'\* is slower, chosen for its workspace '
                         r'\(--memory-trade\): .* within [\d.]+ MB')
        free = self.weft('select', *traded, '--json').json()['freeWorkspaceBytes']
        self.assertIn(f'within {free / 1e6:.1f} MB', ' '.join(rows.split()))
        self.assertRegex(said.prose(), r'; --memory-trade: as one graph the plan is [\d.]+% slower '
                         r'than the fastest, and takes [\d.]+ MB less workspace')
        for flags in (traded[:3], [*traded, '--chunks', '1']):
            self.assertNotIn('is slower, chosen', self.weft('select', *flags).out)
        # Two chunks of the core of attention find scores in L2 that the whole stores and loads.
        chunked = self.weft('select', 'attention', '--attention', 'unfused').prose()
        self.assertIn('as one graph no other is faster', chunked)

    def test_the_bound_has_one_name(self):
        said = self.weft('select', *TINY, '--dot', 'graph.dot').out
        self.assertIn('best weft could choose', said.splitlines()[0])
        drawing = (self.folder / 'graph.dot').read_text()
        self.assertIn(', best weft could choose ', drawing)
        self.assertNotIn('lower bound', said + drawing)

    def test_a_number_of_chunks_that_no_plan_takes_is_rejected_with_the_nearest(self):
        said = self.fails(3, 'select', 'bert-large', '--chunks', '3', says=[
            'no plan in 3 chunks: ', 'indices are not divisible into 3 chunks', 'legal and nearest'
        ]).err
        nearest = [line.split()[1] for line in said.split('legal and nearest: ')[1].split(', ')]
        self.assertEqual(nearest, ['2', '4'])
        for count in nearest:
            plan = self.weft('select', 'bert-large', '--chunks', count, '--json').json()['plan']
            self.assertEqual(plan['chunks'], int(count))

    def test_names_with_line_ends_stay_within_their_line(self):
        self.weft('import', *LAYER, '-o', 'ev\n! forged\x1b[31m.mlir')
        said = self.weft('compile', 'ev\n! forged\x1b[31m.mlir', *EMIT, '-o', 'nl\n! name')
        for result in (said, self.weft('explain', 'nl\n! name'), self.weft('emit', 'nl\n! name')):
            self.assertNotIn('\x1b', result.out)
            for line in self.some(result.out.splitlines()):
                self.assertFalse(line.startswith(('! forged', '! name')), line)
            self.assertIn('ev\\n! forged\\x1b[31m', result.out)
        self.assertIn('wrote nl\\n! name', said.out)

    def test_names_that_are_nearly_right(self):
        self.assertEqual(self.fails(2, 'models', 'foo').err.count(' gpt2,'), 1)
        self.weft('import', *LAYER, '-o', 'good.mlir')
        text = (self.folder / 'good.mlir').read_text()
        self.assertIn('weft.softmax', text)
        self.write('bad.mlir', text.replace('weft.softmax', 'weft.sofmax'))
        self.fails(2, 'select', 'bad.mlir',
                   says=["bad.mlir:", "'weft.sofmax' is unknown; nearest is 'weft.softmax'"])
        self.fails(2, 'select', *TINY, '--sm', '80',
                   says=["unknown option '--sm'; nearest is '--target'"])
        self.write('empty.json', '')
        self.fails(2, 'import', 'empty.json', says=['empty.json: is empty'])
        self.fails(2, 'import', 'none.json', says=['none.json: there is no such file'])


if __name__ == '__main__':
    unittest.main()
