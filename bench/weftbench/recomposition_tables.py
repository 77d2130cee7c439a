"""Tables of bench/run recomposition: what weft predicts or a GPU measured beside the figures of the
seed. `found`: of a figure (work, entries) in order. The parts of a figure are tables (lists of
rows) and sentences. No packages: tested without a GPU."""
from . import figure_run
from .figure_run import MEASURED, PREDICTED, is_measured, is_too_large, seconds_of
from .recomposition import FORMS, MODELS, THEIRS
from .recomposition_points import (CLASSES, DEVICE, DEVICES, FIG9_BATCHES, FIG9_LENGTHS, KINDS,
                                   HERE, LENGTH, PIECES, cores, of_form, points, speedup,
                                   speedup_source)
from .report import parts_text

TITLES = {
    'fig2': 'shares of a layer', 'fig5': 'pieces of a decomposed softmax',
    'fig6': 'sweeps of the scores', 'fig8': 'time and traffic of a layer by form',
    'fig9': 'speedup of recomposed layers over length and batch',
    'devices': "the model's predictions for the seed's GPUs",
    'sparse': "the seed's sparse baseline, modelled",
    'crossover': 'attention of every kind over length, head dim, density, batch and mask'
}
# Section 2.3 and Fig. 5 and 9 of the seed, beside recomposition.THEIRS.
SEED_ATTENTION_SHARE = {'bert-large': 68, 'bigbird-large': 57}  # softmax and MatMul, %
SEED_MOST_REDUCTION = 12.5  # % of the time of a decomposed softmax that IR takes
# Issue 27: what was measured of recomposed attention against unfused, from so many positions on.
MUST, MUST_FROM = 1.0, 2048
# Which points are of a kind, and the seed's layers that have such attention.
ASKED = {
    'dense': (lambda core: not core.has_table and not core.mask, ('bert-large',)),
    'causal': (lambda core: core.mask == 'causal', ('gpt-neo-1.3b',)),
    'sparse': (lambda core: core.has_table, ('bigbird-large', 'longformer-large'))
}
MODELLED = """modelled, no kernel of weft stores scores so: what touches scores takes the share of
scores that exist of its predicted time of dense ones; the softmax over rows takes all of it, which
is the most that it can. Its share of the layer, and speedups over it"""
SEED_TREND = 'seed: rises with the length; with the batch of sparse attention'


def percent(share):
    return '-' if share is None else f'{100 * share:.0f}%'


def times(ratio):
    return '-' if ratio is None else f'{ratio:.2f}x'


def theirs(model, device, form):
    return THEIRS.get((model, device), {}).get(form)


def fig2_parts(found):
    lines = [['layer', 'ms', *CLASSES, 'seed: softmax', 'seed: attention']]
    for layer, entries in found:
        whole = of_form(entries, 'whole')
        if not whole:
            continue
        seed = THEIRS[layer.model, DEVICE]
        attention = SEED_ATTENTION_SHARE.get(layer.model)
        lines.append([layer.model, f'{1e3 * whole["seconds"]:.3f}',
                      *(percent(whole['classes'][name] / whole['seconds']) for name in CLASSES),
                      f'{seed["share"]}%', f'{attention}%' if attention else '-'])
    return [lines]


def fig5_parts(found):
    lines = [['layer', *(f'{piece} {what}' for what in ('time', 'bytes') for piece in PIECES)]]
    for layer, entries in found:
        apart = of_form(entries, 'SD')
        if not apart:
            continue
        cells = []
        for index in (0, 1):
            total = sum(own[index] for own in apart['pieces'].values())
            cells += [f'{100 * apart["pieces"][piece][index] / total:.1f}%' for piece in PIECES]
        lines.append([layer.model, *cells])
    return [lines, f'seed: IR takes less than {SEED_MOST_REDUCTION}% of the time']


