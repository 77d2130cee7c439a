"""Edits by hand: every one shows in every command, none is believed or lost."""
import json
import os
import re
import unittest

from weft_command import CommandTest, LAYER, TINY, record_hash

# Of one member of each kind that weft derives, a value that it never has.
FORGED_MEMBERS = {
    'grid': [7, 1, 1], 'block': [33, 1, 1], 'sharedBytes': 12345, 'seconds': 4.1e-7,
    'measured': True, 'bytesMoved': 1, 'flop': 1e15, 'mue': 100.0, 'textHash': 'f' * 64,
    'configuration': 'perfect', 'registers': 1, 'runnerUp': 'nothing', 'key': '0' * 64
}
FORGED_TOTALS = {
    'predictedSeconds': 1e-6, 'lowerBoundSeconds': 1e-6, 'workspaceBytes': 7,
    'costModel': 'measured by me', 'model': 'another', 'notes': [], 'measurement': {
        'seconds': 1e-6, 'spread': 0.0, 'ratio': 1.0, 'gpu': 'NVIDIA H200', 'protocol': 'mine'
    }
}


class Edited(CommandTest):
    QUIET = {'WEFT_NVRTC': 'none'}

    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'out', env=self.QUIET)
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        self.source = self.folder / 'out' / self.kernel['source']

    def save(self):
        (self.folder / 'out/plan.json').write_text(json.dumps(self.plan))

    def explained(self, name):
        return next(row for row in self.weft('explain', 'out', '--json').json()['kernels']
                    if row['name'] == name)


class LayoutConflictBound(Edited):
    def test_an_untouched_artifact_has_nothing_to_say(self):
        self.assertEqual(self.weft('emit', 'out', '--check').out, 'as weft wrote it\n')
        self.assertNotIn('edit: ', self.weft('explain', 'out').out)
        self.assertEqual(self.weft('explain', 'out', '--json').json()['edits'], [])

    def test_an_edited_kernel_shows_before_any_emit_and_after(self):
        self.plan['kernels'] = [{**kernel, 'measured': True} for kernel in self.plan['kernels']]
        self.write_plan('out', self.plan)  # as if all had been measured and verified
        self.cache.mkdir(exist_ok=True)
        hashes = sorted(
            {record_hash(kernel)
             for kernel in self.plan['kernels'] if kernel['textHash']})
        (self.cache / 'verified.txt').write_text('# weft verified 2\n' +
                                                 ''.join(f'{one} agrees 2 8192 kernel NVIDIA H200\n'
                                                         for one in hashes))
        self.weft('compile', *TINY, '-o', 'other', env=self.QUIET)
        self.source.write_text(self.source.read_text() + '// tuned by hand\n')
        for emitted in (False, True):
            if emitted:
                self.weft('emit', 'out', env=self.QUIET)
            row = self.explained(self.kernel['name'])
            self.assertEqual((row['timeSource'], row['measured'], row['verification']),
                             ('edited', False, {'state': 'never'}))
            text = self.weft('explain', 'out').out
            self.assertIn(f"edit: {self.kernel['source']} was edited by hand", text)
            table = self.weft('explain', 'out', '--wide').out
            line = next(line for line in table.splitlines() if line.startswith(self.kernel['name']))
            self.assertIn(' edited ', line)
            self.assertNotIn('measured', line)
            one = self.weft('explain', 'out', '--kernel', self.kernel['name']).out
            self.assertRegex(one, 'time .* edited')
            self.assertRegex(one, 'verified +no: its text was edited')
            self.assertIn('edited', self.weft('diff', 'other', 'out', code=1).out)
            self.assertEqual(
                self.weft('emit', 'out', '--check', code=1).out,
                f"edited: {self.kernel['source']}\n")
        self.weft('emit', 'out', '--discard-edits', env=self.QUIET)
        self.weft('emit', 'out', '--check')

    def test_an_edited_graph_shows_and_is_not_emitted_from(self):
        path = self.folder / 'out/graph.mlir'
        path.write_text(path.read_text() + '// mine\n')
        self.assertIn('edit: graph.mlir was edited', self.weft('explain', 'out').out)
        self.assertIn('graph.mlir', self.weft('diff', 'out', 'out').out)
        self.assertIn('edited: graph.mlir', self.weft('emit', 'out', '--check', code=1).out)
        before = self.files('out')
        self.fails(2, 'emit', 'out', says=['graph.mlir was edited by hand'], env=self.QUIET)
        self.assertEqual(self.files('out'), before)

    def test_an_edited_report_is_not_emitted_from(self):
        path = self.folder / 'out/report.json'
        path.write_text(path.read_text().replace('"lowerBound": ', '"lowerBound": 1', 1))
        self.fails(2, 'emit', 'out', says=['report.json was edited by hand'], env=self.QUIET)


