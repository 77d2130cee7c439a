"""Group `steps`: whole training steps of whole models, forward, backward and AdamW, in mixed
precision.

Ours reads parameters, masters and averages in one place and writes the next ones to another; steps
alternate between both. Rivals update in place."""
import torch

from . import library, ours, statistics, steps_modules, steps_rows, steps_table, timing
from .report import OURS, Result

DEVICE = 'cuda'
CHECKED = 4  # steps whose losses are compared; even: ours is back where it began
LIMIT = 5e-2  # of the largest difference of losses, by how far the loss falls meanwhile
INDEX = torch.int32


class WrongLosses(RuntimeError):
    pass


def loss_error(found, expected):
    """The largest difference by how far the expected losses are apart: a step that updates nothing
    has an error of 1."""
    apart = max(abs(loss - expected[0]) for loss in expected)
    return max(abs(a - b) for a, b in zip(found, expected, strict=True)) / apart


def checked(found, expected):
    error = loss_error(found, expected)
    if not error <= LIMIT or not all(loss == loss for loss in found):
        shown = lambda losses: ', '.join(f'{loss:.5g}' for loss in losses)
        raise WrongLosses(f'losses {shown(found)}, expected {shown(expected)}')
    return error


def scalars(step):
    """Of AdamW at a step that counts from 1, as ir/SPEC.md has them."""
    (beta1, beta2), rate = steps_modules.BETAS, steps_modules.RATE
    corrected = (1 - beta2**step)**0.5
    return {
        'keep': 1 - rate * steps_modules.WEIGHT_DECAY,
        'step_size': rate * corrected / (1 - beta1**step),
        'epsilon': steps_modules.EPSILON * corrected
    }


def given_tensors(row, tensors, data):
    """What a plan's arguments hold before the first step, by name; `tensors`: of the parameters."""
    device = data.tokens.device
    dtype = steps_modules.DTYPES[row.dtype]
    scalar = lambda value: torch.full((), value, device=device)
    found = {'tokens': data.tokens.to(INDEX), 'inverse_loss_scale': scalar(1 / data.scale)}
    if row.is_decoder():
        found |= {
            'labels': data.second.to(INDEX), 'd_loss': scalar(data.scale),
            'weights': torch.full(data.tokens.shape, 1 / row.tokens(), device=device)
        }
    else:
        hidden, pooled = data.gradients
        found |= {
            'types': data.second.to(INDEX), f'd_layer{row.layers}_norm2': hidden,
            'd_pooled': pooled
        }
    found |= {name: scalar(value) for name, value in scalars(1).items()}
    for name, tensor in tensors.items():
        found |= {
            name: tensor.to(dtype), f'{name}_master': tensor,
            f'{name}_mean': torch.zeros_like(tensor), f'{name}_square': torch.zeros_like(tensor)
        }
    return found


class OurStep:
    """An artifact's step. `given`: by argument's name."""
    def __init__(self, row, artifact, given, data):
        self.artifact, self.data, self.row = artifact, data, row
        self.next_of = {  # by result: the argument whose value in the next step it is
            tensor['logical']: tensor['nextOf']
            for tensor in artifact.plan['tensors'] if 'nextOf' in tensor
        }
        self.given = {
            tensor['name']: self.argument(tensor, given)
            for tensor in artifact.inputs
        }
        self.results = dict(
            zip((tensor['name'] for tensor in artifact.outputs), artifact.poisoned_outputs(),
                strict=True))
        orders = {tensor['name']: tensor['order'] for tensor in artifact.inputs}
        for tensor in artifact.outputs:
            name = self.next_of.get(tensor['name'])
            if name and orders[name] != tensor['order']:
                raise WrongLosses(f'{name} is read in another layout than it is written in')

    @staticmethod
    def argument(tensor, given):
        """In the artifact's order of memory, seen in logical order."""
        name, order = tensor['name'], tensor['order']
        value = given[name]
        if list(value.shape) != tensor['extents'] or value.dtype != ours.DTYPES[tensor['dtype']]:
            raise WrongLosses(f'{name}: {list(value.shape)} {value.dtype}, the graph has {tensor}')
        memory = value.permute(order).contiguous()
        return memory.permute([order.index(axis) for axis in range(len(order))])

    def launch(self, turn):
        """Turn 1 reads what turn 0 wrote, and writes what that read."""
        read, written = dict(self.given), dict(self.results)
        if turn:
            for name, carried in self.next_of.items():
                read[carried], written[name] = self.results[name], self.given[carried]
        self.artifact.launch(list(read.values()), list(written.values()))

    def losses(self, count):
        found = []
        for step in range(count):
            for name, value in scalars(step + 1).items():
                self.given[name].fill_(value)
            self.launch(step % 2)
            torch.cuda.synchronize()
            names = ['loss'] if self.row.is_decoder() else [
                f'layer{self.row.layers}_norm2', 'pooled'
            ]
            found.append(self.data.loss([self.results[name] for name in names]))
        return found


