"""Every command: --help, --json, exit codes of usage errors, and what the views say about one
artifact."""
import hashlib
import json
import math
import re
import unittest

from weft_command import CommandTest, CORE, LAYER, ROOT, TINY, record_hash, with_empty_cache

COMMANDS = ('compile', 'import', 'opt', 'select', 'emit', 'verify', 'explain', 'diff', 'cache',
            'env', 'devices')


class Usage(CommandTest):
    def test_help(self):
        self.assertTrue(all(command in self.weft('--help').out for command in COMMANDS))
        for command in COMMANDS:
            text = self.weft(command, '--help').out
            self.assertIn('--json', text, command)

    def test_usage_errors_exit_2(self):
        self.fails(2, 'compil', says=["unknown command 'compil'", "'compile'"])
        self.fails(2, says=['--help'])
        self.fails(2, 'compile', says=['model'])
        self.fails(2, 'compile', *TINY, '--no-such-flag', '-o', 'out', says=['--no-such-flag'])
        self.fails(2, 'compile', *TINY, '--no-fus', 'a,b', '-o', 'out',
                   says=["unknown option '--no-fus'", "'--no-fuse'"])
        for former, now in (('--parts', '--chunks'), ('--branches', '--concurrent')):
            self.fails(2, 'compile', *TINY, former, '2', '-o', 'out',
                       says=[f'{former} is now {now}'])
        self.fails(2, 'profile', *TINY, '--parts-only', says=['--parts-only is now --chunks-only'])
        self.fails(2, 'emit', 'out', '--branches', says=[
            '--branches is now --concurrent, which weft emit does not have',
            'weft emit --help lists all'])
        self.fails(2, 'devices', '--jsn', says=["'--jsn'", "'--json'", 'weft devices --help'])
        self.fails(2, 'compile', *LAYER, '--attention', 'flush', '-o', 'out', says=['flush'])
        for kind, nearest in (('short', 'fused'), ('grouped', 'recomposed')):
            self.fails(3, 'compile', *LAYER, '--attention', kind, '-o', 'out',
                       says=[f'--attention {kind}: ', f'nearest is --attention {nearest}'])
        self.fails(2, 'compile', *LAYER, '--norms', 'decompose', '-o', 'out',
                   says=['--norms decompose: unknown value', "'decomposed'"])
        self.fails(2, 'compile', *LAYER, '--softmax', 'bush', '-o', 'out', says=['bush'])
        self.fails(2, 'compile', *TINY, '--stop-after', 'fused', says=["'fused'", "'fuse'"])
        self.fails(2, 'compile', *TINY, '--start-from', 'emit', '--stop-after', 'import', '-o', 'x',
                   says=['before'])
        self.fails(2, 'compile', *TINY, '--max-memory', 'lots', '-o', 'out',
                   says=['--max-memory lots'])
        self.fails(2, 'compile', *TINY, '--fuse', 'q', '-o', 'out', says=['--fuse q', 'A,B'])
        self.fails(2, 'compile', *TINY, '--pin', 'nothing=bj', '-o', 'out', says=['nothing'])
        self.fails(2, 'select', *TINY, '--start-from', 'emit', says=['lies after select'])

    def test_errors_as_json(self):
        """The message stays on standard error; standard output holds the same as an object."""
        for code, kind, arguments in ((2, 'bad-input', ['compile', 'bert-larg', '-o', 'out']),
                                      (2, 'bad-input', ['compile', '--no-such-flag']),
                                      (3, 'unsupported',
                                       ['compile', *TINY, '--target', 'sm_91', '-o', 'out'])):
            result = self.weft(*arguments, '--json', code=code)
            error = result.json()['error']
            self.assertEqual((error['kind'], error['exitCode']), (kind, code))
            self.assertEqual(result.err, f"weft: error: {error['message']}\n")

    def test_no_colour_in_a_pipe(self):
        self.assertNotIn('\033', self.weft('devices').out)

    def test_env_and_devices(self):
        names = [knob['name'] for knob in self.weft('env', '--json').json()['variables']]
        self.assertIn('WEFT_CACHE_DIR', names)
        self.assertEqual(names, sorted(names))
        devices = {
            device['name']: device
            for device in self.weft('devices', '--json').json()['devices']
        }
        self.assertFalse(devices['v100']['canEmit'])
        self.assertEqual(devices['h200']['architecture'], 'sm_90a')
        self.assertTrue(devices['h200']['sources']['copyBandwidth'])
        self.assertIn('copyBandwidth', self.weft('devices', 'h200').out)


