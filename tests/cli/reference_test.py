"""docs/reference.md is what the commands say of themselves: every command and flag of weft and
weft-run. `reference_test.py --update` writes the page anew."""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import unittest

from weft_command import CommandTest, ROOT, WEFT

PAGE = ROOT / 'docs/reference.md'
COLUMNS = 100
HEAD = """# Commands and flags

What `--help` says, command by command. Made by `tests/cli/reference_test.py --update`.

"""
EXIT_CODES = """## Exit codes
| code | meaning |
|---|---|
| 0 | done |
| 1 | a check failed: a verification, a bound, a broken artifact |
| 2 | usage, or input that contradicts itself; nothing was written |
| 3 | understood, but not supported here: an op, a target, a missing GPU, driver or NVRTC |
| 4 | `--strict`: something would have been estimated or left out |
"""


def help_of(program, *arguments):
    """At a width of COLUMNS, without colours."""
    environment = {**os.environ, 'COLUMNS': str(COLUMNS), 'NO_COLOR': '1'}
    done = subprocess.run([program, *arguments, '--help'], capture_output=True, text=True,
                          check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f'{program} {" ".join(arguments)} --help: exit {done.returncode}')
    return done.stdout.rstrip()


def commands(text):
    """Of `weft --help`: headings stand at the margin, commands are indented by two."""
    names, listed = [], False
    for line in text.splitlines():
        if re.match(r'^\S', line):
            listed = line[0].isupper() and line not in ('Examples', 'Options')
        elif listed and re.match(r'^  [a-z]', line):
            names.append(line.split()[0])
    return names


def page():
    beside = pathlib.Path(WEFT).parent
    top = help_of(WEFT)
    entries = [('weft', top)]
    entries += [(f'weft {name}', help_of(WEFT, name)) for name in commands(top)]
    run = str(beside / 'weft-run')
    entries.append(('weft-run', help_of(run)))
    return HEAD + ''.join(f'## {name}\n```\n{text}\n```\n\n' for name, text in entries) + EXIT_CODES


class Reference(CommandTest):
    def test_the_page_is_what_the_commands_say(self):
        differing = [
            line for line in difflib.unified_diff(PAGE.read_text().splitlines(),
                                                  page().splitlines(), lineterm='', n=0)
        ]
        self.assertEqual(differing[:20], [],
                         'tests/cli/reference_test.py --update writes the page anew')

    def test_every_command_and_its_flags_are_there(self):
        text = page()
        names = commands(help_of(WEFT))
        self.assertGreaterEqual(len(names), 15)
        for name in names:
            self.assertTrue(f'\n## weft {name}\n' in text, name)
        for flag in ('--dtype', '--chunks', '--max-memory', '--steps', '--against'):
            self.assertTrue(flag in text, flag)


if __name__ == '__main__':
    if '--update' in sys.argv:
        PAGE.write_text(page())
        sys.exit(0)
    unittest.main()
