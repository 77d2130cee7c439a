"""Group `models`: whole models, forward, as one CUDA graph: token ids become hidden states and the
pooler's result (BERT), or logits (GPT-2)."""
import torch

from . import models_rows, ours, reference, rivals, steps_modules, timing
from .report import Result

DEVICE = 'cuda'
LIMIT = 2e-2  # of the relative error: fp16 between the kernels of up to 24 layers


def arguments_of(row):
    """What the module is called with."""
    draw = lambda most: torch.randint(most, (row.batch, row.length), device=DEVICE)
    tokens = draw(row.classes())
    return (tokens, ) if row.is_decoder() else (tokens, draw(2))


def checked(results, expected):
    """The largest relative error."""
    return max(reference.check(*pair, LIMIT) for pair in zip(results, expected, strict=True))


def our_contenders(settings, result, row, tensors, arguments, expected):
    dtype = steps_modules.DTYPES[row.dtype]
    ids = dict(zip(('tokens', 'types'), (one.to(torch.int32) for one in arguments)))
    contenders = []
    for label, artifact in ours.artifacts(settings, row.name(), row.compile_arguments(),
                                          result).items():
        artifact.set_parameters({name: tensor.to(dtype) for name, tensor in tensors.items()})
        given = [ids[name] for name in artifact.input_names()]
        out = artifact.poisoned_outputs()
        artifact.launch(given, out)
        torch.cuda.synchronize()
        if not ours.admitted(result, label, artifact, lambda: checked(out, expected)):
            continue
        contenders.append(
            timing.GraphContender(label, lambda _, a=artifact, g=given, o=out: a.launch(g, o)))
    return contenders


def rival_contenders(settings, result, module, arguments, expected):
    """f16 parameters, no autocast: nothing is cast in a call."""
    if not settings.rivals:
        return []
    forms = {'eager + SDPA': module}
    if settings.torch_compile:
        forms['torch.compile'] = rivals.compiled(module)
    contenders = []
    for name, form in forms.items():
        call = rivals.without_autograd(form)
        result.errors[name] = checked(call(*arguments), expected)
        contenders.append(timing.GraphContender(name, lambda _, c=call: c(*arguments)))
    return contenders


def measured(settings, row):
    result = Result(row.workload())
    torch.manual_seed(0)
    with torch.device(DEVICE):
        module = steps_modules.module_of(row)
    arguments = arguments_of(row)
    tensors = steps_modules.tensors_of(module)
    with torch.no_grad():
        expected = module(*arguments)  # in f32
    module = module.to(steps_modules.DTYPES[row.dtype])
    contenders = ours.guarded(
        result, lambda: our_contenders(settings, result, row, tensors, arguments, expected))
    contenders += ours.guarded(
        result, lambda: rival_contenders(settings, result, module, arguments, expected), 'torch')
    timing.measure(result, contenders, settings.rounds)
    return result


def run(settings):
    for row in models_rows.rows():
        if settings.wants(row.name()):
            yield measured(settings, row)
            torch.cuda.empty_cache()
