"""Group `seed004`'s slices of a batch at once (`--pipeline`) against the batch in one call and its
elements in turn, of a run's JSON lines. No packages: tested without a GPU."""
from .attention_plans import (AUTO, IN_TURN, ONE_CALL, PIPELINED_BATCH, PIPELINED_LENGTHS,
                              PIPELINES, pipeline_label, pipelined_name)
from .attention_table import ms_of, times
from .report import milliseconds

# Issue 27: of the faster one of one call and calls in turn over slices at once, by length.
MUST = {2048: 1.15}
# Of the fastest plan over the one that `--pipeline auto` took, both timed under their number of
# slices: exactly 1 where auto took the fastest, whatever two measurements of one plan differ by.
MUST_AUTO = 1.00
PLANS = [pipeline_label(slices) for slices in PIPELINES if slices != AUTO]
SLICED = [name for name in PLANS if name != ONE_CALL]
CHOSEN = pipeline_label(AUTO)


def is_pipelined(line):
    return line['workload'] in map(pipelined_name, PIPELINED_LENGTHS)


def length_of(line):
    return next(one for one in PIPELINED_LENGTHS if pipelined_name(one) == line['workload'])


def fastest(line, names):
    """None where one of them has no figure."""
    known = [ms_of(line, name) for name in names]
    return min(known) if all(known) else None


def ratio(line, names, others):
    """Time of the fastest of `names` over that of the fastest of `others`."""
    both = fastest(line, names), fastest(line, others)
    return both[0] / both[1] if all(both) else None


def gain(line):
    return ratio(line, [IN_TURN, ONE_CALL], SLICED)


def taken(line):
    """Which of the plans `--pipeline auto` took: the one of the same summary; None where none or
    more than one has it."""
    summary = lambda name: line['extra'].get(f'{name} plan')
    same = [name for name in PLANS if summary(name) and summary(name) == summary(CHOSEN)]
    return same[0] if len(same) == 1 else None


def auto_ratio(line):
    name = taken(line)
    return ratio(line, PLANS, [name]) if name else None


def rows_of(lines):
    names = [IN_TURN, ONE_CALL, *SLICED, CHOSEN]
    rows = [['ms', *names, 'without slices / with', 'must', 'auto took',
             'fastest plan / the one auto took']]
    for line in lines:
        must = MUST.get(length_of(line))
        rows.append([
            line['workload'].split(': ')[-1],
            *(milliseconds(ms / 1e3) if (ms := ms_of(line, name)) else '-' for name in names),
            times(gain(line)), f'{must:.2f}x' if must else '',
            taken(line) or '-',
            times(auto_ratio(line))
        ])
    return rows


def asked(lines):
    """(what, figure, least) of all that is asked for; None for a figure that is missing."""
    own = [line for line in lines if is_pipelined(line)]
    found = [(f'fp32 attention N={length} B={PIPELINED_BATCH}, slices at once against one call and '
              'calls in turn', gain(line), must) for length, must in MUST.items()
             for line in own if length_of(line) == length]
    ratios = [auto_ratio(line) for line in own]
    if ratios:
        found.append((f'fp32 attention B={PIPELINED_BATCH}, fastest number of slices / the one '
                      f'that --pipeline auto took, worst of {len(ratios)} of '
                      f'{len(PIPELINED_LENGTHS)} lengths',
                      None if None in ratios else min(ratios), MUST_AUTO))
    return found
