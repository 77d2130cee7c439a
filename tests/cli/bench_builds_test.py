"""bench/run with --weft twice: what needs no GPU. Labels, ratios, bounds, the order of turns,
usage, and two libraries of one name in one process."""
import json
import math
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))
from weftbench import builds, library, report, statistics  # noqa: E402

OLD = builds.Build('weft old', 'old/bin/weft', '')
NEW = builds.Build('weft new', 'new/bin/weft', '')


def result(old, new, name='layer', **rest):
    samples = {label: list(times) for label, times in ((OLD.label, old), (NEW.label, new)) if times}
    return report.Result(report.Workload(name), samples=samples, **rest)


class LabelsTest(unittest.TestCase):
    def test_what_differs(self):
        self.assertEqual(builds.labels(['bin/weft']), ['weft'])
        self.assertEqual(builds.labels(['/a/old/bin/weft', '/a/new/bin/weft']),
                         ['weft old', 'weft new'])
        self.assertEqual(builds.labels(['/a/x/y/weft', '/b/y/weft']), ['weft a/x', 'weft b'])
        self.assertEqual(builds.labels(['weft-1', 'weft-2']), ['weft weft-1', 'weft weft-2'])
        self.assertEqual(builds.labels(['bin/weft', 'bin/weft']), ['weft 1st', 'weft 2nd'])

    def test_all_count_as_ours(self):
        self.assertEqual(result([1], [2]).ours(), ['weft old', 'weft new'])


class ComparisonTest(unittest.TestCase):
    def test_median_of_the_ratios_of_rounds(self):
        """Drift that meets both builds alike does not count."""
        old, new = [1.0, 2.0, 4.0, 8.0, 16.0], [1.005, 2.01, 4.02, 8.04, 16.08]
        one = builds.compare(result(old, new), [OLD, NEW])
        self.assertAlmostEqual(one.ratio.median, 1.005)
        self.assertTrue(one.is_within(0.01))
        self.assertFalse(one.is_within(0.004))

    def test_both_sides_of_the_bound(self):
        for factor, is_within in ((1.0099, True), (1.0101, False), (1 / 1.0099, True),
                                  (1 / 1.0101, False)):
            one = builds.compare(result([1.0] * 5, [factor] * 5), [OLD, NEW])
            self.assertEqual(one.is_within(0.01), is_within, factor)

    def test_no_figure_is_never_within(self):
        broken = [
            result([1.0], []),
            result([], [1.0], failures={'weft old': 'RuntimeError: no'}),
            result([], [], failures={'weft': 'WeftFailed: exit 2'}),
            result([1.0, 1.0], [1.0, math.nan]),
            result([1.0, 0.0], [1.0, 1.0]),
            result([1.0, 1.0], [1.0]),
        ]
        for one in broken:
            comparison = builds.compare(one, [OLD, NEW])
            self.assertNotEqual(comparison.problem, '')
            self.assertFalse(comparison.is_within(float('inf')))
        self.assertEqual(builds.outside(broken, [OLD, NEW], float('inf')), ['layer'] * len(broken))
        self.assertIn('no figure of weft old: RuntimeError: no',
                      builds.table(broken, [OLD, NEW], 0.01))

    def test_table(self):
        slow = result([1e-3] * 3, [1.02e-3] * 3, 'slow',
                      extra={'kernels of both builds': '2 differ'})
        even = result([1e-3] * 3, [1e-3] * 3, 'even', extra={'kernels of both builds': 'equal'})
        lines = builds.table([slow, even], [OLD, NEW], 0.01).splitlines()
        self.assertEqual(lines[:2], ['weft old: old/bin/weft', 'weft new: new/bin/weft'])
        self.assertRegex(lines[3], r'slow +1.000 +1.020 +1.0200 .* 2 differ +NO$')
        self.assertRegex(lines[4], r'even +1.000 +1.000 +1.0000 .* equal +yes$')
        self.assertEqual(builds.outside([slow, even], [OLD, NEW], 0.01), ['slow'])
        self.assertIn('the same file twice', builds.table([even], [OLD, OLD]))

    def test_json_has_both(self):
        value = json.loads(report.json_line(result([1e-3] * 3, [2e-3] * 3), (None, None)))
        self.assertEqual({name: one['ms'] for name, one in value['contenders'].items()}, {
            'weft old': 1.0,
            'weft new': 2.0
        })

    def test_bounds(self):
        self.assertAlmostEqual(builds.bound_of('1%'), 0.01)
        self.assertAlmostEqual(builds.bound_of('0.5 %'), 0.005)
        for text in ('1', '0%', '-1%', 'nan%', '100%', ''):
            with self.assertRaises(ValueError):
                builds.bound_of(text)


