"""What weft predicts of softmax recomposition for GPUs that nobody here has, and the figures of its
source, "Recomposing Softmax Layers". No GPU, no packages.

A layer of each model in three forms: softmax whole, decomposed in kernels apart (SD), and
decomposed with neighbours fused as selection chooses (SDF). All are predicted without a library and
without chunks. Speedups are over the whole. Nothing is emitted for a T4, so that of it there are
times alone, by the library, which is all that has its tensor cores."""
import json
import pathlib
import re
import subprocess
import tempfile

MODELS = ('bert-large', 'gpt-neo-1.3b', 'bigbird-large', 'longformer-large')
MODEL_ONLY = ('t4',)
LENGTH = 4096
APART = ('--no-fuse', 'score,exponentials', '--no-fuse', 'probability,weighted')
FORMS = {'whole': ('unfused',), 'SD': ('decomposed', *APART), 'SDF': ('decomposed',)}
# Two softmaxes, whose ops have one name: numbers tell them apart, which are those of the graph
# without stacked projections.
UNSTACKED = ('longformer-large',)
# "Recomposing Softmax Layers", Fig. 2, Fig. 8 and section 5.1: softmax's share of a layer, and
# speedups over the whole softmax.
THEIRS = {
    ('bert-large', 'a100'): {'share': 36, 'SD': 0.94, 'SDF': 1.25},
    ('gpt-neo-1.3b', 'a100'): {'share': 18, 'SD': 0.99, 'SDF': 1.12},
    ('bigbird-large', 'a100'): {'share': 40, 'SD': 1.44, 'SDF': 1.57},
    ('longformer-large', 'a100'): {'share': 42, 'SD': 1.49, 'SDF': 1.65},
    ('bert-large', 'rtx3090'): {'SDF': 1.12},
    ('gpt-neo-1.3b', 'rtx3090'): {'SDF': 1.05},
    ('bigbird-large', 'rtx3090'): {'SDF': 1.32},
    ('longformer-large', 'rtx3090'): {'SDF': 1.36},
    ('bert-large', 't4'): {'SDF': 1.22},
    ('gpt-neo-1.3b', 't4'): {'SDF': 1.08},
    ('bigbird-large', 't4'): {'SDF': 1.77},
    ('longformer-large', 't4'): {'SDF': 1.87},
}


def run(weft, *arguments):
    """Standard output; none where weft says that it has no such plan. Raises RuntimeError for any
    other failure."""
    done = subprocess.run([weft, *arguments], capture_output=True, text=True, check=False)
    if done.returncode in (2, 3):
        return None
    if done.returncode != 0:
        raise RuntimeError(f'{weft} {" ".join(arguments)}: {done.stderr.strip()}')
    return done.stdout


def flags(weft, model, device, form, length, batch=1):
    kind, *more = FORMS[form]
    model_flags = [model, '--dim', f'b={batch}', '--dim', f'j={length}']
    if model in UNSTACKED:
        model_flags += ['--stacking', 'separate']
        more = numbers_apart(weft, model_flags) if more else more
    return [
        *model_flags, '--device', device, '--profile', 'none', '--chunks', '1', '--attention', kind,
        *more
    ]


