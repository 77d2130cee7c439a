"""Group `encoder`: whole layers, forward. paper-encoder and its attention with dropout, BERT-base
and BERT-large in inference."""
import torch

from . import layers, ours, reference, rivals, timing
from .report import Result

LIMIT = 5e-3  # of the relative error: fp16 between kernels, fp32 within


def operands(layer, batch, length):
    """The module and its input."""
    torch.manual_seed(0)
    module = rivals.module_of(layer).to('cuda', torch.float16)
    module.train(layer.dropout > 0)
    return module, torch.randn(batch, length, layer.hidden, device='cuda', dtype=torch.float16)


def our_contenders(result, settings, layer, module, x, batch, length):
    """Ours, after its result was compared with fp64 under its own dropout masks."""
    artifacts = ours.artifacts(settings, layer.name(batch, length),
                               layer.compile_arguments(batch, length), result)
    tensors = module.tensors()
    expected = None
    contenders = []
    for label, artifact in artifacts.items():
        artifact.set_parameters(tensors)
        artifact.set_dropout_key(seed=1, step=0)
        out = artifact.poisoned_outputs()
        artifact.launch([x], out)
        torch.cuda.synchronize()
        if expected is None:
            expected = reference.result_of(layer, {**tensors, 'x': x},
                                           reference.Dropout(layer.dropout, seed=1, step=0))
        if not ours.admitted(result, label, artifact,
                             lambda: reference.check(out[0], expected, LIMIT)):
            continue
        contenders.append(
            timing.GraphContender(label, lambda _, a=artifact, o=out: a.launch([x], o)))
    return contenders


def torch_contenders(settings, layer, module, x):
    """Eager and compiled, with autograd's bookkeeping (training) and without."""
    contenders = []
    for name, form in rivals.torch_forms(settings, module).items():
        if layer.dropout:
            contenders.append(timing.GraphContender(name, lambda _, f=form: f(x)))
        contenders.append(
            timing.GraphContender(name + (' no_grad' if layer.dropout else ''),
                                  lambda _, f=rivals.without_autograd(form): f(x)))
    return contenders


def run(settings):
    for layer, batch, length in layers.FORWARD:
        if not settings.wants(layer.name(batch, length)):
            continue
        result = Result(layer.workload(batch, length))
        module, x = operands(layer, batch, length)
        contenders = ours.guarded(
            result, lambda: our_contenders(result, settings, layer, module, x, batch, length))
        if layer.dropout:
            x = x.clone().requires_grad_()
        contenders += ours.guarded(result, lambda: torch_contenders(settings, layer, module, x),
                                   'torch')
        contenders += ours.guarded(result,
                                   lambda: rivals.jax_contenders(settings, layer, module, x), 'jax')
        timing.measure(result, contenders, settings.rounds)
        yield result
        del contenders, module, x
        torch.cuda.empty_cache()
