"""The README tells the truth: every command of its walk runs and prints what the README shows, and the commands of the other
sections, which need a GPU, have the options that they are given. `readme_test.py --update` writes the outputs anew, after a
change of profiles, selection or emission."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import unittest

from weft_command import CommandTest, ROOT, WEFT

README = ROOT / 'README.md'
FENCE = re.compile(r'^```(\w*)\n(.*?)^```$', re.MULTILINE | re.DOTALL)
# What differs from run to run of the same sources: times of the host, and whether its cache was warm.
VARIES = [re.compile(r'selected in [\d.]+ \w+'), re.compile(r'\d+ built(?: in at most [\d.]+ s each)?, \d+ from the cache')]


def sections(text):
    """Heading -> text, in order."""
    parts = re.split(r'^## (.*)\n', text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def steps(block):
    """(command, output) pairs of a block whose commands stand after a dollar sign."""
    pairs = []
    for line in block.splitlines():
        if line.startswith('$ '):
            pairs.append((line[2:], []))
        elif pairs:
            pairs[-1][1].append(line)
    return pairs


def steady(line):
    for pattern in VARIES:
        line = pattern.sub('...', line)
    return line


def run(command, folder, environment):
    environment = {**environment, 'PATH': f'{pathlib.Path(WEFT).parent}:{os.environ["PATH"]}'}
    return subprocess.run(['bash', '-o', 'pipefail', '-c', command], cwd=folder, env=environment, capture_output=True, text=True,
                          timeout=300, check=False)


class Readme(CommandTest):
    def test_the_walk(self):
        """In one folder, command after command, as a reader would."""
        has_nvrtc = 'NVRTC 13.0' in self.weft('env').out
        for _, block in FENCE.findall(sections(README.read_text())['A walk']):
            for command, shown in steps(block):
                with self.subTest(command):
                    result = run(command, self.folder, self.environment())
                    # head leaves early (141); diff of different plans is 1
                    self.assertIn(result.returncode, (0, 1, 141) if '| head' in command else (0,), result.stderr)
                    if has_nvrtc:  # else there are no registers to print
                        self.assertEqual([steady(line) for line in result.stdout.splitlines()], [steady(line) for line in shown],
                                         'tests/cli/readme_test.py --update writes the README anew')

    def test_the_walk_shows_output(self):
        shown = [output for _, block in FENCE.findall(sections(README.read_text())['A walk']) for _, output in steps(block)]
        self.assertGreater(len(shown), 8)
        self.assertGreater(sum(map(len, shown)), 60)

    def test_commands_of_other_sections_exist(self):
        """With the options that they are given."""
        checked = 0
        for title, text in sections(README.read_text()).items():
            lines = [line for _, block in FENCE.findall(text) for line in block.splitlines()] if title != 'A walk' else []
            for line in lines:
                if not line.removeprefix('$ ').startswith('weft '):
                    continue
                words = shlex.split(line.removeprefix('$ '), comments=True)
                command = words[1:3] if words[1] in ('profile', 'cache') and words[2] in ('export', 'import', 'merge') else words[1:2]
                help_text = self.weft(*command, '--help').out
                for word in words:
                    if word.startswith('-'):
                        checked += 1
                        self.assertIn(word, help_text, line)
        self.assertGreater(checked, 3)


def update():
    """The README with the outputs of this build."""
    import shutil
    import tempfile
    folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-readme-'))
    text = README.read_text()
    walk = sections(text)['A walk']

    def renewed(match):
        lines = []
        for command, _ in steps(match.group(2)):
            result = run(command, folder, {**os.environ, 'WEFT_CACHE_DIR': str(folder / 'cache')})
            lines += ['$ ' + command, *result.stdout.splitlines()]
        return '```{}\n{}\n```'.format(match.group(1), '\n'.join(lines)) if lines else match.group(0)

    README.write_text(text.replace(walk, FENCE.sub(renewed, walk)))
    shutil.rmtree(folder)


if __name__ == '__main__':
    if '--update' in sys.argv:
        update()
    else:
        unittest.main()
