"""Group `profile-choice`: layers by the plan that is chosen with the profile and by the one that is
chosen without, in the same rounds."""
import dataclasses

import torch

from . import builds, encoder, ours, pairs_table, profile_choice_rows, timing, transfer
from .report import Result

WITH, WITHOUT = 'weft with profile', 'weft without'
MOST = 1.03  # of the time with the profile over that without


def measured(settings, workload, contenders_of):
    """Both plans, compared with fp64 first."""
    result = Result(workload)
    contenders = ours.guarded(result, lambda: contenders_of(settings, result))
    timing.measure(result, contenders, settings.rounds)
    result.record = {'pair': pairs_table.record(result, WITH, WITHOUT, 'with / without profile',
                                                MOST)}
    return result


def works():
    """(workload, what makes our contenders of it)."""
    for draw in profile_choice_rows.rows():
        yield draw.workload(), lambda settings, result, draw=draw: transfer.our_contenders(
            settings, draw, result, *transfer.operands(draw))
    for layer in profile_choice_rows.PROFILED:
        yield layer[0].workload(*layer[1:]), lambda settings, result, layer=layer: (
            encoder.our_contenders(result, settings, layer[0], *encoder.operands(*layer),
                                   *layer[1:]))


def run(settings):
    plans = [builds.Build(WITH, settings.weft, settings.library),
             builds.Build(WITHOUT, settings.weft, settings.library, ('--profile=none', ))]
    folder = settings.folder / 'profile-choice'
    folder.mkdir(parents=True, exist_ok=True)
    own = dataclasses.replace(settings, folder=folder, builds=plans)
    for workload, contenders_of in works():
        if settings.wants(workload.name):
            yield measured(own, workload, contenders_of)
            torch.cuda.empty_cache()
