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


BROUGHT = ('tokens', 'labels', 'weights', 'd_loss', 'inverse_loss_scale', 'keep', 'step_size',
           'epsilon')


def initial(graph):
    """As runtime/train/TrainingState.h has it."""
    values = {}
    for name, type_ in graph.arguments.items():
        parameter = name.removesuffix('_master')
        last = parameter.split('_')[-1]
        if name in BROUGHT:
            continue
        if last in ('mean', 'square') or last.startswith('b'):
            values[name] = np.zeros(type_.shape, np.float32)
        elif last.startswith('gamma'):
            values[name] = np.ones(type_.shape, np.float32)
        else:
            values[name] = masked_token.normal(SEED, parameter, type_.shape, 0.02)
        if type_.dtype == 'f16':
            values[name] = values[name].astype(np.float16)
    return values


def imported(dtype, dropout, *more):
    return run(BIN / 'weft', 'import', 'masked-token', '--dtype', dtype, '--dropout', dropout,
               '--train', *more, *(flag for dim in DIMS for flag in ('--dim', dim)))


def scalars(step, rate, scale):
    corrected = np.sqrt(1 - 0.999**(step + 1))
    return {
        'd_loss': scale, 'inverse_loss_scale': 1 / scale, 'keep': 1 - rate * DECAY,
        'epsilon': 1e-8 * corrected, 'step_size': rate * corrected / (1 - 0.9**(step + 1))
    }


class Training(unittest.TestCase):
    def outputs(self, folder, graph, state, step, values):
        """Of the graph in `folder`, whose arguments these are."""
        tokens, labels, weights = masked_token.batch(TEXT, SEED, step, SEQUENCES, LENGTH, 128)
        values = state | values | {'tokens': tokens, 'labels': labels, 'weights': weights}
        write_safetensors(folder / 'inputs',
                          {name: (type_.dtype, values[name])
                           for name, type_ in graph.arguments.items()})
        rounds = ['--round'] if any(t.dtype == 'f16' for t in graph.arguments.values()) else []
        run(BIN / 'weft-interpret', folder / 'step.mlir', '--inputs', folder / 'inputs',
            '--outputs', folder / 'outputs', '--dropout-seed', SEED, '--dropout-step', step,
            *rounds)
        return masked_token.read_safetensors(folder / 'outputs')

    def losses(self, folder, dropout, steps, dtype='f32', rate=RATE, scale=1):
        """Of the interpreter, the weights at the start and those at the end."""
        text = imported(dtype, dropout, '--optimizer', 'adamw')
        (folder / 'step.mlir').write_text(text)
        graph = Graph(text)
        start = state = initial(graph)
        losses = []
        for step in range(steps):
            outputs = self.outputs(folder, graph, state, step, scalars(step, rate, scale))
            losses.append(float(outputs['loss']))
            state = {name: outputs[name + '_next'] for name in state}
        return losses, start, state

    def test_without_dropout_as_jax(self):
        with tempfile.TemporaryDirectory() as folder:
            ours, start, _ = self.losses(pathlib.Path(folder), 0, STEPS)
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
            ours, _, _ = self.losses(pathlib.Path(folder), 0.1, steps)
        self.assertTrue(np.all(np.isfinite(ours)))
        self.assertLess(np.mean(ours[-10:]), 0.95 * np.mean(ours[:3]))

    def test_halves_are_trained_as_their_masters_are_in_jax(self):
        steps = min(STEPS, 40)
        with tempfile.TemporaryDirectory() as folder:
            ours, start, end = self.losses(pathlib.Path(folder), 0, steps, 'f16', scale=1024)
        masters = {name.removesuffix('_master'): value
                   for name, value in start.items() if name.endswith('_master')}
        theirs = masked_token.train(masters, TEXT, SEED, steps, SEQUENCES, LENGTH, RATE, DECAY)
        self.assertLess(masked_token.compare(ours, theirs), 0.02)
        for name in masters:
            self.assertEqual(start[name].dtype, np.float16)
            np.testing.assert_array_equal(end[name], end[name + '_master'].astype(np.float16))

    def test_steps_below_half_a_unit_of_a_parameter_are_kept(self):
        """Between 1 and 2 the last bit of f16 is 2^-10; a step of 1e-4 changes no f16 there."""
        with tempfile.TemporaryDirectory() as folder:
            folder, rate = pathlib.Path(folder), 1e-4
            _, _, once = self.losses(folder, 0, 1, 'f16', rate, scale=1024)
            _, _, often = self.losses(folder, 0, 12, 'f16', rate, scale=1024)
        gammas = [name for name in once if name.split('_')[-1].startswith('gamma')]
        self.assertTrue(gammas)
        for name in gammas:
            self.assertTrue(np.all(once[name] == 1))
            self.assertTrue(np.all(once[name + '_master'] != 1))
            self.assertTrue(np.any(often[name] != 1))

    def test_one_number_says_whether_gradients_overflow(self):
        """It is a sum over what updates read: scaled where rows are summed, else unscaled."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            text = imported('f16', 0, '--optimizer', 'adamw')
            (folder / 'step.mlir').write_text(text)
            graph = Graph(text)
            state = initial(graph)
            plain, large, overflowing = [
                self.outputs(folder, graph, state, 0, scalars(0, RATE, scale))
                for scale in (1, 1024, 2.0**24)]
        for outputs in (plain, large):
            self.assertTrue(np.isfinite(outputs['gradient_check']))
            self.assertTrue(all(np.all(np.isfinite(outputs[name + '_next'])) for name in state))
        self.assertNotEqual(plain['gradient_check'], 0)
        self.assertFalse(np.isfinite(overflowing['gradient_check']))
        self.assertEqual(overflowing['loss'], plain['loss'])
        means = [name for name in state if name.endswith('_mean')]
        self.assertFalse(all(np.all(np.isfinite(overflowing[name + '_next'])) for name in means))

    def test_an_update_is_that_of_the_gradients(self):
        """Of the graph without an optimizer, by AdamW in numpy; a scale of the loss changes what
        f16 rounds, and no more."""
        with tempfile.TemporaryDirectory() as folder:
            folder, step = pathlib.Path(folder), 2
            both = imported('f16', 0)
            updating = imported('f16', 0, '--optimizer', 'adamw')
            graph, state = Graph(updating), initial(Graph(updating))
            for name, value in state.items():
                if name.endswith(('_mean', '_square')):
                    state[name] = np.abs(masked_token.normal(SEED, name, value.shape, 1e-3))
            (folder / 'step.mlir').write_text(both)
            gradients = self.outputs(folder, Graph(both), state, step, {})
            (folder / 'step.mlir').write_text(updating)
            updates = [self.outputs(folder, graph, state, step, scalars(step, RATE, scale))
                       for scale in (1, 1024)]
        given, names = scalars(step, RATE, 1), [n for n in state if n + '_master' in state]
        for name in names:
            gradient = gradients['d_' + name].astype(np.float64)
            mean = 0.9 * state[name + '_mean'] + 0.1 * gradient
            square = 0.999 * state[name + '_square'] + 0.001 * gradient**2
            master = given['keep'] * state[name + '_master'] - given['step_size'] * mean / (
                np.sqrt(square) + given['epsilon'])
            for outputs, tolerance in zip(updates, (1e-6, 2e-3)):
                for what, expected in (('mean', mean), ('square', square), ('master', master)):
                    np.testing.assert_allclose(outputs[f'{name}_{what}_next'], expected,
                                               rtol=tolerance, atol=tolerance * 1e-2)


if __name__ == '__main__':
    unittest.main()
