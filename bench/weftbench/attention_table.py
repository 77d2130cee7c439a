"""The table of group `attention`, of a run's JSON lines. No packages: tested without a GPU."""
import math

from . import attention_rows, statistics
from .report import OURS, align, milliseconds

CUDNN, FLASH, FA4 = 'cuDNN', 'flash-2', 'FA4'
RIVALS = [CUDNN, FLASH, FA4]
# Of rows with a bias, whose gradient cuDNN may not give.
EFFICIENT, EAGER = 'SDPA efficient', 'eager'
ERROR_RIVALS = [CUDNN, EFFICIENT, EAGER]  # the first that was checked is compared
ATOMICS = 'weft atomics'  # of training: `--deterministic off`
# Of the geometric mean of cuDNN / weft over the rows of a part and a head dim.
MUST = {
    attention_rows.FORWARD: {64: 1.05, 128: 1.0},
    attention_rows.TRAINING: {64: 1.08, 128: 1.03}
}
MUST_ORDER = 1.10  # of the time with the same bits in every launch over that with sums in any order
MUST_ERROR = 1.2  # of weft's error over cuDNN's, of every row


def record(row, result):
    """What the JSON line of a row has beside what every group's has. Ratios: rival / weft, the
    median of those of the rounds."""
    ours = result.best(result.ours())
    ratios = {
        name: statistics.ratio(samples, result.samples[ours]).median
        for name, samples in result.samples.items() if name not in result.ours()
    } if ours else {}
    known = {'headDim': row.head_dim, 'part': row.part, 'ours': ours, 'ratios': ratios}
    if {OURS, ATOMICS} <= set(result.samples) and not row.scores:
        known['order'] = statistics.ratio(result.samples[OURS], result.samples[ATOMICS]).median
    return known


def ratio(line, rivals):
    """The best of the rivals / weft; None where one of both has no figure."""
    known = line['attention']['ratios']
    return min((known[name] for name in rivals if name in known), default=None)


def errors_of(line, name):
    """Relative errors of a contender against fp64 by the gradient, '' of a result alone; empty
    where it was not checked."""
    error = line['contenders'].get(name, {}).get('error')
    return {} if error is None else line.get('gradients', {}).get(name, {'': error})


def error_rival(line):
    """Whose errors weft's are compared with: cuDNN's; another's where cuDNN does not compute the
    row. '' where there is none."""
    return next((name for name in ERROR_RIVALS if errors_of(line, name)), '')


def error_ratio(line):
    """(error of weft's best contender over that of a rival on the same inputs, of which gradient),
    of the gradient where it is largest; (None, '') where one of both was not checked. Without an
    error of the rival's: 1 without one of weft's, else infinity."""
    ours, rival = (errors_of(line, name) for name in (line['attention']['ours'], error_rival(line)))
    over = lambda error, other: error / other if other else (math.inf if error else 1.0)
    return max(((over(error, rival[name]), name) for name, error in ours.items() if name in rival),
               default=(None, ''))


def error_text(line):
    """A rival that is not cuDNN is named."""
    rival = error_rival(line)
    return times(error_ratio(line)[0]) + (f' ({rival})' if rival not in (CUDNN, '') else '')


def ms_of(line, name):
    return line['contenders'].get(name, {}).get('ms')


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def rate(line, name):
    """TFLOP/s; of decoding GB/s of keys and values."""
    ms = ms_of(line, name)
    if not ms:
        return '-'
    if line['attention']['part'] == attention_rows.DECODE:
        return f'{line["bytes"] / ms / 1e6:.0f} GB/s'
    return f'{line["flop"] / ms / 1e9:.0f}'


def times(value):
    return f'{value:.3f}x' if value is not None else '-'


def rows_of(lines):
    rows = [['TFLOP/s', 'weft ms', 'weft', *RIVALS, 'cuDNN / weft', 'best / weft',
             'error / cuDNN', 'floor ms']]
    for line in lines:
        name = line['attention']['ours']
        ours = ms_of(line, name)
        rows.append([
            line['workload'],
            milliseconds(ours / 1e3) if ours else '-',
            rate(line, name), *(rate(line, name) for name in RIVALS),
            times(ratio(line, [CUDNN])),
            times(ratio(line, RIVALS)),
            error_text(line),
            milliseconds(line['floorMs'] / 1e3) if line['floorMs'] else '-'
        ])
    return rows


def means(lines, part=attention_rows.FORWARD):
    """One sentence a head dim, of rows of one part: rows without a figure are named, and leave no
    mean behind that would hide them."""
    said = []
    must = MUST[part]
    suffix = '' if part == attention_rows.FORWARD else f' {part}'
    for head_dim in sorted({line['attention']['headDim'] for line in lines}):
        own = [line for line in lines if line['attention']['headDim'] == head_dim]
        missing = [line['workload'] for line in own if ratio(line, [CUDNN]) is None]
        if missing:
            said.append(f'd={head_dim}{suffix}: no geometric mean: weft or cuDNN has no figure of '
                        f'{", ".join(missing)}')
            continue
        cudnn, best = (geometric_mean([ratio(line, names) for line in own])
                       for names in ([CUDNN], RIVALS))
        said.append(f'd={head_dim}{suffix}, {len(own)} rows: geometric mean of cuDNN / weft '
                    f'{cudnn:.3f}x' +
                    (f' (must: {must[head_dim]:.2f}x)' if head_dim in must else '') +
                    f', of the best rival / weft {best:.3f}x')
    return said


