"""Device headers know nothing of tests, and codegen/device/README.md lists each of them.

Headers are all codegen/**/device/*.cuh. Those that the emulator replaces, by headers of the same
names in tests/emulate/host/weft or, of one family, in its tests/host, are marked with `*` in the
list."""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / 'codegen/device'
CONDITION = re.compile(r'^\s*#\s*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b')
OF_TARGET = re.compile(r'^\s*#\s*(?:if|elif) __CUDA_ARCH__ (?:[<>]=?|==) \d+$')
TEST_WORD = re.compile(r'emulat', re.IGNORECASE)
ROW = re.compile(r'^\| `(\w+\.cuh)`( \*)? \|')


def headers():
    return sorted(ROOT.glob('codegen/**/device/*.cuh'))


def stand_ins():
    """Name -> path of each header that the emulator reads instead."""
    return {path.name: path for folder in ('tests/emulate/host/weft',
                                           'codegen/families/*/tests/host')
            for path in ROOT.glob(f'{folder}/*.cuh')}


def conditions(text):
    """Lines of conditions that ask for anything but the target."""
    return [line for line in text.splitlines() if CONDITION.match(line)
            and not OF_TARGET.match(line)]


def listed(page):
    """Name -> whether it is marked, in the order of the page."""
    rows = [ROW.match(line) for line in page.splitlines()]
    return [(row[1], bool(row[2])) for row in rows if row]


class DeviceHeaders(unittest.TestCase):

    def test_no_header_asks_for_anything_but_the_target(self):
        self.assertGreater(len(headers()), 60)
        self.assertEqual([f'{path.name}: {line}' for path in headers()
                          for line in conditions(path.read_text(encoding='utf-8'))], [])

    def test_a_test_macro_is_found(self):
        for line, count in (('#if defined(WEFT_EMULATE)', 1), ('  # ifndef TEST', 1),
                            ('#if __CUDA_ARCH__ >= 890', 0), ('#elif defined(X)', 1),
                            ('#if __CUDA_ARCH__ >= 890 && !defined(TEST)', 1), ('#endif', 0)):
            self.assertEqual(len(conditions(f'int x;\n{line}\n')), count, line)

    def test_no_header_speaks_of_the_emulator(self):
        self.assertEqual([path.name for path in headers()
                          if TEST_WORD.search(path.read_text(encoding='utf-8'))], [])

    def test_every_header_says_what_it_is(self):
        for path in headers():
            text = path.read_text(encoding='utf-8')
            self.assertRegex(text, r'\A(//[^\n]*\n)+#pragma once\n', path.name)
            for name in re.findall(r'#include (.*)', text):
                self.assertRegex(name, r'^"weft/\w+\.cuh"$', path.name)

    def test_the_list_has_every_header_once_and_nothing_else(self):
        names = [name for name, _ in listed((LIBRARY / 'README.md').read_text(encoding='utf-8'))]
        self.assertEqual(sorted(names), [path.name for path in sorted(headers(),
                                                                      key=lambda path: path.name)])

    def test_the_list_marks_what_the_emulator_replaces(self):
        page = (LIBRARY / 'README.md').read_text(encoding='utf-8')
        marked = sorted(name for name, isMarked in listed(page) if isMarked)
        self.assertEqual(marked, sorted(stand_ins()))

    def test_what_replaces_a_header_of_one_family_lies_in_its_tests(self):
        for path in headers():
            if path.name in stand_ins() and path.parents[1].parent.name == 'families':
                self.assertEqual(stand_ins()[path.name].parents[1], path.parents[1] / 'tests')

    def test_ptx_and_intrinsics_stand_where_the_emulator_does_not_read_them(self):
        """A header that the emulator reads has none: it would not compile there."""
        replaced = stand_ins()
        read, waiting = set(), list(replaced)
        own = {path.name: path for path in headers()}
        while waiting:
            name = waiting.pop()
            if name in read:
                continue
            read.add(name)
            text = replaced.get(name, own.get(name)).read_text(encoding='utf-8')
            waiting += re.findall(r'#include "weft/(\w+\.cuh)"', text)
        self.assertGreater(len(read - set(replaced)), 10)
        for name in sorted(read - set(replaced)):
            self.assertNotRegex(own[name].read_text(encoding='utf-8'), r'\basm\b', name)

    def test_wgmma_headers_are_those_of_the_table(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, LIBRARY / 'generate_wgmma.py', folder], check=True)
            made = {path.name: path.read_text(encoding='utf-8')
                    for path in pathlib.Path(folder).iterdir()}
        self.assertGreater(len(made), 10)
        self.assertEqual(sorted(made), sorted(path.name for path in LIBRARY.glob('wgmma_*.cuh')))
        for name, text in made.items():
            self.assertEqual((LIBRARY / name).read_text(encoding='utf-8'), text,
                             f'{name}: run codegen/device/generate_wgmma.py')


if __name__ == '__main__':
    result = unittest.main(exit=False).result
    sys.exit(not result.wasSuccessful())
