"""Configures and builds a preset as a user does, with the compiler flags of the build under test:
the compiler cache holds what that build compiled, and the preset costs what differs."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CMAKE = os.environ.get('WEFT_CMAKE', 'cmake')
CTEST = os.environ.get('WEFT_CTEST', 'ctest')
FLAGS = os.environ.get('WEFT_PRESET_FLAGS', '').split()


def run(*command):
    """In the source folder; ends the test with the tail of what it said if it fails."""
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, errors='replace', check=False)
    if result.returncode != 0:
        sys.exit(
            f'{" ".join(map(str, command))}: exit {result.returncode}\n{result.stdout[-8000:]}')
    return result.stdout


def build(preset, *targets):
    """The folder of the preset, built. With the generator's own number of jobs: as many as there
    are processors."""
    run(CMAKE, '--preset', preset, *FLAGS)
    run(CMAKE, '--build', '--preset', preset,
        *(word for target in targets for word in ('--target', target)))
    return ROOT / 'build' / preset
