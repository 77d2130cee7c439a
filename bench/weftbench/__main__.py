"""bench/run GROUP...: see bench/README.md."""
import argparse
import importlib
import json
import os
import pathlib
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field

GROUPS = ('encoder', 'training', 'norm', 'contraction', 'seed004', 'memory', 'table-a1')
ROOT = pathlib.Path(__file__).resolve().parents[2]


@dataclass
class Settings:
    folder: pathlib.Path
    rounds: int = 15
    only: list = field(default_factory=list)
    ours: bool = True
    torch_compile: bool = True
    jax: bool = True
    weft: str = ''
    library: str = ''
    weft_flags: list = field(default_factory=list)
    deadline: float = float('inf')

    def wants(self, name):
        """Whether a workload is asked for, and there is time left to begin it."""
        return time.time() < self.deadline and (not self.only or any(part in name
                                                                     for part in self.only))


def first_existing(*paths):
    return str(next((path for path in paths if path.exists()), paths[0]))


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog='bench/run', description='weft and its rivals in one run, interleaved round by round')
    parser.add_argument('groups', nargs='+', metavar='GROUP', help=', '.join(GROUPS))
    parser.add_argument('--only', action='append', default=[], metavar='TEXT',
                        help='workloads whose name holds TEXT')
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--rivals-only', action='store_true',
                        help='no weft: checks the harness, shows the machine')
    parser.add_argument('--no-torch-compile', action='store_true')
    parser.add_argument('--no-jax', action='store_true')
    parser.add_argument('--weft', default='',
                        help='the weft command; default: of build/portable or build/dev')
    parser.add_argument('--library', default='',
                        help='libweft_runtime.so; default: beside the weft command')
    parser.add_argument('--weft-flag', action='append', default=[], metavar='FLAG',
                        help='passed to every weft compile, e.g. --weft-flag=--profile=FILE')
    parser.add_argument('--folder', default='',
                        help='keeps the artifacts there; default: a temporary folder')
    parser.add_argument('--json', default='', metavar='FILE', help='one JSON line a workload')
    parser.add_argument('--budget', type=float, default=float('inf'), metavar='SECONDS',
                        help='begin no workload after so long')
    chosen = parser.parse_args(arguments)
    unknown = [group for group in chosen.groups if group not in GROUPS]
    if unknown:
        parser.error(f'unknown group {unknown[0]!r} (known: {", ".join(GROUPS)})')
    if chosen.rounds < 1:
        parser.error('--rounds must be at least 1')
    return chosen


def settings_of(chosen, folder):
    built = [ROOT / 'build' / preset for preset in ('portable', 'dev')]
    weft = chosen.weft or first_existing(*(build / 'bin' / 'weft' for build in built))
    beside = pathlib.Path(weft).resolve().parent
    library = chosen.library or first_existing(beside / 'libweft_runtime.so',
                                               beside.parent / 'lib' / 'libweft_runtime.so',
                                               *beside.parent.glob('**/libweft_runtime.so'))
    return Settings(folder=folder, rounds=chosen.rounds, only=chosen.only,
                    ours=not chosen.rivals_only, torch_compile=not chosen.no_torch_compile,
                    jax=not chosen.no_jax, weft=weft, library=library, weft_flags=chosen.weft_flag,
                    deadline=time.time() + chosen.budget)


def run(chosen, settings):
    import torch
    if not torch.cuda.is_available():
        print('bench/run: torch finds no GPU', file=sys.stderr)
        return 3
    from . import machine, report
    ceilings = machine.ceilings()
    where = (
        f'{machine.describe()}\nceilings of this run: copy {ceilings[0] / 1e9:.0f} GB/s read plus '
        f'written, '
        f'fp16 product 8192^3 {ceilings[1] / 1e12:.0f} TFLOP/s')
    print(where + '\n', flush=True)
    torch.cuda.empty_cache()
    results = []
    with open(chosen.json or os.devnull, 'w', encoding='utf-8') as lines:
        lines.write(json.dumps({'machine': where}) + '\n')
        for group in chosen.groups:
            for result in importlib.import_module('.' + group.replace('-', '_'),
                                                  __package__).run(settings):
                results.append(result)
                print(report.workload_table(result, ceilings) + '\n', flush=True)
                lines.write(report.json_line(result, ceilings, group) + '\n')
                lines.flush()
    print(report.summary_table(results, ceilings))
    failed = [
        result.workload.name for result in results if any(
            name.split(' ')[0] == report.OURS for name in result.failures)
    ]
    if failed:
        print(f'bench/run: no figure of weft for: {", ".join(failed)}', file=sys.stderr)
    return 1 if failed else 0


def main(arguments):
    chosen = parse(arguments)
    folder = pathlib.Path(chosen.folder or tempfile.mkdtemp(prefix='weft-bench-'))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return run(chosen, settings_of(chosen, folder))
    except ModuleNotFoundError as error:
        print(f'bench/run: {error}: the bench needs PyTorch on a machine with a GPU',
              file=sys.stderr)
        return 3
    finally:
        if not chosen.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
