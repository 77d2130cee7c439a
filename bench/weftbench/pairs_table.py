"""The table of groups whose rows compare two plans of weft: `profile-choice` and `odd-lengths`. No
packages: tested without a GPU."""
from . import statistics
from .attention_table import ms_of
from .report import align, milliseconds

GROUPS = ('profile-choice', 'odd-lengths')


def record(result, one, other, what, most, scale=1.0):
    """What the JSON line of a row has beside what every group's has. `ratio`: one / other, the
    median of those of the rounds, times `scale`; None where one of both has no figure. `most`: what
    it may be."""
    ratio = None
    if one in result.samples and other in result.samples:
        pair = statistics.ratio(result.samples[one], result.samples[other])
        ratio = {'median': scale * pair.median, 'spread': pair.spread}
    return {'names': [one, other], 'what': what, 'most': most, 'ratio': ratio,
            'kernels': result.extra.get('kernels of both builds', '')}


def median(line):
    ratio = line['pair']['ratio']
    return ratio['median'] if ratio else None


def verdict(line):
    found = median(line)
    return 'no figure' if found is None else 'reached' if found <= line['pair']['most'] \
        else 'MISSED'


def rows_of(lines):
    rows = [['', 'first ms', 'second ms', 'first / second', 'of', 'at most', '', 'kernels']]
    for line in lines:
        pair, ratio = line['pair'], line['pair']['ratio']
        ms = [ms_of(line, name) for name in pair['names']]
        rows.append([
            line['workload'], *(milliseconds(one / 1e3) if one else '-' for one in ms),
            f'{ratio["median"]:.3f} (+-{50 * ratio["spread"]:.1f}%)' if ratio else '-',
            pair['what'], f'{pair["most"]:.2f}', verdict(line), pair['kernels'] or '-'
        ])
    return rows


def sentences(lines):
    """The table says it all."""
    return []


def asked(lines):
    """(what, figure, least) of all that is asked for: inverse ratios, as more is better there."""
    return [(f'{line["workload"]}, inverse of {line["pair"]["what"]}',
             1 / median(line) if median(line) else None, 1 / line['pair']['most'])
            for line in lines]


def text(lines):
    """`lines`: of one of these groups, as report.json_line writes them."""
    return align(rows_of(lines)) if lines else ''
