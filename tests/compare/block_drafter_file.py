#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a DFlash file into a DFlash 2 or a DSpark file: it gets the keys and tensors that these have beside those of DFlash, with random numbers.

  block_drafter_file.py DFLASH.gguf OUT.gguf --kind dflash2 [--taps 2] [--group 16] [--rank 32] [--top 8]
  block_drafter_file.py DFLASH.gguf OUT.gguf --kind dspark [--rank 32]

Both llama.cpp and foretoken load the result, so acceptance.py compares them on it.
"""
import argparse
import array
import math
import random
import struct

ARRAY, STRING = 9, 8
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by its type
F32 = 0


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


class File:
    """A GGUF file: its keys as they are encoded, integers among them as numbers, and its tensors with their place in the data."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.bytes = file.read()
        self.at, self.keys, self.numbers, self.tensors = 8, [], {}, []
        n_tensors, n_keys = self.number("<Q"), self.number("<Q")
        for _ in range(n_keys):
            begin, name = self.at, self.text()
            self.skip_value(name, self.number("<I"))
            self.keys.append(self.bytes[begin:self.at])
        for _ in range(n_tensors):
            name = self.text()
            shape = [self.number("<Q") for _ in range(self.number("<I"))]
            self.tensors.append((name, shape, self.number("<I"), self.number("<Q")))
        self.data = self.bytes[self.at + -self.at % 32:]

    def number(self, form):
        self.at += struct.calcsize(form)
        return struct.unpack_from(form, self.bytes, self.at - struct.calcsize(form))[0]

    def text(self):
        n = self.number("<Q")
        self.at += n
        return self.bytes[self.at - n:self.at].decode("utf-8", "replace")

    def skip_value(self, name, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            kind, n = self.number("<I"), self.number("<Q")
            for _ in range(n):
                self.skip_value("", kind)
        else:
            if kind == 4:
                self.numbers[name] = struct.unpack_from("<I", self.bytes, self.at)[0]
            self.at += SIZES[kind]

    def shape(self, name):
        return next((shape for tensor, shape, _, _ in self.tensors if tensor == name), None)

    def set(self, name, value):
        self.keys.append(string(name) + struct.pack("<II", 4, value))

    def add(self, name, shape, spread, seed, means=(0,)):
        """Normal numbers. The rows along the first dimension take turns with the means."""
        numbers, rows = random.Random("%s %d" % (name, seed)), math.prod(shape[1:])
        self.tensors.append((name, shape, F32, len(self.data)))
        values = array.array("f", (numbers.gauss(means[row % len(means)], spread) for row in range(rows) for _ in range(shape[0]))).tobytes()
        self.data += values + b"\0" * (-len(values) % 32)

    def write(self, path):
        with open(path, "wb") as file:
            file.write(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)) + b"".join(self.keys))
            for name, shape, kind, offset in self.tensors:
                file.write(string(name) + struct.pack("<I%dQIQ" % len(shape), len(shape), *shape, kind, offset))
            file.write(b"\0" * (-file.tell() % 32) + self.data)


def add_dflash2(file, args, width, tokens):
    for key, value in (("conv_kernel_size", args.taps), ("conv_group_size", args.group), ("selector_rank", args.rank),
                       ("selector_top_k", args.top)):
        file.set("dflash." + key, value)
    for block in range(file.numbers["dflash.block_count"]):
        for part in ("attn", "ffn"):
            name = "blk.%d.%s_conv" % (block, part)
            file.add(name + "_base", [width, args.taps, 2], 0.3 * args.spread, args.seed, [1] + (args.taps - 1) * [0])
            file.add(name + "_proj.weight", [width, 2 * args.taps * (width // args.group)], 0.3 * args.spread / width**0.5, args.seed)
    file.add("selector_predecessor.weight", [args.rank, tokens], 1, args.seed)
    file.add("selector_successor.weight", [args.rank, tokens], 1, args.seed)
    file.add("selector_hidden.weight", [width, args.rank], args.spread / (width * args.rank)**0.5, args.seed)


def add_dspark(file, args, width, tokens):
    file.add("markov_w1.weight", [args.rank, tokens], 1, args.seed)
    file.add("markov_w2.weight", [args.rank, tokens], args.spread / args.rank**0.5, args.seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dflash")
    parser.add_argument("out")
    parser.add_argument("--kind", choices=["dflash2", "dspark"], required=True)
    parser.add_argument("--taps", type=int, default=2)
    parser.add_argument("--group", type=int, default=16)
    parser.add_argument("--rank", type=int, default=32)
    parser.add_argument("--top", type=int, default=8)
    parser.add_argument("--spread", type=float, default=1, help="of what is added to DFlash, roughly by its effect")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    file = File(args.dflash)
    width = file.numbers["dflash.embedding_length"]
    (add_dflash2 if args.kind == "dflash2" else add_dspark)(file, args, width, file.numbers["dflash.vocab_size"])
    file.write(args.out)


if __name__ == "__main__":
    main()
