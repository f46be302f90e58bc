#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares how many drafts of a head are accepted with llama.cpp's number for the same files, and prints a table (Markdown).

  acceptance.py --foretoken BIN --llama "PREFIX" --seen-as FOLDER [--drafts K] [--bound SHARE] TYPE TARGET.gguf[,HEAD.gguf] ...

TYPE is draft-eagle3, draft-mtp or draft-dflash, for the pair behind it (block_drafter_file.py makes DFlash 2 and DSpark files). PREFIX and --seen-as are those of generation.py. Both programs draft K tokens in
every round at temperature 0, with caches in F32, from prompts of random tokens. Texts may part where the target's two best tokens are almost
equally likely; from there on the programs draft for different texts. So the counts of texts that are equal stand beside those of all texts,
and the bound is for them: the shares of accepted drafts may differ by so much. Exit code 1 where one does, or where no text is equal.
"""
import argparse
import json
import os
import random
import subprocess
import sys

import generation

LENGTHS = (3, 5, 9, 14, 17, 25, 33, 40)  # of the prompts, in tokens


def prompts():
    numbers = random.Random(5)
    return [[1] + [numbers.randrange(259, 1020) for _ in range(n)] for n in LENGTHS]


def theirs(server, prompt, n):
    reply = server.post("/completion", {"prompt": prompt, "n_predict": n, "temperature": 0, "ignore_eos": True, "return_tokens": True,
                                        "cache_prompt": False})
    timings = reply["timings"]
    return reply["tokens"], timings.get("draft_n", 0), timings.get("draft_n_accepted", 0)


def ours(args, kind, target, head, prompt):
    command = [args.foretoken, "generate", "-m", target, "-md", head or target, "--spec-type", kind, "--lookahead", "fixed",
               "--num-speculative-tokens", str(args.drafts), "--prompt-tokens", ",".join(map(str, prompt)), "-n", str(args.tokens), "--temp",
               "0", "--ignore-eos", "-t", "1", "-c", str(args.context), "--cache-type-k", "f32", "--cache-type-v", "f32", "--json", "-q"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    reply = json.loads(done.stdout)
    return reply["token_ids"], reply["speculation"]["drafted"], reply["speculation"]["accepted"]


class Counts:
    def __init__(self):
        self.drafted = self.accepted = 0

    def add(self, drafted, accepted):
        self.drafted, self.accepted = self.drafted + drafted, self.accepted + accepted

    def share(self):
        return self.accepted / max(1, self.drafted)

    def __str__(self):
        return "%d of %d (%.1f %%)" % (self.accepted, self.drafted, 100 * self.share())


def compare(args, kind, target, head):
    """Prints a row. Returns whether the bound holds."""
    seen = lambda path: os.path.join(args.seen_as, os.path.basename(path))
    options = ["--spec-type", kind, "--spec-draft-n-max", str(args.drafts), "--draft-p-min", "0", "-ctkd", "f32", "-ctvd", "f32"]
    server = generation.Server(args.llama, seen(target), args.port, args.context, *options, *(["-md", seen(head)] if head else []))
    equal, all_texts, n_equal = (Counts(), Counts()), (Counts(), Counts()), 0
    try:
        for prompt in prompts():
            both = theirs(server, prompt, args.tokens), ours(args, kind, target, head, prompt)
            n_equal += both[0][0] == both[1][0]
            for i, (_, drafted, accepted) in enumerate(both):
                all_texts[i].add(drafted, accepted)
                if both[0][0] == both[1][0]:
                    equal[i].add(drafted, accepted)
    finally:
        server.stop()
    good = n_equal > 0 and abs(equal[0].share() - equal[1].share()) <= args.bound
    print("| %s | %s | %s | %d of %d | %s | %s | %s |" % (os.path.basename(head or target), *all_texts, n_equal, len(LENGTHS), *equal,
                                                          "ok" if good else "**BAD**"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    generation.add_arguments(parser, needed=("foretoken", "llama", "seen-as"))
    parser.add_argument("--drafts", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=120)
    parser.add_argument("--bound", type=float, default=0.02)
    parser.add_argument("pairs", nargs="+")
    args = parser.parse_args()
    print("| head | llama.cpp | foretoken | equal texts | llama.cpp there | foretoken there | |\n|---|---|---|---|---|---|---|", flush=True)
    good = True
    for kind, files in zip(args.pairs[::2], args.pairs[1::2]):
        target, _, head = files.partition(",")
        good = compare(args, kind, target, head) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
