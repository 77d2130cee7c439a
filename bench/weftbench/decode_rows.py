"""Rows of group `decode`: one new token a sequence behind caches of different lengths, a layer of
Llama-3-8B. No packages: tested without a GPU."""
import math
import random
from dataclasses import dataclass

from .layers import FP16
from .report import Workload

MEDIAN, SIGMA = 2000, 1.0  # of the lognormal lengths
MUST, RECORD = 0.75, 0.88  # of the copy rate


@dataclass(frozen=True)
class Row:
    """`batch` sequences of at most `longest` tokens, the new one included."""
    batch: int
    longest: int = 16384
    seed: int = 1
    preset = 'llama-3-8b'
    hidden, heads, groups, head, inner = 4096, 32, 8, 128, 14336
    rotary_base, epsilon = 500000.0, 1e-5

    def name(self):
        return f'{self.preset} decode B={self.batch} lognormal({MEDIAN}, {SIGMA:g})' \
            f' at most {self.longest}'

    def held(self):
        """Tokens that the cache of each sequence holds before the new one."""
        source = random.Random(self.seed)
        drawn = [source.lognormvariate(math.log(MEDIAN), SIGMA) for _ in range(self.batch)]
        return [min(max(1, round(length)), self.longest) - 1 for length in drawn]

    def keys(self):
        """That all queries see together, their own among them."""
        return sum(self.held()) + self.batch

    def weight_elements(self):
        attention = self.hidden * self.head * (2 * self.heads + 2 * self.groups)
        return attention + 3 * self.hidden * self.inner + 2 * self.hidden

    def bytes_moved(self):
        """Weights, and the keys and values that are seen, once."""
        return FP16 * (self.weight_elements() + 2 * self.keys() * self.groups * self.head)

    def flop(self):
        return 2 * self.batch * self.weight_elements() + 4 * self.keys() * self.heads * self.head

    def workload(self):
        return Workload(
            self.name(), self.bytes_moved(), self.flop(),
            f'{self.keys()} keys, the longest {max(self.held()) + 1}; weights, K and V over the '
            f'time must reach {100 * MUST:.0f}% of the copy rate (over floor at most '
            f'{1 / MUST:.2f}x), record {100 * RECORD:.0f}%')

    def compile_arguments(self, lengths):
        """`lengths`: of a file that holds held()."""
        return [
            self.preset, '--dim', f'b={self.batch}', '--cache', self.longest, '--lengths', lengths,
            '--dtype', 'f16'
        ]


ROWS = (Row(64), Row(16), Row(1))


def shapes(row):
    """Of the weights, by the graph's names and axes."""
    repeats = row.heads // row.groups
    return {
        'gamma1': (row.hidden, ), 'gamma2': (row.hidden, ),
        'wq': (row.head, row.groups, repeats, row.hidden),
        'wk': (row.head, row.groups, row.hidden), 'wv': (row.head, row.groups, row.hidden),
        'wo': (row.head, row.groups, repeats, row.hidden), 'w_gate': (row.inner, row.hidden),
        'w_up': (row.inner, row.hidden), 'w_down': (row.hidden, row.inner)
    }
