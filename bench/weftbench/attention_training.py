"""The rows of group `attention` that count forward and backward: the output and the gradients of
queries, keys and values, by weft, cuDNN, flash-2 and FA4. Ours twice: with the same bits in every
launch, and with sums in any order, as the rivals have them."""
import dataclasses
import math

import torch
from torch.nn.attention import SDPBackend

from . import library, ours, reference, timing
from .attention_table import ATOMICS, CUDNN, FA4, FLASH

LIMIT = 1e-2  # of a gradient's relative error: fp16 between kernels, and back
GRADIENTS = ('q', 'k', 'v')


MOST_SCORES = 2**28  # of a chunk of queries, in fp64


def expected_gradients(row, seen, tensors, d_out):
    """Gradients in fp64 by autograd, one head of keys after the other, and of it as many queries
    at a time as MOST_SCORES holds. `seen`: [queries, keys]; None: all."""
    gradients = [torch.empty(tensor.shape, dtype=torch.float64, device=tensor.device)
                 for tensor in tensors]
    group = row.heads // row.key_heads
    for batch in range(row.batch):
        for head in range(row.key_heads):
            of_queries = slice(head * group, (head + 1) * group)
            of_keys = (batch, slice(None), head)
            for gradient in gradients[1:]:
                gradient[of_keys] = 0
            chunk = max(1, MOST_SCORES // (group * row.keys))
            for first in range(0, row.length, chunk):
                queries = slice(first, first + chunk)
                own = (batch, queries, of_queries)
                q, k, v = (tensor[place].double().requires_grad_()
                           for tensor, place in zip(tensors, (own, of_keys, of_keys)))
                score = torch.einsum('nrp,kp->rnk', q, k) / math.sqrt(row.head_dim)
                if seen is not None:
                    score = score.masked_fill(~seen[queries], float('-inf'))
                out = torch.einsum('rnk,kw->nrw', torch.softmax(score, -1), v)
                found = torch.autograd.grad(out, (q, k, v), d_out[own].double())
                gradients[0][own] = found[0]
                for gradient, value in zip(gradients[1:], found[1:]):
                    gradient[of_keys] += value
                del score, out, found
    return dict(zip(GRADIENTS, gradients))


class Checker:
    """Compares gradients with fp64, all elements."""
    def __init__(self, row, seen, tensors, d_out):
        self.expected = expected_gradients(row, seen, tensors, d_out)

    def __call__(self, gradients):
        """The largest relative error; raises WrongResult naming the gradient."""
        errors = [0.0]
        for name, expected in self.expected.items():
            error = reference.relative_error(gradients[name].reshape(expected.shape), expected)
            if not error <= LIMIT:
                raise reference.WrongResult(
                    f'gradient of {name}: relative error {error:.2e}, limit {LIMIT:.0e}')
            errors.append(error)
        return max(errors)


def our_contenders(settings, result, row, tensors, d_out, check):
    path = settings.folder / (ours.folder_name(row.name()) + '.mlir')
    if settings.ours:
        path.write_text(row.graph())
    given, contenders = dict(zip(GRADIENTS, tensors)), []
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
        try:
            result.errors[label] = check(found)
        except reference.WrongResult as error:
            result.failures[label] = str(error)
            continue
        workspace = artifact.device_bytes() - artifact.parameter_bytes()
        result.extra[f'{label} workspace'] = f'{workspace / 1e6:.1f} MB'
        contenders.append(
            timing.GraphContender(label,
                                  lambda _, a=artifact, i=inputs, o=outputs: a.launch(i, o)))
    return contenders


def rival_contenders(settings, result, row, tensors, d_out, check, by_sdpa, fa4):
    """`by_sdpa`, `fa4`: as forward rows call them."""
    if not settings.rivals:
        return []
    makers = {
        CUDNN: lambda: by_sdpa(row, SDPBackend.CUDNN_ATTENTION),
        FLASH: lambda: by_sdpa(row, SDPBackend.FLASH_ATTENTION), FA4: lambda: fa4(row)
    }
    leaves = [tensor.detach().requires_grad_() for tensor in tensors]
    contenders = []
    for name, make in makers.items():

        def checked(name=name, make=make):
            call = make()

            def step(_):
                with torch.enable_grad():
                    return torch.autograd.grad(call(*leaves), leaves, d_out)

            result.errors[name] = check(dict(zip(GRADIENTS, step(0))))
            return [timing.GraphContender(name, step)]

        contenders += ours.guarded(result, checked, name)
    return contenders
