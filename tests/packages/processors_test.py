#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel and the packages of npm on a processor without AVX2, and on one with it and nothing later (emulated.py).

usage: processors_test.py BUILD [RELEASE]
"""
import os
import pathlib
import platform
import shutil
import sys
import tempfile

import bare_system
import emulated


def machine(processor, isa):
    return emulated.Machine(processor, ["qemu-x86_64", "-cpu", processor], os.path.realpath(sys.executable), os.path.realpath(shutil.which("node")), isa)


def main():
    if platform.machine() != "x86_64":
        bare_system.skip("these processors are x86-64's")
    emulated.need("qemu-x86_64")
    expected = emulated.expected_ids(sys.argv[1] + "/foretoken")
    with tempfile.TemporaryDirectory(prefix="foretoken_processors_") as name:
        folder = pathlib.Path(name)
        release = emulated.made(folder / "release", "wheel", "npm")
        emulated.check(machine("Nehalem", "scalar"), release, expected, folder / "nehalem")
        emulated.check(machine("Haswell", "avx2"), release, expected, folder / "haswell")
    return 0


if __name__ == "__main__":
    sys.exit(main())
