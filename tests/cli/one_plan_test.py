"""Every command speaks of one plan: select, its drawing, compile, explain and report.json name the
same kernels, chunks and total; what `explain --layout` predicts is what compiling with that pin
gives; a pin is honoured or refused."""
import json
import re
import unittest

from weft_command import CommandTest, CORE, LAYER, TINY

# A plan whose scores are computed in chunks, one that a limit of memory makes so, a training step,
# and one that is whole.
CHUNKED = [
    'attention', '--dim', 'b=2', '--dim', 'j=64', '--dim', 'h=4', '--dim', 'p=16', '--profile',
    'none', '--parts', '4'
]
LIMITED = [*CORE, '--max-memory', '1K', '--profile', 'none']
MODELS = {
    'whole': TINY, 'chunked': CHUNKED, 'limited': LIMITED, 'train': [*TINY, '--train'],
    'variants': CORE
}


class OnePlan(CommandTest):
    def plan(self, folder):
        return json.loads((self.folder / folder / 'plan.json').read_text())

    def compile(self, folder, *flags):
        return self.weft('compile', *flags, '--stop-after', 'emit', '-o', folder, '--json').json()

    def test_five_views_of_one_plan(self):
        chunks = {}
        for name, flags in MODELS.items():
            with self.subTest(name):
                compiled = self.compile(name, *flags)['plan']
                plan = self.plan(name)
                selected = self.weft('select', *flags, '--dot', 'graph.dot', '--json').json()
                report = json.loads((self.folder / name / 'report.json').read_text())
                explained = self.weft('explain', name, '--json').json()
                self.assertEqual(compiled['seconds'], plan['predictedSeconds'])
                self.assertEqual(compiled['workspaceBytes'], plan['workspaceBytes'])
                self.assertEqual(compiled['kernels'],
                                 [kernel['name'] for kernel in plan['kernels']])
                self.assertAlmostEqual(compiled['seconds'],
                                       sum(kernel['seconds'] for kernel in plan['kernels']),
                                       delta=1e-12)
                for view in (selected['plan'], report['plan'], explained['plan']):
                    self.assertEqual(view, compiled)
                self.assertEqual(explained['seconds'], compiled['seconds'])
                chunks[name] = compiled['chunks']
                for variants in (selected['variants'], report['variants']):
                    chosen, = (variant for variant in variants if variant['chosen'])
                    self.assertEqual((chosen['name'], chosen['seconds']),
                                     (compiled['variant'], compiled['seconds']))
                chosen, = (variant for variant in selected['variants'] if variant['chosen'])
                self.assertAlmostEqual(sum(step['seconds'] for step in chosen['steps']),
                                       compiled['seconds'], delta=1e-12)
                self.assertEqual(max(step['chunks'] for step in chosen['steps']),
                                 compiled['chunks'])
                self.assertEqual(sum(step['chunks'] for step in chosen['steps']),
                                 len(compiled['kernels']))
                drawing = (self.folder / 'graph.dot').read_text()
                title = re.search(r'label="(.*?): ([\d.]+) us, (\d+) chunks, workspace (\d+) bytes',
                                  drawing)
                self.assertEqual(title.groups(),
                                 (compiled['variant'], f"{compiled['seconds'] * 1e6:.2f}",
                                  str(compiled['chunks']), str(compiled['workspaceBytes'])))
                self.assertEqual(len(re.findall(r', \d+ chunks";\n    color', drawing)),
                                 sum(step['chunks'] > 1 for step in chosen['steps']))
                total = re.search(r'^total ([\d.]+ \w+) of variant',
                                  self.weft('select', *flags).out, re.MULTILINE)[1]
                self.assertIn(total, self.weft('explain', name).out)
                self.assertIn(
                    total,
                    self.weft('compile', *flags, '--stop-after', 'emit', '-o', 'again').out)
        self.assertEqual(len(chunks), len(MODELS))
        self.assertEqual(chunks['chunked'], 4)
        self.assertGreater(chunks['limited'], 1)
        self.assertEqual(chunks['whole'], 1)