class Untold(Edited):
    """Without manifest.json nobody can tell what weft wrote, and nothing is believed."""
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'good', env=self.QUIET)
        (self.folder / 'out/manifest.json').unlink()

    def edit_text(self):
        text = self.source.read_text()
        edited = text.replace('1.0f', '2.0f').replace('0.0f', '1.0f')
        edited = re.sub(r'(constexpr float \w+ = )', r'\g<1>3 * ', edited)
        self.assertNotEqual(edited, text)
        self.source.write_text(edited)

    def forge(self):
        kernel = next(kernel for kernel in self.plan['kernels']
                      if kernel['name'] == self.kernel['name'])
        kernel.update(seconds=4.1e-7, measured=True)
        self.save()

    def test_nothing_of_it_counts_as_measured_or_verified(self):
        self.plan['kernels'] = [{**kernel, 'measured': True} for kernel in self.plan['kernels']]
        self.save()
        self.cache.mkdir(exist_ok=True)
        rows = ''.join(f'{record_hash(kernel)} agrees 2 8192 kernel NVIDIA H200\n'
                       for kernel in self.plan['kernels'] if kernel['textHash'])
        (self.cache / 'verified.txt').write_text('# weft verified 2\n' + rows)
        said = self.weft('explain', 'out')
        self.assertIn('no manifest.json: edits cannot be told', said.prose())
        self.assertNotIn('older weft', said.prose())
        explained = self.weft('explain', 'out', '--json').json()
        self.assertEqual(len(explained['edits']), 1)
        launched = [row for row in self.some(explained['kernels']) if not row['view']]
        for row in self.some(launched):
            self.assertEqual((row['timeSource'], row['measured'], row['verification']),
                             ('unknown', False, {'state': 'unknown'}))
        for view in ([], ['--all'], ['--wide'], ['--movement']):
            with self.subTest(view):
                text = self.weft('explain', 'out', *view).out
                self.assertNotRegex(text, r'\d us +measured|[1-9]\d* of \d+ (kernels )?measured')
                self.assertNotRegex(text, r'verified on a GPU: [1-9]')
        self.assertRegex(self.weft('explain', 'out', '--wide').out, ' us +unknown ')
        one = self.weft('explain', 'out', '--kernel', self.kernel['name']).out
        self.assertRegex(one, 'time .* unknown')
        self.assertRegex(one, 'verified +not known: no manifest.json')
        self.assertIn(' unknown', self.weft('run', 'out', '--check').out)
        self.assertIn('not checked: whether kernels', self.weft('run', 'out', '--check').prose())

    def test_an_unedited_one_can_be_emitted(self):
        self.assertIn('no manifest.json', self.weft('emit', 'out', '--check', code=1).out)
        before = self.files('out')
        for command in (['emit', 'out'], ['compile', *TINY, '-o', 'out']):
            self.fails(2, *command, says=['no manifest.json', '--overwrite'], env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        result = self.weft('emit', 'out', '-o', 'new', env=self.QUIET)
        self.assertIn('no manifest.json: graph.mlir', result.err)
        self.weft('emit', 'new', '--check')
        self.assertEqual(self.files('new'), self.files('good'))
        self.weft('emit', 'out', '--overwrite', env=self.QUIET)
        self.weft('emit', 'out', '--check')

    def test_edits_and_forged_prices_are_neither_lost_nor_taken_in_silence(self):
        good = self.files('out')
        header = next((self.folder / 'out/kernels/weft').iterdir())
        edits = {
            self.kernel['source']: self.edit_text,
            'member "seconds" is': self.forge,
            f'kernels/weft/{header.name}': lambda: header.write_text('// mine\n')
        }
        for says, edit in edits.items():
            with self.subTest(says):
                edit()
                before = self.files('out')
                for flags in (['-o', 'new'], ['--overwrite']):
                    self.fails(2, 'emit', 'out', *flags,
                               says=['edits cannot be told', says, '--discard-edits'],
                               env=self.QUIET)
                self.assertEqual(self.files('out'), before)
                self.assertFalse((self.folder / 'new').exists())
                self.assertIn(says, self.weft('emit', 'out', '--check', code=1).prose())
                result = self.weft('emit', 'out', '-o', 'anew', '--discard-edits', '--overwrite',
                                   env=self.QUIET)
                self.assertIn('derived anew', result.err)
                self.assertEqual(self.files('anew'), self.files('good'))
                for name, content in good.items():
                    (self.folder / 'out' / name).write_bytes(content)

    def test_diff_calls_no_code_a_comment(self):
        self.edit_text()
        for folders in (('good', 'out'), ('out', 'good')):
            said = self.weft('diff', *folders, code=1).prose()
            self.assertIn('no manifest.json', said)
            self.assertIn(self.kernel['name'], said)
            self.assertNotIn('comments in', said)
            self.assertRegex(said, 'text 1')


class DerivedMembers(Edited):
    def rejected(self, *says):
        self.save()
        before = self.files('out')
        self.fails(2, 'emit', 'out', says=says, env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        check = self.weft('emit', 'out', '--check', code=1).prose()
        explained, diffed = self.weft('explain', 'out').prose(), self.weft('diff', 'out',
                                                                           'out').prose()
        for text in says:
            for output in (check, explained, diffed):
                self.assertIn(text, output)
        self.fails(2, 'run', 'out', '--check', says=says)

    def test_every_derived_member_of_a_kernel_is_rejected_by_name(self):
        good = json.dumps(self.plan)
        for member, value in FORGED_MEMBERS.items():
            with self.subTest(member):
                self.plan = json.loads(good)
                kernel = next(kernel for kernel in self.plan['kernels']
                              if kernel['name'] == self.kernel['name'])
                self.assertNotEqual(kernel[member], value)
                kernel[member] = value
                self.rejected(f"kernel '{self.kernel['name']}': member \"{member}\" is ",
                             'weft wrote')

    def test_every_total_is_rejected_by_name(self):
        good = json.dumps(self.plan)
        for member, value in FORGED_TOTALS.items():
            with self.subTest(member):
                self.plan = json.loads(good)
                self.plan[member] = value
                self.rejected(f'member "{member}" is ')

    def test_forged_times_are_not_shown(self):
        kernel = next(kernel for kernel in self.plan['kernels']
                      if kernel['name'] == self.kernel['name'])
        kernel.update(seconds=4.1e-7, measured=True)
        self.save()
        row = self.explained(self.kernel['name'])
        self.assertEqual((row['timeSource'], row['verification']),
                         ('estimated', {'state': 'never'}))
        self.assertNotEqual(row['seconds'], 4.1e-7)
        self.assertNotRegex(self.weft('explain', 'out').out.split('edit: ')[0], '0.410 us|410 ns')

    def test_a_forged_member_beside_a_choice_is_not_run(self):
        """Concurrent kernels are the user's to choose, and need no emit."""
        good = json.dumps(self.plan)
        for member, value in FORGED_MEMBERS.items():
            with self.subTest(member):
                self.plan = json.loads(good)
                self.plan['concurrent'] = not self.plan['concurrent']
                kernel = next(kernel for kernel in self.plan['kernels']
                              if kernel['name'] == self.kernel['name'])
                kernel[member] = value
                self.save()
                self.fails(2, 'run', 'out', '--check', says=[kernel['name']])

    def test_estimates_of_an_emit_are_not_called_measured(self):
        """Although the artifact's times were."""
        self.weft('compile', 'bert-large', '--stop-after', 'emit', '-o', 'large')
        plan = json.loads((self.folder / 'large/plan.json').read_text())
        self.assertTrue(any(kernel['measured'] for kernel in plan['kernels']))
        self.weft('emit', 'large', '--profile', 'none', env=self.QUIET)
        plan = json.loads((self.folder / 'large/plan.json').read_text())
        self.assertEqual([kernel['name'] for kernel in plan['kernels'] if kernel['measured']], [])

    def test_emit_prices_as_compile_did_where_the_library_was_not_offered(self):
        """Estimates of warps depend on whether it is."""
        self.weft('compile', 'bert-base', '--device', 'a100', '--no-library', '--profile', 'none',
                  *'--dim b=1 --dim j=7 --stop-after emit -o alone'.split())
        compiled = json.loads((self.folder / 'alone/plan.json').read_text())
        self.assertIn('gemm-sm80', [kernel['family'] for kernel in compiled['kernels']])
        self.weft('emit', 'alone', env=self.QUIET)
        emitted = json.loads((self.folder / 'alone/plan.json').read_text())
        self.assertEqual([kernel['seconds'] for kernel in emitted['kernels']],
                         [kernel['seconds'] for kernel in compiled['kernels']])

    def test_what_follows_from_an_edited_knob_is_derived_without_rejection(self):
        kernel = next(kernel for kernel in self.plan['kernels']
                      if kernel['name'] == self.kernel['name'])
        kernel['knobs']['threads'] = 256 if kernel['knobs']['threads'] != 256 else 128
        self.save()
        said = self.weft('emit', 'out', '--check', code=1).out
        self.assertIn('choice: plan.json: ', said)
        self.assertNotIn('does not hold', said)
        self.weft('emit', 'out', '-o', 'edited', env=self.QUIET)
        after = json.loads((self.folder / 'edited/plan.json').read_text())
        edited = next(one for one in after['kernels'] if one['name'] == kernel['name'])
        self.assertNotEqual(edited['grid'], kernel['grid'])
        self.weft('emit', 'edited', '--check')
        # Who edits the grid, too, and gets it right, contradicts nothing.
        kernel['grid'], kernel['block'] = edited['grid'], edited['block']
        self.save()
        self.weft('emit', 'out', '-o', 'again', env=self.QUIET)
        self.assertEqual(self.files('again'), self.files('edited'))
        kernel['grid'] = [1, 1, 1]
        self.save()
        self.fails(2, 'emit', 'out', '-o', 'again',
                   says=['member "grid" is [1,1,1]',
                         json.dumps(edited['grid']).replace(' ', '')], env=self.QUIET)


class DataLoss(Edited):
    def test_a_folder_that_holds_a_plan_json_and_other_things_is_kept(self):
        (self.folder / 'travel').mkdir()
        self.write('travel/plan.json', '{"monday": "Rome"}')
        self.write('travel/tickets.txt', 'paid')
        before = self.files('travel')
        for flags in ([], ['--overwrite']):
            self.fails(2, 'compile', *TINY, *flags, '-o', 'travel',
                       says=['travel holds plan.json, tickets.txt'], env=self.QUIET)
        self.assertEqual(self.files('travel'), before)

    def test_compiling_again_replaces_what_nobody_edited_and_keeps_the_rest(self):
        self.write('out/notes.txt', 'mine')
        before = self.files('out')
        self.weft('compile', *TINY, '-o', 'out', env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        self.weft('compile', *TINY, '--fuse-rules', 'none', '-o', 'out', env=self.QUIET)
        self.assertEqual((self.folder / 'out/notes.txt').read_text(), 'mine')
        self.assertEqual([path.name for path in self.folder.iterdir() if path != self.cache],
                         ['out'])

    def test_emit_in_place_keeps_its_owners_files(self):
        self.write('out/notes.txt', 'mine')
        self.write('out/kernels/mine.cu', '// no kernel of the plan\n')
        self.weft('emit', 'out', env=self.QUIET)
        self.assertEqual((self.folder / 'out/notes.txt').read_text(), 'mine')
        self.assertEqual((self.folder / 'out/kernels/mine.cu').read_text(),
                         '// no kernel of the plan\n')
        self.weft('emit', 'out', '--check')

    def test_compile_does_not_replace_edits_unless_told_to(self):
        self.source.write_text('// hours of tuning\n')
        before = self.files('out')
        self.fails(2, 'compile', *TINY, '-o', 'out', says=[self.kernel['source'], '--overwrite'],
                   env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        self.weft('compile', *TINY, '--overwrite', '-o', 'out', env=self.QUIET)
        self.assertNotIn('hours', self.source.read_text())

    def test_emit_drops_notes_by_their_kind_whatever_they_say(self):
        """Here a manifest vouches for the notes."""
        kept = {'kind': 'rewrite', 'text': 'cubins: stay, and nothing was edited by hand'}
        self.plan['notes'] = [kept, {'kind': 'build', 'text': 'nothing was built'},
                              {'kind': 'edit', 'text': 'someone was here'}]
        self.save()
        path = self.folder / 'out/manifest.json'
        manifest = json.loads(path.read_text())
        manifest['plan']['notes'] = self.plan['notes']
        path.write_text(json.dumps(manifest))
        self.weft('emit', 'out', env=self.QUIET)
        notes = json.loads((self.folder / 'out/plan.json').read_text())['notes']
        self.assertIn(kept, notes)
        self.assertEqual([note['text'] for note in notes if note['kind'] in ('build', 'edit')],
                         ['cubins: skipped, no NVRTC'])

    def test_an_edit_whose_kernel_has_no_text_any_more_is_not_dropped(self):
        other = [*TINY, '--device', 'a100']  # without WGMMA, where cuBLASLt is chosen
        self.weft('compile', *other, '-o', 'library', env=self.QUIET)
        chosen = json.loads((self.folder / 'library/plan.json').read_text())
        library = next(kernel for kernel in chosen['kernels'] if kernel['library'])
        self.weft('compile', *other, '--no-library', '-o', 'own', env=self.QUIET)
        path = self.folder / 'own/plan.json'
        plan = json.loads(path.read_text())
        product = next(kernel for kernel in plan['kernels'] if kernel['name'] == library['name'])
        (self.folder / 'own' / product['source']).write_text('// hours of tuning\n')
        product['knobs'] = library['knobs']
        path.write_text(json.dumps(plan))
        before = self.files('own')
        self.fails(2, 'emit', 'own', says=[product['source'], '--discard-edits'], env=self.QUIET)
        self.assertEqual(self.files('own'), before)

    def test_symbolic_links_are_followed_and_never_replaced(self):
        (self.folder / 'latest').symlink_to('out')
        self.weft('compile', *TINY, '--fuse-rules', 'none', '-o', 'latest', env=self.QUIET)
        self.assertTrue((self.folder / 'latest').is_symlink())
        self.assertNotEqual(json.loads((self.folder / 'out/plan.json').read_text()), self.plan)
        (self.folder / 'dangling').symlink_to('nowhere')
        self.fails(2, 'compile', *TINY, '-o', 'dangling', says=['symbolic link to nothing'],
                   env=self.QUIET)
        self.assertTrue((self.folder / 'dangling').is_symlink())

    def test_files_that_are_written_appear_whole_or_not_at_all(self):
        """Also through a link; what cannot be written leaves the old file."""
        self.write('profile.txt', 'old')
        (self.folder / 'link.txt').symlink_to('profile.txt')
        self.weft('import', *LAYER, '-o', 'link.txt')
        self.assertTrue((self.folder / 'link.txt').is_symlink())
        self.assertIn('weft.graph', (self.folder / 'profile.txt').read_text())
        if os.geteuid() != 0:
            (self.folder / 'locked').mkdir()
            self.write('locked/file', 'old')
            (self.folder / 'locked').chmod(0o500)
            self.fails(2, 'import', *TINY, '-o', 'locked/file', says=['locked/file'])
            self.assertEqual((self.folder / 'locked/file').read_text(), 'old')
        self.assertEqual([
            path.name for path in self.folder.iterdir()
            if 'weft-tmp' in path.name or path.name.endswith('.next')
        ], [])


class Building(CommandTest):
    """What the compiler says of edited kernels, and what it may open."""
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'out')
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())
        if not any(kernel['cubin'] for kernel in self.plan['kernels']):
            self.skipTest('no NVRTC')

    def edit(self, kernel, change):
        path = self.folder / 'out' / kernel['source']
        text = path.read_text()
        edited = change(text)
        self.assertNotEqual(edited, text)
        path.write_text(edited)
        return path, text

    def rejected(self, kernel, change, *says, code=1):
        """The edit is rejected with these texts, at its line in the artifact's file, and nothing is
        written."""
        path, text = self.edit(kernel, change)
        before = self.files('out')
        result = self.fails(code, 'emit', 'out', says=[kernel['name'], *says])
        self.assertEqual(self.files('out'), before)
        path.write_text(text)
        return result.err

    def test_launch_constants_are_held_to_the_plan(self):
        """The example of rowsPerBlock, and whatever else a launch was made of, in every kernel of
        the plan."""
        softmax = next(kernel for kernel in self.plan['kernels']
                       if any('softmax' in op for op in kernel['ops']))
        text = (self.folder / 'out' / softmax['source']).read_text()
        rows = re.search(r'rowsPerBlock = (\d+)', text).group(1)
        said = self.rejected(
            softmax,
            lambda text: text.replace(f'rowsPerBlock = {rows}', f'rowsPerBlock = {2 * int(rows)}'),
            'plan.json: ', 'knobs', 'weft emit')
        line = next(number for number, line in enumerate(text.splitlines(), 1)
                    if 'blocks");' in line)
        self.assertIn(f"out/{softmax['source']}:{line}: error", said)
        changed = 0
        for kernel in self.plan['kernels']:
            if not kernel['source']:
                continue
            text = (self.folder / 'out' / kernel['source']).read_text()
            checks = [
                line for line in text.splitlines()
                if line.strip().startswith('static_assert(') and '"plan.json: ' in line
            ]
            self.assertTrue(checks, kernel['name'])
            constant = re.search(r'(threadsPerRow|threads|rowsPerBlock|Tile tile = {\.m) = (\d+)',
                                 text)
            self.assertTrue(constant, kernel['name'])
            name, value = constant.group(1), int(constant.group(2))
            self.rejected(
                kernel, lambda text, name=name, value=value: text.replace(
                    f'{name} = {value}', f'{name} = {2 * value}'))
            changed += 1
        self.assertGreater(changed, 2)

    def test_an_unedited_artifact_without_a_manifest_is_built_again(self):
        before = self.files('out')
        (self.folder / 'out/manifest.json').unlink()
        self.weft('emit', 'out', '-o', 'new')
        self.assertEqual(self.files('new'), before)

    def test_messages_name_file_and_line_of_the_artifact(self):
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        lines = (self.folder / 'out' / kernel['source']).read_text().count('\n')
        said = self.rejected(kernel, lambda text: text + 'int broken = nonsense;\n',
                            f"out/{kernel['source']}:{lines + 1}: error", 'nonsense')
        self.assertNotIn('kernel.cu', said)

    def test_headers_lie_in_the_artifact_and_may_be_edited(self):
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        text = (self.folder / 'out' / kernel['source']).read_text()
        names = re.findall(r'#include "(.*)"', text)
        self.assertTrue(names)
        for name in names:
            self.assertTrue((self.folder / 'out/kernels' / name).is_file(), name)
        header = self.folder / 'out/kernels' / names[0]
        good = header.read_text()
        header.write_text(good + '// mine\n')
        rows = {
            row['name']: row['timeSource']
            for row in self.weft('explain', 'out', '--json').json()['kernels']
        }
        self.assertEqual(rows[kernel['name']], 'edited')
        hashes = {kernel['name']: kernel['textHash'] for kernel in self.plan['kernels']}
        self.weft('emit', 'out')
        after = json.loads((self.folder / 'out/plan.json').read_text())
        self.assertIn('// mine', header.read_text())
        including = [one for one in after['kernels'] if one.get('edited')]
        self.assertIn(kernel['name'], [one['name'] for one in including])
        for one in including:
            self.assertNotEqual(one['textHash'], hashes[one['name']])
        header.write_text(good + 'int broken = nonsense;\n')
        lines = good.count('\n')
        self.fails(1, 'emit', 'out', says=[f'out/kernels/{names[0]}:{lines + 1}', 'nonsense'])
        self.weft('emit', 'out', '--discard-edits')
        self.weft('emit', 'out', '--check')
        self.assertEqual(header.read_text(), good)

    def test_own_headers_beside_the_kernel_may_be_included(self):
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        self.write('out/kernels/mine.cuh', '// nothing\n')
        self.edit(kernel, lambda text: text.replace('#include', '#include "mine.cuh"\n#include', 1))
        self.weft('emit', 'out')
        self.weft('emit', 'out', '-o', 'other')
        self.assertEqual((self.folder / 'other/kernels/mine.cuh').read_text(), '// nothing\n')
        self.assertIn('kernels/mine.cuh', self.weft('emit', 'out', '--check', code=1).out)

    def test_nothing_else_is_opened(self):
        secret = self.write('secret.txt', 'int my_secret_word = ;\n')
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        line = next(number
                    for number, line in enumerate((self.folder / 'out' /
                                                   kernel['source']).read_text().splitlines(), 1)
                    if line.startswith('#include'))
        for name in (f'"{secret}"', f'<{secret}>', '"../../secret.txt"', '"secret.txt"',
                     '"weft/../../../secret.txt"'):
            with self.subTest(name):
                said = self.rejected(
                    kernel, lambda text, name=name: text.replace('#include',
                                                                 f'#include {name}\n#include', 1),
                    f"out/{kernel['source']}:{line}: error", name[1:-1])
                self.assertNotIn('my_secret_word', said)
        for directive in ('#define S <secret.txt>\n#include S\n', '#include_next "secret.txt"\n',
                          '#inc\\\nlude "secret.txt"\n'):
            with self.subTest(directive):
                said = self.rejected(
                    kernel, lambda text, directive=directive: text.replace(
                        '#include', directive + '#include', 1), 'include')
                self.assertNotIn('my_secret_word', said)

    def test_links_out_of_the_artifact_are_not_read(self):
        secret = self.write('secret.txt', 'int my_secret_word = ;\n')
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['family'] == 'loop')
        source = self.folder / 'out' / kernel['source']
        source.unlink()
        source.symlink_to(secret)
        for command in ('emit', 'explain'):
            said = self.fails(2, command, 'out',
                              says=[kernel['source'], 'leads out of the artifact'])
            self.assertNotIn('my_secret_word', said.err)


class Texts(Edited):
    HOSTILE = ['x\nint evil;', 'x\r', 'x\x1b[31m', 'x\x00y']

    def test_control_characters_in_a_plan_are_rejected_by_place(self):
        good = json.dumps(self.plan)
        places = {
            'kernels[0].ops[0]': lambda plan, text: plan['kernels'][0]['ops'].__setitem__(0, text),
            'model': lambda plan, text: plan.update(model=text),
            'notes[0]': lambda plan, text: plan.update(notes=[text]),
            'tensors[0].name': lambda plan, text: plan['tensors'][0].update(name=text),
            'kernels[0].name': lambda plan, text: plan['kernels'][0].update(name=text)
        }
        for place, edit in places.items():
            for text in self.HOSTILE:
                with self.subTest(place=place, text=text):
                    self.plan = json.loads(good)
                    edit(self.plan, text)
                    self.save()
                    for command in (['emit', 'out'], ['explain', 'out']):
                        result = self.fails(2, *command, says=[f'"{place}"'], env=self.QUIET)
                        self.assertNotIn('\x1b', result.err)

    def test_notes_of_a_report_cannot_become_code(self):
        """Notes stand in comments of kernels; here a manifest vouches for them."""
        report = json.loads((self.folder / 'out/report.json').read_text())
        for text in ('note\nint evil;', 'note \\', 'note ??/'):
            report['fusionNotes'] = {kernel['name']: [text] for kernel in self.plan['kernels']}
            self.write_manifested('out', 'report.json', json.dumps(report))
            self.weft('emit', 'out', '-o', 'noted', '--overwrite', env=self.QUIET)
            lines = (self.folder / 'noted' / self.kernel['source']).read_text().splitlines()
            code = next(index for index, line in enumerate(lines) if line.startswith('#include'))
            self.assertTrue(any('note' in line for line in lines[:code]))
            for line in lines[:code]:
                self.assertRegex(line, r'^(//.*)?$')
                self.assertNotRegex(line, r'(\\|\?\?/)\s*$')

    def test_names_of_a_graph_are_rejected_where_they_enter(self):
        graph = self.weft('import', *LAYER).out
        name = re.search(r'weft\.graph @(\w+)', graph).group(1)
        self.write('graph.mlir', graph.replace(f'@{name}', r'@"a\0Aint evil; //"', 1))
        self.fails(2, 'import', 'graph.mlir', says=['graph.mlir', 'letters, digits'])
        self.fails(2, 'compile', 'graph.mlir', '-o', 'other', says=['letters, digits'],
                   env=self.QUIET)
        op = re.search(r'^ +%\w+ = weft\..*$', graph, re.M).group(0)
        self.write('graph.mlir', graph.replace(op, op + r' loc("a\0Aint evil; //")', 1))
        self.fails(2, 'import', 'graph.mlir', says=['graph.mlir', 'not printable ASCII'])


if __name__ == '__main__':
    unittest.main()
