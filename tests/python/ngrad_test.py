"""The Python module: arrays of every type and origin, what is wrong with arrays and graphs, states, threads, memory."""

import array
import copy
import ctypes
import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
import weakref

import numpy as np

import ngrad

try:
    import torch
except ImportError:
    torch = None
needs_torch = unittest.skipUnless(torch, "no PyTorch")


def text(inputs, nodes, outputs, more=""):
    nodes = f"nodes: [{nodes}]\n" if nodes else ""
    return f"format: ngrad/1\nname: g\n{more}inputs: [{inputs}]\n{nodes}outputs: [{outputs}]\n"


def tensor(name, kind, shape, more=""):
    return f"{{name: {name}, type: {kind}, shape: {shape}{more}}}"


def copy_of(kind, shape, more=""):
    """A graph whose output is its input."""
    return ngrad.loads(text(tensor("x", kind, shape, more), "", "x"))


ERRORS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../errors")
ADD = text(
    tensor("x", "f32", "[N, 3]") + ", " + tensor("y", "f32", "[N, 3]"),
    "{op: Add, inputs: [x, y], outputs: [z]}",
    "z",
    "dims: {N: 2}\n",
)
COUNTER = """format: ngrad/1
name: counter
inputs: [{name: x, type: f32, shape: [3]}]
state: [{name: sum, type: f32, shape: [3], init: zeros}, {name: scale, type: f32, shape: [], init: ones}]
nodes:
  - {op: Multiply, inputs: [x, scale], outputs: [scaled]}
  - {op: Add, inputs: [sum, scaled], outputs: [total]}
  - {op: Exp, inputs: [scaled], outputs: [y]}
outputs: [y]
updates: {sum: total}
"""


def floats(*shape):
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]  # fmt: skip


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class Versioned(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]  # fmt: skip


class Capsule:
    """An array with DLPack, whose capsule has other fields than the array's where they are given."""

    def __init__(self, a, *, data=0, device=(1, 0), ndim=None, type=(2, 32, 1), shape=(), strides=None, offset=0,
                 version=None, flags=0, name=b""):  # fmt: skip
        shape = a.shape if shape == () else shape
        self.kept = [a, *(extents and (ctypes.c_int64 * len(extents))(*extents) for extents in (shape, strides))]
        addresses = [kept and ctypes.addressof(kept) for kept in self.kept[1:]]
        self.struct = Versioned(version, None, None, flags) if version else Managed()
        self.struct.tensor = DLTensor(a.ctypes.data if data == 0 else data, device, a.ndim if ndim is None else ndim, *type,
                                      *addresses, offset)  # fmt: skip
        self.name = name or (None if name is None else b"dltensor_versioned" if version else b"dltensor")

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(("PyCapsule_New", ctypes.pythonapi))(ctypes.addressof(self.struct), self.name, None)


class Case(unittest.TestCase):
    def refuses(self, words, function, *arguments, error=ngrad.UsageError, **named):
        with self.assertRaises(error) as caught:
            function(*arguments, **named)
        self.assertIn(words, str(caught.exception))
        return caught.exception


