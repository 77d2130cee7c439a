"""Tables and drawings of bench/run bytetransformer: what weft predicts or a GPU measured beside the
seed's figures. The parts of a figure are tables (lists of rows) and sentences, in order. No
packages: tested without a GPU."""
from . import bytetransformer_rows as rows, figure_run, figure_svg
from .bytetransformer_rows import ATTENTION, CORES, FUSED, PACKED, PADDED, SEED, STEPS, VARIANTS
from .figure_run import MEASURED, PREDICTED, seconds_of
from .report import parts_text


class Figure:
    """The points of a figure that there are, in order: (point, entries)."""
    def __init__(self, name, points):
        self.name, self.points = name, points

    def source_of(self, entries, names):
        """Of a row: what its figures of ours are; measured only where all are."""
        found = {MEASURED if seconds_of(entries, name, MEASURED) else PREDICTED for name in names
                 if seconds_of(entries, name)}
        return ', '.join(sorted(found)) or '-'

    def table(self, names, more=()):
        """ms of each name; `more`: (heading, function of entries)."""
        lines = [['ms', *names, *(heading for heading, _ in more), 'source of ours']]
        ours = [name for name in names if name not in self.rivals()]
        for point, entries in self.points:
            times = [seconds_of(entries, name) for name in names]
            lines.append([
                point.name().split(' ', 1)[1],
                *('-' if one is None else f'{1e3 * one:.4f}' for one in times),
                *(text(entries) for _, text in more), self.source_of(entries, ours)
            ])
        return lines

    def rivals(self):
        """Names of what is not ours, in order."""
        own = {PADDED, PACKED, *CORES, *(step.name for step in STEPS),
               *(ATTENTION + step.name for step in STEPS)}
        names = [one['name'] for _, entries in self.points for one in entries if one['seconds']]
        return [name for name in dict.fromkeys(names) if name not in own]

    def gain(self, before, after):
        """Mean over the points that have both, both of one source."""
        return rows.mean_gain((self.same_source(entries, before, after)
                               for _, entries in self.points))

    @staticmethod
    def same_source(entries, before, after):
        for source in (MEASURED, PREDICTED):
            both = seconds_of(entries, before, source), seconds_of(entries, after, source)
            if all(both):
                return both
        return None, None


def of_batch(figure, batch):
    return Figure(figure.name, [(point, entries) for point, entries in figure.points
                                if point.work.batch == batch])


def batches_of(figure):
    return list(dict.fromkeys(point.work.batch for point, _ in figure.points))


def sourced(figure, text, *names):
    """A gain, marked where it is predicted."""
    is_predicted = any(seconds_of(entries, name) and not seconds_of(entries, name, MEASURED)
                       for _, entries in figure.points for name in names)
    return text + (' predicted' if is_predicted and text != '-' else '')


def step_gains(figure):
    """A line for each step: ours by batch, and the seed's."""
    batches = batches_of(figure)
    lines = [['gain over the step before', *(f'B={batch}' for batch in batches), 'seed (B=16)']]
    pairs = list(zip(STEPS, STEPS[1:]))
    for before, after in pairs:
        lines.append([after.name, *(step_gain(figure, batch, before.name, after.name)
                                    for batch in batches),
                      '-' if after.gain is None else f'{after.gain:+g}%'])
    lines.append([f'{FUSED} over {STEPS[0].name}',
                  *(step_gain(figure, batch, STEPS[0].name, FUSED) for batch in batches),
                  f'{rows.TOTAL_GAIN:+g}%'])
    return lines


def step_gain(figure, batch, before, after):
    own = of_batch(figure, batch)
    return sourced(own, rows.percent(own.gain(before, after)), before, after)


def fig14_parts(figure):
    names = [step.name for step in STEPS]
    said = [figure.table(names), '', step_gains(figure), '']
    said += [f'{step.name}: {" ".join(step.flags)}'
             + (f'; {step.apart}' if step.apart else '') for step in STEPS]
    return said


def attention_parts(figure):
    """Figs. 11 and 12: the fused attention of packed tokens against the seed's variants."""
    names = [ATTENTION + name for name in (*VARIANTS.values(), FUSED)]
    measured = [name for name in (*CORES, *figure.rivals())
                if any(seconds_of(entries, name, MEASURED) for _, entries in figure.points)]
    lines = [['fused is faster by', 'ours', 'seed']]
    for variant, step in VARIANTS.items():
        gain = rows.percent(figure.gain(ATTENTION + step, ATTENTION + FUSED))
        lines.append([f'than {variant}', sourced(figure, gain, ATTENTION + step),
                      f'+{SEED[figure.name][variant]}%'])
    eager = rows.percent(figure.gain('eager', 'fused, padded tensors'))
    lines.append(['than PyTorch', eager if eager != '-' else 'takes a GPU',
                  f'+{SEED[figure.name]["PyTorch"]}%'])
    return [figure.table(names + measured), '', lines,
            'attention: the sum of its kernels in the layers of Fig. 14; on padded tensors: '
            'measured by itself']


def fig13_parts(figure):
    ours, flash = ATTENTION + FUSED, 'flash varlen'
    lines = [['fused is faster than FlashAttention by', 'ours', 'seed']]
    for batch in batches_of(figure):
        gain = rows.percent(of_batch(figure, batch).gain('fused, padded tensors', flash))
        if gain != '-':  # flash over ours
            gain = rows.percent(of_batch(figure, batch).gain(flash, 'fused, padded tensors'))
        seed = {1: f'+{rows.SEED_FLASH["small batches"]}% (small batches)',
                16: f'{rows.SEED_FLASH["large batches"]}% (large batches)'}.get(batch, '-')
        lines.append([f'B={batch}', gain if gain != '-' else 'takes a GPU', seed])
    names = [name for name in (ours, *CORES, *figure.rivals())
             if any(seconds_of(entries, name) for _, entries in figure.points)]
    return [figure.table(names), '', lines]


