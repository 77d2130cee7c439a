"""Streams that are closed, full or left by their reader, no home, limits of files, names that are
no UTF-8: a message, a documented exit code, and nothing left behind."""
import json
import os
import pathlib
import resource
import shutil
import subprocess
import unittest

from weft_command import CORE, CommandTest, WEFT, with_empty_cache

RUN = str(pathlib.Path(WEFT).parent / 'weft-run')
SMALL = [*CORE, '--attention', 'unfused']
HOMELESS = {'WEFT_CACHE_DIR': None, 'XDG_CACHE_HOME': None, 'HOME': None}


@with_empty_cache
class EndsTest(CommandTest):
    def shell(self, command, env=None, **options):
        """A command line with redirections; "weft" and "weft-run" are the built ones."""
        text = f'weft() {{ "{WEFT}" "$@"; }}; weft_run() {{ "{RUN}" "$@"; }}; {command}'
        return subprocess.run(['bash', '-c', text], cwd=self.folder,
                              env=self.environment(**(env or {})), capture_output=True, timeout=300,
                              check=False, **options)

    def compiled(self):
        self.weft('compile', *SMALL, '-o', 'out')
        return self.files()


class Streams(EndsTest):
    PRINTING = [
        'weft explain out', 'weft explain out --json', 'weft env', 'weft devices', 'weft --help',
        'weft compile --help', 'weft cache stat', 'weft select ' + ' '.join(SMALL),
        'weft_run --check out', 'weft_run --check --json out', 'weft_run --help'
    ]

    def test_output_that_cannot_be_written_is_said(self):
        before = self.compiled()
        for command in self.PRINTING:
            for output, reason in (('>&-', 'Bad file descriptor'), ('>/dev/full',
                                                                    'No space left on device')):
                with self.subTest(command=command, output=output):
                    result = self.shell(f'{command} {output}')
                    self.assertEqual((result.returncode, result.stdout), (2, b''), result.stderr)
                    self.assertIn(f'standard output cannot be written: {reason}',
                                  result.stderr.decode())
                    self.assertEqual(result.stderr.count(b'\n'), 1)
        self.assertNothingLeft(before)

    def test_a_reader_that_left(self):
        self.compiled()
        for command in self.PRINTING:
            with self.subTest(command=command):
                result = self.shell(f'({command}; echo "exit $?" >&2) | true',
                                    env={'BASH_ENV': None})
                code = result.stderr.decode().rpartition('exit ')[2].strip()
                self.assertIn(code, ('0', '2'))  # 0: all was in the pipe before it was closed
                self.assertEqual(result.stderr.decode().replace(f'exit {code}', '').strip(),
                                 '')  # who stops reading wants no message

    def test_closed_messages_change_neither_result_nor_exit_code(self):
        self.compiled()
        for command, code in (('weft explain out', 0), ('weft_run --check out', 0),
                              ('weft explain nowhere', 2), ('weft_run --check nowhere', 2),
                              ('weft compile ' + ' '.join(SMALL) + ' --dim j=0 -o other',
                               2), ('weft nonsense', 2)):
            with self.subTest(command=command):
                open_ended, closed, full = self.shell(command), self.shell(
                    f'{command} 2>&-'), self.shell(f'{command} 2>/dev/full')
                for result in (open_ended, closed, full):
                    self.assertEqual((result.returncode, result.stdout), (code, open_ended.stdout))

    def test_all_streams_closed_and_the_artifact_is_whole(self):
        """No file of the artifact takes the number of a closed stream."""
        self.weft('compile', *SMALL, '-o', 'out')
        wanted = self.files('out')
        shutil.rmtree(self.cache)
        result = self.shell(f'weft compile {" ".join(SMALL)} -o closed <&- >&- 2>&-')
        self.assertEqual(result.returncode, 2)
        self.assertEqual(self.files('closed'), wanted)


class Homes(EndsTest):
    def test_without_a_home_nothing_is_kept_and_all_else_works(self):
        self.compiled()
        reference = self.files('out')
        result = self.weft('compile', *SMALL, '-o', 'homeless', env=HOMELESS)
        self.assertEqual(self.files('homeless'), reference)
        if any(name.startswith('cubin/') for name in reference):
            self.assertIn(
                'no built kernel is kept: none of WEFT_CACHE_DIR, XDG_CACHE_HOME and HOME is set',
                result.err)
        self.weft('explain', 'homeless', env=HOMELESS)
        self.weft('select', *SMALL, '--pin', 'score=hbjk', '--pin', 'probability=hbjk',
                  env=HOMELESS)
        self.assertIsNone(self.weft('env', '--json', env=HOMELESS).json()['cache'])
        for command in (['cache', 'stat'], ['cache', 'verify'], ['cache', 'gc']):
            self.fails(2, *command, env=HOMELESS,
                       says=['no folder for the kernel cache', 'WEFT_CACHE_DIR'])

    def test_a_home_that_is_no_folder(self):
        self.write('file', '')
        result = self.weft('compile', *SMALL, '-o', 'out',
                           env={**HOMELESS, 'HOME': str(self.folder / 'file')})
        if any(name.startswith('out/cubin/') for name in self.files()):
            self.assertIn('the kernel cache cannot be written', result.err)
        self.weft('explain', 'out', env={**HOMELESS, 'HOME': str(self.folder / 'file')})


