"""weft compile --measure on the stand-in for the driver, whose kernels take the time that its
settings say."""
import json
import pathlib
import unittest

from weft_command import CORE, WEFT, CommandTest

DRIVER = pathlib.Path(WEFT).resolve().parents[1] / 'tests/fakecuda/libcuda.so.1'
PLAIN = [*CORE, '--no-library', '--profile', 'none', '--concurrent', 'off']


class MeasureTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.driver = self.folder / 'driver'
        self.driver.mkdir()
        (self.driver / 'libcuda.so.1').symlink_to(DRIVER)

    def with_driver(self, **settings):
        """The environment of a machine whose driver has these settings."""
        (self.driver / 'fakecuda.txt').write_text(''.join(f'{name} {value}\n'
                                                          for name, value in settings.items()))
        return {'LD_LIBRARY_PATH': str(self.driver)}

    def measure(self, *flags, **settings):
        self.weft('compile', *PLAIN, '-o', 'plan', *flags, env=self.with_driver(**settings))
        return self.assertWholeArtifact('plan'), json.loads(
            (self.folder / 'plan/report.json').read_text())['measuredPlans']

    def assertRejected(self, code, flags, says, env):
        before = self.files()
        self.fails(code, 'compile', *PLAIN, '-o', 'plan', *flags, says=says, env=env)
        self.assertNothingLeft(before)


class ChoiceTest(MeasureTest):
    def test_the_fastest_is_kept_and_its_time_is_its_own(self):
        launch, block = 2000, 50000
        plan, timed = self.measure('--measure=6', '--chunks', '1', '--attention', 'unfused',
                                   launchNanoseconds=launch, blockNanoseconds=block)
        self.assertEqual(len(timed), 6)
        others = [one['optimistic'] for one in timed[1:]]  # the first is what selection chose
        self.assertEqual(others, sorted(others))
        chosen = [one for one in timed if one['chosen']]
        self.assertEqual(len(chosen), 1)
        self.assertFalse(
            timed[0]['chosen'],
            'the predicted best has more blocks than another: nothing was decided here')
        self.assertEqual(chosen[0]['measured'], min(one['measured'] for one in timed))
        # What is written is what was timed.
        grids = [kernel['grid'] for kernel in plan['kernels'] if kernel['cubin']]
        seconds = sum(1e-9 * (launch + block * x * y * z) for x, y, z in grids)
        self.assertAlmostEqual(plan['measurement']['seconds'], seconds, delta=1e-4 * seconds)
        self.assertEqual(plan['measurement']['seconds'], chosen[0]['measured'])
        self.assertAlmostEqual(plan['measurement']['ratio'] * plan['predictedSeconds'], seconds,
                               delta=1e-4 * seconds)
        self.assertEqual(plan['variant'], chosen[0]['variant'])
        self.assertIn('n=25 rounds', plan['measurement']['protocol'])
        # And so is the graph: taken together with the plan, it gives the same artifact again.
        self.weft('emit', 'plan')
        self.assertEqual(json.loads((self.folder / 'plan/plan.json').read_text()), plan)

    def test_equal_times_keep_the_prediction(self):
        # Kernels of no blocks' cost: plans of equally many launches take equally long.
        plan, timed = self.measure('--measure', '--attention', 'unfused',
                                   launchNanoseconds=2000)
        self.assertEqual(len(timed), 4)
        self.assertTrue(timed[0]['chosen'])
        self.assertEqual(timed[0]['measured'], timed[1]['measured'])
        self.assertEqual(plan['predictedSeconds'], timed[0]['predicted'])

    def test_explain_and_emit(self):
        plan, timed = self.measure('--measure', launchNanoseconds=2000, blockNanoseconds=100)
        said = self.weft('explain', 'plan', '--all').out
        self.assertIn(' measured as one CUDA graph; ', said)
        self.assertIn('whole graph', said)
        self.assertIn('timed as whole graphs: Stand-in', said)
        self.assertEqual(self.weft('explain', 'plan', '--json').json()['measuredPlans'], timed)
        self.weft('emit', 'plan')
        self.assertEqual(
            json.loads((self.folder / 'plan/plan.json').read_text())['measurement'],
            plan['measurement'])

    def test_chunks_are_compared_with_the_whole(self):
        unfused = ['--attention', 'unfused']  # whose scores are what chunks are of
        self.weft('compile', *PLAIN, *unfused, '--chunks', '1', '-o', 'whole')
        whole = json.loads((self.folder / 'whole/plan.json').read_text())
        # Each launch costs much: a plan in chunks is timed, and loses.
        timed = self.measure('--measure=8', '--chunks', '0', *unfused, launchNanoseconds=5000)[1]
        self.assertTrue(any(one['chunks'] > 1 and 'measured' in one for one in timed), timed)
        self.assertEqual([one['chunks'] for one in timed if one['chosen']], [1])
        # Within a limit that only chunks meet, the whole is not among them.
        limit = whole['workspaceBytes'] - 1
        plan, timed = self.measure('--measure', '--chunks', '0', *unfused, '--max-memory',
                                   str(limit), launchNanoseconds=5000)
        self.assertLessEqual(plan['workspaceBytes'], limit)
        self.assertTrue(
            all(one['chunks'] > 1 or one['variant'] != whole['variant'] for one in timed), timed)
        self.assertEqual(plan['measurement']['seconds'],
                         min(one['measured'] for one in timed if 'measured' in one))

    def test_an_unmeasured_plan_says_so(self):
        self.weft('compile', *PLAIN, '-o', 'plan')
        self.assertIsNone(self.assertWholeArtifact('plan')['measurement'])
        self.assertNotIn('whole graph', self.weft('explain', 'plan', '--all').out)
        self.assertIn(' predicted as one CUDA graph; ', self.weft('explain', 'plan').out)


