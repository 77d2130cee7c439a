"""Artifacts: written whole or not at all, reproducible, edited by hand and emitted again."""
import itertools
import json
import os
import re
import shutil
import subprocess
import unittest

from weft_command import CORE, LAYER, ROOT, CommandTest, TINY, WEFT

# stmatrix to a constant shared-memory address: NVRTC 13.0 itself dies of it (see
# tests/nvrtc/build_test.cpp).
CRASHING = (
    'extern "C" __global__ void NAME(unsigned *x) {\n'
    '  asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" :: "r"(0), '
    '"r"(x[0]));\n}\n'
)


class Writing(CommandTest):
    def test_compile_writes_a_whole_artifact(self):
        result = self.weft('compile', *TINY, '-o', 'out')
        self.assertIn('wrote out', result.out)
        self.assertEqual(result.err, '')  # no progress in a pipe
        plan = self.assertWholeArtifact('out')
        self.assertGreater(plan['predictedSeconds'], 0)
        self.assertLessEqual(plan['lowerBoundSeconds'], plan['predictedSeconds'] * (1 + 1e-9))

    def test_a_kernel_says_its_entry_point_and_alternatives_differ(self):
        self.weft('compile', *LAYER, '--train', '--stacking', 'three', '--stop-after', 'emit', '-o',
                  'out')
        plan, report = (json.loads((self.folder / 'out' / file).read_text())
                        for file in ('plan.json', 'report.json'))
        entries = {name: kernels for name, kernels in plan['entryPoints'].items() if name != 'all'}
        self.assertEqual(set(entries), {'forward', 'backward'})
        for name, kernels in entries.items():
            sources = [plan['kernels'][index]['source'] for index in kernels]
            self.assertTrue(any(sources))
            for source in filter(None, sources):
                first = (self.folder / 'out' / source).read_text().splitlines()[0]
                self.assertRegex(first, rf'kernel \d+ of {plan["model"]}, {name} ')
        texts = self.files('out')
        self.weft('emit', 'out', '--check')
        self.weft('emit', 'out', env={'WEFT_NVRTC': 'none'})
        again = self.files('out')
        self.assertEqual({name: text for name, text in again.items() if name.endswith('.cu')},
                         {name: text for name, text in texts.items() if name.endswith('.cu')})
        different = [sorted(one['different']) for one in report['alternatives']]
        self.assertEqual(len(different), len(set(map(tuple, different))))

    def test_the_bound_is_that_of_all_variants(self):
        """In plan.json, explain and select; lists of variants have each its own."""
        said = self.weft('select', *CORE, '--json').json()
        bounds = {variant['name']: variant['lowerBound'] for variant in said['variants']}
        self.assertGreater(len(set(bounds.values())), 1)
        self.assertEqual(said['lowerBound'], min(bounds.values()))
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'out')
        plan, report = (json.loads((self.folder / 'out' / file).read_text())
                        for file in ('plan.json', 'report.json'))
        self.assertEqual({variant['name']: variant['lowerBound']
                          for variant in report['variants']}, bounds)
        self.assertEqual((plan['lowerBoundSeconds'], report['lowerBound']),
                         (said['lowerBound'], said['lowerBound']))
        self.assertEqual(
            self.weft('explain', 'out', '--json').json()['lowerBoundSeconds'], said['lowerBound'])

    def test_the_bound_holds_by_the_prices_that_gave_it(self):
        """Emitting again keeps it, but not where a profile of that name has other times."""
        text = (ROOT / 'profiles/h200/norms.txt').read_text()
        self.write('p.txt', text)
        self.weft('compile', *TINY, '--profile', 'p.txt', '--stop-after', 'emit', '-o', 'a')
        emitted = lambda: json.loads((self.folder / 'a/plan.json').read_text())
        first = emitted()
        self.assertRegex(first['prices'], '^[0-9a-f]{16}$')
        self.weft('emit', 'a', '--profile', 'p.txt')
        self.assertEqual(emitted()['lowerBoundSeconds'], first['lowerBoundSeconds'])
        time = re.search(r'\n  (\S+) \d', text).group(1)
        self.write('p.txt', text.replace(f'\n  {time} ', '\n  1.23e-03 ', 1))
        self.weft('emit', 'a', '--profile', 'p.txt')
        self.assertNotEqual(emitted()['prices'], first['prices'])
        self.assertEqual(emitted()['lowerBoundSeconds'], 0)
        self.assertEqual(emitted()['costModel'], first['costModel'])

    def test_same_input_same_bytes(self):
        self.weft('compile', *TINY, '-o', 'a')
        self.weft('compile', *TINY, '-o', 'b')
        self.assertEqual(self.files('a'), self.files('b'))
        self.assertEqual(self.weft('diff', 'a', 'b').out, 'equal\n')

    def test_output_folder_that_is_no_artifact_is_kept(self):
        (self.folder / 'precious').mkdir()
        self.write('precious/thesis.txt', 'years of work')
        before = self.files()
        self.fails(2, 'compile', *TINY, '-o', 'precious', says=['precious'])
        self.assertNothingLeft(before)

    def test_output_below_a_file(self):
        self.write('file', 'text')
        before = self.files()
        self.fails(2, 'compile', *TINY, '-o', 'file/out', says=['file'])
        self.assertNothingLeft(before)

    def test_unwritable_output_folder(self):
        if os.geteuid() == 0:
            # Root may write anywhere but where the kernel itself rejects.
            self.fails(2, 'compile', *TINY, '-o', '/proc/weft-out', says=['/proc'])
            return
        (self.folder / 'locked').mkdir(mode=0o500)
        self.fails(2, 'compile', *TINY, '-o', 'locked/out', says=['locked'])

    def test_no_output_folder(self):
        self.fails(2, 'compile', *TINY, says=['-o DIR'])


