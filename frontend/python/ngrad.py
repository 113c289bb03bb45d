"""ngrad: compile computation graphs of training steps, and run them on arrays without copies.

    graph = ngrad.load("layer_norm.yaml")
    y, mean, variance = graph(x, gamma, beta)   # compiled for the shapes of these arrays; numpy, torch, ...
    backward = graph.gradient().with_dims(N=64).compile()

A Graph is immutable: its methods return new graphs. A Kernel is a compiled graph, all of whose extents are numbers.
Several threads may use either at once. Errors are exceptions of class Error with the library's messages; warnings are
Python's. The module calls the C API of ngrad.h through ctypes, and words mean the same in both.
"""

from __future__ import annotations

import ctypes
import functools
import math
import numbers
import operator
import os
import re
import sys
import sysconfig
import threading
import warnings
import weakref
from collections import namedtuple
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any, Dict, Iterable, Mapping, NamedTuple, Optional, Sequence, Tuple, Union, cast, overload

import numpy

__all__ = [
    "CompilerError", "Error", "Graph", "GraphError", "Kernel", "Message", "OutOfMemory", "Results", "State", "Tensor",
    "UsageError", "Warning", "bits", "load", "loads", "thread_count", "version",
]  # fmt: skip

# Types of arguments. An array is of any class that has DLPack, the array interface or the buffer protocol.
_Array = Any
_Names = Union[str, Iterable[str], None]
_Path = Union[str, "os.PathLike[str]"]

_SONAME = "libngrad.so.0.2"
_MAX_RANK = 8


# Declarations of ngrad.h.


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("type", c_int), ("rank", c_int), ("extent", c_int64 * _MAX_RANK), ("data", c_void_p),
        ("order", c_ubyte * _MAX_RANK),
    ]  # fmt: skip


class _TensorInfo(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p), ("type", c_int), ("rank", c_int), ("extent", c_int64 * _MAX_RANK),
        ("dim", c_char_p * _MAX_RANK), ("order", c_ubyte * _MAX_RANK),
    ]  # fmt: skip


class _Message(ctypes.Structure):
    _fields_ = [("is_error", c_int), ("file", c_char_p), ("line", c_uint), ("column", c_uint), ("text", c_char_p)]


class _State(ctypes.Structure):
    _fields_ = [("input", c_size_t), ("output", c_size_t), ("is_updated", c_int), ("least", c_int64), ("most", c_int64)]


class _Dim(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_int64)]


_FindShape = ctypes.CFUNCTYPE(c_int, c_void_p, c_char_p, POINTER(c_int64))


class _ReadOptions(ctypes.Structure):
    _fields_ = [
        ("constants", POINTER(c_char_p)), ("nconstants", c_size_t), ("dims", POINTER(_Dim)), ("ndims", c_size_t),
        ("find_shape", _FindShape), ("find_shape_user", c_void_p), ("trains_batch_norms", c_int),
    ]  # fmt: skip


class _Options(ctypes.Structure):
    _fields_ = [
        ("isa", c_char_p), ("no_fuse", c_int), ("memory_nbytes", c_uint64), ("disable", POINTER(c_char_p)),
        ("ndisable", c_size_t), ("schedule", POINTER(c_char_p)), ("nschedule", c_size_t),
        ("costs", POINTER(c_char_p)), ("ncosts", c_size_t), ("after", c_char_p),
        ("threads", c_char_p), ("prefix", c_char_p), ("self_test", c_int), ("fast_math", c_int), ("report", c_void_p),
        ("report_user", c_void_p), ("report_graphs", c_int), ("profile", c_int), ("compile_timeout", c_double),
        ("weights", c_char_p), ("optimize", c_char_p), ("package", c_char_p), ("wrote", c_void_p), ("wrote_user", c_void_p),
    ]  # fmt: skip


class _GradientOptions(ctypes.Structure):
    _fields_ = [
        ("wrt", POINTER(c_char_p)), ("nwrt", c_size_t), ("of", POINTER(c_char_p)), ("nof", c_size_t),
        ("save_least", c_int), ("derivative", c_int), ("precision", c_char_p), ("keep_f32", POINTER(c_char_p)),
        ("nkeep_f32", c_size_t),
    ]  # fmt: skip


class _Setting(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("value", c_double)]


class _TrainOptions(ctypes.Structure):
    _fields_ = [
        ("losses", POINTER(c_char_p)), ("nlosses", c_size_t), ("optimizer", c_char_p), ("settings", POINTER(_Setting)),
        ("nsettings", c_size_t), ("schedule", c_char_p), ("freeze", POINTER(c_char_p)), ("nfreeze", c_size_t),
        ("no_decay", POINTER(c_char_p)), ("nno_decay", c_size_t),
        ("precision", c_char_p), ("keep_f32", POINTER(c_char_p)), ("nkeep_f32", c_size_t),
    ]  # fmt: skip


class _KernelInfo(ctypes.Structure):
    _fields_ = [
        ("isa", c_char_p), ("nkernels", c_size_t), ("workspace_nbytes", c_size_t), ("was_cached", c_int),
        ("emit_ms", c_double), ("compile_ms", c_double), ("load_ms", c_double),
    ]  # fmt: skip


# Name in ngrad.h: result, arguments.
_FUNCTIONS = {
    "version": (c_char_p, []),
    "bits": (c_int, []),
    "thread_count": (c_int, []),
    "type_name": (c_char_p, [c_int]),
    "context_new": (c_void_p, [c_void_p]),
    "context_free": (None, [c_void_p]),
    "context_set_progress": (None, [c_void_p, c_void_p, c_void_p]),
    "message_count": (c_size_t, [c_void_p]),
    "message_at": (_Message, [c_void_p, c_size_t]),
    "messages_text": (c_char_p, [c_void_p, c_int]),
    "messages_clear": (None, [c_void_p]),
    "last_status": (c_int, [c_void_p]),
    "status_text": (c_char_p, [c_int]),
    "text_free": (None, [c_void_p, c_void_p]),
    "graph_read_with": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t, c_char_p, POINTER(_ReadOptions)]),
    "graph_free": (None, [c_void_p]),
    "graph_name": (c_char_p, [c_void_p]),
    "graph_input_count": (c_size_t, [c_void_p]),
    "graph_output_count": (c_size_t, [c_void_p]),
    "graph_input": (_TensorInfo, [c_void_p, c_size_t]),
    "graph_output": (_TensorInfo, [c_void_p, c_size_t]),
    "graph_state_count": (c_size_t, [c_void_p]),
    "graph_state": (_State, [c_void_p, c_size_t]),
    "graph_dim_count": (c_size_t, [c_void_p]),
    "graph_dim": (_Dim, [c_void_p, c_size_t]),
    "graph_set_dim": (c_int, [c_void_p, c_char_p, c_int64]),
    "graph_set_input_shape": (c_int, [c_void_p, c_size_t, c_int, POINTER(c_int64)]),
    "graph_bind": (c_int, [c_void_p]),
    "graph_show": (c_void_p, [c_void_p, c_char_p, POINTER(_Options)]),
    "graph_onnx": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "graph_with_inputs": (c_void_p, [c_void_p, POINTER(c_char_p), c_size_t]),
    "graph_trainable": (c_void_p, [c_void_p]),
    "graph_gradient": (c_void_p, [c_void_p, POINTER(_GradientOptions)]),
    "graph_gradient_forward": (c_void_p, [c_void_p, POINTER(_GradientOptions)]),
    "graph_train": (c_void_p, [c_void_p, POINTER(_TrainOptions)]),
    "graph_inference": (c_void_p, [c_void_p, c_int, POINTER(_TrainOptions)]),
    "graph_read_states": (c_int, [c_void_p, c_char_p, c_int]),
    "graph_narrow_weights": (c_int, [c_void_p, c_int]),
    "graph_check_indices": (c_int, [c_void_p, POINTER(_Tensor)]),
    "tensor_init": (c_int, [c_void_p, c_size_t, c_uint64, POINTER(_Tensor)]),
    "tensor_random": (c_int, [c_void_p, c_size_t, c_uint64, POINTER(_Tensor)]),
    "tensor_nbytes": (c_size_t, [POINTER(_Tensor)]),
    "tensor_free": (None, [c_void_p, POINTER(_Tensor)]),
    "interpret": (c_int, [c_void_p, POINTER(_Tensor), POINTER(_Tensor), c_int]),
    "emit_files": (c_int, [c_void_p, POINTER(_Options), c_char_p]),
    "compile": (c_void_p, [c_void_p, POINTER(_Options)]),
    "kernel_get_info": (_KernelInfo, [c_void_p]),
    "kernel_run": (c_int, [c_void_p, POINTER(_Tensor), POINTER(_Tensor), c_int]),
    "kernel_refusal": (c_char_p, [c_void_p, POINTER(_Tensor), POINTER(_Tensor)]),
    "kernel_free": (None, [c_void_p]),
}


