"""The end of tools/test: which tests could not run, and why, as CTest itself writes its results."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTS = '''
add_test(gpu_one "/bin/sh" "-c" "echo '== one'; echo 'skipped: no driver for any GPU'; exit 77")
add_test(gpu_two "/bin/sh" "-c" "echo 'skipped: no driver for any GPU'; exit 77")
add_test(gpu_ran "/bin/sh" "-c" "echo 'skipped: nothing'; exit 0")
add_test(nvrtc-build "/bin/sh" "-c" "echo 'no NVRTC; looked in <nowhere> & elsewhere'; exit 77")
add_test(unit-fails "/bin/sh" "-c" "exit 1")
set_tests_properties(gpu_one gpu_two gpu_ran nvrtc-build PROPERTIES SKIP_RETURN_CODE 77)
'''


def end_of(tests):
    """What is printed of these tests."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / 'CTestTestfile.cmake').write_text(tests)
        results = pathlib.Path(folder) / 'results.xml'
        subprocess.run(['ctest', '--output-junit', results], cwd=folder, capture_output=True,
                       check=False)
        return subprocess.run([sys.executable, ROOT / 'tools/skipped-tests', results],
                              capture_output=True, text=True, check=True).stdout


class SkippedTests(unittest.TestCase):
    def test_gpu_tests_are_told_apart_with_their_reasons(self):
        self.assertEqual(
            end_of(TESTS).splitlines(), [
                'GPU tests that could not run here: 2', '  gpu_one, gpu_two: no driver for any GPU',
                'other tests that were skipped: 1',
                '  nvrtc-build: no NVRTC; looked in <nowhere> & elsewhere'
            ])

    def test_where_all_ran_nothing_is_said(self):
        self.assertEqual(end_of('add_test(gpu_ran "/bin/true")'), '')

    def test_the_tests_of_ci_end_with_it(self):
        script = (ROOT / 'tools/test').read_text()
        self.assertIn('--output-junit "$results"', script)
        self.assertIn('tools/skipped-tests "$results"', script)


if __name__ == '__main__':
    unittest.main()
