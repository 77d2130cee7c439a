"""--ragged: layers whose valid tokens alone are computed, and lengths that a run takes."""
import json
import math
import pathlib
import random
import re
import subprocess
import unittest

import safetensors_file
from weft_command import CORE, LAYER, CommandTest, WEFT

RAGGED = [*LAYER, '--ragged', 'j', '--dropout', '0']
ONE_VARIANT = [*RAGGED, '--stacking', 'three', '--attention', 'unfused']


class RaggedTest(CommandTest):
    def interpreted(self, graph, inputs, expected):
        done = subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-interpret', graph, '--inputs', inputs, '--expect',
            expected, '--absolute', '1e-4', '--relative', '1e-4'
        ], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_graph_is_packed_and_takes_lengths(self):
        text = self.weft('import', *RAGGED).out
        self.assertIn('%lengths: ', text)
        self.assertIn('weft.offsets %lengths {bound = 16}', text)
        self.assertEqual(text.count('weft.pack '), 2)
        self.assertEqual(text.count('weft.unpack '), 4)
        self.assertIn('tensor<32x32xf16, #weft.axes<t, i>>', text)

    def test_a_mask_says_what_the_tokens_are(self):
        """An argument of ones and zeros in the place of lengths, which are counted in the graph."""
        text = self.weft('import', *RAGGED, '--mask', 'attention-mask').out
        self.assertIn('%attention_mask: ', text)
        self.assertIn('weft.lengths %attention_mask', text)
        self.assertIn('weft.offsets %lengths {bound = 16}', text)
        self.weft('compile', *ONE_VARIANT, '--mask', 'attention-mask', '-o', 'out',
                  '--lengths', 'mean=0.5', env={'WEFT_NVRTC': 'none'})
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        mask, = (one for one in plan['tensors'] if one.get('countsTokens'))
        self.assertEqual((mask['logical'], mask['dtype'], mask['extents']),
                         ('attention_mask', 'i1', [2, 16]))
        reporting = [parameter['tensor'] for kernel in plan['kernels']
                     for parameter in kernel['parameters'] if parameter['kind'] == 'status']
        self.assertIn(plan['tensors'].index(mask), reporting)
        self.weft('run', 'out', '--check', '--lengths', 'mean=0.5')
        self.fails(2, 'run', 'out', '--check', '--lengths',
                   str(self.write('lengths.txt', '3 17')),
                   says=["length 17 of sequence 1 of 'attention_mask' is above the longest"])
        rows = lambda *ones: [int(j in own) for own in ones for j in range(16)]
        inputs = lambda mask: str(safetensors_file.write(
            self.folder / 'inputs', {'attention_mask': ('BOOL', [2, 16], mask)}))
        self.weft('run', 'out', '--check', '--inputs', inputs(rows(range(16), range(0))))
        self.weft('run', 'out', '--check', '--inputs', inputs(rows(range(3), range(9))))
        self.fails(2, 'run', 'out', '--check', '--inputs', inputs(rows(range(3), [0, 1, 5, 7])),
                   says=["row 1 of 'attention_mask' is no prefix: element 7 is 1 behind a 0"])
        self.fails(2, 'import', *RAGGED, '--mask', 'padding,attention-mask',
                   says=['--mask padding,attention-mask: lengths or a mask'])

    def test_compiles_forward_and_backward(self):
        """Variants are selected one by one: training takes every attention with one stacking, and
        every stacking with one attention."""
        for flags in ([], ['--train', '--stacking', 'three'], ['--train', '--attention',
                                                               'decomposed']):
            with self.subTest(flags):
                self.weft('compile', *RAGGED, *flags, '-o', 'out', '--overwrite',
                          env={'WEFT_NVRTC': 'none'})
                plan = json.loads((self.folder / 'out/plan.json').read_text())
                lengths, = (one for one in plan['tensors'] if one.get('countsTokens'))
                self.assertEqual(lengths['logical'], 'lengths')
                self.assertEqual(lengths['range'], [0, 16])

    def test_attention_reads_packed_tokens_where_one_product_wrote_them(self):
        """Parts of a stacked product are views, bias and mask its epilogue, and GELU, behind which
        tokens are masked, has the form of 16 bits."""
        self.weft('compile', 'bert-base', '--dim', 'b=16', '--dim', 'j=256', '--ragged', 'j',
                  '--lengths', 'mean=0.6', '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        launched = [kernel for kernel in plan['kernels'] if kernel['family'] != 'view']
        self.assertFalse([kernel['name'] for kernel in launched if 'slice' in kernel['name']])
        self.assertTrue(any(
            kernel['name'].startswith('q_product_k_product_v_projection_mask_bias_mask')
            for kernel in launched))
        gelu, = (kernel for kernel in launched if 'gelu' in kernel['name'])
        self.assertIn('weft::geluForHalf(', (self.folder / 'out' / gelu['source']).read_text())

    def test_no_library_product_computes_packed_tokens(self):
        """Their number is counted on the device: each product is one kernel with its mask, where
        cuBLASLt's measurement of all rows is the lower one, too. A pair that may not be fused keeps
        the library."""
        layer = ['bert-base', '--dim', 'b=4', '--dim', 'j=256', '--ragged', 'j', '--lengths',
                 'mean=0.6', '--stop-after', 'emit', '--overwrite', '-o', 'out']
        families = lambda: {kernel['family'] for kernel in json.loads(
            (self.folder / 'out/plan.json').read_text())['kernels'] if '__t_' in kernel['name']}
        self.weft('compile', *layer)
        self.assertNotIn('cublaslt', families())
        # What was left out of the search is named where a plan with it is asked for.
        said = self.weft('explain', 'out', '--fusion',
                         'attention_product_unmasked,attention_product').prose()
        self.assertIn('are fused; separating them: no plan does: a contraction without its mask '
                      'leaves out no row, and the device counts the tokens', said)
        self.weft('compile', *layer, '--no-fuse',
                  'attention_product_unmasked,attention_product')
        self.assertIn('cublaslt', families())

    def test_attention_reads_packed_tokens_without_wgmma(self):
        """The layer is packed and unpacked at its ends alone, on a target of mma.sync, too."""
        self.weft('compile', 'bert-base', '--ragged', 'j', '--device', 'a100', '--stop-after',
                  'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        launched = [kernel for kernel in plan['kernels'] if kernel['family'] != 'view']
        names = [kernel['name'] for kernel in launched]
        self.assertEqual([name for name in names if name.startswith('pack')], ['pack__t_i'])
        self.assertEqual([name for name in names if name.startswith('unpack')], ['unpack__b_j_i'])
        attention, = (kernel for kernel in launched
                      if kernel['name'].startswith('attention_unpack'))
        self.assertEqual(attention['family'], 'attention-sm80')
        self.assertIn('weft::PackedSequences<',
                      (self.folder / 'out' / attention['source']).read_text())

    def test_a_family_that_takes_no_block_masks_over_packed_tokens_is_named(self):
        """By a record of what is fused, or would be, and by a note: the plan has another family, or
        unpacks around the preferred one."""
        layer = ['--dim', 'b=2', '--dim', 'j=512', '--ragged', 'j', '--stacking', 'three',
                 '--attention', 'fused', '--stop-after', 'emit', '-o', 'out', '--overwrite']

        def left_out(*model):
            self.weft('compile', *model, *layer)
            load = lambda name: json.loads((self.folder / 'out' / name).read_text())
            records = [one for one in load('report.json')['fusions'] if one['code'] == 'F034']
            notes = [one for one in self.weft('explain', 'out', '--all').prose().split(' note: ')
                     if 'over packed tokens' in one]
            return records, notes, load('plan.json')['kernels']

        records, notes, kernels = left_out('bigbird-large')
        record, = records
        self.assertFalse(record['accepted'])
        self.assertEqual(record['detail'], 'attention-sm90: block masks over packed tokens')
        self.assertIn('pack', record['opNames'])
        note, = notes
        self.assertIn("'weighted' over packed tokens: attention-sm90: block masks over packed "
                      'tokens; it takes another family, or tokens are unpacked around it [F034]',
                      note)
        attention, = (one for one in kernels if one['family'].startswith('attention'))
        unpacks = [one for one in kernels if one['name'].startswith('unpack')]
        self.assertEqual(attention['family'] == 'attention-sm80', len(unpacks) == 1)
        # Without the mask the preferred family takes it; where that does not run, nothing is left
        # out.
        self.assertEqual(left_out('bert-large')[:2], ([], []))
        self.assertEqual(left_out('bigbird-large', '--device', 'a100')[:2], ([], []))

    def test_attention_that_is_trained_reads_packed_tokens_forward_and_backward(self):
        """Tokens are packed and unpacked at the ends of the layer and of its gradients alone."""
        for flags, families in (
                (['bert-base', '--device', 'a100'], ('attention-sm80', 'attention-backward-sm80')),
                (['gpt2', '--device', 'a100'], ('attention-sm80', 'attention-backward-sm80')),
                (['bert-base', '--device', 'h200', '--lengths', 'mean=0.6'],
                 ('attention-sm90', 'attention-backward-sm90')),
                (['gpt2', '--device', 'h200', '--lengths', 'mean=0.6', '--dim', 'b=8', '--dim',
                  'j=512'], ('attention-sm90', 'attention-backward-sm90'))):
            with self.subTest(flags):
                self.weft('compile', *flags, '--train', '--ragged', 'j', '--attention', 'fused',
                          '--stop-after', 'emit', '-o', 'out', '--overwrite')
                plan = json.loads((self.folder / 'out/plan.json').read_text())
                launched = [kernel for kernel in plan['kernels'] if kernel['family'] != 'view']
                names = [kernel['name'] for kernel in launched]
                moved = [name for name in names if name.startswith(('pack', 'unpack'))]
                self.assertEqual(sorted(name.split('__')[0] for name in moved),
                                 ['pack', 'pack', 'unpack', 'unpack'], names)
                self.assertFalse([name for name in moved if 'h' in name.split('__')[1]], moved)
                attentions = [kernel for kernel in launched
                              if kernel['family'].startswith('attention')]
                self.assertEqual(tuple(kernel['family'] for kernel in attentions), families)
                for attention in attentions:
                    self.assertIn('weft::PackedSequences<',
                                  (self.folder / 'out' / attention['source']).read_text())

    def test_a_packed_backward_pass_has_the_gradients_that_nobody_asked_for(self):
        """They are packed, too, so that one kernel gives all; what was asked for is the same."""
        layer = [*LAYER, '--ragged', 'j', '--train', '--gradients-of']
        for gradients in ('wv', 'wq,wk'):
            with self.subTest(gradients):
                self.weft('import', *layer, gradients, '-o', 'imported.mlir')
                self.weft('compile', *layer, gradients, '--attention', 'fused', '--profile', 'none',
                          '--stop-after', 'emit', '-o', 'out', '--overwrite')
                plan = json.loads((self.folder / 'out/plan.json').read_text())
                self.assertIn('all-gradients', plan['rewrites'])
                names = [kernel['name'] for kernel in plan['kernels']]
                self.assertEqual(sum(name.startswith('attention_backward') for name in names), 1)
                self.checkSame('imported.mlir', 'out/graph.mlir')

    def test_attention_of_grouped_heads_reads_tokens_that_a_rotary_embedding_rotated(self):
        """Tokens turn by their positions in sequences without being unpacked, keys and queries in
        the epilogue of one stacked product; the layer is packed and unpacked at its ends alone."""
        self.weft('compile', 'llama-3-8b', '--dim', 'b=8', '--dim', 'j=1024', '--ragged', 'j',
                  '--lengths', 'mean=0.6', '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        names = [kernel['name'] for kernel in plan['kernels'] if kernel['family'] != 'view']
        self.assertEqual([name for name in names if name.startswith('unpack')], ['unpack__b_j_i'])
        attention, = (kernel for kernel in plan['kernels']
                      if kernel['name'].startswith('attention_unpack'))
        self.assertEqual(attention['family'], 'attention-sm90')
        self.assertFalse([name for name in names if name.startswith('rotary')])
        turned, = (kernel for kernel in plan['kernels'] if 'rotary' in kernel['name'])
        self.assertEqual(turned['family'], 'gemm-sm90')
        text = (self.folder / 'out' / turned['source']).read_text()
        self.assertIn('weft::sm90::rotated<', text)
        self.assertIn('- weft::loadOne(token_starts', text)

    def test_a_graph_with_a_padding_mask(self):
        graph = self.write(
            'graph.mlir', """
!x = tensor<2x4x8xf32, #weft.axes<b, m, i>>
!s = tensor<2x4x4xf32, #weft.axes<b, m, n>>
!w = tensor<8x8xf32, #weft.axes<o, i>>
!n = tensor<2xi32, #weft.axes<b>>
weft.graph @g(%x: !x, %w: !w {weft.parameter}, %lengths: !n) -> !x {
  %q = weft.contract "oi,bmi->bmo" %w, %x : !w, !x -> !x
  %s = weft.contract "bmi,bni->bmn" %q, %q : !x, !x -> !s
  %c = weft.mask padding %s, %lengths along (b) {key = n} : !s, !n -> !s
  %p = weft.softmax %c over n : !s
  %y = weft.contract "bmn,bni->bmi" %p, %q : !s, !x -> !x
  %z = weft.relu %y : !x
  weft.return %z : !x
}
""")
        text = self.weft('import', graph, '--ragged', 'm').out
        packed = self.write('packed.mlir', text)
        self.assertEqual(text.count('weft.unpack '), 2)
        values = random.Random(1)
        draw = lambda count: [values.randint(-64, 64) / 64 for _ in range(count)]
        x, w = draw(64), draw(64)
        lengths = [3, 0]

        def layer():
            """Plain loops over the valid tokens of the first sequence; the other has none."""
            q = [[sum(w[o * 8 + i] * x[m * 8 + i] for i in range(8)) for o in range(8)]
                 for m in range(3)]
            for m in range(4):
                if m >= 3:
                    yield from [0.0] * 8
                    continue
                scores = [math.exp(sum(a * b for a, b in zip(q[m], q[n]))) for n in range(3)]
                for i in range(8):
                    yield max(0.0, sum(s * q[n][i] for n, s in enumerate(scores)) / sum(scores))
            yield from [0.0] * 32

        self.interpreted(
            packed,
            safetensors_file.write(self.folder / 'inputs', {
                'x': ('F32', [2, 4, 8], x), 'w': ('F32', [8, 8], w), 'lengths': ('I32', [2],
                                                                                lengths)
            }),
            safetensors_file.write(self.folder / 'expected', {'z': ('F32', [2, 4, 8],
                                                                    list(layer()))}))
        self.weft('compile', graph, '--ragged', 'm', '-o', 'out', env={'WEFT_NVRTC': 'none'})

    def test_a_whole_model_takes_lengths(self):
        """Packed at the ids and unpacked at the results, with one argument of lengths."""
        dims = [word for dim in ('b=2', 'j=16', 'h=2', 'i=32', 'u=64', 'v=24')
                for word in ('--dim', dim)]
        model = ['bert-base', '--part', 'model', '--layers', '3', '--ragged', 'j', *dims,
                 '--stacking', 'three', '--attention', 'fused', '--profile', 'none']
        said = self.weft('compile', *model, '--lengths', 'mean=0.5', '-o', 'out', '--stop-after',
                         'emit').prose()
        self.assertIn('model of 3 layers', said)
        self.assertIn('priced at 50% of the tokens', said)
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        ranges = {one['logical']: one['range'] for one in plan['tensors']
                  if one['dtype'] == 'i32' and one['role'] == 'argument'}
        self.assertEqual(ranges, {'lengths': [0, 16], 'tokens': [0, 23], 'types': [0, 1]})
        gathers = [one for one in plan['kernels'] if any(' = gather ' in op for op in one['ops'])]
        reported = [plan['tensors'][parameter['tensor']] for kernel in gathers
                    for parameter in kernel['parameters'] if parameter['kind'] == 'status']
        self.assertEqual({one['logical']: one['range'] for one in reported},
                         {'tokens_packed': [0, 23], 'types_packed': [0, 1]})
        self.assertIn('priced at 50% of the tokens', self.weft('explain', 'out').prose())
        self.weft('run', 'out', '--check', '--lengths', 'mean=0.5')
        self.fails(2, 'run', 'out', '--check', '--lengths',
                   str(self.write('lengths.txt', '17 3')), says=['length 17 of sequence 0 of'])

    def test_what_cannot_be_packed(self):
        for model, says in {
                'transformer-decoder': 'nearest are bert-base, gpt2 and llama-3-8b',
                'attention': 'nearest is --mask padding, which loads no keys past the length'
        }.items():
            with self.subTest(model):
                self.fails(3, 'import', model, '--ragged', 'j', says=[f'{model}: --ragged: ', says])
        self.fails(3, 'import', *LAYER, '--ragged', 'q',
                   says=["--ragged q: no argument holds tokens along 'q'; tokens lie along j"])
        graph = self.write('plain.mlir', self.weft('import', *LAYER).out)
        self.fails(3, 'import', graph, '--ragged', 'j',
                   says=['no padding mask says how many tokens a sequence has', '--mask padding'])


class ExpectedLengthsTest(CommandTest):
    """Kernels that leave out what is no token are priced by the lengths that are expected."""
    LAYER = ['bert-base', '--ragged', 'j', '--dim', 'b=16', '--dim', 'j=256', '--stacking', 'three',
             '--attention', 'fused', '--profile', 'none']

    def compiled(self, *flags, batch=16):
        layer = [f'b={batch}' if word == 'b=16' else word for word in self.LAYER]
        out = self.weft('compile', *layer, *flags, '-o', 'out', '--overwrite',
                        env={'WEFT_NVRTC': 'none'}).out
        load = lambda name: json.loads((self.folder / 'out' / name).read_text())
        return out, load('plan.json'), load('report.json')

    def test_a_fill_of_equal_lengths_that_is_a_fifth_stands_once(self):
        layer = ['j=40' if word == 'j=256' else word for word in self.LAYER]
        self.weft('compile', *layer, '--lengths', str(self.write('equal.txt', '16\n')), '-o', 'out',
                  env={'WEFT_NVRTC': 'none'})
        fills = self.weft('explain', 'out', '--fills', '--json').json()['fills']
        self.assertEqual([round(one['tokens'], 6) for one in fills], [0.2, 0.4, 0.6, 0.8, 1])
        self.assertEqual([one['weight'] for one in fills], [0, 1, 0, 0, 0])

    def test_prices_follow_the_fill(self):
        text, full, report = self.compiled()
        self.assertIn('lengths      priced at full length, a bound', text)
        self.assertEqual(report['lengths']['tokens'], 1)
        seconds = [full['predictedSeconds']]
        self.assertAlmostEqual(report['lengths']['fullSeconds'], seconds[0], delta=2e-6)
        lengths = str(self.write('lengths.txt', '64 192\n'))
        for asked, tokens, pairs in ((lengths, 0.5, 0.3125), ('mean=0.3', 0.3, 0.12)):
            text, plan, report = self.compiled('--lengths', asked)
            self.assertIn(f'lengths      priced at {100 * tokens:.0f}% of the tokens', text)
            self.assertAlmostEqual(report['lengths']['tokens'], tokens)
            self.assertAlmostEqual(report['lengths']['pairs'], pairs)
            self.assertGreater(report['lengths']['fullSeconds'], plan['predictedSeconds'])
            seconds.append(plan['predictedSeconds'])
        self.assertLess(seconds[1], 0.92 * seconds[0])
        self.assertLess(seconds[2], 0.88 * seconds[1])
        kernels = ''.join(path.read_text() for path in (self.folder / 'out/kernels').glob('*.cu'))
        self.assertIn('.tokens = weft::sm90::UnreadRowTokens', kernels)
        explained = self.weft('explain', 'out').out
        self.assertIn('lengths      priced at 30% of the tokens', explained)

    def test_a_price_is_the_mean_over_five_fills(self):
        """Batches are drawn from the lengths: those of one sequence differ more than those of 16.
        The full time that a line names is that of the same graph."""
        spreads = {}
        for batch in (16, 1):
            text, _, report = self.compiled('--lengths', 'mean=0.5', batch=batch)
            levels, fills = report['lengths']['levels'], report['lengths']['fills']
            self.assertEqual([one['weight'] for one in levels], [0.2] * 5)
            for own, mean in (('tokens', 0.5), ('pairs', 1 / 3)):
                self.assertAlmostEqual(sum(0.2 * one[own] for one in levels), mean, delta=1e-4)
            tokens = [one['tokens'] for one in levels]
            self.assertEqual(tokens, sorted(tokens))
            spreads[batch] = tokens[-1] - tokens[0]
            seconds = [one['graphSeconds'] for one in fills]
            self.assertEqual([one['tokens'] for one in fills], tokens)
            self.assertLess(seconds[0], 0.98 * seconds[-1])
            full = report['lengths']['fullGraphSeconds']
            self.assertLessEqual(seconds[-1], full)
            graph = self.weft('explain', 'out', '--json').json()['graph']['seconds']
            self.assertAlmostEqual(sum(seconds) / 5 / graph, 1, delta=0.05)
            self.assertIn(f'us, {100 * (full / graph - 1):.0f}% more', text)
        self.assertAlmostEqual(spreads[1], 0.8, delta=1e-3)
        self.assertLess(spreads[16], 0.3)

    def test_lines_of_a_file_are_batches(self):
        """Which come as they are: short sequences together are another fill than one drawn by one.
        A line with as many is one batch; lines of another length hold samples of sequences."""
        batches = self.write('batches.txt', '256 256\n64 64\n\n64 64\n64 64\n64 64\n')
        tokens = lambda path: [
            one['tokens'] for one in self.compiled('--lengths', str(path), batch=2)[2]['lengths'][
                'levels']
        ]
        self.assertEqual(tokens(batches), [0.25, 0.25, 0.25, 0.25, 1])
        drawn = tokens(self.write('drawn.txt', '256 256 64:8'))
        self.assertAlmostEqual(drawn[0], 0.25)
        self.assertLess(drawn[-1], 0.9)
        self.assertAlmostEqual(sum(drawn) / 5, 0.4, delta=1e-3)
        self.assertEqual(tokens(self.write('other.txt', '256 256 64\n64:7\n')), drawn)
        _, _, report = self.compiled('--lengths', str(self.write('one.txt', '256 64\n')), batch=2)
        self.assertNotIn('levels', report['lengths'])
        self.assertEqual(report['lengths']['tokens'], 0.625)

    def test_a_padded_plan_that_is_faster_is_named(self):
        """With both prices, where all sequences are full; where packing pays, explain says so."""
        text, plan, report = self.compiled('--lengths', 'mean=1')
        padded = report['lengths']['padded']['graphSeconds']
        own = self.weft('explain', 'out', '--json').json()['graph']['seconds']
        self.assertLess(padded, own)
        faster = 'faster with --mask padding, not --ragged'
        line, = re.findall(r'padded (\S+) us for packed (\S+) us: ' + faster,
                           ' '.join(text.split()))
        self.assertAlmostEqual(float(line[0]) / (1e6 * padded), 1, delta=0.01)
        self.assertAlmostEqual(float(line[1]) / (1e6 * own), 1, delta=0.01)
        self.assertIn(faster, self.weft('explain', 'out').prose())
        self.assertIn(faster, self.weft('explain', 'out', '--fills').prose())
        self.weft('compile', *self.LAYER[:1], *self.LAYER[3:], '--mask', 'padding', '-o', 'padded',
                  env={'WEFT_NVRTC': 'none'})
        alone = self.weft('explain', 'padded', '--json').json()['graph']['seconds']
        self.assertAlmostEqual(alone / padded, 1, delta=1e-6)
        text, _, report = self.compiled('--lengths', 'mean=0.3')
        self.assertNotIn('faster without', text)
        self.assertGreater(report['lengths']['padded']['graphSeconds'], 0)
        self.assertIn('packing pays', self.weft('explain', 'out', '--fills').prose())
        # Its attention skips keys that are padding: shorter sequences take less.
        self.assertLess(report['lengths']['padded']['graphSeconds'], padded)
        _, _, report = self.compiled()
        self.assertNotIn('padded', report['lengths'])

    def test_equal_lengths_have_a_row(self):
        self.compiled('--lengths', str(self.write('lengths.txt', '96')))
        fills = self.weft('explain', 'out', '--fills', '--json').json()['fills']
        self.assertEqual([(one['tokens'], one['weight']) for one in fills],
                         [(0.2, 0), (0.375, 1), (0.4, 0), (0.6, 0), (0.8, 0), (1, 0)])
        self.assertAlmostEqual(
            fills[1]['graphSeconds'] /
            self.weft('explain', 'out', '--json').json()['graph']['seconds'], 1, delta=1e-6)

    def test_a_file_is_a_histogram(self):
        """LENGTH:N stands for N sequences, here and where a run reads lengths."""
        reports = [
            self.compiled('--lengths', str(self.write('lengths.txt', text)))[2]['lengths']
            for text in ('64 64 64 192', '64:3 192:1\n')
        ]
        self.assertEqual(reports[0]['levels'], reports[1]['levels'])
        self.assertEqual(reports[1]['tokens'], 0.375)
        self.weft('run', 'out', '--check', '--lengths', str(self.write('run.txt', '256:10 0:6')))
        for wrong in ('64:0', '64:', '64:-2', '64:3:1', ':3'):
            self.fails(2, 'run', 'out', '--check', '--lengths', str(self.write('run.txt', wrong)),
                       says=[f"'{wrong}' is no length"])

    def test_fills_of_a_plan_with_what_is_avoided_and_what_is_lost(self):
        """Each fill beside the time at full length, and beside the plan of that fill alone, that is
        chosen anew; of a plan for full lengths the curve stands at five fills without weights."""
        self.compiled('--lengths', 'mean=0.5', batch=1)
        asked = self.weft('explain', 'out', '--fills', '--json').json()
        self.assertEqual(len(asked['fills']), 5)
        for fill in asked['fills']:
            self.assertLessEqual(fill['graphSeconds'], asked['fullSeconds'])
            self.assertGreater(fill['regret'], -0.02)
            self.assertLess(fill['regret'], 0.5)
            self.assertAlmostEqual(fill['graphSeconds'] / fill['aloneSeconds'] - 1, fill['regret'])
        self.assertAlmostEqual(asked['expectedSeconds'],
                               sum(fill['graphSeconds'] for fill in asked['fills']) / 5)
        alone = asked['fills'][0]
        # What packing takes at its start is there at any fill: 0.96 was measured at 0.3
        # (docs/experiments/models.md).
        self.assertLess(alone['graphSeconds'], 0.95 * asked['fullSeconds'])
        file = str(self.write('lengths.txt', str(round(256 * alone['tokens']))))
        self.compiled('--lengths', file, batch=1)
        seconds = self.weft('explain', 'out', '--json').json()['graph']['seconds']
        self.assertAlmostEqual(seconds / alone['aloneSeconds'], 1, delta=0.1)
        said = self.weft('explain', 'out', '--fills').prose()
        share = 100 * round(256 * alone['tokens']) / 256
        self.assertIn(f'every run is expected at {share:.1f}% of the tokens', said)
        self.compiled()
        said = self.weft('explain', 'out', '--fills').prose()
        self.assertIn('no lengths are expected: --lengths mean=R or FILE of compile', said)
        self.assertRegex(said, r'20\.0% +4\.0% +- ')
        self.weft('compile', *LAYER, '-o', 'plain', '--stop-after', 'emit')
        self.fails(2, 'explain', 'plain', '--fills', says=['counts tokens; nearest: compile with '
                                                           '--ragged AXIS'])
        self.fails(2, 'explain', 'out', '--fills', '--memory', says=['--fills'])

    def test_what_is_no_length(self):
        def rejects(lengths, *says):
            self.fails(2, 'select', *self.LAYER, '--lengths', lengths, says=says)
        rejects('mean=0', '--lengths mean=0: the mean is a share of the longest')
        rejects('missing.txt', 'missing.txt')
        rejects(str(self.write('empty.txt', '')), 'the file holds no lengths')
        rejects(str(self.write('long.txt', '3 257')),
                'length 257 of sequence 1 is above the longest (at least 0, at most 256)')
        rejects(str(self.write('negative.txt', '-3 7')), 'length -3 of sequence 0 is negative')
        self.fails(2, 'select', *LAYER, '--lengths', 'mean=0.5',
                   says=['--lengths mean=0.5: no argument of the graph counts tokens; --ragged ',
                         '--mask padding hides the keys behind them'])

    def test_lengths_are_of_one_kind_of_sequences(self):
        """Of two padding masks the lengths are expected of both, where they are of equal
        sequences; of others no lengths could be."""
        def graph(keys):
            return self.write('two.mlir', f"""!first = tensor<2x2x16x16xf16, #weft.axes<b, h, j, k>>
!second = tensor<2x2x16x{keys}xf16, #weft.axes<b, h, j, m>>
!lengths = tensor<2xi32, #weft.axes<b>>
weft.graph @two(%x: !first, %y: !second, %of_x: !lengths, %of_y: !lengths) ->
    (!first, !second) {{
  %p = weft.mask padding %x, %of_x along (b) {{key = k}} : !first, !lengths
  %q = weft.mask padding %y, %of_y along (b) {{key = m}} : !second, !lengths
  weft.return %p, %q : !first, !second
}}
""")
        self.weft('compile', graph(16), '--lengths', 'mean=0.5', '--stop-after', 'emit', '-o',
                  'out')
        report = json.loads((self.folder / 'out/report.json').read_text())
        self.assertAlmostEqual(report['lengths']['tokens'], 0.5)
        for lengths in ('mean=0.5', self.write('lengths.txt', '8 8')):
            self.fails(3, 'select', graph(8), '--lengths', lengths, says=[
                'the graph has several kinds of sequences (2 of at most 8; 2 of at most 16), and '
                'expected lengths are of one; nearest is no --lengths, which prices all at full '
                'length'])
        self.weft('select', graph(8))

    def test_a_padded_graph_is_priced_at_lengths_too(self):
        """A mask over lengths that a caller brings, as they are or by a mask of tokens: attention
        takes less, whatever else is computed for all positions."""
        layer = [word for word in self.LAYER if word not in ('--ragged', 'j')]
        for mask in ('padding', 'attention-mask'):
            with self.subTest(mask):
                seconds = {}
                for name, flags in (('full', []), ('half', ['--lengths', 'mean=0.5'])):
                    text = self.weft('compile', *layer, '--mask', mask, *flags, '-o', name,
                                     '--overwrite', '--stop-after', 'emit').out
                    report = json.loads((self.folder / name / 'report.json').read_text())
                    seconds[name] = report['plan']['graphSeconds'], report['rooflineSeconds']
                self.assertIn('lengths      priced at 50% of the tokens; at full length', text)
                self.assertAlmostEqual(report['lengths']['tokens'], 0.5)
                self.assertAlmostEqual(report['lengths']['fullGraphSeconds'], seconds['full'][0],
                                       delta=1e-9)
                self.assertLess(seconds['half'][0], seconds['full'][0])
                # Projections are of all positions: most of the roofline stays.
                self.assertLessEqual(seconds['half'][1], seconds['full'][1])
                self.assertGreater(seconds['half'][1], 0.8 * seconds['full'][1])
                self.assertIn('expected: ', self.weft('explain', name, '--fills').out)
        long = str(self.write('long.txt', '3 257'))
        self.fails(2, 'select', *layer, '--mask', 'padding', '--lengths', long,
                   says=['length 257 of sequence 1 is above the longest (at least 0, at most 256)'])


class LengthsTest(CommandTest):
    """Lengths that a run takes are checked before it looks for a GPU."""
    def setUp(self):
        super().setUp()
        self.weft('compile', *ONE_VARIANT, '-o', 'out', env={'WEFT_NVRTC': 'none'})

    def rejects(self, lengths, *says):
        self.fails(2, 'run', 'out', '--check', '--lengths', lengths, says=says)

    def test_files(self):
        for text, says in {
                '3': '1 lengths for 2 sequences of',
                '3 4 5': '3 lengths for 2 sequences of',
                '': '0 lengths for 2 sequences of',
                '3 -1': 'length -1 of sequence 1 of',
                '17 3': 'length 17 of sequence 0 of',
                '3 x': "'x' is no length",
                '3 4.5': "'4.5' is no length",
                '3 99999999999': "'99999999999' is no length"
        }.items():
            with self.subTest(text):
                self.rejects(str(self.write('lengths.txt', text)), says)
        self.rejects('missing.txt', 'missing.txt')
        self.weft('run', 'out', '--check', '--lengths', self.write('good.txt', '0\n16\n'))

    def test_of_a_file_of_batches_the_first_is_taken(self):
        """As compile reads it: several lines with as many lengths as there are sequences."""
        check = ['run', 'out', '--check', '--lengths']
        good = self.write('batches.txt', '3 16\n4:2\n\n99 1\n')
        self.assertIn('batches.txt: of 3 batches, one a line, the first is taken',
                      self.weft(*check, good).err)
        self.rejects(str(self.write('batches.txt', '3 17\n4 5\n')),
                     'length 17 of sequence 1 of')
        self.assertEqual(self.weft(*check, self.write('one.txt', '3 16\n')).err, '')
        self.rejects(str(self.write('uneven.txt', '3 16\n4\n')), '3 lengths for 2 sequences of')

    def test_files_of_inputs(self):
        inputs = lambda lengths: str(safetensors_file.write(
            self.folder / 'inputs', {'lengths': ('I32', [2], lengths)}))
        self.weft('run', 'out', '--check', '--inputs', inputs([0, 16]))
        self.fails(2, 'run', 'out', '--check', '--inputs', inputs([3, 17]),
                   says=['length 17 of sequence 1 of \'lengths\' is above the longest'])
        self.fails(2, 'run', 'out', '--inputs', inputs([-1, 3]),
                   says=['length -1 of sequence 0 of \'lengths\' is negative'])

    def test_means(self):
        for mean in ('0', '-0.5', '1.5', 'x', '', '0.5x', 'nan'):
            with self.subTest(mean):
                self.rejects(f'mean={mean}', f'--lengths mean={mean}: ')
        for mean in ('0.01', '0.5', '1'):
            self.weft('run', 'out', '--check', '--lengths', f'mean={mean}')

    def test_a_padding_mask_counts_tokens(self):
        """Also of inputs: a length beyond the keys would hide none of them, unnoticed."""
        self.weft('compile', *CORE, '--mask', 'padding,causal', '--attention', 'unfused', '-o',
                  'padded', env={'WEFT_NVRTC': 'none'})
        plan = json.loads((self.folder / 'padded/plan.json').read_text())
        lengths, = (one for one in plan['tensors'] if one.get('countsTokens'))
        self.assertEqual(lengths['dtype'], 'i32')
        keys, = (one['extents'][one['axes'].index('k')] for one in plan['tensors']
                 if one['name'] == 'k')
        self.assertEqual(lengths['range'], [0, keys])
        name, sequences = lengths['logical'], lengths['extents'][0]
        check = ['run', 'padded', '--check']
        self.weft(*check, '--lengths', 'mean=0.5')
        self.weft(*check, '--lengths', self.write('good.txt', f'{keys}:{sequences}'))
        long = str(self.write('long.txt', f'{keys + 1}:{sequences}'))
        self.fails(2, *check, '--lengths', long,
                   says=[f"length {keys + 1} of sequence 0 of '{name}' is above the longest",
                         f'at most {keys}'])
        inputs = safetensors_file.write(
            self.folder / 'inputs', {name: ('I32', [sequences], [-1] * sequences)})
        self.fails(2, *check, '--inputs', str(inputs),
                   says=[f"length -1 of sequence 0 of '{name}' is negative"])

    def test_a_plan_without_lengths(self):
        self.weft('compile', *LAYER, '--stacking', 'three', '--attention', 'unfused', '-o', 'plain',
                  env={'WEFT_NVRTC': 'none'})
        self.fails(2, 'run', 'plain', '--check', '--lengths', 'mean=0.5',
                   says=['no argument of',
                         'counts tokens; compile with --ragged AXIS to pack them, --cache N to '
                         'read those before from caches, or --mask padding to hide the keys '
                         'behind them'])
        self.fails(2, 'run', 'out', '--kernel', 'x', '--lengths', 'mean=0.5',
                   says=['--kernel runs on random operands: it takes no --lengths'])


if __name__ == '__main__':
    unittest.main()
