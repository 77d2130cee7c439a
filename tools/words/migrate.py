"""Migrates the shipped profiles of a renamed tree to format 3: `migrate.py TREE`. `rename.py` has
given rows their new words; here a GEMM's subject gets the hash of its new text, and kernels and
rows their order. What the reader of `kernel/Profile.cpp` makes of a file of format 2 is the same,
byte by byte (`tests/unit/kernel_profile_test.cpp` holds both to it)."""
import pathlib
import re
import sys

MAGIC = '# weft profile 3'


def fnv(text):
    value = 0xcbf29ce484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return f'{value:016x}'


FAMILIES = {  # old family -> new family, and its knobs
    'hopper-contraction': ('gemm-sm90', {
        'staging': 'epilogueStages', 'raster': 'groupM', 'splits': 'splitK',
        'sharers': 'multicastB', 'streams': 'streamK'
    }),
    'ampere-contraction': ('gemm-sm80', {'raster': 'groupM'}),
    'plain-contraction': ('gemm-fma', {})
}


def migrated_line(line):
    """The line of a configuration, as kernel/ProfileMigration.cpp has it."""
    family, *words = line.split(' ')
    if family not in FAMILIES:
        return line
    family, knobs = FAMILIES[family]
    words = [re.sub(r'^(\w+)(?==)', lambda knob: knobs.get(knob[1], knob[1]), word)
             for word in words]
    return ' '.join([family, *words]).replace('schedule=narrow', 'schedule=single-consumer')


def configurationOf(row):
    words = row.split(' ; ')[0].split()
    if words[0] == 'failed':
        return ' '.join(words[4:])
    return ' '.join(words[5 if words[1] == 'slow' else 6:])


def migrated(text, name):
    lines = text.split('\n')
    assert lines[0] in ('# weft profile 2', MAGIC), name
    head, kernels, gemms = [MAGIC], {}, 0
    for line in lines[1:]:
        if line.startswith('kernel '):
            _, hash, subject = line.split(' ', 2)
            gemm = re.fullmatch(r'gemm (\S+ \d+ x \d+ x \d+ x \d+)', subject)
            if gemm:
                assert hash in (fnv('product ' + gemm[1]), fnv(subject)), line
                hash = fnv(subject)
                gemms += 1
            assert hash not in kernels, line
            rows = kernels.setdefault(hash, (line.split(' ', 2)[2], []))[1]
        elif line.startswith('  '):
            rows.append(line)
        elif line:
            head.append(line)
    for hash, (subject, rows) in sorted(kernels.items()):
        head.append(f'kernel {hash} {subject}')
        head += sorted(rows, key=lambda row: configurationOf(row).encode())
    count = sum(len(rows) for _, rows in kernels.values())
    print(f'{name}: {len(kernels)} kernels, {gemms} of them GEMMs with a new hash; {count} rows')
    return '\n'.join(head) + '\n'


def main():
    for path in sorted(pathlib.Path(sys.argv[1]).glob('profiles/*/*.txt')):
        text = path.read_text(encoding='utf-8')
        if text.startswith('# weft profile'):
            path.write_text(migrated(text, path.name), encoding='utf-8')


if __name__ == '__main__':
    main()
