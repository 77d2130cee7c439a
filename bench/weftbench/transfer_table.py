"""The table of group `transfer`, of one run's JSON lines or of several added up. No packages:
tested without a GPU.

No draw is ever dropped: one that weft rejected, or whose result is wrong, counts as 0.5x, and one
that was not begun is listed."""
import json
import math
from dataclasses import dataclass, field

from .report import OURS, align, milliseconds

RIGHT, REJECTED, WRONG, ABSENT = 'right', 'rejected', 'wrong', 'not asked for'
PENALTY = 0.5
VERDICT_DRAWS = 32
MUST = 1.0  # of the geometric mean over the inference draws of even widths, and over those of odd
# Runs that differ in one of these measure different things.
SAME = {
    'sampler': 'version of the distribution', 'device': 'machine', 'weft': 'weft command',
    'weftFlags': 'flags of weft compile', 'compileLimit': 'limit of weft compile, seconds',
    'rounds': 'rounds', 'rivals': 'rivals'
}


class BadRun(ValueError):
    """A file that is no run of this group, or runs that do not add up."""


@dataclass
class Run:
    """What a file holds: `header` says how it was measured and which draws were asked for."""
    header: dict
    lines: list = field(default_factory=list)  # of measured draws, as report.json_line gives them
    name: str = ''


MEMBERS = {
    'workload': str, 'contenders': dict, 'status': str, 'reason': str, 'prices': str,
    'ratio': (dict, type(None)), 'floorMs': (float, int, type(None)), 'draw': dict
}
DRAW = {'seed': int, 'index': int, 'even': bool, 'training': bool}


def problem_of(members, types):
    """'' where an object has all members of these types, else which it has not."""
    return next((f'no {name} of a draw' for name, kind in types.items()
                 if not isinstance(members.get(name), kind)), '')


def problem_of_line(line):
    """'' for a measured draw as json_line writes it."""
    problem = problem_of(line, MEMBERS) or problem_of(line['draw'], DRAW)
    if not problem and line['status'] not in (RIGHT, REJECTED, WRONG, ABSENT):
        problem = f'unknown status {line["status"]!r}'
    if problem or line['ratio'] is None:
        return problem
    median = line['ratio'].get('median')
    is_ratio = isinstance(median, (int, float)) and 0 < median < math.inf
    return '' if is_ratio else 'a ratio that is no positive number'


def keys(run):
    return [(line['draw']['seed'], line['draw']['index']) for line in run.lines]


def read(path):
    try:
        with open(path, encoding='utf-8') as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadRun(f'{path}: {getattr(error, "strerror", None) or "is no text"}') from error
    run = Run({}, name=str(path))
    for number, line in enumerate(text.splitlines(), 1):
        try:
            value = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadRun(f'{path}: line {number} is not JSON: {error.msg}') from error
        if not isinstance(value, dict):
            continue
        if isinstance(value.get('transfer'), dict):
            run.header = value['transfer']
        if 'draw' in value:
            problem = problem_of_line(value)
            if problem:
                raise BadRun(f'{path}: line {number}: {problem}')
            run.lines.append(value)
    missing = [name for name in SAME if name not in run.header]
    missing += [
        name for name in ('seed', 'first', 'count') if not isinstance(run.header.get(name), int)
    ]
    if missing:
        raise BadRun(f'{path}: no run of group transfer (its first line has no {missing[0]})')
    return run


def check_same(first, other):
    for name, meaning in SAME.items():
        if first.header[name] != other.header[name]:
            raise BadRun(f'{other.name}: another {meaning} than {first.name}: '
                         f'{other.header[name]}, not {first.header[name]}; runs add up only where '
                         'they measure the same')


def check_unlike(runs):
    where = {}
    for run in runs:
        for key in keys(run):
            if key in where:
                seed, index = key
                raise BadRun(f'{run.name}: draw {index} of seed {seed} stands in {where[key]} too')
            where[key] = run.name


def planned(run):
    """(seed, index) of every draw that was asked for."""
    return [(run.header['seed'], index)
            for index in range(run.header['first'], run.header['first'] + run.header['count'])]


def not_measured(runs):
    """Draws that were asked for and that no run measured."""
    done = {key for run in runs for key in keys(run)}
    return sorted({key for run in runs for key in planned(run)} - done)


def score(line):
    """Best rival over weft; None where there is nothing to compare."""
    if line['status'] in (REJECTED, WRONG):
        return PENALTY
    return line['ratio']['median'] if line['status'] == RIGHT and line['ratio'] else None


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


@dataclass
class Summary:
    """Of the draws of one kind of widths."""
    draws: int
    mean: float
    worst: float
    worst_name: str
    won: float  # share of the compared ones
    rejected: int
    wrong: int
    without: int  # draws without a ratio: no rival, or weft not asked for

    @property
    def compared(self):
        return self.draws - self.without


def summarize(lines):
    scores = [(score(line), line['workload']) for line in lines]
    compared = [one for one in scores if one[0] is not None]
    worst, name = min(compared, default=(None, ''))
    count = lambda status: sum(line['status'] == status for line in lines)
    won = sum(value > 1 for value, _ in compared) / len(compared) if compared else None
    return Summary(len(lines), geometric_mean([value for value, _ in compared]), worst, name, won,
                   count(REJECTED), count(WRONG), len(lines) - len(compared))


