"""Figures 2 and 3 of seed 002 (FlashAttention): bench/run fig2 (forward), bench/run fig3 (forward,
and forward with backward).

Without a GPU every figure is a prediction of weft for its device, and is marked so. With one (and
PyTorch) ours and the rivals are timed in the same rounds, and what was not timed stays marked.

What is timed together is a point (all kinds of Fig. 2, its tiles, a length of Fig. 3): its line is
written when it is done, and it is kept in the folder of the run (figure_run.Points)."""
import dataclasses
import functools
import json
import math
import pathlib
from dataclasses import dataclass

from . import attention_figures_table, figure_run, figure_svg
from .figure_run import BadRun, dims, has_gpu, weft, write

GROUPS = attention_figures_table.GROUPS
# Of GPT-2 medium, as the seed has it: 16 heads of 64, L = 1024; 16k tokens.
FIG2 = dict(b=16, h=16, j=1024, p=64)
KINDS = ('unfused', 'decomposed', 'recomposed', 'fused')
# B = 1, 16 heads of 64: unfused scores of 64K positions still fit the memory of an H200, once.
FIG3 = dict(b=1, h=16, p=64)
LENGTHS = [2**exponent for exponent in range(7, 17)]
LAYER = 'bert-large'  # of which the workspace over length is shown
LAYER_LENGTHS = [length for length in LENGTHS if length >= 512]
LENGTH_KINDS = ('unfused', 'fused')
BYTES = 2  # of an f16


def flop(extents, length=None):
    """Of both products, forward, without masks; softmax is not counted, as published rates."""
    length = length or extents['j']
    return 4 * extents['b'] * extents['h'] * length**2 * extents['p']


def tensor_bytes(extents, length):
    """Queries; keys, values, results and all their gradients are as large."""
    return BYTES * extents['b'] * extents['h'] * length * extents['p']


def operand_bytes(extents, length, trains=False):
    """Queries, keys, values and results; where they train, their gradients, too."""
    return (8 if trains else 4) * tensor_bytes(extents, length)


@dataclass
class Kind:
    """A row of Fig. 2, left."""
    name: str
    seconds: float
    dram: int
    l2: int
    workspace: int
    source: str  # "predicted", "measured"


def site_of(settings):
    folder = pathlib.Path(settings.folder) / 'fig2'
    weft(settings, 'compile', 'attention', *dims(FIG2), *settings.weft_flags, '--stop-after',
         'emit', '--overwrite', '-o', folder)
    said = json.loads(weft(settings, 'explain', folder, '--attention', '--json'))
    return said['sites'][0]


def kinds_of(site):
    found = []
    for one in site['kinds']:
        if 'figures' not in one:
            continue
        figures = one['figures']
        found.append(
            Kind(one['kind'], figures['graphSeconds'], figures['dramBytes'], figures['l2Bytes'],
                 figures['workspaceBytes'], 'predicted'))
    return found


def tiles_of(site):
    """The fused kernel over its tiles: (queries, keys, seconds, bytes at L2, source)."""
    return [(tile['queries'], tile['keys'], tile['seconds'], tile['l2Bytes'],
             'from the profile' if tile['measured'] else 'predicted')
            for tile in priced_tiles(site)]


def priced_tiles(site):
    """As weft prices them: each with all knobs of its kernel, the best for this tile."""
    fused = next(one for one in site['kinds'] if one['kind'] == 'fused')
    if 'figures' not in fused:
        raise BadRun(f'no fused plan: {fused["rejected"]}')
    return fused['figures']['tiles']


def with_tile(tile):
    """Edits the plan of a fused attention to the kernel that was priced for a tile."""
    def edit(plan):
        family = tile['knobs']['family']
        kernels = [one for one in plan['kernels'] if one['knobs'] and
                   one['knobs']['family'] == family]
        if len(kernels) != 1:
            raise BadRun(f'the plan has {len(kernels)} kernels of family {family}, not one')
        kernels[0]['knobs'] = dict(tile['knobs'])

    return edit


def tile_name(queries, keys):
    return f'{queries} x {keys}'


