#!/usr/bin/python3
"""Runs ONNX's own models (Debian: libonnx-testdata) with their inputs, and compares with their outputs.

Usage: models.py NGRAD [--backend NAME] [--filter TEXT] [--reasons] [--data FOLDER] [--table]. With --backend codegen, compiled
code is compared with the interpreter, too. --table runs both, and prints the table of docs/foreign.md. --data: newer tests, as in onnx/backend/test/data of ONNX's repository before commit
6be0677f of August 2026; later ones generate them.

What is refused must be refused with messages that say what is lacking. Exits with 77 where the models or numpy are missing.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

DATA = pathlib.Path("/usr/share/libonnx-testdata/data")
try:
    import numpy
except ImportError:
    print("left out: onnx: no numpy, so none of ONNX's models")
    sys.exit(77)

# Halves of a byte are stored as bytes in .npy files; 8-bit floats as V1; bfloat16 as f4.
DTYPES = {17: "V1", 19: "V1", 21: "u1", 22: "i1", 16: "u2", 1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "?", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}
FIELDS = {1: 4, 7: 7, 11: 10, 12: 11, 13: 11}  # else 5, int32_data


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = 8 if kind == 1 else 4
            value, at = data[at : at + length], at + length
        yield key >> 3, kind, value


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def varints(kind, value):
    if kind == 0:
        yield value
        return
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        yield number


WRONG_DATA = {
    "test_adam_multiple": "the model lacks the epsilon that its outputs were computed with",
    "test_cast_FLOAT_to_BFLOAT16": "its outputs are truncated, not rounded",
    **{
        f"test_castlike_{types}{form}": "its data are not of the shape that the model says"
        for types in ("BFLOAT16_to_FLOAT", "FLOAT_to_BFLOAT16")
        for form in ("", "_expanded")
    },
}


# A scale that is rounded to f32 makes a tie of what is none in f64, in which the interpreter computes.
TIES_OF_F32 = {"test_dynamicquantizelinear", "test_dynamicquantizelinear_expanded"}

# Sums that cancel: what their data have there is the rounding of f32, at most this part of the greatest number.
NOISE = {"test_dft_inverse": 1e-6, "test_dft_inverse_opset19": 1e-6}

# Dropout in training mode: which elements are kept is not said.
RANDOM = {f"test_training_dropout{form}" for form in ("", "_default", "_mask", "_default_mask")}

# What must pass at least, of Debian's models and of those of August 2026, whose number is known.
LEAST = {1072: 1007, 1942: 1752}

# Groups of the table, by the names of tests; the first one that fits.
GROUPS = (
    ("attention, rotary embeddings, recurrent attention", "attention|rotary|causal_conv|swiglu"),
    ("texts and pictures in files", "string|regex|tfidf|label_encoder|image_decoder|equal_string"),
    ("sequences and optional values", "sequence|optional|identity_opt|loop13|loop16|if_seq|if_opt"),
    ("random numbers", "bernoulli|^test_random|training_dropout"),
    ("casts and data of 2, 4 and 8 bits", "cast|quantize|qlinear|convinteger|matmulinteger"),
    ("norms, softmax, reductions", "norm|softmax|reduce|arg(max|min)|cum(sum|prod)|hardmax|lrn|topk|unique"),
    ("losses and training", "loss|sce_|nll|adam|adagrad|momentum|gradient"),
    ("convolutions, pooling, products", "conv|pool|matmul|gemm|einsum|det_|linear"),
    ("resizing, sampling and cutting images", "resize|upsample|gridsample|affine_grid|roialign|center_crop|col2im|nonmax|depth"),
    ("recurrences, loops and branches", "lstm|gru|rnn|scan|loop|if_|range"),
    ("spectra", "dft|stft|window|mel"),
    ("moving and choosing elements", "gather|scatter|slice|split|pad|tile|transpose|reshape|squeeze|concat|expand|flatten|shape|onehot|trilu|eyelike|compress|reverse|nonzero|where|identity|constant|size"),
    ("elementwise", ""),
)


class Unsupported(Exception):
    pass


def halves(raw, dtype, dims):
    """Elements of 4 bits, the first one in the low half of a byte."""
    data = numpy.frombuffer(raw, "u1")
    both = numpy.stack([data & 15, data >> 4], axis=1).flatten()[: int(numpy.prod(dims))].astype("i1")
    return (both - 16 * ((both > 7) & (dtype == "i1"))).astype(dtype).reshape(dims)


def f8(data, kind):
    """f8_e4m3, which has no infinity, or f8_e5m2 as f4."""
    bits = data.view("u1").astype("u4")
    if kind == 19:
        return (bits << 8).astype("u2").view("f2").astype("f4")
    exponent, fraction = (bits >> 3) & 15, bits & 7
    numbers = numpy.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent.astype("i4") - 10))
    numbers = numpy.where(bits & 127 == 127, numpy.nan, numbers)
    return (numbers * numpy.where(bits > 127, -1, 1)).astype("f4")


def numbers_of(data, kind):
    return (data.astype("u4").flatten() << 16).view("f4").reshape(data.shape) if kind == 16 else data


def tensor(data):
    """Name and array of a TensorProto."""
    dims, kind_of, name, raw, numbers, packed = [], 0, b"", None, [], b""
    every = list(fields(data))
    for number, kind, value in every:
        if number == 1:
            dims += [signed(v) for v in varints(kind, value)]
        elif number == 2:
            kind_of = value
        elif number == 8:
            name = value
        elif number == 9:
            raw = value
    if kind_of not in DTYPES or not every:
        raise Unsupported(f"test data of type {kind_of}")
    if len(dims) > 8:
        raise Unsupported("test data is no tensor")
    dtype = numpy.dtype(DTYPES[kind_of])
    if raw is not None and kind_of in (21, 22):
        return name.decode(), halves(raw, dtype, dims)
    if raw is not None:
        return name.decode(), numbers_of(numpy.frombuffer(raw, dtype).reshape(dims), kind_of)
    for number, kind, value in every:
        if number != FIELDS.get(kind_of, 5):
            continue
        if kind == 2 and kind_of in (1, 11):
            packed += value
        elif kind in (1, 5):
            packed += value
        else:
            numbers += [signed(v) for v in varints(kind, value)]
    if kind_of in (21, 22):
        return name.decode(), halves(bytes(n & 255 for n in numbers), dtype, dims)
    if kind_of in (17, 19):
        return name.decode(), numpy.array(numbers, "u1").view("V1").reshape(dims)
    if kind_of == 16:
        return name.decode(), numbers_of(numpy.array(numbers, "u2").reshape(dims), kind_of)
    if kind_of == 10:
        return name.decode(), numpy.array(numbers, "u2").view("f2").reshape(dims)
    if kind_of in (1, 11):
        return name.decode(), numpy.frombuffer(packed, dtype).reshape(dims)
    return name.decode(), numpy.array(numbers, "i8").astype(dtype).reshape(dims)


def graph_of(model):
    return next(value for number, _, value in fields(model) if number == 7)


def names(graph, field):
    return [next(v for n, _, v in fields(value) if n == 1).decode() for number, _, value in fields(graph) if number == field]


def initializers(graph):
    return {next((v for n, _, v in fields(value) if n == 8), b"").decode() for number, _, value in fields(graph) if number == 5}


def run(settings, model, data_set, folder, constants):
    graph = graph_of(model)
    given = initializers(graph)
    inputs = [n for n in names(graph, 11) if n not in given]
    outputs = names(graph, 12)
    files = {n: data_set / f"input_{i}.pb" for i, n in enumerate(inputs)}
    path = folder / "model.onnx"
    path.write_bytes(model)
    for name, file in files.items():
        if name not in constants:
            numpy.save(folder / f"{name}.npy", tensor(file.read_bytes())[1])
    result = folder / "out"
    result.mkdir(exist_ok=True)
    command = [settings.ngrad, "run", path, "--in", folder, "--out", result]
    command += ["--compare"] if settings.backend == "codegen" else ["--backend", settings.backend]
    command += [f"--constant={n}={files[n]}" for n in constants]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode < 0:
        return f"CRASHED: signal {-done.returncode}"
    if done.returncode == 3:
        return f"WRONG: compiled code differs from the interpreter: {done.stdout}"
    if done.returncode:
        missing = (set(re.findall(r"must be known when the model is read: --constant (\S+)=FILE", done.stderr)) & set(inputs)) - constants
        return run(settings, model, data_set, folder, constants | missing) if missing else refusal_of(done)
    if data_set.parent.name in RANDOM:
        return check_dropout(data_set, [numpy.load(result / f"{name}.npy") for name in outputs])
    for i, name in enumerate(outputs):
        expected = tensor((data_set / f"output_{i}.pb").read_bytes())[1]
        found = numpy.load(result / f"{name}.npy")
        if found.shape != expected.shape:
            return f"WRONG: shape {found.shape}, expected {expected.shape}"
        if expected.dtype == "V1":  # NaN of any sign
            kind = next(v for n, _, v in fields((data_set / f"output_{i}.pb").read_bytes()) if n == 2)
            found, expected = (f8(data, kind) for data in (found, expected))
        if found.dtype != expected.dtype:
            return f"WRONG: type {found.dtype}, expected {expected.dtype}"
        if expected.dtype.kind == "f":
            noise = NOISE.get(data_set.parent.name)
            noise = noise * numpy.abs(expected).max() if noise else 0
            if not numpy.allclose(found, expected, rtol=1e-3, atol=max(noise, 1e-7), equal_nan=True):
                return f"WRONG: {name}, {numpy.nanmax(numpy.abs(found - expected)):.3g} off"
        elif not (found == expected).all():
            return f"WRONG: {name}"
    return None


def check_dropout(data_set, found):
    """Elements are kept, and scaled as those of the expected result are, or 0; the mask says which."""
    x, expected = (tensor((data_set / f"{name}_0.pb").read_bytes())[1] for name in ("input", "output"))
    kept = found[0] != 0
    scale = numpy.median((expected / x)[expected != 0])
    if not 0 < kept.mean() < 1 or not numpy.allclose(found[0][kept], (x * scale)[kept], rtol=1e-6):
        return "WRONG: kept elements"
    return None if len(found) == 1 or (found[1] == kept).all() else "WRONG: mask"


def refusal_of(done):
    """What the messages say, where they say what is lacking, and of which node with which opset; else what is wrong."""
    errors = re.findall(r"error: (.*)", done.stderr)
    wrong = [e for e in errors if not re.search(r"\(opset \d+\)|^(?:input|output) \S+: \S.* is not supported$", e)]
    if done.returncode != 1 or not errors or wrong:
        return f"WRONG: exit status {done.returncode}, {wrong or done.stderr}"
    return "; ".join(errors)


def refusal(settings, path):
    """Why a model whose data are no tensors is not read."""
    done = subprocess.run([settings.ngrad, "check", path], capture_output=True, text=True, timeout=120)
    return refusal_of(done) if done.returncode else None


def kind_of(error):
    """A refusal without what only the one node has."""
    return re.sub(r"^(\S+) .*?\(opset \d+\)", r"\1", error)


def group_of(name):
    return next(group for group, pattern in GROUPS if re.search(pattern, name))


def try_model(settings, path):
    """None if the results are right, else why not."""
    data_set = sorted(path.parent.glob("test_data_set_*"))[0]
    with tempfile.TemporaryDirectory() as folder:
        try:
            return run(settings, path.read_bytes(), data_set, pathlib.Path(folder), set())
        except (Unsupported, ValueError) as error:
            return refusal(settings, path) or f"WRONG: {error}"


def print_table(interpreted, compiled):
    """Of each group, the tests that pass in the interpreter, and as compiled code."""
    print("| tests of | of | pass | compiled | refused |\n|---|---|---|---|---|")
    for group, _ in GROUPS:
        passed, refused = interpreted[group]
        print(f"| {group} | {passed + refused} | {passed} | {compiled[group][0]} | {refused} |")


def run_all(settings, paths):
    """By group, how many tests pass and how many do not; what is refused, and what is wrong."""
    refused, wrong, groups = collections.Counter(), [], collections.defaultdict(lambda: [0, 0])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for path, problem in zip(paths, pool.map(lambda path: try_model(settings, path), paths)):
            name = path.parent.name
            groups[group_of(name)][problem is not None] += 1
            if problem and problem.startswith(("WRONG", "CRASHED")):
                wrong.append(f"{name}: {problem}")
            elif problem:
                refused[tuple(sorted({kind_of(e) for e in problem.split("; ")}))] += 1
                if settings.reasons:
                    print(f"{name}: {problem}")
    for errors, count in refused.most_common() if settings.reasons else []:
        print(f"{count:5}  " + "; ".join(errors))
    for line in wrong:
        print(line)
    passed = sum(passed for passed, _ in groups.values())
    print(f"{settings.backend}: {passed} pass, {sum(refused.values())} refused, {len(wrong)} wrong")
    return groups, passed, wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ngrad", type=pathlib.Path)
    parser.add_argument("--backend", default="interpreter")
    parser.add_argument("--filter", default="")
    parser.add_argument("--reasons", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    settings = parser.parse_args()
    settings.ngrad = settings.ngrad.resolve()
    if not settings.data.exists():
        print(f"left out: onnx: no {settings.data}, so none of ONNX's models")
        return 77
    every = sorted(settings.data.glob("*/*/model.onnx"))
    tables, failed = [], False
    for settings.backend in ("interpreter", "codegen") if settings.table else (settings.backend,):
        left_out = set(WRONG_DATA) | (TIES_OF_F32 if settings.backend == "interpreter" else set())
        paths = [p for p in every if settings.filter in p.parent.name and p.parent.name not in left_out]
        groups, passed, wrong = run_all(settings, paths)
        tables.append(groups)
        failed |= bool(wrong) or (passed < LEAST.get(len(every), 0) and not settings.filter)
    if settings.table:
        print_table(*tables)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