class Phases(CommandTest):
    def test_graph_between_phases(self):
        """What every phase prints, the next one reads; the choice is that of one run from the
        start."""
        direct = self.weft('select', *LAYER, '--json').json()['variants']
        self.write('import.mlir', self.weft('compile', *LAYER, '--stop-after', 'import').out)
        self.assertEqual(self.weft('import', 'import.mlir').out, self.weft('import', *LAYER).out)
        previous = 'import'
        for phase in ('algebra', 'attention', 'fuse'):
            text = self.weft('compile', f'{previous}.mlir', '--start-from',
                             'import' if previous == 'import' else phase, '--stop-after', phase).out
            self.assertGreater(text.count('// variant: '), 1)
            self.assertEqual(text.count('// variant: '), text.count('// -----') + 1)
            self.write(f'{phase}.mlir', text)
            previous = phase
        self.assertIn('weft.candidates', text)
        self.assertIn('weft.records', text)
        names = {variant['name'] for variant in direct}
        for phase in ('attention', 'fuse'):
            resumed = self.weft('select', f'{phase}.mlir', '--start-from', 'fuse',
                                '--json').json()['variants']
            self.assertEqual({variant['name'] for variant in resumed}, names)
            self.assertEqual(resumed[0]['seconds'], direct[0]['seconds'])
        self.weft('compile', 'fuse.mlir', '--start-from', 'fuse', '--variant', direct[0]['name'],
                  '--stop-after', 'emit', '-o', 'out')
        self.assertEqual(
            json.loads((self.folder / 'out/plan.json').read_text())['variant'], direct[0]['name'])
        self.weft('emit', 'out')

    def test_candidates_are_taken_from_the_file(self):
        """From configure or select on, exactly the candidates of the file are used, and no others
        are admitted."""
        direct = self.weft('select', *TINY, '--json').json()['variants'][0]['seconds']
        text = self.weft('compile', *TINY, '--stop-after', 'fuse').out
        self.write('fuse.mlir', text)
        for phase in ('configure', 'select'):
            again = self.weft('select', 'fuse.mlir', '--start-from', phase, '--json').json()
            self.assertEqual(again['variants'][0]['seconds'], direct)
        self.weft('compile', 'fuse.mlir', '--start-from', 'select', '--stop-after', 'emit', '-o',
                  'out')
        alone = re.sub(r', \{name = "[^"]*", ops = \[\d+, [^}]*\}', '', text)
        self.assertLess(len(alone), len(text))
        self.write('alone.mlir', alone)
        slower = self.weft('select', 'alone.mlir', '--start-from', 'select',
                           '--json').json()['variants'][0]
        self.assertGreater(slower['seconds'], direct)
        self.write('more.mlir',
                   text.replace('weft.candidates = [', 'weft.candidates = [{ops = [0, 999]}, '))
        self.fails(2, 'select', 'more.mlir', '--start-from', 'select',
                   says=['[0, 999]', 'may not share a kernel'])
        self.write('plain.mlir', self.weft('compile', *TINY, '--stop-after', 'attention').out)
        self.fails(2, 'select', 'plain.mlir', '--start-from', 'select',
                   says=['no weft.candidates', '--stop-after fuse'])

    def test_files_of_several_variants(self):
        self.write('several.mlir', self.weft('compile', *LAYER, '--stop-after', 'attention').out)
        self.fails(2, 'import', 'several.mlir', says=['several.mlir', 'unchanged', '--variant'])
        self.fails(2, 'compile', 'several.mlir', '--start-from', 'fuse', '--variant', 'unchange',
                   '-o', 'out', says=["'unchange'", "'unchanged'"])
        one = self.weft('compile', 'several.mlir', '--start-from', 'fuse', '--stop-after', 'fuse',
                        '--variant', 'unchanged').out
        self.assertEqual(one.count('// variant: '), 1)
        text = (self.folder / 'several.mlir').read_text()
        line = text[:text.rindex('weft.contract')].count('\n') + 1
        self.write(
            'several.mlir', text[:text.rindex('weft.contract')] + 'weft.contrakt' +
            text[text.rindex('weft.contract') + 13:])
        self.fails(2, 'select', 'several.mlir', '--start-from', 'fuse',
                   says=[f'several.mlir:{line}:'])

    def test_a_selected_graph_is_not_selected_again(self):
        self.write('selected.mlir', self.weft('compile', *TINY, '--stop-after', 'select').out)
        self.assertIn('weft.kernel', (self.folder / 'selected.mlir').read_text())
        self.weft('import', 'selected.mlir')
        self.fails(2, 'select', 'selected.mlir', '--start-from', 'fuse',
                   says=['weft.kernel', 'weft emit'])

    def test_candidates_of_the_whole_model_are_counted_at_once(self):
        text = self.weft('opt', 'paper-encoder', '--candidates', timeout=60).out
        self.assertIn('configurations', text)

    def test_forced_fusion_says_why_not(self):
        records = self.weft('compile', *TINY, '--stop-after', 'fuse', '--json').json()
        rejected = next(
            record for variant in records['variants'] for record in variant['records']
            if not record['accepted'] and len(record['ops']) == 2 and record['code'] in ('F021',
                                                                                         'F022'))
        pair = '{},{}'.format(*rejected['ops'])
        self.fails(3, 'select', *TINY, '--fuse', pair,
                   says=['--fuse ' + pair, rejected['code'] + ' ' + rejected['reason']])

    def test_records_and_candidates(self):
        records = self.weft('compile', *TINY, '--stop-after', 'fuse', '--json').json()
        attempts = [record for variant in records['variants'] for record in variant['records']]
        self.assertTrue(any(record['accepted'] for record in attempts))
        rejected = [record for record in attempts if not record['accepted']]
        self.assertTrue(rejected)
        self.assertTrue(
            all(record['code'].startswith('F') and record['reason'] for record in rejected))
        kernels = self.weft('compile', *TINY, '--stop-after', 'configure', '--json').json()
        self.assertTrue(
            all(kernel['configurations'] > 0 for variant in kernels['variants']
                for kernel in variant['kernels']))

    def test_lowering_prints_programs(self):
        self.assertTrue(self.weft('compile', *TINY, '--stop-after', 'lower').out.strip())

    def test_start_from_an_artifact(self):
        stopped = self.weft('compile', *TINY, '--stop-after', 'emit', '-o', 'out').out
        self.assertIn('cubins: skipped, --stop-after emit)\n', stopped)
        self.assertNotIn('0 built', stopped)
        self.weft('compile', 'out', '--start-from', 'emit', '-o', 'again')
        self.weft('compile', *TINY, '-o', 'direct')
        again, direct = self.files('again'), self.files('direct')
        self.assertEqual({name for name in again}, {name for name in direct})
        self.assertEqual(
            [name for name in again if name.startswith('kernels/') and again[name] != direct[name]],
            [])


