"""--mask of the attention preset: what a query sees, and what is no mask."""
import json
import math
import pathlib
import random
import re
import subprocess
import unittest

import safetensors_file
from numpy_file import flat, numpy_file
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


# Tiles of 16 of other extents, whose ends they cut.
TILED = dict(b=1, h=6, g=3, j=20, k=40, p=8, w=5)
TILED_DIMS = [part for name, extent in TILED.items() for part in ('--dim', f'{name}={extent}')]


class BlockMaskTest(CommandTest):
    def graph(self, mask, *flags, dims=TILED_DIMS):
        return self.weft('import', 'attention', *dims, '--mask', mask, *flags).out

    def test_a_pattern_has_every_parameter_in_the_graph(self):
        self.assertIn(
            'weft.mask pattern %score {key = k, pattern = "longformer(block=16,window=3,global=1)",'
            ' query = j}', self.graph('longformer(block=16,window=3,global=1)'))
        self.assertIn('pattern = "bigbird(block=64,window=3,global=2,random=3,seed=5,heads=all)"',
                      self.graph('bigbird(seed=5)'))
        text = self.graph('random(block=16,density=0.5,seed=1,heads=each),causal')
        self.assertIn('weft.mask pattern %masked along (g, r) {', text)
        self.assertIn('weft.mask causal', text)

    def test_a_file_is_the_table_of_the_graph(self):
        tiles = [[True, False, True], [False, True, True]]
        path = numpy_file(self.folder / 'tiles.npy', tiles)
        expected = 'pattern = "table(block=16,heads=1,rows=2,columns=3,bits=56)"'
        self.assertIn(expected, self.graph(path))
        self.assertIn(expected, self.graph(f'{path}(block=16)'))
        heads = numpy_file(self.folder / 'heads.npy', [tiles] * 5 + [[[False] * 3] * 2])
        text = self.graph(heads)
        self.assertIn('along (g, r)', text)
        self.assertIn('heads=6,rows=2,columns=3,bits=565656565600', text)

    def test_a_table_a_group_of_heads_serves_each_of_its_heads(self):
        tiles, first = [[True, False, True], [False, True, True]], [[True, False, False]] * 2
        groups = TILED['g']
        each = 6 // groups
        tables = [first] + [tiles] * (groups - 1)
        text = self.graph(numpy_file(self.folder / 'groups.npy', tables))
        self.assertIn('along (g, r)', text)
        self.assertIn('heads=6,rows=2,columns=3,bits=' + '11' * each + '56' * (6 - each), text)

    def test_compiles_and_trains_unfused_and_fused(self):
        dims = [*TILED_DIMS[:10], '--dim', 'p=16', '--dim', 'w=16']
        for flags in (['--attention', 'unfused'], ['--attention', 'decomposed'],
                      ['--attention', 'fused'], ['--train'], ['--train', '--attention', 'fused']):
            with self.subTest(flags):
                self.weft('compile', 'attention', *dims, '--mask',
                          'causal,random(block=16,density=0.5,seed=1,heads=each)', *flags, '-o',
                          'out', '--overwrite', env={'WEFT_NVRTC': 'none'})
                kernels = [path.read_text() for path in (self.folder / 'out/kernels').glob('*.cu')]
                self.assertTrue(
                    any('__device__ const weft::BlockMask<16, 6, 2, 3> blocks_' in text
                        for text in kernels))
                if '--attention' in flags:
                    self.assertEqual(any('blockCoverage(' in text for text in kernels),
                                     'fused' in flags)

    def test_few_tiles_are_priced_less_and_fused(self):
        """What a plan of a sparse mask is predicted to take beside the dense one."""
        seconds, floors = {}, {}
        for name, mask in {
                'dense': [],
                'sparse': ['--mask', 'random(block=128,density=0.1,seed=0)']
        }.items():
            self.weft('compile', 'attention', '--dim', 'b=1', '--dim', 'h=16', '--dim', 'j=4096',
                      '--dim', 'p=64', *mask, '--target', 'sm_90a', '-o', name,
                      env={'WEFT_NVRTC': 'none'})
            plan = json.loads((self.folder / name / 'plan.json').read_text())
            self.assertIn('attention', plan['kernels'][0]['family'], name)
            seconds[name] = plan['predictedSeconds']
            report = json.loads((self.folder / name / 'report.json').read_text())
            floors[name] = report['rooflineSeconds']
            self.assertLessEqual(floors[name], plan['lowerBoundSeconds'])
        self.assertLess(seconds['sparse'], seconds['dense'] / 2)
        # The floor is of what exists, or of what moves.
        self.assertLess(floors['sparse'], 0.13 * floors['dense'])
        said = self.weft('explain', 'sparse', '--kernel', 'attention').prose()
        self.assertRegex(
            said, r'mask \d+ of 1,024 tiles of 128 x 128 exist, [\d.]+% of the scores, one table '
            r'for all heads; [\d.]+% of the products are left out')

    def test_an_unfused_product_leaves_out_tiles_of_one_table(self):
        """Of scores that are stored whole, with the mask in the epilogue of their product, and with
        a local softmax behind it."""
        for kind, device in (('unfused', 'h200'), ('recomposed', 'h200'), ('recomposed', 'a100')):
            with self.subTest(kind=kind, device=device):
                plans = {}
                for name, density in (('few', 0.1), ('all', 1)):
                    self.weft('compile', 'attention', '--dim', 'b=1', '--dim', 'h=8', '--dim',
                              'j=2048', '--dim', 'p=64', '--attention', kind, '--chunks', '1',
                              '--mask', f'random(block=128,density={density},seed=0)', '--profile',
                              'none', '--device', device, '--stop-after', 'emit', '-o', name,
                              '--overwrite')
                    plans[name] = json.loads((self.folder / name / 'plan.json').read_text())
                masked = {name: next(one for one in plan['kernels'] if 'mask' in one['name'])
                          for name, plan in plans.items()}
                self.assertIn('::maskedTiles<',
                              (self.folder / 'few' / masked['few']['source']).read_text())
                self.assertLess(plans['few']['predictedSeconds'],
                                plans['all']['predictedSeconds'])
                said = self.weft('explain', 'few', '--kernel', masked['few']['name']).prose()
                self.assertRegex(said, r'one table for all heads; \d\d\.\d% of the products are '
                                 'left out')
                said = self.weft('explain', 'all', '--kernel', masked['all']['name']).prose()
                self.assertIn('hides the others, and saves nothing', said)

    def test_an_unfused_mask_of_heads_says_that_it_saves_nothing(self):
        self.weft('compile', 'attention', *TILED_DIMS, '--attention', 'unfused', '--mask',
                  'random(block=16,density=0.5,seed=1,heads=each)', '--stop-after', 'emit', '-o',
                  'out')
        kernels = json.loads((self.folder / 'out/plan.json').read_text())['kernels']
        masked = next(one['name'] for one in kernels if 'mask' in one['name'])
        said = self.weft('explain', 'out', '--kernel', masked).prose()
        self.assertRegex(said, r'\d to \d of 6 tiles of 16 x 16 exist')
        self.assertIn(
            'each of 6 heads has its own; this kernel hides the others, and saves nothing', said)

    def rejects(self, mask, says):
        self.fails(2, 'compile', 'attention', *TILED_DIMS, '--mask', mask, '-o', 'out', says=says)

    def test_tables_of_heads_are_cut_along_heads(self):
        """A chunk counts its heads from where it starts, and reads its own tables."""
        arguments = [
            'compile', 'attention', '--dim', 'b=1', '--dim', 'h=4', '--dim', 'j=256', '--attention',
            'unfused', '--chunks', '2', '--stop-after', 'emit', '--mask'
        ]
        pattern = 'random(block=64,density=0.3,seed=1{})'
        self.weft(*arguments, pattern.format(',heads=each'), '-o', 'each')
        texts = [path.read_text() for path in sorted((self.folder / 'each/kernels').glob('*mask*'))]
        self.assertEqual(len(texts), 2)
        self.assertEqual([len(re.findall(r'\+ 2\b', text)) > 0 for text in texts].count(True), 1)
        self.weft(*arguments, pattern.format(''), '-o', 'one')

    def test_what_is_no_block_mask(self):
        write = lambda name, tiles, **rest: str(
            numpy_file(self.folder / name, tiles, **rest))
        tiles = [[True, False, True], [False, True, True]]
        one = write('one.npy', [[True]])
        for mask, says in {
                'bigbird': ['--mask bigbird: ', 'needs a seed, as seed=0'],
                'random(density=0.5)': ['needs a seed'],
                'bigbird(block=20,seed=0)': ['block=20: tiles have 16, 32, 64, 128'],
                'bigbird(blocks=16,seed=0)': ["bigbird has no parameter 'blocks'", "'block'"],
                'butterfly,strided': ['one block mask is taken'],
                'random(density=0.000001,seed=0)': ['the mask is empty'],
                'none.npy': ['none.npy cannot be read'],
                write('wide.npy', [[True] * 4] * 2): [
                    'a table of 2 x 4 tiles; 20 queries and 40 keys have 1 x 1 tiles of 64'
                ],
                write('tiles.npy', tiles) + '(block=32)': [
                    'a table of 2 x 3 tiles; 20 queries and 40 keys have 1 x 2 tiles of 32'
                ],
                write('heads.npy', [tiles] * 4): ['tables of 4 heads; there are 6 heads'],
                write('flat.npy', [True, False]): ['an array of shape (2)'],
                write('int.npy', tiles, type_='|i1'): ["its elements are '|i1'", "boolean ('|b1')"],
                write('fortran.npy', tiles, order='True'): ['fortran_order'],
                write('two.npy', [[1, 0, 1], [0, 2, 1]]): [
                    "element 4 is the byte 2; elements of '|b1' are 0 or 1"
                ],
                write('empty.npy', [[False] * 3] * 2): ['the mask is empty: none of its 6 tiles'],
                one: ['tiles of 64 and of 128 fit; choose with', 'one.npy(block=128)'],
                self.write('text.npy', 'no array'): ['it is no array of NumPy'],
        }.items():
            with self.subTest(mask):
                self.rejects(str(mask), says)


