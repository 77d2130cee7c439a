"""The layers that are measured whole: presets of weft with the sizes that rivals, references and
floors need. No packages: tested without a GPU."""
from dataclasses import dataclass

from .report import Workload

FP16 = 2  # bytes


@dataclass(frozen=True)
class Layer:
    """A post-norm encoder layer, or its multi-head attention alone: projections with biases,
    softmax, dropout, output projection."""
    preset: str
    hidden: int
    heads: int
    feed_forward: int = 0  # 0: attention alone
    activation: str = ''
    dropout: float = 0.0
    epsilon: float = 0.0
    shares: bool = False  # weights between the layers of a model
    causal: bool = False
    label: str = ''  # of a preset at other sizes, which are then all named; empty: the preset's

    def name(self, batch, length):
        return f'{self.label or self.preset} B={batch} L={length}'

    def training_name(self, batch, length):
        return f'{self.label or self.preset} training B={batch} L={length}'

    def compile_arguments(self, batch, length):
        dims = {'b': batch, 'j': length}
        if self.label:
            dims.update(i=self.hidden, h=self.heads, u=self.feed_forward)
        named = [word for axis, extent in dims.items() for word in ('--dim', f'{axis}={extent}')]
        return [self.preset, *named, *(['--mask', 'causal'] if self.causal else [])]

    def weight_elements(self):
        """Of matrices, biases and, in an encoder layer, two norms."""
        hidden, inner = self.hidden, self.feed_forward
        attention = 4 * hidden * hidden + 4 * hidden
        return attention + (2 * hidden * inner + inner + 5 * hidden if inner else 0)

    def flop(self, batch, length):
        """Of the products of a forward pass: projections, scores, weighted sum, output, and what
        feeds forward."""
        tokens = batch * length
        seen = (length + 1) / 2 if self.causal else length  # keys of a query, in the mean
        return 2 * tokens * self.hidden * (
            4 * self.hidden + 2 * self.feed_forward) + 4 * tokens * seen * self.hidden

    def workload(self, batch, length):
        """Bytes of input, output and weights once."""
        moved = FP16 * (2 * batch * length * self.hidden + self.weight_elements())
        note = 'forward' + (f', dropout {self.dropout}' if self.dropout else '')
        return Workload(self.name(batch, length), moved, self.flop(batch, length), note)

    def training_workload(self, batch, length):
        """Three times the forward products; bytes of input, result, their gradients, weights read
        and their gradients written."""
        forward = self.workload(batch, length)
        return Workload(self.training_name(batch, length), 2 * forward.bytes_moved,
                        3 * forward.flop, f'forward and backward, dropout {self.dropout}')


PAPER = Layer('paper-encoder', hidden=1024, heads=16, feed_forward=4096, activation='relu',
              dropout=0.1, epsilon=1e-5)
PAPER_ATTENTION = Layer('paper-attention', hidden=1024, heads=16, dropout=0.1)
BERT_BASE = Layer('bert-base', hidden=768, heads=12, feed_forward=3072, activation='gelu',
                  epsilon=1e-12)
BERT_LARGE = Layer('bert-large', hidden=1024, heads=16, feed_forward=4096, activation='gelu',
                   epsilon=1e-12)
# Of ByteTransformer's other models; ALBERT's layers share their weights.
ALBERT_BASE = Layer('albert-base', hidden=768, heads=12, feed_forward=3072, activation='gelu_tanh',
                    epsilon=1e-12, shares=True)
DISTILBERT = Layer('distilbert', hidden=768, heads=12, feed_forward=3072, activation='gelu',
                   epsilon=1e-12)

# GPT-Neo-1.3B's global layer as the rivals' protocol has it: post-norm, with the scale.
GPT_NEO = Layer('bert-large', hidden=2048, heads=16, feed_forward=8192, activation='gelu',
                epsilon=1e-12, causal=True, label='gpt-neo global')

SHAPES = [(8, 512), (96, 128)]
SWEEP = [(1, length) for length in (128, 256, 512, 1024, 2048, 4096)]
FORWARD = [(layer, *shape) for shape in SHAPES + SWEEP for layer in (PAPER, BERT_BASE, BERT_LARGE)]
FORWARD += [(PAPER_ATTENTION, *shape) for shape in SHAPES]
FORWARD += [(BERT_LARGE, 8, 4096), (GPT_NEO, 1, 4096), (GPT_NEO, 8, 4096)]
TRAINING = [(layer, *shape) for layer in (PAPER, PAPER_ATTENTION) for shape in SHAPES]
# Best rival / weft that is asked for, by workload (workloads, sections 1 and 2).
MUST = {
    'paper-encoder B=8 L=512': 1.35, 'paper-encoder B=96 L=128': 1.30,
    'paper-attention B=8 L=512': 1.25, 'paper-encoder training B=8 L=512': 1.25,
    'paper-encoder training B=96 L=128': 1.35, 'paper-attention training B=8 L=512': 1.15,
    'paper-attention training B=96 L=128': 1.15, 'bert-large B=8 L=4096': 1.03,
    'gpt-neo global B=1 L=4096': 1.00, 'gpt-neo global B=8 L=4096': 1.02,
    **{BERT_LARGE.name(*shape): 1.00
       for shape in SWEEP}
}
