"""Runs the built `weft` as its users do: by its command line, judged by exit code, messages and
files."""
import contextlib
import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFT = os.environ.get('WEFT', str(ROOT / 'build/dev/bin/weft'))

# Built kernels of all tests of this build, so that each text is compiled once: an entry is found by
# the hash of everything that its cubin depends on, and is checked against its hash when read.
BUILT_KERNELS = pathlib.Path(WEFT).resolve().parents[1] / 'tests/built-kernels'
SHARDS = [f'{shard:02x}' for shard in range(256)]
# What `weft compile` of a preset printed and wrote: the same arguments in the same environment give
# the same bytes (one_plan_test and ends_test compile twice to see it), so that many tests may start
# from one run. Of another build of weft another folder.
ARTIFACTS = BUILT_KERNELS.with_name('artifacts')
READ_VARIABLES = re.compile(r'(WEFT|CUDA|LD|NVTX|XDG)_|(HOME|PATH|TERM|COLUMNS|NO_COLOR)$')


@functools.lru_cache
def machine(variables):
    """What weft finds on this machine, NVRTC above all."""
    return subprocess.run([WEFT, 'env', '--json'], env=dict(variables), capture_output=True,
                          text=True, check=True).stdout


# A whole encoder layer of small extents, and the same with one variant only, which compiles in
# about a second.
LAYER = [
    'paper-encoder', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'p=16', '--dim',
    'i=32', '--dim', 'u=64'
]
TINY = [*LAYER, '--stacking', 'three', '--attention', 'unfused']
# The core of attention, small, with all its variants.
CORE = ['attention', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'p=16']


class Result:
    def __init__(self, completed):
        self.code, self.out, self.err = completed.returncode, completed.stdout, completed.stderr

    def json(self):
        return json.loads(self.out)

    def prose(self):
        """Standard output with the line breaks undone that fit it to its columns."""
        return ' '.join(self.out.split())


def record_hash(kernel):
    """Under which verification records speak of a kernel of plan.json: of its text and its
    launch."""
    grid, block = (' '.join(map(str, kernel[name])) for name in ('grid', 'block'))
    launch = f"grid {grid} block {block} shared {kernel['sharedBytes']}"
    if kernel.get('workspaceBytes'):
        launch += f" workspace {kernel['workspaceBytes']}"
    return hashlib.sha256(f"{kernel['textHash']} {launch}".encode()).hexdigest()


def with_empty_cache(test):
    """For a test, or a class of them, that is about the cache, or about how kernels are built:
    without what other tests have built."""
    test.has_empty_cache = True
    return test


