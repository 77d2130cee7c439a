"""A whole artifact on a GPU equals the interpreter on the same inputs, dropout masks included:
`weft compile`, `weft-run`, `weft-interpret`. Inputs are written here, by kernel/RandomValues.h's
description. Skipped (77) where there is no GPU or no NVRTC.

  executor_test.py FOLDER_OF_COMMANDS [--keep FOLDER] [--artifacts FOLDER]   (--artifacts: run what
  was compiled elsewhere)"""
import argparse
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
SEED, STEP = 20210521, 3
ENCODER = {'b': 3, 'j': 24, 'i': 48, 'h': 3, 'p': 16, 'w': 16, 'u': 80}
CASES = {
    'encoder-even': [
        'paper-encoder', {'b': 2, 'j': 32, 'i': 64, 'h': 2, 'p': 32, 'w': 32, 'u': 128}, []
    ],
    'encoder-odd': ['paper-encoder', ENCODER, []],
    'encoder-no-library': ['paper-encoder', ENCODER, ['--no-library']],
    'encoder-unfused': ['paper-encoder', ENCODER, ['--fuse-rules', 'none']],
    'encoder-bf16': ['paper-encoder', ENCODER, ['--dtype', 'bf16']],
    'encoder-f32': ['paper-encoder', ENCODER, ['--dtype', 'f32']],
    # Q, K and V at once: on parallel paths of the graph from the second launch on.
    'encoder-concurrent': [
        'paper-encoder', ENCODER, ['--concurrent', 'on', '--stacking', 'separate']
    ],
    # The scores (3 heads) in chunks: dropout masks must be those of the whole.
    'encoder-chunks': ['paper-encoder', {**ENCODER, 'j': 64}, ['--max-memory', '80K']],
}
TOLERANCE = {'f16': 0.01, 'bf16': 0.06, 'f32': 1e-5}  # of values up to 10 after two layer norms
STORED = {
    'f16': ('F16', 2), 'bf16': ('BF16', 2), 'f32': ('F32', 4), 'i32': ('I32', 4), 'i1': ('BOOL', 1)
}
MASK = (1 << 64) - 1


def mix(x):
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def random_bytes(tensor, seed):
    """Logical row-major elements of one plan tensor."""
    name_hash = 0xCBF29CE484222325
    for byte in tensor['logical'].encode():
        name_hash = ((name_hash ^ byte) * 0x100000001B3) & MASK
    key = mix(seed ^ name_hash)
    out = bytearray()
    for n in range(math.prod(tensor['extents'])):
        bits = mix((key + (n + 1) * 0x9E3779B97F4A7C15) & MASK)
        low, high = tensor['range']
        if tensor['dtype'] in ('i32', 'i1'):
            out += (low + bits % (high - low + 1)).to_bytes(STORED[tensor['dtype']][1], 'little')
            continue
        value = (sum(bits >> shift & 0xFFFF for shift in (0, 16, 32, 48)) -
                 131070) / 65536 * math.sqrt(3) * tensor['scale']
        if tensor['dtype'] == 'bf16':
            word = struct.unpack('<I', struct.pack('<f', value))[0]
            out += ((word + 0x7FFF + (word >> 16 & 1)) >> 16).to_bytes(2, 'little')
        else:
            out += struct.pack('<e' if tensor['dtype'] == 'f16' else '<f', value)
    return bytes(out)


def write_inputs(plan, path):
    header, data, written = {}, bytearray(), set()
    for tensor in plan['tensors']:
        if tensor['role'] not in ('argument', 'parameter') or tensor['logical'] in written:
            continue
        written.add(tensor['logical'])
        stored = random_bytes(tensor, SEED)
        header[tensor['logical']] = {
            'dtype': STORED[tensor['dtype']][0], 'shape': tensor['extents'],
            'data_offsets': [len(data), len(data) + len(stored)]
        }
        data += stored
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, 'little') + text + data)


# Forward and backward: weight gradients beside the gradients of activations.
TRAINING = [
    'paper-encoder', '--train', '--concurrent', 'on',
    *[flag for name, extent in ENCODER.items() for flag in ('--dim', f'{name}={extent}')]
]

# Few rows past which weights stream: kernels that start while those end whose results they read.
# Another step is another result.
CHAIN = """
!x = tensor<8x1024xf16, #weft.axes<b, i>>
!h = tensor<8x2048xf16, #weft.axes<b, u>>
!w1 = tensor<2048x1024xf16, #weft.axes<u, i>>
!w2 = tensor<1024x2048xf16, #weft.axes<i, u>>
module {
  weft.graph @chain(%x: !x, %w1: !w1, %w2: !w2) -> !x {
    %kept = weft.dropout %x {p = 0.5, stream = 0} : !x
    %h = weft.contract "ui,bi->bu" %w1, %kept {scale = 0.03125} : !w1, !x -> !h
    %g = weft.contract "iu,bu->bi" %w2, %h {scale = 0.03125} : !w2, !h -> !x
    %l = weft.contract "ui,bi->bu" %w1, %g {scale = 0.03125} : !w1, !x -> !h
    %y = weft.contract "iu,bu->bi" %w2, %l {scale = 0.03125} : !w2, !h -> !x
    weft.return %y : !x
  }
}
"""


