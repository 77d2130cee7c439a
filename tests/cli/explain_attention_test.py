"""weft explain --attention and --memory: every kind of attention with its price beside theory, what
--memory-trade made of a plan, and that explain asks and never chooses."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

from weft_command import CommandTest, CORE, TINY, WEFT
from written_graphs_test import TABLE

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'bench'))

from weftbench import attention_figures

SITE = ['attention', '--dim', 'b=2', '--dim', 'h=4', '--dim', 'j=512', '--dim', 'p=64']
KINDS = ['unfused', 'decomposed', 'recomposed', 'fused']
HALF = 2**-11  # of f16
DECOMPOSED = ['bert-large', '--attention', 'decomposed']

# What another op reads of probabilities, or the graph returns, is stored.
TWO_READERS = """
!q = tensor<2x2x32x16xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x2x32x16xf16, #weft.axes<b, h, k, p>>
!s = tensor<2x2x32x32xf16, #weft.axes<b, h, j, k>>
module {
  weft.graph @two_readers(%q: !q, %k: !k, %v: !k) -> (!q, !s) {
    %s = weft.contract "bhjp,bhkp->bhjk" %q, %k : !q, !k -> !s
    %p = weft.softmax %s over k : !s
    %y = weft.contract "bhjk,bhkp->bhjp" %p, %v : !s, !k -> !q
    weft.return %y, %p : !q, !s
  }
}
"""

# The gradient of the bias is that of the sum, which the derivative of the soft cap reads, too; that
# of another one in front of the cap is one more gradient of scores.
CAPPED_BIAS = """
!q = tensor<2x2x128x64xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x2x128x64xf16, #weft.axes<b, h, k, p>>
!s = tensor<2x2x128x128xf16, #weft.axes<b, h, j, k>>
!bias = tensor<2x128x128xf16, #weft.axes<h, j, k>>
module {
  weft.graph @capped(%q: !q, %k: !k, %v: !k, %bias: !bias) -> !q {
    %dot = weft.contract "bhjp,bhkp->bhjk" %q, %k {scale = 0.0025} : !q, !k -> !s
    %bounded = weft.tanh %dot : !s
    %capped = weft.scale %bounded {factor = 50.0} : !s
    %s = weft.add %capped, %bias along (h, j, k) : !s, !bias -> !s
    %p = weft.softmax %s over k : !s
    %y = weft.contract "bhjk,bhkp->bhjp" %p, %v : !s, !k -> !q
    weft.return %y : !q
  }
}
"""
BIASES_AROUND_CAP = CAPPED_BIAS.replace('%bias: !bias)', '%bias: !bias, %inner: !bias)').replace(
    '%bounded = weft.tanh %dot',
    '%moved = weft.add %dot, %inner along (h, j, k) : !s, !bias -> !s\n'
    '    %bounded = weft.tanh %moved')

# Factors of probabilities, which commute past the contraction: a constant, by row and by key, among
# casts and a dropout; and with one more, by query and key, which does not.
GATED = """
!q = tensor<2x40x3x32xf16, #weft.axes<n, r, u, y>>
!k = tensor<2x56x3x32xf16, #weft.axes<n, s, u, y>>
!v = tensor<2x56x3x48xf16, #weft.axes<n, s, u, z>>
!s = tensor<2x3x40x56xf16, #weft.axes<n, u, r, s>>
!s32 = tensor<2x3x40x56xf32, #weft.axes<n, u, r, s>>
!o = tensor<2x40x3x48xf16, #weft.axes<n, r, u, z>>
!row = tensor<40x3xf32, #weft.axes<r, u>>
!key = tensor<2x56xf16, #weft.axes<n, s>>
!gate = tensor<40x56xf16, #weft.axes<r, s>>
weft.graph @gated(%a: !q, %b: !k, %c: !v, %by_row: !row, %by_key: !key, %by_both: !gate)
    -> !o {
  %0 = weft.contract "nruy,nsuy->nurs" %a, %b {scale = 0.2} : !q, !k -> !s
  %probability = weft.softmax %0 over s {empty_row = zero} : !s
  %half = weft.scale %probability {factor = 0.5} : !s
  %wide = weft.cast %half : !s -> !s32
  %of_row = weft.mul %wide, %by_row along (r, u) : !s32, !row
  %narrow = weft.cast %of_row : !s32 -> !s
  %kept = weft.dropout %narrow {p = 0.1, stream = 3} : !s
  %of_key = weft.mul %kept, %by_key along (n, s) : !s, !key
  %context = weft.contract "nurs,nsuz->nruz" %LAST, %c : !s, !v -> !o
  weft.return %context : !o
}
"""
COMMUTING = GATED.replace('%LAST', '%of_key')
STAYING = GATED.replace('%LAST', '%of_both').replace(
    '  %context',
    '  %of_both = weft.mul %of_key, %by_both along (r, s) : !s, !gate\n  %context')


class Attention(CommandTest):
    def compiled(self, *arguments, folder='out'):
        self.weft('compile', *arguments, '--stop-after', 'emit', '--overwrite', '-o', folder)
        return folder

    def asked(self, *arguments, folder='out'):
        return self.weft('explain', self.compiled(*arguments, folder=folder), '--attention',
                         '--json').json()

    of_site = {}

    def site(self, *arguments):
        """The one site of SITE with these arguments, asked once for all tests: each only reads
        it."""
        if arguments not in self.of_site:
            self.of_site[arguments], = self.asked(*SITE, *arguments)['sites']
        return self.of_site[arguments]

    PACKED = ['bert-base', '--dim', 'b=16', '--dim', 'j=256', '--ragged', 'j', '--profile', 'none']

    def test_packed_attention_is_fused_and_priced_at_the_expected_lengths(self):
        """The kernel that writes packed tokens is the one of the attention; every kind unpacks what
        it must, and takes what the expected lengths leave."""
        seconds, bounds = [], set()
        for lengths in ('mean=1', 'mean=0.6', 'mean=0.3'):
            site, = self.asked(*self.PACKED, '--lengths', lengths)['sites']
            kinds = self.kinds(site)
            self.assertEqual((site['output'], site['chosen']), ('weighted', 'fused'))
            fused, = (one for one in kinds['fused']['kernels'] if 'attention' in one)
            self.assertTrue(fused.startswith('attention_unpack'), fused)
            self.assertGreater(kinds['unfused']['launches'], 3)  # it packs and unpacks
            seconds.append(kinds['fused']['seconds'])
            self.assertLess(kinds['fused']['l2Bytes'], 4 * site['compulsoryBytes'])
            bounds.add((kinds['fused']['errorConstant'], kinds['fused']['errorPerScore']))
            self.assertEqual(len(site['crossovers']), 3)
        self.assertLess(seconds[1], 0.9 * seconds[0])
        self.assertLess(seconds[2], 0.9 * seconds[1])
        self.assertEqual(bounds, {(2 * HALF, 0)})
        said = self.weft('explain', 'out', '--attention').prose()
        self.assertIn('at full length; priced at 30% of the tokens', said)
        self.assertIn('chosen: fused: the fastest of those that are considered', said)

    def kinds(self, site):
        self.assertEqual([one['kind'] for one in site['kinds']], KINDS)
        return {one['kind']: one.get('figures') for one in site['kinds']}

    def test_each_kind_has_its_traffic_and_workspace_beside_theory(self):
        site = self.site()
        heads, length, dim = 8, 512, 64
        self.assertEqual((site['heads'], site['queries'], site['keys'], site['headDim']),
                         (heads, length, length, dim))
        self.assertEqual(site['compulsoryBytes'], 4 * heads * length * dim * 2)
        kinds = self.kinds(site)
        fused, unfused = kinds['fused'], kinds['unfused']
        self.assertEqual(fused['dramBytes'], site['compulsoryBytes'])
        self.assertEqual(fused['workspaceBytes'], 0)
        self.assertEqual(fused['launches'], 1)
        # 2 N d ceil(N / tile rows) elements of keys and values a head, queries and output once.
        tiles = -(-length // fused['tileRows'])
        theory = heads * (2 * length * dim * tiles + 2 * length * dim) * 2
        self.assertEqual((fused['l2Theory'], fused['l2Bytes']), (theory, theory))
        scores = heads * length * length * 2
        self.assertGreaterEqual(unfused['workspaceBytes'], scores)
        self.assertGreaterEqual(unfused['l2Bytes'], 4 * scores)
        self.assertEqual(kinds['decomposed']['launches'], 5)
        self.assertEqual(kinds['recomposed']['launches'], 3)
        self.assertEqual(len(kinds['recomposed']['kernels']), 3)
        self.assertGreater(kinds['decomposed']['l2Bytes'], kinds['recomposed']['l2Bytes'])
        self.assertEqual((site['chosen'], [one['chosen'] for one in site['kinds']]),
                         ('fused', [False, False, False, True]))
        self.assertEqual(site['why'], 'the fastest of those that are considered')

    def test_sweeps_of_the_scores_and_traffic_of_statistics(self):
        """As "Recomposing Softmax Layers", Fig. 5 and 6: four sweeps, two, and none."""
        for length, most in (('64', 0.1), ('32', 0.2)):
            # More keys than 64, which is how many elements a row of queries has.
            kinds = self.kinds(self.site('--sub-vector', length, '--profile', 'none'))
            self.assertEqual([round(kinds[kind]['sweeps'], 2) for kind in KINDS], [4, 6, 2, 0])
            scores = 8 * 512 * 512
            for kind in ('decomposed', 'recomposed'):
                own = kinds[kind]
                self.assertEqual(own['subVector'], int(length))
                # m', d' and r' in fp32, each written and read once.
                self.assertEqual(own['statisticsBytes'], 6 * 4 * scores // int(length))
                self.assertAlmostEqual(own['statisticsShare'],
                                       own['statisticsBytes'] / (4 * scores))
                self.assertLess(own['statisticsShare'], most)
                self.assertGreater(own['reduceSubvectorsSeconds'], 0)
            apart = [kinds['decomposed'][step + 'Seconds']
                     for step in ('localSoftmax', 'reduceSubvectors', 'globalScaling')]
            self.assertLess(apart[1], min(apart[0], apart[2]))
            self.assertLess(sum(apart), kinds['decomposed']['seconds'])
            self.assertEqual([kinds['recomposed'][step + 'Seconds']
                              for step in ('localSoftmax', 'globalScaling')], [0, 0])
            self.assertEqual([kinds[kind]['subVector'] for kind in ('unfused', 'fused')], [0, 0])

    def test_a_dropout_of_probabilities_adds_no_sweep(self):
        for profile in ([], ['--profile', 'none']):
            site, = self.asked('paper-attention', '--dim', 'b=2', *profile)['sites']
            kinds = self.kinds(site)
            self.assertEqual([round(kinds[kind]['sweeps'], 2) for kind in KINDS], [4, 6, 2, 0])
            for step in ('localSoftmax', 'reduceSubvectors', 'globalScaling'):
                self.assertGreater(kinds['decomposed'][step + 'Seconds'], 0, step)
            self.assertEqual(kinds['recomposed']['launches'], 3)

    def test_masked_keys_are_not_loaded(self):
        """Theory counts all keys; a causal mask excludes about half of them."""
        dense, causal = self.site(), self.site('--mask', 'causal')
        figures, before = self.kinds(causal)['fused'], self.kinds(dense)['fused']
        self.assertLess(figures['l2Bytes'], figures['l2Theory'])
        self.assertGreater(figures['l2Bytes'], 0.5 * figures['l2Theory'])
        self.assertEqual(before['l2Bytes'], before['l2Theory'])

    def test_the_error_bound_counts_the_roundings_of_what_crosses_memory(self):
        kinds = self.kinds(self.site())
        bounds = {
            kind: (figures['errorPerScore'] / HALF, figures['errorConstant'] / HALF)
            for kind, figures in kinds.items()
        }
        # Scores are stored and rounded once in the unfused and the decomposed kind; probabilities
        # and output once each, exponentials of a local softmax once more.
        self.assertEqual(bounds['unfused'], (2, 2))
        self.assertEqual(bounds['decomposed'], (2, 3))
        self.assertEqual(bounds['recomposed'][0], 0)
        self.assertEqual(bounds['fused'][0], 0)

    def test_kinds_that_are_considered_only_if_measured_say_so(self):
        recomposed = self.kinds(self.site())['recomposed']
        if recomposed['notConsidered']:
            self.assertIn('only if measured', recomposed['notConsidered'])
            self.assertEqual(recomposed['measured'], 0)
        without, = self.weft('explain', self.compiled(*SITE), '--attention', '--profile', 'none',
                             '--json').json()['sites']
        self.assertEqual(self.kinds(without)['recomposed']['notConsidered'], '')

    def test_the_crossover_is_where_plans_that_are_decided_there_cross(self):
        site = self.site()
        self.assertEqual([one['kind'] for one in site['crossovers']], KINDS[:3])
        length = site['crossovers'][0]['length']
        self.assertEqual(length & (length - 1), 0)

        def seconds(kind, keys):
            arguments = [*SITE[:-4], '--dim', f'j={keys}', *SITE[-2:], '--free']
            return self.weft('select', *arguments, '--attention', kind,
                             '--json').json()['plan']['graphSeconds']

        self.assertLessEqual(seconds('fused', length), seconds('unfused', length))
        self.assertEqual(site['crossovers'][0]['ranges'][-1], {'from': length, 'to': 65536})
        if length > 64:
            self.assertGreater(seconds('fused', length // 2), seconds('unfused', length // 2))

    def test_lengths_at_which_fused_wins_need_not_be_the_longest(self):
        """DeBERTa's gathered terms: the lengths that are said agree with the table of times."""
        self.compiled('deberta-base', '--dim', 'b=1', '--dim', 'j=1024')
        out = self.weft('explain', 'out', '--attention').out
        unfused, fused = [float(re.search(rf'^\*? +{kind} +([\d.]+) us', out, re.M)[1])
                          for kind in ('unfused', 'fused')]
        self.assertGreater(fused, unfused, 'the case shows nothing else')
        said = re.search(r'queries and keys: unfused (.*?), decomposed', ' '.join(out.split()))[1]
        ranges = re.findall(r'from (\d+) to (\d+)|at (\d+)|from (\d+) on', said)
        self.assertTrue(ranges, said)
        for first, last, alone, onwards in ranges:
            least = int(first or alone or onwards)
            most = int(last or alone or 65536)
            self.assertFalse(least <= 1024 <= most, said)
        self.assertLess(int(ranges[0][0] or ranges[0][2]), 1024)

    def test_workspace_of_the_fused_kind_over_length(self):
        self.assertEqual(self.site()['fusedWorkspace'],
                         {'lengths': 11, 'bytesPerToken': 0, 'deviation': 0})
        decode = ['attention', '--dim', 'b=1', '--dim', 'j=1', '--attention', 'fused']
        site, = self.asked(*decode, '--dim', 'k=4096')['sites']
        lengths = [2**n for n in range(6, 17)]
        points = [(keys, self.weft('select', *decode, '--dim', f'k={keys}', '--free',
                                   '--json').json()['plan']['workspaceBytes']) for keys in lengths]
        slope, deviation = attention_figures.slope(points)
        self.assertGreater(slope, 0)
        own = site['fusedWorkspace']
        self.assertAlmostEqual(own['bytesPerToken'], slope)
        self.assertAlmostEqual(own['deviation'], deviation)
        self.assertIn(f'workspace of fused over these lengths: {slope:.3g} B a token, off the line '
                      f'by {100 * deviation:.2g}% at most',
                      self.weft('explain', 'out', '--attention').prose())

    def test_text_and_why(self):
        self.compiled(*SITE, '--attention', 'decomposed')
        text = self.weft('explain', 'out', '--attention').prose()
        self.assertIn('weighted: 8 heads, 512 queries, 512 keys, head dim 64, f16; compulsory 2.10 '
                      'MB', text)
        self.assertIn('--attention decomposed asked for it', text)
        self.assertRegex(text, r'fused is as fast as, of the powers of two from 64 to 65536 '
                         r'queries and keys: unfused from \d+ on, decomposed from \d+ on')
        self.assertRegex(text, r'the whole plan as one graph.*: unfused [\d.]+ .*; decomposed '
                         r'[\d.]+ .*; recomposed [\d.]+ .*; fused [\d.]+ us in 0 B')
        self.assertIn('sweeps of the scores: unfused 4, decomposed 6, recomposed 2, fused 0', text)
        self.assertRegex(text, r"decomposed: sub-vectors of 64 keys; in kernels apart LS [\d.]+ us "
                         r"\(\d+%\), IR [\d.]+ us \(\d+%\), GS [\d.]+ us \(\d+%\); "
                         r"m', d', r' 9\.4% of what a softmax moves")
        self.assertRegex(text, r"recomposed: sub-vectors of 64 keys; in kernels apart IR [\d.]+ us;"
                         r" m', d', r' 9\.4%")

    def test_every_attention_of_a_layer_and_one_that_cannot_be_fused(self):
        graph = self.write('two.mlir', TWO_READERS)
        said = self.asked(graph)
        site, = said['sites']
        fused = site['kinds'][-1]
        self.assertIn('is in no fused attention', fused['rejected'])
        self.assertIn('no fused plan', site['whyNoLengths'])
        self.assertEqual(site['chosen'], 'unfused')

    def test_a_trained_attention_stores_one_number_a_row_if_it_is_fused(self):
        said = self.asked('paper-attention', '--train', '--dim', 'b=2', '--dim', 'j=1024')
        site, = said['sites']
        self.assertEqual(site['whyNoLengths'], '')
        unfused, fused = site['kinds'][0]['figures'], site['kinds'][-1]['figures']
        scores = 2 * 2 * 16 * 1024 * 1024
        self.assertGreater(unfused['dramBytes'] - fused['dramBytes'], 2 * scores)
        # Probabilities and those that are kept are stored; recomposed, exponentials likewise.
        kinds = self.kinds(site)
        self.assertEqual([round(kinds[kind]['sweeps'], 2)
                          for kind in ('unfused', 'recomposed', 'fused')], [5, 3, 0])
        self.assertLess(site['compulsoryBytes'], scores)
        self.assertEqual([plan['kind'] for plan in said['plans'] if 'rejected' not in plan],
                         KINDS)
        self.compiled(*CORE, '--train', '--attention', 'unfused', folder='small')
        self.assertIn('probabilities or, if it is fused, one number a row',
                      self.weft('explain', 'small', '--attention').prose())

    def test_a_backward_pass_that_no_kernel_takes_says_why(self):
        said = self.asked('attention', '--dim', 'b=1', '--dim', 'j=256', '--dim', 'p=192',
                          '--dtype', 'f32', '--tf32', '--train')
        fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
        reason, = fused['rejectedBackwards']
        self.assertIn('F033 attention-backward-off (attention-backward-sm90: ', reason)
        self.assertIn('attention-backward-sm80: 272 registers a thread for heads of 192', reason)
        self.assertIn(f'backward: no fused kernel: {reason}',
                      self.weft('explain', 'out', '--attention').prose())
        for width in (64, 256):
            said = self.asked('attention', '--dim', 'b=1', '--dim', 'j=256', '--dim', f'p={width}',
                              '--train', folder=f'taken{width}')
            self.assertFalse(any('rejectedBackwards' in plan for plan in said['plans']))

    def test_a_backward_pass_that_is_no_kernel_says_why(self):
        """A bias behind a soft cap has a gradient of scores; one more in front of it another."""
        said = self.asked(self.write('capped.mlir', CAPPED_BIAS), '--train')
        fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
        self.assertNotIn('rejectedBackwards', fused)
        said = self.asked(self.write('capped.mlir', BIASES_AROUND_CAP), '--train')
        fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
        reason, = fused['rejectedBackwards']
        self.assertIn('F032 attention-backward-region (', reason)
        self.assertIn('as well)', reason)
        self.assertNotIn('slowerBackwards', fused)
        self.assertIn(f'backward: no fused kernel: {reason}',
                      self.weft('explain', 'out', '--attention').prose())

    def test_a_backward_pass_that_is_slower_as_one_kernel_says_so(self):
        wide = ['attention', '--train', '--dim', 'p=256', '--dim', 'w=256', '--dim', 'b=1']
        said = self.asked(*wide, '--dim', 'j=4096', '--attention', 'fused')
        fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
        self.assertEqual(fused['slowerBackwards'], 1)
        self.assertNotIn('rejectedBackwards', fused)
        self.assertIn('backward: a fused kernel is not taken: several kernels are faster by '
                      "today's prices", self.weft('explain', 'out', '--attention').prose())
        self.assertIn('launches, fused attention, backward pass unfused, workspace',
                      self.weft('explain', 'out').prose())
        self.compiled(*CORE, '--train', '--attention', 'fused', folder='narrow')
        self.assertRegex(self.weft('explain', 'narrow').prose(), 'fused attention, workspace')
        self.assertNotIn('backward:', self.weft('explain', 'narrow', '--attention').prose())

    def test_factors_of_probabilities_do_not_keep_an_attention_from_its_kernel(self):
        self.write('gated.mlir', COMMUTING)
        site, = self.asked('gated.mlir', '--attention', 'fused')['sites']
        self.assertEqual((site['chosen'], site['output']), ('fused', 'context'))
        self.checkSame('gated.mlir', 'out/graph.mlir')
        for kind in ('unfused', 'decomposed'):
            self.compiled('gated.mlir', '--attention', kind)
            self.checkSame('gated.mlir', 'out/graph.mlir')

    def test_the_chosen_kind_is_found_behind_factors_that_share_a_kernel(self):
        """The output by itself is in no kernel's results then."""
        graph = self.write('gated.mlir', COMMUTING.replace(
            '  weft.return %context', '  %y = weft.relu %context : !o\n  weft.return %y'))
        for kind in ('fused', 'decomposed', 'unfused'):
            site, = self.asked(graph, '--attention', kind)['sites']
            self.assertEqual((site['chosen'], site['output']), (kind, 'context'))
            plan = json.loads((self.folder / 'out/plan.json').read_text())
            written = {plan['tensors'][number]['logical'] for kernel in plan['kernels']
                       for number in kernel['outputs']}
            self.assertEqual('context' in written, kind != 'fused')

    def test_each_attention_has_the_kind_that_was_chosen_for_it(self):
        head, body = COMMUTING.split('    -> !o {\n')
        body = body[:body.index('  weft.return')]
        again = re.sub(r'%(0|probability|half|wide|of_row|narrow|kept|of_key|context)\b',
                       lambda name: '%again' if name[1] == '0' else f'%{name[1]}_again', body)
        graph = self.write('two.mlir', f'{head}    -> (!o, !o) {{\n{body}{again}'
                           '  weft.return %context, %context_again : !o, !o\n}\n')
        for kinds in (['unfused', 'decomposed'], ['decomposed', 'unfused'], ['fused', 'unfused']):
            pins = ','.join(f'{name}={kind}' for name, kind in zip(
                ('probability', 'probability_again'), kinds))
            sites = self.asked(graph, '--attention', pins)['sites']
            self.assertEqual([site['chosen'] for site in sites], kinds)

    def test_factors_of_probabilities_are_trained_beside_one_kernel(self):
        """Gradients are those of the graph as it is written, those of the factors among them."""
        self.write('gated.mlir', COMMUTING)
        subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-opt',
            '--pass-pipeline=builtin.module(weft.graph(differentiate))',
            self.folder / 'gated.mlir', '-o', self.folder / 'trained.mlir'
        ], check=True)
        said = self.asked('gated.mlir', '--train', '--attention', 'fused')
        fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
        self.assertNotIn('rejectedBackwards', fused)
        self.assertEqual(said['sites'][0]['chosen'], 'fused')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertIn('attention_backward',
                      ' '.join(kernel['name'] for kernel in plan['kernels']))
        self.checkSame('trained.mlir', 'out/graph.mlir')

    def test_factors_that_are_computed_again_by_name_stay(self):
        """Names are of the graph as it is written: none that moving factors changes or removes."""
        graph = self.write('gated.mlir', COMMUTING)
        moved = self.weft('import', graph, '--train').out
        self.assertIn('%context_ungated', moved)
        self.assertNotIn('%of_key', moved)
        stays = self.weft('import', graph, '--train', '--recompute', 'of_key').out
        self.assertIn('%of_key_again = weft.mul', stays)
        self.assertNotIn('_ungated', stays)
        self.fails(2, 'import', graph, '--train', '--recompute', 'context',
                   says=["recompute 'context': only element-wise ops and norms"])
        self.fails(3, 'select', graph, '--train', '--recompute', 'of_key', '--attention', 'fused',
                   says=["scale 'half' multiplies it", 'moves none that --recompute names'])

    def test_a_factor_of_each_query_and_key_keeps_an_attention_from_its_kernel(self):
        reason = ("the factor of mul 'of_both' varies along 's' and along 'r', which the values of "
                  "contract 'context' lack")
        graph = self.write('gated.mlir', STAYING)
        for flags in ([], ['--train']):
            self.fails(3, 'select', graph, '--attention', 'fused', *flags, says=[reason])
            said = self.asked(graph, *flags)
            fused, = [plan for plan in said['plans'] if plan['kind'] == 'fused']
            self.assertIn(reason, fused['rejected'])
            self.assertNotEqual(said['sites'][0]['chosen'], 'fused')

    def test_a_graph_without_attention(self):
        (self.folder / 'relu.mlir').write_text('''
!ij = tensor<64x64xf16, #weft.axes<i, j>>
module {
  weft.graph @relu(%x: !ij) -> !ij {
    %y = weft.relu %x : !ij
    weft.return %y : !ij
  }
}
''')
        self.compiled('relu.mlir')
        self.assertIn('no attention', self.weft('explain', 'out', '--attention').out)

    def test_both_orders_of_words(self):
        self.compiled(*CORE)
        first = self.weft('explain', 'out', '--attention').out
        self.assertEqual(self.weft('explain', '--attention', 'out').out, first)


