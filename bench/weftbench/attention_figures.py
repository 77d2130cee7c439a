"""Figures 2 and 3 of seed 002 (FlashAttention): bench/run fig2 (forward), bench/run fig3 (forward,
and forward with backward).

Without a GPU every figure is a prediction of weft for its device, and is marked so. With one (and
PyTorch) ours and the rivals are timed in the same rounds, and what was not timed stays marked."""
import datetime
import json
import math
import pathlib
from dataclasses import dataclass

from . import attention_figures_table, figure_svg
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
    fused = next(one for one in site['kinds'] if one['kind'] == 'fused')
    if 'figures' not in fused:
        raise BadRun(f'no fused plan: {fused["rejected"]}')
    return [(tile['queries'], tile['keys'], tile['seconds'], tile['l2Bytes'],
             'from the profile' if tile['measured'] else 'predicted')
            for tile in fused['figures']['tiles']]


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
        lines.append(f'{f"{rows} x {keys}":<12} {l2_bytes / 1e6:>9.1f} {1e3 * seconds:>8.4f}  '
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


def fig2(settings, measured):
    """Text, drawing and JSON lines."""
    site = site_of(settings)
    kinds, tiles, failures = kinds_of(site), tiles_of(site), {}
    if measured:
        kinds += measured.kinds(settings, site, failures)
        tiles = measured.tiles(settings, tiles) or tiles
    return (fig2_text(kinds, tiles), fig2_svg(kinds, tiles),
            attention_figures_table.kind_lines(kinds, tiles, flop(FIG2), failures))


def fig3(settings, measured):
    memory = device_bytes(settings)
    points = [predicted(settings, kind, length, memory, trains) for trains in (False, True)
              for kind in ('unfused', 'fused') for length in LENGTHS]
    layer_points = [(length, layer_workspace(settings, length)) for length in LAYER_LENGTHS]
    failures = {}
    if measured:
        points += measured.points(settings, points, failures) + measured.training_points(
            settings, points, memory, failures)
    return (fig3_text(points, layer_points), fig3_svg(points),
            attention_figures_table.length_lines(points, passes, failures,
                                                 slopes(points, layer_points)))


def run(groups, settings, command):
    """Prints the tables, writes FIG.svg into the folder of figures; yields the lines of --json,
    with where and by which command before them."""
    measured = None
    if has_gpu():
        from . import attention_figures_gpu as measured
        where = measured.where()
    else:
        where = ('no GPU: every figure is predicted by weft, for the H200 unless --weft-flag says '
                 'otherwise')
    print(where, flush=True)
    yield {'machine': where, 'date': datetime.date.today().isoformat(), 'command': command}
    for group in groups:
        said, drawn, lines = {'fig2': fig2, 'fig3': fig3}[group](settings, measured)
        print(f'{said}\ndrawn: {write(settings, group, drawn)}\n', flush=True)
        yield from lines
