"""Rows of odd width are padded where that pays: layers of odd widths run like those of the next
multiple, pins name padded rows, and artifacts keep them."""
import json
import re
import unittest

from weft_command import CommandTest

ODD = ['bert-large', '--dim', 'b=3', '--dim', 'j=777', '--dim', 'u=4095', '--device', 'h200',
       '--profile', 'none', '--stop-after', 'emit']


class PaddedRows(CommandTest):
    def plan(self, *arguments, folder='out'):
        self.weft('compile', *arguments, '-o', folder)
        return json.loads((self.folder / folder / 'plan.json').read_text())

    def tensor(self, plan, name):
        return next(tensor for tensor in plan['tensors'] if tensor['name'] == name)

    def test_an_odd_width_costs_about_what_the_next_multiple_costs(self):
        odd = self.plan(*ODD, folder='odd')
        even = self.plan(*[word.replace('777', '784').replace('4095', '4096') for word in ODD],
                         folder='even')
        self.assertLess(odd['predictedSeconds'], 1.05 * even['predictedSeconds'])
        active = self.tensor(odd, 'active')
        self.assertEqual(active['extents'], [3, 777, 4095])
        self.assertEqual(active['strides'], [777 * 4096, 4096, 1])
        self.assertEqual(self.tensor(even, 'active')['strides'], [784 * 4096, 4096, 1])

    def test_the_pitch_is_shown_and_stays(self):
        plan = self.plan(*ODD)
        kernel = next(kernel for kernel in plan['kernels']
                      if self.tensor(plan, 'active') in
                      [plan['tensors'][output] for output in kernel['outputs']])
        self.assertEqual(kernel['outputLayouts'], ['bju:4096'])
        shown = self.weft('explain', 'out', '--layout', 'active').out
        self.assertIn('active[b,j,u] f16 lies as bju:4096,', shown)
        self.assertRegex(shown, r'(?m)^bju:4096 \*')
        self.assertRegex(shown, r'(?m)^bju  .*\+')  # dense rows are slower
        graph = (self.folder / 'out/graph.mlir').read_text()
        self.assertIn('[b, j, u] pitch_unit 64', graph)
        # What is emitted from the plan is the same.
        source = self.folder / 'out' / kernel['source']
        before = source.read_text()
        self.weft('emit', 'out')
        self.assertEqual(source.read_text(), before)

    def test_results_and_what_callers_bring_are_not_padded(self):
        (self.folder / 'graph.mlir').write_text('''
!x = tensor<64x1001xf16, #weft.axes<j, i>>
weft.graph @twice(%x: !x) -> !x {
  %y = weft.relu %x : !x
  weft.return %y : !x
}
''')
        plan = self.plan('graph.mlir', '--device', 'h200', '--profile', 'none', '--stop-after',
                         'emit')
        for tensor in plan['tensors']:
            self.assertEqual(tensor['strides'], [1001, 1])

    def test_pins_say_the_pitch(self):
        dense = self.plan(*ODD, '--pin', 'active=bju', folder='dense')
        self.assertEqual(self.tensor(dense, 'active')['strides'][1], 4095)
        padded = self.plan(*ODD, '--pin', 'active=jbu:4096', folder='padded')
        active = self.tensor(padded, 'active')
        self.assertEqual((active['order'], active['strides']), ([1, 0, 2], [4096, 3 * 4096, 1]))
        self.assertLess(padded['predictedSeconds'], dense['predictedSeconds'])
        report = json.loads((self.folder / 'padded/report.json').read_text())
        self.assertEqual(report['pins'][0]['layout'], 'j,b,u:4096')

    def test_other_pitches_are_rejected(self):
        for pin, reason in (
                ('active=bju:4100', 'rows of \'active\' are padded to 4096 elements, or not at'),
                ('active=bju:0', "'0' is no number of elements"),
                ('active=bju:x', "'x' is no number of elements"),
                ('norm1=bji:1024', 'never padded: leave out the pitch')):
            with self.subTest(pin):
                result = self.fails(2, 'select', *ODD[:-2], '--pin', pin)
                self.assertIn(reason, re.sub(r'\s+', ' ', result.err))


if __name__ == '__main__':
    unittest.main()
