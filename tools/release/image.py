# SPDX-License-Identifier: Apache-2.0
"""The root file system of an image: the package foretoken, the libraries that it depends on, and no other program.

Contract: mmdebstrap takes the other packages from Debian's archive, so it needs a network, and equal bytes need the same state of that archive. The
program runs as the user 10001. deploy/Containerfile.root makes an image of it. The .deb must be in the folder already.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import tempfile

MIRROR = "http://deb.debian.org/debian"
# In the root, which is "$1", behind its dependencies: the package "$DEB", two users; no other program, among which some would have more rights
# than their user, and nothing that only people read.
FINISH = r"""set -e; dpkg-deb --extract "$DEB" "$1"
printf 'root:x:0:0:root:/root:/sbin/nologin\nforetoken:x:10001:10001:foretoken:/tmp:/sbin/nologin\n' > "$1/etc/passwd"
printf 'root:x:0:\nforetoken:x:10001:\n' > "$1/etc/group"
cd "$1"
find bin sbin usr/bin usr/sbin ! -type d ! -name foretoken -delete
cd usr/share
rm -rf man locale bash-completion fish zsh lintian
find doc -type f ! -name copyright -delete"""


def dependencies(package):
    """The names of what a .deb depends on; mmdebstrap finds what these depend on."""
    said = subprocess.run(["dpkg-deb", "--field", str(package), "Depends"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [one.split()[0] for one in said.split(",")]


def build(_built, version, epoch, folder, _root):
    """foretoken-VERSION-root.tar.gz in `folder`."""
    if not shutil.which("mmdebstrap"):
        raise RuntimeError("image: there is no mmdebstrap; install it, or name the other parts")
    package = next(folder.glob(f"foretoken_{version}-*.deb"), None)
    if not package:
        raise RuntimeError(f"image: {folder} has no foretoken_{version}-*.deb; make the part debs first")
    with tempfile.TemporaryDirectory() as temporary:
        tar = pathlib.Path(temporary) / "root.tar"
        command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", "--include", ",".join(("base-files", *dependencies(package))),
                   f"--extract-hook={FINISH}", "bookworm", str(tar), MIRROR]
        subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch), "DEB": str(package)}, check=True)
        path = folder / f"foretoken-{version}-root.tar.gz"
        path.write_bytes(gzip.compress(tar.read_bytes(), 9, mtime=0))
    return [path]
