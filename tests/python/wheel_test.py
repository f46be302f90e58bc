#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A wheel, installed by pip into a folder of its own, runs the bundled model and is the command line, without anything else of this tree.

usage: wheel_test.py LIBRARY PROGRAM MODELS
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SECONDS = 900  # a wait that only ends a hang
CODE = """
import os, foretoken
with foretoken.Engine(threads=1, context_size=128, repack_cache="off", lookahead="fixed", num_speculative_tokens=3) as engine:
    done = engine.generate("Once upon a time", max_new_tokens=12, temperature=0).result()
    assert done.statistics["accepted"] > 0, done.statistics
print(os.path.dirname(foretoken.__file__), foretoken.version(), len(done.tokens))
"""


def run(*command, **named):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=SECONDS, **named).stdout


def main():
    if importlib.util.find_spec("pip") is None:
        print("skipped: pip is not installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        wheel = run(sys.executable, str(ROOT / "tools/python_wheel.py"), *sys.argv[1:4], folder).strip()
        site = os.path.join(folder, "site")
        run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps", "--target", site, wheel)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("FORETOKEN_")}
        environment.update(PYTHONPATH=site, XDG_CACHE_HOME=folder)
        said = run(sys.executable, "-c", CODE, cwd=folder, env=environment).split()
        assert said == [os.path.join(site, "foretoken"), "0.1.0", "12"], said
        run(sys.executable, str(ROOT / "examples/python/speculative_generate.py"), cwd=folder, env=environment)
        text = run(sys.executable, "-m", "foretoken", "generate", "-q", "-n", "5", "--temp", "0", "-t", "1", "-p", "Once", cwd=folder, env=environment)
        assert text.strip(), text
        listed = run(sys.executable, "-m", "pip", "show", "--files", "foretoken", cwd=folder, env=environment)
        assert "models/tales-9m-q8_0.gguf" in listed and "Version: 0.1.0" in listed, listed
    return 0


if __name__ == "__main__":
    sys.exit(main())
