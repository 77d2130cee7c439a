"""weft profile on the stand-in for the driver: what it keeps when a GPU hangs or goes, when it is
interrupted, when two run at once."""
import collections
import pathlib
import signal
import subprocess
import time
import unittest

from weft_command import CORE, WEFT, CommandTest

DRIVER = pathlib.Path(WEFT).resolve().parents[1] / 'tests/fakecuda/libcuda.so.1'
# A few dozen configurations, since every run builds each of them anew, and some hundreds.
MANY = [*CORE, '--attention', 'unfused', '--no-library', '--layouts', '2', '--knobs', '3']
SPACE = [*MANY[:-1], '2', '--only', 'softmax,score']
FEW = [*MANY[:-1], '1', '--only', 'softmax,score']  # where it matters only that there are several
PROMPT = 8  # seconds; far less than what was left to do would take


class ProfileTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.driver = self.folder / 'driver'
        self.driver.mkdir()
        (self.driver / 'libcuda.so.1').symlink_to(DRIVER)
        self.rewrite(launchNanoseconds=100000)

    def rewrite(self, **settings):
        (self.driver / 'fakecuda.txt').write_text(''.join(f'{name} {value}\n'
                                                          for name, value in settings.items()))

    def env(self, **changes):
        return {'LD_LIBRARY_PATH': str(self.driver), 'WEFT_CUBLASLT': 'none', **changes}

    def profile(self, *flags, code=0, store='a.db', space=SPACE):
        return self.weft('profile', *space, '--store', store, '--json', *flags, code=code,
                         env=self.env())

    def start(self, *flags, space=SPACE, store='a.db'):
        """In the background, in a process separate group, as a shell would."""
        process = subprocess.Popen([WEFT, 'profile', *space, '--store', store, *flags],
                                   cwd=self.folder, env=self.environment(**self.env()),
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        self.addCleanup(process.kill)
        return process

    def statuses(self, store='a.db'):
        """How many rows of the store were measured, failed, ..."""
        text = self.weft('profile', 'export', store).out
        return collections.Counter(status for line in text.splitlines() for status in line.split()
                                   if status in ('measured', 'slow', 'failed'))

    def rows(self, store='a.db'):
        import sqlite3
        with sqlite3.connect(self.folder / store) as database:
            self.assertEqual(database.execute('PRAGMA integrity_check').fetchone(), ('ok', ))
            return database.execute(
                'SELECT kernel, configuration, status, reason FROM measurements ORDER BY kernel, '
                'configuration'
            ).fetchall()

    def await_measurements(self, store='a.db'):
        """Until the store has some rows, seen as another process sees it."""
        for _ in range(600):
            if (self.folder / store).exists() and self.measurements_or_none(store):
                return
            time.sleep(0.05)
        self.fail('nothing was measured in 30 s')

    def measurements_or_none(self, store):
        import sqlite3
        try:
            return self.rows(store)
        except sqlite3.OperationalError:
            return None


class SpaceTest(ProfileTest):
    def test_only_kernels_of_a_name(self):
        train = [
            'paper-encoder', '--train', '--stacking', 'separate', '--dim', 'b=1', '--dim', 'j=32',
            '--layouts', '1', '--knobs', '1', '--dry-run', '--store', 'a.db'
        ]
        whole = self.weft(
            'profile', *train, '--only',
            'd_w1,softmax').out  # sums of operands beside products have no form, and are measured
        self.assertIn('reduce_d_w1_contraction', whole)
        self.assertIn('softmax', whole)
        self.assertNotIn('layer_norm', whole)
        self.fails(2, 'profile', *train, '--only', 'nothing', says=["kernels contains 'nothing'"])

    def test_only_configurations_of_a_family(self):
        layer = ['paper-encoder', '--dim', 'b=1', '--dim', 'j=128', '--dry-run', '--store', 'a.db']
        fused = self.weft('profile', *layer, '--family', 'attention-sm90').out
        self.assertRegex(fused, r'\n1 distinct kernels|^1 distinct kernels')
        self.assertNotIn('attention_projection', fused)
        self.fails(2, 'profile', *layer, '--family', 'attention', says=['known: ', '-sm90'])
        self.fails(
            2,
            'profile',
            *layer,
            '--family',
            'attention-backward-sm90',
            says=['none of', 'attention-backward-sm90'])


class LostTest(ProfileTest):
    def test_a_gpu_that_goes_keeps_what_was_measured(self):
        all_measurements = self.profile(store='whole.db').json()['measured']
        self.rewrite(launchNanoseconds=100000, vanishAtLaunch=1000)
        result = self.profile(code=3)
        self.assertIn('the CUDA driver finds no GPU', result.json()['error']['message'])
        kept = self.rows()
        self.assertGreater(len(kept), 0)
        self.assertLess(len(kept), all_measurements)
        # The GPU is back: the same command goes on, and measures again nothing that it has.
        (self.driver / 'gone').unlink()
        self.rewrite(launchNanoseconds=100000)
        rest = self.profile().json()
        self.assertEqual(rest['skipped'], len(kept))
        self.assertEqual(rest['left'], 0)
        self.assertEqual([row[:2] for row in self.rows()],
                         [row[:2] for row in self.rows('whole.db')])

    def test_a_gpu_that_hangs_costs_measurements_their_time_limit(self):
        self.rewrite(launchNanoseconds=100000, hangAtLaunch=300)
        result = self.profile('--timeout', '1').json()
        self.assertEqual(result['left'], 0)
        failed = [row for row in self.rows() if 'did not finish within 1 s' in row[3]]
        self.assertGreater(len(failed), 0)
        self.assertGreater(result['measured'], 0)
        self.assertEqual(result['failed'], len(failed))

    def test_no_gpu_and_old_drivers(self):
        for settings, text in (({'gpus': 0}, 'the CUDA driver finds no GPU'),
                               ({'version': 11040}, 'too old: it supports CUDA 11.4')):
            self.rewrite(**settings)
            self.fails(3, 'profile', *SPACE, '--store', 'a.db', says=[text], env=self.env())
        self.rewrite(capability=80)
        self.fails(3, 'profile', *SPACE, '--store', 'a.db', says=['sm_80', 'sm_90a'],
                   env=self.env())


class EndTest(ProfileTest):
    def test_an_interrupt_while_the_gpu_hangs(self):
        self.rewrite(launchNanoseconds=100000, hangAtLaunch=1000)
        process = self.start('--timeout', '600')
        self.await_measurements()
        time.sleep(1)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, PROMPT)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn('the same command goes on', out)
        rows = self.rows()
        self.assertGreater(len(rows), 0)
        self.assertEqual([row for row in rows if row[3]], [], 'what was given up did not fail')

    def test_an_interrupt_while_kernels_are_built(self):
        process = self.start(space=MANY)
        begin = time.monotonic()
        time.sleep(3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - begin, 3 + PROMPT)
        self.assertIn(process.returncode, (0, 130), err)
        if (self.folder / 'a.db').exists():
            self.assertEqual([row for row in self.rows() if row[3]], [])

    def test_a_spent_budget(self):
        self.rewrite(launchNanoseconds=100000, hangAtLaunch=1000)
        begin = time.monotonic()
        result = self.profile('--budget', '6', '--timeout', '600').json()
        self.assertLess(time.monotonic() - begin, 6 + PROMPT)
        self.assertEqual(result['end'], 'budget')
        self.assertEqual(len(self.rows()), result['measured'] + result['slow'] + result['failed'])
        self.assertEqual(result['failed'], 0)


