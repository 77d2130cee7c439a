"""bench/run recomposition without a GPU: forms and kinds that weft takes, rows of every point,
ranks beside the seed's, figures marked as predicted, crossovers, and bad words."""
import contextlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
import weftbench
from weftbench import (__main__ as bench, figure_run, recomposition, recomposition_drawings,
                       recomposition_figures, recomposition_points as points,
                       recomposition_tables as tables, results, sparse_rows)
import without_torch
from weft_command import CommandTest, WEFT

SVG = '{http://www.w3.org/2000/svg}'


def texts(drawn):
    return [element.text for element in xml.etree.ElementTree.fromstring(drawn).iter(SVG + 'text')]


def layer_made(work):
    """Entries of a layer without weft: a whole softmax of a third of 1 ms, decomposed 1.5 times as
    long, recomposed 0.8 times."""
    classes = dict(zip(points.CLASSES, (1 / 3, 1 / 3, 1 / 6, 1 / 6, 0)))
    found = []
    for form, times, sweeps in (('whole', 1, 4), ('SD', 1.5, 6), ('SDF', 0.8, 2)):
        more = {} if not work.is_emitted() else dict(
            classes={name: 1e-3 * times * share for name, share in classes.items()},
            pieces={'LS': [5e-4, 500], 'IR': [1e-4, 20], 'GS': [4e-4, 480]}, sweeps=sweeps,
            traffic=1e9 * sweeps, softmaxTraffic=1000, statistics=94)
        found.append(figure_run.entry(form, 1e-3 * times, **more))
    return found


def core_made(work, source=figure_run.PREDICTED):
    """Fused is the fastest from L=256 on."""
    seconds = {'unfused': work.length**2, 'decomposed': 1.5 * work.length**2,
               'recomposed': 0.9 * work.length**2, 'fused': 3e4 + 0.5 * work.length**2}
    return [figure_run.entry(kind, 1e-12 * one, source, workspace=0)
            for kind, one in seconds.items()]


def packed_made(_):
    """Of which a softmax over rows is 0.4 of the layer, and decomposed takes 0.7 of it."""
    return [figure_run.entry(form, seconds, share=0.15, rowSoftmax=4e-4)
            for form, seconds in (('whole', 1e-3), ('SD', 7e-4), ('SDF', 6.25e-4))]


def made(figure):
    make = {'crossover': core_made, 'sparse': packed_made}.get(figure, layer_made)
    return [(point.work, make(point.work)) for point in points.points()[figure]]


