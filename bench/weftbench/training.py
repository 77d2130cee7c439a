"""Group `training`: forward and backward with all gradients (of the input and every parameter),
dropout 0.1: paper-encoder and its attention."""
import math

import torch

from . import layers, library, ours, reference, rivals, timing
from .report import Result

# of each gradient's relative error: fp16 between kernels, through the whole layer and back
LIMIT = 1e-2
MOST = 5e-2  # whatever PyTorch's own is
# times the error of PyTorch's own fp16 with the same masks, where that is more: what ReLU passes
# flips near zero
SLACK = 1.5


def expected_results(layer, tensors, x, dy, dropout, dtype=torch.float64):
    """The layer's result ('') and all gradients by autograd in that type, under the names of the
    graph's arguments."""
    leaves = {
        name: value.to(dtype).requires_grad_()
        for name, value in {**tensors, 'x': x.detach()}.items()
    }
    result = reference.result_of(layer, leaves, dropout, dtype)
    gradients = torch.autograd.grad(result, list(leaves.values()), dy.to(dtype))
    return {'': result.detach(), **dict(zip(leaves, gradients))}


def gradient_error(name, found, expected):
    """Relative, but of bk: its true value is zero (softmax does not change when a row's scores all
    shift), so by the size of bq."""
    if name != 'bk':
        return reference.relative_error(found[name], expected[name])
    return float((found['bk'].double() - expected['bk']).norm() / expected['bq'].norm())


def check_results(artifact, out, expected, half):
    """The largest relative error; raises WrongResult naming the tensor. Values beyond fp16 would be
    infinite and never pass."""
    largest, missing = 0.0, set(expected)
    for tensor, name, found in zip(artifact.outputs, artifact.gradients(), out, strict=True):
        error, limit = gradient_error(name, {name: found}, expected), LIMIT
        if not error <= limit:
            theirs = gradient_error(name, half, expected)
            limit = min(MOST, max(LIMIT, SLACK * theirs)) if math.isfinite(theirs) else LIMIT
        if not error <= limit:
            raise reference.WrongResult(
                f'{tensor["name"]}: relative error {error:.2e}, limit {limit:.1e}')
        largest = max(largest, error)
        missing.discard(name)
    if missing:
        raise reference.WrongResult(f'no result is the gradient of {", ".join(sorted(missing))}')
    return largest


def our_contenders(result, settings, layer, module, x, dy, batch, length):
    arguments = [*layer.compile_arguments(batch, length), '--train']
    artifacts = ours.artifacts(settings, layer.training_name(batch, length), arguments, result,
                               entry=library.ALL)
    tensors, contenders = module.tensors(), []
    for label, artifact in artifacts.items():
        artifact.set_parameters(tensors)
        artifact.set_dropout_key(seed=1, step=0)
        inputs = [x.detach() if name == 'x' else dy for name in artifact.input_names()]
        out = artifact.poisoned_outputs()
        artifact.launch(inputs, out)
        torch.cuda.synchronize()
        dropout = reference.Dropout(layer.dropout, seed=1, step=0)
        expected = expected_results(layer, tensors, x, dy, dropout)
        half = expected_results(layer, tensors, x, dy, dropout, torch.float16)
        try:
            result.errors[label] = check_results(artifact, out, expected, half)
        except reference.WrongResult as error:
            result.failures[label] = str(error)
            continue
        finally:
            del expected, half
            torch.cuda.empty_cache()
        workspace = artifact.device_bytes() - artifact.parameter_bytes()
        result.extra[f'{label} workspace'] = f'{workspace / 1e6:.1f} MB'
        contenders.append(
            timing.GraphContender(label, lambda _, a=artifact, i=inputs, o=out: a.launch(i, o)))
    return contenders


def torch_contenders(settings, module, x, dy):
    """autograd.grad instead of .backward(): nothing is added to gradients of before."""
    leaves = [x, *module.parameters()]
    return [
        timing.GraphContender(name, lambda _, f=form: torch.autograd.grad(f(x), leaves, dy))
        for name, form in rivals.torch_forms(settings, module).items()
    ]


def run(settings):
    for layer, batch, length in layers.TRAINING:
        if not settings.wants(layer.training_name(batch, length)):
            continue
        result = Result(layer.training_workload(batch, length))
        torch.manual_seed(0)
        module = rivals.module_of(layer).to('cuda', torch.float16).train()
        x = torch.randn(batch, length, layer.hidden, device='cuda', dtype=torch.float16,
                        requires_grad=True)
        dy = 0.1 * torch.randn_like(x)
        contenders = ours.guarded(
            result, lambda: our_contenders(result, settings, layer, module, x, dy, batch, length))
        contenders += ours.guarded(result, lambda: torch_contenders(settings, module, x, dy),
                                   'torch')
        contenders += ours.guarded(result,
                                   lambda: rivals.jax_contenders(settings, layer, module, x, dy),
                                   'jax')
        timing.measure(result, contenders, settings.rounds)
        yield result
        del contenders, module, x
        torch.cuda.empty_cache()
