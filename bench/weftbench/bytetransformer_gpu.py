"""What bench/run bytetransformer measures on a GPU, as entries of points: every step of a layer,
its attention alone, and whole models, each in the same rounds as its rivals. Right first: valid
tokens of every contender are compared with fp64 as group `varlen` does."""

import torch
import torch.nn.functional as F

from . import figure_run, machine, ours, reference, timing, varlen, varlen_modules
from .bytetransformer_rows import STEPS
from .report import Result, Workload

LIMIT = 1e-2
EAGER, SDPA, FLASH = 'eager', 'padded SDPA', 'flash varlen'


def where():
    return machine.describe()


def steps(settings, work, arguments):
    """`arguments`: of weft compile, by step."""
    row = work.row()
    result = Result(Workload(work.name()))
    torch.manual_seed(0)
    with torch.device(varlen.DEVICE):
        modules = [module.half() for module in varlen_modules.modules_of(row)]
        x = torch.randn(row.batch, row.length, row.layer.hidden, dtype=torch.float16)
    batch = varlen_modules.Batch(row.lengths(), row.length, varlen.DEVICE)
    with torch.no_grad():
        check = varlen.Checker(batch, varlen.expected_of(row, modules, x))
        tensors, contenders = varlen.tensors_of(row, modules), []
        for step in STEPS if settings.ours else ():
            name = varlen.artifact_name(row, step.name, step.packs)
            contenders += ours.guarded(
                result,
                lambda step=step, name=name: varlen.our_contender(
                    settings, result, row, step.name, name, arguments[step.name], tensors, x,
                    check), step.name)
        timing.measure(result, contenders, settings.rounds)
    del check, contenders, tensors, modules, x
    torch.cuda.empty_cache()
    return figure_run.entries_of(result)


def attention_of(q, k, v, seen):
    score = q @ k.transpose(-1, -2) / q.shape[-1]**0.5
    return torch.softmax(score.masked_fill(~seen, float('-inf')), -1) @ v


class Heads:
    """Queries, keys and values [batch, heads, length, dim] of sequences of different lengths, and
    what attention gives for their valid tokens in fp64."""
    def __init__(self, work):
        layer = work.row().layer
        torch.manual_seed(0)
        shape = (work.batch, layer.heads, work.length, layer.hidden // layer.heads)
        self.tensors = [torch.randn(shape, device='cuda', dtype=torch.float16) for _ in range(3)]
        self.batch = varlen_modules.Batch(work.lengths(), work.length, 'cuda')
        self.expected = torch.cat([
            attention_of(*(one[index, :, :own].double() for one in self.tensors),
                         torch.ones(own, own, device='cuda', dtype=torch.bool)).transpose(0, 1)
            for index, own in enumerate(work.lengths())
        ])

    def packed(self, tensor):
        """[batch, heads, length, dim] as [tokens, heads, dim]."""
        return self.batch.packed(tensor.transpose(1, 2))

    def check(self, tokens):
        return reference.check(tokens, self.expected, LIMIT)


def our_attention(settings, result, work, heads, label, kind):
    """Attention alone on padded tensors, of which a kernel may find padding at run time."""
    def make():
        layer = work.row().layer
        artifact = ours.compile_artifact(
            settings, f'attention {work.size()} {kind}',
            ['attention', *figure_run.dims(dict(b=work.batch, h=layer.heads, j=work.length,
                                                p=layer.hidden // layer.heads)), '--mask',
             'padding', '--attention', kind])
        given = dict(zip('qkv', heads.tensors),
                     lengths=torch.tensor(work.lengths(), device='cuda', dtype=torch.int32))
        inputs = [given[name] for name in artifact.input_names()]
        outputs = artifact.poisoned_outputs()
        artifact.launch(inputs, outputs)
        torch.cuda.synchronize()
        result.errors[label] = heads.check(
            heads.packed(outputs[0].reshape(heads.tensors[0].shape)))
        return [timing.GraphContender(label, lambda _: artifact.launch(inputs, outputs))]

    return ours.guarded(result, make, label)


def rival_attention(settings, result, heads):
    """Eager and SDPA over padded sequences with a mask of keys, flash attention over packed
    ones."""
    if not settings.rivals:
        return []
    mask = heads.batch.mask()
    seen = heads.batch.valid[:, None, None, :]
    tokens = [heads.packed(tensor).contiguous() for tensor in heads.tensors]
    offsets = heads.batch.offsets.int()

    def flash():
        attention = varlen_modules.flash_varlen()
        return lambda: attention(*tokens, offsets, heads.batch.longest)

    calls = {
        EAGER: (lambda: lambda: attention_of(*heads.tensors, seen), heads.packed),
        SDPA: (lambda: lambda: F.scaled_dot_product_attention(*heads.tensors, attn_mask=mask),
               heads.packed), FLASH: (flash, lambda out: out)
    }
    contenders = []
    for name, (make, tokens_of) in calls.items():

        def checked(name=name, make=make, tokens_of=tokens_of):
            call = make()
            result.errors[name] = heads.check(tokens_of(call()))
            return [timing.GraphContender(name, lambda _: call())]

        contenders += ours.guarded(result, checked, name)
    return contenders


def attention(settings, work, kinds):
    """`kinds`: of --attention, by the name of the entry."""
    result = Result(Workload(f'attention of {work.name()}'))
    with torch.no_grad():
        heads, contenders = Heads(work), []
        for label, kind in kinds.items() if settings.ours else ():
            contenders += our_attention(settings, result, work, heads, label, kind)
        contenders += rival_attention(settings, result, heads)
        timing.measure(result, contenders, settings.rounds)
    del heads, contenders
    torch.cuda.empty_cache()
    return figure_run.entries_of(result)


def model(settings, work):
    """Padded, packed and all rivals of group `varlen`."""
    result = varlen.measured(settings, work.row())
    torch.cuda.empty_cache()
    return figure_run.entries_of(result)