class BadMaskTest(CommandTest):
    def rejects(self, *arguments, says):
        self.fails(2, 'compile', *arguments, '-o', 'out', says=says)
        self.assertNothingLeft({})

    def test_words(self):
        for mask, says in {
                'causl': ["--mask causl: unknown mask; nearest is 'causal'"],
                'block': [
                    '--mask block: unknown mask (known: causal, window=N, padding, '
                    'attention-mask, document, bigbird(..), longformer(..), strided(..), '
                    'fixed(..), butterfly(..), random(..), FILE.npy)'
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
        self.rejects('longformer-large', '--mask', 'window=4',
                     says=['longformer-large: --mask window=4', 'nearest is padding'])

    def test_groups_that_do_not_divide_the_heads(self):
        self.rejects(*CORE, '--dim', 'g=3', '--mask', 'causal',
                     says=['key/value heads must divide the query heads: h=2', 'g=3'])


class BadMaskOfFileTest(CommandTest):
    def test_a_file_has_its_own_masks(self):
        self.write('graph.mlir', self.weft('import', *CORE).out)
        before = self.files()
        self.fails(2, 'compile', 'graph.mlir', '--mask', 'causal', '-o', 'out',
                   says=['graph.mlir: --mask causal cannot be set', 'presets and config.json'])
        self.assertNothingLeft(before)


if __name__ == '__main__':
    unittest.main()