def best_by_rows(tiles):
    """Of each number of query rows the fastest tile."""
    best = {}
    for tile in tiles:
        if tile[0] not in best or tile[2] < best[tile[0]][2]:
            best[tile[0]] = tile
    return [best[rows] for rows in sorted(best)]


def fig2_text(kinds, tiles, extents=None):
    extents = extents or FIG2
    lines = [
        'Fig. 2: attention forward, '
        + ' '.join(f'{name}={extent}' for name, extent in extents.items()),
        f'{"kind":<12} {"Gflop":>8} {"DRAM MB":>9} {"L2 MB":>9} {"ms":>8}  source'
    ]
    for kind in kinds:
        lines.append(f'{kind.name:<12} {flop(extents) / 1e9:>8.1f} {kind.dram / 1e6:>9.1f} '
                     f'{kind.l2 / 1e6:>9.1f} {1e3 * kind.seconds:>8.4f}  {kind.source}')
    lines += ['', f'{"tile":<12} {"L2 MB":>9} {"ms":>8}  source']
    for rows, keys, seconds, l2_bytes, source in tiles:
        lines.append(f'{tile_name(rows, keys):<12} {l2_bytes / 1e6:>9.1f} {1e3 * seconds:>8.4f}  '
                     f'{source}')
    return '\n'.join(lines)


def fig2_svg(kinds, tiles):
    best = best_by_rows(tiles)
    is_predicted = any(tile[4] == 'predicted' for tile in best)
    rows = [(tile[0], tile) for tile in best]
    numbered = list(enumerate(kinds, 1))
    names = ', '.join(f'{number} {kind.name}' for number, kind in numbered)
    are_predicted = any(kind.source == 'predicted' for kind in kinds)
    return figure_svg.svg('Fig. 2 of seed 002, forward', [
        figure_svg.Panel('bytes and time by kind', names, 'MB, and us', [
            # The traffic of rivals is not known.
            figure_svg.Line('MB at DRAM', [(n, kind.dram / 1e6) for n, kind in numbered
                                           if kind.dram], True),
            figure_svg.Line('MB at L2', [(n, kind.l2 / 1e6) for n, kind in numbered if kind.l2],
                            True),
            figure_svg.Line('us', [(n, 1e6 * kind.seconds) for n, kind in numbered], are_predicted)
        ]),
        figure_svg.Panel('fused, over the rows of a tile', 'query rows of a tile', 'MB, and us', [
            figure_svg.Line('MB at L2', [(n, tile[3] / 1e6) for n, tile in rows], True),
            figure_svg.Line('us', [(n, 1e6 * tile[2]) for n, tile in rows], is_predicted)
        ])
    ])


@dataclass
class Point:
    """A kind at a length, of Fig. 3."""
    kind: str
    length: int
    seconds: float
    workspace: int
    total: int  # bytes: operands and workspace
    source: str
    fits: bool = True  # the device's memory
    trains: bool = False  # forward and backward; else forward


def device_bytes(settings):
    """Of the device that weft chooses for."""
    said = json.loads(weft(settings, 'devices', 'h200', '--json'))
    devices = said.get('devices', [said])
    return devices[0].get('memoryBytes', math.inf)


def flags_of(kind, trains):
    """Of weft: one pass over all scores, whatever the memory."""
    return ['--attention', kind, '--chunks', '1'] + (['--train'] if trains else [])


def predicted(settings, kind, length, memory=math.inf, trains=False):
    plan = json.loads(
        weft(settings, 'select', 'attention', *dims({**FIG3, 'j': length}), *flags_of(kind, trains),
             *settings.weft_flags, '--json'))['plan']
    total = plan['workspaceBytes'] + operand_bytes(FIG3, length, trains)
    return Point(kind, length, plan['graphSeconds'], plan['workspaceBytes'], total, 'predicted',
                 total <= memory, trains)


def layer_workspace(settings, length):
    """Of a whole layer with fused attention."""
    return json.loads(
        weft(settings, 'select', LAYER, '--dim', 'b=1', '--dim', f'j={length}', '--attention',
             'fused', *settings.weft_flags, '--json'))['plan']['workspaceBytes']


