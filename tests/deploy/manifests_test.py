#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/ for Kubernetes and Compose against their schemas, which npm installs (packages/package-lock.json) into FOLDER. Skipped (77) without
node and npm, and where their registry cannot be reached. Usage: manifests_test.py DEPLOY FOLDER"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import npm_packages  # noqa: E402


def main():
    deploy, folder = (os.path.abspath(path) for path in sys.argv[1:3])
    try:
        node = npm_packages.install(pathlib.Path(__file__).resolve().parent / "packages", pathlib.Path(folder))
    except npm_packages.Skip as why:
        print(f"skipped: {why}")
        return npm_packages.SKIPPED
    return subprocess.run([node, "check.mjs", deploy], cwd=folder, timeout=900, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
