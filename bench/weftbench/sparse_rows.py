"""Rows of group `sparse`: attention of which a table says which tiles of scores exist. No packages:
tested without a GPU."""
import random
from dataclasses import dataclass

from .attention_rows import FP16, TRAINING, TRAINING_FLOP, SAMPLED_QUERIES
from .report import Workload

TILE = 64  # queries, and keys, of a tile
HEADS, HEAD_DIM = 16, 64
LONGFORMER, BIGBIRD, RANDOM = 'longformer', 'bigbird', 'random'
NEAR = 4  # tiles to each side that `longformer` sees


@dataclass(frozen=True)
class Row:
    """Attention of fp16 tensors [batch, heads, length, dim] under a table of tiles."""
    pattern: str
    batch: int
    length: int
    density: float = 0  # of `random`: each tile exists with this probability
    trains: bool = False
    part = 'sparse'
    heads = HEADS
    head_dim = HEAD_DIM

    def name(self):
        density = f' {100 * self.density:g}%' if self.density else ''
        trains = f' {TRAINING}' if self.trains else ''
        return f'{self.pattern}{density} L={self.length} B={self.batch}{trains}'

    def shape(self):
        return self.batch, self.heads, self.length, self.head_dim

    def tiles(self):
        return self.length // TILE

    def table(self):
        """[tables][tiles of queries][tiles of keys], one table for all heads or one each."""
        count = self.tiles()
        if self.pattern == LONGFORMER:  # 256 keys to each side, 64 global tokens
            return [[[abs(row - column) <= NEAR or min(row, column) == 0 for column in range(count)]
                     for row in range(count)]]
        draw = random.Random(0)
        if self.pattern == RANDOM:
            return [[[row == column or draw.random() < self.density for column in range(count)]
                     for row in range(count)] for _ in range(self.heads)]
        ends = {0, count - 1}
        tables = []
        for _ in range(self.heads):  # 3 around the own, 3 at random, first and last global
            table = []
            for row in range(count):
                seen = {row - 1, row, row + 1} | ends
                seen |= set(draw.sample([one for one in range(count) if one not in seen], 3))
                table.append([row in ends or column in seen for column in range(count)])
            tables.append(table)
        return tables

    def pairs(self):
        """Of query and key that see each other, of all heads."""
        table = self.table()
        visible = sum(map(sum, (line for head in table for line in head))) * TILE**2
        return visible * (self.heads // len(table))

    def flop(self):
        forward = 4 * self.batch * self.head_dim * self.pairs()
        return TRAINING_FLOP * forward if self.trains else forward

    def bytes_moved(self):
        """Queries, keys, values and results once; in the backward pass these again, the results'
        gradient and the three gradients."""
        tensor = FP16 * self.batch * self.heads * self.length * self.head_dim
        return (12 if self.trains else 4) * tensor

    def workload(self):
        share = self.pairs() / (self.heads * self.length**2)
        kind = TRAINING if self.trains else 'forward'
        return Workload(self.name(), self.bytes_moved(), self.flop(),
                        f'{kind}, {100 * share:.1f}% of all scores')

    def sampled_queries(self):
        """Positions of the queries whose results are compared with fp64."""
        edges = {0, 1, TILE - 1, TILE, self.length // 2, self.length - TILE, self.length - 1}
        return sorted(edges | set(random.Random(0).sample(range(self.length), SAMPLED_QUERIES)))


# workloads.md, section 2, and issue 27.
DENSITIES = (0.05, 0.1, 0.25, 0.5)
LENGTHS = (4096, 16384)
NAMED = [Row(pattern, batch, 4096) for pattern in (LONGFORMER, BIGBIRD) for batch in (1, 8)]
RANDOMS = [Row(RANDOM, 1, length, density, trains) for trains in (False, True)
           for length in LENGTHS for density in DENSITIES]
ROWS = NAMED + RANDOMS
# What the best rival / weft must reach: of a named row, and of the geometric mean of the random
# ones, forward and training.
MUST_NAMED = {1: 1.3, 8: 1.2}
MUST_RANDOM = {False: 1.2, True: 1.1}
