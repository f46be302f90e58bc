#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversations with several replicas behind haproxy: what the choice of the replica does to the share of prompt tokens that are found in the cache, and to
tokens per second.

  prefix_routing.py --foretoken build/release/foretoken [--haproxy deploy/haproxy.cfg] [--models models] [--replicas 3] [--clients 6] [--systems 8]
                    [--conversations 96] [--open 24] [--turns 4] [--tokens 16]
                    [--repeats 5] [--hot 0] [--json FILE] [--flag=... ...]

A conversation is a system prompt (one of --systems, which conversations share) and --turns questions, each sent with the whole conversation so far. So many
as --open are under way at a time. --clients requests are sent at once, always for the conversation that has waited longest; so a conversation's user is away
between two questions. --hot is the share of conversations that have the first system prompt. Each repeat starts new replicas for every way of choosing, so
that each begins with empty caches and has the same conversations. All must give the same texts. The table shows medians (least to most) over the repeats.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import statistics
import sys
import tempfile
import threading
import time

import measured

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, os.path.join(ROOT, "tests", "server"))
import replicas  # noqa: E402

WORDS = ("the little girl old dog ran to a big red house and saw her mother under green tree near blue lake who said it was time for lunch but "
         "they did not want go home so he took ball in his hand then put on table with cake bread milk bird sang song about sun moon").split()


def words(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def with_balance(*lines):
    """Replaces what chooses the replica by these lines."""
    def edit(text):
        text = re.sub(r"\n  (balance|hash-type|hash-balance-factor) [^\n]*", "", text)
        return text.replace("\nbackend replicas\n", "\nbackend replicas\n" + "".join(f"  {line}\n" for line in lines))
    return edit


FIRST, CONVERSATION = "balance hash var(txn.key)", "balance hash var(txn.key),concat(-,txn.second)"
CONSISTENT = "hash-type consistent sdbm avalanche"
BOUND = "hash-balance-factor 200"
WAYS = {
    "round robin": with_balance("balance roundrobin"),
    "fewest connections": with_balance("balance leastconn"),
    "first message": with_balance(FIRST, CONSISTENT),
    "first message, at most twice the share": with_balance(FIRST, CONSISTENT, BOUND),
    "conversation": with_balance(CONVERSATION, CONSISTENT),
    "conversation, at most twice the share": lambda text: text,  # the configuration as it is
}


def conversations(args, seed):
    rng = random.Random(seed)
    systems = [words(rng, args.system_words) for _ in range(args.systems)]
    made = []
    for i in range(args.conversations):
        system = systems[0] if rng.random() < args.hot else systems[i % args.systems]
        made.append((system, [words(rng, args.user_words) for _ in range(args.turns)]))
    return made


class Load:
    """All conversations through one balancer."""

    def __init__(self, balancer, waiting, args):
        self.balancer, self.args = balancer, args
        waiting = [([{"role": "system", "content": system}], collections.deque(questions)) for system, questions in waiting]
        self.open, self.waiting = collections.deque(waiting[:args.open]), collections.deque(waiting[args.open:])
        self.left = args.conversations
        self.changed = threading.Condition()
        self.prompt = self.cached = self.generated = 0
        self.by_replica = collections.Counter()
        self.first_token_ms = []
        self.texts = {}

    def client(self):
        """Sends the next question of the conversation that has waited longest, until there is none."""
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.open or not self.left)
                if not self.left:
                    return
                messages, questions = self.open.popleft()
            messages.append({"role": "user", "content": questions.popleft()})
            messages.append({"role": "assistant", "content": self.ask(messages)})
            with self.changed:
                if questions:
                    self.open.append((messages, questions))
                else:
                    self.left -= 1
                    self.texts[messages[1]["content"]] = messages
                    if self.waiting:
                        self.open.append(self.waiting.popleft())
                self.changed.notify_all()

    def ask(self, messages):
        body = {"messages": messages, "max_tokens": self.args.tokens, "temperature": 0, "seed": 1, "ignore_eos": True}
        status, headers, data = self.balancer.send("POST", "/v1/chat/completions", body)
        if status != 200:
            sys.exit(f"prefix_routing: {status} {data}")
        reply = json.loads(data)
        usage = reply["usage"]
        with self.changed:
            self.prompt += usage["prompt_tokens"]
            self.cached += usage["prompt_tokens_details"]["cached_tokens"]
            self.generated += usage["completion_tokens"]
            self.by_replica[headers["x-replica"]] += 1
            self.first_token_ms.append(reply["timings"]["first_token_ms"])
        return reply["choices"][0]["message"]["content"]

    def run(self):
        threads = [threading.Thread(target=self.client) for _ in range(self.args.clients)]
        begin = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        most = max(self.by_replica.values()) * self.args.replicas / sum(self.by_replica.values())
        return {"cached": self.cached / self.prompt, "tokens_per_s": self.generated / seconds, "first_token_ms": statistics.median(self.first_token_ms),
                "busiest": most, "texts": self.texts}


def measure(way, args, seed):
    servers = replicas.start(args.foretoken, args.models, args.replicas, "--parallel", str(args.parallel), *args.flag)
    try:
        with tempfile.TemporaryDirectory() as folder, replicas.Balancer(args.haproxy, servers, folder, WAYS[way]) as balancer:
            replicas.until(10, lambda: balancer.send("GET", "/health")[0] == 200)
            return Load(balancer, conversations(args, seed), args).run()
    finally:
        for server in servers:
            server.__exit__()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--haproxy", default=str(ROOT / "deploy" / "haproxy.cfg"))
    parser.add_argument("--models", default=str(ROOT / "models"))
    for name, value in {"replicas": 3, "clients": 6, "systems": 8, "conversations": 96, "open": 24, "turns": 4, "tokens": 16, "repeats": 5, "parallel": 4,
                        "system-words": 120, "user-words": 30}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--hot", type=float, default=0)
    parser.add_argument("--way", action="append", choices=WAYS, help="a way of choosing the replica; may be repeated; default: all")
    parser.add_argument("--flag", action="append", default=[])
    parser.add_argument("--json")
    args = parser.parse_args()
    found = {way: [] for way in (args.way or WAYS)}
    texts = {}
    for repeat in range(args.repeats):
        for way in found:
            run = measure(way, args, repeat)
            if texts.setdefault(repeat, run["texts"]) != run.pop("texts"):
                sys.exit(f"prefix_routing: the texts of {way} differ")
            found[way].append(run)
    print("| replica chosen by | cached share of prompt tokens | tokens/s | first token, ms | busiest replica's requests over its share |\n|---|---|---|---|---|")
    for way, runs in found.items():
        def column(name, form):
            values = [run[name] for run in runs]
            return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"
        print(f"| {way} | {column('cached', lambda v: f'{100 * v:.0f} %')} | {column('tokens_per_s', lambda v: f'{v:.0f}')} "
              f"| {column('first_token_ms', lambda v: f'{v:.1f}')} | {column('busiest', lambda v: f'{v:.2f}')} |")
    if args.json:
        measured.write(args.json, {"ways": found})


if __name__ == "__main__":
    main()
