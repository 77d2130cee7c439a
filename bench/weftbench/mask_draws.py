"""Attention cores under masks that nobody tuned for: one draw is a function of (seed, index) alone.
No packages: tested without a GPU.

Heads, head dims and lengths are those of `transfer`; which keys a query sees, what a score becomes
before, and which sequences stand in one row are drawn beside them. One in three is training."""
import bisect
import itertools
import random
from dataclasses import dataclass

from .report import Workload
from .transfer_draws import HEAD_DIMS, divisors, log_uniform, uniform

SAMPLER = 1  # raised when draws change
KINDS = ('none', 'causal', 'window', 'causal window', 'document', 'causal document', 'padding',
         'blocks', 'causal blocks')
SCORES = ('', '', '', 'alibi', 'softcap')
HEADS = (4, 32)
TOKENS = (2048, 32768)
LENGTHS = (256, 16384)
LONGEST_TRAINING = 4096  # gradients of all rows are compared with fp64
TILE = 64
DENSITIES = (0.05, 0.1, 0.25, 0.5)
SOFTCAP = 20.0
STEEPNESS = 8.0
BYTES = 2
TRAINING_FLOP = 3.5  # backward five products for two


@dataclass(frozen=True)
class Draw:
    """`batch` rows of `length` tokens, of as many queries as keys."""
    seed: int
    index: int
    kind: str
    score: str
    dtype: str
    heads: int
    groups: int
    head_dim: int
    batch: int
    length: int
    window: int
    documents: int  # of a row, in the mean
    density: float
    training: bool

    def name(self):
        heads = f'{self.heads}/{self.groups}' if self.groups != self.heads else f'{self.heads}'
        detail = {'window': f' {self.window}', 'document': f' {self.documents}',
                  'blocks': f' {100 * self.density:g}%'}.get(self.kind.split(' ')[-1], '')
        score = f' {self.score}' if self.score else ''
        return (f'{self.seed}/{self.index} {self.kind}{detail}{score} {heads}x{self.head_dim} '
                f'B={self.batch} L={self.length} {self.dtype}'
                + (' training' if self.training else ''))

    @property
    def causal(self):
        return 'causal' in self.kind

    def shape(self):
        return self.batch, self.heads, self.length, self.head_dim

    def key_shape(self):
        return self.batch, self.groups, self.length, self.head_dim

    def lengths(self):
        """Of kind padding: keys that exist in each row, between a fifth and all."""
        draw = random.Random(f'{self.seed} {self.index} lengths')
        return [draw.randint(max(1, self.length // 5), self.length) for _ in range(self.batch)]

    def ends(self):
        """Of kind document: where each document of each row ends, ascending."""
        draw = random.Random(f'{self.seed} {self.index} documents')
        cuts = min(self.documents, self.length) - 1
        return [sorted(draw.sample(range(1, self.length), cuts)) + [self.length]
                for _ in range(self.batch)]

    def segments(self):
        """Of kind document: the document of each position of each row."""
        return [[bisect.bisect_right(ends, position) for position in range(self.length)]
                for ends in self.ends()]

    def table(self):
        """Of kind blocks: which tiles exist, the same for all heads; of causal ones those that no
        query sees are left out. Each row of tiles has the one around its own positions."""
        draw = random.Random(f'{self.seed} {self.index} tiles')
        count = -(-self.length // TILE)
        return [[row == column or (draw.random() < self.density
                                   and not (self.causal and column > row))
                 for column in range(count)] for row in range(count)]

    def slopes(self):
        """Of score alibi: of each head (Press et al. 2022; ir/SPEC.md, weft.alibi)."""
        whole = 1 << (self.heads.bit_length() - 1)
        return [
            2.0**(-STEEPNESS * (head + 1) / whole if head < whole else -STEEPNESS *
                  (2 * (head - whole) + 1) / (2 * whole)) for head in range(self.heads)
        ]

    def pairs_of_row(self, batch):
        """Of a query and a key that it sees, in one head."""
        length = self.length
        if 'document' in self.kind:
            sizes = [end - begin for begin, end in itertools.pairwise([0, *self.ends()[batch]])]
            return sum(size * (size + 1) // 2 if self.causal else size * size for size in sizes)
        if self.kind == 'padding':
            return length * self.lengths()[batch]
        if 'blocks' in self.kind:
            table, count = self.table(), 0
            for row, line in enumerate(table):
                queries = min(TILE, length - row * TILE)
                for column, exists in enumerate(line):
                    keys = min(TILE, length - column * TILE)
                    half = self.causal and row == column
                    count += exists * (queries * (queries + 1) // 2 if half else queries * keys)
            return count
        if 'window' in self.kind:
            behind = 0 if self.causal else self.window
            return sum(min(length - 1, query + behind) - max(0, query - self.window) + 1
                       for query in range(length))
        return length * (length + 1) // 2 if self.causal else length * length

    def flop(self):
        pairs = self.heads * sum(map(self.pairs_of_row, range(self.batch)))
        return 4 * pairs * self.head_dim * (TRAINING_FLOP if self.training else 1)

    def workload(self):
        """Least bytes: operands and the result once; in training these again, and a gradient of
        each."""
        queries = self.batch * self.heads * self.length * self.head_dim
        keys = self.batch * self.groups * self.length * self.head_dim
        moved = BYTES * (2 * queries + 2 * keys) * (3 if self.training else 1)
        kind = 'forward and backward' if self.training else 'forward'
        pairs = sum(map(self.pairs_of_row, range(self.batch)))
        share = pairs / (self.batch * self.length**2)
        return Workload(self.name(), moved, self.flop(),
                        f'{kind}, {100 * share:.1f}% of all scores')

    def compile_arguments(self, table):
        """Of weft; `table`: path of a .npy file that holds table()."""
        kind = self.kind.split(' ')[-1]
        own = {
            'window': f'window={self.window}', 'blocks': f'{table}(block={TILE})', 'none': '',
            'causal': ''
        }.get(kind, kind)
        mask = ','.join(filter(None, ['causal' if self.causal else '', own]))
        score = f'softcap={SOFTCAP:g}' if self.score == 'softcap' else self.score
        extents = dict(b=self.batch, h=self.heads, g=self.groups, j=self.length, k=self.length,
                       p=self.head_dim, w=self.head_dim)
        return [
            'attention', '--dtype', self.dtype,
            *(word for axis, extent in extents.items() for word in ('--dim', f'{axis}={extent}')),
            *(['--mask', mask] if mask else []), *(['--score', score] if score else []),
            *(['--train'] if self.training else [])
        ]


def draw(seed, index):
    share = lambda quantity: uniform(seed, index, f'mask {SAMPLER} {quantity}')
    pick = lambda quantity, options: options[int(share(quantity) * len(options))]
    training = share('training') < 1 / 3
    heads = pick('heads', range(HEADS[0], HEADS[1] + 1))
    groups = pick('groups', divisors(heads)) if share('grouped') < 1 / 3 else heads
    longest = LONGEST_TRAINING if training else LENGTHS[1]
    length = log_uniform(share('length'), LENGTHS[0], longest)
    length = 64 * round(length / 64) if share('multiple of 64') < 0.5 else round(length)
    tokens = log_uniform(share('tokens'), *TOKENS)
    head_dim = 64 if share('small head') < 0.5 else pick('head dim', HEAD_DIMS)
    return Draw(seed, index, pick('kind', KINDS), pick('score', SCORES),
                pick('dtype', ('f16', 'bf16')), heads, groups, head_dim,
                max(1, round(tokens / length)), length,
                round(log_uniform(share('window'), 32, 2048)),
                round(log_uniform(share('documents'), 2, 32)), pick('density', DENSITIES), training)


def draws(seed, first, count):
    return [draw(seed, index) for index in range(first, first + count)]
