"""Rows of group `varlen`: layers of BERT-base over sequences of different lengths. No packages:
tested without a GPU."""
import math
from dataclasses import dataclass

from .layers import BERT_BASE, FP16, Layer
from .report import Workload

LAYERS = 12
GOLDEN = (1 + math.sqrt(5)) / 2
MEAN = 0.6  # of the lengths, as a share of the longest, where a row does not say another


@dataclass(frozen=True)
class Row:
    """`batch` sequences of at most `length` tokens, in the mean `mean` of it."""
    batch: int
    length: int
    mean: float = MEAN
    layers: int = LAYERS
    layer: Layer = BERT_BASE

    def name(self):
        return f'{self.layer.preset} {self.layers} layers B={self.batch} L={self.length} ' \
            f'{100 * self.mean:g}%'

    def lengths(self):
        """One sequence has the mean; more are spread evenly around it, as far as the bounds allow:
        workloads.md, section 4, has the formula of 60%."""
        if self.batch == 1:
            return [max(1, round(self.mean * self.length))]
        reach = min(self.mean, 1 - self.mean)
        share = lambda i: self.mean - reach + 2 * reach * ((i + 0.5) / GOLDEN % 1)
        return [max(1, round(self.length * share(i))) for i in range(self.batch)]

    def tokens(self):
        return sum(self.lengths())

    def flop(self):
        """Of the products over valid tokens and their pairs."""
        hidden, inner = self.layer.hidden, self.layer.feed_forward
        pairs = sum(length**2 for length in self.lengths())
        return self.layers * (2 * self.tokens() * hidden *
                              (4 * hidden + 2 * inner) + 4 * pairs * hidden)

    def bytes_moved(self):
        """Input and output of valid tokens, and the weights of every layer, once."""
        own = 1 if self.layer.shares else self.layers
        return FP16 * (2 * self.tokens() * self.layer.hidden + own * self.layer.weight_elements())

    def workload(self):
        padded = self.batch * self.length
        return Workload(self.name(), self.bytes_moved(), self.flop(),
                        f'forward, {self.tokens()} of {padded} tokens valid')

    def compile_arguments(self):
        return [
            self.layer.preset, '--layers', self.layers, '--dim', f'b={self.batch}', '--dim',
            f'j={self.length}', '--dtype', 'f16'
        ]

    def must(self):
        """What the best rival / weft must reach; None where nothing is said."""
        return MUST.get((self.batch, self.length)) if self.mean == MEAN else None


# workloads.md, section 4.
MUST = {(1, 256): 1.3, (1, 1024): 1.3, (16, 256): 1.2, (16, 1024): 1.25}
BATCHES, LENGTHS = (1, 8, 16), (64, 128, 256, 512, 1024)
SWEEP_BATCHES, SWEEP_LENGTHS, SWEEP_MEANS = (1, 16), (128, 512, 1024), (0.2, 0.6, 1.0)


def rows(layers=LAYERS):
    """Every batch and length at 60%, then what the sweep of means has beside these."""
    grid = [Row(batch, length, layers=layers) for batch in BATCHES for length in LENGTHS]
    return grid + [row for row in sweep(layers) if row not in grid]


def sweep(layers=LAYERS):
    """Every mean, those at 60% being rows of the grid, too."""
    return [Row(batch, length, mean, layers) for batch in SWEEP_BATCHES
            for length in SWEEP_LENGTHS for mean in SWEEP_MEANS]


def in_sweep(batch, length, mean):
    return batch in SWEEP_BATCHES and length in SWEEP_LENGTHS and mean in SWEEP_MEANS


def layer_prefix(row, index):
    """What the graph's names of layer `index` begin with; a layer alone has no number, nor have
    shared weights."""
    return f'layer{index + 1}_' if row.layers > 1 and not row.layer.shares else ''