def _load_library():
    """Loads $NGRAD_LIBRARY; else the library beside this file (a wheel), or of its installation; else the system's."""
    path = os.environ.get("NGRAD_LIBRARY")
    if not path:
        folder = os.path.dirname(os.path.abspath(__file__))  # LIBRARIES/python3/dist-packages/ngrad
        libraries = os.path.dirname(os.path.dirname(os.path.dirname(folder)))
        folders = [folder, libraries, os.path.join(libraries, sysconfig.get_config_var("MULTIARCH") or "")]
        paths = (os.path.join(folder, _SONAME) for folder in folders)
        path = next(filter(os.path.exists, paths), _SONAME)
    try:
        library = ctypes.CDLL(path)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, "ng_" + name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise ImportError(f"{error}: expected the library {_SONAME} of ngrad; NGRAD_LIBRARY may name another") from None
    return library


_lib = _load_library()
_OK, _WRONG, _USAGE, _DIFFERENT, _COMPILER_FAILED, _OUT_OF_MEMORY = range(6)
_TYPES: Dict[str, int] = {}  # name: number in ngrad.h
while _lib.ng_type_name(len(_TYPES) + 1) != _lib.ng_type_name(0):
    _TYPES[_lib.ng_type_name(len(_TYPES) + 1).decode()] = len(_TYPES) + 1
_TYPE_NAMES = {number: name for name, number in _TYPES.items()}


def version() -> str:
    """The library's version: "0.2.0"."""
    return _lib.ng_version().decode()


def bits() -> int:
    """Which bits results have; versions with the same number compute the same."""
    return _lib.ng_bits()


def thread_count() -> int:
    """The default number of threads of a kernel: the processors that this process may use."""
    return _lib.ng_thread_count()


# Errors


class Message(NamedTuple):
    """A message of the library; line and column count from 1, and are 0 without a position."""

    is_error: bool
    file: Optional[str]
    line: int
    column: int
    text: str


class Error(Exception):
    """`messages` is a list of Message; str() formats them like a compiler's diagnostics."""

    def __init__(self, text: str, messages: Sequence[Message] = ()) -> None:
        super().__init__(text)
        self.messages = list(messages)


class GraphError(Error, ValueError):
    """The graph or its data is wrong."""


class UsageError(Error, ValueError):
    """An argument is wrong."""


class CompilerError(Error):
    """The system's C compiler is missing or failed."""


class OutOfMemory(Error, MemoryError):
    """Out of memory, or over the memory budget."""


class Warning(UserWarning):
    """A graph is valid, but suspicious."""


_ERRORS = {_USAGE: UsageError, _COMPILER_FAILED: CompilerError, _OUT_OF_MEMORY: OutOfMemory}


# What the program's options in the library's messages are here.
_WORDS = [
    (re.compile(pattern), word)
    for pattern, word in (
        (r"--dim ([^\s=]+)=([-\w]+)", r"with_dims(\1=\2)"), (r"by --dim or", "by with_dims or"),
        (r"--constant ([^\s=]+)=FILE", r"""load(PATH, constants={"\1": FILE})"""),
        (r"--shape ([^\s=]+)=([\d,]+)", r"""load(PATH, shapes={"\1": [\2]})"""),
        (r"--of names", "of= names"), (r"--freeze (\S+)", r"""freeze="\1\""""), (r"ngrad train --accumulate N", "train(accumulate=N)"),
        (r"--compile-timeout", "compile_timeout"), (r"--no-fuse", "fuse=False"),
    )
]  # fmt: skip
_READING = (re.compile(r"--dim ([^\s=]+)=([-\w]+)"), r"""load(PATH, dims={"\1": \2})""")  # where a file is read


def _text(nbytes):
    return nbytes.decode(errors="replace")


def _in_own_words(text, is_reading):
    if "--" in text:  # else nothing to do, in most texts
        for pattern, word in [_READING, *_WORDS] if is_reading else _WORDS:
            text = pattern.sub(word, text)
    return text


def _encode(text):
    """Encodes a name; bytes of paths that are not UTF-8 are preserved."""
    if not isinstance(text, str):
        raise UsageError(f"expected a string, found {text!r}")
    encoded = text.encode(errors="surrogateescape")
    if b"\0" in encoded:
        raise UsageError(f"{text!r}: expected no NUL character")
    return encoded


def _integer(value, what, bits=63):
    """An integer that fits into C's type; ctypes would silently truncate it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise UsageError(f"{what}: expected an integer, found {value!r}") from None
    if not -(1 << bits) <= number < 1 << bits:
        raise UsageError(f"{what}: expected an integer that is less than 2^{bits}, found {number}")
    return number


def _amount(value, what):
    number = _integer(value, what, 64)
    if number < 0:
        raise UsageError(f"{what}: expected 0 or more, found {number}")
    return number


def _number(value, what):
    """A finite number."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{what}: expected a finite number, found {value!r}")
    return number


def _list(values, what):
    try:
        return list(values)
    except TypeError:
        raise UsageError(f"expected {what}, found {values!r}") from None


def _names(names):
    """A tuple of encoded names, which no caller can change; None stays None."""
    if names is None:
        return None
    if isinstance(names, str):
        names = [names]
    return tuple(_encode(name) for name in _list(names, "a string or a list of strings"))


def _strings(names):
    """Encoded names as char **; None gives NULL."""
    return (None, 0) if names is None else ((c_char_p * len(names))(*names), len(names))


def _items(mapping, what):
    """The items of a mapping; of None, none."""
    if mapping is None:
        return ()
    if not hasattr(mapping, "items"):
        raise UsageError(f"{what}: expected a dict, found {type(mapping).__name__}")
    return mapping.items()


def _free(handles):
    while handles:
        free, handle = handles.pop()
        free(handle)


class _Session:
    """A context and its handles, which are freed in reverse order. One thread at a time may use it."""

    def __init__(self):
        self.context = _lib.ng_context_new(None)
        if not self.context:
            raise OutOfMemory("out of memory")
        self._handles = [(_lib.ng_context_free, self.context)]  # (function that frees it, handle)
        self.is_reading = False  # a file; what is wrong then is to be given to load

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def free(self):
        _free(self._handles)
        self.context = None

    def free_with_last_reference(self):
        """Not at exit, when other threads may be in a call."""
        weakref.finalize(self, _free, self._handles).atexit = False

    def keep(self, handle, free):
        """Stores a handle to be freed later, and returns it; NULL raises an error."""
        if not handle:
            self.fail(_lib.ng_last_status(self.context))
        self._handles.append((free, handle))
        return handle

    def check(self, status):
        if status != _OK:
            self.fail(status)

    def messages(self):
        found = []
        for i in range(_lib.ng_message_count(self.context)):
            m = _lib.ng_message_at(self.context, i)
            text = _in_own_words(_text(m.text), self.is_reading)
            found.append(Message(bool(m.is_error), m.file and _text(m.file), m.line, m.column, text))
        return found

    def _messages_text(self):
        return _in_own_words(_text(_lib.ng_messages_text(self.context, 0)).rstrip("\n"), self.is_reading)

    def fail(self, status):
        text = self._messages_text() or _text(_lib.ng_status_text(status))
        raise _ERRORS.get(status, GraphError)(text, self.messages())

    def warn(self):
        """Raises the messages as Python warnings of the line that called this module."""
        if _lib.ng_message_count(self.context):
            level, frame = 1, sys._getframe()
            while frame.f_back and frame.f_code.co_filename == __file__:
                level, frame = level + 1, frame.f_back
            warnings.warn(self._messages_text(), Warning, stacklevel=level)
            _lib.ng_messages_clear(self.context)


