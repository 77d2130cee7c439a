"""--json of every command: an object with a version that fits its schema (docs/schema), and holds
every price that the text shows. The examples of docs/json.md fit the schemas, too."""
import json
import pathlib
import re
import subprocess
import unittest

import json_schema
from weft_command import CommandTest, CORE, LAYER, ROOT, TINY, WEFT, with_empty_cache

# Members of one form of an answer alone, which its schema cannot require.
MOVEMENT_OF_A_PLAN = ['classes', 'edits', 'fused', 'kernels', 'moved', 'percentOfPeak', 'unfused']
OF_A_CHECK = {'failing', 'maxError', 'ofBound', 'passed', 'points', 'problem'}
DRIVER = pathlib.Path(WEFT).resolve().parents[1] / 'tests/fakecuda/libcuda.so.1'
NO_NVRTC = {'WEFT_NVRTC': 'none'}
ALONE = [*CORE, '--no-library', '--profile', 'none', '--attention', 'unfused']
SLOW_VIEWS = ('--layout', '--memory', '--attention')
UNITS = {
    'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 's': 1, 'B': 1, 'kB': 1e3, 'MB': 1e6, 'GB': 1e9, 'TB': 1e12
}
QUANTITY = re.compile(r'(?<![\w.])(\d+(?:\.\d+)?) (ns|us|ms|s|B|kB|MB|GB|TB)(?![\w/])')


def numbers(value):
    """Every number in a JSON value, wherever it stands; differences of a pair, too, as diff shows
    them."""
    if isinstance(value, bool):
        return []
    if isinstance(value, (int, float)):
        return [value]
    found = [
        number for item in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list) else [])
        for number in numbers(item)
    ]
    if isinstance(value, dict) and set(value) == {'a', 'b'} and all(
            isinstance(value[side], (int, float)) for side in 'ab'):
        found.append(value['b'] - value['a'])
    return found


def missing(text, said):
    """Times and sizes of the text that no number of the JSON is, to the digits that the text shows,
    and that no string of it says."""
    known, strings = numbers(said), json.dumps(said)
    absent = []
    for match in QUANTITY.finditer(' '.join(text.split())):
        shown, unit = match.group(1), match.group(2)
        half = 0.5 * 10**-len(shown.partition('.')[2]) * UNITS[unit] * (1 + 1e-6)
        if float(shown) and match.group(0) not in strings and not any(
                abs(abs(number) - float(shown) * UNITS[unit]) <= half for number in known):
            absent.append(match.group(0))
    return absent


class JsonTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.driver = self.folder / 'driver'
        self.driver.mkdir()
        (self.driver / 'libcuda.so.1').symlink_to(DRIVER)

    def said(self, *arguments, schema, code=0, env=None, has=()):
        """`has`: members that the schema leaves out of some answers, and not of this one."""
        result = self.weft(*arguments, '--json', code=code, env=env)
        value = result.json()
        self.assertEqual(value['version'], 1)
        try:
            json_schema.validate(value, schema + '.json')
        except json_schema.Mismatch as problem:
            self.fail(f'weft {" ".join(map(str, arguments))}: {schema}.json: {problem}')
        for member in has:
            self.assertIn(member, value, arguments)
        return value

    def with_driver(self, **settings):
        (self.driver / 'fakecuda.txt').write_text(''.join(f'{name} {value}\n'
                                                          for name, value in settings.items()))
        return {'LD_LIBRARY_PATH': str(self.driver)}

    def artifacts(self):
        self.weft('compile', *LAYER, '--attention', 'unfused', '-o', 'a', env=NO_NVRTC)
        self.weft('compile', *TINY, '--fuse-rules', 'none', '-o', 'b', env=NO_NVRTC)
        self.weft('compile', *TINY, '--train', '-o', 'train', env=NO_NVRTC)
        self.weft('compile', *CORE, '--attention', 'unfused', '--chunks', '2', '-o', 'chunks',
                  env=NO_NVRTC)


