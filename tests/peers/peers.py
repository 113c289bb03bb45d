"""Compares what ngrad_check_peers --export wrote with PyTorch: peers.py FOLDER.

PyTorch computes in f32 on the same numbers, values and sums of magnitudes; the bound is that of peers.h. Forms that
PyTorch lacks (padding that differs between begin and end of what it pads itself, gradients it has no function for) come
from its own forward by autograd, on tensors that are padded and permuted here.
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy
import torch
import yaml

F = torch.nn.functional
CONVOLVE = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
MAX_POOL = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
AVG_POOL = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
UNITS = {"f32": None, "f16": (11, -13), "bf16": (8, -125)}  # digits, least exponent of [1/2, 1) * 2^exponent


def channels_first(x, a):
    return x if a["data_format"] == "NCX" else x.movedim(-1, 1)


def channels_as_given(x, a):
    return x if a["data_format"] == "NCX" else x.movedim(1, -1)


def is_last(a):
    return a["weights_format"] in ("XIO", "XOI")


def weights_first(w, a):
    """[small side's channels, large side's channels of a group, kernel...]"""
    return w.movedim(-1, 0).movedim(-1, 1) if is_last(a) else w


def weights_as_given(w, a):
    return w.movedim(1, -1).movedim(0, -1) if is_last(a) else w


def pads(a, large, small, kernel):
    """Begin and end of each axis, for `small` windows to fit."""
    result = []
    for i, stride in enumerate(a["strides"]):
        reach = (kernel[i] - 1) * a.get("dilations", [1] * len(kernel))[i] + 1
        total = max(0, reach - (large[i] % stride or stride))
        begin = {"None": a["pads_begin"][i], "VALID": 0, "SAME_UPPER": total // 2, "SAME_LOWER": total - total // 2}
        begin = begin[a["auto_pad"]]
        result.append((begin, max(0, (small[i] - 1) * stride + reach - large[i] - begin)))
    return result


def padded(x, pad, value):
    return F.pad(x, [n for pair in reversed(pad) for n in pair], value=value)


def convolve(x, w, bias, a, small):
    """x and w, channels first, so that the result has the extents `small`."""
    pad = pads(a, x.shape[2:], small, w.shape[2:])
    y = CONVOLVE[len(small)](padded(x, pad, 0), w, bias, a["strides"], 0, a["dilations"], a["groups"])
    return y[(slice(None), slice(None)) + tuple(slice(n) for n in small)]


def convolution_small(a, large, kernel):
    small = []
    for i, stride in enumerate(a["strides"]):
        reach = (kernel[i] - 1) * a["dilations"][i] + 1
        total = {"None": a["pads_begin"][i] + a["pads_end"][i], "VALID": 0}.get(a["auto_pad"])
        small.append(-(-large[i] // stride) if total is None else (large[i] + total - reach) // stride + 1)
    return small


def gradient(function, x, dy):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(function(x), x, dy)[0]


def matmul(t, a, result):
    x, w = t["src"], t["weights"]
    x = x.transpose(-1, -2) if a["transpose_a"] and x.dim() > 1 else x
    w = w.transpose(-1, -2) if a["transpose_b"] and w.dim() > 1 else w
    return torch.matmul(x, w) + t.get("bias", 0)


def convolution(t, a, result):
    x, w = channels_first(t["src"], a), weights_first(t["weights"], a)
    small = convolution_small(a, x.shape[2:], w.shape[2:])
    return channels_as_given(convolve(x, w, t.get("bias"), a, small), a)


def by_data(t, a, result):
    dy, w = channels_first(t["src"], a), weights_first(t["weights"], a)
    shape = channels_first(result, a).shape
    dx = gradient(lambda x: convolve(x, w, None, a, dy.shape[2:]), torch.zeros(shape), dy)
    bias = t.get("bias", torch.zeros(shape[1])).reshape([-1] + [1] * (len(shape) - 2))
    return channels_as_given(dx + bias, a)


def by_weights(large, small, a, result):
    x, dy = channels_first(large, a), channels_first(small, a)
    shape = weights_first(result, a).shape
    return weights_as_given(gradient(lambda w: convolve(x, w, None, a, dy.shape[2:]), torch.zeros(shape), dy), a)


def pool_windows(x, a, small):
    """The pooled x, channels first. Padding is -inf for a maximum, 0 for a mean."""
    n, kernel, strides = len(small), a["kernel"], a["strides"]
    pad = pads(a, x.shape[2:], small, kernel)
    if "exclude_pad" not in a:
        y = MAX_POOL[n](padded(x, pad, -numpy.inf), kernel, strides, 0, a["dilations"])
    else:
        count = numpy.prod(kernel)
        y = AVG_POOL[n](padded(x, pad, 0), kernel, strides) * count
        inside = AVG_POOL[n](padded(torch.ones_like(x), pad, 0), kernel, strides) * count
        y = y / (inside.round() if a["exclude_pad"] else count)
    return y[(slice(None), slice(None)) + tuple(slice(k) for k in small)]


def pool(t, a, result):
    small = channels_first(result, a).shape[2:]
    return channels_as_given(pool_windows(channels_first(t["src"], a), a, small), a)


def pool_backward(t, a, result):
    dy = channels_first(t["diff_dst"], a)
    x = channels_first(t.get("src", torch.zeros(result.shape)), a)
    return channels_as_given(gradient(lambda v: pool_windows(v, a, dy.shape[2:]), x, dy), a)


OPERATORS = {
    "MatMul": matmul,
    "Convolution": convolution,
    "ConvTransposeBackwardData": convolution,
    "ConvolutionBackwardData": by_data,
    "ConvTranspose": by_data,
    "ConvolutionBackwardWeights": lambda t, a, r: by_weights(t["src"], t["diff_dst"], a, r),
    "ConvTransposeBackwardWeights": lambda t, a, r: by_weights(t["diff_dst"], t["src"], a, r),
    "MaxPool": pool,
    "AvgPool": pool,
    "MaxPoolBackward": pool_backward,
    "AvgPoolBackward": pool_backward,
}


def half_unit(values, kind):
    if not UNITS[kind]:
        return numpy.zeros_like(values)
    digits, least = UNITS[kind]
    return numpy.ldexp(0.5, numpy.maximum(numpy.frexp(values)[1], least) - digits)


def closeness(ours, theirs, magnitude, kind, nterms):
    """The largest distance by magnitude, beyond our rounding, and by the bound."""
    n = (nterms + 2) * 2.0**-24  # a padded mean here multiplies and divides by the number of elements
    off = n / (1 - n)
    rounding = half_unit(ours, kind)
    distance = numpy.abs(ours - theirs)
    bound = 2 * off / (1 - off) * magnitude + rounding
    wrong = ~(distance <= bound)
    with numpy.errstate(divide="ignore", invalid="ignore"):
        error = numpy.where(distance <= rounding, 0, (distance - rounding) / magnitude)
        of_bound = numpy.where(distance == 0, 0, distance / bound)
    return wrong.sum(), error.max(initial=0), of_bound.max(initial=0)


def compare(folder, number, op, kind, nterms):
    node = yaml.safe_load((folder / f"{number}.yaml").read_text())["nodes"][0]
    tensors = {n: torch.from_numpy(numpy.load(folder / f"{number}.{n}.npy")) for n in node["inputs"]}
    ours = torch.from_numpy(numpy.load(folder / f"{number}.y.npy"))
    absolute = {n: t if op == "MaxPoolBackward" and n == "src" else t.abs() for n, t in tensors.items()}
    theirs, magnitude = (OPERATORS[op](t, node["attributes"], ours) for t in (tensors, absolute))
    if theirs.shape != ours.shape:
        return 1, numpy.inf, numpy.inf
    # The largest finite number stands for the greatest of no elements.
    theirs = theirs.clamp(min=-65504.0 if kind == "f16" else numpy.finfo(numpy.float32).min)
    as_f64 = [t.detach().numpy().astype(numpy.float64) for t in (ours, theirs, magnitude)]
    return closeness(*as_f64, kind, nterms)


def main(folder):
    rows = defaultdict(lambda: [0, 0, 0.0, 0.0])
    for line in (folder / "index.tsv").read_text().splitlines():
        number, op, kind, result_kind, nterms = line.split("\t")
        nwrong, error, of_bound = compare(folder, number, op, result_kind, int(nterms))
        row = rows[op, kind]
        rows[op, kind] = [row[0] + 1, row[1] + bool(nwrong), max(row[2], error), max(row[3], of_bound)]
        if nwrong:
            print(f"case {number}: {nwrong} elements are beyond the bound, by the factor {of_bound:g}")
            print((folder / f"{number}.yaml").read_text())
    print(f"ngrad beside PyTorch {torch.__version__}; error: |ours - theirs| / sum(|term|), as above\n")
    print(f"{'operator':28} {'type':5} {'cases':>6} {'error':>9} {'of bound':>9} {'wrong':>6}")
    for (op, kind), row in sorted(rows.items()):
        print(f"{op:28} {kind:5} {row[0]:6} {row[2]:9.2g} {row[3]:9.3f} {row[1]:6}")
    print(f"\n{sum(r[0] for r in rows.values())} operators of random shape, {sum(r[1] for r in rows.values())} wrong")
    return 1 if any(r[1] for r in rows.values()) or not rows else 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main(Path(sys.argv[1])))