class _Progress:
    """Says on a terminal, on standard error, what takes more than a second; the line is erased at the end."""

    _CALLBACK = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_double)
    _PATIENCE_S = 1.0

    def __init__(self, session):
        self._context, self._what, self._is_shown = session.context, None, False
        self._callback = self._CALLBACK(self._tell)
        self._is_seen = bool(sys.stderr) and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self):
        if self._is_seen:
            _lib.ng_context_set_progress(self._context, ctypes.cast(self._callback, c_void_p), None)
            self._timer = threading.Timer(self._PATIENCE_S, self._show)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(self, *_):
        if self._is_seen:
            _lib.ng_context_set_progress(self._context, None, None)
            self._timer.cancel()
            self._timer.join()
            if self._is_shown:
                print(end="\r\033[K", file=sys.stderr, flush=True)

    def _tell(self, _user, what, _fraction):
        self._what = "".join(c if c.isprintable() else "?" for c in _text(what))

    def _show(self):
        if self._what:
            self._is_shown = True
            print(self._what, end=" ...", file=sys.stderr, flush=True)


# Tensors


class Tensor(NamedTuple):
    """The name, type, shape and layout of a graph's input or output.

    `shape` has a number, a dim's name, or None for each extent (None: unknown), and is None for an unknown rank. `order`
    is the layout: the axes from the slowest to the fastest in memory.
    """

    name: str
    type: str
    shape: Optional[Tuple[Union[int, str, None], ...]]
    order: Tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements. Every extent must be a number."""
        shape, next_stride = cast("tuple[int, ...]", self.shape), 1
        strides = [0] * len(shape)
        for axis in reversed(self.order):
            strides[axis] = next_stride
            next_stride *= shape[axis]
        return tuple(strides)

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """The shape of the array that stores it: 4-bit types are stored as bytes of two elements each."""
        shape = cast("tuple[int, ...]", self.shape)
        return ((math.prod(shape) + 1) // 2,) if self.type in _PACKED else shape

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The dtype of the numpy array that stores it."""
        return numpy.dtype(_DTYPES[self.type])

    def __str__(self) -> str:
        shape = "" if self.shape is None else " " + _shape_text(self.shape)
        return f"{self.name}: {self.type}{shape}"


class State(NamedTuple):
    """A state of a graph: its index in the inputs, and in the outputs, or None if no call updates it."""

    name: str
    input: int
    output: Optional[int]


_PACKED = ("s4", "u4")
_DTYPES = {
    "f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "s64": "i8", "s32": "i4", "s8": "i1", "u8": "u1",
    "s16": "i2", "u64": "u8", "u32": "u4", "u16": "u2", "boolean": "?", "f8_e4m3": "u1", "f8_e5m2": "u1", "s4": "u1", "u4": "u1",
}  # fmt: skip
# Names of the types in ml_dtypes and PyTorch.
_SYNONYMS = {"bf16": "bfloat16", "f8_e4m3": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "boolean": "bool"}


def _shape_text(shape):
    return "[" + ", ".join("_" if extent is None else str(extent) for extent in shape) + "]"


def _tensor_of(info):
    shape = tuple(
        _text(info.dim[i]) if info.dim[i] else int(info.extent[i]) if info.extent[i] >= 0 else None
        for i in range(max(info.rank, 0))
    )
    order = tuple(info.order[: len(shape)])
    if not any(order):
        order = tuple(range(len(shape)))
    return Tensor(_text(info.name), _TYPE_NAMES[info.type], shape if info.rank >= 0 else None, order)


# Arrays of other libraries


class _DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


class _DLVersioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", c_void_p), ("deleter", c_void_p),
        ("flags", c_uint64), ("tensor", _DLTensor),
    ]  # fmt: skip


_DL_CPU = 1
_DL_CPU_MEMORY = (_DL_CPU, 3, 11, 13)  # the CPU's memory, and other devices' pinned and managed memory
_DL_MAJOR = 1  # the version of the struct's layout
_DL_READ_ONLY, _DL_IS_COPY = 1, 2
_DL_CODES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool", 10: "float8_e4m3fn", 12: "float8_e5m2"}
_DL_BYTES = (6, 10, 12)  # codes whose type has 8 bits, which its name does not say
_capsule_is_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
_MOST_NBYTES = 2**63 - 1
_ADDRESSES = 1 << 8 * ctypes.sizeof(c_void_p)


class _View(namedtuple("_View", "dtype itemsize shape strides address is_writable owner")):
    """The memory of an array, valid as long as `owner` lives; strides are in elements."""


def _checked_view(dtype, itemsize, shape, strides, address, is_writable, owner):
    """A view that an object describes in numbers, each of which is checked. address: 0 or None for none."""
    if len(shape) > _MAX_RANK:
        raise BufferError(f"expected at most {_MAX_RANK} axes, found {len(shape)}")
    if min(shape, default=0) < 0:
        raise BufferError(f"expected extents of 0 or more, found {_shape_text(shape)}")
    # An array without elements has no bytes, but extents that overflow are wrong there, too.
    if math.prod(max(extent, 1) for extent in shape) * max(itemsize, 1) > _MOST_NBYTES:
        raise BufferError(f"expected less than 2^63 bytes, found elements of {itemsize} bytes in the shape {_shape_text(shape)}")
    if 0 in shape:
        return _View(dtype, itemsize, shape, strides, 0, is_writable, owner)
    if not address:
        raise BufferError(f"expected the address of elements, found an array {_shape_text(shape)} without data")
    if not 0 < address <= _ADDRESSES - math.prod(shape) * itemsize:
        raise BufferError(f"expected an address in memory, found {address:#x}")
    return _View(dtype, itemsize, shape, strides, address, is_writable, owner)


def _view_of_numpy(array):
    array = numpy.ndarray.view(array, numpy.ndarray)  # a subclass may describe other memory than it has
    itemsize = array.dtype.itemsize
    # The strides of a view of a record's field may be no multiple of the element.
    strides = tuple(_elements(stride, itemsize) for stride in array.strides)
    address = array.__array_interface__["data"][0] if array.size else 0
    if array.size and not address:  # of a buffer that has none
        raise BufferError(f"expected the address of elements, found an array {_shape_text(array.shape)} without data")
    return _View(_dtype_name(array.dtype), itemsize, array.shape, strides, address, array.flags.writeable, array)


@functools.lru_cache(256)  # numpy makes the name anew each time, in microseconds
def _dtype_name(dtype):
    return dtype.name if dtype.isnative else dtype.str


def _elements(nbytes, itemsize):
    itemsize = itemsize or 1
    return nbytes // itemsize if nbytes % itemsize == 0 else nbytes / itemsize


def _dlpack_name(t):
    name = _DL_CODES.get(t.code, f"type {t.code} of DLPack")
    if t.code not in _DL_BYTES or t.bits != 8:
        name += str(t.bits)
    return name if t.lanes == 1 else f"{name} times {t.lanes}"


def _check_device(device, index):
    if device not in _DL_CPU_MEMORY:
        raise BufferError(f"expected memory of the CPU, found that of DLPack's device type {device}")
    if index < 0 or device == _DL_CPU and index:
        raise BufferError(f"expected memory of the CPU, found that of device {index} of DLPack's device type {device}")


def _dlpack_tensor(capsule):
    """The struct in a capsule, and its flags."""
    if _capsule_is_valid(capsule, b"dltensor_versioned"):
        versioned = _DLVersioned.from_address(_capsule_pointer(capsule, b"dltensor_versioned"))
        if versioned.major != _DL_MAJOR:  # nothing else of it may be read
            raise BufferError(f"expected version {_DL_MAJOR} of DLPack, found {versioned.major}.{versioned.minor}")
        return versioned.tensor, versioned.flags
    if _capsule_is_valid(capsule, b"dltensor"):
        return _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor")), 0
    for used in b"used_dltensor", b"used_dltensor_versioned":
        if _capsule_is_valid(capsule, used):
            raise BufferError("expected a new capsule from __dlpack__, found one that was used before")
    raise BufferError(f"expected a capsule of DLPack from __dlpack__, found {_kind(capsule)}")


