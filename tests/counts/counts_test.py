#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of each kernel under valgrind and compares them with expected.json.

usage: counts_test.py PROGRAM [--update]

PROGRAM is count_kernels. A count may be 5 % off either way; --update writes what was measured. Exit code 77
(skipped): no valgrind, a processor without AVX2, or a build other than g++ 12's at -O3, whose counts differ.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside the sources
import comparison

SKIPPED = 77
TABLES = ("scalar", "avx2")
EXPECTED = pathlib.Path(__file__).resolve().parent / "expected.json"


class Failure(Exception):
    pass


class Skipped(Exception):
    pass


def why_other(build):
    """Why the counts of such a build, "COMPILER: FLAGS", are not those of expected.json; None if they are."""
    compiler, _, flags = build.partition(":")
    unlike = [flag for flag in flags.split() if flag not in ("-O3", "-g", "-g1", "-DNDEBUG")]
    if not compiler.startswith("GNU 12."):
        return f"the counts are those of g++ 12, and this is {compiler}"
    if "-O3" not in flags.split() or unlike:
        return f"the counts are those of -O3 -DNDEBUG alone (Release), and the flags are '{flags.strip()}'"
    return None


def read_dumps(folder, names):
    """Totals of callgrind's files counts.1, counts.2, ..., one for each name in this order."""
    counts = {}
    for number, name in enumerate(names, 1):
        dump = folder / f"counts.{number}"
        totals = re.search(r"^totals: (\d+)", dump.read_text() if dump.exists() else "", re.MULTILINE)
        if not totals or int(totals[1]) == 0:
            raise Failure(f"{name}: valgrind counted nothing; is CountedCall still a function of the program?")
        counts[name] = int(totals[1])
    return counts


def measure(program, table):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/counts", "--toggle-collect=CountedCall",
             "--dump-after=CountedCall", "--compress-strings=no", "-q", program, table],
            capture_output=True, text=True, timeout=900)
        if done.returncode == SKIPPED:
            raise Skipped(done.stderr.strip())
        if done.returncode != 0:
            raise Failure(f"{table}: exit code {done.returncode}:\n{done.stderr}")
        return read_dumps(pathlib.Path(folder), done.stdout.splitlines())


def compare(measured):
    expected = json.loads(EXPECTED.read_text())
    lines = [line for table in TABLES for line in comparison.complaints(table, expected[table], measured[table])]
    if not comparison.complaints("control", expected["avx2"], measured["scalar"]):
        lines.append("control: the counts of scalar pass for those of avx2: what is counted is not the kernels")
    return lines


def run(arguments):
    if shutil.which("valgrind") is None:
        raise Skipped("valgrind is not installed")
    program = str(pathlib.Path(arguments.program).resolve())
    other = why_other(subprocess.run([program, "build"], capture_output=True, text=True, check=True).stdout)
    if other:
        raise Skipped(other)
    measured = {table: measure(program, table) for table in TABLES}
    if arguments.update:
        EXPECTED.write_text(json.dumps(measured, indent=2) + "\n")
        return []
    return compare(measured)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--update", action="store_true")
    try:
        lines = run(parser.parse_args())
    except Skipped as why:
        print(f"skipped: {why}")
        return SKIPPED
    except Failure as why:
        lines = [str(why)]
    print("\n".join(lines) or "all counts are as expected")
    if lines:
        print(f"update: python3 {' '.join(sys.argv)} --update")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
