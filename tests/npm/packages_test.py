#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages that tools/npm_packages.py makes: the same bytes twice; npm installs them into a bare folder without a network; there the tests of
*_test.mjs run. Skipped (77) without node, npm or what packing needs.

usage: packages_test.py BUILD_FOLDER [TEST.mjs...]
"""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 900  # a wait that only ends a hang
NEEDED = ("node", "npm", "npx", "readelf", "strip", "patchelf", "dpkg-query")


def run(*command, **named):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS, **named).stdout


def pack(build, folder, **variables):
    return [pathlib.Path(line) for line in run(sys.executable, "-B", ROOT / "tools/npm_packages.py", build, folder, env={**os.environ, **variables}).split()]


def digests(paths):
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


def check_bytes(build, folder):
    """The packages, of which equal input gave equal bytes, and another time others."""
    paths, again, later = (pack(build, folder / name, SOURCE_DATE_EPOCH=time) for name, time in (("one", "86400"), ("two", "86400"), ("three", "86402")))
    assert digests(paths) == digests(again), (paths, again)
    assert all(one != other for one, other in zip(digests(paths), digests(later))), "SOURCE_DATE_EPOCH changes nothing"
    with tarfile.open(paths[1]) as tar:
        names = tar.getnames()
        assert {entry.mtime for entry in tar} == {86400}, names
    assert "package/bin/foretoken" in names and any(name.startswith("package/licenses/") for name in names), names
    return paths


def main():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}")
        return 77
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="foretoken_npm_") as name:
        folder = pathlib.Path(name)
        paths = check_bytes(build, folder)
        bare = folder / "bare"
        bare.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORETOKEN_", "NODE_"))}
        environment.update(XDG_CACHE_HOME=str(folder), HOME=str(folder), npm_config_cache=str(folder / "npm"), npm_config_update_notifier="false")
        run("npm", "install", "--offline", "--no-audit", "--no-fund", *paths, cwd=bare, env=environment)
        for path in (*HERE.glob("*.mjs"), ROOT / "docs" / "node.md"):
            shutil.copy(path, bare)
        environment.update(BUILT_PROGRAM=str(build / "foretoken"), BUILT_MODELS=str(ROOT / "models"))
        tests = sys.argv[2:] or sorted(path.name for path in bare.glob("*_test.mjs"))
        return subprocess.run(["node", "--test", *tests], cwd=bare, env=environment, timeout=SECONDS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
