"""Table A.1 of "Data Movement Is All You Need" (table_a1.csv) against our operators and kernels. No
packages: tested without a GPU."""
import csv
import pathlib
from dataclasses import dataclass, field

from . import report, statistics

FILE = pathlib.Path(__file__).resolve().parent / 'table_a1.csv'


def paper_rows():
    """One dict a row, by the names of the file's columns; figures as the paper prints them."""
    with open(FILE, encoding='utf-8') as file:
        return list(csv.DictReader(line for line in file if not line.startswith('#')))


def is_stack_of(name, parts):
    """Whether a name is that of all parts in some order: stacked tensors are called by what they
    hold."""
    if not parts:
        return name == ''
    return any(
        name.startswith(part) and is_stack_of(name[len(part):].removeprefix('_'), parts[:i] +
                                              parts[i + 1:]) for i, part in enumerate(parts))


def operator_of(row, operators):
    """The operator of `weft explain --movement --json` that computes a row's tensors; None if there
    is none."""
    return next(
        (one for one in operators if is_stack_of('_'.join(one['results']), row['result'].split())),
        None)


@dataclass
class Group:
    """Rows that our kernels compute together: a fused kernel is compared with the sum of what it
    fuses."""
    rows: list
    kernels: list


def groups(rows, operators):
    """In order of their first rows; a row that the graph does not compute has no kernel and stands
    alone."""
    found = []
    for index, row in enumerate(rows):
        operator = operator_of(row, operators)
        kernels = list(operator['kernels']) if operator else []
        joined = [group for group in found if set(group.kernels) & set(kernels)]
        whole = Group(
            sorted([index] + [r for group in joined for r in group.rows]),
            list(dict.fromkeys([name for group in joined for name in group.kernels] + kernels)))
        found = [group for group in found if group not in joined] + [whole]
    return sorted(found, key=lambda group: group.rows[0])


@dataclass
class Peaks:
    """Of the device file: what `weft` calls 100%."""
    tensor_flops: float
    fma_flops: float
    bandwidth: float


@dataclass
class Times:
    """Samples in seconds, of the same rounds: by row and by kernel. `with_bias`: rows whose product
    can add the next row's bias."""
    torch: dict = field(default_factory=dict)
    with_bias: dict = field(default_factory=dict)
    ours: dict = field(default_factory=dict)


def total(samples):
    """Accumulators of the rounds."""
    return [sum(values) for values in zip(*samples)]


def torch_samples(group, times):
    """Of a group's rows; a bias costs nothing where the product that stands in the same group adds
    it in less than both take apart."""
    if any(row not in times.torch for row in group.rows):
        return None
    parts, skipped = [], set()
    for row in group.rows:
        if row in skipped:
            continue
        apart = [times.torch[row]] + ([times.torch[row + 1]] if row + 1 in times.torch else [])
        together = times.with_bias.get(row)
        median = lambda samples: statistics.summarize(samples).median
        if together and row + 1 in group.rows and median(together) < median(total(apart)):
            parts.append(together)
            skipped.add(row + 1)
        else:
            parts.append(times.torch[row])
    return total(parts)


def our_samples(group, times):
    if not group.kernels or any(kernel not in times.ours for kernel in group.kernels):
        return None
    return total([times.ours[kernel] for kernel in group.kernels])


def percent(value):
    return '<0.1' if 0 < value < 0.05 else f'{value:.1f}'


def microseconds(samples):
    return f'{1e6 * statistics.summarize(samples).median:.1f}' if samples else '-'


def our_figures(group, samples, operators, bytes_necessary, peaks, is_contraction):
    """Time, percentage of peak flop, MUE = Q/D * B/Bpeak * 100 with B = D / time, and which of the
    two bounds."""
    if not samples:
        return ['-'] * 4
    seconds = statistics.summarize(samples).median
    flop = sum(one['flop'] for one in operators)
    of_peak = 100 * flop / seconds / (peaks.tensor_flops if is_contraction else peaks.fma_flops)
    mue = 100 * sum(bytes_necessary[kernel] for kernel in group.kernels) / seconds / peaks.bandwidth
    return [
        microseconds(samples),
        percent(of_peak), f'{mue:.0f}', 'memory' if mue > of_peak else 'compute'
    ]


def print_table(rows, operators, times, bytes_necessary, peaks):
    """The whole table: a group's own figures stand in its first row."""
    head = [
        'operator', 'class', 'Gflop', 'in 1e6', 'out 1e6', 'torch us', '% peak', 'weft us',
        '% peak', 'MUE', 'bound', 'speedup', 'V100 then', 'kernel'
    ]
    lines = [head]
    for group in groups(rows, operators):
        members = [operator_of(rows[index], operators) for index in group.rows]
        theirs, ours = torch_samples(group, times), our_samples(group, times)
        contraction = any(rows[index]['class'] == 'contraction' for index in group.rows)
        figures = our_figures(group, ours, [one for one in members if one], bytes_necessary, peaks,
                              contraction)
        speedup = f'{statistics.ratio(theirs, ours).median:.2f}x' if theirs and ours else '-'
        for index, one in zip(group.rows, members):
            row, first = rows[index], index == group.rows[0]
            single = times.torch.get(index)
            peak = peaks.tensor_flops if row['class'] == 'contraction' else peaks.fma_flops
            flop = one['flop'] if one else 1e9 * float(row['gflop'])
            lines.append([
                row['row'], row['class'], f'{flop / 1e9:.3f}',
                f'{one["elementsRead"] / 1e6:.2f}' if one else row['input'],
                f'{one["elementsWritten"] / 1e6:.2f}' if one else row['output'],
                microseconds(single),
                percent(100 * flop / statistics.summarize(single).median / peak) if single else '-',
                *(figures if first else ['"'] * 4), speedup if first else '"', row['speedup']
                or '"', ' + '.join(group.kernels) or '-'
            ])
    return report.align(lines)


def totals(rows, operators, times):
    """Samples of torch and ours over all groups with both, and how many rows that are."""
    both = [(group, torch_samples(group, times), our_samples(group, times))
            for group in groups(rows, operators)]
    both = [(group, theirs, ours) for group, theirs, ours in both if theirs and ours]
    if not both:
        return None
    return total([theirs for _, theirs, _ in both
                  ]), total([ours
                             for _, _, ours in both]), sum(len(group.rows) for group, _, _ in both)
