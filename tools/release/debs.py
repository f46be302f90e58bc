# SPDX-License-Identifier: Apache-2.0
"""Debian packages of a finished build, by debhelper from packaging/debian.

Contract: `build(...)` leaves the .deb files in a folder and returns their paths; equal input, with equal packages of Debian installed, gives equal
bytes. What lintian says against them, errors and warnings, is an exception.
"""
import email.utils
import os
import pathlib
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def changelog(version, epoch, maintainer):
    """The one entry of debian/changelog; what changed stands in CHANGELOG.md, which is installed beside it."""
    return (f"foretoken ({version}-1) stable; urgency=medium\n\n  * Version {version}: see changelog.gz.\n\n"
            f" -- {maintainer}  {email.utils.formatdate(epoch)}\n")


def check(packages):
    """lintian's errors and warnings, none of which may be there. That an upload to Debian names the bug that asked for it means nothing here."""
    command = ["lintian", "--fail-on", "error,warning", "--suppress-tags", "initial-upload-closes-no-bugs", "--allow-root", *map(str, packages)]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if said.returncode != 0:
        raise RuntimeError(f"packages: lintian found faults; mend packaging/debian\n{said.stdout}")


def build(built, version, epoch, folder, _root):
    """The packages of the build in `built`, in `folder`."""
    for tool in ("dh", "dh_python3", "lintian"):
        if not shutil.which(tool):
            raise RuntimeError(f"packages: there is no {tool}; install debhelper, dh-python and lintian")
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary) / "foretoken"
        shutil.copytree(ROOT / "packaging/debian", work / "debian")
        shutil.copy(ROOT / "CHANGELOG.md", work)
        maintainer = next(line for line in (work / "debian/control").read_text().splitlines() if line.startswith("Maintainer: "))
        (work / "debian/changelog").write_text(changelog(version, epoch, maintainer.partition(": ")[2]))
        environment = {**os.environ, "FORETOKEN_BUILD": str(built), "FORETOKEN_SOURCES": str(ROOT), "SOURCE_DATE_EPOCH": str(epoch),
                       "DEB_RULES_REQUIRES_ROOT": "no", "LC_ALL": "C.UTF-8"}
        subprocess.run(["debian/rules", "binary"], cwd=work, env=environment, check=True, stdout=subprocess.DEVNULL)
        made = [pathlib.Path(shutil.copy(path, folder)) for path in sorted(work.parent.glob("*.deb"))]
    check(made)
    return made
