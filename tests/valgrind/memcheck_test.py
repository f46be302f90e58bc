#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program under valgrind's memcheck: no error, and no block that is definitely lost. Exit code 77 where valgrind is missing.

usage: memcheck_test.py PROGRAM [ARGUMENTS...]
       memcheck_test.py --python SCRIPT.py [ARGUMENTS...]   with this interpreter, whose own reports python.supp leaves out
       memcheck_test.py --control                           errors and leaks that C functions make for Python are found
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
FOUND = 99  # the exit code that valgrind gives for what it found
SKIPPED = 77
LEAKS = ["--leak-check=full", "--show-leak-kinds=definite", "--errors-for-leak-kinds=definite"]
BEGIN = "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; c.strlen.argtypes = c.free.argtypes = [ctypes.c_void_p]; "
CONTROLS = {"pass": None, "c.malloc(4321)": "4,321 bytes in 1 blocks are definitely lost",
            "p = c.malloc(16); ctypes.memset(p, 1, 16); c.strlen(p); c.free(p)": "Invalid read of size 1",
            "p = c.malloc(16); c.strlen(p); c.free(p)": "depends on uninitialised value"}


def run(command):
    """(exit code, what valgrind wrote)"""
    with tempfile.NamedTemporaryFile(mode="r") as log, tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(["valgrind", f"--error-exitcode={FOUND}", *LEAKS, "--num-callers=25", f"--suppressions={HERE}/python.supp",
                               f"--log-file={log.name}", *command], check=False,
                              env={**os.environ, "PYTHONMALLOC": "malloc", "FORETOKEN_THREADS": "1", "XDG_CACHE_HOME": cache})
        return done.returncode, log.read()


def python(*arguments):
    return [os.path.realpath(sys.executable), "-B", *arguments]


def controls():
    for code, expected in CONTROLS.items():
        status, report = run(python("-c", BEGIN + code))
        if (status == FOUND) != (expected is not None) or (expected or "") not in report:
            print(f"{code}: exit code {status}, not what is expected: {expected}\n{report}")
            return 1
    print(f"{len(CONTROLS)} controls are as expected")
    return 0


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIPPED
    if sys.argv[1] == "--control":
        return controls()
    status, report = run(python(*sys.argv[2:]) if sys.argv[1] == "--python" else sys.argv[1:])
    print("\n".join(report.splitlines()[-400:]))
    return status


if __name__ == "__main__":
    sys.exit(main())
