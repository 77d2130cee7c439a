"""Edits by hand that weft cannot follow: what the launch of an edited kernel relies on, files that
weft derives, and places in memory. Every command that shows an artifact names them, and none counts
them as weft's."""
import json
import re
import unittest

from edits_test import Edited
from weft_command import CommandTest, TINY


def scaled(value, factor):
    """A JSON value with all its fractions multiplied."""
    if isinstance(value, dict):
        return {name: scaled(member, factor) for name, member in value.items()}
    if isinstance(value, list):
        return [scaled(member, factor) for member in value]
    return value * factor if isinstance(value, float) else value


class Launches(Edited):
    """Without NVRTC: the text alone says whether its launch still holds."""
    def test_an_edited_kernel_keeps_its_signature_and_launch_constants(self):
        text = self.source.read_text()
        name = re.search(r'^(\w+)\(const', text, re.M).group(1)
        assertion = re.search(r'static_assert\(.*== \d+, "plan.json: \d+ blocks"\);', text).group(0)
        rows = re.search(r'rowsPerBlock = (\d+)', text)
        without_asserts = re.sub(r'static_assert\(.*\);', '', text)
        edits = {
            'entry': (text.replace(name + '(',
                                   'evil('), name), 'linkage': (text.replace('extern "C" ',
                                                                             ''), 'extern "C"'),
            'parameter': (text.replace('const weft::half *', 'const float *', 1),
                          'const weft::half *'), 'constants': (without_asserts.replace(
                              rows.group(0), f'rowsPerBlock = {2 * int(rows.group(1))}') if rows
                                                               else without_asserts, assertion),
            'macro': (f'#define static_assert(...)\n{text}', 'static_assert without #define')
        }
        for what, (edited, lacking) in edits.items():
            with self.subTest(what):
                self.assertNotEqual(edited, text)
                self.source.write_text(edited)
                before = self.files('out')
                self.fails(2, 'emit', 'out', says=[self.kernel['source'], 'lacks', lacking],
                           env=self.QUIET)
                self.assertEqual(self.files('out'), before)
                check = self.weft('emit', 'out', '--check', code=1, env=self.QUIET)
                self.assertIn(' '.join(f"does not hold: {self.kernel['source']} lacks".split()),
                              check.prose())
                self.assertIn(
                    self.kernel['source'], ' '.join(
                        self.weft('emit', 'out', '--check', '--json', code=1).json()['broken']))
        self.source.write_text(text)
        self.weft('emit', 'out', '--check', env=self.QUIET)

    def test_launch_constants_are_not_switched_off_from_elsewhere(self):
        """By a header of the artifact, or in a string."""
        text = self.source.read_text()
        included = re.search(r'#include "(weft/.*)"', text).group(1)
        header = self.folder / 'out/kernels' / included
        weft_header, macro = header.read_text(), '#define static_assert(...)\n'
        check = re.search(r'static_assert\(.*== \d+, "plan.json: \d+ blocks"\);', text).group(0)
        edits = {
            'own header': ('#include "mine.cuh"\n' + text, 'mine.cuh', macro,
                           'static_assert without #define in kernels/mine.cuh'),
            'header of weft': (text, included, weft_header + macro,
                               f'static_assert without #define in kernels/{included}'),
            'header of a header': ('#include "mine.cuh"\n' + text, 'mine.cuh',
                                   '#include "yours.cuh"\n',
                                   'static_assert without #define in kernels/yours.cuh'),
            'raw string': (text.replace(check, f'constexpr auto *no = R"x({check})x";'), 'mine.cuh',
                           '', check)
        }
        (self.folder / 'out/kernels/yours.cuh').write_text(macro)
        for what, (edited, name, content, lacking) in edits.items():
            with self.subTest(what):
                self.source.write_text(edited)
                (self.folder / 'out/kernels' / name).write_text(content)
                before = self.files('out')
                self.fails(2, 'emit', 'out', says=[self.kernel['source'], 'lacks', lacking],
                           env=self.QUIET)
                self.assertEqual(self.files('out'), before)
                header.write_text(weft_header)

    def test_blocks_at_least_on_a_processor_may_be_tuned(self):
        text = self.source.read_text()
        tuned = re.sub(r'__launch_bounds__\((.*)\)\n', r'__launch_bounds__(\1, 3)\n', text)
        self.assertNotEqual(tuned, text)
        self.source.write_text(tuned)
        self.weft('emit', 'out', env=self.QUIET)
        self.assertEqual(self.source.read_text(), tuned)


