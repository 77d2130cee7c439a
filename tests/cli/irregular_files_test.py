"""Pipes, devices and folders where a file is asked for: rejected by name, without waiting."""
import os
import shutil
import unittest

from weft_command import CommandTest, TINY


class IrregularFiles(CommandTest):
    QUIET = {'WEFT_NVRTC': 'none'}
    LIMIT = 20  # seconds; a command that reads such a file has no end

    def rejected(self, path, *arguments):
        result = self.weft(*arguments, code=2, env=self.QUIET, timeout=self.LIMIT)
        self.assertEqual(result.out, '')
        self.assertIn('weft: error: ', result.err)
        self.assertIn(str(path), result.err)
        return result.err

    def replacements(self, path):
        """Puts what is no regular file in its place, one after another."""
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        yield 'pipe'
        path.unlink()
        path.symlink_to('/dev/zero')
        yield 'device'
        path.unlink()
        path.mkdir()
        yield 'folder'
        path.rmdir()

    def test_parts_of_an_artifact(self):
        self.weft('compile', *TINY, '-o', 'good', env=self.QUIET)
        kernel = next((self.folder / 'good/kernels').glob('*.cu')).name
        for name in ('plan.json', 'graph.mlir', 'report.json', 'manifest.json',
                     f'kernels/{kernel}'):
            shutil.rmtree(self.folder / 'out', ignore_errors=True)
            shutil.copytree(self.folder / 'good', self.folder / 'out')
            for kind in self.replacements(self.folder / 'out' / name):
                for command in (['explain', 'out'], ['emit', 'out'], ['run', 'out', '--check']):
                    with self.subTest(name=name, kind=kind, command=command):
                        self.rejected(name, *command)

    def test_models(self):
        for name in ('model.mlir', 'config.json'):
            path = self.folder / name
            for kind in self.replacements(path):
                with self.subTest(name=name, kind=kind):
                    self.rejected(name, 'compile', name, '-o', 'out')

    def test_profiles_and_stores(self):
        for name in ('profile.txt', 'profile.db'):
            path = self.folder / name
            for kind in self.replacements(path):
                with self.subTest(name=name, kind=kind):
                    self.rejected(name, 'select', *TINY, '--profile', name)
        self.assertIn('no regular file', self.rejected('/dev/zero', 'select', *TINY, '--profile',
                                                      '/dev/zero'))


if __name__ == '__main__':
    unittest.main()