class Recomposed(CommandTest):
    """Local softmax ends the scores' GEMM and global scaling begins the next one, wherever that is
    legal; elsewhere an error says why not."""
    PLAIN = ['attention', '--dim', 'b=1', '--dim', 'h=2', '--dim', 'p=64']

    def kernels(self, *arguments, kind='recomposed'):
        self.weft('compile', *arguments, '--attention', kind, '--profile', 'none', '--stop-after',
                  'emit', '--overwrite', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        return [' '.join(kernel['ops']) for kernel in plan['kernels']]

    def check_fused(self, kernels, sites=1):
        for step, other in (('local_softmax', ' = contract'), ('global_scaling', ' = contract')):
            holding = [ops for ops in kernels if step in ops]
            self.assertGreaterEqual(sum(other in ops for ops in holding), sites, kernels)
        return kernels

    def test_masks_and_lengths(self):
        blocks = 'bigbird(block=64,window=1,global=1,random=1,seed=0)'
        for length, mask in (('333', []), ('200', ['--mask', 'causal']),
                             ('333', ['--mask', 'window=40']),
                             ('512', ['--mask', 'padding,causal']), ('333', ['--mask', blocks])):
            with self.subTest(length=length, mask=mask):  # 333: rows that TMA does not take
                kernels = self.kernels(*self.PLAIN, '--dim', f'j={length}', *mask)
                self.check_fused(kernels)
                self.assertFalse(any('local_softmax' in ops and ' = contract' not in ops
                                     for ops in kernels))
        # Fewer queries than keys, and warps in place of warpgroups.
        self.check_fused(self.kernels(*self.PLAIN, '--dim', 'j=72', '--dim', 'k=200', '--mask',
                                      'causal', '--device', 'a100'))

    def test_models(self):
        for model, sites in (('bert-large', 1), ('gpt-neo-1.3b', 1), ('gpt-neo-1.3b-local', 1),
                             ('bigbird-large', 1), ('longformer-large', 2)):
            with self.subTest(model):
                self.check_fused(self.kernels(model, '--dim', 'b=1', '--dim', 'j=1024', '--part',
                                              'attention'), sites)

    def test_predicted_no_slower_than_a_whole_softmax_from_2048_keys_on(self):
        def seconds(kind, *arguments):
            said = self.weft('select', 'attention', '--dim', 'b=1', *arguments, '--attention', kind,
                             '--profile', 'none', '--chunks', '1', '--json').json()
            return said['plan']['seconds']

        for flags in (['--dim', 'j=2048'], ['--dim', 'j=4096', '--mask', 'causal'],
                      ['--dim', 'j=2048', '--device', 'a100']):
            with self.subTest(flags):
                self.assertLess(seconds('recomposed', *flags), seconds('unfused', *flags))

    def test_a_dropout_is_in_the_epilogue_of_the_scores(self):
        for device in ('h200', 'a100'):
            kernels = self.check_fused(self.kernels('paper-attention', '--dim', 'b=2', '--device',
                                                    device))
            dropping, = [ops for ops in kernels if 'dropout' in ops]
            self.assertIn('local_softmax', dropping)
        self.check_fused(self.kernels('paper-encoder', '--dim', 'b=2', '--dim', 'j=500'))

    def test_a_trained_attention_saves_exponentials_and_factors(self):
        for model in (['attention', '--mask', 'causal'], ['paper-attention']):
            with self.subTest(model):
                self.check_fused(self.kernels(*model, '--dim', 'b=2', '--dim', 'j=256', '--train'))
                graph = (self.folder / 'out/graph.mlir').read_text()
                saved = re.search(r'weft.saved = \[(.*?)\]', graph).group(1)
                self.assertIn('"exponentials"', saved)
                self.assertIn('"factors"', saved)
                self.assertNotRegex(saved, 'prob|score|softmax')
        # Some parts of several layers have no attention.
        self.check_fused(self.kernels('gpt2', '--dim', 'b=1', '--dim', 'j=128', '--layers', '2',
                                      '--train'), 2)

    def test_sub_vectors(self):
        for length in ('16', '32', '64'):
            self.check_fused(self.kernels(*self.PLAIN, '--dim', 'j=200', '--sub-vector', length))
            self.assertIn(f'tile = {length}', (self.folder / 'out/graph.mlir').read_text())
        self.kernels(*self.PLAIN, '--dim', 'j=256', '--sub-vector', '128', kind='decomposed')
        self.assertIn('tile = 128', (self.folder / 'out/graph.mlir').read_text())
        said = self.weft('select', *self.PLAIN, '--dim', 'j=512', '--attention', 'recomposed',
                         '--sub-vector', 'auto', '--profile', 'none', '--json').json()
        self.assertEqual(sorted(one['name'] for one in said['variants']),
                         ['recompose-softmax-16', 'recompose-softmax-32', 'recompose-softmax-64'])

    def test_what_cannot_be_says_why(self):
        ask = ['select', *self.PLAIN, '--dim', 'j=256', '--attention', 'recomposed']
        self.fails(3, *ask, '--sub-vector', '128', '--profile', 'none',
                   says=['sub-vectors of 128 elements', '16, 32 and 64 are taken',
                         'nearest alternative is --attention decomposed'])
        self.fails(3, *ask, '--dtype', 'f32', says=['is not recomposed', '--attention decomposed'])
        self.fails(2, *ask, '--sub-vector', '48', says=['16, 32, 64, 128 or auto'])
        self.fails(2, 'select', *self.PLAIN, '--attention', 'fused', '--sub-vector', '32',
                   says=['no softmax is decomposed'])
        graph = self.write('two.mlir', TWO_READERS)
        self.fails(3, 'select', graph, '--attention', 'recomposed',
                   says=["softmax 'p' is not recomposed: the graph returns it"])


class BadInput(CommandTest):
    """What no fused kernel takes: another kind where weft may choose, else the limit."""
    NEAREST = '--attention auto, which takes it unfused or decomposed, whichever is faster'

    def rejected(self, *arguments, says):
        said = self.fails(3, 'select', *arguments, '--attention', 'fused', says=says).err
        self.assertLess(len(said), 700, said)
        return said

    def test_head_dims_and_types_that_no_kernel_takes(self):
        nearest = 'the nearest alternatives are head'
        for flags, says in ((['--dim', 'p=512'], ['512', 'at most 256 fit the registers',
                                                  f'{nearest} dim 256 and']),
                            (['--dim', 'p=320'], [f'{nearest} dim 256 and']),
                            (['--dim', 'p=64', '--dim', 'w=264'], ['64 and 264', 'at most 256',
                                                                   f'{nearest} dims 64 and 256']),
                            (['--dim', 'p=20'], ['20', 'multiples of 8', f'{nearest} dim 24 and']),
                            (['--dim', 'p=13'], [f'{nearest} dim 16 and']),
                            (['--dim', 'p=4'], [f'{nearest} dim 8 and']),
                            (['--dtype', 'f32'], ['element type f32', 'f16 and bf16',
                                                  'the nearest alternative is --attention auto'])):
            said = self.rejected('attention', *flags,
                                says=["--attention fused: 'weighted' fits no kernel", *says])
            self.assertIn(self.NEAREST, said)
            plan = self.weft('select', 'attention', *flags, '--json').json()['plan']
            self.assertNotIn('fuse-attention', plan['variant'])

    def test_targets_that_have_no_fused_kernel(self):
        for device, target in (('t4', 'sm_75'), ('v100', 'sm_70')):
            self.rejected('attention', '--device', device, says=[
                f'no kernel family of {target} takes a fused attention, which needs sm_80 or '
                'later; the nearest alternative is', self.NEAREST
            ])
            self.fails(3, 'select', 'attention', '--device', device, '--attention',
                       'probability=fused', says=[f'{target} takes', 'needs sm_80 or later'])

    def test_another_kind_is_chosen_with_the_reason_as_a_record(self):
        self.weft('compile', 'attention', '--dim', 'p=512', '--dim', 'j=64', '--stop-after', 'emit',
                  '-o', 'out')
        records = self.weft('opt', 'attention', '--dim', 'p=512', '--records', '--wide').out
        self.assertRegex(records, 'F028 attention-off .*at most 256 fit the registers')
        said = self.weft('explain', 'out', '--attention', '--json').json()['sites'][0]
        self.assertIn('at most 256 fit the registers', said['kinds'][-1]['rejected'])
        self.assertNotEqual(said['chosen'], 'fused')
        text = self.weft('explain', 'out', '--attention').prose()
        self.assertIn("fused: no plan: 'weighted' fits no kernel: F028 attention-off", text)
        self.assertEqual(text.count('F028'), 1)
        for unasked in ('--attention fused', 'nearest'):
            self.assertNotIn(unasked, text)

    def test_chunks_of_scores_that_are_not_stored(self):
        self.rejected('attention', '--chunks', '2',
                     says=['--chunks 2 asks for stored scores', '--chunks 1'])

    def test_softmax_that_others_read(self):
        for flags in ([], ['--train']):
            said = self.rejected(self.write('two.mlir', TWO_READERS), *flags,
                                 says=["softmax 'p'", 'the graph returns it'])
            self.assertIn(self.NEAREST, said)

    def test_tf32(self):
        """Where it is asked f32 has fused attention; what forbids it is said, and else the flag."""
        asked = ['attention', '--dtype', 'f32', '--attention', 'fused']
        plan = self.weft('select', *asked, '--tf32', '--json').json()['plan']
        self.assertIn('fuse-attention', plan['variant'])
        self.rejected('attention', '--dtype', 'f32',
                      says=['may be read as tf32 (--tf32)', self.NEAREST])
        self.rejected('attention', '--dtype', 'f32', '--tf32', '--dim', 'p=264', '--dim', 'w=264',
                      says=['264', 'at most 256', self.NEAREST])
        trained = self.weft('select', *asked, '--tf32', '--train', '--dropout', '0.1',
                            '--json').json()['plan']
        self.assertIn('fuse-attention', trained['variant'])
        self.assertTrue(any(name.startswith('attention_backward') for name in trained['kernels']))
        self.weft('compile', *asked, '--tf32', '--dim', 'b=1', '--dim', 'j=64', '--profile',
                  'none', '--stop-after', 'emit', '-o', 'out')
        site = self.weft('explain', 'out', '--attention', '--json').json()['sites'][0]
        bounds = {kind['kind']: kind['figures'] for kind in site['kinds'] if 'figures' in kind}
        for kind in ('unfused', 'fused'):  # 2^-9 of every product
            self.assertGreater(bounds[kind]['errorConstant'], 2**-9)
            self.assertGreaterEqual(bounds[kind]['errorPerScore'], 2**-8)

    def test_a_mask_that_no_kernel_takes(self):
        """A table of tiles that is a tensor is read at other coordinates than the score's: another
        kind is chosen, with the reason as a record."""
        self.write('table.mlir', TABLE)
        self.rejected('table.mlir', says=["'context' fits no kernel: F027", self.NEAREST])
        records = self.weft('opt', 'table.mlir', '--records', '--wide').out
        self.assertRegex(records, 'F027 .*table')
        self.assertNotIn('fuse-attention',
                         self.weft('select', 'table.mlir', '--json').json()['plan']['variant'])
        self.weft('compile', 'table.mlir', '--stop-after', 'emit', '-o', 'out')
        site, = self.weft('explain', 'out', '--attention', '--json').json()['sites']
        self.assertEqual(site['kinds'][-1]['kind'], 'fused')
        self.assertIn('F027', site['kinds'][-1]['rejected'])
        self.assertIn(site['chosen'], ('unfused', 'decomposed'))

    def test_groups_lengths_and_windows(self):
        for flags, says in ((['--dim', 'h=12', '--dim', 'g=5'],
                             ['h=12 is not divisible by g=5']),
                            (['--dim', 'h=4', '--dim', 'g=8'], ['h=4 is not divisible by g=8']),
                            (['--dim', 'j=1048577'], ['j=1048577', '1048576 (2^20) positions']),
                            (['--dim', 'k=2097152'], ['k=2097152', '1048576 (2^20) positions']),
                            (['--mask', 'window=0'], ['nearest is window=1']),
                            (['--mask', 'window=-4'], ['nearest is window=1'])):
            for kind in ('auto', 'fused'):
                self.fails(2, 'select', 'attention', *flags, '--attention', kind, says=says)
        mismatched = self.write('groups.mlir', """
!q = tensor<2x6x32x16xf16, #weft.axes<b, h, j, p>>
!k = tensor<2x4x32x16xf16, #weft.axes<b, h, k, p>>
!s = tensor<2x6x32x32xf16, #weft.axes<b, h, j, k>>
module {
  weft.graph @groups(%q: !q, %k: !k) -> !s {
    %s = weft.contract "bhjp,bhkp->bhjk" %q, %k : !q, !k -> !s
    weft.return %s : !s
  }
}
""")
        self.fails(2, 'select', mismatched, '--attention', 'fused', says=['groups.mlir:7', 'h'])

    def test_a_graph_longer_than_fused_kernels_take(self):
        long = self.write('long.mlir', """
!q = tensor<1x1048577x64xf16, #weft.axes<h, j, p>>
!k = tensor<1x64x64xf16, #weft.axes<h, k, p>>
!s = tensor<1x1048577x64xf16, #weft.axes<h, j, k>>
module {
  weft.graph @long(%q: !q, %k: !k, %v: !k) -> !q {
    %s = weft.contract "hjp,hkp->hjk" %q, %k : !q, !k -> !s
    %p = weft.softmax %s over k : !s
    %y = weft.contract "hjk,hkp->hjp" %p, %v : !s, !k -> !q
    weft.return %y : !q
  }
}
""")
        said = self.rejected(long, says=['1048577 queries', 'at most 1048576 (2^20) positions'])
        self.assertIn(self.NEAREST, said)
        self.assertNotIn('fuse-attention',
                         self.weft('select', long, '--json').json()['plan']['variant'])


class MemoryFrontier(CommandTest):
    MODEL = [
        'gpt2', '--dim', 'j=256', '--dim', 'h=4', '--dim', 'p=64', '--dim', 'i=256', '--train',
        '--stacking', 'three'
    ]

    def check_reachable(self, plans):
        """Each command chooses the plan that is listed for it, and none finds a faster one that
        the list lacks."""
        for plan in plans:
            words = plan['command'].split()
            self.assertEqual(words[:2], ['weft', 'compile'])
            self.assertNotIn('--recompute', words)
            chosen = self.weft('select', *words[2:], '--json').json()['plan']
            self.assertAlmostEqual(plan['seconds'] / chosen['seconds'], 1, places=6)
            self.assertEqual(plan['workspace'], chosen['workspaceBytes'])

    def frontier(self, *flags):
        said = self.weft('explain', 'gpt2', '--train', *flags, '--memory', '--json').json()
        plans = said['frontier']
        for less, more in zip(plans, plans[1:]):
            self.assertLess(less['workspace'], more['workspace'])
            self.assertGreater(less['seconds'], more['seconds'])
        return plans

    def test_gpt2_has_three_plans_or_more_of_which_none_beats_another(self):
        """Of one is tried that its command chooses it; of a small model below, of all."""
        for flags, tried in ((['--dim', 'b=4', '--dim', 'j=1024'], 1), (['--layers', '12'], 0),
                             (['--part', 'model'], None)):
            with self.subTest(flags=flags):
                plans = self.frontier(*flags)
                self.assertGreaterEqual(len(plans), 3)
                if tried is not None:
                    self.check_reachable([plans[tried]])

    def test_norms_are_computed_again_where_the_limit_needs_it(self):
        model = ['gpt2', '--train', '--dim', 'b=8', '--json']
        named = self.weft('select', *model, '--recompute', 'hidden,norm1,norm2', '--max-memory',
                          '170M').json()['plan']
        chosen = self.weft('select', *model, '--max-memory', '170M').json()['plan']
        self.assertLessEqual(chosen['workspaceBytes'], 170e6)
        self.assertLessEqual(chosen['seconds'], named['seconds'] * (1 + 1e-6))
        self.assertIn('recompute-norm1', chosen['variant'])
        again = self.weft('select', *model, '--max-memory', '170M', '--variant',
                          chosen['variant']).json()['plan']
        self.assertEqual(again['workspaceBytes'], chosen['workspaceBytes'])

    def test_each_plan_of_the_frontier_is_what_its_command_compiles(self):
        said = self.weft('explain', *self.MODEL, '--memory', '-o', 'figure.svg', '--json').json()
        plans = said['frontier']
        self.assertGreaterEqual(len(plans), 3)
        self.assertGreater(said['plansPriced'], len(plans))
        for less, more in zip(plans, plans[1:]):
            self.assertLess(less['workspace'], more['workspace'])
            self.assertGreater(less['seconds'], more['seconds'])
        fastest = self.weft('select', *self.MODEL, '--json').json()['plan']
        self.assertAlmostEqual(plans[-1]['seconds'] / fastest['seconds'], 1, places=6)
        self.check_reachable(plans)
        self.assertTrue(any('norm' in name for plan in plans for name in plan['recomputed']))
        figure = (self.folder / 'figure.svg').read_text()
        self.assertTrue(figure.startswith('<svg '))
        self.assertEqual(figure.count('class="kept"'), len(plans))

    def test_splits_of_keys_work_in_memory_that_the_limit_bounds(self):
        """Few queries of many keys: blocks share these, and what each leaves for the last one is in
        the plan's workspace, by WGMMA and by mma.sync."""
        for queries, device in ((64, 'h200'), (1, 'a100')):
            with self.subTest(queries=queries, device=device):
                few = [
                    'attention', '--dim', 'b=1', '--dim', 'h=16', '--dim', 'g=4', '--dim',
                    f'j={queries}', '--dim', 'k=16384', '--dim', 'p=128', '--attention', 'fused',
                    '--device', device, '--profile', 'none', '--stop-after', 'emit'
                ]

                def kernel_of(folder, *flags):
                    self.weft('compile', *few, *flags, '-o', folder)
                    plan = json.loads((self.folder / folder / 'plan.json').read_text())
                    fused, = (one for one in plan['kernels']
                              if one['family'].startswith('attention'))
                    return plan, fused

                plan, fused = kernel_of(f'free{queries}')
                self.assertGreater(fused['knobs']['splits'], 1)
                self.assertGreater(fused['workspaceBytes'], 0)
                self.assertGreaterEqual(plan['workspaceBytes'], fused['workspaceBytes'])
                limit = plan['workspaceBytes'] - 1
                bounded, other = kernel_of(f'bound{queries}', '--max-memory', str(limit))
                self.assertLessEqual(bounded['workspaceBytes'], limit)
                self.assertLess(other.get('workspaceBytes', 0), fused['workspaceBytes'])
                self.assertGreater(bounded['predictedSeconds'], plan['predictedSeconds'])
                self.assertIn('which works in',
                              self.weft('explain', f'free{queries}', '--memory').prose())

    def test_of_an_artifact_that_trains_it_stands_below_the_plan(self):
        self.weft('compile', *TINY, '--train', '--stop-after', 'emit', '-o', 'out')
        said = self.weft('explain', 'out', '--memory').prose()
        self.assertIn('memory: workspace', said)
        self.assertIn('frontier of time and memory: ', said)
        self.weft('compile', 'gpt2', '--layers', '2', '--train', '--stop-after', 'emit', '-o',
                  'two')
        said = self.weft('explain', 'two', '--memory').prose()
        self.assertIn('memory: workspace', said)
        self.assertIn('with --layers or --part model, lists it', said)
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'core')
        self.assertNotIn('frontier', self.weft('explain', 'core', '--memory').out)
        self.fails(2, 'explain', 'core', '--memory', '-o', 'f.svg', says=['explain MODEL --memory'])
        self.fails(2, 'explain', 'core', '-o', 'f.svg', says=['requires --distributions'])


