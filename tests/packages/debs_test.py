#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The .deb files of a build, installed by apt into a bare Debian 12: the program, the Python package and a C program give the ids of the build.

usage: debs_test.py BUILD [RELEASE]
"""
import subprocess
import sys
import tempfile

import bare_system

PYTHON = """
import foretoken
with foretoken.Engine(threads=1) as engine:
    done = engine.generate("Once upon a time", max_new_tokens=40, temperature=0).result()
print(done.tokens)
"""
MODELS = "/usr/share/foretoken/models"


def check_program(system, debs, expected):
    system.install(system.put(debs["foretoken"]))
    assert not (system.root / "usr/bin/cc").exists(), "the bare system has a compiler"
    assert bare_system.token_ids(system.run("foretoken", *bare_system.REQUEST)) == expected
    assert "foretoken" in system.run("dpkg-query", "-L", "foretoken"), "dpkg does not know the package"
    assert system.run("foretoken", "version").startswith("foretoken 0."), system.run("foretoken", "version")


def check_ranks(system, debs, expected):
    """Two processes divide the model."""
    system.install(system.put(debs["foretoken-mpi"]))
    said = system.run("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2", "foretoken", *bare_system.REQUEST, "--ranks", "mpi")
    assert bare_system.token_ids(said) == expected


def check_python(system, debs, expected):
    system.install(*(system.put(debs[name]) for name in ("libforetoken1", "python3-foretoken")))
    assert not (system.root / "usr/bin/cc").exists(), "python3-foretoken needs a compiler"
    assert system.run("python3", "-c", PYTHON).strip() == str(expected)


def check_c(system, debs, text):
    system.install(system.put(debs["libforetoken-dev"]), "gcc", "libc6-dev", "pkg-config")
    source = system.put(bare_system.ROOT / "examples/c/generate.c")
    system.run("sh", "-c", f"gcc -Wall -Werror {source} $(pkg-config --cflags --libs foretoken-c) -o /root/generate")
    said = system.run("/root/generate", f"{MODELS}/tales-9m-q8_0.gguf", f"{MODELS}/tales-1m-draft-q8_0.gguf", "Once upon a time")
    assert said.startswith(text) and "drafts accepted]" in said, said


def main():
    bare_system.need("dh", "dh_python3", "lintian")
    program = sys.argv[1] + "/foretoken"
    expected = bare_system.expected_ids(program)
    text = subprocess.run([program, *bare_system.REQUEST[:-1], "-q"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip("\n")
    with tempfile.TemporaryDirectory() as folder, bare_system.BareSystem("bookworm") as system:
        debs = {path.name.partition("_")[0]: path for path in bare_system.made(folder, "debs").glob("*.deb")}
        system.update()
        check_program(system, debs, expected)
        check_ranks(system, debs, expected)
        check_python(system, debs, expected)
        check_c(system, debs, text)
        system.run("apt-get", "purge", "-y", "-qq", *debs)
        left = system.run("sh", "-c", "find / -xdev -name '*foretoken*' -not -path '/root/*' -not -path '/proc/*'")
        assert not left.strip(), f"purged, and still there: {left}"
    return 0


if __name__ == "__main__":
    sys.exit(main())
