"""What bench/run recomposition measures on a GPU, as entries of points: attention alone in every
kind, dense and under a table of tiles, and a layer in every form. Ours and the rivals run in the
same rounds. Right first: every result is compared with fp64 as groups `attention`, `sparse` and
`encoder` do."""
import dataclasses
import gc

import torch

from . import (attention_figures_gpu, encoder, figure_run, layers, machine, ours, recomposition,
               reference, rivals, sparse, sparse_rows, timing)
from .recomposition_points import KINDS
from .report import OURS, Result


def where():
    return machine.describe()


def own_folder(settings, name, flags=()):
    """Artifacts of other extents have the same names."""
    folder = settings.folder / ours.folder_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    return dataclasses.replace(settings, folder=folder, weft_flags=[*settings.weft_flags, *flags])


def memory():
    """Bytes of the GPU."""
    return torch.cuda.mem_get_info()[1]


def core(settings, work, kinds, has_rivals):
    """Attention alone in some kinds, beside the rivals or without them."""
    gc.collect()  # what an error's traceback held
    torch.cuda.empty_cache()
    if work.has_table:
        return sparse_core(settings, work, kinds, has_rivals)
    masks = ['--mask', work.mask] if work.mask else []
    plans = {kind: ([*KINDS[kind], *masks], None) for kind in kinds} if settings.ours else {}
    _, result = attention_figures_gpu.measured_at(own_folder(settings, work.series()),
                                                  work.extents(), work.length, plans,
                                                  bool(work.mask), has_rivals)
    return figure_run.entries_of(result)


def sparse_core(settings, work, kinds, has_rivals):
    row = sparse_rows.Row(work.mask, work.batch, work.length) if work.mask else sparse_rows.Row(
        sparse_rows.RANDOM, work.batch, work.length, work.density)
    torch.manual_seed(0)
    result = Result(row.workload())
    table = torch.tensor(row.table(), device='cuda')
    tensors = [torch.randn(row.shape(), device='cuda', dtype=torch.float16) for _ in range(3)]
    with torch.no_grad():
        check, contenders = sparse.ForwardChecker(row, table, tensors), []
        for kind in kinds if settings.ours else ():
            own, one = own_folder(settings, f'{work.name()} {kind}', KINDS[kind]), Result(
                row.workload())
            found = ours.guarded(
                one, lambda own=own, one=one: sparse.our_contenders(own, one, row, table, tensors,
                                                                    None, check))
            for contender in found:
                contender.name = kind
            contenders += found
            result.errors[kind] = one.errors.get(OURS)
            if OURS in one.failures:
                result.failures[kind] = one.failures[OURS]
        for rivals_of in (sparse.flex_contenders,
                          sparse.dense_contenders) if has_rivals else ():
            contenders += rivals_of(settings, result, row, table, tensors, None, check)
        timing.measure(result, contenders, settings.rounds)
    del check, contenders, tensors
    torch.cuda.empty_cache()
    return figure_run.entries_of(result)


def layer(settings, work):
    """BERT-large's layer in every form, by the plans that are predicted."""
    own = layers.BERT_LARGE
    result = Result(own.workload(work.batch, work.length))
    torch.manual_seed(0)
    module = rivals.module_of(own).to('cuda', torch.float16).eval()
    x = torch.randn(work.batch, work.length, own.hidden, device='cuda', dtype=torch.float16)
    tensors = module.tensors()
    expected = reference.result_of(own, {**tensors, 'x': x}, reference.Dropout(0.0))
    contenders = []

    def contender(form):
        arguments = recomposition.flags(settings.weft, work.model, work.device, form, work.length,
                                        work.batch)
        artifact = ours.compile_artifact(settings, f'{work.name()} {form}',
                                         [*arguments, '--no-library'])
        artifact.set_parameters(tensors)
        out = artifact.poisoned_outputs()
        artifact.launch([x], out)
        torch.cuda.synchronize()
        result.errors[form] = reference.check(out[0], expected, encoder.LIMIT)
        return [timing.GraphContender(form, lambda _: artifact.launch([x], out))]

    with torch.no_grad():
        for form in recomposition.FORMS if settings.ours else ():
            contenders += ours.guarded(result, lambda form=form: contender(form), form)
        contenders += ours.guarded(result,
                                   lambda: encoder.torch_contenders(settings, own, module, x),
                                   'torch')
        timing.measure(result, contenders, settings.rounds)
    del contenders, module, x, expected
    torch.cuda.empty_cache()
    return figure_run.entries_of(result)
