#!/usr/bin/python3
"""The JSON schema of graph files takes every file that ngrad takes, and refuses what it can see is wrong.

Usage: schema.py NGRAD [--list]. With --list, it prints the files of tests/errors that the schema takes and ngrad refuses,
each with ngrad's message, and those that the schema does not see. Exits with 77 where python3-jsonschema or python3-yaml
is not installed.
"""
import json
import pathlib
import re
import subprocess
import sys

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"schema: {missing}")
    sys.exit(77)


class Loader(yaml.SafeLoader):
    """YAML 1.2's core schema: yes and on are texts, 1e5 is a number."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$|^0x[0-9a-fA-F]+$|^0o[0-7]+$", list("-+0123456789")),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?$", list("-+.0123456789")),
]:
    Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), first)
Loader.add_constructor("tag:yaml.org,2002:int", lambda loader, node: int(node.value, 0))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))

# What a message begins with, or has in it, when the structure of the file is wrong: the schema sees that, too. It does not
# know the elements of constants, nor operands whose names depend on an attribute.
STRUCTURAL = re.compile(
    r"error: (unknown key(?!.*expected dst)|unknown operator|unknown attribute|missing key|missing attribute|no outputs|node without an operator"
    r"|expected a map that begins)"
    r"|error: .*: (missing (?:in|out)puts? |expected a list(?! on axis)|expected true or false|expected an integer(?! for)|unknown type|missing shape|expected numbers for a state)"
)

LARGE = 20000  # bytes; python3-jsonschema takes a millisecond for each rule and node


def main():
    program, lists = sys.argv[1], "--list" in sys.argv[2:]
    root = pathlib.Path(__file__).resolve().parents[2]
    schema = json.loads(subprocess.run([program, "ops", "--schema"], check=True, capture_output=True).stdout)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)

    def load(path):
        with open(path, encoding="utf-8") as file:
            return yaml.load(file, Loader)

    failed = 0
    taken = 0
    refused_wrongly = []
    errors = root / "tests" / "errors"
    accepted = [path for path in errors.glob("*.yaml") if path.with_suffix(".accepted").exists()]
    for path in sorted(root.glob("models/**/*.yaml")) + sorted(accepted):
        if path.stat().st_size > LARGE:
            continue
        try:
            problem = next(validator.iter_errors(load(path)), None)
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            print(f"not read by python3-yaml: {path.name}: {str(error).splitlines()[0]}")
            continue
        taken += 1
        if problem:
            failed += 1
            refused_wrongly.append(f"{path.name}: {problem.message[:200]} at {list(problem.absolute_path)}")
            print(f"FAILED: {refused_wrongly[-1]}")

    refused = structural = 0
    unseen, left_out = [], []
    for case in sorted(errors.glob("*.expected")):
        path = case.with_suffix(".yaml")
        if not path.exists():
            continue
        if path.stat().st_size > LARGE or path.name.startswith("alias_"):
            left_out.append(path.name)  # jsonschema would print what aliases stand for
            continue
        said = case.read_text(errors="replace")
        wants = STRUCTURAL.search(said)
        try:
            is_valid = validator.is_valid(load(path))
        except (yaml.YAMLError, UnicodeDecodeError, ValueError, RecursionError):
            left_out.append(path.name)
            continue
        refused += not is_valid
        if is_valid:
            unseen.append(f"{path.name}: " + said.partition("error: ")[2].partition("\n")[0])
        structural += bool(wants)
        if wants and is_valid:
            failed += 1
            print(f"FAILED: {path.name} is valid: {wants.group(0)}")
    if lists:
        print("the schema takes, ngrad refuses:", *unseen, sep="\n  ")
        print("no YAML of python3-yaml, or with too many values:", *left_out, sep="\n  ")
        print("the schema refuses, ngrad takes:", *refused_wrongly, sep="\n  ")
    print(f"schema: {taken} files taken, {refused} refused, of which {structural} must be; {len(unseen)} wrong files "
          f"taken, {len(left_out)} left out; {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
