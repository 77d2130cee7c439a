"""Group `masks` of bench/run without a GPU: its draws, what weft says to them, and the table."""
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

import weft_command
from numpy_file import numpy_file

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import mask_draws, mask_table, report, time_limit

CEILINGS = (4e12, 7e14)
SMALL = dict(batch=2, length=150, window=20, documents=3, density=0.25, heads=2, groups=2)


def small(kind):
    return dataclasses.replace(mask_draws.draw(1, 0), kind=kind, score='', training=False, **SMALL)


def sees(draw, batch, query, key):
    """What masks.Mask.sees says, pair by pair."""
    seen = not draw.causal or key <= query
    if 'window' in draw.kind:
        seen = seen and abs(query - key) <= draw.window
    if 'document' in draw.kind:
        segments = draw.segments()[batch]
        seen = seen and segments[query] == segments[key]
    if draw.kind == 'padding':
        seen = seen and key < draw.lengths()[batch]
    if 'blocks' in draw.kind:
        seen = seen and draw.table()[query // mask_draws.TILE][key // mask_draws.TILE]
    return seen


class DrawTest(unittest.TestCase):
    def test_draws_are_of_seed_and_index_and_differ(self):
        draws = mask_draws.draws(5, 0, 200)
        self.assertEqual(draws[7], mask_draws.draw(5, 7))
        self.assertEqual(len({draw.name() for draw in draws}), 200)
        self.assertEqual({draw.kind for draw in draws}, set(mask_draws.KINDS))
        self.assertEqual({draw.score for draw in draws}, set(mask_draws.SCORES))
        self.assertTrue(any(draw.length % 8 for draw in draws))
        for draw in draws:
            self.assertEqual(draw.heads % draw.groups, 0)
            self.assertLessEqual(draw.length, mask_draws.LENGTHS[1])
            self.assertLessEqual(draw.training * draw.length, mask_draws.LONGEST_TRAINING)

    def test_pairs_are_those_that_see_each_other(self):
        for kind in mask_draws.KINDS:
            draw = small(kind)
            # The tables and segments that `sees` asks for are made anew each time.
            length = range(0, draw.length)
            table = draw.table()
            segments = [draw.segments()[batch] for batch in range(draw.batch)]
            fixed = dataclasses.replace(draw)
            object.__setattr__(fixed, 'table', lambda table=table: table)
            object.__setattr__(fixed, 'segments', lambda segments=segments: segments)
            for batch in range(draw.batch):
                pairs = sum(bool(sees(fixed, batch, query, key)) for query in length
                            for key in length)
                self.assertEqual(draw.pairs_of_row(batch), pairs, kind)

    def test_every_document_and_length_holds_a_token(self):
        draw = small('document')
        for ends in draw.ends():
            self.assertEqual(len(set(ends)), draw.documents)
            self.assertEqual(ends[-1], draw.length)
        self.assertTrue(all(1 <= length <= draw.length for length in draw.lengths()))

    def test_weft_takes_every_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            for kind, score in zip(mask_draws.KINDS, 3 * ('', 'alibi', 'softcap')):
                draw = dataclasses.replace(small(kind), score=score)
                path = numpy_file(pathlib.Path(folder) / 'table.npy', draw.table())
                done = subprocess.run([
                    weft_command.WEFT, 'import', *draw.compile_arguments(path), '-o',
                    pathlib.Path(folder) / 'graph.mlir'
                ], capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f'{kind} {score}: {done.stderr}')


def line(draw, **ms):
    result = report.Result(draw.workload())
    for name, value in ms.items():
        result.samples[name] = [value / 1e3] * 3
    rivals = {name: value for name, value in ms.items() if name != 'weft'}
    best = min(rivals, key=rivals.get, default=None)
    ratio = rivals[best] / ms['weft'] if best and 'weft' in ms else None
    result.record['masks'] = mask_table.record(draw, ratio, best)
    return json.loads(report.json_line(result, CEILINGS, 'masks'))


class TableTest(unittest.TestCase):
    def test_the_best_rival_and_the_means(self):
        forward, training = small('causal'), dataclasses.replace(small('none'), training=True)
        text = mask_table.text([
            line(forward, weft=1.0, FlexAttention=2.0, cuDNN=1.5),
            line(forward, weft=1.0, FlexAttention=0.5),
            line(training, weft=2.0, FlexAttention=3.0)
        ])
        self.assertIn('cuDNN', text)
        self.assertIn('forward, 2 draws: geometric mean of the best rival / weft 0.866x, '
                      'worst 0.50x, 1 won', text)
        self.assertIn('forward and backward, 1 draws', text)

    def test_a_draw_without_a_figure_of_weft_counts_half(self):
        text = mask_table.text([line(small('causal'), FlexAttention=2.0)])
        self.assertIn('geometric mean of the best rival / weft 0.500x', text)

    def test_a_draw_without_a_rival_has_no_ratio(self):
        self.assertNotIn('geometric mean', mask_table.text([line(small('causal'), weft=2.0)]))


class LimitTest(unittest.TestCase):
    def test_a_rival_that_does_not_end_is_stopped_past_its_own_handlers(self):
        def goes_on():
            while True:
                try:
                    time.sleep(5)
                except Exception:
                    pass

        message = r'a rival: not done after 0.05 s, in bench_masks_test.py:\d+'
        with self.assertRaisesRegex(time_limit.TimeLimitExceeded, message):
            with time_limit.time_limit(0.05, 'a rival'):
                goes_on()

    def test_nothing_is_stopped_after_the_body(self):
        with time_limit.time_limit(0.05, 'a rival'):
            pass
        time.sleep(0.1)


if __name__ == '__main__':
    unittest.main()
