"""Derivatives of random graphs beside PyTorch: random_derivatives.py NGRAD [--count N] [--seed N] [--only SEED].

Each graph is a number of its inputs. Interpreted in f64, its gradient, the product of its Hessian with a vector, and the
gradient of that are compared with torch.autograd's, and so are its tangents. A fifth of the graphs are models that
PyTorch exports as ONNX: recurrences, sorting, cumulated sums, scattering. The others are made of some of the operators
below; a third of them take their first gradient inside of the graph, by the operator Gradient.
"""

import argparse
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
BOUND = 1e-6
MOST_NELEMS = 240


class Draw:
    """A graph: its text, and its values in PyTorch by name. Values that may lie on kinks or poles are `flat`."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.inputs, self.constants, self.nodes, self.values, self.flat = {}, [], [], {}, set()
        torch.manual_seed(seed)

    def chance(self, p):
        return self.rng.random() < p

    def input(self, shape):
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self.values[name] = torch.randn(shape, dtype=torch.float64, requires_grad=True)
        return name

    def constant(self, kind, values, shape):
        name = f"c{len(self.constants)}"
        self.constants.append(f"  - {{name: {name}, type: {kind}, shape: {list(shape)}, values: {values}}}")
        return name

    def number(self, value):
        return self.constant("f64", [value], [])

    def node(self, op, inputs, results, attributes=None, flat=False):
        """Adds a node; results are its values in PyTorch. Returns their names."""
        results = results if isinstance(results, (list, tuple)) else [results]
        names = [f"v{len(self.values) + i}" for i in range(len(results))]
        text = ", ".join(f"{k}: {str(v).lower() if isinstance(v, bool) else v}" for k, v in (attributes or {}).items())
        self.nodes.append(f"  - {{op: {op}, inputs: [{', '.join(inputs)}], outputs: [{', '.join(names)}]"
                          + (f", attributes: {{{text}}}" if text else "") + "}")  # fmt: skip
        for name, value in zip(names, results):
            self.values[name] = value
            if flat or any(i in self.flat for i in inputs):
                self.flat.add(name)
        return names[0] if len(names) == 1 else names

    def pick(self, least=0, most=4, sharp=False):
        """A value of such a rank, of a new input if there is none; sharp: not flat."""
        known = [n for n, v in self.values.items() if v.dtype == torch.float64 and least <= v.dim() <= most
                 and not (sharp and n in self.flat)]  # fmt: skip
        if known and self.chance(0.85):
            return self.rng.choice(known[-6:])
        return self.input([self.rng.randint(1, 4) for _ in range(self.rng.randint(least, max(least, min(most, 3))))])

    def like(self, shape):
        """A value that broadcasts to the shape, or has it."""
        known = [n for n, v in self.values.items() if v.dtype == torch.float64 and list(v.shape) == list(shape)]
        if known and self.chance(0.6):
            return self.rng.choice(known)
        shape = [1 if self.chance(0.2) else e for e in shape]
        return self.input(shape[self.rng.randint(0, len(shape)) if self.chance(0.2) else 0:])

    def positive(self, x):
        x = self.node("SoftPlus", [x], F.softplus(self.values[x]))
        return self.node("Add", [x, self.number(0.5)], self.values[x] + 0.5)


SMOOTH = {
    "Cos": (torch.cos, {}), "Sin": (torch.sin, {}), "Tanh": (torch.tanh, {}), "Sigmoid": (torch.sigmoid, {}),
    "Erf": (torch.erf, {}), "GELU": (F.gelu, {}), "Mish": (F.mish, {}), "SoftPlus": (F.softplus, {}),
    "Swish": (lambda x: x * torch.sigmoid(1.5 * x), {"beta": 1.5}), "Neg": (torch.neg, {}), "Square": (torch.square, {}),
    "GELU tanh": (lambda x: F.gelu(x, approximate="tanh"), {"mode": "gelu_tanh"}),
}  # fmt: skip
KINKED = {
    "Abs": (torch.abs, {}), "ReLU": (F.relu, {}), "Elu": (lambda x: F.elu(x, 0.75), {"alpha": 0.75}),
    "LeakyReLU": (lambda x: F.leaky_relu(x, 0.25), {"alpha": 0.25}),
    "Clamp": (lambda x: x.clamp(-0.5, 1), {"min": -0.5, "max": 1}), "HardSwish": (F.hardswish, {}),
    "HardSigmoid": (lambda x: (x * 0.25 + 0.5).clamp(0, 1), {"alpha": 0.25, "beta": 0.5}),
}  # fmt: skip
POSITIVE = {
    "Log": (torch.log, {}), "Sqrt": (torch.sqrt, {}), "Reciprocal": (torch.reciprocal, {}),
    "Pow": (lambda x: x**2.5, {"beta": 2.5}),
}  # fmt: skip
BINARY = {
    "Add": torch.add, "Subtract": torch.sub, "Multiply": torch.mul, "SquaredDifference": lambda a, b: (a - b) ** 2,
}  # fmt: skip
REDUCTIONS = {
    "ReduceSum": torch.sum, "ReduceMean": torch.mean, "ReduceMax": torch.amax, "ReduceMin": torch.amin,
    "ReduceL2": lambda x, dim, keepdim: torch.linalg.vector_norm(x, dim=dim, keepdim=keepdim),
    "ReduceL1": lambda x, dim, keepdim: x.abs().sum(dim, keepdim),
}  # fmt: skip


def unary(d):
    table = d.rng.choice([SMOOTH, SMOOTH, KINKED, POSITIVE])
    op = d.rng.choice(list(table))
    function, attributes = table[op]
    x = d.pick(sharp=table is KINKED)
    if table is POSITIVE:
        x = d.positive(x)
    d.node(op.split()[0], [x], function(d.values[x]), attributes, flat=table is KINKED and op in ("ReLU", "Clamp", "HardSwish", "HardSigmoid"))


def binary(d):
    a = d.pick()
    b = d.like(d.values[a].shape)
    a, b = (b, a) if d.chance(0.3) else (a, b)
    op = d.rng.choice([*BINARY, "Divide", "Power", "Maximum", "Minimum"])
    if op == "Divide":
        b = d.positive(b)
        d.node(op, [a, b], d.values[a] / d.values[b])
    elif op == "Power":
        a = d.positive(a)
        d.node(op, [a, b], d.values[a] ** d.values[b])
    elif op in BINARY:
        d.node(op, [a, b], BINARY[op](d.values[a], d.values[b]))
    elif a != b and not {a, b} & d.flat:
        d.node(op, [a, b], (torch.maximum if op == "Maximum" else torch.minimum)(d.values[a], d.values[b]))


def reduction(d):
    x = d.pick(1, sharp=True)
    v = d.values[x]
    axes = sorted(d.rng.sample(range(v.dim()), d.rng.randint(1, v.dim())))
    keep = d.chance(0.5)
    op = d.rng.choice([*REDUCTIONS, "ReduceProd"])
    result = v
    if op == "ReduceProd":
        for axis in reversed(axes):
            result = result.prod(axis, keepdim=keep)
    else:
        result = REDUCTIONS[op](v, dim=axes, keepdim=keep)
    d.node(op, [x], result, {"axes": axes, "keep_dims": keep})


def product(d):
    x = d.pick(1)
    v = d.values[x]
    n, k = d.rng.randint(1, 4), v.shape[-1]
    ta, tb = v.dim() > 1 and d.chance(0.3), d.chance(0.3)
    k = v.shape[-2] if ta else k
    batch = list(v.shape[:-2]) if v.dim() > 2 and d.chance(0.5) else []
    w = d.input(batch + ([n, k] if tb else [k, n]))
    a = v.transpose(-1, -2) if ta else v
    b = d.values[w].transpose(-1, -2) if tb else d.values[w]
    d.node("MatMul", [x, w], a @ b, {"transpose_a": ta, "transpose_b": tb})


def convolution(d):
    n = d.rng.choice([1, 2])
    groups = d.rng.choice([1, 1, 2])
    extents = [d.rng.randint(3, 5) for _ in range(n)]
    x = d.input([d.rng.randint(1, 2), 2 * groups if groups > 1 else d.rng.randint(1, 3), *extents])
    if d.chance(0.5):
        x = d.node("Tanh", [x], torch.tanh(d.values[x]))
    v = d.values[x]
    kernel = [d.rng.randint(1, 3) for _ in range(n)]
    strides, pads = [d.rng.randint(1, 2) for _ in range(n)], [d.rng.randint(0, 1) for _ in range(n)]
    out = groups * d.rng.randint(1, 2)
    attributes = {"strides": strides, "pads_begin": pads, "pads_end": pads, "dilations": [1] * n, "groups": groups,
                  "data_format": "NCX"}  # fmt: skip
    if d.chance(0.6):
        w = d.input([out, v.shape[1] // groups, *kernel])
        function = F.conv1d if n == 1 else F.conv2d
        d.node("Convolution", [x, w], function(v, d.values[w], None, strides, pads, 1, groups), {**attributes, "weights_format": "OIX"})
    else:
        w = d.input([v.shape[1], out // groups, *kernel])
        function = F.conv_transpose1d if n == 1 else F.conv_transpose2d
        if all((e - 1) * s - 2 * p + k > 0 for e, s, p, k in zip(extents, strides, pads, kernel)):
            d.node("ConvTranspose", [x, w], function(v, d.values[w], None, strides, pads, 0, groups, 1),
                   {**attributes, "weights_format": "IOX"})  # fmt: skip


def images(d, sharp=False):
    """A value of at least three axes, channels second."""
    x = d.pick(1, 4, sharp)
    v = d.values[x]
    if v.dim() < 3:
        shape = [1] * (3 - v.dim()) + list(v.shape)
        x = d.node("StaticReshape", [x], v.reshape(shape), {"shape": shape, "special_zero": False})
    return x


def pooling(d):
    x = images(d, True)
    v = d.values[x]
    n = v.dim() - 2
    kernel = [d.rng.randint(1, min(2, e)) for e in v.shape[2:]]
    strides = [d.rng.randint(1, 2) for _ in kernel]
    attributes = {"kernel": kernel, "strides": strides, "pads_begin": [0] * n, "pads_end": [0] * n, "data_format": "NCX"}
    if d.chance(0.5):
        d.node("MaxPool", [x], (F.max_pool1d, F.max_pool2d)[n - 1](v, kernel, strides), attributes)
    else:
        d.node("AvgPool", [x], (F.avg_pool1d, F.avg_pool2d)[n - 1](v, kernel, strides), {**attributes, "exclude_pad": False})


def resampling(d):
    x = images(d)
    v = d.values[x]
    sizes = [d.rng.randint(1, 6) for _ in v.shape[2:]]
    if v[0, 0].numel() and v.shape[0] * v.shape[1] * numpy.prod(sizes) <= MOST_NELEMS:
        if v.dim() == 3:
            d.node("Interpolate", [x], F.interpolate(v, sizes, mode="linear"), {"mode": "linear", "sizes": sizes, "data_format": "NCX"})
        else:
            d.node("Interpolate", [x], F.interpolate(v, sizes, mode="bilinear"), {"mode": "linear", "sizes": sizes, "data_format": "NCX"})


def centered(v, axes, eps):  # torch 1.13's own norms have wrong third derivatives
    c = v - v.mean(axes, keepdim=True)
    return c / torch.sqrt(c.square().mean(axes, keepdim=True) + eps)


def norm(d):
    op = d.rng.choice(["LayerNorm", "RMSNorm", "BatchNormForwardTraining", "GroupNorm", "InstanceNorm"])
    x, eps = d.pick(1) if op in ("LayerNorm", "RMSNorm") else images(d), 0.1
    v = d.values[x]
    c = v.shape[-1] if op in ("LayerNorm", "RMSNorm") else v.shape[1]
    gamma, beta = d.input([c]), d.input([c])
    spatial = list(range(2, v.dim()))
    if op in ("LayerNorm", "RMSNorm"):
        g, b = d.values[gamma], d.values[beta]
    else:
        g, b = (d.values[n].reshape([c] + [1] * len(spatial)) for n in (gamma, beta))
    if op == "LayerNorm":
        d.node(op, [x, gamma, beta], centered(v, [-1], eps) * g + b, {"keep_stats": False, "epsilon": eps})
    elif op == "RMSNorm":
        d.node(op, [x, gamma], v * torch.rsqrt(v.square().mean(-1, keepdim=True) + eps) * g, {"epsilon": eps})
    elif op == "GroupNorm":
        groups = d.rng.choice([n for n in range(1, c + 1) if c % n == 0])
        cut = v.reshape([v.shape[0], groups, c // groups, *v.shape[2:]])
        y = centered(cut, list(range(2, cut.dim())), eps).reshape(v.shape) * g + b
        d.node(op, [x, gamma, beta], y, {"groups": groups, "keep_stats": False, "epsilon": eps, "data_format": "NCX"})
    elif op == "InstanceNorm":
        d.node(op, [x, gamma, beta], centered(v, spatial, eps) * g + b, {"keep_stats": False, "epsilon": eps, "data_format": "NCX"})
    else:
        axes, zero, none = [0, *spatial], d.constant("f64", [0.0] * c, [c]), torch.zeros(1, dtype=torch.int)
        d.node(op, [x, zero, zero, gamma, beta], [centered(v, axes, eps) * g + b, none, none, v.mean(axes), v.var(axes, unbiased=False)],
               {"epsilon": eps, "data_format": "NCX"})  # fmt: skip


def softmax(d):
    x = d.pick(1)
    v = d.values[x]
    axis = d.rng.randrange(v.dim())
    op = d.rng.choice(["SoftMax", "LogSoftmax"])
    d.node(op, [x], (F.softmax if op == "SoftMax" else F.log_softmax)(v, axis), {"axis": axis})


def loss(d):
    x = d.pick(2, 2)
    v = d.values[x]
    op = d.rng.choice(["SoftmaxCrossEntropy", "MeanSquaredError", "BinaryCrossEntropy"])
    if op == "SoftmaxCrossEntropy":
        labels = [d.rng.randrange(v.shape[1]) for _ in range(v.shape[0])]
        smoothing = d.rng.choice([0, 0.25])
        name = d.constant("s64", labels, [len(labels)])
        d.node(op, [x, name], F.cross_entropy(v, torch.tensor(labels), label_smoothing=smoothing), {"label_smoothing": smoothing})
        return
    y = d.like(v.shape)
    if d.values[y].shape == v.shape:
        function = F.mse_loss if op == "MeanSquaredError" else F.binary_cross_entropy_with_logits
        if op == "BinaryCrossEntropy":
            y = d.node("Sigmoid", [y], torch.sigmoid(d.values[y]))
        d.node(op, [x, y], function(v, d.values[y]))


def moved(d, x, again=False):
    """Moves elements of x; also returns the function of PyTorch, which a mask takes as well."""
    v = d.values[x]
    ways = ["Slice", "Pad", "Tile", "Gather", "StaticReshape", "StaticTranspose", "Concat", "Split", "Scatter", "Diagonal"]
    way = d.rng.choice(ways)
    axis = d.rng.randrange(v.dim())
    n = v.shape[axis]
    if way == "Slice":
        step = d.rng.choice([1, 1, 2, -1])
        start, end = (n - 1, -1000) if step < 0 else (d.rng.randrange(n), 1000)
        picked = list(range(n))[::-1] if step < 0 else list(range(start, n, step))
        return ("Slice", {"starts": [start], "ends": [end], "axes": [axis], "steps": [step]}, [],
                lambda t: t.index_select(axis, torch.tensor(picked)))  # fmt: skip
    if way == "Pad":
        front, behind = d.rng.randint(0, 2), d.rng.randint(0, 2)
        pads = [0, 0] * (v.dim() - 1 - axis) + [front, behind]
        begin, end = ([k if i == axis else 0 for i in range(v.dim())] for k in (front, behind))
        return "Pad", {"pads_begin": begin, "pads_end": end}, [], lambda t: F.pad(t, pads)
    if way == "Tile":
        repeats = [d.rng.randint(1, 2) for _ in v.shape]
        return "Tile", {"repeats": repeats}, [], lambda t: t.repeat(repeats)
    if way == "Gather":
        picked = [d.rng.randrange(n) for _ in range(d.rng.randint(1, 4))]
        return "Gather", {"axis": axis}, [d.constant("s64", picked, [len(picked)])], lambda t: t.index_select(axis, torch.tensor(picked))
    if way == "StaticTranspose":
        order = d.rng.sample(range(v.dim()), v.dim())
        return "StaticTranspose", {"order": order}, [], lambda t: t.permute(order)
    if way == "Diagonal" and v.dim() > 1:
        a, b = sorted(d.rng.sample(range(v.dim()), 2))
        if v.shape[a] == v.shape[b]:
            return "Diagonal", {"axis1": a, "axis2": b}, [], lambda t: torch.diagonal(t, dim1=a, dim2=b)
    if way in ("Concat", "Split", "Scatter"):
        return way, {"axis": axis}, [], None
    shape = list(v.shape)
    d.rng.shuffle(shape)
    if d.chance(0.5):
        shape = [v.numel()]
    return "StaticReshape", {"shape": shape, "special_zero": False}, [], lambda t: t.reshape(shape)


def move(d):
    x = d.pick(1)
    v = d.values[x]
    op, attributes, further, function = moved(d, x)
    flat = op in ("Pad", "Tile", "Gather", "Scatter")
    axis = attributes.get("axis", 0)
    if op == "Concat":
        others = [d.like(v.shape) for _ in range(d.rng.randint(0, 2))]
        others = [o for o in others if d.values[o].shape == v.shape]
        result = torch.cat([v] + [d.values[o] for o in others], axis)
        d.node(op, [x, *others], result, attributes, flat=len({x, *others}) <= len(others))
    elif op == "Split":
        if v.shape[axis] > 1:
            first = d.rng.randrange(1, v.shape[axis])
            splits = [first, v.shape[axis] - first]
            d.node(op, [x], v.split(splits, axis), {**attributes, "splits": splits})
    elif op == "Scatter":
        extent = d.rng.randint(1, 4)
        picked = [d.rng.randrange(extent) for _ in range(v.shape[axis])]
        shape = [extent if i == axis else e for i, e in enumerate(v.shape)]
        result = torch.zeros(shape, dtype=torch.float64).index_add(axis, torch.tensor(picked), v)
        indices = d.constant("s64", picked, [len(picked)])
        name = d.node("GatherBackward", [indices, x], result, attributes, flat)
        d.nodes[-1] = d.nodes[-1].replace(f"outputs: [{name}]", f"outputs: [{{name: {name}, shape: {shape}}}]")
    else:
        d.node(op, [x, *further], function(v), attributes, flat)


def select(d):
    """A branch with a pole where it is not taken. PyTorch gets other numbers there, so that it has no NaN."""
    x = d.pick(1)
    v = d.values[x]
    bound = d.rng.choice([-0.5, 0.0, 0.5])
    t = d.number(bound)
    mask = v.detach() > bound
    c = d.node("Greater", [x, t], mask)
    inner = d.node("Subtract", [x, t], v - bound)
    op = d.rng.choice(["Log", "Sqrt", "Reciprocal"])
    if op == "Reciprocal":
        inner = d.node("Maximum", [inner, d.number(0.0)], (v - bound).clamp(min=0))
    safe = torch.where(mask, v - bound, torch.ones_like(v))
    y = POSITIVE[op][0](safe)
    b = d.node(op, [inner], y)
    hidden = [inner, b]
    for _ in range(d.rng.randint(0, 3)):
        way, attributes, further, function = moved(d, b)
        if not function or y.numel() > MOST_NELEMS // 4:
            continue
        y, mask = function(y), function(mask.to(torch.float64)) > 0.5
        b = d.node(way, [b, *further], y, attributes)
        c = d.node(way, [c, *further], mask, {**attributes, **({"value": 0} if way == "Pad" else {})})
        hidden.append(b)
        if d.chance(0.4):
            y = y * torch.sin(y)
            s = d.node("Sin", [b], torch.sin(y))
            b = d.node("Multiply", [b, s], y)
            hidden += [s, b]
    if d.chance(0.5) and y.dim():  # rows that are taken as a whole, or not at all
        kept = mask.all(-1, keepdim=True)
        safe = torch.where(kept, y, torch.arange(y.numel(), dtype=torch.float64).reshape(y.shape))
        op, n = d.rng.choice(["MatMul", "SoftMax", "LayerNorm"]), y.shape[-1]
        if op == "MatMul":
            w, n = d.input([n, 2]), 2
            y = safe @ d.values[w]
            b = d.node(op, [b, w], y)
        elif op == "SoftMax":
            y = F.softmax(safe, -1)
            b = d.node(op, [b], y, {"axis": -1})
        else:
            gamma, beta = d.input([n]), d.input([n])
            y = centered(safe, [-1], 0.1) * d.values[gamma] + d.values[beta]
            b = d.node(op, [b, gamma, beta], y, {"keep_stats": False, "epsilon": 0.1})
        hidden.append(b)
        mask, none = kept.expand(y.shape), torch.zeros(1, dtype=torch.int)
        number = d.node("TypeCast", [c], none)
        d.nodes[-1] = d.nodes[-1].replace(f"outputs: [{number}]", f"outputs: [{{name: {number}, type: f64}}]")
        least = d.node("ReduceMin", [number], none, {"axes": [y.dim() - 1], "keep_dims": True})
        whole = d.node("Tile", [least], none, {"repeats": [1] * (y.dim() - 1) + [n]})
        c = d.node("Greater", [whole, d.number(0.5)], mask)
    zero = d.number(0.25)
    result = torch.where(mask, y, torch.full_like(y, 0.25))
    for name in hidden:
        d.values[name] = torch.zeros(1, dtype=torch.int)  # not for others
    d.node("Select", [c, b, zero], result, flat=True)


STEPS = [unary, unary, binary, binary, reduction, product, convolution, pooling, resampling, norm, softmax, loss, move,
         move, move, select, select]  # fmt: skip


def draw(seed):
    d = Draw(seed)
    d.input([d.rng.randint(1, 4) for _ in range(d.rng.randint(1, 3))])
    for _ in range(d.rng.randint(2, 7)):
        d.rng.choice(STEPS)(d)
        big = [n for n, v in d.values.items() if v.numel() > MOST_NELEMS]
        for name in big:
            d.values[name] = torch.zeros(1, dtype=torch.int)
    ends = [n for n, v in d.values.items() if v.dtype == torch.float64 and n not in d.inputs][-3:] or [next(iter(d.inputs))]
    total = None
    for name in ends:
        v = d.values[name]
        part = d.node("Sin", [name], torch.sin(v))
        if v.dim():
            part = d.node("ReduceSum", [part], torch.sin(v).sum(), {"axes": list(range(v.dim()))})
        total = part if total is None else d.node("Add", [total, part], d.values[total] + d.values[part])
    return d, total


def text_of(d, output, more=()):
    inputs = "".join(f"  - {{name: {n}, type: f64, shape: {list(v.shape)}}}\n" for n, v in d.inputs.items())
    inputs += "".join(f"  - {{name: {n}, type: f64, shape: {list(v.shape)}}}\n" for n, v in more)
    constants = "constants:\n" + "\n".join(d.constants) + "\n" if d.constants else ""
    return f"format: ngrad/1\nname: random\ninputs:\n{inputs}{constants}nodes:\n" + "\n".join(d.nodes) + f"\noutputs: [{output}]\n"


def gradients(y, xs, create=True):
    """Zeros for what y does not depend on."""
    if not y.requires_grad:
        return [torch.zeros_like(x) for x in xs]
    got = torch.autograd.grad(y, xs, create_graph=create, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(got, xs)]


def weighted(tensors, weights):
    return sum((t * w).sum() for t, w in zip(tensors, weights))


def errors(what, graph, given, expected, found):
    """Compares the graph's results with tensors by name."""
    known = {t.name: given[t.name].detach().numpy() for t in graph.inputs}
    results = graph.interpret(**known).as_dict()
    for name, t in expected.items():
        got = torch.from_numpy(numpy.array(results[name])) if name in results else torch.zeros_like(t)
        t = t.detach()
        if not torch.isfinite(t).all():
            continue
        size = max(float(t.abs().max()) if t.numel() else 0, 1e-3)
        error = float((got - t).abs().max()) / size if t.numel() else 0
        if not error <= BOUND:
            found.append(f"{what}: {name} differs by {error:.1e}")


