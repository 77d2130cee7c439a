"""tests/gpu/verify-plans with a stand-in for `weft`: what it runs, goes on with, counts, and exits
with."""
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'tests/gpu/verify-plans'
# Writes down how it was called, and says what the test put beside it.
STAND_IN = f'''#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
said = json.loads((here / 'said.json').read_text())
with (here / 'calls').open('a') as calls:
    calls.write(' '.join(sys.argv[1:]) + '\\n')
if sys.argv[1] == 'compile' and 'rejection' in said:
    print(said['rejection'], file=sys.stderr)
    sys.exit(3)
if sys.argv[1] == 'verify':
    name = pathlib.Path(sys.argv[2]).name
    print(json.dumps(said.get(name, said['default'])))
    sys.exit(said.get('exit', 0))
'''
WHOLE = {
    'checked': True, 'passed': True, 'reason': '', 'problem': '', 'results': [], 'otherKnobs': []
}
AGREES = {'agreed': 12, 'failed': 0, 'unchecked': [], 'whole': WHOLE, 'kernels': []}
PLANS = ('bert-base-b8-j512', 'paper-encoder-train-b8-j512')


def workloads():
    loader = importlib.machinery.SourceFileLoader('verify_plans', str(SCRIPT))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(
        'verify_plans', loader))
    sys.path.insert(0, str(SCRIPT.parent))  # as Python does for a script
    loader.exec_module(module)
    return module.WORKLOADS


class VerifyPlans(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.bin = pathlib.Path(temporary.name) / 'bin'
        self.out = pathlib.Path(temporary.name) / 'out'
        self.bin.mkdir()
        (self.bin / 'weft').write_text(STAND_IN)
        (self.bin / 'weft').chmod(0o755)

    def run_plans(self, code, *more, **said):
        (self.bin / 'said.json').write_text(json.dumps({'default': AGREES, **said}))
        only = [] if '--draw' in more else ['--only', *PLANS]
        done = subprocess.run([
            sys.executable, SCRIPT, self.bin, '-o', self.out, '--jobs', '1', *only, *more
        ], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout

    def calls(self):
        return (self.bin / 'calls').read_text().splitlines() if (self.bin /
                                                                 'calls').is_file() else []

    def test_every_plan_is_compiled_and_verified_into_one_store(self):
        text = self.run_plans(0)
        self.assertIn('2 of 2 plans', text)
        self.assertIn('24 kernels agree, 0 failed, 0 not checked; 0 whole plans failed', text)
        for name in PLANS:
            self.assertEqual(sum(line.startswith(name) for line in text.splitlines()), 1)
        self.assertEqual(len(self.calls()), 4)
        self.assertTrue(
            all('--store ' + str(self.out / 'verified.txt') in call for call in self.calls()
                if call.startswith('verify')))
        self.assertIn('compile paper-encoder --train --dim b=8 --dim j=512',
                      '\n'.join(self.calls()))

    def test_it_goes_on_where_it_ended(self):
        self.assertIn('0 of 2 plans', self.run_plans(75, '--limit', '-1'))
        self.assertEqual(self.calls(), [])
        self.run_plans(0)
        before = self.calls()
        self.assertIn('24 kernels agree', self.run_plans(0))
        self.assertEqual(self.calls(), before)

    def test_failures_and_what_was_not_checked_are_named(self):
        text = self.run_plans(
            1, exit=1, **{
                PLANS[0]: {
                    **AGREES, 'agreed': 11, 'failed': 1,
                    'kernels': [{'name': 'softmax', 'passed': False, 'problem': 'output 0 at [1]'}]
                }, PLANS[1]: {
                    **AGREES, 'unchecked': ['the whole plan: no NVRTC'],
                    'whole': {**WHOLE, 'checked': False, 'passed': False, 'reason': 'no NVRTC'}
                }
            })
        self.assertIn('softmax: output 0 at [1]', text)
        self.assertIn('not checked: the whole plan: no NVRTC', text)
        self.assertIn('23 kernels agree, 1 failed, 1 not checked', text)

    def test_a_whole_plan_that_fails_is_a_failure(self):
        results = [{'name': 'norm2', 'passed': False}]
        text = self.run_plans(
            1, exit=1,
            **{PLANS[0]: {**AGREES, 'whole': {**WHOLE, 'passed': False, 'results': results}}})
        self.assertIn('whole plan FAILED: norm2', text)
        self.assertIn('1 whole plans failed', text)

    def test_without_a_gpu_it_is_skipped(self):
        error = {'error': {'exitCode': 3, 'kind': 'unsupported', 'message': 'no driver'}}
        self.assertIn('skipped: no driver', self.run_plans(77, exit=3, default=error))

    def test_drawn_plans_are_compiled_as_listed(self):
        listed = subprocess.run([sys.executable, SCRIPT, '--list', '--draw', '7', '--count', '3'],
                                capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertIn('3 of 3 plans', self.run_plans(0, '--draw', '7', '--count', '3'))
        compiled = [call for call in self.calls() if call.startswith('compile')]
        for line in listed:
            name, arguments = line.split(' ', 1)
            self.assertTrue(
                any(call.startswith(f'compile {arguments} --device') for call in compiled))
            self.assertTrue((self.out / f'{name}.json').is_file())
        self.assertEqual([line.split(' ')[0] for line in listed], ['7-0', '7-1', '7-2'])

    def test_a_residual_stream_of_f32_is_drawn_beside_narrower_types(self):
        listed = subprocess.run([sys.executable, SCRIPT, '--list', '--draw', '7', '--count', '200'],
                                capture_output=True, text=True, check=True).stdout.splitlines()
        wide = [line for line in listed if ' --residual f32' in line]
        self.assertTrue(10 < len(wide) < 60, len(wide))
        for line in wide:
            self.assertRegex(line, ' --dtype b?f16 --residual f32')
            self.assertNotRegex(line, r'^\S+ attention ')

    def test_a_drawn_plan_that_is_wrong_is_named_with_its_command(self):
        wrong = {**AGREES, 'agreed': 11, 'failed': 1, 'kernels': []}
        text = self.run_plans(1, '--draw', '7', '--count', '2', exit=1, **{'7-1': wrong})
        self.assertEqual(text.count('weft compile '), 1)
        self.assertIn('23 kernels agree, 1 failed', text)

    def test_a_rejection_fails_a_profiled_plan_and_is_listed_of_a_drawn_one(self):
        text = self.run_plans(0, '--draw', '7', '--count', '2', rejection='no such mask')
        self.assertEqual(text.count('rejected: compile: exit 3: no such mask'), 2)
        self.assertIn('0 plans could not be verified, 2 are not supported', text)
        self.assertIn('FAILED: compile: exit 3', self.run_plans(1, rejection='no such mask'))

    def test_an_unknown_name_is_rejected(self):
        done = subprocess.run([sys.executable, SCRIPT, '--only', 'gpt5', '--list'],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('no plan is called gpt5', done.stderr)

    def test_the_workloads_are_those_of_the_shipped_profile(self):
        text = (ROOT / 'tests/unit/select/shipped_profile_mlir_test.cpp').read_text()
        presets = set(re.findall(r'"(bert-base|bert-large|paper-encoder)"', text))
        shapes = set(re.findall(r'"b=(\d+)", "j=(\d+)"', text))
        forward = [f'{preset}-b{b}-j{j}' for preset in presets for b, j in shapes]
        training = [name for name in workloads() if '-train-' in name]
        self.assertEqual((len(forward), len(training)), (24, 2))
        self.assertEqual(sorted(workloads()), sorted(forward + training))


if __name__ == '__main__':
    unittest.main()
