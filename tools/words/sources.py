#!/usr/bin/env python3
"""Carries the hashes of sources in the shipped profiles over a change of texts that changes no
machine code: `sources.py OLD NEW FOLDER`.

OLD and NEW are the trees of before and after; FOLDER/old.txt and FOLDER/new.txt hold what their
weft-words-rows printed, FOLDER/old and FOLDER/new the texts. A row whose hash is that of the source
which it emitted before gets the hash of today's source, if both texts are equal but for names and
for how arguments are handed to a GEMM's template. Other rows keep the old hash, which no source
has: they are stale. Headers are not compared here: prove.py compares machine code. Prints how many
rows there are of each kind; FOLDER/rows says which texts belong together."""
import collections
import pathlib
import re
import sys

import prove

# A kernel template's call up to its semicolon.
CALL = re.compile(r'weft::(?:sm90::|sm80::)?(\w*[gG]emm[AB]?)<')
FILLERS = re.compile(r'(?:weft::)?(?:sm90::|sm80::)?(?:No\w+|Unchanged|FmaGemmArgs|'
                     r'SingleConsumerArgs|Args|Tensor|SubtileOperand|SubtileOutput|RowOperand|'
                     r'ColumnOperand)\b(?:<[\w:, ]*>)?')


def rows_of(files):
    """(hash of the subject, line) -> (file, number of the line, source), of profiles."""
    rows = {}
    for path in files:
        for number, line in enumerate(path.read_text().split('\n')):
            if line.startswith('kernel '):
                _, subject, _ = line.split(' ', 2)
            elif line.startswith('  '):
                words = line.split(' ; ')[0].split()
                at = 2 if words[0] == 'failed' else 3 if words[1] == 'slow' else 4
                rows[subject, ' '.join(words[at + 2:])] = (path, number, words[at])
    return rows


def emitted(path):
    """(hash of the subject, line) -> (source, hash of the text)."""
    lines = (line.split(' ', 3) for line in path.read_text().split('\n') if line)
    return {(subject, line): (source, text) for subject, source, text, line in lines}


def arguments_of(call):
    """What a call hands over, in the order of the positional form."""
    name = CALL.match(call)[1]
    text = FILLERS.sub(' ', call)
    text = re.sub(r'\.\w+ =', ' ', text)                       # designators
    text = re.sub(r'weft::\w+(?:::\w+)*|\bnullptr\b', ' ', text)  # types and templates
    tokens = [token for token in prove.TOKEN.findall(text) if re.match(r'\w', token)]
    # Positional calls had a factor first and an operand's function beside the operand.
    moved = [token for token in tokens if token in ('scale', 'transform')]
    tokens = [token for token in tokens if token not in moved] + moved
    if name == 'singleConsumerGemm':
        tokens = [token for token in tokens if token != '1.0f']
    return tokens


def without_idle_extents(text):
    """Without extents of 1 that nothing but their own check reads."""
    line = re.search(r'^constexpr weft::Offset ([^;]*);', text, re.M)
    for name in re.findall(r'(\w+) = 1\b(?!\d)', line[1]) if line else []:
        code = re.sub(r'"[^"\n]*"', '', text)
        uses = re.findall(rf'(?<![\w.]){name}\b', code)
        checks = re.findall(rf'(?<![\w.]){name} == 1\b', code)
        if len(uses) == 1 + len(checks):
            text = re.sub(rf'(?<![\w.]){name} =(=?) 1\b(?:,| &&)? ?', '', text)
    return text


def without_aliases(text):
    """With the type of a GEMM's elements where an alias stands for it."""
    for name, target in re.findall(r'^\s*using (\w+) = (weft::[^;]*);\n', text, re.M):
        text = re.sub(rf'^\s*using {name} = [^;]*;\n', '', text, flags=re.M)
        text = re.sub(rf'(?<=<){name}\b', target, text)
    return text


def tokens_of(path):
    """Of a text without its headers, and of its call of a template what it hands over."""
    lines = [line for line in path.read_text().split('\n') if not line.startswith('#include')]
    text = without_aliases(re.sub(r'//[^\n]*', '', '\n'.join(lines)))
    text = without_idle_extents(text)
    call = CALL.search(text)
    if not call:
        return prove.without_messages(prove.TOKEN.findall(text))
    end = text.index(';', call.start())
    rest = prove.TOKEN.findall(text[:call.start()] + text[end:])
    return prove.without_messages(rest) + ['CALL'] + arguments_of(text[call.start():end])


def main():
    old, new, folder = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    old_rows = rows_of(sorted((old / 'profiles/h200').glob('*.txt')))
    new_files = sorted((new / 'profiles/h200').glob('*.txt'))
    new_rows = rows_of(new_files)
    before_all, after_all = emitted(folder / 'old.txt'), emitted(folder / 'new.txt')
    counts, drawn, edits, equal = collections.Counter(), [], [], {}
    for key, (_, _, source) in old_rows.items():
        if key not in new_rows:
            sys.exit(f'{key}: the new profile has no such row')
        before, after = before_all.get(key), after_all.get(key)
        if source == '-':
            counts['of a library, without a text'] += 1
        elif not before or not after:
            counts['stale: no verified workload emits them'] += 1
        elif before[0] != source:
            counts['stale before'] += 1
        else:
            pair = before[1], after[1]
            if pair not in equal:
                paths = folder / 'old' / f'{pair[0]}.cu', folder / 'new' / f'{pair[1]}.cu'
                equal[pair] = (paths[0].read_bytes() == paths[1].read_bytes()
                               or not prove.compare_texts(*map(tokens_of, paths))[0])
                if not equal[pair] and counts['stale: the text differs'] < 20:
                    print('differ:', *paths, prove.compare_texts(*map(tokens_of, paths))[0])
            if equal[pair]:
                counts['carried over'] += 1
                edits.append((new_rows[key], after[0]))
                drawn.append((*pair, key[1]))
            else:
                counts['stale: the text differs'] += 1
    (folder / 'rows').write_text(''.join(' '.join(row) + '\n' for row in drawn))
    by_file = collections.defaultdict(list)
    for (path, number, source), new_source in edits:
        by_file[path].append((number, source, new_source))
    for path in new_files:
        lines = path.read_text().split('\n')
        lines[0] = '# weft profile 4'
        for number, source, new_source in by_file[path]:
            lines[number] = lines[number].replace(f' {source} ', f' {new_source} ', 1)
        path.write_text('\n'.join(lines))
    print(f'{sum(counts.values())} rows:', ', '.join(f'{n} {k}' for k, n in counts.items()))


if __name__ == '__main__':
    main()