def _kind(value):
    return "another capsule" if type(value).__name__ == "PyCapsule" else type(value).__name__


def _view_of_dlpack(array):
    _check_device(*(operator.index(number) for number in array.__dlpack_device__()))
    torch = _torch_of([array])
    is_bool = torch and array.dtype == torch.bool
    if torch and array.is_neg():  # PyTorch exports it without the negation
        raise BufferError("expected a tensor whose elements are in memory, found a view that negates them")
    if is_bool:  # PyTorch 1 and 2.0 do not export it
        array = array.view(torch.uint8)
    try:
        capsule = array.__dlpack__(max_version=(_DL_MAJOR, 0))
    except TypeError:
        capsule = array.__dlpack__()
    t, flags = _dlpack_tensor(capsule)
    _check_device(t.device_type, t.device_id)
    ndim = t.ndim
    if not 0 <= ndim <= _MAX_RANK:
        raise BufferError(f"expected at most {_MAX_RANK} axes, found {ndim}")
    if ndim and not t.shape:
        raise BufferError(f"expected a shape, found none for {ndim} axes")
    shape = tuple(t.shape[:ndim]) if ndim else ()
    strides = tuple(t.strides[:ndim]) if ndim and t.strides else Tensor("", "", shape, tuple(range(ndim))).strides
    address = t.data + t.byte_offset if t.data else None
    is_writable = not flags & (_DL_READ_ONLY | _DL_IS_COPY)
    name = "bool" if is_bool else _dlpack_name(t)
    # A capsule that no consumer takes over frees its tensor when it is deleted.
    return _checked_view(name, (t.bits * t.lanes + 7) // 8, shape, strides, address, is_writable, (array, capsule))


def _integers(values, what):
    """A tuple of integers."""
    if not isinstance(values, (list, tuple)):
        raise BufferError(f"{what}: expected a tuple of integers, found {type(values).__name__}")
    return tuple(_integer(value, what) for value in values)


def _view_of_interface(array):
    """Of an object with numpy's array interface, version 3: a dict."""
    interface = array.__array_interface__
    if not isinstance(interface, dict):
        raise BufferError(f"__array_interface__: expected a dict, found {type(interface).__name__}")
    if _integer(interface.get("version"), "version of __array_interface__") != 3:
        raise BufferError(f"expected version 3 of __array_interface__, found {interface['version']}")
    if interface.get("mask") is not None:
        raise BufferError("expected an array without a mask")
    if not isinstance(interface.get("typestr"), str):
        raise BufferError(f"typestr of __array_interface__: expected a string, found {interface.get('typestr')!r}")
    dtype, shape = numpy.dtype(interface["typestr"]), _integers(interface.get("shape"), "shape of __array_interface__")
    data, strides = interface.get("data"), interface.get("strides")
    if strides is not None:
        strides = _integers(strides, "strides of __array_interface__")
        if len(strides) != len(shape):
            raise BufferError(f"expected strides of {len(shape)} axes, found {len(strides)}")
    if not isinstance(data, tuple):  # an object with a buffer, by default the array itself
        offset = _amount(interface.get("offset", 0), "offset of __array_interface__")
        buffer = memoryview(array if data is None else data)
        return _view_of_numpy(numpy.ndarray(shape, dtype, buffer, offset, strides))  # numpy checks the other bound
    if len(data) != 2:
        raise BufferError("data of __array_interface__: expected an address and whether it is read-only")
    if strides is None:
        strides = Tensor("", "", shape, tuple(range(len(shape)))).strides
    else:
        strides = tuple(_elements(stride, dtype.itemsize) for stride in strides)
    address = _integer(data[0], "data of __array_interface__", 64)
    return _checked_view(_dtype_name(dtype), dtype.itemsize, shape, strides, address, not data[1], (array, interface))


def _view(array):
    """An array's memory, never a copy of it."""
    if isinstance(array, numpy.ma.MaskedArray):
        raise BufferError("expected an array without a mask")
    if isinstance(array, numpy.ndarray):
        return _view_of_numpy(array)
    if hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__"):
        return _view_of_dlpack(array)
    if hasattr(array, "__array_interface__"):
        return _view_of_interface(array)
    try:
        buffer = memoryview(array)
    except TypeError:
        kind = type(array).__name__
        raise BufferError(f"expected an array (numpy, DLPack, array interface or buffer), found {kind}") from None
    return _view_of_numpy(numpy.asarray(buffer))


class _Foreign:
    """A block that calls methods of a caller's array: what they raise becomes an error about the tensor."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if error is None or isinstance(error, MemoryError) or not isinstance(error, Exception):
            return
        said = isinstance(error, (BufferError, OverflowError, RuntimeError, TypeError, ValueError)) and str(error)
        raise UsageError(f"{self.name}: {said or repr(error)}") from error


def _is_dense(tensor, view):
    if 0 in tensor.stored_shape:
        return True
    strides = (1,) if tensor.type in _PACKED else tensor.strides
    return all(extent == 1 or a == b for extent, a, b in zip(view.shape, view.strides, strides))


def _check_view(tensor, view, is_output):
    """Why a view cannot be the tensor's memory; None: it can."""
    names = [_dtype_name(tensor.dtype), _SYNONYMS.get(tensor.type)]
    if view.dtype not in names or view.itemsize != tensor.dtype.itemsize or view.shape != tensor.stored_shape:
        wanted = " or ".join(filter(None, dict.fromkeys(names)))
        return (
            f"{tensor.name}: expected {tensor.type} {_shape_text(tensor.shape)}, as {wanted} "
            f"{_shape_text(tensor.stored_shape)}, found {view.dtype} {_shape_text(view.shape)}"
        )
    if not _is_dense(tensor, view):
        layout = "" if tensor.order == tuple(range(len(tensor.order))) else f" in the layout {list(tensor.order)}"
        return (
            f"{tensor.name}: expected elements{layout} without gaps, of strides {list(tensor.strides)}, "
            f"found strides {list(view.strides)}; a copy would be needed"
        )
    if view.address % tensor.dtype.itemsize:
        return f"{tensor.name}: expected data that is aligned to its elements"
    if is_output and not view.is_writable:
        return f"{tensor.name}: expected an array that can be written, found a read-only one"
    return None


_nothing = numpy.zeros(8)  # its address is that of arrays without elements and data


def _fill(target, tensor, view):
    """Sets a C tensor to a view."""
    target.type, target.rank = _TYPES[tensor.type], len(tensor.shape)
    target.extent[: target.rank] = tensor.shape
    target.order[: target.rank] = tensor.order
    target.data = view.address or _nothing.ctypes.data
    return target


def _number_as_array(tensor, value):
    """Converts a number to an array, for a tensor of rank 0; returns other values unchanged."""
    if isinstance(value, numpy.generic):
        return numpy.asarray(value)
    is_bits = tensor.type in _PACKED or tensor.type in _SYNONYMS and tensor.type != "boolean"
    if not isinstance(value, numbers.Real) or tensor.shape != () or is_bits:
        return value
    with numpy.errstate(over="ignore", invalid="ignore"):  # checked below
        array = numpy.array(value).astype(tensor.dtype)
    if array.dtype.kind != "f" and array != value or numpy.isinf(array) and not math.isinf(value):
        raise ValueError(f"expected a number of type {tensor.type}, found {value}")
    return array


_LABELS = {"s32": numpy.iinfo(numpy.int32), "s64": numpy.iinfo(numpy.int64)}
_INTEGERS = {numpy.dtype(kind).name: numpy.dtype(kind) for kind in "bhilqBHILQ"}


def _labels_of(tensor, view):
    """The view, or a view of a copy if its elements are integers of another width, as labels often are."""
    if tensor.type not in _LABELS or view.dtype == tensor.dtype.name or view.dtype not in _INTEGERS:
        return view
    is_array = view.itemsize == _INTEGERS[view.dtype].itemsize and all(isinstance(s, int) for s in view.strides)
    if not is_array or view.shape != tensor.shape:
        return view  # _check_view reports it
    copy = _empty(tensor, None)
    if copy.size:
        ends = [stride * (extent - 1) for stride, extent in zip(view.strides, view.shape)]
        first, nelems = sum(min(end, 0) for end in ends), sum(abs(end) for end in ends) + 1
        address = view.address + first * view.itemsize
        memory = (c_ubyte * (nelems * view.itemsize)).from_address(address)
        strides = [stride * view.itemsize for stride in view.strides]
        given = numpy.ndarray(view.shape, _INTEGERS[view.dtype], memory, -first * view.itemsize, strides)
        for number in int(given.min()), int(given.max()):
            if not _LABELS[tensor.type].min <= number <= _LABELS[tensor.type].max:
                raise ValueError(f"expected integers of type {tensor.type}, found {number}")
        copy[...] = given
    return _view_of_numpy(copy)


def _take(target, tensor, array, is_output=False):
    """Sets a C tensor to an array's memory, valid as long as the returned view lives."""
    with _Foreign(tensor.name):
        view = _view(array if is_output else _number_as_array(tensor, array))
        if not is_output:
            view = _labels_of(tensor, view)
    why = _check_view(tensor, view, is_output)
    if why:
        raise UsageError(why)
    _fill(target, tensor, view)
    return view


def _empty(tensor, torch):
    """A new array: a PyTorch tensor if `torch` is given, else numpy's."""
    shape = tensor.stored_shape
    order = tensor.order if tensor.type not in _PACKED else (0,)
    permuted, inverse = [shape[axis] for axis in order], [order.index(axis) for axis in range(len(order))]
    if torch:
        name = _SYNONYMS.get(tensor.type)
        dtype = getattr(torch, name, None) if name else None
        return torch.empty(permuted, dtype=dtype or getattr(torch, tensor.dtype.name)).permute(inverse)
    return numpy.empty(permuted, tensor.dtype).transpose(inverse)


def _torch_of(arrays):
    """The module torch, if one of the arrays is a PyTorch tensor."""
    torch = sys.modules.get("torch")
    return torch if torch and any(isinstance(array, torch.Tensor) for array in arrays) else None


class Results(tuple):
    """A call's outputs in the graph's order; results["name"] is the output of that name."""

    names: tuple[str, ...]

    def __new__(cls, names, arrays):
        self = super().__new__(cls, arrays)
        self.names = tuple(names)
        return self

    @overload  # type: ignore[override]
    def __getitem__(self, key: slice) -> tuple[_Array, ...]: ...
    @overload
    def __getitem__(self, key: int | str) -> _Array: ...
    def __getitem__(self, key):
        if not isinstance(key, str):
            return super().__getitem__(key)
        if key not in self.names:
            raise KeyError(f"{key}: expected one of {', '.join(self.names)}")
        return super().__getitem__(self.names.index(key))

    def __getnewargs__(self):
        return self.names, tuple(self)

    def as_dict(self) -> dict[str, _Array]:
        return dict(zip(self.names, self))


def _by_name(tensors, arrays, named, what):
    """A list of arrays parallel to tensors; None for those not given."""
    if len(arrays) > len(tensors):
        raise UsageError(f"expected at most {len(tensors)} {what}s, found {len(arrays)}")
    found = list(arrays) + [None] * (len(tensors) - len(arrays))
    index = {tensor.name: i for i, tensor in enumerate(tensors)}
    for name, array in named.items():
        if name not in index:
            raise UsageError(f"no {what} {name}: expected {', '.join(index) or 'none'}")
        if found[index[name]] is not None:
            raise UsageError(f"{what} {name} is given twice")
        found[index[name]] = array
    return found


def _listed(out):
    """The arrays of out= if it is a sequence in the outputs' order."""
    if out is None or isinstance(out, dict):
        return ()
    if not isinstance(out, (list, tuple)):
        raise UsageError(f"out: expected a list of arrays, or a dict of them by name, found {type(out).__name__}")
    return out


class _Signature(namedtuple("_Signature", "name inputs outputs states dims")):
    """The inputs, outputs, states and dims of a graph, copied from its handle."""

    @classmethod
    def of(cls, g):
        inputs = tuple(_tensor_of(_lib.ng_graph_input(g, i)) for i in range(_lib.ng_graph_input_count(g)))
        outputs = tuple(_tensor_of(_lib.ng_graph_output(g, i)) for i in range(_lib.ng_graph_output_count(g)))
        states = []
        for i in range(_lib.ng_graph_state_count(g)):
            s = _lib.ng_graph_state(g, i)
            states.append(State(inputs[s.input].name, int(s.input), int(s.output) if s.is_updated else None))
        dims = (_lib.ng_graph_dim(g, i) for i in range(_lib.ng_graph_dim_count(g)))
        dims = {_text(d.name): int(d.value) if d.value >= 0 else None for d in dims}
        return cls(_text(_lib.ng_graph_name(g)), inputs, outputs, tuple(states), dims)

    def arrays(self, arrays, named, states):
        """The arrays of all inputs, including states."""
        if isinstance(states, dict):
            first = len(self.inputs) - len(self.states)
            found = _by_name(self.inputs[:first], arrays, named, "input")
            missing = [s.name for s in self.states if s.name not in states]
            if missing:
                raise UsageError(f"states: {', '.join(missing)} missing")
            found += [states[s.name] for s in self.states]
        elif states is None:
            found = _by_name(self.inputs, arrays, named, "input")
        else:
            raise UsageError(f"states: expected a dict of arrays by name, found {type(states).__name__}")
        missing = [tensor.name for tensor, array in zip(self.inputs, found) if array is None]
        if missing:
            raise UsageError(f"{self.name}: no array for {', '.join(missing)}")
        return found


class _Call:
    """The C tensors of a call, and their arrays. signature: of a bound graph."""

    def __init__(self, signature, arrays, named, out, states):
        s = signature
        inputs = s.arrays(arrays, named, states)
        torch = _torch_of(inputs)
        in_place = {state.output: inputs[state.input] for state in s.states} if states is not None else {}
        wanted = [tensor for i, tensor in enumerate(s.outputs) if i not in in_place]
        out = _by_name(wanted, _listed(out), out if isinstance(out, dict) else {}, "output")
        results = [_empty(tensor, torch) if array is None else array for tensor, array in zip(wanted, out)]
        given = iter(results)
        outputs = [in_place[i] if i in in_place else next(given) for i in range(len(s.outputs))]
        self.inputs, self.outputs = (_Tensor * len(inputs))(), (_Tensor * len(outputs))()
        self._views = [_take(*each) for each in zip(self.inputs, s.inputs, inputs)]
        self._views += [_take(*each, is_output=True) for each in zip(self.outputs, s.outputs, outputs)]
        self._signature = s
        self.results = Results((tensor.name for tensor in wanted), results)

    def overlapping(self):
        """The names of tensors that overlap an output, for a message."""
        s, n = self._signature, len(self.inputs)
        names = [tensor.name for tensor in s.inputs + s.outputs]
        ranges = [(t.data, t.data + _lib.ng_tensor_nbytes(byref(t))) for t in [*self.inputs, *self.outputs]]
        own = {(state.input, n + state.output) for state in s.states if state.output is not None}
        for b in range(n, len(names)):
            for a in range(b):
                in_place = (a, b) in own and ranges[a][0] == ranges[b][0]
                if not in_place and max(ranges[a][0], ranges[b][0]) < min(ranges[a][1], ranges[b][1]):
                    return f"{names[a]} and {names[b]}"
        return "these"


# Graphs


def load(
    path: _Path, constants: Mapping[str, _Path] | None = None, dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int] | _Array] | None = None, train_batch_norms: bool = False,
) -> Graph:  # fmt: skip
    """Reads a graph from a file: ngrad/1, an ONNX model, or JSON of oneDNN Graph or nGraph.

    For an ONNX model, constants is a dict from inputs that become constants, such as shapes, to .npy or .pb files; dims
    is a dict from named extents to the values that they get when the model is read, and shapes one from inputs to
    shapes, or to arrays that have them, for extents without a name; -1 leaves an extent as it is. With
    train_batch_norms, batch norms that were exported for inference use the statistics of each batch in training.
    """
    path = os.fspath(path)
    given = _given(constants, dims, shapes, train_batch_norms)  # wrong ones are told before the file is looked for
    with open(path, "rb") as file:
        text = file.read()
    return _loaded(text, os.fsdecode(path), os.path.dirname(os.path.abspath(path)), given)


