#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is the default controller as fast as the best fixed draft length, at every start?

  best_length.py --foretoken build/release/foretoken --bundled models [--models FOLDER] [--starts 10] [--repeats 3] [--lengths 1,2,3,4,5,6,8] [--threads 1,2]
                 [--busy 0] [--only WORD] [--json FILE]

For each case `foretoken bench` is started anew --starts times, each time with the default controller and with every fixed length in turn, all of them
with one seed, which is another one for each start. A figure is the speed-up over plain decoding that one start measured (plain and with drafts in turn, in
one process; the median of --repeats). The best fixed length is the one with the largest median. A row shows it (least-most), the default's median, and
the default's median and least start as ratios to the best fixed median. As a control, an engine that has the drafter and never drafts is started as often:
it should show 1.00, and how far its starts scatter is what the machine does, not the controller. "By its rounds" takes the machine out: the rounds that all
starts recorded are timed by one table of medians, told in plain passes of their own process (timed_rounds.py), so starts differ only by the lengths that
they chose; at a set rate of acceptance a round brings the tokens that are expected of it. The reference is again the best fixed length, or plain decoding.
--busy N runs N endless loops beside everything. FOLDER may hold t1b-Q8_0.gguf and d100m-Q8_0.gguf (random weights of the shapes of a 1B model and
a 100M draft; each draft is accepted with a set probability, whatever the length), and qwen3moe-Q4_0.gguf with d18m-Q8_0.gguf (a mixture
of experts). Cases without their files are left out, and named.

Exit code 1 where a median is below 0.97 of the best fixed length or of plain decoding, or a start below 0.93, by the clock.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from never_slower import CODE, COPY_EDIT, JSON as JSON_TEXTS
import measured
import timed_rounds

MEDIAN, WORST = 0.97, 0.93
DEFAULT, NEVER = None, 0  # in place of a draft length


def cases(a):
    bundled = lambda name: os.path.join(a.bundled, name)
    inside = lambda name: os.path.join(a.models or "", name)
    target, greedy = ["-m", bundled("tales-9m-q8_0.gguf")], ["--temp", "0"]
    random = ["--max-prompts", "2", "--ignore-eos", "-c", "512", "--synthetic-acceptance-each", "--synthetic-acceptance-rate"]
    large = ["-m", inside("t1b-Q8_0.gguf"), "-md", inside("d100m-Q8_0.gguf"), "-n", "96", *random]
    mixture = ["-m", inside("qwen3moe-Q4_0.gguf"), "-md", inside("d18m-Q8_0.gguf"), "-n", "256", *random]
    lookup = [*target, "--spec-type", "ngram", "-n", "200", "--ignore-eos", *greedy]
    found = [("bundled draft model", [*target, "-md", bundled("tales-1m-draft-q8_0.gguf"), *greedy], None),
             ("bundled EAGLE-3 head", [*target, "-md", bundled("tales-9m-eagle-q8_0.gguf"), *greedy], None),
             ("bundled MTP head", [*target, "-md", bundled("tales-9m-mtp-q8_0.gguf"), *greedy], None),
             ("lookup, copy-edit", lookup, COPY_EDIT), ("lookup, code", lookup, CODE), ("lookup, JSON", lookup, JSON_TEXTS)]
    for rate in ("0.5", "0.7", "0.9"):
        found.append((f"1B shape, {rate} accepted", [*large, rate], None))
    found.append(("mixture of experts, 0.7", [*mixture, "0.7"], None))
    return found


def missing(flags):
    return [word for word in flags if word.endswith(".gguf") and not os.path.exists(word)]


def one_start(a, flags, threads, length, start, trace):
    """The speed-up and the rounds of a start with the default controller, never drafting, or with a fixed length."""
    if length == DEFAULT:
        controller = []
    elif length == NEVER:
        # A table that drafts nothing at all would leave bench without speculative runs.
        controller = ["--lookahead", "batch-size", "--num-speculative-tokens-per-batch-size", "1-63:0,64-64:1"]
    else:
        controller = ["--lookahead", "fixed", "--num-speculative-tokens", str(length)]
    command = [a.foretoken, "bench", *flags, *controller, "-t", str(threads), "--seed", str(start + 1), "--repeats", str(a.repeats), "--rows", "1",
               "--contexts", "0", "--json", "-q", "--record", trace]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr.decode(errors="replace")))
    return json.loads(done.stdout)["speedup"], timed_rounds.rounds(trace)