class ConcurrencyTest(MeasureTest):
    PROJECTIONS = [
        *CORE[1:], '--dim', 'w=16', '--dim', 'i=32', '--dim', 'u=32', '--dtype', 'f32',
        '--no-library', '--profile', 'none', '--chunks', '1', '--stacking', 'separate'
    ]

    def compile(self, *flags, **settings):
        self.weft('compile', 'paper-encoder', *self.PROJECTIONS, '-o', 'plan', *flags,
                  env=self.with_driver(**settings))
        return self.assertWholeArtifact('plan'), json.loads(
            (self.folder / 'plan/report.json').read_text())['measuredPlans']

    def test_the_kept_plan_is_timed_concurrently(self):
        plan, timed = self.compile('--measure=2', launchNanoseconds=2000)
        self.assertEqual([one['concurrent'] for one in timed], [False, False, False, True])
        # The stand-in runs one kernel at a time: nothing is gained, and the plan stays as it was.
        self.assertEqual([one['chosen'] for one in timed], [False, False, True, False])
        self.assertFalse(plan['concurrent'])
        self.assertEqual(plan['measurement']['seconds'], timed[2]['measured'])
        self.assertIn(', concurrent', self.weft('explain', 'plan', '--all').prose())

    def test_asked_for(self):
        in_order = self.compile('--concurrent', 'off')[0]
        plan, timed = self.compile('--concurrent', 'on', '--measure=2', launchNanoseconds=2000)
        self.assertTrue(plan['concurrent'])
        self.assertTrue(all(one['concurrent'] for one in timed))
        self.assertRegex(
            self.weft('explain', 'plan', '--all').prose(),
            'concurrent: .* the longest chain of those that do takes')
        self.assertGreaterEqual(plan['workspaceBytes'], in_order['workspaceBytes'])

        def chain_length(one):
            ends = []
            for kernel in one['kernels']:
                ends.append(1 + max((ends[before] for before in kernel['after']), default=0))
            return max(ends)

        self.assertLessEqual(chain_length(plan), chain_length(in_order))
        self.assertLess(chain_length(plan), len(plan['kernels']), 'nothing may run at once')
        for choice in ('on', 'off'):
            self.assertIn(
                'whole graph',
                self.weft('time', 'plan', '--rounds', '3', '--concurrent', choice,
                          env=self.with_driver(launchNanoseconds=2000)).out)
        self.fails(2, 'time', 'plan', '--concurrent', 'many',
                   says=["--concurrent 'many': neither on nor off"], env=self.with_driver())
        self.fails(2, 'compile', 'paper-encoder', '--concurrent', 'many', '-o', 'other',
                   says=['--concurrent'], env=self.with_driver())


