"""Unfused attention by one CPU thread (bench/sequential), and speedups over it. No packages: tested
without a GPU."""
import json
import pathlib
import subprocess

from . import statistics

PROGRAM = 'weft-sequential-bench'
ROUNDS = 3
LIMIT_SECONDS = 900


def program_beside(weft):
    """The baseline that was built with a weft command."""
    return str(pathlib.Path(weft).resolve().parent / PROGRAM)


def measured(program, length, head, rounds=ROUNDS):
    """Seconds by step of one head, one batch element: members seconds, score, softmax, weighted.
    Raises RuntimeError naming the program and the reason."""
    try:
        done = subprocess.run([
            program, '--length',
            str(length), '--head',
            str(head), '--rounds',
            str(rounds)
        ], capture_output=True, text=True, check=True, timeout=LIMIT_SECONDS)
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f'{program}: {error.stderr.strip()}') from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RuntimeError(f'{program}: {error}') from error
    return json.loads(done.stdout)


def add_speedups(result, seconds):
    """Of every contender of a result that has samples: how many times faster it is."""
    result.extra['one CPU thread'] = f'{1e3 * seconds:.3f} ms'
    for name, samples in result.samples.items():
        times = seconds / statistics.summarize(samples).median
        result.extra[f'{name} over one CPU thread'] = f'{times:.1f}x'


class Baseline:
    """Measured once a length, where a result needs it."""
    def __init__(self, program, head):
        self.program, self.head, self.known = program, head, {}

    def add(self, result, length, step='seconds'):
        """Speedups of a result over a step of the baseline, or why there are none."""
        try:
            if length not in self.known:
                self.known[length] = measured(self.program, length, self.head)
            add_speedups(result, self.known[length][step])
        except RuntimeError as error:
            result.failures['one CPU thread'] = str(error)
