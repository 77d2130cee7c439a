"""Figures 2, 5, 6, 8 and 9 of seed 000 (Recomposing Softmax Layers), what the model predicts for
its three GPUs, and where the kinds of attention cross: bench/run recomposition.

Without a GPU every figure is a prediction of weft, and is marked so. Those of the seed's layers are
for its A100, RTX 3090 and T4 whatever GPU there is. With one (and PyTorch) two are also timed on
it, in the same rounds as rivals and after their results were checked: the crossover, and BERT-large
in Fig. 8."""
from . import figure_run
from .recomposition_drawings import drawn
from .recomposition_points import (HERE, MODEL_FORMS, Core, core_entries, layer_entries,
                                   packed_entries, points)
from .recomposition_tables import text_of

GROUP = 'recomposition'


def entries_of(settings, kept, point, measured):
    work = point.work
    if isinstance(work, Core):
        return kept.get(work.name(), lambda: core_entries(settings, work, measured))
    if point.figure == 'sparse':
        return kept.get(f'{work.name()}, packed tiles', lambda: packed_entries(settings, work))
    if point.figure == 'fig9':  # without SD, which costs a third of the time
        return kept.get(f'{work.name()}, {" and ".join(MODEL_FORMS)}',
                        lambda: layer_entries(settings, work, MODEL_FORMS))
    is_timed = measured and work.device == HERE
    return kept.get(work.name(), lambda: figure_run.measured_beside(
        layer_entries(settings, work), 'layer',
        lambda: measured.layer(settings, work) if is_timed else []))


def run(settings, command):
    """Prints the tables, writes FIG.svg into the folder of figures; yields the lines of --json, a
    point's when it is done, with where and by which command before them."""
    measured, all_points = None, points()
    chosen = figure_run.chosen_figures(
        settings, {name: [point.name() for point in own] for name, own in all_points.items()})
    if figure_run.has_gpu():
        from . import recomposition_gpu as measured
        where = measured.where()
    else:
        where = ('no GPU: every figure is predicted by weft, the crossover for the H200 unless '
                 '--weft-flag says otherwise')
    print(where, flush=True)
    yield figure_run.head_line(where, command)
    kept = figure_run.Points(settings, GROUP, where if measured else None)
    for figure in chosen:
        found = []
        for point in all_points[figure]:
            if not figure_run.is_chosen(settings, point.name()):
                continue
            entries = entries_of(settings, kept, point, measured)
            if entries is not None:
                found.append((point.work, entries))
                yield figure_run.point_line(GROUP, figure, point, entries)
        if found:
            path = figure_run.write(settings, f'{GROUP}-{figure}', drawn(figure, found))
            print(f'{text_of(figure, found)}\ndrawn: {path}', flush=True)
            for line in figure_run.failures_text([(work.name(), own) for work, own in found]):
                print(line, flush=True)
            print(flush=True)
    if kept.left:
        print(kept.left_text(), flush=True)
