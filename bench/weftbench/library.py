"""libweft_runtime.so by ctypes (runtime/weft_runtime.h)."""


def load(path):
    raise OSError(f'{path}: not bound yet')