class Cubins(CommandTest):
    def setUp(self):
        super().setUp()
        self.weft('compile', *TINY, '-o', 'out')
        self.plan = json.loads((self.folder / 'out/plan.json').read_text())
        self.built = [kernel for kernel in self.plan['kernels'] if kernel['cubin']]
        if not self.built:
            self.skipTest('no NVRTC')

    def sizes(self, kernel):
        return [(bool(parameter['map']), parameter['kind'].startswith('dropout'))
                for parameter in kernel['parameters']]

    def test_the_cubin_of_another_kernel_is_not_run(self):
        """Also where plan.json and the manifest vouch for it."""
        one = self.built[0]
        other = next(kernel for kernel in self.built if self.sizes(kernel) != self.sizes(one))
        own = one['entry']
        one['cubin'] = other['cubin']
        self.write_plan('out', self.plan)
        self.fails(2, 'run', 'out', '--check',
                   says=[one['name'], f"has no kernel '{own}'", other['entry'], 'weft emit'])
        one['entry'] = other['entry']
        self.write_plan('out', self.plan)
        self.fails(2, 'run', 'out', '--check',
                   says=[one['name'], 'takes parameters of', 'weft emit'])
        self.weft('emit', 'out')
        self.weft('run', 'out', '--check')

    def test_a_swapped_cubin_shows(self):
        one, other = self.built[0]['cubin'], next(kernel['cubin'] for kernel in self.built
                                                  if kernel['cubin'] != self.built[0]['cubin'])
        (self.folder / 'out' / one).write_bytes((self.folder / 'out' / other).read_bytes())
        self.assertIn(f'! edit: {one} is not what was built', self.weft('explain', 'out').out)
        self.fails(2, 'run', 'out', '--check', says=[one])
        self.weft('emit', 'out')
        self.weft('emit', 'out', '--check')


class Places(Edited):
    def test_a_buffer_begins_with_its_tensor(self):
        good = json.dumps(self.plan)
        roles = set()
        for index, tensor in enumerate(self.plan['tensors']):
            alone = [
                other['name'] for other in self.plan['tensors']
                if other['buffer'] == tensor['buffer']
            ] == [tensor['name']]
            if not alone or tensor['role'] in roles:
                continue
            roles.add(tensor['role'])
            with self.subTest(tensor['role']):
                self.plan = json.loads(good)
                self.plan['tensors'][index]['offset'] = 1
                self.save()
                for command in (['emit', 'out'], ['run', 'out', '--check'], ['explain', 'out']):
                    self.fails(2, *command, says=[f"tensors[{index}] ({tensor['name']}): offset 1"],
                               env=self.QUIET)
        self.assertLessEqual({'argument', 'parameter', 'result'}, roles)


