"""Group `seed004`: unfused attention in fp32, one head, D = 64, as three kernels: score, softmax,
weighted sum.

The softmax kernel combines the partial results of a row's threads in three ways: `linear` (one
thread walks the shared array), `tree` (halving steps in shared memory), `shuffle` (within warps,
then across). Each is measured as the seed has it, one block a row and one element a thread at a
time, and (`--softmax`) in the configuration that weft selects for it; `chosen` is what weft selects
of all, products by cuBLASLt included. Then the softmax kernels alone, the tiles of the plain FMA
products, and a batch of four: pipelined (`--pipeline`), in one call without slices, and one element
after the other. Of one batch element, speedups over one CPU thread (bench/sequential)."""
import torch

from . import ours, reference, timing
from .attention_plans import (COMBINES, HEAD, IN_TURN, LENGTHS, PIPELINED_BATCH,
                              PIPELINED_LENGTHS, PIPELINES, TILE_LENGTHS, TILES, arguments,
                              pipeline_label, pipelined_name, tile_label, with_combine, with_tile,
                              workload_name)
from .report import Result, Workload
from .sequential import Baseline, program_beside

LIMIT = 1e-4


def workload(length, batch, note):
    flop = 4 * batch * length * length * HEAD
    return Workload(workload_name(length, batch), 4 * batch * 4 * length * HEAD, flop, note)


def random_inputs(length, batch):
    return [torch.randn(batch, 1, length, HEAD, device='cuda') for _ in range(3)]


def expected(q, k, v):
    score = q.double() @ k.double().transpose(-1, -2) / HEAD**0.5
    return torch.softmax(score, -1) @ v.double()


def eager(q, k, v):
    return torch.softmax((q @ k.transpose(-1, -2)) * HEAD**-0.5, -1) @ v


def checked_call(artifact, inputs):
    """What launches an artifact, and the error of its result against fp64; raises WrongResult."""
    # The graph's own order of arguments is the caller's: by name.
    named = dict(zip('qkv', inputs))
    ordered = [named[name] for name in artifact.input_names()]
    out = artifact.poisoned_outputs()
    artifact.launch(ordered, out)
    torch.cuda.synchronize()
    error = reference.check(out[0], expected(*inputs), LIMIT)
    return lambda: artifact.launch(ordered, out), error


def checked(settings, result, label, length, batch, inputs, edit=None, flags=()):
    """A contender whose result was compared with fp64; none, with the reason in `result`, where
    that failed."""
    def make():
        artifact = ours.compile_artifact(settings, f'seed004 {length} {batch} {label}',
                                         [*arguments(length, batch), *flags], edit)
        call, result.errors[label] = checked_call(artifact, inputs)
        if '--pipeline' in flags:
            result.extra[f'{label} plan'] = artifact.summary()  # says what `auto` chose
        return [timing.GraphContender(label, lambda _: call())]

    return ours.guarded(result, make, label) if settings.ours else []


def plans(settings, baseline):
    for batch in (1, 4):
        for length in LENGTHS:
            work = workload(length, batch, 'three kernels')
            if not settings.wants(work.name):
                continue
            result, inputs = Result(work), random_inputs(length, batch)
            contenders = checked(settings, result, 'weft chosen', length, batch, inputs)
            for combine in COMBINES:
                contenders += checked(settings, result, f'weft {combine}', length, batch, inputs,
                                      with_combine(combine))
            for combine in ('linear', 'tree'):
                contenders += checked(settings, result, f'weft --softmax {combine}', length, batch,
                                      inputs, flags=['--softmax', combine])
            contenders.append(timing.GraphContender('eager', lambda _: eager(*inputs)))
            timing.measure(result, contenders, settings.rounds)
            if batch == 1:
                baseline.add(result, length)
            yield result
            torch.cuda.empty_cache()


def softmaxes(settings, baseline):
    """The second kernel alone: linear against tree against shuffles."""
    for length in LENGTHS:
        work = Workload(f'softmax fp32 {length}x{length}', 2 * 4 * length * length,
                        note='one kernel')
        if not settings.wants(work.name):
            continue
        result, contenders = Result(work), []
        score = torch.randn(length, length, device='cuda')
        graph = ours.workload_file(settings, 'softmax_f32', dict(rows=length, columns=length))
        for combine in COMBINES:

            def make(combine=combine):
                label = f'weft {combine}'
                artifact = ours.compile_artifact(settings, f'seed004 softmax {length} {combine}',
                                                 [graph], with_combine(combine))
                out = artifact.poisoned_outputs()
                artifact.launch([score], out)
                torch.cuda.synchronize()
                result.errors[label] = reference.check(out[0], torch.softmax(score.double(), -1),
                                                       LIMIT)
                return [timing.GraphContender(label, lambda _: artifact.launch([score], out))]

            contenders += ours.guarded(result, make, f'weft {combine}')
        contenders.append(timing.GraphContender('eager', lambda _: torch.softmax(score, -1)))
        timing.measure(result, contenders, settings.rounds)
        baseline.add(result, length, 'softmax')
        yield result
        del contenders, score
        torch.cuda.empty_cache()


def tiles(settings):
    for length in TILE_LENGTHS:
        work = workload(length, 1, 'plain FMA products, tile m x n')
        work.name = 'tile sweep: ' + work.name
        if not settings.wants(work.name):
            continue
        result, inputs, contenders = Result(work), random_inputs(length, 1), []
        for tile in TILES:
            contenders += checked(settings, result, tile_label(tile), length, 1, inputs,
                                  with_tile(tile), ['--no-library'])
        timing.measure(result, contenders, settings.rounds)
        yield result
        torch.cuda.empty_cache()


def in_turn(settings, result, length, batch):
    """One call after the other, each of one batch element."""
    calls, errors = [], []
    for _ in range(batch):
        artifact = ours.compile_artifact(settings, f'seed004 {length} in turn',
                                         arguments(length, 1))
        call, error = checked_call(artifact, random_inputs(length, 1))
        calls.append(call)
        errors.append(error)
    result.errors[IN_TURN] = max(errors)
    return [timing.GraphContender(IN_TURN, lambda _: [call() for call in calls])]


def pipelined(settings):
    """Slices of a batch at once, as weft plans them, against the batch as a whole."""
    batch = PIPELINED_BATCH
    for length in PIPELINED_LENGTHS:
        work = workload(length, batch, 'slices of the batch at once')
        work.name = pipelined_name(length)
        if not settings.wants(work.name):
            continue
        result, inputs = Result(work), random_inputs(length, batch)
        contenders = ours.guarded(result, lambda: in_turn(settings, result, length, batch),
                                  IN_TURN)
        for slices in PIPELINES:
            contenders += checked(settings, result, pipeline_label(slices), length, batch, inputs,
                                  flags=['--pipeline', slices])
        timing.measure(result, contenders, settings.rounds)
        yield result
        torch.cuda.empty_cache()


def run(settings):
    baseline = Baseline(program_beside(settings.weft), HEAD)
    yield from plans(settings, baseline)
    if settings.ours:
        yield from softmaxes(settings, baseline)
        yield from tiles(settings)
        yield from pipelined(settings)
