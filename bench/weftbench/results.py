"""The lines of one run (bench/run --json FILE) as Markdown tables: PYTHONPATH=bench python3 -m
weftbench.results FILE. No packages."""
import json
import sys

OURS = 'weft'


def column_of(contender):
    """Several forms of one contender share a column, which shows the fastest: with and without
    autograd, copies of any kind."""
    if contender.startswith('copy'):
        return 'best copy'
    return contender.removesuffix(' no_grad')


def kind_of(line):
    """Workloads of one kind have one table: 'encoder', 'tile sweep', 'streams', 'softmax fp32'."""
    name = line['workload']
    if ': ' in name:
        return name.split(': ')[0]
    return {'attention': 'attention fp32, three kernels',
            'softmax': 'softmax fp32, one kernel'}.get(name.split(' ')[0], line.get('group', ''))


def milliseconds(value):
    return '-' if value is None else f'{value:.4f}' if value < 1 else f'{value:.3f}'


def markdown(rows):
    head, *body = rows
    lines = ['| ' + ' | '.join(head) + ' |', '|---' + '|---:' * (len(head) - 1) + '|']
    return '\n'.join(lines + ['| ' + ' | '.join(row) + ' |' for row in body])


def times(lines):
    """One row a workload: milliseconds by column, the best of ours against the best rival, and over
    the floor."""
    cells = []
    for line in lines:
        best = {}
        for name, figures in line['contenders'].items():
            column = column_of(name)
            best[column] = min(best.get(column, float('inf')), figures['ms'])
        cells.append(best)
    columns = sorted({column
                      for best in cells
                      for column in best}, key=lambda name:
                     (name.split(' ')[0] != OURS, name == 'best copy', name))
    is_ours = lambda name: name.split(' ')[0] == OURS
    rows = [['ms'] + columns + ['best rival / weft', 'weft / floor']]
    for line, best in zip(lines, cells):
        ours = min((ms for name, ms in best.items() if is_ours(name)), default=None)
        rival = min((ms for name, ms in best.items() if not is_ours(name) and name != 'best copy'),
                    default=None)
        rows.append([line['workload'].split(': ')[-1]] +
                    [milliseconds(best.get(column)) for column in columns] + [
                        f'{rival / ours:.2f}' if ours and rival else '-',
                        f'{ours / line["floorMs"]:.2f}' if ours and line['floorMs'] else '-'
                    ])
    return markdown(rows)


def extras(lines):
    """Workloads that are not timed: what they found."""
    columns = sorted({name
                      for line in lines
                      for name in line['extra'] if name != 'weft plan'}, key=lambda name:
                     (name != OURS, name))
    return markdown([[''] + columns] + [[line['workload'].split(': ')[-1]] +
                                        [line['extra'].get(column, '-') for column in columns]
                                        for line in lines])


def document(text):
    machine, kinds = '', {}
    for line in map(json.loads, text.splitlines()):
        if 'machine' in line:
            machine = line['machine']
        else:
            kinds.setdefault(kind_of(line), []).append(line)
    parts = [machine] if machine else []
    for kind, lines in kinds.items():
        parts.append(f'## {kind}\n' + (times(lines) if any(line['contenders']
                                                           for line in lines) else extras(lines)))
        protocols = sorted({line['protocol'] for line in lines if line['protocol']})
        if protocols:
            parts.append(f'Protocol of the first: {lines[0]["protocol"]}; {lines[0]["clocks"]}.')
        failures = [
            f'- {line["workload"]}: {name}: {reason}' for line in lines
            for name, reason in line['failures'].items()
        ]
        if failures:
            parts.append('No figure:\n' + '\n'.join(failures))
    return '\n\n'.join(parts) + '\n'


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as file:
        sys.stdout.write(document(file.read()))