class Points(unittest.TestCase):
    def test_points_are_those_of_the_seed(self):
        own = points.points()
        self.assertEqual(list(own), list(points.FIGURES))
        for figure, found in own.items():
            names = [point.name() for point in found]
            self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(own['devices']), 3 * 4)
        self.assertEqual(len(own['fig9']), 4 * (4 + 3))
        series = {work.series() for work, _ in made('crossover')}
        self.assertEqual(len(series), 1 + 3 + 4 + 2 + 3)
        self.assertLessEqual({'B=1 d=64 causal', 'B=1 d=64 longformer', 'B=1 d=64 bigbird'}, series)
        # Tables have eight tiles a row at least; a causal row has every length.
        least = {work.series(): work.length for work, _ in reversed(made('crossover'))}
        self.assertEqual(least['B=1 d=64 causal'], points.LENGTHS[0])
        self.assertEqual({least[f'B=1 d=64 {one}'] for one in ('longformer', 'bigbird',
                                                               '5% of tiles')}, {512})

    def test_pieces_and_classes_of_kernels(self):
        kernel = lambda ops, inputs=(0,), name='', seconds=1.0: {
            'ops': ops, 'inputs': list(inputs), 'outputs': [], 'name': name, 'seconds': seconds,
            'bytesMoved': 7, 'source': 'x', 'library': None}
        product = 'contract "a,b->c"'
        plan = {'tensors': [{'role': 'temporary'}, {'role': 'parameter'}], 'kernels': [
            kernel([f'%1 = {product}'], name='score_contraction'),
            kernel(['%2 = softmax %1'], seconds=2.0),
            kernel(['%3 = local_softmax %1'], seconds=3.0),
            kernel(['%4 = global_scaling %3', f'%5 = {product}'], name='weighted_contraction'),
            kernel([f'%6 = {product}'], (1, 0), 'hidden_projection_bias', 4.0),
            kernel([f'%7 = {product}'], (1, 0), 'attention_projection', 5.0),
            kernel(['%8 = layer_norm %7'], seconds=6.0)]}
        self.assertEqual(points.classes_of(plan), {
            'softmax': 5, 'MatMul of attention': 2, 'FC': 5, 'FeedForward': 4, 'other': 6})
        self.assertEqual(points.pieces_of(plan), {'LS': [3, 7], 'IR': [0, 0], 'GS': [0, 0]})

    def test_seconds_of_packed_tiles(self):
        """Scores and statistics take their share, but for a softmax over rows; others all."""
        kernel = lambda ops, inputs, outputs, seconds: {
            'ops': ops, 'inputs': inputs, 'outputs': outputs, 'seconds': seconds, 'source': 'x',
            'library': None}
        tensors = [{'role': 'argument', 'bytes': 10}, {'role': 'temporary', 'bytes': 1000},
                   {'role': 'temporary', 'bytes': 900}, {'role': 'temporary', 'bytes': 30},
                   {'role': 'result', 'bytes': 2000}]
        product = kernel(['%1 = contract "a,b->c"'], [0], [1], 1.0)
        behind = kernel(['%9 = contract "a,b->c"'], [2], [4], 2.0)
        whole = {'tensors': tensors, 'kernels': [
            product, kernel(['%2 = mask %1', '%3 = softmax %2'], [1], [2], 8.0), behind,
            kernel(['%4 = layer_norm %9'], [4], [4], 16.0)]}
        self.assertEqual(recomposition.packed_seconds(whole, 0.25), 0.75 + 8 + 16)
        apart = {'tensors': tensors, 'kernels': [
            product, kernel(['%2, %3 = local_softmax %1'], [1], [2, 3], 8.0),
            kernel(['%4 = reduce_subvectors %3'], [3], [3], 4.0),
            kernel(['%5 = global_scaling %2'], [2, 3], [2], 12.0), behind,
            kernel(['%6 = layer_norm %9'], [4], [4], 16.0)]}
        self.assertEqual(recomposition.packed_seconds(apart, 0.25), (3 + 8 + 4 + 12) / 4 + 16)

    def test_numbers_of_ops_that_stay_apart(self):
        graph = '''module {
  weft.graph @g(%x: !x, %w: !w) -> !x {
    %q = weft.bias %x, %w along (i) : !x, !w
    %score = weft.contract "a,b->c" %q, %x {scale = 0.125} : !x, !x -> !s
    %masked = weft.mask causal %score {query = j, key = k} : !s
    %e, %m, %s = weft.local_softmax %masked over k {tile = 64} : !s -> !s, !m, !m
    %f = weft.reduce_subvectors %m, %s over n : !m
    %p = weft.global_scaling %e, %f {axis = k, tile = 64} : !s, !m
    %y = weft.contract "a,b->c" %x, %p : !x, !s -> !x
    weft.return %y : !x
  }
}
'''
        self.assertEqual(recomposition.separations(graph),
                         ['--no-fuse', '1,3', '--no-fuse', '5,6'])


