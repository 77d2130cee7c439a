"""Losses of the preset masked-token, trained in the interpreter with every value rounded to its
type: by the graph whose attention is fused, forward and backward, as by the graph as imported."""
import math
import pathlib
import random
import re
import subprocess
import unittest

import safetensors_file
from weft_command import CommandTest, WEFT

STEPS, RATE, DECAY, SCALE = 16, 3e-2, 0.01, 1024
BATCH, LENGTH, WORDS = 2, 16, 128
MODEL = [
    'masked-token', '--train', '--optimizer', 'adamw', '--dtype', 'f16', '--dropout', '0',
    *(word for extent in (f'b={BATCH}', f'j={LENGTH}', 'h=2', 'i=16', 'u=16', f'v={WORDS}')
      for word in ('--dim', extent))
]
DTYPES = {'f16': 'F16', 'f32': 'F32', 'i32': 'I32'}


def arguments_of(text):
    """(dtype, shape, initial value) by name, from a graph's first line and its aliases."""
    def typed(spelled):
        extents, dtype = re.match(r'tensor<((?:\d+x)*)(\w+)', spelled).groups()
        return DTYPES[dtype], [int(extent) for extent in extents.split('x') if extent]

    aliases = {name: typed(spelled)
               for name, spelled in re.findall(r'^(!\w+) = (tensor<.*)$', text, re.M)}
    header = re.search(r'weft\.graph @\w+\((.*)\) -> ', text).group(1)
    found = {}
    for name, spelled, initial in re.findall(
            r'%(\w+): (!\w+|tensor<\w+, #weft\.axes<>>)(?: \{weft\.initial = "([^"]*)"[^}]*\})?',
            header):
        found[name] = (*(aliases.get(spelled) or typed(spelled)), initial)
    return found


def initial(arguments):
    """A parameter and its master begin alike."""
    state = {}
    for name, (dtype, shape, how) in arguments.items():
        if not how:
            continue
        drawn = random.Random(name.removesuffix('_master'))
        value = {'zeros': lambda: 0.0, 'ones': lambda: 1.0,
                 'normal(0.02)': lambda: drawn.gauss(0, 0.02)}[how]
        state[name] = (dtype, shape, [value() for _ in range(math.prod(shape))])
    return state


def batch(step):
    """One of two, in turn: each word is that of two places before, but for the place."""
    drawn = random.Random(step % 2)
    tokens = []
    for _ in range(BATCH):
        first, second = drawn.randrange(8), drawn.randrange(8)
        tokens += [(first, second)[place % 2] + 8 * (place % 4) for place in range(LENGTH)]
    return {
        'tokens': ('I32', [BATCH, LENGTH], tokens),
        'labels': ('I32', [BATCH, LENGTH], tokens[1:] + tokens[:1]),
        'weights': ('F32', [BATCH, LENGTH], [1 / (BATCH * LENGTH)] * (BATCH * LENGTH))
    }


def scalars(step):
    corrected = math.sqrt(1 - 0.999**(step + 1))
    values = {
        'd_loss': SCALE, 'inverse_loss_scale': 1 / SCALE, 'keep': 1 - RATE * DECAY,
        'epsilon': 1e-8 * corrected, 'step_size': RATE * corrected / (1 - 0.9**(step + 1))
    }
    return {name: ('F32', [], [value]) for name, value in values.items()}


class Losses(CommandTest):
    def trained(self, name, text):
        """Losses, and the masters of all parameters after the last step."""
        graph = self.write(name + '.mlir', text)
        arguments = arguments_of(text)
        state, losses = initial(arguments), []
        out = self.folder / 'out.safetensors'
        for step in range(STEPS):
            given = {**state, **batch(step), **scalars(step)}
            self.assertEqual(set(given), set(arguments))
            inputs = safetensors_file.write(self.folder / 'in.safetensors', given)
            done = subprocess.run([
                pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs', inputs,
                '--outputs', out, '--round'
            ], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            outputs = safetensors_file.read(out)
            losses.append(outputs['loss'][2][0])
            state = {argument: outputs[argument + '_next'] for argument in state}
        return losses, {argument: values for argument, (_, _, values) in state.items()
                        if argument.endswith('_master')}

    def fused(self):
        """The variant whose attention is fused, and which computes nothing else again."""
        self.weft('compile', *MODEL, '--attention', 'fused', '--stop-after', 'attention', '-o',
                  'variants.mlir')
        variants = re.split(r'^// variant: (.*)\n', (self.folder / 'variants.mlir').read_text(),
                            flags=re.M)
        return dict(zip(variants[1::2], variants[2::2]))['fuse-attention']

    def test_fused_attention_trains_as_stored_scores_do(self):
        plain = self.weft('import', *MODEL).out
        fused = self.fused()
        self.assertEqual(plain.count('weft.online_softmax_contract'), 0)
        self.assertEqual(fused.count('weft.online_softmax_contract'), 4)  # of four layers
        self.assertEqual(fused.count('weft.softmax_from_log_sums'), 4)
        losses, masters = self.trained('plain', plain)
        found, own = self.trained('fused', fused)
        self.assertLess(losses[-1], 0.5 * losses[0])
        for step, (expected, loss) in enumerate(zip(losses, found)):
            self.assertLessEqual(abs(loss - expected), 0.01 * expected, f'step {step}')
        # AdamW moves every weight of a wrong gradient as far: weights of attention tell more.
        start = initial(arguments_of(plain))
        for name in (f'layer{layer}_{weight}_master' for layer in range(1, 5)
                     for weight in ('wq', 'wk', 'wv')):
            moved = math.dist(masters[name], start[name][2])
            self.assertGreater(moved, 0.1, name)
            self.assertLess(math.dist(masters[name], own[name]), 0.02 * moved, name)


if __name__ == '__main__':
    unittest.main()