def fig6_parts(found):
    lines = [['layer', *(f'sweeps, {form}' for form in FORMS), "m', d', r' over the softmax"]]
    for layer, entries in found:
        forms = [of_form(entries, form) for form in FORMS]
        whole, recomposed = forms[0], forms[-1]
        share = recomposed['statistics'] / whole['softmaxTraffic'] if whole and recomposed else None
        lines.append([layer.model, *(str(one['sweeps']) if one else '-' for one in forms),
                      '-' if share is None else f'{100 * share:.1f}%'])
    return [lines, "seed: 4 sweeps become 2; m', d', r' less than 9.3%"]


def fig8_parts(found):
    lines = [['layer', 'device', *(f'{form} ms' for form in FORMS), 'SD', 'seed', 'SDF', 'seed',
              'traffic: SD', 'SDF', 'source']]
    for layer, entries in found:
        forms = {form: of_form(entries, form) for form in FORMS}
        seconds = [speedup_source(entries), *(seconds_of(entries, form, speedup_source(entries))
                                              for form in FORMS)]
        traffic = [times(forms['whole']['traffic'] / forms[form]['traffic'])
                   if forms['whole'] and forms[form] else '-' for form in ('SD', 'SDF')]
        ratios = [cell for form in ('SD', 'SDF')
                  for cell in (times(speedup(entries, form)),
                               times(theirs(layer.model, layer.device, form)))]
        lines.append([layer.model, layer.device,
                      *(f'{1e3 * one:.3f}' if one else '-' for one in seconds[1:]), *ratios,
                      *traffic, seconds[0]])
    for _, entries in found:
        for name in rival_names([(None, entries)]):
            lines.append([name, 'this GPU', f'{1e3 * seconds_of(entries, name):.3f}',
                          *['-'] * 8, MEASURED])
    return [lines, 'speedups over the whole softmax; traffic: of the whole layer, whole over form; '
            'seed: softmax traffic 1.58x to 2.51x less']


def fig9_series(found):
    """Model -> (speedup over length at B=1, speedup over batch at L=4096)."""
    series = {}
    for layer, entries in found:
        ratio = speedup(entries, 'SDF')
        if not ratio:
            continue
        over_length, over_batch = series.setdefault(layer.model, ([], []))
        if layer.batch == 1:
            over_length.append((layer.length, ratio))
        if layer.length == LENGTH:
            over_batch.append((layer.batch, ratio))
    return {model: [sorted(one) for one in both] for model, both in series.items()}


def fig9_parts(found):
    lines = [['SDF over whole', *(f'L={one}' for one in FIG9_LENGTHS),
              *(f'B={one}' for one in FIG9_BATCHES)]]
    for model, both in fig9_series(found).items():
        over_length, over_batch = map(dict, both)
        lines.append([model, *(times(over_length.get(one)) for one in FIG9_LENGTHS),
                      *(times(over_batch.get(one)) for one in FIG9_BATCHES)])
    return [lines, f'over length at B=1, over batch at L={LENGTH}; {SEED_TREND}']


def ranked(found):
    """(layer, pair of forms, our ratio, the seed's) of every pair of which the seed gives both."""
    for layer, entries in found:
        own = THEIRS.get((layer.model, layer.device), {})
        seed = {'whole': 1.0, **{form: own[form] for form in ('SD', 'SDF') if form in own}}
        forms = list(seed)
        for index, first in enumerate(forms):
            for second in forms[index + 1:]:
                times_of = [seconds_of(entries, form) for form in (first, second)]
                if all(times_of):
                    yield (layer, (first, second), times_of[0] / times_of[1],
                           seed[second] / seed[first])


def is_same_rank(ours, seed):
    return (ours > 1) == (seed > 1)


def devices_parts(found):
    lines = [['layer', 'device', 'whole ms', 'pair', 'ours', 'seed', 'rank']]
    pairs = list(ranked(found))
    for layer, (first, second), ours, seed in pairs:
        whole = next(seconds_of(entries, 'whole') for one, entries in found if one == layer)
        lines.append([layer.model, layer.device, f'{1e3 * whole:.3f}', f'{second} over {first}',
                      times(ours), times(seed), 'same' if is_same_rank(ours, seed) else 'opposite'])
    said = [lines]
    for device in DEVICES:
        own = [is_same_rank(ours, seed) for layer, _, ours, seed in pairs if layer.device == device]
        if own:
            said.append(f'{device}: {sum(own)} of {len(own)} pairs rank as in the seed')
    return said + ['a t4 has no kernels of weft: SD and SDF are both by the library, which fuses '
                   'neither LS nor GS']


