"""Group `varlen` with --mixed: one artifact takes 100 batches of random lengths one after another,
captured once, without a look at the host; every tenth batch also runs through a plan that was made
for its lengths, in the same rounds."""
import torch

from . import ours, reference, statistics, timing, varlen_mixed_rows, varlen_modules
from .report import Result
from .varlen_mixed_rows import EACH, ONE


class Captured(timing.GraphContender):
    """Counts how often it is captured."""
    captures = 0

    def capture(self):
        self.captures += 1
        super().capture()


class Runner:
    """An artifact, its inputs and its outputs; `lengths` may be written between replays."""
    def __init__(self, settings, name, arguments, tensors, x, lengths):
        self.artifact = ours.compile_artifact(settings, name, arguments)
        self.artifact.set_parameters(tensors)
        given = {'x': x, 'lengths': lengths}
        self.inputs = [given[one] for one in self.artifact.input_names()]
        self.outputs = self.artifact.poisoned_outputs()

    def launch(self, _set=0):
        self.artifact.launch(self.inputs, self.outputs)


def lengths_file(settings, name, draws):
    path = settings.folder / (ours.folder_name(name) + '.lengths')
    path.write_text(varlen_mixed_rows.lengths_text(draws))
    return path


def packed_arguments(settings, name, row, draws):
    return [*row.compile_arguments(), '--ragged', 'j', '--lengths',
            lengths_file(settings, name, draws)]


def launch_all(contender, lengths, given):
    """Seconds of one call for each batch, its lengths copied before it on the device. PyTorch
    raises where the host waits."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.set_sync_debug_mode('error')
    try:
        start.record()
        for own in given:
            lengths.copy_(own, non_blocking=True)
            contender.graph.replay()
        end.record()
    finally:
        torch.cuda.set_sync_debug_mode('default')
    torch.cuda.synchronize()
    return 1e-3 * start.elapsed_time(end) / contender.calls


def against_plan(settings, draw, contender, lengths, tensors, x, check):
    """Samples of the one artifact and of the plan made for the draw, of the same rounds."""
    own = torch.tensor(draw.lengths(), device=x.device, dtype=torch.int32)
    lengths.copy_(own)
    runner = Runner(settings, draw.name(),
                    packed_arguments(settings, draw.name(), draw, [draw]), tensors, x, own)
    runner.launch()
    torch.cuda.synchronize()
    check(runner.outputs[0])
    planned = timing.GraphContender(EACH, runner.launch)
    planned.prepare()
    samples, clocks = timing.run_rounds([contender, planned], settings.rounds, 3)
    return samples, clocks


def checker(settings, draw, modules, x):
    from .varlen import Checker, expected_of
    return Checker(varlen_modules.Batch(draw.lengths(), draw.length, x.device),
                   expected_of(draw, modules, x))


def fill(settings, result, row, modules, tensors, x):
    draws = row.draws()
    given = [torch.tensor(draw.lengths(), device=x.device, dtype=torch.int32) for draw in draws]
    lengths = given[0].clone()
    runner = Runner(settings, row.name(), packed_arguments(settings, row.name(), row, draws),
                    tensors, x, lengths)
    result.extra[f'{ONE} plan'] = runner.artifact.summary()
    contender = Captured(ONE, runner.launch)
    contender.prepare()
    captures = [contender.captures]
    for draw, own in zip(draws, given):  # each is right before any is timed
        lengths.copy_(own)
        contender.graph.replay()
        torch.cuda.synchronize()
        error = checker(settings, draw, modules, x)(runner.outputs[0])
        result.errors[ONE] = max(error, result.errors.get(ONE) or 0)
    launch_all(contender, lengths, given)
    all_seconds = min(launch_all(contender, lengths, given) for _ in range(settings.rounds))
    losses, missing, sums = {}, {}, {}
    for draw in row.planned():
        try:
            samples, result.clocks = against_plan(settings, draw, contender, lengths, tensors, x,
                                                  checker(settings, draw, modules, x))
        except (ours.WeftFailed, reference.WrongResult) as error:
            missing[draw.index] = timing.first_line(error)
            continue
        losses[draw.index] = statistics.ratio(samples[ONE], samples[EACH]).median
        for name, own in samples.items():
            before = sums.get(name) or [0] * len(own)
            sums[name] = [a + b for a, b in zip(before, own)]
    captures.append(contender.captures)
    result.samples.update(sums)
    result.protocol = f'{settings.rounds} rounds interleaved after 3, sums over the batches'
    return varlen_mixed_rows.record(row, losses, missing, captures, all_seconds)


def measured(settings, row, device):
    from .varlen import tensors_of
    result = Result(row.workload())
    torch.manual_seed(0)
    with torch.device(device):
        modules = [module.half() for module in varlen_modules.modules_of(row.row())]
        x = torch.randn(row.batch, row.length, row.row().layer.hidden, dtype=torch.float16)
    with torch.no_grad():
        found = ours.guarded(
            result, lambda: fill(settings, result, row, modules, tensors_of(row.row(), modules), x),
            ONE)
    result.record['varlen'] = found or varlen_mixed_rows.record(row, {}, {}, [], None)
    return result