class TurnsTest(unittest.TestCase):
    def test_neither_is_always_first(self):
        firsts = [statistics.in_turn(['old', 'new'], turn)[0] for turn in range(6)]
        self.assertEqual(firsts, ['old', 'new'] * 3)


class KernelsTest(unittest.TestCase):
    def test_texts_but_not_their_headers(self):
        with tempfile.TemporaryDirectory() as folder:
            for build, header, body in (('old', 'kernel 1', 'x'), ('new', 'kernel 2', 'x'),
                                        ('other', 'kernel 1', 'y')):
                kernels = pathlib.Path(folder, build, 'kernels')
                kernels.mkdir(parents=True)
                (kernels / 'a.cu').write_text(f'// {header}\n\n{body}\n')
            old, new, other = (pathlib.Path(folder, one) for one in ('old', 'new', 'other'))
            self.assertEqual(builds.kernels_text([old, new]), 'equal')
            self.assertEqual(builds.kernels_text([old, other]), '1 differ')
            (new / 'kernels/b.cu').write_text('more')
            self.assertEqual(builds.kernels_text([old, new]), '1 differ')


@unittest.skipUnless(shutil.which('gcc'), 'needs gcc')
class LibrariesTest(unittest.TestCase):
    def test_two_of_one_name_answer_each_for_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            loaded = []
            for answer in ('old', 'new'):
                place = pathlib.Path(folder, answer)
                place.mkdir()
                (place / 'a.c').write_text(
                    f'const char *weft_last_error(void) {{ return "{answer}"; }}\n'
                    'long weft_device_bytes(void *p) { return 0; }\n'
                    'int weft_set_dropout_key(void *p, long a, long b) { return 0; }\n'
                    'void weft_close(void *p) {}\n')
                subprocess.run([
                    'gcc', '-shared', '-fPIC', '-Wl,-soname,libweft_runtime.so', '-o',
                    place / 'libweft_runtime.so', place / 'a.c'
                ], check=True)
                loaded.append(library.load(str(place / 'libweft_runtime.so')))
            self.assertEqual([one.library.weft_last_error() for one in loaded], [b'old', b'new'])


class UsageTest(unittest.TestCase):
    def rejected(self, *arguments):
        done = subprocess.run([sys.executable, ROOT / 'bench/run', *arguments], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def test_messages(self):
        two = ('--weft', 'a/weft', '--weft', 'b/weft')
        self.assertIn('--weft is given 3 times', self.rejected('encoder', *two, '--weft', 'c/weft'))
        self.assertIn('--within compares two builds', self.rejected('encoder', '--within', '1%'))
        self.assertIn("'1' is no percentage", self.rejected('encoder', *two, '--within', '1'))
        self.assertIn("group 'memory' takes one --weft", self.rejected('memory', *two))
        self.assertIn('1 --library for 2 --weft',
                      self.rejected('encoder', *two, '--library', 'l.so'))
        self.assertIn('leaves nothing to compare', self.rejected('encoder', *two, '--rivals-only'))


if __name__ == '__main__':
    unittest.main()