class StoreTest(ProfileTest):
    def test_two_profilers_on_one_store(self):
        processes = [self.start(space=FEW) for _ in range(2)]
        for process in processes:
            out, err = process.communicate(timeout=280)
            self.assertEqual(process.returncode, 0, out + err)
        self.assertEqual(self.profile(space=FEW).json()['measured'], 0, 'nothing is left')
        alone = self.profile(store='alone.db', space=FEW).json()
        self.assertEqual(len(self.rows()), alone['measured'] + alone['slow'] + alone['failed'])

    def test_a_store_that_is_none(self):
        for content, text in ((b'\x00' * 5000, 'is no SQLite database; nothing was written to it'),
                              (b'notes\n', 'is no SQLite database')):
            path = self.folder / 'a.db'
            path.write_bytes(content)
            for more in ([], ['--dry-run']):
                self.fails(2, 'profile', *SPACE, '--store', 'a.db', *more, says=[text],
                           env=self.env())
                self.assertEqual(path.read_bytes(), content)

    def test_a_budget_that_is_none(self):
        for text in ('-3', '0', 'nan', '3m'):
            self.fails(2, 'profile', *SPACE, f'--budget={text}',
                       says=['--budget',
                             f"'{text}' is no number of seconds above 0"], env=self.env())

    def test_a_store_of_another_program(self):
        import sqlite3
        with sqlite3.connect(self.folder / 'a.db') as database:
            database.execute('CREATE TABLE notes (text TEXT)')
        before = (self.folder / 'a.db').read_bytes()
        self.fails(2, 'profile', *SPACE, '--store', 'a.db',
                   says=['is a database of another program'], env=self.env())
        self.assertEqual((self.folder / 'a.db').read_bytes(), before)

    def test_a_damaged_store(self):
        self.profile(space=[*FEW[:-1], 'softmax'])
        path = self.folder / 'a.db'
        whole = path.read_bytes()
        damaged = whole[:4096] + bytes(len(whole) - 4096)
        path.write_bytes(damaged)
        self.fails(2, 'profile', *SPACE, '--store', 'a.db',
                   says=['is damaged', 'nothing was written to it'], env=self.env())
        self.assertEqual(path.read_bytes(), damaged)


if __name__ == '__main__':
    unittest.main()
