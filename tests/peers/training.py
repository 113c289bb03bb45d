"""Trains models/train beside PyTorch: training.py NGRAD [OPTION...] (--help); ./dev peers training.

Both begin with the first weights that ngrad makes, and take the same samples in the same order, with the same
optimizer: once in f64, once in f32. After each step the losses are compared.

In f64 the relative difference has to be at most 1e-4. In f32 a rounding error can grow with each step, as where it
decides which element of a window is the greatest; PyTorch's losses in f32 then leave its own in f64. So a loss in f32
may be off f64 by 1e-4, or by FACTOR times as much as PyTorch's.

In f32 the two take blocks of steps in turns, so that a machine that others use slows both. A step's time has the choice
of its samples in it, and leaves out the first step of each block.

With --precision, both train in f32 and in mixed precision, PyTorch under autocast. The mean loss of the last steps, a
tenth of all, has to be within 2 % of that in f32.

With --compile (of PyTorch 2), torch.compile compiles the model and its loss. --costs prints the seconds until the first
step has ended, without any cache; and the bytes of what PyTorch saves for the backward pass beside ngrad's memory
between kernels, which is all that a step needs besides states and batch.
"""

import argparse
import ctypes
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")  # Debian: dataset-fashion-mnist
LICENSES = Path("/usr/share/common-licenses")
BOUND = 1e-4
FACTOR = 4
MIXED_BOUND = 0.02


def parse(arguments):
    p = argparse.ArgumentParser(prog="training.py", description="Train beside PyTorch: loss of each step, and its time.")
    p.add_argument("ngrad", type=Path)
    p.add_argument("--model", action="append", choices=MODELS, help="default: all; repeatable")
    p.add_argument("--optimizer", action="append", choices=OPTIMIZERS, help="default: all; repeatable")
    p.add_argument("--threads", type=int, default=1, help="of both (default 1)")
    p.add_argument("--learning-rate", type=float, help="default: the optimizer's below")
    p.add_argument("--steps", type=int, default=100)
    p.add_argument("--block", type=int, default=20, help="steps in turn (default 20)")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--precision", choices=["bf16"], help="compare mixed precision with f32")
    p.add_argument("--compile", action="store_true", help="PyTorch's model is compiled by torch.compile")
    p.add_argument("--costs", action="store_true", help="also print the time until the first step, and memory")
    return p.parse_args(arguments)


# Data: arrays of all samples, by the names of the graph's inputs.