def by_rounds(rounds, rate):
    """The default's median and least start over the best fixed length or plain decoding, all rounds timed by one table. {length: each start's rounds}."""
    times = timed_rounds.Times([one for starts in rounds.values() for start in starts for one in start])
    speedups = {length: [times.speedup(start, rate) for start in starts] for length, starts in rounds.items() if length != NEVER}
    reference = max(1.0, *(statistics.median(speedups[length]) for length in speedups if length != DEFAULT))
    return {"rounds_default": statistics.median(speedups[DEFAULT]), "rounds_reference": reference,
            "rounds_median_ratio": statistics.median(speedups[DEFAULT]) / reference, "rounds_worst_ratio": min(speedups[DEFAULT]) / reference}


def set_rate(flags):
    option = "--synthetic-acceptance-rate"
    return float(flags[flags.index(option) + 1]) if option in flags else None


def measure(a, flags, threads, folder):
    lengths = [DEFAULT, NEVER, *a.lengths]
    runs, rounds = {length: [] for length in lengths}, {length: [] for length in lengths}
    for start in range(a.starts):
        for length in lengths[start % len(lengths):] + lengths[:start % len(lengths)]:
            speedup, made = one_start(a, flags, threads, length, start, os.path.join(folder, "trace.jsonl"))
            runs[length].append(speedup)
            rounds[length].append(made)
    best = max(a.lengths, key=lambda length: statistics.median(runs[length]))
    reference = max(1.0, statistics.median(runs[best]))
    default, never = sorted(runs[DEFAULT]), sorted(runs[NEVER])
    return {"never": statistics.median(never), "never_least": never[0], "never_most": never[-1], "best_k": best,
            "best_fixed": statistics.median(runs[best]), "best_least": min(runs[best]), "best_most": max(runs[best]), "default": statistics.median(default), "least": default[0],
            "most": default[-1], "median_ratio": statistics.median(default) / reference, "worst_ratio": default[0] / reference,
            "fixed": {str(length): statistics.median(runs[length]) for length in a.lengths}, **by_rounds(rounds, set_rate(flags))}


def with_prompts(flags, texts, folder):
    if texts is None:
        return flags
    path = os.path.join(folder, "prompts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"prompt": text}) + "\n" for text in texts)
    return [*flags, "--prompts", path]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--bundled", required=True)
    parser.add_argument("--models")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--lengths", type=numbers, default=[1, 2, 3, 4, 5, 6, 8])
    parser.add_argument("--threads", type=numbers, default=[1, 2])
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    return parser.parse_args()


def main():
    a = arguments()
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(a.busy)]
    rows, failed = [], False
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, flags, texts in cases(a):
                if a.only not in name:
                    continue
                if missing(flags):
                    print("%-26s left out: no %s" % (name, ", ".join(missing(flags))))
                    continue
                for threads in a.threads:
                    row = measure(a, with_prompts(flags, texts, folder), threads, folder)
                    rows.append({"case": name, "threads": threads, **row})
                    good = row["median_ratio"] >= MEDIAN and row["worst_ratio"] >= WORST
                    failed |= not good
                    print("%-26s %d thread%s never %.2f (%.2f-%.2f); best fixed K %d %.2f (%.2f-%.2f); default %.2f (%.2f-%.2f); %.3f of it, worst %.3f; "
                          "by its rounds %.3f, worst %.3f%s" % (
                        name, threads, "s" if threads > 1 else " ", row["never"], row["never_least"], row["never_most"], row["best_k"],
                        row["best_fixed"], row["best_least"], row["best_most"], row["default"], row["least"], row["most"], row["median_ratio"], row["worst_ratio"],
                        row["rounds_median_ratio"], row["rounds_worst_ratio"], "" if good else "  BELOW"), flush=True)
    finally:
        for loop in loops:
            loop.kill()
    if a.json:
        measured.write(a.json, {"rows": rows})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