class CommandTest(unittest.TestCase):
    """Each test gets an empty folder, which is the current one, and a cache with the kernels that
    other tests have built and with nothing else: no records, no remembered times."""
    has_empty_cache = False

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-cli-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = self.folder / 'cache'
        test = getattr(self, self._testMethodName)
        self.has_empty_cache |= getattr(test, 'has_empty_cache', False)
        self.compiled_keys = set()  # arguments of `weft compile`, by this test
        if not self.has_empty_cache:
            self.cache.mkdir()
            for shard in SHARDS:
                (BUILT_KERNELS / shard).mkdir(parents=True, exist_ok=True)
                (self.cache / shard).symlink_to(BUILT_KERNELS / shard)

    def environment(self, **changes):
        environment = {**os.environ, 'COLUMNS': None, 'WEFT_CACHE_DIR': str(self.cache), **changes}
        return {name: value for name, value in environment.items() if value is not None}

    def weft(self, *arguments, code=0, env=None, timeout=300):
        """Runs weft and checks its exit code; `env` changes variables (None removes one)."""
        if arguments[:1] == ('cache', ) and '--help' not in arguments:
            self.assertTrue(self.has_empty_cache, 'a test of the cache is marked with_empty_cache')
        arguments, environment = list(map(str, arguments)), self.environment(**(env or {}))
        kept = self.kept_artifact(arguments, environment)
        artifact = kept and arguments[arguments.index('-o') + 1]
        completed = kept and self.copy_artifact(kept, artifact)
        if not completed:
            completed = subprocess.run([WEFT, *arguments], cwd=self.folder, env=environment,
                                       capture_output=True, text=True, timeout=timeout, check=False)
            if kept and completed.returncode == 0:
                self.keep_artifact(kept, artifact, completed)
        self.assertEqual(completed.returncode, code,
                         f'weft {arguments}\n{completed.stdout}\n{completed.stderr}')
        return Result(completed)

    def kept_artifact(self, arguments, environment):
        """Where the result of `weft compile PRESET ... -o NEW` is kept. Nothing where it may depend
        on more than its arguments and its environment (files, records of the cache, a GPU), and
        where a test asks a second time: what is compiled twice to be compared is compiled twice."""
        if self.has_empty_cache or arguments[:1] != ['compile'] or '-o' not in arguments[:-1]:
            return None
        parts = {part for argument in arguments for part in argument.split('=') if part}
        records = {path.name for path in self.cache.iterdir()} - set(SHARDS)
        if records or any(os.path.lexists(self.folder / part) for part in parts) or any(
                argument.startswith('--measure') for argument in arguments):
            return None
        read = tuple(
            sorted((name, value) for name, value in environment.items()
                   if READ_VARIABLES.match(name) and name != 'WEFT_CACHE_DIR'))
        key = hashlib.sha256(json.dumps([arguments, read, machine(read)]).encode()).hexdigest()
        if key in self.compiled_keys:
            return None
        self.compiled_keys.add(key)
        build = os.stat(WEFT)
        return ARTIFACTS / f'{build.st_mtime_ns}-{build.st_size}' / key

    def copy_artifact(self, kept, name):
        if not kept.is_dir():
            return None
        shutil.copytree(kept / 'artifact', self.folder / name)
        if (kept / 'times').is_dir():
            shutil.copytree(kept / 'times', self.cache / 'times')
        said = json.loads((kept / 'said.json').read_text())
        return subprocess.CompletedProcess([], 0, said['out'], said['err'])

    def keep_artifact(self, kept, name, completed):
        """Appears as a whole, by renaming; another process may have been first."""
        if not (self.folder / name).is_dir():
            return
        if not kept.parent.is_dir():
            shutil.rmtree(ARTIFACTS, ignore_errors=True)  # of an older build
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as temporary:
            whole = pathlib.Path(temporary) / 'whole'
            shutil.copytree(self.folder / name, whole / 'artifact')
            if (self.cache / 'times').is_dir():
                shutil.copytree(self.cache / 'times', whole / 'times')
            (whole / 'said.json').write_text(
                json.dumps({'out': completed.stdout, 'err': completed.stderr}))
            with contextlib.suppress(OSError):
                whole.rename(kept)

    def fails(self, code, *arguments, says=(), env=None):
        """Runs weft, which must fail with one message that holds every text of `says`, and print no
        result."""
        result = self.weft(*arguments, code=code, env=env)
        self.assertEqual(result.out, '')
        self.assertIn('weft: error: ', result.err)
        for text in says:
            self.assertIn(text, result.err)
        return result

    def checkSame(self, graph, other, *flags, within='1e-9'):
        """The interpreter finds results of both alike, on drawn inputs: in fp64 and unrounded, but
        for what `flags` say."""
        done = subprocess.run([
            pathlib.Path(WEFT).parent / 'weft-interpret', self.folder / graph, '--against',
            self.folder / other, '--absolute', within, '--relative', within, *flags
        ], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(' equal: ', done.stdout)

    def some(self, cases):
        """The cases of a loop; none at all is a failure, since the loop would check nothing."""
        cases = list(cases)
        self.assertTrue(cases, 'a loop has no cases')
        return cases

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding='utf-8')
        return path

    def write_manifested(self, folder, name, text, **members):
        """Writes a file of an artifact as if weft had written it: the manifest says so, too."""
        (self.folder / folder / name).write_text(text)
        path = self.folder / folder / 'manifest.json'
        manifest = json.loads(path.read_text())
        manifest['files'][name] = hashlib.sha256(text.encode()).hexdigest()
        manifest.update(members)
        path.write_text(json.dumps(manifest))

    def write_plan(self, folder, plan):
        self.write_manifested(folder, 'plan.json', json.dumps(plan), plan=plan)

    def files(self, folder='.'):
        """Every file below a folder with its bytes, the cache left out."""
        root = self.folder / folder
        return {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in sorted(root.rglob('*')) if path.is_file() and self.cache not in path.parents
        }

    def assertNothingLeft(self, before):
        """Nothing written, and no temporary folder left behind."""
        self.assertEqual(self.files(), before)

    def assertWholeArtifact(self, folder):
        """Every file the plan names is there, and weft can read it."""
        plan = json.loads((self.folder / folder / 'plan.json').read_text())
        for kernel in self.some(plan['kernels']):
            for name in (kernel['source'], kernel['cubin']):
                if name:
                    self.assertTrue((self.folder / folder / name).is_file(), name)
        self.weft('explain', folder)
        return plan
