# SPDX-License-Identifier: Apache-2.0
"""Everything that a release consists of, made by one command from a finished release build.

usage: python3 tools/release BUILD FOLDER [PART...]

BUILD is the folder of the build (build/release, built whole), FOLDER takes the files, PART is debs, tarball, wheel, sbom or image: all where none is
named. FOLDER gets SHA256SUMS of them. Equal sources, builds and tools give equal bytes: times are those of the last commit, or of SOURCE_DATE_EPOCH.
"""
import hashlib
import os
import pathlib
import re
import subprocess
import sys

import debs
import image
import sbom
import tarball

ROOT = debs.ROOT


def last_commit():
    """Seconds of the last commit."""
    said = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(said)


def wheel(built, _version, _epoch, folder):
    command = [sys.executable, str(ROOT / "tools/python_wheel.py"), built / "src/capi/libforetoken.so.1", built / "foretoken", ROOT / "models", folder]
    said = subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [pathlib.Path(said.strip())]


PARTS = {"debs": debs.build, "tarball": tarball.build, "wheel": wheel, "sbom": sbom.build, "image": image.build}


def main():
    if len(sys.argv) < 3 or not set(sys.argv[3:]) <= set(PARTS):
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    built, folder = (pathlib.Path(name).resolve() for name in sys.argv[1:3])
    version = re.search(r"project\(foretoken VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or last_commit())
    os.umask(0o022)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for part in sys.argv[3:] or PARTS:
        made += PARTS[part](built, version, epoch, folder)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())))
    for path in made:
        print(f"{path.stat().st_size:>11,} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