class Graphs(Case):
    def test_a_graph_says_what_is_in_it(self):
        g = ngrad.loads(ADD)
        self.assertEqual(g.name, "g")
        self.assertEqual(g.dims, {"N": 2})
        self.assertEqual([str(t) for t in g.inputs], ["x: f32 [N, 3]", "y: f32 [N, 3]"])
        self.assertEqual(str(g.outputs[0]), "z: f32 [N, 3]")
        self.assertEqual(g.inputs[0].dtype, np.float32)
        self.assertEqual(repr(g), "<ngrad.Graph g: x, y -> z>")

    def test_errors_have_positions(self):
        error = self.refuses("a.yaml:2:1: error: unknown key foo", ngrad.loads, "format: ngrad/1\nfoo: 1\noutputs: [x]\n",
                             "a.yaml", error=ngrad.GraphError)  # fmt: skip
        self.assertIsInstance(error, ValueError)
        self.assertEqual(error.messages[0][:4], (True, "a.yaml", 2, 1))
        self.refuses("yaml", ngrad.loads, b"\xff\xfe\0", "a.yaml", error=ngrad.GraphError)
        self.refuses("expected no NUL", ngrad.loads, ADD, "a\0b")

    def test_a_file_that_is_not_there_is_what_python_says(self):
        with self.assertRaises(FileNotFoundError):
            ngrad.load("no such file")

    def test_constants_are_files_beside_the_graph(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "ä"))
            np.save(os.path.join(folder, "ä", "c.npy"), floats(3))
            path = os.path.join(folder, "ä", "sum.yaml")
            with open(path, "w") as file:
                file.write("format: ngrad/1\ninputs: [{name: x, type: f32, shape: [3]}]\n"
                           "constants: [{name: c, type: f32, shape: [3], file: c.npy}]\n"
                           "nodes: [{op: Add, inputs: [x, c], outputs: [y]}]\noutputs: [y]\n")  # fmt: skip
            g = ngrad.load(path)
            self.assertEqual(g.name, "sum")
            np.testing.assert_array_equal(g(floats(3))["y"], 2 * floats(3))

    def test_dims_come_from_arrays(self):
        g = ngrad.loads(ADD)
        for n in (0, 1, 5, 2):
            np.testing.assert_array_equal(g(floats(n, 3), y=floats(n, 3))["z"], 2 * floats(n, 3))
        self.refuses("N is 2 in x, but 4 in y", g, floats(2, 3), floats(4, 3))
        twice = ngrad.loads(ADD.replace("name: y, type: f32, shape: [N, 3]", "name: y, type: f32, shape: [2 * N - 1, 3]")
                            .replace("Add, inputs: [x, y]", "Concat, inputs: [x, y], attributes: {axis: 0}"))
        for n in (1, 5):
            for result in (twice(floats(n, 3), floats(2 * n - 1, 3)), twice.interpret(floats(n, 3), floats(2 * n - 1, 3))):
                self.assertEqual(result["z"].shape, (3 * n - 1, 3))
        self.assertEqual(twice.with_shapes(y=(7, 3)).dims, {"N": 4})
        self.refuses("[2 * N - 1, 3], found [2, 3]", twice, floats(2, 3), floats(2, 3), error=ngrad.GraphError)
        self.refuses("[N, 3]", g, floats(2, 4), floats(2, 4), error=ngrad.GraphError)

    def test_dims_and_shapes_are_set(self):
        g = ngrad.loads(ADD)
        self.assertEqual(g.with_dims(N=7).compile().outputs[0].shape, (7, 3))
        self.assertEqual(g.with_shapes(y=(4, 3)).compile().outputs[0].shape, (4, 3))
        self.assertEqual(g.dims, {"N": 2})
        self.refuses("M", g.with_dims, M=3)
        self.refuses("no input z", g.with_shapes, z=(3,))
        open_ = ngrad.loads(text("{name: x, type: f32}", "{op: Exp, inputs: [x], outputs: [{name: y, type: f32, shape: [_, _, 4]}]}", "y"))
        self.assertEqual(open_.inputs[0].shape, (None, None, 4))
        self.refuses("every extent", open_.compile, error=ngrad.GraphError)
        self.assertEqual(open_(np.zeros((2, 1, 4), np.float32))["y"].shape, (2, 1, 4))
        self.assertEqual(open_.with_shapes(x=(0, 2, 4)).compile().inputs[0].shape, (0, 2, 4))

    def test_numbers_that_ctypes_would_cut_off_are_told(self):
        g = ngrad.loads(ADD)
        for value in (2**64 + 4, 2**63, 3.7, "4", None):
            self.refuses("N: expected an integer", g.with_dims, N=value)
            self.refuses("shape of x: expected an integer", g.with_shapes, x=(value, 3))
        self.refuses("x: expected a shape, found 4", g.with_shapes, x=4)
        self.refuses("N: expected 0 or more", g.with_dims, N=-1)
        self.assertEqual(g.with_dims(N=np.int64(5)).dims, {"N": 5})
        self.refuses("memory: expected 0 or more", g.compile, memory=-1)
        self.refuses("memory: expected an integer that is less than 2^64", g.compile, memory=2**64)
        for seed in (-1, 2**64, 0.5):
            self.refuses("seed", g.random_inputs, seed)
        for threads in (2**32, 1.5, "2"):
            self.refuses("threads: expected an integer", g.compile(), floats(2, 3), floats(2, 3), threads=threads)

    def test_dims_and_inputs_may_be_called_self(self):
        g = ngrad.loads(ADD.replace("N", "self"))
        self.assertEqual(g.with_dims(**{"self": 5}).dims, {"self": 5})
        g = ngrad.loads(ADD.replace("name: x", "name: self").replace("[x, y]", "[self, y]"))
        self.assertEqual(g.with_shapes(**{"self": (5, 3)}).inputs[1].shape, ("N", 3))

    def test_options_that_are_wrong(self):
        g = ngrad.loads(ADD)
        self.refuses("avx3", g.compile, isa="avx3")
        self.refuses("no_such_pass", g.compile, disable="no_such_pass")
        self.assertRaises(TypeError, g.compile, speed=11)
        self.refuses("expected", g.show, "pictures")
        self.refuses("unknown", g.gradient, wrt="q")
        self.refuses("rmsprop", g.train, "rmsprop", error=ngrad.Error)

    def test_results_are_the_reference_s(self):
        g = ngrad.loads(text(tensor("x", "f32", "[4, 5]"), "{op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}", "y"))
        x = floats(4, 5) / 7
        np.testing.assert_allclose(g(x)["y"], g.interpret(x)["y"], rtol=1e-6)
        np.testing.assert_array_equal(g(x, threads=1)["y"], g.compile(isa="scalar", fuse=False)(x)["y"])
        self.refuses("NaN", g.interpret, np.full((4, 5), np.inf, np.float32), nan_check=True, error=ngrad.GraphError)

    def test_text_and_files_come_out(self):
        g = ngrad.loads(ADD)
        self.assertIn("op: Add", g.show())
        self.assertIn("kernel", g.show("kernels"))
        self.assertIn(b"\x22\x03Add", g.onnx())
        self.assertNotIn(b"\x0a\x05ngrad", g.onnx())  # the domain of what ONNX does not have
        scalars = ", ".join(tensor(name, kind, "[]") for name, kind in (("s", "s64"), ("n", "s64"), ("p", "f32")))
        dropout = ngrad.loads(text(f"{tensor('x', 'f32', '[8]')}, {scalars}", "{op: Dropout, inputs: [x, s, n, p], outputs: [y]}", "y"))
        with self.assertWarnsRegex(ngrad.Warning, "ONNX has no form of Dropout"):
            self.assertIn(b"\x0a\x05ngrad", dropout.onnx())
        with tempfile.TemporaryDirectory() as folder:
            g.emit(folder, prefix="add", isa="scalar")
            self.assertEqual(sorted(os.listdir(folder)), ["g.c", "g.h"])

    def test_states_come_from_files_and_go_into_c(self):
        lines = text(tensor("x", "f32", "[1, 2]"), "{op: MatMul, inputs: [x, w], outputs: [y]}", "y")
        g = ngrad.loads(lines.replace("nodes:", "state: [{name: w, type: f32, shape: [2, 16], init: zeros}]\nnodes:"))
        w, x = np.arange(32, dtype=np.float32).reshape(2, 16) * 8, np.ones((1, 2), np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "w.npz")
            np.savez(path, w=w, other=x)
            trained = g.with_states(path)
            np.testing.assert_array_equal(trained.initial_states()["w"], w)
            np.testing.assert_array_equal(trained(x, states=trained.initial_states())["y"], x @ w)
            narrow = trained.with_narrow_weights("s8")
            self.assertEqual(narrow.inputs[1].type, "s8")
            found = narrow(x, states=narrow.initial_states())["y"]
            np.testing.assert_allclose(found, x @ w, atol=(120 + 248) / 254 * 1.001)
            narrow.emit(folder, weights="const", isa="scalar")
            with open(os.path.join(folder, "g.c")) as file:
                self.assertIn("static const int8_t g_given_w[]", file.read())
            np.savez(path, v=w)
            self.refuses("no w.npy in it", g.with_states, path, error=ngrad.Error)
        self.refuses("expected s8 or bf16", g.with_narrow_weights, "f16", error=ngrad.UsageError)
        self.refuses("unknown place of weights flash", g.emit, "/tmp", weights="flash", error=ngrad.Error)

    def test_warnings_are_python_s(self):
        with open(os.path.join(ERRORS, "gamma_and_beta_ignored.yaml")) as file:
            odd = file.read()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            ngrad.loads(odd, "odd.yaml").show("yaml")
        self.assertEqual([w.category for w in told], [ngrad.Warning])
        self.assertIn("odd.yaml:10:9: warning: ", str(told[0].message))
        self.assertEqual(told[0].filename, __file__)

    def test_gradients_are_those_of_a_formula(self):
        g = ngrad.loads(text(tensor("x", "f64", "[N]"), "{op: Exp, inputs: [x], outputs: [y]}", "y", "dims: {N: ~}\n"))
        x, dy = np.linspace(-1, 1, 7), np.linspace(2, 3, 7)
        backward = g.gradient()
        known = {"x": x, "diff_y": dy} | g.forward()(x).as_dict()
        (dx,) = backward(**{t.name: known[t.name] for t in backward.inputs})
        np.testing.assert_allclose(dx, dy * np.exp(x), rtol=1e-12)

    def test_other_derivatives_are_those_of_a_formula(self):
        nodes = "{op: Sin, inputs: [x], outputs: [y]}, {op: ReduceSum, inputs: [y], outputs: [e], attributes: {axes: [0]}}"
        g = ngrad.loads(text(tensor("x", "f64", "[3]"), nodes, "y, e"))
        x, t = np.linspace(-1, 1, 3), np.array([1.0, 2.0, -3.0])
        for graph, name, expected in (
            (g.vjp(of="y"), "diff_x", np.cos(x) * t),
            (g.jvp(of="y"), "tangent_y", np.cos(x) * t),
            (g.hvp(of="e"), "tangent_diff_x", -np.sin(x) * t),
            (g.jacobian(of="y"), "jacobian_x", np.diag(np.cos(x))),
            (g.hessian(wrt="x", of="e"), "hessian_x", np.diag(-np.sin(x))),
            (g.jvp(of="e").gradient(wrt="x"), "diff_x", -np.sin(x) * t),
        ):
            known = {"x": x, "tangent_x": t, "diff_y": t, "diff_tangent_e": np.array(1.0)}
            result = graph(**{i.name: known[i.name] for i in graph.inputs}).as_dict()
            np.testing.assert_allclose(result[name], expected, rtol=1e-12, atol=1e-15)

    def test_a_hessian_by_several_inputs_has_all_blocks(self):
        inputs = tensor("x", "f64", "[2]") + ", " + tensor("y", "f64", "[3]")
        nodes = ", ".join(
            f"{{op: ReduceSum, inputs: [{name}], outputs: [{name}s], attributes: {{axes: [0]}}}}" for name in "xy"
        )
        g = ngrad.loads(text(inputs, nodes + ", {op: Multiply, inputs: [xs, ys], outputs: [e]}", "e"))
        h = g.hessian(of="e")()
        np.testing.assert_array_equal(h["hessian_x"], [[0, 0], [0, 0], [1, 1], [1, 1], [1, 1]])
        np.testing.assert_array_equal(h["hessian_y"], [[1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0]])

    def test_random_data_is_the_same_for_the_same_seed(self):
        g = ngrad.loads(ADD)
        a, b = g.random_inputs(7), g.random_inputs(7)
        self.assertEqual(list(a), ["x", "y"])
        np.testing.assert_array_equal(a["x"], b["x"])
        self.assertFalse(np.array_equal(a["x"], g.random_inputs(8)["x"]))