class Choices(CommandTest):
    def select(self, *flags):
        return self.weft('select', *CORE, '--json', *flags).json()

    def best(self, *flags):
        return self.select(*flags)['variants'][0]

    def test_every_restriction_costs(self):
        free = self.best()['seconds']
        for flags in (['--fuse-rules', 'none'], ['--attention',
                                                 'decomposed'], ['--attention', 'unfused']):
            self.assertGreaterEqual(self.best(*flags)['seconds'], free * (1 - 1e-9), flags)

    def test_free_arguments_and_results_save_what_their_layouts_cost(self):
        model = [str(ROOT / 'examples/two_softmaxes.mlir'), '--profile', 'none', '--attention',
                 'unfused']
        fixed, free = (self.weft('select', *model, *flags, '--json').json()['variants'][0]
                       for flags in ([], ['--free']))
        self.assertLess(free['seconds'], 0.9 * fixed['seconds'])  # one transpose less
        self.weft('compile', *model, '--free', '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        ends = {tensor['name']: tensor['order'] for tensor in plan['tensors']
                if tensor['role'] in ('argument', 'result')}
        self.assertEqual(ends['s'], [0, 1])
        self.assertEqual(ends['u'], [1, 0])
        self.weft('run', 'out', '--check')

    def test_norms(self):
        """Whole by default; decomposed, a projection leaves the sums of its rows; auto takes the
        better one and has the price of the other."""
        layer = [
            'gpt2', '--dim', 'b=1', '--dim', 'j=128', '--profile', 'none', '--attention', 'unfused',
            '--stacking', 'three', '--no-library'
        ]
        seconds = {}
        for norms in ('fused', 'decomposed', 'auto'):
            self.weft('compile', *layer, '--stop-after', 'emit', '--norms', norms, '-o', norms)
            plan = json.loads((self.folder / norms / 'plan.json').read_text())
            seconds[norms] = plan['predictedSeconds']
            self.assertEqual(
                'decompose-norms' in plan['variant'], norms == 'decomposed'
                or norms == 'auto' and seconds['decomposed'] < seconds['fused'], norms)
        self.assertAlmostEqual(seconds['auto'], min(seconds['fused'], seconds['decomposed']),
                               delta=1e-9)
        ops = [
            op
            for kernel in json.loads((self.folder / 'decomposed/plan.json').read_text())['kernels']
            for op in kernel['ops']
        ]
        self.assertFalse([op for op in ops if 'layer_norm' in op])
        self.assertTrue([op for op in ops if 'normalize' in op])
        self.assertIn('norm norm2: decomposed; --norms auto prices the others',
                      self.weft('explain', 'decomposed', '--fusion', 'norm2,norm2_normal').out)
        llama = [
            'llama-3-8b', '--dim', 'b=1', '--dim', 'j=256', '--profile', 'none', '--attention',
            'unfused', '--stacking', 'separate', '--no-library'
        ]
        self.weft('compile', *llama, '--stop-after', 'emit', '--norms', 'auto', '-o', 'llama')
        self.assertRegex(
            self.weft('explain', 'llama', '--fusion', 'norm2,gate').out,
            r'norm norm2: (whole|decomposed|deferred); .* slower, whole plan')
        self.weft('compile', *llama, '--stop-after', 'emit', '--norms', 'deferred', '--fuse',
                  'attention,norm2_squares', '-o', 'deferred')
        kernels = json.loads((self.folder / 'deferred/plan.json').read_text())['kernels']
        before, behind = (next(kernel for kernel in kernels if all(part in kernel['name']
                                                                   for part in parts))
                          for parts in (('attention_projection', 'reduce'), ('gate_raw_projection',
                                                                             'rms_normalize')))
        self.assertEqual({before['family'], behind['family']}, {'gemm-sm90'})
        for kind in ('decomposed', 'deferred'):  # a graph that trains reads their statistics
            self.fails(3, 'compile', *LAYER, '--train', '--norms', kind, '-o', 'train',
                       '--stop-after', 'emit', says=[f'--norms {kind}: no norm can be {kind}',
                                                     'nearest is --norms auto'])

    def test_alternatives_are_sorted(self):
        seconds = [plan['seconds'] for plan in self.select('--alternatives', '4')['alternatives']]
        self.assertEqual(seconds, sorted(seconds))

    def test_pin_is_kept_and_priced(self):
        prices = self.tensor_prices()
        tensor, layouts = next((name, entry['prices']) for name, entry in sorted(prices.items())
                               if len(entry['prices']) > 1 and not entry['pinned'])
        worst = layouts[-1]
        self.weft('compile', *CORE, '--attention', 'unfused', '--pin',
                  f"{tensor}={worst['layout']}", '-o', 'pinned')
        result = self.weft('explain', 'pinned', '--layout', tensor).out
        self.assertIn('the pin costs', result)

    def tensor_prices(self):
        self.weft('compile', *CORE, '--attention', 'unfused', '-o', 'out')
        return json.loads((self.folder / 'out/report.json').read_text())['layouts']

    def test_memory_limit(self):
        for size, unit in (('100', ''), ('0.1Ki', 'Ki'), ('0.0001M', 'M')):
            result = self.fails(3, 'select', *CORE, '--max-memory', size, '--attention', 'unfused',
                                '--chunks', '2')
            self.assertTrue(all(len(line) <= 100 for line in result.err.splitlines()), result.err)
            least = re.search(
                rf'the smallest found,\nof variant \S+, takes --max-memory ([0-9.]+{unit})\n',
                result.err).group(1)
            self.weft('select', *CORE, '--max-memory', least, '--attention', 'unfused', '--chunks',
                      '2')

    def test_a_memory_limit_below_one_tensor_fuses_what_would_store_it(self):
        wide = ['attention', '--dim', 'p=256', '--dim', 'b=1', '--dim', 'j=1024', '--train',
                '--device', 'h200', '--profile', 'none', '--chunks', '1', '--stop-after', 'emit']
        self.weft('compile', *wide, '-o', 'fast')
        fast = json.loads((self.folder / 'fast/plan.json').read_text())
        stored = max(math.prod(tensor['extents']) for tensor in fast['tensors']
                     if tensor['role'] == 'temporary')
        scores = 8 * 1024 * 1024
        self.assertGreaterEqual(stored, scores)  # else the limit would ask for nothing
        limit = 2 * scores - 1  # bytes of f16
        self.weft('compile', *wide, '--max-memory', str(limit), '-o', 'small')
        small = json.loads((self.folder / 'small/plan.json').read_text())
        self.assertLessEqual(small['workspaceBytes'], limit)
        self.assertIn('attention-backward-sm90', {one['family'] for one in small['kernels']})

    def test_causal_heads_of_256_columns_train_by_wgmma(self):
        for width in (192, 256):
            self.weft('compile', 'attention', '--mask', 'causal', '--train', '--dim', 'b=2',
                      '--dim', 'j=2048', '--dim', f'p={width}', '--device', 'h200', '--profile',
                      'none', '--stop-after', 'emit', '-o', f'wide{width}')
            plan = json.loads((self.folder / f'wide{width}/plan.json').read_text())
            backward, = [one for one in plan['kernels'] if 'backward' in one['family']]
            self.assertEqual(backward['family'], 'attention-backward-sm90')
            self.assertEqual(backward['knobs']['gradients'], 'single')

    def test_memory_limit_in_chunks(self):
        self.weft('compile', *CORE, '--attention', 'unfused', '-o', 'whole')
        whole = json.loads((self.folder / 'whole/plan.json').read_text())
        self.weft('compile', *CORE, '--attention', 'unfused', '--max-memory',
                  str(whole['workspaceBytes'] - 1), '-o', 'parts')
        parts = json.loads((self.folder / 'parts/plan.json').read_text())
        self.assertLess(parts['workspaceBytes'], whole['workspaceBytes'])
        cut = [kernel for kernel in parts['kernels'] if kernel['chunk']]
        self.assertGreater(len(cut), 3)
        self.assertEqual({kernel['chunk']['region'] for kernel in cut}, {0, 1, 2})
        self.assertIn('note: \'score\' is computed in ', self.weft('explain', 'parts', '--all').out)
        self.weft('emit', 'parts')  # reads back what it wrote
        self.assertEqual(
            json.loads((self.folder / 'parts/plan.json').read_text())['kernels'], parts['kernels'])
        cut[0]['chunk']['start'] = 7
        (self.folder / 'parts/plan.json').write_text(json.dumps(parts))
        self.fails(2, 'emit', 'parts',
                   says=[cut[0]['name'].split('__')[0], 'member "chunk.start" is 7'])
        self.assertRegex(
            self.weft('select', *CORE, '--attention', 'unfused', '--max-memory', '1K').out,
            r'(?m)^\* unchanged +[0-9.]+ us +\+0 us +[2-9] ')

    def test_memory_limit_that_one_variant_meets(self):
        core = ['attention', '--dim', 'b=1', '--dim', 'h=2', '--dim', 'j=7', '--dim', 'p=5']
        unlimited = self.weft('select', *core, '--json').json()['variants']
        free, bounds = {variant['name']
                        for variant in unlimited}, [variant['lowerBound'] for variant in unlimited]
        result = self.weft('select', *core, '--max-memory', '450')
        self.assertIn('variant decompose-softmax-64 has no plan: ', result.out)
        self.assertIn('the smallest found takes', result.prose())
        limited = self.weft('select', *core, '--max-memory', '450', '--json').json()
        self.assertEqual(limited['lowerBound'],
                         min(bounds))  # also of what has no plan in so little memory
        kept = {variant['name'] for variant in limited['variants']}
        self.assertEqual((free, kept), ({'unchanged', 'decompose-softmax-64'}, {'unchanged'}))

    def test_fused_attention_that_no_softmax_can_be_in(self):
        graph = self.write('returned.mlir', """
!q = tensor<2x32x64xf16, #weft.axes<h, j, p>>
!k = tensor<2x32x64xf16, #weft.axes<h, k, p>>
!s = tensor<2x32x32xf16, #weft.axes<h, j, k>>
module {
  weft.graph @returned(%q: !q, %k: !k, %v: !k) -> (!q, !s) {
    %s = weft.contract "hjp,hkp->hjk" %q, %k : !q, !k -> !s
    %p = weft.softmax %s over k : !s
    %y = weft.contract "hjk,hkp->hjp" %p, %v : !s, !k -> !q
    weft.return %y, %p : !q, !s
  }
}
""")
        for flags in ([], ['--train']):
            self.fails(3, 'select', graph, *flags, '--attention', 'fused',
                       says=["softmax 'p'", 'the graph returns it', '--attention auto, which'])

    def test_fused_attention_in_training_says_what_is_saved(self):
        self.weft('compile', 'attention', '--dim', 'j=256', '--train', '--attention', 'fused',
                  '--stop-after', 'emit', '-o', 'out')
        saved = {one['tensor'] for one in
                 json.loads((self.folder / 'out/report.json').read_text())['saved']}
        self.assertEqual(saved, {'weighted', 'weighted_log_sums'})
        self.assertIn('fused attention', self.weft('explain', 'out').out)

    def test_the_price_of_determinism(self):
        """The same bits in every launch by default; sums in any order where they are asked for."""
        asked = ['attention', '--dim', 'h=2', '--dim', 'p=128', '--dim', 'j=2048', '--train',
                 '--attention', 'fused', '--profile', 'none', '--stop-after', 'emit']
        seconds = {}
        for value in ('on', 'off'):
            self.weft('compile', *asked, '--deterministic', value, '-o', value)
            plan = json.loads((self.folder / value / 'plan.json').read_text())
            backward, = (kernel for kernel in plan['kernels']
                         if kernel['family'] == 'attention-backward-sm90')
            note, = (note['text'] for note in plan['notes'] if note['kind'] == 'determinism')
            self.assertEqual(backward['knobs'].get('sums'), 'unordered' if value == 'off' else None)
            for shown in (['--all'], ['--kernel', backward['name']]):
                page = self.weft('explain', value, *shown).out
                self.assertIn(note, ' '.join(page.split()))
            self.assertTrue(note.startswith(backward['name'] + ' sums in '))
            seconds[value] = re.findall(r'[\d.]+ us', note)
            # The plan says so itself: emitted again, it needs no flag.
            self.weft('emit', value, env={'WEFT_NVRTC': 'none'})
            again = json.loads((self.folder / value / 'plan.json').read_text())
            self.assertEqual(again['notes'][0], plan['notes'][0])
            self.assertEqual([kernel['textHash'] for kernel in again['kernels']],
                             [kernel['textHash'] for kernel in plan['kernels']])
        self.assertEqual(seconds['on'], seconds['off'][::-1])
        on, off = (float(one.split()[0]) for one in seconds['on'])
        self.assertGreater(on, off)
        request = json.loads((self.folder / 'off/report.json').read_text())['request']
        self.assertEqual(request['target']['deterministic'], 'off')
        self.fails(2, 'compile', *asked, '--deterministic', 'maybe', '-o', 'no',
                   says=['--deterministic maybe: unknown value', 'on, off'])

    def test_fused_attention_that_no_family_takes(self):
        odd = [{'p=16': 'p=12', 'i=32': 'i=24'}.get(one, one) for one in LAYER]
        self.fails(3, 'select', *odd, '--attention', 'fused', says=[
            'F028 attention-off (attention-sm90: rows of queries are no neighbours that start at '
            'multiples of 16 bytes, which TMA asks for; attention-sm80: heads of 12 and 12 '
            'elements; multiples of 8 are copied asynchronously)'
        ])

    def test_recomposed_attention_names_the_op_between_and_why(self):
        for score, op in ((['--score', 'relative=16'], 'score_biased'),
                          (['--mask', 'document'], 'in_document')):
            plan = self.weft('select', *CORE, *score, '--attention', 'recomposed',
                             '--json').json()['plan']
            self.assertIn('recompose-softmax', plan['variant'])
            self.fails(3, 'select', *CORE, *score, '--attention', 'recomposed', '--dtype', 'f32',
                       says=[
                           f"ops 'score', 'exponentials' are not fused: 'score', '{op}': F021 "
                           'contraction-epilogue-off (gemm-sm90: element type f32;',
                           'the nearest alternative is --attention decomposed'
                       ])

    def test_fused_attention_that_drops_probabilities_before_wgmma(self):
        for asked in ([*CORE, '--dropout', '0.1'], [*LAYER, '--train'],
                      [*CORE, '--dropout', '0.1', '--dtype', 'f32', '--tf32']):
            plan = self.weft('select', *asked, '--device', 'a100', '--attention', 'fused',
                             '--json').json()['plan']
            self.assertIn('fuse-attention', plan['variant'])

    def test_infeasible_pin_names_the_nearest(self):
        message = self.fails(3, 'select', *CORE, '--pin', 'score=kjbh',
                             says=['--pin score=kjbh', 'legal and nearest: ']).err
        nearest = message.split('legal and nearest: ')[1].split(',')[0]
        self.weft('select', *CORE, '--pin', f'score={nearest}')

    def test_what_variants_take_without_pins_is_remembered(self):
        core = [*CORE, '--device', 'v100']  # without fused attention, which stores no score
        def pinned():
            plan = self.weft('select', *core, '--pin', 'score=bhjk', '--json').json()
            return {variant['name']: variant['seconds']
                    for variant in plan['variants']}, plan['pins']

        first = pinned()

        def text(file):
            return json.loads(file.read_text().split('\n', 1)[1])

        def remember(file,
                     times):  # as weft does: under a hash of key and text, each with its length
            content = json.dumps(times)
            fields = b''.join(b'%d:' % len(field) + field
                              for field in (file.name.encode(), content.encode()))
            file.write_text(hashlib.sha256(fields).hexdigest() + '\n' + content)

        files = {tuple(text(file)): file for file in self.cache.glob('times/*')}
        self.assertEqual(len(files), 2)
        plan = text(files.pop(('plan', )))['plan']
        self.assertAlmostEqual(plan,
                               self.weft('select', *core, '--json').json()['plan']['seconds'],
                               delta=1e-12)
        known = list(files.values())
        without = {
            variant['name']: variant['seconds']
            for variant in self.weft('select', *core, '--json').json()['variants']
        }
        times = text(known[0])
        fastest = min(without, key=without.get)
        self.assertEqual(times[fastest], without[fastest])
        self.assertEqual(times.keys(), without.keys())
        for name, seconds in self.some(without.items()):  # of others what their bound leaves
            self.assertLessEqual(times[name], seconds)
            self.assertGreater(times[name], max(0.98 * seconds, without[fastest] * (1 - 1e-9)))
        self.assertAlmostEqual(first[1][0]['regret'],
                               min(first[0].values()) - min(without.values()), delta=1e-12)
        self.assertEqual(pinned(), first)
        remember(known[0], {'unchanged': 'soon'})  # of another form: found again
        self.assertEqual(pinned(), first)
        known[0].write_text(known[0].read_text().replace('unchanged',
                                                         'unchanger'))  # damaged: found again
        self.assertEqual(pinned(), first)
        self.assertEqual(text(known[0]), times)
        # What is known decides which variants are searched.
        remember(
            known[0], {
                name: seconds if name == min(without, key=without.get) else 1
                for name, seconds in without.items()
            })
        self.assertEqual(list(pinned()[0]), [min(without, key=without.get)])
        self.assertIn('was not searched', self.weft('select', *core, '--pin', 'score=bhjk').out)

    def test_dot(self):
        self.weft('select', *CORE, '--dot', 'graph.dot')
        text = (self.folder / 'graph.dot').read_text()
        self.assertTrue(text.startswith('digraph') or text.startswith('//'))
        self.assertIn('->', text)


