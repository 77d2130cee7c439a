"""What bench/run fig2 and fig3 measure on a GPU: weft's kinds, and rivals through PyTorch's SDPA,
in the same rounds. Right first: results are compared with fp64 as group `attention` does."""
import gc
from statistics import median

import torch
from torch.nn.attention import SDPBackend

from . import attention, attention_training, library, machine, ours, timing
from .attention_figures import (FIG2, FIG3, Kind, Point, dims, flags_of, operand_bytes, tile_name,
                                with_tile)
from .attention_rows import FORWARD, TRAINING, Row
from .recomposition_points import KINDS
from .report import Result

RIVALS = {
    'cuDNN': SDPBackend.CUDNN_ATTENTION, 'flash-2': SDPBackend.FLASH_ATTENTION,
    'eager': SDPBackend.MATH
}


def where():
    return machine.describe()


def row_of(extents, length, causal):
    return Row(FORWARD, extents['b'], extents['h'], extents['p'], length, causal=causal)


def artifact_name(extents, length, label):
    """Both figures have plans of one kind and length, of other batches."""
    return f'figure B={extents["b"]} {extents["h"]} heads d={extents["p"]} L={length} {label}'


def contender(settings, result, label, extents, length, flags, sets, check, edit=None):
    """Ours, on tensors [batch, heads, length, dim] as the preset has them."""
    def make():
        artifact = ours.compile_artifact(
            settings, artifact_name(extents, length, label),
            ['attention', *dims({**extents, 'j': length}), *flags], edit)
        heads_first = {name: tensor.transpose(1, 2).contiguous()
                       for name, tensor in zip('qkv', sets[0])}
        given = [heads_first[name] for name in artifact.input_names()]
        out = artifact.poisoned_outputs()
        artifact.launch(given, out)
        torch.cuda.synchronize()
        shape = heads_first['q'].shape
        result.errors[label] = check(out[0].reshape(shape).transpose(1, 2))
        result.extra[label] = artifact.device_bytes() - artifact.parameter_bytes()
        return [timing.GraphContender(label, lambda _: artifact.launch(given, out))]

    return ours.guarded(result, make, label)


def peak(call):
    """Bytes beyond what was allocated before; what the call returns is part of it."""
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def rivals(result, row, sets, check):
    contenders = []
    for name, backend in RIVALS.items():
        def make(name=name, backend=backend):
            call = attention.by_sdpa(row, backend)
            result.errors[name] = check(call(*sets[0]))
            result.extra[name] = max(
                0, peak(lambda: call(*sets[0])) - sets[0][0].nbytes)  # but for the result
            return [timing.GraphContender(name, lambda _: call(*sets[0]))]

        contenders += ours.guarded(result, make, name)
    return contenders


def measured_at(settings, extents, length, plans, causal=False, has_rivals=True):
    """Medians by name, and the result with workspaces in `extra`. `plans`: label -> flags, edit."""
    row = row_of(extents, length, causal)
    torch.manual_seed(0)
    result = Result(row.workload())
    sets = [[torch.randn(shape, device='cuda', dtype=torch.float16) for shape in row.shapes()]]
    with torch.no_grad():
        check = attention.Checker(row, sets[0])
        contenders = []
        for label, (flags, edit) in plans.items():
            contenders += contender(settings, result, label, extents, length, flags, sets, check,
                                    edit)
        if settings.rivals and has_rivals:
            contenders += rivals(result, row, sets, check)
        timing.measure(result, contenders, settings.rounds)
    for name, why in result.failures.items():
        print(f'{row.name()}: {name}: {why}', flush=True)
    del check, contenders, sets
    torch.cuda.empty_cache()
    return {name: median(samples) for name, samples in result.samples.items()}, result


def kinds(settings, site, failures):
    """Measured rows of Fig. 2, left, beside the predicted traffic of our kinds. Adds to `failures`
    why a contender has no figure."""
    predicted = {one['kind']: one.get('figures', {}) for one in site['kinds']}
    # Decomposed in kernels apart, which it is not where it is left to itself.
    seconds, result = measured_at(settings, FIG2, FIG2['j'],
                                  {kind: (list(flags), None) for kind, flags in KINDS.items()})
    failures.update(result.failures)
    return [
        Kind(name, one, predicted.get(name, {}).get('dramBytes', 0),
             predicted.get(name, {}).get('l2Bytes', 0), result.extra[name], 'measured')
        for name, one in seconds.items()
    ]