class SchemaTest(JsonTest):
    @with_empty_cache
    def test_commands_without_a_gpu(self):
        self.artifacts()
        for name in ('a', 'train', 'chunks'):
            self.said('explain', name, schema='explain')
            self.said('explain', name, '--movement', schema='explain-movement',
                      has=MOVEMENT_OF_A_PLAN)
            self.said('explain', name, '--fusion', 'score,probability', schema='explain-fusion')
            self.said('explain', name, '--fusion',
                      'score,weighted' if name == 'chunks' else 'q,score', schema='explain-fusion')
            # The slow views of the others are compared with their schemas by PricesTest.
            if name == 'chunks':
                self.said('explain', name, '--layout', 'score', schema='explain-layout')
                self.said('explain', name, '--memory', schema='explain-memory')
                self.said('explain', name, '--attention', schema='explain-attention')
            kernel = json.loads(
                (self.folder / name / 'plan.json').read_text())['kernels'][-1]['name']
            self.said('explain', name, '--kernel', kernel, schema='explain-kernel')
        self.weft('compile', *LAYER, '--ragged', 'j', '--dropout', '0', '--attention', 'unfused',
                  '--stacking', 'three', '--lengths', 'mean=0.5', '-o', 'packed', env=NO_NVRTC)
        self.said('explain', 'packed', '--fills', schema='explain-fills')
        self.said('explain', *TINY, '--movement', schema='explain-movement')
        self.assertTrue(
            self.said('explain', *CORE, '--memory', schema='explain-frontier')['frontier'])
        self.said('compile', *TINY, '-o', 'again', schema='compile', env=NO_NVRTC)
        self.said('emit', 'again', schema='compile', env=NO_NVRTC)
        self.assertTrue(self.said('emit', 'again', '--check', schema='emit-check')['holds'])
        source = next((self.folder / 'again/kernels').glob('*.cu'))
        source.write_text(source.read_text() + '// mine\n')
        check = self.said('emit', 'again', '--check', schema='emit-check', code=1)
        self.assertEqual((check['holds'], check['edited']), (False, [f'kernels/{source.name}']))
        self.said('compile', *TINY, '--stop-after', 'fuse', schema='opt-records')
        self.said('compile', *TINY, '--stop-after', 'configure', schema='opt-candidates')
        self.said('import', *LAYER, schema='import', has=['dtype', 'graph'])
        self.said('opt', *LAYER, schema='opt')
        self.said('opt', *TINY, '--records', schema='opt-records')
        self.said('opt', *TINY, '--candidates', schema='opt-candidates')
        self.said('select', *LAYER, schema='select')
        self.said('select', *CORE, '--max-memory', '1K', schema='select')
        self.said('select', *CORE, '--pin', 'score=bhjk', schema='select')
        self.said('diff', 'a', 'b', schema='diff', code=1)
        self.said('diff', 'a', 'a', schema='diff')
        self.said('diff', 'a', 'train', schema='diff', code=1)
        self.said('models', schema='models')
        self.said('models', 'gpt2', schema='models')
        self.said('devices', schema='devices')
        self.said('devices', 'h200', schema='devices')
        self.said('env', schema='env')
        self.said('cache', 'stat', schema='cache', has=['folder', 'entries', 'bytes'])
        self.said('cache', 'verify', schema='cache', has=['entries', 'broken'])
        self.said('cache', 'gc', schema='cache', has=['freedBytes'])
        self.said('profile', *TINY, '--dry-run', schema='profile-dry-run')
        self.said('profile', 'import', 'some.db', ROOT / 'profiles/h200/norms.txt',
                  schema='profile-import')

    def test_all_models_in_inference_and_training(self):
        """The members whose types vary with the model: kept tensors with and without a price,
        stages, absent facts."""
        small = dict(b=1, j=16, h=2, i=64, u=96, p=16, g=1, a=2, s=2, v=16)
        shown = set()
        for model in self.some(self.weft('models', '--json').json()['models']):
            dims = [
                word for dim in model['dims'] if not dim['follows']
                for word in ('--dim', f"{dim['name']}={small[dim['name']]}")
            ]
            # The layers of a whole model have the choices that one layer has.
            fewer = ['--attention', 'unfused', '--recompute', 'none'] if '--dim v=16' in ' '.join(
                dims) else []
            for flags in ([], ['--train', *fewer])[:2 if model['train'] else 1]:
                self.said('compile', model['name'], *dims, *flags, '--stacking', 'separate',
                          '--stop-after', 'emit', '-o', 'out', schema='compile')
                said = self.said('explain', 'out', schema='explain')
                shown |= {type(one['lossOfOther']).__name__ for one in said['saved']}
        self.assertEqual(shown, {'NoneType', 'float'})
        self.said('import', *TINY[:-4], '-o', 'graph.mlir', schema='import')
        self.said('explain', 'F024', schema='explain-code')
        self.said('explain', 'codes', schema='explain-codes')

    def test_distributions_and_cache_keys(self):
        self.weft('compile', 'bert-large', '--dim', 'b=1', '-o', 'bert', env=NO_NVRTC)
        self.said('explain', 'bert', '--distributions', schema='explain-distributions')
        if 'NVRTC: none' not in self.weft('env').out:
            self.said('explain', 'bert', '--cache-miss', schema='explain-cache')

    def test_commands_on_a_gpu(self):
        """On the stand-in for the driver, whose kernels compute nothing."""
        env = self.with_driver(launchNanoseconds=2000)
        self.weft('compile', *ALONE, '-o', 'plan')
        self.said('run', 'plan', schema='run', env=env)
        self.said('run', 'plan', '--check', schema='run-check', env=env)
        self.said('time', 'plan', '--rounds', '2', schema='time', env=env)
        self.said('time', 'plan', '--rounds', '2', '--against', 'plan', schema='time', env=env,
                  has=['timesAsFast'])
        self.weft('compile', *ALONE, '--measure=2', '-o', 'timed', env=env)
        self.said('explain', 'timed', schema='explain')
        self.said('profile', *CORE, '--attention', 'unfused', '--no-library', '--layouts', '1',
                  '--knobs', '1', '--only', 'softmax', '--store', 'rows.db', schema='profile',
                  env={**env, 'WEFT_CUBLASLT': 'none'})
        verdict = self.said('verify', 'plan', '--samples', '4', '--kernels-only', schema='verify',
                            code=1, env=env)
        for kernel in self.some(one for one in verdict['kernels'] if one['checked']):
            self.assertLessEqual(OF_A_CHECK, set(kernel))

    def test_json_is_printed_or_rejected_by_every_command(self):
        """Where a command writes text of another kind, --json is rejected with the nearest
        alternative; nothing but one object is ever on standard output."""
        self.weft('compile', *TINY, '-o', 'plan', env=NO_NVRTC)
        before = self.files()
        for phase, nearest in (('import', 'weft import'), ('differentiate', 'weft opt'),
                               ('algebra', 'weft opt'), ('attention', 'weft opt'),
                               ('select', 'weft select'), ('lower', 'weft compile')):
            for output in ([], ['-o', 'text']):
                said = self.said('compile', *TINY, '--train', '--stop-after', phase, *output,
                                 schema='error', code=2)['error']['message']
                self.assertIn(f'compile --stop-after {phase} writes ', said)
                self.assertIn(f"nearest is '{nearest} ", said)
        text = ROOT / 'profiles/h200/norms.txt'
        for arguments, says in (
            (['compile', 'plan', '--start-from', 'lower', '--stop-after', 'lower'], 'nearest is'),
            (['profile', 'export', text], 'nearest is'),
            (['profile', 'export', text, '-o', 'rows.txt'], 'nearest is'),
            (['select', *TINY, '--dot', '-'], '--dot FILE --json'),
            (['select', *TINY, '-o', '-'], '-o FILE --json')):
            self.assertIn(says, self.said(*arguments, schema='error', code=2)['error']['message'])
        self.assertEqual(self.files(), before)
        self.said('select', *TINY, '--dot', 'graph.dot', '-o', 'graph.mlir', schema='select')
        self.said('import', *TINY[:-4], schema='import')

    def test_errors(self):
        self.said('compile', 'bert-larg', '-o', 'out', schema='error', code=2)
        self.said('no-such-command', schema='error', code=2)
        self.said('compile', *TINY, '--target', 'sm_91', '-o', 'out', schema='error', code=3)


