"""Modules of bench/weftbench that import PyTorch, over a stand-in for it that computes nothing:
names, arguments and the order of calls can be tested so, results cannot."""
import importlib
import sys
from unittest import mock

STUBS = ('numpy', 'torch', 'torch.nn', 'torch.nn.functional', 'torch.nn.attention',
         'torch.nn.attention.flex_attention', 'torch.nn.attention.varlen')


class Anything(mock.MagicMock):
    """Also compares with numbers; no order of tensors is looked at."""
    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        for name in ('__lt__', '__le__', '__gt__', '__ge__'):
            setattr(self, name, lambda *_: Anything())


class Module:
    def half(self, *_):
        return self

    to = eval = train = half


def stubs():
    found = {one: Anything() for one in STUBS}
    found['torch'].nn, found['torch.nn'].Module = found['torch.nn'], Module
    found['torch'].cuda.OutOfMemoryError = MemoryError
    return found


def imported(name):
    """A module of weftbench; what others import stays what it is."""
    package = importlib.import_module('weftbench')
    kept = dict(vars(package))
    with mock.patch.dict(sys.modules, stubs()):
        for one in [one for one in sys.modules if one.startswith('weftbench.')]:
            del sys.modules[one]
            vars(package).pop(one.split('.')[1], None)
        module = importlib.import_module(f'weftbench.{name}')
    vars(package).clear()
    vars(package).update(kept)
    return module


class Launches:
    """Stands for artifacts and the clock, until the end of a test case: what is compiled (name ->
    arguments of weft) and in which order it is launched. `wrong`: part of the arguments of an
    artifact whose result is wrong."""
    def __init__(self, case, module):
        """`module`: what `imported` returned."""
        self.module, self.wrong, self.compiled, self.launched = module, '', {}, []
        named = self.part
        for where, name, stand_in in (
                (named('ours'), 'compile_artifact', self.compile),
                (named('reference'), 'check', self.check),
                (named('reference'), 'result_of', lambda *_: Anything()),
                (named('timing'), 'GraphContender', Contender),
                (named('timing'), 'measure', self.measure)):
            case.enterContext(mock.patch.object(where, name, stand_in))
        case.enterContext(mock.patch.dict(sys.modules, stubs()))  # of imports within functions

    def part(self, name):
        """A module that the imported one uses, be it by way of another."""
        seen, ahead = set(), [self.module]
        while ahead:
            one = ahead.pop(0)
            found = vars(one).get(name)
            if type(found) is type(sys):
                return found
            for other in vars(one).values():
                if type(other) is type(sys) and other.__name__.startswith('weftbench.') and \
                        other.__name__ not in seen:
                    seen.add(other.__name__)
                    ahead.append(other)
        raise AssertionError(f'{self.module.__name__} does not use {name}')

    def compile(self, settings, name, arguments, edit=None, entry=None):
        words = [*map(str, [*arguments, *settings.weft_flags])]
        name = f'{settings.folder.name} {name}'
        self.compiled[name] = words
        artifact, result = mock.MagicMock(), Result()
        result.artifact = ' '.join(words)
        artifact.poisoned_outputs.return_value = [result]
        artifact.input_names.return_value = [*('qkv' if words[0] == 'attention' else 'x')] + \
            ['lengths'] * bool({'padding', '--ragged'} & set(words))
        artifact.device_bytes.return_value, artifact.parameter_bytes.return_value = 3e6, 1e6
        artifact.launch.side_effect = lambda *_: self.launched.append(name)
        return artifact

    def check(self, out, expected, limit):
        if self.wrong and self.wrong in getattr(out, 'artifact', ''):
            raise self.part('reference').WrongResult('far off')
        return 1e-4

    def measure(self, result, contenders, rounds):
        for contender in contenders:
            contender.call(0)
            result.samples[contender.name] = [1e-3] * rounds


class Contender:
    def __init__(self, name, call, sets=1):
        self.name, self.call = name, call


class Result(Anything):
    """A result of an artifact, and any view of it."""
    artifact = ''

    def _get_child_mock(self, **more):
        child = Result(**more)
        child.artifact = self.artifact
        return child
