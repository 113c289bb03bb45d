"""Makes a wheel of the Python module, with the library and the libraries that it needs beside it: pip installs it where nothing else is.

Usage: wheel.py LIBRARY FOLDER. LIBRARY, libngrad.so with the run path $ORIGIN, is copied; the wheel's name goes to standard output.
"""
import base64
import hashlib
import os
import pathlib
import platform
import re
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Every Linux has these, of at least the version of glibc that the wheel's name tells.
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libdl|libpthread|librt)\.so\.\d+$")


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def libraries_of(library):
    """Name and path of each library that is loaded with this one."""
    for line in output("ldd", library).splitlines():
        name, _, path = line.strip().partition(" => ")
        name = pathlib.Path(name.split()[0]).name
        if not OF_THE_SYSTEM.match(name):
            yield name, path.split()[0]


def glibc_of(libraries):
    """The minor number of the oldest glibc 2 that has all symbols."""
    found = (re.findall(r"GLIBC_2\.(\d+)", output("objdump", "-T", library)) for library in libraries)
    return max(int(minor) for minors in found for minor in minors)


def licence_of(path):
    """Debian's copyright file of a library's package; None elsewhere."""
    owner = subprocess.run(["dpkg", "-S", os.path.realpath(path)], capture_output=True, text=True).stdout.split(":")[0]
    file = pathlib.Path("/usr/share/doc", owner, "copyright")
    return file.read_bytes() if owner and file.exists() else None


def main():
    library, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    version = re.search(r'NG_VERSION "(.*?)"', (ROOT / "frontend/api/ngrad.h").read_text()).group(1)
    soname = "libngrad.so." + version.rpartition(".")[0]
    others = dict(libraries_of(library))
    tag = f"py3-none-manylinux_2_{glibc_of([library, *others.values()])}_{platform.machine()}"
    about = f"ngrad-{version}.dist-info"
    files = {
        "ngrad/__init__.py": (ROOT / "frontend/python/ngrad.py").read_bytes(),
        "ngrad/py.typed": b"",
        "ngrad_onnx_backend.py": (ROOT / "frontend/python/ngrad_onnx_backend.py").read_bytes(),
        f"ngrad/{soname}": library.read_bytes(),
        f"{about}/METADATA": f"""Metadata-Version: 2.1
Name: ngrad
Version: {version}
Summary: A compiler for computation graphs of training steps
License: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.8
Requires-Dist: numpy
Description-Content-Type: text/markdown

""".encode() + (ROOT / "docs/python.md").read_bytes(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nGenerator: ngrad\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        f"{about}/LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    for name, path in others.items():
        files[f"ngrad/{name}"] = pathlib.Path(path).read_bytes()
        if licence := licence_of(path):
            files[f"{about}/licenses/{name}"] = licence
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, data in files.items()
    )
    files[f"{about}/RECORD"] = (record + f"{about}/RECORD,,\n").encode()
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"ngrad-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(wheel)


if __name__ == "__main__":
    main()