class PricesTest(JsonTest):
    """What the text prints is in the JSON."""
    @with_empty_cache
    def test_every_price_of_the_text(self):
        self.artifacts()
        self.weft('compile', 'bert-large', '--dim', 'b=1', '-o', 'bert', env=NO_NVRTC)
        self.weft('compile', 'bert-large', '--dim', 'b=1', '--pin', 'q=hbpj', '-o', 'pinned',
                  env=NO_NVRTC)
        cases = [['explain', name, *view] for name in ('a', 'train', 'bert', 'pinned') for view in (
            [], ['--fusion', 'score,q'], ['--fusion', 'q_product,k_product'], ['--layout', 'score'],
            ['--layout', 'q'], ['--layout', 'x'], ['--movement'], ['--memory'], ['--attention'],
            ['--kernel', 'softmax' if name != 'bert' and name != 'pinned' else 'q_product'])]
        cases += [['select', 'bert-large', '--dim', 'b=1'], ['select', *LAYER],
                  ['select', *CORE, '--pin', 'score=bhjk'], ['diff', 'a', 'b'],
                  ['diff', 'bert', 'pinned'], ['opt', *TINY, '--records'],
                  ['compile', *TINY, '-o', 'again'], ['cache', 'stat'], ['devices'],
                  ['explain', 'bert', '--distributions']]
        shown = 0
        for arguments in cases:
            with self.subTest(' '.join(map(str, arguments))):
                completed = [
                    subprocess.run([WEFT, *arguments, *flags], cwd=self.folder,
                                   env=self.environment(**NO_NVRTC), capture_output=True, text=True,
                                   timeout=300, check=False) for flags in (['--wide'], ['--json'])
                ]
                self.assertEqual([one.returncode for one in completed],
                                 [1, 1] if arguments[0] == 'diff' else [0, 0], completed[0].stderr)
                text = re.sub(r'selected in [\d.]+ \w+', '',
                              completed[0].stdout)  # a time of the host, another each time
                shown += len(QUANTITY.findall(text))
                said = json.loads(completed[1].stdout)
                self.assertEqual(missing(text, said), [])
                view = (arguments[2:] or [''])[0]
                if arguments[0] == 'explain' and view in SLOW_VIEWS:
                    json_schema.validate(said, f'explain{view[1:]}.json')
        self.assertGreater(shown, 500)