class Determinism(CommandTest):
    BACKWARD = [
        'attention', '--dim', 'b=1', '--dim', 'h=4', '--dim', 'j=512', '--dim', 'p=64', '--train',
        '--stop-after', 'emit'
    ]

    def test_the_screen_says_what_a_fixed_order_of_sums_costs(self):
        for flag in ('on', 'off'):
            with self.subTest(deterministic=flag):
                self.weft('compile', *self.BACKWARD, '--deterministic', flag, '-o', flag)
                self.assertRegex(
                    self.weft('explain', flag).prose(),
                    r'determinism \S+ sums in (a fixed|any) order,.* estimated [0-9.]+ us; '
                    r'in (a fixed|any) order [0-9.]+ us \(--deterministic (on|off)\)')
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'core')
        self.assertNotIn('determinism ', self.weft('explain', 'core').out)


class MemoryTrade(CommandTest):
    def selected(self, *flags):
        return self.weft('select', *DECOMPOSED, *flags, '--json').json()

    def test_by_default_the_fastest_plan_is_taken_and_a_trade_gives_time_for_memory(self):
        fastest, traded = self.selected(), self.selected('--memory-trade', '25')
        zero = self.selected('--memory-trade', '0%')
        self.assertEqual(fastest['plan'], zero['plan'])
        self.assertEqual(fastest['memoryTrade'], {'slowerShare': 0, 'bytesLess': 0})
        self.assertLess(traded['plan']['workspaceBytes'], fastest['plan']['workspaceBytes'])
        self.assertGreater(traded['plan']['graphSeconds'], fastest['plan']['graphSeconds'])
        self.assertLessEqual(traded['plan']['graphSeconds'], 1.25 * fastest['plan']['graphSeconds'])
        share = traded['plan']['graphSeconds'] / fastest['plan']['graphSeconds'] - 1
        self.assertAlmostEqual(traded['memoryTrade']['slowerShare'], share, places=6)
        self.assertEqual(traded['memoryTrade']['bytesLess'],
                         fastest['plan']['workspaceBytes'] - traded['plan']['workspaceBytes'])
        small = 50 * share  # in percent half of what the memory costs
        self.assertEqual(self.selected('--memory-trade', f'{small:.9f}')['plan'], fastest['plan'])

    def test_it_is_recorded_and_explain_says_when_it_was_used(self):
        self.weft('compile', *DECOMPOSED, '--stop-after', 'emit', '-o', 'fastest')
        self.weft('compile', *DECOMPOSED, '--memory-trade', '25', '--stop-after', 'emit', '-o',
                  'traded')
        report = json.loads((self.folder / 'traded/report.json').read_text())
        self.assertEqual(report['request']['choices']['memoryTrade'], '25')
        self.assertEqual(report['memoryTrade']['allowedShare'], 0.25)
        notes = json.loads((self.folder / 'traded/plan.json').read_text())['notes']
        self.assertTrue(any('--memory-trade: as one graph the plan is ' in str(note)
                            for note in notes), notes)
        self.assertNotIn('memory-trade', (self.folder / 'fastest/plan.json').read_text())
        said = self.weft('explain', 'traded', '--memory').prose()
        self.assertRegex(said, r'the trade was used: [\d.]+% slower than the fastest, [\d.]+ MB of '
                         'workspace less')
        self.assertIn('of the plans at most 25% slower than the fastest (--memory-trade)', said)
        said = self.weft('explain', 'fastest', '--memory').prose()
        self.assertIn('the trade was not used', said)
        self.assertIn('the fastest plan as one graph (--memory-trade 0)', said)
        self.assertIn('memory: workspace', said)
        # Asked again, the plan is decided under the same trade.
        layout = self.weft('explain', 'traded', '--layout', 'exponentials', '--json').json()
        own = [one for one in layout['prices'] if one.get('loss') == 0]
        self.assertTrue(own)
        self.assertEqual(own[0]['chunks'], layout['planChunks'])

    def test_what_is_no_percentage(self):
        for wrong in ('-1', 'much', '25 %', '', '1001', 'nan', '5%%'):
            self.fails(2, 'select', *CORE, f'--memory-trade={wrong}',
                       says=[f'--memory-trade {wrong}: expected a percentage from 0 ',
                             '1000'] if wrong else [])