def verdicts(lines):
    """Of rows that count alone."""
    said = []
    for line in lines:
        part = line['attention']['part']
        if part == attention_rows.DECODE:
            share = copy_share(line)
            said.append(f'{line["workload"]}: keys and values at '
                        + (f'{100 * share:.1f}%' if share else '-') +
                        ' of the best copy\'s rate (must: 80%)')
        elif part not in MUST and part not in attention_rows.ADVERSARIALS:
            said.append(f'{line["workload"]}: the faster of cuDNN and flash-2 / weft '
                        f'{times(ratio(line, [CUDNN, FLASH]))} (must: 1.00x), FA4 / weft '
                        f'{times(ratio(line, [FA4]))}')
    return said


def order_ratios(lines):
    """Of rows in training: time with the same bits in every launch / with sums in any order."""
    return {line['workload']: line['attention']['order'] for line in lines
            if 'order' in line['attention']}


def order(lines):
    """One sentence: what the same bits in every launch cost."""
    known = order_ratios(lines)
    if not known:
        return []
    worst = max(known, key=known.get)
    return [f'same bits in every launch over sums in any order, {len(known)} rows: geometric mean '
            f'{times(geometric_mean(list(known.values())))}, at most {times(known[worst])}, '
            f'{worst} (must: {MUST_ORDER:.2f}x)']


def errors(lines):
    """One sentence: the rows whose error is above the must, or the largest of all; nothing where no
    row has both errors."""
    known = {}
    for line in lines:
        value, gradient = error_ratio(line)
        if value is not None:
            rival = error_rival(line)
            known[line['workload'] + (f', gradient of {gradient}' if gradient else '')
                  + (f', against {rival}' if rival != CUDNN else '')] = value
    if not known:
        return []
    above = [f'{name} {times(value)}' for name, value in known.items() if value > MUST_ERROR]
    rivals = ', or of '.join(dict.fromkeys(
        error_rival(line) for line in lines if error_ratio(line)[0] is not None))
    largest = max(known, key=known.get)
    return [f'error of weft / of {rivals}, {len(known)} of {len(lines)} rows (must: '
            f'{MUST_ERROR:.2f}x): ' +
            (f'above in {", ".join(above)}' if above else
             f'at most {times(known[largest])}, {largest}')]


def copy_share(line):
    """A copy of a line reads and writes together as many bytes as the workload moves."""
    return ratio(line, [name for name in line['contenders'] if name.startswith('copy')])


def sentences(lines):
    """What the rows amount to, one sentence each."""
    said = []
    for part in MUST:
        said += means([line for line in lines if line['attention']['part'] == part], part)
    return [*said, *verdicts(lines), *order(lines), *errors(lines)]


def asked(lines):
    """(what, figure, least) of all that is asked for; None for a figure that is missing."""
    found = []
    for part, musts in MUST.items():
        for head_dim, must in musts.items():
            own = [line for line in lines if line['attention']['part'] == part and
                   line['attention']['headDim'] == head_dim]
            ratios = [ratio(line, [CUDNN]) for line in own]
            if own:
                found.append((f'attention {part}, d={head_dim}, geometric mean of {len(own)} rows '
                              'against cuDNN',
                              None if None in ratios else geometric_mean(ratios), must))
    known = order_ratios(lines)
    if known:
        found.append(('attention, sums in any order / same bits in every launch, worst of '
                      f'{len(known)} rows', 1 / max(known.values()), 1 / MUST_ORDER))
    compared = [line for line in lines if error_ratio(line)[0] is not None]
    ratios = [error_ratio(line)[0] for line in compared]
    if ratios:
        others = sorted({error_rival(line) for line in compared} - {CUDNN})
        said = ''.join(f', or of {name}' for name in others)
        found.append((f'attention, error of cuDNN{said} / of weft, worst of {len(ratios)} rows',
                      1 / max(ratios) if max(ratios) else math.inf, 1 / MUST_ERROR))
    for line in lines:
        part = line['attention']['part']
        if part == attention_rows.DECODE:
            found.append((f'{line["workload"]}, of the copy rate', copy_share(line), 0.8))
        elif part not in MUST and part not in attention_rows.ADVERSARIALS:
            found.append((f'{line["workload"]} against cuDNN and flash-2',
                          ratio(line, [CUDNN, FLASH]), 1.0))
    return found


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    return '\n'.join([align(rows_of(lines)), *sentences(lines)]) if lines else ''