def read_idx(path):
    data = gzip.decompress(path.read_bytes())
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(data[3])]
    return numpy.frombuffer(data, numpy.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def fashion_mnist(count, random):
    x, labels = (read_idx(FASHION_MNIST / f"train-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    chosen = random.permutation(len(x))[:count]
    return {"x": x[chosen], "labels": labels[chosen].astype(numpy.int32)}


def noisy_patterns(count, random):
    """A coarse pattern a class, and noise: learnable, but not from a few samples."""
    patterns = random.uniform(0, 255, (10, 3, 8, 8)).repeat(4, 2).repeat(4, 3)
    labels = random.integers(0, 10, count, numpy.int32)
    x = 0.3 * patterns[labels] + 0.7 * random.uniform(0, 255, (count, 3, 32, 32))
    return {"x": x.astype(numpy.uint8), "labels": labels}


def licences(count, random):
    files = sorted(f for f in LICENSES.iterdir() if not f.is_symlink())
    text = numpy.frombuffer(b"".join(f.read_bytes() for f in files), numpy.uint8)
    window = random.integers(0, len(text) - 129, count)[:, None] + numpy.arange(129)
    return {"tokens": text[window[:, :-1]].astype(numpy.int32), "labels": text[window[:, 1:]].astype(numpy.int32)}


# The models, as people write them with PyTorch; w is the weights by the names of the graph's states.


def linear(w, x, name):
    return F.linear(x, w[name + "weight"].t(), w[name + "bias"])


def cnn(w, x, labels):
    x = x.to(w["conv1.w"].dtype).div(255).unsqueeze(1)
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv1.w"], w["conv1.b"], padding=2)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, w["conv2.w"], w["conv2.b"], padding=2)), 2)
    x = F.relu(F.linear(x.flatten(1), w["dense1.w"].t(), w["dense1.b"]))
    return F.cross_entropy(F.linear(x, w["dense2.w"].t(), w["dense2.b"]), labels)


def resnet8(w, x, labels):
    def convolve(x, name, stride=1):  # with a stride, the graph pads at the end only
        x, padding = (x, 1) if stride == 1 else (F.pad(x, (0, 1, 0, 1)), 0)
        x = F.conv2d(x, w["w_" + name], stride=stride, padding=padding)
        running = w["mean_" + name], w["variance_" + name]
        return F.batch_norm(x, *running, w["gamma_" + name], w["beta_" + name], training=True, momentum=0.1, eps=1e-5)

    r = F.relu(convolve(x.to(w["w_0"].dtype).div(255), "0"))
    r = F.relu(convolve(F.relu(convolve(r, "1a")), "1b") + r)
    for stage in "23":
        skip = F.conv2d(r, w[f"w_{stage}s"], stride=2)
        r = F.relu(convolve(F.relu(convolve(r, stage + "a", 2)), stage + "b") + skip)
    return F.cross_entropy(F.linear(r.mean((2, 3)), w["w_out"].t(), w["b_out"]), labels)


def gpt_bytes(w, tokens, labels):
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + "gamma"], w[name + "beta"], 1e-5)

    batch, length = tokens.shape
    is_after = torch.ones(length, length, dtype=torch.bool).triu(1)
    x = F.embedding(tokens, w["wte"]) + w["wpe"]
    for layer in range(4):
        p = f"h{layer}."
        q, k, v = linear(w, norm(x, p + "ln1."), p + "qkv.").split(128, 2)
        q, k, v = (t.view(batch, length, 4, 32).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(2, 3) * 32**-0.5).masked_fill(is_after, -numpy.inf)
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 128)
        x = x + linear(w, mixed, p + "proj.")
        up = F.gelu(linear(w, norm(x, p + "ln2."), p + "up."), approximate="tanh")
        x = x + linear(w, up, p + "down.")
    return F.cross_entropy((norm(x, "lnf.") @ w["wte"].t()).flatten(0, 1), labels.flatten())


MODELS = {  # model, samples, batch
    "cnn": (cnn, fashion_mnist, 50),
    "resnet8": (resnet8, noisy_patterns, 32),
    "gpt_bytes": (gpt_bytes, licences, 16),
}
OPTIMIZERS = {  # options of ngrad train, and PyTorch's optimizer, with the learning rate as in both
    "momentum": (0.01, "--momentum 0.9 --weight-decay 0.0001", lambda p, r: torch.optim.SGD(p, r, 0.9, weight_decay=0.0001)),
    "adam": (0.0003, "", lambda p, r: torch.optim.Adam(p, r)),
    "adamw": (0.0003, "--weight-decay 0.1", lambda p, r: torch.optim.AdamW(p, r, weight_decay=0.1)),
}


