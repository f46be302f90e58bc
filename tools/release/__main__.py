# SPDX-License-Identifier: Apache-2.0
"""Everything that a release consists of, made by one command from a finished release build.

usage: python3 tools/release BUILD FOLDER [PART...] [--root FOLDER]

BUILD is the folder of the build (build/release, built whole), FOLDER takes the files, PART is debs, tarball, wheel, npm, sbom or image: all where none
is named. FOLDER gets SHA256SUMS of them. Equal sources, builds and tools give equal bytes: times are those of the last commit, or of SOURCE_DATE_EPOCH.
--root names the folder of the Debian system that BUILD is linked to, where it is not this one; then PART is tarball, wheel and npm.
"""
import argparse
import hashlib
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import debs
import image
import sbom
import tarball

ROOT = debs.ROOT


def last_commit():
    """Seconds of the last commit."""
    said = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return int(said)


def paths_of(epoch, script, *arguments):
    """The files that a script of tools/ says that it made."""
    command = [sys.executable, str(ROOT / "tools" / script), *map(str, arguments)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return [pathlib.Path(line) for line in said.splitlines()]


def wheel(built, _version, epoch, folder, root):
    return paths_of(epoch, "python_wheel.py", built / "src/capi/libforetoken.so.1", built / "foretoken", ROOT / "models", folder, "--root", root)


def npm(built, _version, epoch, folder, root):
    return paths_of(epoch, "npm_packages.py", built, folder, "--root", root)


PARTS = {"debs": debs.build, "tarball": tarball.build, "wheel": wheel, "npm": npm, "sbom": sbom.build, "image": image.build}
FOR_OTHER_MACHINES = ("tarball", "wheel", "npm")


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("built", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--root", type=pathlib.Path)
    given = parser.parse_args()
    known = PARTS if given.root is None else FOR_OTHER_MACHINES
    if not set(given.parts) <= set(known):
        parser.error(f"parts are {', '.join(known)}")
    return given, given.parts or list(known)


def main():
    given, parts = arguments()
    built, folder, root = (path.resolve() for path in (given.built, given.folder, given.root or pathlib.Path("/")))
    version = re.search(r"project\(foretoken VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text()).group(1)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or last_commit())
    os.umask(0o022)
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for part in parts:
        made += PARTS[part](built, version, epoch, folder, root)
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in made}
    (folder / "SHA256SUMS").write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items())))
    for path in made:
        print(f"{path.stat().st_size:>11,} {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