class PipelineTest(MeasureTest):
    UNFUSED = [*CORE, '--attention', 'unfused', '--no-library', '--profile', 'none']

    def compile(self, *flags, **settings):
        self.weft('compile', *self.UNFUSED, '-o', 'plan', *flags, '--overwrite',
                  env=self.with_driver(**settings))
        plan = self.assertWholeArtifact('plan')
        return plan, json.loads((self.folder / 'plan/report.json').read_text())

    def test_slices_are_weighed_and_measured(self):
        plan, report = self.compile('--pipeline', 'auto', '--measure=8', launchNanoseconds=2000)
        timed = report['measuredPlans']
        self.assertTrue(any(one.get('pipelined') and 'measured' in one for one in timed), timed)
        self.assertTrue(any(one['chunks'] == 1 and 'measured' in one for one in timed), timed)
        # The stand-in runs one kernel at a time: more launches are slower.
        self.assertEqual([one['chunks'] for one in timed if one['chosen']], [1])
        self.assertFalse(plan['concurrent'])
        self.assertEqual([one['slices'] for one in report['pipeline']], [1, 2])
        said = self.weft('explain', 'plan', '--all').prose()
        self.assertIn('--pipeline: predicted as one graph: without slices', said)
        self.assertIn(', 2 slices', said)
        self.weft('explain', 'plan', '--json')

    def test_a_number_of_slices(self):
        plan, report = self.compile('--pipeline', '2', '--measure=3', launchNanoseconds=2000)
        self.assertTrue(plan['concurrent'])
        self.assertTrue(all(one['pipelined'] for one in report['measuredPlans']))
        slices = [kernel['chunk'] for kernel in plan['kernels'] if kernel['chunk']]
        self.assertEqual({one['start'] for one in slices}, {0, 1})
        self.assertTrue(all(one['isSlice'] for one in slices))
        self.assertIn('in 2 slices', self.weft('explain', 'plan').prose())
        self.weft('emit', 'plan')
        self.assertEqual(json.loads((self.folder / 'plan/plan.json').read_text()), plan)
        self.assertIn('whole graph', self.weft('time', 'plan', '--rounds', '3',
                                               env=self.with_driver(launchNanoseconds=2000)).out)
        # A slice that waits for another is no pipelined plan.
        later = [index for index, kernel in enumerate(plan['kernels'])
                 if kernel['chunk'] and kernel['chunk']['start'] == 1]
        plan['kernels'][later[0]]['after'].append(later[0] - 1)
        (self.folder / 'plan/plan.json').write_text(json.dumps(plan))
        self.fails(2, 'emit', 'plan', says=['slices run at once'])

    def test_rejected(self):
        env = self.with_driver()
        for code, flags, says in (
            (3, ['--pipeline', '3'], ['2 indices are not divisible into 3 slices',
                                      'legal and nearest: --pipeline 2']),
            (3, ['--pipeline', '64'], ['--pipeline 2']),
            (2, ['--pipeline', '2', '--chunks', '2'], ['--pipeline 2 with --chunks 2']),
            (2, ['--pipeline', '2', '--concurrent', 'off'], ['with --concurrent off']),
            (2, ['--pipeline', '2', '--early-start', 'on'], ['with --early-start on']),
            (2, ['--pipeline', '0'], ['expected a number of slices']),
            (2, ['--pipeline', '2x'], ['expected a number of slices']),
            (3, ['--pipeline', '2', '--max-memory', '1'], ['--max-memory 1'])):
            with self.subTest(flags=flags):
                self.fails(code, 'compile', *self.UNFUSED, '-o', 'other', *flags, says=says,
                           env=env)
        self.fails(3, 'compile', *CORE, '--attention', 'fused', '--pipeline', '2', '-o', 'other',
                   says=['--attention fused: --pipeline 2', '--attention unfused'], env=env)


class RejectionTest(MeasureTest):
    def test_usage(self):
        env = self.with_driver()
        self.assertRejected(2, ['--measure=1'], ['--measure=1: at least 2 plans'], env)
        self.assertRejected(2, ['--measure=-3'], ['--measure=-3: at least 2 plans'], env)
        self.assertRejected(2, ['--measure', '--stop-after', 'emit'], ['without --stop-after'], env)

    def test_no_gpu(self):
        self.assertRejected(3, ['--measure'],
                           ['--measure times plans on a GPU: the CUDA driver finds no GPU'],
                           self.with_driver(gpus=0))
        self.assertRejected(3, ['--measure'], ['--measure times plans on a GPU', 'too old'],
                           self.with_driver(version=11080))

    def test_no_compiler(self):
        self.assertRejected(3, ['--measure'], ['--measure needs NVRTC'],
                           {**self.with_driver(), 'WEFT_NVRTC': 'none'})

    def test_another_architecture(self):
        self.assertRejected(3, ['--measure'],
                           ['no plan can be timed on Stand-in', 'sm_90a', 'sm_80'],
                           self.with_driver(capability=80))

    def test_no_memory(self):
        self.assertRejected(3, ['--measure'], ['no plan can be timed on Stand-in', 'memory'],
                           self.with_driver(memoryBytes=1000))


class MemoryTest(MeasureTest):
    def test_a_plan_that_does_not_fit_beside_the_others_is_named(self):
        plan = self.measure('--measure=2', launchNanoseconds=2000)[0]
        buffers = {tensor['buffer']: tensor['bytes'] for tensor in plan['tensors']}
        timed = self.measure('--measure=2', launchNanoseconds=2000,
                             memoryBytes=int(1.5 * sum(buffers.values())))[1]
        self.assertIn('measured', timed[0])
        self.assertIn('memory', timed[1]['notMeasured'])
        self.assertTrue(timed[0]['chosen'])
        self.assertIn(timed[1]['notMeasured'], self.weft('explain', 'plan', '--all', '--wide').out)


if __name__ == '__main__':
    unittest.main()