def loads(text: str | bytes, name: str = "graph", folder: _Path | None = None) -> Graph:
    """Reads a graph from text. Messages call it `name`; files of constants are looked up in `folder`."""
    return _loaded(text, name, folder, _given(None, None, None, False))


def _given(constants, dims, shapes, train_batch_norms):
    files = tuple(_encode(f"{name}={os.fspath(file)}") for name, file in _items(constants, "constants"))
    extents = tuple((_encode(name), _integer(value, name)) for name, value in _items(dims, "dims"))
    sizes = tuple((_encode(name), _shape(getattr(shape, "shape", shape), name)) for name, shape in _items(shapes, "shapes"))
    return files, extents, sizes, bool(train_batch_norms)


def _loaded(text, name, folder, given):
    if isinstance(text, str):
        text = text.encode(errors="surrogatepass")  # the library reports invalid UTF-8
    if not isinstance(text, (bytes, bytearray, memoryview)):
        raise UsageError(f"expected a graph as text or bytes, found {type(text).__name__}")
    folder = None if folder is None else _encode(os.fsdecode(folder))
    return Graph([(_read, _encode(name), bytes(text), folder, *given)])


# The steps that make a graph: each takes a session, the handle that the step before it returned, and arguments, and returns
# a handle. Steps are functions of the module, and their arguments are immutable, so that graphs can be copied and pickled.


