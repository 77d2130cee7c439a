"""Ours: artifacts compiled on this machine by `weft compile`, run through libweft_runtime.so on
torch's streams and tensors."""
import dataclasses
import json
import math
import pathlib
import re
import shutil
import subprocess

import torch

from . import artifact_graph, builds, library, reference
from .report import OURS

WORKLOADS = pathlib.Path(__file__).resolve().parents[1] / 'workloads'
DTYPES = {
    'f16': torch.float16, 'bf16': torch.bfloat16, 'f32': torch.float32, 'i32': torch.int32,
    'i1': torch.bool
}


class WeftFailed(RuntimeError):
    """A weft command that did not succeed: its message."""


def weft(settings, *arguments):
    try:
        done = subprocess.run([settings.weft, *map(str, arguments)], capture_output=True, text=True,
                              check=False, timeout=settings.compile_limit)
    except subprocess.TimeoutExpired as error:
        raise WeftFailed(
            f'weft {arguments[0]}: not done after {settings.compile_limit:g} s') from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith('weft: error: ')
                ] or done.stderr.strip().splitlines()[-1:] or ['nothing']
        raise WeftFailed(f'weft {arguments[0]}: exit {done.returncode}: {said[0][:300]}')
    return done.stdout


def workload_file(settings, name, values):
    """bench/workloads/NAME.mlir.in with its @holes@ filled, as a file of this run."""
    text = (WORKLOADS / f'{name}.mlir.in').read_text()
    for hole, value in values.items():
        text = text.replace(f'@{hole}@', str(value))
    assert '@' not in re.sub(r'weft\.graph @', '', text), f'unfilled hole in {name}.mlir.in'
    path = settings.folder / ('-'.join([name, *map(str, values.values())]) + '.mlir')
    path.write_text(text)
    return path


def folder_name(name):
    return re.sub(r'[^A-Za-z0-9]+', '-', name).strip('-')


def compile_artifact(settings, name, arguments, edit=None, entry=library.FORWARD):
    """Compiles (once a run) and loads. `edit(plan)` changes plan.json before the kernels are
    emitted again. A run that is killed in between, or an edit that is not taken, leaves no folder
    that a later run would find."""
    folder = settings.folder / folder_name(name)
    if not (folder / 'plan.json').exists():
        begun = folder.with_name(folder.name + '.begun') if edit else folder
        if edit:
            shutil.rmtree(begun, ignore_errors=True)
        weft(settings, 'compile', *arguments, *settings.weft_flags, '-o', begun)
        if edit:
            plan = json.loads((begun / 'plan.json').read_text())
            edit(plan)
            (begun / 'plan.json').write_text(json.dumps(plan, indent=2, sort_keys=True))
            weft(settings, 'emit', begun)
            begun.rename(folder)
    return Artifact(settings, folder, entry)


def artifacts(settings, name, arguments, result, entry=library.FORWARD):
    """What stands for weft in a workload, by label: one artifact, or one of each of two builds, of
    which one may be the other with more flags; empty where ours is not asked for."""
    if not settings.ours:
        return {}
    if settings.builds:
        found = {}
        for build in settings.builds:
            own = dataclasses.replace(settings, weft=build.weft, library=build.library,
                                      folder=settings.folder / folder_name(build.label),
                                      weft_flags=[*settings.weft_flags, *build.flags])
            own.folder.mkdir(parents=True, exist_ok=True)
            found[build.label] = compile_artifact(own, name, arguments, entry=entry)
            result.extra[f'{build.label} plan'] = found[build.label].summary()
        result.extra['kernels of both builds'] = builds.kernels_text(
            [artifact.folder for artifact in found.values()])
        return found
    artifact = compile_artifact(settings, name, arguments, entry=entry)
    result.extra['weft plan'] = artifact.summary()
    return {OURS: artifact}


def guarded(result, make, label=OURS):
    """What `make` returns; nothing, with the reason in the result, where it fails."""
    try:
        return make()
    except Exception as error:
        result.failures[label] = f'{type(error).__name__}: {error}'.split('\n')[0][:300]
        return []


def admitted(result, label, artifact, check):
    """Whether what an artifact computed is right. Then the result has the error that `check`
    returns, if it returns one, and the workspace; else why it is wrong."""
    try:
        error = check()
    except reference.WrongResult as wrong:
        result.failures[label] = str(wrong)
        return False
    if error is not None:
        result.errors[label] = error
    workspace = artifact.device_bytes() - artifact.parameter_bytes()
    result.extra[f'{label} workspace'] = f'{workspace / 1e6:.1f} MB'
    return True


