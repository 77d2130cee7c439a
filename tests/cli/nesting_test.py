"""Texts that nest deeper than a stack may hold are rejected with their place before a parser
recurses; those at the limit are read."""
import json
import struct
import subprocess
import unittest

from weft_command import CommandTest, TINY, WEFT
import pathlib

BIN = pathlib.Path(WEFT).parent
FAR = 200_000  # levels that overflow the stack of whoever recurses


def graph(levels):
    """A module whose first graph carries an attribute of so many levels, one of them the
    attributes' own."""
    return (
        '!a = tensor<4x8xf32, #weft.axes<i, j>>\nmodule {\n  weft.graph @f(%x: !a) -> (!a) '
        'attributes {deep = '
        + '[' * levels + ']' * levels +
        '} {\n    %y = weft.relu %x : !a\n    weft.return %y : !a\n  }\n}\n')


class Nesting(CommandTest):
    def rejected(self, tool, *arguments, place):
        """By any of the commands: exit 2, with the place and the limit, and nothing on standard
        output."""
        run = subprocess.run([BIN / tool, *arguments], cwd=self.folder, env=self.environment(),
                             capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(run.returncode, 2,
                         f'{tool} {arguments}: {run.returncode}\n{run.stderr[-500:]}')
        self.assertEqual(run.stdout, '')
        self.assertIn(place, run.stderr)
        self.assertIn('at most 1000', run.stderr)

    def test_graphs(self):
        for name, text in {
                'attributes.mlir': graph(FAR), 'regions.mlir': 'module {' * FAR,
                'types.mlir': '!a = ' + 'tuple<' * FAR,
                'locations.mlir': 'module {} loc(' + '"a"(' * FAR,
                'expressions.mlir': '#m = affine_map<(d0) -> (' + '-' * FAR + 'd0)>'
        }.items():
            self.write(name, text)
            for tool, *arguments in (['weft',
                                      'import'], ['weft-opt'], ['weft-interpret', '--random', '1']):
                with self.subTest(name, tool=tool):
                    self.rejected(tool, *arguments, name, place=f'{name}:')

    def test_standard_input(self):
        run = subprocess.run([BIN / 'weft-opt'], input=graph(FAR), capture_output=True, text=True,
                             timeout=60, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn('<stdin>:3:', run.stderr)

    def test_what_is_at_the_limit_is_read(self):
        self.write('graph.mlir', graph(998))  # in the braces of module and of the attributes
        for tool, *arguments in (['weft',
                                  'import'], ['weft-opt'], ['weft-interpret', '--random', '1']):
            with self.subTest(tool):
                run = subprocess.run([BIN / tool, *arguments, 'graph.mlir'], cwd=self.folder,
                                     capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(run.returncode, 0, run.stderr[-500:])
        self.write('graph.mlir', graph(999))
        self.rejected('weft', 'import', 'graph.mlir', place='graph.mlir:3:')

    def test_config(self):
        self.write('config.json',
                   '{"model_type": "bert", "id2label": ' + '{"a": ' * FAR + '1' + '}' * FAR + '}')
        self.rejected('weft', 'import', 'config.json', place='config.json:1:')

    def test_artifact(self):
        self.weft('compile', *TINY, '-o', 'out', '--stop-after', 'emit')
        for name, command in (('plan.json', 'explain'), ('graph.mlir', 'explain'), ('report.json',
                                                                                    'explain')):
            path = self.folder / 'out' / name
            before = path.read_text()
            path.write_text(
                before.replace('{', '{"deep": ' + '[' * FAR + ']' * FAR + ', ', 1) if name.
                endswith('.json') else before.replace('weft.graph', '"a.b"() ({' * FAR +
                                                      'weft.graph', 1))
            with self.subTest(name):
                self.rejected('weft', command, 'out', place=f'{name}:')
            if name == 'plan.json':
                with self.subTest(name, tool='weft-run'):
                    self.rejected('weft-run', 'out', place=f'{name}:')
            path.write_text(before)

    def test_safetensors(self):
        self.write('graph.mlir', graph(1))
        header = json.dumps({'x': {'dtype': 'F32', 'shape': [4, 8], 'data_offsets': [0, 128]}})
        header = header.replace('{', '{"__metadata__": ' + '[' * FAR + ']' * FAR + ', ', 1).encode()
        (self.folder /
         'x.safetensors').write_bytes(struct.pack('<Q', len(header)) + header + bytes(128))
        self.rejected('weft-interpret', 'graph.mlir', '--inputs', 'x.safetensors', '--outputs', 'y',
                     place='x.safetensors')


if __name__ == '__main__':
    unittest.main()