def fastest(line, is_ours):
    """Name and milliseconds of the fastest contender of one side."""
    times = [(figures['ms'], name) for name, figures in line['contenders'].items()
             if (name.split(' ')[0] == OURS) == is_ours]
    ms, name = min(times, default=(None, '-'))
    return name, milliseconds(1e-3 * ms) if ms else '-'


def ratio_text(line):
    value = score(line)
    if value is None:
        return '-'
    return f'{value:.2f}x' + (f' ({line["status"]})' if line['status'] != RIGHT else '')


def rows(lines):
    table = [['draw', 'weft ms', 'best rival ms', 'weft is', 'floor ms', 'prices', 'best rival']]
    for line in lines:
        rival, rival_ms = fastest(line, False)
        floor = line['floorMs']
        table.append([
            line['workload'],
            fastest(line, True)[1], rival_ms,
            ratio_text(line),
            milliseconds(1e-3 * floor) if floor else '-', line['prices'] or '-', rival
        ])
    return table


def kinds(lines):
    """(name, lines) of draws that are summed up together: by widths, and where layers were both run
    forward alone and trained, these apart, too."""
    widths = [(name, [line for line in lines if line['draw']['even'] == is_even])
              for name, is_even in (('even', True), ('odd', False))]
    passes = (('inference', False), ('training', True))
    if len({line['draw']['training'] for line in lines}) < len(passes):
        return widths
    return widths + [(f'{name}, {passed}',
                      [line for line in some if line['draw']['training'] == is_training])
                     for passed, is_training in passes for name, some in widths]


def summary_rows(lines):
    table = [[
        'widths', 'draws', 'compared', 'geometric mean', 'worst', 'won', 'rejected', 'wrong',
        'worst draw'
    ]]
    figure = lambda value: '-' if value is None else f'{value:.3f}x'
    for name, some in kinds(lines):
        one = summarize(some)
        table.append([
            name,
            str(one.draws),
            str(one.compared),
            figure(one.mean),
            figure(one.worst), '-' if one.won is None else f'{100 * one.won:.0f}%',
            str(one.rejected),
            str(one.wrong), one.worst_name or '-'
        ])
    return table


def asked(lines):
    """(what, figure, least) of all that is asked for: of inference, by widths; None where nothing
    is compared."""
    found = []
    seeds = ', '.join(map(str, sorted({line['draw']['seed'] for line in lines})))
    for name, is_even in (('even', True), ('odd', False)):
        own = summarize([line for line in lines if line['draw']['even'] == is_even
                         and not line['draw']['training']])
        if own.draws:
            found.append((f'layers of seed {seeds}, {name} widths, inference, geometric mean of '
                          f'{own.compared} of {own.draws} draws', own.mean, MUST))
    return found


def spans(indices):
    """'2-4, 7' of sorted numbers."""
    found = []
    for index in indices:
        if found and found[-1][1] == index - 1:
            found[-1][1] = index
        else:
            found.append([index, index])
    return ', '.join(f'{a}' if a == b else f'{a}-{b}' for a, b in found)


def left_out(runs):
    """Of every seed the draws that were asked for and not measured, and what a verdict lacks."""
    left = not_measured(runs)
    said = [f'not measured of seed {seed}: '
            f'{spans(index for other, index in left if other == seed)}'
            for seed in sorted({seed for seed, _ in left})]
    own = {(line['draw']['seed'], line['draw']['index']) for run in runs for line in run.lines
           if not line['draw']['training']}
    if len(own) < VERDICT_DRAWS:
        said.append(f'{len(own)} of the {VERDICT_DRAWS} inference draws that a verdict takes')
    return said


def text(runs):
    """The table of all draws, why weft has no figure or no ratio, what was not measured, and the
    summary by widths."""
    lines = sorted((line for run in runs for line in run.lines), key=lambda line:
                   (line['draw']['seed'], line['draw']['index']))
    parts = [align(rows(lines))] if lines else []
    said = [f'{line["workload"]}: {line["status"]}: {line["reason"]}' for line in lines
            if line['status'] in (REJECTED, WRONG)]
    said += [f'{line["workload"]}: no ratio: no rival has a figure' for line in lines
             if line['status'] == RIGHT and score(line) is None]
    said += left_out(runs)
    parts += ['\n'.join(said)] if said else []
    parts.append(
        align(summary_rows(lines)) + '\nwidths are even where hidden, feed-forward and L are '
        f'multiples of 8; a draw that is rejected or wrong counts {PENALTY}x')
    return '\n\n'.join(parts)


def added(paths):
    """One table of several runs."""
    runs = [read(path) for path in paths]
    for other in runs[1:]:
        check_same(runs[0], other)
    check_unlike(runs)
    head = runs[0].header
    return (f'{head["device"]}\n{len(runs)} runs, {head["rounds"]} rounds, weft compile '
            f'{" ".join(head["weftFlags"]) or "without flags"}\n\n{text(runs)}')
