#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plots of docs/plots are those of their JSON; and the check notices a changed number, a changed plot and a missing one."""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PLOTS = os.path.join(HERE, "..", "..", "docs", "plots")


def check(folder):
    return subprocess.run([sys.executable, os.path.join(HERE, "plots.py"), "--check", folder], capture_output=True, check=False).returncode


def changed(name, change):
    """The check's exit code where one file of the folder was changed."""
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(PLOTS, os.path.join(folder, "plots"))
        change(os.path.join(copy, name))
        return check(copy)


def replace(old, new):
    def change(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        assert old in text, f"{path}: there is no {old}"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))
    return change


assert check(PLOTS) == 0, "a plot is not what its JSON gives; run bench/compare/plots.py"
assert changed("speedup.json", replace('"speedup": 1', '"speedup": 2')) == 1
assert changed("clients-dark.svg", replace("<path", "<path ")) == 1
assert changed("cost-by-rows-light.svg", os.remove) == 1
print("plots: current, and the check notices changes")