class Derived(Edited):
    VIEWS = [[], ['--all'], ['--wide'], ['--layout', 'x'], ['--fusion', 'score,probability'],
             ['--movement'], ['--cache-miss'], ['--memory'], ['--attention']]

    def setUp(self):
        super().setUp()
        self.views = [*self.VIEWS, ['--kernel', self.kernel['name']]]

    def copied(self):
        self.weft('compile', *TINY, '-o', 'good', env=self.QUIET)

    def forge_report(self):
        path = self.folder / 'out/report.json'
        path.write_text(json.dumps(scaled(json.loads(path.read_text()), 0.1)))

    def test_every_view_of_an_edited_report_says_so_first(self):
        self.forge_report()
        for view in self.views:
            with self.subTest(view):
                self.assertTrue(
                    self.weft('explain', 'out', *view).prose().startswith(
                        "! edit: report.json was edited by hand: roofline, losses, "))
                edits = self.weft('explain', 'out', *view, '--json').json()['edits']
                self.assertEqual(len(edits), 1)
        self.fails(2, 'emit', 'out',
                   says=['report.json was edited by hand',
                         'compile the model again'], env=self.QUIET)

    def test_views_of_an_untouched_artifact_name_no_edit(self):
        for view in self.views:
            with self.subTest(view):
                self.assertNotIn('edit: ', self.weft('explain', 'out', *view).out)
                self.assertEqual(self.weft('explain', 'out', *view, '--json').json()['edits'], [])

    def test_diff_is_never_equal_over_edits(self):
        self.copied()
        self.assertEqual(self.weft('diff', 'good', 'out').out, 'equal\n')
        self.forge_report()
        self.differs('report.json was edited by hand')
        self.weft('compile', *TINY, '-o', 'out', '--overwrite', env=self.QUIET)
        kernel = next(kernel for kernel in self.plan['kernels']
                      if kernel['name'] == self.kernel['name'])
        kernel['seconds'] = 1e-7
        self.save()
        self.differs('member "seconds" is ')

    def differs(self, edit):
        for folders, side in ((('good', 'out'), 'b'), (('out', 'good'), 'a')):
            result = self.weft('diff', *folders, code=1)
            self.assertIn(f'edit of {side}: ', result.prose())
            self.assertIn(edit, result.prose())
            self.assertNotIn('equal\n', result.out)
            self.assertFalse(self.weft('diff', *folders, '--json', code=1).json()['equal'])
        self.assertNotIn('equal\n', self.weft('diff', 'out', 'out').out)

    def test_a_check_before_a_run_names_every_edited_file(self):
        header = next((self.folder / 'out/kernels/weft').iterdir())
        files = {
            self.source: '// mine\n', header: '// mine\n', self.folder / 'out/report.json': ' '
        }
        for path, text in files.items():
            with self.subTest(path.name):
                good = path.read_text()
                path.write_text(good + text)
                said = self.weft('run', 'out', '--check').prose()
                self.assertIn(f"! edit: {path.relative_to(self.folder / 'out')} was edited by hand",
                              said)
                self.assertNotIn('files, hashes', said)
                self.assertEqual(len(self.weft('run', 'out', '--check', '--json').json()['edits']),
                                 1)
                path.write_text(good)
        said = self.weft('run', 'out', '--check').prose()
        self.assertNotIn('edit', said)
        self.assertIn('files, hashes, parameters and order agree with the plan', said)

    def test_a_run_goes_on_naming_an_edit_after_it_was_emitted(self):
        self.source.write_text(self.source.read_text() + '// mine\n')
        self.weft('emit', 'out', env=self.QUIET)
        self.assertIn(f"! edit: {self.kernel['source']} was edited by hand",
                      self.weft('run', 'out', '--check').prose())
        kernels = self.weft('run', 'out', '--check', '--json').json()['kernels']
        self.assertEqual([kernel['name'] for kernel in kernels if kernel['edited']],
                         [self.kernel['name']])

    def test_movement_marks_the_time_of_an_edited_kernel(self):
        self.assertNotIn('edited', self.weft('explain', 'out', '--movement').out)
        self.source.write_text(self.source.read_text() + '// mine\n')
        said = self.weft('explain', 'out', '--movement', '--wide').out
        self.assertRegex(said, r'\d us edited')
        self.assertIn('1 edited by hand', ' '.join(said.split()))
        kernels = self.weft('explain', 'out', '--movement', '--json').json()['kernels']
        self.assertEqual(
            [name for name, kernel in kernels.items() if kernel['timeSource'] == 'edited'],
            [self.kernel['name']])

    def test_tables_of_measured_times_leave_an_edited_kernel_out(self):
        self.weft('compile', 'bert-large', '--attention', 'decomposed', '--stop-after', 'emit',
                  '-o', 'large')
        plan = json.loads((self.folder / 'large/plan.json').read_text())
        kernel = next(kernel for kernel in plan['kernels']
                      if kernel['measured'] and kernel['name'].startswith('layer_norm'))
        before = self.weft('explain', 'large', '--all').out
        self.assertRegex(before, r'\n\* +\d+ .* measured\n')
        source = self.folder / 'large' / kernel['source']
        source.write_text(source.read_text() + '// mine\n')
        said = self.weft('explain', 'large', '--all').out
        self.assertRegex(said, r'\n\* +\d+ .* before it was edited\n')
        self.assertNotRegex(said, r'\n\* +\d+ .* measured\n')
        text = self.weft('explain', 'large', '--distributions').prose()
        self.assertIn(
            f"edited by hand, so the measured times are not of what runs: {kernel['name']}", text)
        self.assertNotRegex(text, f"modelled[^:]*: .*{kernel['name']}")
        row = next(row for row in self.weft('explain', 'large', '--distributions',
                                            '--json').json()['kernels']
                   if row['kernel'] == kernel['name'])
        self.assertIsNone(row['chosen']['seconds'])
        (self.folder / 'large/manifest.json').unlink()
        said = self.weft('explain', 'large', '--all').out
        self.assertRegex(said, r'\n\* +\d+ .* unknown\n')

    def test_a_plan_that_left_an_edited_graph_blames_the_graph(self):
        path = self.folder / 'out/graph.mlir'
        edited = re.sub(r'= weft\.relu', '= weft.silu', path.read_text())
        self.assertNotEqual(edited, path.read_text())
        path.write_text(edited)
        self.fails(2, 'run', 'out', '--check', says=['out/graph.mlir was edited by hand'],
                   env=self.QUIET)

    def test_a_target_that_a_family_cannot_serve_is_said_in_the_words_of_the_field(self):
        self.weft('compile', 'bert-base', '--stop-after', 'emit', '-o', 'base')
        path = self.folder / 'base/plan.json'
        path.write_text(path.read_text().replace('"target": "sm_90a"', '"target": "sm_80"'))
        names = [kernel['name'] for kernel in json.loads(path.read_text())['kernels']]
        said = self.fails(3, 'emit', 'base',
                          says=["target 'sm_80' has no WGMMA",
                                'gemm-sm80'], env=self.QUIET).err
        self.assertTrue(any(f"kernel '{name}'" in said for name in names), said)


if __name__ == '__main__':
    unittest.main()
