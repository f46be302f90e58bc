# SPDX-License-Identifier: Apache-2.0
"""What the rounds of several runs take by one table of times.

A run on a busy or virtual machine is slow or quick by chance, so the times of two runs of one controller differ by a tenth and more. Which lengths a run chose
is in its trace (`foretoken bench --record`); timed by one table, made of the medians over the rounds of all runs, runs differ only by what they chose. A round's
times are told in plain passes of the requests without drafts that the process ran before and after it, so a slow process does not weigh on the rows that it had.
"""
import bisect
import collections
import json
import statistics


def rounds(path):
    """The rounds of a trace's requests that have a drafter, prompts left out, each a dict: rows of the verifying pass; drafts asked for; tokens that a head missed
    and must read before it drafts (0 after a round with drafts); tokens committed; times of the pass, of the drafts and of the rest, in plain passes."""
    plain, missed, found = collections.defaultdict(list), collections.Counter(), []
    with open(path, encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line.get("method") == "none" and "request" in line:
                plain[line["request"]] = []
            if "pass" not in line:
                continue
            request = line["of"]
            if line["prefill"]:
                missed[request] = line["fed"]
            elif request in plain:
                plain[request].append(line["verify_us"])
            else:
                found.append({"request": request, "rows": line["rows"], "asked": line["asked"], "missed": missed[request], "committed": line["committed"],
                              "pass": line["verify_us"], "drafts": line["draft_us"], "rest": line["rest_us"]})
            if not line["prefill"]:
                missed[request] = 0 if line["asked"] else missed[request] + line["committed"]
    levels = {request: plain_pass_us(plain, request) for request in {one["request"] for one in found}}
    for one in found:
        level = levels[one.pop("request")]
        one.update({key: one[key] / level for key in ("pass", "drafts", "rest")})
    return found


def plain_pass_us(plain, request):
    """The median of a plain pass in the plain requests before and after one, {request: us}."""
    numbers = sorted(number for number, passes in plain.items() if passes)
    behind = bisect.bisect(numbers, request)
    return statistics.median(us for number in numbers[max(0, behind - 1):behind + 1] for us in plain[number])


def expected_tokens(asked, rate):
    """Of a round whose drafts are accepted one after another with a set probability."""
    return sum(rate ** drafts for drafts in range(asked + 1))


class Times:
    """Of a pass by its rows, of drafts by their number and by what their head must read first, of the rest."""

    def __init__(self, all_rounds):
        medians = lambda key, value, some: {k: statistics.median(v) for k, v in grouped(key, value, some).items()}
        self.passes = medians("rows", "pass", all_rounds)
        drafted = [r for r in all_rounds if r["asked"]]
        self.drafts = medians("asked", "drafts", [r for r in drafted if r["missed"] == 0] or drafted)
        for asked, time in medians("asked", "drafts", drafted).items():
            self.drafts.setdefault(asked, time)
        reading = [(r["drafts"] - self.drafts[r["asked"]]) / r["missed"] for r in drafted if r["missed"] > 8]
        self.read = max(0, statistics.median(reading)) if reading else 0
        self.rest = statistics.median(r["rest"] for r in all_rounds)
        self.idle = statistics.median([r["drafts"] for r in all_rounds if not r["asked"]] or [0])

    def of(self, one):
        drafts = self.drafts[one["asked"]] + self.read * one["missed"] if one["asked"] else self.idle
        return self.passes[one["rows"]] + drafts + self.rest

    def speedup(self, run, rate=None):
        """Over plain decoding; with a rate of acceptance, rounds bring the tokens that are expected of them."""
        tokens = sum(r["committed"] if rate is None else expected_tokens(r["asked"], rate) for r in run)
        return tokens * (self.passes[1] + self.rest) / sum(map(self.of, run))


def grouped(key, value, some):
    groups = collections.defaultdict(list)
    for one in some:
        groups[one[key]].append(one[value])
    return groups
