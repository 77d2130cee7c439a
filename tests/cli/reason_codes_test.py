"""Reason codes come from one table: `weft explain CODE` prints an entry of it, docs/reason-codes.md
holds all of them, and no other code is given anywhere. `reason_codes_test.py --update` writes the
page anew."""
import os
import re
import subprocess
import sys
import textwrap
import unittest

from weft_command import CommandTest, LAYER, ROOT, WEFT

PAGE = ROOT / 'docs/reason-codes.md'
CODE = re.compile(r'\b[AFNV]\d{3}\b')
GPUS = {'V100', 'A100'}  # named like codes
HEAD = """# Reason codes

Why two ops do not share a kernel (F), projections are not stacked (A), a norm stays whole (N), or a
slice or concatenation copies (V).
`weft explain CODE` prints an entry. Made by `tests/cli/reason_codes_test.py --update` from
`kernel/ReasonCodes.h`.
"""


def wrapped(text, indent=''):
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def page(codes):
    entries = (
        f"\n## {one['code']} {one['reason']}\n"
        + wrapped(f"{one['meaning'][0].upper()}{one['meaning'][1:]}.") + '\n\n'
        + wrapped(f"- Example: {one['example']}", '  ') + '\n'
        + wrapped(f"- Remedy: {one['remedy']}", '  ') + '\n' for one in codes)
    return HEAD + ''.join(entries)


class ReasonCodes(CommandTest):
    def codes(self):
        return self.weft('explain', 'codes', '--json').json()['codes']

    def test_the_page_is_the_table(self):
        self.assertEqual(PAGE.read_text(), page(self.codes()),
                         'tests/cli/reason_codes_test.py --update writes the page anew')

    def test_every_code_has_meaning_example_and_remedy(self):
        codes = self.codes()
        self.assertGreater(len(codes), 25)
        self.assertEqual([one['code'] for one in codes], sorted({one['code'] for one in codes}))
        for one in codes:
            for member in ('reason', 'meaning', 'example', 'remedy'):
                self.assertGreater(len(one[member]), 6, one['code'])
        listed = self.weft('explain', 'codes').out
        for one in codes:
            self.assertIn(f"{one['code']} {one['reason']}", listed)

    def test_one_code(self):
        for name in ('F024', 'f024'):
            text = ' '.join(self.weft('explain', name).out.split())
            for part in ('F024 no-epilogue: ', 'example ', 'remedy ', '--norms decomposed'):
                self.assertIn(part, text)
        self.assertEqual(self.weft('explain', 'V003', '--json').json()['reason'], 'callers-buffer')
        self.fails(2, 'explain', 'F025x',
                   says=['F025x'])  # no code's form: a folder that is not there
        for typed, near in (('f029', r'F0\d\d'), ('f999', r'F\d\d\d'), ('z001', r'[A-Z]\d\d\d')):
            self.assertRegex(
                self.fails(2, 'explain', typed).err,
                rf"no reason code '{typed}'; nearest is {near} \(weft explain codes lists all\)")

    def test_a_folder_of_that_name_is_an_artifact(self):
        (self.folder / 'F024').mkdir()
        self.fails(2, 'explain', 'F024', says=['plan.json'])

    def test_sources_and_pages_name_no_other_code(self):
        known = {one['code'] for one in self.codes()}
        named = {}
        for folder in ('passes', 'tools/driver', 'kernel', 'docs', 'tests/lit', 'tests/unit',
                       'tests/cli', 'codegen'):
            for path in (ROOT / folder).rglob('*.*'):
                if path.suffix in ('.cpp', '.h', '.mlir', '.md', '.py'):
                    for line in path.read_text().splitlines():
                        if 'explain' not in line:  # of codes that do not exist
                            named.update({code: path for code in CODE.findall(line)})
        self.assertGreater(len(named), 25)
        self.assertEqual({code: path
                          for code, path in named.items() if code not in known | GPUS}, {})

    def test_codes_of_a_compilation_stand_in_the_table(self):
        reasons = {one['code']: one['reason'] for one in self.codes()}
        given = {(one['code'], one['reason'])
                 for variant in self.weft('compile', *LAYER, '--stop-after', 'fuse',
                                          '--json').json()['variants']
                 for one in variant['records'] if one['code']}
        self.assertGreater(len(given), 2)
        for code, reason in given:
            self.assertEqual(reasons[code], reason)


def update():
    """The page with the entries of this build."""
    import json
    codes = subprocess.run([WEFT, 'explain', 'codes', '--json'], env=os.environ,
                           capture_output=True, text=True, check=True).stdout
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(json.loads(codes)['codes']))


if __name__ == '__main__':
    if '--update' in sys.argv:
        update()
    else:
        unittest.main()