class Views(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'out')
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())

    def compile_with_library(self):
        """On a device without WGMMA, where contractions are cuBLASLt's."""
        self.weft('compile', *TINY, '--device', 'a100', '--stop-after', 'emit', '-o', 'out')
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())

    def test_kernels(self):
        rows = self.weft('explain', 'out', '--json').json()['kernels']
        self.assertEqual([row['name'] for row in rows],
                         [kernel['name'] for kernel in self.plan['kernels']])
        self.assertAlmostEqual(sum(row['share'] for row in rows), 1, places=6)
        self.assertTrue(
            all(row['bytesMoved'] >= row['bytesNecessary'] for row in rows
                if row['family'] != 'view'))
        text = self.weft('explain', 'out', '--all').out
        self.assertIn('estimated', text)
        self.assertIn('best weft could choose', text)
        for row in self.some(rows):
            self.assertIn(row['name'], self.weft('explain', 'out', '--kernel', row['name']).out)
        self.compile_with_library()
        self.assertIn('GEMMs of cuBLASLt', self.weft('explain', 'out', '--all').out)

    def test_all_lists_the_variants_with_their_times(self):
        self.weft('compile', *LAYER, '--stop-after', 'emit', '-o', 'several')
        report = json.loads((self.folder / 'several/report.json').read_text())
        text = self.weft('explain', 'several', '--all').out
        said = self.weft('explain', 'several', '--json').json()
        self.assertGreater(len(report['variants']), 4)
        times = [variant['seconds'] for variant in report['variants']]
        self.assertEqual([variant['seconds'] for variant in said['variants']], times)
        rows = text.split('\nvariants\n')[1].split('\nnext best paths')[0].splitlines()
        rows = [row for row in rows if re.search(r' us .* us', row)]  # long names have more lines
        self.assertEqual(len(rows), len(times))
        for row, variant in zip(rows, report['variants']):
            self.assertEqual(row.startswith('* '), variant['chosen'])
            name = row.removeprefix('* ').split()[0].removesuffix('...')
            self.assertTrue(variant['name'].startswith(name), row)
        self.assertIn('next best paths of the chosen variant: +', text)
        self.assertNotIn('next best paths', self.weft('explain', 'several').out)
        self.fails(2, 'explain', 'several', '--stacking', 'two',
                   says=['explain --all lists the variants with their times'])
        # What has no plan says so in the same table.
        self.weft('compile', *LAYER, '--pin', 'score=hbjk', '--stop-after', 'emit', '-o', 'pinned')
        self.assertRegex(self.weft('explain', 'pinned', '--all').prose(), r'- - - no plan: ')

    def test_views_are_neither_measured_nor_estimated(self):
        views = [
            row for row in self.weft('explain', 'out', '--json').json()['kernels'] if row['view']
        ]
        self.assertEqual({row['family'] for row in views}, {'view'})
        self.assertIn('nothing is launched for a view',
                      self.weft('explain', 'out', '--kernel', views[0]['name']).out)
        for kernel in self.plan['kernels']:
            kernel['measured'] = kernel['family'] != 'view'
        self.write_plan('out', self.plan)
        text = self.weft('explain', 'out').out
        launched = len(self.plan['kernels']) - len(views)
        self.assertIn(f'{launched} of {launched} kernels measured', text)
        self.assertNotIn('estimated', text)
        self.plan['kernels'][0]['measured'] = False
        self.write_plan('out', self.plan)
        self.assertIn(f'{launched - 1} of {launched} kernels measured',
                      self.weft('explain', 'out').out)
        self.assertIn(f'! 1 of {launched} kernels estimated', self.weft('explain', 'out').out)

    def test_contractions_are_library_gemms_unless_switched_off(self):
        self.compile_with_library()
        products = [kernel for kernel in self.plan['kernels'] if kernel['library']]
        self.assertTrue(products)
        for kernel in products:
            self.assertEqual((kernel['family'], kernel['source'], kernel['cubin']),
                             ('cublaslt', '', ''))
            self.assertEqual(kernel['knobs']['algorithm'], -1)
            self.assertIn('GEMM       C',
                          self.weft('explain', 'out', '--kernel', kernel['name']).out)
        self.weft('compile', *TINY, '--no-library', '--dtype', 'f32', '-o', 'plain')
        plan = json.loads((self.folder / 'plain/plan.json').read_text())
        self.assertEqual([kernel['name'] for kernel in plan['kernels'] if kernel['library']], [])
        self.assertIn('without tensor cores (gemm-fma)',
                      self.weft('explain', 'plain', '--all').out)

    def test_slices_are_taken_where_they_gain_enough(self):
        arguments = ('attention', '--attention', 'unfused', '--dtype', 'f32', '--dim', 'b=4',
                     '--dim', 'h=1', '--dim', 'p=64', '--device', 'h200', '--profile', 'none',
                     '--pipeline', 'auto', '--stop-after', 'emit', '-o')
        self.weft('compile', *arguments, 'few', '--dim', 'j=1024')
        self.assertIn('in 2 slices at once', self.weft('explain', 'few').out)
        self.weft('compile', *arguments, 'many', '--dim', 'j=4096')
        said = self.weft('explain', 'many', '--all').out
        self.assertNotIn('slices at once', said)
        self.assertIn('slices are taken from a gain of 4% on', ' '.join(said.split()))

    def test_a_library_gemm_keeps_its_algorithm_when_emitted_again(self):
        self.compile_with_library()
        path = self.folder / 'out/plan.json'
        named = {
            'libraryVersion': 130200, 'algorithm': 66, 'tile': 20, 'stages': 36,
            'workspaceBytes': 4 << 20
        }
        product = next(kernel for kernel in self.plan['kernels'] if kernel['library'])
        product['knobs'].update(named)
        path.write_text(json.dumps(self.plan))
        self.weft('emit', 'out')
        again = json.loads(path.read_text())
        kept = next(kernel for kernel in again['kernels'] if kernel['name'] == product['name'])
        self.assertEqual({name: kept['knobs'][name] for name in named}, named)
        self.assertEqual(kept['library'], product['library'])
        self.assertIn('cuBLASLt 13.2.0, algorithm 66', kept['configuration'])

    def test_a_broken_library_product_is_rejected(self):
        self.compile_with_library()
        product = next(kernel for kernel in self.plan['kernels'] if kernel['library'])
        product['library']['shape']['m'] += 1
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        self.fails(2, 'explain', 'out', says=[product['name'], 'library: operand'])

    def test_why_knobs_are_not_legal(self):
        product = next(kernel for kernel in self.plan['kernels']
                       if kernel['family'] == 'gemm-sm90')
        product['knobs']['stages'] = 24
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        self.fails(
            2, 'emit', 'out', says=[
                product['name'], 'is not legal with these layouts: ', 'bytes of shared memory',
                'legal are, for example'
            ])

    def test_unknown_kernel_names_the_nearest(self):
        name = self.plan['kernels'][0]['name']
        self.fails(2, 'explain', 'out', '--kernel', name + 'x', says=[f"'{name}'"])

    def test_fusion(self):
        report = json.loads((self.folder / 'out/report.json').read_text())
        kernel, ops = next((name, ops) for name, ops in report['kernelOps'].items() if len(ops) > 1)
        self.assertIn('fused: both are in ' + kernel,
                      self.weft('explain', 'out', '--fusion', f'{ops[0]},{ops[1]}').out)
        # Of every pair inside a kernel: what separating it costs, by the kernels of both plans,
        # whose difference it is where nothing else differs.
        priced = [
            price for price in report['fusionPrices']
            if price['fused'] and price.get('steps') and price.get('otherSteps')
        ]
        self.assertTrue(priced)
        for price in priced:
            total = {
                side: sum(step['seconds'] for step in price[side])
                for side in ('steps', 'otherSteps')
            }
            self.assertAlmostEqual(total['otherSteps'] - total['steps'], price['lossOfOther'],
                                   delta=1e-9)
            # One kernel at one price on both sides is no difference.
            own, others = ({(step['step'].split(':')[0], step['seconds'])
                            for step in price[side]} for side in ('steps', 'otherSteps'))
            self.assertFalse(own & others)
        text = self.weft('explain', 'out', '--fusion', '{},{}'.format(*priced[0]['ops'])).prose()
        for side in ('steps', 'otherSteps'):
            for step in self.some(priced[0][side]):
                self.assertIn(step['step'], text)
        # Ops of one kernel that exchange nothing: the pairs between them.
        ends = next(ops for ops in report['kernelOps'].values() if len(ops) > 2)
        text = self.weft('explain', 'out', '--fusion', f'{ends[0]},{ends[-1]}').out
        self.assertRegex(text, r'are fused; separating them: (.* slower, whole plan|no plan does)')
        # A kernel without measurements takes part as an estimate; no shipped workload has 384
        # positions.
        self.weft('compile', 'bert-large', '--dim', 'b=8', '--dim', 'j=384', '--attention',
                  'decomposed', '--stop-after', 'emit', '-o', 'decomposed')
        self.assertIn('fused: both are in score_contraction_local_softmax',
                      self.weft('explain', 'decomposed', '--fusion', 'score,exponentials').out)
        self.assertRegex(self.weft('explain', 'decomposed', '--all').prose(),
                         r'estimated, with a margin of \d+%: .*score_contraction_local_softmax')
        # A kernel of the plan that holds no op: a copy between two layouts.
        self.weft('compile', 'attention', *'--train --attention unfused --profile none'.split(),
                  *'--dim b=1 --dim h=4 --dim j=1025 --dim p=256 --dtype f32 --tf32'.split(),
                  '--stop-after', 'emit', '-o', 'copies')
        plan = json.loads((self.folder / 'copies/plan.json').read_text())
        copy = next(kernel for kernel in plan['kernels'] if kernel['family'] == 'transpose')
        copied = plan['tensors'][copy['inputs'][0]]['logical']
        self.fails(2, 'explain', 'copies', '--fusion', f"{copy['name']},score",
                   says=[f"'{copied}' from one layout to another", f'--layout {copied}'])
        self.weft('compile', 'bert-large', '--dim', 'b=8', '--dim', 'j=384', '--attention',
                  'decomposed', '--profile', 'none', '--stop-after', 'emit', '-o', 'modelled')
        self.assertIn('fused: both are in score_contraction_local_softmax',
                      self.weft('explain', 'modelled', '--fusion', 'score,exponentials').out)
        # Ops of two kernels that exchange nothing have no price.
        first, last = ends[0], max(op for ops in report['kernelOps'].values() for op in ops)
        self.assertNotIn(last, ends)
        self.assertNotIn('whole plan',
                         self.weft('explain', 'out', '--fusion', f'{first},{last}').out)
        rejected = next(record for record in report['fusions']
                       if not record['accepted'] and len(record['ops']) == 2)
        text = self.weft('explain', 'out', '--fusion', '{},{}'.format(*rejected['ops'])).out
        self.assertIn(f"{rejected['code']} {rejected['reason']}", text)
        self.assertRegex(' '.join(text.split()), r'would save .* against its ops one by one')
        self.fails(2, 'explain', 'out', '--fusion', 'nothing,0', says=["'nothing'"])

    def test_stacking(self):
        """Attempts to stack are told by the names that the projections had before they were
        stacked."""
        text = self.weft('explain', 'out', '--fusion', 'q_product,k_product').out
        self.assertIn('stacking q_product, k_product: allowed', text)
        self.assertIn(self.plan['variant'], text)

    def test_copied_slices_say_why(self):
        self.write(
            'slices.mlir',
            '!x = tensor<64x64xf16, #weft.axes<j, i>>\n!s = tensor<64x32xf16, #weft.axes<j, i>>\n'
            'weft.graph @g(%x: !x) -> (!x, !s) {\n  %r = weft.relu %x : !x\n'
            '  %s = weft.slice %r {axis = i, start = 32, size = 32} : !x -> !s\n  %t = weft.exp '
            '%s : !s\n'
            '  weft.return %r, %t : !x, !s\n}\n')
        self.weft('compile', 'slices.mlir', '--stop-after', 'emit', '--pin', 's=ji', '-o', 'slices')
        self.assertIn(
            'is a copy: V005 runs-not-whole-lines (runs along i in ji are no multiples of 128 '
            'bytes)',
            self.weft('explain', 'slices', '--all').prose())

    def test_movement(self):
        ledger = self.weft('explain', 'out', '--movement', '--json').json()
        self.assertLess(ledger['fused'], ledger['unfused'])
        self.assertGreaterEqual(ledger['moved'], ledger['fused'])

    @with_empty_cache
    def test_cache(self):
        statistics = self.weft('cache', 'stat', '--json').json()
        if not any(kernel['cubin'] for kernel in self.plan['kernels']):
            self.skipTest('no NVRTC')
        self.assertGreater(statistics['entries'], 0)
        self.assertIn('in the cache', self.weft('explain', 'out', '--cache-miss').out)
        self.assertEqual(self.weft('cache', 'verify', '--json').json()['broken'], [])
        cubin = next(self.cache.rglob('*.cubin'))
        cubin.write_bytes(b'damaged')
        self.weft('cache', 'verify', code=1)
        self.weft('compile', *TINY, '-o', 'again')
        self.weft('cache', 'verify')
        self.assertEqual(self.files('out'), self.files('again'))
        self.weft('cache', 'gc', '--keep', '0')
        self.assertEqual(self.weft('cache', 'stat', '--json').json()['entries'], 0)
        self.assertIn('not in the cache', self.weft('explain', 'out', '--cache-miss').out)


