#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program of a build without the server (FORETOKEN_SERVER=OFF), where Boost and prometheus-cpp cannot be found: what is left of it says and writes
what the whole one does.

usage: without_server_test.py SOURCES FORETOKEN CMAKE GENERATOR COMPILER C_COMPILER
"""
import json
import pathlib
import subprocess
import sys
import tempfile

SOURCES, WHOLE, CMAKE, GENERATOR, COMPILER, C_COMPILER = sys.argv[1:]
SECONDS = 3000  # a wait that only ends a hang


def run(*command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=SECONDS, check=False)


def done(*command):
    result = run(*command)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout


def build(folder):
    packages = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("Boost", "prometheus-cpp", "MPI", "GTest")]
    done(CMAKE, "-S", SOURCES, "-B", folder, "-G", GENERATOR, f"-DCMAKE_CXX_COMPILER={COMPILER}", f"-DCMAKE_C_COMPILER={C_COMPILER}",
         "-DFORETOKEN_SERVER=OFF", "-DFORETOKEN_TRAIN=OFF", "-DFORETOKEN_EXAMPLES=OFF", "-DFORETOKEN_UNITY=ON", "-DFORETOKEN_PCH=ON",
         "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG", *packages)
    done(CMAKE, "--build", folder, "-j", "2", "--target", "foretoken_cli", "foretoken_shared")
    return folder / "foretoken"


def check(program, pages):
    refused = run(program, "serve")
    assert (refused.returncode, refused.stdout) == (2, ""), refused
    assert refused.stderr == ("foretoken: serve: this foretoken was built without the server; build it with -DFORETOKEN_SERVER=ON, "
                              "which needs Boost and prometheus-cpp\n"), refused.stderr
    whole, less = (json.loads(done(one, "help", "--json")) for one in (WHOLE, program))
    assert set(whole) - set(less) == {"endpoints", "openapi"}, set(less)
    verbs = [row["name"] for row in less["verbs"]]
    assert set(row["name"] for row in whole["verbs"]) - set(verbs) == {"serve"}, verbs
    assert "serve" not in done(program).split(), "the list of verbs"
    assert {path.name for path in pages.iterdir()} == {"foretoken.1", *(f"foretoken-{verb}.1" for verb in verbs)}
    model = pathlib.Path(SOURCES) / "models"
    flags = ("generate", "-m", model / "tales-9m-q8_0.gguf", "-md", model / "tales-1m-draft-q8_0.gguf", "-p", "Once upon a time", "--temp", "0", "-n", "40",
             "--json", "-t", "1")
    texts = [json.loads(done(one, *flags)) for one in (WHOLE, program)]
    assert texts[0]["token_ids"] == texts[1]["token_ids"] and len(texts[0]["token_ids"]) == 40, texts
    assert texts[1]["speculation"]["accepted"] > 0, texts[1]["speculation"]


def main():
    with tempfile.TemporaryDirectory(prefix="foretoken_no_server_") as name:
        folder = pathlib.Path(name)
        check(build(folder), folder / "documents/man")


if __name__ == "__main__":
    main()
