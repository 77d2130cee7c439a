"""bench/run GROUP...: see bench/README.md."""
import argparse
import datetime
import hashlib
import importlib
import json
import os
import pathlib
import shlex
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field

from . import (attention_table, builds, figure_run, mask_table, pairs_table, paper_figures,
               sparse_table, steps_table, transfer_draws, transfer_table, varlen_rows, varlen_table)

# Groups whose contenders of ours are whole artifacts, so that two builds can take part.
COMPARED = ('encoder', 'training', 'norm', 'contraction', 'attention', 'sparse', 'models')
DRAWN = ('transfer', 'masks')  # by --seed
GROUPS = COMPARED + ('steps', 'varlen', 'decode', 'seed004', 'memory',
                     'table-a1') + pairs_table.GROUPS + DRAWN + paper_figures.GROUPS
ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILE_LIMIT = 120.0  # seconds, of group transfer


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
    builds: list = field(default_factory=list)  # the two that are compared; else empty
    rivals: bool = True
    weft_flags: list = field(default_factory=list)
    deadline: float = float('inf')
    compile_limit: float | None = None  # seconds of one weft command
    # Of groups transfer and masks, which measure draws first .. first + count - 1.
    seed: int = 0
    first: int = 0
    count: int = 0
    draw_limit: float = COMPILE_LIMIT
    layers: int = varlen_rows.LAYERS  # of group varlen
    mixed: bool = False  # of group varlen
    adversarial: bool = False  # of group attention
    figures: str = '.'  # folder for the drawings of a paper's figures

    def wants(self, name):
        """Whether a workload is asked for, and there is time left to begin it."""
        return time.time() < self.deadline and (not self.only or any(part in name
                                                                     for part in self.only))


def first_existing(*paths):
    return str(next((path for path in paths if path.exists()), paths[0]))


def add_transfer_flags(parser):
    group = parser.add_argument_group('groups transfer and masks')
    group.add_argument('--seed', type=int, metavar='N', help='of what is drawn')
    group.add_argument('--count', type=int, metavar='M', help='how many of them')
    group.add_argument('--first', type=int, metavar='K',
                       help='the first of them, to go on where a run ended; default: 0')
    group.add_argument('--compile-limit', type=float, metavar='SECONDS',
                       help=f'of one weft compile, of transfer; default: {COMPILE_LIMIT}')
    group.add_argument('--add', nargs='+', default=[], metavar='FILE',
                       help='one table of what runs of transfer wrote by --json; measures nothing')


