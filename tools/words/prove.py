#!/usr/bin/env python3
"""Proves that the renaming changes no kernel: `prove.py OLD NEW [--rows FOLDER]`, with
two trees, before and after it.

Kernels are the golden ones and those of shipped plans, with their headers put in place. Of every
pair of texts
 - the tokens agree but for identifiers, and an identifier of the new text always stands for the
   same one of the old text; where that holds backwards, too, the renaming is a bijection of the
   text, otherwise words were split by what they mean in a header (`sums`), which is counted;
 - NVRTC makes the same machine code: code, constants, initial values, registers, relocations and
   what else the sections of a kernel say, symbols' names aside.
Strings of static_assert are messages and may differ. Prints a line a difference, and counts; exit
code 1 if there is a difference."""
import argparse
import collections
import concurrent.futures
import ctypes
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[A-Za-z_]\w*|'
                   r'\d(?:[\w.\']|(?<=[eEpP])[+-])*|\S')
FAMILY = re.compile(r'\.(?:rela?\.)?(?:text|nv\.(?:constant\d*|shared|local|global|info))')
CODE = ('.text', '.nv.constant0', '.nv.shared', '.nv.info')
INCLUDE = re.compile(r'^#include "weft/([\w.]+)"\s*$', re.M)


def renamed_files():
    rows = (line.rstrip('\n').split('\t') for line in (HERE / 'map.tsv').open())
    return {pathlib.PurePath(row[1]).name: pathlib.PurePath(row[2]).name
            for row in rows if row[0] == 'file'}


def in_order_of(old, text):
    """The new text with its headers in the order of the old one's: emission sorts them by name."""
    files = renamed_files()
    wanted = [files.get(name, name) for name in INCLUDE.findall(old)]
    if sorted(wanted) != sorted(INCLUDE.findall(text)):
        return text
    names = iter(wanted)
    return INCLUDE.sub(lambda _: f'#include "weft/{next(names)}"', text)


def device_headers(tree):
    """Name -> file of every device header of a tree: the shared ones and those of families."""
    return {path.name: path for folder in ('codegen/device', 'codegen/families/*/device')
            for path in tree.glob(f'{folder}/*.cuh')}


def headers_of(folder):
    """The same of the headers of a plan."""
    return {path.name: path for path in folder.glob('*.cuh')}


def golden_kernels(tree):
    """Name -> file, in trees of either layout."""
    return {path.name: path for folder in ('tests/golden', 'codegen/families/*/golden')
            for path in tree.glob(f'{folder}/*.cu')}


def preprocessed(text, headers, architecture):
    number = re.search(r'\d+', architecture)[0]
    with tempfile.TemporaryDirectory(prefix='weft-words-') as folder:
        (pathlib.Path(folder) / 'weft').mkdir()
        for name, path in headers.items():
            (pathlib.Path(folder) / 'weft' / name).symlink_to(path)
        return subprocess.run([
            'g++', '-E', '-P', '-x', 'c++', '-std=c++20', '-nostdinc', '-I', folder,
            f'-D__CUDA_ARCH__={number}0', '-'
        ], capture_output=True, check=True, text=True, input=text).stdout


def tokens_of(path, headers, architecture, like=None):
    """`like`: a text from before the renaming, whose order of headers is taken."""
    text = path.read_text()
    if like:
        text = in_order_of(like.read_text(), text)
    tokens = TOKEN.findall(preprocessed(text, headers, architecture))
    return without_messages(tokens)


def without_messages(tokens):
    depth, kept = None, []  # depth: of parentheses in a static_assert
    for token in tokens:
        if token == 'static_assert':
            depth = 0
        elif depth is not None and token in '()':
            depth += 1 if token == '(' else -1
            if depth == 0:
                depth = None
        kept.append('"message"' if depth is not None and token[0] == '"' else token)
    return kept


def compare_texts(old, new):
    """What differs, and whether the renaming is a bijection."""
    if len(old) != len(new):
        at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b and not a[0].isalpha()), 0)
        return f'{len(old)} tokens, {len(new)} after: {old[at-8:at+4]} {new[at-8:at+4]}', False
    forward, backward = collections.defaultdict(set), collections.defaultdict(set)
    for i, (a, b) in enumerate(zip(old, new)):
        if bool(re.match(r'[A-Za-z_]', a)) != bool(re.match(r'[A-Za-z_]', b)):
            return f'{a} became {b}: {old[i-8:i+4]}', False
        if re.match(r'[A-Za-z_]', a):
            forward[a].add(b)
            backward[b].add(a)
        elif a != b:
            return f'{a} became {b}: {old[i-8:i+4]}', False
    merged = {b: a for b, a in backward.items() if len(a) > 1}
    if merged:
        return f'several names became one: {merged}', False
    return '', all(len(b) == 1 for b in forward.values())


