#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client from npm against `foretoken serve`, as its own documents use it. The packages are those of clients/package-lock.json; `npm ci`
puts them into FOLDER. Skipped (77) without node and npm, and where their registry cannot be reached.

usage: clients_test.py FORETOKEN MODELS FOLDER SCRIPT
"""
import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

from server_testing import Server

SKIPPED = 77
SOURCE = pathlib.Path(__file__).resolve().parent / "clients"
LEAST_NODE = 20
INSTALL_SECONDS = 240
UNREACHABLE = r"ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|E40[137]\b|E50\d\b|ENOTCACHED"
# openai_client.mjs asks for more than a conversation: several requests at a time, and a key.
FLAGS = {"openai_client.mjs": ("-t", "1", "--parallel", "3", "--api-key", "key")}


class Skip(Exception):
    pass


def tools():
    node, npm = (shutil.which(name) for name in ("node", "npm"))
    if not node or not npm:
        raise Skip(f"there is no {'npm' if node else 'node'}")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(re.match(r"v(\d+)", version).group(1)) < LEAST_NODE:
        raise Skip(f"node {version} is older than {LEAST_NODE}, which these clients need")
    return node, npm, version


def install(npm, version, folder):
    """The packages, once for all tests of the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = hashlib.sha256(version.encode() + (SOURCE / "package-lock.json").read_bytes()).hexdigest()
        stamp = folder / "installed"
        for path in SOURCE.glob("*.mjs"):
            shutil.copy(path, folder)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        stamp.unlink(missing_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(SOURCE / name, folder)
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]
        try:
            done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired as late:
            raise Skip(f"npm ci did not end within {INSTALL_SECONDS} s") from late
        if done.returncode != 0 and re.search(UNREACHABLE, done.stderr):
            raise Skip("npm's registry cannot be reached: " + next(line for line in done.stderr.splitlines() if re.search(UNREACHABLE, line)))
        if done.returncode != 0:
            raise RuntimeError(f"npm ci failed:\n{done.stdout}{done.stderr}")
        stamp.write_text(wanted, encoding="utf-8")


def main():
    program, models, folder = (os.path.abspath(path) for path in sys.argv[1:4])
    script = sys.argv[4]
    try:
        node, npm, version = tools()
        install(npm, version, pathlib.Path(folder))
    except Skip as why:
        print(f"skipped: {why}")
        return SKIPPED
    with Server(program, *FLAGS.get(script, ()), env={"FORETOKEN_MODELS": models}) as server:
        done = subprocess.run([node, script, f"http://127.0.0.1:{server.port}"], cwd=folder, timeout=300, check=False)
        if done.returncode != 0:
            print(server.log_text(), file=sys.stderr)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
