# SPDX-License-Identifier: Apache-2.0
"""What the rounds of several runs take by one table of times.

A run on a busy or virtual machine is slow or quick by chance, so the times of two runs of one controller differ by a tenth and more. Which lengths a run chose
is in its trace (`foretoken bench --record`); timed by one table, made of the medians over the rounds of all runs, runs differ only by what they chose.
"""
import collections
import json
import statistics


def rounds(path):
    """The rounds of a trace's requests that have a drafter, prompts left out, each a dict: rows of the verifying pass; drafts asked for; tokens that a head missed
    and must read before it drafts (0 after a round with drafts); tokens committed; times of the pass, of the drafts and of the rest in us."""
    plain, missed, found = set(), collections.Counter(), []
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line.get("method") == "none" and "request" in line:
                plain.add(line["request"])
            if "pass" not in line:
                continue
            request = line["of"]
            if line["prefill"]:
                missed[request] = line["fed"]
            elif request not in plain:
                found.append({"rows": line["rows"], "asked": line["asked"], "missed": missed[request], "committed": line["committed"],
                              "pass_us": line["verify_us"], "draft_us": line["draft_us"], "rest_us": line["rest_us"]})
            if not line["prefill"]:
                missed[request] = 0 if line["asked"] else missed[request] + line["committed"]
    return found


def expected_tokens(asked, rate):
    """Of a round whose drafts are accepted one after another with a set probability."""
    return sum(rate ** drafts for drafts in range(asked + 1))


class Times:
    """Of a pass by its rows, of drafts by their number and by what their head must read first, of the rest."""

    def __init__(self, all_rounds):
        medians = lambda key, value, some: {k: statistics.median(v) for k, v in grouped(key, value, some).items()}
        self.passes = medians("rows", "pass_us", all_rounds)
        drafted = [r for r in all_rounds if r["asked"]]
        self.drafts = medians("asked", "draft_us", [r for r in drafted if r["missed"] == 0] or drafted)
        for asked, us in medians("asked", "draft_us", drafted).items():
            self.drafts.setdefault(asked, us)
        reading = [(r["draft_us"] - self.drafts[r["asked"]]) / r["missed"] for r in drafted if r["missed"] > 8]
        self.read_us = max(0, statistics.median(reading)) if reading else 0
        self.rest_us = statistics.median(r["rest_us"] for r in all_rounds)
        self.idle_us = statistics.median([r["draft_us"] for r in all_rounds if not r["asked"]] or [0])

    def of(self, one):
        drafts = self.drafts[one["asked"]] + self.read_us * one["missed"] if one["asked"] else self.idle_us
        return self.passes[one["rows"]] + drafts + self.rest_us

    def speedup(self, run, rate=None):
        """Over plain decoding; with a rate of acceptance, rounds bring the tokens that are expected of them."""
        tokens = sum(r["committed"] if rate is None else expected_tokens(r["asked"], rate) for r in run)
        return tokens * (self.passes[1] + self.rest_us) / sum(map(self.of, run))


def grouped(key, value, some):
    groups = collections.defaultdict(list)
    for one in some:
        groups[one[key]].append(one[value])
    return groups
