"""Loops that check something fail when they have no cases: in C++ tests, every range that is
computed where the loop stands goes through nonEmpty (tests/support/NonEmpty.h). A loop that may
have no cases says `// may be empty: WHY` on its line."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
CHECKS = re.compile(r'\b(CHECK|REQUIRE|FAIL)\w*\(|\brequireSame\(')
# The same characters in as many lines, with what is in strings, characters and comments blanked.
HIDDEN = [(re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL), lambda text: re.sub(r'[^\n]', ' ', text)),
          (re.compile(r'"(?:[^"\\\n]|\\.)*"'), lambda text: '"' + ' ' * (len(text) - 2) + '"'),
          (re.compile(r"'(?:[^'\\\n]|\\.)'"), lambda text: "'" + ' ' * (len(text) - 2) + "'"),
          (re.compile(r'//[^\n]*'), lambda text: ' ' * len(text))]


def blanked(text):
    for pattern, blank in HIDDEN:
        text = pattern.sub(lambda match, blank=blank: blank(match.group(0)), text)
    return text


def end_of(text, start, stops):
    """The place of the first of `stops` behind `start` outside of brackets, or of the brace that
    closes a block opened there."""
    depth = 0
    for place in range(start, len(text)):
        letter = text[place]
        if depth == 0 and letter in stops:
            return place
        if letter in '([{':
            depth += 1
        elif letter in ')]}':
            depth -= 1
            if depth == 0 and letter == '}' and '}' in stops:
                return place
    return len(text)


def loops(text):
    """(line, range) of every loop over a range whose body checks something."""
    code = blanked(text)
    for match in re.finditer(r'\bfor \(', code):
        close = end_of(code, match.end(), ')')
        header = code[match.end():close]
        colon = re.search(r'(?<!:):(?!:)', header)
        if not colon or header.count(';') == 2:
            continue
        body = close + 1 + len(code[close + 1:]) - len(code[close + 1:].lstrip())
        if CHECKS.search(code[body:end_of(code, body, ';}')]):
            yield code[:match.start()].count('\n') + 1, text[match.end() +
                                                             colon.end():close].strip()


def is_guarded(expression):
    return expression.removeprefix('test::').startswith('nonEmpty(')


def is_computed(expression):
    """By a call or as a member: not a name, whose definition says what it holds, nor a list that is
    written there."""
    return bool(re.search(r'[(.]|->',
                          expression)) and not re.match(r'(std::\w+<.*>)?\{', expression)


def unguarded(text):
    lines = text.split('\n')
    return [
        (line, expression) for line, expression in loops(text)
        if is_computed(expression) and not is_guarded(expression)
        and 'directory_iterator(' not in expression and '// may be empty: ' not in lines[line - 1]
    ]


class TestRules(unittest.TestCase):
    def test_computed_cases_are_not_empty(self):
        folders = [ROOT / 'tests', *ROOT.glob('codegen/families/*/tests')]
        self.assertGreater(len(folders), 5)
        files = sorted(
            path for kind in ('*.cpp', '*.h') for folder in folders for path in folder.rglob(kind))
        seen = 0
        for path in files:
            text = path.read_text(encoding='utf-8')
            seen += sum(is_guarded(expression) for _, expression in loops(text))
            with self.subTest(path.relative_to(ROOT).as_posix()):
                self.assertEqual(unguarded(text), [],
                                 'wrap the range in nonEmpty() of tests/support/NonEmpty.h')
        self.assertGreater(seen, 100, 'loops are found')

    def test_what_is_found(self):
        self.assertEqual(unguarded('for (int one : all(x)) {\n  int y = one;\n  CHECK(y);\n}'),
                         [(1, 'all(x)')])
        self.assertEqual(unguarded('for (int one : x.all)\n  if (one) REQUIRE(one);'),
                         [(1, 'x.all')])
        self.assertEqual(unguarded('for (int one : nonEmpty(all(x))) CHECK(one);'), [])
        self.assertEqual(unguarded('for (int one : {f(1), 2}) CHECK(one);'), [])
        self.assertEqual(unguarded('for (int one : all(x)) use(one);\nCHECK(y);'), [])
        self.assertEqual(unguarded('for (int one : all("CHECK(")) use(one);  // CHECK(one)'), [])
        self.assertEqual(
            unguarded('for (int one : all(x)) CHECK(one);  // may be empty: x has none'), [])


if __name__ == '__main__':
    unittest.main()
