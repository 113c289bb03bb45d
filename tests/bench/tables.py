"""Prints the tables of docs/performance.md: tables.py NGRAD [--minutes N] [--filter NAME]; ./dev bench --tables.

One machine with nothing else to do, one program at a time. What there is no time left for is said to be left out. The
peers are those that ngrad_bench_peers was built with, and the PyTorch of python3-torch.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import re
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Name, the graphs' names, seconds a case.
GROUPS = [
    ("norms, softmax, sums", r"(ln|bn|gn|in|rms|relu|softmax|log_softmax|reduce|bias)_", 0.1),
    ("attention", r"attention_", 0.05),
    ("products", r"product_.*f32", 0.03),
    ("pooling", r"(max|avg)_pool_.*f32", 0.03),
    ("convolutions of ResNet-50 and MobileNet", r"conv_", 0.02),
]
TRAINING = ["--optimizer", "momentum", "--steps", "20", "--block", "5", "--costs"]


def output(*command, **more):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, **more).stdout


def about(ngrad):
    """Machine, versions and commit."""
    model = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
    commit = output("git", "-C", ROOT, "describe", "--always", "--dirty").strip()
    compiler = output("cc", "--version").splitlines()[0]
    print(f"{model}, {os.cpu_count()} processors; {output(ngrad, '--version').splitlines()[0]}, commit {commit or 'unknown'}; {compiler}")


def mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def bench(ngrad, group, threads, isa, end):
    """The results of a group's cases by family, or None where there was no time."""
    name, names, seconds = group
    graphs = [g for folder in (ngrad.parent / "bench-suite", ROOT / "models/bench") for g in folder.glob("*.yaml") if re.match(names, g.name)]
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        command = [ngrad.parent / "ngrad_bench_peers", "--threads", threads, "--seconds", seconds, "--json", file.name]
        try:
            subprocess.run([str(c) for c in [*command, *(["--isa", isa] if isa else []), *sorted(graphs)]], timeout=max(1, end - time.time()), stdout=subprocess.DEVNULL)
            found = json.load(open(file.name))
        except (subprocess.TimeoutExpired, json.JSONDecodeError):
            print(f"left out for want of time: {name}, {threads} threads, {isa or 'native'}", flush=True)
            return None, {}
    families = {}
    for case in found["cases"]:
        kind = next((kind for kind in ("bf16", "f16") if kind in case["graph"]), "f32")
        families.setdefault(f"{case['family']}, {kind}", []).append(case)
    return found["peer"], families


def table(ngrad, group, columns, end):
    """A row a family; for each column of (threads, isa) the geometric mean and the least speed-up, and of the ceiling."""
    results = [bench(ngrad, group, threads, isa, end) for threads, isa in columns]
    peers = {peer for peer, _ in results if peer}
    if not peers:
        return
    print(f"\n{group[0]}, beside {' / '.join(sorted(peers))}; --seconds {group[2]}\n")
    heads = [f"{'native' if not isa else isa}, {threads} thread{'s' if threads > 1 else ''}" for threads, isa in columns]
    print("| family | cases |" + "".join(f" {head} | least | of the ceiling |" for head in heads))
    print("|---|---|" + "---|" * 3 * len(heads))
    for family in next(families for peer, families in results if peer):
        cells = []
        for _, families in results:
            cases = families.get(family, [])
            ups = {c["graph"]: c["speed_up"] for c in cases if c.get("speed_up")}
            least = min(ups, key=ups.get, default=None)
            cells += [f"{mean(list(ups.values())):.2f}" if ups else "-", f"{ups[least]:.2f} {least}" if ups else "-"]
            cells.append(f"{mean([c['ceiling_ratio'] for c in cases]):.2f}" if cases else "-")
        count = max(len(families.get(family, [])) for _, families in results)
        print(f"| {family} | {count} | " + " | ".join(cells) + " |", flush=True)


def pytorch(ngrad, script, end, *options):
    command = [ROOT / "tests/peers/python.sh", ROOT / "tests/peers" / script, ngrad, *options]
    try:
        said = subprocess.run([str(c) for c in command], timeout=max(1, end - time.time()), capture_output=True, text=True)
        print(f"\n{script} {' '.join(options)}\n\n{said.stdout}{said.stderr if said.returncode not in (0, 77) else ''}", flush=True)
    except subprocess.TimeoutExpired:
        print(f"left out for want of time: {script} {' '.join(options)}", flush=True)


def main():
    p = argparse.ArgumentParser(prog="tables.py", description="Prints the tables of docs/performance.md.")
    p.add_argument("ngrad", type=pathlib.Path)
    p.add_argument("--minutes", type=float, default=25, help="when to end (default 25)")
    p.add_argument("--filter", default="", help="only tables whose name has this in it")
    settings = p.parse_args()
    ngrad, end = settings.ngrad.resolve(), time.time() + 60 * settings.minutes
    most = min(2, os.cpu_count())
    about(ngrad)
    chosen = [group for group in GROUPS if settings.filter in group[0]]
    subprocess.run([str(ROOT / "tests/bench/run.sh"), str(ngrad), "--help"], check=True, stdout=subprocess.DEVNULL)  # writes the suite
    if settings.filter in "training":
        pytorch(ngrad, "training.py", end, *TRAINING, "--threads", "1", "--compile")
        for threads in sorted({1, most}):
            pytorch(ngrad, "training.py", end, *TRAINING, "--threads", str(threads))
    if settings.filter in "derivatives":
        pytorch(ngrad, "derivatives.py", end)
    for group in chosen:
        columns = [(1, None), (1, "avx2")]
        if group is GROUPS[0] and most > 1:
            columns.append((most, None))
        table(ngrad, group, columns, end)


if __name__ == "__main__":
    main()
