"""The table of group `steps`, of a run's JSON lines. No packages: tested without a GPU."""
from .attention_table import ms_of, times
from .report import OURS, align, milliseconds

EAGER, COMPILED = 'eager + SDPA', 'torch.compile'
AUTOCAST, MASTERS = 'autocast', 'masters'
FORMS = (AUTOCAST, MASTERS)
RIVALS = [f'{how} {form}' for how in (EAGER, COMPILED) for form in FORMS]


def record(row, ratios):
    """What the JSON line of a row has beside what every group's has. `ratios`: rival / weft."""
    return {'ratios': ratios, 'must': row.must, 'parameters': row.parameters()}


def ratio(line, how):
    """The faster form of such a rival / weft; None where one of both has no figure."""
    known = line['steps']['ratios']
    return min((known[f'{how} {form}'] for form in FORMS if f'{how} {form}' in known), default=None)


def verdict(line):
    """'' where nothing must be reached."""
    must, found = line['steps']['must'], ratio(line, COMPILED)
    if must is None:
        return ''
    return 'no figure' if found is None else 'reached' if found >= must else 'MISSED'


def rows_of(lines):
    rows = [[
        'ms', OURS, *RIVALS, f'{EAGER} / weft', f'{COMPILED} / weft', 'must', '', 'floor',
        'error'
    ]]
    for line in lines:
        shown = lambda ms: milliseconds(ms / 1e3) if ms else '-'
        must = line['steps']['must']
        error = line['contenders'].get(OURS, {}).get('error')
        rows.append([
            line['workload'], *(shown(ms_of(line, name)) for name in [OURS, *RIVALS]),
            times(ratio(line, EAGER)), times(ratio(line, COMPILED)),
            f'{must:.2f}x' if must else '-', verdict(line), shown(line['floorMs']),
            '-' if error is None else f'{error:.1e}'
        ])
    return rows


def sentences(lines):
    """The table says it all."""
    return []


def asked(lines):
    """(what, figure, least) of all that is asked for; None for a figure that is missing."""
    return [(f'{line["workload"]} against torch.compile', ratio(line, COMPILED),
             line['steps']['must']) for line in lines if line['steps']['must'] is not None]


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    return align(rows_of(lines)) if lines else ''
