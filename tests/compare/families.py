#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares families of networks with llama.cpp, in several types of weights, and prints a table (Markdown).

  families.py --foretoken BIN --score BIN --llama "PREFIX" --models FOLDER --seen-as FOLDER --make "PROGRAM"
              [--types F32,Q8_0,Q4_K_M] [--shapes 1,2] [--keep] [FAMILY...]

PROGRAM FAMILY OUT.gguf [options] writes a model of that family with random weights in F32; `PREFIX llama-quantize` makes the other types of
it. PREFIX and --seen-as are those of generation.py, which says what is compared. Without a family, all of FAMILIES are compared. Exit code 1
where a bound is broken.

llama.cpp rounds GELU to F16, so mixtures of gemma4 break the bounds with some seeds (gelu.py tells more); they do not with a PREFIX that ends with
`env LD_PRELOAD=FOLDER/exact_gelu.so`, made of exact_gelu.c and seen there by llama.cpp.

The bounds are those of generation.py; the distances that it measures for types with rounded activations are `rounding` in the table: the mean
of llama.cpp's and of ours, then the largest.
"""
import argparse
import os
import shlex
import subprocess
import sys

import generation

# Options of PROGRAM for the two shapes of each family, if they are not DEFAULT. Windows are shorter than the texts.
DEFAULT = ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --ff 768 --window 48")
EXPERTS = ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --experts 23 --experts-used 5 --expert-ff 256 --shared-ff 512 --window 48")
FAMILIES = {
    "gemma2": DEFAULT,
    "gemma3": ("--seed 1", "--seed 2 --dim 512 --heads 4 --kv-heads 2 --ff 768 --layers 7 --window 48"),
    "gemma4": ("--seed 1", "--seed 2 --dim 512 --heads 4 --kv-heads 2 --head-dim 64 --ff 768 --layers 6 --window 48"),
    "gemma4-e": ("--seed 1", "--seed 2 --dim 512 --heads 4 --kv-heads 2 --head-dim 64 --ff 768 --window 48"),
    "gemma4-moe": ("--seed 1", "--seed 2 --dim 512 --heads 4 --kv-heads 2 --head-dim 64 --ff 768 --layers 6 --experts 23 --experts-used 5 "
                   "--expert-ff 256 --window 48"),
    "phi3": DEFAULT,
    "mistral3": DEFAULT,
    "smollm3": DEFAULT,
    "granite": DEFAULT,
    "olmo2": DEFAULT,
    "olmo3": DEFAULT,
    "glm4": DEFAULT,
    "seed_oss": DEFAULT,
    "exaone4": DEFAULT,
    "exaone4-swa": ("--seed 1 --dim 256 --heads 4", "--seed 2 --dim 256 --heads 8 --kv-heads 4 --ff 256 --window 48"),
    "ernie4_5": DEFAULT,
    "qwen3moe": EXPERTS,
    "mixtral": EXPERTS,
    "qwen2moe": EXPERTS,
    "granitemoe": EXPERTS,
    "glm4moe": EXPERTS,
    "gpt-oss": EXPERTS,
    "qwen35": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 2 --ff 768 --state 64 --k-heads 2 --v-heads 6"),
    "qwen35moe": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 2 --experts 23 --experts-used 5 --expert-ff 256 --shared-ff 512"),
    "qwen3next": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 2 --experts 23 --experts-used 5 --expert-ff 256 --shared-ff 512 "
                  "--k-heads 2 --v-heads 8"),
    "granitehybrid": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --experts 23 --experts-used 5 --expert-ff 256 --shared-ff 512 "
                      "--v-heads 16"),
    "nemotron_h": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --ff 768 --v-heads 16"),
    "nemotron_h_moe": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --experts 23 --experts-used 5 --expert-ff 256 --shared-ff 512 "
                       "--v-heads 16"),
    "falcon-h1": ("--seed 1", "--seed 2 --dim 512 --heads 8 --kv-heads 4 --ff 768 --v-heads 16"),
    "lfm2": DEFAULT,
    "lfm2moe": EXPERTS,
    "gpt-oss, experts of the other matrices' type": tuple(
        options.replace("--seed 2", "--seed 4") + " --experts-type same" for options in EXPERTS),
    # Groups of experts must be of one size.
    "deepseek2": ("--seed 3", "--seed 2 --dim 512 --heads 12 --head-dim 80 --experts 24 --experts-used 5 --expert-ff 256"),
}
# Contexts, where they are not just the usual one: a longer one makes phi3 use its factors for long texts.
USUAL_CONTEXT = 256
CONTEXTS = {"phi3": (256, 512)}
# Types that take the place of --types: those in which the family's files come.
TYPES = {"gpt-oss": "F32"}  # its experts are MXFP4


def compare_family(args, family):
    """Prints a row for each shape, type and context. Returns whether all bounds hold."""
    all_good = True
    for shape in map(int, args.shapes.split(",")):
        options = FAMILIES.get(family, DEFAULT)[shape - 1]
        arch = family.split(",")[0]  # the words behind it say what is special in the files
        source = os.path.join(args.models, "%s-%d.gguf" % (arch, shape))
        done = subprocess.run(shlex.split(args.make) + [arch, source] + options.split(), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit("%s %s: %s" % (args.make, arch, done.stderr))
        for kind in (TYPES.get(family) or args.types).split(","):
            model = source if kind == "F32" else generation.quantise(args.llama, args.seen_as, source, kind)
            for context in CONTEXTS.get(family, (USUAL_CONTEXT,)):
                programs = generation.Programs(args.foretoken, args.score, context)
                good, _, greedy, logprobs, words = generation.compare(args.llama, args.seen_as, args.port, programs, model)
                name = family if context == USUAL_CONTEXT else "%s, context %d" % (family, context)
                print("| %s | %d | %s | %d of 5 texts equal: %s | %d tokens, mean %.4f, largest %.4f%s | %s |" % (
                    name, shape, kind, 5 - greedy[1], greedy[2], *logprobs[1:], words,
                    "ok" if good else "**BAD**"), flush=True)
                all_good = all_good and good
            if model != source and not args.keep:
                os.remove(model)
        if not args.keep:
            os.remove(source)
    return all_good


def main():
    parser = argparse.ArgumentParser()
    generation.add_arguments(parser)
    parser.add_argument("--models", required=True)
    parser.add_argument("--make", required=True)
    parser.add_argument("--types", default="F32,Q8_0,Q4_K_M")
    parser.add_argument("--shapes", default="1,2")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("families", nargs="*")
    args = parser.parse_args()
    print("| family | shape | type | greedy | log-probabilities | |\n|---|---|---|---|---|---|", flush=True)
    results = [compare_family(args, family) for family in args.families or FAMILIES]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
