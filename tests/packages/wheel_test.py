#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel of a build, installed by pip into a fresh environment of a bare Debian 12 that has no compiler: a few lines of Python and the command give the
ids of the build. Two ranks are one clear error there, and give these ids once MPI is installed.

usage: wheel_test.py BUILD [RELEASE]
"""
import sys
import tempfile

import bare_system

PYTHON = """
import foretoken
with foretoken.Engine(threads=1) as engine:
    for piece in engine.generate("Once upon a time", max_new_tokens=40, temperature=0):
        print(*piece.tokens)
"""
COMMAND = "/root/venv/bin/foretoken"
NO_MPI = ("foretoken: ranks: MPI cannot be loaded: libmpi.so.40: cannot open shared object file: No such file or directory; install the MPI that "
          "foretoken was built with, openmpi-bin or mpich\n")


def check_ranks(system, expected):
    ranks = [*bare_system.REQUEST, "--ranks", "mpi"]
    done = system.attempt(COMMAND, *ranks)
    assert (done.returncode, done.stderr) == (1, NO_MPI), done
    system.install("openmpi-bin")
    said = system.run("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", COMMAND, *ranks)
    assert bare_system.token_ids(said) == expected


def main():
    bare_system.need("readelf", "patchelf", "dpkg-query")
    expected = bare_system.expected_ids(sys.argv[1] + "/foretoken")
    with tempfile.TemporaryDirectory() as folder, bare_system.BareSystem("bookworm") as system:
        wheel = next(bare_system.made(folder, "wheel").glob("*.whl"))
        system.update()
        system.install("python3-venv")
        system.run("python3", "-m", "venv", "/root/venv")
        system.run("/root/venv/bin/pip", "install", "--quiet", "--no-index", system.put(wheel))
        assert not (system.root / "usr/bin/cc").exists(), "the bare system has a compiler"
        said = system.run("/root/venv/bin/python", "-c", PYTHON)
        assert [int(token) for token in said.split()] == expected, said
        assert bare_system.token_ids(system.run(COMMAND, *bare_system.REQUEST)) == expected
        check_ranks(system, expected)
    return 0


if __name__ == "__main__":
    sys.exit(main())
