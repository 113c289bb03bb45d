"""Second derivatives beside PyTorch: derivatives.py NGRAD [--turns N]; ./dev peers derivatives.

potential: the forces of examples/potential, and the gradient of their loss by the weights (create_graph=True).
hvp: the Hessian of a one-layer GPT's loss by all weights, times a vector (create_graph=True).

Results are compared in f64. Then both are timed in f32, in turns, on one thread: the median of the turns' ratios, with
the two quartiles beside it, as others may use the machine.
"""

import argparse
import os
import re
import statistics
import sys
import time
from pathlib import Path

import numpy
import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
BOUND = 1e-6


def potential_text():
    return (ROOT / "examples/potential/potential.yaml").read_text().replace("{N: 32}", "{N: 64}")


def gpt_text():
    """models/train/gpt_bytes.yaml with one layer of its four."""
    text = (ROOT / "models/train/gpt_bytes.yaml").read_text()
    lines = [line for line in text.splitlines() if not re.search(r"\bh[123]\.", line)]
    return "\n".join(lines).replace("[x4, lnf", "[x1, lnf")


def potential_loss(w, x, wanted_force):
    squares = (x[:, :, None] - x[:, None]).square().sum(-1, keepdim=True)
    slopes = torch.tensor([-0.3, -0.6, -1.2, -2.4, -4.8, -9.6], dtype=x.dtype)
    features = ((squares * slopes).exp() * (1 - torch.eye(4, dtype=x.dtype))[..., None]).sum(2)
    energy = torch.tanh(torch.tanh(features @ w["w1"] + w["b1"]) @ w["w2"] + w["b2"]) @ w["w3"]
    (slope,) = torch.autograd.grad(energy.sum(), x, create_graph=True)
    return F.mse_loss(-slope, wanted_force)


def potential(w, x, wanted_force, **_):
    names = [n for n in w if n in ("w1", "b1", "w2", "b2", "w3")]
    loss = potential_loss(w, x.requires_grad_(), wanted_force)
    return dict(zip(("diff_" + n for n in names), torch.autograd.grad(loss, [w[n] for n in names])))


def gpt_loss(w, tokens, labels):
    def norm(x, name):
        return F.layer_norm(x, x.shape[-1:], w[name + "gamma"], w[name + "beta"], 1e-5)

    def linear(x, name):
        return x @ w[name + "weight"] + w[name + "bias"]

    batch, length = tokens.shape
    x = F.embedding(tokens, w["wte"]) + w["wpe"]
    q, k, v = linear(norm(x, "h0.ln1."), "h0.qkv.").split(128, 2)
    q, k, v = (t.view(batch, length, 4, 32).transpose(1, 2) for t in (q, k, v))
    is_after = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.transpose(2, 3) * 32**-0.5).masked_fill(is_after, -numpy.inf)
    x = x + linear((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 128), "h0.proj.")
    x = x + linear(F.gelu(linear(norm(x, "h0.ln2."), "h0.up."), approximate="tanh"), "h0.down.")
    return F.cross_entropy((norm(x, "lnf.") @ w["wte"].t()).flatten(0, 1), labels.flatten())


def hvp(w, tokens, labels, tangents):
    names = list(tangents)
    first = torch.autograd.grad(gpt_loss(w, tokens, labels), [w[n] for n in names], create_graph=True)
    products = torch.autograd.grad(first, [w[n] for n in names], [tangents[n] for n in names])
    return dict(zip(("tangent_diff_" + n for n in names), products))


def prepare(ngrad, kind, of, text, derivative):
    """The compiled graph, its inputs as arrays of PyTorch, and the weights by name."""
    g = ngrad.loads(text.replace("type: f32", f"type: {kind}"), "peer")
    if "tokens" in text:
        g = g.with_dims(B=4)
    states = g.initial_states(seed=1)
    made = getattr(g, derivative)(wrt=list(states), of=of)
    random = made.random_inputs(3)
    known = {n: torch.from_numpy(numpy.array(states[n] if n in states else a)) for n, a in random.items()}
    for name in states:
        known.setdefault(name, torch.from_numpy(numpy.array(states[name])))
    if derivative == "vjp":
        known["diff_" + of] = torch.ones((), dtype=known["w1"].dtype)
    return made.compile(), made, known, list(states)


def run(case, ngrad, turns):
    text, function, of, derivative = case
    kernels = {}
    for kind in ("f64", "f32"):
        kernel, graph, known, names = prepare(ngrad, kind, of, text, derivative)
        own = {t.name: known[t.name] for t in graph.inputs}
        w = {n: known[n].clone().requires_grad_() for n in names}
        data = {n: t.long() if t.dtype == torch.int32 else t.clone() for n, t in known.items() if n not in names}
        if derivative == "hvp":
            tangents = {n[len("tangent_") :]: t for n, t in data.items() if n.startswith("tangent_")}
            data = {"tokens": data["tokens"], "labels": data["labels"], "tangents": tangents}
        kernels[kind] = (lambda k=kernel, o=own: k(**o, threads=1).as_dict()), (lambda w=w, d=data: function(w, **d))
    mine, theirs = (call() for call in kernels["f64"])
    worst = max(float((mine[n] - t).abs().max() / t.abs().max()) for n, t in theirs.items())
    times = []
    for _ in range(turns):
        turn = []
        for call in kernels["f32"]:
            start = time.perf_counter()
            call()
            turn.append(time.perf_counter() - start)
        times.append(turn)
    ratios = sorted(b / a for a, b in times)
    low, middle, high = statistics.quantiles(ratios, n=4)
    own, other = (1e3 * statistics.median(t) for t in zip(*times))
    print(f"{of} by {derivative}: results differ by {worst:.1e}; {own:.2f} ms, PyTorch {other:.2f} ms: "
          f"{middle:.2f} times as fast ({low:.2f} to {high:.2f})")  # fmt: skip
    return worst <= BOUND


def main():
    p = argparse.ArgumentParser(description="Second derivatives beside PyTorch: results, and times on one thread.")
    p.add_argument("ngrad", type=Path)
    p.add_argument("--turns", type=int, default=60)
    settings = p.parse_args()
    os.environ["NGRAD_LIBRARY"] = str(settings.ngrad.resolve().parent / "libngrad.so")
    sys.path.insert(0, str(ROOT / "frontend/python"))
    import ngrad

    torch.set_num_threads(1)
    cases = (potential_text(), potential, "force_loss", "vjp"), (gpt_text(), hvp, "loss", "hvp")
    return 0 if all([run(case, ngrad, settings.turns) for case in cases]) else 1


if __name__ == "__main__":
    sys.exit(main())