class Tables(unittest.TestCase):
    def test_every_point_is_a_row_and_is_marked_as_predicted(self):
        for figure in points.FIGURES:
            with self.subTest(figure):
                found = made(figure)
                said = tables.text_of(figure, found)
                self.assertIn('predicted', said)
                self.assertNotIn('measured', said)
                drawn = recomposition_drawings.drawn(figure, found)
                self.assertTrue(any('predicted' in text for text in texts(drawn)))
                self.assertEqual(drawn, recomposition_drawings.drawn(figure, found))
                for work, _ in found:
                    name = work.model if isinstance(work, points.Layer) else \
                        work.name().removeprefix('attention ')
                    self.assertTrue(any(line.startswith(name) for line in said.splitlines()), name)

    def test_shares_and_pieces(self):
        self.assertRegex(tables.text_of('fig2', made('fig2')),
                         r'bert-large +1\.000 +33% +33% +17% +17% +0% +36% +68%')
        self.assertRegex(tables.text_of('fig5', made('fig5')),
                         r'bert-large +50\.0% +10\.0% +40\.0% +50\.0% +2\.0% +48\.0%')
        self.assertRegex(tables.text_of('fig6', made('fig6')), r'bert-large +4 +6 +2 +9\.4%')
        self.assertRegex(tables.text_of('fig8', made('fig8')),
                         r'bert-large +a100 +1\.000 +1\.500 +0\.800 +0\.67x +0\.94x +1\.25x '
                         r'+1\.25x')

    def test_ranks_of_every_pair(self):
        said = tables.text_of('devices', made('devices'))
        # Of the seed a decomposed softmax is slower for dense attention and faster for sparse.
        self.assertRegex(said, r'bert-large +a100 +1\.000 +SD over whole +0\.67x +0\.94x +same')
        self.assertRegex(said, r'bigbird-large +a100 +1\.000 +SD over whole +0\.67x +1\.44x +'
                         'opposite')
        self.assertRegex(said, r'bert-large +a100 +1\.000 +SDF over SD +1\.88x +1\.33x +same')
        self.assertIn('a100: 10 of 12 pairs rank as in the seed', said)
        self.assertIn('t4: 4 of 4 pairs', said)

    def test_crossovers(self):
        said = tables.text_of('crossover', made('crossover'))
        self.assertRegex(said, r'B=1 d=64 L=128 .* recomposed +predicted')
        self.assertRegex(said, r'B=1 d=64 L=16384 .* fused +predicted')
        own = [(work, core_made(work)) for work in points.cores() if work.series() == 'B=1 d=64']
        self.assertEqual(tables.crossover(own, 'fused', 'unfused'), (256, None))
        self.assertEqual(tables.crossover(own, 'recomposed', 'unfused'), (64, None))
        self.assertEqual(tables.crossover(own, 'unfused', 'fused'), (64, 128))
        self.assertIsNone(tables.crossover(own, 'decomposed', 'unfused'))
        self.assertRegex(said, r'(?m)^B=1 d=64 +- +64 +64 +256 +256 +512$')

    def test_measured_kinds_are_compared_only_where_all_were_measured(self):
        work = points.Core(4096)
        whole = core_made(work) + [figure_run.entry('fused', 1.0, figure_run.MEASURED)]
        self.assertEqual(tables.compared_source(whole), 'predicted')
        self.assertEqual(tables.fastest(whole), 'fused')
        whole = core_made(work) + core_made(work, figure_run.MEASURED)
        whole.append(figure_run.entry('cuDNN', 1e-6, figure_run.MEASURED))
        said = tables.text_of('crossover', [(work, whole)])
        self.assertRegex(said, r'fused us +cuDNN us +fastest')
        self.assertTrue(any(line.endswith('measured') for line in said.splitlines()))
        drawn = recomposition_drawings.drawn('crossover', [(work, whole)])
        self.assertIn('cuDNN', texts(drawn))


def line_of(figure, work, entries):
    return figure_run.point_line('recomposition', figure, points.Point(figure, work), entries)


