"""--mask of the attention preset: what a query sees, and what is no mask."""
import math
import pathlib
import random
import subprocess
import unittest

import safetensors_file
from weft_command import CORE, CommandTest, WEFT

# No two extents are equal.
EXTENTS = dict(b=2, h=6, g=3, j=4, k=7, p=8, w=5)
DIMS = [part for name, extent in EXTENTS.items() for part in ('--dim', f'{name}={extent}')]
LENGTHS = [7, 3]


def attention(q, k, v, sees):
    """softmax(q k / sqrt(p)) v of nested lists [b][h][j][p], [b][g][k][p], [b][g][k][w]."""
    result = []
    for b, heads in enumerate(q):
        for h, rows in enumerate(heads):
            keys, values = (t[b][h * EXTENTS['g'] // EXTENTS['h']] for t in (k, v))
            for j, row in enumerate(rows):
                weights = [
                    math.exp(sum(x * y for x, y in zip(row, key)) / math.sqrt(len(row)))
                    if sees(b, j + EXTENTS['k'] - EXTENTS['j'], place) else 0
                    for place, key in enumerate(keys)
                ]
                total = sum(weights) or 1
                result += [
                    sum(weight * value[w] for weight, value in zip(weights, values)) / total
                    for w in range(EXTENTS['w'])
                ]
    return result


def nested(shape, draw):
    return [nested(shape[1:], draw) for _ in range(shape[0])] if shape else draw()


def flat(tensor):
    return [one for part in tensor for one in flat(part)] if isinstance(tensor, list) else [tensor]


class MaskTest(CommandTest):
    def interpreted(self, mask, sees):
        """Compares the imported graph with the formula."""
        graph = self.write('graph.mlir',
                           self.weft('import', 'attention', *DIMS, '--dtype', 'f32', '--mask',
                                     mask).out)
        shapes = {'q': 'bhjp', 'k': 'bgkp', 'v': 'bgkw'}
        draw = random.Random(1)
        # Multiples of 1/64 are the same numbers as f32.
        tensors = {
            name: nested([EXTENTS[axis] for axis in axes], lambda: draw.randint(-96, 96) / 64)
            for name, axes in shapes.items()
        }
        inputs = {
            name: ('F32', [EXTENTS[axis] for axis in shapes[name]], flat(value))
            for name, value in tensors.items()
        }
        if 'padding' in mask:
            inputs['lengths'] = ('I32', [EXTENTS['b']], LENGTHS)
        expected = attention(*tensors.values(), sees)
        done = subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs',
            safetensors_file.write(self.folder / 'inputs', inputs), '--expect',
            safetensors_file.write(
                self.folder / 'expected',
                {'attention': ('F32', [EXTENTS[axis] for axis in 'bhjw'], expected)}),
            '--absolute', '1e-6', '--relative', '1e-6'
        ], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(': equal:', done.stdout)

    def test_each_mask_is_what_the_help_says(self):
        causal = lambda b, position, key: key <= position
        window = lambda b, position, key: abs(position - key) <= 2
        padding = lambda b, position, key: key < LENGTHS[b]
        both = lambda *masks: lambda *place: all(mask(*place) for mask in masks)
        for mask, sees in {
                'causal': causal, 'window=2': window, 'padding': padding, 'causal,window=2':
                both(causal, window), 'padding,causal': both(causal, padding),
                'causal,window=2,padding': both(causal, window, padding)
        }.items():
            with self.subTest(mask):
                self.interpreted(mask, sees)

    def test_one_flag_or_several(self):
        text = self.weft('import', *CORE, '--mask', 'causal,padding').out
        self.assertEqual(self.weft('import', *CORE, '--mask', 'padding', '--mask', 'causal').out,
                         text)
        self.assertIn('tensor<2xi32, #weft.axes<b>>', text)
        self.assertNotEqual(self.weft('import', *CORE).out, text)

    def test_masked_attention_compiles_and_trains(self):
        for flags in (['--attention', 'unfused'], ['--attention', 'decomposed'], ['--train']):
            self.weft('compile', *CORE, '--dim', 'k=24', '--dim', 'g=1', '--mask',
                      'causal,window=5,padding', *flags, '-o', 'out', '--overwrite',
                      env={'WEFT_NVRTC': 'none'})


class BadMaskTest(CommandTest):
    def rejects(self, *arguments, says):
        self.fails(2, 'compile', *arguments, '-o', 'out', says=says)
        self.assertNothingLeft({})

    def test_words(self):
        for mask, says in {
                'causl': ["--mask causl: unknown mask; nearest is 'causal'"],
                'block': [
                    '--mask block: unknown mask (known: causal, window=N, padding, document)'
                ],
                'window': ['--mask window: expected a number of keys'],
                'window=0': ['--mask window=0: ', 'at least 1 key', 'nearest is window=1'],
                'window=-3': ['--mask window=-3: ', 'at least 1 key', 'nearest is window=1'],
                'window=2147483648': ['--mask window=2147483648: ', 'at most 2147483647'],
                'window=2,window=3': ["--mask window=3: 'window' is given twice"]
        }.items():
            with self.subTest(mask):
                self.rejects(*CORE, '--mask', mask, says=says)
        self.rejects(*CORE, "--mask", "causal", "--mask", "causal",
                     says=["'causal' is given twice"])

    def test_models_without_the_choice(self):
        self.rejects('gpt2', '--mask', 'window=4',
                     says=['gpt2: --mask window=4', "nearest is the preset 'attention'"])

    def test_groups_that_do_not_divide_the_heads(self):
        self.rejects(*CORE, '--dim', 'g=3', '--mask', 'causal',
                     says=['key/value heads must divide the query heads: h=2', 'g=3'])


class BadMaskOfFileTest(CommandTest):
    def test_a_file_has_its_own_masks(self):
        self.write('graph.mlir', self.weft('import', *CORE).out)
        before = self.files()
        self.fails(2, 'compile', 'graph.mlir', '--mask', 'causal', '-o', 'out',
                   says=['graph.mlir: --mask causal cannot be set', "the preset 'attention'"])
        self.assertNothingLeft(before)


if __name__ == '__main__':
    unittest.main()