class Artifact:
    """A loaded artifact. Launches go to torch's current stream, and can be captured there."""
    def __init__(self, settings, folder, entry=library.FORWARD):
        self.folder = folder
        self.plan = json.loads((folder / 'plan.json').read_text())
        self.handle = library.load(settings.library).open(folder, entry)
        self.inputs, self.outputs = self.handle.tensors(library.INPUT), self.handle.tensors(
            library.OUTPUT)

    def input_names(self):
        return [tensor['name'] for tensor in self.inputs]

    def gradients(self):
        """By output: the argument it is the gradient of; '' for results of the layer itself."""
        by_result = artifact_graph.gradients_by_result((self.folder / 'graph.mlir').read_text())
        return [artifact_graph.gradient_of(by_result, tensor['name']) for tensor in self.outputs]

    def summary(self):
        kernels = [
            kernel for kernel in self.plan['kernels'] if kernel['source'] or kernel.get('library')
        ]
        return (
            f'{len(kernels)} kernels, predicted {1e3 * self.plan["predictedSeconds"]:.4f} ms '
            f'({self.plan["costModel"]}), '
            f'variant {self.plan["variant"]}')

    def set_parameters(self, tensors):
        """By name; logical row-major, in the graph's shapes."""
        given = {}
        for parameter in self.handle.tensors(library.PARAMETER):
            name = parameter['name']
            given[name] = tensors[name].contiguous()
            if list(given[name].shape) != parameter['extents'] or given[name].dtype != DTYPES[
                    parameter['dtype']]:
                raise ValueError(
                    f'{name}: {list(given[name].shape)} {given[name].dtype}, the graph has '
                    f'{parameter}'
                )
        torch.cuda.synchronize()  # the copies below do not wait for torch's streams
        for name, tensor in given.items():
            self.handle.set_parameter(name, tensor)

    def set_dropout_key(self, seed, step):
        self.handle.set_dropout_key(seed, step)

    def poisoned_outputs(self):
        """Fresh results full of NaN, seen in logical order."""
        found = []
        for tensor in self.outputs:
            memory = torch.full([tensor['extents'][axis] for axis in tensor['order']], float('nan'),
                                dtype=DTYPES[tensor['dtype']], device='cuda')
            found.append(
                memory.permute(
                    [tensor['order'].index(axis) for axis in range(len(tensor['order']))]))
        return found

    def launch(self, inputs, outputs):
        """Inputs by the artifact's order; contiguous, as plans have them unless compiled with
        --free."""
        self.handle.launch([tensor.data_ptr() for tensor in [*inputs, *outputs]],
                           torch.cuda.current_stream().cuda_stream)

    def launched(self):
        """Names of the kernels that run: views do not."""
        return [
            kernel['name'] for kernel in self.plan['kernels']
            if kernel['source'] or kernel.get('library')
        ]

    def kernel_memory(self, name):
        """Fresh random memory for every buffer that holds an operand or a result of a kernel."""
        kernel = next(one for one in self.plan['kernels'] if one['name'] == name)
        used = {
            self.plan['tensors'][index]['buffer']
            for index in kernel['inputs'] + kernel['outputs']
        }
        sizes = dict.fromkeys(sorted(used), 0)
        for tensor in self.plan['tensors']:
            if tensor['buffer'] in sizes:
                end = tensor['offset'] * DTYPES[tensor['dtype']].itemsize + tensor['bytes']
                sizes[tensor['buffer']] = max(sizes[tensor['buffer']], end)
        return {
            buffer: torch.randn(-(-size // 2), device='cuda', dtype=torch.float16)
            for buffer, size in sizes.items()
        }

    def launch_kernel(self, name, memory):
        self.handle.launch_kernel(name,
                                  {buffer: tensor.data_ptr()
                                   for buffer, tensor in memory.items()},
                                  torch.cuda.current_stream().cuda_stream)

    def device_bytes(self):
        return self.handle.device_bytes()

    def parameter_bytes(self):
        """Of the buffers that hold parameters; several parameters may share one."""
        ends = {}
        for tensor in self.plan['tensors']:
            if tensor['role'] == 'parameter':
                end = tensor['offset'] * DTYPES[tensor['dtype']].itemsize + tensor['bytes']
                ends[tensor['buffer']] = max(ends.get(tensor['buffer'], 0), end)
        return sum(ends.values())

    def external_bytes(self):
        """Inputs and outputs that the caller holds."""
        return sum(
            math.prod(tensor['extents']) * DTYPES[tensor['dtype']].itemsize
            for tensor in [*self.inputs, *self.outputs])
