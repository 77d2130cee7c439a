"""Rows of group `attention`: sizes, masks, flop, and the graph that weft compiles. No packages:
tested without a GPU."""
import math
import random
from dataclasses import dataclass

from .report import Workload

FP16 = 2  # bytes
GRADIENTS = ('q', 'k', 'v')
BIAS = 'bias'
SAMPLED_QUERIES = 64
# What a row belongs to: its part of the verdict.
FORWARD, WINDOW, HEAD_DIMS, GROUPED, DECODE, TRAINING = ('forward', 'window', 'head dims',
                                                         'grouped', 'decode', 'forward+backward')
# Rows whose errors count, and no times.
ADVERSARIAL, ADVERSARIAL_TRAINING = ADVERSARIALS = ('adversarial', f'adversarial {TRAINING}')
# Scores of adversarial rows: all alike, one key far above all others, and +-6e4, as large as fp16
# holds. Others have random scores, and sizes or masks that kernels do not like.
EQUAL, ONE_HUGE, EXTREME = SCORES = ('equal scores', 'one huge score', 'scores of 6e4')
RANDOM = 'random scores'
HUGE_KEY = 7
# Products of the backward pass are five, of forward two: as published rates count them.
TRAINING_FLOP = 3.5


@dataclass(frozen=True)
class Row:
    """Attention of fp16 tensors [batch, length, heads, dim], queries at the last positions of the
    keys. Masks are those of weft's --mask."""
    part: str
    batch: int
    heads: int
    head_dim: int
    keys: int
    groups: int = 0  # key/value heads; 0: as many as heads
    queries: int = 0  # 0: as many as keys
    causal: bool = False
    window: int = 0  # of a causal row: keys that a query sees, its own included; 0: all
    scores: str = ''  # of an adversarial row: one of SCORES, or RANDOM
    has_bias: bool = False  # of a row in training: an addend of scores, [heads, queries, keys]

    @property
    def trains(self):
        return self.part in (TRAINING, ADVERSARIAL_TRAINING)

    @property
    def gradients(self):
        """What has one, in the order of the graph's arguments."""
        return (*GRADIENTS, BIAS) if self.has_bias else GRADIENTS

    @property
    def cancels(self):
        """Whether the terms of gradients sum to far less than they are."""
        return self.scores in SCORES

    @property
    def key_heads(self):
        return self.groups or self.heads

    @property
    def length(self):
        """Of the queries."""
        return self.queries or self.keys

    def name(self):
        heads = f'{self.heads}/{self.groups}' if self.groups else f'{self.heads}'
        mask = f' window {self.window}' if self.window else ' causal' if self.causal else ''
        mask += f' {BIAS}' * self.has_bias
        queries = f' {self.queries} query' if self.queries else ''
        trains = f' {TRAINING}' if self.trains else ''
        size = f'L={self.keys} B={self.batch}'
        scores = f' {ADVERSARIAL} {self.scores}' if self.scores else ''
        return f'd={self.head_dim} {heads} heads{mask}{queries} {size}{trains}{scores}'

    def shapes(self):
        """Of q, k and v."""
        other = (self.batch, self.keys, self.key_heads, self.head_dim)
        return (self.batch, self.length, self.heads, self.head_dim), other, other

    def bias_shape(self):
        return self.heads, self.length, self.keys

    def sees(self, query, key):
        distance = query + self.keys - self.length - key
        return (not self.causal or distance >= 0) and (not self.window or distance < self.window)

    def pairs(self):
        """Of query and key that see each other, of one head."""
        if not self.causal:
            return self.length * self.keys
        most = self.window or self.keys
        return sum(min(most, query + self.keys - self.length + 1) for query in range(self.length))

    def flop(self):
        forward = 4 * self.batch * self.heads * self.head_dim * self.pairs()
        return TRAINING_FLOP * forward if self.trains else forward

    def bytes_moved(self):
        """Queries, keys, values, a bias and results once; in the backward pass these again, the
        results' gradient and those of the operands."""
        queries, keys, values = map(math.prod, self.shapes())
        others = keys + values + math.prod(self.bias_shape()) * self.has_bias
        forward = FP16 * (2 * queries + others)
        return forward + FP16 * (4 * queries + 2 * others) if self.trains else forward

    def key_value_bytes(self):
        return FP16 * sum(map(math.prod, self.shapes()[1:]))

    def workload(self):
        note = self.part if self.trains else f'forward, {self.part}'
        if self.part == DECODE:
            return Workload(self.name(), self.key_value_bytes(), self.flop(),
                            note + ', bytes of K and V')
        return Workload(self.name(), self.bytes_moved(), self.flop(), note)

    def element(self, is_key, position, column):
        """An element of q or k of an adversarial row, as kernels are tested with
        (tests/unit/samples/AdversarialScores.h). 1 / sqrt(head_dim) scales scores."""
        if self.scores == EQUAL:
            return 0.5
        if self.scores == ONE_HUGE:
            return 8.0 if is_key and position == HUGE_KEY else (position * 5 + column * 3) % 7 / 8
        # Products of all columns are +-6e4 once they are scaled.
        size = math.sqrt(6e4 / math.sqrt(self.head_dim))
        return size if position % (3 if is_key else 2) == 0 else -size

    def sampled_queries(self):
        """Positions of the queries whose results are compared with fp64: ends, edges of tiles, and
        others drawn."""
        edges = {0, 1, 63, 64, 127, 128, self.length // 2, self.length - 2, self.length - 1}
        drawn = random.Random(0).sample(range(self.length), min(self.length, SAMPLED_QUERIES))
        return sorted({query for query in edges | set(drawn) if 0 <= query < self.length})

    def graph(self):
        """The row for weft: axes in the order of the rivals' tensors. Heads of a group are an axis,
        r, as in Llama's layers."""
        extents = dict(b=self.batch, j=self.length, k=self.keys, h=self.heads, g=self.groups,
                       p=self.head_dim, w=self.head_dim)
        extents['r'] = self.heads // self.key_heads
        each, shared = ('gr', 'g') if self.groups else ('h', 'h')
        axes = dict(q=f'bj{each}p', k=f'bk{shared}p', v=f'bk{shared}w', s=f'b{each}jk',
                    y=f'bj{each}w')
        types = '\n'.join(f'!{name} = tensor<{"x".join(str(extents[axis]) for axis in order)}xf16, '
                          f'#weft.axes<{", ".join(order)}>>' for name, order in axes.items())
        masked = 'score'
        mask = argument = ''
        if self.has_bias:
            extent = 'x'.join(map(str, self.bias_shape()))
            types += f'\n!{BIAS} = tensor<{extent}xf16, #weft.axes<h, j, k>>'
            masked, argument = 'biased', f', %{BIAS}: !{BIAS}'
            mask = f'    %biased = weft.add %score, %{BIAS} along (h, j, k) : !s, !{BIAS} -> !s\n'
        if self.causal:
            kind = f'window %score {{query = j, key = k, left = {self.window - 1}, right = 0}}' if \
                self.window else 'causal %score {query = j, key = k}'
            masked, mask = 'masked', f'    %masked = weft.mask {kind} : !s\n'
        return f'''// {self.name()}
{types}
module {{
  weft.graph @attention(%q: !q, %k: !k, %v: !v{argument}) -> !y {{
    %score = weft.contract "{axes['k']},{axes['q']}->{axes['s']}" %k, %q {{scale = {
        1 / math.sqrt(self.head_dim)!r}}} : !k, !q -> !s
{mask}    %probability = weft.softmax %{masked} over k : !s
    %y = weft.contract "{axes['v']},{axes['s']}->{axes['y']}" %v, %probability : !v, !s -> !y
    weft.return %y : !y
  }}
}}
'''


TOKENS = 16384
# workloads.md, section 3: 16k tokens, hidden size 2048.
HEADS = {64: 32, 128: 16}
LENGTHS = [(512, False), (4096, False), (16384, False), (4096, True), (16384, True)]
ROWS = [
    Row(FORWARD, TOKENS // length, heads, head_dim, length, causal=causal)
    for head_dim, heads in HEADS.items() for length, causal in LENGTHS
]
ROWS += [
    Row(WINDOW, 2, 128, 64, 4096, causal=True, window=128),
    Row(HEAD_DIMS, 4, 32, 80, 4096),
    Row(HEAD_DIMS, 4, 32, 96, 4096),
    Row(GROUPED, 2, 32, 128, 8192, groups=8, causal=True),
    Row(DECODE, 1, 32, 128, 32768, groups=8, queries=1)
]
ROWS += [
    Row(TRAINING, TOKENS // length, heads, head_dim, length, causal=causal)
    for head_dim, heads in HEADS.items() for length, causal in LENGTHS
]
# In place of the rows above where they are asked for (`--adversarial`): cuDNN's error on the same
# inputs is what ours is held to.
ADVERSARIAL_ROWS = [
    Row(part, 2, heads, head_dim, 4096, causal=causal, scores=scores)
    for part in ADVERSARIALS for head_dim, heads in HEADS.items() for causal in (False, True)
    for scores in SCORES
]
ADVERSARIAL_ROWS += [
    row for part in ADVERSARIALS
    for row in (Row(part, 2, 32, 64, 333, causal=True, scores=RANDOM),
                Row(part, 2, 16, 72, 777, scores=RANDOM))
]
ADVERSARIAL_ROWS += [
    Row(ADVERSARIAL, 2, 32, 64, 333, queries=1, scores=RANDOM),
    Row(ADVERSARIAL_TRAINING, 2, 16, 64, 1024, scores=RANDOM, has_bias=True)
]
