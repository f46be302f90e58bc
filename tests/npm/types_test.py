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

OPTIONS = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--module", "nodenext", "--target", "es2022", "--lib", "es2022,dom", "--types", ""]


def compiled(node, folder, name):
    done = subprocess.run([node, "node_modules/typescript/bin/tsc", *OPTIONS, name], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    try:
        node = npm_packages.install(HERE / "types", folder)
    except npm_packages.Skip as why:
        print(f"skipped: {why}")
        return npm_packages.SKIPPED
    shutil.rmtree(folder / "node_modules" / "foretoken", ignore_errors=True)
    shutil.copytree(ROOT / "npm" / "foretoken", folder / "node_modules" / "foretoken")
    use = (HERE / "types" / "use.ts").read_text(encoding="utf-8")
    (folder / "use.mts").write_text(use, encoding="utf-8")
    status, said = compiled(node, folder, "use.mts")
    assert status == 0, said
    marks = use.count("// @ts-expect-error")
    (folder / "refused.mts").write_text(use.replace("// @ts-expect-error", "//"), encoding="utf-8")
    status, said = compiled(node, folder, "refused.mts")
    assert status != 0 and said.count("error TS") == marks > 0, (marks, said)
    print(f"the types let pass what is right, and refuse {marks} mistakes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
