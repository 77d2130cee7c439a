"""Figs. 2 and 3 of FlashAttention as JSON lines, and their tables in RESULTS.md. No packages:
tested without a GPU."""
from .report import milliseconds

GROUPS = ('fig2', 'fig3')
PREDICTED = 'predicted'
MARK = ' *'  # behind what is predicted
TOO_LARGE = 'too large'


def kind_lines(kinds, tiles, flop, failures):
    """Of Fig. 2: a line a kind of attention, and one a tile of the fused kernel. `failures`:
    reasons by contender, of all of them."""
    lines = [{'workload': f'attention forward {kind.name}', 'kind': kind.name, 'flop': flop,
              'ms': 1e3 * kind.seconds, 'dramBytes': kind.dram, 'l2Bytes': kind.l2,
              'workspaceBytes': kind.workspace, 'source': kind.source, 'failures': {}}
             for kind in kinds]
    lines += [{'workload': f'fused, tile {rows} x {keys}', 'tile': [rows, keys],
               'ms': 1e3 * seconds, 'l2Bytes': l2_bytes, 'source': source, 'failures': {}}
              for rows, keys, seconds, l2_bytes, source in tiles]
    lines[0]['failures'] = failures
    return [{'group': 'fig2', **line} for line in lines]


def length_line(points, passes, length, failures):
    """Of Fig. 3: what was measured at a length in one run, and what is predicted there. Several
    lines may be of one length (`at_lengths`). `failures`: reasons by contender."""
    line = {'group': 'fig3', 'workload': f'attention {passes} L={length}', 'passes': passes,
            'length': length, 'contenders': {}, PREDICTED: {}, 'failures': failures}
    for one in points:
        figures = {'ms': 1e3 * one.seconds, 'workspaceBytes': one.workspace,
                   'memoryBytes': one.total, 'fits': one.fits}
        line[PREDICTED if one.source == PREDICTED else 'contenders'][one.kind] = figures
    return line


def said_lines(said):
    return [{'group': 'fig3', 'workload': 'slope', 'said': text, 'failures': {}} for text in said]


def at_lengths(lines):
    """One line for each passes and length, of the lines of all runs: of a contender that was
    measured twice the last."""
    found = {}
    for line in lines:
        if 'length' not in line:
            continue
        own = found.setdefault((line['passes'], line['length']),
                               {**line, 'contenders': {}, PREDICTED: {}})
        for group in ('contenders', PREDICTED):
            own[group] = {**own[group], **line[group]}
    order = list(dict.fromkeys(passes for passes, _ in found))
    return [found[key] for key in sorted(found, key=lambda key: (order.index(key[0]), key[1]))]


def mega(count):
    return f'{count / 1e6:.1f}'


def marked(line):
    return shown(line) + (MARK if line['source'] == PREDICTED else '')


def shown(line):
    return milliseconds(line['ms'] / 1e3) if line else '-'


def fig2_tables(lines):
    kinds = [['', 'ms', 'predicted ms', 'Gflop', 'MB at DRAM', 'MB at L2', 'workspace MB']]
    predicted, measured = ({line['kind']: line for line in lines
                            if 'kind' in line and (line['source'] == PREDICTED) == is_predicted}
                           for is_predicted in (True, False))
    for name in dict.fromkeys([*predicted, *measured]):
        line = measured.get(name) or predicted[name]
        # The traffic of rivals is not known.
        known = [mega(line[one]) if line[one] else '-' for one in ('dramBytes', 'l2Bytes')]
        kinds.append([name, shown(measured.get(name)), shown(predicted.get(name)),
                      f'{line["flop"] / 1e9:.1f}', *known, mega(line['workspaceBytes'])])
    tiles = [['queries x keys of a tile', 'ms', 'MB at L2']]
    for line in {tuple(line['tile']): line for line in lines if 'tile' in line}.values():
        rows, keys = line['tile']
        tiles.append([f'{rows} x {keys}', marked(line), mega(line['l2Bytes'])])
    titled = [('Forward, by kind; bytes at DRAM and L2 are predicted', kinds),
              ('The fused kernel over its tiles', tiles)]
    return [(title, rows) for title, rows in titled if len(rows) > 1]


def predicted_cell(line, name):
    figures = line[PREDICTED].get(name)
    return TOO_LARGE if figures and not figures['fits'] else shown(figures)


def cells(line, name, value):
    """What was measured of a contender, else what is predicted."""
    if name in line['contenders']:
        return value(line['contenders'][name])
    if name not in line[PREDICTED]:
        return '-'
    figures = line[PREDICTED][name]
    return value(figures) + MARK if figures['fits'] else TOO_LARGE


def rival_over_ours(line):
    """Of the fastest of both sides that were measured; weft's kinds are those predicted, too."""
    ours, rivals = ([figures['ms'] for name, figures in line['contenders'].items()
                     if (name in line[PREDICTED]) == is_ours] for is_ours in (True, False))
    return f'{min(rivals) / min(ours):.3f}' if ours and rivals else '-'


def fig3_tables(lines):
    tables = []
    lines = at_lengths(lines)
    for passes in dict.fromkeys(line['passes'] for line in lines):
        own = [line for line in lines if line['passes'] == passes]
        names = list(dict.fromkeys(name for line in own for group in (PREDICTED, 'contenders')
                                   for name in line[group]))
        kinds = [name for name in names if any(name in line[PREDICTED] for line in own)]
        rows = [['L', *(f'{name} ms' for name in names), 'best rival / weft',
                 *(f'{name} predicted ms' for name in kinds), *(f'{name} MB' for name in names)]]
        for line in own:
            rows.append([
                str(line['length']), *(shown(line['contenders'].get(name)) for name in names),
                rival_over_ours(line), *(predicted_cell(line, name) for name in kinds),
                *(cells(line, name, lambda one: mega(one['memoryBytes'])) for name in names)
            ])
        tables.append((f'Attention {passes}: time, and memory of operands and workspace', rows))
    return tables


def tables(lines):
    """(title, rows) of each table of one group."""
    return fig2_tables(lines) if lines[0]['group'] == 'fig2' else fig3_tables(lines)


def sentences(lines):
    said = list(dict.fromkeys(line['said'] for line in lines if 'said' in line))
    is_any_predicted = any(MARK in cell for _, rows in tables(lines) for row in rows
                           for cell in row)
    return ['Figures with * are predicted by weft.'] * is_any_predicted + said
