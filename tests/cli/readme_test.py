"""The README and the pages of docs tell the truth: every command behind a dollar sign runs, page by
page, in one folder, and prints what the page shows; what needs a GPU has the options that it is
given. The outputs are compared twice: as they are where the NVRTC that they were made with is
found, and everywhere without NVRTC, but for the lines that only a compiler can know.
`readme_test.py --update` writes the outputs anew, after a change of profiles, selection or
emission."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from weft_command import CommandTest, ROOT, WEFT

README = ROOT / 'README.md'
FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NVRTC = 'NVRTC 13.0'  # whose registers the pages show
# What differs from run to run of the same sources: times of the host, and whether its cache was
# warm.
VARIES = [
    re.compile(r'selected in [\d.]+ \w+'),
    re.compile(r'\d+ built(?: in at most [\d.]+ s each)?, \d+ from the cache')
]
# Lines that say what NVRTC made, or that there is none.
OF_NVRTC = re.compile(
    r'(?:note: |! )?cubins\b|  built +\d+ registers\b|wrote \S+(?: \(cubins: .*)?$')
MOST_LINES = 150  # of the README
MOST_ARCHITECTURE_LINES = 200
MOST_COLUMNS = 80  # of the commands and outputs that it shows
NEEDS_GPU = re.compile(r'\bweft(?:-run)? (?:.*--measure|run|time|verify|profile)\b|\bweft-run\b')


def pages():
    """The README and every page of docs that shows what a command prints; experiments are dated and
    stay as they were."""
    found = [README, *sorted((ROOT / 'docs').rglob('*.md'))]
    return [
        page for page in found if 'experiments' not in page.parts and any(walk(page.read_text()))
    ]


def steps(block):
    """(command, output) pairs of a block whose commands stand after a dollar sign."""
    pairs = []
    for line in block.splitlines():
        if line.startswith('$ '):
            pairs.append((line[2:], []))
        elif pairs:
            pairs[-1][1].append(line)
    return pairs


def walk(text):
    """The steps of a page that need no GPU, in order."""
    return [
        step for _, block in FENCE.findall(text) for step in steps(block)
        if not NEEDS_GPU.search(step[0])
    ]


def steady(line):
    for pattern in VARIES:
        line = pattern.sub('...', line)
    return line


def comparable(lines, has_nvrtc):
    return [steady(line) for line in lines if has_nvrtc or not OF_NVRTC.match(line)]


def new_folder(parent):
    """Where a page's commands run; with examples/, as in the root of the sources."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=parent))
    (folder / 'examples').symlink_to(ROOT / 'examples')
    return folder


def run(command, folder, environment):
    environment = {**environment, 'PATH': f'{pathlib.Path(WEFT).parent}:{os.environ["PATH"]}'}
    return subprocess.run(['bash', '-o', 'pipefail', '-c', command], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=300, check=False)


