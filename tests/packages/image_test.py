#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of the image, as a root that nobody can write: another user than root gets the ids of the build there.

usage: image_test.py BUILD [RELEASE]
"""
import pathlib
import subprocess
import sys
import tempfile

import bare_system

LIMIT = 120 << 20
# A read-only root with /proc and an empty /tmp, as `podman run --read-only` gives it.
IN_IMAGE = ('mount --bind "$0" "$0" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && mount -o remount,bind,ro "$0" && '
            'exec chroot --userspec=10001:10001 "$0" "$@"')


def run(root, *command):
    return subprocess.run(["unshare", "--mount", "sh", "-c", IN_IMAGE, str(root), *command], env={"XDG_CACHE_HOME": "/tmp"}, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=bare_system.SECONDS, check=False)


def main():
    bare_system.need("mmdebstrap", "dh", "dh_python3", "lintian")
    expected = bare_system.expected_ids(sys.argv[1] + "/foretoken")
    with tempfile.TemporaryDirectory() as work:
        packed = next(bare_system.made(work, "debs", "image").glob("*-root.tar.gz"))
        root = pathlib.Path(work) / "root"
        root.mkdir()
        subprocess.run(["tar", "-xzf", packed, "-C", root], check=True)
        size = sum(path.lstat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        assert size <= LIMIT, f"{size:,} bytes of files"
        made = run(root, "/usr/bin/foretoken", *bare_system.REQUEST)
        assert made.returncode == 0 and bare_system.token_ids(made.stdout) == expected, made
        refused = run(root, "/usr/bin/foretoken", "man", "--output", "/usr/share/foretoken")
        assert refused.returncode != 0, f"the root can be written: {refused}"
        programs = sorted(path.name for folder in ("bin", "sbin", "usr/bin", "usr/sbin") for path in (root / folder).iterdir())
        assert programs == ["foretoken"], programs
    return 0


if __name__ == "__main__":
    sys.exit(main())
