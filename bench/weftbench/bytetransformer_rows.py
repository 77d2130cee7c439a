"""What the figures of seed 001 (ByteTransformer) need of weft: layers, lengths, the flags of each
step, and the seed's own figures. No packages: tested without a GPU."""
import math
from dataclasses import dataclass

from . import layers, varlen_rows
from .attention_table import geometric_mean

BATCHES, MEAN = varlen_rows.BATCHES, varlen_rows.MEAN
SHORT, LONG = (64, 128, 192, 256, 320, 384), (448, 512, 640, 768, 896, 1024)  # Fig. 11, Fig. 12
STEP_LENGTHS = (128, 256, 384, 512, 768, 1024)  # Fig. 14
MEANS = tuple(tenth / 10 for tenth in range(1, 11))
SWEEP_BATCH = 16  # Fig. 15 (c)
FIGURES = ('fig11', 'fig12', 'fig13', 'fig14', 'fig15', 'fig16')
TITLES = {
    'fig11': 'attention of one layer, short sequences',
    'fig12': 'attention of one layer, long sequences',
    'fig13': 'fused attention beside FlashAttention', 'fig14': 'one layer, step by step',
    'fig15': '12 layers of BERT-base end to end', 'fig16': 'other models end to end'
}


@dataclass(frozen=True)
class Step:
    """A step of Fig. 14: what the seed adds to the step before, and all of our flags for it."""
    name: str
    flags: tuple
    gain: float | None  # the seed's, %, over the step before; mean of L = 128 to 1024
    packs: bool = False
    apart: str = ''  # where ours is not the seed's


# The ops of an encoder layer that lead from the projections to the norms, and to the activation.
NORMS = (('attention', 'residual1'), ('residual1', 'norm1'), ('feed_forward', 'residual2'),
         ('residual2', 'norm2'))
BIASES = (('attention_product', 'attention'), ('feed_forward_product', 'feed_forward'))
ACTIVATION = (('hidden_product', 'hidden'), ('hidden', 'active'))


def separate(*pairs):
    return tuple(word for pair in pairs for word in ('--no-fuse', ','.join(pair)))


PADDING, STORED = ('--mask', 'padding'), ('--attention', 'unfused')
STEPS = (
    Step('baseline', (*PADDING, *STORED, *separate(*BIASES, *NORMS, *ACTIVATION)), None,
         apart='biases of Q, K and V are added in their GEMM'),
    Step('layernorm fusion', (*PADDING, *STORED, *separate(*BIASES, *ACTIVATION)), 3.2,
         apart='bias, residual and norm in one kernel, as the seed has them'),
    Step('bias + GELU fusion', (*PADDING, *STORED, *separate(*BIASES)), 3.8),
    Step('rm padding', ('--ragged', 'j', *STORED), 24, True,
         'tokens are packed and unpacked in kernels by themselves; the GEMMs also add their '
         'biases, since only a kernel that masks its rows leaves out those behind the last token'),
    Step('fused MHA', ('--ragged', 'j', '--attention', 'fused'), 20, True,
         'one kernel for all lengths, where the seed changes over at 384')
)
TOTAL_GAIN = 60  # of the seed, fused MHA over the baseline
PADDED, PACKED = 'weft padded', 'weft packed'


@dataclass(frozen=True)
class Model:
    preset: str
    layers: int
    layer: layers.Layer | None  # what rivals and the fp64 reference need; None: predicted alone


MODELS = (Model('albert-base', 12, layers.ALBERT_BASE), Model('distilbert', 6, layers.DISTILBERT),
          Model('deberta-base', 12, None))
BERT = Model('bert-base', 12, layers.BERT_BASE)


