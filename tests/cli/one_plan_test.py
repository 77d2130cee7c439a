"""Every command speaks of one plan: select, its drawing, compile, explain and report.json name the
same kernels, chunks and total; what `explain --layout` predicts is what compiling with that pin
gives; a pin is honoured or rejected."""
import json
import re
import unittest

from weft_command import CommandTest, CORE, LAYER, TINY

# A plan whose scores are computed in chunks, one that a limit of memory makes so, a training step,
# and one that is whole.
CHUNKED = [
    'attention', '--dim', 'b=2', '--dim', 'j=64', '--dim', 'h=4', '--dim', 'p=16', '--profile',
    'none', '--chunks', '4'
]
IN_CHUNKS = ['bert-large', '--attention', 'decomposed', '--memory-trade', '25']
LIMITED = [*CORE, '--attention', 'unfused', '--max-memory', '1K', '--profile', 'none']
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
                steps = re.findall(r'label="([\d.]+) us", style=bold', drawing)
                self.assertAlmostEqual(sum(map(float, steps)), compiled['seconds'] * 1e6,
                                       delta=0.006 * len(steps))
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
            if 'rejected' in row:
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

    def test_the_layout_among_the_facts_is_the_first_row_of_its_table(self):
        """In chunks and whole; as one graph, as the memory fact beside it; in as many chunks as
        the plan, since what chunks save is not saved by a layout."""
        named = 0
        for flags in (IN_CHUNKS, ['bert-base'],
                      ['bert-large', '--chunks', '4'],
                      [*TINY, '--profile', 'none'], LIMITED, [*TINY, '--train', '--pin',
                                                              'hidden=jbu']):
            with self.subTest(flags):
                self.weft('compile', *flags, '--stop-after', 'emit', '-o', 'out')
                explained = self.weft('explain', 'out', '--json').json()
                fact, plan = explained['facts']['layout'], explained['plan']
                if not fact['other']: continue
                named += 1
                self.assertIn(' of graph time', fact['text'])
                answer = self.weft('explain', 'out', '--layout', fact['tensor'], '--json').json()
                self.assertEqual((answer['planChunks'], answer['planGraphSeconds']),
                                 (plan['chunks'], plan['graphSeconds']))
                rows = [row for row in answer['prices'] if 'rejected' not in row]
                chunks = [row['chunks'] == plan['chunks'] for row in rows]
                self.assertEqual(chunks, sorted(chunks, reverse=True))
                own = {version['layout'] for version in answer['versions']}
                row = next(row for row in rows if row['layout'] not in own)
                self.assertEqual(
                    (row['layout'], row['graphLoss'], row['workspaceBytes'], row['chunks']),
                    (fact['other'], fact['seconds'], fact['workspaceBytes'], plan['chunks']))
        self.assertGreaterEqual(named, 2)

    def test_the_row_that_is_marked_is_the_plan(self):
        """One row, of its variant, chunks and times, whether or not compiling with its own layout
        pinned chooses it again; what other chunks save is said as theirs."""
        self.weft('compile', *IN_CHUNKS, '--stop-after', 'emit', '-o', 'out')
        plan = self.weft('explain', 'out', '--json').json()['plan']
        seen = set()
        for tensor in ('v', 'wq', 'exponentials', 'active'):
            result = self.weft('explain', 'out', '--layout', tensor)
            lines = result.out.splitlines()
            marked = [line.split() for line in lines if re.match(r'\S+ \* ', line)]
            self.assertEqual(len(marked), 1, result.out)
            layout, _, time, unit, difference, *_ = marked[0]
            self.assertEqual((f'{time} {unit}', difference), ('210 us', '+0'))
            self.assertEqual(marked[0][-3:], [str(plan['chunks']), 'the', 'same'])
            answer = self.weft('explain', 'out', '--layout', tensor, '--json').json()
            self.assertEqual([layout], [version['layout'] for version in answer['versions']])
            row, = (row for row in answer['prices'] if row['layout'] == layout)
            seen.add((row['variant'], row['chunks']) == (plan['variant'], plan['chunks']))
            if any(row.get('chunks', plan['chunks']) != plan['chunks'] for row in answer['prices']):
                self.assertRegex(result.prose(), r'rows of other chunks differ by these, too: '
                                 r'--chunks 1 alone -\d')
        self.assertEqual(seen, {True, False})  # both kinds were met

    def test_who_writes_and_reads_a_tensor(self):
        self.weft('compile', *IN_CHUNKS, '--stop-after', 'emit', '-o', 'out')
        for tensor, says, silent in (
            ('v', ['v[w,h,b,k]', 'in 2 chunks read by global_scaling_weighted_contraction__h_b_j_w'
                   ], ['v__h0', 'caller', 'temporary']),
            ('exponentials', ['each chunk 33.6 MB: from score_contraction_local_softmax',
                              'in 2 chunks read by global_scaling'], ['__h0', 'caller']),
            ('wq', ['a parameter of the caller, packed into wq_wk_wv when it is loaded'],
             ['read by the caller']),
            ('wo', ['a parameter of the caller, read by attention_projection'], ['packed']),
            ('x', ['an argument of the caller, read by '], ['temporary']),
            ('norm2', ['from layer_norm__b_j_i, read by the caller'], [])):
            said = self.weft('explain', 'out', '--layout', tensor).prose().split(' layout as ')[0]
            for text in says:
                self.assertIn(text, said)
            for text in silent:
                self.assertNotIn(text, said)

    def test_small(self):
        self.compare('score', *CORE, '--profile', 'none', least=3)

    def test_in_chunks(self):
        rows = self.compare('score', *CHUNKED, least=2)
        self.assertEqual({row['chunks'] for row in rows if 'chunks' in row}, {4})

    def test_what_the_plan_was_asked_for_holds_for_its_predictions(self):
        """A limit, a pin of another tensor, restricted variants and another device."""
        for flags in (['--max-memory', '1K'], ['--pin', 'exponentials=bhjk'],
                      ['--attention', 'decomposed'], ['--variant', 'decompose-softmax-64'],
                      ['--device', 'a100']):
            with self.subTest(flags):
                self.compare('score', *CORE, '--profile', 'none', *flags, least=2)

    def test_a_tensor_that_only_another_variant_has(self):
        self.weft('compile', *CORE, '--stop-after', 'emit', '-o', 'out')
        self.assertNotIn('decompose',
                         json.loads((self.folder / 'out/plan.json').read_text())['variant'])
        self.assertIn("exponentials is no tensor of this plan's variant",
                      self.weft('explain', 'out', '--layout', 'exponentials').out)
        self.compare('exponentials', *CORE, least=1)

    def test_the_example_of_the_readme(self):
        """Whole and in chunks, with measured prices."""
        rows = self.compare('exponentials', *IN_CHUNKS, least=2)
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
        for extra in ([], ['--max-memory', '1M'], ['--chunks',
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

    def test_a_pin_that_nothing_honours_is_rejected(self):
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
