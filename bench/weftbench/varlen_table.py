"""The table of group `varlen`, of a run's JSON lines. No packages: tested without a GPU."""
from .attention_table import geometric_mean, ms_of, times
from .report import align, milliseconds
from . import varlen_mixed_rows
from .varlen_rows import MEAN, in_sweep, sweep

PADDED, PACKED = 'weft padded', 'weft packed'
EAGER, COMPILED, FLASH, NESTED = ('padded SDPA', 'padded torch.compile', 'flash varlen + compile',
                                  'nested tensors')
OURS, RIVALS = [PADDED, PACKED], [EAGER, COMPILED, FLASH, NESTED]
MUST_MEAN, MUST_LEAST = 1.2, 0.97  # of the sweep: the best rival / weft, and of no row less
UNAVAILABLE = 'not available: '


def record(row, ours, ratios):
    """What the JSON line of a row has beside what every group's has. `ratios`: rival / the best of
    ours."""
    return {
        'ours': ours, 'ratios': ratios, 'must': row.must(), 'batch': row.batch,
        'length': row.length, 'mean': row.mean, 'tokens': row.tokens()
    }


def ratio(line):
    """The best rival / weft; None where one of both has no figure."""
    known = line['varlen']['ratios']
    return min((known[name] for name in RIVALS if name in known), default=None)


def rows_of(lines):
    rows = [['ms', *OURS, *RIVALS, 'best / weft', 'must', 'floor']]
    for line in lines:
        shown = lambda ms: milliseconds(ms / 1e3) if ms else '-'
        must = line['varlen']['must']
        rows.append([
            line['workload'], *(shown(ms_of(line, name)) for name in OURS + RIVALS),
            times(ratio(line)), f'{must:.2f}x' if must else '-', shown(line['floorMs'])
        ])
    return rows


def means(lines):
    """A sentence for each batch at the usual mean, and one for each other mean; a row without a
    figure leaves no geometric mean behind."""
    kinds = {}
    for line in lines:
        own = line['varlen']
        kind = f'B={own["batch"]}' if own['mean'] == MEAN else f'mean {100 * own["mean"]:g}%'
        kinds.setdefault(kind, []).append(line)
    said = []
    for kind, own in kinds.items():
        missing = [line['workload'] for line in own if ratio(line) is None]
        if missing:
            said.append(f'{kind}: no geometric mean: no figure of {", ".join(missing)}')
            continue
        said.append(f'{kind}, {len(own)} rows: geometric mean of the best rival / weft '
                    f'{geometric_mean(list(map(ratio, own))):.3f}x')
    return said


def sweep_sentence(lines):
    """Over the sweep's rows: one geometric mean, and the row that gains least. A mean of some rows
    says of how many."""
    own = [line for line in lines if in_sweep(*(line['varlen'][name]
                                                for name in ('batch', 'length', 'mean')))]
    if not own:
        return []
    known = [line for line in own if ratio(line) is not None]
    wanted = len(sweep())
    if not known:
        return [f'sweep: no figure of {len(own)} of its {wanted} rows']
    worst = min(known, key=ratio)
    met = lambda holds: 'met' if holds else 'missed'
    mean = geometric_mean(list(map(ratio, known)))
    part = '' if len(known) == wanted else f', {len(known)} of {wanted} rows (the others have ' \
        'no figure)'
    return [f'sweep{part}: geometric mean of the best rival / weft {mean:.3f}x (must '
            f'{MUST_MEAN:.2f}x: {met(mean >= MUST_MEAN)}); least {ratio(worst):.3f}x, '
            f'{worst["workload"]} (must {MUST_LEAST:.2f}x: {met(ratio(worst) >= MUST_LEAST)})']


def mixed_rows(lines):
    """Batches of random lengths through one artifact: what it loses against plans made for their
    lengths."""
    rows = [['ms', 'one artifact', 'plans of their lengths', 'plans', 'one / plans', 'worst',
             'all batches', 'captures']]
    for line in lines:
        own = line['varlen']
        shown = lambda ms: milliseconds(ms / 1e3) if ms else '-'
        one, each = (ms_of(line, name) for name in (varlen_mixed_rows.ONE, varlen_mixed_rows.EACH))
        worst = max(own['losses'].values(), default=None)
        captured = own['captures']
        rows.append([
            line['workload'], shown(one), shown(each), str(len(own['losses'])),
            f'{one / each:.3f}' if one and each else '-', f'{worst:.3f}' if worst else '-',
            milliseconds(own['allSeconds']) if own['allSeconds'] else '-',
            str(captured[-1] - captured[0]) if captured else '-'
        ])
    return rows


def mixed_sentences(lines):
    said = [f'{line["workload"]}: no plan of batch {index}: {reason}' for line in lines
            for index, reason in line['varlen']['missing'].items()]
    return [*said, f'one / plans: must {varlen_mixed_rows.MUST:.2f}, record '
            f'{varlen_mixed_rows.RECORD:.2f}; captures: of the one artifact while lengths changed']


def absent(lines):
    """Rivals without a figure, each reason once."""
    reasons = {}
    for line in lines:
        for name, reason in line['failures'].items():
            if name in RIVALS:
                reasons.setdefault((name, reason), []).append(line['workload'])
    return [f'{name}: {reason} ({len(rows)} rows)' for (name, reason), rows in reasons.items()]


def divided(lines):
    """(rows of lengths, batches of random lengths)"""
    mixed = [line for line in lines if line['varlen'].get('mixed')]
    return [line for line in lines if line not in mixed], mixed


def sentences(lines):
    own, mixed = divided(lines)
    said = [*means(own), *sweep_sentence(own), *absent(own)] if own else []
    return said + (mixed_sentences(mixed) if mixed else [])


def asked(lines):
    """(what, figure, least) of all that is asked for; None for a figure that is missing. Of batches
    through one artifact the plans' time over its own."""
    own, mixed = divided(lines)
    found = [(f'varlen {line["workload"]}', ratio(line), line['varlen']['must']) for line in own
             if line['varlen']['must']]
    swept = [ratio(line) for line in own if in_sweep(*(line['varlen'][name]
                                                       for name in ('batch', 'length', 'mean')))]
    if swept:
        of = f'{len(swept)} of {len(sweep())} rows'
        whole = None not in swept
        found += [(f'varlen sweep, {of}, geometric mean', geometric_mean(swept) if whole else None,
                   MUST_MEAN),
                  (f'varlen sweep, {of}, worst', min(swept) if whole else None, MUST_LEAST)]
    for line in mixed:
        one, each = (ms_of(line, name) for name in (varlen_mixed_rows.ONE, varlen_mixed_rows.EACH))
        found.append((f'varlen {line["workload"]}, plans of their lengths / one artifact',
                      each / one if one and each else None, 1 / varlen_mixed_rows.MUST))
    return found


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    own, mixed = divided(lines)
    parts = [align(rows_of(own))] if own else []
    parts += [align(mixed_rows(mixed))] if mixed else []
    return '\n'.join([*parts, *sentences(lines)])