class Page(unittest.TestCase):
    """RESULTS.md, of the lines of --json."""
    def page(self, *lines):
        head = figure_run.head_line('a GPU', 'bench/run recomposition')
        return results.document(['\n'.join(map(json.dumps, [head, *lines]))])

    def core(self, recomposed=0.9, source=figure_run.MEASURED, **work):
        """A point with predictions, and an unfused kind of 1 ms that was measured."""
        own = points.Core(**work)
        return line_of('crossover', own, [
            *core_made(own), figure_run.entry('unfused', 1e-3, source),
            *([figure_run.entry('recomposed', 1e-3 * recomposed, source)] if recomposed else []),
            figure_run.entry('cuDNN', 5e-4, source), figure_run.failure('eager', 'no memory')])

    def test_every_figure_has_its_tables(self):
        page = self.page(*(line_of(figure, work, entries) for figure in points.FIGURES
                           for work, entries in made(figure)))
        self.assertIn('## Figures of Recomposing Softmax Layers\n`bench/run recomposition`, ',
                      page)
        for figure in points.FIGURES:
            self.assertIn(f'**{figure}: {tables.TITLES[figure]}', page)
        for row in ('| bert-large | 1.000 | 33% | 33% | 17% | 17% | 0% | 36% | 68% |',
                    '| bert-large | 4 | 6 | 2 | 9.4% |',
                    '- a100: 10 of 12 pairs rank as in the seed',
                    '| B=1 d=64 | 1.11x', '| B=1 d=64 | - | 64 | 64 | 256 | 256 | 512 |'):
            self.assertIn('\n' + row.replace('1.11x', '(1.11x)'), page)
        # Predictions reach nothing that is asked for.
        self.assertNotIn('What is asked for', page)

    def test_measured_kinds_are_held_to_what_is_asked_for(self):
        page = self.page(
            self.core(length=2048), self.core(0.8, length=4096), self.core(2.0, length=1024),
            self.core(1.25, length=2048, mask='causal'),
            self.core(0.5, length=4096, mask='bigbird'),
            self.core(None, length=2048, density=0.1),
            line_of('fig8', points.Layer('bert-large', points.HERE),
                    [*layer_made(points.Layer('bert-large')),
                     figure_run.entry('whole', 2e-3, figure_run.MEASURED),
                     figure_run.entry('SDF', 1.6e-3, figure_run.MEASURED)]))
        asked = page.split('## What is asked for')[1].split('## Figures')[0]
        attention = 'recomposed over unfused attention, '
        self.assertIn(f'| {attention}dense, L >= 2048, worst of 2 of 24 points (layers of the '
                      'paper: 1.25x) | 1.111 | 1.00 |  |', asked)
        self.assertIn(f'| {attention}causal, L >= 2048, worst of 1 of 4 points (layers of the '
                      'paper: 1.12x) | 0.800 | 1.00 | **missed** |', asked)
        # A kind that has no figure is no figure of the whole.
        self.assertIn(f'| {attention}sparse, L >= 2048, worst of 2 of 24 points (layers of the '
                      'paper: 1.57x, 1.65x) | - | 1.00 | **missed** |', asked)
        self.assertIn('| recomposed over unfused, layer of bert-large B=1 L=4096 (of the paper: '
                      '1.25x) | 1.250 | 1.00 |  |', asked)
        self.assertIn('\n| B=1 d=64 | 1.11x (1.11x) | 1.25x (1.11x) |', page)
        self.assertIn('No figure:\n- eager: no memory (6 of 7 rows)', page)

    def test_kinds_that_share_no_memory_are_timed_alone(self):
        """One that the memory does not hold is no part of what is asked for, and says why."""
        work, asked = points.Core(16384, batch=8), []
        sizes = {'unfused': 70e9, 'decomposed': 142e9, 'recomposed': 30e9, 'fused': 0}

        def core(_, given, kinds, has_rivals):
            self.assertEqual(given, work)
            asked.append((kinds, has_rivals))
            return [figure_run.entry(kind, 1e-3, figure_run.MEASURED) for kind in kinds]

        predicted = [figure_run.entry(kind, 2e-3, workspace=size) for kind, size in sizes.items()]
        predicted.append(figure_run.failure('another', 'weft has no such plan'))
        entries = points.measured_kinds(None, work, predicted, types.SimpleNamespace(
            memory=lambda: 141e9, core=core))
        self.assertEqual(asked, [(['recomposed', 'fused'], True), (['unfused'], False)])
        self.assertEqual(figure_run.failures_text([('a point', entries)])[1:], [
            'decomposed: no figure: more than the memory: 143 GB (1 points, first: a point)'])
        page = self.page(line_of('crossover', work, entries))
        self.assertIn('worst of 1 of 24 points (layers of the paper: 1.25x) | 1.000 |', page)
        predicted[2]['workspace'] = 150e9
        entries = points.measured_kinds(None, work, predicted, types.SimpleNamespace(
            memory=lambda: 141e9, core=core))
        self.assertNotIn('What is asked for', self.page(line_of('crossover', work, entries)))

    def test_of_a_point_that_was_measured_twice_the_last_counts(self):
        lines = [self.core(2.0, length=4096), self.core(0.5, length=4096),
                 line_of('crossover', points.Core(4096), core_made(points.Core(4096)))]
        self.assertIn(') | 2.000 | 1.00 |  |', self.page(*lines))


