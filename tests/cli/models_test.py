"""weft models: what it lists is what compiles, and nothing else does."""
import json
import unittest

from weft_command import CommandTest

PARTS, TYPES = ('layer', 'attention', 'model'), ('f16', 'bf16', 'f32')
MASKS = ('causal', 'window=N', 'padding', 'document')
FORMS = ('alibi', 'relative=N', 'softcap=C')
UNTRAINED = {'deberta-base', 't5-base-decoder', 't5-base-encoder'}
SMALL = {'b': 1, 'j': 8, 'h': 2, 'i': 8, 'u': 8, 'p': 4, 'g': 1, 'a': 2, 's': 2, 'v': 8, 'd': 8}


class ModelsTest(CommandTest):
    def setUp(self):
        super().setUp()
        said = self.weft('models', '--json').json()
        self.models, self.types = said['models'], said['modelTypes']
        self.assertGreater(len(self.models), 6)
        self.assertGreater(len(self.types), 6)

    def test_the_list_names_all(self):
        text = self.weft('models').out
        for model in self.models:
            self.assertRegex(text, rf"(?m)^{model['name']} ")
        for family in self.types:
            self.assertIn(family['modelType'], text)

    def test_details_name_every_extent_and_key(self):
        for model in self.models:
            text = self.weft('models', model['name']).out
            for dim in model['dims']:
                self.assertIn(f"{dim['name']}={dim['default']}", text)
                self.assertTrue(dim['meaning'])
            self.assertEqual(self.weft('models', model['name'], '--json').json()['models'], [model])
        for family in self.types:
            text = self.weft('models', family['modelType']).prose()
            for key in family['keys']:
                self.assertIn(key['name'], text)

    def test_shapes_are_those_of_the_graphs(self):
        for model in self.models:
            dims = self.weft('import', model['name'], '--dtype', model['dtypes'][0],
                             '--json').json()['dims']
            for dim in model['dims']:
                self.assertEqual(dim['default'], dims[dim['name']], (model['name'], dim))

    def test_parts_types_and_training_are_as_listed(self):
        for model in self.models:
            known = [dim['name'] for dim in model['dims'] if not dim['follows']]
            small = [word for name in known for word in ('--dim', f'{name}={SMALL[name]}')]
            for part in PARTS:
                listed = part in model['parts']
                flags = [name for name in small] if part != 'attention' else [
                    word for name in known if name != 'u'
                    for word in ('--dim', f'{name}={SMALL[name]}')
                ]
                self.weft('import', model['name'], *flags, '--part', part, '--dtype',
                          model['dtypes'][0], code=0 if listed else 3)
            for dtype in TYPES:
                self.weft('import', model['name'], *small, '--dtype', dtype,
                          code=0 if dtype in model['dtypes'] else 3)
            self.assertEqual(model['train'], model['name'] not in UNTRAINED)
            self.weft('compile', model['name'], *small, '--train', '--dtype', model['dtypes'][0],
                      '--stop-after', 'differentiate', code=0 if model['train'] else 3)

    def test_masks_are_as_listed(self):
        for model in self.models:
            for mask in (*MASKS, 'butterfly(..)'):
                given = ('import', model['name'], '--mask',
                         mask.replace('N', '4').replace('(..)', ''), '--dtype', model['dtypes'][0])
                if mask in model['masks']:
                    self.assertIn('weft.mask ', self.weft(*given).out)
                else:
                    self.fails(2, *given, says=[model['name'], 'nearest is'])
            text = self.weft('models', model['name']).out
            for mask in model['masks']:
                self.assertIn(mask, text)

    def test_forms_of_scores_are_as_listed(self):
        self.assertEqual([model['name'] for model in self.models if model['scores']], ['attention'])
        for model in self.models:
            for form in FORMS:
                given = ('import', model['name'], '--score',
                         form.replace('N', '4').replace('=C', '=4'), '--dtype', model['dtypes'][0])
                if form in model['scores']:
                    self.assertNotEqual(self.weft(*given).out, self.weft(*given[:2]).out)
                else:
                    self.fails(2, *given, says=[model['name'], "nearest is the preset 'attention'"])
            text = self.weft('models', model['name']).out
            self.assertEqual(all(form in text for form in FORMS), bool(model['scores']))

    def test_dims_are_the_settable_ones(self):
        for model in self.models:
            names = [dim['name'] for dim in model['dims']]
            for name in set('bdjkhgpwiuvm') - set(names):
                self.fails(2, 'import', model['name'], '--dim', f'{name}=8', '--dtype',
                           model['dtypes'][0], says=[f"unknown dimension '{name}'"])

    def test_keys_of_config_json_are_those_that_are_read(self):
        """A file of the required keys compiles; without one of them it does not."""
        for family in self.types:
            required = [key['name'] for key in family['keys'] if key['required']]
            self.assertTrue(required, family)
            values = {name: 32 if 'head' in name else 64 for name in required}
            for missing in [None, *required]:
                config = {
                    'model_type': family['modelType'],
                    **{name: value
                       for name, value in values.items() if name != missing}
                }
                self.write('config.json', json.dumps(config))
                result = self.weft('import', 'config.json', code=2 if missing else 0)
                if missing:
                    self.assertIn('config.json', result.err)

    def test_a_model_and_a_model_type_of_one_name(self):
        said = self.weft('models', 'gpt2', '--json').json()
        self.assertEqual(
            ([one['name']
              for one in said['models']], [one['modelType'] for one in said['modelTypes']]),
            (['gpt2'], ['gpt2']))


if __name__ == '__main__':
    unittest.main()
