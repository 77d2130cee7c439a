"""bench/run fig2 and fig3 without a GPU: predictions marked as such, forward and with the backward
pass, drawings, the lines of --json on the page of results, and the workspace of fused plans, which
is linear in the length up to 65,536."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'bench'))

# noqa: E402
import weftbench
from weftbench import __main__ as bench, attention_figures, attention_figures_table, figure_run, \
    figure_svg, report, results
from weft_command import CommandTest, WEFT  # noqa: E402

SVG = '{http://www.w3.org/2000/svg}'


class Figures(CommandTest):
    def setUp(self):
        super().setUp()
        self.settings = bench.Settings(weft=WEFT, folder=self.folder, figures=self.folder,
                                       rounds=1)
        patched = mock.patch.dict(os.environ, WEFT_CACHE_DIR=str(self.cache))
        patched.start()
        self.addCleanup(patched.stop)

    def texts(self, drawn):
        root = xml.etree.ElementTree.fromstring(drawn)
        self.assertEqual(root.tag, SVG + 'svg')
        return [element.text for element in root.iter(SVG + 'text')]

    def test_fig2_has_flop_bytes_time_and_the_sweep_of_tiles(self):
        with mock.patch.object(attention_figures, 'FIG2', dict(b=2, h=4, j=512, p=64)):
            said, drawn, written = self.shown('fig2')
            lines = said.splitlines()
            rows = {line.split()[0]: line.split() for line in lines[2:6]}
            self.assertEqual(list(rows), ['unfused', 'decomposed', 'recomposed', 'fused'])
            for row in rows.values():
                self.assertEqual(row[1], f'{4 * 8 * 512**2 * 64 / 1e9:.1f}')
                self.assertEqual(row[-1], 'predicted')
            # Fused moves queries, keys, values and results once, unfused the scores besides.
            self.assertEqual(float(rows['fused'][2]), 2.1)
            self.assertGreater(float(rows['unfused'][3]), 4 * 8 * 512**2 * 2 / 1e6)
            self.assertLess(float(rows['fused'][4]), float(rows['unfused'][4]))
            site = attention_figures.site_of(self.settings)
            tiles = attention_figures.tiles_of(site)
            self.assert_tiles_are_measured_with_their_knobs(site)
        self.assertGreater(len(tiles), 2)
        self.assertEqual(len(tiles), len(lines) - 8)
        self.assertEqual([line['kind'] for line in written[:4]], list(rows))
        self.assertEqual([tuple(line['tile']) for line in written[4:]],
                         [tile[:2] for tile in tiles])
        for rows_of_tile, _, seconds, l2_bytes, source in tiles:
            once = 2 * 8 * 512 * 64 * 2
            self.assertEqual(l2_bytes, once + once * -(-512 // rows_of_tile))
            self.assertGreater(seconds, 0)
            self.assertIn(source, ('predicted', 'from the profile'))
        texts = self.texts(drawn)
        self.assertIn('us (predicted)', texts)
        self.assertIn('query rows of a tile', texts)

    def shown(self, group):
        """Text, drawing and JSON lines of a group without a GPU."""
        with mock.patch.object(attention_figures, 'show') as show:
            lines = [*getattr(attention_figures, group)(
                self.settings, figure_run.Points(self.settings, group), None)]
        (_, name, said, drawn), = (call.args for call in show.call_args_list)
        self.assertEqual(name, group)
        return said, drawn, lines

    def assert_tiles_are_measured_with_their_knobs(self, site):
        """Of every tile, plan.json of the fused plan gets what the tile is priced with, which
        differs by more than queries and keys, and weft emits it."""
        priced = attention_figures.priced_tiles(site)
        others = {json.dumps({name: value for name, value in one['knobs'].items()
                              if name not in ('tileQueries', 'tileKeys')}) for one in priced}
        self.assertGreater(len(others), 1, 'the case shows nothing')
        self.weft('compile', 'attention', *attention_figures.dims(attention_figures.FIG2),
                  '--attention', 'fused', '--stop-after', 'emit', '-o', 'fused')
        plan = json.loads((self.folder / 'fused/plan.json').read_text())
        kernel, = [one for one in plan['kernels'] if one['source']]
        self.assertIn(kernel['knobs'], [one['knobs'] for one in priced])
        for tile in priced:
            knobs = tile['knobs']
            self.assertEqual((knobs['tileQueries'], knobs['tileKeys']),
                             (tile['queries'], tile['keys']))
            attention_figures.with_tile(tile)(plan)
            self.assertEqual(kernel['knobs'], knobs)
            (self.folder / 'fused/plan.json').write_text(json.dumps(plan))
            self.weft('emit', 'fused', env={'WEFT_NVRTC': 'none'})
            plan = json.loads((self.folder / 'fused/plan.json').read_text())
            kernel, = [one for one in plan['kernels'] if one['source']]
            self.assertEqual(kernel['knobs'], knobs)
        kernel['knobs'] = {'family': 'another'}
        with self.assertRaisesRegex(figure_run.BadRun, 'has 0 kernels of family '):
            attention_figures.with_tile(priced[0])(plan)

    def test_workspace_of_fused_plans_is_linear_in_the_length(self):
        lengths = [512, 4096, 16384, 65536]
        layer = [(length, attention_figures.layer_workspace(self.settings, length))
                 for length in lengths]
        per_position, deviation = attention_figures.slope(layer)
        self.assertGreater(per_position, 1000)
        self.assertLess(deviation, 0.01, layer)
        for length, workspace in layer:
            self.assertLess(workspace, 1.25 * per_position * length)
        core = [attention_figures.predicted(self.settings, 'fused', length) for length in lengths]
        self.assertEqual([point.workspace for point in core], [0, 0, 0, 0])
        scores = 16 * 65536**2 * 2
        unfused = attention_figures.predicted(self.settings, 'unfused', 65536, scores)
        self.assertGreaterEqual(unfused.workspace, scores)
        self.assertFalse(unfused.fits)
        self.assertGreater(attention_figures.device_bytes(self.settings), 1e11)

    def test_the_slope_shows_what_is_not_linear(self):
        lengths = [512, 1024, 4096, 65536]
        linear, quadratic = ([(x, 8192 * x + 100) for x in lengths], [(x, x * x) for x in lengths])
        per_position, deviation = attention_figures.slope(linear)
        self.assertAlmostEqual(per_position, 8192)
        self.assertLess(deviation, 1e-9)
        self.assertGreater(attention_figures.slope(quadratic)[1], 0.01)
        self.assertIn('8192.0 B a position from L=512 to 65536',
                      attention_figures.slope_text('layer', linear))

    def test_the_commands_without_a_gpu(self):
        with mock.patch.object(attention_figures, 'LENGTHS', [128, 1024, 65536]), \
                mock.patch.object(attention_figures, 'LAYER_LENGTHS', [512, 65536]), \
                mock.patch.object(attention_figures, 'has_gpu', lambda: False), \
                mock.patch.object(attention_figures, 'device_bytes', lambda _: 80e9), \
                mock.patch('builtins.print') as printed:
            code = bench.main(['fig3', '--weft', WEFT, '--figures', str(self.folder / 'drawn')])
        said = '\n'.join(str(call.args[0]) for call in printed.call_args_list)
        self.assertEqual(code, 0, said)
        self.assertIn('no GPU: every figure is predicted', said)
        self.assertIn('does not fit', said)
        self.assertRegex(said, r'bert-large with fused attention: workspace [\d.]+ B a position '
                         'from L=512 to 65536, off the line by 0.0')
        self.assertRegex(said, r'fused +65536 +[\d.]+ +0\.0 +[\d.]+  predicted')
        # The second part has the same kinds and lengths, in more time and memory each.
        parts = said.split('attention forward + backward over length')
        self.assertEqual(len(parts), 2, said)
        forward, training = ({tuple(row[:2]): row[2:] for row in re.findall(
            r'^(unfused|fused) +(\d+) +([\d.]+) +([\d.]+) +([\d.]+)  predicted', part, re.M)}
                             for part in parts)
        self.assertEqual(len(forward), 6)
        self.assertEqual(list(forward), list(training))
        for key, (milliseconds, _, total) in forward.items():
            self.assertGreater(float(training[key][0]), 1.5 * float(milliseconds), key)
            self.assertGreaterEqual(float(training[key][2]), 1.9 * float(total), key)
        # Forward with backward keeps a number for every query, no scores.
        self.assertLess(float(training['fused', '65536'][1]), 400)
        self.assertGreater(float(training['unfused', '65536'][1]), 2 * 16 * 65536**2 / 1e6)
        self.assertIn('does not fit', parts[1])
        self.assertRegex(parts[1], r'fused attention, forward \+ backward: workspace [\d.]+ B')
        texts = self.texts((self.folder / 'drawn/fig3.svg').read_text())
        self.assertEqual(texts.count('fused (predicted)'), 4)
        self.assertIn('time, forward + backward', texts)
        self.assertIn('memory, forward + backward: operands and workspace', texts)
        self.assertIn('65536', texts)

    def measured(self):
        """What attention_figures_gpu finds, of a GPU that there is not."""
        point = attention_figures.Point
        reason = {'eager': 'OutOfMemoryError: no. GPU 0 has a total capacity of 1'}

        def at_length(_, length, trains, kinds, has_rivals, failures):
            self.asked.append((length, trains, kinds, has_rivals))
            if length == self.killed_at:
                raise KeyboardInterrupt
            if not has_rivals:
                failures.update({kinds[0]: 'OutOfMemoryError: 1 of 2 GB'})
                return []
            if trains:
                return [point(kind, 128, seconds, 0, 2 * 10**6, 'measured', trains=True)
                        for kind, seconds in (('fused', 4e-5), ('flash-2', 2e-5), ('eager', 9e-5))
                        if length == 128]
            if length == 4096:
                failures.update(reason)
            return [point(kind, 4096, seconds, 10**6, 35 * 10**6, 'measured')
                    for kind, seconds in (('fused', 2e-4), ('unfused', 9e-4), ('cuDNN', 3e-4))
                    if length == 4096]

        def tiles(_, priced, failures):
            failures['tile 64 x 64'] = 'WeftFailed: no such tile'
            return [(128, 64, 1e-3, 10**6, 'measured')]

        def kinds(_, site, failures):
            failures.update(reason)
            return [attention_figures.Kind('fused', 1e-3, 10**6, 2 * 10**6, 0, 'measured'),
                    attention_figures.Kind('cuDNN', 2e-3, 0, 0, 10**6, 'measured')]

        return types.SimpleNamespace(where=lambda: 'a GPU', at_length=at_length, kinds=kinds,
                                     tiles=tiles)

    def page(self, *words, killed_at=None, memory=80e9):
        """RESULTS.md of what the command writes, and the file. `asked` then has what was to be
        measured of each run; the command is killed where it begins a length."""
        file = self.folder / 'lines.jsonl'
        self.asked, self.killed_at = [], killed_at
        with mock.patch.object(attention_figures, 'LENGTHS', [128, 4096, 65536]), \
                mock.patch.object(attention_figures, 'LAYER_LENGTHS', [512, 1024]), \
                mock.patch.object(attention_figures, 'has_gpu', lambda: True), \
                mock.patch.object(attention_figures, 'device_bytes', lambda _: memory), \
                mock.patch.object(weftbench, 'attention_figures_gpu', self.measured(),
                                  create=True), mock.patch('builtins.print') as printed:
            command = [*words, '--weft', WEFT, '--figures', str(self.folder), '--json', str(file)]
            if killed_at:
                self.assertRaises(KeyboardInterrupt, bench.main, command)
            else:
                self.assertEqual(bench.main(command), 0)
        self.printed = '\n'.join(str(call.args[0]) for call in printed.call_args_list if call.args)
        text = file.read_text(encoding='utf-8')
        return results.document([text]), [json.loads(line) for line in text.splitlines()]

    def test_fig3_reaches_the_page_of_results(self):
        page, lines = self.page('fig3', '--rounds', '5')
        self.assertEqual((lines[0]['machine'], lines[0]['command']),
                         ('a GPU', 'bench/run fig3 --rounds 5'))
        self.assertEqual({line['group'] for line in lines[1:]}, {'fig3'})
        title = '## Fig. 3 of FlashAttention: time and memory over length\n`bench/run fig3 '
        self.assertIn(title + '--rounds 5`, ', page)
        forward, training = page.split('Attention forward + backward: time, and memory')
        head = '| L | fused ms | unfused ms | cuDNN ms | best rival / weft | ' \
            'fused predicted ms | ' \
            'unfused predicted ms | fused MB | unfused MB | cuDNN MB |'
        self.assertIn(head, forward)
        # What is predicted stands beside what was measured.
        self.assertRegex(forward, r'\| 4096 \| 0\.2000 \| 0\.9000 \| 0\.3000 \| 1\.500 \| '
                         r'0\.\d+ \| 0\.\d+ \| 35\.0 \| 35\.0 \| 35\.0 \|')
        # What was not measured has memory by the plan, marked, and what does not fit is said.
        self.assertRegex(forward, r'\| 128 \| - \| - \| - \| - \| 0\.\d+ \| 0\.\d+ \| '
                         r'[\d.]+ \* \|')
        self.assertRegex(page, r'\| 65536 \| - .*\| [\d.]+ \| too large \|.*\| too large \|')
        self.assertRegex(training, r'\| 128 \| 0\.0400 \| - \| 0\.0900 \| 0\.0200 \| '
                         r'\*\*0\.500\*\* \| 0\.\d+ \| 0\.\d+ \|')
        self.assertIn('- Figures with * are predicted by weft.', page)
        self.assertIn('- bert-large with fused attention: workspace', page)
        self.assertIn('No figure:\n- eager: OutOfMemoryError: no (1 of ', page)

    def test_what_was_measured_is_written_and_kept_when_a_run_is_killed(self):
        words = ['fig3', '--folder', str(self.folder / 'kept')]
        page, lines = self.page(*words, killed_at=65536)
        self.assertEqual([line['length'] for line in lines[1:]], [128, 4096])
        self.assertIn('| 4096 | 0.2000 | 0.9000 | 0.3000 | 1.500 |', page)
        with open(self.folder / 'kept/fig3.jsonl', 'a', encoding='utf-8') as kept:
            kept.write('{"key": ')  # cut off
        page, lines = self.page(*words)
        self.assertEqual([one[:2] for one in self.asked], [(65536, False), (128, True),
                                                           (4096, True), (65536, True)])
        self.assertEqual(page, self.page(*words)[0])
        self.assertEqual(self.asked, [])
        self.assertIn('| 4096 | 0.2000 | 0.9000 | 0.3000 | 1.500 |', page)
        self.assertEqual(len([line for line in lines if 'length' in line]), 6)

    def test_a_spent_budget_leaves_lengths_out_and_names_them(self):
        words = ['fig3', '--folder', str(self.folder / 'kept')]
        self.page(*words, '--only', 'forward L=128')
        _, lines = self.page(*words, '--budget', '0')
        self.assertEqual([line['length'] for line in lines if 'length' in line], [128])
        self.assertIn('not begun, --budget is spent: fig3 attention forward L=4096, fig3 attention '
                      'forward L=65536, fig3 attention forward + backward L=128, ', self.printed)

    def test_only_chooses_lengths_passes_and_parts(self):
        self.page('fig3', '--only', 'backward L=128', '--only', 'forward L=4096')
        self.assertEqual([one[:2] for one in self.asked], [(4096, False), (128, True)])
        with mock.patch.object(attention_figures, 'FIG2', dict(b=2, h=4, j=512, p=64)):
            _, lines = self.page('fig2', 'fig3', '--only', 'fig2 tiles')
        self.assertEqual([line.get('tile') for line in lines[1:]], [[128, 64]])
        done = subprocess.run([ROOT / 'bench/run', 'fig3', '--only', 'L=100', '--weft', WEFT],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--only L=100: no point has it in its name', done.stderr)

    def test_what_takes_most_of_the_memory_is_timed_alone_and_may_lack_it(self):
        """Of unfused attention at 64K the scores alone are 137 GB."""
        page, lines = self.page('fig3', memory=141e9)
        self.assertEqual([one for one in self.asked if one[0] == 65536],
                         [(65536, False, ['fused'], True), (65536, False, ['unfused'], False),
                          (65536, True, ['fused'], True)])
        alone, = [line for line in lines if line.get('failures', {}).get('unfused')]
        self.assertEqual((alone['length'], alone['contenders'], alone['predicted']),
                         (65536, {}, {}))
        self.assertIn('- unfused: OutOfMemoryError: 1 of 2 GB (1 of ', page)
        self.assertRegex(page, r'\| 65536 \| - \| - \| - \| - \| [\d.]+ \| [\d.]+ \|')
        self.assertEqual(page.count('\n| 65536 |'), 2)

    def test_lines_of_one_length_are_one_row(self):
        figures = lambda ms: {'ms': ms, 'workspaceBytes': 0, 'memoryBytes': 10**6, 'fits': True}
        line = lambda length, **own: {
            'group': 'fig3', 'passes': 'forward', 'length': length, 'contenders': {},
            'predicted': {}, 'failures': {}, **own}
        (_, rows), = attention_figures_table.tables([
            line(256, predicted={'fused': figures(2.0), 'unfused': figures(9.0)}),
            line(128, contenders={'fused': figures(1.0), 'cuDNN': figures(3.0)},
                 predicted={'fused': figures(1.5)}),
            line(256, contenders={'unfused': figures(8.0)}),
            {'group': 'fig3', 'said': 'a slope', 'failures': {}},
            line(256, contenders={'fused': figures(4.0)}),
            line(256, contenders={'fused': figures(5.0)})])
        self.assertEqual([row[:7] for row in rows], [
            ['L', 'fused ms', 'cuDNN ms', 'unfused ms', 'best rival / weft', 'fused predicted ms',
             'unfused predicted ms'], ['128', '1.000', '3.000', '-', '3.000', '1.500', '-'],
            ['256', '5.000', '-', '8.000', '-', '2.000', '9.000']])

    def test_fig2_reaches_the_page_of_results(self):
        with mock.patch.object(attention_figures, 'FIG2', dict(b=2, h=4, j=512, p=64)):
            page, lines = self.page('fig2')
        self.assertIn('## Fig. 2 of FlashAttention: traffic and time by kind', page)
        self.assertEqual(page.count('\n| fused |'), 1)
        self.assertRegex(page, r'\| fused \| 1\.000 \| 0\.\d+ \| 0\.5 \| 1\.0 \| 2\.0 \| 0\.0 \|')
        self.assertIn('| cuDNN | 2.000 | - | 0.5 | - | - | 1.0 |', page)
        self.assertRegex(page, r'\| unfused \| - \| 0\.\d+ \|')
        self.assertIn('| 128 x 64 | 1.000 | 1.0 |', page)
        self.assertIn('No figure:\n- eager: OutOfMemoryError: no (1 of ', page)
        self.assertEqual(len(lines), 1 + 6 + 1)
        self.assertIn('- tile 64 x 64: WeftFailed: no such tile (1 of ', page)

    def test_predictions_alone_reach_the_page_as_such(self):
        with mock.patch.object(attention_figures, 'has_gpu', lambda: False), \
                mock.patch('builtins.print'):
            lines = [*attention_figures.run(['fig2'], self.settings, 'bench/run fig2')]
        page = results.document(['\n'.join(map(json.dumps, lines))])
        self.assertIn('no GPU: every figure is predicted by weft', page)
        self.assertRegex(page, r'\| fused \| - \| [\d.]+ \|')

    def test_bad_words(self):
        for words, says in ((['fig2', 'norm'], 'fig2 runs without other groups'),
                            (['norm', '--figures', 'x'], '--figures belongs to fig2, fig3, ')):
            done = subprocess.run([ROOT / 'bench/run', *words], capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(says, done.stderr)
        wrong = ['fig3', '--weft', WEFT, '--weft-flag=--nonsense']
        done = subprocess.run([ROOT / 'bench/run', *wrong], capture_output=True, text=True,
                              check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn('--nonsense', done.stderr)


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class OnTheGpu(unittest.TestCase):
    """What is asked of `measured_at`, and what becomes of its answer; no GPU is needed for that."""
    def setUp(self):
        from weftbench import attention_figures_gpu
        self.gpu = attention_figures_gpu
        self.settings = bench.Settings(weft='weft', folder=pathlib.Path('none'))
        self.seconds = {}
        self.result = report.Result(report.Workload('any'))
        patched = mock.patch.object(self.gpu, 'measured_at', self.measured_at)
        patched.start()
        self.addCleanup(patched.stop)

    def measured_at(self, settings, extents, length, plans, causal=False, has_rivals=True):
        self.asked = (extents, length, plans, has_rivals)
        return self.seconds, self.result

    def test_each_tile_is_the_fused_plan_with_its_knobs(self):
        priced = [{'queries': rows, 'keys': 128, 'seconds': 1.0, 'l2Bytes': 10 * rows,
                   'measured': False, 'knobs': {'family': 'f', 'tileQueries': rows, 'ordered': on}}
                  for rows, on in ((64, 0), (128, 1), (192, 1))]
        self.seconds = {'64 x 128': 2e-3, '192 x 128': 1e-3}
        self.result.failures = {'128 x 128': 'WeftFailed: no'}
        failures = {}
        self.assertEqual(self.gpu.tiles(self.settings, priced, failures),
                         [(64, 128, 2e-3, 640, 'measured'), (192, 128, 1e-3, 1920, 'measured')])
        self.assertEqual(failures, {'tile 128 x 128': 'WeftFailed: no'})
        extents, _, plans, has_rivals = self.asked
        self.assertEqual((extents, has_rivals), (attention_figures.FIG2, False))
        for (flags, edit), tile in zip(plans.values(), priced):
            self.assertEqual(flags, ['--attention', 'fused'])
            plan = {'kernels': [{'knobs': None}, {'knobs': {'family': 'f', 'ordered': 7}}]}
            edit(plan)
            self.assertEqual(plan['kernels'][1]['knobs'], tile['knobs'])

    def test_every_kind_is_measured(self):
        names = ['unfused', 'decomposed', 'recomposed', 'fused']
        self.seconds = {name: 1e-3 for name in names}
        self.result.extra = {name: 5 for name in names}
        site = {'kinds': [{'kind': 'recomposed', 'figures': {'dramBytes': 7, 'l2Bytes': 8}}]}
        found = self.gpu.kinds(self.settings, site, {})
        self.assertEqual([one.name for one in found], names)
        self.assertEqual((found[2].dram, found[2].l2, found[0].dram), (7, 8, 0))
        plans = self.asked[2]
        self.assertEqual([flags[:2] for flags, _ in plans.values()],
                         [['--attention', name] for name in names])
        self.assertIn('--no-fuse', plans['decomposed'][0])

    def test_too_little_memory_is_a_failure_that_ends_nothing(self):
        import torch
        lacks = torch.cuda.OutOfMemoryError('CUDA out of memory. Tried 137 GB')

        class NoMemory:
            def __init__(self, length):
                raise lacks

        self.measured_at = mock.Mock(side_effect=lacks)
        with mock.patch.object(self.gpu, 'Training', NoMemory), \
                mock.patch.object(self.gpu, 'measured_at', self.measured_at), \
                mock.patch('builtins.print'):
            for trains in (False, True):
                failures = {}
                self.assertEqual(self.gpu.at_length(self.settings, 65536, trains, ['unfused'],
                                                    False, failures), [])
                self.assertEqual(list(failures), ['unfused'])
                self.assertIn('Tried 137 GB', failures['unfused'])
        self.measured_at.side_effect = RuntimeError('an illegal access')
        with mock.patch.object(self.gpu, 'measured_at', self.measured_at):
            self.assertRaises(RuntimeError, self.gpu.at_length, self.settings, 128, False, [], True,
                              {})

    def test_points_are_operands_and_workspace(self):
        self.seconds, self.result.extra = {'fused': 1e-3, 'cuDNN': 2e-3}, {'fused': 5, 'cuDNN': 9}
        self.result.failures = {'eager': 'no'}
        failures = {}
        fused, cudnn = self.gpu.at_length(self.settings, 128, False, ['fused'], True, failures)
        self.assertEqual((fused.workspace, fused.total), (5, 5 + 4 * 16 * 128 * 64 * 2))
        self.assertEqual((cudnn.kind, cudnn.seconds, cudnn.source), ('cuDNN', 2e-3, 'measured'))
        self.assertEqual(failures, {'eager': 'no'})
        self.assertEqual(list(self.asked[2]), ['fused'])
        self.settings.ours = False
        self.gpu.at_length(self.settings, 128, False, ['fused'], True, failures)
        self.assertEqual(self.asked[2], {})


class FakeArtifact:
    """Attention, and its gradients, on the CPU."""
    def __init__(self, trains, factor=1.0):
        self.trains, self.factor = trains, factor

    def input_names(self):
        return ['k', 'q', 'v', *['d_y'] * self.trains]

    def gradients(self):
        return ['', 'q', 'k', 'v']

    def poisoned_outputs(self):
        import torch
        return [torch.full((2, 4, 96, 16), float('nan')) for _ in range(4 if self.trains else 1)]

    def launch(self, given, outputs):
        import torch
        k, q, v = (tensor.detach().requires_grad_() for tensor in given[:3])
        with torch.enable_grad():
            y = torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v
            found = [y, *(torch.autograd.grad(y, (q, k, v), given[3]) if self.trains else [])]
        for out, result in zip(outputs, found):
            out.copy_(result.detach() * self.factor)

    def device_bytes(self):
        return 100

    def parameter_bytes(self):
        return 10


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class OnTheCpu(unittest.TestCase):
    """All of a measured length but the clock: ours and a rival are compared with fp64."""
    def setUp(self):
        import torch
        from weftbench import attention_figures_gpu as gpu
        self.gpu, self.compiled, self.factor = gpu, [], 1.0
        self.settings = bench.Settings(weft='weft', folder=pathlib.Path('none'), rounds=3)
        randn = torch.randn
        names = ('synchronize', 'memory_allocated', 'max_memory_allocated',
                 'reset_peak_memory_stats')
        for where, name, stand_in in (
                (gpu, 'FIG3', dict(b=2, h=4, p=16)), (gpu, 'FIG2', dict(b=2, h=4, j=96, p=16)),
                (attention_figures, 'FIG3', dict(b=2, h=4, p=16)),
                (gpu, 'RIVALS', {'eager': gpu.SDPBackend.MATH}),
                (torch, 'randn', lambda shape, device, dtype: randn(shape)),
                (gpu.ours, 'compile_artifact', self.compile),
                (gpu.timing, 'measure', self.measure),
                (gpu.timing, 'GraphContender', lambda name, call: (name, call)),
                *((torch.cuda, name, lambda: 0) for name in names)):
            patched = mock.patch.object(where, name, stand_in)
            patched.start()
            self.addCleanup(patched.stop)

    def compile(self, settings, name, arguments, edit=None, entry=None):
        self.compiled.append(name)
        return FakeArtifact('--train' in arguments, self.factor)

    def measure(self, result, contenders, rounds):
        for name, call in contenders:
            call(0)
            result.samples[name] = [1e-3] * rounds

    def test_a_length_is_checked_and_measured(self):
        for trains in (False, True):
            failures = {}
            found = self.gpu.at_length(self.settings, 96, trains, ['unfused', 'fused'], True,
                                       failures)
            self.assertEqual(failures, {})
            self.assertEqual([(one.kind, one.length, one.trains, one.workspace) for one in found],
                             [('unfused', 96, trains, 90), ('fused', 96, trains, 90),
                              ('eager', 96, trains, 0)])
            alone = self.gpu.at_length(self.settings, 96, trains, ['unfused'], False, failures)
            self.assertEqual([one.kind for one in alone], ['unfused'])

    def test_a_wrong_result_has_no_figure(self):
        self.factor = 1.1
        for trains in (False, True):
            failures = {}
            with mock.patch('builtins.print'):
                found = self.gpu.at_length(self.settings, 96, trains, ['fused'], True, failures)
            self.assertEqual([one.kind for one in found], ['eager'])
            self.assertIn('WrongResult', failures['fused'])

    def test_plans_of_both_figures_have_their_folders(self):
        with mock.patch.object(self.gpu, 'FIG3', dict(b=1, h=4, p=16)):
            with mock.patch('builtins.print'):  # its results have another shape
                self.gpu.at_length(self.settings, 96, False, ['fused'], False, {})
        self.gpu.kinds(self.settings, {'kinds': []}, {})
        self.assertEqual(len(self.compiled), 5)
        self.assertEqual(len(set(self.compiled)), 5)


@unittest.skipUnless(importlib.util.find_spec('torch'), 'needs PyTorch, on the CPU')
class EditedPlans(unittest.TestCase):
    def test_an_edit_that_is_not_done_is_not_found_by_a_later_run(self):
        from weftbench import ours
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        settings = bench.Settings(weft='weft', folder=root)

        def weft(_, command, *rest):
            said.append(command)
            if command == ends:
                raise KeyboardInterrupt
            if command == 'compile':
                rest[-1].mkdir()
                (rest[-1] / 'plan.json').write_text('{"tile": 1}')

        for ends, commands in (('emit', ['compile', 'emit']), ('none', ['compile', 'emit']),
                               ('none', [])):
            said = []
            with mock.patch.object(ours, 'weft', weft), \
                    mock.patch.object(ours, 'Artifact', lambda _, folder, entry: folder):
                compiled = lambda: ours.compile_artifact(settings, 'a tile', ['attention'],
                                                         lambda plan: plan.update(tile=2))
                if ends == 'emit':
                    self.assertRaises(KeyboardInterrupt, compiled)
                    self.assertFalse((root / 'a-tile').exists())
                else:
                    self.assertEqual(json.loads((compiled() / 'plan.json').read_text()),
                                     {'tile': 2})
            self.assertEqual(said, commands)


class Drawing(unittest.TestCase):
    def test_the_same_lines_give_the_same_bytes_inside_the_drawing(self):
        lines = [figure_svg.Line('a < b', [(128, 0.5), (65536, 2e4)], True),
                 figure_svg.Line('none', [])]
        panels = [figure_svg.Panel('time', 'length', 'ms', lines),
                  figure_svg.Panel('empty', 'length', 'ms', [])]
        drawn = figure_svg.svg('title', panels)
        self.assertEqual(drawn, figure_svg.svg('title', panels))
        root = xml.etree.ElementTree.fromstring(drawn)
        width, height = float(root.get('width')), float(root.get('height'))
        circles = list(root.iter(SVG + 'circle'))
        self.assertEqual(len(circles), 2)
        for circle in circles:
            self.assertTrue(0 < float(circle.get('cx')) < width / 2)
            self.assertTrue(0 < float(circle.get('cy')) < height)
        first, last = circles
        self.assertLess(float(first.get('cx')), float(last.get('cx')))
        self.assertGreater(float(first.get('cy')), float(last.get('cy')))  # larger is higher
        texts = [element.text for element in root.iter(SVG + 'text')]
        self.assertIn('a < b (predicted)', texts)
        self.assertIn('nothing to draw', texts)
        self.assertEqual(drawn.count('stroke-dasharray'), 2)  # the line and its legend

    def test_bars_stand_on_each_other_and_panels_in_rows(self):
        pieces = [('softmax', 30.0), ('other', 70.0)]
        few = figure_svg.BarPanel('shares', '%', [figure_svg.Bar('bert', pieces, True),
                                                  figure_svg.Bar('seed', [('softmax', 36.0)])])
        many = figure_svg.BarPanel('many', '%', [figure_svg.Bar(f'bar {index}', pieces)
                                                 for index in range(9)])
        drawn = figure_svg.svg('title', [few, many, figure_svg.BarPanel('none', '%')], 2)
        root = xml.etree.ElementTree.fromstring(drawn)
        self.assertEqual(float(root.get('width')), 2 * figure_svg.WIDTH)
        self.assertGreater(float(root.get('height')), 2 * figure_svg.HEIGHT)
        bars = [one for one in root.iter(SVG + 'rect') if one.get('stroke')]
        self.assertEqual(len(bars), 2 + 1 + 2 * 9)
        softmax, other, seed = ((float(one.get('y')), float(one.get('height')))
                                for one in bars[:3])
        self.assertAlmostEqual(other[0] + other[1], softmax[0], delta=0.2)  # on top of it
        self.assertAlmostEqual(seed[1] / softmax[1], 36 / 30, delta=0.01)
        self.assertEqual([one.get('stroke-dasharray') for one in bars[:3]], ['4 2', '4 2', None])
        texts = [element.text for element in root.iter(SVG + 'text')]
        self.assertEqual(texts.count('dashed edges: predicted'), 1)
        self.assertIn('0', texts)
        self.assertIn('100', texts)
        self.assertIn('nothing to draw', texts)
        self.assertEqual(drawn.count('rotate('), 9)


if __name__ == '__main__':
    unittest.main()
