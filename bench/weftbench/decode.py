"""Group `decode`: a Llama layer of one new token a sequence, whose earlier ones lie in caches and
are of different numbers. Every contender appends its keys and values itself, in the same places."""
import torch

from . import decode_modules, decode_rows, ours, reference, timing
from .report import OURS, Result

DEVICE = 'cuda'
LIMIT = 1e-2  # of the relative error: fp16 between the kernels of a layer, fp32 within


def weights_of(row):
    """Deviations keep the size of what passes through."""
    return {
        name: torch.ones(shape, device=DEVICE, dtype=torch.float16) if len(shape) == 1 else
        torch.randn(shape, device=DEVICE, dtype=torch.float16) * shape[-1]**-0.5
        for name, shape in decode_rows.shapes(row).items()
    }


def lengths_file(settings, row):
    path = settings.folder / (ours.folder_name(row.name()) + '.lengths')
    path.write_text(' '.join(map(str, row.held())) + '\n')
    return path


def our_contender(settings, result, row, tensors, x, caches, expected):
    artifact = ours.compile_artifact(settings, row.name(),
                                     row.compile_arguments(lengths_file(settings, row)))
    result.extra['weft plan'] = artifact.summary()
    artifact.set_parameters(tensors)
    given = {
        'x': x[:, None], 'lengths': caches.held.int(), 'key_cache': caches.keys,
        'value_cache': caches.values
    }
    inputs = [given[name] for name in artifact.input_names()]
    outputs = artifact.poisoned_outputs()
    artifact.launch(inputs, outputs)
    torch.cuda.synchronize()
    result.errors[OURS] = reference.check(outputs[0][:, 0], expected, LIMIT)
    return [timing.GraphContender(OURS, lambda _: artifact.launch(inputs, outputs))]


def rival_contender(result, name, make, x, expected):
    try:
        call = make()
    except (ImportError, AttributeError) as error:
        result.failures[name] = 'not available: ' + timing.first_line(error)
        return []
    result.errors[name] = reference.check(call(x), expected, LIMIT)
    return [timing.GraphContender(name, lambda _: call(x))]


def measured(settings, row):
    result = Result(row.workload())
    torch.manual_seed(0)
    tensors, caches = weights_of(row), decode_modules.Caches(row, DEVICE)
    x = torch.randn(row.batch, row.hidden, device=DEVICE, dtype=torch.float16)
    with torch.no_grad():
        expected = decode_modules.expected_of(row, tensors, x, caches)
        contenders = []
        if settings.ours:
            contenders += ours.guarded(
                result, lambda: our_contender(settings, result, row, tensors, x, caches, expected))
        if settings.rivals:
            if settings.torch_compile:
                torch.compiler.reset()
            for name, make in decode_modules.forms(settings, row, tensors, caches).items():
                contenders += ours.guarded(
                    result, lambda: rival_contender(result, name, make, x, expected), name)
        timing.measure(result, contenders, settings.rounds)
    return result


def run(settings):
    for row in decode_rows.ROWS:
        if settings.wants(row.name()):
            yield measured(settings, row)
            torch.cuda.empty_cache()
