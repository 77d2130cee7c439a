"""Rows of group `profile-choice`: every tenth of the 50 drawn layers over which
tests/unit/select/estimates_compete_mlir_test.cpp compares plans by their prices, of which the
profile has no measurements, and layers of which it has. No packages: tested without a GPU."""
import math

from .layers import BERT_BASE, BERT_LARGE, PAPER
from .transfer_draws import HEAD_DIMS, LENGTHS, TOKENS, Draw, log_uniform

SEED, LAYERS, EVERY = 23, 50, 10
PROFILED = [(PAPER, 8, 512), (PAPER, 96, 128), (BERT_BASE, 8, 512), (BERT_LARGE, 8, 512),
            (BERT_LARGE, 96, 128), (BERT_LARGE, 1, 4096)]


class MersenneTwister64:
    """std::mt19937_64, by which the test draws."""
    SIZE, SHIFT, MASK = 312, 156, 2**64 - 1

    def __init__(self, seed):
        self.state, self.place = [seed], self.SIZE
        for index in range(1, self.SIZE):
            last = self.state[-1]
            self.state.append((6364136223846793005 * (last ^ last >> 62) + index) & self.MASK)

    def twist(self):
        low = 2**31 - 1
        for index in range(self.SIZE):
            word = self.state[index] & (self.MASK ^ low) | self.state[(index + 1) % self.SIZE] & low
            self.state[index] = self.state[(index + self.SHIFT) % self.SIZE] ^ word >> 1 ^ (
                word & 1) * 0xB5026F5AA96619E9
        self.place = 0

    def __call__(self):
        if self.place == self.SIZE:
            self.twist()
        word = self.state[self.place]
        self.place += 1
        word ^= word >> 29 & 0x5555555555555555
        word ^= word << 17 & 0x71D67FFFEDA60000
        word ^= word << 37 & 0xFFF7EEE000000000
        return word ^ word >> 43


def nearest(value):
    """As std::lround: halves go up."""
    return math.floor(value + 0.5)


def layers(count=LAYERS):
    """Post-norm encoders, as the test draws them."""
    random, found = MersenneTwister64(SEED), []
    up_to = lambda limit: random() % limit
    between = lambda ends: log_uniform(up_to(2**20) / 2**20, *ends)
    for index in range(count):
        heads, is_brain = 8 + up_to(25), up_to(2) == 1
        head_dim = 64 if up_to(2) == 0 else HEAD_DIMS[up_to(3)]
        length, tokens = between(LENGTHS), between(TOKENS)
        length = 64 * nearest(length / 64) if up_to(2) == 0 else nearest(length)
        found.append(
            Draw(SEED, index, 'encoder', 'bf16' if is_brain else 'f16', heads, heads, head_dim,
                 4 * heads * head_dim, max(1, nearest(tokens / length)), length))
    return found


def rows():
    return layers()[::EVERY]
