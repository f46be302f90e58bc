#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares foretoken's greedy text and log-probabilities with llama.cpp's on the same model files.

  generation.py --foretoken BIN --score BIN --llama "PREFIX" --seen-as FOLDER [--context N] MODEL.gguf...

PREFIX runs a program of llama.cpp (it gets `llama-server ...` appended); FOLDER is where that program sees the models' folder.
Greedy: 5 prompts, 64 tokens, token by token; a difference passes only if llama.cpp's own top-2 margin there is below the rounding of
the type. Log-probabilities: each next token of a fixed text. Both programs keep keys and values in F32. Exit code 1 where a bound is
broken. families.py makes the files too, and prints a table.

Bounds: BOUNDS for types whose activations are not rounded to 8 bits. With the others both programs round activations, each in its way: with
weights in blocks of 256 values llama.cpp has one scale for 256 activations, foretoken one for 32. So single tokens differ by chance as much
as either program differs from the same weights without that rounding. llama.cpp runs those, too: `PREFIX llama-quantize` writes them as F32
beside the model, and they are removed afterwards. The mean distance of foretoken's log-probabilities from theirs may be at most 1.25 times that
of llama.cpp's own, and greedy texts may part where llama.cpp's two best are closer than twice its largest distance.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request

PROMPTS = ["Once upon a time", "The little dog wanted to", "One day, Lily and Tom went to the park. They",
           "Mom said, \"Do not", "There was a big red ball in the"]
TEXT = ("Once upon a time there was a little girl named Lily. She loved to play outside in the park with her friend Tom. One day they saw "
        "a big dog. The dog was sad because he lost his ball. Lily said, \"We can help you find your ball.\" They looked and looked.")
# By the type of the weights: the bound on log-probability differences, and the top-2 margin under which greedy texts may part. llama.cpp
# rounds activations to BF16 with BF16 weights, so there the bound holds for the mean; the largest difference is printed beside it.
BOUNDS = {"F32": (0.02, 0.01), "F16": (0.02, 0.02), "BF16": (0.02, 0.1)}
EXACT_ACTIVATIONS = ("F32", "F16")


class Server:
    def __init__(self, prefix, model, port, context, *options):
        command = shlex.split(prefix) + ["llama-server", "-m", model, "--port", str(port), "-t", "1", "-c", str(context), "-np", "1", "-fa",
                                         "off", "-ctk", "f32", "-ctv", "f32", *options]
        if "deepseek2" in os.path.basename(model):  # llama.cpp 0.7.0 stops at an assertion where it repacks a Q8_0 matrix of each head
            command.append("--no-repack")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = "http://127.0.0.1:%d" % port
        for _ in range(300):
            if self.process.poll() is not None:
                sys.exit("llama-server did not start: is the port %d taken?" % port)
            try:
                urllib.request.urlopen(self.url + "/health", timeout=1)
                if self.process.poll() is None:
                    return
            except OSError:
                time.sleep(0.2)
        self.stop()
        sys.exit("llama-server did not start")

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as reply:
            return json.load(reply)

    def complete(self, tokens, n, probs, banned=()):
        return self.post("/completion", {"prompt": tokens, "n_predict": n, "temperature": 0, "n_probs": probs, "return_tokens": True,
                                         "cache_prompt": probs > 0, "logit_bias": [[token, False] for token in banned]})

    def top(self, tokens, n):
        """The n likeliest next tokens. The reply holds no probabilities where the chosen token ends the text or is a part of a character; then
        that token is banned, which does not change the probabilities that the server reports."""
        banned = []
        for _ in range(20):
            reply = self.complete(tokens, 1, n, banned)
            if reply.get("completion_probabilities"):
                return reply["completion_probabilities"][0]["top_logprobs"]
            banned += reply["tokens"] or [2]  # no token: the end of the text, in vocabularies like llama's
        return []

    def stop(self):
        self.process.kill()
        self.process.wait()


class Programs:
    """foretoken's side: the program, the one that scores tokens, and the context that both open models with."""

    def __init__(self, foretoken, score, context):
        self.foretoken, self.score_program, self.context = foretoken, score, context

    def greedy(self, model, tokens):
        reply = run(self.foretoken, "generate", "-m", model, "--prompt-tokens", ",".join(map(str, tokens)), "-n", "64", "--temp", "0",
                    "--spec-type", "none", "--json", "-q", "-c", str(self.context), "--cache-type-k", "f32", "--cache-type-v", "f32")
        return json.loads(reply)["token_ids"]

    def score(self, model, tokens):
        return [float(x) for x in run(self.score_program, model, ",".join(map(str, tokens)), str(self.context)).split()]

    def type_of(self, model):
        return json.loads(run(self.foretoken, "inspect", "-m", model, "--json"))["type"]


