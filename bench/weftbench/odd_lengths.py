"""Group `odd-lengths`: a layer at a length that is no multiple of 8 and at the next one that is, in
the same rounds, by their times per token."""
import torch

from . import encoder, ours, pairs_table, timing
from .layers import BERT_LARGE
from .report import OURS, Result, Workload

ROWS = [(BERT_LARGE, 3, 777, 784)]
MOST = 1.05  # of a token's time at the odd length over one's at the even length


def name_of(layer, batch, odd, even):
    return f'{layer.name(batch, odd)} beside L={even}'


def label_of(length):
    return f'{OURS} L={length}'


def at_length(settings, result, layer, batch, length):
    """The layer at one length, compared with fp64 first; under its own name in the result."""
    one, label = Result(layer.workload(batch, length)), label_of(length)
    found = ours.guarded(
        one, lambda: encoder.our_contenders(one, settings, layer, *encoder.operands(
            layer, batch, length), batch, length))
    for contender in found:
        contender.name = label
    for own, others in ((result.failures, one.failures), (result.errors, one.errors)):
        own.update({label: value for name, value in others.items() if name == OURS})
    result.extra.update({f'{name} L={length}': value for name, value in one.extra.items()})
    return found


def measured(settings, layer, batch, odd, even):
    result = Result(Workload(name_of(layer, batch, odd, even), note='forward, by token'))
    contenders = [
        contender for length in (odd, even)
        for contender in at_length(settings, result, layer, batch, length)
    ]
    timing.measure(result, contenders, settings.rounds)
    result.record['pair'] = pairs_table.record(
        result, label_of(odd), label_of(even), f'time per token, L={odd} / L={even}', MOST,
        even / odd)
    return result


def run(settings):
    for row in ROWS:
        if settings.wants(name_of(*row)):
            yield measured(settings, *row)
            torch.cuda.empty_cache()