class DocumentTest(unittest.TestCase):
    TEXT = (ROOT / 'docs/json.md').read_text(encoding='utf-8')

    def test_examples_fit_the_schemas(self):
        examples = re.findall(r'^```json schema=(\S+)\n(.*?)^```$', self.TEXT,
                              re.MULTILINE | re.DOTALL)
        self.assertGreater(len(examples), 4)
        self.assertEqual(len(examples), self.TEXT.count('```json'))
        for name, text in examples:
            with self.subTest(name):
                json_schema.validate(json.loads(text), name)

    def test_answers_of_an_h200_fit_the_schemas(self):
        """Members that the stand-in driver leaves empty: clocks, times, correlations, losses."""
        answers = sorted((ROOT / 'tests/cli/gpu_answers').glob('*.json'))
        self.assertEqual(len(answers), 6)
        for answer in answers:
            with self.subTest(answer.name):
                schema = answer.name.replace('-against', '')
                json_schema.validate(json.loads(answer.read_text(encoding='utf-8')), schema)

    def test_no_member_is_always_null(self):
        def nulls(schema, where, is_alternative=False):
            if isinstance(schema, list):
                return [found for item in schema for found in nulls(item, where, is_alternative)]
            if not isinstance(schema, dict):
                return []
            own = [where] if schema.get('type') == 'null' and not is_alternative else []
            return own + [found for name, item in schema.items()
                          for found in nulls(item, f'{where}/{name}', name == 'anyOf')]

        for path in sorted((ROOT / 'docs/schema').glob('*.json')):
            with self.subTest(path.name):
                self.assertEqual(nulls(json.loads(path.read_text(encoding='utf-8')), ''), [])

    def test_every_schema_is_listed_and_closed(self):
        """Each stands in the page, describes an object with a version, and lets no member in that
        it does not name."""
        files = sorted(path.name for path in json_schema.SCHEMAS.glob('*.json'))
        self.assertGreater(len(files), 20)
        for name in files:
            schema = json_schema.load(name)
            self.assertTrue(schema.get('description') or schema.get('title'), name)
            if name == 'common.json':
                continue
            self.assertIn(name, self.TEXT)
            self.assertEqual(schema['properties']['version'], {'const': 1}, name)
            self.assertIn('version', schema['required'])
            self.assertIs(schema['additionalProperties'], False, name)

    def test_every_command_is_listed(self):
        done = subprocess.run([WEFT, '--help'], capture_output=True, text=True, check=True)
        names = set(re.findall(r'^ {8,}weft (\w+)', done.stdout, re.MULTILINE))
        self.assertGreater(len(names), 14)
        for name in names:
            self.assertRegex(self.TEXT, rf'`weft {name}\b')


class ValidatorTest(unittest.TestCase):
    """A validator that lets everything pass would make the tests above worthless."""
    def test_mismatches_are_found(self):
        schema = {
            'type': 'object', 'required': ['a'], 'additionalProperties': False, 'properties': {
                'a': {'type': 'integer', 'minimum': 1}, 'b': {'type': ['string', 'null']},
                'c': {'type': 'array', 'items': {'enum': ['x']}},
                'd': {'anyOf': [{'type': 'boolean'}, {'const': 7}]}
            }
        }
        json_schema.check({'a': 1, 'b': None, 'c': ['x'], 'd': True}, schema, '')
        for wrong in ({}, {'a': 0}, {'a': 1.5}, {'a': True}, {'a': '1'}, {'a': 1, 'z': 1},
                      {'a': 1, 'b': 3}, {'a': 1, 'c': ['y']}, {'a': 1, 'c': {}}, {'a': 1,
                                                                                  'd': 8}, []):
            with self.assertRaises(json_schema.Mismatch, msg=wrong):
                json_schema.check(wrong, schema, '')

    def test_unknown_keywords_are_rejected(self):
        with self.assertRaises(ValueError):
            json_schema.check({}, {'pattern': 'x'}, '')


if __name__ == '__main__':
    unittest.main()