def _keep_read(session, g):
    session.is_reading = not g
    return session.keep(g, _lib.ng_graph_free)


def _read(session, _, name, text, folder, constants, dims, shapes, train_batch_norms):
    shapes = dict(shapes)

    def find_shape(_user, name, extents):
        shape = shapes.get(name, ())
        for i, extent in enumerate(shape[:_MAX_RANK]):
            extents[i] = extent
        return len(shape) if name in shapes else -1

    options = _ReadOptions(
        (c_char_p * len(constants))(*constants), len(constants), (_Dim * len(dims))(*dims), len(dims),
        _FindShape(find_shape), None, train_batch_norms,
    )  # fmt: skip
    return _keep_read(
        session, _lib.ng_graph_read_with(session.context, name, text, len(text), folder, byref(options))
    )


def _set_dims(session, g, values):
    for name, value in values:
        session.check(_lib.ng_graph_set_dim(g, name, value))
    return g


def _set_shapes(session, g, shapes):
    for index, shape in shapes:
        session.check(_lib.ng_graph_set_input_shape(g, index, len(shape), (c_int64 * len(shape))(*shape)))
    return g


_GRADIENT, _TANGENTS, _HVP, _JACOBIAN, _HESSIAN, _VJP = range(6)  # ng_derivative


def _differentiate(session, g, function, wrt, of, save_least, derivative, precision, keep_f32):
    if wrt:  # names of constants become inputs
        g = session.keep(_lib.ng_graph_with_inputs(g, *_strings(wrt)), _lib.ng_graph_free)
    options = _GradientOptions(*_strings(wrt), *_strings(of), save_least, derivative, precision,
                               *_strings(keep_f32))  # fmt: skip
    return session.keep(getattr(_lib, function)(g, byref(options)), _lib.ng_graph_free)


def _make_trainable(session, g):
    return session.keep(_lib.ng_graph_trainable(g), _lib.ng_graph_free)


def _make_step(session, g, *arguments):
    options, _kept = _train_options(*arguments)
    return session.keep(_lib.ng_graph_train(g, byref(options)), _lib.ng_graph_free)


def _make_inference(session, g, form, losses):
    options, _kept = _train_options(losses, None, None, None, None, ())
    return session.keep(_lib.ng_graph_inference(g, form, byref(options)), _lib.ng_graph_free)


def _read_states(session, g, path):
    session.check(_lib.ng_graph_read_states(g, path, 0))
    return g


def _narrow_weights(session, g, type_):
    session.check(_lib.ng_graph_narrow_weights(g, type_))
    return g


def _shape(shape, name):
    try:
        extents = tuple(shape)
    except TypeError:
        raise UsageError(f"{name}: expected a shape, found {shape!r}") from None
    return tuple(_integer(extent, f"shape of {name}") for extent in extents)


class _Signed:
    """The properties that graphs and kernels have in common."""

    _signature: _Signature

    @property
    def name(self) -> str:
        return self._signature.name

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return self._signature.inputs

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        return self._signature.outputs

    @property
    def states(self) -> tuple[State, ...]:
        return self._signature.states


