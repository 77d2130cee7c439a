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
        others = [one['predictedGraph'] for one in timed[1:]]  # the first is what selection chose
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
