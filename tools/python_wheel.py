#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a wheel of the Python package with the library, the program and the bundled models inside, for every Python from 3.9 on.

usage: python_wheel.py LIBRARY PROGRAM MODELS FOLDER

LIBRARY is libforetoken.so.1, PROGRAM the built foretoken, MODELS the folder of the bundled models. Prints the path of the wheel in FOLDER. Equal
input gives equal bytes. Libraries of the system that LIBRARY needs (`ldd`) stay outside, so the wheel is for machines that have them.
"""
import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

from package_contents import ROOT, bundled_models

PACKAGE = ROOT / "python" / "foretoken"
TIME = (1980, 1, 1, 0, 0, 0)


def contents(library, program, models):
    """Each file by its name in the wheel."""
    sources = [path for path in sorted(PACKAGE.rglob("*")) if path.suffix == ".py" or path.name == "py.typed"]
    files = {f"foretoken/{path.relative_to(PACKAGE).as_posix()}": path for path in sources}
    files["foretoken/libforetoken.so.1"] = library
    files["foretoken/bin/foretoken"] = program
    files.update((f"foretoken/models/{path.name}", path) for path in bundled_models(models))
    return {name: path.read_bytes() for name, path in files.items()}


def described(version, tag):
    """The files that say what the wheel is."""
    about = f"foretoken-{version}.dist-info"
    metadata = (f"Metadata-Version: 2.1\nName: foretoken\nVersion: {version}\nSummary: Language models with speculative decoding\n"
                "License: Apache-2.0\nRequires-Python: >=3.9\nProvides-Extra: numpy\nRequires-Dist: numpy>=1.20; extra == 'numpy'\n")
    wheel = f"Wheel-Version: 1.0\nGenerator: foretoken\nRoot-Is-Purelib: false\nTag: {tag}\n"
    scripts = "[console_scripts]\nforetoken = foretoken.__main__:main\n"
    return about, {f"{about}/METADATA": metadata.encode(), f"{about}/WHEEL": wheel.encode(), f"{about}/entry_points.txt": scripts.encode(),
                   f"{about}/LICENSE": (ROOT / "LICENSE").read_bytes()}


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def main():
    if len(sys.argv) != 5:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    library, program, models, folder = map(pathlib.Path, sys.argv[1:])
    version = re.search(r'__version__ = "(.*)"', (PACKAGE / "__init__.py").read_text()).group(1)
    tag = f"py3-none-linux_{platform.machine()}"
    about, more = described(version, tag)
    files = {**contents(library, program, models), **more}
    record = "".join(record_line(name, data) for name, data in files.items()) + f"{about}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"foretoken-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in {**files, f"{about}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.endswith(("bin/foretoken", ".so.1")) else 0o100644) << 16
            wheel.writestr(entry, data)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