class Graph(_Signed):
    """A graph, made by `load`, `loads` and methods of other graphs.

    name; inputs and outputs, tuples of Tensor; states, a tuple of State, which are the last inputs; dims, a dict from
    named extents to their values, or None.
    """

    _MOST_KERNELS = 16  # limit of stored kernels

    def __init__(self, steps):
        self._steps = tuple(steps)  # (function, arguments...)
        self._kernels = {}  # by the shapes of the call's arrays
        self._lock = threading.Lock()
        with _Session() as session:
            self._signature = _Signature.of(self._make(session))
            session.warn()

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name not in ("_kernels", "_lock")}

    def __setstate__(self, state):
        self.__dict__.update(state, _kernels={}, _lock=threading.Lock())

    def _then(self, *step):
        return Graph((*self._steps, step))

    def _make(self, session):
        g = None
        for step, *arguments in self._steps:
            g = step(session, g, *arguments)
        return g

    @property
    def dims(self) -> dict[str, int | None]:
        return dict(self._signature.dims)

    def __repr__(self):
        return f"<ngrad.Graph {self.name}: {', '.join(t.name for t in self.inputs)} -> {', '.join(t.name for t in self.outputs)}>"

    def _open(self, session):
        """A new handle. Its warnings are dropped, because they were raised when the graph was made."""
        g = self._make(session)
        _lib.ng_messages_clear(session.context)
        return g

    def with_dims(self, /, **dims: int) -> Graph:
        """The graph with these values of named extents."""
        return self._then(_set_dims, tuple((_encode(name), _integer(value, name)) for name, value in dims.items()))

    def with_shapes(self, /, **shapes: Sequence[int]) -> Graph:
        """The graph with inputs of these shapes, which set named and unknown extents."""
        index = {tensor.name: i for i, tensor in enumerate(self.inputs)}
        _by_name(self.inputs, (), shapes, "input")
        shapes = {name: _shape(shape, name) for name, shape in shapes.items()}
        dims: dict[str, tuple[int, str]] = {}
        named = self.dims
        for name, shape in shapes.items():
            expected = self.inputs[index[name]].shape
            if expected is None or len(expected) != len(shape):
                continue  # the library reports it
            for extent, value in zip(expected, shape):
                if not isinstance(extent, str) or extent not in named:
                    continue  # a number, or a formula, which the library solves
                if dims.setdefault(extent, (value, name))[0] != value:
                    first, other = dims[extent]
                    raise UsageError(f"{extent} is {first} in {other}, but {value} in {name}")

        values = tuple((_encode(dim), value) for dim, (value, _) in dims.items())
        extents = tuple((index[name], shape) for name, shape in shapes.items())
        return Graph((*self._steps, (_set_dims, values), (_set_shapes, extents)))

    def _gradient(self, function, wrt, of, save_least=False, derivative=_GRADIENT, precision=None, keep_f32=None):
        return self._then(_differentiate, function, _names(wrt), _names(of), bool(save_least), derivative,
                          precision and _encode(precision), _names(keep_f32))  # fmt: skip

    def gradient(
        self, wrt: _Names = None, of: _Names = None, save_least: bool = False, precision: str | None = None,
        keep_f32: _Names = None,
    ) -> Graph:  # fmt: skip
        """The graph that computes diff_NAME for each name in `wrt`, from diff_NAME for each name in `of`.

        wrt: names of inputs and states, or of constants, such as an ONNX model's weights, which become inputs.
        precision, keep_f32: as in `train`.
        """
        return self._gradient("ng_graph_gradient", wrt, of, save_least, precision=precision, keep_f32=keep_f32)

    def forward(
        self, wrt: _Names = None, of: _Names = None, save_least: bool = False, precision: str | None = None,
        keep_f32: _Names = None,
    ) -> Graph:  # fmt: skip
        """This graph with further outputs: the values that `gradient`, for the same arguments, takes as inputs."""
        return self._gradient("ng_graph_gradient_forward", wrt, of, save_least, precision=precision, keep_f32=keep_f32)

    def vjp(self, wrt: _Names = None, of: _Names = None) -> Graph:
        """The graph of `gradient`, from this graph's inputs alone: it computes the values that it needs."""
        return self._gradient("ng_graph_gradient", wrt, of, derivative=_VJP)

    def jvp(self, wrt: _Names = None, of: _Names = None) -> Graph:
        """The graph that computes tangent_NAME for each name in `of`, from tangent_NAME for each name in `wrt`."""
        return self._gradient("ng_graph_gradient", wrt, of, derivative=_TANGENTS)

    def hvp(self, wrt: _Names = None, of: _Names = None) -> Graph:
        """The graph that computes tangent_diff_NAME for each name in `wrt`, the product of the Hessian with all tangent_NAME.

        of: names of outputs that are single numbers.
        """
        return self._gradient("ng_graph_gradient", wrt, of, derivative=_HVP)

    def jacobian(self, wrt: _Names = None, of: _Names = None) -> Graph:
        """The graph that computes jacobian_NAME for each name in `wrt`, whose first axis goes over the elements of one output."""
        return self._gradient("ng_graph_gradient", wrt, of, derivative=_JACOBIAN)

    def hessian(self, wrt: _Names = None, of: _Names = None) -> Graph:
        """The graph that computes hessian_NAME for each name in `wrt`, whose first axis goes over the elements of all of them.

        of: names of outputs that are single numbers.
        """
        return self._gradient("ng_graph_gradient", wrt, of, derivative=_HESSIAN)

    def trainable(self) -> Graph:
        """The graph with the constants that `train` takes as parameters as states, whose initial values they are."""
        return self._then(_make_trainable)

    def train(
        self, optimizer: str | None = None, *, losses: _Names = None, schedule: str | None = None, freeze: _Names = None,
        no_decay: _Names = None, precision: str | None = None, keep_f32: _Names = None, **settings: float,
    ) -> Graph:  # fmt: skip
        """The training step: a call computes the losses and updates the states. settings: learning_rate=0.1, ...

        precision: "f32", "bf16" or "f16", for the operands of products and convolutions, and what the backward pass
        keeps. With "f16" the losses are scaled, and steps whose gradients overflow are skipped.
        keep_f32: with "bf16" or "f16", names of operators that stay f32.
        """
        numbers_ = tuple((_encode(name), _number(value, name)) for name, value in settings.items())
        chosen = [text and _encode(text) for text in (optimizer, schedule)]
        precision = precision and _encode(precision)
        patterns = (_names(freeze), _names(no_decay))
        return self._then(_make_step, _names(losses), *chosen, *patterns, numbers_, precision, _names(keep_f32))

    def inference(self, losses: _Names = None) -> Graph:
        """The graph for use after training, without losses; it updates no state."""
        return self._then(_make_inference, 1, _names(losses))

    def test(self, losses: _Names = None) -> Graph:
        """The graph that computes losses and metrics on test data; it updates no state."""
        return self._then(_make_inference, 0, _names(losses))

    def with_states(self, path: _Path) -> Graph:
        """The graph whose states begin with the tensors of this .npz file, such as fit saves."""
        return self._then(_read_states, os.fsencode(os.path.abspath(path)))

    def with_narrow_weights(self, type: str) -> Graph:
        """The graph in which states with two or more axes that no call updates are of type s8 or bf16.

        Their first values must be given, as with_states does; nodes that the graph gets turn them into f32.
        """
        if type not in ("s8", "bf16"):
            raise UsageError(f"expected s8 or bf16, found {type!r}")
        return self._then(_narrow_weights, _TYPES[type])

    def show(self, format: str = "yaml", *, after: str | None = None, **options: Any) -> str:
        """The graph, or a stage of compile(**options), as text: yaml, dot, kernels, loops, c or memory."""
        choices, _kept = _compile_options(after=after, **options)
        with _Session() as session:
            g = self._open(session)
            pointer = _lib.ng_graph_show(g, _encode(format), byref(choices))
            session.keep(pointer, lambda text: _lib.ng_text_free(session.context, text))
            return _text(ctypes.string_at(pointer))

    def onnx(self) -> bytes:
        """The graph as the bytes of an ONNX model; a warning says what ONNX cannot express."""
        nbytes = c_size_t()
        with _Session() as session:
            pointer = _lib.ng_graph_onnx(self._open(session), byref(nbytes))
            session.keep(pointer, lambda model: _lib.ng_text_free(session.context, model))
            session.warn()
            return ctypes.string_at(pointer, nbytes.value)

    def emit(
        self, folder: _Path = ".", *, isa: str | None = None, threads: str | None = None, prefix: str | None = None,
        self_test: bool = False, weights: str | None = None, package: str | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """Writes NAME.c and NAME.h to a folder, which is made if missing.

        weights="const": states that no call updates are constants with their first values, as with_states gives them.
        package: "arduino", "zephyr" or "cmake" makes the folder a library for this.
        """
        choices, _kept = _compile_options(
            isa=isa, threads=threads, prefix=prefix, self_test=self_test, weights=weights, package=package, **options
        )
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{os.fsdecode(folder)}: cannot make the folder: {error.strerror}") from None
        with _Session() as session:
            session.check(_lib.ng_emit_files(self._open(session), byref(choices), _encode(os.fsdecode(folder))))
            session.warn()

    def compile(
        self, *, isa: str | None = None, fuse: bool = True, fast_math: bool = False, memory: int = 0, disable: _Names = None,
        schedule: _Names = None, compile_timeout: float = 0,
    ) -> Kernel:  # fmt: skip
        """Compiles the graph to a Kernel. Every extent must have a number: see with_dims and with_shapes.

        Options: isa, "avx2" and so on, by default the best of this processor; fuse; fast_math; memory, the limit of
        bytes between kernels; disable, names of passes and rules; compile_timeout, in seconds.
        """
        session = _Session()
        try:
            g = self._open(session)
            options, _kept = _compile_options(
                isa=isa, fuse=fuse, fast_math=fast_math, memory=memory, disable=disable, schedule=schedule,
                compile_timeout=compile_timeout,
            )  # fmt: skip
            with _Progress(session):
                k = session.keep(_lib.ng_compile(g, byref(options)), _lib.ng_kernel_free)
            session.warn()
            return Kernel(session, g, k)
        except BaseException:
            session.free()
            raise

    def _for(self, arrays, named, states):
        """The shapes of the arrays: a key for the kernel, and a dict by input."""
        inputs = self._signature.arrays(arrays, named, states)
        shapes = []
        for tensor, array in zip(self.inputs, inputs):
            with _Foreign(tensor.name):
                shapes.append(_shape_of(array))
        return tuple(shapes), dict(zip((t.name for t in self.inputs), shapes))

    def __call__(
        self, /, *arrays: _Array, out: Sequence[_Array] | dict[str, _Array] | None = None,
        states: dict[str, _Array] | None = None, threads: int = 0, **named: _Array,
    ) -> Results:  # fmt: skip
        """Runs the graph, compiled for the shapes of these arrays; see Kernel.__call__. Kernels are reused."""
        key, shapes = self._for(arrays, named, states)
        with self._lock:
            kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._with_open_shapes(shapes).compile()
            with self._lock:
                while len(self._kernels) >= self._MOST_KERNELS:
                    del self._kernels[next(iter(self._kernels))]
                self._kernels[key] = kernel
        return kernel(*arrays, out=out, states=states, threads=threads, **named)

    def _with_open_shapes(self, shapes):
        """Sets the shapes of inputs with open extents; other differences are reported with the arrays."""
        is_open = {t.name: t.shape is None or not all(isinstance(e, int) for e in t.shape) for t in self.inputs}
        is_packed = {t.name: t.type in _PACKED for t in self.inputs}
        shapes = {name: s for name, s in shapes.items() if is_open[name] and not is_packed[name]}
        return self._read_with(shapes).with_shapes(**shapes) if shapes else self

    def _read_with(self, shapes):
        """The graph that an ONNX model becomes if inputs have these shapes when it is read."""
        (read, *arguments, given, train_batch_norms), *steps = self._steps
        sizes = {**dict(given), **{_encode(name): shape for name, shape in shapes.items()}}
        for name, shape in given:  # -1 leaves an extent to the arrays
            if len(shape) == len(sizes[name]):
                sizes[name] = tuple(own if own >= 0 else other for own, other in zip(shape, sizes[name]))
        return Graph(((read, *arguments, tuple(sizes.items()), train_batch_norms), *steps))

    def interpret(
        self, /, *arrays: _Array, out: Sequence[_Array] | dict[str, _Array] | None = None, nan_check: bool = False,
        **named: _Array,
    ) -> Results:  # fmt: skip
        """Runs the reference, which computes in f64 and is slow. States are inputs, and their updates outputs.

        nan_check: raises an error at the first operator that makes a NaN.
        """
        _, shapes = self._for(arrays, named, None)
        with _Session() as session:
            g = self._with_open_shapes(shapes)._open(session)
            session.check(_lib.ng_graph_bind(g))
            call = _Call(_Signature.of(g), arrays, named, out, None)
            session.check(_lib.ng_interpret(g, call.inputs, call.outputs, bool(nan_check)))
            session.warn()
            return call.results

    def initial_states(self, seed: int = 0) -> dict[str, numpy.ndarray[Any, Any]]:
        """A dict of new arrays: the initial values of the states, as `init` in the file says."""
        return self._made(_lib.ng_tensor_init, [(i, s.input) for i, s in enumerate(self.states)], seed, False)

    def random_inputs(self, seed: int = 0) -> dict[str, numpy.ndarray[Any, Any]]:
        """A dict of new arrays: valid random data for the inputs. Every extent must have a number."""
        first = len(self.inputs) - len(self.states)
        return self._made(_lib.ng_tensor_random, [(i, i) for i in range(first)], seed, True)

    def _made(self, function, indices, seed, have_names):
        arrays, seed = {}, _amount(seed, "seed")
        with _Session() as session:
            g = self._open(session)
            if have_names:  # shapes of states are numbers
                session.check(_lib.ng_graph_bind(g))
            inputs = _Signature.of(g).inputs
            for i, index in indices:
                t = _Tensor()
                session.check(function(g, i, seed, byref(t)))
                array = _empty(inputs[index], None)
                ctypes.memmove(array.__array_interface__["data"][0], t.data, array.nbytes)
                _lib.ng_tensor_free(session.context, byref(t))
                arrays[inputs[index].name] = array
        return arrays


def _shape_of(array):
    if isinstance(array, numbers.Number):
        return ()
    shape = getattr(array, "shape", None)
    return _view(array).shape if shape is None else tuple(operator.index(extent) for extent in shape)


def _train_options(losses, optimizer, schedule, freeze, no_decay, settings, precision=None, keep_f32=None):
    """ng_train_options, and the memory that it points to. Names are encoded."""
    loss_names, nlosses = _strings(losses)
    patterns, npatterns = _strings(freeze)
    others, nothers = _strings(no_decay)
    operators, noperators = _strings(keep_f32)
    numbers_ = (_Setting * len(settings))(*settings)
    options = _TrainOptions(
        loss_names, nlosses, optimizer, numbers_, len(numbers_), schedule, patterns, npatterns, others,
        nothers, precision, operators, noperators,
    )  # fmt: skip
    return options, (loss_names, numbers_, patterns, others, operators)


def _compile_options(*, isa=None, fuse=True, memory=0, disable=None, schedule=None, costs=None, fast_math=False,
                     compile_timeout=0, after=None, threads=None, prefix=None, self_test=False,
                     weights=None, optimize=None, package=None):  # fmt: skip
    """ng_options, and the memory that it points to."""
    disabled, ndisabled = _strings(_names(disable))
    keys, nkeys = _strings(_names(schedule))
    costs, ncosts = _strings(_names(costs))
    texts = {"isa": isa, "after": after, "threads": threads, "prefix": prefix, "weights": weights,
             "optimize": optimize, "package": package}
    options = _Options(
        no_fuse=not fuse, memory_nbytes=_amount(memory, "memory"), disable=disabled, ndisable=ndisabled, schedule=keys, nschedule=nkeys,
        costs=costs, ncosts=ncosts,
        self_test=bool(self_test), fast_math=bool(fast_math), compile_timeout=_number(compile_timeout, "compile_timeout"),
        **{name: _encode(text) for name, text in texts.items() if text is not None},
    )  # fmt: skip
    return options, (disabled, keys, costs)


# Kernels


class Kernel(_Signed):
    """A compiled graph, made by Graph.compile. Several threads may call it at once.

    name, inputs, outputs, states: as in Graph, but every extent is a number. isa: the instruction set.
    """

    def __init__(self, session, g, k):
        self._g, self._k = g, k
        self._session = session
        self._lock = threading.Lock()  # for the session, which ng_kernel_run does not use
        self._signature = _Signature.of(g)
        info = _lib.ng_kernel_get_info(k)
        self.isa = _text(info.isa)
        self.workspace_nbytes = int(info.workspace_nbytes)
        self.was_cached = bool(info.was_cached)
        session.free_with_last_reference()  # copies of the kernel refer to it, too

    def __repr__(self):
        return f"<ngrad.Kernel {self.name} for {self.isa}>"

    def __copy__(self):
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def __reduce_ex__(self, _):
        raise TypeError(
            f"{self.name}: a compiled kernel cannot be pickled or copied deeply: pickle or copy its Graph, and compile that; "
            "copy.copy returns a second reference to the kernel"
        )

    def __call__(
        self, /, *arrays: _Array, out: Sequence[_Array] | dict[str, _Array] | None = None,
        states: dict[str, _Array] | None = None, threads: int = 0, **named: _Array,
    ) -> Results:  # fmt: skip
        """Runs on arrays, in the order of inputs or by name, without copies; returns Results.

        out: a sequence, or a dict by name, of arrays for outputs. Outputs that are None or missing are allocated, as
        PyTorch tensors if an input is one.
        states: a dict of arrays by name, which the call updates in place. Without it, states are ordinary inputs, and
        their updates are outputs.
        threads: 0 uses all processors. The results do not depend on the number.
        """
        threads = _integer(threads, "threads", 31)
        call = _Call(self._signature, arrays, named, out, states)
        status = _lib.ng_kernel_run(self._k, call.inputs, call.outputs, threads)
        if status != _OK:
            self._fail(status, call, threads)
        return call.results

    def _fail(self, status, call, threads):
        refusal = _lib.ng_kernel_refusal(self._k, call.inputs, call.outputs)
        if refusal and status == _USAGE:
            if b"overlap" in refusal:
                raise UsageError(f"{call.overlapping()} overlap: {_text(refusal)}")
            raise UsageError(_text(refusal))
        if status == _USAGE:
            raise UsageError(f"expected threads from 0 to 1024, found {threads}")
        with self._lock:
            _lib.ng_messages_clear(self._session.context)
            if status == _WRONG:
                self._session.check(_lib.ng_graph_check_indices(self._g, call.inputs))
            self._session.fail(status)