def check_transfer(parser, chosen):
    own = {
        '--seed': chosen.seed, '--count': chosen.count, '--first': chosen.first,
        '--compile-limit': chosen.compile_limit, '--add': chosen.add or None
    }
    given = [flag for flag, value in own.items() if value is not None]
    drawn = [group for group in chosen.groups if group in DRAWN]
    of_transfer = [flag for flag in ('--compile-limit', '--add') if flag in given]
    if 'transfer' not in drawn and of_transfer:
        parser.error(f'{of_transfer[0]} belongs to group transfer')
    if not drawn:
        if given:
            parser.error(f'{given[0]} belongs to groups transfer and masks')
        return
    if chosen.add:
        if chosen.groups != ['transfer'] or given != ['--add']:
            parser.error('--add measures nothing: it takes group transfer alone, without '
                         + (given[0] if given != ['--add'] else 'others'))
        return
    if chosen.seed is None or chosen.count is None:
        parser.error(f'group {drawn[0]} takes --seed N and --count M')
    if chosen.seed < 0 or (chosen.first or 0) < 0:
        parser.error('--seed and --first must be at least 0')
    if chosen.count < 1:
        parser.error('--count must be at least 1')
    if chosen.compile_limit is not None and not chosen.compile_limit > 0:
        parser.error('--compile-limit must be more than 0')


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
    parser.add_argument('--weft', action='append', default=[], metavar='FILE',
                        help='the weft command; default: of build/portable or build/dev; given '
                        'twice: both builds in the same rounds, and the ratio of their times')
    parser.add_argument('--library', action='append', default=[], metavar='FILE',
                        help='libweft_runtime.so, one for each --weft; default: beside it')
    parser.add_argument('--within', metavar='PERCENT',
                        help='of two builds: exit code 1 if the median ratio of a workload is '
                        'further from 1 than, e.g., 1%%')
    parser.add_argument('--no-rivals', action='store_true', help='weft alone')
    parser.add_argument('--weft-flag', action='append', default=[], metavar='FLAG',
                        help='passed to every weft compile, e.g. --weft-flag=--profile=FILE')
    parser.add_argument('--folder', default='',
                        help='keeps the artifacts there; default: a temporary folder')
    parser.add_argument('--json', default='', metavar='FILE', help='one JSON line a workload')
    parser.add_argument('--budget', type=float, default=float('inf'), metavar='SECONDS',
                        help='begin no workload after so long')
    parser.add_argument('--figures', default='', metavar='DIR',
                        help=f'of {", ".join(paper_figures.GROUPS)}: folder for the drawings; '
                        'default: here')
    parser.add_argument('--layers', type=int, metavar='N',
                        help=f'of varlen: layers, 1 to {varlen_rows.LAYERS}, by default all')
    parser.add_argument('--mixed', action='store_true',
                        help='of varlen, in place of its rows: 100 batches of random lengths '
                        'through one artifact, against plans made for every tenth of them')
    parser.add_argument('--adversarial', action='store_true',
                        help='of attention, in place of its rows: scores that are equal, one of '
                        'them huge, or +-6e4, and errors beside those of cuDNN')
    add_transfer_flags(parser)
    chosen = parser.parse_args(arguments)
    unknown = [group for group in chosen.groups if group not in GROUPS]
    if unknown:
        parser.error(f'unknown group {unknown[0]!r} (known: {", ".join(GROUPS)})')
    if chosen.rounds < 1:
        parser.error('--rounds must be at least 1')
    if chosen.layers is not None and 'varlen' not in chosen.groups:
        parser.error('--layers belongs to group varlen')
    if chosen.layers is not None and not 1 <= chosen.layers <= varlen_rows.LAYERS:
        parser.error(f'--layers must be 1 to {varlen_rows.LAYERS}')
    if chosen.mixed and 'varlen' not in chosen.groups:
        parser.error('--mixed belongs to group varlen')
    if chosen.mixed and chosen.rivals_only:
        parser.error('--mixed compares plans of weft: it takes no --rivals-only')
    pairs = [group for group in chosen.groups if group in pairs_table.GROUPS]
    if pairs and chosen.rivals_only:
        parser.error(f'{pairs[0]} compares plans of weft: it takes no --rivals-only')
    if 'profile-choice' in pairs and any(flag.startswith('--profile')
                                         for flag in chosen.weft_flag):
        parser.error('profile-choice compares the shipped profile with none: it takes no '
                     '--weft-flag=--profile')
    if chosen.adversarial and 'attention' not in chosen.groups:
        parser.error('--adversarial belongs to group attention')
    check_transfer(parser, chosen)
    drawn = [group for group in chosen.groups if group in paper_figures.GROUPS]
    known = f'{", ".join(paper_figures.GROUPS[:-1])} and {paper_figures.GROUPS[-1]}'
    if drawn and len(drawn) < len(chosen.groups):
        parser.error(f'{drawn[0]} runs without other groups than {known}')
    if chosen.figures and not drawn:
        parser.error(f'--figures belongs to {known}')
    if len(chosen.weft) > builds.MOST:
        parser.error(f'--weft is given {len(chosen.weft)} times; two builds are compared at most')
    if chosen.library and len(chosen.library) != max(1, len(chosen.weft)):
        parser.error(f'{len(chosen.library)} --library for {len(chosen.weft)} --weft')
    alone = [group for group in chosen.groups if group not in COMPARED]
    if len(chosen.weft) == 2 and alone:
        parser.error(f'group {alone[0]!r} takes one --weft; two are compared in '
                     f'{", ".join(COMPARED)}')
    if chosen.rivals_only and (chosen.no_rivals or len(chosen.weft) == 2):
        parser.error('--rivals-only leaves nothing to compare')
    if chosen.within is not None:
        if len(chosen.weft) != 2:
            parser.error('--within compares two builds: give --weft twice')
        try:
            chosen.within = builds.bound_of(chosen.within)
        except ValueError as error:
            parser.error(f'--within: {error}')
    return chosen