class Predictions(CommandTest):
    """Row by row: time, workspace, chunks and variant, as printed and to the last digit."""
    def compare(self, tensor, *flags, least):
        self.weft('compile', *flags, '--stop-after', 'emit', '-o', 'out')
        answer = self.weft('explain', 'out', '--layout', tensor, '--json').json()
        rows = answer['prices']
        self.assertGreaterEqual(sum('seconds' in row for row in rows), least, rows)
        table = {
            line.split()[0]: line
            for line in self.weft('explain', 'out', '--layout', tensor).out.splitlines() if line
        }
        for row in rows:
            pinned = [
                'compile', *flags, '--pin', f"{tensor}={row['layout']}", '--stop-after', 'emit',
                '-o', 'pinned'
            ]
            if 'refused' in row:
                self.weft(*pinned, code=3)
                continue
            text = self.weft(*pinned).out
            plan = json.loads((self.folder / 'pinned/plan.json').read_text())
            self.assertEqual((row['seconds'], row['workspaceBytes'], row['variant']),
                             (plan['predictedSeconds'], plan['workspaceBytes'], plan['variant']),
                             row)
            total, workspace = re.search(r'([\d.]+ [mun]?s) +[-+][\d.]+ [mun]?s +([\d.]+ [kMG]?B)',
                                         table[row['layout']]).groups()
            self.assertRegex(text, rf'\b{re.escape(total)}\b')
            self.assertRegex(text, rf'\b{re.escape(workspace)}\b')
            stored = {
                tuple(one['axes'][dimension] for dimension in one['order'])
                for one in plan['tensors'] if one['logical'] == tensor
            }
            self.assertEqual(stored, {tuple(row['layout'])}, row)
        return rows

    def test_the_layout_among_the_facts_has_the_price_that_compiling_gives(self):
        """In chunks and whole; without a graph of selection that holds the number already."""
        named = 0
        for flags in (['bert-base'], ['bert-large', '--parts', '4'], [*TINY, '--profile',
                                                                      'none'], LIMITED):
            with self.subTest(flags):
                self.weft('compile', *flags, '--stop-after', 'emit', '-o', 'out')
                fact = self.weft('explain', 'out', '--json').json()['facts']['layout']
                if not fact['other']: continue
                named += 1
                answer = self.weft('explain', 'out', '--layout', fact['tensor'], '--json').json()
                row, = (row for row in answer['prices'] if row['layout'] == fact['other'])
                self.assertEqual((row['loss'], row['workspaceBytes']),
                                 (fact['seconds'], fact['workspaceBytes']))
        self.assertGreaterEqual(named, 2)

    def test_small(self):
        self.compare('score', *CORE, '--profile', 'none', least=3)

    def test_in_chunks(self):
        rows = self.compare('score', *CHUNKED, least=2)
        self.assertEqual({row['chunks'] for row in rows if 'chunks' in row}, {4})

    def test_a_tensor_that_only_another_variant_has(self):
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'out')
        self.assertNotIn('decompose',
                         json.loads((self.folder / 'out/plan.json').read_text())['variant'])
        self.assertIn("exponentials is no tensor of this plan's variant",
                      self.weft('explain', 'out', '--layout', 'exponentials').out)
        self.compare('exponentials', *CORE, least=1)

    def test_the_example_of_the_readme(self):
        """Whole and in chunks, with measured prices."""
        rows = self.compare('exponentials', 'bert-large', least=2)
        self.assertGreater(max(row['chunks'] for row in rows if 'chunks' in row), 1)


class Pins(CommandTest):
    def stored(self, tensor, *flags):
        """The orders in which a plan with these flags stores a tensor."""
        self.weft('compile', *flags, '--stop-after', 'emit', '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        return plan, {
            ''.join(one['axes'][dimension] for dimension in one['order'])
            for one in plan['tensors'] if one['logical'] == tensor
        }

    def test_a_pin_decides_the_variant(self):
        self.assertEqual(self.stored('exponentials', *CORE)[1], set())
        for extra in ([], ['--max-memory', '1M'], ['--parts',
                                                   '2'], ['--variant', 'decompose-softmax-64']):
            plan, orders = self.stored('exponentials', *CORE, '--pin', 'exponentials=bhjk', *extra)
            self.assertEqual(orders, {'bhjk'}, extra)
            self.assertIn('decompose-softmax', plan['variant'])

    def test_what_a_kernel_would_keep_inside_is_stored(self):
        free = self.stored('hidden', *TINY)[1]
        self.assertEqual(free, set())
        self.assertEqual(self.stored('hidden', *TINY, '--pin', 'hidden=jbu')[1], {'jbu'})
        self.assertEqual(self.stored('hidden', *TINY, '--train', '--pin', 'hidden=jbu')[1], {'jbu'})
        self.assertEqual(self.stored('w1', *TINY, '--pin', 'w1=iu')[1],
                         {'iu'})  # a parameter, as its kernel reads it

    def test_a_pin_that_nothing_honours_is_refused(self):
        self.fails(3, 'select', *TINY, '--fuse', 'hidden_product,hidden', '--pin',
                   'hidden_product=bju', says=['--pin hidden_product', 'never stored', 'leave out'])
        self.fails(3, 'select', *CORE, '--attention', 'unfused', '--pin', 'exponentials=bhjk',
                   says=['--pin exponentials', 'decompose-softmax-64', 'leave out'])
        self.fails(3, 'select', *CORE, '--variant', 'unchanged', '--pin', 'exponentials=bhjk',
                   says=['--pin exponentials', 'decompose-softmax-64'])
        self.fails(3, 'select', *CORE, '--pin', 'exponentials=bhjk', '--pin', 'probability=hbjk',
                   '--attention', 'unfused', says=['--pin exponentials'])
        self.fails(3, 'select', *CORE, '--pin', 'score=kjbh',
                   says=['--pin score=kjbh', 'legal and nearest: '])
        self.fails(2, 'select', *CORE, '--pin', 'scores=hbjk', says=['--pin scores', "'score'"])

    def test_what_a_pin_costs_is_the_difference_of_two_totals(self):
        without = self.weft('select', *CORE, '--json').json()['plan']['seconds']
        for pins in (['score=bhjk'], ['exponentials=bhjk']):
            answer = self.weft('select', *CORE, *(word for pin in pins for word in ('--pin', pin)),
                               '--json').json()
            self.assertEqual(len(answer['pins']), len(pins))
            self.assertAlmostEqual(answer['pins'][0]['regret'], answer['plan']['seconds'] - without,
                                   delta=1e-12)


if __name__ == '__main__':
    unittest.main()
