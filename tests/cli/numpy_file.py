"""Writes .npy files without NumPy."""


def flat(values):
    if not isinstance(values, list):
        return [values]
    return [one for value in values for one in flat(value)]


def numpy_file(path, tiles, type_='|b1', order='False'):
    """A .npy file of nested lists of booleans, as numpy.save writes it."""
    shape, level = [], tiles
    while isinstance(level, list):
        shape.append(len(level))
        level = level[0]
    header = (f"{{'descr': '{type_}', 'fortran_order': {order}, "
              f"'shape': ({', '.join(map(str, shape))},), }}")
    header += ' ' * (-(len(header) + 11) % 64) + '\n'
    path.write_bytes(b'\x93NUMPY\x01\x00' + len(header).to_bytes(2, 'little') +
                     header.encode('latin1') + bytes(flat(tiles)))
    return path
