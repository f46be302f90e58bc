#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""include/foretoken.h and the shared library: the header compiles alone in C99 and in C++; the library exports its functions and
nothing else; and the binary interface is the stored one (foretoken.abi), by abigail's tools if there are any.

usage: interface_test.py [ARGUMENTS]           with --library, as CMakeLists.txt calls it
       interface_test.py --store [ARGUMENTS]   writes foretoken.abi anew, after a change that keeps old programs working
"""
import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
parser = argparse.ArgumentParser()
parser.add_argument("--sources", default=HERE.parent.parent)
parser.add_argument("--library", default="")
for program in ("cc", "cxx", "nm"):
    parser.add_argument("--" + program, default={"cxx": "c++"}.get(program, program))
parser.add_argument("--store", action="store_true")
ARGUMENTS, REST = parser.parse_known_args()

HEADER = pathlib.Path(ARGUMENTS.sources) / "include/foretoken.h"
MAP = pathlib.Path(ARGUMENTS.sources) / "src/capi/foretoken.map"
BASELINE = HERE / "foretoken.abi"
DECLARATION = re.compile(r"FORETOKEN_API\s+([^;]*?\b(foretoken_\w+)\s*\((?:[^()]|\([^()]*\))*\))\s*;")


def run(*command, text=None):
    return subprocess.run([str(part) for part in command], input=text, capture_output=True, text=True, timeout=600, check=False)


def declarations(header):
    """(declaration, name) of each function of the header's text."""
    found = DECLARATION.findall(header)
    names = set(re.findall(r"FORETOKEN_API\s[^;]*?(foretoken_\w+)\s*\(", header))
    assert {name for _, name in found} == names, "a declaration that this test cannot read"
    return found


def describe(header, folder):
    """The binary interface of the header's text as abigail writes it, of a library that has its functions without bodies: the debug
    information of a release says nothing of types."""
    library, described = folder / "libforetoken.so.1", folder / "now.abi"
    (folder / "foretoken.h").write_text(header)
    bodies = "\n".join(f"{declaration} {{ __builtin_trap(); }}" for declaration, _ in declarations(header))
    (folder / "stub.c").write_text(f'#include "foretoken.h"\n{bodies}\n')
    made = run(ARGUMENTS.cc, "-std=gnu99", "-g", "-fPIC", "-shared", "-Wl,-soname,libforetoken.so.1", f"-Wl,--version-script={MAP}",
               folder / "stub.c", "-o", library)
    assert made.returncode == 0, made.stderr
    written = run("abidw", "--no-show-locs", "--no-corpus-path", "--no-comp-dir-path", "--out-file", described, library)
    assert written.returncode == 0, written.stderr
    return described


def difference(header):
    """What abidiff says of the header's text and the stored interface; "" is nothing."""
    with tempfile.TemporaryDirectory() as folder:
        told = run("abidiff", BASELINE, describe(header, pathlib.Path(folder)))
        assert (told.returncode == 0) == (told.stdout + told.stderr == ""), told
        return told.stdout + told.stderr


class Interface(unittest.TestCase):
    def test_the_header_compiles_alone(self):
        text = f'#include "{HEADER}"\n'
        for compiler, language, standard in ((ARGUMENTS.cc, "c", "c99"), (ARGUMENTS.cxx, "c++", "c++11"), (ARGUMENTS.cxx, "c++", "c++20")):
            result = run(compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", language, "-", text=text)
            self.assertEqual((result.returncode, result.stderr), (0, ""), standard)

    def test_the_example_compiles(self):
        source = pathlib.Path(ARGUMENTS.sources) / "examples/c/generate.c"
        result = run(ARGUMENTS.cc, "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", HEADER.parent, source)
        self.assertEqual((result.returncode, result.stderr), (0, ""))

    @unittest.skipUnless(ARGUMENTS.library, "no --library")
    def test_the_library_exports_the_functions_of_the_header_alone(self):
        listed = run(ARGUMENTS.nm, "-D", "--defined-only", "--format=posix", ARGUMENTS.library).stdout.splitlines()
        exported = {line.split("@")[0] for line in listed if line.split()[1] != "A"}
        self.assertEqual(exported, {name for _, name in declarations(HEADER.read_text())})
        self.assertGreater(len(exported), 40)

    @unittest.skipUnless(shutil.which("abidw") and shutil.which("abidiff"), "abigail's tools are not here")
    @unittest.skipUnless(platform.machine() == "x86_64", "the stored interface is that of x86-64")
    def test_the_binary_interface_is_the_stored_one(self):
        text = HEADER.read_text()
        self.assertEqual(difference(text), "", "If programs that were compiled before still work with this, run "
                         "tests/capi/interface_test.py --store; if they do not, it is another library: raise SOVERSION too.")
        for before, after in (("int32_t accepted;", "int64_t accepted;"),  # a member
                              ("stream, int64_t timeout_ms,", "stream, int32_t timeout_ms,"),
                              ("foretoken_engine_stop(", "foretoken_engine_halt(")):
            with self.subTest(after):
                self.assertIn(before, text)
                self.assertNotEqual(difference(text.replace(before, after)), "")


if __name__ == "__main__":
    if ARGUMENTS.store:
        with tempfile.TemporaryDirectory() as scratch:
            BASELINE.write_text(describe(HEADER.read_text(), pathlib.Path(scratch)).read_text())
    else:
        unittest.main(argv=sys.argv[:1] + REST)
