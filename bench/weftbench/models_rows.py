"""Rows of group `models`: whole models, forward. No packages: tested without a GPU."""
from dataclasses import dataclass

from . import steps_rows
from .layers import BERT_BASE, BERT_LARGE, FP16
from .report import Workload
from .steps_rows import GPT2


@dataclass(frozen=True)
class Row(steps_rows.Row):
    """Token ids become hidden states and what the pooler makes of them, or logits."""
    def name(self):
        return f'{self.layer.preset} {self.layers} layers forward B={self.batch} ' \
            f'L={self.length} {self.dtype}'

    def compile_arguments(self):
        return [
            self.layer.preset, '--part', 'model', '--layers', self.layers, '--dtype', self.dtype,
            '--dim', f'b={self.batch}', '--dim', f'j={self.length}'
        ]

    def flop(self):
        return super().flop() / 3  # of forward, backward by operands, and by weights

    def workload(self):
        """Bytes of parameters and results once."""
        width = self.classes() if self.is_decoder() else self.layer.hidden
        moved = FP16 * (self.parameters() + self.tokens() * width)
        return Workload(self.name(), moved, self.flop(),
                        f'forward, {self.parameters() / 1e6:.0f} M parameters')


MODELS = [(BERT_BASE, 12, 8, 512), (GPT2, 12, 8, 512), (BERT_LARGE, 24, 8, 512)]


def rows():
    return [Row(*model) for model in MODELS]
