"""--cache: layers of new tokens whose earlier ones lie in caches."""
import json
import pathlib
import subprocess
import unittest

import safetensors_file
from weft_command import CommandTest, WEFT

DIMS = [word for dim in ('b=3', 'h=4', 'g=2', 'p=8', 'i=32', 'u=40') for word in ('--dim', dim)]
LAYER = ['llama-3-8b', *DIMS, '--profile', 'none']


class CacheTest(CommandTest):
    def compiled(self, *flags):
        cache = [] if '--cache' in flags else ['--cache', '40']
        out = self.weft('compile', *LAYER, *cache, *flags, '-o', 'out', '--overwrite',
                        env={'WEFT_NVRTC': 'none'}).prose()
        load = lambda name: json.loads((self.folder / 'out' / name).read_text())
        return out, load('plan.json'), load('report.json')

    def test_the_caches_are_written_in_place(self):
        for flags in ([], ['--dim', 'j=5'], ['--attention', 'unfused'], ['--layers', '2'],
                      ['--dim', 'j=5', '--ragged', 'j'], ['--free']):
            with self.subTest(flags):
                _, plan, _ = self.compiled(*flags)
                tensors = plan['tensors']
                appends = [one for one in plan['kernels'] if ' = append ' in one['ops'][-1]]
                self.assertEqual(len(appends), 4 if '--layers' in flags else 2)
                caches = {one['buffer']: one for one in tensors if '_cache' in one['logical']}
                self.assertEqual(len(caches), len(appends))
                for kernel in appends:
                    result = tensors[kernel['outputs'][0]]
                    cache = caches[result['buffer']]
                    self.assertIn(cache['name'], [tensors[one]['name'] for one in kernel['inputs']])
                    self.assertEqual(cache['role'], 'argument')
                    self.assertEqual(cache['order'], [0, 1, 2, 3])
                    # What is moved is the tokens, not the cache.
                    self.assertLess(kernel['bytesMoved'], cache['bytes'])
                    readers = [index for index, one in enumerate(plan['kernels'])
                               if kernel['outputs'][0] in one['inputs']]
                    self.assertTrue(readers)
                lengths, *others = [one for one in tensors if one.get('countsTokens')]
                longest = 40 - plan['dims']['j']
                self.assertEqual((lengths['logical'], lengths['range']), ('lengths', [0, longest]))
                self.assertEqual([(one['logical'], one['range']) for one in others],
                                 [('new_lengths', [0, 5])] if '--ragged' in flags else [])
                self.weft('run', 'out', '--check', '--lengths', 'mean=0.5')

    def test_caches_lie_in_pages(self):
        for flags, pages in (([], 9), (['--dim', 'j=5', '--dim', 'f=7'], 7),
                             (['--attention', 'unfused'], 9), (['--layers', '2'], 9),
                             (['--dim', 'j=5', '--ragged', 'j'], 9)):
            with self.subTest(flags):
                _, plan, _ = self.compiled('--cache', '48', '--page', '16', *flags)
                tensors = plan['tensors']
                caches = [one for one in tensors if '_cache' in one['logical']
                          and one['role'] == 'argument']
                self.assertEqual(len(caches), 4 if '--layers' in flags else 2)
                for cache in caches:
                    self.assertEqual(cache['extents'], [pages, 2, 16, 8])
                table, = [one for one in tensors if one.get('pagePositions')]
                self.assertEqual((table['logical'], table['extents'], table['range']),
                                 ('page_table', [3, 3], [0, pages - 1]))
                gathers = [one for one in plan['kernels']
                           if any(' = gather_pages ' in op for op in one['ops'])]
                fused = [one for one in gathers if len(one['ops']) > 1]
                if '--attention' in flags:
                    self.assertEqual((len(gathers), len(fused)), (2, 0))
                else:  # keys and values come from the pages
                    self.assertEqual(len(fused), len(caches) // 2)
                    self.assertEqual(gathers, fused)
                    for kernel in fused:
                        self.assertEqual(kernel['family'], 'attention-sm80')
                        self.assertIn(tensors.index(table), kernel['inputs'])
                self.weft('run', 'out', '--check', '--lengths', 'mean=0.5')

    def test_what_takes_no_pages(self):
        for flags, says in (
            (['--page', '24'], '--page 24: a page has a multiple of 16 positions'),
            (['--page', '8'], 'nearest is 16'), (['--page', '512'], 'nearest is 256'),
            (['--page', 'x'], '--page x:'),
            (['--cache', '40', '--page', '16'], 'nearest are --cache 32 and 48')):
            with self.subTest(flags):
                self.fails(2, 'import', 'llama-3-8b', *(flags if '--cache' in flags else
                                                        ['--cache', '768', *flags]), says=[says])
        self.fails(2, 'import', 'llama-3-8b', '--page', '16', says=['--cache N asks for them'])

    def test_lengths_that_leave_no_room_are_rejected(self):
        self.compiled('--dim', 'j=5')
        lengths = self.write('lengths.txt', '35 36 -1')
        self.fails(2, 'run', 'out', '--check', '--lengths', str(lengths),
                   says=["length 36 of sequence 1 of 'lengths' is above the longest",
                         'at most 35'])

    def test_prices_follow_the_expected_lengths(self):
        layer = ['llama-3-8b', '--dim', 'b=32', '--cache', '8192', '--profile', 'none']
        times, moved = [], []
        for lengths in ('mean=1', 'mean=0.2'):
            self.weft('compile', *layer, '--lengths', lengths, '-o', 'out', '--overwrite',
                      env={'WEFT_NVRTC': 'none'})
            plan = json.loads((self.folder / 'out/plan.json').read_text())
            times.append(plan['predictedSeconds'])
            phases = {one['phase']: one['bytes'] for one in self.weft(
                'explain', 'out', '--movement', '--json').json()['phases']}
            # Each kernel reads and writes its tensors once: of caches the tokens, and what is held.
            self.assertLess(abs(phases['fuse'] - phases['select']), 0.05 * phases['select'])
            model = self.weft('explain', *layer[:5], '--lengths', lengths, '--movement',
                              '--json').json()['phases'][-1]
            self.assertLess(abs(phases['fuse'] - model['bytes']), 0.1 * model['bytes'])
            moved.append(phases['fuse'])
        self.assertLess(times[1], 0.6 * times[0])
        self.assertLess(moved[1], 0.6 * moved[0])

    def test_tokens_behind_empty_caches_are_those_of_a_layer_without(self):
        """In the interpreter: six tokens that see each other by way of caches, which hold nothing
        finite before."""
        dims = ['--dim', 'b=1', '--dim', 'h=2', '--dim', 'g=1', '--dim', 'p=4', '--dim', 'i=8',
                '--part', 'attention', '--dtype', 'f32']
        whole = self.write('whole.mlir', self.weft('import', 'llama-3-8b', '--dim', 'j=6',
                                                   *dims).out)
        parts = self.write('parts.mlir', self.weft('import', 'llama-3-8b', '--cache', '6', '--dim',
                                                   'j=6', *dims).out)
        values = lambda count, seed: [((n * 37 + seed) % 29 - 14) / 16 for n in range(count)]
        given = {
            'x': ('F32', [1, 6, 8], values(48, 1)), 'wq': ('F32', [4, 1, 2, 8], values(64, 2)),
            'wk': ('F32', [4, 1, 8], values(32, 3)), 'wv': ('F32', [4, 1, 8], values(32, 4)),
            'wo': ('F32', [4, 1, 2, 8], values(64, 5))
        }
        cached = {
            **given, 'lengths': ('I32', [1], [0]),
            'key_cache': ('F32', [1, 1, 6, 4], [float('inf')] * 24),
            'value_cache': ('F32', [1, 1, 6, 4], [float('inf')] * 24)
        }
        run = lambda graph, inputs, *more: subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs', inputs, *more
        ], capture_output=True, text=True, check=False)
        inputs = safetensors_file.write(self.folder / 'whole', given)
        out = self.folder / 'out.safetensors'
        done = run(whole, inputs, '--outputs', out)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = run(parts, safetensors_file.write(self.folder / 'parts', cached), '--expect', out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pages_hold_what_one_piece_holds(self):
        """In the interpreter: the same tokens behind the same keys, once in one piece and once in
        shuffled pages, of which those that no entry lists hold nothing finite."""
        dims = ['--dim', 'b=2', '--dim', 'j=3', '--dim', 'h=2', '--dim', 'g=1', '--dim', 'p=4',
                '--dim', 'i=8', '--part', 'attention', '--dtype', 'f32', '--cache', '32']
        whole = self.write('whole.mlir', self.weft('import', 'llama-3-8b', *dims).out)
        paged = self.write('paged.mlir', self.weft('import', 'llama-3-8b', *dims, '--page', '16',
                                                   '--dim', 'f=7').out)
        values = lambda count, seed: [((n * 37 + seed) % 29 - 14) / 16 for n in range(count)]
        given = {
            'x': ('F32', [2, 3, 8], values(48, 1)), 'wq': ('F32', [4, 1, 2, 8], values(64, 2)),
            'wk': ('F32', [4, 1, 8], values(32, 3)), 'wv': ('F32', [4, 1, 8], values(32, 4)),
            'wo': ('F32', [4, 1, 2, 8], values(64, 5)), 'lengths': ('I32', [2], [14, 5])
        }
        table = [5, 2, 3, -1]  # of sequence 1 the second page is not needed
        of_page = 16 * 4
        pieces, pages = {}, {}
        for seed, name in ((6, 'key_cache'), (7, 'value_cache')):
            elements = values(2 * 2 * of_page, seed)
            elements[3 * of_page:] = [0.0] * of_page  # what an entry outside reads
            in_pages = [float('nan')] * (7 * of_page)
            for entry, page in enumerate(table[:3]):
                in_pages[page * of_page:(page + 1) * of_page] = \
                    elements[entry * of_page:(entry + 1) * of_page]
            pieces[name] = ('F32', [2, 1, 32, 4], elements)
            pages[name] = ('F32', [7, 1, 16, 4], in_pages)
        run = lambda graph, inputs, *more: subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs', inputs, *more
        ], capture_output=True, text=True, check=False)
        out = self.folder / 'out.safetensors'
        done = run(whole, safetensors_file.write(self.folder / 'whole', {**given, **pieces}),
                   '--outputs', out)
        self.assertEqual(done.returncode, 0, done.stderr)
        pages['page_table'] = ('I32', [2, 2], table)
        done = run(paged, safetensors_file.write(self.folder / 'paged', {**given, **pages}),
                   '--expect', out)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_takes_no_cache(self):
        for words, code, says in (
            (['bert-base'], 3, 'nearest are gpt2 and llama-3-8b'),
            (['llama-3-8b', '--mask', 'padding'], 3, 'lengths say what the caches hold'),
            (['gpt2', '--part', 'model'], 3, 'its table of positions'),
            (['llama-3-8b', '--train'], 3,
             'appending to a cache has no derivative; nearest is --train without --cache'),
            (['llama-3-8b', '--dim', 'j=41'], 2, 'do not fit into caches of 40 positions'),
            (['llama-3-8b', '--dim', 'k=40'], 2, "unknown dimension 'k'")):
            with self.subTest(words):
                self.fails(code, 'import', *words, '--cache', '40', says=[says])
        self.fails(2, 'import', 'llama-3-8b', '--cache', '0',
                   says=['--cache 0: expected a number of positions'])
        self.fails(3, 'import', 'llama-3-8b', '--dim', 'k=4096', says=['nearest are --cache N'])


if __name__ == '__main__':
    unittest.main()
