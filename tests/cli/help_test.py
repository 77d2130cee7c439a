"""Help, widths and colours: every command has its place, its groups and examples that run; nothing
is wider than its columns."""
import fcntl
import os
import pty
import re
import shlex
import struct
import subprocess
import termios
import unittest

from weft_command import CommandTest, CORE, ROOT, TINY, WEFT, with_empty_cache

NO_NVRTC = {'WEFT_NVRTC': 'none'}


def commands(text):
    """Group -> names, of `weft --help`: headings stand at the margin, commands are indented by
    two."""
    groups, heading = {}, None
    for line in text.splitlines():
        if re.match(r'^\S', line):
            heading = line if line[0].isupper() else None
        elif heading and re.match(r'^  [a-z]', line):
            groups.setdefault(heading, []).append(line.split()[0])
    return groups


def examples(text):
    """Lines below the heading Examples."""
    lines = text.split('\nExamples\n')[1].splitlines()
    return [line.strip() for line in lines if line.strip()]


def too_long(text, columns):
    """Lines wider than the columns that could have been broken: a single word may be as long as it
    is."""
    return [line for line in text.splitlines() if len(line) > columns and len(line.split()) > 1]


class HelpTest(CommandTest):
    def names(self):
        return [name for group in commands(self.weft('--help').out).values() for name in group]

    def test_commands_stand_in_groups_with_an_example_each(self):
        text = self.weft('--help').out
        groups = commands(text)
        self.assertGreaterEqual(len(groups), 4)
        names = [name for group in groups.values() for name in group]
        self.assertGreaterEqual(len(names), 15)
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertRegex(text, rf'\n +weft {name}\b')
            self.assertIn(f'weft {name}: ', self.weft(name, '--help').out)

    def test_options_stand_in_groups(self):
        text = self.weft('compile', '--help').out
        headings = re.findall(r'^[A-Z]\w+$', text, re.MULTILINE)
        self.assertEqual(headings, ['Model', 'Choices', 'Target', 'Phases', 'Output', 'Examples'])
        below = lambda heading: text.split(f'\n{heading}\n')[1].split('\n\n')[0]
        for heading, option in (('Model', '--dim'), ('Choices', '--pin'), ('Target', '--device'),
                                ('Phases', '--stop-after'), ('Output', '--json'), ('Output',
                                                                                   '--output')):
            self.assertIn(option, below(heading))

    def test_every_option_is_explained(self):
        options = 0
        for name in self.names():
            text = self.weft(name, '--help').out.split('\nExamples\n')[0]
            for match in re.finditer(r'^  (-\S+)(.*)\n?(.*)$', text, re.MULTILINE):
                options += 1
                same, following = match.group(2), match.group(3)
                self.assertTrue(
                    re.search(r' {2,}\S', same) or following.startswith(' ' * 20), match.group(0))
        self.assertGreater(options, 100)

    def test_examples_run(self):
        """All of them, in one folder, in the order of `weft --help`; those that need a GPU stop
        where it is asked for."""
        ran, on_gpu = 0, 0
        self.weft('profile', 'import', 'h200.db', ROOT / 'profiles/h200/norms.txt')
        for name in self.names():
            lines = examples(self.weft(name, '--help').out)
            self.assertTrue(1 <= len(lines) <= 3, name)
            for line in lines:
                words = shlex.split(line)
                self.assertEqual(words[:2], ['weft', name])
                with self.subTest(line):
                    done = subprocess.run([WEFT, *words[1:]], cwd=self.folder,
                                          env=self.environment(**NO_NVRTC), capture_output=True,
                                          text=True, timeout=300, check=False)
                    ran += 1
                    needs_gpu = name in ('run', 'time', 'verify',
                                         'profile') and done.returncode in (2, 3)
                    if needs_gpu:
                        on_gpu += 1
                        self.assertRegex(done.stderr, 'driver|GPU|cubin|NVRTC')
                    else:
                        self.assertEqual(done.returncode, 1 if name == 'diff' else 0, done.stderr)
        self.assertGreater(ran, 25)
        self.assertLess(on_gpu, 8)

    def test_unknown_names_have_a_nearest(self):
        self.fails(2, 'selct', says=["unknown command 'selct'", "'select'"])
        self.fails(2, 'models', 'bert-lage', says=["unknown model 'bert-lage'", "'bert-large'"])
        self.fails(2, 'import', 'bert-lage', says=["'bert-lage'", "'bert-large'"])
        self.fails(2, 'select', 'bert-large', '--alternative', '3',
                   says=["'--alternative'", "'--alternatives'"])


