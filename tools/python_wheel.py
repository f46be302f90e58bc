#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the Python package with the library, the program and the bundled models inside, for every Python from 3.9 on.

usage: python_wheel.py LIBRARY PROGRAM MODELS FOLDER [--root FOLDER]

LIBRARY is libforetoken.so.1, PROGRAM the built foretoken, MODELS the folder of the bundled models. Prints the path of the wheel in FOLDER. Equal
input gives equal bytes. What the two load comes along, but for the libraries of C and C++, and the plug-in of MPI, where it lies beside the program.
The wheel is for the machine of LIBRARY; its name says the oldest glibc that has what it needs. --root names the folder of the Debian system whose
libraries it is linked to, where it is not this one.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import sys
import zipfile

import native_program
from package_contents import ROOT, bundled_models

PACKAGE = ROOT / "python" / "foretoken"
TIME = (1980, 1, 1, 0, 0, 0)
SYSTEM = native_program.C_AND_CXX_LIBRARY


def contents(native, about, models, root):
    """Each file's bytes by its name in the wheel. native: the programs by their names."""
    sources = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    files = {f"foretoken/{path.relative_to(PACKAGE).as_posix()}": path for path in sources}
    files.update((f"foretoken/models/{path.name}", path) for path in bundled_models(models))
    return {**{name: path.read_bytes() for name, path in files.items()},
            **native_program.carried(native, SYSTEM, root, "foretoken/lib", f"{about}/licenses")}


def described(version, tag, about):
    """The files that say what the wheel is."""
    metadata = (f"Metadata-Version: 2.1\nName: foretoken\nVersion: {version}\nSummary: Language models with speculative decoding\n"
                "License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: numpy\nRequires-Dist: numpy>=1.20; extra == 'numpy'\n")
    wheel = f"Wheel-Version: 1.0\nGenerator: foretoken\nRoot-Is-Purelib: false\nTag: {tag}\n"
    scripts = "[console_scripts]\nforetoken = foretoken.__main__:main\n"
    return {f"{about}/METADATA": metadata.encode(), f"{about}/WHEEL": wheel.encode(), f"{about}/entry_points.txt": scripts.encode(),
            f"{about}/LICENSE": (ROOT / "LICENSE").read_bytes()}


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def write(native, models, folder, root):
    """Writes the wheel; its path. Errors: native_program.Problem."""
    version = re.search(r'__version__ = "(.*)"', (PACKAGE / "__init__.py").read_text()).group(1)
    programs = list(native.values())
    major, minor = native_program.least_glibc(programs, SYSTEM, root)[:2]
    tag = f"py3-none-manylinux_{major}_{minor}_{native_program.linux_name(programs[0])}"
    about = f"foretoken-{version}.dist-info"
    files = {**contents(native, about, models, root), **described(version, tag, about)}
    record = "".join(record_line(name, data) for name, data in files.items()) + f"{about}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"foretoken-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in {**files, f"{about}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith("bin/foretoken") else 0o100644) << 16
            wheel.writestr(entry, data)
    return path


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    for name in ("library", "program", "models", "folder"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=native_program.HERE)
    given = parser.parse_args()
    native = {"foretoken/libforetoken.so.1": given.library.resolve(), "foretoken/bin/foretoken": given.program}
    try:
        print(write(native, given.models, given.folder, given.root.resolve()))
    except native_program.Problem as problem:
        print(f"python_wheel: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