class ExplainAsks(CommandTest):
    def test_choices_of_an_artifact_are_rejected_with_what_asks(self):
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'out')
        for flags, nearest in ((['--pin', 'q=bhpj'], '--layout TENSOR'),
                               (['--fuse', 'a,b'], '--fusion A,B'),
                               (['--no-fuse', 'a,b'], '--fusion A,B'),
                               (['--chunks', '2'], '--memory shows'),
                               (['--max-memory', '1M'], '--memory shows'),
                               (['--memory-trade', '5'], '--memory shows'),
                               (['--softmax', 'tree'], '--kernel NAME'),
                               (['--free'], '--layout TENSOR'),
                               (['--stacking', 'three'], '--all'),
                               (['--variant', 'unchanged'], '--all'),
                               (['--norms', 'auto'], '--all'),
                               (['--fuse-rules', 'none'], '--fusion A,B'),
                               (['--concurrent', 'on'], '--all'),
                               (['--alternatives', '3'], '--all'),
                               (['--search-memory', '1G'], '--all')):
            self.fails(2, 'explain', 'out', *flags, says=[
                f'explain out: {flags[0]} chooses', f'nearest: explain {nearest}',
                f'weft compile MODEL {flags[0]} -o OTHER', 'weft diff out OTHER'
            ])
        self.fails(2, 'explain', 'out', '--attention', 'fused', says=[
            'explain out --attention prices every kind', 'weft compile MODEL --attention fused'
        ])
        for flags in (['--dim', 'j=8'], ['--train'], ['--dtype', 'f16'], ['--mask', 'causal']):
            self.fails(2, 'explain', 'out', *flags, says=[f'{flags[0]} belongs to a model'])

    def test_a_model_before_selection_is_still_asked_under_choices(self):
        model = ['paper-encoder', '--movement']
        fused = self.weft('explain', *model, '--json').json()
        unfused = self.weft('explain', *model, '--attention', 'unfused', '--json').json()
        self.assertNotEqual(fused['variant'], unfused['variant'])
        self.assertEqual(unfused['variant'].count('attention'), 0)
        self.weft('explain', *model, '--fuse-rules', 'paper')
        self.fails(2, 'explain', *model, '--attention', says=['takes a kind: auto, unfused'])
        self.fails(2, 'explain', *model, '--attention', 'fusedd', says=['fusedd', 'fused'])
        self.fails(2, 'explain', *model, '--chunks', '2', says=['--chunks chooses'])
        self.fails(2, 'explain', '--movement', says=['DIR is required'])

    def test_help_lists_no_choice_that_is_rejected(self):
        said = self.weft('explain', '--help').out
        for flag in ('--pin', '--max-memory', '--memory-trade', '--chunks', '--free', '--softmax'):
            self.assertIsNone(re.search(f'^ *{flag} ', said, re.M), flag)
        for flag in (r'--attention \[KIND\]', '--memory', '--layout TENSOR'):
            self.assertRegex(said, r'(?m)^ *' + flag)


if __name__ == '__main__':
    unittest.main()
