"""Preset portable: weft and weft-run of a static LLVM start from any folder, need libc and the C++
runtime alone, and make the same artifact as the build that is developed with."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import preset_build

DEV = os.environ.get('WEFT', str(preset_build.ROOT / 'build/dev/bin/weft'))
RUNTIME = {
    'libc', 'libm', 'libdl', 'libpthread', 'librt', 'libgcc_s', 'libstdc++', 'linux-vdso',
    'ld-linux-x86-64', 'ld-linux-aarch64'
}
MODEL = ['attention', '--dim', 'b=2', '--dim', 'j=16', '--dim', 'h=2', '--dim', 'p=16']


def without_report(text):
    manifest = json.loads(text)
    del manifest['files']['report.json']
    return manifest


class Portable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        binaries = preset_build.build('portable', 'weft', 'weft-run') / 'bin'
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix='weft-portable-'))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        for name in ('weft', 'weft-run'):  # as on another machine: nothing lies beside them
            shutil.copy(binaries / name, cls.folder)

    def run_here(self, program, *arguments):
        environment = {'PATH': '/usr/bin:/bin', 'HOME': str(self.folder), 'WEFT_NVRTC': 'none'}
        result = subprocess.run([program, *arguments], cwd=self.folder, env=environment,
                                capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout

    def test_needs_the_runtime_alone(self):
        for name in ('weft', 'weft-run'):
            libraries = re.findall(r'^\s*(?:\S*/)?([^\s/]+?)\.so',
                                   self.run_here('ldd', self.folder / name), re.MULTILINE)
            self.assertIn('libc', libraries)
            self.assertEqual(set(libraries) - RUNTIME, set(), name)

    def test_compiles_as_the_other_build_does(self):
        self.run_here(self.folder / 'weft', 'compile', *MODEL, '-o', 'here')
        self.run_here(DEV, 'compile', *MODEL, '-o', 'there')
        files = sorted(
            path.relative_to(self.folder / 'there') for path in (self.folder / 'there').rglob('*')
            if path.is_file())
        self.assertIn(pathlib.Path('plan.json'), files)
        self.assertTrue([path for path in files if path.suffix == '.cu'])
        for path in files:
            here, there = ((self.folder / name / path).read_bytes() for name in ('here', 'there'))
            if path.name == 'report.json':  # holds times of the host
                continue
            if path.name == 'manifest.json':  # holds the hash of report.json
                here, there = (without_report(text) for text in (here, there))
            self.assertEqual(here, there, path)
        self.run_here(self.folder / 'weft', 'explain', 'here')

    def test_the_runtime_starts(self):
        self.assertIn('artifact', self.run_here(self.folder / 'weft-run', '--help'))


if __name__ == '__main__':
    unittest.main()
