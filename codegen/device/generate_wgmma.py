#!/usr/bin/env python3
"""Writes the headers of WGMMA wrappers (wgmma_*.cuh) from one table: `generate_wgmma.py [FOLDER]`.

A row of the table is a header: the types of A and B, how many elements of k one instruction takes,
where A comes from, and the tile widths n. Each width becomes a function `wgmma`, which adds the
product of A[64 x k] and B[k x n] to D[64 x n], in fp32, of which a thread of the warpgroup has
n / 2 accumulators. A kernel includes the headers whose functions it calls and no others: NVRTC
reads them for every kernel."""
import dataclasses
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = 100


@dataclasses.dataclass(frozen=True)
class Header:
    name: str  # wgmma_NAME.cuh
    a: str  # the elements of A and of B, as types of weft
    b: str
    k: int
    widths: tuple[int, ...]
    from_registers: bool = False  # A; B always lies in shared memory

    @property
    def has_orders(self):
        """Whether operands may be contiguous along m or n, too: 16-bit ones alone."""
        return self.k == 16


PTX = {'half': 'f16', 'bfloat16': 'bf16', 'tfloat32': 'tf32', 'float8e4m3': 'e4m3',
       'float8e5m2': 'e5m2'}
WIDE = (64, 128, 192, 256)  # tiles of GEMMs
MORE = (64, 80, 96, 128, 192, 256)
ATTENTION = tuple(range(16, 257, 16))  # blocks of keys, columns of heads
SMALL = (8, 16, 24, 32, 40, 48)  # single-consumer tiles

TABLE = [
    Header('f16', 'half', 'half', 16, MORE),
    Header('f16_small_n', 'half', 'half', 16, SMALL),
    Header('f16_any_n', 'half', 'half', 16, ATTENTION),
    Header('f16_rs', 'half', 'half', 16, ATTENTION, from_registers=True),
    Header('bf16', 'bfloat16', 'bfloat16', 16, MORE),
    Header('bf16_small_n', 'bfloat16', 'bfloat16', 16, SMALL),
    Header('bf16_any_n', 'bfloat16', 'bfloat16', 16, ATTENTION),
    Header('bf16_rs', 'bfloat16', 'bfloat16', 16, ATTENTION, from_registers=True),
    Header('tf32', 'tfloat32', 'tfloat32', 8, WIDE),
    Header('e4m3_e4m3', 'float8e4m3', 'float8e4m3', 32, WIDE),
    Header('e4m3_e5m2', 'float8e4m3', 'float8e5m2', 32, WIDE),
    Header('e5m2_e4m3', 'float8e5m2', 'float8e4m3', 32, WIDE),
    Header('e5m2_e5m2', 'float8e5m2', 'float8e5m2', 32, WIDE),
]


def wrapped(parts, first, indent):
    """Parts with commas between them, in lines of at most COLUMNS."""
    lines, line = [], first
    for number, part in enumerate(parts):
        part += ', ' if number + 1 < len(parts) else ''
        if len((line + part).rstrip()) > COLUMNS:
            lines.append(line.rstrip())
            line = indent
        line += part
    return [*lines, line]


def quoted(parts, indent, end):
    """The same as lines of string literals."""
    lines, line = [], ''
    for number, part in enumerate(parts):
        part += ', ' if number + 1 < len(parts) else end
        if len(indent) + len(line) + len(part) + 2 > COLUMNS:
            lines.append(f'{indent}"{line}"')
            line = ''
        line += part
    return [*lines, f'{indent}"{line}"']


