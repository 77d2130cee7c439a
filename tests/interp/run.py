"""run.py WEFT-INTERPRET FILE.mlir: runs a self-checking graph as the first line of its file says.

"// FAILS: regex" expects exit status 1 and that message, "// REJECTED: regex" exit status 2 and
that message; any other file must exit with 0. "// ARGS: ..." adds arguments."""
import pathlib
import re
import shlex
import subprocess
import sys

STATUS = {'FAILS': 1, 'REJECTED': 2}


def main(interpreter: str, file: str) -> str:
    """What is wrong; empty if nothing."""
    first = pathlib.Path(file).read_text(encoding='utf-8').split('\n', 1)[0]
    directive = re.fullmatch(r'// (FAILS|REJECTED|ARGS): (.+)', first)
    keyword, text = directive.groups() if directive else ('', '')
    if not directive and re.match(r'// *[A-Z]+:', first):
        return f'{file}: no such directive: {first}'
    arguments = shlex.split(text) if keyword == 'ARGS' else []
    done = subprocess.run([interpreter, file, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding='utf-8', errors='replace', timeout=120)
    print(done.stdout, end='')
    expected = STATUS.get(keyword, 0)
    if done.returncode != expected:
        return f'exit status {done.returncode} instead of {expected}'
    if keyword in STATUS and not re.search(text, done.stdout):
        return f'no message matches: {text}'
    return ''


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]) or 0)
