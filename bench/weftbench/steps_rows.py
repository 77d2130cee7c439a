"""Rows of group `steps`: whole training steps of whole models with AdamW. No packages: tested
without a GPU."""
from dataclasses import dataclass

from .layers import BERT_BASE, BERT_LARGE, Layer
from .report import Workload

GPT2 = Layer('gpt2', hidden=768, heads=12, feed_forward=3072, activation='gelu_tanh', epsilon=1e-5)
GPT2_MEDIUM = Layer('gpt2-medium', hidden=1024, heads=16, feed_forward=4096, activation='gelu_tanh',
                    epsilon=1e-5)
CLASSES = {'gpt2': 50257, 'gpt2-medium': 50257, 'bert-base': 30522, 'bert-large': 30522}
TYPES = 2  # of segments of a BERT
# of an element of a parameter: f32 master, mean and square read and written, the parameter read by
# forward and backward at least once, and written
BYTES_OF_PARAMETER = 2 * 3 * 4 + 2 * 2


@dataclass(frozen=True)
class Row:
    """A decoder predicts the next token; of an encoder with pooler the gradients of both results
    are given."""
    layer: Layer
    layers: int
    batch: int
    length: int
    dtype: str = 'f16'
    must: float | None = None  # what torch.compile / weft must reach; None where nothing is said

    def name(self):
        return f'{self.layer.preset} {self.layers} layers step B={self.batch} L={self.length} ' \
            f'{self.dtype}'

    def is_decoder(self):
        return self.layer.preset.startswith('gpt2')

    def classes(self):
        return CLASSES[self.layer.preset]

    def tokens(self):
        return self.batch * self.length

    def compile_arguments(self):
        return [
            self.layer.preset, '--part', 'model', '--layers', self.layers, '--train', '--optimizer',
            'adamw', '--dtype', self.dtype, '--dim', f'b={self.batch}', '--dim', f'j={self.length}'
        ]

    def parameters(self):
        """Elements; the table of tokens is the head's weight, too."""
        hidden = self.layer.hidden
        tables = (self.classes() + self.length) * hidden
        own = 2 * hidden if self.is_decoder() else \
            TYPES * hidden + 2 * hidden + hidden * hidden + hidden
        return self.layers * self.layer.weight_elements() + tables + own

    def flop(self):
        """Three times the forward products; of causal scores those on and below the diagonal."""
        forward = self.layers * self.layer.flop(self.batch, self.length)
        hidden = self.layer.hidden
        if not self.is_decoder():
            return 3 * (forward + 2 * self.batch * hidden * hidden)
        hidden_scores = 2 * self.layers * self.tokens() * (self.length - 1) * hidden
        return 3 * (forward - hidden_scores + 2 * self.tokens() * hidden * self.classes())

    def workload(self):
        return Workload(self.name(), BYTES_OF_PARAMETER * self.parameters(), self.flop(),
                        f'forward, backward and AdamW, {self.parameters() / 1e6:.0f} M parameters')

    def loss_scale(self):
        """Of f16: what gradients are multiplied by."""
        return 1.0 if self.dtype == 'bf16' else 2.0**16 if self.is_decoder() else 2.0**12


MODELS = [(GPT2, 12, 4, 1024, 1.0), (GPT2_MEDIUM, 24, 4, 1024, 1.0), (BERT_LARGE, 24, 8, 512, 1.0),
          (BERT_BASE, 12, 8, 512, None), (GPT2, 12, 8, 512, None)]


def rows():
    return [
        Row(layer, layers, batch, length, dtype, must)
        for layer, layers, batch, length, must in MODELS for dtype in ('f16', 'bf16')
    ]