@dataclass(frozen=True)
class Work:
    """What is timed: layers over sequences of different lengths."""
    preset: str
    layers: int
    batch: int
    length: int
    mean: float = MEAN

    def name(self):
        return f'{self.preset} {self.layers} layers {self.size()}' if self.layers > 1 else \
            f'{self.preset} layer {self.size()}'

    def size(self):
        return f'B={self.batch} L={self.length} {100 * self.mean:g}%'

    def row(self):
        """As group `varlen` has it."""
        layer = next(model.layer for model in (BERT, *MODELS) if model.preset == self.preset)
        return varlen_rows.Row(self.batch, self.length, self.mean, self.layers,
                               layer or layers.BERT_BASE)

    def lengths(self):
        return self.row().lengths()

    def model_arguments(self):
        return [self.preset, '--layers', str(self.layers), '--dim', f'b={self.batch}', '--dim',
                f'j={self.length}', '--dtype', 'f16']


@dataclass(frozen=True)
class Point:
    """A point of a figure. Points of several figures may be of one work."""
    figure: str
    work: Work

    def name(self):
        preset = f' {self.work.preset}' if self.figure == 'fig16' else ''
        return f'{self.figure}{preset} {self.work.size()}'

    def is_of_steps(self):
        return self.figure in ('fig11', 'fig12', 'fig13', 'fig14')


def grid(preset, count, lengths, batches=BATCHES, means=(MEAN,)):
    return [Work(preset, count, batch, length, mean) for batch in batches for mean in means
            for length in lengths]


def points():
    """By figure; of Fig. 15 the means beside 60% are those of part (c)."""
    works = {
        'fig11': grid('bert-base', 1, SHORT), 'fig12': grid('bert-base', 1, LONG),
        'fig13': grid('bert-base', 1, SHORT + LONG), 'fig14': grid('bert-base', 1, STEP_LENGTHS),
        'fig15': grid(BERT.preset, BERT.layers, varlen_rows.LENGTHS)
    }
    sweep = grid(BERT.preset, BERT.layers, varlen_rows.LENGTHS, (SWEEP_BATCH,), MEANS)
    works['fig15'] += [work for work in sweep if work not in works['fig15']]
    works['fig16'] = [work for model in MODELS
                      for work in grid(model.preset, model.layers, varlen_rows.LENGTHS)]
    return {figure: [Point(figure, work) for work in works[figure]] for figure in FIGURES}


# Of the seed, on an A100: % by which ByteTransformer is faster on average, by what it is compared
# with. Which of our contenders stand for these is in CONTENDERS.
SEED = {
    'fig11': {'PyTorch': 617, 'cuBLAS': 42, 'cuBLAS + zero padding': 30},
    'fig12': {'PyTorch': 451, 'cuBLAS': 110, 'cuBLAS + zero padding': 79},
    'fig15': {'PyTorch JIT': 87, 'TensorFlow XLA': 131, 'TurboTransformer': 138, 'DeepSpeed': 74,
              'FasterTransformer': 55},
    'fig16': {'PyTorch': 98, 'TensorFlow': 158, 'TurboTransformer': 256, 'DeepSpeed': 93,
              'FasterTransformer': 53},
    'fig16 deberta-base': {'PyTorch': 44, 'TensorFlow': 243, 'DeepSpeed': 74}
}
SEED_FLASH = {'small batches': 101, 'large batches': -59}  # Fig. 13
SEED_LEAST_MEAN = 66  # Fig. 15 (c): % less time at 0.1 than at 1.0, at most
# Fig. 11 and 12: the seed's variants, and the steps of Fig. 14 whose attention stands for them.
VARIANTS = {'cuBLAS': 'bias + GELU fusion', 'cuBLAS + zero padding': 'rm padding'}
FUSED = 'fused MHA'
ATTENTION = 'attention, '  # before the name of a step: the kernels of its attention alone
# Attention by itself, which is measured alone: --attention by contender.
CORES = {'unfused, padded tensors': 'unfused', 'fused, padded tensors': 'fused'}


def gain(before, after):
    """% by which `after` is faster; None where one has no figure."""
    return 100 * (before / after - 1) if before and after else None


def mean_gain(pairs):
    """Of (before, after): of the geometric mean of the ratios; None without a pair."""
    ratios = [before / after for before, after in pairs if before and after]
    return 100 * (geometric_mean(ratios) - 1) if ratios else None


def percent(value):
    return '-' if value is None or math.isnan(value) else f'{value:+.1f}%'
