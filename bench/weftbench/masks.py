"""Group `masks`: attention cores under masks drawn at random, by weft, FlexAttention and, where it
has the mask, SDPA, on the same tensors [batch, heads, length, dim]."""
import math

import numpy
import torch

from . import library, mask_draws, mask_table, ours, reference, rivals, statistics, timing
from .report import OURS, Result
from .time_limit import TimeLimitExceeded, time_limit

DEVICE = 'cuda'
LIMITS = {'f16': 2e-3, 'bf16': 1.2e-2}  # of relative errors
GRADIENT_LIMIT = {'f16': 1e-2, 'bf16': 3e-2}
NAMES = ('q', 'k', 'v')
SAMPLED = 64
ROWS = 1024  # queries of a piece of the reference


class Mask:
    """What every contender is told about which keys a query sees, on the device."""
    def __init__(self, draw):
        self.draw = draw
        device = lambda values: torch.tensor(values, device=DEVICE, dtype=torch.int32)
        self.lengths = device(draw.lengths()) if draw.kind == 'padding' else None
        self.segments = device(draw.segments()) if 'document' in draw.kind else None
        self.table = torch.tensor(draw.table(), device=DEVICE) if 'blocks' in draw.kind else None
        self.slopes = torch.tensor(draw.slopes(), device=DEVICE)

    def sees(self, batch, query, key):
        """Elementwise over index tensors that broadcast."""
        draw = self.draw
        seen = key <= query if draw.causal else key == key
        if 'window' in draw.kind:
            seen = seen & (key >= query - draw.window) & (key <= query + draw.window)
        if self.segments is not None:
            seen = seen & (self.segments[batch, query] == self.segments[batch, key])
        if self.lengths is not None:
            seen = seen & (key < self.lengths[batch])
        if self.table is not None:
            seen = seen & self.table[query // mask_draws.TILE, key // mask_draws.TILE]
        return seen

    def score(self, score, head, query, key):
        if self.draw.score == 'alibi':
            return score + self.slopes[head] * (key - query)
        if self.draw.score == 'softcap':
            return mask_draws.SOFTCAP * torch.tanh(score / mask_draws.SOFTCAP)
        return score

    def arguments(self):
        """Those of weft's graph."""
        return {'lengths': self.lengths, 'segments': self.segments}


def attended(draw, mask, q, k, v, batch, head, queries):
    """fp64 results of these queries of one head; q [queries, dim], k and v [keys, dim]."""
    keys = torch.arange(draw.length, device=DEVICE)[None]
    rows = queries[:, None]
    score = mask.score(q @ k.T / math.sqrt(draw.head_dim), head, rows, keys)
    seen = mask.sees(batch, rows, keys)
    return torch.softmax(score.masked_fill(~seen, float('-inf')), -1) @ v


class ForwardChecker:
    """Compares sampled queries of every head with fp64; everything else must be finite."""
    def __init__(self, draw, mask, tensors):
        self.limit = LIMITS[draw.dtype]
        edges = torch.tensor([0, draw.length // 2, draw.length - 1], device=DEVICE)
        self.queries = torch.cat([edges, torch.randint(draw.length, (SAMPLED, ), device=DEVICE)])
        q, k, v = (tensor.double() for tensor in tensors)
        ratio = draw.heads // draw.groups
        self.expected = torch.stack([
            torch.stack([
                attended(draw, mask, q[b, h, self.queries], k[b, h // ratio], v[b, h // ratio], b,
                         h, self.queries) for h in range(draw.heads)
            ]) for b in range(draw.batch)
        ])

    def __call__(self, out):
        if not bool(torch.isfinite(out).all()):
            raise reference.WrongResult('a result is NaN or infinite')
        return reference.check(out[:, :, self.queries], self.expected, self.limit)


class GradientChecker:
    """Compares all elements of the gradients with fp64, piece by piece of the queries."""
    def __init__(self, draw, mask, tensors, d_out):
        self.limit = GRADIENT_LIMIT[draw.dtype]
        self.expected = [torch.zeros(tensor.shape, dtype=torch.float64, device=DEVICE)
                         for tensor in tensors]
        ratio = draw.heads // draw.groups
        q, k, v = tensors
        for b in range(draw.batch):
            for h in range(draw.heads):
                for begin in range(0, draw.length, ROWS):
                    rows = torch.arange(begin, min(begin + ROWS, draw.length), device=DEVICE)
                    leaves = [
                        one.double().requires_grad_()
                        for one in (q[b, h, rows], k[b, h // ratio], v[b, h // ratio])
                    ]
                    with torch.enable_grad():
                        out = attended(draw, mask, *leaves, b, h, rows)
                        found = torch.autograd.grad(out, leaves, d_out[b, h, rows].double())
                    self.expected[0][b, h, rows] = found[0]
                    self.expected[1][b, h // ratio] += found[1]
                    self.expected[2][b, h // ratio] += found[2]

    def __call__(self, gradients):
        """The largest relative error; raises WrongResult naming the gradient."""
        errors = []
        for name, found, expected in zip(NAMES, gradients, self.expected, strict=True):
            error = reference.relative_error(found.reshape(expected.shape), expected)
            if not error <= self.limit:
                raise reference.WrongResult(f'gradient of {name}: relative error {error:.2e}, '
                                            f'limit {self.limit:.0e}')
            errors.append(error)
        return max(errors)


def our_contenders(settings, result, draw, mask, tensors, d_out, check):
    if not settings.ours:
        return []
    path = settings.folder / (ours.folder_name(draw.name()) + '.npy')
    if mask.table is not None:
        numpy.save(path, mask.table.cpu().numpy())
    entry = library.ALL if draw.training else library.FORWARD
    given = {**dict(zip(NAMES, tensors)), **mask.arguments()}
    found = []
    for label, artifact in ours.artifacts(settings, draw.name(), draw.compile_arguments(path),
                                          result, entry=entry).items():
        inputs = [given.get(name, d_out) for name in artifact.input_names()]
        outputs = artifact.poisoned_outputs()
        artifact.launch(inputs, outputs)
        torch.cuda.synchronize()
        if draw.training:
            gradients = dict(zip(artifact.gradients(), outputs))
            outcome = [gradients[name] for name in NAMES]
        else:
            outcome = outputs[0].reshape(draw.shape())
        result.errors[label] = check(outcome)
        found.append(timing.GraphContender(label,
                                           lambda _, a=artifact, i=inputs, o=outputs: a.launch(
                                               i, o)))
    return found


def contender(draw, name, call, tensors, d_out, check, result):
    """Of a rival's function of q, k and v, once its result was compared."""
    if not draw.training:
        step = lambda _: call(*tensors)
    else:
        leaves = [tensor.detach().requires_grad_() for tensor in tensors]

        def step(_):
            with torch.enable_grad():
                return torch.autograd.grad(call(*leaves), leaves, d_out)

    result.errors[name] = check(step(0))
    return [timing.GraphContender(name, step)]


def flex(draw, mask):
    """FlexAttention, compiled, with its default blocks, or forward under a table with those of the
    table. Compiled in this process, so that the limit of time ends it."""
    from torch._inductor import config
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    config.compile_threads = 1
    torch.compiler.reset()
    by_batch = mask.segments is not None or mask.lengths is not None
    size = mask_draws.TILE if mask.table is not None and not draw.training else None
    block_mask = None if draw.kind == 'none' else create_block_mask(
        lambda batch, _, query, key: mask.sees(batch, query, key), draw.batch if by_batch else None,
        None, draw.length, draw.length, device=DEVICE, _compile=True,
        **({'BLOCK_SIZE': size} if size else {}))
    score = None
    if draw.score:
        score = lambda value, _, head, query, key: mask.score(value, head, query, key)
    compiled = rivals.compiled(flex_attention)
    return lambda q, k, v: compiled(
        q, k, v, score_mod=score, block_mask=block_mask, enable_gqa=draw.groups != draw.heads,
        kernel_options=dict(BLOCK_M=size, BLOCK_N=size) if size else None)


def sdpa(draw, backend):
    from torch.nn.attention import sdpa_kernel
    import torch.nn.functional as F

    def call(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=draw.causal,
                                                  enable_gqa=draw.groups != draw.heads)

    return call


def masked_sdpa(draw, mask):
    """With a boolean mask, where one of all rows fits in memory."""
    import torch.nn.functional as F
    rows = torch.arange(draw.length, device=DEVICE)
    if draw.kind == 'padding':
        batch = torch.arange(draw.batch, device=DEVICE)[:, None]
        seen = mask.sees(batch, torch.zeros_like(rows)[None], rows[None])[:, None, None]
    else:
        batch = torch.arange(draw.batch if mask.segments is not None else 1, device=DEVICE)
        seen = mask.sees(batch[:, None, None], rows[None, :, None], rows[None, None])
        seen = seen.expand(len(batch), draw.length, draw.length)[:, None]
    return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=draw
                                                          .groups != draw.heads)


LARGEST_MASK = 1 << 30  # bytes
RIVAL_LIMIT = 60.0  # seconds; FlexAttention compiles in 3 to 20


def rival_makers(draw, mask):
    """By name: what makes the rival's function."""
    from torch.nn.attention import SDPBackend
    makers = {'FlexAttention': lambda: flex(draw, mask)}
    if not draw.score and draw.kind in ('none', 'causal'):
        makers['cuDNN'] = lambda: sdpa(draw, SDPBackend.CUDNN_ATTENTION)
        makers['flash-2'] = lambda: sdpa(draw, SDPBackend.FLASH_ATTENTION)
    elif not draw.score and (draw.kind == 'padding'
                             or draw.batch * draw.length**2 <= LARGEST_MASK):
        makers['SDPA, mask'] = lambda: masked_sdpa(draw, mask)
    return makers


def rival_contenders(settings, result, draw, mask, tensors, d_out, check):
    if not settings.rivals:
        return []
    found = []
    for name, make in rival_makers(draw, mask).items():
        try:
            with time_limit(RIVAL_LIMIT, name):
                found += ours.guarded(
                    result,
                    lambda: contender(draw, name, make(), tensors, d_out, check, result), name)
        except TimeLimitExceeded as error:
            result.failures[name] = str(error)
    return found


def measured(settings, draw):
    result = Result(draw.workload())
    torch.manual_seed(draw.index)
    dtype = ours.DTYPES[draw.dtype]
    normal = lambda shape: torch.randn(shape, device=DEVICE, dtype=dtype)
    tensors = [normal(draw.shape()), normal(draw.key_shape()), normal(draw.key_shape())]
    d_out = normal(draw.shape())
    mask = Mask(draw)
    with torch.no_grad():
        check = GradientChecker(draw, mask, tensors,
                                d_out) if draw.training else ForwardChecker(draw, mask, tensors)
        contenders = ours.guarded(
            result, lambda: our_contenders(settings, result, draw, mask, tensors, d_out, check))
        contenders += rival_contenders(settings, result, draw, mask, tensors, d_out, check)
        timing.measure(result, contenders, settings.rounds)
    ratio, rival = None, result.best(result.rivals())
    if OURS in result.samples and rival:
        ratio = statistics.ratio(result.samples[rival], result.samples[OURS]).median
    result.record['masks'] = mask_table.record(draw, ratio, rival)
    return result


def run(settings):
    settings.folder.mkdir(parents=True, exist_ok=True)
    for draw in mask_draws.draws(settings.seed, settings.first, settings.count):
        if settings.wants(draw.name()):
            yield measured(settings, draw)
            torch.cuda.empty_cache()