def library_beside(weft):
    beside = pathlib.Path(weft).resolve().parent
    return first_existing(beside / 'libweft_runtime.so',
                          beside.parent / 'lib' / 'libweft_runtime.so')


def settings_of(chosen, folder):
    built = [ROOT / 'build' / preset for preset in ('portable', 'dev')]
    wefts = chosen.weft or [first_existing(*(build / 'bin' / 'weft' for build in built))]
    libraries = chosen.library or [library_beside(weft) for weft in wefts]
    both = [
        builds.Build(*one) for one in zip(builds.labels(wefts), wefts, libraries, strict=True)
    ]
    weft, library = wefts[0], libraries[0]
    return Settings(folder=folder, rounds=chosen.rounds, only=chosen.only,
                    builds=both if len(both) == 2 else [], rivals=not chosen.no_rivals,
                    ours=not chosen.rivals_only, torch_compile=not chosen.no_torch_compile,
                    jax=not chosen.no_jax, weft=weft, library=library, weft_flags=chosen.weft_flag,
                    deadline=time.time() + chosen.budget, seed=chosen.seed or 0,
                    first=chosen.first or 0, count=chosen.count or 0,
                    draw_limit=chosen.compile_limit or COMPILE_LIMIT,
                    layers=chosen.layers or varlen_rows.LAYERS, mixed=chosen.mixed,
                    adversarial=chosen.adversarial, figures=chosen.figures or '.')


def command_of(chosen):
    """What a reader types to measure the same: groups and what selects and changes them, without
    files of this machine."""
    words = ['bench/run', *chosen.groups]
    for only in chosen.only:
        words += ['--only', shlex.quote(only)]
    for flag, value in (('--rounds', chosen.rounds), ('--seed', chosen.seed),
                        ('--first', chosen.first), ('--count', chosen.count)):
        if value is not None:
            words += [flag, str(value)]
    if chosen.layers not in (None, varlen_rows.LAYERS):
        words += ['--layers', str(chosen.layers)]
    words += [flag for flag, is_set in (('--adversarial', chosen.adversarial),
                                        ('--mixed', chosen.mixed), ('--no-jax', chosen.no_jax),
                                        ('--no-torch-compile', chosen.no_torch_compile)) if is_set]
    return ' '.join(words + [f'--weft-flag={flag}' for flag in chosen.weft_flag])


def file_hash(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:12]


def transfer_header(settings, device):
    """What runs must have in common to add up, and which draws this one was asked for. A missing
    file must not look like draws that weft rejects."""
    for path in (settings.weft, settings.library) if settings.ours else ():
        if not pathlib.Path(path).is_file():
            raise transfer_table.BadRun(f'{path}: no such file')
    return {
        'sampler': transfer_draws.SAMPLER, 'device': device,
        'weft': file_hash(settings.weft) if settings.ours else None,
        'weftFlags': settings.weft_flags, 'compileLimit': settings.draw_limit,
        'rounds': settings.rounds,
        'rivals': settings.rivals and ('all' if settings.torch_compile else 'eager'),
        'seed': settings.seed, 'first': settings.first, 'count': settings.count
    }


