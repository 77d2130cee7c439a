"""Files of tensors for weft-interpret, written and read without packages."""
import json
import math
import struct

FORMATS = {'F16': 'e', 'F32': 'f', 'I32': 'i', 'I64': 'q', 'BOOL': '?'}


def write(path, tensors):
    """`tensors`: by name (dtype, shape, values in row-major order)."""
    header, blobs, at = {}, [], 0
    for name, (dtype, shape, values) in tensors.items():
        assert math.prod(shape) == len(values), (name, shape, len(values))
        blob = struct.pack(f'<{len(values)}{FORMATS[dtype]}', *values)
        header[name] = {
            'dtype': dtype, 'shape': list(shape), 'data_offsets': [at, at + len(blob)]
        }
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack('<Q', len(text)) + text + b''.join(blobs))
    return path


def read(path):
    """By name (dtype, shape, values in row-major order)."""
    raw = path.read_bytes()
    size = struct.unpack('<Q', raw[:8])[0]
    tensors = {}
    for name, entry in json.loads(raw[8:8 + size]).items():
        if name == '__metadata__':
            continue
        begin, _ = entry['data_offsets']
        values = struct.unpack_from(f'<{math.prod(entry["shape"])}{FORMATS[entry["dtype"]]}', raw,
                                    8 + size + begin)
        tensors[name] = (entry['dtype'], entry['shape'], list(values))
    return tensors
