"""The table of group `sparse`, of a run's JSON lines. No packages: tested without a GPU."""
from . import sparse_rows
from .attention_table import geometric_mean, ms_of, times
from .report import align, milliseconds

# FlexAttention by name: the mask's block, and the back end where it is not PyTorch's choice.
FLEX = {
    'Flex 64': (64, None), 'Flex 128': (128, None), 'Flex 256': (256, None),
    'Flex 128 flash': (128, 'FLASH')
}
SDPA, EAGER = 'SDPA', 'eager'  # under the table as a mask of every score
RIVALS = [*FLEX, SDPA, EAGER]


def record(row, ours, ratios):
    """What the JSON line of a row has beside what every group's has. `ratios`: rival / weft."""
    random = row.pattern == sparse_rows.RANDOM
    must = None if random else sparse_rows.MUST_NAMED[row.batch]
    return {'ours': ours, 'ratios': ratios, 'must': must, 'random': random, 'trains': row.trains}


def ratio(line):
    """The best rival / weft; None where one of both has no figure."""
    known = line['sparse']['ratios']
    return min((known[name] for name in RIVALS if name in known), default=None)


def rows_of(lines):
    rows = [['ms', 'weft', *RIVALS, 'best / weft', 'must', 'floor']]
    for line in lines:
        shown = lambda ms: milliseconds(ms / 1e3) if ms else '-'
        must = line['sparse']['must']
        rows.append([
            line['workload'], shown(ms_of(line, line['sparse']['ours'])),
            *(shown(ms_of(line, name)) for name in RIVALS), times(ratio(line)),
            f'{must:.2f}x' if must else '-', shown(line['floorMs'])
        ])
    return rows


def means(lines):
    """A sentence for the random rows of one kind; a row without a figure leaves no mean behind."""
    said = []
    for trains, must in sparse_rows.MUST_RANDOM.items():
        own = [line for line in lines
               if line['sparse']['random'] and line['sparse']['trains'] == trains]
        if not own:
            continue
        kind = 'random, forward+backward' if trains else 'random, forward'
        missing = [line['workload'] for line in own if ratio(line) is None]
        if missing:
            said.append(f'{kind}: no geometric mean: no figure of {", ".join(missing)}')
            continue
        said.append(f'{kind}, {len(own)} rows: geometric mean of the best rival / weft '
                    f'{geometric_mean(list(map(ratio, own))):.3f}x (must: {must:.2f}x)')
    return said


def sentences(lines):
    return means(lines)


def asked(lines):
    """(what, figure, least) of all that is asked for; None for a figure that is missing."""
    found = [(f'sparse {line["workload"]}', ratio(line), line['sparse']['must']) for line in lines
             if line['sparse']['must']]
    for trains, must in sparse_rows.MUST_RANDOM.items():
        ratios = [ratio(line) for line in lines
                  if line['sparse']['random'] and line['sparse']['trains'] == trains]
        if ratios:
            part = 'forward and backward' if trains else 'forward'
            found.append((f'sparse, random tables, {part}, geometric mean of {len(ratios)} rows',
                          None if None in ratios else geometric_mean(ratios), must))
    return found


def text(lines):
    """`lines`: of this group, as report.json_line writes them."""
    return '\n'.join([align(rows_of(lines)), *sentences(lines)]) if lines else ''
