"""What is cut short, killed or raced: nothing half-written, nothing lost, and the next command
works."""
import json
import shutil
import signal
import subprocess
import time
import unittest

import artifact_test
import bad_model_test
from weft_command import CommandTest, TINY, WEFT, with_empty_cache


class CutShort(CommandTest):
    """Files that end anywhere: an error that names the file, never a crash or a result."""
    CUTS = 24

    def rejects_every_cut(self, name, text, *command, whole=0):
        for cut in range(self.CUTS):
            self.write(name, text[:len(text) * cut // self.CUTS])
            before = self.files()
            with self.subTest(cut=cut):
                self.fails(2, *command, says=[name.rpartition('/')[2]])
                self.assertNothingLeft(before)
        self.write(name, text)
        self.weft(*command, code=whole)

    def test_config(self):
        self.rejects_every_cut('config.json', json.dumps(bad_model_test.BERT), 'compile',
                               'config.json', '-o', 'out')

    def test_graph(self):
        self.rejects_every_cut('graph.mlir',
                               bad_model_test.BadGraph.GRAPH.replace('SPEC', 'ik,kj->ij').rstrip(),
                               'compile', 'graph.mlir', '-o', 'out')

    def test_graph_of_a_model(self):
        text = self.weft('import', *TINY[:13]).out
        self.rejects_every_cut('graph.mlir', text.rstrip(), 'import', 'graph.mlir')

    def test_plan(self):
        self.weft('compile', *TINY, '-o', 'out')
        self.rejects_every_cut('out/plan.json',
                               (self.folder / 'out/plan.json').read_text().rstrip(), 'emit', 'out')

    def test_candidates(self):
        text = self.weft('compile', *TINY, '--stop-after', 'fuse').out
        self.rejects_every_cut('fuse.mlir', text.rstrip(), 'select', 'fuse.mlir', '--start-from',
                               'select')


@with_empty_cache
class Interrupted(CommandTest):
    def test_killed_compile_leaves_no_artifact_and_the_next_one_works(self):
        for delay in (0.05, 0.3, 1.0):
            process = subprocess.Popen([WEFT, 'compile', *TINY, '-o', 'out'], cwd=self.folder,
                                       env=self.environment(), stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            time.sleep(delay)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if (self.folder / 'out').exists():
                self.assertWholeArtifact('out')
        self.weft('compile', *TINY, '-o', 'out')
        self.assertWholeArtifact('out')
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ['cache', 'out'])
        self.weft('cache', 'verify')

    def test_two_compiles_into_one_cache(self):
        command = [WEFT, 'compile', *TINY, '-o']
        running = [
            subprocess.Popen([*command, name], cwd=self.folder, env=self.environment(),
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for name in ('a', 'b')
        ]
        for process in running:
            _, message = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, message)
        self.assertEqual(self.files('a'), self.files('b'))
        self.weft('cache', 'verify')

    def test_lost_cache_is_rebuilt(self):
        self.weft('compile', *TINY, '-o', 'a')
        shutil.rmtree(self.cache, ignore_errors=True)
        self.weft('compile', *TINY, '-o', 'b')
        self.assertEqual(self.files('a'), self.files('b'))

    def test_two_compiles_into_one_folder(self):
        """Each replaces the folder as a whole: what is there at the end is one of them."""
        for _ in range(3):
            running = [
                subprocess.Popen([WEFT, 'compile', *TINY, '--dtype', dtype, '-o', 'out'],
                                 cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE) for dtype in ('f16', 'f32')
            ]
            for process in running:
                _, message = process.communicate(timeout=300)
                self.assertEqual(process.returncode, 0, message)
            self.assertIn(self.assertWholeArtifact('out')['dtype'], ('f16', 'f32'))
            self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ['cache', 'out'])

    def test_crashing_worker_costs_its_kernel_only(self):
        """The other kernels of the build are in the cache afterwards, and the repaired kernel
        builds."""
        self.weft('compile', *TINY, '-o', 'out')
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        if not any(kernel['cubin'] for kernel in plan['kernels']):
            self.skipTest('no NVRTC')
        self.weft('cache', 'gc', '--keep', '0')
        kernel = next(kernel for kernel in plan['kernels'] if kernel['source'])
        source = self.folder / 'out' / kernel['source']
        text = source.read_text()
        source.write_text(text + artifact_test.CRASHING.replace('NAME', 'crashing'))
        self.fails(1, 'emit', 'out', says=[kernel['name'], 'worker crashed'])
        self.weft('cache', 'verify')
        others = {other['cubin'] for other in plan['kernels'] if other['cubin']} - {kernel['cubin']}
        self.assertEqual(self.weft('cache', 'stat', '--json').json()['entries'], len(others))
        source.write_text(text)
        self.assertEqual(self.weft('emit', 'out', '--json').json()['cubins']['built'], 1)


if __name__ == '__main__':
    unittest.main()
