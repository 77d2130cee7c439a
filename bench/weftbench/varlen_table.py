"""The table of group `varlen`, of a run's JSON lines. No packages: tested without a GPU."""
from .attention_table import geometric_mean, ms_of, times
from .report import align, milliseconds
from .varlen_rows import MEAN

PADDED, PACKED = 'weft padded', 'weft packed'
EAGER, COMPILED, FLASH, NESTED = ('padded SDPA', 'padded torch.compile', 'flash varlen + compile',
                                  'nested tensors')
OURS, RIVALS = [PADDED, PACKED], [EAGER, COMPILED, FLASH, NESTED]
UNAVAILABLE = 'not available: '


def record(row, ours, ratios):
    """What the JSON line of a row has beside what every group's has. `ratios`: rival / the best of
    ours."""
    return {
        'ours': ours, 'ratios': ratios, 'must': row.must(), 'batch': row.batch,
        'length': row.length, 'mean': row.mean, 'tokens': row.tokens()
    }


def ratio(line):
    """The best rival / weft; None where one of both has no figure."""
    known = line['varlen']['ratios']
    return min((known[name] for name in RIVALS if name in known), default=None)


def rows_of(lines):
    rows = [['ms', *OURS, *RIVALS, 'best / weft', 'must', 'floor']]
    for line in lines:
        shown = lambda ms: milliseconds(ms / 1e3) if ms else '-'
        must = line['varlen']['must']
        rows.append([
            line['workload'], *(shown(ms_of(line, name)) for name in OURS + RIVALS),
            times(ratio(line)), f'{must:.2f}x' if must else '-', shown(line['floorMs'])
        ])
    return rows


def means(lines):
    """A sentence for each batch at the usual mean, and one for each other mean; a row without a
    figure leaves no geometric mean behind."""
    kinds = {}
    for line in lines:
        own = line['varlen']
        kind = f'B={own["batch"]}' if own['mean'] == MEAN else f'mean {100 * own["mean"]:g}%'
        kinds.setdefault(kind, []).append(line)
    said = []
    for kind, own in kinds.items():
        missing = [line['workload'] for line in own if ratio(line) is None]
        if missing:
            said.append(f'{kind}: no geometric mean: no figure of {", ".join(missing)}')
            continue
        said.append(f'{kind}, {len(own)} rows: geometric mean of the best rival / weft '
                    f'{geometric_mean(list(map(ratio, own))):.3f}x')
    return said


def absent(lines):
    """Rivals without a figure, each reason once."""
    reasons = {}
    for line in lines:
        for name, reason in line['failures'].items():
            if name in RIVALS:
                reasons.setdefault((name, reason), []).append(line['workload'])
    return [f'{name}: {reason} ({len(rows)} rows)' for (name, reason), rows in reasons.items()]


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    return '\n'.join([align(rows_of(lines)), *means(lines), *absent(lines)]) if lines else ''