class PyTorch:
    def __init__(self, case, weights, batches, dtype, is_mixed=False):
        self.is_mixed = is_mixed
        self.w = {n: torch.tensor(a, dtype=dtype) for n, a in weights.items()}
        self.parameters = {n: t.requires_grad_() for n, t in self.w.items() if not n.startswith(("mean_", "variance_"))}
        self.optimizer = OPTIMIZERS[case.optimizer][2](self.parameters.values(), case.rate)
        self.model, self.batches = MODELS[case.model][0], batches
        if case.settings.compile:
            self.model = torch.compile(self.model)
        self.data = {n: torch.from_numpy(a) for n, a in case.data.items()}
        self.data = {n: t.long() if t.dtype == torch.int32 else t for n, t in self.data.items()}

    def steps(self, first, last):
        """Losses, and the seconds of all steps but the first."""
        losses, seconds = [], []
        for i in range(first, last):
            start = time.perf_counter()
            with torch.autocast("cpu", torch.bfloat16, enabled=self.is_mixed):
                loss = self.model(self.w, **{n: t[self.batches[i]] for n, t in self.data.items()})
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
            seconds.append(time.perf_counter() - start)
        return losses, seconds[1:]


    def saved_bytes(self):
        """What a step saves for the backward pass, without parameters and data."""
        def storage_of(tensor):  # before PyTorch 2 by another name
            return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage()

        own = {storage_of(t).data_ptr() for t in [*self.w.values(), *self.data.values()]}
        saved = {}

        def keep(tensor):
            storage = storage_of(tensor)
            saved[storage.data_ptr()] = storage.nbytes()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            loss = self.model(self.w, **{n: t[self.batches[0]] for n, t in self.data.items()})
        del loss
        return sum(n for place, n in saved.items() if place not in own)


class Ngrad:
    """Graphs and checkpoints of one type are in a folder of their own."""

    def __init__(self, case, kind, precision="f32"):
        self.settings, self.model = case.settings, case.model
        self.folder = case.folder / f"{kind}-{precision}"
        self.folder.mkdir()
        forward = self.folder / "forward.yaml"
        forward.write_text((ROOT / f"models/train/{case.model}.yaml").read_text().replace("type: f32", f"type: {kind}"))
        options = ["--optimizer", case.optimizer, "--learning-rate", case.rate, *OPTIMIZERS[case.optimizer][1].split()]
        options += ["--precision", precision]
        self.run("train", forward, *options, "-o", self.folder)
        self.fit = ["fit", self.folder / f"{case.model}_step.yaml", "--in", case.folder, "--out", self.folder, "--json"]
        self.fit += ["--each-step", "--threads", self.settings.threads, "--seed", self.settings.seed]

    def run(self, *arguments):
        command = [str(a) for a in (self.settings.ngrad, *arguments)]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def compiles(self, folder):
        """Seconds until the first step has ended, with an empty cache; and the bytes between kernels."""
        start = time.perf_counter()
        step = self.folder / f"{self.model}_step.yaml"
        environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
        command = [self.settings.ngrad, "run", step, "--random", "--threads", str(self.settings.threads), "--json"]
        told = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout)
        return time.perf_counter() - start, told["workspace_bytes"]

    def first_weights(self, data, batch):
        """By the names of the graph's states; data may be any."""
        folder = self.folder / "first"
        folder.mkdir()
        for name, array in data.items():
            numpy.save(folder / f"{name}.npy", array[:batch])
        test = self.folder / f"{self.model}_test.yaml"
        self.run("run", test, "--in", folder, "--seed", self.settings.seed, "--save", folder / "weights.npz")
        return dict(numpy.load(folder / "weights.npz"))

    def begin_with(self, weights):
        states = {f"{n}.{s}": numpy.zeros_like(a) for n, a in weights.items() for s in ("momentum", "m", "v")}
        numpy.savez(self.folder / "first.npz", step=numpy.int64(0), **states, **weights)
        self.fit += ["--state", self.folder / "first.npz"]

    def steps(self, first, last):
        lines = self.run(*self.fit, "--steps", last, *(["--resume"] if first else [])).splitlines()
        told = [e for e in map(json.loads, lines) if e["event"] == "step"]
        seconds = [e["seconds"] for e in told]
        return [e["values"]["loss"] for e in told], [b - a for a, b in zip(seconds, seconds[1:])]

    def weights(self):
        return dict(numpy.load(self.folder / f"{self.model}.npz"))


