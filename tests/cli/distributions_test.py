"""explain --distributions: measured times of a plan's kernels, as a table, JSON, CSV and
violins."""
import csv
import io
import xml.etree.ElementTree as xml

import unittest

from weft_command import ROOT, TINY, CommandTest

MEASURED = [
    'paper-encoder', '--dim', 'b=8', '--dim', 'j=512', '--stacking', 'three', '--attention',
    'unfused'
]
SVG = '{http://www.w3.org/2000/svg}'


class Distributions(CommandTest):
    def test_of_a_measured_plan(self):
        self.weft('compile', *MEASURED, '--stop-after', 'emit', '-o', 'out')
        plan = {
            kernel['name']: kernel
            for kernel in self.weft('explain', 'out', '--json').json()['kernels']
        }
        found = self.weft('explain', 'out', '--distributions', '-o', 'figures', '--json').json()
        self.assertIn('cold L2', found['protocol'])
        kernels = {one['kernel']: one for one in found['kernels']}
        launched = {
            name
            for name, kernel in plan.items()
            if not kernel['view'] and kernel['family'] != 'transpose'
        }
        self.assertEqual(
            sum(one['sharedBy'] for one in found['kernels']) + len(found['modelled']),
            len(launched))
        self.assertTrue({one['contraction'] for one in kernels.values()} == {True, False})
        for name, one in self.some(kernels.items()):
            with self.subTest(kernel=name):
                self.assertEqual(one['seconds'], sorted(one['seconds']))
                self.assertEqual(one['best']['seconds'], one['seconds'][0])
                self.assertIn(one['chosen']['seconds'], one['seconds'])
                self.assertAlmostEqual(one['chosen']['seconds'], plan[name]['seconds'], delta=1e-9)
                self.assertLessEqual(one['quartiles'], sorted(one['quartiles']))
        self.assertGreater(max(len(one['seconds']) for one in kernels.values()), 50)
        self.figures(found['kernels'])
        self.coverage(found)
        again = {path.name: path.read_bytes() for path in (self.folder / 'figures').iterdir()}
        self.weft('explain', 'out', '--distributions', '-o', 'figures')
        self.assertEqual(
            again, {path.name: path.read_bytes()
                    for path in (self.folder / 'figures').iterdir()})

    def coverage(self, found):
        """What ships is thinned, and text, data and figures say so; any other profile says how many
        rows it has."""
        legal, rows = sum(one['legal'] for one in found['kernels']), sum(
            len(one['seconds']) + one['failed'] for one in found['kernels'])
        self.assertEqual(
            tuple(found['coverage'][name] for name in ('measurements', 'legal', 'shipped')),
            (rows, legal, True))
        self.assertGreater(legal, 100 * rows)
        figures = [(self.folder / 'figures' / name).read_text()
                   for name in ('contractions.svg', 'loops.svg', 'distributions.json')]
        for text in (self.weft('explain', 'out', '--distributions').prose(), *figures):
            self.assertRegex(
                text,
                "measurements of [0-9,]+ of [0-9.,e+]+ legal configurations: the profile that "
                "ships keeps "
                "only the best measurements of each kernel, "
                'so slow tails are missing')
            self.assertIn('--layouts 1000000 --layout-factor 1000000 --knobs 1', text)
        own = self.weft('explain', 'out', '--distributions', '--profile',
                        ROOT / 'profiles/h200/encoders.txt', '--json').json()['coverage']
        self.assertFalse(own['shipped'])
        self.assertRegex(
            own['note'],
            '^measurements of [0-9,]+ of [0-9.,e+]+ legal configurations; the others are not '
            'shown$')

    def figures(self, kernels):
        """Two figures of as many violins as there are kernels, and every time in the data."""
        violins = 0
        for name, contraction in (('contractions.svg', True), ('loops.svg', False)):
            root = xml.parse(self.folder / 'figures' / name).getroot()
            drawn = [path for path in root.iter(f'{SVG}path') if path.get('class') == 'violin']
            self.assertEqual(len(drawn), sum(one['contraction'] == contraction for one in kernels))
            violins += len(drawn)
            self.assertFalse(
                [image for image in root.iter() if image.tag in (f'{SVG}image', f'{SVG}script')])
        self.assertEqual(violins, len(kernels))
        rows = list(
            csv.DictReader(io.StringIO((self.folder / 'figures/distributions.csv').read_text())))
        self.assertEqual(len(rows), sum(len(one['seconds']) for one in kernels))
        self.assertEqual(sum('best' in row['mark'] for row in rows), len(kernels))
        self.assertEqual(sum('chosen' in row['mark'] for row in rows), len(kernels))

    def test_without_measured_times(self):
        self.weft('compile', *TINY, '--stop-after', 'emit', '--profile', 'none', '-o', 'out')
        self.fails(2, 'explain', 'out', '--distributions', '--profile', 'none',
                   says=['--profile none'])
        self.fails(2, 'explain', 'out', '-o', 'figures', says=['--distributions'])
        self.fails(2, 'explain', 'out', '--distributions', '--movement', says=['--movement'])
        self.assertEqual(
            self.weft('explain', 'out', '--distributions', '--json').json()['kernels'], [])


if __name__ == '__main__':
    unittest.main()
