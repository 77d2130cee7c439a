"""Group `sparse` of bench/run without a GPU: its tables, and the table of its figures."""
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
from weftbench import report, sparse_rows, sparse_table

CEILINGS = (4e12, 7e14)


class RowsTest(unittest.TestCase):
    def test_names_differ(self):
        names = [row.name() for row in sparse_rows.ROWS]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(names[:2], ['longformer L=4096 B=1', 'longformer L=4096 B=8'])

    def test_longformer_sees_256_keys_to_each_side_and_the_first_tile(self):
        table, = sparse_rows.Row(sparse_rows.LONGFORMER, 1, 4096).table()
        self.assertEqual([sum(line) for line in table[:8]], [64, 6, 7, 8, 9, 10, 10, 10])
        self.assertEqual([column for column, seen in enumerate(table[20]) if seen],
                         [0, *range(16, 25)])

    def test_bigbird_draws_for_each_head(self):
        tables = sparse_rows.Row(sparse_rows.BIGBIRD, 1, 4096).table()
        self.assertEqual(len(tables), sparse_rows.HEADS)
        self.assertNotEqual(tables[0], tables[1])
        for table in tables:
            self.assertEqual([sum(line) for line in (table[0], table[63])], [64, 64])
            # The own tile, its neighbours and both ends, and three others.
            self.assertEqual({sum(line) for line in table[2:62]}, {8})

    def test_density(self):
        for row in sparse_rows.RANDOMS:
            share = row.pairs() / (row.heads * row.length**2)
            self.assertAlmostEqual(share, row.density + (1 - row.density) / row.tiles(), delta=0.01)

    def test_flop_count_tiles_that_exist(self):
        row = sparse_rows.Row(sparse_rows.LONGFORMER, 8, 4096)
        tiles = sum(map(sum, row.table()[0]))
        self.assertEqual(row.flop(), 4 * 8 * 16 * 64 * tiles * 64**2)


def line(row, **ms):
    """The JSON line of a row in which contenders took so long."""
    result = report.Result(row.workload())
    for name, value in ms.items():
        result.samples[name.replace('_', ' ')] = [value / 1e3] * 3
    best = 'weft' if 'weft' in ms else None
    ratios = {name: samples[0] / result.samples['weft'][0]
              for name, samples in result.samples.items() if name != 'weft'} if best else {}
    result.record['sparse'] = sparse_table.record(row, best, ratios)
    return json.loads(report.json_line(result, CEILINGS, 'sparse'))


class TableTest(unittest.TestCase):
    def test_the_best_rival_counts(self):
        text = sparse_table.text([line(sparse_rows.NAMED[0], weft=0.05, Flex_64=0.075,
                                       Flex_128=0.1)])
        cells = text.splitlines()[1].split()
        self.assertEqual(cells[3:], ['0.0500', '0.0750', '0.1000', *['-'] * 4, '1.500x', '1.30x',
                                     cells[-1]])
        # Whatever the rival: a block, a back end, or a mask of every score.
        for rival in sparse_table.RIVALS:
            text = sparse_table.text([line(sparse_rows.NAMED[0], weft=0.05,
                                           **{'Flex 64': 0.1, rival: 0.06})])
            self.assertIn(' 1.200x ', text, rival)
        self.assertEqual(text.splitlines()[0].split()[-7:],
                         ['SDPA', 'eager', 'best', '/', 'weft', 'must', 'floor'])

    def test_rivals_are_blocks_and_back_ends(self):
        for name, (size, backend) in sparse_table.FLEX.items():
            self.assertEqual(size % sparse_rows.TILE, 0, name)
            self.assertEqual(name, f'Flex {size}' + (f' {backend.lower()}' if backend else ''))

    def test_means_of_random_rows_need_all_figures(self):
        rows = [row for row in sparse_rows.RANDOMS if not row.trains][:2]
        lines = [line(rows[0], weft=1, Flex_64=2), line(rows[1], weft=1, Flex_128=8)]
        self.assertEqual(sparse_table.means(lines), [
            'random, forward, 2 rows: geometric mean of the best rival / weft 4.000x (must: 1.20x)'
        ])
        said, = sparse_table.means([lines[0], line(rows[1], Flex_64=2)])
        self.assertIn('no geometric mean', said)
        self.assertIn(rows[1].name(), said)


if __name__ == '__main__':
    unittest.main()
