"""--train: the backward pass as text, artifacts with two entry points, and what is rejected."""
import json
import unittest

from weft_command import LAYER, TINY, CommandTest


# A bias of keys alone.
BIAS = """
!q = tensor<2x4x512x64xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x4x512x64xf16, #weft.axes<b, h, k, p>>
!s = tensor<2x4x512x512xf16, #weft.axes<b, h, j, k>>
!bias = tensor<4x512xf16, #weft.axes<h, k>>
module {
  weft.graph @biased(%q: !q, %k: !k, %v: !k, %bias: !bias) -> !q {
    %score = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.125} : !q, !k -> !s
    %biased = weft.add %score, %bias along (h, k) : !s, !bias -> !s
    %p = weft.softmax %biased over k : !s
    %y = weft.contract "bhjk,bhkp->bhjp" %p, %v : !s, !k -> !q
    weft.return %y : !q
  }
}
"""


class Train(CommandTest):
    def test_forward_and_backward_stand_in_one_graph(self):
        text = self.weft('compile', *LAYER, '--train', '--stop-after', 'differentiate').out
        self.assertIn('%d_hidden = weft.relu_dx %d_active, %active_kept', text)
        self.assertIn('%d_x = weft.add', text)
        self.assertIn('{weft.gradient_of = "wq"}', text)
        self.assertEqual(
            self.weft('import', *LAYER, '--train').out,
            text.removeprefix('// variant: unchanged\n'))
        self.assertNotIn('d_hidden', self.weft('import', *LAYER).out)

    def test_a_differentiated_graph_is_a_model(self):
        (self.folder / 'both.mlir').write_text(self.weft('import', *LAYER, '--train').out)
        fused = self.weft('compile', 'both.mlir', '--start-from', 'algebra', '--stacking',
                          'separate', '--attention', 'unfused', '--stop-after', 'fuse').out
        self.assertIn('weft.softmax_dx', fused)
        again = self.weft('compile', 'both.mlir', '--train', '--stop-after', 'differentiate',
                          code=2)
        self.assertIn('has a backward pass already', again.err)

    def test_a_sum_beside_a_gemm_keeps_its_ops(self):
        """The kernel's product comes first, the graph's sum: each op of the chosen graph still
        reads its own operands."""
        text = self.weft('compile', 'paper-encoder', '--dim', 'b=1', '--dim', 'j=32', '--train',
                         '--profile', 'none', '--chunks', '1', '--fuse', 'd_b1,d_w1',
                         '--stop-after', 'select').out
        kernel = text[text.index('@reduce_d_w1_contraction'):].split('weft.yield')[0]
        self.assertIn('weft.contract', kernel)
        self.assertIn('weft.reduce', kernel)

    def test_a_gradient_behind_dropout_draws_no_mask_that_the_activation_holds(self):
        layer = [
            'paper-encoder', '--dim', 'b=1', '--dim', 'j=32', '--train', '--profile', 'none',
            '--stacking', 'separate', '--attention', 'unfused'
        ]
        self.assertIn('%d_active = weft.dropout',
                      self.weft('compile', *layer, '--stop-after', 'attention').out)
        self.assertIn('%d_active = weft.scale',
                      self.weft('compile', *layer, '--stop-after', 'fuse').out)
        self.assertIn(
            '%d_active = weft.dropout',
            self.weft('compile', *layer, '--fuse-rules', 'paper', '--stop-after', 'fuse').out)
        self.weft('compile', *layer, '--stop-after', 'emit', '-o', 'out')
        self.assertIn('note: d_active draws no mask: d_hidden reads active_kept',
                      self.weft('explain', 'out', '--all').out)
        kinds = [
            row['kind']
            for row in self.weft('explain', 'out', '--movement', '--json').json()['operators']
            if 'd_active' in row['results']
        ]
        self.assertEqual(kinds, ['dropout'], 'operators are counted as the paper has them')

    def test_gradients_and_recomputed_tensors_are_chosen_by_name(self):
        text = self.weft('import', *LAYER, '--train', '--gradients-of', 'w1,b1', '--recompute',
                         'active_kept,active').out
        self.assertIn('%active_kept_again = weft.dropout %active_again', text)
        self.assertIn('weft.saved = ["norm1", "hidden", "residual2", "mean2", "rstd2"]', text)
        self.assertNotIn('d_wq', text)

    def test_gradients_that_are_asked_for_alone_have_the_fused_backward_pass(self):
        """Its kernel gives all three; those that nothing reads lie in the workspace."""
        for wanted, more in (('q', []), ('k', ['--mask', 'causal', '--device', 'a100']),
                             ('q,v', []), ('k,v', []),
                             ('v', ['--dim', 'b=1', '--dim', 'h=16', '--dim', 'j=4096'])):
            with self.subTest(wanted=wanted):
                self.weft('compile', 'attention', '--train', '--gradients-of', wanted, *more,
                          '--stop-after', 'emit', '--overwrite', '-o', 'some')
                plan = self.assertWholeArtifact('some')
                self.assertEqual(plan['variant'], 'fuse-attention+all-gradients')
                self.assertEqual(len(plan['kernels']), 3)
                roles = {tensor['logical']: tensor['role'] for tensor in plan['tensors']}
                said = self.weft('explain', 'some').prose()
                self.assertNotIn('backward pass unfused', said)
                for name in 'qkv':
                    is_read = name in wanted.split(',')
                    self.assertEqual(roles[f'd_{name}'], 'result' if is_read else 'temporary')
                    if not is_read:
                        self.assertNotIn(f' d_{name} lies as', said)
                self.assertIn('checked: ', self.weft('run', 'some', '--check').out)
        # One gradient of a layer's weights comes of one of the three; all have no such variant.
        layer = ['paper-encoder', '--train', '--dim', 'b=1', '--dim', 'j=512', '--attention',
                 'fused', '--json']
        variants = [self.weft('select', *layer, *wanted).json()['plan']['variant']
                    for wanted in (['--gradients-of', 'wq'], [])]
        self.assertEqual(['all-gradients' in variant for variant in variants], [True, False])

    def test_a_trained_bias_says_that_a_gradient_of_scores_is_stored(self):
        graph = self.write('bias.mlir', BIAS)
        stored = 2 * 4 * 512 * 512 * 2
        for wanted, stores in (('q,k,v,bias', True), ('q,k,v', False)):
            self.weft('compile', graph, '--train', '--gradients-of', wanted, '--attention', 'fused',
                      '--stop-after', 'emit', '--overwrite', '-o', 'bias')
            plan = json.loads((self.folder / 'bias/plan.json').read_text())
            self.assertEqual(plan['workspaceBytes'] >= stored, stores)
            self.assertEqual('launches, fused attention, gradient of scores stored for a bias, '
                             'workspace' in self.weft('explain', 'bias').prose(), stores)

    def test_what_may_be_recomputed_is_a_choice(self):
        gelu = [
            'bert-base', *LAYER[1:], '--train', '--stacking', 'separate', '--attention', 'unfused',
            '--profile', 'none'
        ]
        names = lambda *arguments: [
            v['name']
            for v in json.loads(self.weft('select', *gelu, *arguments, '--json').out)['variants']
        ]
        variants = names()
        self.assertEqual(sorted(variants), sorted(names('--recompute', 'auto')))
        recomputed = [name for name in variants if name.startswith('recompute-')]
        self.assertGreater(len(recomputed), 0)
        self.assertIn('unchanged', variants)
        self.assertEqual(names('--recompute', 'none'), ['unchanged'])
        tensor = recomputed[0].split('+')[0].removeprefix('recompute-')
        self.assertEqual(names('--recompute', tensor), ['unchanged'])  # it is in the graph already
        self.weft('compile', *gelu, '--recompute', tensor, '--stop-after', 'emit', '-o', 'asked')
        saved = {
            one['tensor']: one['recomputed']
            for one in self.weft('explain', 'asked', '--json').json()['saved']
        }
        self.assertTrue(saved[tensor], 'explain says that it is computed again')
        self.assertIn(f'{tensor} ', self.weft('explain', 'asked', '--all').out)
        self.weft('compile', *gelu, '--stop-after', 'emit', '-o', 'out')
        saved = {
            one['tensor']: one
            for one in json.loads(self.weft('explain', 'out', '--json').out)['saved']
        }
        self.assertIsNotNone(saved[tensor]['lossOfOther'])
        self.assertGreater(saved[tensor]['bytes'], 0)
        self.assertIn('price of the other', self.weft('explain', 'out', '--all').out)

    def test_an_optimizer_updates_every_parameter(self):
        text = self.weft('import', 'masked-token', '--dtype', 'f32', '--train', '--optimizer',
                         'adamw').out
        header = text[text.index('weft.graph @'):].splitlines()[0]
        self.assertNotIn('weft.parameter', header)
        self.assertNotIn('weft.gradient_of = "layer', header.split(' -> ')[1])
        parameters = text.count('_next = weft.adamw_step ')
        self.assertEqual(parameters, 4 * 16 + 6)
        self.assertEqual(text.count('weft.average '), parameters)
        self.assertEqual(text.count('weft.average_square '), parameters)
        self.assertNotIn('_master', header)
        self.assertNotIn('inverse_loss_scale', header)
        self.assertNotIn('gradient_check', header)
        self.assertEqual(header.count('weft.update_of'), 3 * parameters)
        self.assertIn('%losses, %log_sums = weft.cross_entropy %logits, %labels over v', text)
        self.assertIn('weft.dropout', text)
        plain = self.weft('import', 'masked-token', '--dtype', 'f32', '--dropout', '0').out
        self.assertNotIn('weft.dropout', plain)
        self.assertIn('{weft.initial = "normal(0.02)", weft.parameter}', plain)

    def test_half_parameters_are_the_roundings_of_updated_masters(self):
        for dtype in ('f16', 'bf16'):
            text = self.weft('import', 'masked-token', '--dtype', dtype, '--train', '--optimizer',
                             'adamw').out
            header = text[text.index('weft.graph @'):].splitlines()[0]
            parameters = text.count('_master_next = weft.adamw_step ')
            self.assertEqual(parameters, 4 * 16 + 6)
            self.assertEqual(header.count('weft.update_of'), 4 * parameters + 1)
            self.assertIn('{weft.training = "gradientCheck", weft.update_of = "gradient_check"}',
                          header)
            for role in ('tokens', 'labels', 'weights', 'lossGradient', 'inverseLossScale',
                         'keptShare', 'stepSize', 'epsilon', 'loss'):
                self.assertEqual(header.count(f'weft.training = "{role}"'), 1)
            self.assertEqual(header.count('"normal(0.02)"'), 2 * (4 * 6 + 3))  # masters begin alike
            self.assertIn('%layer1_wq_next = weft.cast %layer1_wq_master_next '
                          '{weft.layer = 1 : i64} : ', text)
            self.assertIn('%layer1_wq_unscaled = weft.unscale %d_layer1_wq, '
                          '%inverse_loss_scale', text)
            self.assertIn('%layer1_wq_gradient_sums = weft.reduce sum %d_layer1_wq over i', text)
            self.assertRegex(text, r'%gradient_check = weft.add %\w+, %gradients_sum')
            self.assertIn('%d_loss: tensor<f32, #weft.axes<>>', header)

    def test_a_whole_model_with_its_optimizer_compiles(self):
        # The choices of attention and of what is recomputed have separate tests.
        self.weft('compile', 'masked-token', '--dtype', 'f32', '--train', '--optimizer', 'adamw',
                  '--attention', 'unfused', '--recompute', 'none', '--stop-after', 'emit', '-o',
                  'out')
        plan = self.assertWholeArtifact('out')
        ops = self.weft('import', 'masked-token', '--dtype', 'f32', '--train', '--optimizer',
                        'adamw').out.count(' = weft.')
        self.assertLess(len(plan['kernels']), ops / 2)  # most ops share kernels
        results = {tensor['logical'] for tensor in plan['tensors'] if tensor['role'] == 'result'}
        self.assertEqual(len([name for name in results if name.endswith('_next')]),
                         3 * (4 * 16 + 6))
        initial = {tensor['logical']: tensor.get('initial') for tensor in plan['tensors']
                   if tensor['role'] == 'argument'}
        updated = {name.removesuffix('_next') for name in results if name.endswith('_next')}
        self.assertEqual({name for name, value in initial.items() if value}, updated)
        self.assertEqual((initial['position_table'], initial['layer1_wq'], initial['layer1_bq'],
                          initial['layer1_gamma1'], initial['layer1_wq_mean']),
                         ('normal(0.02)', 'normal(0.02)', 'zeros', 'ones', 'zeros'))
        # A root is taken of second moments and something divided by them: random ones are positive.
        arguments = [tensor for tensor in plan['tensors'] if tensor['role'] == 'argument']
        names = {tensor['logical'] for tensor in arguments}
        self.assertEqual({tensor['logical'] for tensor in arguments if tensor.get('positive')},
                         {'epsilon'} | {name for name in names if name.endswith('_square')})

    def test_a_step_whose_arguments_nobody_gives(self):
        self.weft('compile', 'masked-token', '--dtype', 'f32', '--train', '--optimizer', 'adamw',
                  '--dropout', '0', '--dim', 'b=2', '--dim', 'j=16', '--dim',
                  'h=2', '--dim', 'i=16', '--dim', 'u=16', '--dim', 'v=128', '--mask', 'padding',
                  '--stop-after', 'emit', '-o', 'masked')
        self.fails(2, 'run', 'masked', '--steps', '1',
                   says=["reads 'lengths', which weft run --steps has no values of"])

    def test_optimizers_that_are_rejected(self):
        for arguments, code, message in [
            (['masked-token', '--dtype', 'f32', '--optimizer',
              'adamw'], 2, 'a step takes gradients; add --train'),
            (['masked-token', '--dtype', 'f32', '--train', '--optimizer',
              'adam'], 2, "unknown value; nearest is 'adamw'"),
            (['masked-token', '--dtype', 'f32', '--dropout', '1'], 2, 'at least 0 and below 1'),
            (['masked-token', '--dtype', 'f32', '--dim',
              'k=3'], 2, 'every token attends to all of its sequence'),
            (['attention', '--dtype', 'f32', '--train', '--optimizer',
              'adamw'], 2, 'an optimizer has nothing to update')
        ]:
            with self.subTest(arguments=arguments):
                self.assertIn(message, self.weft('import', *arguments, code=code).err)

    def test_what_is_rejected(self):
        for arguments, message in [
            (['--stop-after', 'differentiate'],
             '--stop-after differentiate: there is a backward pass with --train only'),
            (['--recompute', 'active'], '--recompute: chooses among gradients; add --train'),
            (['--train', '--recompute',
              'active_kep'], "recompute 'active_kep': no such tensor; nearest is 'active_kept'"),
            (['--train', '--recompute',
              'score'], "recompute 'score': only element-wise ops and norms are computed again"),
            (['--train', '--gradients-of',
              'gamma3'], "gradient of 'gamma3': no such argument; nearest is 'gamma1'")
        ]:
            with self.subTest(arguments=arguments):
                result = self.weft(
                    'compile', *LAYER, *arguments,
                    *([] if '--stop-after' in arguments else ['--stop-after', 'fuse']), code=2)
                self.assertIn(message, result.err)
                self.assertLess(len(result.err), 1000)