class PairContender(timing.GraphContender):
    """A call is two steps: what the first writes the second reads."""
    def seconds(self):
        return super().seconds() / 2


def our_contenders(settings, result, row, tensors, data, expected):
    if not settings.ours:
        return []
    artifact = ours.compile_artifact(settings, row.name(), row.compile_arguments(),
                                     entry=library.ALL)
    result.extra[f'{OURS} plan'] = artifact.summary()
    step = OurStep(row, artifact, given_tensors(row, tensors, data), data)
    result.errors[OURS] = checked(step.losses(CHECKED), expected)
    workspace = artifact.device_bytes() - artifact.parameter_bytes()
    result.extra[f'{OURS} workspace'] = f'{workspace / 1e6:.1f} MB'
    return [PairContender(OURS, lambda _: (step.launch(0), step.launch(1)))]


def rival_contender(result, name, step, expected):
    result.errors[name] = checked(step.losses(CHECKED), expected)
    return [timing.GraphContender(name, lambda _: step())]


def rival_contenders(settings, result, row, make, data, expected):
    """Eager and compiled of one form share parameters and optimizer; both are checked before
    either is captured."""
    if not settings.rivals:
        return []
    found = []
    for form in steps_table.FORMS:
        module = make()
        step = steps_modules.step_of(form, module, data, DEVICE, steps_modules.DTYPES[row.dtype])
        steps = {steps_table.EAGER: step}
        if settings.torch_compile:
            steps[steps_table.COMPILED] = step.twin(torch.compile(module, dynamic=False))
        for how, one in steps.items():
            name = f'{how} {form}'
            found += ours.guarded(
                result, lambda n=name, s=one: rival_contender(result, n, s, expected), name)
    return found


def record(row, result):
    ratios = {
        name: statistics.ratio(samples, result.samples[OURS]).median
        for name, samples in result.samples.items() if name != OURS
    } if OURS in result.samples else {}
    return steps_table.record(row, ratios)


def measured(settings, row):
    result = Result(row.workload())

    def make():
        torch.manual_seed(0)
        with torch.device(DEVICE):
            return steps_modules.module_of(row)

    if settings.torch_compile and settings.rivals:
        torch.compiler.reset()  # what was compiled for earlier rows
    module = make()
    data = steps_modules.Data(row, DEVICE)
    tensors = steps_modules.tensors_of(module)
    expected = steps_modules.Step(module, data, DEVICE, torch.float32).losses(CHECKED)
    del module
    torch.cuda.empty_cache()
    contenders = ours.guarded(
        result, lambda: our_contenders(settings, result, row, tensors, data, expected))
    contenders += rival_contenders(settings, result, row, make, data, expected)
    timing.measure(result, contenders, settings.rounds)
    result.record['steps'] = record(row, result)
    return result


def run(settings):
    for row in steps_rows.rows():
        if settings.wants(row.name()):
            yield measured(settings, row)
            torch.cuda.empty_cache()