def tiles(settings, priced, failures):
    """The fused kernel with each tile, by editing its plan to the knobs that are priced for the
    tile; none where no edit is taken. Adds to `failures` why a tile has no figure."""
    plans = {tile_name(one['queries'], one['keys']): (['--attention', 'fused'], with_tile(one))
             for one in priced}
    seconds, result = measured_at(settings, FIG2, FIG2['j'], plans, has_rivals=False)
    failures.update({f'tile {name}': why for name, why in result.failures.items()})
    return [(one['queries'], one['keys'], seconds[name], one['l2Bytes'], 'measured')
            for name, one in zip(plans, priced) if name in seconds]


def at_length(settings, length, trains, kinds, has_rivals, failures):
    """Points of some kinds at a length, beside the rivals or without them. Adds to `failures` why a
    contender has no figure; too little memory is such a reason, and ends nothing."""
    gc.collect()  # what an error's traceback held
    torch.cuda.empty_cache()
    measure = training if trains else forward
    try:
        return measure(settings, length, kinds if settings.ours else [], has_rivals, failures)
    except torch.cuda.OutOfMemoryError as error:
        what = ', '.join([*kinds, *(['rivals'] if has_rivals else [])])
        failures[what] = timing.first_line(error)
        print(f'L={length}: {what}: {failures[what]}', flush=True)
        return []


def forward(settings, length, kinds, has_rivals, failures):
    seconds, result = measured_at(settings, FIG3, length,
                                  {kind: (flags_of(kind, False), None) for kind in kinds},
                                  has_rivals=has_rivals)
    failures.update(result.failures)
    return [
        Point(name, length, one, int(result.extra[name]),
              int(result.extra[name]) + operand_bytes(FIG3, length), 'measured')
        for name, one in seconds.items()
    ]


def training(settings, length, kinds, has_rivals, failures):
    work = Training(length)
    return work.measure(settings, kinds, RIVALS if has_rivals and settings.rivals else {},
                        failures)


class Training:
    """Forward and backward at one length: tensors [batch, length, heads, dim] as the rivals take
    them, and gradients in fp64."""
    def __init__(self, length):
        self.row = Row(TRAINING, FIG3['b'], FIG3['h'], FIG3['p'], length)
        torch.manual_seed(0)
        self.tensors = [torch.randn(shape, device='cuda', dtype=torch.float16)
                        for shape in self.row.shapes()]
        self.d_out = torch.randn_like(self.tensors[0])
        self.check = attention_training.Checker(self.row, None, self.tensors, self.d_out)

    def contender(self, settings, result, kind):
        def make():
            artifact = ours.compile_artifact(
                settings, artifact_name(FIG3, self.row.length, f'{kind} training'),
                ['attention', *dims({**FIG3, 'j': self.row.length}), *flags_of(kind, True)],
                entry=library.ALL)
            given = {name: tensor.transpose(1, 2).contiguous()
                     for name, tensor in zip(self.row.gradients, self.tensors)}
            d_out = self.d_out.transpose(1, 2).contiguous()
            inputs = [given.get(name, d_out) for name in artifact.input_names()]
            outputs = artifact.poisoned_outputs()
            artifact.launch(inputs, outputs)
            torch.cuda.synchronize()
            shape = given['q'].shape
            found = {name: out.reshape(shape).transpose(1, 2)
                     for name, out in zip(artifact.gradients(), outputs) if name}
            result.errors[kind] = self.check(found)
            result.extra[kind] = artifact.device_bytes() - artifact.parameter_bytes()
            return [timing.GraphContender(kind, lambda _: artifact.launch(inputs, outputs))]

        return ours.guarded(result, make, kind)

    def rival(self, result, name, backend):
        call = attention.by_sdpa(self.row, backend)
        leaves = [tensor.detach().requires_grad_() for tensor in self.tensors]

        def step(_):
            with torch.enable_grad():
                return torch.autograd.grad(call(*leaves), leaves, self.d_out)

        def make():
            result.errors[name] = self.check(dict(zip(self.row.gradients, step(0))))
            # The result and three gradients are operands.
            result.extra[name] = max(0, peak(lambda: step(0)) - 4 * self.d_out.nbytes)
            return [timing.GraphContender(name, step)]

        return ours.guarded(result, make, name)

    def measure(self, settings, kinds, rivals, failures):
        result = Result(self.row.workload())
        contenders = []
        for kind in kinds:
            contenders += self.contender(settings, result, kind)
        for name, backend in rivals.items():
            contenders += self.rival(result, name, backend)
        timing.measure(result, contenders, settings.rounds)
        for name, why in result.failures.items():
            print(f'{self.row.name()}: {name}: {why}', flush=True)
        failures.update(result.failures)
        return [
            Point(name, self.row.length, median(samples), int(result.extra[name]),
                  int(result.extra[name]) + operand_bytes(FIG3, self.row.length, True), 'measured',
                  trains=True) for name, samples in result.samples.items()
        ]