class Room(EndsTest):
    def limited(self, size, *arguments):
        completed = subprocess.run(
            [WEFT, *arguments], cwd=self.folder, env=self.environment(), capture_output=True,
            text=True, timeout=300, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
        return completed

    def test_a_limit_of_file_sizes(self):
        self.compiled()
        largest = max(len(content) for content in self.files('out').values())
        before = self.files()
        for size in (0, 1, 100, largest // 2, largest - 1):
            for arguments in (['compile', *SMALL, '-o',
                               'limited'], ['compile', *SMALL, '-o', 'out'], ['emit', 'out']):
                with self.subTest(size=size, arguments=arguments):
                    result = self.limited(size, *arguments)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn('File too large', result.stderr)
                    self.assertIn('cannot write', result.stderr)
                    self.assertEqual(self.files(), before)
        result = self.limited(100, 'import', *CORE, '-o', 'graph.mlir')
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("cannot write 'graph.mlir': File too large", result.stderr)
        self.assertEqual(self.files(), before)
        self.weft('cache', 'verify')

    def test_a_full_disk(self):
        """On a small separate disk, where that may be mounted."""
        disk = self.folder / 'disk'
        disk.mkdir()
        for kilobytes in (4, 12, 32):
            script = (
                f'mount -t tmpfs -o size={kilobytes}k none disk || exit 77; export '
                f'WEFT_CACHE_DIR=disk/cache; '
                f'"{WEFT}" compile {" ".join(SMALL)} -o disk/out; code=$?; find disk -name '
                f'"*weft-tmp*" -o -name out; exit $code'
            )
            result = subprocess.run(['unshare', '--mount', '--map-root-user', 'bash', '-c', script],
                                    cwd=self.folder, env=self.environment(), capture_output=True,
                                    text=True, timeout=300, check=False)
            if result.returncode == 77 or 'unshare' in result.stderr:
                self.skipTest('no mounts here')
            self.assertEqual((result.returncode, result.stdout), (2, ''), result.stderr)
            self.assertIn('No space left on device', result.stderr)


class Bytes(EndsTest):
    """Names of files are bytes; what weft says in JSON is UTF-8 all the same."""
    LATIN = b'caf\xe9'

    def weft_bytes(self, *arguments):
        return subprocess.run([WEFT, *arguments], cwd=self.folder, env=self.environment(),
                              capture_output=True, timeout=300, check=False)

    def test_names_that_are_no_utf8(self):
        folder = os.fsencode(self.folder)
        graph = self.weft('import', *CORE).out
        with open(os.path.join(folder, self.LATIN + b'.mlir'), 'w', encoding='utf-8') as file:
            file.write(graph)
        for arguments in (['compile', self.LATIN + b'.mlir', '-o',
                           self.LATIN], ['explain',
                                         self.LATIN], ['compile', *SMALL, '-o', self.LATIN]):
            for extra in ([], ['--json']):
                with self.subTest(arguments=arguments, extra=extra):
                    result = self.weft_bytes(*arguments, *extra)
                    self.assertIn(result.returncode, (0, 2), result.stderr)
                    self.assertNotIn(b'internal error', result.stderr)
                    if extra:
                        json.loads(result.stdout.decode('utf-8'))
        self.assertFalse([name for name in os.listdir(folder) if b'weft-tmp' in name])

    def test_arguments_that_are_no_utf8(self):
        for arguments in ([self.LATIN], ['compile',
                                         self.LATIN], ['compile',
                                                       b'--\xff\xfe'], ['explain', self.LATIN],
                          ['devices',
                           self.LATIN], ['select', *SMALL, '--pin',
                                         self.LATIN], ['select', *SMALL, '--dim', b'\xe9=3'],
                          ['select', *SMALL, '--attention',
                           self.LATIN], ['select', *SMALL, '--profile',
                                         self.LATIN], ['profile', 'export', self.LATIN]):
            for extra in ([], ['--json']):
                with self.subTest(arguments=arguments, extra=extra):
                    result = self.weft_bytes(*arguments, *extra)
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertNotIn(b'internal error', result.stderr)
                    if extra:
                        json.loads(result.stdout.decode('utf-8'))


class Runner(EndsTest):
    """weft-run ends as weft does."""
    def run_tool(self, *arguments, **options):
        return subprocess.run([RUN, *arguments], cwd=self.folder, env=self.environment(),
                              capture_output=True, text=True, timeout=300, check=False, **options)

    def test_what_weft_catches(self):
        self.compiled()
        plan = self.folder / 'out/plan.json'
        good = plan.read_text()
        edits = {
            'a number beyond all': good.replace('"workspaceBytes": ',
                                                '"workspaceBytes": 1e999, "x": ', 1),
            'not text': good.replace('"model"', '"mod\\ud800el"', 1),
            'a list of everything': '[' * 100 + ']' * 100, 'nothing': ''
        }
        for name, text in edits.items():
            plan.write_text(text, encoding='utf-8', errors='surrogatepass')
            for result in (self.run_tool('--check',
                                         'out'), self.run_tool('out'), self.run_tool('time',
                                                                                     'out')):
                with self.subTest(name):
                    self.assertEqual(result.returncode, 2, result.stderr)
                    self.assertIn('out/plan.json', result.stderr)
                    self.assertNotIn('json.exception', result.stderr)

    def test_memory_that_is_not_there(self):
        """A kernel of 4 GB where 1 GB of addresses is allowed: no part of it is taken for the
        whole."""
        self.compiled()
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        source = next(kernel['source'] for kernel in plan['kernels'] if kernel['source'])
        os.truncate(self.folder / 'out' / source, 4 << 30)
        limit = 1 << 30
        for tool in (RUN, WEFT):
            completed = subprocess.run(
                [tool, *(['--check'] if tool == RUN else ['explain']), 'out'], cwd=self.folder,
                env=self.environment(), capture_output=True, text=True, timeout=300, check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
            self.assertEqual(completed.returncode, 1, completed.stderr)
            self.assertIn('out of memory', completed.stderr)


if __name__ == '__main__':
    unittest.main()
