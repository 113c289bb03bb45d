"""Trains models/train/resnet8.yaml on several numbers of ranks: ranks.py NGRAD [OPTION...] (--help); ./dev peers ranks.

Batch norms take the statistics of the whole batch. ngrad has to give the same bits on any number of ranks. PyTorch does
the same with gloo, for comparison: its SyncBatchNorm wants GPUs, so its formulas are written here, forwards the ranks'
mean, 1 / deviation and count, gathered, backwards two sums, all-reduced; and gradients are means, all-reduced, as in
DistributedDataParallel. On one rank its loss has to be that of PyTorch's own batch norm.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "models/train/resnet8.yaml"
LEAVES, LEAF = 8, 4  # parts of a batch, and samples in each
RATE, MOMENTUM = 0.01, 0.9
BOUND = 1e-5


def parse(arguments):
    p = argparse.ArgumentParser(prog="ranks.py", description="Hashes of what several numbers of ranks train.")
    p.add_argument("ngrad", type=Path)
    p.add_argument("--ranks", type=int, action="append", help="how many (default 1, 2 and 4); repeatable")
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--isa", help="of ngrad (default: the best)")
    settings = p.parse_args(arguments)
    settings.ranks = settings.ranks or [1, 2, 4]
    return settings


# PyTorch


def combine(means, rstds, counts, eps):
    """The whole batch's mean and biased variance: Welford's formula, rank by rank."""
    mean, squares, total = torch.zeros_like(means[0]), torch.zeros_like(means[0]), 0.0
    for m, rstd, count in zip(means, rstds, counts):
        variance, n = 1 / rstd**2 - eps, count.item()
        delta = m - mean
        mean = mean + delta * (n / (total + n))
        squares = squares + variance * n + delta**2 * (total * n / (total + n))
        total += n
    return mean, squares / total, total


def by_channel(v):
    return v.view(1, -1, 1, 1)


def make_sync_batch_norm():
    class SyncBatchNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, gamma, beta, eps):
            count = x.numel() // x.shape[1]
            mean, variance = x.mean((0, 2, 3)), x.var((0, 2, 3), unbiased=False)
            own = torch.cat([mean, (variance + eps).rsqrt(), torch.tensor([float(count)], dtype=x.dtype)])
            all_ranks = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
            distributed.all_gather(all_ranks, own)
            parts = [torch.split(r, [len(mean), len(mean), 1]) for r in all_ranks]
            mean, variance, total = combine(*zip(*parts), eps)
            rstd = (variance + eps).rsqrt()
            ctx.save_for_backward(x, gamma, mean, rstd)
            ctx.total = total
            return (x - by_channel(mean)) * by_channel(rstd * gamma) + by_channel(beta)

        @staticmethod
        def backward(ctx, dy):
            x, gamma, mean, rstd = ctx.saved_tensors
            centered = x - by_channel(mean)
            sums = torch.cat([dy.sum((0, 2, 3)), (dy * centered).sum((0, 2, 3))])
            sum_dy, sum_product = sums.clone().chunk(2)
            distributed.all_reduce(sums)
            all_dy, all_product = sums.chunk(2)
            slope = by_channel(all_product * rstd**2 / ctx.total)
            dx = (dy - by_channel(all_dy / ctx.total) - centered * slope) * by_channel(rstd * gamma)
            return dx, sum_product * rstd, sum_dy, None

    def batch_norm(x, mean, variance, gamma, beta, training, momentum, eps):
        return SyncBatchNorm.apply(x, gamma, beta, eps)

    return batch_norm


def train_in_rank(rank, nranks, weights, data, steps, folder):
    """Rank 0 writes the last loss, and the hash of the parameters. With no ranks, PyTorch's own batch norm is taken."""
    torch.set_num_threads(1)
    if nranks:
        distributed.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=nranks)
    count = max(nranks, 1)
    w = {n: torch.from_numpy(a.copy()) for n, a in weights.items()}
    trained = [t.requires_grad_() for n, t in w.items() if not n.startswith(("mean_", "variance_"))]
    optimizer = torch.optim.SGD(trained, RATE, MOMENTUM)
    first, end = (LEAVES * r // count * LEAF for r in (rank, rank + 1))
    norm = make_sync_batch_norm() if nranks else torch.nn.functional.batch_norm
    with mock.patch.object(training.F, "batch_norm", norm):
        for i in range(steps):
            at = slice(i * LEAVES * LEAF + first, i * LEAVES * LEAF + end)
            loss = training.resnet8(w, torch.from_numpy(data["x"][at]), torch.from_numpy(data["labels"][at]).long())
            optimizer.zero_grad()
            loss.backward()
            loss = loss.detach()
            for t in [loss] + [t.grad for t in trained] if nranks else []:
                distributed.all_reduce(t)
                t /= nranks
            optimizer.step()
    if rank == 0:
        sha256 = hashlib.sha256(b"".join(t.detach().numpy().tobytes() for t in trained)).hexdigest()
        Path(folder, "result").write_text(f"{loss.item():.9g} {sha256}")


def train_pytorch(nranks, weights, data, steps):
    with tempfile.TemporaryDirectory() as folder:
        arguments = nranks, weights, data, steps, folder
        torch.multiprocessing.start_processes(train_in_rank, arguments, max(nranks, 1), start_method="fork")
        loss, sha256 = Path(folder, "result").read_text().split()
        return float(loss), sha256


# ngrad


def said(command, environment=None):
    run = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {run.stderr}")
    return run.stdout


def make_step(settings, folder):
    text = MODEL.read_text().replace("dims: {N: 32}", f"dims: {{N: {LEAF}}}")
    Path(folder, "resnet8.yaml").write_text(text)
    said([settings.ngrad, "train", f"{folder}/resnet8.yaml", "--loss", "loss", "--optimizer", "momentum",
          "--momentum", MOMENTUM, "--learning-rate", RATE, "--accumulate", LEAVES, "--sync-batch-norm", "-o", folder])
    return f"{folder}/resnet8_step.yaml"


def train_ngrad(settings, nranks, step, folder):
    command = [settings.ngrad, "fit", step, "--in", folder, "--steps", settings.steps, "--threads", 1, "-q"]
    command += ["--isa", settings.isa] if settings.isa else []
    if nranks > 1:
        command = ["mpirun", "-np", nranks, *command, "--ranks"]
    alone = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader",
             "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    lines = said(command, os.environ | alone).splitlines()
    return next(line.split(": ")[1] for line in lines if line.startswith("sha256 of the states: "))


def first_weights():
    """Parameters of PyTorch, drawn as the graph says."""
    random = numpy.random.default_rng(0)
    weights = {}
    for state in yaml.safe_load(MODEL.read_text())["state"]:
        init, shape = state["init"], state["shape"]
        if isinstance(init, dict):
            bound = init["fan_in"] ** -0.5
            weights[state["name"]] = random.uniform(-bound, bound, shape).astype(numpy.float32)
        else:
            weights[state["name"]] = numpy.full(shape, init == "ones", numpy.float32)
    return weights


def main(settings):
    data = training.noisy_patterns(LEAVES * LEAF * settings.steps, numpy.random.default_rng(1))
    weights = first_weights()
    own_loss, _ = train_pytorch(0, weights, data, settings.steps)
    theirs = [train_pytorch(n, weights, data, settings.steps) for n in settings.ranks]
    with tempfile.TemporaryDirectory() as folder:
        for name, array in data.items():
            numpy.save(f"{folder}/{name}.npy", array)
        step = make_step(settings, folder)
        has_mpi = shutil.which("mpirun") and shutil.which("mpicc")
        if not has_mpi:
            print("left out: ngrad on more than one rank: no mpirun with mpicc")
        ours = [train_ngrad(settings, n, step, folder) if n == 1 or has_mpi else None for n in settings.ranks]
    print(f"after {settings.steps} steps of {LEAVES} x {LEAF} samples, sha256 of what was trained:")
    print("ranks  PyTorch                      ngrad")
    for n, (loss, sha256), own in zip(settings.ranks, theirs, ours):
        print(f"{n:5}  {sha256[:12]}, loss {loss:.8f}  {own[:12] if own else 'left out'}")
    print(f"       PyTorch's own batch norm: loss {own_loss:.8f}")
    print(f"PyTorch: {len({s for _, s in theirs})} different results, ngrad: {len({o for o in ours if o})}")
    is_same_step = all(abs(loss - own_loss) <= BOUND * abs(own_loss) for loss, _ in theirs)
    if not is_same_step:
        print("FAILED: the formulas here are not those of PyTorch's batch norm")
    if len({o for o in ours if o}) > 1:
        print("FAILED: ngrad's results depend on the number of ranks")
    return 0 if is_same_step and len({o for o in ours if o}) <= 1 else 1


if __name__ == "__main__":
    SETTINGS = parse(sys.argv[1:])
    import numpy
    import torch
    import training
    import yaml
    from torch import distributed

    training.numpy, training.F = numpy, torch.nn.functional
    if not (distributed.is_available() and distributed.is_gloo_available()):
        print("left out: PyTorch has no gloo")
        sys.exit(77)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    sys.exit(main(SETTINGS))
