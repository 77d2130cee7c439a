"""Group `attention`: softmax(q k) v alone, forward and training, by weft, cuDNN, flash-2 and FA4
on the same tensors [batch, length, heads, dim]."""
import math

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from . import attention_rows, attention_table, attention_training, norm, ours, reference, timing
from .attention_table import CUDNN, FA4, FLASH
from .report import Result

LIMIT = 2e-3  # of the relative error: fp16 between kernels, fp32 within


def visible(row, queries, device):
    """Which keys these queries see: [queries, keys]."""
    distance = torch.as_tensor(queries, device=device)[:, None] + (row.keys - row.length) - \
        torch.arange(row.keys, device=device)
    seen = torch.ones_like(distance, dtype=torch.bool)
    if row.causal:
        seen &= distance >= 0
    if row.window:
        seen &= distance < row.window
    return seen


def expected_rows(row, q, k, v, queries):
    """Results of some queries in fp64: [batch, queries, heads, dim]. One batch element at a
    time."""
    seen, found = visible(row, queries, q.device), []
    for one_q, one_k, one_v in zip(q[:, queries], k, v):
        grouped = one_q.double().unflatten(1, (row.key_heads, -1))
        score = torch.einsum('ngrp,kgp->grnk', grouped, one_k.double()) / math.sqrt(row.head_dim)
        probability = torch.softmax(score.masked_fill_(~seen, float('-inf')), -1)
        found.append(torch.einsum('grnk,kgw->ngrw', probability, one_v.double()).flatten(1, 2))
    return torch.stack(found)


class Checker:
    """Compares results with fp64 at sampled queries; everything else must be finite."""
    def __init__(self, row, tensors):
        self.queries = row.sampled_queries()
        self.expected = expected_rows(row, *tensors, self.queries)

    def __call__(self, out):
        """The relative error; raises WrongResult."""
        if not bool(torch.isfinite(out).all()):
            raise reference.WrongResult('a result is NaN or infinite')
        return reference.check(out[:, self.queries], self.expected, LIMIT)


def tensors_of(row, device='cuda'):
    """q, k and v, and a bias: random, but for the queries and keys that give adversarial scores."""
    shapes = [*row.shapes(), *([row.bias_shape()] if row.has_bias else [])]
    tensors = [torch.randn(shape, device=device, dtype=torch.float16) for shape in shapes]
    if row.cancels:
        for is_key, tensor in enumerate(tensors[:2]):
            plane = [[row.element(is_key, position, column) for column in range(row.head_dim)]
                     for position in range(tensor.shape[1])]
            tensor.copy_(torch.tensor(plane)[None, :, None])
    return tensors


def our_contenders(settings, result, row, sets, check):
    path = settings.folder / (ours.folder_name(row.name()) + '.mlir')
    if settings.ours:
        path.write_text(row.graph())
    contenders = []
    for label, artifact in ours.artifacts(settings, row.name(), [path], result).items():
        order = ['qkv'.index(name) for name in artifact.input_names()]
        inputs = [[tensors[index] for index in order] for tensors in sets]
        outputs = [artifact.poisoned_outputs() for _ in sets]
        for given, out in zip(inputs, outputs):
            artifact.launch(given, out)
        torch.cuda.synchronize()
        if not ours.admitted(result, label, artifact,
                             lambda: check(outputs[0][0].reshape(row.shapes()[0]))):
            continue
        contenders.append(
            timing.GraphContender(
                label, lambda s, a=artifact, i=inputs, o=outputs: a.launch(i[s], o[s]), len(sets)))
    return contenders


def by_sdpa(row, backend):
    """PyTorch's SDPA by one backend. It has no window; a bias is its mask."""
    def run(q, k, v, bias=None):
        heads_first = (tensor.transpose(1, 2) for tensor in (q, k, v))
        mask = None if bias is None else bias.expand(row.batch, *bias.shape)
        with sdpa_kernel(backend):
            out = F.scaled_dot_product_attention(*heads_first, attn_mask=mask,
                                                 is_causal=row.causal,
                                                 enable_gqa=bool(row.groups))
        return out.transpose(1, 2)

    return run


def flash_window(row):
    """The kernel behind SDPA's flash backend, which takes a window."""
    def run(q, k, v):
        return torch.ops.aten._flash_attention_forward(
            q, k, v, None, None, row.length, row.keys, 0.0, True, False,
            window_size_left=row.window - 1, window_size_right=0)[0]

    return run


