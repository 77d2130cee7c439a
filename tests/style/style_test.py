"""Every source file is as .clang-format has it, and no line of ours is longer than 100 columns.

Files are those that git knows, or, in a tree without git, all outside of build folders. Data has
lines as long as it needs: models in .mlir, profiles, shipped plans, schemas, golden outputs.
"""
import pathlib
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 100
FORMATTER = 'clang-format-14'  # another version formats differently
FORMATTED = ('.cpp', '.h', '.cuh')
WRITTEN = (*FORMATTED, '.py', '.td', '.cmake')
LEFT_OUT = ('build/', '.venv/', 'out/', 'profiles/', 'tests/fuzz/corpus/')


def source_files():
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others',
                             '--exclude-standard'], capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.split('\0') if name]
    else:
        names = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob('*')]
    return [ROOT / name for name in names
            if not name.startswith(LEFT_OUT) and (ROOT / name).is_file()]


def is_written(path):
    """Code, and scripts without an ending."""
    if path.suffix in WRITTEN or path.name == 'CMakeLists.txt':
        return True
    return path.suffix == '' and path.read_bytes()[:2] == b'#!'


def long_lines(path):
    lines = path.read_text(encoding='utf-8').splitlines()
    return [f'{path}:{number}: {len(line)} columns' for number, line in enumerate(lines, 1)
            if len(line) > COLUMNS]


def long_prose(path):
    """The same of a page, whose blocks of code and tables show what is wider."""
    is_code, found = False, []
    for number, line in enumerate(path.read_text(encoding='utf-8').splitlines(), 1):
        if line.startswith('```'):
            is_code = not is_code
        elif not is_code and not line.startswith('|') and len(line) > COLUMNS:
            found.append(f'{path}:{number}: {len(line)} columns')
    return found


class Style(unittest.TestCase):

    def test_lines_end_at_100_columns(self):
        files = [path for path in source_files() if is_written(path)]
        self.assertGreater(len(files), 500)
        self.assertEqual([line for path in files for line in long_lines(path)], [])

    def test_prose_ends_at_100_columns(self):
        pages = [path for path in source_files() if path.suffix == '.md']
        self.assertGreater(len(pages), 15)
        self.assertEqual([line for page in pages for line in long_prose(page)], [])

    def test_long_prose_is_found(self):
        path = pathlib.Path(self.id())
        wide = 'x' * (COLUMNS + 1)
        try:
            path.write_text(f'| {wide} |\n```\n{wide}\n```\n{wide}\n')
            self.assertEqual(long_prose(path), [f'{path}:5: {COLUMNS + 1} columns'])
        finally:
            path.unlink(missing_ok=True)

    def test_a_long_line_is_found(self):
        self.assertEqual(len(long_lines(pathlib.Path(__file__))), 0)
        path = pathlib.Path(self.id())
        try:
            path.write_text('short\n' + 'x' * (COLUMNS + 1) + '\n')
            self.assertEqual(long_lines(path), [f'{path}:2: {COLUMNS + 1} columns'])
        finally:
            path.unlink(missing_ok=True)

    def test_code_is_as_clang_format_has_it(self):
        if not shutil.which(FORMATTER):
            self.skipTest(f'{FORMATTER} is not installed (tools/install-dependencies)')
        files = [str(path) for path in source_files() if path.suffix in FORMATTED]
        self.assertGreater(len(files), 500)
        done = subprocess.run([FORMATTER, '--dry-run', '--Werror', *files], capture_output=True,
                              text=True, check=False)
        named = [line for line in done.stderr.splitlines() if ': error: ' in line]
        self.assertEqual((done.returncode, named[:20]), (0, []))


if __name__ == '__main__':
    result = unittest.main(exit=False).result
    sys.exit(not result.wasSuccessful())
