#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs model_attack with good files of more architectures beside those of the fixtures: those that ../shared/peer/make-arch-gguf writes, where it is.

usage: models_attack.py MODEL_ATTACK [flags of model_attack]
"""
import os
import subprocess
import sys
import tempfile

MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../shared/peer/make-arch-gguf")
# What foretoken runs, and what it must refuse: other architectures, experts, recurrent state.
ARCHITECTURES = ("llama", "qwen2", "qwen3", "qwen3moe", "gpt-oss", "gemma3", "phi3", "qwen35")
SMALL = ("--dim", "64", "--layers", "2", "--vocab", "300")


def main():
    program, *flags = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        for name in ARCHITECTURES:
            path = os.path.join(folder, name + ".gguf")
            if os.path.exists(MAKER) and subprocess.run([MAKER, name, path, *SMALL], capture_output=True, check=False).returncode == 0:
                flags += ["--good", path]
                print(f"beside the fixtures: {name}, {os.path.getsize(path)} bytes")
        sys.stdout.flush()
        return subprocess.run([program, *flags], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