class Artifact(CommandTest):
    """A compiled backward pass: its entry points, and what every other command says of it."""
    def compile(self, folder='out', *arguments):
        self.weft('compile', *TINY, '--train', '--stop-after', 'emit', *arguments, '-o', folder)
        return self.assertWholeArtifact(folder)

    def test_entry_points_are_cut_where_the_gradient_comes_in(self):
        plan = self.compile()
        forward, backward = plan['entryPoints']['forward'], plan['entryPoints']['backward']
        self.assertEqual(forward + backward, list(range(len(plan['kernels']))))
        given = {n for n, tensor in enumerate(plan['tensors']) if tensor['logical'] == 'd_norm2'}
        needs = set(given)  # what depends on the gradient that comes in
        for number, kernel in enumerate(plan['kernels']):
            if needs & set(kernel['inputs']):
                needs |= set(kernel['outputs'])
                self.assertIn(number, backward, kernel['name'])
        results = {
            tensor['logical']: n
            for n, tensor in enumerate(plan['tensors']) if tensor['role'] == 'result'
        }
        writers = {
            output: number
            for number, kernel in enumerate(plan['kernels'])
            for output in kernel['outputs']
        }
        self.assertIn(writers[results['norm2']], forward)
        self.assertIn(writers[results['d_wq']], backward)

    def test_saved_tensors_lie_where_no_other_kernel_of_their_time_does(self):
        plan = self.compile()
        writers = {
            output: number
            for number, kernel in enumerate(plan['kernels'])
            for output in kernel['outputs']
        }
        saved = {
            tensor
            for number in plan['entryPoints']['backward']
            for tensor in plan['kernels'][number]['inputs']
            if writers.get(tensor) in plan['entryPoints']['forward']
        }
        self.assertIn('residual1', {plan['tensors'][tensor]['logical'] for tensor in saved})
        places = {place['buffer']: place['in'] for place in plan['memoryPlan']}
        for tensor in self.some(saved):
            self.assertEqual(places.get(plan['tensors'][tensor]['buffer'], 'workspace'),
                             'workspace', plan['tensors'][tensor]['name'])

    def test_every_command_reads_it(self):
        self.compile()
        self.assertIn('entry point backward', self.weft('run', 'out', '--check').out)
        self.assertIn('forward-and-backward',
                      self.weft('explain', 'out', '--fusion', 'norm2,d_residual2').out)
        self.weft('explain', 'out', '--layout', 'residual1')
        before = self.files('out')
        self.weft('emit', 'out', '-o', 'again')
        self.weft('emit', 'again')
        plans = [
            json.loads((self.folder / name / 'plan.json').read_text()) for name in ('out', 'again')
        ]
        self.assertEqual(plans[0]['entryPoints'], plans[1]['entryPoints'])
        self.assertEqual(plans[0]['memoryPlan'], plans[1]['memoryPlan'])
        self.assertEqual(self.files('out'), before)
        self.weft('compile', *TINY, '--stop-after', 'emit', '-o', 'forward')
        self.weft('diff', 'forward', 'out', code=1)

    def test_same_input_same_bytes(self):
        self.compile('a')
        self.compile('b')
        self.assertEqual(self.files('a'), self.files('b'))

    def test_a_plan_whose_entry_points_share_a_kernel_is_rejected(self):
        plan = self.compile()
        plan['entryPoints']['forward'].append(plan['entryPoints']['backward'][0])
        self.write('out/plan.json', json.dumps(plan))
        self.fails(2, 'run', 'out', '--check', says=['entryPoints.', 'belongs to', 'already'])

    def test_a_folder_that_is_no_artifact_is_rejected_before_work(self):
        (self.folder / 'precious').mkdir()
        self.write('precious/thesis.txt', 'years of work')
        self.fails(2, 'compile', 'no-such-model', '-o', 'precious',
                   says=['precious', 'is no artifact'])


if __name__ == '__main__':
    unittest.main()
