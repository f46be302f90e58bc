#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel, the packages of npm and the tarball of a cross build for 64-bit ARM, emulated (emulated.py), with Debian's Python and Node for ARM: the ids of
this machine's build. Skipped where `tools/dev release-arm` has not made the cross build.

usage: arm_test.py BUILD [RELEASE]
"""
import pathlib
import subprocess
import sys
import tempfile

import bare_system
import emulated

ROOT = bare_system.ROOT
BUILD, LIBRARIES = ROOT / "build/aarch64-release", ROOT / "build/aarch64-root"
# A processor with the dot product, and one without.
PROCESSORS = (("neoverse-n1", "neon"), ("cortex-a53", "scalar"))


def interpreters(folder):
    """A folder with Python and Node for ARM; nothing in it is run while it is made."""
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--architectures=arm64", "--include=python3,nodejs", "bookworm",
               str(folder), bare_system.MIRROR]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        bare_system.skip(f"mmdebstrap failed (no network?): {done.stdout[-300:]}")
    return folder


def made(folder):
    """The packages for ARM."""
    if len(sys.argv) > 2:
        return pathlib.Path(sys.argv[2]).resolve()
    subprocess.run([sys.executable, str(ROOT / "tools/release"), str(BUILD), str(folder), "--root", str(LIBRARIES)], check=True, stdout=subprocess.DEVNULL)
    return folder


def check_tarball(release, processor, isa, expected, folder):
    """Its own loader and libraries, in the emulator, without the script bin/foretoken: what the script starts would not be emulated."""
    subprocess.run(["tar", "-xzf", str(next(release.glob("*-linux-aarch64.tar.gz"))), "-C", str(folder)], check=True)
    lib = next(folder.glob("foretoken-*-linux-aarch64/lib"))
    command = ["qemu-aarch64", "-cpu", processor, lib / "ld-linux-aarch64.so.1", "--argv0", "foretoken", "--library-path", lib, lib / "foretoken"]
    machine = emulated.Machine(processor, command, "", "", isa)
    emulated.check_said(machine, "the tarball", emulated.run(*command, *bare_system.REQUEST, *emulated.DRAFTED), expected)


def main():
    bare_system.need("mmdebstrap", "qemu-aarch64", "aarch64-linux-gnu-strip")
    emulated.need()
    if not (BUILD / "foretoken").exists():
        bare_system.skip(f"there is no {BUILD}/foretoken; run tools/dev release-arm")
    expected = emulated.expected_ids(sys.argv[1] + "/foretoken")
    with tempfile.TemporaryDirectory(prefix="foretoken_arm_") as name:
        folder = pathlib.Path(name)
        release, root = made(folder / "release"), interpreters(folder / "root")
        for processor, isa in PROCESSORS:
            emulator = ["qemu-aarch64", "-L", str(root), "-cpu", processor]
            machine = emulated.Machine(processor, emulator, str(root / "usr/bin/python3"), str(root / "usr/bin/node"), isa)
            emulated.check(machine, release, expected, folder / processor)
            check_tarball(release, processor, isa, expected, folder / processor)
    return 0


if __name__ == "__main__":
    sys.exit(main())
