"""Twenty kills of `weft compile` at seeded moments leave nothing; tools/kill-test makes as many as
one likes."""
import os
import subprocess
import sys
import unittest

from weft_command import ROOT, WEFT


class Kills(unittest.TestCase):
    def test_twenty_kills_leave_cache_and_next_result_as_they_were(self):
        completed = subprocess.run(
            [sys.executable, ROOT / 'tools/kill-test', '--kills', '20', '--seed', '7'],
            capture_output=True, text=True, env={**os.environ, 'WEFT': WEFT}, timeout=600,
            check=False)
        self.assertEqual(completed.returncode, 0, completed.stderr)
        self.assertIn('20 kills', completed.stdout)


if __name__ == '__main__':
    unittest.main()
