"""The rows of group `attention` that count forward and backward: the output and the gradients of
queries, keys and values, by weft, cuDNN, flash-2 and FA4. Ours twice: with the same bits in every
launch, and with sums in any order, as the rivals have them."""
import dataclasses
import math

import torch
from torch.nn.attention import SDPBackend

from . import library, ours, reference, timing
from .attention_table import ATOMICS, CUDNN, EAGER, EFFICIENT, FA4, FLASH

LIMIT = 1e-2  # of a gradient's relative error: fp16 between kernels, and back
# Of adversarial rows: the logarithm of a sum of scores of 6e4 is off by up to 4e-3 in fp32.
ADVERSARIAL_LIMIT = 5e-2
MOST_SCORES = 2**28  # of a chunk of queries, in fp64


def squared_terms(row, q, k, d_out, values, probability, out):
    """Sums of the squares of all products that the gradients of one chunk of queries add up; the
    gradient of a score is taken to be as large as the two terms whose difference it is."""
    d_probability = torch.einsum('nrw,kw->rnk', d_out, values).abs_()
    of_rows = (d_out * out).sum(-1).abs_().T
    scores = (d_probability + of_rows[..., None]).mul_(probability).square_() / row.head_dim
    of_queries = lambda tensor: tensor.square().sum(-1).T
    return torch.stack([(scores.sum((0, 1)) * k.square().sum(-1)).sum(),
                        (scores.sum(-1) * of_queries(q)).sum(),
                        (probability.square().sum(-1) * of_queries(d_out)).sum()])


def expected_gradients(row, seen, tensors, d_out):
    """Gradients in fp64 by autograd, one head of keys after the other, and of it as many queries
    at a time as MOST_SCORES holds; and the norm that errors of each are relative to: its own, of
    rows whose gradients cancel, that of its terms if their signs were random. `seen`: [queries,
    keys]; None: all."""
    gradients = [torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device)
                 for tensor in tensors]
    squares = 0
    group = row.heads // row.key_heads
    for batch in range(row.batch):
        for head in range(row.key_heads):
            of_queries = slice(head * group, (head + 1) * group)
            of_keys = (batch, slice(None), head)
            for gradient in gradients[1:3]:
                gradient[of_keys] = 0
            if row.has_bias and batch == 0:
                gradients[3][of_queries] = 0
            chunk = max(1, MOST_SCORES // (group * row.keys))
            for first in range(0, row.length, chunk):
                queries = slice(first, first + chunk)
                own = (batch, queries, of_queries)
                q, k, v = (tensor[place].double().requires_grad_()
                           for tensor, place in zip(tensors, (own, of_keys, of_keys)))
                score = torch.einsum('nrp,kp->rnk', q, k) / math.sqrt(row.head_dim)
                operands = [q, k, v]
                if row.has_bias:
                    operands.append(tensors[3][of_queries, queries].double().requires_grad_())
                    score = score + operands[3]
                if seen is not None:
                    score = score.masked_fill(~seen[queries], float('-inf'))
                probability = torch.softmax(score, -1)
                out = torch.einsum('rnk,kw->nrw', probability, v)
                found = torch.autograd.grad(out, operands, d_out[own].double())
                gradients[0][own] = found[0]
                for gradient, value in zip(gradients[1:3], found[1:3]):
                    gradient[of_keys] += value
                if row.has_bias:
                    gradients[3][of_queries, queries] += found[3]
                if row.cancels:
                    with torch.no_grad():
                        squares += squared_terms(row, q, k, d_out[own].double(), v, probability,
                                                 out)
                del score, probability, out, found
    norms = torch.sqrt(squares) if row.cancels else [gradient.norm() for gradient in gradients]
    return dict(zip(row.gradients, gradients)), dict(zip(row.gradients, map(float, norms)))


class Checker:
    """Compares gradients with fp64, all elements."""
    def __init__(self, row, seen, tensors, d_out):
        self.expected, self.norms = expected_gradients(row, seen, tensors, d_out)
        self.limit = ADVERSARIAL_LIMIT if row.cancels else LIMIT

    def errors(self, gradients):
        """The relative error of each, by name; raises WrongResult naming the gradient."""
        found = {}
        for name, expected in self.expected.items():
            difference = gradients[name].reshape(expected.shape).double() - expected
            found[name] = float(difference.norm()) / self.norms[name]
            if not found[name] <= self.limit:
                raise reference.WrongResult(f'gradient of {name}: relative error '
                                            f'{found[name]:.2e}, limit {self.limit:.0e}')
        return found

    def __call__(self, gradients):
        """The largest relative error."""
        return max(self.errors(gradients).values())


def keep_errors(result, name, errors):
    """The contender's errors: the largest in its table, each under it and in the JSON line."""
    result.errors[name] = max(errors.values())
    result.record.setdefault('gradients', {})[name] = errors
    result.extra[f'{name} errors'] = ', '.join(f'gradient of {one} {error:.1e}'
                                               for one, error in errors.items())


def our_contenders(settings, result, row, tensors, d_out, check):
    path = settings.folder / (ours.folder_name(row.name()) + '.mlir')
    if settings.ours:
        path.write_text(row.graph())
    given, contenders = dict(zip(row.gradients, tensors)), []
    artifacts = ours.artifacts(settings, row.name(), [path, '--train'], result, entry=library.ALL)
    if artifacts and not settings.builds and not any('deterministic' in flag
                                                     for flag in settings.weft_flags):
        free = dataclasses.replace(settings,
                                   weft_flags=[*settings.weft_flags, '--deterministic=off'])
        artifacts[ATOMICS] = ours.compile_artifact(free, f'{row.name()} atomics',
                                                   [path, '--train'], entry=library.ALL)
    for label, artifact in artifacts.items():
        inputs = [given.get(name, d_out) for name in artifact.input_names()]
        outputs = artifact.poisoned_outputs()
        artifact.launch(inputs, outputs)
        torch.cuda.synchronize()
        found = {name: out for name, out in zip(artifact.gradients(), outputs) if name}
        if not ours.admitted(result, label, artifact,
                             lambda: keep_errors(result, label, check.errors(found))):
            continue
        contenders.append(
            timing.GraphContender(label,
                                  lambda _, a=artifact, i=inputs, o=outputs: a.launch(i, o)))
    return contenders


def rival_contenders(settings, result, row, tensors, d_out, check, by_sdpa, fa4):
    """`by_sdpa`, `fa4`: as forward rows call them. Flash kernels take no bias."""
    if not settings.rivals:
        return []
    makers = {CUDNN: lambda: by_sdpa(row, SDPBackend.CUDNN_ATTENTION)}
    if row.has_bias:
        makers[EFFICIENT] = lambda: by_sdpa(row, SDPBackend.EFFICIENT_ATTENTION)
        makers[EAGER] = lambda: by_sdpa(row, SDPBackend.MATH)
    else:
        makers[FLASH] = lambda: by_sdpa(row, SDPBackend.FLASH_ATTENTION)
        makers[FA4] = lambda: fa4(row)
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    contenders = []
    for name, make in makers.items():

        def checked(name=name, make=make):
            call = make()

            def step(_):
                with torch.enable_grad():
                    return torch.autograd.grad(call(*leaves), leaves, d_out)

            keep_errors(result, name, check.errors(dict(zip(row.gradients, step(0)))))
            return [timing.GraphContender(name, step)]

        contenders += ours.guarded(result, checked, name)
    return contenders
