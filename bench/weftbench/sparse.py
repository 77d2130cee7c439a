"""Group `sparse`: attention under a table of tiles, by weft, FlexAttention, and by SDPA and eager
under a mask of each score, on the same tensors [batch, heads, length, dim] and the same table."""
import math

import numpy
import torch
import torch.nn.functional as F

from . import library, ours, reference, rivals, sparse_rows, sparse_table, statistics, timing
from .report import Result

LIMIT, GRADIENT_LIMIT = 2e-3, 1e-2  # of relative errors: fp16 between kernels, fp32 within
GRADIENTS = ('q', 'k', 'v')


def visible(row, table, queries):
    """Which keys these queries see: [tables, queries, keys]."""
    tiles = torch.as_tensor(queries, device=table.device) // sparse_rows.TILE
    return table[:, tiles].repeat_interleave(sparse_rows.TILE, -1)


def attention(q, k, v, seen):
    score = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(score.masked_fill(~seen, float('-inf')), -1) @ v


class ForwardChecker:
    """Compares results with fp64 at sampled queries; everything else must be finite."""
    def __init__(self, row, table, tensors):
        self.queries = row.sampled_queries()
        seen = visible(row, table, self.queries)
        q, k, v = tensors
        self.expected = torch.stack([
            attention(q[b][:, self.queries].double(), k[b].double(), v[b].double(), seen)
            for b in range(row.batch)
        ])

    def __call__(self, out):
        """The relative error; raises WrongResult."""
        if not bool(torch.isfinite(out).all()):
            raise reference.WrongResult('a result is NaN or infinite')
        return reference.check(out[:, :, self.queries], self.expected, LIMIT)


class GradientChecker:
    """Compares gradients with fp64, all elements, one head after the other."""
    def __init__(self, row, table, tensors, d_out):
        self.expected = [torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device)
                         for tensor in tensors]
        for batch in range(row.batch):
            for head in range(row.heads):
                own = table[head % len(table)][None]
                seen = visible(row, own, range(row.length))[0]
                leaves = [tensor[batch, head].double().requires_grad_() for tensor in tensors]
                found = torch.autograd.grad(attention(*leaves, seen), leaves,
                                            d_out[batch, head].double())
                for expected, gradient in zip(self.expected, found):
                    expected[batch, head] = gradient
                del seen, leaves, found

    def __call__(self, gradients):
        """The largest relative error; raises WrongResult naming the gradient."""
        errors = []
        for name, found, expected in zip(GRADIENTS, gradients, self.expected):
            error = reference.relative_error(found.reshape(expected.shape), expected)
            if not error <= GRADIENT_LIMIT:
                raise reference.WrongResult(f'gradient of {name}: relative error {error:.2e}, '
                                            f'limit {GRADIENT_LIMIT:.0e}')
            errors.append(error)
        return max(errors)


def our_contenders(settings, result, row, table, tensors, d_out, check):
    path = settings.folder / (ours.folder_name(row.name()) + '.npy')
    numpy.save(path, table.cpu().numpy())
    extents = dict(b=row.batch, h=row.heads, j=row.length, k=row.length, p=row.head_dim,
                   w=row.head_dim)
    arguments = ['attention', '--dtype', 'f16', '--mask', f'{path}(block={sparse_rows.TILE})']
    for axis, extent in extents.items():
        arguments += ['--dim', f'{axis}={extent}']
    if row.trains:
        arguments.append('--train')
    entry = library.ALL if row.trains else library.FORWARD
    given, contenders = dict(zip(GRADIENTS, tensors)), []
    for label, artifact in ours.artifacts(settings, row.name(), arguments, result,
                                          entry=entry).items():
        inputs = [given.get(name, d_out) for name in artifact.input_names()]
        outputs = artifact.poisoned_outputs()
        artifact.launch(inputs, outputs)
        torch.cuda.synchronize()
        if row.trains:
            found = dict(zip(artifact.gradients(), outputs))
            outcome = [found[name] for name in GRADIENTS]
        else:
            outcome = outputs[0].reshape(row.shape())
        try:
            result.errors[label] = check(outcome)
        except reference.WrongResult as error:
            result.failures[label] = str(error)
            continue
        contenders.append(
            timing.GraphContender(label,
                                  lambda _, a=artifact, i=inputs, o=outputs: a.launch(i, o)))
    return contenders


