#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a pass costs by its rows: foretoken beside llama.cpp, in turn, on the same files.

  llama_cpp.py --bench build/release/bench/micro/forward_bench --llama "PREFIX" --seen-as FOLDER [--repeats 9] [--threads 2] [--rows 1,4,8,16,512]
               [--json FILE] MODEL.gguf...

PREFIX runs a program of llama.cpp (it gets `llama-bench ...` appended); FOLDER is where that program sees the models' folder.
Each repeat runs both programs once; the table shows medians (min to max) of the repeats, and ratios of medians. Both programs read random tokens.
"GB read" is what a pass of foretoken reads of the weights, and "of memory" its speed over that of a plain reading of 512 MiB in the same run. Of a
mixture, only the experts count that the rows chose; "experts" is the number of distinct ones in a layer.
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
    return {r: reply["passes"][str(r)] for r in args.rows}, reply


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


def measure(args, model):
    """All figures of a model, one entry a repeat."""
    found = {"model": os.path.basename(model), "threads": args.threads, "memory_gb_per_s": [], "foretoken_ms": {r: [] for r in args.rows},
             "read_gb": {r: [] for r in args.rows}, "distinct_experts": {r: [] for r in args.rows}, "llama_cpp_ms": {r: [] for r in args.rows}}
    for _ in range(args.repeats):
        mine, reply = ours(args, model)
        peer = theirs(args, model)
        found["isa"], found["weights_gb"] = reply["isa"], reply["weights_gb"]
        found["memory_gb_per_s"].append(reply["memory_gb_per_s"])
        for r in args.rows:
            found["foretoken_ms"][r].append(mine[r]["ms"])
            found["read_gb"][r].append(mine[r]["read_gb"])
            found["distinct_experts"][r].append(mine[r].get("distinct_experts"))
            found["llama_cpp_ms"][r].append(peer[r])
    return found


def table(args, found):
    memory, ours_ms, peers_ms = statistics.median(found["memory_gb_per_s"]), found["foretoken_ms"], found["llama_cpp_ms"]
    experts = found["distinct_experts"][1][0] is not None
    print("%s: %s, %d threads, %.3f GB of weights, memory %.1f GB/s" %
          (found["model"], found["isa"], found["threads"], found["weights_gb"], memory))
    print("| rows | foretoken ms | over one row | llama.cpp ms | over one row | foretoken / llama.cpp | GB read | of memory |" + " experts |" * experts)
    print("|---" * (8 + experts) + "|")
    one, peers_one = statistics.median(ours_ms[1]), statistics.median(peers_ms[1])
    for r in args.rows:
        mine, peer, read = statistics.median(ours_ms[r]), statistics.median(peers_ms[r]), statistics.mean(found["read_gb"][r])
        print("| %d | %s | %.2f | %s | %.2f | %.2f | %.3f | %.0f %% |" %
              (r, show(ours_ms[r]), mine / one, show(peers_ms[r]), peer / peers_one, mine / peer, read, 100 * read / mine * 1000 / memory) +
              (" %.1f |" % statistics.mean(found["distinct_experts"][r]) if experts else ""), flush=True)
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    models = []
    for model in args.models:
        models.append(measure(args, model))
        table(args, models[-1])
    if args.json:
        measured.write(args.json, {"models": models})


if __name__ == "__main__":
    main()
