#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program in TypeScript uses the package as its types say (types/use.ts; what they must refuse is marked there), compiled by tsc, strictly. TypeScript is the
one of types/package-lock.json, which `npm ci` puts into FOLDER. Skipped (77) without node and npm, and where their registry cannot be reached.

usage: types_test.py FOLDER
"""
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests" / "server"))
import npm_packages  # noqa: E402, the module of tests/server

OPTIONS = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom",
           "--typeRoots", "no_types"]


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    try:
        node = npm_packages.install(HERE / "types", folder)
    except npm_packages.Skip as why:
        print(f"skipped: {why}")
        return npm_packages.SKIPPED
    shutil.rmtree(folder / "node_modules" / "foretoken", ignore_errors=True)
    shutil.copytree(ROOT / "npm" / "foretoken", folder / "node_modules" / "foretoken")
    shutil.copy(HERE / "types" / "use.ts", folder / "use.mts")
    return subprocess.run([node, "node_modules/typescript/bin/tsc", *OPTIONS, "use.mts"], cwd=folder, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
