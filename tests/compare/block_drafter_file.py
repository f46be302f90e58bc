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
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from gguf_file import GgufFile  # noqa: E402


def add(file, name, shape, spread, seed, means=(0,)):
    """Normal numbers. The rows along the first dimension take turns with the means."""
    numbers, rows = random.Random("%s %d" % (name, seed)), math.prod(shape[1:])
    file.add(name, shape, array.array("f", (numbers.gauss(means[row % len(means)], spread) for row in range(rows) for _ in range(shape[0]))).tobytes())


def add_dflash2(file, args, width, tokens):
    for key, value in (("conv_kernel_size", args.taps), ("conv_group_size", args.group), ("selector_rank", args.rank),
                       ("selector_top_k", args.top)):
        file.set("dflash." + key, value)
    for block in range(file.values["dflash.block_count"]):
        for part in ("attn", "ffn"):
            name = "blk.%d.%s_conv" % (block, part)
            add(file, name + "_base", [width, args.taps, 2], 0.3 * args.spread, args.seed, [1] + (args.taps - 1) * [0])
            add(file, name + "_proj.weight", [width, 2 * args.taps * (width // args.group)], 0.3 * args.spread / width**0.5, args.seed)
    add(file, "selector_predecessor.weight", [args.rank, tokens], 1, args.seed)
    add(file, "selector_successor.weight", [args.rank, tokens], 1, args.seed)
    add(file, "selector_hidden.weight", [width, args.rank], args.spread / (width * args.rank)**0.5, args.seed)


def add_dspark(file, args, width, tokens):
    add(file, "markov_w1.weight", [args.rank, tokens], 1, args.seed)
    add(file, "markov_w2.weight", [args.rank, tokens], args.spread / args.rank**0.5, args.seed)


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
    file = GgufFile(args.dflash)
    width = file.values["dflash.embedding_length"]
    (add_dflash2 if args.kind == "dflash2" else add_dspark)(file, args, width, file.values["dflash.vocab_size"])
    file.write(args.out)


if __name__ == "__main__":
    main()