def cudnn_window(row, tensors):
    """cuDNN by its frontend (package nvidia-cudnn-frontend): SDPA passes on no window."""
    import cudnn
    handle = cudnn.create_handle()
    graph = cudnn.pygraph(io_data_type=cudnn.data_type.HALF,
                          intermediate_data_type=cudnn.data_type.FLOAT,
                          compute_data_type=cudnn.data_type.FLOAT, handle=handle)
    heads_first = lambda tensor: tensor.transpose(1, 2)
    q, k, v = (graph.tensor_like(heads_first(tensor)) for tensor in tensors)
    # A left bound of N hides keys N positions before the query's, and all before these.
    out, _ = graph.sdpa(name='attention', q=q, k=k, v=v, generate_stats=False,
                        attn_scale=1 / math.sqrt(row.head_dim),
                        diagonal_alignment=cudnn.diagonal_alignment.TOP_LEFT,
                        diagonal_band_left_bound=row.window, diagonal_band_right_bound=0)
    memory = torch.empty_like(tensors[0])
    seen = heads_first(memory)
    out.set_output(True).set_dim(list(seen.shape)).set_stride(list(seen.stride()))
    graph.build([cudnn.heur_mode.A])
    workspace = torch.empty(max(1, graph.get_workspace_size()), device='cuda', dtype=torch.uint8)

    def run(*given):
        cudnn.set_stream(handle=handle, stream=torch.cuda.current_stream().cuda_stream)
        operands = {name: heads_first(tensor) for name, tensor in zip((q, k, v), given)}
        graph.execute({**operands, out: seen}, workspace, handle=handle)
        return memory

    return run


def fa4(row):
    """The package flash-attn-4; see workloads.md."""
    from flash_attn.cute import flash_attn_func
    masks = dict(window_size=(row.window - 1, 0)) if row.window else dict(causal=row.causal)

    def run(q, k, v):
        out = flash_attn_func(q, k, v, **masks)
        return out[0] if isinstance(out, tuple) else out

    return run


def rival_contenders(settings, result, row, sets, check):
    """Each rival whose result is right, by name; of the others the reason stands in the result."""
    if not settings.rivals:
        return []
    makers = {
        CUDNN: lambda: cudnn_window(row, sets[0]) if row.window else by_sdpa(
            row, SDPBackend.CUDNN_ATTENTION),
        FLASH: lambda: flash_window(row) if row.window else by_sdpa(
            row, SDPBackend.FLASH_ATTENTION), FA4: lambda: fa4(row)
    }
    contenders = []
    for name, make in makers.items():

        def checked(name=name, make=make):
            call = make()
            result.errors[name] = check(call(*sets[0]))
            return [timing.GraphContender(name, lambda s: call(*sets[s]), len(sets))]

        contenders += ours.guarded(result, checked, name)
    return contenders


def measure_training(settings, row, result):
    tensors = tensors_of(row)
    d_out = torch.randn_like(tensors[0])
    seen = visible(row, range(row.length), 'cuda')
    check = attention_training.Checker(row, seen, tensors, d_out)
    contenders = ours.guarded(
        result,
        lambda: attention_training.our_contenders(settings, result, row, tensors, d_out, check))
    contenders += attention_training.rival_contenders(settings, result, row, tensors, d_out, check,
                                                      by_sdpa, fa4)
    timing.measure(result, contenders, settings.rounds)


def run(settings):
    rows = attention_rows.ADVERSARIAL_ROWS if settings.adversarial else attention_rows.ROWS
    for row in rows:
        if not settings.wants(row.name()):
            continue
        torch.manual_seed(0)
        result = Result(row.workload())
        if row.trains:
            measure_training(settings, row, result)
            result.record['attention'] = attention_table.record(row, result)
            yield result
            torch.cuda.empty_cache()
            continue
        decodes = row.part == attention_rows.DECODE
        sets = [tensors_of(row)
                for _ in range(norm.sets_for(row.bytes_moved()) if decodes else 1)]
        with torch.no_grad():
            check = Checker(row, sets[0])
            contenders = ours.guarded(
                result, lambda: our_contenders(settings, result, row, sets, check))
            contenders += rival_contenders(settings, result, row, sets, check)
            if decodes:
                contenders += norm.copies(row.key_value_bytes(), len(sets))
            timing.measure(result, contenders, settings.rounds)
        result.record['attention'] = attention_table.record(row, result)
        yield result
        del check, contenders, sets
        torch.cuda.empty_cache()
