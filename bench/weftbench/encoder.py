"""Group `encoder`: whole layers, forward. paper-encoder with dropout, BERT-base and BERT-large in inference."""
import torch

from . import ours, reference, rivals, timing
from .report import Result, Workload

PAPER = dict(hidden=1024, heads=16, feed_forward=4096, activation='relu', dropout=0.1, epsilon=1e-5)
BERT_BASE = dict(hidden=768, heads=12, feed_forward=3072, activation='gelu', dropout=0.0, epsilon=1e-12)
BERT_LARGE = dict(hidden=1024, heads=16, feed_forward=4096, activation='gelu', dropout=0.0, epsilon=1e-12)
SHAPES = [(8, 512), (96, 128)]
SWEEP = [(1, length) for length in (128, 256, 512, 1024, 2048, 4096)]
WORKLOADS = [(preset, layer, batch, length) for batch, length in SHAPES + SWEEP
             for preset, layer in (('paper-encoder', PAPER), ('bert-base', BERT_BASE), ('bert-large', BERT_LARGE))]
LIMIT = 5e-3  # of the relative error: fp16 between kernels, fp32 within


def name_of(preset, batch, length):
    return f'{preset} B={batch} L={length}'


def workload(preset, layer, batch, length):
    """Flop of the six products; bytes of input, output and weights once."""
    hidden, inner, tokens = layer['hidden'], layer['feed_forward'], batch * length
    flop = 2 * tokens * hidden * (4 * hidden + 2 * inner) + 4 * batch * length * length * hidden
    weights = 4 * hidden * hidden + 2 * hidden * inner + 9 * hidden + inner
    note = 'forward' + (f', dropout {layer["dropout"]}' if layer['dropout'] else '')
    return Workload(name_of(preset, batch, length), 2 * (2 * tokens * hidden + weights), flop, note)


def compile_arguments(preset, batch, length):
    return [preset, '--dim', f'b={batch}', '--dim', f'j={length}']


def our_contenders(result, settings, preset, layer, module, x, batch, length):
    """Ours, after its result was compared with fp64 under its own dropout masks."""
    artifacts = ours.artifacts(settings, name_of(preset, batch, length), compile_arguments(preset, batch, length), result)
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
            expected = reference.encoder({**tensors, 'x': x}, layer['activation'], layer['epsilon'],
                                         reference.Dropout(layer['dropout'], seed=1, step=0))
        try:
            result.errors[label] = reference.check(out[0], expected, LIMIT)
        except reference.WrongResult as error:
            result.failures[label] = str(error)
            continue
        result.extra[f'{label} workspace'] = f'{(artifact.device_bytes() - artifact.parameter_bytes()) / 1e6:.1f} MB'
        contenders.append(timing.GraphContender(label, lambda _, a=artifact, o=out: a.launch([x], o)))
    return contenders


def torch_contenders(settings, layer, module, x):
    """Eager and compiled, with autograd's bookkeeping (training) and without."""
    forms = {'eager unfused': rivals.twin(module, sdpa=False), 'eager + SDPA': rivals.twin(module, sdpa=True)}
    if settings.torch_compile:
        forms['torch.compile'] = rivals.compiled(rivals.twin(module, sdpa=True))
    contenders = []
    for name, form in forms.items():
        if layer['dropout']:
            contenders.append(timing.GraphContender(name, lambda _, f=form: f(x)))
        contenders.append(timing.GraphContender(name + (' no_grad' if layer['dropout'] else ''),
                                                lambda _, f=rivals.without_autograd(form): f(x)))
    return contenders


def run(settings):
    for preset, layer, batch, length in WORKLOADS:
        if not settings.wants(name_of(preset, batch, length)):
            continue
        result = Result(workload(preset, layer, batch, length))
        torch.manual_seed(0)
        module = rivals.EncoderLayer(**layer).to('cuda', torch.float16)
        module.train(layer['dropout'] > 0)
        x = torch.randn(batch, length, layer['hidden'], device='cuda', dtype=torch.float16)
        contenders = ours.guarded(result, lambda: our_contenders(result, settings, preset, layer, module, x, batch, length))
        if layer['dropout']:
            x = x.clone().requires_grad_()
        contenders += torch_contenders(settings, layer, module, x)
        if settings.jax:
            try:
                call, wait = rivals.jax_encoder(module.tensors(), x, layer['heads'], layer['activation'], layer['dropout'],
                                                layer['epsilon'])
                contenders.append(timing.HostContender('jax', call, wait))
            except ImportError as error:
                result.failures['jax'] = timing.first_line(error)
        timing.measure(result, contenders, settings.rounds)
        yield result
        del contenders, module, x
        torch.cuda.empty_cache()
