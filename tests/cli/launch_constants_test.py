"""Every integer constant of an emitted kernel is held to plan.json by a launch check: whoever
doubles one gets an error of the compiler. Without NVRTC: the checks are arithmetic, which is
evaluated here; tests/nvrtc/launch_constants_test.cpp asks the compiler for the rest."""
import pathlib
import re
import types
import unittest

from weft_command import CommandTest, TINY

FAMILIES = pathlib.Path(__file__).resolve().parents[2] / 'codegen/families'
# What may be doubled and still builds, and why no thread leaves its tensors.
HARMLESS = {
    'Tile.groupM': 'the order of tiles alone',
    'Tile.stages': 'held by the static_assert of shared memory',
    'SingleConsumerTile.stages': 'held by the static_assert of shared memory',
    'Tile.epilogueStages': 'held by the static_assert of shared memory',
    'Tile.k': 'held by the static_assert of shared memory',
    'FmaGemmTile.k': 'held by the static_assert of shared memory',
    'FmaGemmTile.stages': 'held by the static_assert of shared memory',
    'AttentionTile.keys': 'held by the static_assert of shared memory',
    'AttentionTile.stages': 'held by the static_assert of shared memory',
    'AttentionTile.queryStages': 'held by the static_assert of shared memory',
    'AttentionTile.headGroup': 'the order of tiles alone',
    'AttentionTile.longTiles': 'the order of tiles alone',
    'AttentionBackwardTile.headGroup': 'the order of tiles alone',
    'SplitBackwardTile.stages': 'held by the static_assert of shared memory',
    'SplitBackwardTile.ownStages': 'held by the static_assert of shared memory',
    'SplitBackwardTile.headGroup': 'the order of tiles alone',
    'SplitBackwardTile.longKeyTiles': 'the order of tiles alone',
    'SplitBackwardTile.longQueryTiles': 'the order of tiles alone',
    'BackwardTile.columns': 'held by the static_assert of shared memory',
    'BackwardTile.stages': 'held by the static_assert of shared memory',
    'dropThreshold': 'which elements are dropped, not where they lie',
}
SMALL = ['--stop-after', 'emit']
ARTIFACTS = {
    'attention': TINY,
    'attention without library': [*TINY, '--no-library'],
    'training': ['masked-token', '--train', '--optimizer', 'adamw', '--dtype', 'f32',
                 '--dim', 'b=4', '--dim', 'j=32'],
    'decoder': ['llama-3-8b', '--dim', 'j=256', '--device', 'a100', '--no-library'],
}


class Fields(types.SimpleNamespace):
    """A struct of constants."""


class Extents:
    """weft::sm90::Dimensions."""
    def __init__(self, extent):
        self.extent = extent

    def count(self):
        return len(self.extent)


class Unknown(Exception):
    """A value that only a compiler knows."""


def python(expression):
    """Arithmetic of C++ on integers in Python's spelling."""
    if re.search(r'sizeof|::(?!Offset)|<', expression):
        raise Unknown(expression)
    expression = expression.replace('weft::Offset', '').replace('true', 'True')
    expression = expression.replace('false', 'False').replace('/', '//')
    expression = re.sub(r'\b(\d+(?:\.\d+)?(?:e[-+]?\d+)?)f\b', r'\1', expression)
    return re.sub(r'\b(\d+)(?:ll|u)\b', r'\1', expression)


def split(text, separator):
    """At separators outside of brackets."""
    parts, depth = [''], 0
    for char in text:
        depth += (char in '({') - (char in ')}')
        if char == separator and depth == 0:
            parts.append('')
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def value(text, known):
    """Of a constant: a number, a struct with named members, or extents."""
    text = text.strip()
    if not text.startswith('{'):
        return eval(python(text), {}, dict(known))  # pylint: disable=eval-used
    items = split(text[1:-1], ',')
    if items and items[0].startswith('.'):
        return Fields(**{
            name.strip()[1:]: value(member, known)
            for name, member in (item.split('=', 1) for item in items)
        })
    if items and not items[0].startswith('{'):
        return [value(item, known) for item in items]
    return Extents([value(item, known) for item in split(items[0][1:-1], ',')])


def constants(namespace):
    """Name -> value of what a namespace defines."""
    known = {}
    for entries in re.findall(r'constexpr (?:int|unsigned|weft::[\w:]+) ([^;]+);', namespace):
        for entry in split(entries, ','):
            name, text = entry.split('=', 1)
            known[name.strip()] = value(text, known)
    return known


def holds(kernel, known):
    """Whether every launch check holds, as far as that is arithmetic."""
    for condition in re.findall(r'static_assert\((.*), "plan\.json: ', kernel):
        for term in condition.split(' && '):
            try:
                if not eval(python(term), {}, known):  # pylint: disable=eval-used
                    return False
            except (Unknown, AttributeError):
                continue
    return True


def literals(namespace):
    """Place and value of every integer literal of a definition."""
    code = re.sub(r'//[^\n]*', lambda note: ' ' * len(note[0]), namespace)
    for line in re.finditer(r'constexpr (?:int|unsigned|weft::[\w:]+) [^;]+;', code):
        for number in re.finditer(r'(?<![\w.])\d+(?=u?\b(?!\.))', line[0]):
            yield line.start() + number.start(), int(number[0])


def name_of(namespace, at):
    """Of the constant whose value stands there: "width", "Tile.groupM"."""
    name = re.search(r'(\w+) = [^=]*$', namespace[:at])[1]
    type_name, text = re.findall(r'constexpr ([\w:]+) \w+ = (\{?)', namespace[:at] + '0')[-1]
    return f"{type_name.split('::')[-1]}.{name}" if text else name


class LaunchConstants(CommandTest):
    def unheld(self, text):
        """Constants that can be doubled (0 becomes 1) with all checks holding."""
        begin = text.index('namespace {')
        end = text.index('}  // namespace', begin)
        namespace, kernel = text[begin:end], text[end:]
        self.assertTrue(holds(kernel, constants(namespace)))
        names = set()
        for at, number in self.some(literals(namespace)):
            length = len(str(number))
            edited = namespace[:at] + str(2 * number or 1) + namespace[at + length:]
            try:
                if holds(kernel, constants(edited)):
                    names.add(name_of(namespace, at))
            except ZeroDivisionError:  # no constant expression
                continue
        return names

    def check(self, files):
        met = set()
        for path in self.some(sorted(files)):
            text = path.read_text()
            if 'namespace {' not in text:
                continue
            with self.subTest(path.name):
                left = self.unheld(text)
                self.assertLessEqual(left, set(HARMLESS))
                met |= left
        return met

    def test_of_one_kernel_of_each_kind(self):
        self.assertEqual(self.check(FAMILIES.glob('*/golden/*.cu')), set(HARMLESS))

    def test_of_whole_plans(self):
        for name, arguments in ARTIFACTS.items():
            with self.subTest(name):
                folder = name.replace(' ', '-')
                self.weft('compile', *arguments, *SMALL, '-o', folder)
                self.check((self.folder / folder / 'kernels').glob('*.cu'))


if __name__ == '__main__':
    unittest.main()