class Arrays(Case):
    def test_every_type_is_taken_and_made(self):
        for kind, dtype in ngrad._DTYPES.items():
            x = np.arange(6).astype(dtype) if kind not in ("s4", "u4") else np.array([0x21, 0x43, 0x65], np.uint8)
            (y,) = copy_of(kind, "[6]").compile()(x)
            self.assertEqual(y.dtype, np.dtype(dtype), kind)
            np.testing.assert_array_equal(x, y, kind)

    def test_extents_of_nothing_and_one(self):
        for shape in ((0,), (3, 0, 2), (1,), (1, 1), ()):
            x = np.zeros(shape, np.float32)
            self.assertEqual(copy_of("f32", list(shape))(x)[0].shape, shape)
        self.assertEqual(copy_of("f64", [])(2.5)[0], 2.5)
        self.assertEqual(copy_of("s32", [])(np.int32(7))[0], 7)
        self.assertEqual(copy_of("boolean", [])(True)[0], True)
        self.refuses("x: expected a number of type u8, found 256", copy_of("u8", []), 256)
        self.refuses("x: expected a number of type s32, found 2.5", copy_of("s32", []), 2.5)
        self.refuses("found float64", copy_of("f32", []), np.float64(2))
        self.refuses("found complex", copy_of("f32", []), 2j)
        # An axis of extent 1 may have any stride.
        x = np.lib.stride_tricks.as_strided(floats(6), (1, 3), (20, 4))
        np.testing.assert_array_equal(copy_of("f32", [1, 3])(x)[0], x)

    def test_memory_is_shared_and_not_copied(self):
        k = ngrad.loads(ADD).compile()
        x, y, z = floats(2, 3), floats(2, 3), np.empty((2, 3), np.float32)
        call = ngrad._Call(k._signature, (x, y), {}, [z], None)
        self.assertEqual([t.data for t in call.inputs], [x.ctypes.data, y.ctypes.data])
        self.assertEqual(call.outputs[0].data, z.ctypes.data)
        self.assertIs(k(x, y, out={"z": z})["z"], z)
        np.testing.assert_array_equal(z, x + y)
        self.assertIs(k(x, y, out=(z,))[0], z)
        np.testing.assert_array_equal(k(x, x, out=[None])[0], x + x)  # one array may be several inputs

    def test_buffers_are_taken(self):
        k = copy_of("f32", [4]).compile()
        expected = np.array([1, 2, 3, 4], np.float32)
        buffer = array.array("f", expected)
        for x in (buffer, memoryview(buffer), (ctypes.c_float * 4)(1, 2, 3, 4)):
            np.testing.assert_array_equal(k(x)[0], expected)
        np.testing.assert_array_equal(copy_of("u8", [3])(b"abc")[0], [97, 98, 99])
        out = bytearray(3)
        copy_of("u8", [3])(b"abc", out=[out])
        self.assertEqual(out, b"abc")
        self.refuses("read-only", copy_of("u8", [3]), b"abc", out=[b"def"])

    def test_the_array_interface_is_taken(self):
        class Wrapped:
            def __init__(self, a):
                self.__array_interface__ = a.__array_interface__
                self.a = a

        x, out = floats(4), np.zeros(4, np.float32)
        copy_of("f32", [4])(Wrapped(x), out=[Wrapped(out)])
        np.testing.assert_array_equal(out, x)

    def test_dlpack_is_taken(self):
        class Wrapped:
            device = (1, 0)

            def __init__(self, a):
                self.a = a

            def __dlpack_device__(self):
                return self.device

            def __dlpack__(self, stream=None):
                return self.a.__dlpack__()

        x, out = floats(3, 4), np.zeros((3, 4), np.float32)
        k = copy_of("f32", [3, 4]).compile()
        k(Wrapped(x), out=[Wrapped(out)])
        np.testing.assert_array_equal(out, x)
        self.refuses("strides [1, 3]", k, Wrapped(floats(4, 3).T))
        x = Wrapped(x)
        x.device = (2, 0)
        self.refuses("x: expected memory of the CPU", k, x)
        # Capsules are freed.
        a = floats(3, 4)
        before = sys.getrefcount(a)
        for _ in range(10):
            k(Wrapped(a))
        self.assertEqual(sys.getrefcount(a), before)

    def test_every_field_of_a_capsule_is_checked(self):
        k = copy_of("f32", [3, 4]).compile()
        x = floats(3, 4)
        np.testing.assert_array_equal(k(Capsule(x))[0], x)
        np.testing.assert_array_equal(k(Capsule(x, version=(1, 7)))[0], x)
        np.testing.assert_array_equal(k(Capsule(x, strides=(4, 1)))[0], x)
        np.testing.assert_array_equal(k(Capsule(x, data=x.ctypes.data - 4, offset=4))[0], x)
        for words, fields in (
            ("found an array [3, 4] without data", dict(data=None)),
            ("found an array [3, 4] without data", dict(data=None, offset=64)),
            ("expected an address in memory", dict(offset=2**64 - 1)),
            ("expected an address in memory", dict(data=2**64 - 8)),
            ("aligned", dict(offset=1)),
            ("device type 2", dict(device=(2, 0))),
            ("device 1 of DLPack's device type 1", dict(device=(1, 1))),
            ("device -1 of", dict(device=(3, -1))),
            ("expected at most 8 axes, found 1000000000", dict(ndim=10**9)),
            ("expected at most 8 axes, found -1", dict(ndim=-1)),
            ("expected a shape, found none for 2 axes", dict(shape=None)),
            ("found float32 []", dict(ndim=0, shape=None)),
            ("expected extents of 0 or more, found [-3, -4]", dict(shape=(-3, -4))),
            ("expected less than 2^63 bytes", dict(shape=(2**62, 2**62))),
            ("expected less than 2^63 bytes", dict(shape=(0, 2**62))),
            ("found strides [4, -1]", dict(strides=(4, -1))),
            ("found strides [4, 4611686018427387904]", dict(strides=(4, 2**62))),
            ("found int32", dict(type=(0, 32, 1))),
            ("found float64", dict(type=(2, 64, 1))),
            ("found float32 times 4", dict(type=(2, 32, 4))),
            ("found float32 times 0", dict(type=(2, 32, 0))),
            ("found type 99 of DLPack32", dict(type=(99, 32, 1))),
            ("found another capsule", dict(name=b"dltensor_versioned ")),
            ("one that was used before", dict(name=b"used_dltensor")),
            ("one that was used before", dict(name=b"used_dltensor_versioned", version=(1, 0))),
            ("found another capsule", dict(name=b"tensor")),
            ("found another capsule", dict(name=None)),
            ("expected version 1 of DLPack, found 2.0", dict(version=(2, 0))),
            ("expected version 1 of DLPack, found 0.8", dict(version=(0, 8))),
        ):
            self.refuses(words, k, Capsule(x, **fields))
            self.refuses(words, k, x, out=[Capsule(np.zeros((3, 4), np.float32), **fields)])
        for flags in 1, 2, 3:  # read-only, a copy
            np.testing.assert_array_equal(k(Capsule(x, version=(1, 0), flags=flags))[0], x)
            self.refuses("expected an array that can be written", k, x,
                         out=[Capsule(np.zeros((3, 4), np.float32), version=(1, 0), flags=flags)])  # fmt: skip
        self.refuses("found bool1 [3, 4]", copy_of("boolean", [3, 4]).compile(), Capsule(x, type=(6, 1, 1)))
        self.assertEqual(copy_of("f32", [0, 4])(Capsule(np.zeros((0, 4), np.float32), data=None))[0].shape, (0, 4))

    def test_objects_that_raise_or_lie_are_told(self):
        k = copy_of("f32", [3]).compile()

        def raises(error):
            def method(*_, **__):
                raise error

            return method

        def of(**members):
            return type("Odd", (), members)()

        cpu = staticmethod(lambda: (1, 0))
        open_ = ngrad.loads(text(tensor("x", "f32", "[N]"), "", "x", "dims: {N: ~}\n"))
        for words, odd in (
            ("x: ZeroDivisionError('oh')", of(__dlpack_device__=cpu, __dlpack__=raises(ZeroDivisionError("oh")))),
            ("x: KeyError(1)", of(__dlpack_device__=raises(KeyError(1)), __dlpack__=None)),
            ("x: not today", of(__dlpack_device__=cpu, __dlpack__=raises(TypeError("not today")))),
            ("x: ", of(__dlpack_device__=lambda _: 5, __dlpack__=None)),
            ("x: ", of(__dlpack_device__=lambda _: ("cpu", 0), __dlpack__=None)),
            ("x: ", of(__dlpack_device__=lambda _: (1, 0, 0), __dlpack__=None)),
            ("found list", of(__dlpack_device__=cpu, __dlpack__=lambda *_, **__: [1])),
            ("found NoneType", of(__dlpack_device__=cpu, __dlpack__=lambda *_, **__: None)),
            ("expected a dict, found int", of(__array_interface__=5)),
        ):
            self.refuses(words, k, odd)
            self.refuses("", k, floats(3), out=[odd])
            self.refuses("x: ", open_, odd)
        self.refuses("x: ZeroDivisionError('oh')", open_, of(shape=property(raises(ZeroDivisionError("oh")))))
        self.refuses("x: ", open_, of(shape="abc"))

        class Elsewhere(np.ndarray):
            __array_interface__ = {"version": 3, "shape": (3,), "typestr": "<f4", "data": (8, False)}
            strides = shape = property(raises(ZeroDivisionError()))

        np.testing.assert_array_equal(k(floats(3).view(Elsewhere))[0], floats(3))
        narrow = type("bool", (np.void,), {})
        self.refuses("found bool [3]", copy_of("boolean", [3]).compile(), np.empty(3, np.dtype((narrow, 0))))

    def test_every_field_of_an_array_interface_is_checked(self):
        k = copy_of("f32", [3, 4]).compile()
        x, out = floats(3, 4), np.zeros((3, 4), np.float32)

        class Interface:
            def __init__(self, **fields):
                good = {"version": 3, "shape": (3, 4), "typestr": "<f4", "data": (x.ctypes.data, False)}
                self.__array_interface__ = {name: v for name, v in (good | fields).items() if v is not Interface}

        np.testing.assert_array_equal(k(Interface(strides=(16, 4), mask=None, descr=[("", "<f4")]))[0], x)
        np.testing.assert_array_equal(k(Interface(data=x.tobytes()))[0], x)
        np.testing.assert_array_equal(k(Interface(data=b"1234" + x.tobytes(), offset=4))[0], x)
        for words, fields in (
            ("found an array [3, 4] without data", dict(data=(0, False))),
            ("expected an address in memory, found -0x8", dict(data=(-8, False))),
            ("expected an address in memory", dict(data=(2**64 - 4, False))),
            ("expected an integer that is less than 2^64", dict(data=(2**64, False))),
            ("expected an integer, found 'x'", dict(data=("x", False))),
            ("expected an address and whether it is read-only", dict(data=(64,))),
            ("aligned", dict(data=(x.ctypes.data + 1, False))),
            ("without a mask", dict(mask=out)),
            ("version 3 of __array_interface__, found 2", dict(version=2)),
            ("version of __array_interface__: expected an integer, found None", dict(version=Interface)),
            ("typestr of __array_interface__: expected a string, found 5", dict(typestr=5)),
            ("found object", dict(typestr="|O")),
            ("found void32", dict(typestr="|V4")),
            ("found >f4", dict(typestr=">f4")),
            ("nonsense", dict(typestr="nonsense")),
            ("shape of __array_interface__: expected a tuple of integers, found NoneType", dict(shape=Interface)),
            ("shape of __array_interface__: expected an integer, found 3.5", dict(shape=(3.5, 4))),
            ("shape of __array_interface__: expected an integer that is less than 2^63", dict(shape=(2**64 + 3, 4))),
            ("expected extents of 0 or more, found [-3, -4]", dict(shape=(-3, -4))),
            ("expected at most 8 axes, found 9", dict(shape=(1,) * 9)),
            ("expected less than 2^63 bytes", dict(shape=(2**40, 2**40))),
            ("expected strides of 2 axes, found 1", dict(strides=(4,))),
            ("strides of __array_interface__: expected a tuple of integers, found int", dict(strides=4)),
            ("found strides [8, 1]", dict(strides=(32, 4))),
            ("found strides [4, 0.5]", dict(strides=(16, 2))),
            ("buffer is too small", dict(data=x.tobytes()[4:])),
            ("offset of __array_interface__: expected 0 or more, found -4", dict(data=x.tobytes(), offset=-4)),
            ("", dict(data=x.tobytes(), offset=2**62)),
            ("", dict(data="text")),
            ("", dict(data=Interface)),
        ):
            self.refuses(words, k, Interface(**fields))
            self.refuses(words, k, x, out=[Interface(**fields)])
        for data in (out.ctypes.data, True), out.tobytes():
            self.refuses("expected an array that can be written", k, x, out=[Interface(data=data)])
        self.refuses("can be written", k, x, out=[memoryview(out).toreadonly()])
        released = memoryview(out)
        released.release()
        self.refuses("released", k, released)

    def test_wrong_arrays_are_told(self):
        k = ngrad.loads(ADD).compile()
        x = floats(2, 3)
        self.refuses("y: expected f32 [2, 3], as float32 [2, 3], found float64 [2, 3]", k, x, x.astype(float))
        self.refuses("found float32 [3, 2]", k, x, floats(3, 2))
        self.refuses("found float32 [6]", k, x, floats(6))
        self.refuses("found >f4", k, x, x.astype(">f4"))
        self.refuses("found complex64", k, x, x.astype(np.complex64))
        self.refuses("x: expected elements without gaps, of strides [3, 1], found strides [1, 2]", k, floats(3, 2).T, x)
        self.refuses("found strides [6, 2]", k, floats(2, 6)[:, ::2], x)
        self.refuses("found strides [-3, 1]", k, x[::-1], x)
        self.refuses("found strides [0, 1]", k, np.broadcast_to(floats(3), (2, 3)), x)
        record = np.zeros((2, 3), [("a", "f4"), ("b", "u1")])
        self.refuses("without gaps", k, record["a"], x)
        self.refuses("aligned", k, np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3), x)
        self.refuses("x: expected an array (numpy, DLPack, array interface or buffer), found list", k, [[1, 2, 3]] * 2, x)
        self.refuses("found float", k, 1.0, x)
        self.refuses("x: expected an array without a mask", k, np.ma.masked_array(x, x > 1), x)
        self.refuses("no array for y", k, x)
        self.refuses("no input q: expected x, y", k, x, x, q=x)
        self.refuses("input x is given twice", k, x, x, x=x)
        self.refuses("at most 2 inputs", k, x, x, x)

    def test_wrong_outputs_are_told_and_nothing_is_written(self):
        k = ngrad.loads(ADD).compile()
        x, z = floats(2, 3), np.full((2, 3), 5, np.float32)
        z.flags.writeable = False
        self.refuses("z: expected an array that can be written", k, x, x, out=[z])
        self.refuses("found float64", k, x, x, out=[np.zeros((2, 3))])
        self.refuses("x and z overlap", k, x, floats(2, 3), out=[x])
        both = np.zeros(12, np.float32)
        self.refuses("y and z overlap", k, x, both[:6].reshape(2, 3), out=[both[3:9].reshape(2, 3)])
        self.refuses("no output y", k, x, x, out={"y": z})
        self.refuses("at most 1 output", k, x, x, out=[None, None])
        self.refuses("found float", k, x, x, out=[1.0])
        self.refuses("threads", k, x, x, threads=-1)
        np.testing.assert_array_equal(z, np.full((2, 3), 5))

    def test_read_only_inputs_are_fine(self):
        x = floats(2, 3)
        x.flags.writeable = False
        np.testing.assert_array_equal(ngrad.loads(ADD)(x, x)[0], 2 * x)

    def test_layouts_are_the_graph_s(self):
        g = copy_of("f32", [2, 3, 4, 5], ", order: [0, 2, 3, 1]")
        self.assertEqual(g.inputs[0].order, (0, 2, 3, 1))
        x = np.ascontiguousarray(floats(2, 3, 4, 5).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
        (y,) = g(x)
        np.testing.assert_array_equal(x, y)
        self.assertEqual(x.strides, y.strides)
        self.refuses("in the layout [0, 2, 3, 1]", g, floats(2, 3, 4, 5))

    def test_results_have_names(self):
        g = ngrad.loads(text(tensor("x", "f32", "[2]"), "{op: Exp, inputs: [x], outputs: [y]}, {op: ReLU, inputs: [x], outputs: [z]}", "y, z"))
        results = g(floats(2))
        y, z = results
        self.assertIs(results["z"], z)
        self.assertEqual(list(results.as_dict()), ["y", "z"])
        self.assertRaises(KeyError, lambda: results["q"])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(results))["y"], y)

    def test_bf16_is_its_bits(self):
        g = ngrad.loads(text(tensor("x", "bf16", "[3]"), "{op: Add, inputs: [x, x], outputs: [y]}", "y"))
        bits = (np.array([1, -2.5, 3], np.float32).view(np.uint32) >> 16).astype(np.uint16)
        y = (g(bits)["y"].astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(y, [2, -5, 6])
        self.refuses("as uint16 or bfloat16 [3], found float32 [3]", g, np.zeros(3, np.float32))


class Arguments(Case):
    def test_what_is_no_list_of_arrays_is_no_out(self):
        graph, x = ngrad.loads(ADD), np.ones((2, 3), np.float32)
        for out in np.empty((2, 3), np.float32), "z", 5:
            self.refuses(f"out: expected a list of arrays, or a dict of them by name, found {type(out).__name__}",
                         graph, x, x, out=out)  # fmt: skip

    def test_numbers_that_no_setting_can_have_are_told(self):
        graph = ngrad.loads(ADD)
        for timeout in "soon", float("nan"), None:
            self.refuses(f"compile_timeout: expected a finite number, found {timeout!r}", graph.compile, compile_timeout=timeout)
        self.refuses("learning_rate: expected a finite number, found 'x'", ngrad.loads(COUNTER).train, "sgd", learning_rate="x")
        self.refuses("N: expected an integer, found 'x'", ngrad.load, os.path.join(ERRORS, "none.onnx"), dims={"N": "x"})
        self.refuses("less than 2^63", ngrad.load, os.path.join(ERRORS, "none.onnx"), dims={"N": 1 << 64})
        self.refuses("expected a string or a list of strings, found 5", graph.gradient, wrt=5)
        self.refuses("expected a string or a list of strings, found 5", graph.compile, disable=5)

    def test_a_number_that_its_type_cannot_hold_is_told(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for kind, value in ("f32", 1e300), ("f16", -70000), ("s32", float("nan")), ("s8", 128):
                self.refuses(f"x: expected a number of type {kind}, found {value}", copy_of(kind, "[]"), value)
            self.assertEqual(copy_of("f32", "[]")(float("inf"))[0], np.inf)

    def test_labels_may_be_integers_of_another_width(self):
        for kind, others in ("s32", "bBhHiIlLqQ"), ("s64", "bBhHiIlL"):
            for other in others:
                if np.dtype(other) == np.dtype({"s32": "i4", "s64": "i8"}[kind]):
                    continue  # no copy is made of these
                for order in "", ", order: [1, 0]":
                    given = np.arange(12, dtype=other).reshape(3, 4)[::2, ::-1]
                    (y,) = copy_of(kind, "[2, 4]", order)(given)
                    self.assertEqual(y.dtype, np.dtype({"s32": "i4", "s64": "i8"}[kind]))
                    np.testing.assert_array_equal(y, given)
        g = copy_of("s32", "[2]")
        np.testing.assert_array_equal(g(np.array([-(2**31), 2**31 - 1]))[0], [-(2**31), 2**31 - 1])
        self.refuses("x: expected integers of type s32, found 2147483648", g, np.array([0, 2**31]))
        self.refuses("x: expected integers of type s32, found -2147483649", g, np.array([-(2**31) - 1, 0]))
        self.refuses("x: expected integers of type s64, found 9223372036854775808", copy_of("s64", "[1]"), np.array([2**63], "u8"))
        self.assertEqual(copy_of("s32", "[0]")(np.zeros(0, np.int64))[0].size, 0)
        self.refuses("x: expected s32 [2], as int32 [2], found float64 [2]", g, np.zeros(2))
        self.refuses("x: expected s32 [2], as int32 [2], found int64 [3]", g.compile(), np.zeros(3, np.int64))
        self.refuses("found int64", copy_of("u8", "[2]"), np.zeros(2, np.int64))
        self.refuses("found int64", g, np.zeros(2, np.int32), out=[np.zeros(2, np.int64)])

    def test_messages_have_the_words_of_the_module(self):
        g = ngrad.loads(ADD.replace("N: 2", "N: ~"))
        self.refuses("expected one in dims or by with_dims(N=NUMBER)", g.compile, error=ngrad.GraphError)
        self.refuses("N = 3 by with_dims or other data", g.with_dims(N=3), floats(3, 4), floats(3, 3), error=ngrad.GraphError)

    def test_the_folder_of_emitted_files_is_made(self):
        with tempfile.TemporaryDirectory() as folder:
            ngrad.loads(ADD).emit(os.path.join(folder, "a", "b"))
            self.assertEqual(sorted(os.listdir(os.path.join(folder, "a", "b"))), ["g.c", "g.h"])
            self.refuses("g.c: cannot make the folder", ngrad.loads(ADD).emit, os.path.join(folder, "a", "b", "g.c"))

    def test_constants_become_inputs_where_gradients_by_them_are_asked_for(self):
        scaled = """{format: ngrad/1, inputs: [{name: x, type: f32, shape: [2]}],
            constants: [{name: stem.weight, type: f32, shape: [2], values: [3, 5]}, {name: k, type: s32, shape: [1], value: 1}],
            nodes: [{op: Multiply, inputs: [x, stem.weight], outputs: [y]}], outputs: [y]}"""
        g = ngrad.loads(scaled)
        forward, gradient = g.forward(wrt="stem.weight"), g.gradient(wrt="stem.weight")
        self.assertEqual([t.name for t in forward.inputs], ["x", "stem.weight"])
        self.assertEqual([t.name for t in gradient.outputs], ["diff_stem.weight"])
        x, dy = np.array([2, 7], np.float32), np.array([1, 10], np.float32)
        np.testing.assert_array_equal(forward(x, np.array([4, 4], np.float32))["y"], 4 * x)
        np.testing.assert_array_equal(gradient(x=x, diff_y=dy)[0], x * dy)
        both = g.gradient(wrt=["x", "stem.weight"])
        results = both(**{t.name: {"x": x, "stem.weight": np.array([3, 5], np.float32), "diff_y": dy}[t.name] for t in both.inputs})
        np.testing.assert_array_equal(results["diff_x"], [3, 50])
        self.refuses("unknown input stem.wieght, did you mean stem.weight", g.gradient, wrt="stem.wieght")
        self.refuses("k: expected a constant of floating-point numbers, found s32", g.gradient, wrt="k")

    def test_what_a_derivative_needs_is_told_in_words_of_the_module(self):
        g = ngrad.loads("""{format: ngrad/1, dims: {N: ~}, inputs: [{name: x, type: f64, shape: [N]}],
            nodes: [{op: Square, inputs: [x], outputs: [y]}, {op: Exp, inputs: [x], outputs: [z]}], outputs: [x, y, z]}""")
        self.refuses("expected one output to differentiate, found 3; of= names it", g.jacobian, error=ngrad.GraphError)
        self.refuses("with_dims(N=4) gives a number", lambda: g.jacobian(of="y"), error=ngrad.GraphError)
        x = np.array([1.0, 3.0])
        np.testing.assert_array_equal(g.with_dims(N=2).jacobian(of="y")(x)[0], np.diag(2 * x))
        np.testing.assert_array_equal(g.jvp(of=["x", "y"])(x=x, tangent_x=x)["tangent_x"], x)

    def test_an_array_of_another_rank_is_told_as_such(self):
        self.refuses("x: expected shape [N, 3]", ngrad.loads(ADD), np.ones(4, np.float32),
                     np.ones((2, 3), np.float32), error=ngrad.GraphError)  # fmt: skip

    def test_a_graph_is_text_or_bytes(self):
        self.assertEqual(ngrad.loads(bytearray(ADD.encode())).name, "g")
        self.refuses("expected a graph as text or bytes, found NoneType", ngrad.loads, None)
        self.refuses("UTF-8", ngrad.loads, "format: ngrad/1\ud800", error=ngrad.GraphError)


class Torch(Case):
    @needs_torch
    def test_tensors_go_in_and_out(self):
        for kind, dtype in {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "s64": "int64",
                            "s32": "int32", "s8": "int8", "u8": "uint8", "boolean": "bool"}.items():  # fmt: skip
            x = torch.tensor([0, 1, 1], dtype=getattr(torch, dtype))
            (y,) = copy_of(kind, [3])(x)
            self.assertEqual(y.dtype, x.dtype)
            self.assertTrue(torch.equal(x, y))
            out = torch.zeros_like(x)
            copy_of(kind, [3])(x, out=[out])
            self.assertTrue(torch.equal(x, out))

    @needs_torch
    def test_no_elements_and_layouts(self):
        self.assertEqual(copy_of("f32", [2, 0])(torch.zeros(2, 0))[0].shape, (2, 0))
        x = torch.rand(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
        (y,) = copy_of("f32", [2, 3, 4, 5], ", order: [0, 2, 3, 1]")(x)
        self.assertEqual(x.stride(), y.stride())
        self.assertTrue(torch.equal(x, y))

    @needs_torch
    def test_wrong_tensors_are_told(self):
        k = ngrad.loads(ADD).compile()
        x = torch.zeros(2, 3)
        self.refuses("x: ", k, torch.zeros(2, 3, requires_grad=True), x)
        self.refuses("detach", k, torch.zeros(2, 3, requires_grad=True), x)
        self.refuses("found float64", k, x.double(), x)
        self.refuses("strides", k, torch.zeros(3, 2).t(), x)
        self.refuses("x and z overlap", k, x, torch.zeros(2, 3), out=[x])
        self.refuses("x: ", k, torch.zeros(2, 3, device="meta"), x)
        self.refuses("x: ", k, x.to_sparse(), x)
        self.refuses("x: expected a tensor whose elements are in memory", k, torch._neg_view(x), x)

    @needs_torch
    def test_numpy_and_torch_mix(self):
        (z,) = ngrad.loads(ADD)(torch.ones(2, 3), floats(2, 3))
        self.assertIsInstance(z, torch.Tensor)
        np.testing.assert_array_equal(z.numpy(), floats(2, 3) + 1)


class States(Case):
    def test_states_are_updated_in_place(self):
        g = ngrad.loads(COUNTER)
        states = g.initial_states()
        self.assertEqual({name: a.shape for name, a in states.items()}, {"sum": (3,), "scale": ()})
        total = states["sum"]
        for _ in range(3):
            results = g(floats(3), states=states)
        self.assertEqual(results.names, ("y",))
        self.assertIs(states["sum"], total)
        np.testing.assert_array_equal(total, 3 * floats(3))
        self.assertEqual(states["scale"], 1)

    def test_states_need_no_extents_of_data(self):
        text = """{format: ngrad/1, dims: {N: ~}, inputs: [{name: x, type: f32, shape: [N, 2]}],
            state: [{name: w, type: f32, shape: [2, 1], init: ones}],
            nodes: [{op: MatMul, inputs: [x, w], outputs: [y]}], outputs: [y]}"""
        step = ngrad.loads(text).train("sgd", losses="mse", learning_rate=0.5)
        states = step.initial_states()
        step(floats(3, 2), floats(3, 1), states=states)
        self.assertEqual(states["w"].shape, (2, 1))
        self.assertNotEqual(states["w"][1, 0], 1)

    def test_states_are_inputs_unless_they_are_given_as_states(self):
        g = ngrad.loads(COUNTER)
        states = g.initial_states()
        results = g(floats(3), **states)
        self.assertEqual(len(results), 2)
        np.testing.assert_array_equal(results[1], floats(3))
        np.testing.assert_array_equal(states["sum"], [0, 0, 0])
        np.testing.assert_array_equal(g.interpret(floats(3), **states)[1], floats(3))

    def test_wrong_states_are_told(self):
        k = ngrad.loads(COUNTER).compile()
        states = ngrad.loads(COUNTER).initial_states()
        self.refuses("states: scale missing", k, floats(3), states={"sum": states["sum"]})
        self.refuses("expected a dict", k, floats(3), states=list(states.values()))
        states["sum"].flags.writeable = False
        self.refuses("can be written", k, floats(3), states=states)

    def test_a_training_step_is_the_same_bits_either_way(self):
        graph = ngrad.load(os.path.join(os.path.dirname(__file__), "../../models/train/mlp.yaml"))
        step = graph.train("adam", losses="loss", learning_rate=0.01).with_dims(N=5)
        data = step.random_inputs()
        in_place, apart = step.initial_states(), step.initial_states()
        for _ in range(3):
            losses = step(**data, states=in_place)
            results = step(**data, **apart)
            apart = {s.name: results[s.output] for s in step.states}
        for name, a in in_place.items():
            np.testing.assert_array_equal(a, apart[name])
        self.assertEqual(losses["loss"], results["loss"])
        self.assertEqual([t.name for t in graph.inference(losses="loss").outputs], ["logits"])
        self.assertIn("loss", [t.name for t in graph.test(losses="loss").outputs])
        wrong = dict(data, labels=np.full(5, 10, np.int32))
        error = self.refuses("labels[0]: expected an index from 0 to 9, found 10", step, **wrong, states=in_place,
                             error=ngrad.GraphError)  # fmt: skip
        self.assertGreater(error.messages[0].line, 0)


    def test_steps_and_gradients_in_mixed_precision(self):
        graph = ngrad.load(os.path.join(os.path.dirname(__file__), "../../models/train/mlp.yaml"))
        step = graph.train("adam", losses="loss", precision="bf16").with_dims(N=5)
        self.assertEqual({a.dtype.name for a in step.initial_states().values()}, {"float32", "int64"})
        wide = graph.train("adam", losses="loss").with_dims(N=5)
        data = step.random_inputs() | step.initial_states()
        losses = [g.interpret(**data)["loss"] for g in (step, wide)]
        np.testing.assert_allclose(*losses, rtol=0.02)
        self.assertNotEqual(*losses)
        kept = graph.train("adam", losses="loss", precision="bf16", keep_f32="MatMul")
        self.assertNotIn("bf16", kept.show())
        self.refuses("unknown precision", graph.train, losses="loss", precision="b16")
        arguments = {"of": "loss", "precision": "bf16"}
        forward, gradient = (make(**arguments) for make in (graph.forward, graph.gradient))
        saved = {t.name: t.type for t in forward.outputs}
        self.assertEqual(saved["active"], "bf16")
        self.assertEqual({t.name: t.type for t in gradient.inputs}["active"], "bf16")
        self.assertEqual(saved["loss"], "f32")

    def test_parameters_may_have_no_weight_decay(self):
        graph = ngrad.load(os.path.join(os.path.dirname(__file__), "../../models/train/mlp.yaml"))
        step = graph.train("adamw", losses="loss", weight_decay=0.5, no_decay=["w1", "norms-and-biases"])
        self.assertEqual((step.show().count("weight_decay: 0.5"), step.show().count("weight_decay: 0.0")), (1, 3))
        self.refuses("no_decay: no parameter matches v*", graph.train, "adamw", losses="loss", no_decay="v*")


class ThreadsAndMemory(Case):
    def test_many_threads_run_one_kernel(self):
        g = ngrad.loads(text(tensor("x", "f32", "[64, 33]"), "{op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}", "y"))
        failures = []

        def work(i):
            try:
                x = np.random.default_rng(i).normal(size=(64, 33)).astype(np.float32)
                expected = kernel(x, threads=1)["y"]
                for threads in (1, 2) * 20:
                    if not np.array_equal(kernel(x.copy(), threads=threads)["y"], expected):
                        failures.append(i)
            except Exception as error:
                failures.append(error)

        for kernel in (g.compile(), g):  # calls of a graph compile at the same time
            workers = [threading.Thread(target=work, args=(i,)) for i in range(8)]
            for worker in workers:
                worker.start()
            for _ in range(20):
                gc.collect()
            for worker in workers:
                worker.join()
        self.assertEqual(failures, [])

    def test_errors_in_threads_are_told_apart(self):
        table = tensor("x", "f32", "[4, 2]") + ", " + tensor("i", "s32", "[3]")
        k = ngrad.loads(text(table, "{op: Gather, inputs: [x, i], outputs: [y], attributes: {axis: 0}}", "y")).compile()
        wrong = []

        def work(i):
            for _ in range(50):
                try:
                    k(floats(4, 2), np.array([0, 1, 10 + i], np.int32))
                    wrong.append(i)
                except ngrad.GraphError as error:
                    if f"found {10 + i}" not in str(error):
                        wrong.append(str(error))

        workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])

    def test_kernels_are_freed(self):
        def loaded():
            with open("/proc/self/maps") as maps:
                return sum("ngrad" in line and "libngrad" not in line for line in maps)

        def make(i):
            k = ngrad.loads(ADD).with_dims(N=i % 2 + 1).compile()
            k(floats(i % 2 + 1, 3), floats(i % 2 + 1, 3))
            return k

        for i in range(2):
            make(i)
        gc.collect()
        before = loaded()
        for i in range(20):
            k = make(i)
            k.itself = k  # a circle
        reference = weakref.ref(k)
        del k
        gc.collect()
        self.assertIsNone(reference())
        self.assertEqual(loaded(), before)

    def test_graphs_keep_few_kernels(self):
        g = ngrad.loads(ADD)
        for n in range(1, g._MOST_KERNELS + 3):
            g._kernels[n] = None
        g(floats(2, 3), floats(2, 3))
        self.assertLessEqual(len(g._kernels), g._MOST_KERNELS)

    def test_copies_of_a_kernel_share_it(self):
        k = ngrad.loads(ADD).compile()
        k.note = "mine"
        copies = [copy.copy(k), copy.copy(copy.copy(k)), k.__call__]
        aside = object.__new__(ngrad.Kernel)
        aside.__dict__.update(k.__dict__)
        reference = weakref.ref(k._session)
        del k
        gc.collect()
        self.assertEqual(copies[0].note, "mine")
        for call in (*copies, aside):
            np.testing.assert_array_equal(call(floats(2, 3), floats(2, 3))[0], 2 * floats(2, 3))
            self.refuses("threads", call, floats(2, 3), floats(2, 3), threads=-1)
        del copies, call, aside
        gc.collect()
        self.assertIsNone(reference())

    def test_a_kernel_is_no_data(self):
        k = ngrad.loads(ADD).compile()
        for function in copy.deepcopy, pickle.dumps, lambda k: copy.deepcopy([k]):
            with self.assertRaisesRegex(TypeError, "g: a compiled kernel cannot be pickled or copied deeply: pickle or copy its Graph"):
                function(k)

    def test_graphs_are_copied_and_pickled(self):
        mlp = ngrad.load(os.path.join(os.path.dirname(__file__), "../../models/train/mlp.yaml"))
        wrt = ["x"]
        graphs = [ngrad.loads(ADD), ngrad.loads(ADD).with_dims(N=2), ngrad.loads(ADD).with_shapes(x=(2, 3)), mlp,
                  ngrad.loads(ADD).gradient(wrt=iter(wrt)), ngrad.loads(ADD).forward(wrt=wrt), mlp.test(losses=["loss"]),
                  mlp.train("adam", losses="loss", learning_rate=0.01, freeze=["b1"]), mlp.inference(losses="loss")]  # fmt: skip
        wrt.append("y")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "g.onnx")
            with open(path, "wb") as file:
                file.write(ngrad.loads(ADD).onnx())
            graphs.append(ngrad.load(path, dims={"N": 2}))
            graphs.append(ngrad.load(path, shapes={"x": (2, 3)}))
            self.assertEqual(graphs[-1].inputs[0].shape, (2, 3))
            for g in graphs:
                g.note = "mine"
                for again in copy.copy(g), copy.deepcopy(g), *(pickle.loads(pickle.dumps(g, i)) for i in range(6)):
                    self.assertEqual(again.show(), g.show())
                    self.assertEqual((again.name, again.inputs, again.outputs, again.states, again.dims, again.note),
                                     (g.name, g.inputs, g.outputs, g.states, g.dims, "mine"))  # fmt: skip
        g = graphs[0]
        g(floats(2, 3), floats(2, 3))
        for again in copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g)):
            self.assertEqual(again._kernels, {})
            self.assertIsNot(again._lock, g._lock)

    def test_models_are_read_with_the_shapes_of_data(self):
        """TopK of 1 along an axis that has neither a number nor a name, and Relu of the same x."""
        def number(field, value):
            return bytes([field << 3, value])

        def text(field, *values):
            return b"".join(bytes([field << 3 | 2, len(value)]) + value for value in values)

        def info(name, rank):
            return text(1, name) + text(2, text(1, number(1, 1) + text(2, text(1, *[b""] * rank))))

        def model(nodes):
            graph = text(1, *nodes) + text(11, info(b"x", 2)) + text(12, info(b"y", 2))
            return number(1, 8) + text(8, number(2, 9)) + text(7, graph)

        relu = text(1, b"x") + text(2, b"y") + text(4, b"Relu")
        best = text(1, b"x") + text(2, b"y", b"i") + text(4, b"TopK") + text(5, text(1, b"k") + number(3, 1))
        x = np.array([[1, 3, 2], [5, 4, -6]], np.float32)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "m.onnx")
            with open(path, "wb") as file:
                file.write(model([best]))
            self.refuses("shapes", ngrad.load, path, error=ngrad.GraphError)
            self.refuses("give the shape of x", ngrad.load, path, shapes={"x": (-1, 3)}, error=ngrad.GraphError)
            for shapes in {"x": x}, {"x": (2, 3)}:
                np.testing.assert_array_equal(ngrad.load(path, shapes=shapes)(x)["y"], [[3], [5]])
        g = ngrad.loads(model([relu]))
        self.assertEqual(g.inputs[0].shape, (None, None))
        np.testing.assert_array_equal(g(x)[0], np.maximum(x, 0))
        np.testing.assert_array_equal(g.interpret(x)[0], np.maximum(x, 0))
        self.assertEqual(g._read_with({"x": (2, 3)}).inputs[0].shape, (2, 3))

    def test_values_are_copied_and_pickled(self):
        g = ngrad.loads(COUNTER)
        results = g(floats(3), **g.initial_states())
        error = self.refuses("a.yaml", ngrad.loads, "format: ngrad/1\nfoo: 1\n", "a.yaml", error=ngrad.GraphError)
        for function in copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value)):
            for value in g.inputs, g.outputs, g.states, error.messages:
                self.assertEqual(function(value), value)
            again = function(error)
            self.assertEqual((type(again), str(again), again.messages), (type(error), str(error), error.messages))
            np.testing.assert_array_equal(function(results)["y"], results["y"])

    def test_results_outlive_kernels(self):
        (z,) = ngrad.loads(ADD).compile()(floats(2, 3), floats(2, 3))
        gc.collect()
        np.testing.assert_array_equal(z, 2 * floats(2, 3))

    def test_memory_that_is_not_there(self):
        g = ngrad.loads(ADD).with_dims(N=2**42)
        error = self.refuses("memory", g.random_inputs, error=ngrad.OutOfMemory)
        self.assertIsInstance(error, MemoryError)

    def test_a_compiler_that_fails(self):
        g = ngrad.loads(text(tensor("x", "f32", "[13, 7, 17]"), "{op: Tanh, inputs: [x], outputs: [y]}", "y"))
        old, cache = os.environ.get("CC"), os.environ.get("XDG_CACHE_HOME")
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update(CC="false", XDG_CACHE_HOME=folder)
            try:
                self.refuses("false", g.compile, error=ngrad.CompilerError)
            finally:
                for name, value in (("CC", old), ("XDG_CACHE_HOME", cache)):
                    os.environ.pop(name) if value is None else os.environ.update({name: value})

    def test_a_library_that_is_not_there(self):
        run = subprocess.run([sys.executable, "-c", "import ngrad"], env=dict(os.environ, NGRAD_LIBRARY="/nowhere/x.so"),
                             capture_output=True, text=True)  # fmt: skip
        self.assertIn("ImportError: /nowhere/x.so", run.stderr)
        self.assertIn("NGRAD_LIBRARY may name another", run.stderr)

    def test_a_process_ends_while_a_thread_runs(self):
        program = (
            "import threading, ngrad, numpy as np\n"
            f"g = ngrad.loads({ADD!r}).with_dims(N=100000)\n"
            "k, x = g.compile(), np.zeros((100000, 3), np.float32)\n"
            "def work():\n    while True: k(x, x)\n"
            "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
            "k(x, x)\n"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", program]).returncode, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