def run(chosen, settings):
    import torch
    if not torch.cuda.is_available():
        print('bench/run: torch finds no GPU', file=sys.stderr)
        return 3
    from . import machine, report
    device = machine.describe()
    header = transfer_header(settings, device) if 'transfer' in chosen.groups else {}
    ceilings = machine.ceilings()
    where = (
        f'{device}\nceilings of this run: copy {ceilings[0] / 1e9:.0f} GB/s read plus '
        f'written, '
        f'fp16 product 8192^3 {ceilings[1] / 1e12:.0f} TFLOP/s')
    print(where + '\n', flush=True)
    torch.cuda.empty_cache()
    # Of groups whose figures have their table: its lines.
    results = []
    own = {group: [] for group in ('attention', 'sparse', 'steps', 'varlen', *pairs_table.GROUPS,
                                   *DRAWN)}
    with open(chosen.json or os.devnull, 'w', encoding='utf-8') as lines:
        lines.write(
            json.dumps({
                'machine': where, 'date': datetime.date.today().isoformat(),
                'command': command_of(chosen), **({'transfer': header} if header else {})
            }) + '\n')
        for group in chosen.groups:
            for result in importlib.import_module('.' + group.replace('-', '_'),
                                                  __package__).run(settings):
                results.append(result)
                print(report.workload_table(result, ceilings) + '\n', flush=True)
                line = report.json_line(result, ceilings, group)
                if result.record and group in own:
                    own[group].append(json.loads(line))
                lines.write(line + '\n')
                lines.flush()
    if any(group not in own for group in chosen.groups):
        print(report.summary_table([result for result in results if not result.record], ceilings))
    for group, table in (('attention', attention_table), ('sparse', sparse_table),
                         ('steps', steps_table), ('varlen', varlen_table),
                         ('masks', mask_table),
                         *((group, pairs_table) for group in pairs_table.GROUPS)):
        if own[group]:
            print(table.text(own[group]))
    if header:
        print(transfer_table.text([transfer_table.Run(header, own['transfer'])]))
    if settings.builds:
        return compared(results, settings, chosen.within)
    failed = [
        result.workload.name for result in results if any(
            name.split(' ')[0] == report.OURS for name in result.failures)
    ]
    if failed:
        print(f'bench/run: no figure of weft for: {", ".join(failed)}', file=sys.stderr)
    return 1 if failed else 0


def compared(results, settings, bound):
    """Prints the table of two builds; 1 if one has no figure or a ratio is out of bounds."""
    print('\n' + builds.table(results, settings.builds, bound))
    failed = builds.outside(results, settings.builds, float('inf') if bound is None else bound)
    if failed or not results:
        said = 'no figure of both' if bound is None else f'not within {100 * bound:g}%'
        print(f'bench/run: {said}: {", ".join(failed) or "no workload"}', file=sys.stderr)
    return 1 if failed or not results else 0


def added(paths):
    try:
        print(transfer_table.added(paths))
        return 0
    except transfer_table.BadRun as error:
        print(f'bench/run: {error}', file=sys.stderr)
        return 2


def main(arguments):
    chosen = parse(arguments)
    if chosen.add:
        return added(chosen.add)
    folder = pathlib.Path(chosen.folder or tempfile.mkdtemp(prefix='weft-bench-'))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f'bench/run: --folder {folder}: {error.strerror}', file=sys.stderr)
        return 2
    try:
        if chosen.groups[0] in paper_figures.GROUPS:
            return paper_figures.run(chosen.groups, settings_of(chosen, folder), chosen.json,
                                     command_of(chosen))
        return run(chosen, settings_of(chosen, folder))
    except ModuleNotFoundError as error:
        print(f'bench/run: {error}: the bench needs PyTorch on a machine with a GPU',
              file=sys.stderr)
        return 3
    except (transfer_table.BadRun, figure_run.BadRun) as error:
        print(f'bench/run: {error}', file=sys.stderr)
        return 2
    finally:
        if not chosen.folder:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
