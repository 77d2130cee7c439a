#!/usr/bin/env python3
"""Carries the hashes of emitted texts in the shipped profiles over the renaming:
`sources.py OLD NEW FOLDER`.

OLD and NEW are the trees of before and after it, with their build/dev/bin/weft-words-rows. A row
whose hash is that of the text which it emitted before gets the hash of the text of today, if both
texts are equal but for names (headers: prove.py), or their machine code is. Other rows keep the old
hash, which no text has: they are stale. Prints how many there are of each kind; FOLDER/old and
FOLDER/new hold the texts, FOLDER/rows says which belong together."""
import collections
import pathlib
import re
import subprocess
import sys

import migrate
import prove


def listed(tree, folder, files):
    """(hash, line) -> hash of the text, which lies in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = tree / 'build/dev/bin/weft-words-rows'
    text = subprocess.run([program, folder, *files], check=True, stdout=subprocess.PIPE,
                          text=True).stdout
    rows = (line.split(' ', 2) for line in text.split('\n') if line)
    return {(hash, line): source for hash, source, line in rows}


def rows_of(files):
    """(hash, line) -> (file, number of the line, source), of profiles of either format."""
    rows, names = {}, {}
    for path in files:
        for number, line in enumerate(path.read_text().split('\n')):
            if line.startswith('kernel '):
                _, hash, name = line.split(' ', 2)
                names[hash] = name
            elif line.startswith('  '):
                words = line.split(' ; ')[0].split()
                at = 2 if words[0] == 'failed' else 3 if words[1] == 'slow' else 4
                rows[hash, migrate.configurationOf(line)] = (path, number, words[at])
    return rows, names


def tokens_of(path):
    """Of a text without its headers, whose order is that of their names."""
    lines = [line for line in path.read_text().split('\n') if not line.startswith('#include')]
    text = re.sub(r'//[^\n]*', '', '\n'.join(lines))
    return prove.without_messages(prove.TOKEN.findall(text))


def main():
    old, new, folder = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    old_files, new_files = (sorted((tree / 'profiles/h200').glob('*.txt')) for tree in (old, new))
    nvrtc = prove.Nvrtc()
    old_rows, old_names = rows_of(old_files)
    new_rows, _ = rows_of(new_files)
    old_texts = listed(old, folder / 'old', old_files)
    new_texts = listed(new, folder / 'new', new_files)
    old_headers, new_headers = prove.device_headers(old), prove.device_headers(new)
    counts, drawn, edits, equal = collections.Counter(), [], [], {}

    def is_equal(before, after):
        paths = folder / 'old' / f'{before}.cu', folder / 'new' / f'{after}.cu'
        return not prove.compare_texts(*map(tokens_of, paths))[0] or not prove.compare_code(
            nvrtc, paths[0], old_headers, paths[1], new_headers, 'sm_90a')

    for (old_hash, old_line), (_, _, source) in old_rows.items():
        name = old_names[old_hash]
        hash = migrate.fnv('gemm' + name[7:]) if name.startswith('product ') else old_hash
        key = hash, migrate.migrated_line(old_line)
        if key not in new_rows:
            sys.exit(f'{old_line}: there is no row of {key}')
        before, after = old_texts.get((old_hash, old_line)), new_texts.get(key)
        if source == '-':
            counts['of a library, without a text'] += 1
        elif key[1] == old_line and not before:
            counts['of a family whose texts did not change'] += 1
        elif not before or not after:
            counts['stale: no verified workload emits them'] += 1
        elif before != source:
            counts['stale before the renaming'] += 1
        elif after == source:
            counts['of the same text'] += 1
            drawn.append((before, after, key[1]))
        else:
            drawn.append((before, after, key[1]))
            if (before, after) not in equal:
                equal[before, after] = is_equal(before, after)
            if equal[before, after]:
                counts['carried over'] += 1
                edits.append((new_rows[key], after))
            else:
                counts['stale: the text differs'] += 1
    (folder / 'rows').write_text(''.join(' '.join(row) + '\n' for row in drawn))
    by_file = collections.defaultdict(list)
    for (path, number, source), new in edits:
        by_file[path].append((number, source, new))
    for path, changes in by_file.items():
        lines = path.read_text().split('\n')
        for number, source, new in changes:
            lines[number] = lines[number].replace(f' {source} ', f' {new} ', 1)
        path.write_text('\n'.join(lines))
    print(f'{sum(counts.values())} rows:', ', '.join(f'{n} {k}' for k, n in counts.items()))


if __name__ == '__main__':
    main()
