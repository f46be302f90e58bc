#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the packages of npm: foretoken (client, command and bundled models), and @foretoken/linux-x64 or the like (the program and its libraries).

usage: npm_packages.py TREE FOLDER [--root FOLDER]

TREE is a build folder, or what `cmake --install` made. Prints the paths of the two files in FOLDER, the main one first. The platform is that of TREE's
program; each of the platforms that the main package names is packed from a tree of its own. Equal input gives equal bytes; SOURCE_DATE_EPOCH sets
the times of files. --root names the folder of the Debian system whose libraries the program is linked to, where it is not this one.
"""
import argparse
import gzip
import io
import json
import pathlib
import sys
import tarfile

import native_program
from package_contents import ROOT, bundled_models, file_time, version

SOURCE = ROOT / "npm" / "foretoken"
PLATFORMS = ("linux-x64", "linux-arm64")
NPM_TIME = 499162500  # what npm itself gives to each file
README = """# @foretoken/{platform}

The program of the package foretoken for {platform}, which installs it. The libraries in `lib/` have licences of their own, which are in `licenses/`.
"""


def as_json(value):
    return (json.dumps(value, indent=2) + "\n").encode()


def main_package(models):
    about = json.loads((SOURCE / "package.json").read_text(encoding="utf-8"))
    about.update(version=version(), optionalDependencies={f"@foretoken/{platform}": version() for platform in PLATFORMS})
    files = {path.relative_to(SOURCE).as_posix(): path.read_bytes() for path in sorted(SOURCE.rglob("*")) if path.is_file()}
    files.update((f"models/{path.name}", path.read_bytes()) for path in models)
    return about, {**files, "package.json": as_json(about), "LICENSE": (ROOT / "LICENSE").read_bytes()}


def platform_package(program, root):
    cpu, glibc = native_program.npm_name(program), native_program.least_glibc([program], root=root)
    about = {"name": f"@foretoken/linux-{cpu}", "version": version(), "description": f"The program foretoken for linux-{cpu}", "license": "Apache-2.0",
             "os": ["linux"], "cpu": [cpu], "libc": ["glibc"], "preferUnplugged": True,
             "foretoken": {"glibc": ".".join(map(str, glibc)), "interpreter": native_program.interpreter(program)}}
    return about, {**native_program.carried({"bin/foretoken": program}, root=root), "package.json": as_json(about), "LICENSE": (ROOT / "LICENSE").read_bytes(),
                   "README.md": README.format(platform=f"linux-{cpu}").encode()}


def packed(files):
    """The bytes of a .tgz."""
    archive, time = io.BytesIO(), file_time(NPM_TIME)
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size, entry.mtime = len(data), time
            entry.mode = 0o755 if name in ("bin/foretoken", "src/launcher.js") else 0o644
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(archive.getvalue(), 9, mtime=0)


def program_and_models(tree):
    """Of an installed tree, or of a build folder, whose models are those of the sources."""
    installed, built = tree / "bin" / "foretoken", tree / "foretoken"
    program = installed if installed.is_file() else built
    if not program.is_file():
        raise native_program.Problem(f"tree {tree}: it has neither bin/foretoken nor foretoken; build the target foretoken_cli, or install it")
    folder = tree / "share" / "foretoken" / "models" if program == installed else ROOT / "models"
    models = bundled_models(folder)
    if not models:
        raise native_program.Problem(f"models {folder}: there are none; install foretoken again")
    return program, models


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("tree", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--root", type=pathlib.Path, default=native_program.HERE)
    given = parser.parse_args()
    try:
        program, models = program_and_models(given.tree)
        packages = [main_package(models), platform_package(program, given.root.resolve())]
    except native_program.Problem as problem:
        print(f"npm_packages: {problem}", file=sys.stderr)
        return 1
    given.folder.mkdir(parents=True, exist_ok=True)
    for about, files in packages:
        path = given.folder / f"{about['name'].removeprefix('@').replace('/', '-')}-{about['version']}.tgz"
        path.write_bytes(packed(files))
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
