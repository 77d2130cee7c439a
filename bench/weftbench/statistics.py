"""Medians, spreads and ratios of samples. No packages: tested without a GPU.

A sample that is not a finite positive number is an error: a broken measurement never becomes a
figure."""
import math
from dataclasses import dataclass


class BadSample(ValueError):
    pass


@dataclass(frozen=True)
class Summary:
    """Of samples in any unit; spread is the width of the middle 80% over the median."""
    median: float
    p10: float
    p90: float
    n: int

    @property
    def spread(self):
        return (self.p90 - self.p10) / self.median


def percentile(ordered, fraction):
    """Linear interpolation between neighbours of sorted samples."""
    position = min(max(fraction, 0.0), 1.0) * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def summarize(samples):
    ordered = sorted(samples)
    if not ordered:
        raise BadSample('no samples')
    for sample in samples:
        if not (math.isfinite(sample) and sample > 0):
            raise BadSample(f'a measured time is {sample}')
    return Summary(percentile(ordered, 0.5), percentile(ordered, 0.1), percentile(ordered, 0.9),
                   len(ordered))


def ratio(theirs, ours):
    """Summary of theirs[i] / ours[i]: above 1 where ours is faster. The samples are those of the
    same rounds."""
    if len(theirs) != len(ours):
        raise BadSample(f'{len(theirs)} samples against {len(ours)}')
    summarize(theirs), summarize(ours)
    return summarize([a / b for a, b in zip(theirs, ours)])


def in_turn(contenders, turn):
    """The order of a round: every second one goes in reverse, so that of any two neither is always
    the first."""
    return contenders if turn % 2 == 0 else contenders[::-1]


def floor_seconds(bytes_moved, flop, bytes_per_second, flop_per_second):
    """The larger of the two times that no version can beat; None without both ceilings."""
    terms = []
    if bytes_moved and bytes_per_second:
        terms.append(bytes_moved / bytes_per_second)
    if flop and flop_per_second:
        terms.append(flop / flop_per_second)
    return max(terms) if terms else None