class Nvrtc:
    def __init__(self):
        for name in ('libnvrtc.so', 'libnvrtc.so.13', 'libnvrtc.so.12',
                     '/usr/local/cuda/lib64/libnvrtc.so', '/usr/local/cuda-13.0/lib/libnvrtc.so'):
            try:
                self.library = ctypes.CDLL(name)
                return
            except OSError:
                continue
        sys.exit('libnvrtc was not found')

    def cubin(self, path, headers, architecture):
        text = path.read_text()
        names, found = [], INCLUDE.findall(text)
        while found:
            name = found.pop()
            if name not in names:
                names.append(name)
                found += INCLUDE.findall(headers[name].read_text())
        lib, program = self.library, ctypes.c_void_p()
        strings = ctypes.c_char_p * len(names)
        lib.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b'kernel.cu', len(names),
                               strings(*[headers[name].read_text().encode() for name in names]),
                               strings(*[b'weft/' + name.encode() for name in names]))
        flags = [f'--gpu-architecture={architecture}'.encode(), b'-default-device', b'--std=c++20']
        code = lib.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        size = ctypes.c_size_t()
        if code:
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            raise RuntimeError(log.value.decode()[:400])
        lib.nvrtcGetCUBINSize(program, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        lib.nvrtcGetCUBIN(program, cubin)
        lib.nvrtcDestroyProgram(ctypes.byref(program))
        return cubin.raw


def sections(cubin):
    """Kind of section -> its contents, in the order of the file, without names of symbols."""
    offset = struct.unpack_from('<Q', cubin, 0x28)[0]
    size, count, names = struct.unpack_from('<HHH', cubin, 0x3a)
    rows = [struct.unpack_from('<IIQQQQIIQQ', cubin, offset + i * size) for i in range(count)]
    result = []
    for name, kind, flags, _, at, length, link, info, align, entry in rows:
        start = rows[names][4] + name
        text = cubin[start:cubin.index(b'\0', start)].decode()
        family = FAMILY.match(text)
        if not family:
            continue
        family = family[0]
        data = b'' if kind == 8 else cubin[at:at + length]  # SHT_NOBITS
        if kind in (4, 9):  # relocations: offset, type, addend, and not the symbol's number
            step = 24 if kind == 4 else 16
            data = b''.join(data[i:i + 8] + data[i + 8:i + 12] + data[i + 16:i + step]
                            for i in range(0, len(data), step))
        if family == '.nv.info':
            data = bytes(data[:0]) + registers(data)
        result.append((family, kind, flags, length if kind == 8 else len(data), data,
                       info >> 24 if family == '.text' else 0, align, entry))
    return result


def registers(data):
    """Attributes of .nv.info; where one begins with the number of a symbol, without it."""
    at, kept = 0, []
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from('<BBH', data, at)
        value = struct.pack('<H', size)
        at += 4
        if form == 4:
            value = data[at:at + size]
            at += size
            # EIATTR_FRAME_SIZE, MIN_STACK_SIZE, REGCOUNT, MAX_STACK_SIZE
            if attribute in (0x11, 0x12, 0x2f, 0x23) and size == 8:
                value = value[4:]
        kept.append(bytes([form, attribute]) + value)
    return b'|'.join(sorted(kept))


def architecture_of(path):
    needed = r'weft/(hopper|sm90|float8|wgmma|cluster)|__cluster_dims__'
    return 'sm_90a' if re.search(needed, path.read_text()) else 'sm_80'


def pairs(old, new):
    files = renamed_files()
    headers, new_headers = device_headers(old), device_headers(new)
    new_goldens = golden_kernels(new)
    for _, path in sorted(golden_kernels(old).items()):
        renamed = files.get(path.name, path.name)
        yield (path, headers, new_goldens.get(renamed, new / renamed), new_headers,
               architecture_of(path), 'golden')
    for path in sorted((old / 'profiles/plans').glob('*/*/kernels/*.cu')):
        name = path.relative_to(old)
        yield (path, headers_of(path.parent / 'weft'), new / name,
               headers_of((new / name).parent / 'weft'), 'sm_90a', 'plan')


def compare_code(nvrtc, old, old_headers, new, new_headers, architecture):
    try:
        before, after = (sections(nvrtc.cubin(path, headers, architecture))
                         for path, headers in ((old, old_headers), (new, new_headers)))
    except RuntimeError as error:
        return f'NVRTC: {error}'
    kinds = [a[0] for a, b in zip(before, after) if a != b]
    return (f'machine code differs in {kinds}'
            if before != after and not same_instructions(before, after) else '')


def same_instructions(before, after):
    """Whether instructions, registers, stack and shared memory are equal, wherever globals and
    their addresses lie: those that no instruction reads come and go with headers."""
    kept = [[section for section in sections if section[0] in CODE] for sections in (before, after)]
    if len(kept[0]) != len(kept[1]):
        return False
    for one, other in zip(*kept):
        if one[0] == '.text':
            if not same_text(one[4], other[4]) or one[5:] != other[5:]:
                return False
        elif one[0] == '.nv.info':
            if resources(one[4]) != resources(other[4]):
                return False
        elif one != other:
            return False
    return True


def same_text(one, other):
    """Instructions of 16 bytes; one may read another place of constant bank 4, which holds the
    addresses of globals (bits 40 to 53: the place, 54 to 58: the bank)."""
    if len(one) != len(other):
        return False
    place = (1 << 54) - (1 << 40)
    for at in range(0, len(one), 16):
        a, b = (int.from_bytes(text[at:at + 16], 'little') for text in (one, other))
        if a != b and (a & ~place != b & ~place or a >> 54 & 31 != 4):
            return False
    return True


def resources(info):
    """Registers and stack, of the attributes that registers() keeps."""
    return [one for one in info.split(b'|') if one[1:2] in (b'\x11', b'\x12', b'\x2f', b'\x23')]


def row_pairs(folder, old, new, count):
    """Texts of profile rows, as sources.py left them, drawn in turn from all families."""
    families = collections.defaultdict(list)
    for line in (folder / 'rows').read_text().split('\n'):
        if line:
            before, after, family = line.split(' ')[:3]
            families[family].append((before, after))
    headers, new_headers = device_headers(old), device_headers(new)
    draw = random.Random(1)
    for ids in families.values():
        draw.shuffle(ids)
    taken = 0
    while taken < count and any(families.values()):
        for family, ids in sorted(families.items()):
            if ids and taken < count:
                taken += 1
                before, after = ids.pop()
                yield (folder / 'old' / f'{before}.cu', headers,
                       folder / 'new' / f'{after}.cu', new_headers, 'sm_90a',
                       f'row of {family}')


def check(pair, nvrtc, code_only):
    old, old_headers, new, new_headers, architecture, kind = pair
    if not new.is_file():
        return kind, f'{old.name}: there is no {new}', False
    problem, is_bijection = ('', False) if code_only else compare_texts(
        tokens_of(old, old_headers, architecture),
        tokens_of(new, new_headers, architecture, old))
    if not problem and nvrtc:
        problem = compare_code(nvrtc, old, old_headers, new, new_headers, architecture)
    return kind, f'{new.name}: {problem}' if problem else '', is_bijection


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('old', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('new', type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument('--text-only', action='store_true')
    parser.add_argument('--code-only', action='store_true',
                        help='of a change of texts that is no renaming: machine code alone')
    parser.add_argument('--rows', type=pathlib.Path, metavar='FOLDER',
                        help='500 profile rows instead, whose texts sources.py left in FOLDER')
    parser.add_argument('--jobs', type=int, default=2)
    flags = parser.parse_args()
    nvrtc = None if flags.text_only else Nvrtc()
    counts, bijections, failed = collections.Counter(), collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(flags.jobs) as pool:
        drawn = (row_pairs(flags.rows, flags.old, flags.new, 500) if flags.rows else
                 pairs(flags.old, flags.new))
        checked = pool.map(lambda pair: check(pair, nvrtc, flags.code_only), drawn)
        for kind, problem, is_bijection in checked:
            counts[kind] += 1
            bijections[kind] += is_bijection
            failed += bool(problem)
            if problem:
                print(problem, flush=True)
    for kind, count in counts.items():
        print(f'{kind}: {count} kernels, {bijections[kind]} under a bijection')
    print(f'{failed} differ; machine code ' + ('was not compared' if flags.text_only else
                                               'was compared'))
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