def options_of(size, backend, trains):
    """Kernel options of FlexAttention: its default tiles do not divide mask blocks of 64, of which
    only its search has some backward; a back end is an option of newer versions."""
    if backend:
        from torch.nn.attention import flex_attention as module
        known = getattr(getattr(module, 'FlexKernelOptions', None), '__annotations__', {})
        if 'BACKEND' not in known:
            raise RuntimeError(f'FlexAttention of PyTorch {torch.__version__} has no BACKEND')
        return dict(BACKEND=backend)
    return dict(BLOCK_M=size, BLOCK_N=size) if size < 128 and not trains else None


def compiled_flex(row, size):
    """Of the backward pass only its search has tiles for mask blocks of 64."""
    from torch.nn.attention.flex_attention import flex_attention
    if not row.trains or size >= 128:
        return rivals.compiled(flex_attention)
    torch.compiler.reset()
    return torch.compile(flex_attention, dynamic=False, mode='max-autotune-no-cudagraphs')


def rival_contender(result, row, name, call, tensors, d_out, check):
    """`call(q, k, v)`, with gradients where the row trains; checked first."""
    if not row.trains:
        result.errors[name] = check(call(*tensors))
        return [timing.GraphContender(name, lambda _: call(*tensors))]
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]

    def step(_):
        with torch.enable_grad():
            return torch.autograd.grad(call(*leaves), leaves, d_out)

    result.errors[name] = check(step(0))
    return [timing.GraphContender(name, step)]


def dense_contenders(settings, result, row, table, tensors, d_out, check):
    """SDPA and eager, where the memory holds what they store: a mask of every score, and eager the
    scores."""
    if not settings.rivals:
        return []
    calls = {
        sparse_table.SDPA: lambda q, k, v, seen: F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen),
        sparse_table.EAGER: attention
    }
    contenders = []
    for name, call in calls.items():

        def make(name=name, call=call):
            seen = visible(row, table, range(row.length))[None]
            return rival_contender(result, row, name, lambda *given: call(*given, seen), tensors,
                                   d_out, check)

        contenders += ours.guarded(result, make, name)
        torch.cuda.empty_cache()  # of one that failed for lack of memory
    return contenders


def flex_contenders(settings, result, row, table, tensors, d_out, check):
    """FlexAttention, compiled, with masks in blocks of every size and by every back end."""
    if not settings.rivals:
        return []
    from torch.nn.attention.flex_attention import create_block_mask
    heads = row.heads if len(table) > 1 else None
    contenders = []
    for name, (size, backend) in sparse_table.FLEX.items():

        def checked(name=name, size=size, backend=backend):
            options = options_of(size, backend, row.trains)

            def sees(_, head, query, key):
                own = head if heads else 0
                return table[own, query // sparse_rows.TILE, key // sparse_rows.TILE]

            def sees_near(_, __, query, key):
                query, key = query // sparse_rows.TILE, key // sparse_rows.TILE
                return ((query - key).abs() <= sparse_rows.NEAR) | (query == 0) | (key == 0)

            own_sees = sees_near if row.pattern == sparse_rows.LONGFORMER else sees
            mask = create_block_mask(own_sees, None, heads, row.length, row.length, device='cuda',
                                     BLOCK_SIZE=size, _compile=True)
            compiled = compiled_flex(row, size)
            call = lambda *given: compiled(*given, block_mask=mask, kernel_options=options)
            return rival_contender(result, row, name, call, tensors, d_out, check)

        contenders += ours.guarded(result, checked, name)
    return contenders


def record(row, result):
    best = result.best(result.ours())
    ratios = {
        name: statistics.ratio(samples, result.samples[best]).median
        for name, samples in result.samples.items() if name not in result.ours()
    } if best else {}
    return sparse_table.record(row, best, ratios)


def run(settings):
    for row in sparse_rows.ROWS:
        if not settings.wants(row.name()):
            continue
        torch.manual_seed(0)
        result = Result(row.workload())
        table = torch.tensor(row.table(), device='cuda')
        tensors = [torch.randn(row.shape(), device='cuda', dtype=torch.float16) for _ in range(3)]
        d_out = torch.randn_like(tensors[0])
        check = GradientChecker(row, table, tensors, d_out) if row.trains else ForwardChecker(
            row, table, tensors)
        with torch.no_grad():
            contenders = ours.guarded(
                result,
                lambda: our_contenders(settings, result, row, table, tensors, d_out, check))
            contenders += flex_contenders(settings, result, row, table, tensors, d_out, check)
            contenders += dense_contenders(settings, result, row, table, tensors, d_out, check)
            timing.measure(result, contenders, settings.rounds)
        result.record['sparse'] = record(row, result)
        yield result
        del check, contenders, tensors, d_out
        torch.cuda.empty_cache()
