"""Runs the built `weft` as its users do: by its command line, judged by exit code, messages and
files."""
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEFT = os.environ.get('WEFT', str(ROOT / 'build/dev/bin/weft'))

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


class CommandTest(unittest.TestCase):
    """Each test gets an empty folder, which is the current one, and an empty cache."""
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-cli-'))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cache = self.folder / 'cache'

    def environment(self, **changes):
        environment = {**os.environ, 'WEFT_CACHE_DIR': str(self.cache), **changes}
        return {name: value for name, value in environment.items() if value is not None}

    def weft(self, *arguments, code=0, env=None, timeout=300):
        """Runs weft and checks its exit code; `env` changes variables (None removes one)."""
        completed = subprocess.run([WEFT, *map(str, arguments)], cwd=self.folder,
                                   env=self.environment(**(env or {})), capture_output=True,
                                   text=True, timeout=timeout, check=False)
        self.assertEqual(completed.returncode, code,
                         f'weft {arguments}\n{completed.stdout}\n{completed.stderr}')
        return Result(completed)

    def fails(self, code, *arguments, says=(), env=None):
        """Runs weft, which must fail with one message that holds every text of `says`, and print no
        result."""
        result = self.weft(*arguments, code=code, env=env)
        self.assertEqual(result.out, '')
        self.assertIn('weft: error: ', result.err)
        for text in says:
            self.assertIn(text, result.err)
        return result

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
