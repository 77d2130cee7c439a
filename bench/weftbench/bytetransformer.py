"""Figures 11 to 16 of seed 001 (ByteTransformer) by weft's own flags: bench/run bytetransformer.

Fig. 14 is the seed's study of its steps: each adds flags to the step before. The attention of those
layers is that of Figs. 11 to 13. Without a GPU every figure is a prediction of weft, and is marked
so; with one (and PyTorch) ours and the rivals are timed in the same rounds, results checked
first."""
import json
import pathlib

from . import bytetransformer_rows as rows, figure_run
from .bytetransformer_rows import ATTENTION, CORES, PACKED, PADDED, STEPS
from .bytetransformer_tables import Figure, drawn, text_of

GROUP = 'bytetransformer'
DEVICE = 'h200'


def lengths_file(settings, work):
    path = pathlib.Path(settings.folder) / f'lengths B={work.batch} L={work.length} {work.mean:g}'
    path.write_text(' '.join(map(str, work.lengths())) + '\n')
    return path


def step_arguments(settings, work, step):
    """Of weft compile. What is packed is priced at the lengths of the work."""
    own = ['--lengths', str(lengths_file(settings, work))] if step.packs else []
    return [*work.model_arguments(), *step.flags, *own]


def model_arguments(settings, work):
    """As group `varlen` has them, by contender."""
    lengths = str(lengths_file(settings, work))
    return {
        PADDED: [*work.model_arguments(), '--mask', 'padding'],
        PACKED: [*work.model_arguments(), '--ragged', 'j', '--lengths', lengths]
    }


def parameter_tensors(plan):
    """Indices of parameters, and of what lies in their memory, as stacked weights do."""
    tensors = plan['tensors']
    buffers = {one['buffer'] for one in tensors if one['role'] == 'parameter'}
    return {index for index, one in enumerate(tensors) if one['buffer'] in buffers}


def attention_seconds(plan):
    """Of the kernels between the projections: those that are connected with a softmax, or are a
    fused attention, by tensors of floats, kernels that read parameters left out."""
    tensors, parameters = plan['tensors'], parameter_tensors(plan)
    kernels = [one for one in plan['kernels'] if not parameters.intersection(one['inputs'])]
    found = {index for index, one in enumerate(kernels)
             if any('softmax' in op for op in one['ops'])}
    held = lambda one: {index for index in one['inputs'] + one['outputs']
                        if tensors[index]['role'] == 'temporary'
                        and tensors[index]['dtype'] not in ('i32', 'i1')}
    while True:
        reached = set().union(*(held(kernels[index]) for index in found))
        more = {index for index, one in enumerate(kernels) if held(one) & reached}
        if more <= found:
            return sum(kernels[index]['seconds'] for index in found)
        found |= more


def predicted_step(settings, name, arguments):
    """The entries of a plan and of its attention."""
    folder = pathlib.Path(settings.folder) / 'predicted'
    try:
        figure_run.weft(settings, 'compile', *arguments,
                        *figure_run.device_flags(settings, DEVICE), *settings.weft_flags,
                        '--stop-after', 'emit', '--overwrite', '-o', folder)
    except figure_run.NoPlan as error:
        return [figure_run.failure(name, str(error))]
    figures = json.loads((folder / 'report.json').read_text())['plan']
    plan = json.loads((folder / 'plan.json').read_text())
    return [figure_run.entry(name, figures['graphSeconds'], workspace=figures['workspaceBytes']),
            figure_run.entry(ATTENTION + name, attention_seconds(plan))]


def predicted_model(settings, name, arguments):
    try:
        said = figure_run.weft(settings, 'select', *arguments,
                               *figure_run.device_flags(settings, DEVICE), *settings.weft_flags,
                               '--json')
    except figure_run.NoPlan as error:
        return [figure_run.failure(name, str(error))]
    figures = json.loads(said)['plan']
    return [figure_run.entry(name, figures['graphSeconds'], workspace=figures['workspaceBytes'])]


def steps_of(settings, work, measured):
    """Entries of a layer by every step."""
    arguments = {step.name: step_arguments(settings, work, step) for step in STEPS}
    found = [entry for name, own in arguments.items()
             for entry in predicted_step(settings, name, own)]
    if measured:
        found = figure_run.measured_beside(
            found, 'steps', lambda: measured.steps(settings, work, arguments))
        found = figure_run.measured_beside(
            found, 'attention', lambda: measured.attention(settings, work, CORES))
    return found


def model_of(settings, work, measured):
    found = [entry for name, own in model_arguments(settings, work).items()
             for entry in predicted_model(settings, name, own)]
    has_rivals = next((model.layer for model in (rows.BERT, *rows.MODELS)
                       if model.preset == work.preset), None)
    if measured and has_rivals:
        found = figure_run.measured_beside(found, 'model', lambda: measured.model(settings, work))
    return found


def points_of(settings, kept, name, measured):
    """(point, entries) of a figure, as they are done, until the budget is spent."""
    for point in rows.points()[name]:
        if not figure_run.is_chosen(settings, point.name()):
            continue
        make = steps_of if point.is_of_steps() else model_of
        entries = kept.get(point.work.name(), lambda: make(settings, point.work, measured))
        if entries is not None:
            yield point, entries


def run(settings, command):
    """Prints the tables, writes FIG.svg into the folder of figures; yields the lines of --json, a
    point's when it is done, with where and by which command before them."""
    measured = None
    chosen = figure_run.chosen_figures(
        settings, {name: [point.name() for point in own] for name, own in rows.points().items()})
    if figure_run.has_gpu():
        from . import bytetransformer_gpu as measured
        where = measured.where()
    else:
        where = ('no GPU: every figure is predicted by weft, for the H200 unless --weft-flag says '
                 'otherwise')
    print(where, flush=True)
    yield figure_run.head_line(where, command)
    kept = figure_run.Points(settings, GROUP, where if measured else None)
    for name in chosen:
        figure = Figure(name, [])
        for point, entries in points_of(settings, kept, name, measured):
            figure.points.append((point, entries))
            yield {**figure_run.point_line(GROUP, name, point, entries),
                   'lengths': point.work.lengths()}
        if figure.points:
            path = figure_run.write(settings, f'{GROUP}-{name}', drawn(figure))
            print(f'{text_of(figure)}\ndrawn: {path}', flush=True)
            for line in figure_run.failures_text([(point.name(), entries)
                                                  for point, entries in figure.points]):
                print(line, flush=True)
            print(flush=True)
    if kept.left:
        print(kept.left_text(), flush=True)
