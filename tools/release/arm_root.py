#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A folder with the files of Debian 12 for 64-bit ARM that foretoken is built against, on a machine of another kind. Nothing in it is run.

usage: arm_root.py FOLDER

FOLDER must not exist. The packages are those that packages.txt names for building. dpkg-query answers about the folder (--admindir). Needs root,
mmdebstrap and a network.
"""
import pathlib
import shutil
import subprocess
import sys

import debs
import image

TOOLS = {"g++", "cmake", "ninja-build", "pkg-config"}  # those of this machine serve
# In the root, which is "$1": what was extracted becomes known to dpkg as installed.
REGISTER = r"""set -e
for deb in "$1"/var/cache/apt/archives/*.deb; do
  name=$(dpkg-deb --field "$deb" Package)
  [ "$(dpkg-deb --field "$deb" Multi-Arch)" = same ] && name=$name:arm64
  dpkg-deb --fsys-tarfile "$deb" | tar -t | sed 's,^\.,,; s,/$,,; s,^$,/.,' > "$1/var/lib/dpkg/info/$name.list"
  dpkg-deb --field "$deb" | sed '/^Package:/a Status: install ok installed' >> "$1/var/lib/dpkg/status"
  echo >> "$1/var/lib/dpkg/status"
done
echo 1 > "$1"/var/lib/dpkg/info/format"""


def packages():
    rows = (line.split() for line in (debs.ROOT / "packages.txt").read_text().splitlines() if not line.startswith("#"))
    return ["libc6-dev", *(row[0] for row in rows if row[1:2] == ["build"] and row[0] not in TOOLS)]


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    if not shutil.which("mmdebstrap"):
        print("arm_root: there is no mmdebstrap; install it", file=sys.stderr)
        return 1
    folder = pathlib.Path(sys.argv[1])
    if folder.exists():
        print(f"arm_root: {folder} is there; name a new folder, or remove it", file=sys.stderr)
        return 1
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--architectures=arm64", "--include", ",".join(packages()),
               f"--extract-hook={REGISTER}", "bookworm", str(folder), image.MIRROR]
    code = subprocess.run(command, check=False).returncode
    if code != 0:
        shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
