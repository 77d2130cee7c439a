"""Plans that nobody chose, to be verified: `plan(seed, index)` is a function of both alone, so that
a failure is named by two numbers. No packages: tested without a GPU.

Each quantity is a hash of its name, the seed and the index: a further quantity changes none of the
others. Sizes are small (at most 4096 tokens of at most 16 heads), since they are compared with
fp64, and as often odd as even. What weft does not support is drawn, too: the message says so."""
import hashlib

ENCODERS = ('bert-base', 'paper-encoder', 'distilbert')
DECODERS = ('gpt2', 'gpt-neo-1.3b-local', 'bloom-560m', 'mpt-7b', 'transformer-decoder')
GROUPED = ('llama-3-8b',)
SPARSE = ('bigbird-large', 'longformer-large')
OTHERS = ('t5-base-encoder', 't5-base-decoder', 'deberta-base')
# Half of all plans are of the first three families, which users have most.
FAMILIES = (ENCODERS, DECODERS, GROUPED) * 2 + (SPARSE, OTHERS, ('attention',), ('attention',))
WITH_MEMORY = ('transformer-decoder', 't5-base-decoder')  # axis m
WITHOUT_GRADIENT = OTHERS
HEAD_DIMS = (64, 64, 64, 128, 128, 32, 40, 72, 80, 96, 160)
HEADS = 16
TOKENS = 4096
LENGTH = 2048
SHORT = 16  # one of eight lengths is below
SHORTEST_SPARSE = 256
MASKS = ('causal', 'window=', 'padding', 'document', 'block', 'causal,document', 'causal,padding',
         'attention-mask')
SCORES = ('softcap=20', 'alibi', 'relative=16', 'softcap=30,alibi')
BLOCKS = ('bigbird(block=64,window=3,global=2,random=3,seed=0)', 'longformer(block=64,window=2)',
          'bigbird(block=32,window=3,global=1,random=2,seed=1)')


class Share:
    """Numbers in [0, 1) of 53 bits, by the name of a quantity."""
    def __init__(self, seed, index):
        self.of = f'{seed}, {index}'

    def __call__(self, quantity):
        word = hashlib.sha256(f'plan {self.of}, {quantity}'.encode()).digest()
        return (int.from_bytes(word[:8], 'big') >> 11) / (1 << 53)

    def pick(self, quantity, options):
        return options[int(self(quantity) * len(options))]

    def integer(self, quantity, smallest, largest):
        """Evenly over the logarithm."""
        return min(int(smallest * ((largest + 1) / smallest)**self(quantity)), largest)

    def chance(self, quantity, probability):
        return self(quantity) < probability


def divisors(number):
    return [one for one in range(1, number + 1) if number % one == 0]


def rounded(share, quantity, number, multiple):
    """To a multiple, in one of two draws."""
    return max(multiple, number // multiple * multiple) if share.chance(quantity, 0.5) else number


def extents(share, preset):
    """By the name of the axis."""
    shortest = 1 if share.chance('short', 1 / 8) else SHORT
    if preset in SPARSE:
        shortest = SHORTEST_SPARSE
    length = rounded(share, 'even length', share.integer('length', shortest, LENGTH), 8)
    batch = share.integer('batch', 1, max(1, min(32, TOKENS // length)))
    heads = share.pick('heads', range(1, HEADS + 1))
    head_dim = share.pick('head dim', HEAD_DIMS)
    dims = {'b': batch, 'j': length, 'h': heads, 'p': head_dim}
    if preset in GROUPED or (preset == 'attention' and share.chance('groups', 0.4)):
        dims['g'] = share.pick('group', divisors(heads))
    if preset == 'attention':
        if share.chance('other keys', 0.3):
            dims['k'] = length + share.integer('more keys', 1, LENGTH)
        return dims
    dims['i'] = heads * head_dim
    dims['u'] = rounded(share, 'even inner', share.integer('inner', 32, 4 * dims['i']), 8)
    if preset in WITH_MEMORY:
        dims['m'] = rounded(share, 'even memory', share.integer('memory', 1, LENGTH), 8)
    return dims


def masks(share, preset):
    if preset in SPARSE or not share.chance('masked', 0.5):
        return []
    kind = share.pick('mask', MASKS)
    if kind == 'window=':
        kind += str(share.integer('window', 1, 512))
    return ['--mask', share.pick('blocks', BLOCKS) if kind == 'block' else kind]


def types(share):
    kind = share.pick('type', ('f16', 'bf16', 'f16', 'bf16', 'f32', 'tf32'))
    return ['--dtype', 'f32', '--tf32'] if kind == 'tf32' else ['--dtype', kind]


def residual(share, preset, dtype):
    """The residual stream in f32 beside products of a narrower type; an attention has none."""
    narrower = preset != 'attention' and 'f32' not in dtype
    return ['--residual', 'f32'] if narrower and share.chance('residual', 0.15) else []


def use(share, preset):
    """Forward, with gradients, packed, or with a cache."""
    kind = share.pick('use', ('forward', 'forward', 'train', 'train', 'ragged', 'cache'))
    if kind == 'train' and preset not in WITHOUT_GRADIENT:
        dropout = ['--dropout', '0.1'] if share.chance('dropout', 0.4) else []
        adamw = ['--optimizer', 'adamw'] if share.chance('adamw', 0.2) else []
        recompute = ['--recompute', 'auto'] if share.chance('recompute', 0.2) else []
        return ['--train', *dropout, *adamw, *recompute]
    if kind == 'ragged' and preset in ENCODERS + ('gpt2',) + GROUPED:
        return ['--ragged', 'j']
    if kind == 'cache' and preset in ('gpt2',) + GROUPED:
        page = ['--page', share.pick('page', ('16', '64', '256'))]
        return ['--cache', '2048', *(page if share.chance('pages', 0.5) else [])]
    return []


def choices(share):
    """Flags of how a plan is chosen, most of which are left alone in most plans."""
    found = []
    for flag, probability, options in (
        ('--attention', 0.25, ('fused', 'unfused', 'decomposed', 'recomposed')),
        ('--norms', 0.2, ('auto', 'decomposed', 'deferred')),
        ('--stacking', 0.15, ('separate', 'three')),
        ('--early-start', 0.2, ('on', 'off')),
        ('--concurrent', 0.15, ('on',)),
        ('--deterministic', 0.15, ('off',)),
        ('--chunks', 0.1, ('2', '3')),
        ('--sub-vector', 0.1, ('16', '32', '128')),
    ):
        if share.chance(flag, probability):
            found += [flag, share.pick(flag + ' value', options)]
    return found + (['--no-library'] if share.chance('no library', 0.3) else [])


def plan(seed, index):
    """Arguments of `weft compile`."""
    share = Share(seed, index)
    preset = share.pick('preset', share.pick('family', FAMILIES))
    dims = extents(share, preset)
    used = use(share, preset)
    if '--cache' in used:
        dims['j'] = share.integer('new tokens', 1, 8)
    score = (['--score', share.pick('score', SCORES)]
             if preset == 'attention' and share.chance('scored', 0.5) else [])
    sizes = [word for axis, extent in dims.items() for word in ('--dim', f'{axis}={extent}')]
    dtype = types(share)
    return [
        preset, *sizes, *dtype, *residual(share, preset, dtype), *masks(share, preset), *score,
        *used, *choices(share)
    ]


def plans(seed, first, count):
    return {f'{seed}-{index}': plan(seed, index) for index in range(first, first + count)}
