# SPDX-License-Identifier: Apache-2.0
"""A tarball of the program, for any Linux of the build's processor family, whatever C library that has.

Contract: it carries the loader, the C library and all else that the program loads, as Debian built them, and bin/foretoken starts the program by that
loader. The system's own libraries are not used. Equal input gives equal bytes. The program finds its models beside the loader, which
the kernel takes for the program (/proc/self/exe): share/foretoken lies beside lib. The processor family is that of the build's program, and `root` the
Debian system whose libraries that is linked to.
"""
import gzip
import io
import pathlib
import shutil
import subprocess
import tarfile
import tempfile

import native_program

LAUNCHER = """#!/bin/sh
# Starts foretoken with the loader and the libraries that lie beside it, so that the system's own do not matter.
self=$(readlink -f -- "$0")
here=${{self%/bin/foretoken}}
exec "$here/lib/{loader}" --argv0 foretoken --library-path "$here/lib" "$here/lib/foretoken" "$@"
"""
SHARED = ("bash-completion", "fish", "foretoken/models", "man", "zsh")


def stage(built, work, root):
    """The files of the tarball in the folder `work`."""
    installed = work.parent / "installed"
    subprocess.run(["cmake", "--install", str(built), "--prefix", str(installed)], check=True, stdout=subprocess.DEVNULL)
    (work / "lib").mkdir(parents=True)
    (work / "bin").mkdir()
    program = native_program.stripped(installed / "bin/foretoken", work / "lib")
    program.chmod(0o755)
    found = native_program.libraries([program], native_program.NONE, root)
    for name, path in found.items():
        shutil.copy(path, work / "lib" / name)
    loader = pathlib.Path(native_program.interpreter(program)).name
    (work / "lib" / loader).chmod(0o755)
    (work / "bin/foretoken").write_text(LAUNCHER.format(loader=loader))
    (work / "bin/foretoken").chmod(0o755)
    for name in SHARED:
        shutil.copytree(installed / "share" / name, work / "share" / name)
    licences = work / "share/doc/foretoken/licences"
    licences.mkdir(parents=True)
    shutil.copy(installed / "share/doc/foretoken/LICENSE", licences / "foretoken")
    for package, path in native_program.licences(found.values(), root).items():
        shutil.copy(path, licences / package)


def pack(work, epoch):
    """The folder as a tar file in memory: sorted, owned by root, with one time."""
    def plain(entry):
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = "root"
        entry.mtime = epoch
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(work, work.name, filter=plain)  # a folder's entries are added in the order of their names
    return packed.getvalue()


def build(built, version, epoch, folder, root):
    """foretoken-VERSION-linux-PROCESSOR.tar.gz in `folder`."""
    name = f"foretoken-{version}-linux-{native_program.linux_name(built / 'foretoken')}"
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary) / name
        stage(built, work, root)
        path = folder / f"{name}.tar.gz"
        path.write_bytes(gzip.compress(pack(work, epoch), 9, mtime=0))
    return [path]