class Model(torch.nn.Module):
    """The sum of the sines of a function's results."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        y = self.function(x)
        return torch.sin(y[0] if isinstance(y, tuple) else y).sum()


def model(rng):
    """A model and its input."""
    shape = [rng.randint(1, 4) for _ in range(rng.randint(2, 3))]
    axis = rng.randrange(len(shape))
    n, x, w = shape[axis], *(torch.randn(shape, dtype=torch.float64) for _ in range(2))
    k, index = rng.randint(1, n), torch.randint(0, n, shape)
    once = torch.argsort(torch.rand(shape), axis)  # no index twice
    recurrence = rng.choice([torch.nn.GRU, torch.nn.LSTM, torch.nn.RNN])
    size, hidden = rng.randint(1, 3), rng.randint(1, 3)
    functions = [
        lambda x: torch.cumsum(x * x, axis) * x,
        lambda x: torch.cumsum(torch.cumsum(torch.tanh(x), axis).flip(axis), axis) * w,
        lambda x: torch.topk(x**3, k, axis)[0] * torch.topk(x, k, axis, largest=False)[0],
        lambda x: torch.sort(x, axis)[0] * w,
        lambda x: torch.scatter(x * x, axis, once, torch.tanh(x)) * w,
        lambda x: torch.scatter_add(x * x, axis, index, torch.tanh(x)) * w,
        lambda x: torch.gather(torch.tanh(x), axis, index) * x,
        lambda x: torch.gather(x * x, axis, torch.argmax(x, axis, keepdim=True)),
        lambda x: torch.einsum("...i,...i->...", x * x, torch.tanh(x)),
        lambda x: torch.tril(torch.exp(x)) * x,
        lambda x: torch.where(x > 0.1, x**3, torch.sin(x)),
        lambda x: torch.logsumexp(x * w, axis) * torch.max(x * w, axis)[0],
        lambda x: torch.prod(x, axis) * torch.linalg.vector_norm(x * w, 2, axis),
        lambda x: torch.roll(x * x, 1, axis) * torch.flip(x, [axis]),
        *[recurrence(size, hidden, rng.randint(1, 2), bidirectional=rng.random() < 0.3).double()] * 4,
    ]
    function = rng.choice(functions)
    if isinstance(function, torch.nn.Module):
        x = torch.randn(rng.randint(1, 4), rng.randint(1, 2), size, dtype=torch.float64)
    return Model(function), x


def check_model(ngrad, seed):
    """The same of a model, by its input and by its parameters."""
    m, x = model(random.Random(seed))
    x.requires_grad_()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        torch.onnx.export(m, x, path, input_names=["x"], output_names=["y"], opset_version=16, do_constant_folding=False)
        g = ngrad.load(path)
        g = g.trainable() if list(m.parameters()) else g
    known = dict(m.named_parameters())
    names = ["x"] + [t.name for t in g.inputs if t.name in known]
    xs = [x] + [known[n] for n in names[1:]]
    given = {n: torch.from_numpy(numpy.array(v)) for n, v in g.initial_states().items()} | {"x": x}
    return compare(ngrad, g, g.outputs[0].name, m(x), names, xs, given)


def compare(ngrad, g, output, y, names, xs, given):
    """What is wrong with the derivatives of a graph's output, which is y in PyTorch; None: it depends on no input."""
    t, u = ([torch.randn_like(x) for x in xs] for _ in range(2))
    first = gradients(y, xs)
    second = gradients(weighted(first, t), xs)
    third = gradients(weighted(second, u), xs, False)
    found = []
    given = given | {f"tangent_{n}": v for n, v in zip(names, t)} | {f"diff_{output}": torch.ones((), dtype=torch.float64)}
    given |= {f"{prefix}_tangent_diff_{n}": v for prefix in ("diff", "diff2") for n, v in zip(names, u)}
    try:
        errors("vjp", g.vjp(of=output), given, {f"diff_{n}": v for n, v in zip(names, first)}, found)
        errors("jvp", g.jvp(wrt=names, of=output), given, {f"tangent_{output}": weighted(first, t)}, found)
        hvp = g.hvp(wrt=names, of=output)
        errors("hvp", hvp, given, {f"tangent_diff_{n}": v for n, v in zip(names, second)}, found)
        last = hvp.vjp()
        prefix = last.outputs[0].name.split("_")[0] + "_"
        errors("third", last, given, {prefix + n: v for n, v in zip(names, third)}, found)
    except ngrad.GraphError as error:  # a derivative that is constant has none
        if "expected an output that depends" not in str(error):
            raise
    return found