class Case:
    def __init__(self, settings, model, optimizer, folder):
        self.settings, self.model, self.optimizer, self.folder = settings, model, optimizer, folder
        self.rate = settings.learning_rate or OPTIMIZERS[optimizer][0]
        _, samples, self.batch = MODELS[model]
        self.data = samples(settings.steps * self.batch, numpy.random.default_rng(settings.seed))
        for name, array in self.data.items():
            numpy.save(folder / f"{name}.npy", array)

    def batches(self):
        """[steps, batch], the samples as ngrad fit takes them."""
        order = (ctypes.c_int64 * (self.settings.steps * self.batch))()
        library = ctypes.CDLL(str(self.settings.ngrad.parent / "libngrad.so"))
        library.ng_permutation(ctypes.c_uint64(self.settings.seed), ctypes.c_uint32(0), ctypes.c_int64(len(order)), order)
        return numpy.array(order).reshape(-1, self.batch)


def distance(a, b):
    """The largest |a - b| / |b|, and the step that has it, from 1."""
    relative = numpy.abs(numpy.subtract(a, b)) / numpy.abs(b)
    relative[numpy.isnan(relative)] = numpy.inf
    return float(relative.max()), int(relative.argmax()) + 1


def farthest(ours, theirs):
    """|ours - theirs| / |theirs|, L2 norms over a parameter, of the one where it is largest."""
    norm = numpy.linalg.norm
    arrays = {n: t.detach().numpy() for n, t in theirs.items()}
    return max(norm(ours[n] - a) / norm(a) for n, a in arrays.items())


def in_turns(ngrad, peer, settings):
    """Losses of both, median seconds of both, and the median over blocks of theirs by ours."""
    sides, ratios = (([], []), ([], [])), []
    for first in range(0, settings.steps, settings.block):
        last = min(first + settings.block, settings.steps)
        medians = []
        for side, (losses, seconds) in zip((ngrad, peer), sides):
            block = side.steps(first, last)
            losses += block[0]
            seconds += block[1]
            medians.append(numpy.median(block[1]))
        ratios.append(medians[1] / medians[0])
    (ours, our_seconds), (theirs, their_seconds) = sides
    return ours, theirs, numpy.median(our_seconds), numpy.median(their_seconds), numpy.median(ratios)


def compare(case):
    settings = case.settings
    ngrad, ngrad64 = Ngrad(case, "f32"), Ngrad(case, "f64")
    weights = ngrad.first_weights(case.data, case.batch)
    ngrad64.begin_with({n: a.astype(numpy.float64) for n, a in weights.items()})
    batches = case.batches()
    peer, peer64 = (PyTorch(case, weights, batches, t) for t in (torch.float32, torch.float64))

    if settings.costs:
        start = time.perf_counter()
        PyTorch(case, weights, batches, torch.float32).steps(0, 1)
        their_first = time.perf_counter() - start
        our_first, workspace = ngrad.compiles(case.folder / "cache")
        eager = PyTorch(case, weights, batches, torch.float32)
        eager.model = MODELS[case.model][0]
        costs = (
            f"  until the first step has ended: ngrad {our_first:.1f} s, PyTorch {their_first:.1f} s;"
            f" between kernels {workspace / 1e6:.1f} MB, saved by PyTorch {eager.saved_bytes() / 1e6:.1f} MB"
        )
    ours, theirs, our_time, their_time, ratio = in_turns(ngrad, peer, settings)
    exact = peer64.steps(0, settings.steps)[0]
    worst64 = distance(ngrad64.steps(0, settings.steps)[0], exact)[0]
    weights64 = farthest(ngrad64.weights(), peer64.parameters)
    worst, step = distance(ours, theirs)
    our_error, their_error = distance(ours, exact)[0], distance(theirs, exact)[0]
    is_right = worst64 <= BOUND and our_error <= max(BOUND, FACTOR * their_error)
    print(
        f"{case.model:10} {case.optimizer:9} {case.rate:<7g} {ours[0]:6.3f} {ours[-1]:6.3f} | {worst64:8.1e} {weights64:8.1e}"
        f" | {worst:8.1e} {step:4} {our_error:8.1e} {their_error:8.1e}"
        f" | {1e3 * our_time:7.1f} {1e3 * their_time:7.1f} {ratio:6.2f}{'' if is_right else '  WRONG'}",
        flush=True,
    )
    if settings.costs:
        print(costs, flush=True)
    return is_right, worst <= BOUND