class Verified(CommandTest):
    def test_explain_says_which_exact_texts_were_never_verified(self):
        self.weft('compile', *TINY, '-o', 'a', env={'WEFT_NVRTC': 'none'})
        plan = json.loads((self.folder / 'a/plan.json').read_text())
        recorded, *others = [kernel for kernel in plan['kernels'] if kernel['textHash']]
        self.assertIn('; 0 verified', self.weft('explain', 'a').out)
        self.cache.mkdir(exist_ok=True)
        store = self.cache / 'verified.txt'
        store.write_text(
            f"# weft verified 2\n{record_hash(recorded)} agrees 2 8192 {recorded['name']} NVIDIA "
            f"H200\n"
        )
        same = [kernel for kernel in others if record_hash(kernel) == record_hash(recorded)]
        self.assertIn(f'; {1 + len(same)} verified', self.weft('explain', 'a').out)
        text = self.weft('explain', 'a', '--all').out
        self.assertIn(f'verified on a GPU: {1 + len(same)} of', text)
        never = text.split('never: ')[1]
        self.assertNotIn(recorded['name'] + ',', never)
        self.assertIn('NVIDIA H200, at 8192 points',
                      self.weft('explain', 'a', '--kernel', recorded['name']).out)
        verification = {
            kernel['name']: kernel['verification']
            for kernel in self.weft('explain', 'a', '--json').json()['kernels']
        }
        self.assertEqual(verification[recorded['name']],
                         {'state': 'agrees', 'gpu': 'NVIDIA H200', 'verifier': 2, 'points': 8192})
        self.assertEqual(verification[others[0]['name']], {'state': 'never'})
        store.write_text(
            f"# weft verified 2\n{record_hash(recorded)} fails 2 8192 {recorded['name']} NVIDIA "
            f"H200\n"
        )
        self.assertRegex(
            self.weft('explain', 'a').out, '! [0-9]+ of [0-9]+ kernels FAILED when last verified')
        text = self.weft('explain', 'a', '--all').out
        self.assertIn('verified on a GPU: 0 of', text)
        self.assertIn(f"FAILED: {recorded['name']}", text)
        store.write_text('rubbish\n')
        self.assertIn('verified.txt:1', self.weft('explain', 'a', code=2).err)

    def test_records_of_an_older_verifier_are_shown_as_such_and_do_not_count(self):
        self.weft('compile', *TINY, '-o', 'a', env={'WEFT_NVRTC': 'none'})
        recorded = next(kernel for kernel in json.loads((self.folder /
                                                         'a/plan.json').read_text())['kernels']
                        if kernel['textHash'])
        self.cache.mkdir(exist_ok=True)
        (self.cache / 'verified.txt').write_text(
            f"# weft verified 1\n{recorded['textHash']} {recorded['name']} 0.1.0 NVIDIA H200\n")
        first = self.weft('explain', 'a').out
        self.assertRegex(first, '; 0 verified, [0-9]+ by an older verifier')
        self.assertRegex(first, '! [0-9]+ of [0-9]+ kernels verified by an older verifier alone')
        text = self.weft('explain', 'a', '--all').prose()
        self.assertIn('verified on a GPU: 0 of', text)
        self.assertIn(f"by an older verifier: {recorded['name']}", text)
        self.assertIn('by an older verifier, 1, on NVIDIA H200',
                      self.weft('explain', 'a', '--kernel', recorded['name']).out)

    def test_what_a_plan_claims_of_itself_is_rejected_by_name(self):
        self.weft('compile', *TINY, '-o', 'a', env={'WEFT_NVRTC': 'none'})
        plan = self.folder / 'a/plan.json'
        edited = json.loads(plan.read_text())
        edited['kernels'][1]['verifiedOn'] = 'NVIDIA H200'
        plan.write_text(json.dumps(edited))
        for command in ('explain', 'emit'):
            self.fails(
                2, command, 'a',
                says=['plan.json', 'kernels[1].verifiedOn', 'no plan claims what was verified'])


class LargeTensor(CommandTest):
    def test_more_than_2_to_the_31_elements(self):
        # scores: 4 x 16 x 8192 x 8192 elements = 2^32
        result = self.weft('compile', 'attention', '--dim', 'b=4', '--dim', 'h=16', '--dim',
                           'j=8192', '--dim', 'k=8192', '--attention', 'unfused', '--chunks', '1',
                           '-o', 'out')
        self.assertIn('wrote out', result.out)
        plan = self.assertWholeArtifact('out')
        elements = []
        for tensor in plan['tensors']:
            product = 1
            for extent in tensor['extents']:
                product *= extent
            elements.append(product)
        self.assertGreater(max(elements), 2**31)


if __name__ == '__main__':
    unittest.main()