class Nvrtc(CommandTest):
    MISSING = {'WEFT_NVRTC': 'none'}

    def test_without_nvrtc_the_text_is_written(self):
        result = self.weft('compile', *TINY, '-o', 'out', env=self.MISSING)
        self.assertIn('cubins: skipped, no NVRTC', result.out)
        plan = self.assertWholeArtifact('out')
        self.assertEqual([kernel['cubin'] for kernel in plan['kernels']],
                         [''] * len(plan['kernels']))
        self.assertTrue(any(kernel['source'] for kernel in plan['kernels']))

    def test_emit_without_nvrtc_leaves_no_cubin_of_before(self):
        self.weft('compile', *TINY, '-o', 'out')
        self.weft('emit', 'out', env=self.MISSING)
        plan = self.assertWholeArtifact('out')
        self.assertEqual([kernel['cubin'] for kernel in plan['kernels']],
                         [''] * len(plan['kernels']))

    def test_without_nvrtc_strict_exits_4(self):
        self.fails(4, 'compile', *TINY, '--strict', '--profile', 'none', '-o', 'out',
                   env=self.MISSING, says=['no NVRTC', '--strict'])
        self.assertNothingLeft({})


EMPTY_PROFILE = '# weft profile 4\n# device DEVICE\n# protocol 1 cold L2\n'


class Profile(CommandTest):
    def test_missing(self):
        self.fails(2, 'compile', *TINY, '--profile', 'none.profile', '-o', 'out',
                   says=['none.profile'])
        self.assertNothingLeft({})

    def test_of_another_device(self):
        self.write('a100.profile', EMPTY_PROFILE.replace('DEVICE', 'a100'))
        self.fails(2, 'compile', *TINY, '--profile', 'a100.profile', '--device', 'h200', '-o',
                   'out', says=['a100.profile', 'a100', 'h200'])
        self.assertEqual(sorted(self.files()), ['a100.profile'])

    def test_without_measurements_falls_back_or_exits_4(self):
        self.write('h200.profile', EMPTY_PROFILE.replace('DEVICE', 'h200'))
        self.weft('select', *TINY, '--profile', 'h200.profile')
        self.fails(4, 'select', *TINY, '--profile', 'h200.profile', '--strict',
                   says=['h200.profile'])

    def test_what_ships_is_held_to_strict_too(self):
        self.weft('select', 'bert-large', '--strict')
        self.fails(4, 'select', *TINY, '--strict', says=['shipped profile'])
        self.fails(4, 'select', *TINY, '--device', 'a100', '--strict',
                   says=['no profile of a100 ships', '--profile none'])
        self.weft('select', *TINY, '--strict', '--profile', 'none')

    def test_cut_off_or_garbled_measurements_change_nothing(self):
        whole = (ROOT / 'profiles/h200/norms.txt').read_text()
        self.write('cut.txt', whole[:whole.index(' lanes=') + 3])
        self.fails(2, 'select', *TINY, '--profile', 'cut.txt', says=['cut.txt:', 'cut off'])
        self.write('whole.txt', whole)
        self.weft('profile', 'import', 'rows.db', 'whole.txt')
        before = self.weft('profile', 'export', 'rows.db').out
        for good, bad in (('1 loop ', '1 lop '), (' vector=a', ' vector=z'),
                          (' lanes=a', ' lane=a'), (' 01,', ' 09,')):
            self.write('bad.txt', whole.replace(good, bad, 1))
            line = whole[:whole.index(good)].count('\n') + 1
            self.fails(2, 'profile', 'import', 'rows.db', 'bad.txt', says=[f'bad.txt:{line}:'])
        self.assertEqual(self.weft('profile', 'export', 'rows.db').out, before)

    def test_garbage(self):
        path = self.write('bad.profile', 'this is no profile\n')
        self.fails(2, 'select', *TINY, '--profile', path, says=['bad.profile'])