class Runner:
    def __init__(self, commands, work, artifacts):
        self.commands, self.work, self.artifacts = commands, work, artifacts

    def call(self, command, *arguments):
        done = subprocess.run([self.commands / command, *map(str, arguments)], capture_output=True,
                              text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def compile(self, case):
        model, dims, flags = CASES[case]
        folder = (self.artifacts or self.work) / case
        if not self.artifacts:
            code, text = self.call(
                'weft', 'compile', model, '-o', folder, *flags,
                *[flag for name, extent in dims.items() for flag in ('--dim', f'{name}={extent}')])
            assert code == 0, f'{case}: weft compile: exit {code}: {text}'
        return folder

    def prepare(self, case):
        folder = self.compile(case)
        plan = json.loads((folder / 'plan.json').read_text())
        write_inputs(plan, self.work / f'{case}.in')
        return folder, plan

    def check(self, case):
        """Runs one case; returns a failure's text or None."""
        folder, plan = self.prepare(case)
        files = ['--inputs', self.work / f'{case}.in']
        for launches in (1,
                         3):  # kernel by kernel, then as a graph; the last launch takes step STEP
            code, text = self.call('weft-run', folder, *files, '--outputs',
                                   self.work / f'{case}.out', '--seed', SEED, '--step',
                                   STEP - launches + 1, '--repeat', launches)
            if code:
                return f'{case}: weft-run: exit {code}: {text}'
            tolerance = TOLERANCE[plan['dtype']]
            code, text = self.call('weft-interpret', folder / 'graph.mlir', *files, '--expect',
                                   self.work / f'{case}.out', '--round', '--dropout-seed', SEED,
                                   '--dropout-step', STEP, '--absolute', tolerance, '--relative',
                                   tolerance)
            print(f'{case}, launch {launches}: {text.strip()}')
            if code:
                return f'{case}: launch {launches} differs from the interpreter'
            code, text = self.call('weft-interpret', folder / 'graph.mlir', *files, '--expect',
                                   self.work / f'{case}.out', '--round', '--dropout-seed', SEED,
                                   '--dropout-step', STEP + 1, '--absolute', tolerance,
                                   '--relative', tolerance)
            if code != 1:
                return f'{case}: another step of dropout agrees as well: nothing was compared'
        return None


def check_concurrent(runner):
    """Concurrent and one after the other the same kernels leave the same bits, launch after
    launch."""
    folder = (runner.artifacts or runner.work) / 'training-concurrent'
    if not runner.artifacts:
        code, text = runner.call('weft', 'compile', *TRAINING, '-o', folder)
        assert code == 0, f'training-concurrent: weft compile: exit {code}: {text}'
    results = {}
    for concurrent in ('off', 'on', 'on'):
        path = runner.work / f'training-{concurrent}.out'
        code, text = runner.call('weft-run', folder, '--concurrent', concurrent, '--outputs', path,
                                 '--seed', SEED, '--step', STEP, '--repeat', 5)
        if code:
            return f'training-concurrent, {concurrent}: weft-run: exit {code}: {text}'
        stored = path.read_bytes()
        if results and stored != results['off']:
            return 'training-concurrent: concurrent kernels leave other results'
        results[concurrent] = stored
    print(
        f'training-concurrent: {len(results["on"])} bytes of results, equal with and without '
        'concurrent kernels'
    )
    return None


def check_early(runner):
    """Kernels that start early, as they do one after the other and not concurrently, agree with the
    interpreter and leave the same bits."""
    folder = (runner.artifacts or runner.work) / 'chain'
    if not runner.artifacts:
        model = runner.work / 'chain.mlir'
        model.write_text(CHAIN)
        code, text = runner.call('weft', 'compile', model, '--device', 'h200', '--no-library', '-o',
                                 folder)
        assert code == 0, f'chain: weft compile: exit {code}: {text}'
    plan = json.loads((folder / 'plan.json').read_text())
    launched = [kernel for kernel in plan['kernels'] if kernel['source']]
    early = sum(kernel.get('startsEarly', False) for kernel in launched)
    assert early == len(launched) >= 4, f'chain: {early} of {len(launched)} kernels start early'
    write_inputs(plan, runner.work / 'chain.in')
    files, repeats, results = ['--inputs', runner.work / 'chain.in'], 50, {}
    for concurrent in ('on', 'off'):
        path = runner.work / f'chain-{concurrent}.out'
        code, text = runner.call('weft-run', folder, *files, '--concurrent', concurrent,
                                 '--outputs', path, '--seed', SEED, '--step',
                                 STEP - repeats + 1 + 100, '--repeat', repeats)
        if code == 3:
            print(f'chain: {text.strip()}')
            return None
        if code:
            return f'chain, concurrent {concurrent}: weft-run: exit {code}: {text}'
        results[concurrent] = path.read_bytes()
    if results['on'] != results['off']:
        return 'chain: the results of kernels that start early differ'
    code, text = runner.call('weft-interpret', folder / 'graph.mlir', *files, '--expect',
                             runner.work / 'chain-off.out', '--round', '--dropout-seed', SEED,
                             '--dropout-step', STEP + 100, '--absolute', TOLERANCE['f16'],
                             '--relative', TOLERANCE['f16'])
    print(f'chain: {early} kernels that start early, {repeats} launches: {text.strip()}')
    return 'chain: it differs from the interpreter' if code else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('commands', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--keep', type=pathlib.Path)
    parser.add_argument('--artifacts', type=pathlib.Path)
    flags = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = flags.keep or pathlib.Path(temporary)
        work.mkdir(exist_ok=True)
        runner = Runner(flags.commands, work, flags.artifacts)
        probe = runner.compile('encoder-odd')
        code, text = runner.call('weft-run', probe)
        if code == 3:
            print(f'skipped: {text.strip()}')
            return SKIPPED
        failures = list(
            filter(None, [*map(runner.check, CASES),
                          check_concurrent(runner),
                          check_early(runner)]))
    print('\n'.join(failures)
          or f'{len(CASES)} artifacts agree with the interpreter, one with itself, one with both')
    return 1 if failures else 0


sys.exit(main())
