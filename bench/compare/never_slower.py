#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is speculation under the default controller ever slower than plain decoding, and does it gain where it should?

  never_slower.py --foretoken build/release/foretoken --bundled models [--models FOLDER] [--repeats 9] [--only WORD] [--threads 1]

Runs `foretoken bench` for each case: plain and speculative decoding of the same prompts in turn, in one process; the ratio of each pair of runs is
the figure, the table shows the median (least-most) of the repeats. FOLDER may hold tiny1m-F32.gguf, stories260K.gguf (a small real pair) and
t1b-Q8_0.gguf, d100m-Q8_0.gguf (random weights: drafts that are never right); qwen3moe-Q4_0.gguf, gpt-oss-MXFP4.gguf and d18m-Q8_0.gguf (mixtures of
experts and a draft model, random weights, one vocabulary). Cases without their files are left out, and named. For mixtures the last column has the
distinct experts of a layer, by the rows of a pass, in these texts.

Adversarial cases must not fall below 0.97 (median over cases) and 0.93 (each); friendly ones must reach 1.5 with text lookup alone. Exit code 1 where
they do not.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

PROSE = [
    "Once upon a time, there was a little girl who lived by the sea. Every morning she walked down to the harbour and",
    "It was a dark night, and the wind blew through the trees. Nobody saw the two men who",
    "Tom and his sister went to the park to play with the big red ball. When they got there,",
]
ARTICLE = ("The old mill stood at the end of the lane. It had not turned for twenty years. The miller's son came home in the spring, and he "
           "cleaned the wheel, mended the roof and bought new stones. In June the first flour was ground. People came from the whole valley "
           "to see it, and everyone took a small bag of flour home. ")
COPY_EDIT = ["Text:\n" + ARTICLE + "\nThe same text, with spelling corrected:\nThe old mill stood at the end of the lane. It had not turned for",
             "Repeat this story word for word.\nStory: " + ARTICLE * 2 + "\nStory: The old mill stood at"]
CODE = ["""struct Point { float x, y; };
float Dot(Point a, Point b) { return a.x * b.x + a.y * b.y; }
Point Add(Point a, Point b) { return {a.x + b.x, a.y + b.y}; }
Point Sub(Point a, Point b) { return {a.x - b.x, a.y - b.y}; }
Point Mul(Point a, Point b) { return {a.x * b.x, a.y * b.y}; }
Point Div(Point a, Point b) { return {a.x / b.x, a.y /""",
        "for i in range(10):\n    total += values[i]\nfor j in range(10):\n    total += values[j]\nfor k in range(10):\n    total += values["]
JSON = ['[{"id": 1, "name": "apple", "price": 10}, {"id": 2, "name": "pear", "price": 20}, {"id": 3, "name": "plum", "price": 30}, {"id": 4, '
        '"name": "fig", "price":',
        '{"users": [{"user": "ann", "active": true, "groups": ["a", "b"]}, {"user": "bob", "active": true, "groups": ["a", "b"]}, {"user": "cid",']


def noise():
    rng = random.Random(7)
    words = ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(2, 9))) for _ in range(400)]
    return [" ".join(rng.choice(words) for _ in range(60)) for _ in range(3)]


