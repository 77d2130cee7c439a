"""Group `varlen`: the layers of BERT-base over sequences of different lengths, padded and packed.
Every contender takes padded tokens and gives padded tokens; those behind the last one of a sequence
are not looked at."""
import torch

from . import (ours, reference, statistics, timing, varlen_mixed, varlen_mixed_rows,
               varlen_modules, varlen_rows, varlen_table)
from .report import Result

DEVICE = 'cuda'
LIMIT = 1e-2  # of the relative error: fp16 between the kernels of all layers, fp32 within


def tensors_of(row, modules):
    """Weights under the graph's names."""
    return {
        varlen_rows.layer_prefix(row, index) + name: tensor
        for index, module in enumerate(modules)
        for name, tensor in module.tensors().items()
    }


def expected_of(row, modules, x):
    """Valid tokens in fp64 [tokens, hidden]: each sequence by itself, without a mask."""
    none = reference.Dropout(0.0)
    found = []
    for sequence, length in enumerate(row.lengths()):
        own = x[sequence:sequence + 1, :length].double()
        for module in modules:
            own = reference.result_of(row.layer, {**module.tensors(), 'x': own}, none)
        found.append(own[0])
    return torch.cat(found)


class Checker:
    """Compares the valid tokens of a padded result with fp64."""
    def __init__(self, batch, expected):
        self.batch, self.expected = batch, expected

    def __call__(self, out):
        return reference.check(self.batch.packed(out), self.expected, LIMIT)


def compile_arguments(settings, row):
    """Of the padded and of the packed plan; the latter is priced at the row's lengths."""
    expected = settings.folder / (ours.folder_name(row.name()) + '.lengths')
    expected.write_text(' '.join(map(str, row.lengths())) + '\n')
    return {
        varlen_table.PADDED: [*row.compile_arguments(), '--mask', 'padding'],
        varlen_table.PACKED: [*row.compile_arguments(), '--ragged', 'j', '--lengths', expected]
    }


def artifact_name(row, form, is_packed):
    """A padded plan is one for all lengths."""
    return f'{row.name()} {form}' if is_packed else \
        f'{row.layer.preset} {row.layers} layers B={row.batch} L={row.length} {form}'


def our_contender(settings, result, row, label, name, arguments, tensors, x, check):
    artifact = ours.compile_artifact(settings, name, arguments)
    result.extra[f'{label} plan'] = artifact.summary()
    artifact.set_parameters(tensors)
    workspace = artifact.device_bytes() - artifact.parameter_bytes()
    result.extra[f'{label} workspace'] = f'{workspace / 1e6:.1f} MB'
    given = {
        'x': x, 'lengths': torch.tensor(row.lengths(), device=x.device, dtype=torch.int32)
    }
    inputs = [given[name] for name in artifact.input_names()]
    outputs = artifact.poisoned_outputs()
    artifact.launch(inputs, outputs)
    torch.cuda.synchronize()
    result.errors[label] = check(outputs[0])
    return [timing.GraphContender(label, lambda _: artifact.launch(inputs, outputs))]


def our_contenders(settings, result, row, tensors, x, check):
    if not settings.ours:
        return []
    found = []
    for label, arguments in compile_arguments(settings, row).items():
        is_packed = label == varlen_table.PACKED
        name = artifact_name(row, 'packed' if is_packed else 'padded', is_packed)
        found += ours.guarded(
            result, lambda: our_contender(settings, result, row, label, name, arguments, tensors,
                                          x, check), label)
    return found


def rival_contender(result, name, make, x, check):
    try:
        call = make()
    except (ImportError, AttributeError) as error:
        result.failures[name] = varlen_table.UNAVAILABLE + timing.first_line(error)
        return []
    result.errors[name] = check(call(x))
    return [timing.GraphContender(name, lambda _: call(x))]


def rival_contenders(settings, result, row, batch, modules, x, check):
    if settings.torch_compile:
        torch.compiler.reset()
    approximate = 'tanh' if row.layer.activation == 'gelu_tanh' else varlen_modules.EXACT
    forms = varlen_modules.forms(settings, batch, modules, row.layer.heads, row.layer.epsilon,
                                 approximate)
    found = []
    for name, make in forms.items():
        found += ours.guarded(result, lambda: rival_contender(result, name, make, x, check), name)
    return found


def record(row, result):
    best = result.best(result.ours())
    ratios = {
        name: statistics.ratio(samples, result.samples[best]).median
        for name, samples in result.samples.items() if name not in result.ours()
    } if best else {}
    return varlen_table.record(row, best, ratios)


def measured(settings, row):
    result = Result(row.workload())
    torch.manual_seed(0)
    with torch.device(DEVICE):
        modules = [module.half() for module in varlen_modules.modules_of(row)]
        x = torch.randn(row.batch, row.length, row.layer.hidden, dtype=torch.float16)
    batch = varlen_modules.Batch(row.lengths(), row.length, DEVICE)
    with torch.no_grad():
        check = Checker(batch, expected_of(row, modules, x))
        contenders = our_contenders(settings, result, row, tensors_of(row, modules), x, check)
        contenders += rival_contenders(settings, result, row, batch, modules, x, check)
        timing.measure(result, contenders, settings.rounds)
    result.record['varlen'] = record(row, result)
    return result


def run(settings):
    for row in varlen_mixed_rows.rows(settings.layers) if settings.mixed else []:
        if settings.wants(row.name()):
            yield varlen_mixed.measured(settings, row, DEVICE)
            torch.cuda.empty_cache()
    if settings.mixed:
        return
    for row in varlen_rows.rows(settings.layers):
        if settings.wants(row.name()):
            yield measured(settings, row)
            torch.cuda.empty_cache()