def slope(points):
    """Least squares of (length, bytes): bytes a position, and the largest deviation from the line
    as a share of the greatest value."""
    count = len(points)
    mean_x = sum(x for x, _ in points) / count
    mean_y = sum(y for _, y in points) / count
    spread = sum((x - mean_x)**2 for x, _ in points)
    per_position = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    base = mean_y - per_position * mean_x
    greatest = max(abs(y) for _, y in points) or 1
    return per_position, max(abs(y - base - per_position * x) for x, y in points) / greatest


def slope_text(name, points):
    per_position, deviation = slope(points)
    return (f'{name}: workspace {per_position:.1f} B a position from L={points[0][0]} to '
            f'{points[-1][0]}, off the line by {100 * deviation:.2f}% at most')


def passes(trains):
    return 'forward + backward' if trains else 'forward'


def fig3_part(points, trains):
    """One table, and the slope of the workspace of fused attention below it."""
    lines = [
        f'Fig. 3: attention {passes(trains)} over length, '
        + ' '.join(f'{name}={extent}' for name, extent in FIG3.items()),
        f'{"kind":<14} {"L":>6} {"ms":>10} {"workspace MB":>13} {"memory MB":>11}  source'
    ]
    own = [one for one in points if one.trains == trains]
    for one in own:
        lines.append(f'{one.kind:<14} {one.length:>6} {1e3 * one.seconds:>10.4f} '
                     f'{one.workspace / 1e6:>13.1f} {one.total / 1e6:>11.1f}  {one.source}'
                     + ('' if one.fits else ', does not fit'))
    return lines + fused_slope(points, trains)


def fused_slope(points, trains):
    fused = [(one.length, one.workspace) for one in points
             if one.trains == trains and one.kind == 'fused' and one.source == 'predicted']
    return [slope_text(f'fused attention, {passes(trains)}', fused)] if len(fused) > 1 else []


def layer_slope(layer_points):
    return [slope_text(f'{LAYER} with fused attention', layer_points)
            ] if len(layer_points) > 1 else []


def slopes(points, layer_points):
    return fused_slope(points, False) + layer_slope(layer_points) + fused_slope(points, True)


def fig3_text(points, layer_points):
    return '\n'.join([*fig3_part(points, False), *layer_slope(layer_points), '',
                      *fig3_part(points, True)])


def fig3_panels(points, trains):
    groups = {}
    for one in points:
        if one.trains != trains:
            continue
        groups.setdefault((one.kind, one.source == 'predicted'), []).append(one)

    def lines(value):
        return [
            figure_svg.Line(name, [(one.length, value(one)) for one in found
                                   if one.fits and value(one) > 0], is_predicted)
            for (name, is_predicted), found in groups.items()
        ]

    return [
        figure_svg.Panel(f'time, {passes(trains)}', 'length', 'ms',
                         lines(lambda one: 1e3 * one.seconds)),
        figure_svg.Panel(f'memory, {passes(trains)}: operands and workspace', 'length', 'MB',
                         lines(lambda one: one.total / 1e6))
    ]


def fig3_svg(points):
    return figure_svg.svg('Fig. 3 of seed 002',
                          [*fig3_panels(points, False), *fig3_panels(points, True)], 2)


def point_names():
    """Of every point, by figure."""
    return {
        'fig2': ['fig2 kinds', 'fig2 tiles'],
        'fig3': [length_name(trains, length) for trains in (False, True) for length in LENGTHS] +
                [layer_name(length) for length in LAYER_LENGTHS]
    }


def length_name(trains, length):
    return f'fig3 attention {passes(trains)} L={length}'


def layer_name(length):
    return f'fig3 workspace of {LAYER} L={length}'


