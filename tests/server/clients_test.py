#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A client from npm against `foretoken serve`, as its own documents use it. The packages are those of clients/package-lock.json; `npm ci`
puts them into FOLDER. Skipped (77) without node and npm, and where their registry cannot be reached.

usage: clients_test.py FORETOKEN MODELS FOLDER SCRIPT
"""
import os
import pathlib
import subprocess
import sys

import npm_packages
from server_testing import Server

SOURCE = pathlib.Path(__file__).resolve().parent / "clients"
# openai_client.mjs asks for more than a conversation: several requests at a time, and a key. Descriptions of tools make long prompts in mcp.mjs.
FLAGS = {"openai_client.mjs": ("-t", "1", "--parallel", "3", "--api-key", "key"), "mcp.mjs": ("-c", "2048")}


def main():
    program, models, folder = (os.path.abspath(path) for path in sys.argv[1:4])
    script = sys.argv[4]
    try:
        node = npm_packages.install(SOURCE, pathlib.Path(folder))
    except npm_packages.Skip as why:
        print(f"skipped: {why}")
        return npm_packages.SKIPPED
    with Server(program, *FLAGS.get(script, ()), env={"FORETOKEN_MODELS": models}) as server:
        done = subprocess.run([node, script, f"http://127.0.0.1:{server.port}"], cwd=folder, timeout=900, check=False)
        if done.returncode != 0:
            print(server.log_text(), file=sys.stderr)
        return done.returncode


if __name__ == "__main__":
    sys.exit(main())
