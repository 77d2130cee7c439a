"""The first lines of `compile` and the screen of `explain`: of several models, measured and
estimated, whole and in chunks, inference and training, they fit, and say what a user must know."""
import re
import unittest

from weft_command import CommandTest, LAYER, TINY

IN_CHUNKS = ['bert-large', '--attention', 'decomposed', '--memory-trade', '25']
LLAMA = [
    'llama-3-8b', '--dim', 'b=1', '--dim', 'j=16', '--dim', 'h=4', '--dim', 'g=2', '--dim', 'p=16',
    '--dim', 'i=64', '--dim', 'u=96'
]
MODELS = {
    'measured, in chunks': IN_CHUNKS,
    'fused attention': ['bert-large'],
    'estimated': LAYER,
    'training': [*LAYER, '--train', '--stacking', 'separate', '--attention', 'unfused'],
    'llama': LLAMA,
    'without attention choices': ['gpt2', '--dim', 'j=64', '--attention', 'unfused'],
    'asked for chunks': [*TINY, '--chunks', '2'],
    'pinned': [*TINY, '--pin', 'score=bhjk'],
}


class FirstLines(CommandTest):
    def compiled(self, *arguments):
        lines = self.weft('compile', *arguments, '-o', 'out', '--stop-after',
                          'emit').out.splitlines()
        return lines, self.weft('explain', 'out').out.splitlines()

    def test_both_fit_on_a_screen(self):
        for title, arguments in MODELS.items():
            with self.subTest(title):
                first, screen = self.compiled(*arguments)
                self.assertLessEqual(len(first), 15)
                self.assertLessEqual(len(screen), 45)
                self.assertLessEqual(max(map(len, first)), 80, first)
                self.assertLessEqual(max(map(len, screen)), 100, screen)

    def test_what_the_first_lines_say(self):
        for title, arguments in MODELS.items():
            with self.subTest(title):
                first, screen = self.compiled(*arguments)
                text = '\n'.join(first)
                plan = self.weft('explain', 'out', '--json').json()
                self.assertIn(arguments[0], first[0])
                self.assertIn('training' if '--train' in arguments else 'inference', first[0])
                self.assertIn('f16, for h200 (sm_90a)', first[0])
                dims = [
                    arguments[index + 1] for index, word in enumerate(arguments) if word == '--dim'
                ]
                for dim in dims:
                    self.assertRegex(text, rf'shape.*(\n.*)?\b{dim}\b')
                for part in ('coverage ', ' legal configurations offered, ', 'plan ',
                             ' as one CUDA graph; ', 'best weft could choose', 'roofline ',
                             'where ', 'wrote out', 'next: weft explain out'):
                    self.assertIn(part, text)
                shares = [
                    int(share) for share in re.findall(
                        r'(\d+)%', next(line for line in first if line.startswith('where ')))
                ]
                self.assertTrue(97 <= sum(shares) <= 103, shares)
                self.assertLessEqual(plan['rooflineSeconds'], plan['lowerBoundSeconds'])
                self.assertLessEqual(plan['lowerBoundSeconds'], plan['seconds'] * 1.0001)
                self.assertEqual(screen[0], first[0])

    def test_nothing_measured_is_said_first(self):
        first, screen = self.compiled(*LAYER)
        launched = len([
            kernel for kernel in self.weft('explain', 'out', '--json').json()['kernels']
            if not kernel['view']
        ])
        for lines in (first, screen):
            self.assertIn(f'{launched} kernels estimated by the ', '\n'.join(lines))
            self.assertRegex(
                ' '.join(' '.join(lines).split()),
                rf'! {launched} of {launched} kernels estimated, typical error [1-9]\d*% of f16 '
                rf'kernels profiled on '
                r'h200 \(weft profile DIR\)')
            self.assertIn('none measured', '\n'.join(lines))
        self.assertIn('none measured', self.weft('select', *TINY).out)

    def test_what_is_measured_is_said_without_a_warning(self):
        first, _ = self.compiled(*IN_CHUNKS)
        launches = re.search(r'plan +(\d+) launches, recomposed attention in 2 chunks, workspace ',
                             '\n'.join(first)).group(1)
        self.assertIn(f'{launches} of {launches} kernels measured (shipped profile)',
                      '\n'.join(first))
        self.assertRegex('\n'.join(first), r'legal configurations offered, [\d,]+ measured')
        self.assertEqual(
            [line for line in first if line.startswith('!') and 'verified' not in line], [])
        self.assertIn('wrote out (cubins: skipped, --stop-after emit)', first)

    def test_records_count_as_verified_unless_their_verifier_is_older(self):
        """Of the shipped records, as they are; none of them is cut from the line."""
        self.compiled(*IN_CHUNKS)
        kernels = [
            kernel for kernel in self.weft('explain', 'out', '--json').json()['kernels']
            if not kernel['view']
        ]
        states = [kernel['verification']['state'] for kernel in kernels]
        self.assertEqual(set(states) - {'agrees', 'older-verifier', 'never'}, set())
        said = self.weft('explain', 'out').prose()
        self.assertIn(f"; {states.count('agrees')} verified", said)
        for state, words in (('older-verifier', 'by an older verifier'),
                             ('never', 'never verified on a GPU')):
            self.assertEqual(words in said, state in states, words)

    def test_the_screen_folds_chunks_and_ends_with_facts(self):
        _, screen = self.compiled('bert-large', '--chunks', '2')
        kernels = self.weft('explain', 'out', '--json').json()['kernels']
        chunks = [kernel for kernel in kernels if re.search('__h[0-9]+$', kernel['name'])]
        self.assertGreater(len(chunks), 4)
        rows = [line for line in screen if ' x2 ' in line]
        self.assertEqual(len(rows), len(chunks) // 2)
        self.assertFalse(any('__h8' in line for line in screen))
        facts = screen.index('three things to know')
        self.assertRegex(
            ' '.join(' '.join(screen[facts + 1:]).split()),
            r'^1 .* goes through memory from .*: .* up to .* us \[F\d\d\d .*\] '
            r'2 .* lies as .* would (cost|save) .* 3 workspace ')
        head = next(index for index, line in enumerate(screen) if line.split()[:2] == ['time', '%'])
        times = [float(line.split()[0]) for line in screen[head + 1:facts - 1]]
        self.assertGreater(len(times), 8)
        self.assertEqual(times, sorted(times, reverse=True))
        named = {line.split()[5] for line in screen[head + 1:facts - 1]}
        for name in named:
            if not name.endswith('...'):
                self.assertTrue(any(kernel['name'].startswith(name) for kernel in kernels), name)

    def test_all_has_the_rest(self):
        self.weft('compile', *IN_CHUNKS, '-o', 'out', '--stop-after',
                  'emit')
        screen, everything = self.weft('explain', 'out').out, self.weft('explain', 'out',
                                                                        '--all').out
        for part in ('note: ', 'memory: workspace', 'chunks: ', 'verified on a GPU: '):
            self.assertNotIn(part, screen)
            self.assertIn(part, everything)
        wide = self.weft('explain', 'out', '--wide').out
        for kernel in self.weft('explain', 'out', '--json').json()['kernels']:
            self.assertIn(kernel['name'] + ' ', wide)
        self.assertIn('runner-up', wide)

    def test_verbose_adds_the_search(self):
        quiet = self.weft('compile', *TINY, '-o', 'quiet').out.replace('quiet', 'out')
        verbose = self.weft('compile', *TINY, '-o', 'out', '--verbose').out
        steady = re.compile(r'\(cubins: \d+ built, \d+ from the cache\)')
        self.assertEqual(
            steady.sub('', verbose).splitlines()[:len(quiet.splitlines())],
            steady.sub('', quiet).splitlines())
        self.assertIn(' candidate kernels, ', verbose)
        self.assertIn('selected in ', verbose)
        self.assertNotIn('selected in ', quiet)
        emitted = self.weft('emit', 'out').out
        self.assertIn('best weft could choose', emitted)


if __name__ == '__main__':
    unittest.main()
