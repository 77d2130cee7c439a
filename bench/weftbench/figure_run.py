"""What the groups that draw a paper's figures share: weft's answers, whether there is a GPU, and
points that are computed once, by name. Points are kept in the folder of the run (--folder), so that
a run whose budget ended, or which was killed, goes on with the same command."""
import datetime
import hashlib
import json
import pathlib
import subprocess
import time
from statistics import median

PREDICTED, MEASURED = 'predicted', 'measured'
FORMAT = 1  # of kept points
NOT_SUPPORTED = 3  # an exit code of weft
# A kind of attention that takes a larger share of the memory is timed without the others and the
# rivals, so that none of them lacks the memory.
SHARED_MEMORY = 0.25
TOO_LARGE = 'more than the memory'  # what the reason of such a kind begins with


class BadRun(RuntimeError):
    """No figure, and why: what weft said, or what is wrong with the command."""


class NoPlan(BadRun):
    """weft has no such plan, and says why."""


class Fault(RuntimeError):
    """An error of CUDA, after which no call of the process succeeds. `entries`: what there is of
    the point; kept, so that the next run begins behind it."""
    def __init__(self, reason, entries):
        super().__init__(reason)
        self.entries = entries


def weft(settings, *arguments):
    """Standard output. Raises NoPlan where weft does not support what is asked for, and BadRun
    where the command is wrong or fails."""
    try:
        done = subprocess.run([settings.weft, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
    except OSError as error:
        raise BadRun(f'{settings.weft}: {error.strerror}') from error
    if done.returncode:
        said = f'weft {arguments[0]}: exit {done.returncode}: {done.stderr.strip()[:300]}'
        raise NoPlan(said) if done.returncode == NOT_SUPPORTED else BadRun(said)
    return done.stdout


def dims(extents):
    return [word for name, extent in extents.items() for word in ('--dim', f'{name}={extent}')]


def device_flags(settings, device):
    """The device that figures are predicted for, unless --weft-flag names another."""
    own = any(flag.split('=')[0] == '--device' for flag in settings.weft_flags)
    return [] if own else ['--device', device]


def has_gpu():
    try:
        import torch
    except ModuleNotFoundError:
        return False
    return torch.cuda.is_available()


def write(settings, name, drawn):
    path = pathlib.Path(settings.figures) / f'{name}.svg'
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drawn, encoding='utf-8')
    except OSError as error:
        raise BadRun(f'--figures {settings.figures}: {error.strerror}') from error
    return path


def chosen_figures(settings, names):
    """Figures of which a part is asked for by --only TEXT; `names`: of every point, by figure.
    Raises BadRun where a TEXT is in no name."""
    for text in settings.only:
        if not any(text in name for own in names.values() for name in own):
            raise BadRun(f'--only {text}: no point has it in its name; figures: '
                         f'{", ".join(names)}; a point: {next(iter(names.values()))[-1]!r}')
    return [figure for figure, own in names.items()
            if any(is_chosen(settings, name) for name in own)]


def is_chosen(settings, name):
    """Whether --only names a point."""
    return not settings.only or any(text in name for text in settings.only)


def file_hash(path):
    try:
        return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise BadRun(f'{path}: {error.strerror}') from error


class Points:
    """Entries of points by name. What another weft, machine, set of flags or number of rounds gave
    is not taken again."""
    def __init__(self, settings, group, where=None):
        """`where`: the machine that measures; None: all is predicted."""
        self.settings, self.left = settings, []
        self.is_cut_off = False  # the last line, which the next one must not continue
        self.key = {
            'format': FORMAT, 'weft': file_hash(settings.weft), 'flags': settings.weft_flags,
            'machine': where,
            'measured': [settings.rounds, settings.rivals, settings.torch_compile] if where else []
        }
        self.path = pathlib.Path(settings.folder) / f'{group}.jsonl'
        self.known = dict(self.kept())

    def kept(self):
        if not self.path.exists():
            return
        text = self.path.read_text(encoding='utf-8')
        self.is_cut_off = not text.endswith('\n')
        for line in text.splitlines():
            try:
                point = json.loads(line)
            except json.JSONDecodeError:
                continue  # cut off where a run was killed
            if isinstance(point, dict) and point.get('key') == self.key:
                yield point['name'], point['entries']

    def get(self, name, make):
        """Entries of a point, which `make()` gives; None where the budget is spent: then the name
        is among those left out."""
        if name not in self.known:
            if time.time() >= self.settings.deadline:
                if name not in self.left:
                    self.left.append(name)
                return None
            try:
                self.keep(name, make())
            except Fault as fault:
                self.keep(name, fault.entries)
                raise BadRun(f'{name}: {fault}; the same command with the same --folder goes on '
                             'behind it') from fault
        return self.known[name]

    def keep(self, name, entries):
        self.known[name] = entries
        with open(self.path, 'a', encoding='utf-8') as lines:
            line = json.dumps({'key': self.key, 'name': name, 'entries': entries})
            lines.write('\n' * self.is_cut_off + line + '\n')
        self.is_cut_off = False

    def left_text(self):
        if not self.left:
            return ''
        return (f'not begun, --budget is spent: {", ".join(self.left)}\n'
                'the same command with the same --folder goes on there')


def entry(name, seconds, source=PREDICTED, **more):
    return {'name': name, 'seconds': seconds, 'source': source, **more}


def failure(name, reason):
    return {'name': name, 'seconds': None, 'source': '', 'reason': reason}


def entries_of(result):
    """Medians of a report.Result, and what has no figure with the reason."""
    found = [
        entry(name, median(samples), MEASURED, error=result.errors.get(name))
        for name, samples in result.samples.items()
    ]
    return found + [failure(name, why) for name, why in result.failures.items()]


def measured_beside(known, what, measure):
    """`known`, and the entries that `measure()` gives. Too little memory is a reason for a missing
    figure; an error of CUDA is one, too, and ends the run (Fault)."""
    try:
        return known + measure()
    except Exception as error:
        reason = f'{type(error).__name__}: {error}'.split('\n')[0][:240]
        found = known + [failure(what, reason)]
        if type(error).__name__ == 'OutOfMemoryError':
            return found
        if 'CUDA error' in str(error):
            raise Fault(reason, found) from error
        raise


def head_line(where, command):
    """Of --json, before all points: where they come from, and by which command."""
    return {'machine': where, 'date': datetime.date.today().isoformat(), 'command': command}


def point_line(group, figure, point, entries):
    """Of --json: a point and why contenders have no figure."""
    return {'group': group, 'figure': figure, 'workload': point.name(), 'entries': entries,
            'failures': {one['name']: one['reason'] for one in entries if one.get('reason')}}


def is_measured(entries):
    return any(one['source'] == MEASURED for one in entries)


def points_of(lines, points):
    """(figure, [(point, entries)]) of the lines of --json of all runs, in order: of a point with
    several lines the last, but what was measured stays. `points`: all that there are, by figure."""
    known = {}
    for line in lines:
        own = known.get(line['workload'])
        if own is None or is_measured(line['entries']) or not is_measured(own):
            known[line['workload']] = line['entries']
    found = [(figure, [(point, known[point.name()]) for point in own if point.name() in known])
             for figure, own in points.items()]
    return [(figure, own) for figure, own in found if own]


def seconds_of(entries, name, source=None):
    """Of a name, measured where it was; None where there is no figure."""
    found = {one['source']: one['seconds'] for one in entries or []
             if one['name'] == name and one['seconds']}
    return found.get(source) if source else found.get(MEASURED, found.get(PREDICTED))


def is_too_large(entries, name):
    return any(one['name'] == name and one.get('reason', '').startswith(TOO_LARGE)
               for one in entries)


def sources(entries):
    """Measured first."""
    return [one for one in (MEASURED, PREDICTED)
            if any(entry['source'] == one for entry in entries or [])]


def failures_text(points):
    """Each reason once. `points`: (name, entries)."""
    reasons = {}
    for name, entries in points:
        for one in entries or []:
            if one.get('reason'):
                reasons.setdefault((one['name'], one['reason']), []).append(name)
    return [f'{name}: no figure: {reason} ({len(own)} points, first: {own[0]})'
            for (name, reason), own in reasons.items()]
