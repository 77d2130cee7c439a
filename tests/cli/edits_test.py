"""Edits by hand: every one shows in every command, none is believed or lost."""
import json
import unittest

from weft_command import CommandTest, TINY

# Of one member of each kind that weft derives, a value that it never has.
FORGED_MEMBERS = {'grid': [7, 1, 1], 'block': [33, 1, 1], 'sharedBytes': 12345, 'seconds': 4.1e-7, 'measured': True, 'bytesMoved': 1,
                  'flop': 1e15, 'mue': 100.0, 'textHash': 'f' * 64, 'verifiedOn': 'NVIDIA H200', 'configuration': 'perfect', 'registers': 1,
                  'runnerUp': 'nothing', 'key': '0' * 64}
FORGED_TOTALS = {'predictedSeconds': 1e-6, 'lowerBoundSeconds': 1e-6, 'workspaceBytes': 7, 'costModel': 'measured by me', 'model': 'another', 'notes': [],
                 'measurement': {'seconds': 1e-6, 'spread': 0.0, 'ratio': 1.0, 'gpu': 'NVIDIA H200', 'protocol': 'mine'}}


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
        return next(row for row in self.weft('explain', 'out', '--json').json()['kernels'] if row['name'] == name)


class Claims(Edited):
    def test_an_untouched_artifact_has_nothing_to_say(self):
        self.assertEqual(self.weft('emit', 'out', '--check').out, 'as weft wrote it\n')
        self.assertNotIn('edit: ', self.weft('explain', 'out').out)
        self.assertEqual(self.weft('explain', 'out', '--json').json()['edits'], [])

    def test_an_edited_kernel_shows_before_any_emit_and_after(self):
        self.plan['kernels'] = [{**kernel, 'measured': True, 'verifiedOn': 'NVIDIA H200'} for kernel in self.plan['kernels']]
        self.write_plan('out', self.plan)  # as if all had been measured and verified
        self.weft('compile', *TINY, '-o', 'other', env=self.QUIET)
        self.source.write_text(self.source.read_text() + '// tuned by hand\n')
        for emitted in (False, True):
            if emitted:
                self.weft('emit', 'out', env=self.QUIET)
            row = self.explained(self.kernel['name'])
            self.assertEqual((row['timeSource'], row['measured'], row['verifiedOn']), ('edited', False, ''))
            text = self.weft('explain', 'out').out
            self.assertIn(f"edit: {self.kernel['source']} was edited by hand", text)
            line = next(line for line in text.splitlines() if line.startswith(self.kernel['name']))
            self.assertIn(' edited ', line)
            self.assertNotIn('measured', line)
            one = self.weft('explain', 'out', '--kernel', self.kernel['name']).out
            self.assertRegex(one, 'time .* edited')
            self.assertRegex(one, 'verified +no: its text was edited')
            self.assertIn('edited', self.weft('diff', 'other', 'out', code=1).out)
            self.assertEqual(self.weft('emit', 'out', '--check', code=1).out, f"edited: {self.kernel['source']}\n")
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

    def test_an_artifact_without_a_manifest_is_said_to_be_old(self):
        (self.folder / 'out/manifest.json').unlink()
        self.assertIn('no manifest.json: an older weft wrote this artifact', self.weft('explain', 'out').out)
        self.assertIn('no manifest.json', self.weft('emit', 'out', '--check', code=1).out)
        before = self.files('out')
        for command in (['emit', 'out'], ['compile', *TINY, '-o', 'out']):
            self.fails(2, *command, says=['without manifest.json', '--overwrite'], env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        self.weft('emit', 'out', '-o', 'new', env=self.QUIET)
        self.weft('emit', 'new', '--check')
        self.weft('emit', 'out', '--overwrite', env=self.QUIET)
        self.weft('emit', 'out', '--check')


class DerivedMembers(Edited):
    def refused(self, *says):
        self.save()
        before = self.files('out')
        self.fails(2, 'emit', 'out', says=says, env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        check = self.weft('emit', 'out', '--check', code=1).out
        explained, diffed = self.weft('explain', 'out').out, self.weft('diff', 'out', 'out').out
        for text in says:
            for output in (check, explained, diffed):
                self.assertIn(text, output)
        self.fails(2, 'run', 'out', '--check', says=says)

    def test_every_derived_member_of_a_kernel_is_refused_by_name(self):
        good = json.dumps(self.plan)
        for member, value in FORGED_MEMBERS.items():
            with self.subTest(member):
                self.plan = json.loads(good)
                kernel = next(kernel for kernel in self.plan['kernels'] if kernel['name'] == self.kernel['name'])
                self.assertNotEqual(kernel[member], value)
                kernel[member] = value
                self.refused(f"kernel '{self.kernel['name']}': member \"{member}\" is ", 'weft wrote')

    def test_every_total_is_refused_by_name(self):
        good = json.dumps(self.plan)
        for member, value in FORGED_TOTALS.items():
            with self.subTest(member):
                self.plan = json.loads(good)
                self.plan[member] = value
                self.refused(f'member "{member}" is ')

    def test_forged_times_are_not_shown(self):
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['name'] == self.kernel['name'])
        kernel.update(seconds=4.1e-7, measured=True, verifiedOn='NVIDIA H200')
        self.save()
        row = self.explained(self.kernel['name'])
        self.assertEqual((row['timeSource'], row['verifiedOn']), ('estimated', ''))
        self.assertNotEqual(row['seconds'], 4.1e-7)
        self.assertNotRegex(self.weft('explain', 'out').out.split('edit: ')[0], '0.410 us|410 ns')

    def test_what_follows_from_an_edited_knob_is_derived_without_refusal(self):
        kernel = next(kernel for kernel in self.plan['kernels'] if kernel['name'] == self.kernel['name'])
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
        self.fails(2, 'emit', 'out', '-o', 'again', says=['member "grid" is [1,1,1]', json.dumps(edited['grid']).replace(' ', '')], env=self.QUIET)


class DataLoss(Edited):
    def test_a_folder_that_holds_a_plan_json_and_other_things_is_kept(self):
        (self.folder / 'travel').mkdir()
        self.write('travel/plan.json', '{"monday": "Rome"}')
        self.write('travel/tickets.txt', 'paid')
        before = self.files('travel')
        for flags in ([], ['--overwrite']):
            self.fails(2, 'compile', *TINY, *flags, '-o', 'travel', says=['travel holds plan.json, tickets.txt'], env=self.QUIET)
        self.assertEqual(self.files('travel'), before)

    def test_compiling_again_replaces_what_nobody_edited_and_keeps_the_rest(self):
        self.write('out/notes.txt', 'mine')
        before = self.files('out')
        self.weft('compile', *TINY, '-o', 'out', env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        self.weft('compile', *TINY, '--fuse-rules', 'none', '-o', 'out', env=self.QUIET)
        self.assertEqual((self.folder / 'out/notes.txt').read_text(), 'mine')
        self.assertEqual([path.name for path in self.folder.iterdir() if path != self.cache], ['out'])

    def test_emit_in_place_keeps_its_owners_files(self):
        self.write('out/notes.txt', 'mine')
        self.write('out/kernels/mine.cu', '// no kernel of the plan\n')
        self.weft('emit', 'out', env=self.QUIET)
        self.assertEqual((self.folder / 'out/notes.txt').read_text(), 'mine')
        self.assertEqual((self.folder / 'out/kernels/mine.cu').read_text(), '// no kernel of the plan\n')
        self.weft('emit', 'out', '--check')

    def test_compile_does_not_replace_edits_unless_told_to(self):
        self.source.write_text('// hours of tuning\n')
        before = self.files('out')
        self.fails(2, 'compile', *TINY, '-o', 'out', says=[self.kernel['source'], '--overwrite'], env=self.QUIET)
        self.assertEqual(self.files('out'), before)
        self.weft('compile', *TINY, '--overwrite', '-o', 'out', env=self.QUIET)
        self.assertNotIn('hours', self.source.read_text())

    def test_an_edit_whose_kernel_has_no_text_any_more_is_not_dropped(self):
        library = next(kernel for kernel in self.plan['kernels'] if kernel['library'])
        self.weft('compile', *TINY, '--no-library', '-o', 'own', env=self.QUIET)
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
        self.fails(2, 'compile', *TINY, '-o', 'dangling', says=['symbolic link to nothing'], env=self.QUIET)
        self.assertTrue((self.folder / 'dangling').is_symlink())


if __name__ == '__main__':
    unittest.main()