def need_server(prefix):
    """Ends the comparison as skipped where the prefix runs no llama-server."""
    try:
        subprocess.run([*shlex.split(prefix), "llama-server", "--version"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        print("skipped: there is no llama-server: %s" % error)
        sys.exit(77)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    return done.stdout


def compare_greedy(server, programs, model, margin_bound):
    """Whether the texts agree, and where they part: (good, number of texts that part, words about the worst of them)."""
    parts, worst, largest = 0, "identical", -1.0
    for prompt in PROMPTS:
        tokens = server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
        theirs = server.complete(tokens, 64, 0)["tokens"]
        ours = programs.greedy(model, tokens)
        for i, token in enumerate(theirs):
            if i < len(ours) and ours[i] == token:
                continue
            top = server.top(tokens + theirs[:i], 2)
            margin = abs(top[0]["logprob"] - top[1]["logprob"]) if top else 100  # nothing excuses it
            parts += 1
            if margin > largest:
                largest, worst = margin, "'%s' parts at token %d, margin %.4f" % (prompt, i, margin)
            break
    return largest <= margin_bound, parts, worst


def text_tokens(server):
    return server.post("/tokenize", {"content": TEXT, "add_special": True})["tokens"][:120]


def their_logprobs(server, tokens):
    """Of each token after the first; None where the server does not say."""
    tops = [server.top(tokens[:i], 1 << 20) for i in range(1, len(tokens))]
    return [next((t["logprob"] for t in top if t["id"] == token), None) for top, token in zip(tops, tokens[1:])]


def differences(a, b):
    """(number, mean, largest)"""
    both = [abs(x - y) for x, y in zip(a, b) if x is not None and y is not None]
    return len(both), sum(both) / len(both), max(both)


def quantise(prefix, seen_as, source, kind, *options):
    """The path of the file in that type, which llama-quantize writes beside it."""
    out = "%s-%s.gguf" % (source[:-len(".gguf")], kind)
    seen = lambda path: os.path.join(seen_as, os.path.basename(path))
    done = subprocess.run(shlex.split(prefix) + ["llama-quantize", *options, seen(source), seen(out), kind, "2"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("llama-quantize %s %s: %s" % (source, kind, done.stderr[-2000:]))
    return out


def by_rounding(prefix, seen_as, port, model, context, results):
    """Compares both programs by llama.cpp's results for the same weights in F32. results: the tokens, llama.cpp's log-probabilities and
    foretoken's. (good, margin under which greedy texts may part, words)"""
    tokens, theirs, ours = results
    exact_file = quantise(prefix, seen_as, model, "F32", "--allow-requantize")
    try:
        server = Server(prefix, os.path.join(seen_as, os.path.basename(exact_file)), port, context)
        try:
            exact = their_logprobs(server, tokens)
        finally:
            server.stop()
    finally:
        os.remove(exact_file)
    _, mean, largest = differences(exact, theirs)
    _, our_mean, our_largest = differences(exact, ours)
    words = "; rounding %.4f and %.4f, largest %.4f and %.4f" % (mean, our_mean, largest, our_largest)
    return our_mean <= 1.25 * mean, 2 * largest, words


def compare(prefix, seen_as, port, programs, model):
    """Both comparisons of one file: (good, type, greedy's and the log-probabilities' results, words about the bound)."""
    kind = programs.type_of(model)
    server = Server(prefix, os.path.join(seen_as, os.path.basename(model)), port, programs.context)
    try:
        tokens = text_tokens(server)
        theirs, ours = their_logprobs(server, tokens), programs.score(model, tokens)
        found = differences(theirs, ours)
        if kind in BOUNDS:
            bound, margin = BOUNDS[kind]
            is_exact = kind in EXACT_ACTIVATIONS
            good, words = found[2 if is_exact else 1] <= bound, "; bound %.2f on the %s" % (bound, "largest" if is_exact else "mean")
        else:
            good, margin, words = by_rounding(prefix, seen_as, port + 1, model, programs.context, (tokens, theirs, ours))
        greedy = compare_greedy(server, programs, model, margin)
    finally:
        server.stop()
    return greedy[0] and good, kind, greedy, (good, *found), words


def add_arguments(parser, port=18123, context=256, needed=("foretoken", "score", "llama", "seen-as")):
    for name in needed:
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--port", type=int, default=port)
    parser.add_argument("--context", type=int, default=context)


def main():
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    programs = Programs(args.foretoken, args.score, args.context)
    all_good = True
    for model in args.models:
        good, kind, greedy, logprobs, words = compare(args.llama, args.seen_as, args.port, programs, model)
        all_good = all_good and good
        word = lambda ok: "ok" if ok else "BAD"
        print("%s (%s): greedy %s: %s; log-probabilities %s: %d tokens, mean difference %.4f, largest %.4f%s" % (
            os.path.basename(model), kind, word(greedy[0]), greedy[2], word(logprobs[0]), *logprobs[1:], words), flush=True)
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
