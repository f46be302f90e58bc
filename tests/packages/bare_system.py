# SPDX-License-Identifier: Apache-2.0
"""A bare Debian in a folder, in which commands run as on a machine of its own.

Contract: a `BareSystem` is made by debootstrap (minbase, no compiler, no Python); the test is skipped (exit code 77) where that cannot run: without
root, without debootstrap, or without a network. BARE_SYSTEMS names a folder that keeps what debootstrap made for the next run. Commands
have a mount namespace of their own, so that nothing stays mounted.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MIRROR = "http://deb.debian.org/debian"
SECONDS = 1800  # a wait that only ends a hang
REQUEST = ["generate", "-p", "Once upon a time", "-n", "40", "--temp", "0", "-t", "1", "--json"]
IN_ROOT = 'mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" && exec chroot "$0" "$@"'
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def need(*tools):
    """Skips without root or one of the tools."""
    if os.geteuid() != 0:
        skip("a bare system needs root")
    for tool in ("debootstrap", "unshare", *tools):
        if not shutil.which(tool):
            skip(f"there is no {tool}")


def token_ids(said):
    return json.loads(said)["token_ids"]


def expected_ids(program):
    """What the program of the build gives for REQUEST outside of any bare system."""
    return token_ids(subprocess.run([program, *REQUEST], check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS).stdout)


def fresh(suite, folder):
    """debootstrap's files in `folder`."""
    command = ["debootstrap", "--variant=minbase", suite, str(folder), MIRROR]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        skip(f"debootstrap {suite} failed (no network?): {done.stdout[-300:]}")


def made(folder, *parts):
    """The parts of a release of the build that the command line names, in `folder`, or in the folder of a finished release that it names, too."""
    if len(sys.argv) > 2:
        return pathlib.Path(sys.argv[2])
    subprocess.run([sys.executable, str(ROOT / "tools/release"), sys.argv[1], folder, *parts], check=True, stdout=subprocess.DEVNULL)
    return pathlib.Path(folder)


class BareSystem:
    """One bare Debian, removed when its block ends."""

    def __init__(self, suite):
        self._folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self._folder.name) / suite
        kept = os.environ.get("BARE_SYSTEMS")
        if not kept:
            fresh(suite, self.root)
        else:
            if not (pathlib.Path(kept) / suite).exists():
                fresh(suite, pathlib.Path(kept) / suite)
            subprocess.run(["cp", "-a", str(pathlib.Path(kept) / suite), str(self.root)], check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def put(self, path, folder="/root"):
        """A copy of a file in the system; its path there."""
        shutil.copy(path, self.root / folder.lstrip("/"))
        return f"{folder}/{pathlib.Path(path).name}"

    def attempt(self, *command):
        """A command in the system, and how it ended."""
        return subprocess.run(["unshare", "--mount", "sh", "-c", IN_ROOT, str(self.root), *map(str, command)], env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=SECONDS, check=False)

    def run(self, *command):
        """Standard output of a command in the system, which must succeed."""
        done = self.attempt(*command)
        if done.returncode != 0:
            raise AssertionError(f"{command}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def install(self, *packages):
        """apt, without what packages recommend."""
        self.run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)

    def update(self):
        try:
            self.run("apt-get", "update", "-qq")
        except AssertionError as why:
            skip(f"apt has no network: {why}")