class WidthTest(CommandTest):
    def outputs(self):
        """Arguments of every command whose text is for people and needs no GPU."""
        self.weft('compile', *TINY, '-o', 'a', env=NO_NVRTC)
        self.weft('compile', *TINY, '--fuse-rules', 'none', '-o', 'b', env=NO_NVRTC)
        self.weft('compile', *TINY, '--train', '-o', 'train', env=NO_NVRTC)
        self.weft('compile', *CORE, '--attention', 'unfused', '--chunks', '2', '-o', 'chunks',
                  env=NO_NVRTC)
        helps = [[*words, '--help']
                 for words in ([], *([name] for group in commands(self.weft('--help').out).values()
                                     for name in group))]
        views = [['explain', folder, *view] for folder in ('a', 'train')
                 for view in ([], ['--movement'], ['--fusion', 'score,kept'],
                              ['--fusion', 'q,score'], ['--layout', 'score'],
                              ['--kernel', 'softmax'])]
        return [
            *helps, *views, ['compile', *TINY, '-o', 'a'], ['emit', 'a'], ['select', *TINY],
            ['opt', *TINY, '--records'], ['opt', *TINY, '--candidates'], ['diff', 'a', 'b'],
            ['diff', 'a', 'train'], ['explain', 'chunks'], ['models'], ['models', 'gpt2'],
            ['models', 'llama'], ['devices'], ['devices', 'h200'], ['env'], ['cache', 'stat'],
            ['explain', *TINY, '--movement'], ['explain', 'bert', '--distributions'],
            ['profile', *TINY, '--dry-run']
        ]

    @with_empty_cache
    def test_nothing_is_wider_than_100_columns_in_a_pipe(self):
        self.weft('compile', 'bert-large', '--dim', 'b=1', '-o', 'bert', env=NO_NVRTC)
        outputs = self.outputs()
        self.assertGreater(len(outputs), 40)
        for arguments in outputs:
            with self.subTest(' '.join(map(str, arguments))):
                completed = subprocess.run([WEFT, *arguments], cwd=self.folder,
                                           env=self.environment(**NO_NVRTC), capture_output=True,
                                           text=True, timeout=300, check=False)
                self.assertIn(completed.returncode, (0, 1) if arguments[0] == 'diff' else (0, ),
                              completed.stderr)
                self.assertTrue(completed.stdout)
                self.assertEqual(too_long(completed.stdout, 100), [])
                self.assertNotIn('\033', completed.stdout)

    def test_wide_shortens_nothing(self):
        self.weft('compile', *TINY, '-o', 'a', env=NO_NVRTC)
        narrow, wide = (self.weft('select', *TINY, *flags).out for flags in ([], ['--wide']))
        self.assertTrue(too_long(wide, 100))
        self.assertNotIn('...', wide)
        self.assertEqual(too_long(narrow, 100), [])

    def on_terminal(self, arguments, columns, **environment):
        """What the command prints on a terminal of so many columns."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 50, columns, 0, 0))
        with subprocess.Popen([WEFT, *arguments], cwd=self.folder,
                              env=self.environment(**environment), stdout=theirs, stderr=theirs,
                              stdin=subprocess.DEVNULL) as process:
            os.close(theirs)
            chunks = []
            while True:
                try:
                    chunk = os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
                if not chunk:
                    break
                chunks.append(chunk)
            self.assertEqual(process.wait(timeout=60), 0)
        os.close(ours)
        return b''.join(chunks).decode().replace('\r\n', '\n')

    def test_the_terminal_decides(self):
        for columns in (60, 80):
            for arguments in (['devices'], ['models'], ['compile', '--help'], ['--help']):
                text = re.sub(r'\033\[\d*m', '', self.on_terminal(arguments, columns))
                with self.subTest(f'{arguments} in {columns}'):
                    # An example is a command to copy: it stays on its line.
                    self.assertEqual(
                        [line for line in too_long(text, columns) if 'weft ' not in line], [])
        self.assertGreater(
            max(map(len,
                    self.on_terminal(['compile', '--help'], 100, NO_COLOR='1').splitlines())), 80)
        self.assertLessEqual(
            max(map(len,
                    self.on_terminal(['compile', '--help'], 400, NO_COLOR='1').splitlines())), 100)
        # A terminal that says nothing sensible gets a sensible minimum.
        self.assertGreater(
            max(map(len,
                    self.on_terminal(['models'], 5, NO_COLOR='1').splitlines())), 20)

    def test_columns_decide_in_a_pipe(self):
        for columns, least, most in (('80', 60, 80), ('60', 40, 60), ('5', 20, 40),
                                     ('400', 80, 100), ('wide', 80, 100), ('', 80, 100)):
            text = self.weft('models', env={'COLUMNS': columns}).out
            with self.subTest(columns):
                self.assertGreater(max(map(len, text.splitlines())), least)
                self.assertLessEqual(max(map(len, text.splitlines())), most)
        self.assertLessEqual(
            max(map(len,
                    self.on_terminal(['models'], 60, COLUMNS='90', NO_COLOR='1').splitlines())), 60)

    def test_no_color(self):
        self.assertIn('\033[1m', self.on_terminal(['devices'], 100, NO_COLOR=None, TERM='xterm'))
        self.assertNotIn('\033', self.on_terminal(['devices'], 100, NO_COLOR='1', TERM='xterm'))
        self.assertNotIn('\033',
                         self.on_terminal(['compile', '--help'], 100, NO_COLOR='1', TERM='xterm'))


if __name__ == '__main__':
    unittest.main()
