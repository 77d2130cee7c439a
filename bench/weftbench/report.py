"""Results as text tables and JSON lines. No packages: tested without a GPU."""
import json
from dataclasses import dataclass, field

from . import statistics

OURS = 'weft'


@dataclass
class Workload:
    """What every contender computes, and the least that must be moved and computed for it."""
    name: str
    bytes_moved: float = 0
    flop: float = 0
    note: str = ''


@dataclass
class Result:
    """Samples in seconds by contender (in order), what failed and why, and how far outputs are from
    the reference."""
    workload: Workload
    samples: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)
    errors: dict = field(default_factory=dict)
    clocks: str = ''
    protocol: str = ''
    extra: dict = field(default_factory=dict)
    record: dict = field(default_factory=dict)  # further members of the JSON line

    def ours(self):
        """Names of our contenders: 'weft', and 'weft' with a remark behind it."""
        return [name for name in self.samples if name.split(' ')[0] == OURS]

    def rivals(self):
        return [
            name for name in self.samples
            if name.split(' ')[0] != OURS and name not in self.copies()
        ]

    def copies(self):
        return [name for name in self.samples if name.startswith('copy')]

    def best(self, names):
        return min(
            names,
            key=lambda name: statistics.summarize(self.samples[name]).median) if names else None


def milliseconds(seconds):
    return f'{1e3 * seconds:.4f}' if seconds < 1e-3 else f'{1e3 * seconds:.3f}'


def align(rows):
    """Left column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])
                 ] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        lines.append('  '.join(cells).rstrip())
    return '\n'.join(lines)


def parts_text(parts):
    """Tables (lists of rows) and sentences of a figure, in order."""
    return '\n'.join(part if isinstance(part, str) else align(part) for part in parts)


def rate(amount, seconds, unit, scale):
    return f'{amount / seconds / scale:.1f} {unit}' if amount else '-'


def workload_table(result, ceilings):
    if hasattr(result, 'table'):
        return result.table()
    return contenders_table(result, ceilings)


def contenders_table(result, ceilings):
    """One row a contender; 'weft is' tells how many times faster the best of ours is."""
    work = result.workload
    floor = statistics.floor_seconds(work.bytes_moved, work.flop, *ceilings)
    reference = result.best(result.ours())
    rows = [['contender', 'ms', 'spread', 'n', 'GB/s', 'TFLOP/s', 'over floor', 'weft is', 'error']]
    for name, samples in result.samples.items():
        summary = statistics.summarize(samples)
        faster = '-'
        if reference and name != reference:
            pair = statistics.ratio(samples, result.samples[reference])
            faster = f'{pair.median:.3f}x (+-{50 * pair.spread:.1f}%)'
        rows.append([
            name,
            milliseconds(summary.median), f'{100 * summary.spread:.1f}%',
            str(summary.n),
            rate(work.bytes_moved, summary.median, '', 1e9).strip(),
            rate(work.flop, summary.median, '',
                 1e12).strip(), f'{summary.median / floor:.2f}x' if floor else '-', faster,
            f'{result.errors[name]:.1e}' if name in result.errors else '-'
        ])
    text = f'{work.name}' + (f': {work.note}' if work.note else '') + ('\n' + align(rows)
                                                                       if result.samples else '')
    if floor and result.samples:
        text += f'\nfloor {milliseconds(floor)} ms'
    if result.copies() and reference:
        share = statistics.ratio(result.samples[result.best(result.copies())],
                                 result.samples[reference])
        text += f'\n{reference} reaches {100 * share.median:.1f}% of the rate of the best copy'
    for name, reason in result.failures.items():
        text += f'\n{name}: no figure: {reason}'
    for name, value in result.extra.items():
        text += f'\n{name}: {value}'
    return text + (f'\n{result.protocol}' if result.protocol else '') + (f'\n{result.clocks}'
                                                                         if result.clocks else '')


def summary_table(results, ceilings):
    """One row a workload: ours, the best rival, the ratio, the floor."""
    rows = [['workload', 'weft ms', 'best rival ms', 'weft is', 'floor ms', 'best rival']]
    for result in results:
        if not result.samples or hasattr(result,
                                         'table'):  # such a result compares no two contenders
            continue
        floor = statistics.floor_seconds(result.workload.bytes_moved, result.workload.flop,
                                         *ceilings)
        ours, rival = result.best(result.ours()), result.best(result.rivals())
        median = lambda name: milliseconds(statistics.summarize(result.samples[name]).median
                                           ) if name else '-'
        times = '-'
        if ours and rival:
            ratio = statistics.ratio(result.samples[rival], result.samples[ours])
            times = f'{ratio.median:.3f}x'
        rows.append([
            result.workload.name,
            median(ours),
            median(rival), times,
            milliseconds(floor) if floor else '-', rival or '-'
        ])
    return align(rows)


def json_line(result, ceilings, group=''):
    work = result.workload
    contenders = {}
    for name, samples in result.samples.items():
        summary = statistics.summarize(samples)
        contenders[name] = {
            'ms': 1e3 * summary.median, 'p10Ms': 1e3 * summary.p10, 'p90Ms': 1e3 * summary.p90,
            'n': summary.n, 'error': result.errors.get(name)
        }
    floor = statistics.floor_seconds(work.bytes_moved, work.flop, *ceilings)
    return json.dumps(
        {
            'workload': work.name, 'group': group, 'bytes': work.bytes_moved, 'flop': work.flop,
            'contenders': contenders, 'failures': result.failures,
            'floorMs': 1e3 * floor if floor else None, 'clocks': result.clocks,
            'protocol': result.protocol, 'extra': result.extra, **result.record
        }, sort_keys=True)
