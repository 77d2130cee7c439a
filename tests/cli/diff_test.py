"""weft diff: kernels are paired by what they compute, and every difference names the decision that
it comes from."""
import json
import unittest

from weft_command import CommandTest, CORE, LAYER, TINY

EMITTED = ['--stop-after', 'emit']


class DiffTest(CommandTest):
    def compiled(self, folder, model, *flags):
        self.weft('compile', *model, *EMITTED, *flags, '-o', folder)
        return json.loads((self.folder / folder / 'plan.json').read_text())

    def diff(self, a='a', b='b', code=1):
        """Its JSON; the text says the same."""
        said = self.weft('diff', a, b, '--json', code=code).json()
        self.text = self.weft('diff', a, b, code=code).prose()
        self.assertEqual(said['equal'], code == 0)
        for group in said['groups']:
            self.assertTrue(group['why'], group)
            for decision in group['why']:
                self.assertIn(decision, self.text)
        return said

    def decisions(self, said):
        return {decision for group in said['groups'] for decision in group['why']}

    def kernels(self, said, side):
        return [kernel for group in said['groups'] for kernel in group['kernels'][side]]

    def assertComplete(self, said, a, b):
        """No kernel is lost, and the differences of the groups are the difference of the plans."""
        change = sum(group['seconds']['b'] - group['seconds']['a'] for group in said['groups'])
        self.assertAlmostEqual(change, b['predictedSeconds'] - a['predictedSeconds'], delta=1e-12)
        self.assertEqual(said['seconds'], {'a': a['predictedSeconds'], 'b': b['predictedSeconds']})
        self.assertEqual(said['workspaceBytes'],
                         {'a': a['workspaceBytes'], 'b': b['workspaceBytes']})
        self.assertAlmostEqual(sum(share['seconds'] for share in said['why']),
                               b['predictedSeconds'] - a['predictedSeconds'], delta=1e-12)

    def test_times_of_different_work_are_told(self):
        """A packed plan is priced at the expected lengths, a padded one at full length; and the
        gradients of one side are not the other's."""
        layer = [*LAYER, '--dropout', '0', '--stacking', 'three', '--attention', 'unfused']
        self.compiled('a', layer, '--mask', 'padding')
        self.compiled('b', layer, '--ragged', 'j', '--lengths', 'mean=0.5')
        told = 'times are of different work: every token of the bound -> valid tokens, priced at ' \
            '50% of the bound'
        self.assertEqual(self.diff()['work'], [{
            'what': 'times are of different work', 'a': 'every token of the bound',
            'b': 'valid tokens, priced at 50% of the bound'
        }])
        self.assertIn(told, self.text)
        self.compiled('c', layer, '--mask', 'padding', '--train')
        self.assertEqual(self.diff('a', 'c')['work'][0]['b'],
                         'every token of the bound, with gradients')
        self.compiled('d', layer, '--mask', 'padding', '--fuse-rules', 'none')
        self.assertEqual(self.diff('a', 'd')['work'], [])

    def test_lengths_of_one_rounded_mean_are_told_apart(self):
        """Work is compared exactly, and told as exactly as it differs: by the mean, by squares, or
        by the fills that batches have."""
        layer = [*LAYER, '--dropout', '0', '--stacking', 'three', '--attention', 'unfused',
                 '--ragged', 'j']
        equal, apart = (str(self.write(name, text)) for name, text in
                        (('equal.txt', '8:8\n'), ('apart.txt', '4:4 12:4\n')))
        for folder, lengths in (('a', 'mean=0.5'), ('b', 'mean=0.502'), ('c', equal), ('d', apart),
                                ('e', apart)):
            self.compiled(folder, layer, '--lengths', lengths)
        for a, b in (('a', 'b'), ('c', 'd'), ('a', 'c')):
            with self.subTest(a + b):
                work, = self.diff(a, b)['work']
                self.assertEqual(work['what'], 'times are of different work')
                self.assertNotEqual(work['a'], work['b'])
                self.assertIn('of its pairs', work['a'])
                self.assertIn(f"{work['a']} -> {work['b']}", self.text)
        self.assertEqual(self.diff('d', 'e', code=0)['work'], [])

    def test_equal(self):
        self.compiled('a', CORE, '--attention', 'unfused')
        self.compiled('b', CORE, '--attention', 'unfused')
        said = self.diff(code=0)
        self.assertEqual((said['groups'], said['others'], said['graph'], said['decisions']),
                         ([], [], [], []))
        self.assertEqual(self.text, 'equal')

    def test_names_of_kernels_do_not_matter(self):
        plan = self.compiled('a', CORE, '--attention', 'unfused', '--device', 'a100')
        self.compiled('b', CORE, '--attention', 'unfused', '--device', 'a100')
        text = (self.folder / 'b/plan.json').read_text()
        report = (self.folder / 'b/report.json').read_text()
        renamed = [kernel['name'] for kernel in plan['kernels'] if not kernel['source']]
        self.assertTrue(renamed)
        for name in renamed:
            text, report = text.replace(f'"{name}"', f'"another_{name}"'), report.replace(
                f'"{name}"', f'"another_{name}"')
        (self.folder / 'b/plan.json').write_text(text)
        (self.folder / 'b/report.json').write_text(report)
        said = self.diff()
        self.assertEqual(said['groups'], [])
        self.assertIn('plan.json: kernels: name', said['others'])

    def test_one_kernel_here_two_there(self):
        a = self.compiled('a', TINY)
        fused = next(kernel for kernel in a['kernels']
                     if kernel['name'].startswith('softmax_dropout'))
        b = self.compiled('b', TINY, '--no-fuse', 'probability,kept')
        said = self.diff()
        self.assertComplete(said, a, b)
        group = next(group for group in said['groups']
                     if fused['name'] in [kernel['name'] for kernel in group['kernels']['a']])
        self.assertEqual(group['why'][0], 'fusion')
        self.assertEqual(len(group['kernels']['b']), len(group['kernels']['a']) + 1)
        ops = lambda side: sorted(op for kernel in group['kernels'][side] for op in kernel['ops'])
        self.assertEqual(ops('a'), ops('b'))
        self.assertGreater(group['bytesMoved']['b'], group['bytesMoved']['a'])
        self.assertGreater(said['equalGroups'], 3)

    def test_rewritten_ops_are_paired_by_what_they_compute(self):
        """Stacked projections against single ones: the same three values."""
        a = self.compiled('a', TINY)
        b = self.compiled('b', LAYER, '--stacking', 'separate', '--attention', 'unfused')
        said = self.diff()
        self.assertComplete(said, a, b)
        stacked = next(kernel['name'] for kernel in a['kernels']
                       if kernel['name'].startswith('q_product_k_product_v'))
        group = next(group for group in said['groups']
                     if stacked in [kernel['name'] for kernel in group['kernels']['a']])
        self.assertEqual(group['why'][0], 'rewrite')
        self.assertLessEqual({'q', 'k', 'v'}, set(group['computes'].split(', ')))
        self.assertEqual(len([kernel for kernel in group['kernels']['b'] if not kernel['view']]), 3)
        self.assertIn('variant', [change['what'] for change in said['decisions']])
        # What lies far from the projections is not touched by it.
        self.assertFalse([
            group for group in said['groups']
            if 'norm2' in group['computes'].split(', ') and 'rewrite' in group['why']
        ])

    def test_layouts_and_pins(self):
        a = self.compiled('a', CORE, '--attention', 'unfused')
        score = next(tensor for tensor in a['tensors'] if tensor['logical'] == 'score')
        axes = [score['axes'][dimension] for dimension in score['order']]
        axes[0], axes[1] = axes[1], axes[0]
        b = self.compiled('b', CORE, '--attention', 'unfused', '--pin', 'score=' + ','.join(axes))
        said = self.diff()
        self.assertComplete(said, a, b)
        changed = [
            layout for group in said['groups'] for layout in group['layouts']
            if layout['tensor'] == 'score'
        ]
        self.assertTrue(changed)
        self.assertTrue(all(layout['pinned'] and layout['b'] == ''.join(axes)
                            for layout in changed))
        self.assertIn('pin', self.decisions(said))
        self.assertIn('pins', [change['what'] for change in said['decisions']])
        self.assertIn(f"layout of score: {changed[0]['a']} -> {changed[0]['b']} (pinned)",
                      self.text)

    def test_chunks_are_folded(self):
        a = self.compiled('a', CORE, '--attention', 'unfused', '--chunks', '1')
        b = self.compiled('b', CORE, '--attention', 'unfused', '--chunks', '2')
        self.assertGreater(len(b['kernels']), len(a['kernels']))
        said = self.diff()
        self.assertComplete(said, a, b)
        chunked = [kernel for kernel in self.kernels(said, 'b') if kernel['chunks'] == 2]
        self.assertEqual(len(chunked), 3)
        self.assertIn('chunks', self.decisions(said))
        self.assertNotIn('fusion', self.decisions(said))
        self.assertIn('in 2 chunks', self.text)

    def test_schedules(self):
        a = self.compiled('a', CORE, '--attention', 'unfused', '--device', 'a100')
        b = self.compiled('b', CORE, '--attention', 'unfused', '--device', 'a100', '--no-library')
        said = self.diff()
        self.assertComplete(said, a, b)
        self.assertIn('schedule', self.decisions(said))
        self.assertNotIn('rewrite', self.decisions(said))

    def test_prices_and_devices(self):
        a = self.compiled('a', CORE, '--attention', 'unfused', '--profile', 'none')
        b = self.compiled('b', CORE, '--attention', 'unfused', '--profile', 'none', '--device',
                          'a100')
        said = self.diff()
        self.assertComplete(said, a, b)
        self.assertIn('device', [change['what'] for change in said['decisions']])
        self.assertTrue(said['groups'])
        self.assertTrue(all(group['why'][0] == 'device' for group in said['groups']),
                        said['groups'])

    def test_graphs_that_differ_are_said_to_first(self):
        a = self.compiled('a', CORE, '--attention', 'unfused')
        b = self.compiled('b', ['j=32' if flag == 'j=16' else flag for flag in CORE], '--attention',
                          'unfused')
        said = self.diff()
        self.assertComplete(said, a, b)
        self.assertIn({'what': 'j', 'a': '16', 'b': '32'}, said['graph'])
        self.assertTrue(self.text.startswith('a and b compute different graphs'))
        self.assertTrue(all(group['why'][0] == 'graph' for group in said['groups']))

    def test_an_edit_shows_without_emit(self):
        plan = self.compiled('a', CORE, '--attention', 'unfused')
        self.compiled('b', CORE, '--attention', 'unfused')
        source = next(kernel['source'] for kernel in plan['kernels'] if kernel['source'])
        path = self.folder / 'b' / source
        path.write_text(path.read_text() + '// edited\n')
        said = self.diff()
        self.assertEqual([group['why'] for group in said['groups']], [['edit']])
        self.assertEqual([kernel['edited'] for kernel in self.kernels(said, 'b')], [True])
        self.assertEqual([kernel['edited'] for kernel in self.kernels(said, 'a')], [False])

    def test_training_and_inference_share_the_forward_kernels(self):
        self.compiled('a', CORE, '--attention', 'unfused')
        self.compiled('b', CORE, '--attention', 'unfused', '--train')
        said = self.diff()
        paired = [
            group for group in said['groups'] if group['kernels']['a'] and group['kernels']['b']
        ]
        added = [group for group in said['groups'] if not group['kernels']['a']]
        self.assertTrue(len(paired) + said['equalGroups'] > 0)
        self.assertTrue(added)
        self.assertFalse([group for group in said['groups'] if not group['kernels']['b']])


if __name__ == '__main__':
    unittest.main()
