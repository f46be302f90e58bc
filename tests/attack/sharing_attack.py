#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three clients of one `foretoken serve` send random sequences of requests, with their own texts and with beginnings of the others'. What each is
shown (cached tokens, drafts, traces, counts) must come from its own texts alone: those of its key, or of its address where there are no keys, with the
same cache_salt. One client's answers must also be the same, to the token and the count, as on a server that nobody else uses.

In the control the operator shares texts among all clients: one client makes another's request again, and each drafter must then show the answer before
it is made, and the cache that its prompt was there.

usage: sharing_attack.py FORETOKEN MODELS [--seed N] [--seconds S] [--sequences N]
"""
import argparse
import os
import random
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from server_testing import Server, events

CLIENTS, RUN = 3, 4  # tokens in a row that say whose text they are from
RANDOM = 2  # a temperature at which the answers to random prompts are random, too
DRAFTERS = {"suffix": ("--spec-type", "suffix"), "ngram": ("--spec-type", "ngram", "--ngram-keep", "on"),
            "both": ("--spec-type", "suffix,ngram", "--ngram-keep", "on")}
REQUESTS = 24  # of a sequence
MOST_PROMPT = 300  # tokens, of the model's 512


def runs(tokens):
    return {tuple(tokens[i:i + RUN]) for i in range(len(tokens) - RUN + 1)}


def common(a, b):
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


class Texts:
    """What each client's requests left behind, by client and salt: all texts that it knows, those that later prompts may find in the cache, and its
    secrets: runs of random tokens, in prompts or in answers. Other answers have none, because drafters find the same common words by themselves."""

    def __init__(self):
        self.known, self.kept, self.secrets, self.asked = {}, {}, {}, []

    def add(self, owner, prompt, fields, seen, new=False):
        """new: the prompt is random, and not from a text that is there already."""
        self.known.setdefault(owner, []).append(prompt + seen["answer"])
        self.asked.append((owner[0], prompt, fields, seen["answer"]))
        if new:
            self.secrets.setdefault(owner, set()).update(runs(prompt + seen["answer"] if fields["temperature"] == RANDOM else prompt))
        if fields["cache_prompt"]:
            self.kept.setdefault(owner, []).append(prompt + seen["answer"])

    def problem_with(self, owner, prompt, seen):
        """Why the answer shows a text of others; "" where it does not."""
        most = max((common(prompt, text) for text in self.kept.get(owner, [])), default=0)
        if seen["cached"] > most:
            return f"{seen['cached']} tokens were in the cache, and {most} are of its own"
        others = set().union(*(secrets for who, secrets in self.secrets.items() if who != owner))
        others -= set().union(*(runs(text) for text in self.known.get(owner, [])))
        text = list(prompt)
        for tokens, draft in zip(seen["tokens"], seen["drafts"]):
            if stolen := runs(draft) & others - runs(text):
                return f"drafts show another's tokens {sorted(stolen)[0]}"
            text += tokens
        return ""


def make_requests(seed, number):
    """[(client, salt, fields, how the prompt is made)] of a sequence; the texts come later."""
    draw = random.Random(f"{seed}/{number}")
    return [(draw.randrange(CLIENTS), draw.choice((None, None, "a", "b")),
             {"temperature": draw.choice((0, 1.3, RANDOM)), "seed": draw.randrange(1 << 30), "max_tokens": draw.choice((8, 24, 48)),
              "cache_prompt": draw.random() < 0.8},
             (draw.choice(("new", "new", "own", "others", "again", "again", "begun")), draw.random(), draw.randrange(1 << 30))) for _ in range(REQUESTS)]


def random_tokens(draw, count, vocabulary):
    return [draw.randrange(300, vocabulary) for _ in range(count)]


def request_of(how, client, texts, fields, vocabulary):
    """The tokens of a prompt: new ones, or (a beginning of) a text that is there already. And its fields: those of another's request where it is made
    again, so that its answer is the same."""
    kind, share, seed = how
    draw = random.Random(seed)
    pool = [(prompt, asked, answer) for who, prompt, asked, answer in texts.asked if (who == client) == (kind == "own")]
    if kind == "new" or not pool:
        return random_tokens(draw, draw.randrange(24, 100), vocabulary), fields
    prompt, asked, answer = draw.choice(pool)
    if kind == "again":
        return prompt, {**asked, "cache_prompt": fields["cache_prompt"]}
    text = prompt + answer
    beginning = text[:min(MOST_PROMPT, max(RUN, int(share * len(text))))]
    return (random_tokens(draw, 8, vocabulary) + beginning[-12:] if kind == "begun" else beginning), fields


def body_of(prompt, fields, salt=None):
    return {"prompt": prompt, "add_special_tokens": False, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True},
            "speculative": {"trace": True}, **fields, **({"cache_salt": salt} if salt else {})}


def ask(server, client, keys, body):
    """What the client is shown: {"cached", "answer", "counts"}, and the "tokens" and the "drafts" of each round."""
    headers = {"Authorization": f"Bearer key-{client}"} if keys else {}
    status, _, data = server.send("POST", "/v1/completions", body, headers, f"127.0.4.{1 + (0 if keys else client)}")
    assert status == 200, data
    chunks = events(data)
    rounds = [chunk["foretoken"] for chunk in chunks if "foretoken" in chunk and "tokens" in chunk["foretoken"]]
    usage = next(chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage"))
    tokens = [[token["id"] for token in r["tokens"]] for r in rounds]
    return {"cached": usage["prompt_tokens_details"]["cached_tokens"], "answer": sum(tokens, []), "tokens": tokens,
            "drafts": [[token["id"] for token in r["tokens"] if token["origin"] == "accepted"] + [token["id"] for token in r["rejected"]] for r in rounds],
            "counts": usage.get("completion_tokens_details")}


def start(options, kind, keys, *flags):
    key_flags = ("--api-key-file", options.keys) if keys else ()
    # A cache with room for all texts: in a full one those of a busy client displace those of others, whoever may find them.
    return Server(options.program, "-m", options.model, "-t", "1", "--repack-cache", "off", "--parallel", "2", "-q", "--cache-tokens", "16384",
                  "--num-speculative-tokens", "16", "--lookahead", "fixed", *DRAFTERS[kind], *key_flags, *flags)


class Sequence:
    """One server, and the requests of a seed and a number."""

    def __init__(self, options, number, kind, keys):
        self.options, self.number, self.kind, self.keys = options, number, kind, keys

    def run(self, requests=None, only=None):
        """(problems, requests, what each was shown). requests: those of an earlier run. only: the client that asks."""
        texts, made, shown, problems = Texts(), [], [], []
        with start(self.options, self.kind, self.keys) as server:
            for i, (client, salt, fields, how) in enumerate(make_requests(self.options.seed, self.number)):
                prompt, fields = requests[i] if requests else request_of(how, client, texts, fields, self.options.vocabulary)
                made.append((prompt, fields))
                if only not in (None, client):
                    shown.append(None)
                    continue
                seen = ask(server, client, self.keys, body_of(prompt, fields, salt))
                if why := texts.problem_with((client, salt), prompt, seen):
                    problems.append(f"sequence {self.number}, {self.kind}, keys {self.keys}, request {i} of client {client} with salt {salt}: {why}")
                texts.add((client, salt), prompt, fields, seen, how[0] == "new")
                shown.append(seen)
        return problems, made, shown


def attack(options, number):
    kind, keys = list(DRAFTERS)[number % len(DRAFTERS)], number % 2 == 0
    sequence = Sequence(options, number, kind, keys)
    problems, requests, shown = sequence.run()
    _, _, alone = sequence.run(requests, only=number % CLIENTS)
    for i, (one, other) in enumerate(zip(shown, alone)):
        if other and one != other:
            problems.append(f"sequence {number}, {kind}, keys {keys}, request {i}: beside others it saw {one}, alone {other}")
    options.cached += sum(seen["cached"] > 0 for seen in shown)
    options.drafted += sum(any(seen["drafts"]) for seen in shown)
    return problems


def control(options, kind):
    """What is not seen on a server that shares texts among all clients, where everything must be."""
    draw, texts = random.Random(f"{options.seed}/control"), Texts()
    prompt = random_tokens(draw, 96, options.vocabulary)
    fields = {"temperature": RANDOM, "seed": draw.randrange(1 << 30), "max_tokens": 48, "cache_prompt": True}
    found = []
    with start(options, kind, True, "--share-prefixes", "all") as server:
        texts.add((0, None), prompt, fields, ask(server, 0, True, body_of(prompt, fields)), new=True)
        # The thief has no text of its own with this prompt, so what is in the cache is told first, and then only drafts are.
        for client in (1, 1):
            seen = ask(server, client, True, body_of(prompt, fields))
            found.append(texts.problem_with((client, None), prompt, seen))
            texts.kept[(client, None)] = [prompt]
    return [f"the control of {kind} shows no {what}" for what, sign in (("cached tokens of others", "in the cache"), ("drafts of others", "drafts show"))
            if not any(sign in why for why in found)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("models", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--sequences", type=int, default=1 << 60)
    options = parser.parse_args()
    options.model, options.vocabulary = os.path.join(options.models, "tales-9m-q8_0.gguf"), 4000
    options.cached = options.drafted = 0
    folder = tempfile.TemporaryDirectory()
    options.keys = os.path.join(folder.name, "keys")
    with open(options.keys, "w", encoding="ascii", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.writelines(f"key-{i}\n" for i in range(CLIENTS))
    print(f"seed {options.seed}", flush=True)
    end, number, problems = time.monotonic() + options.seconds, 0, []
    while number < options.sequences and time.monotonic() < end and len(problems) < 20:
        problems += attack(options, number)
        number += 1
    print(f"{number} sequences of {REQUESTS} requests; {options.cached} found tokens of their own in the cache, {options.drafted} had drafts", flush=True)
    problems += [] if options.cached and options.drafted else ["nothing was in the cache, or nothing was drafted"]
    problems += [why for kind in DRAFTERS for why in control(options, kind)]
    for problem in problems:
        print("PROBLEM " + problem)
    print(f"FAILED with seed {options.seed}" if problems else "passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
