#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pass costs by its rows: foretoken beside llama.cpp, in turn, on the same files.

  llama_cpp.py --bench build/release/bench/micro/forward_bench --llama "PREFIX" --seen-as FOLDER [--repeats 9] [--threads 2] [--rows 1,4,8,16,512]
               [--json FILE] MODEL.gguf...

PREFIX runs a program of llama.cpp (it gets `llama-bench ...` appended); FOLDER is where that program sees the models' folder.
Each repeat runs both programs once; the table shows medians (min to max) of the repeats, and ratios of medians.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess

import measured


def ours(args, model):
    out = subprocess.run([args.bench, model, "--threads", str(args.threads), "--repeats", str(args.inner), "--json", "--rows", ",".join(map(str, args.rows))],
                         capture_output=True, text=True, check=True).stdout
    reply = json.loads(out)
    return {r: reply["passes"][str(r)]["ms"] for r in args.rows}, reply


def theirs(args, model):
    command = shlex.split(args.llama) + ["llama-bench", "-m", os.path.join(args.seen_as, os.path.basename(model)), "-t", str(args.threads), "-r", str(args.inner), "-o", "json",
                                         "-n", "16", "-p", ",".join(str(r) for r in args.rows if r > 1)]
    rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    times = {}
    for row in rows:
        if row["n_gen"] > 0 and row["n_prompt"] == 0:
            times[1] = 1000 / row["avg_ts"]
        elif row["n_prompt"] in args.rows:
            times[row["n_prompt"]] = 1000 * row["n_prompt"] / row["avg_ts"]
    return times


def show(values):
    return "%8.3f (%.3f-%.3f)" % (statistics.median(values), min(values), max(values))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bench", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--seen-as", required=True)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--inner", type=int, default=1, help="repeats of each program within one run of it")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", default="1,4,8,16,512", type=lambda text: [int(r) for r in text.split(",")], help="begins with 1")
    parser.add_argument("--json", default="", metavar="FILE", help="writes all figures there")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    if args.rows[0] != 1:
        parser.error("--rows: it must begin with 1, to which the other rows are compared")
    found = []
    for model in args.models:
        a, b, memory = {r: [] for r in args.rows}, {r: [] for r in args.rows}, []
        for _ in range(args.repeats):
            mine, reply = ours(args, model)
            peer = theirs(args, model)
            memory.append(reply["memory_gb_per_s"])
            for r in args.rows:
                a[r].append(mine[r])
                b[r].append(peer[r])
        one = statistics.median(a[1])
        print("%s: %s, %d threads, %.3f GB of weights, memory %.1f GB/s, one row reads at %.0f %% of it" %
              (os.path.basename(model), reply["isa"], args.threads, reply["weights_gb"], statistics.median(memory),
               100 * reply["weights_gb"] / one * 1000 / statistics.median(memory)))
        print("| rows | foretoken ms | over one row | llama.cpp ms | over one row | foretoken / llama.cpp |")
        print("|---|---|---|---|---|---|")
        for r in args.rows:
            ma, mb = statistics.median(a[r]), statistics.median(b[r])
            print("| %d | %s | %.2f | %s | %.2f | %.2f |" % (r, show(a[r]), ma / one, show(b[r]), mb / statistics.median(b[1]), ma / mb), flush=True)
        print()
        found.append({"model": os.path.basename(model), "isa": reply["isa"], "threads": args.threads, "weights_gb": reply["weights_gb"],
                      "memory_gb_per_s": memory, "foretoken_ms": a, "llama_cpp_ms": b})
    if args.json:
        measured.write(args.json, {"models": found})


if __name__ == "__main__":
    main()