def function(header, n):
    count = n // 2
    operands = 5 if header.from_registers else 2  # of the asm, behind the accumulators
    numbers = [f'%{number}' for number in range(count + operands + 1)]
    accumulators, accumulates = numbers[:count], numbers[-1]
    a = '{' + ', '.join(numbers[count:-2]) + '}' if header.from_registers else numbers[count]
    b = numbers[-2]
    orders = [name for name in ('outerA', 'outerB')
              if header.has_orders and not (header.from_registers and name == 'outerA')]
    immediates = ''.join(f', %{count + operands + 1 + i}' for i in range(len(orders)))
    parameters = 'bool outerB' if header.from_registers else 'bool outerA, bool outerB'
    of_a = 'const unsigned (&a)[4]' if header.from_registers else 'unsigned long long a'
    lines = [f'template <{parameters}>',
             *wrapped([f'{header.a} *', f'{header.b} *', f'float (&d)[{count}]', of_a,
                       'unsigned long long b', 'bool accumulates) {'],
                      '__device__ __forceinline__ void wgmma(', ' ' * 38)]
    if not header.has_orders:
        lines.append('  static_assert(!outerA && !outerB, "these operands lie along k");')
    lines += ['  asm volatile("{\\n\\t.reg .pred accumulates;\\n\\t"',
              f'               "setp.ne.b32 accumulates, {accumulates}, 0;\\n\\t"',
              f'               "wgmma.mma_async.sync.aligned.m64n{n}k{header.k}.f32.'
              f'{PTX[header.a]}.{PTX[header.b]} {{"',
              *quoted(accumulators, ' ' * 15, ''),
              f'               "}}, {a}, {b}, accumulates, 1, 1{immediates};\\n\\t}}"']
    inputs = [*([f'"r"(a[{i}])' for i in range(4)] if header.from_registers else ['"l"(a)']),
              '"l"(b)', '"r"(int(accumulates))', *[f'"n"(int({name}))' for name in orders]]
    lines += wrapped([f'"+f"(d[{i}])' for i in range(count)], ' ' * 15 + ': ', ' ' * 17)
    lines += wrapped(inputs, ' ' * 15 + ': ', ' ' * 17)
    lines[-1] += ');'
    return '\n'.join([*lines, '}', ''])


def text(header):
    types = PTX[header.a] if header.a == header.b else f'{PTX[header.a]} and {PTX[header.b]}'
    widths = ', '.join(str(n) for n in header.widths)
    about = [f'WGMMA of {types}: D[64 x n] += A[64 x {header.k}] B[{header.k} x n] in fp32, '
             f'n of {widths}.']
    if header.from_registers:
        about += ['A lies in registers: of the 16 x 16 elements of a warp, pairs of a row in a '
                  'word, rows l / 4 and + 8 of columns 2 (l % 4), + 1 in a[0], a[1], and of + 8 in '
                  'a[2], a[3]. B lies in shared memory behind a descriptor (wgmma.cuh).']
    else:
        about += ['A and B lie in shared memory behind descriptors (wgmma.cuh).']
    if header.has_orders:
        about += ['outerB: contiguous along n rather than along k.' if header.from_registers else
                  'outerA, outerB: contiguous along m or n rather than along k.']
    else:
        about += ['Both are contiguous along k, since there are no others.']
    if header.k == 32:
        about += ['D has the form of fp32 but not its precision: 32 products and the sum before '
                  'them are aligned to the largest of these and cut off below 13 bits of its '
                  'fraction (kernel/reference/PointEvaluator.h says how far off sums may be).']
    if header.k == 8:
        about += ['Of elements of 32 bits the tensor cores cut the lower 13 off.']
    about += ['Null pointers choose the types of A and B, in whose namespace templates find these '
              'functions. Generated by generate_wgmma.py.']
    comment = []
    for paragraph in about:
        line = '//'
        for word in paragraph.split():
            if len(line) + 1 + len(word) > COLUMNS:
                comment.append(line)
                line = '//'
            line += ' ' + word
        comment.append(line)
    declared = ''.join(f'struct {name};\n' for name in dict.fromkeys((header.a, header.b)))
    functions = '\n'.join(function(header, n) for n in header.widths)
    return ('\n'.join(comment) + '\n#pragma once\n\n// clang-format off\nnamespace weft {\n\n'
            + declared + '\n' + functions + '\n}  // namespace weft\n')


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for header in TABLE:
        (folder / f'wgmma_{header.name}.cuh').write_text(text(header), encoding='utf-8')


if __name__ == '__main__':
    main()
