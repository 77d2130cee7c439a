"""Group `table-a1`: every operator of Table A.1 by PyTorch eager against the kernels of our
artifact that compute it, one by one.

PyTorch runs what its eager layers run: one call an operator, inputs contiguous as its kernels like
them best, dropout and norms by the aten ops that autograd calls (masks and statistics kept for the
backward pass), the scale of the scores inside a product. Biases are timed apart, as the table has
them, and together with the product in front (addmm); where that is faster and our kernel holds
both, it counts. Both sides go around sets of operands that make twice the L2 between two uses."""
import json
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

from . import operator_table, ours, report, timing
from .norm import sets_for
from .report import Result, Workload

HIDDEN, FEED_FORWARD, HEADS, HEAD, PROBABILITY, EPSILON = 1024, 4096, 16, 64, 0.1, 1e-5
SIZES = [(8, 512), (96, 128)]
aten = torch.ops.aten


def torch_operators(b, l):
    """(operands of one set, call) by the table's row; and by row, the product that adds the next
    row's bias as well."""
    n, e, f, p = b * l, HIDDEN, FEED_FORWARD, PROBABILITY
    r = lambda *shape: torch.randn(*shape, device='cuda', dtype=torch.float16)
    mask = lambda *shape: torch.rand(*shape, device='cuda') >= p
    stats = lambda: torch.rand(n, 1, device='cuda')
    heads, scores = (b, HEADS, l, HEAD), (b, HEADS, l, l)
    keep = 1 / (1 - p)
    drop = lambda x: torch.native_dropout(x, p, True)
    undrop = lambda dy, m: aten.native_dropout_backward(dy, m, keep)
    norm = lambda x, g, o: torch.native_layer_norm(x, (e, ), g, o, EPSILON)
    norm_dw = lambda dy, x, m, s, g, o: aten.native_layer_norm_backward(
        dy, x, (e, ), m, s, g, o, [False, True, True])
    norm_dx = lambda dy, x, m, s, g, o: aten.native_layer_norm_backward(
        dy, x, (e, ), m, s, g, o, [True, False, False])
    norm_backward = lambda: (r(n, e), r(n, e), stats(), stats(), r(e), r(e))
    linear = lambda rows, columns: (lambda:
                                    (r(n, columns), r(rows, columns)), lambda x, w: x @ w.t())
    bias = lambda width: (lambda: (r(n, width), r(width)), torch.add)
    add = (lambda: (r(n, e), r(n, e)), torch.add)
    dropout = lambda width: (lambda: (r(n, width), ), drop)
    dropout_dx = lambda width: (lambda: (r(n, width), mask(n, width)), undrop)
    bias_dw = lambda width: (lambda: (r(n, width), ), lambda dy: dy.sum(0))
    dx = lambda rows, columns: (lambda: (r(n, rows), r(rows, columns)), torch.matmul)
    dw = lambda rows, columns: (lambda: (r(n, rows), r(n, columns)), lambda dy, x: dy.t() @ x)
    layer_norm = (lambda: (r(n, e), r(e), r(e)), norm)
    forward = [
        linear(3 * e, e),
        bias(3 * e), (lambda: (r(*heads), r(*heads)), lambda q, k: q @ k.transpose(-1, -2)),
        (lambda: (r(*scores), ), lambda s: drop(torch.softmax(s, -1))),
        (lambda: (r(*scores), r(*heads)), torch.matmul),
        linear(e, e),
        bias(e),
        dropout(e), add, layer_norm,
        linear(f, e),
        bias(f), (lambda: (r(n, f), ), torch.relu),
        dropout(f),
        linear(e, f),
        bias(e),
        dropout(e), add, layer_norm
    ]
    backward = [(norm_backward, norm_dw), (norm_backward, norm_dx),
                dropout_dx(e),
                dx(e, f),
                dw(e, f),
                bias_dw(e),
                dropout_dx(f),
                (lambda: (r(n, f), r(n, f)), lambda dy, y: aten.threshold_backward(dy, y, 0)),
                bias_dw(f),
                dx(f, e),
                dw(f, e), add, (norm_backward, norm_dw), (norm_backward, norm_dx),
                dropout_dx(e),
                bias_dw(e),
                dx(e, e),
                dw(e, e), (lambda: (r(*heads), r(*heads)), lambda dy, v: dy @ v.transpose(-1, -2)),
                (lambda: (r(*scores), r(*heads)), lambda y, dy: y.transpose(-1, -2) @ dy),
                (lambda: (r(*scores), mask(*scores), torch.softmax(r(*scores), -1)),
                 lambda dy, m, y: aten._softmax_backward_data(undrop(dy, m), y, -1, y.dtype)),
                (lambda: (r(*scores), r(*heads)), torch.matmul),
                (lambda: (r(*scores), r(*heads)), lambda ds, q: ds.transpose(-1, -2) @ q),
                dx(3 * e, e),
                dw(3 * e, e),
                bias_dw(3 * e), add]
    with_bias = lambda rows, columns: (lambda: (r(n, columns), r(rows, columns), r(rows)), F.linear)
    return forward + backward, {
        0: with_bias(3 * e, e), 5: with_bias(e, e), 10: with_bias(f, e), 14: with_bias(e, f)
    }


