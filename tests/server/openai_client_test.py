#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs openai_client.mjs against a server. Skipped (77) without node, or without the npm package `openai`, which is looked for in
$FORETOKEN_NODE_MODULES, else in a node_modules folder beside this file.

usage: openai_client_test.py FORETOKEN MODELS
"""
import os
import pathlib
import shutil
import subprocess
import sys

from server_testing import Server

SKIPPED = 77


def main():
    program, models = (os.path.abspath(path) for path in sys.argv[1:3])
    here = pathlib.Path(__file__).resolve().parent
    modules = pathlib.Path(os.environ.get("FORETOKEN_NODE_MODULES") or here / "node_modules")
    node = shutil.which("node")
    if not node or not (modules / "openai").is_dir():
        print(f"skipped: {'no node' if not node else f'no package openai in {modules}'}")
        return SKIPPED
    target, draft = (os.path.join(models, name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf"))
    with Server(program, "-m", target, "-md", draft, "-t", "1", "--parallel", "3", "--chat-template", "chatml", "--api-key", "key") as server:
        done = subprocess.run([node, str(here / "openai_client.mjs"), f"http://127.0.0.1:{server.port}", str(modules)], timeout=120, check=False)
        if done.returncode != 0:
            print(server.log_text(), file=sys.stderr)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
