"""Group `contraction`: the products of the workloads, y[b,m,n] = sum over k of x[b,m,k] w[b,n,k],
against torch (cuBLASLt's heuristic)."""
import torch

from . import ours, reference, timing
from .report import Result, Workload

LIMIT = 2e-3
SHAPES = [(4096, 3072, 1024, 1), (4096, 1024, 1024, 1), (4096, 4096, 1024, 1),
          (4096, 1024, 4096, 1), (12288, 3072, 1024, 1), (12288, 1024, 1024, 1),
          (12288, 4096, 1024, 1), (12288, 1024, 4096, 1), (16384, 3072, 768, 1),
          (1024, 3072, 4096, 1), (1024, 4096, 4096, 1), (4096, 4096, 4096, 1),
          (8192, 8192, 8192, 1), (2640, 2304, 768, 1), (2640, 768, 768, 1), (2640, 3072, 768, 1),
          (2640, 768, 3072, 1), (512, 512, 64, 128), (512, 64, 512, 128), (4096, 4096, 64, 16),
          (4096, 64, 4096, 16), (300, 1000, 520, 1), (8, 4096, 4096, 1)]


def our_contenders(settings, result, values, x, w):
    contenders = []
    for label, artifact in ours.artifacts(settings, result.workload.name,
                                          [ours.workload_file(settings, 'contraction', values)],
                                          result).items():
        out = artifact.poisoned_outputs()
        artifact.launch([x, w], out)
        torch.cuda.synchronize()
        result.errors[label] = reference.check(out[0],
                                               x.double() @ w.double().transpose(-1, -2), LIMIT)
        contenders.append(
            timing.GraphContender(label, lambda _, a=artifact, o=out: a.launch([x, w], o)))
    return contenders


def run(settings):
    for m, n, k, batch in SHAPES:
        name = f'{m}x{n}x{k}' + (f' ({batch})' if batch > 1 else '')
        if not settings.wants(name):
            continue
        x = torch.randn(batch, m, k, device='cuda', dtype=torch.float16)
        w = torch.randn(batch, n, k, device='cuda', dtype=torch.float16)
        result = Result(
            Workload(name, 2 * batch * (m * k + n * k + m * n), 2 * batch * m * n * k,
                     'fp16, fp32 accumulation'))
        values = dict(m=m, n=n, k=k, batch=batch)
        contenders = ours.guarded(result, lambda: our_contenders(settings, result, values, x, w))
        product = (lambda _: torch.nn.functional.linear(x[0], w[0])) if batch == 1 else (
            lambda _: torch.bmm(x, w.transpose(1, 2)))
        if settings.rivals:
            contenders.append(timing.GraphContender('torch', product))
        timing.measure(result, contenders, settings.rounds)
        yield result
        del x, w, contenders
        torch.cuda.empty_cache()
