"""Files of tensors for weft-interpret, written without packages."""
import json
import math
import struct

FORMATS = {'F32': 'f', 'I32': 'i'}


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
