"""Rows of group `varlen` with --mixed: batches of random lengths through one artifact, against
plans made for the lengths of some of them. No packages: tested without a GPU."""
import random
from dataclasses import dataclass

from .report import Workload
from .varlen_rows import LAYERS, Row

BATCHES, STEP = 100, 10  # a plan is made for every tenth batch
SIZES = ((16, 256), (16, 1024))
ONE, EACH = 'weft one artifact', 'weft plans of their lengths'
MUST, RECORD = 1.05, 1.02  # time through one artifact / that of plans made for the lengths


@dataclass(frozen=True)
class Draw(Row):
    """Batch `index` of a row: other lengths, evenly around a mean that is drawn, too."""
    index: int = 0

    def name(self):
        return f'{super().name().rsplit(" ", 1)[0]} batch {self.index}'

    def lengths(self):
        drawn = random.Random(f'weft varlen {self.batch} {self.length} {self.index}')
        mean = drawn.uniform(0.1, 1)
        reach = min(mean, 1 - mean)
        return [max(1, round(self.length * drawn.uniform(mean - reach, mean + reach)))
                for _ in range(self.batch)]


@dataclass(frozen=True)
class Mixed:
    batch: int
    length: int
    layers: int = LAYERS

    def row(self):
        return Row(self.batch, self.length, layers=self.layers)

    def name(self):
        return f'{self.row().name().rsplit(" ", 1)[0]} {BATCHES} batches'

    def draws(self):
        return [Draw(self.batch, self.length, layers=self.layers, index=index)
                for index in range(BATCHES)]

    def planned(self):
        """The batches that have plans made for them."""
        return self.draws()[::STEP]

    def workload(self):
        planned = self.planned()
        tokens = sum(draw.tokens() for draw in planned)
        padded = len(planned) * self.batch * self.length
        return Workload(self.name(), sum(draw.bytes_moved() for draw in planned),
                        sum(draw.flop() for draw in planned),
                        f'forward, {len(planned)} of {BATCHES} batches, {tokens} of {padded} '
                        'tokens valid')

    def compile_arguments(self):
        return self.row().compile_arguments()


def lengths_text(draws):
    """A file for --lengths, a batch a line: weft's levels of the fill are then those of these
    batches, whose sequences share a mean, and not of sequences that are drawn one by one."""
    return ''.join(' '.join(map(str, draw.lengths())) + '\n' for draw in draws)


def rows(layers=LAYERS):
    return [Mixed(batch, length, layers) for batch, length in SIZES]


def record(row, losses, missing, captures, all_seconds):
    """What the JSON line of a row has beside what every group's has. `losses`: by planned batch,
    one artifact / the plan made for it; `missing`: why batches have none; `captures`: of the one
    artifact, before all batches and after; `all_seconds`: of all batches in a row."""
    return {
        'mixed': True, 'batch': row.batch, 'length': row.length, 'batches': BATCHES,
        'losses': losses, 'missing': missing, 'captures': captures, 'allSeconds': all_seconds
    }