def numbers_apart(weft, model_flags):
    """As APART, of every decomposed softmax of a graph by the numbers of its ops."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'graph.mlir'
        run(weft, 'compile', *model_flags, '--attention', 'decomposed', '--stop-after', 'attention',
            '-o', str(path))
        return separations(path.read_text())


def separations(graph):
    """--no-fuse of the contraction before every local softmax, and of the one behind its global
    scaling; ops are numbered from 0."""
    ops = re.findall(r'^ +(%.+?) = weft\.(\w+) (.*?) :', graph.split('weft.graph', 2)[1], re.M)
    writer = {name: index for index, (results, *_) in enumerate(ops)
              for name in re.findall(r'%\w+', results)}
    operands = lambda index: [writer[name] for name in re.findall(r'%\w+', ops[index][2])
                              if name in writer]

    def before(index):
        return index if ops[index][1] == 'contract' else before(operands(index)[0])

    pairs = []
    for index, (_, kind, _) in enumerate(ops):
        if kind == 'local_softmax':
            pairs.append((before(operands(index)[0]), index))
        elif kind == 'contract':
            pairs += [(one, index) for one in operands(index) if ops[one][1] == 'global_scaling']
    return [word for pair in pairs for word in ('--no-fuse', '{},{}'.format(*pair))]


def plan_of(weft, model, device, form, length, batch=1):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'plan'
        if run(weft, 'compile', *flags(weft, model, device, form, length, batch), '--no-library',
               '--stop-after', 'emit', '-o', str(path)) is None:
            return None
        return json.loads((path / 'plan.json').read_text())


def seconds_of(weft, model, device, form, length, batch=1):
    text = run(weft, 'select', *flags(weft, model, device, form, length, batch), '--json')
    return text and json.loads(text)['plan']['seconds']


def visible_share(weft, model, length, batch=1):
    """Of a layer's scores, those that its masks leave."""
    text = run(weft, 'explain', model, '--dim', f'b={batch}', '--dim', f'j={length}', '--movement',
               '--json')
    if text is None:
        raise RuntimeError(f'{weft} explain {model} --movement: no account')
    masks = [one for one in json.loads(text)['operators'] if one['kind'].startswith('mask')]
    largest = max(masks, key=lambda one: one['elementsRead'])
    return largest['elementsWritten'] / largest['elementsRead']


def is_softmax(kernel):
    return any('softmax' in op for op in kernel['ops']) and \
        not any('contract ' in op for op in kernel['ops'])


def score_tensors(plan):
    """Indices of tensors as large as the scores."""
    largest = max(tensor['bytes'] for tensor in plan['tensors'] if tensor['role'] == 'temporary')
    return {
        index
        for index, tensor in enumerate(plan['tensors'])
        if tensor['role'] == 'temporary' and 2 * tensor['bytes'] > largest
    }


def is_row_softmax(kernel):
    """Over whole rows, by itself."""
    return is_softmax(kernel) and not any('local_softmax' in op for op in kernel['ops'])


def sweeps(plan):
    """How often kernels read or write a tensor as large as the scores."""
    whole = score_tensors(plan)
    return sum(one in whole for kernel in launched(plan)
               for one in kernel['inputs'] + kernel['outputs'])


def launched(plan):
    return [kernel for kernel in plan['kernels'] if kernel['source'] or kernel['library']]


def statistics(plan):
    """Indices of the statistics of sub-vectors, m', d' and r'."""
    return {one for kernel in plan['kernels'] if any('reduce_subvectors' in op
                                                     for op in kernel['ops'])
            for one in kernel['inputs'] + kernel['outputs']}


def packed_seconds(plan, share):
    """Of a layer whose scores are stored in packed tiles, `share` of all, as the seed's sparse
    baseline has them; a model, no kernel of weft stores scores so. Every kernel that touches scores
    or their statistics takes `share` of what it takes of dense ones, but for a softmax over whole
    rows, which takes as long as a dense one: each of its thread blocks has the resources of the
    longest row, so that as many rows are under way as of dense scores, each with few bytes. That
    is the most that such a softmax can take."""
    packed = score_tensors(plan) | statistics(plan)
    return sum(kernel['seconds'] * (share if packed & {*kernel['inputs'], *kernel['outputs']}
                                    and not is_row_softmax(kernel) else 1)
               for kernel in launched(plan))


def statistics_bytes(plan):
    """Bytes of the statistics of sub-vectors by all kernels that touch them."""
    factors = statistics(plan)
    return sum(plan['tensors'][one]['bytes'] for kernel in launched(plan)
               for one in kernel['inputs'] + kernel['outputs'] if one in factors)


def traffic_of_softmax(plan):
    return sum(kernel['bytesMoved'] for kernel in launched(plan) if is_softmax(kernel))


def traffic(plan):
    return sum(kernel['bytesMoved'] for kernel in launched(plan))