class HandEdits(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'out')
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        self.source = self.folder / 'out' / self.kernel['source']

    def test_emit_of_an_untouched_artifact_changes_nothing(self):
        before = self.files('out')
        self.assertEqual(self.weft('emit', 'out').err, '')
        self.assertEqual(self.files('out'), before)

    def test_edited_kernel_is_kept_and_built(self):
        self.source.write_text(self.source.read_text() + '// tuned by hand\n')
        result = self.weft('emit', 'out')
        self.assertIn(f"{self.kernel['source']} differs from the generated text; the edit is kept",
                      result.err)
        self.assertIn('// tuned by hand', self.source.read_text())
        self.assertWholeArtifact('out')
        self.weft('emit', 'out', '--discard-edits')
        self.assertNotIn('// tuned by hand', self.source.read_text())

    def test_kernel_that_does_not_compile_leaves_the_artifact(self):
        self.source.write_text(self.source.read_text() + 'extern "C" __global__ void broken( {\n')
        before = self.files('out')
        if not any(kernel['cubin'] for kernel in self.plan['kernels']):
            self.skipTest('no NVRTC')
        self.fails(1, 'emit', 'out', says=[self.kernel['name'], 'error'])
        self.assertEqual(self.files('out'), before)

    def test_kernel_that_crashes_the_compiler_leaves_the_artifact(self):
        if not any(kernel['cubin'] for kernel in self.plan['kernels']):
            self.skipTest('no NVRTC')
        self.source.write_text(self.source.read_text() + CRASHING.replace('NAME', 'crashing'))
        before = self.files('out')
        self.fails(1, 'emit', 'out', says=[self.kernel['name'], 'worker crashed'])
        self.assertEqual(self.files('out'), before)

    def test_edited_knob_is_taken(self):
        knobs = self.kernel['knobs']
        knobs['threads'] = 256 if knobs['threads'] != 256 else 128
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        self.weft('emit', 'out', '-o', 'edited')
        after = self.assertWholeArtifact('edited')
        edited = next(kernel for kernel in after['kernels']
                      if kernel['name'] == self.kernel['name'])
        self.assertEqual(edited['knobs'], knobs)
        self.assertEqual(edited['block'][0] * edited['block'][1] * edited['block'][2],
                         knobs['threads'])

    def test_illegal_knob_is_rejected(self):
        self.kernel['knobs']['vectorWidth'] = 3
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        before = self.files('out')
        self.fails(2, 'emit', 'out', says=[self.kernel['name'], 'not legal'])
        self.assertEqual(self.files('out'), before)

    def test_any_tile_that_the_emitter_takes(self):
        """Plain products: also tiles that selection does not try; others are rejected with the
        reason."""
        self.weft('compile', *TINY, '--no-library', '--dtype', 'f32', '-o', 'plain')
        path = self.folder / 'plain/plan.json'
        good = path.read_text()
        for side in (4, 8, 16, 32):
            plan = json.loads(good)
            for kernel in plan['kernels']:
                if 'tileM' in kernel['knobs']:
                    kernel['knobs'].update(tileM=side, tileN=side, tileK=side, threadM=1, threadN=1)
            path.write_text(json.dumps(plan))
            self.weft('emit', 'plain', '-o', 'tiled')
            tiled = next(kernel for kernel in self.assertWholeArtifact('tiled')['kernels']
                         if 'tileM' in kernel['knobs'])
            self.assertEqual(tiled['block'][0], side * side)
        before = self.files('tiled')
        product = next(kernel for kernel in plan['kernels'] if 'tileM' in kernel['knobs'])
        product['knobs'].update(tileM=7)
        path.write_text(json.dumps(plan))
        self.fails(3, 'emit', 'plain', '-o', 'tiled', says=[product['name'], 'tile'])
        self.assertEqual(self.files('tiled'), before)

    def test_unknown_knob_is_rejected(self):
        self.kernel['knobs']['vectorWidht'] = 8
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        self.fails(2, 'emit', 'out', says=["'vectorWidht'", "'vectorWidth'"])

    def test_truncated_plan(self):
        path = self.folder / 'out/plan.json'
        path.write_text(path.read_text()[:200])
        self.fails(2, 'explain', 'out', says=['plan.json'])

    def rejects_plan(self, *says, options=()):
        """The edited self.plan must be rejected as bad input by everything that emits, and the
        artifact left alone."""
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
        before = self.files('out')
        for command in (['emit', 'out',
                         *options], ['compile', 'out', '--start-from', 'emit', '-o', 'again']):
            self.fails(2, *command, says=says)
        self.assertEqual(self.files('out'), before)
        self.assertFalse((self.folder / 'again').exists())

    def test_malformed_plans(self):
        edits = {
            'is no permutation': lambda plan: plan['tensors'][0].update(order=[0] * len(plan[
                'tensors'][0]['order'])),
            'is no tensor of the plan': lambda plan: plan['kernels'][0].update(inputs=[10000]),
            'kernels[0].knobs" is missing': lambda plan: plan['kernels'][0].pop('knobs'),
            'formatVersion': lambda plan: plan.update(formatVersion='0')
        }
        good = json.dumps(self.plan)
        for says, edit in edits.items():
            self.plan = json.loads(good)
            edit(self.plan)
            with self.subTest(says):
                self.rejects_plan('plan.json', says)

    def test_plans_that_contradict_the_graph(self):
        (self.folder / 'out/manifest.json'
         ).unlink()  # which would name each edit; what is held to the graph must hold without
        mapped = {
            parameter['tensor']
            for kernel in self.plan['kernels']
            for parameter in kernel['parameters'] if parameter['map']
        }  # checked by their maps
        read = {
            index
            for kernel in self.plan['kernels'] if kernel['source'] for index in kernel['inputs']
        }
        tensor = next(index for index, tensor in enumerate(self.plan['tensors'])
                      if tensor['role'] in ('argument',
                                            'parameter') and index in read and index not in mapped)
        extents = [extent * 2 for extent in self.plan['tensors'][tensor]['extents']]
        size = self.plan['tensors'][tensor]['bytes']
        edits = {
            'dims.j is 17': lambda plan: plan['dims'].update(j=17),
            'dtype is "f32"': lambda plan: plan.update(dtype='f32'),
            'but f16 in graph.mlir': lambda plan: plan['tensors'][tensor].update(
                dtype='f32', bytes=2 * size), 'in graph.mlir': lambda plan: plan['tensors'][
                    tensor].update(extents=extents, bytes=size << len(extents)),
            'extents and dtype f16 make': lambda plan: plan['tensors'][tensor].update(bytes=2),
            'workspaceBytes': lambda plan: plan.update(workspaceBytes=-1)
        }
        good = json.dumps(self.plan)
        for says, edit in edits.items():
            self.plan = json.loads(good)
            edit(self.plan)
            with self.subTest(says):
                self.rejects_plan('plan.json', says, options=['--overwrite'])

    def test_illegal_layouts_name_legal_ones(self):
        product = [
            kernel for kernel in self.plan['kernels'] if kernel['family'].startswith('gemm-')
        ][-1]  # no view reads what it writes
        tensor = self.plan['tensors'][product['outputs'][0]]
        for order in itertools.permutations(tensor['order']):
            tensor['order'] = list(order)
            (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
            folder = 'edited-' + ''.join(map(str, order))
            result = subprocess.run([WEFT, 'emit', 'out', '-o', folder], cwd=self.folder,
                                    env=self.environment(), capture_output=True, text=True,
                                    check=False)
            # not, for example, that it would write over an input
            if 'no configuration' in result.stderr:
                break
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertRegex(
            result.stderr,
            'no configuration of any family takes the layouts .* legal and nearest: .* -> ')
        self.assertFalse((self.folder / folder).exists())

    def test_a_plan_of_a_model_only_device_is_not_emitted(self):
        """Also with a target that could be emitted for, and by every way to emit."""
        for device in ('v100', 't4'):
            self.plan['device'] = device
            (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))
            before = self.files('out')
            for command in (['emit', 'out'], ['emit', 'out', '--target', 'sm_80'], [
                    'emit', 'out', '-o', 'again'
            ], ['compile', 'out', '--start-from', 'emit', '--target', 'sm_80', '-o', 'again']):
                self.fails(3, *command, says=[device, 'model-only', 'h200'])
            self.assertEqual(self.files('out'), before)
            self.assertFalse((self.folder / 'again').exists())

    def test_missing_files(self):
        for name in ('graph.mlir', 'report.json', self.kernel['source']):
            shutil.copytree(self.folder / 'out', self.folder / 'broken')
            (self.folder / 'broken' / name).unlink()
            self.fails(2, 'explain', 'broken', says=[name])
            shutil.rmtree(self.folder / 'broken')

    def test_no_artifact(self):
        self.fails(2, 'explain', 'nowhere', says=['nowhere'])


if __name__ == '__main__':
    unittest.main()
