#!/usr/bin/env python3
"""Writes small networks as torch.onnx exports them, and data for them. Needs nothing but Python.

Usage: models.py FOLDER. For each network NAME: NAME.onnx, with a named batch, and NAME/x.npy and NAME/labels.npy.
"""
import pathlib
import random
import struct
import sys

FLOAT, INT64 = 1, 7
SAMPLES, CLASSES = 10, 3


# Protobuf


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def tensor(name, shape, items, kind=FLOAT):
    raw = struct.pack(f"<{len(items)}{'f' if kind == FLOAT else 'q'}", *items)
    return b"".join(field(1, n) for n in shape) + field(2, kind) + field(8, name) + field(9, raw)


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return field(1, name) + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    return field(1, name) + b"".join(field(8, n) for n in value) + field(20, 7)


def typed(name, shape):
    dims = b"".join(field(1, field(1, n) if isinstance(n, int) else field(2, n)) for n in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


class Model:
    """Nodes are added by their operators' names: m.Add(a, b) gives the name of the result."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.nodes, self.initializers, self.count = b"", b"", 0

    def fresh(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def weight(self, *shape, scale=0.4, value=None):
        name, count = self.fresh("w"), 1
        for n in shape:
            count *= n
        items = [self.random.uniform(-scale, scale) if value is None else value for _ in range(count)]
        self.initializers += field(5, tensor(name, shape, items))
        return name

    def ints(self, *items):
        name = self.fresh("ints")
        self.nodes += field(1, field(2, name) + field(4, "Constant") + field(5, field(1, "value") + field(5, tensor("", [len(items)], items, INT64)) + field(20, 4)))
        return name

    def number(self, value):
        name = self.fresh("number")
        self.nodes += field(1, field(2, name) + field(4, "Constant") + field(5, field(1, "value") + field(5, tensor("", [], [value])) + field(20, 4)))
        return name

    def node(self, op, inputs, noutputs=1, **attributes):
        outputs = [self.fresh(op) for _ in range(noutputs)]
        self.nodes += field(1, b"".join(field(1, i) for i in inputs) + b"".join(field(2, o) for o in outputs) + field(3, self.fresh("n")) + field(4, op) + b"".join(field(5, attribute(k, v)) for k, v in attributes.items()))
        return outputs[0] if noutputs == 1 else outputs

    def __getattr__(self, op):
        return lambda *inputs, **attributes: self.node(op, inputs, **attributes)

    def extent(self, x, axis):
        """The extent of an axis, as the exporter writes x.shape[axis]."""
        return self.Unsqueeze(self.Gather(self.Shape(x), self.ints_scalar(axis), axis=0), self.ints(0))

    def ints_scalar(self, n):
        name = self.fresh("int")
        self.nodes += field(1, field(2, name) + field(4, "Constant") + field(5, field(1, "value") + field(5, tensor("", [], [n], INT64)) + field(20, 4)))
        return name

    def save(self, path, x_shape, y):
        graph = self.nodes + field(1, field(1, y) + field(2, "y") + field(4, "Identity"))
        graph += field(2, "net") + self.initializers + field(11, typed("x", x_shape)) + field(12, typed("y", ["N", CLASSES]))
        path.write_bytes(field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17)))


# Networks


def batch_norm(m, x, channels):
    return m.node("BatchNormalization", [x, m.weight(channels, value=1.0), m.weight(channels, value=0.0), m.weight(channels, value=0.0), m.weight(channels, value=1.0)], 3, epsilon=1e-5, momentum=0.9, training_mode=1)[0]


def conv(m, x, before, channels, size, stride):
    pad = size // 2
    return batch_norm(m, m.Conv(x, m.weight(channels, before, size, size), kernel_shape=[size, size], strides=[stride, stride], pads=[pad] * 4, dilations=[1, 1], group=1), channels)


def resnet(m):
    x = m.Relu(conv(m, "x", 1, 4, 3, 1))
    for before, channels, stride in ((4, 4, 1), (4, 8, 2)):
        y = conv(m, m.Relu(conv(m, x, before, channels, 3, stride)), channels, channels, 3, 1)
        x = m.Relu(m.Add(y, x if before == channels else conv(m, x, before, channels, 1, stride)))
    return ["N", 1, 8, 8], m.Gemm(m.Flatten(m.GlobalAveragePool(x), axis=1), m.weight(CLASSES, 8), m.weight(CLASSES), transB=1)


def lstm(m):
    steps, inputs, hidden = 5, 4, 6
    x = m.Transpose("x", perm=[1, 0, 2])
    zeros = m.node("ConstantOfShape", [m.Concat(m.ints(2), m.extent("x", 0), m.ints(hidden), axis=0)])
    y = m.node("LSTM", [x, m.weight(2, 4 * hidden, inputs), m.weight(2, 4 * hidden, hidden), m.weight(2, 8 * hidden), "", zeros, zeros], 3, hidden_size=hidden, direction="bidirectional")[0]
    y = m.Reshape(m.Transpose(y, perm=[0, 2, 1, 3]), m.ints(0, 0, -1))
    last = m.Gather(m.Transpose(y, perm=[1, 0, 2]), m.ints_scalar(-1), axis=1)
    return ["N", steps, inputs], m.Gemm(last, m.weight(CLASSES, 2 * hidden), m.weight(CLASSES), transB=1)


def layer_norm(m, x, width):
    apart = m.Sub(x, m.ReduceMean(x, axes=[-1]))
    deviation = m.Sqrt(m.Add(m.ReduceMean(m.Pow(apart, m.number(2.0)), axes=[-1]), m.number(1e-5)))
    return m.Add(m.Mul(m.Div(apart, deviation), m.weight(width, value=1.0)), m.weight(width, value=0.0))


def linear(m, x, before, width):
    return m.Add(m.MatMul(x, m.weight(before, width)), m.weight(width, value=0.0))


def attention(m, x, width, nheads):
    """nn.MultiheadAttention of [T, N, width]: heads are joined with the batch, so that an extent is N * nheads."""
    each = width // nheads
    length, batch = m.extent(x, 0), m.extent(x, 1)
    heads = m.Mul(batch, m.ints(nheads))

    def part(i):
        y = m.Slice(linear(m, x, width, 3 * width), m.ints(i * width), m.ints((i + 1) * width), m.ints(2), m.ints(1))
        return m.Transpose(m.Reshape(y, m.Concat(length, heads, m.ints(each), axis=0)), perm=[1, 0, 2])

    q, k, v = part(0), part(1), part(2)
    weights = m.Softmax(m.MatMul(m.Mul(q, m.number(each**-0.5)), m.Transpose(k, perm=[0, 2, 1])), axis=-1)
    y = m.Transpose(m.MatMul(weights, v), perm=[1, 0, 2])
    y = m.Reshape(y, m.Concat(m.Mul(length, batch), m.ints(width), axis=0))
    y = m.Gemm(y, m.weight(width, width), m.weight(width, value=0.0), transB=1)
    return m.Reshape(y, m.Concat(length, batch, m.ints(width), axis=0))


def transformer(m):
    """A class token before tokens whose number is open, one nn.TransformerEncoderLayer, and a linear layer."""
    width, nheads, inner = 8, 2, 16
    token = m.Expand(m.weight(1, 1, width), m.Concat(m.extent("x", 0), m.ints(1, width), axis=0))
    x = m.Transpose(m.Concat(token, "x", axis=1), perm=[1, 0, 2])
    x = layer_norm(m, m.Add(x, attention(m, x, width, nheads)), width)
    x = layer_norm(m, m.Add(x, linear(m, m.Relu(linear(m, x, width, inner)), inner, width)), width)
    first = m.Gather(m.Transpose(x, perm=[1, 0, 2]), m.ints_scalar(0), axis=1)
    return ["N", "T", width], m.Gemm(first, m.weight(CLASSES, width), m.weight(CLASSES), transB=1)


# Data


def save_npy(path, shape, items, kind):
    head = f"{{'descr': '<{kind}', 'fortran_order': False, 'shape': ({', '.join(map(str, shape))},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(items)}{'f' if kind == 'f4' else 'i'}", *items)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def main():
    folder = pathlib.Path(sys.argv[1])
    for i, make in enumerate((resnet, lstm, transformer)):
        m = Model(i)
        shape, y = make(m)
        m.save(folder / f"{make.__name__}.onnx", shape, y)
        own = [SAMPLES] + [7 if n == "T" else n for n in shape[1:]]
        count = 1
        for n in own:
            count *= n
        data = folder / make.__name__
        data.mkdir(exist_ok=True)
        labels = [m.random.randrange(CLASSES) for _ in range(SAMPLES)]
        each = count // SAMPLES
        save_npy(data / "x.npy", own, [m.random.gauss(labels[k // each] - 1, 1) for k in range(count)], "f4")
        save_npy(data / "labels.npy", [SAMPLES], labels, "i4")


main()