def check(ngrad, seed):
    """What is wrong with the derivatives of a random graph: a list of texts; None: they are too large to compare."""
    d, output = draw(seed)
    names, xs = list(d.inputs), list(d.inputs.values())
    t, u = ([torch.randn_like(x) for x in xs] for _ in range(2))
    first = gradients(d.values[output], xs)
    size = max(float(g.abs().max()) for g in first)
    if not size < 1e5:
        return None
    if d.rng.random() < 0.33 and len(names) <= 8:  # the first gradient inside
        second = gradients(weighted(first, t), xs)
        third = gradients(weighted(second, u), xs, False)
        found = []
        results = ", ".join(f"g_{n}" for n in names)
        d.nodes.append(f"  - {{op: Gradient, inputs: [{output}, {', '.join(names)}], outputs: [{results}]}}")
        total = None
        for i, n in enumerate(names):
            axes = list(range(xs[i].dim()))
            d.nodes.append(f"  - {{op: Multiply, inputs: [g_{n}, t_{n}], outputs: [p_{n}]}}")
            d.nodes.append(f"  - {{op: ReduceSum, inputs: [p_{n}], outputs: [s_{n}], attributes: {{axes: {axes}}}}}" if axes else
                           f"  - {{op: Add, inputs: [p_{n}, {d.number(0.0)}], outputs: [s_{n}]}}")  # fmt: skip
            if total:
                d.nodes.append(f"  - {{op: Add, inputs: [{total}, s_{n}], outputs: [sum_{n}]}}")
            total = f"sum_{n}" if total else f"s_{n}"
        g = ngrad.loads(text_of(d, total, [(f"t_{n}", v) for n, v in zip(names, t)]))
        given = dict(zip(names, xs)) | {f"t_{n}": v for n, v in zip(names, t)}
        given |= {f"diff_{total}": torch.ones((), dtype=torch.float64)}
        errors("Gradient, then vjp", g.vjp(), given, {f"diff_{n}": v for n, v in zip(names, second)}, found)
        given |= {f"tangent_{n}": v for n, v in zip(names, u)}
        errors("Gradient, then hvp", g.hvp(wrt=names), given, {f"tangent_diff_{n}": v for n, v in zip(names, third)}, found)
        return found
    return compare(ngrad, ngrad.loads(text_of(d, output)), output, d.values[output], names, xs, dict(zip(names, xs)))


def main():
    p = argparse.ArgumentParser(description="Derivatives of random graphs beside PyTorch, to third order.")
    p.add_argument("ngrad", type=Path)
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", type=int)
    settings = p.parse_args()
    os.environ["NGRAD_LIBRARY"] = str(settings.ngrad.resolve().parent / "libngrad.so")
    sys.path.insert(0, str(ROOT / "frontend/python"))
    import warnings

    import ngrad

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    seeds = [settings.only] if settings.only else range(settings.seed, settings.seed + settings.count)
    nchecked = nwrong = 0
    for seed in seeds:
        try:
            found = check_model(ngrad, seed) if seed % 5 == 0 else check(ngrad, seed)
        except (ngrad.Error, RuntimeError) as error:
            found = [f"{type(error).__name__}: {error}"]
        nchecked += found is not None
        if found:
            nwrong += 1
            print(f"seed {seed}: " + "; ".join(found), flush=True)
            if settings.only and seed % 5:
                print(text_of(*draw(seed)))
    print(f"{nchecked} graphs, {nwrong} differ")
    return nwrong > 0


if __name__ == "__main__":
    sys.exit(main())
