"""Group `transfer`: layers drawn at random, which no shipped profile holds, against the best rival.
Forward, or forward and backward with all gradients."""
import dataclasses
import json

import torch

from . import library, ours, reference, statistics, timing, training, transfer_draws, \
    transfer_modules, transfer_reference, transfer_table
from .report import OURS, Result

DEVICE = 'cuda'
LIMITS = {'f16': 2e-3, 'bf16': 1.2e-2}  # of the relative error of the result and each gradient


def compiled(settings, draw, result):
    """Ours by label, of a config.json with the drawn sizes."""
    config = settings.folder / (ours.folder_name(draw.name()) + '.json')
    config.write_text(json.dumps(draw.config(), indent=2) + '\n')
    entry = library.ALL if draw.training else library.FORWARD
    return ours.artifacts(settings, draw.name(), draw.compile_arguments(config), result,
                          entry=entry)


def prices(plan):
    """Whether the times that the plan was chosen by were measured."""
    kernels = [kernel for kernel in plan['kernels'] if kernel['source'] or kernel.get('library')]
    count = sum(bool(kernel['measured']) for kernel in kernels)
    text = {0: 'estimated', len(kernels): 'measured'}.get(count,
                                                          f'{count}/{len(kernels)} measured')
    return text + (', plans timed' if plan.get('measurement') else '')


def check_gradients(draw, artifact, out, tensors, x, dy, dropout):
    """The largest relative error; raises WrongResult naming the tensor, with what PyTorch's own
    arithmetic of that type is off. A gradient is wrong that is off by more than the limit and by
    more than PyTorch's: of a sum over many tokens rounded operands alone may be off by as much."""
    expected = transfer_reference.results_of(draw, tensors, x, dy, dropout)
    names = artifact.gradients()
    missing = sorted(set(expected) - set(names))
    if missing:
        raise reference.WrongResult(f'no result is the gradient of {", ".join(missing)}')
    errors = {
        name: training.gradient_error(name, {name: found}, expected)
        for name, found in zip(names, out, strict=True)
    }
    wrong = [name for name, error in errors.items() if not error <= LIMITS[draw.dtype]]
    if wrong:
        half = transfer_reference.results_of(draw, tensors, x, dy, dropout, x.dtype)
        theirs = {name: training.gradient_error(name, half, expected) for name in wrong}
        said = [
            f'{f"gradient of {name}" if name else "result"} {errors[name]:.2e} (PyTorch in '
            f'{draw.dtype}: {theirs[name]:.2e})' for name in wrong
            if not errors[name] <= theirs[name]
        ]
        if said:
            raise reference.WrongResult(f'relative error above {LIMITS[draw.dtype]:.1e}: '
                                        + ', '.join(said))
    return max(errors.values())


def checked(draw, artifact, module, x, dy):
    """A call of ours, and its error against fp64 under the same masks. Outputs held NaN before."""
    tensors = module.tensors()
    artifact.set_parameters(tensors)
    artifact.set_dropout_key(seed=1, step=0)
    inputs = [x.detach() if name == 'x' else dy for name in artifact.input_names()]
    out = artifact.poisoned_outputs()
    artifact.launch(inputs, out)
    torch.cuda.synchronize()
    dropout = reference.Dropout(draw.dropout, seed=1, step=0)
    if draw.training:
        error = check_gradients(draw, artifact, out, tensors, x, dy, dropout)
    else:
        expected = transfer_reference.result_of(draw, tensors, x, dropout)
        error = reference.check(out[0], expected, LIMITS[draw.dtype])
    return (lambda: artifact.launch(inputs, out)), error


def reason_of(error):
    return timing.first_line(error)[:300]


def our_contenders(settings, draw, result, module, x, dy):
    """Ours, after its result was compared with fp64. What weft does not compile or load is
    rejected; what does not run, or is off, or could not be compared, is wrong."""
    record, found = result.record, []
    try:
        for label, artifact in compiled(settings, draw, result).items():
            record['prices'] = prices(artifact.plan)
            workspace = artifact.device_bytes() - artifact.parameter_bytes()
            result.extra[f'{label} workspace'] = f'{workspace / 1e6:.1f} MB'
            record['status'] = transfer_table.WRONG
            call, result.errors[label] = checked(draw, artifact, module, x, dy)
            found.append(timing.GraphContender(label, lambda _, c=call: c()))
    except Exception as error:  # of one draw: a row of the table
        result.failures[OURS] = reason_of(error)
    return found


def conclude(settings, result):
    """Status and ratio, once everything that runs was timed."""
    record = result.record
    if not settings.ours:
        record['status'] = transfer_table.ABSENT
    elif OURS in result.samples:
        record['status'] = transfer_table.RIGHT
    else:
        record['reason'] = result.failures.get(OURS, 'no figure')
    rival = result.best(result.rivals())
    if OURS in result.samples and rival:
        pair = statistics.ratio(result.samples[rival], result.samples[OURS])
        record['ratio'] = {'median': pair.median, 'spread': pair.spread, 'rival': rival}


def operands(draw):
    """The module, its input, and in training the gradient of its result."""
    torch.manual_seed(draw.index)
    dtype = ours.DTYPES[draw.dtype]
    with torch.device(DEVICE):
        module = transfer_modules.module_of(draw).to(dtype).train(draw.training)
        x = torch.randn(draw.batch, draw.length, draw.hidden, dtype=dtype)
        return module, x, 0.1 * torch.randn_like(x) if draw.training else None


def measured(settings, draw):
    record = {
        'draw': draw.data(), 'status': transfer_table.REJECTED, 'reason': '', 'prices': '',
        'ratio': None
    }
    result = Result(draw.workload(), record=record)
    try:
        module, x, dy = operands(draw)
        contenders = our_contenders(settings, draw, result, module, x, dy) if settings.ours else []
        torch.cuda.empty_cache()
        x.requires_grad_(draw.training)
        contenders += ours.guarded(
            result, lambda: transfer_modules.contenders(result, settings, draw, module, x, dy),
            'torch')
        timing.measure(result, contenders, settings.rounds)
    except Exception as error:  # e.g. of a GPU that a kernel has left unusable
        result.failures.setdefault(OURS, reason_of(error))
        result.samples.clear()
    conclude(settings, result)
    return result


def is_usable():
    """Whether the GPU still computes: after an illegal access no call of this process succeeds."""
    try:
        torch.cuda.synchronize()
        return True
    except Exception:
        return False


def run(settings):
    """One result a draw. What --only or --budget leaves out, and what follows a draw after which
    the GPU is unusable, is listed by the table as not measured."""
    settings = dataclasses.replace(settings, folder=settings.folder / 'transfer',
                                   compile_limit=settings.draw_limit)
    settings.folder.mkdir(parents=True, exist_ok=True)
    for draw in transfer_draws.draws(settings.seed, settings.first, settings.count):
        if not settings.wants(draw.name()):
            continue
        yield measured(settings, draw)
        if not is_usable():
            print(f'the GPU is unusable after draw {draw.name()}: go on with --first '
                  f'{draw.index + 1}', flush=True)
            return
        torch.cuda.empty_cache()
