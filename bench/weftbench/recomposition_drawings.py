"""Drawings of bench/run recomposition, as panels of figure_svg. No packages: tested without a
GPU."""
from . import figure_svg
from .figure_run import MEASURED, PREDICTED, seconds_of
from .recomposition import FORMS, THEIRS
from .recomposition_points import (CLASSES, DEVICE, DEVICES, KINDS, LENGTH, of_form, speedup,
                                   speedup_source)
from .recomposition_tables import TITLES, fig9_series, rival_names, series_of, theirs


def shares_panel(found):
    bars = []
    for layer, entries in found:
        if whole := of_form(entries, 'whole'):
            bars.append(figure_svg.Bar(layer.model, [(name, 100 * whole['classes'][name] /
                                                      whole['seconds']) for name in CLASSES], True))
            bars.append(figure_svg.Bar('seed', [('softmax', THEIRS[layer.model, DEVICE]['share'])]))
    return [figure_svg.BarPanel('shares of a layer', '% of the time', bars)]


def pieces_panels(found):
    panels = []
    for index, what in enumerate(('time', 'bytes')):
        bars = []
        for layer, entries in found:
            if apart := of_form(entries, 'SD'):
                total = sum(own[index] for own in apart['pieces'].values())
                bars.append(figure_svg.Bar(layer.model, [(piece, 100 * own[index] / total)
                                                         for piece, own in
                                                         apart['pieces'].items()], True))
        panels.append(figure_svg.BarPanel(f'{what} of LS, IR and GS', '%', bars))
    return panels


def label(layer, form):
    device = '' if layer.device == DEVICE else f' {layer.device}'
    return f'{layer.model.split("-")[0]}{device} {form}'


def form_panel(found, title, y_label, value):
    """A bar for each form of each layer."""
    bars = [figure_svg.Bar(label(layer, form), [(form, value(one))], True)
            for layer, entries in found for form in FORMS if (one := of_form(entries, form))]
    return figure_svg.BarPanel(title, y_label, bars)


def fig8_panels(found):
    ratios = []
    for layer, entries in found:
        for form in FORMS:
            ratio, seed = speedup(entries, form), theirs(layer.model, layer.device, form)
            if ratio:
                ratios.append(figure_svg.Bar(label(layer, form), [(form, 1 / ratio)],
                                             speedup_source(entries) == PREDICTED))
            if seed:
                ratios.append(figure_svg.Bar('seed', [('seed', 1 / seed)]))
    return [figure_svg.BarPanel('time over that of the whole softmax', 'ratio', ratios),
            form_panel(found, 'traffic of a layer', 'GB', lambda one: one['traffic'] / 1e9)]


def fig9_panels(found):
    series = fig9_series(found)
    return [figure_svg.Panel(title, x_label, 'SDF over whole', [
        figure_svg.Line(model, both[index], True) for model, both in series.items() if both[index]
    ]) for index, (title, x_label) in enumerate((('B=1', 'length'), (f'L={LENGTH}', 'batch')))]


def devices_panels(found):
    panels = []
    for device in DEVICES:
        if not any(layer.device == device for layer, _ in found):
            continue
        bars = []
        for layer, entries in found:
            if layer.device != device:
                continue
            for form in ('SD', 'SDF'):
                ours, seed = speedup(entries, form), theirs(layer.model, device, form)
                name = f'{layer.model.split("-")[0]} {form}'
                if ours:
                    bars.append(figure_svg.Bar(name, [('ours', ours)], True))
                if seed:
                    bars.append(figure_svg.Bar('seed', [('seed', seed)]))
        panels.append(figure_svg.BarPanel(device, 'speedup over the whole softmax', bars))
    return panels


def crossover_panels(found):
    panels = []
    for name, own in series_of(found).items():
        lines = []
        for kind in (*KINDS, *rival_names(found)):
            for source in (MEASURED, PREDICTED):
                drawn = [(core.length, 1e6 * seconds) for core, entries in own
                         if (seconds := seconds_of(entries, kind, source))]
                if drawn:
                    lines.append(figure_svg.Line(kind, drawn, source == PREDICTED))
        panels.append(figure_svg.Panel(name, 'length', 'us', lines))
    return panels


PANELS = {
    'fig2': shares_panel, 'fig5': pieces_panels,
    'fig6': lambda found: [form_panel(found, 'sweeps of the scores', 'reads and writes',
                                      lambda one: one['sweeps'])],
    'fig8': fig8_panels, 'fig9': fig9_panels, 'devices': devices_panels,
    'sparse': devices_panels, 'crossover': crossover_panels
}


def drawn(figure, found):
    title = f'{figure} of seed 000' if figure.startswith('fig') else TITLES[figure]
    return figure_svg.svg(title, PANELS[figure](found), 4 if figure == 'crossover' else 3)
