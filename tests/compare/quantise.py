#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the files that `foretoken quantize` writes with those of llama.cpp's llama-quantize, tensor by tensor.

  quantise.py FORETOKEN "LLAMA_PREFIX" MODEL.gguf [--types Q4_K_M,Q8_0] [--pure] [--folder FOLDER] [--peer-folder FROM=TO]
              [--threads 2] [--tolerance 0.01]

FORETOKEN is the foretoken program. LLAMA_PREFIX is put before the names of llama.cpp's programs ("" where they are in PATH; for
example "chroot /srv/peer"). MODEL is an F32, F16 or BF16 file. Files are written below FOLDER (default: the model's folder) and
removed again; --peer-folder tells how llama.cpp sees it, where that differs.

For each type both programs quantise MODEL. Compared are the number type of every tensor, and the root of the mean squared error
against MODEL over all tensors of a number type: ours may differ from llama.cpp's by the tolerance. The numbers in the blocks are
those that llama.cpp reads: it expands both files to F32. Exit code 1 on a difference.
"""
import argparse
import array
import math
import os
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from gguf_file import GgufFile  # noqa: E402

TYPES = "F32 F16 BF16 Q8_0 Q6_K Q5_K_M Q5_K_S Q5_1 Q5_0 Q4_K_M Q4_K_S Q4_1 Q4_0 IQ4_NL IQ4_XS MXFP4_MOE Q3_K_L Q3_K_M Q3_K_S Q2_K".split()
NAMES = {0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 30: "BF16", 10: "Q2_K", 11: "Q3_K", 20: "IQ4_NL", 23: "IQ4_XS", 39: "MXFP4"}
PIECE = 1 << 20  # values compared at once


class Gguf(GgufFile):
    """types: the tensors as {name: (type, number of values, offset in the file)}."""

    def __init__(self, path):
        super().__init__(path)
        self.types = {name: (NAMES.get(kind, str(kind)), math.prod(shape), self.begin + offset) for name, shape, kind, offset in self.tensors}

    def floats(self, name, first, count):
        """Values of an F32 tensor."""
        kind, _, offset = self.types[name]
        assert kind == "F32", (name, kind)
        values = array.array("f")
        values.frombytes(self.data[offset + 4 * first:offset + 4 * (first + count)])
        return values


def squared_error(a, b, name):
    count = a.types[name][1]
    assert count == b.types[name][1], f"{name}: sizes differ"
    return math.fsum(math.dist(a.floats(name, first, min(PIECE, count - first)), b.floats(name, first, min(PIECE, count - first))) ** 2
                     for first in range(0, count, PIECE))


class Comparison:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.failures = 0
        flags = ["--pure"] if options.pure else []
        self.ours_command = [options.foretoken, "quantize", *flags, "-q", "-t", str(options.threads)]
        self.peer_command = [*shlex.split(options.llama_prefix), "llama-quantize", *flags]
        self.source = self.expand(options.model, "source.gguf")

    def path(self, name):
        return os.path.join(self.folder, name)

    def seen_by_peer(self, path):
        if self.options.peer_folder:
            own, theirs = self.options.peer_folder.split("=")
            path = os.path.abspath(path)
            assert path.startswith(own), f"{path}: not below {own}"
            path = theirs + path[len(own):]
        return path

    def peer(self, source, target, kind, *flags):
        command = [*self.peer_command, *flags, self.seen_by_peer(source), self.seen_by_peer(target), kind, str(self.options.threads)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{shlex.join(command)}: {done.stderr[-2000:]}")

    def expand(self, path, name):
        """The file as F32 numbers, as llama.cpp reads it."""
        target = self.path(name)
        self.peer(path, target, "F32", "--allow-requantize")
        return Gguf(target)

    def compare(self, kind):
        ours_path, theirs_path = self.path("ours.gguf"), self.path("theirs.gguf")
        subprocess.run([*self.ours_command, self.options.model, ours_path, kind], check=True)
        self.peer(self.options.model, theirs_path, kind)
        ours, theirs = Gguf(ours_path), Gguf(theirs_path)
        if {n: t[:2] for n, t in ours.types.items()} != {n: t[:2] for n, t in theirs.types.items()}:
            self.failures += 1
            for name in sorted(set(ours.types) | set(theirs.types)):
                a, b = ours.types.get(name), theirs.types.get(name)
                if a is None or b is None or a[:2] != b[:2]:
                    print(f"{kind:8} {name}: ours {a}, llama.cpp's {b}")
            return
        self.compare_errors(kind, ours, self.expand(ours_path, "ours-f32.gguf"), self.expand(theirs_path, "theirs-f32.gguf"))

    def compare_errors(self, kind, types, ours, theirs):
        sums = {}  # by number type: tensors, values, squared errors of ours, of theirs, tensors with equal numbers
        for name, (number_type, count, _) in types.types.items():
            row = sums.setdefault(number_type, [0, 0, 0.0, 0.0])
            row[0] += 1
            row[1] += count
            row[2] += squared_error(self.source, ours, name)
            row[3] += squared_error(self.source, theirs, name)
        for number_type, (tensors, values, our_sum, their_sum) in sorted(sums.items()):
            mine, peers = math.sqrt(our_sum / values), math.sqrt(their_sum / values)
            ratio = mine / peers if peers > 0 else (1.0 if mine == 0 else math.inf)
            good = abs(ratio - 1) <= self.options.tolerance
            self.failures += not good
            print(f"{kind:8} {number_type:6} {tensors:4} tensors  RMSE {mine:.6e}  llama.cpp {peers:.6e}  ratio {ratio:.5f}"
                  f"{'' if good else '  DIFFERS'}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("foretoken")
    parser.add_argument("llama_prefix")
    parser.add_argument("model")
    parser.add_argument("--types", type=lambda text: text.split(","), default=TYPES)
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--folder")
    parser.add_argument("--peer-folder")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tolerance", type=float, default=0.01)
    options = parser.parse_args()
    where = options.folder or os.path.dirname(os.path.abspath(options.model))
    with tempfile.TemporaryDirectory(dir=where, prefix="quantise-") as folder:
        comparison = Comparison(options, folder)
        for kind in options.types:
            comparison.compare(kind)
    print("no difference" if comparison.failures == 0 else f"{comparison.failures} differences")
    return 1 if comparison.failures else 0


if __name__ == "__main__":
    sys.exit(main())
