# SPDX-License-Identifier: Apache-2.0
"""Packages of npm for a test: those of a folder's package-lock.json, installed into another folder. Without node and npm, and where their registry cannot be
reached, Skip says why."""
import fcntl
import hashlib
import re
import shutil
import subprocess

SKIPPED = 77
LEAST_NODE = 20
INSTALL_SECONDS = 240
UNREACHABLE = r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|E40[137]\b|E50\d\b|ENOTCACHED"


class Skip(Exception):
    pass


def tools():
    node, npm = (shutil.which(name) for name in ("node", "npm"))
    if not node or not npm:
        raise Skip(f"there is no {'npm' if node else 'node'}")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(re.match(r"v(\d+)", version).group(1)) < LEAST_NODE:
        raise Skip(f"node {version} is older than {LEAST_NODE}, which these packages need")
    return node, npm, version


def install(source, folder, seconds=INSTALL_SECONDS):
    """The packages of source, and its scripts, once for all tests of the folder. Returns the path of node."""
    node, npm, version = tools()
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = hashlib.sha256(version.encode() + (source / "package-lock.json").read_bytes()).hexdigest()
        stamp = folder / "installed"
        for path in source.glob("*.mjs"):
            shutil.copy(path, folder)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return node
        stamp.unlink(missing_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired as late:
            raise Skip(f"npm ci did not end within {seconds} s") from late
        if done.returncode != 0 and re.search(UNREACHABLE, done.stderr):
            raise Skip("npm's registry cannot be reached: " + next(line for line in done.stderr.splitlines() if re.search(UNREACHABLE, line)))
        if done.returncode != 0:
            raise RuntimeError(f"npm ci failed:\n{done.stdout}{done.stderr}")
        stamp.write_text(wanted, encoding="utf-8")
    return node
