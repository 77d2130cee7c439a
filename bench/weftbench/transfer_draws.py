"""Layers that nobody tuned for: one draw is a function of (seed, index) alone, so that runs of one
seed agree on it and add up. No packages: tested without a GPU.

Each quantity is a hash of its name, the seed and the index: a further quantity changes none of the
others. What the text of the distribution leaves open is decided here:
- B is tokens / L rounded, then the nearest at which B x L lies within the range of tokens.
- Layers of the encoder and decoder families have 8/3 of the hidden size in one of four draws.
- One of four draws of every family is training; dropout belongs to the encoder family."""
import hashlib
from dataclasses import asdict, dataclass

from .report import Workload

SAMPLER = 1  # raised when draws change: those of two versions are not added up
FAMILIES = ('encoder', 'decoder', 'grouped')
HEAD_DIMS = (80, 96, 128)  # besides 64, which half of the draws have
HEADS = (8, 32)
TOKENS = (512, 32768)
LENGTHS = (64, 8192)
DROPOUT = 0.1
EPSILONS = {'encoder': 1e-12, 'decoder': 1e-5, 'grouped': 1e-5}
ROTARY_BASE = 10000.0
BYTES = 2  # of an element of either type
EVEN = 8


def uniform(seed, index, quantity):
    """In [0, 1), of 53 bits."""
    word = hashlib.sha256(f'transfer {SAMPLER}: {seed}, {index}, {quantity}'.encode()).digest()
    return (int.from_bytes(word[:8], 'big') >> 11) / (1 << 53)


def log_uniform(share, smallest, largest):
    return smallest * (largest / smallest)**share


def divisors(number):
    return [one for one in range(1, number + 1) if number % one == 0]


@dataclass(frozen=True)
class Draw:
    """A layer and what it is applied to: `batch` sequences of `length` tokens."""
    seed: int
    index: int
    family: str
    dtype: str  # f16 or bf16
    heads: int
    groups: int  # key/value heads; those of the query but in the grouped family
    head_dim: int
    feed_forward: int
    batch: int
    length: int
    training: bool = False
    dropout: float = 0.0

    @property
    def hidden(self):
        return self.heads * self.head_dim

    @property
    def causal(self):
        return self.family != 'encoder'

    @property
    def epsilon(self):
        return EPSILONS[self.family]

    @property
    def even(self):
        """Whether all widths are multiples of 8."""
        return all(width % EVEN == 0 for width in (self.hidden, self.feed_forward, self.length))

    def name(self):
        heads = f'{self.heads}/{self.groups}' if self.family == 'grouped' else f'{self.heads}'
        return (f'{self.seed}/{self.index} {self.family} {heads}x{self.head_dim} '
                f'ff {self.feed_forward} B={self.batch} L={self.length} {self.dtype}'
                + (' training' if self.training else ''))

    def data(self):
        return {**asdict(self), 'hidden': self.hidden, 'even': self.even}

    def config(self):
        """The config.json of a model whose layer this is."""
        kind = {'f16': 'float16', 'bf16': 'bfloat16'}[self.dtype]
        if self.family == 'encoder':
            return {
                'model_type': 'bert', 'hidden_size': self.hidden, 'num_attention_heads': self.heads,
                'intermediate_size': self.feed_forward, 'hidden_act': 'gelu',
                'layer_norm_eps': self.epsilon, 'max_position_embeddings': self.length,
                'torch_dtype': kind
            }
        if self.family == 'decoder':
            return {
                'model_type': 'gpt2', 'n_embd': self.hidden, 'n_head': self.heads,
                'n_inner': self.feed_forward, 'activation_function': 'gelu_new',
                'layer_norm_epsilon': self.epsilon, 'n_positions': self.length, 'torch_dtype': kind
            }
        return {
            'model_type': 'llama', 'hidden_size': self.hidden, 'num_attention_heads': self.heads,
            'num_key_value_heads': self.groups, 'head_dim': self.head_dim,
            'intermediate_size': self.feed_forward, 'hidden_act': 'silu',
            'rms_norm_eps': self.epsilon, 'rope_theta': ROTARY_BASE,
            'max_position_embeddings': self.length, 'torch_dtype': kind
        }

    def compile_arguments(self, config):
        """Of weft, with the path of a file that holds config()."""
        return [
            config, '--dim', f'b={self.batch}', '--dim', f'j={self.length}', '--dtype', self.dtype,
            '--dropout', self.dropout, *(['--train'] if self.training else [])
        ]

    def weight_elements(self):
        """Of matrices, biases and both norms."""
        hidden, inner = self.hidden, self.feed_forward
        if self.family == 'grouped':
            projections = 2 * hidden * (self.heads + self.groups) * self.head_dim
            return projections + (3 * inner + 2) * hidden
        return 4 * hidden * hidden + 2 * hidden * inner + 9 * hidden + inner

    def flop(self):
        """Of the products that a forward pass needs: of causal scores those on and below the
        diagonal."""
        tokens, hidden = self.batch * self.length, self.hidden
        matrices = 3 if self.family == 'grouped' else 2
        projected = 2 * hidden * (self.heads + self.groups) * self.head_dim
        keys = (self.length + 1) / 2 if self.causal else self.length
        return tokens * (2 * (projected + matrices * hidden * self.feed_forward)
                         + 4 * keys * hidden)

    def workload(self):
        """Least bytes and flop: input, result and weights once; with training twice as many bytes,
        since each has its gradient, and three times the products."""
        moved = BYTES * (2 * self.batch * self.length * self.hidden + self.weight_elements())
        passes = 'forward and backward' if self.training else 'forward'
        note = passes + (f', dropout {self.dropout}' if self.dropout else '')
        return Workload(self.name(), (2 if self.training else 1) * moved,
                        (3 if self.training else 1) * self.flop(), note)


def feed_forward_of(family, hidden, is_narrow):
    """4x; 8/3x rounded up to 64 with a gate, to 1 for narrow layers of the others."""
    if family == 'grouped':
        return 64 * -(-8 * hidden // (3 * 64))
    return -(-8 * hidden // 3) if is_narrow else 4 * hidden


def batch_of(tokens, length):
    return min(max(round(tokens / length), -(-TOKENS[0] // length)), TOKENS[1] // length)


def draw(seed, index):
    share = lambda quantity: uniform(seed, index, quantity)
    pick = lambda quantity, options: options[int(share(quantity) * len(options))]
    family = pick('family', FAMILIES)
    head_dim = 64 if share('small head') < 0.5 else pick('head dim', HEAD_DIMS)
    heads = pick('heads', range(HEADS[0], HEADS[1] + 1))
    groups = pick('groups', divisors(heads)) if family == 'grouped' else heads
    inner = feed_forward_of(family, heads * head_dim, share('feed-forward') < 0.25)
    length = log_uniform(share('length'), *LENGTHS)
    length = 64 * round(length / 64) if share('multiple of 64') < 0.5 else round(length)
    training = share('training') >= 0.75
    return Draw(seed, index, family, pick('dtype', ('f16', 'bf16')), heads, groups, head_dim, inner,
                batch_of(log_uniform(share('tokens'), *TOKENS), length), length, training,
                DROPOUT if training and family == 'encoder' else 0.0)


def draws(seed, first, count):
    return [draw(seed, index) for index in range(first, first + count)]
