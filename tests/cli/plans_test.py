"""Plans that ship (profiles/plans/): they are what selection chooses today, and can be explained,
compared and built without selecting."""
import itertools
import json
import re
import subprocess
import sys
import unittest

from weft_command import ROOT, WEFT, CommandTest

sys.path.insert(0, str(ROOT / 'bench'))
from weftbench import operator_table  # noqa: E402

PLANS = ROOT / 'profiles/plans'
CURE = 'tools/plans writes profiles/plans anew'

# Kernels of Table A.1 whose ops a plan splits over several kernels, each with two ops to join
# again (--fuse). Products take
# the first ops of DRLN, BDRLN, BDRB and EBSB, the product of d_w1 its bias' sum; at B=96 the sums
# of gamma compute d_feed_forward again.
# d_b2 is one more kernel of BDRB in any plan (tests/unit/samples/PaperKernels.h).
DRLN, BDRLN, BDRB, EBSB = (('DRLN', 'attention,norm1'), ('BDRLN', 'feed_forward,norm2'),
                           ('BDRB', 'd_active,d_b1'), ('EBSB', 'd_norm1,d_gamma1'))
SPLIT = {
    'paper-encoder-train-b8-j512': [DRLN, BDRLN, BDRB, EBSB], 'paper-encoder-train-b96-j128': [
        DRLN, BDRLN, ('BLNRD', 'd_residual2,d_feed_forward'), BDRB, EBSB
    ]
}


def paper_kernels(operators):
    """Name and our kernels of each kernel of Table A.1 whose ops are not all stacked away, in the
    paper's order."""
    runs = [
        (name, list(rows))
        for name, rows in itertools.groupby(operator_table.paper_rows(), lambda row: row['kernel'])
        if name
    ]
    return [(name, {
        kernel
        for row in rows
        for kernel in operator_table.operator_of(row, operators)['kernels']
    }) for name, rows in runs]


def shipped():
    return sorted(path.parent for path in PLANS.rglob('plan.json'))


class Plans(CommandTest):
    def test_they_are_what_selection_chooses_today(self):
        """Byte for byte, texts of kernels included: a new profile, a changed selection or emission
        comes with new plans."""
        subprocess.run([ROOT / 'tools/plans', '-o', self.folder / 'plans'],
                       env=self.environment(WEFT=WEFT), stdout=subprocess.DEVNULL, check=True)
        today = self.files('plans')
        then = {
            path.relative_to(PLANS).as_posix(): path.read_bytes()
            for path in PLANS.rglob('*') if path.is_file()
        }
        self.assertEqual(sorted(then), sorted(today), CURE)
        different = [name for name in today if then[name] != today[name]]
        if different:
            changes = ''
            for plan in shipped():
                result = subprocess.run(
                    [WEFT, 'diff', plan, self.folder / 'plans' / plan.relative_to(PLANS)],
                    capture_output=True, text=True, check=False)
                changes += f'\n{plan.name}: {result.stdout}'
            self.fail(f'{CURE}; changed: {", ".join(different)}{changes}')

    def test_they_are_measured_plans_of_training(self):
        folders = shipped()
        self.assertEqual([folder.relative_to(PLANS).as_posix() for folder in folders],
                         ['h200/paper-encoder-train-b8-j512', 'h200/paper-encoder-train-b96-j128'])
        for folder in folders:
            plan = json.loads((folder / 'plan.json').read_text())
            self.assertEqual(set(plan['entryPoints']), {'forward', 'backward'})
            self.assertTrue(
                all(kernel['measured'] for kernel in plan['kernels'] if kernel['family'] != 'view'),
                folder)
            variants = json.loads((folder / 'report.json').read_text())['variants']
            self.assertEqual(plan['lowerBoundSeconds'],
                             min(variant['lowerBound'] for variant in variants), 'of all variants')
            self.assertLessEqual(plan['predictedSeconds'], 1.02 * plan['lowerBoundSeconds'], folder)
            self.assertEqual(list(folder.rglob('*.cubin')), [],
                             'cubins are of a toolkit: they do not ship')

    def test_they_compute_every_operator_of_table_a1(self):
        for folder in self.some(shipped()):
            operators = self.weft('explain', folder, '--movement', '--json').json()['operators']
            names = {
                kernel['name']
                for kernel in self.weft('explain', folder, '--json').json()['kernels']
            }
            for row in self.some(operator_table.paper_rows()):
                with self.subTest(plan=folder.name, row=row['row']):
                    operator = operator_table.operator_of(row, operators)
                    self.assertTrue(operator and operator['kernels'])
                    self.assertLessEqual(set(operator['kernels']), names)

    def test_ops_of_a_paper_kernel_lie_in_one_kernel_or_cost_less_apart(self):
        for folder in self.some(shipped()):
            operators = self.weft('explain', folder, '--movement', '--json').json()['operators']
            kernels = paper_kernels(operators)
            self.assertEqual(len(kernels), 14, 'as many as Table A.1 has')
            self.assertEqual([name for name, ours in kernels if len(ours) > 1],
                             [name for name, _ in SPLIT[folder.name]], folder.name)
            chosen = self.weft('explain', folder, '--json').json()['seconds']
            batch, length = re.fullmatch(r'.*-b(\d+)-j(\d+)', folder.name).groups()
            for name, pair in SPLIT[folder.name]:
                with self.subTest(plan=folder.name, kernel=name):
                    self.weft('compile', 'paper-encoder', '--train', '--dim', f'b={batch}', '--dim',
                              f'j={length}', '--attention', 'unfused', '--fuse', pair,
                              '--stop-after', 'emit', '-o', 'joined')
                    joined = self.weft('explain', 'joined', '--json').json()['seconds']
                    self.assertGreaterEqual(joined, chosen)

    def bound(self, folder):
        """What explain says of the bound, and its figures."""
        said = self.weft('explain', folder, '--json').json()
        line = re.search('best weft could choose [^)]*', self.weft('explain', folder).out).group()
        self.assertIn(f"({100 * (1 - said['lowerBoundSeconds'] / said['seconds']):.1f}% less", line)
        return line, said['lowerBoundSeconds']

    def test_they_are_built_without_selecting(self):
        for folder in self.some(shipped()):
            before = {path: path.read_bytes() for path in folder.rglob('*') if path.is_file()}
            self.weft('emit', folder, '-o', 'built')
            self.assertEqual(
                {path: path.read_bytes()
                 for path in folder.rglob('*') if path.is_file()}, before)
            plan = self.assertWholeArtifact('built')
            if all(note['kind'] != 'build' for note in plan['notes']):
                self.assertTrue(
                    all(kernel['cubin'] for kernel in plan['kernels'] if kernel['source']))
            chosen = json.loads((folder / 'plan.json').read_text())
            self.assertEqual(plan['lowerBoundSeconds'], chosen['lowerBoundSeconds'])
            self.assertEqual(self.bound('built'), self.bound(folder))
            for was, now in zip(chosen['kernels'], plan['kernels'], strict=True):
                for member in ('name', 'knobs', 'inputLayouts', 'outputLayouts', 'seconds',
                               'textHash', 'after'):
                    self.assertEqual(was[member], now[member], (folder.name, was['name'], member))
            self.assertEqual(
                *(sorted(note['text'] for note in notes if note['kind'] != 'build')
                  for notes in (plan['notes'], chosen['notes'])))


if __name__ == '__main__':
    unittest.main()