def sparse_parts(found):
    lines = [['layer', 'device', 'scores', 'whole ms', 'row softmax', 'seed', 'SD', 'seed', 'SDF',
              'seed']]
    for layer, entries in found:
        whole = of_form(entries, 'whole')
        if not whole:
            continue
        seed = THEIRS[layer.model, layer.device].get('share')
        ratios = [cell for form in ('SD', 'SDF')
                  for cell in (times(speedup(entries, form)),
                               times(theirs(layer.model, layer.device, form)))]
        lines.append([layer.model, layer.device, f'{100 * whole["share"]:.1f}%',
                      f'{1e3 * whole["seconds"]:.3f}',
                      percent(whole['rowSoftmax'] / whole['seconds']),
                      f'{seed}%' if seed else '-', *ratios])
    return [lines, MODELLED]


def series_of(found):
    series = {}
    for core, entries in found:
        series.setdefault(core.series(), []).append((core, entries))
    return series


def compared_source(entries):
    """Measured, where all kinds that have a prediction were measured; kinds are never compared
    across sources."""
    names = [kind for kind in KINDS if seconds_of(entries, kind)]
    return MEASURED if names and all(seconds_of(entries, kind, MEASURED) for kind in names) \
        else PREDICTED


def fastest(entries):
    source = compared_source(entries)
    known = {kind: seconds for kind in KINDS if (seconds := seconds_of(entries, kind, source))}
    return min(known, key=known.get) if known else None


def crossover(own, kind, other):
    """(least, greatest) length of the last run of lengths at which `kind` is not slower than
    `other`; the greatest is None where the run ends with the lengths. None without such a run."""
    lengths, run = [], []
    for core, entries in sorted(own, key=lambda one: one[0].length):
        source = compared_source(entries)
        both = [seconds_of(entries, name, source) for name in (kind, other)]
        if not all(both):
            continue
        lengths.append(core.length)
        if both[0] <= both[1]:
            run = run + [core.length] if run and run[-1] == lengths[-2] else [core.length]
    if not run:
        return None
    return run[0], None if run[-1] == lengths[-1] else run[-1]


def crossover_cell(found):
    if not found:
        return '-'
    first, last = found
    return str(first) if last is None else f'{first} to {last}'


def crossover_parts(found):
    lines = [['attention, 16 heads', *(f'{kind} us' for kind in KINDS), 'fastest', 'source']]
    rivals = rival_names(found)
    lines[0][5:5] = [f'{name} us' for name in rivals]
    for core, entries in found:
        source = compared_source(entries)
        cells = [seconds_of(entries, kind, source) for kind in KINDS] + \
            [seconds_of(entries, name, MEASURED) for name in rivals]
        lines.append([core.name().removeprefix('attention '),
                      *('-' if one is None else f'{1e6 * one:.1f}' for one in cells),
                      fastest(entries) or '-', source])
    kinds = list(KINDS)
    pairs = [(kind, other) for index, kind in enumerate(kinds) for other in kinds[:index]]
    said = [lines, '', 'from which length on (to which) the first is not slower than the '
            'second, of the lengths above; -: at none:']
    heads = [['', *(f'{kind} / {other}' for kind, other in pairs)]]
    for name, own in series_of(found).items():
        heads.append([name, *(crossover_cell(crossover(own, *pair)) for pair in pairs)])
    return [*said, heads, '', *ratio_parts(found)]


def recomposed_ratio(entries, source):
    """Time of unfused over that of recomposed attention; None where one has no figure."""
    unfused, recomposed = (seconds_of(entries, kind, source) for kind in ('unfused', 'recomposed'))
    return unfused / recomposed if unfused and recomposed else None


