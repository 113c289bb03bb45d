#!/usr/bin/python3
"""Collects the pages of the site: README.md as its first one, docs/, the other pages of the root, tests/README.md, and the operators from the table.

Usage: pages.py NGRAD FOLDER
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

from pygments.formatters import HtmlFormatter

ROOT = pathlib.Path(__file__).resolve().parents[1]
# Families of operators, first what people look for.
FAMILIES = {
    "norm": "Normalisations",
    "contraction": "Products and convolutions",
    "activation": "Activations",
    "softmax": "Softmax",
    "loss": "Losses",
    "optimizer": "Optimizers",
    "pool": "Pooling",
    "dropout": "Dropout",
    "elementwise": "Element by element",
    "reduce": "Reductions",
    "movement": "Moving elements",
    "interpolate": "Interpolation",
    "quantize": "Quantisation",
    "leaves": "Leaves of a batch",
    "gradient": "Gradients inside of a graph",
}
ACTIVATIONS = "ReLU GELU Swish Sigmoid Tanh LeakyReLU PReLU Elu Mish SoftPlus HardSigmoid HardSwish".split()


def with_captions(page):
    """Markdown knows one word behind a fence. The second word is a file's name, or how tests/docs takes the block."""
    page = re.sub(r"^```console [\w ]+$", "```console", page, flags=re.M)
    return re.sub(r"^```(\w+) (\S+)$", r"*\2*\n\n```\1", page, flags=re.M)


def code(text):
    return "`" + text.replace("|", "\\|") + "`"


def table(heads, rows):
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows] + [""]


def names(operands):
    return ", ".join(o["name"] + ("?" if o["optional"] else "") + ("..." if o["repeated"] else "") for o in operands)


def operand_rows(operands, side):
    for o in operands:
        notes = [word for word in ("optional", "repeated") if o[word]]
        gradient = o["gradient"] + (", because " + o["gradient_why"] if o["gradient_why"] else "")
        is_plain = side == "output" and o["gradient"] != "refused"
        yield [code(o["name"]), side, " ".join(o["types"]), ", ".join(notes), "" if is_plain else gradient]


def example_value(attribute, k):
    if attribute.get("choices"):
        return attribute["choices"][0]
    if attribute["name"] == "epsilon":
        return "1e-5"
    if attribute["kind"].endswith("list"):
        return "[1]" if attribute["name"] == "axes" else "[1, 1]"
    return {"bool": "true", "f32": str(0.5 * (k + 1))}.get(attribute["kind"], "1")


def example(op):
    inputs = ", ".join(o["name"] for o in op["inputs"] if not o["optional"])
    outputs = ", ".join("y" if o["name"] == "dst" else o["name"] for o in op["outputs"] if not o["optional"])
    needed = [a for a in op["attributes"] if a["required"]]
    attributes = ", ".join(f"{a['name']}: {example_value(a, k)}" for k, a in enumerate(needed))
    end = f", attributes: {{{attributes}}}" if needed else ""
    return f"- {{op: {op['name']}, inputs: [{inputs}], outputs: [{outputs}]{end}}}"


def section(op, others):
    lines = [f"### {op['name']}", "", op["doc"][0].upper() + op["doc"][1:] + ".", "", "```yaml", example(op), "```", ""]
    rows = [*operand_rows(op["inputs"], "input"), *operand_rows(op["outputs"], "output")]
    lines += table(["operand", "is", "types", "may be", "gradient"], rows)
    rows = []
    for a in op["attributes"]:
        default = "" if a["default"] is None else json.dumps(a["default"])
        rows.append([code(a["name"]), " ".join(a.get("choices") or [a["kind"]]), "required" if a["required"] else default])
    lines += table(["attribute", "values", "default"], rows) if rows else []
    if op["formula"]:
        lines += ["```", *op["formula"].split("; "), "```", ""]
    rows = [[code(o["name"]), code(names(o["inputs"])), code(names(o["outputs"]))] for o in others]
    return lines + (table(["in other systems", "inputs", "outputs"], rows) if rows else [])


def family_of(op):
    """A family without a heading above is an error."""
    family = "activation" if op["name"].removesuffix("Backward") in ACTIVATIONS else op["family"]
    if family not in FAMILIES:
        raise SystemExit(f"pages.py: no heading for the family {family}")
    return family


def operators(ops):
    lines = ["# Operators", "", "What `ngrad ops NAME` prints, of all. A `?` marks operands that may be left out.", ""]
    families = [family_of(op) for op in ops]
    for family in FAMILIES:
        lines += [f"## {FAMILIES[family]}", ""]
        for op, own in zip(ops, families):
            if own == family and op["name"] == op["canonical"]:
                lines += section(op, [o for o in ops if o["canonical"] == op["name"] != o["name"]])
    return "\n".join(lines)


def from_root(page):
    """A page of the root, with its links as they are on the site."""
    return re.sub(r"\]\((examples|tests)/README\.md\)", r"](\1.md)", page.read_text().replace("](docs/", "]("))


def colours():
    """Rules for the colours of code, in light and dark."""
    light, dark = (HtmlFormatter(style=style).get_style_defs(".codehilite") for style in ("default", "monokai"))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def version_line(program, folder):
    """The version, with a link to its sources where git has them."""
    version = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]
    sources = f"ngrad-{version}.tar.gz"
    archive = ["git", "-C", ROOT, "archive", "--format=tar.gz", f"--prefix=ngrad-{version}/", "-o", folder.resolve() / sources, "HEAD"]
    has_sources = subprocess.run(archive, capture_output=True).returncode == 0
    return f"Version {version}" + (f", [sources]({sources})" if has_sources else "") + ", [changes](CHANGELOG.md)\n"


def main():
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for page in [*ROOT.glob("docs/*.md"), ROOT / "LICENSE"]:
        (folder / page.name).write_text(with_captions(page.read_text().replace("](../", "](")))
    for page in ["CHANGELOG.md", "SECURITY.md"]:
        (folder / page).write_text(from_root(ROOT / page))
    (folder / "CONTRIBUTING.md").write_text(from_root(ROOT / "CONTRIBUTING.md"))
    (folder / "tests.md").write_text((ROOT / "tests" / "README.md").read_text().replace("](../", "]("))
    for other in ["as_written.svg", "one_kernel.svg", "rms_relu.yaml", "site.css"]:
        shutil.copy(ROOT / "docs" / other, folder)
    (folder / "code.css").write_text(colours())
    readme = with_captions(from_root(ROOT / "README.md"))
    readme = readme.replace("# ngrad\n", f"# ngrad\n\n{version_line(program, folder)}\n", 1)
    (folder / "index.md").write_text(readme)
    (folder / "examples.md").write_text((ROOT / "examples" / "README.md").read_text().replace("](../docs/", "]("))
    ops = json.loads(subprocess.run([program, "ops", "--json"], check=True, capture_output=True).stdout)
    (folder / "operators.md").write_text(operators(ops))


if __name__ == "__main__":
    main()
