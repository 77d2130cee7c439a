"""Group `seed004`: unfused attention in fp32, one head, D = 64, as three kernels: score, softmax, weighted sum.

The softmax kernel combines the partial results of a row's threads (one element each at a time) in three ways: `linear` (one thread walks the
shared array), `tree` (halving steps in shared memory), `shuffle` (within warps, then across); `chosen` is what weft selects, products by
cuBLASLt included. Then the tiles of the plain FMA products, and a batch of four as one call against four calls on four streams.
"""
import torch

from . import ours, reference, timing
from .report import Result, Workload

HEAD = 64
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
STREAM_LENGTHS = (256, 512, 1024, 2048, 4096)
MOST_THREADS = 512
TILES = ((32, 32, 2, 2), (64, 64, 4, 4), (128, 64, 8, 4), (64, 128, 4, 8), (128, 128, 8, 8))  # m, n, elements a thread along m, n
TILE_LENGTH = 1024
LIMIT = 1e-4


def workload(length, batch, note):
    flop = 4 * batch * length * length * HEAD
    return Workload(f'attention fp32 N={length} B={batch}', 4 * batch * 4 * length * HEAD, flop, note)


def arguments(length, batch):
    return ['attention', '--dim', f'b={batch}', '--dim', 'h=1', '--dim', f'j={length}', '--dim', f'p={HEAD}', '--dtype', 'f32',
            '--attention', 'unfused']


def with_combine(combine):
    """Edits the softmax kernel: one block of up to MOST_THREADS threads a row."""
    def edit(plan):
        for kernel in plan['kernels']:
            if any('softmax' in op for op in kernel['ops']):
                columns = max(tensor['extents'][-1] for tensor in plan['tensors'] if tensor['role'] == 'temporary')
                threads = min(MOST_THREADS, columns)
                kernel['knobs'].update(laneAxis='k', vectorAxis='k', vectorWidth=1, reduction='block', threads=threads,
                                       threadsPerRow=threads, combine=combine)
    return edit


def with_tile(tile):
    """Edits both products, which must be of the plain family."""
    tile_m, tile_n, thread_m, thread_n = tile

    def edit(plan):
        for kernel in plan['kernels']:
            if 'tileM' in kernel['knobs']:
                kernel['knobs'].update(tileM=tile_m, tileN=tile_n, threadM=thread_m, threadN=thread_n)
    return edit


def random_inputs(length, batch):
    return [torch.randn(batch, 1, length, HEAD, device='cuda') for _ in range(3)]


def expected(q, k, v):
    score = q.double() @ k.double().transpose(-1, -2) / HEAD**0.5
    return torch.softmax(score, -1) @ v.double()


def eager(q, k, v):
    return torch.softmax((q @ k.transpose(-1, -2)) * HEAD**-0.5, -1) @ v


def checked(settings, result, label, length, batch, inputs, edit=None, flags=()):
    """A contender whose result was compared with fp64; none, with the reason in `result`, where that failed."""
    def make():
        artifact = ours.compile_artifact(settings, f'seed004 {length} {batch} {label}', [*arguments(length, batch), *flags], edit)
        # The graph's own order of arguments is the caller's: by name.
        named = dict(zip('qkv', inputs))
        ordered = [named[name] for name in artifact.input_names()]
        out = artifact.poisoned_outputs()
        artifact.launch(ordered, out)
        torch.cuda.synchronize()
        result.errors[label] = reference.check(out[0], expected(*inputs), LIMIT)
        return [timing.GraphContender(label, lambda _: artifact.launch(ordered, out))]
    return ours.guarded(result, make, label) if settings.ours else []


def plans(settings):
    for batch in (1, 4):
        for length in LENGTHS:
            work = workload(length, batch, 'three kernels')
            if not settings.wants(work.name):
                continue
            result, inputs = Result(work), random_inputs(length, batch)
            contenders = checked(settings, result, 'weft chosen', length, batch, inputs)
            for combine in ('linear', 'tree', 'shuffle'):
                contenders += checked(settings, result, f'weft {combine}', length, batch, inputs, with_combine(combine))
            contenders.append(timing.GraphContender('eager', lambda _: eager(*inputs)))
            timing.measure(result, contenders, settings.rounds)
            yield result
            torch.cuda.empty_cache()


def tiles(settings):
    work = workload(TILE_LENGTH, 1, 'plain FMA products, tile m x n')
    work.name = 'tile sweep: ' + work.name
    if not settings.wants(work.name):
        return
    result, inputs, contenders = Result(work), random_inputs(TILE_LENGTH, 1), []
    for tile in TILES:
        contenders += checked(settings, result, 'weft tile {} x {}'.format(*tile), TILE_LENGTH, 1, inputs, with_tile(tile), ['--no-library'])
    timing.measure(result, contenders, settings.rounds)
    yield result


def on_streams(calls):
    """All calls at once, each on a stream of its own that forks from the current one and joins it again."""
    side = [torch.cuda.Stream() for _ in calls]

    def call(_):
        current = torch.cuda.current_stream()
        for stream, one in zip(side, calls):
            stream.wait_stream(current)
            with torch.cuda.stream(stream):
                one()
        for stream in side:
            current.wait_stream(stream)
    return call


def pipelined(settings):
    batch = 4
    for length in STREAM_LENGTHS:
        work = workload(length, batch, 'one stream a batch element')
        work.name = 'streams: ' + work.name
        if not settings.wants(work.name):
            continue
        result = Result(work)

        def make():
            calls = []
            for index in range(batch):
                inputs = random_inputs(length, 1)
                artifact = ours.compile_artifact(settings, f'seed004 {length} stream', arguments(length, 1))
                ordered = [dict(zip('qkv', inputs))[name] for name in artifact.input_names()]
                out = artifact.poisoned_outputs()
                artifact.launch(ordered, out)
                torch.cuda.synchronize()
                error = reference.check(out[0], expected(*inputs), LIMIT)
                calls.append(lambda a=artifact, i=ordered, o=out: a.launch(i, o))
            result.errors['weft four streams'] = error
            return [timing.GraphContender('weft four streams', on_streams(calls)),
                    timing.GraphContender('weft one stream, in turn', lambda _: [call() for call in calls])]
        contenders = ours.guarded(result, make)
        contenders += checked(settings, result, 'weft one call of four', length, batch, random_inputs(length, batch))
        timing.measure(result, contenders, settings.rounds)
        yield result
        torch.cuda.empty_cache()


def run(settings):
    yield from plans(settings)
    if settings.ours:
        yield from tiles(settings)
        yield from pipelined(settings)
