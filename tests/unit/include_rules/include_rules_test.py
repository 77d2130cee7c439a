"""The include rules of ARCHITECTURE.md, checked: the table there is the only list, this script reads it.

A row's first column names folders, its last column what files below them may include beside their own folder: folders
of ours, and MLIR (which stands for LLVM too). The longest folder that contains a file decides. `all` allows everything.
"""
import pathlib
import re
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')


def rules(architecture: str) -> dict[str, set[str]]:
    """Folder -> folders it may include; 'MLIR' and 'all' stand as themselves."""
    table = {}
    for line in architecture.splitlines():
        cells = [cell.strip() for cell in line.strip().strip('|').split('|')]
        folders = re.findall(r'`([a-z/]+)/`', cells[0])
        if not line.startswith('|') or len(cells) != 3 or not folders:
            continue
        allowed = {name.rstrip('/') for name in re.findall(r'`([a-z/]+/)`', cells[2])}
        allowed |= {word for word in ('MLIR', 'all') if re.search(rf'\b(?<!no ){word}\b', cells[2])}
        for folder in folders:
            table[folder] = allowed | {folder}
    return table


def owner(path: str, folders) -> str | None:
    """The longest of the folders that contains the path."""
    containing = [folder for folder in folders if path.startswith(folder + '/')]
    return max(containing, key=len, default=None)


def violations(root: pathlib.Path, table: dict[str, set[str]]) -> list[str]:
    found = []
    tops = {folder.split('/')[0] for folder in table}
    for file in sorted(file for top in tops for file in (root / top).rglob('*')):
        path = file.relative_to(root).as_posix()
        folder = owner(path, table)
        if folder is None or file.suffix not in {'.h', '.cpp', '.cuh'} or 'all' in table[folder]:
            continue
        for number, line in enumerate(file.read_text(encoding='utf-8').splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = 'MLIR' if match[1].startswith(('mlir/', 'llvm/')) else owner(match[1], table)
            if target is not None and target not in table[folder]:
                found.append(f'{path}:{number}: {folder}/ may not include {match[1]} ({target})')
    return found


class IncludeRules(unittest.TestCase):
    table = rules((ROOT / 'ARCHITECTURE.md').read_text(encoding='utf-8'))

    def test_every_source_folder_has_a_row(self):
        for folder in ('kernel', 'ir', 'models', 'passes', 'passes/configure', 'passes/select', 'codegen', 'runtime',
                       'tools'):
            self.assertIn(folder, self.table)
        self.assertNotIn('MLIR', self.table['codegen'])
        self.assertIn('MLIR', self.table['passes'])

    def test_the_sources_keep_the_rules(self):
        self.assertEqual(violations(ROOT, self.table), [])

    def test_a_forbidden_include_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            bad = pathlib.Path(folder) / 'runtime' / 'Bad.cpp'
            bad.parent.mkdir()
            bad.write_text('#include "kernel/Error.h"\n#include "mlir/IR/Builders.h"\n#include "ir/Ops.h"\n')
            self.assertEqual([line.split(':')[1] for line in violations(pathlib.Path(folder), self.table)], ['2', '3'])


if __name__ == '__main__':
    unittest.main()
