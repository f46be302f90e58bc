#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bounds text lookup on the friendly cases of never_slower.py: how many tokens a round could give, whatever the machine and the controller.

  lookup_bound.py --foretoken build/release/foretoken --bundled models [--models FOLDER] [--only WORD] [--tokens 160]

Each text is generated greedily, then walked as lookup would: a draft of at most K tokens by the longest match of its end (n-grams of 3 tokens down to
1, compared up to 16 tokens back), cut where it stops being right, as only a controller that knew the text could. The table shows tokens per target
pass of that walk, the share of passes with any right draft, and the speed over plain decoding where a pass of r rows costs what --costs says
(default: nothing more than one row, so speed = tokens per pass).
"""
import argparse
import collections
import json
import os
import subprocess
import sys

import never_slower

MATCH, OCCURRENCES = 16, 32


class Lookup:
    def __init__(self):
        self.text, self.ends = [], [collections.defaultdict(list) for _ in range(4)]

    def add(self, token):
        self.text.append(token)
        for n in (1, 2, 3):
            if len(self.text) >= n:
                self.ends[n][tuple(self.text[-n:])].append(len(self.text) - 1)

    def next(self, context):
        for n in (3, 2, 1):
            ends = [e for e in self.ends[n].get(tuple(context[-n:]), []) if e + 1 < len(self.text)][-OCCURRENCES:]
            votes = {}
            for age, end in enumerate(reversed(ends)):
                matched = n
                while matched < min(MATCH, len(context), end + 1) and self.text[end - matched] == context[-1 - matched]:
                    matched += 1
                vote = votes.setdefault(self.text[end + 1], [0, 0, -age])
                vote[0], vote[1] = max(vote[0], matched), vote[1] + 1
            if votes:
                return max(votes, key=lambda token: votes[token])
        return None


def generated(a, model, prompt):
    done = subprocess.run([a.foretoken, "generate", "-m", model, "--spec-type", "ngram", "-n", str(a.tokens), "--ignore-eos", "--temp", "0", "-p", prompt,
                           "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"lookup_bound: {done.stderr.strip()}")
    reply = json.loads(done.stdout)
    return reply["prompt_token_ids"], reply["token_ids"]


def walk(prompt, text, most, cost):
    """(passes, passes with a right draft, cost) of all tokens but the first, which the prompt gives."""
    lookup = Lookup()
    for token in prompt + text[:1]:
        lookup.add(token)
    at, passes, drafted, spent = 1, 0, 0, 0.0
    while at < len(text):
        context, right = list(lookup.text[-MATCH:]), 0
        while right < min(most, len(text) - at - 1) and lookup.next(context) == text[at + right]:
            context.append(text[at + right])
            right += 1
        k = max(range(right + 1), key=lambda k: (k + 1) / cost(1 + k))
        passes, drafted, spent = passes + 1, drafted + (k > 0), spent + cost(1 + k)
        for token in text[at:at + k + 1]:
            lookup.add(token)
        at += k + 1
    return passes, drafted, spent


def cost_of(text):
    points = sorted((int(rows), float(over)) for rows, over in (part.split(":") for part in text.split(",") if part))
    points = points or [(1, 1.0)]

    def cost(rows):
        below = [p for p in points if p[0] <= rows][-1:] or points[:1]
        above = [p for p in points if p[0] > rows][:1] or below
        (r0, c0), (r1, c1) = below[0], above[0]
        return c0 if r1 == r0 else c0 + (c1 - c0) * (rows - r0) / (r1 - r0)
    return cost


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--bundled", required=True)
    p.add_argument("--models", default="")
    p.add_argument("--only", default="")
    p.add_argument("--tokens", type=int, default=160)
    p.add_argument("--costs", default="", help="rows:over-one-row, such as 1:1,4:1.05,8:1.6,16:2.2")
    a = p.parse_args()
    cost = cost_of(a.costs)
    print("| case | K | tokens per pass at most | passes with a right draft | over plain at most |\n|---|---|---|---|---|")
    for name, arguments, prompts in never_slower.cases(a)[1]:
        model = arguments[1]
        if "ngram" not in name or a.only not in name or not os.path.exists(model):
            continue
        texts = [generated(a, model, prompt) for prompt in prompts]
        for most in (8, 16):
            walks = [walk(prompt, text, most, cost) for prompt, text in texts]
            tokens = sum(len(text) - 1 for _, text in texts)
            passes, drafted, spent = (sum(w[i] for w in walks) for i in range(3))
            print(f"| {name} | {most} | {tokens / passes:.2f} | {drafted / passes:.2f} | {tokens / spent:.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