def ratio_cell(entries):
    """Measured, and what is predicted in brackets."""
    measured, predicted = (recomposed_ratio(entries, one) for one in (MEASURED, PREDICTED))
    if measured is None:
        return '-' if predicted is None else f'({times(predicted)})'
    return times(measured) + ('' if predicted is None else f' ({times(predicted)})')


def ratio_parts(found):
    """Recomposed against unfused attention, at the lengths of which something is asked."""
    known = {(core.series(), core.length): entries for core, entries in found
             if core.length >= MUST_FROM}
    lengths = sorted({length for _, length in known})
    if not lengths:
        return []
    lines = [['recomposed over unfused', *(f'L={length}' for length in lengths)]]
    for series in dict.fromkeys(series for series, _ in known):
        lines.append([series, *(ratio_cell(known.get((series, length))) for length in lengths)])
    return [lines, 'in brackets: predicted; seed: layers, L=4096, A100: '
            + ', '.join(f'{model} {times(theirs(model, DEVICE, "SDF"))}' for model in MODELS)]


def rival_names(found):
    return list(dict.fromkeys(one['name'] for _, entries in found for one in entries
                              if one['source'] == MEASURED
                              and one['name'] not in (*KINDS, *FORMS)))


PARTS = {
    'fig2': fig2_parts, 'fig5': fig5_parts, 'fig6': fig6_parts, 'fig8': fig8_parts,
    'fig9': fig9_parts, 'devices': devices_parts, 'sparse': sparse_parts,
    'crossover': crossover_parts
}


def where_from(figure):
    where = '' if figure in ('crossover', 'fig8') else ': predicted' + (
        '' if figure in ('devices', 'sparse') else f' for the {DEVICE}')
    return f'{TITLES[figure]}{where}'


def text_of(figure, found):
    of_seed = ' of seed 000' if figure.startswith('fig') else ''
    return parts_text([f'{figure}{of_seed}, {where_from(figure)}', *PARTS[figure](found)])


def figures_of(lines):
    """(figure, found) of the lines of --json of all runs."""
    return [(figure, [(point.work, entries) for point, entries in own])
            for figure, own in figure_run.points_of(lines, points())]


def page_parts(lines):
    """(title, parts) of every figure that the lines of --json have points of, for RESULTS.md."""
    return [(f'{figure}: {where_from(figure)}', PARTS[figure](found))
            for figure, found in figures_of(lines)]


def sentences(_):
    return ['seed: what the paper measured, on an A100 where no other GPU is named.']


def least_ratio(ratios):
    """None where one of them has no figure."""
    return None if None in ratios else min(ratios)


def asked(lines):
    """(what, figure, least) of what was measured: recomposed attention, and a layer of it, is never
    slower than unfused from MUST_FROM positions on. A point that lacks a figure of one of both
    leaves none behind, unless the memory does not hold it."""
    found, figures = [], dict(figures_of(lines))
    for kind, (belongs, models) in ASKED.items():
        is_asked = lambda core, belongs=belongs: core.length >= MUST_FROM and belongs(core)
        own = [recomposed_ratio(entries, MEASURED)
               for core, entries in figures.get('crossover', [])
               if is_asked(core) and is_measured(entries)
               and not any(is_too_large(entries, kind) for kind in ('unfused', 'recomposed'))]
        if own:
            seed = ', '.join(times(theirs(model, DEVICE, 'SDF')) for model in models)
            found.append((f'recomposed over unfused attention, {kind}, L >= {MUST_FROM}, worst of '
                          f'{len(own)} of {sum(map(is_asked, cores()))} points (layers of the '
                          f'paper: {seed})', least_ratio(own), MUST))
    for layer, entries in figures.get('fig8', []):
        if layer.device == HERE and is_measured(entries):
            whole, own = (seconds_of(entries, form, MEASURED) for form in ('whole', 'SDF'))
            found.append((f'recomposed over unfused, layer of {layer.model} B={layer.batch} '
                          f'L={layer.length} (of the paper: '
                          f'{times(theirs(layer.model, DEVICE, "SDF"))})',
                          whole / own if whole and own else None, MUST))
    return found
