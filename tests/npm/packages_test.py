#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The packages that tools/npm_packages.py makes: the same bytes twice; npm installs them into a bare folder without a network; there the tests of
*_test.mjs run. Skipped (77) without node, npm or what packing needs.

usage: packages_test.py BUILD_FOLDER [TEST.mjs...]
"""
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SECONDS = 900  # a wait that only ends a hang
NEEDED = ("node", "npm", "npx", "readelf", "strip", "patchelf", "dpkg-query", "ldd")


def run(*command, **named):
    return subprocess.run([str(part) for part in command], check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS, **named).stdout


def pack(build, folder, **variables):
    return [pathlib.Path(line) for line in run(sys.executable, "-B", ROOT / "tools/npm_packages.py", build, folder, env={**os.environ, **variables}).split()]


def packed_twice(build, folder):
    """The packages, of which equal input gave equal bytes, with the time that was asked for."""
    paths, again = (pack(build, folder / name, SOURCE_DATE_EPOCH="86400") for name in ("one", "two"))
    assert [path.name for path in paths] == [path.name for path in again] and len(paths) == 2, (paths, again)
    assert all(one.read_bytes() == other.read_bytes() for one, other in zip(paths, again)), "the bytes differ"
    with tarfile.open(paths[1]) as tar:
        names = tar.getnames()
        assert {entry.mtime for entry in tar} == {86400}, names
    assert "package/bin/foretoken" in names and any(name.startswith("package/licenses/") for name in names), names
    return paths


def check_libraries(bare, environment):
    """The program that npm installed uses no library of this machine but the C library's."""
    program = next(bare.glob("node_modules/@foretoken/*/bin/foretoken"))
    outside = [line for line in run("ldd", program, env=environment).splitlines() if "=>" in line and str(bare.resolve()) not in line]
    assert outside and all(re.match(r"\s*lib(c|m)\.so\.6 ", line) for line in outside), outside


def ended_by_ctrl_c(bare, environment):
    """The exit code of the command that runs a server on a terminal, where Ctrl-C is typed once."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(bare)
        os.execvpe("node_modules/.bin/foretoken", ["foretoken", "serve", "--port", "0", "-t", "1"], environment)
    said = b""
    try:
        while True:
            said += os.read(terminal, 4096)
            if b" at http://" in said and b"^C" not in said:
                os.write(terminal, b"\x03")
    except OSError:  # the terminal has no user any more
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main():
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        print(f"skipped: there is no {', '.join(missing)}")
        return 77
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(prefix="foretoken_npm_") as name:
        folder = pathlib.Path(name)
        paths = packed_twice(build, folder)
        bare = folder / "bare"
        bare.mkdir()
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("FORETOKEN_", "NODE_"))}
        environment.update(XDG_CACHE_HOME=str(folder), HOME=str(folder), npm_config_cache=str(folder / "npm"), npm_config_update_notifier="false")
        run("npm", "install", "--offline", "--no-audit", "--no-fund", *paths, cwd=bare, env=environment)
        check_libraries(bare, environment)
        assert ended_by_ctrl_c(bare, environment) == 0
        for path in (*HERE.glob("*.mjs"), ROOT / "docs" / "node.md"):
            shutil.copy(path, bare)
        environment.update(BUILT_PROGRAM=str(build / "foretoken"), BUILT_MODELS=str(ROOT / "models"))
        tests = sys.argv[2:] or sorted(path.name for path in bare.glob("*_test.mjs"))
        return subprocess.run(["node", "--test", *tests], cwd=bare, env=environment, timeout=SECONDS, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
