#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast ranks decode behind slower networks, measured beside predicted, plainly and with drafts.

  ranks_delay.py --foretoken build/release/foretoken --slow-network build/release/tests/ranks/libslow_network.so
                 --model TARGET.gguf --draft DRAFT.gguf [--ranks 2,4] [--delays-us 0,20,100,500] [--gbit 1,10]
                 [--tokens 64] [--repeats 3] [--json FILE]

All ranks run on this machine, one thread each; a library makes each exchange take the set latency, and its bytes over
the set bandwidth. `foretoken cluster check` measures passes, drafts and their acceptance once for each number of ranks,
without a delay, and the gathers alone behind each network. The prediction is the design's V / n + S: the pass without a
delay, and for each of its gathers and its broadcast what a gather of that size takes longer. It knows nothing of the
speeds behind the network. With drafts it is that of the best fixed length; the measured speed is that of the draft-length
controller, which starts without knowing the network.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

BROADCAST_BYTES = 1024  # of the message that begins a pass


def run(args, ranks, us, gbit, *command):
    environment = {**os.environ, "FORETOKEN_THREADS": "1", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    slow = ["env", f"LD_PRELOAD={os.path.abspath(args.slow_network)}", f"DELAY_US={us}", f"DELAY_GBIT={gbit}"] if us or gbit else []
    done = subprocess.run([*args.mpirun.split(), "-n", str(ranks), *slow, args.foretoken, *command, "--json", "-q"], env=environment,
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"ranks_delay: {command[0]} fails: {done.stderr}")
    return json.loads(done.stdout)


def gather_us(check, size):
    """The time of a gather, along straight lines between the measured sizes."""
    gathers = check["gathers"]
    right = next((i for i, gather in enumerate(gathers) if gather["bytes"] >= size), len(gathers) - 1) or 1
    low, high = gathers[right - 1], gathers[right]
    return low["us"] + max(0, size - low["bytes"]) / (high["bytes"] - low["bytes"]) * (high["us"] - low["us"])


class Prediction:
    """From the measurements of `cluster check` without a delay, and of gathers behind a network."""

    def __init__(self, check, network):
        self.model, self.check, self.network = check["model"], check, network
        self.passes = {int(rows): us for rows, us in self.model["pass_us"].items()}

    def network_us(self, rows):
        """What the network adds to a pass."""
        added = lambda size: gather_us(self.network, size) - gather_us(self.check, size)  # noqa: E731
        gathers = self.model["pass_gathers"]
        return gathers * added(self.model["pass_gather_bytes"] * rows / gathers) + added(BROADCAST_BYTES)

    def plain(self):
        return 1e6 / (self.model["plain_us"] + self.network_us(1))

    def drafting(self, k):
        """As lab/pair_gain.h: the shares of rounds that draft so far, and their passes."""
        model, tokens, time, left = self.model, 1.0, self.model["rest_us"], 1.0
        for i in range(k):
            share = model["drafted_share"][i]
            tokens += model["gained_share"][i]
            time += share * (model["draft_us"] + (model["begin_us"] if i == 0 else 0))
            time += (left - share) * (self.passes[1 + i] + self.network_us(1 + i))
            left = share
        return 1e6 * tokens / (time + left * (self.passes[1 + k] + self.network_us(1 + k)))

    def best(self):
        """(tokens per second, K)"""
        lengths = range(1, len(self.model["gained_share"]) + 1)
        return max([(self.plain(), 0), *((self.drafting(k), k) for k in lengths)])


def cells(args):
    for us in args.delays_us:
        for gbit in args.gbit if us else [0]:
            yield us, gbit


def main():
    parser = argparse.ArgumentParser()
    for name in ("foretoken", "slow-network", "model", "draft"):
        parser.add_argument("--" + name, required=True)
    numbers = lambda text: [float(part) if "." in part else int(part) for part in text.split(",")]  # noqa: E731
    parser.add_argument("--ranks", type=numbers, default=[2, 4])
    parser.add_argument("--delays-us", type=numbers, default=[0, 20, 100, 500])
    parser.add_argument("--gbit", type=numbers, default=[10, 1])
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--mpirun", default="mpirun")
    parser.add_argument("--json")
    args = parser.parse_args()
    pair = ["-m", args.model, "-md", args.draft, "-n", str(args.tokens), "--ignore-eos"]
    rows = []
    print("| ranks | us | Gbit/s | plain | predicted | | drafts | predicted | | gain | predicted | best K |\n" + "|---" * 12 + "|")
    for ranks in args.ranks:
        check = run(args, ranks, 0, 0, "cluster", "check", *pair)
        for us, gbit in cells(args):
            prediction = Prediction(check, run(args, ranks, us, gbit, "cluster", "check"))
            measured = run(args, ranks, us, gbit, "bench", *pair, "--rows", "1", "--repeats", str(args.repeats))
            plain, drafts = (measured[key]["tokens_per_second"] for key in ("plain", "speculative"))
            expected_plain, (expected_drafts, k) = prediction.plain(), prediction.best()
            row = {"ranks": ranks, "us": us, "gbit": gbit, "plain": plain, "plain_predicted": expected_plain, "drafts": drafts,
                   "drafts_predicted": expected_drafts, "k_predicted": k}
            rows.append(row)
            print(f"| {ranks} | {us} | {gbit or '-'} | {plain:.1f} | {expected_plain:.1f} | {100 * (expected_plain / plain - 1):+.0f} % | {drafts:.1f} | "
                  f"{expected_drafts:.1f} | {100 * (expected_drafts / drafts - 1):+.0f} % | {drafts / plain:.2f} | {expected_drafts / expected_plain:.2f} "
                  f"| {k} |", flush=True)
    errors = [abs(row[f"{what}_predicted"] / row[what] - 1) for row in rows for what in ("plain", "drafts")]
    print(f"largest error of a prediction: {100 * max(errors):.0f} %; median {100 * statistics.median(errors):.0f} %")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
