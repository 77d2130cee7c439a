"""libweft_runtime.so by ctypes (runtime/api/weft_runtime.h)."""
import ctypes
import functools

FORWARD, ALL = 'forward', 'all'
INPUT, OUTPUT, PARAMETER = 0, 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [('name', ctypes.c_char_p), ('dtype', ctypes.c_char_p), ('rank', ctypes.c_int),
                ('extents', ctypes.POINTER(ctypes.c_int64)),
                ('order', ctypes.POINTER(ctypes.c_int))]


class RuntimeFailed(RuntimeError):
    """What weft_last_error() says."""


class Handle:
    """One loaded artifact, whose inputs and outputs are those of one entry point."""
    def __init__(self, library, folder, entry):
        self.library, self.pointer, self.entry = library, ctypes.c_void_p(), entry.encode()
        self.check(library.weft_open(str(folder).encode(), 0, ctypes.byref(self.pointer)))

    def __del__(self):
        if self.pointer:
            self.library.weft_close(self.pointer)

    def check(self, code):
        if code:
            raise RuntimeFailed(self.library.weft_last_error().decode())

    def tensors(self, kind):
        """Name, dtype, extents and order of memory of every input, output or parameter."""
        found = []
        for index in range(self.library.weft_tensor_count(self.pointer, self.entry, kind)):
            tensor = Tensor()
            self.check(
                self.library.weft_describe_tensor(self.pointer, self.entry, kind, index,
                                                  ctypes.byref(tensor)))
            found.append({
                'name': tensor.name.decode(), 'dtype': tensor.dtype.decode(),
                'extents': tensor.extents[:tensor.rank], 'order': tensor.order[:tensor.rank]
            })
        return found

    def set_parameter(self, name, tensor):
        self.check(
            self.library.weft_set_parameter(self.pointer, name.encode(),
                                            ctypes.c_void_p(tensor.data_ptr())))

    def set_dropout_key(self, seed, step):
        self.check(self.library.weft_set_dropout_key(self.pointer, seed, step))

    def launch(self, addresses, stream):
        self.check(
            self.library.weft_launch(self.pointer, self.entry,
                                     (ctypes.c_void_p * len(addresses))(*addresses), len(addresses),
                                     ctypes.c_void_p(stream)))

    def launch_kernel(self, name, memory, stream):
        """One kernel on the given memory: addresses by buffer of the plan."""
        count = len(memory)
        self.check(
            self.library.weft_launch_kernel(self.pointer, name.encode(),
                                            (ctypes.c_int * count)(*memory),
                                            (ctypes.c_void_p * count)(*memory.values()), count,
                                            ctypes.c_void_p(stream)))

    def device_bytes(self):
        return self.library.weft_device_bytes(self.pointer)


class Library:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.weft_last_error.restype = ctypes.c_char_p
        self.library.weft_device_bytes.restype = ctypes.c_int64
        self.library.weft_set_dropout_key.argtypes = [
            ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64
        ]
        self.library.weft_close.restype = None

    def open(self, folder, entry=FORWARD):
        return Handle(self.library, folder, entry)


@functools.lru_cache
def load(path):
    return Library(path)
