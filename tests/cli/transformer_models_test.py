"""The models that tests/gpu/transformers_test.py compares with `transformers`: each is built whole,
with what it says of itself. Needs no packages and no GPU."""
import json
import re
import subprocess
import sys
import unittest

from weft_command import ROOT, CommandTest

sys.path.insert(0, str(ROOT / 'tests/gpu'))
import transformer_models as models  # noqa: E402


class TransformerModelsTest(CommandTest):
    def imported(self, one, packed=False):
        config, mask = self.folder / f'{one.name}.json', self.folder / f'{one.name}.npy'
        config.write_text(json.dumps(one.config))
        if one.tile:
            mask.write_bytes(models.npy(models.tiles_of(one)))
        arguments = models.compile_arguments(one, config, mask, packed)
        return self.weft('compile', *arguments, '--stop-after', 'import').out

    def test_every_model_is_built_whole(self):
        for one in self.some(models.TINY + models.REAL):
            with self.subTest(one.name):
                graph = self.imported(one)
                layers = next(one.config[key] for key in
                              ('num_hidden_layers', 'n_layer', 'n_layers', 'num_layers')
                              if key in one.config)
                softmaxes = layers * (2 if one.global_positions else 1)
                self.assertEqual(graph.count('weft.softmax '), softmaxes)
                self.assertEqual('%logits =' in graph, one.has_logits)
                self.assertEqual('%types' in graph, one.config.get('type_vocab_size', 2) > 0
                                 and one.config['model_type'] in
                                 ('albert', 'bert', 'big_bird', 'camembert', 'longformer',
                                  'roberta', 'xlm-roberta'))
                self.assertIn('xf16', graph)
                if one.ragged:
                    self.assertIn('%lengths', self.imported(one, packed=True))

    def test_the_models_that_are_asked_for_are_there(self):
        types = {one.config['model_type'] for one in models.REAL}
        self.assertEqual(types, {
            'bert', 'albert', 'distilbert', 'deberta', 'gpt2', 'llama', 'big_bird', 'longformer',
            'gpt_neo'
        })
        # Whole models are those of every family of the page but T5.
        page = (ROOT / 'docs/config-json.md').read_text().split('No key passes unseen')[0]
        listed = set(re.findall(r'`([a-z0-9_-]+)`', page)) - {'t5'}
        self.assertGreater(len(listed), 18)
        compared = {one.config['model_type'] for one in models.TINY}
        self.assertEqual(compared | set(models.NOT_COMPARED), listed)
        self.assertFalse(compared & set(models.NOT_COMPARED))
        self.assertIn('llama3', [one.config.get('rope_scaling', {}).get('rope_type')
                                 for one in models.TINY])
        self.assertTrue([one for one in models.TINY if one.shard])
        names = [one.name for one in models.TINY + models.REAL]
        self.assertEqual(len(set(names)), len(names))

    def test_block_masks_have_a_window_global_tiles_and_random_ones(self):
        for one in self.some([one for one in models.TINY + models.REAL if one.tile]):
            tiles = models.tiles_of(one)
            count = one.tokens[1] // one.tile
            self.assertEqual((len(tiles), {len(row) for row in tiles}), (count, {count}))
            for number, row in enumerate(tiles):
                self.assertTrue(row[0] and row[-1] and row[number])
                if 1 < number < count - 2:
                    self.assertEqual(sum(row), min(count, 8))
            self.assertEqual(tiles, models.tiles_of(one))

    def test_a_skipped_comparison_says_what_is_missing(self):
        code = ("import sys; sys.modules['torch'] = None; sys.path.insert(0, sys.argv[1]);"
                "sys.argv = ['transformers_test.py', '.']; import transformers_test;"
                "sys.exit(transformers_test.main())")
        done = subprocess.run([sys.executable, '-c', code, str(ROOT / 'tests/gpu')],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 77, done.stderr)
        self.assertIn('skipped: ', done.stdout)


if __name__ == '__main__':
    unittest.main()
