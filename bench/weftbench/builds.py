"""Two builds of weft in one run, or one build with other flags: what they are called, and whether
one is as fast as the other. No packages: tested without a GPU.

Invariant: a figure that is missing or not a number is outside every bound."""
import pathlib
import re
from dataclasses import dataclass

from . import report, statistics

MOST = 2


@dataclass(frozen=True)
class Build:
    """One weft command, its libweft_runtime.so, and its name in tables: 'weft', or 'weft' with what
    tells its path from the other's."""
    label: str
    weft: str
    library: str
    flags: tuple = ()  # of every weft compile, behind those of the run


def labels(paths):
    """'weft' for one path; for two what differs: 'weft old', 'weft new' for old/bin/weft and
    new/bin/weft; '1st' and '2nd' for the same file twice."""
    if len(paths) == 1:
        return [report.OURS]
    parts = [pathlib.PurePath(path).parts for path in paths]
    while len({one[0] for one in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [one[1:] for one in parts]
    while len({one[-1] for one in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [one[:-1] for one in parts]
    if len(set(parts)) < len(parts):
        return [f'{report.OURS} {place}' for place in ('1st', '2nd')]
    return [f'{report.OURS} ' + '/'.join(one) for one in parts]


def bound_of(text):
    """0.01 of '1%'."""
    match = re.fullmatch(r'(\d+(?:\.\d+)?)\s*%', text.strip())
    if not match or not 0 < float(match[1]) < 100:
        raise ValueError(f'{text!r} is no percentage between 0 and 100, such as 1%')
    return float(match[1]) / 100


@dataclass
class Comparison:
    """Of one workload: times of the second build over those of the first, round by round."""
    name: str
    ratio: statistics.Summary = None
    problem: str = ''

    def is_within(self, bound):
        return not self.problem and 1 / (1 + bound) <= self.ratio.median <= 1 + bound


def compare(result, builds):
    first, second = (build.label for build in builds)
    for label in (first, second):
        if label not in result.samples:
            reason = result.failures.get(label) or result.failures.get(report.OURS) or 'none'
            return Comparison(result.workload.name, problem=f'no figure of {label}: {reason}')
    try:
        return Comparison(result.workload.name,
                          statistics.ratio(result.samples[second], result.samples[first]))
    except statistics.BadSample as error:
        return Comparison(result.workload.name, problem=str(error))


def table(results, builds, bound=None):
    """One row a workload: both builds, the ratio, and whether it is within the bound."""
    first, second = builds
    same = first.weft == second.weft
    legend = [f'{build.label}: {build.weft}' for build in builds]
    if same:
        legend.append('the same file twice: ratios are what the measurement itself scatters')
    rows = [['workload', f'{first.label} ms', f'{second.label} ms', 'second / first', 'kernels'] +
            (['within'] if bound is not None else [])]
    for result in results:
        comparison = compare(result, builds)
        times = [
            report.milliseconds(statistics.summarize(result.samples[build.label]).median)
            if build.label in result.samples and not comparison.problem else '-'
            for build in builds
        ]
        pair = comparison.ratio
        rows.append([
            result.workload.name, *times,
            f'{pair.median:.4f} (+-{50 * pair.spread:.2f}%)' if pair else '-',
            result.extra.get('kernels of both builds', '-')
        ] + ([] if bound is None else ['yes' if comparison.is_within(bound) else 'NO']))
    problems = [
        f'{one.name}: {one.problem}' for one in (compare(result, builds) for result in results)
        if one.problem
    ]
    return '\n'.join([*legend, report.align(rows), *problems])


def outside(results, builds, bound):
    """Names of the workloads whose ratio is not within the bound, or has no figure."""
    found = [compare(result, builds) for result in results]
    return [one.name for one in found if not one.is_within(bound)]


def kernels_text(folders):
    """'equal' where both artifacts run the same kernels on the same plan, so that any difference in
    time is none of the kernels'; else how many texts differ."""
    def texts(folder):
        return {
            path.name: path.read_text(encoding='utf-8').split('\n\n', 1)[-1]
            for path in sorted(pathlib.Path(folder, 'kernels').glob('*.cu'))
        }

    first, second = map(texts, folders)
    differing = sum(first.get(name) != second.get(name) for name in first.keys() | second.keys())
    return f'{differing} differ' if differing else 'equal'
