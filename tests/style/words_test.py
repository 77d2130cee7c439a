"""Code and pages have the words of docs/glossary.md: those that it forbids occur nowhere.

A forbidden word stands there in backticks, left of an arrow. It is searched as whole words, with
its case where it has a capital; `*` stands for further letters of the word, and a space may be the
end of a line, or of a string literal that the next line goes on with. Names are searched as the
words that they are made of: "theCopyEngine" and "copy_engine_of" have "copy engine"."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GLOSSARY = 'docs/glossary.md'
READ = ('.cpp', '.h', '.cuh', '.cu', '.py', '.td', '.cmake', '.md', '.json', '.mlir', '.in', '.txt')
# Inputs of any age, text to train on, the map of the renaming itself, and what reads the words of
# older formats.
LEFT_OUT = ('build/', '.venv/', 'out/', 'tests/fuzz/corpus/', 'runtime/text/', 'tools/words/',
            GLOSSARY, 'codegen/families/gemm_sm90/Sm90GemmFormerWords.cpp',
            'codegen/families/gemm_sm80/Sm80GemmFormerWords.cpp',
            'codegen/families/gemm_fma/FmaGemmFormerWords.cpp',
            'tests/unit/kernel/kernel_profile_test.cpp',
            'tests/unit/runtime/profile_store_test.cpp', 'tests/style/words_test.py')
SPACE = r'(?:[ \t]|[ \t]*\n[ \t]*(?://[/!]?<?|#|\*)?[ \t]*)'

NEXT_LITERAL = re.compile(r'(?<!\\)(["\'])[ \t]*\n[ \t]*[fru]?\1')
NAME = re.compile(r'\b\w*(?:[a-z0-9][A-Z]|_)\w*\b')
END_OF_WORD = re.compile(r'_+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])')


def forbidden_words(page):
    part = page[page.index('## Forbidden'):page.index('## Preferred')]
    lines = re.sub(r'\n +', ' ', part).split('\n')
    return [word for line in lines if line.startswith('- ') and '->' in line
            for word in re.findall(r'`([^`]+)`', line.split('->')[0])]


def pattern_of(word):
    text = SPACE.join(re.escape(part).replace(r'\*', r'\w*') for part in word.split(' '))
    isCased = word != word.lower()
    return f'(?<![\\w]){text}(?![\\w])' if isCased else f'(?i:(?<![\\w]){text}(?![\\w]))'


def names():
    listed = subprocess.run(['git', '-C', ROOT, 'ls-files', '-z', '--cached', '--others',
                             '--exclude-standard'], capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [name for name in listed.stdout.split('\0') if name]
    return [path.relative_to(ROOT).as_posix() for path in ROOT.rglob('*')]


def stem_of(word):
    """What stands in every text that has the word, in lower case."""
    return max(re.split(r'[ *]', word), key=len).lower()


def found(words, text):
    lower = text.lower()
    return [(text.count('\n', 0, at.start()) + 1, re.sub(r'\s+', ' ', at.group(0)))
            for stem, pattern in words if stem in lower for at in pattern.finditer(text)]


def found_across_literals(words, text):
    """Phrases that begin in one string literal and end in the next."""
    there = {word for _, word in found(words, text)}
    return [(line, word) for line, word in found(words, NEXT_LITERAL.sub('', text))
            if word not in there]


def found_in_names(words, text):
    hits = []
    for name in sorted(set(NAME.findall(text))):
        parts = ' '.join(END_OF_WORD.split(name)).lower()
        hits += [(text.count('\n', 0, text.index(name)) + 1, f'{name} ({word})')
                 for _, word in found(words, parts)]
    return hits


def is_script(path):
    """Without an ending, as tools/test is."""
    return path.suffix == '' and path.is_file() and path.read_bytes()[:2] == b'#!'


class Words(unittest.TestCase):

    def setUp(self):
        words = forbidden_words((ROOT / GLOSSARY).read_text(encoding='utf-8'))
        self.words = [(stem_of(word), re.compile(pattern_of(word))) for word in words]

    def test_forbidden_words_do_not_occur(self):
        self.assertGreater(len(self.words), 60)
        files = [name for name in names()
                 if (name.endswith(READ) or is_script(ROOT / name))
                 and not name.startswith(LEFT_OUT)
                 and not (name.startswith('profiles/') and name.endswith('.txt'))
                 and (ROOT / name).is_file()]
        self.assertGreater(len(files), 800)
        hits = []
        for name in files:
            text = (ROOT / name).read_text(encoding='utf-8', errors='replace')
            for search in (found, found_across_literals, found_in_names):
                hits += [f'{name}:{line}: {word}' for line, word in search(self.words, text)]
        self.assertEqual(hits, [])

    def test_a_forbidden_word_is_found(self):
        for text, hits in (('of the copy engine', 1), ('// the copy\n// engine', 1),
                           ('isWhollyByEngineAlone', 1), ('copying engines', 0), ('a product', 0)):
            self.assertEqual(len(found(self.words, text)), hits, text)

    def test_a_forbidden_word_is_found_over_two_literals(self):
        for text, hits in (('"of the copy "\n    "engine"', 1), ('"copy"\n" engine"', 1),
                           ("f'the copy '\n    f'engine'", 1), ('"copy", "engine"', 0),
                           ('"copy\\""\n"engine"', 0), ('"copy engine"', 0)):
            self.assertEqual(len(found_across_literals(self.words, text)), hits, text)

    def test_a_forbidden_word_is_found_in_a_name(self):
        for text, hits in (('theCopyEngine()', 1), ('a copy_engine_of', 1), ('FAKE_COPY_ENGINE', 1),
                           ('CopyEngineOf', 1), ('copying_engines', 0), ('the copy engine', 0),
                           ('copyEngineOf + copyEngineOf', 1)):
            self.assertEqual(len(found_in_names(self.words, text)), hits, text)


if __name__ == '__main__':
    result = unittest.main(exit=False).result
    sys.exit(not result.wasSuccessful())
