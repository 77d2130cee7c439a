"""The table of group `masks`, of a run's JSON lines. No packages: tested without a GPU."""
from .attention_table import geometric_mean, ms_of, times
from .report import OURS, align, milliseconds

PENALTY = 0.5  # of a draw that weft has no figure of


def record(draw, ratio, rival):
    """What the JSON line of a draw has beside what every group's has. `ratio`: rival / weft; None
    where one of both has no figure."""
    return {'ratio': ratio, 'rival': rival, 'trains': draw.training}


def shown(ms):
    return milliseconds(ms / 1e3) if ms else '-'


def rows_of(lines):
    rows = [['draw', 'weft ms', 'best rival ms', 'weft is', 'floor ms', 'best rival']]
    for line in lines:
        own = line['masks']
        rows.append([
            line['workload'], shown(ms_of(line, OURS)),
            shown(ms_of(line, own['rival'])) if own['rival'] else '-', times(own['ratio']),
            shown(line['floorMs']), own['rival'] or '-'
        ])
    return rows


def counted(line):
    """The ratio that a draw adds to the mean; None where there is nothing to compare with."""
    if not line['masks']['rival']:
        return None
    return line['masks']['ratio'] or PENALTY


def means(lines):
    """A sentence for forward draws and for those in training."""
    said = []
    for trains, kind in ((False, 'forward'), (True, 'forward and backward')):
        ratios = [
            ratio for line in lines
            if line['masks']['trains'] == trains and (ratio := counted(line)) is not None
        ]
        if ratios:
            won = sum(ratio > 1 for ratio in ratios)
            said.append(f'{kind}, {len(ratios)} draws: geometric mean of the best rival / weft '
                        f'{geometric_mean(ratios):.3f}x, worst {min(ratios):.2f}x, {won} won')
    return said


def sentences(lines):
    return means(lines)


def asked(lines):
    """Nothing: draws are reported."""
    return []


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    return '\n'.join([align(rows_of(lines)), *sentences(lines)]) if lines else ''