def cases(a):
    target, draft = os.path.join(a.bundled, "tales-9m-q8_0.gguf"), os.path.join(a.bundled, "tales-1m-draft-q8_0.gguf")
    inside = lambda name: os.path.join(a.models, name) if a.models else name
    tiny, story = inside("tiny1m-F32.gguf"), inside("stories260K.gguf")
    big, small = inside("t1b-Q8_0.gguf"), inside("d100m-Q8_0.gguf")
    n, lookup = ["-n", "200", "--ignore-eos"], ["--spec-type", "ngram"]
    short = ["-n", "48", "--ignore-eos", "-c", "1024"]
    adversarial = [
        ("random draft model, 1B, T=0", ["-m", big, "-md", small, *short, "--temp", "0"], PROSE[:2]),
        ("random draft model, 1B, T=0.8", ["-m", big, "-md", small, *short, "--temp", "0.8"], PROSE[:2]),
        ("draft as large as the target, 1B", ["-m", big, "-md", big, *short, "--temp", "0"], PROSE[:2]),
        ("draft as large as the target, bundled", ["-m", target, "-md", target, *n, "--temp", "0"], PROSE),
        ("prose, T=1, n-gram, bundled", ["-m", target, *lookup, *n, "--temp", "1"], PROSE),
        ("prose, T=1, suffix, bundled", ["-m", target, "--spec-type", "suffix", *n, "--temp", "1"], PROSE),
        ("prose, T=1, portfolio, bundled", ["-m", target, "-md", draft, "--spec-type", "portfolio", *n, "--temp", "1"], PROSE),
        ("prose, T=1, n-gram, 1B", ["-m", big, *lookup, *short, "--temp", "1"], PROSE[:2]),
        ("random text, n-gram", ["-m", target, *lookup, *n, "--temp", "1"], noise()),
        ("random text, n-gram, tiny1m", ["-m", tiny, *lookup, "-n", "100", "--ignore-eos", "--temp", "1"], [x[:120] for x in noise()]),
        ("K up to 16, bundled pair, T=1", ["-m", target, "-md", draft, *n, "--temp", "1", "--draft-max", "16"], PROSE),
        ("K up to 16, n-gram, T=1", ["-m", target, *lookup, *n, "--temp", "1", "--draft-max", "16"], PROSE),
        ("context nearly full", ["-m", target, "-md", draft, "-n", "200", "--ignore-eos", "-c", "128", "--temp", "1"], PROSE),
        ("small real pair, T=0", ["-m", tiny, "-md", story, *n, "--temp", "0"], PROSE),
        ("small real pair, T=0.8", ["-m", tiny, "-md", story, *n, "--temp", "0.8"], PROSE),
    ]
    # What a large model drafts with if nobody names a drafter; "auto" makes the copy while texts run.
    adversarial += [(f"own copy, 1B, {what}", ["-m", big, *flags, *short], PROSE[:2])
                    for what, flags in [("auto, T=1", ["--temp", "1"]), ("T=0", ["--spec-type", "self,ngram", "--temp", "0"]),
                                        *((f"{rate} accepted", ["--spec-type", "self,ngram", "--temp", "0", "--synthetic-acceptance-rate", rate])
                                          for rate in ("0.1", "0.3"))]]
    # Small models lie in the caches, where a copy of fewer bits is hardly faster. Nobody gets one there unasked.
    adversarial += [(f"own copy, {name}, T={t}", [*flags, *methods, *n, "--temp", t], PROSE)
                    for name, flags, methods in [("bundled", ["-m", target], ["--spec-type", "self,ngram"]),
                                                 ("bundled pair", ["-m", target, "-md", draft], ["--spec-type", "standalone,self"]),
                                                 ("tiny1m", ["-m", tiny], ["--spec-type", "self,ngram"]),
                                                 ("stories260K", ["-m", story], ["--spec-type", "self,ngram"])]
                    for t in ("0", "1")]
    # Where a share of the drafts is accepted at random, a pass of a mixture costs more by each draft.
    mixtures = [("Q4_0", inside("qwen3moe-Q4_0.gguf")), ("MXFP4", inside("gpt-oss-MXFP4.gguf"))]
    drafted = ["-md", inside("d18m-Q8_0.gguf")]
    adversarial += [(f"mixture {name}, {what}", ["-m", model, *flags, *short], PROSE[:2])
                    for name, model in mixtures
                    for what, flags in [("n-gram, T=0", [*lookup, "--temp", "0"]), ("n-gram, T=1", [*lookup, "--temp", "1"]),
                                        ("all lookups, T=0", ["--spec-type", "portfolio", "--temp", "0"]),
                                        ("own copy, T=0", ["--spec-type", "self", "--temp", "0"]),
                                        ("own copy, 0.3 accepted", ["--spec-type", "self", "--temp", "0", "--synthetic-acceptance-rate", "0.3"]),
                                        ("random draft model, T=0", [*drafted, "--temp", "0"]),
                                        ("random draft model, T=0.8", [*drafted, "--temp", "0.8"]),
                                        *((f"draft model, {rate} accepted", [*drafted, "--temp", "0", "--synthetic-acceptance-rate", rate])
                                          for rate in ("0.3", "0.6"))]]
    friendly = [(f"{what}, {kind}, {name}", ["-m", model, "--spec-type", kind, "-n", "160", "--ignore-eos", "--temp", "0"], prompts)
                for what, prompts in (("copy-edit", COPY_EDIT), ("code", CODE), ("repeated JSON", JSON))
                for kind in ("ngram", "suffix")
                for name, model in (("bundled", target), ("1B", big))]
    return adversarial, friendly


def measure(a, arguments, prompts):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        for prompt in prompts:
            file.write(json.dumps({"prompt": prompt}) + "\n")
    try:
        done = subprocess.run([a.foretoken, "bench", "--json", "--prompts", file.name, "--repeats", str(a.repeats), "--rows", "1,2", "--contexts", "0",
                               "-t", str(a.threads), *arguments, *a.more], capture_output=True, text=True)
        if done.returncode not in (0, 1) or not done.stdout:
            sys.exit(f"never_slower: {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)
    finally:
        os.unlink(file.name)


def table(a, title, rows):
    print(f"\n| {title} | over plain | K | length | plain tokens/s | experts by rows |\n|---|---|---|---|---|---|", flush=True)
    medians = []
    for name, arguments, prompts in rows:
        missing = [x for x in arguments if x.endswith(".gguf") and not os.path.exists(x)]
        if a.only not in name or missing:
            if missing and a.only in name:
                print(f"never_slower: left out: {name}: no {missing[0]}", file=sys.stderr)
            continue
        result = measure(a, arguments, prompts)
        ratio, s = result["batches"][0], result["speculative"]
        middle, low, high = ratio["speedup"], ratio["speedup_min"], ratio["speedup_max"]
        medians.append(middle)
        length = s.get("mean_acceptance_length")
        experts = (result.get("experts") or {}).get("distinct_decoding", {})
        print(f"| {name} | {middle:.3f} ({low:.2f}-{high:.2f}) | {s.get('k')} | {'-' if length is None else format(length, '.2f')} "
              f"| {result['plain']['tokens_per_second']:.0f} | {', '.join(f'{rows}: {n:.1f}' for rows, n in experts.items()) or '-'} |", flush=True)
    return medians


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--bundled", required=True)
    p.add_argument("--models", default="")
    p.add_argument("--repeats", type=int, default=9)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--only", default="", help="cases whose name holds this")
    p.add_argument("--suite", choices=["both", "adversarial", "friendly"], default="both")
    p.add_argument("more", nargs="*", help="after --: flags for every run")
    a = p.parse_args()
    adversarial, friendly = cases(a)
    failed = False
    if a.suite != "friendly":
        medians = table(a, "adversarial", adversarial)
        if medians:
            print(f"\nmedian {statistics.median(medians):.3f}, least {min(medians):.3f}")
            failed |= statistics.median(medians) < 0.97 or min(medians) < 0.93
    if a.suite != "adversarial":
        medians = table(a, "friendly", friendly)
        if medians:
            print(f"\nmedian {statistics.median(medians):.3f}, least {min(medians):.3f}")
            failed |= min(medians) < 1.5
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
