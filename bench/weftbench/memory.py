"""Group `memory`: most device bytes in use during a forward call, parameters aside; input and
output counted for everyone."""
import torch

from . import layers, ours, rivals
from .report import Result, Workload

FITTED = 'weft --max-memory'
LAYERS = [layers.PAPER, layers.BERT_BASE, layers.BERT_LARGE]


def peak_bytes(call, x):
    """Of the allocator's live tensors beyond what was there before, plus the input."""
    call(x)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call(x)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before + x.numel() * x.element_size()


def bytes_in_use(artifact):
    """Of everything allocated for calls, input and output included, parameters not."""
    return artifact.device_bytes() - artifact.parameter_bytes() + artifact.external_bytes()


def within(settings, artifact, layer, batch, length, most):
    """The plan that `--max-memory` finds for as much memory as the rival takes. The dropout key (16
    bytes) is no part of a workspace."""
    limit = most - artifact.external_bytes() - 16
    return ours.compile_artifact(settings, f'{layer.name(batch, length)} within {most}',
                                 [*layer.compile_arguments(batch, length), '--max-memory', limit])


def run(settings):
    for layer in LAYERS:
        for batch, length in layers.SHAPES + [(1, 4096)]:
            name = 'memory: ' + layer.name(batch, length)
            if not settings.wants(name):
                continue
            result = Result(Workload(name))
            module = rivals.module_of(layer).to('cuda', torch.float16).train(layer.dropout > 0)
            x = torch.randn(batch, length, layer.hidden, device='cuda', dtype=torch.float16)
            bytes_of = {}
            for label, sdpa in (('eager unfused', False), ('eager + SDPA', True)):
                bytes_of[label] = peak_bytes(rivals.without_autograd(rivals.twin(module, sdpa)), x)

            def ours_bytes():
                made = ours.artifacts(settings, layer.name(batch, length),
                                      layer.compile_arguments(batch, length), result)
                for label, artifact in made.items():
                    bytes_of[label] = bytes_in_use(artifact)
                    if bytes_of[label] > bytes_of['eager + SDPA']:
                        fitted = within(settings, artifact, layer, batch, length,
                                        bytes_of['eager + SDPA'])
                        bytes_of[FITTED] = bytes_in_use(fitted)
                        result.extra[f'{FITTED} plan'] = fitted.summary()
                return []

            ours.guarded(result, ours_bytes)
            result.extra = {label: f'{count / 1e6:.1f} MB' for label, count in bytes_of.items()}
            for label in ('weft', FITTED):
                if label in bytes_of:
                    ratio = bytes_of[label] / bytes_of['eager + SDPA']
                    result.extra[f'{label} / (eager + SDPA)'] = f'{ratio:.3f}'
            yield result
            del module, x
            torch.cuda.empty_cache()
