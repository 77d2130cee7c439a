"""Group `norm`: memory-bound kernels. Rates count the tensors that must move; the copies of the
same run are the ceiling."""
import torch
import torch.nn.functional as F

from . import ours, reference, rivals, timing
from .report import Result, Workload

L2_BYTES = 60e6
LIMIT = 2e-3
SHAPES = [(65536, 1024), (16384, 4096), (16384, 768), (4096, 1024)]
SOFTMAX = (16, 4096, 4096)
PROBABILITY = 0.1


def sets_for(bytes_per_set):
    """So that twice the L2 is touched between two uses of a set."""
    return 1 + int(-(-2 * L2_BYTES // bytes_per_set))


def copies(bytes_moved, sets):
    """Copies that read and write together as many bytes as the workload moves."""
    count = int(bytes_moved) // 4
    sources = [torch.randn(count, device='cuda', dtype=torch.float16) for _ in range(sets)]
    targets = [torch.empty_like(source) for source in sources]
    contenders = [
        timing.GraphContender('copy by the driver', lambda s: targets[s].copy_(sources[s]), sets)
    ]
    try:
        from . import copy_kernel
        for block, warps in copy_kernel.VARIANTS:
            contenders.append(
                timing.GraphContender(
                    f'copy by Triton, {block} a block',
                    lambda s, v=(block, warps): copy_kernel.copy(sources[s], targets[s], *v), sets))
    except ImportError:  # the driver's copy stands alone
        pass
    return contenders


def our_contender(settings, result, file, values, inputs, parameters, expected):
    """`inputs`: one list of tensors a set. Ours is checked on the first set."""
    contenders = []
    for label, artifact in ours.artifacts(settings, result.workload.name,
                                          [ours.workload_file(settings, file, values)],
                                          result).items():
        artifact.set_parameters(parameters)
        artifact.set_dropout_key(seed=1, step=0)
        outputs = [artifact.poisoned_outputs() for _ in inputs]
        artifact.launch(inputs[0], outputs[0])
        torch.cuda.synchronize()
        result.errors[label] = reference.check(outputs[0][0], expected(), LIMIT)
        contenders.append(
            timing.GraphContender(label, lambda s, a=artifact, o=outputs: a.launch(inputs[s], o[s]),
                                  len(inputs)))
    return contenders


def softmax(settings):
    name = 'row softmax {}x{}x{}'.format(*SOFTMAX)
    if not settings.wants(name):
        return
    x = torch.randn(*SOFTMAX, device='cuda', dtype=torch.float16)
    result = Result(Workload(name, 2 * 2 * x.numel(), note='fp16, 2 tensors'))
    values = dict(zip(('heads', 'rows', 'columns'), SOFTMAX))
    contenders = ours.guarded(
        result, lambda: our_contender(settings, result, 'row_softmax', values, [[x]], {}, lambda:
                                      torch.softmax(x.float(), -1)))
    if settings.rivals:
        contenders.append(timing.GraphContender('eager', lambda _: torch.softmax(x, -1)))
    if settings.rivals and settings.torch_compile:
        compiled = rivals.compiled(lambda t: torch.softmax(t, -1))
        contenders.append(timing.GraphContender('torch.compile', lambda _: compiled(x)))
    others = copies(result.workload.bytes_moved, 1) if settings.rivals else []
    timing.measure(result, contenders + others, settings.rounds)
    yield result


def bias_dropout_residual_layernorm(settings, rows, columns):
    name = f'bias+dropout+residual+layernorm {rows}x{columns}'
    if not settings.wants(name):
        return
    bytes_moved = 3 * 2 * rows * columns
    sets = sets_for(bytes_moved)
    tensors = lambda: [
        torch.randn(rows, columns, device='cuda', dtype=torch.float16) for _ in range(2)
    ]
    inputs = [tensors() for _ in range(sets)]
    bias, gamma, beta = (torch.randn(columns, device='cuda', dtype=torch.float16) for _ in range(3))

    def expected():
        product, x = (tensor.double() for tensor in inputs[0])
        kept = reference.Dropout(PROBABILITY, seed=1, step=0)(product + bias.double(), 0)
        return reference.layer_norm(kept + x, gamma.double(), beta.double(), 1e-5)

    def eager(product, x):
        return F.layer_norm(F.dropout(product + bias, PROBABILITY) + x, (columns, ), gamma, beta)

    result = Result(Workload(name, bytes_moved, note='fp16, 3 tensors'))
    contenders = ours.guarded(
        result, lambda: our_contender(settings, result, 'bias_dropout_residual_layernorm',
                                      dict(rows=rows, columns=columns), inputs,
                                      dict(bias=bias, gamma=gamma, beta=beta), expected))
    if settings.rivals:
        contenders.append(timing.GraphContender('eager', lambda s: eager(*inputs[s]), sets))
    if settings.rivals and settings.torch_compile:
        compiled = rivals.compiled(eager)
        contenders.append(
            timing.GraphContender('torch.compile', lambda s: compiled(*inputs[s]), sets))
    others = copies(bytes_moved, sets) if settings.rivals else []
    timing.measure(result, contenders + others, settings.rounds)
    yield result


def run(settings):
    yield from softmax(settings)
    torch.cuda.empty_cache()
    for rows, columns in SHAPES:
        yield from bias_dropout_residual_layernorm(settings, rows, columns)
        torch.cuda.empty_cache()