class OnTheGpu(CommandTest):
    """What is compiled and compared there, over a stand-in for PyTorch."""
    def setUp(self):
        super().setUp()
        self.module = without_torch.imported('recomposition_gpu')
        self.launches = without_torch.Launches(self, self.module)
        self.settings = bench.Settings(weft=WEFT, folder=self.folder, rounds=3)
        self.enterContext(mock.patch('builtins.print'))

    def core(self, work, kinds=tuple(points.KINDS), has_rivals=True):
        """(names that were measured, reasons by name)."""
        self.launches.compiled.clear()
        entries = self.module.core(self.settings, work, list(kinds), has_rivals)
        self.assertEqual({one['source'] for one in entries if one['seconds']}, {'measured'})
        return [one['name'] for one in entries if one['seconds']], \
            {one['name']: one['reason'] for one in entries if not one['seconds']}

    def test_every_kind_is_compiled_as_it_is_predicted(self):
        for work in (points.Core(4096), points.Core(2048, mask='causal'),
                     points.Core(1024, density=0.1), points.Core(1024, mask='bigbird')):
            names, _ = self.core(work)
            self.assertEqual(names[:4], list(points.KINDS))
            self.assertLessEqual({'eager'}, set(names[4:]))
            self.assertEqual(len(self.launches.compiled), 4)
            predicted = work.arguments()
            for kind, words in zip(points.KINDS, self.launches.compiled.values()):
                flags = list(points.KINDS[kind])
                self.assertIn(' '.join(flags), ' '.join(words))
                self.assertLessEqual({one for one in predicted if '=' in one and '(' not in one},
                                     set(words))
                self.assertEqual([one.split('(')[0] for one in words].count(work.mask),
                                 work.mask == 'causal')
                self.assertEqual('.npy(block=64)' in ' '.join(words), work.has_table)
        self.assertEqual(self.core(points.Core(4096), ['unfused'], False), (['unfused'], {}))
        self.assertEqual(self.core(points.Core(1024, density=0.1), ['fused'], False),
                         (['fused'], {}))

    def test_artifacts_of_all_points_have_their_folders(self):
        found = []
        for work in points.cores():
            if work.length == 512:
                self.core(work)
                found += self.launches.compiled
        self.assertEqual(len(found), 4 * 13)
        self.assertEqual(len(set(found)), len(found))

    def test_a_wrong_result_has_no_figure(self):
        self.launches.wrong = '--attention recomposed'
        for work in (points.Core(512), points.Core(512, density=0.5)):
            names, reasons = self.core(work)
            self.assertEqual(names[:3], ['unfused', 'decomposed', 'fused'])
            self.assertIn('far off', reasons['recomposed'])

    def test_forms_of_a_layer(self):
        self.launches.wrong = '--no-fuse'
        entries = self.module.layer(self.settings, points.Layer('bert-large', points.HERE))
        self.assertEqual([one['name'] for one in entries if one['seconds']], ['whole', 'SDF'])
        self.assertEqual([one['reason'] for one in entries if one['name'] == 'SD'],
                         ['WrongResult: far off'])
        for form, words in zip(recomposition.FORMS, self.launches.compiled.values()):
            self.assertEqual(words, [*recomposition.flags(WEFT, 'bert-large', points.HERE, form,
                                                          points.LENGTH), '--no-library'])