def compare_mixed(case):
    settings = case.settings
    sides = [Ngrad(case, "f32"), Ngrad(case, "f32", settings.precision)]
    weights = sides[0].first_weights(case.data, case.batch)
    batches = case.batches()
    sides += [PyTorch(case, weights, batches, torch.float32, is_mixed) for is_mixed in (False, True)]
    last = max(settings.steps // 10, 1)
    losses = [float(numpy.mean(side.steps(0, settings.steps)[0][-last:])) for side in sides]
    ours, theirs = losses[1] / losses[0] - 1, losses[3] / losses[2] - 1
    is_right = max(abs(ours), abs(theirs)) <= MIXED_BOUND
    print(
        f"{case.model:10} {case.optimizer:9} {case.rate:<7g} | {losses[0]:8.4f} {losses[1]:8.4f} {ours:+8.2%}"
        f" | {losses[2]:8.4f} {losses[3]:8.4f} {theirs:+8.2%}{'' if is_right else '  WRONG'}",
        flush=True,
    )
    return is_right, is_right


def print_mixed_head(settings):
    print(f"the mean loss of the last {max(settings.steps // 10, 1)} of {settings.steps} steps, and its distance\n")
    print(f"{'':28} | {'ngrad':26} | PyTorch, with autocast")
    print(f"{'model':10} {'optimizer':9} {'rate':7} | {'f32':>8} {settings.precision:>8} {'':8} | {'f32':>8} {settings.precision:>8}")


def print_head(settings):
    print("f64: the farthest loss, and parameter after the last step; f32: the farthest loss of all steps and which step,")
    print("and that of each from PyTorch's in f64; the median milliseconds of a step, and of blocks' ratios PyTorch / ngrad\n")
    print(f"{'':27} {'loss':>13} | {'f64':17} | {'f32':31} | {'f32, ms a step':22}")
    print(
        f"{'model':10} {'optimizer':9} {'rate':7} {'step 1':>6} {settings.steps:6} | {'loss':>8} {'weights':>8}"
        f" | {'loss':>8} {'step':>4} {'ngrad':>8} {'PyTorch':>8} | {'ngrad':>7} {'PyTorch':>7} {'ratio':>6}"
    )


def main(settings):
    how = ", torch.compile" if settings.compile else ""
    print(f"ngrad beside PyTorch {torch.__version__}{how}, threads: {settings.threads}")
    print_mixed_head(settings) if settings.precision else print_head(settings)
    results = []
    for model in settings.model or MODELS:
        needed = {"cnn": FASHION_MNIST, "gpt_bytes": LICENSES}.get(model)
        if needed and not needed.exists():
            print(f"{model}: not compared, {needed} is missing")
            continue
        for optimizer in settings.optimizer or OPTIMIZERS:
            with tempfile.TemporaryDirectory() as folder:
                case = Case(settings, model, optimizer, Path(folder))
                results.append(compare_mixed(case) if settings.precision else compare(case))
    wrong = sum(not is_right for is_right, _ in results)
    near = "" if settings.precision else f"; {sum(near for _, near in results)} within {BOUND:g} in f32, too"
    print(f"\n{len(results)} curves, {wrong} wrong{near}")
    return 1 if wrong else 0


if __name__ == "__main__":
    settings = parse(sys.argv[1:])
    settings.ngrad = settings.ngrad.resolve()
    # OpenBLAS reads it as it is loaded.
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(settings.threads)
    import numpy
    import torch

    F = torch.nn.functional
    torch.set_num_threads(settings.threads)
    if settings.compile and not hasattr(torch, "compile"):
        sys.exit(f"--compile: expected PyTorch 2, found {torch.__version__}")
    sys.exit(main(settings))
