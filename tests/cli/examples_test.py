"""The graphs of examples/ compile with the commands of their first lines, and show what these
say."""
import json
import re
import unittest

from weft_command import ROOT, CommandTest

FOLDER = ROOT / 'examples'
# By the folder that a command writes: the ops of each launch, in their order.
SHOWN = {
    'biased_attention': {
        'out': ['contract add online_softmax_contract'],
        'apart': ['contract', 'add softmax', 'contract'],
        'split': ['contract add local_softmax', 'reduce_subvectors', 'global_scaling contract'],
        'trained': [
            'contract add online_softmax_contract', 'cast mul reduce',
            'contract contract add softmax_from_log_sums contract sub mul contract contract',
            'reduce'
        ]
    },
    'gated_feed_forward': {
        'out': ['rms_norm', 'contract', 'slice', 'slice', 'silu mul', 'contract residual',
                'rms_norm']
    }
}
ELSEWHERE = {'two_softmaxes'}  # commands_test.py, readme_test.py


class ExamplesTest(CommandTest):
    def commands(self, name):
        text = (FOLDER / f'{name}.mlir').read_text()
        self.assertTrue(text.startswith('// '), name)
        return re.findall(r'^//   weft (.*)$', text, re.MULTILINE)

    def launches(self, folder):
        kernels = self.weft('explain', folder, '--json').json()['kernels']
        return [' '.join(re.search(r'= (\w+)', op)[1] for op in kernel['ops'])
                for kernel in kernels]

    def test_every_example_is_tested_and_named(self):
        names = {path.stem for path in FOLDER.glob('*.mlir')}
        self.assertEqual(names, ELSEWHERE | set(SHOWN))
        page = (ROOT / 'docs/tutorial.md').read_text()
        for name in names:
            self.assertIn(f'(../examples/{name}.mlir)', page)

    def test_commands_show_what_the_first_lines_say(self):
        for name, folders in SHOWN.items():
            with self.subTest(name):
                for command in self.some(self.commands(name)):
                    self.weft(*command.replace('examples/', f'{FOLDER}/').split())
                for folder, launches in folders.items():
                    self.assertEqual(sorted(self.launches(folder)), sorted(launches))
                    self.assertWholeArtifact(folder)
                    self.weft('run', folder, '--check')

    def test_the_residual_is_stored_once(self):
        command = self.commands('gated_feed_forward')[0]
        self.weft(*command.replace('examples/', f'{FOLDER}/').split())
        plan = json.loads((self.folder / 'out/plan.json').read_text())
        stored = [tensor for tensor in plan['tensors'] if tensor['logical'] == 'residual']
        self.assertEqual([tensor['role'] for tensor in stored], ['result'])


if __name__ == '__main__':
    unittest.main()