class Command(CommandTest):
    def setUp(self):
        super().setUp()
        for one in (mock.patch.dict(os.environ, WEFT_CACHE_DIR=str(self.cache)),
                    mock.patch.object(figure_run, 'has_gpu', lambda: False)):
            one.start()
            self.addCleanup(one.stop)

    def bench(self, *words):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = bench.main(['recomposition', '--weft', WEFT, '--figures', str(self.folder),
                               *map(str, words)])
        return code, said.getvalue()

    def test_kinds_of_one_length(self):
        lines = self.folder / 'points.jsonl'
        code, said = self.bench('--only', 'crossover attention B=1 d=64 L=4096', '--only',
                                'd=64 10% of tiles L=512', '--json', lines)
        self.assertEqual(code, 0, said)
        self.assertIn('no GPU: every figure is predicted', said)
        dense, sparse = ({one['name']: one['seconds'] for one in json.loads(line)['entries']}
                         for line in lines.read_text().splitlines()[1:])
        # The forms stay apart: a decomposed softmax in kernels is the slowest, fused the fastest.
        self.assertEqual(sorted(dense, key=dense.get),
                         ['fused', 'recomposed', 'unfused', 'decomposed'])
        self.assertLess(sparse['fused'], sparse['unfused'])
        panels = [text for text in texts((self.folder / 'recomposition-crossover.svg').read_text())
                  if text.startswith('B=')]
        self.assertEqual(panels, ['B=1 d=64', 'B=1 d=64 10% of tiles'])

    def test_recomposed_is_not_slower_than_unfused_under_masks(self):
        """From 2,048 positions on, causal and sparse; and weft's tables have as many tiles as those
        that are timed."""
        for mask in points.MASKS:
            core = points.Core(2048, mask=mask)
            seconds = {one['name']: one['seconds'] for one in points.core_entries(
                types.SimpleNamespace(weft=WEFT, weft_flags=[]), core, None)}
            self.assertLessEqual(seconds['recomposed'], seconds['unfused'], mask)
            self.assertLess(seconds['fused'], seconds['recomposed'], mask)
            if not core.has_table:
                continue
            row = sparse_rows.Row(mask, 1, 2048)
            flop = self.weft('explain', *core.arguments(), '--movement', '--json').json()
            score = next(one for one in flop['operators'] if one['results'] == ['score'])
            self.assertAlmostEqual(score['flop'] / (row.flop() / 2), 1, delta=0.03, msg=mask)

    def test_forms_of_one_layer(self):
        """On every GPU of the seed, and of Longformer, whose two softmaxes are told apart."""
        code, said = self.bench('--only', 'devices longformer-large', '--folder',
                                self.folder / 'kept')
        self.assertEqual(code, 0, said)
        for device in points.DEVICES:
            self.assertRegex(said, rf'longformer-large +{device} +[\d.]+ +SDF over whole')
        self.assertRegex(said, r'longformer-large +a100 +[\d.]+ +SD over whole +0\.\d+x +1\.49x')
        asked = mock.Mock(side_effect=AssertionError('weft is asked again'))
        with mock.patch.object(recomposition_figures, 'layer_entries', asked):
            again = self.bench('--only', 'devices longformer-large', '--folder',
                               self.folder / 'kept')
        self.assertEqual(again, (code, said))

    def test_the_sparse_baseline_of_one_layer(self):
        """A decomposed softmax is the faster one where rows are sparse, as the seed has it, though
        it is the slower one of dense rows."""
        code, said = self.bench('--only', 'sparse bigbird-large a100')
        self.assertEqual(code, 0, said)
        self.assertIn('modelled, no kernel of weft stores scores so', said)
        row = re.search(r'bigbird-large +a100 +([\d.]+)% +([\d.]+) +(\d+)% +40% +([\d.]+)x +1\.44x '
                        r'+([\d.]+)x +1\.57x', said)
        share, _, softmax, apart, fused = map(float, row.groups())
        self.assertAlmostEqual(share, 100 * (8 * 62 + 2 * 64) / 64**2, delta=0.1)
        self.assertTrue(30 < softmax < 60, said)
        self.assertTrue(1.2 < apart < fused < 2.2, said)

    def test_the_device_of_the_crossover_is_a_flag(self):
        settings = types.SimpleNamespace(weft=WEFT, weft_flags=['--device=a100'])
        slow, fast = ({one['name']: one['seconds']
                       for one in points.core_entries(own, points.Core(1024), None)}
                      for own in (settings, types.SimpleNamespace(weft=WEFT, weft_flags=[])))
        self.assertGreater(slow['fused'], 1.5 * fast['fused'])

    def test_a_kind_that_weft_does_not_have_says_why(self):
        settings = types.SimpleNamespace(weft=WEFT, weft_flags=['--device=t4', '--profile=none'])
        entries = points.core_entries(settings, points.Core(256), None)
        reasons = {one['name']: one.get('reason', '') for one in entries}
        self.assertIn('exit 3', reasons['fused'])
        self.assertEqual(reasons['unfused'], '')
        self.assertIn('fused: no figure', figure_run.failures_text([('a point', entries)])[-1])

    def on_a_gpu(self, core, *words):
        """Of a GPU that there is not; `core`: what measures a point. The lines of --json come as
        points are done."""
        lines = self.folder / 'points.jsonl'
        module = types.SimpleNamespace(where=lambda: 'a GPU', core=core, memory=lambda: 141e9)
        with mock.patch.object(figure_run, 'has_gpu', lambda: True), \
                mock.patch.object(weftbench, 'recomposition_gpu', module, create=True):
            code, said = self.bench('--folder', self.folder / 'kept', '--only',
                                    'attention B=1 d=64 L=', '--json', lines, *words)
        return code, said, [json.loads(line) for line in lines.read_text().splitlines()]

    def test_what_was_measured_is_kept_when_a_run_ends(self):
        """By an interrupt, an error of CUDA, too little memory, a budget."""
        memory = type('OutOfMemoryError', (RuntimeError,), {})
        ends = {128: KeyboardInterrupt(), 256: RuntimeError('CUDA error: an illegal access'),
                512: memory('Tried 1 GB'), 1024: AttributeError('a mistake')}
        asked = []

        def core(_, work, kinds, has_rivals):
            self.assertEqual((kinds, has_rivals), (list(points.KINDS), True))
            asked.append(work.length)
            if work.length in ends:
                raise ends[work.length]
            return core_made(work, figure_run.MEASURED)

        with mock.patch.object(recomposition_figures, 'core_entries',
                               lambda settings, work, measured: points.measured_kinds(
                                   settings, work, core_made(work), measured)):
            self.assertRaises(KeyboardInterrupt, self.on_a_gpu, core)
            self.assertEqual(asked, [64, 128])
            del ends[128]
            code, said, lines = self.on_a_gpu(core)
            self.assertEqual((code, asked), (2, [64, 128, 128, 256]))
            self.assertIn('L=256: RuntimeError: CUDA error: an illegal access; the same command '
                          'with the same --folder goes on behind it', said)
            self.assertEqual([line.get('workload') for line in lines],
                             [None, 'crossover attention B=1 d=64 L=64',
                              'crossover attention B=1 d=64 L=128'])
            # Another exception is a mistake of ours, whose point is measured again.
            self.assertRaises(AttributeError, self.on_a_gpu, core)
            self.assertEqual(asked[4:], [512, 1024])
            del ends[1024]
            code, said, lines = self.on_a_gpu(core, '--budget', 0)
            self.assertIn('not begun, --budget is spent: attention B=1 d=64 L=1024, ', said)
            self.assertEqual(len(lines), 1 + 4)
            code, said, lines = self.on_a_gpu(core)
        self.assertEqual((code, asked[6:]), (0, [1024, 2048, 4096, 8192, 16384]))
        self.assertEqual(lines[0]['machine'], 'a GPU')
        self.assertIn('--only', lines[0]['command'])
        self.assertEqual({line['workload'].split('=')[-1]: line['failures']
                          for line in lines[1:] if line['failures']}, {
            '256': {'attention': 'RuntimeError: CUDA error: an illegal access'},
            '512': {'attention': 'OutOfMemoryError: Tried 1 GB'}})
        page = results.document(['\n'.join(map(json.dumps, lines))])
        self.assertIn('worst of 4 of 24 points (layers of the paper: 1.25x) | 1.111 |', page)
        self.assertIn('- attention: OutOfMemoryError: Tried 1 GB (1 of 9 rows)', page)

    def test_bad_words(self):
        for words, says in ((['--only', 'fig7'], '--only fig7: no point has it in its name; '
                             'figures: fig2, fig5, fig6, fig8, fig9, devices, sparse, crossover'),
                            (['--only', 'd=64 L=64', '--weft-flag=--nonsense'], '--nonsense'),
                            (['--only', 'd=64 L=64', '--weft-flag=--device=none'], 'none')):
            with self.subTest(words):
                code, said = self.bench(*words)
                self.assertEqual(code, 2, said)
                self.assertIn(says, said)
        done = subprocess.run([ROOT / 'bench/run', 'norm', 'recomposition'], capture_output=True,
                              text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('recomposition runs without other groups', done.stderr)


if __name__ == '__main__':
    unittest.main()