class Pages(CommandTest):
    def compare(self, page, has_nvrtc, environment):
        """In a folder of the page's own, command after command, as a reader would."""
        folder = new_folder(self.folder)
        for command, shown in self.some(walk(page.read_text())):
            with self.subTest(command, page=page.name):
                result = run(command, folder, environment)
                # head may leave early, which is exit code 2 without a word; diff of different plans
                # is 1
                left = '| head' in command and 'error' not in result.stderr
                self.assertIn(result.returncode, (0, 1, 2) if left else (0, ), result.stderr)
                self.assertEqual(comparable(result.stdout.splitlines(), has_nvrtc),
                                 comparable(shown, has_nvrtc),
                                 'tests/cli/readme_test.py --update writes the outputs anew')

    def test_outputs_with_nvrtc(self):
        if NVRTC not in self.weft('env').out:
            self.skipTest(f'the pages show what {NVRTC} makes')
        for page in self.some(pages()):
            self.compare(page, True, self.environment())

    def test_outputs_without_nvrtc(self):
        for page in self.some(pages()):
            self.compare(page, False, self.environment(WEFT_NVRTC='none'))

    def test_pages_show_the_examples_as_they_are(self):
        page = (ROOT / 'docs/selection.md').read_text()
        shown = [block for kind, block in FENCE.findall(page) if kind == 'mlir']
        self.assertEqual(shown, [(ROOT / 'examples/two_softmaxes.mlir').read_text()])

    def test_pages_show_output(self):
        for page, commands, lines in ((README, 5, 30), (ROOT / 'docs/tutorial.md', 12, 150)):
            shown = [output for _, output in walk(page.read_text())]
            self.assertGreaterEqual(len(shown), commands, page.name)
            self.assertGreater(sum(map(len, shown)), lines, page.name)

    def test_the_readme_is_short_and_narrow(self):
        self.assertLessEqual(len(README.read_text().splitlines()), MOST_LINES)
        architecture = ROOT / 'ARCHITECTURE.md'
        self.assertLessEqual(len(architecture.read_text().splitlines()), MOST_ARCHITECTURE_LINES)
        for command, shown in self.some(walk(README.read_text())):
            for line in [command, *shown]:
                self.assertLessEqual(len(line), MOST_COLUMNS, line)

    def test_links_lead_somewhere(self):
        checked = 0
        for page in self.some(pages()):
            for target in re.findall(r'\]\(([^)#]+)\)', FENCE.sub('', page.read_text())):
                checked += 1
                self.assertTrue((page.parent / target).exists(), f'{page.name}: {target}')
        self.assertGreater(checked, 8)

    def test_only_lines_of_nvrtc_are_left_out_without_it(self):
        left_out = [
            'cubins for sm_90a: 9 built, 0 from the cache', 'cubins: skipped, no NVRTC',
            'note: cubins: skipped, no NVRTC', '! cubins: skipped, no NVRTC',
            'wrote out/bert-large (cubins: 9 built, 0 from the cache)', 'wrote out/bert-large',
            '  built      168 registers, 0 B spilled, 229520 B shared'
        ]
        kept = [
            'time         228 us measured as one CUDA graph',
            '  fused by   fuse: producer-consumer', 'note: parameter wq is packed at load as iph'
        ]
        self.assertEqual(comparable([*left_out, *kept], False), kept)
        self.assertEqual(len(comparable([*left_out, *kept], True)), len(left_out) + len(kept))

    def test_commands_have_the_options_that_they_are_given(self):
        """Also those that no page runs."""
        checked = 0
        for page in self.some(pages()):
            blocks = [block.splitlines() for _, block in FENCE.findall(page.read_text())]
            typed = [[line.removeprefix('$ ') for line in block if line.startswith('$ ')] or block
                     for block in blocks]  # the rest is output
            for line in (line for lines in typed for line in lines):
                if not line.startswith('weft '):
                    continue
                words = shlex.split(line.split(' | ')[0].split(' > ')[0], comments=True)
                two = words[1] in ('profile', 'cache') and len(words) > 2 and words[2] in (
                    'export', 'import', 'merge', 'stat', 'verify', 'gc')
                help_text = self.weft(*words[1:3 if two else 2], '--help').out
                for word in words:
                    if word.startswith('-'):
                        checked += 1
                        self.assertIn(word.split('=')[0], help_text, line)
        self.assertGreater(checked, 3)


def update():
    """Every page with the outputs of this build."""
    for page in pages():
        folder = new_folder(None)

        def renewed(match, folder=folder):
            lines = []
            for command, shown in steps(match.group(2)):
                if not NEEDS_GPU.search(command):
                    shown = run(command, folder,
                                {**os.environ, 'COLUMNS': '',
                                 'WEFT_CACHE_DIR': str(folder / 'cache')}).stdout.splitlines()
                lines += ['$ ' + command, *shown]
            return '```{}\n{}\n```'.format(match.group(1),
                                           '\n'.join(lines)) if lines else match.group(0)

        page.write_text(FENCE.sub(renewed, page.read_text()))
        shutil.rmtree(folder)


if __name__ == '__main__':
    if '--update' in sys.argv:
        update()
    else:
        unittest.main()