def over_rivals(figure, seed):
    """Our packed plan over each rival that was measured, beside what the seed measured."""
    lines = [['packed is faster by', 'ours', 'seed']]
    padded = rows.percent(figure.gain(PADDED, PACKED))
    lines.append([f'than {PADDED}', sourced(figure, padded, PADDED, PACKED), '-'])
    for name in figure.rivals():
        lines.append([f'than {name}', rows.percent(figure.gain(name, PACKED)), '-'])
    return lines + [[f'than {name}', '-', f'+{value}%'] for name, value in seed.items()]


def less_at_least_mean(figure):
    """Fig. 15 (c): by how much less time the least mean takes than full sequences, at most; no
    sentence without such points."""
    shares, source = {}, ''
    for point, entries in figure.points:
        if point.work.batch == rows.SWEEP_BATCH:
            shares[point.work.length, point.work.mean] = entries
    found = []
    for (length, mean), entries in shares.items():
        full = shares.get((length, 1.0))
        if mean != rows.MEANS[0] or not full:
            continue
        for source in (MEASURED, PREDICTED):
            both = [seconds_of(one, PACKED, source) for one in (entries, full)]
            if all(both):
                found.append((100 * (1 - both[0] / both[1]), length, source))
                break
    if not found:
        return []
    less, length, source = max(found)
    return [f'mean 0.1 against 1.0, B={rows.SWEEP_BATCH}: packed takes up to {less:.0f}% less time '
            f'(L={length}), {source}; seed: up to {rows.SEED_LEAST_MEAN}%']


def end_to_end_parts(figure):
    names = [PADDED, PACKED, *figure.rivals()]
    said = [figure.table(names), '']
    if figure.name == 'fig15':
        at_mean = Figure(figure.name, [(point, entries) for point, entries in figure.points
                                       if point.work.mean == rows.MEAN])
        return [*said, 'at 60%, all batches:', over_rivals(at_mean, SEED['fig15']),
                *less_at_least_mean(figure)]
    for model in rows.MODELS:
        own = Figure(figure.name, [(point, entries) for point, entries in figure.points
                                   if point.work.preset == model.preset])
        if own.points:
            seed = SEED.get(f'fig16 {model.preset}', SEED['fig16'])
            said += [f'{model.preset}:', over_rivals(own, seed)]
    return said


PARTS = {
    'fig11': attention_parts, 'fig12': attention_parts, 'fig13': fig13_parts,
    'fig14': fig14_parts, 'fig15': end_to_end_parts, 'fig16': end_to_end_parts
}


def text_of(figure):
    return parts_text([f'{figure.name} of seed 001: {rows.TITLES[figure.name]}',
                       *PARTS[figure.name](figure)])


def page_parts(lines):
    """(title, parts) of every figure that the lines of --json have points of, for RESULTS.md."""
    return [(f'{name}: {rows.TITLES[name]}', PARTS[name](Figure(name, found)))
            for name, found in figure_run.points_of(lines, rows.points())]


def sentences(_):
    return ['seed: what the paper measured on an A100.']


def asked(_):
    """Nothing: rows of `varlen` are what must be reached."""
    return []


def lines_of(points, names, x_of):
    found = []
    for name in names:
        for source in (MEASURED, PREDICTED):
            drawn = [(x_of(point), 1e3 * seconds) for point, entries in points
                     if (seconds := seconds_of(entries, name, source))]
            if drawn:
                found.append(figure_svg.Line(name.removeprefix(ATTENTION), sorted(drawn),
                                             source == PREDICTED))
    return found


def names_of(figure):
    if figure.name == 'fig14':
        return [step.name for step in STEPS]
    if figure.name in ('fig15', 'fig16'):
        return [PADDED, PACKED, *figure.rivals()]
    variants = () if figure.name == 'fig13' else VARIANTS.values()
    return [*(ATTENTION + name for name in (*variants, FUSED)), *CORES, *figure.rivals()]


def drawn(figure):
    """A panel for each model and batch over the length; of Fig. 15 also over the mean."""
    panels, names = [], names_of(figure)
    for preset in dict.fromkeys(point.work.preset for point, _ in figure.points):
        for batch in batches_of(figure):
            points = [(point, entries) for point, entries in figure.points
                      if (point.work.preset, point.work.batch, point.work.mean) ==
                      (preset, batch, rows.MEAN)]
            if points:
                panels.append(figure_svg.Panel(f'{preset}, B={batch}', 'maximum length', 'ms',
                                               lines_of(points, names,
                                                        lambda point: point.work.length)))
    longest = max(point.work.length for point, _ in figure.points)
    sweep = [(point, entries) for point, entries in figure.points
             if (point.work.batch, point.work.length) == (rows.SWEEP_BATCH, longest)]
    if figure.name == 'fig15' and len(sweep) > 1:
        panels.append(figure_svg.Panel(f'B={rows.SWEEP_BATCH}, L={longest}',
                                       'mean length over the maximum', 'ms',
                                       lines_of(sweep, names, lambda point: point.work.mean)))
    return figure_svg.svg(f'{figure.name} of seed 001', panels, 3)
