#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster is speculative decoding than plain decoding, by the acceptance of the drafts and by K?

  speedup.py --foretoken build/release/foretoken -m TARGET.gguf -md DRAFT.gguf [--rates 0.2,0.4,0.6,0.8,0.95] [-k 1,2,4,8] [-n 48]
             [--repeats 3] [--threads 2] [--json FILE]

Drafts are accepted at random: each with the probability RATE, up to the first one that fails (synthetic acceptance). So models with random weights can
be measured, and the acceptance is known. Each point runs `foretoken bench` with K drafts in every round. It decodes the same prompts plainly and
speculatively in turn, in one process; the figure is the ratio of neighbouring runs. The table shows medians (least to most).
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

import measured

PROMPTS = ["Once upon a time, there was a little girl who lived by the sea. Every morning she walked down to the harbour and",
           "It was a dark night, and the wind blew through the trees. Nobody saw the two men who"]


def mean_of(rate, k):
    """The share of k drafts that is accepted on average, where each is accepted with `rate` if the one before it was."""
    return sum(rate ** i for i in range(1, k + 1)) / k


def bench(args, k, flags, prompts):
    command = [args.foretoken, "bench", "--json", "-q", "-m", args.model, "-md", args.draft, "--prompts", prompts, "-n", str(args.n), "--ignore-eos",
               "--repeats", str(args.repeats), "--rows", "1", "--contexts", "0", "-t", str(args.threads), "-c", "512", "--temp", "0",
               "--num-speculative-tokens", str(k), *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit("speedup.py: " + done.stderr)
    reply = json.loads(done.stdout)
    return {key: reply["batches"][0][key] for key in ("speedup", "speedup_min", "speedup_max")}


def show(point):
    return "%.2f (%.2f-%.2f)" % (point["speedup"], point["speedup_min"], point["speedup_max"])


def numbers(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-md", "--draft", required=True)
    parser.add_argument("--rates", default="0.2,0.4,0.6,0.8,0.95", type=numbers(float))
    parser.add_argument("-k", default="1,2,4,8", type=numbers(int))
    parser.add_argument("-n", type=int, default=48)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", default="", metavar="FILE", help="writes all figures there")
    args = parser.parse_args()
    points = []
    print("| each draft accepted with | " + " | ".join("K = %d" % k for k in args.k) + " |\n|" + "---|" * (1 + len(args.k)))
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as prompts:
        prompts.writelines(json.dumps({"prompt": prompt}) + "\n" for prompt in PROMPTS)
        prompts.flush()
        for rate in args.rates:
            row = []
            for k in args.k:
                flags = ["--lookahead", "fixed", "--synthetic-acceptance-rate", "%.6f" % mean_of(rate, k)]
                row.append({"rate": rate, "k": k, **bench(args, k, flags, prompts.name)})
            points += row
            print("| %.2f | %s |" % (rate, " | ".join(map(show, row))), flush=True)
            if args.json:  # after each rate, as a run takes minutes
                measured.write(args.json, {"model": os.path.basename(args.model), "draft": os.path.basename(args.draft),
                                           "threads": args.threads, "points": points})


if __name__ == "__main__":
    main()