def fig2(settings, kept, measured):
    """Yields JSON lines as points are done; prints and draws what there is at the end."""
    site = functools.cache(lambda: site_of(settings))
    kinds, tiles = [], []

    def make_kinds():
        found, failures = kinds_of(site()), {}
        if measured:
            found += measured.kinds(settings, site(), failures)
        return {'kinds': [dataclasses.asdict(one) for one in found], 'failures': failures}

    def make_tiles():
        found, failures = tiles_of(site()), {}
        if measured:
            found = measured.tiles(settings, priced_tiles(site()), failures) or found
        return {'tiles': found, 'failures': failures}

    for name, make in (('fig2 kinds', make_kinds), ('fig2 tiles', make_tiles)):
        known = kept.get(name, make) if figure_run.is_chosen(settings, name) else None
        if known is None:
            continue
        kinds += [Kind(**one) for one in known.get('kinds', [])]
        tiles += [tuple(one) for one in known.get('tiles', [])]
        yield from attention_figures_table.kind_lines(
            kinds if 'kinds' in known else [], tiles, flop(FIG2), known['failures'])
    if kinds or tiles:
        show(settings, 'fig2', fig2_text(kinds, tiles), fig2_svg(kinds, tiles))


def length_point(settings, memory, length, trains, measured):
    """All kinds as they are predicted, and what was measured, in one run, of rivals and the kinds
    that leave them the memory."""
    found = [predicted(settings, kind, length, memory, trains) for kind in LENGTH_KINDS]
    failures = {}
    if measured:
        kinds = [one.kind for one in found if one.fits and not is_alone(one, memory)]
        found += measured.at_length(settings, length, trains, kinds, True, failures)
    return {'points': [dataclasses.asdict(one) for one in found], 'failures': failures}


def is_alone(point, memory):
    return point.total > figure_run.SHARED_MEMORY * memory


def alone_point(settings, length, trains, kind, measured):
    failures = {}
    found = measured.at_length(settings, length, trains, [kind], False, failures)
    return {'points': [dataclasses.asdict(one) for one in found], 'failures': failures}


def points_at(settings, kept, memory, length, trains, measured):
    """Yields the points of a length and the failures of each run: those that share one, then the
    kinds that have one each."""
    name = length_name(trains, length)
    known = kept.get(name, lambda: length_point(settings, memory, length, trains, measured))
    if known is None:
        return
    points = [Point(**one) for one in known['points']]
    yield points, known['failures']
    for one in points if measured else ():
        if one.source != 'predicted' or not one.fits or not is_alone(one, memory):
            continue
        alone = kept.get(f'{name} {one.kind} alone', lambda one=one: alone_point(
            settings, length, trains, one.kind, measured))
        if alone is not None:
            yield [Point(**point) for point in alone['points']], alone['failures']


def fig3(settings, kept, measured):
    """Yields JSON lines as points are done; prints and draws what there is at the end."""
    memory = device_bytes(settings)
    points, layer_points = [], []
    for trains in (False, True):
        for length in LENGTHS:
            if not figure_run.is_chosen(settings, length_name(trains, length)):
                continue
            for found, failures in points_at(settings, kept, memory, length, trains, measured):
                points += found
                yield attention_figures_table.length_line(found, passes(trains), length, failures)
    for length in LAYER_LENGTHS:
        name = layer_name(length)
        if figure_run.is_chosen(settings, name):
            workspace = kept.get(name, lambda length=length: layer_workspace(settings, length))
            layer_points += [(length, workspace)] if workspace is not None else []
    yield from attention_figures_table.said_lines(slopes(points, layer_points))
    if points or layer_points:
        show(settings, 'fig3', fig3_text(points, layer_points), fig3_svg(points))


def show(settings, group, said, drawn):
    print(f'{said}\ndrawn: {write(settings, group, drawn)}\n', flush=True)


def run(groups, settings, command):
    """Prints the tables, writes FIG.svg into the folder of figures; yields the lines of --json,
    with where and by which command before them."""
    measured = None
    names = point_names()
    chosen = figure_run.chosen_figures(settings, {group: names[group] for group in groups})
    if has_gpu():
        from . import attention_figures_gpu as measured
        where = measured.where()
    else:
        where = ('no GPU: every figure is predicted by weft, for the H200 unless --weft-flag says '
                 'otherwise')
    print(where, flush=True)
    yield figure_run.head_line(where, command)
    for group in chosen:
        kept = figure_run.Points(settings, group, where if measured else None)
        yield from {'fig2': fig2, 'fig3': fig3}[group](settings, kept, measured)
        if kept.left:
            print(kept.left_text(), flush=True)
