"""Training steps of the preset masked-token, evaluated by weft-interpret from the graph that `weft
compile --train --optimizer adamw` starts from, against the same model trained by JAX
(masked_token.py): equal weights, equal batches, 200 losses.

WEFT_BIN names the folder of weft and weft-interpret; WEFT_TEXT the text. Exits with 77 (skipped)
where there is no JAX."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

try:
    import jax  # noqa: F401
    import numpy as np
except ImportError as error:
    print(f'skipped: {error}; tools/install-dependencies installs it into .venv')
    sys.exit(77)

import masked_token
from gradients_test import run, write_safetensors
from graph_in_jax import Graph

BIN = pathlib.Path(os.environ.get('WEFT_BIN', 'build/dev/bin')).resolve()
TEXT = pathlib.Path(os.environ.get('WEFT_TEXT', 'runtime/text/documentation.txt')).read_bytes()
STEPS = int(os.environ.get('WEFT_STEPS', '200'))
SEED, SEQUENCES, LENGTH, RATE, DECAY = 3, 2, 8, 1e-2, 0.01
DIMS = [
    f'{name}={extent}'
    for name, extent in {'b': SEQUENCES, 'j': LENGTH, 'h': 2, 'i': 8, 'u': 12, 'v': 128}.items()
]


def initial(graph):
    """As runtime/train/TrainingState.h has it."""
    values = {}
    for name, type_ in graph.arguments.items():
        last = name.split('_')[-1]
        if name in ('tokens', 'labels', 'weights', 'd_loss', 'keep', 'step_size', 'epsilon'):
            continue
        if last in ('mean', 'square') or last.startswith('b'):
            values[name] = np.zeros(type_.shape, np.float32)
        elif last.startswith('gamma'):
            values[name] = np.ones(type_.shape, np.float32)
        else:
            values[name] = masked_token.normal(SEED, name, type_.shape, 0.02)
    return values


class Training(unittest.TestCase):
    def losses(self, folder, dropout, steps):
        """Of the interpreter, and the weights at the start."""
        text = run(BIN / 'weft', 'import', 'masked-token', '--dtype', 'f32', '--dropout', dropout,
                   '--train', '--optimizer', 'adamw',
                   *(flag for dim in DIMS for flag in ('--dim', dim)))
        (folder / 'step.mlir').write_text(text)
        graph = Graph(text)
        start = state = initial(graph)
        losses = []
        for step in range(steps):
            tokens, labels, weights = masked_token.batch(TEXT, SEED, step, SEQUENCES, LENGTH, 128)
            corrected = np.sqrt(1 - 0.999**(step + 1))
            inputs = {name: ('f32', value) for name, value in state.items()}
            inputs |= {
                'tokens': ('i32', tokens), 'labels': ('i32', labels), 'weights': ('f32', weights),
                'd_loss': ('f32', np.float32(1)), 'keep': ('f32', np.float32(1 - RATE * DECAY)),
                'epsilon': ('f32', np.float32(1e-8 * corrected)),
                'step_size': ('f32', np.float32(RATE * corrected / (1 - 0.9**(step + 1))))
            }
            write_safetensors(folder / 'inputs', inputs)
            run(BIN / 'weft-interpret', folder / 'step.mlir', '--inputs', folder / 'inputs',
                '--outputs', folder / 'outputs', '--dropout-seed', SEED, '--dropout-step', step)
            outputs = masked_token.read_safetensors(folder / 'outputs')
            losses.append(float(outputs['loss']))
            state = {name: outputs[name + '_next'] for name in state}
        return losses, start

    def test_without_dropout_as_jax(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, start = self.losses(pathlib.Path(folder), 0, STEPS)
        theirs = masked_token.train(start, TEXT, SEED, STEPS, SEQUENCES, LENGTH, RATE, DECAY)
        difference = masked_token.compare(ours, theirs)
        print(
            f'{STEPS} steps: loss {theirs[0]:.4f} to {np.mean(theirs[-20:]):.4f}, largest '
            f'relative difference {difference:.2e}'
        )
        self.assertLess(difference, 0.01)
        if STEPS >= 100:
            self.assertLess(np.mean(ours[-20:]), 0.8 * ours[0])

    def test_falls_with_dropout(self):
        steps = min(STEPS, 60)
        with tempfile.TemporaryDirectory() as folder:
            ours, _ = self.losses(pathlib.Path(folder), 0.1, steps)
        self.assertTrue(np.all(np.isfinite(ours)))
        self.assertLess(np.mean(ours[-10:]), 0.95 * np.mean(ours[:3]))


if __name__ == '__main__':
    unittest.main()