@dataclass
class TableResult(Result):
    """Printed as the table, not as one line a contender."""
    rows: list = field(default_factory=list)
    operators: list = field(default_factory=list)
    bytes_necessary: dict = field(default_factory=dict)
    peaks: operator_table.Peaks = None

    def times(self):
        by = lambda kind: {
            key: self.samples[name]
            for name, (what, key) in self.contenders.items()
            if what == kind and name in self.samples
        }
        return operator_table.Times(torch=by('torch'), with_bias=by('bias'), ours=by(report.OURS))

    def sums(self):
        """Of all operators that have a figure on both sides; '' without one."""
        sums = operator_table.totals(self.rows, self.operators, self.times())
        if not sums:
            return ''
        theirs, mine, count = sums
        return (f'{count} of {len(self.rows)} operators: torch '
                f'{operator_table.microseconds(theirs)} us, weft '
                f'{operator_table.microseconds(mine)} us, '
                f'weft is {report.statistics.ratio(theirs, mine).median:.3f}x')

    def table(self):
        text = f'{self.workload.name}: {self.workload.note}\n'
        text += operator_table.print_table(self.rows, self.operators, self.times(),
                                           self.bytes_necessary, self.peaks)
        said = self.sums()
        if said:
            text += f'\nsum of {said}'
        for name, reason in self.failures.items():
            text += f'\n{name}: no figure: {reason}'
        for name, value in self.extra.items():
            text += f'\n{name}: {value}'
        return f'{text}\n{self.protocol}\n{self.clocks}'

    contenders: dict = field(default_factory=dict)  # name -> (what, row or kernel)


def operand_sets(make):
    first = make()
    count = sets_for(sum(tensor.numel() * tensor.element_size() for tensor in first))
    return [first] + [make() for _ in range(count - 1)]


def torch_contender(name, make, call):
    sets = operand_sets(make)
    return timing.GraphContender(name, lambda s: call(*sets[s]), len(sets))


def peaks_of(settings):
    known = json.loads(ours.weft(settings, 'devices', '--json'))['devices']
    h200 = next(one for one in known if one['name'] == 'h200')
    return operator_table.Peaks(h200['tensorFlops']['f16'], h200['fmaFlops'], h200['peakBandwidth'])


def our_contenders(settings, result, arguments):
    """One a kernel, on separate buffers."""
    artifact = ours.compile_artifact(settings, result.workload.name, arguments)
    account = json.loads(ours.weft(settings, 'explain', artifact.folder, '--movement', '--json'))
    result.operators = account['operators']
    result.extra['weft plan'] = artifact.summary()
    result.extra['transposes and copies, in no row'] = ', '.join(
        sorted(set(artifact.launched()) - {k
                                           for one in result.operators
                                           for k in one['kernels']})) or 'none'
    explained = json.loads(ours.weft(settings, 'explain', artifact.folder, '--json'))['kernels']
    unverified = [
        kernel['name'] for kernel in explained
        if kernel['name'] in artifact.launched() and kernel['verification']['state'] != 'agrees'
    ]
    result.extra['kernels not verified on a GPU'] = ', '.join(unverified) or 'none'
    result.bytes_necessary = {
        kernel['name']: kernel['bytesNecessary']
        for kernel in artifact.plan['kernels']
    }
    found = []
    for kernel in artifact.launched():
        sets = [artifact.kernel_memory(kernel)]
        sets += [
            artifact.kernel_memory(kernel) for _ in range(
                sets_for(sum(t.numel() * t.element_size() for t in sets[0].values())) - 1)
        ]
        name = f'{report.OURS} {kernel}'
        result.contenders[name] = (report.OURS, kernel)
        found.append(
            timing.GraphContender(name, lambda s, k=kernel, m=sets: artifact.launch_kernel(k, m[s]),
                                  len(sets)))
    return found


def run(settings):
    for b, l in SIZES:
        name = f'table-a1 B={b} L={l}'
        if not settings.wants(name):
            continue
        result = TableResult(
            Workload(
                name, note=
                'fp16, operators alone, forward and backward; V100 then: speedup that the paper '
                'reports for its kernels'
            ), rows=operator_table.paper_rows(), peaks=peaks_of(settings))
        arguments = ['paper-encoder', '--dim', f'b={b}', '--dim', f'j={l}', '--train',
                     '--attention', 'unfused']
        contenders = ours.guarded(
            result, lambda: our_contenders(settings, result, arguments)) if settings.ours else []
        operators, with_bias = torch_operators(b, l)
        assert len(operators) == len(result.rows)
        for kind, entries in (('torch', dict(enumerate(operators))), ('bias', with_bias)):
            for row, (make, call) in entries.items():
                label = f'{row} {result.rows[row]["row"]}' + (' with bias'
                                                              if kind == 'bias' else '')
                result.contenders[label] = (kind, row)
                contenders.append(torch_contender(label, make, call))
        timing.measure(result, contenders, settings.rounds)
        result.record['sum'] = result.sums()
        yield result
        torch.cuda.empty_cache()
