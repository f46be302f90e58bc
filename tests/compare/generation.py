#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares foretoken's greedy text and log-probabilities with llama.cpp's on the same model files.

  generation.py --foretoken BIN --score BIN --llama "PREFIX" --seen-as FOLDER MODEL.gguf...

PREFIX runs a program of llama.cpp (it gets `llama-server ...` appended); FOLDER is where that program sees the models' folder.
Greedy: 5 prompts, 64 tokens, token by token; a difference passes only if llama.cpp's own top-2 margin there is below the rounding of
the type. Log-probabilities: each next token of a fixed text. Exit code 1 where a bound is broken.
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
# By the type of the weights: the bound on log-probability differences, and the top-2 margin under which greedy texts may part. Where an
# engine rounds activations (both to 8 bits with quantised weights, llama.cpp to BF16 with BF16 weights), single tokens differ by chance as much as either differs from the unquantised model, so there the
# bound holds for the mean; the largest difference is printed beside it.
BOUNDS = {"F32": (0.02, 0.01), "F16": (0.02, 0.02), "BF16": (0.02, 0.1), "Q8_0": (0.1, 0.1), "Q4_0": (0.1, 0.2), "Q6_K": (0.1, 0.2), "MXFP4": (0.1, 0.2)}
EXACT_ACTIVATIONS = ("F32", "F16")


class Server:
    def __init__(self, prefix, model, port):
        command = shlex.split(prefix) + ["llama-server", "-m", model, "--port", str(port), "-t", "2", "-c", "256", "-np", "1"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = "http://127.0.0.1:%d" % port
        for _ in range(150):
            try:
                urllib.request.urlopen(self.url + "/health", timeout=1)
                return
            except OSError:
                time.sleep(0.2)
        sys.exit("llama-server did not start")

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def complete(self, tokens, n, probs):
        return self.post("/completion", {"prompt": tokens, "n_predict": n, "temperature": 0, "n_probs": probs, "return_tokens": True,
                                         "cache_prompt": False})

    def stop(self):
        self.process.kill()
        self.process.wait()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    return done.stdout


def compare_greedy(server, binary, model, margin_bound):
    worst = "identical"
    for prompt in PROMPTS:
        tokens = server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
        theirs = server.complete(tokens, 64, 0)["tokens"]
        ours = json.loads(run(binary, "generate", "-m", model, "--prompt-tokens", ",".join(map(str, tokens)), "-n", "64", "--temp", "0",
                              "--spec-type", "none", "--json", "-q"))["token_ids"]
        for i, token in enumerate(theirs):
            if i < len(ours) and ours[i] == token:
                continue
            # The reply holds no probabilities where the next token ends the text or is half a character: then nothing excuses a difference.
            reply = server.complete(tokens + theirs[:i], 1, 2).get("completion_probabilities", [])
            top = reply[0]["top_logprobs"] if reply else [{"logprob": 0}, {"logprob": -100}]
            margin = abs(top[0]["logprob"] - top[1]["logprob"])
            worst = "'%s' parts at token %d, margin %.4f" % (prompt, i, margin)
            if margin > margin_bound:
                return False, worst
            break
    return True, worst


def compare_logprobs(server, score, model, kind, bound):
    tokens = server.post("/tokenize", {"content": TEXT, "add_special": True})["tokens"][:120]
    ours = [float(x) for x in run(score, model, ",".join(map(str, tokens))).split()]
    differences = []
    for i in range(1, len(tokens)):
        reply = server.complete(tokens[:i], 1, 4096).get("completion_probabilities", [])
        if not reply:  # where the text ends at once, or the token is half a character
            continue
        top = reply[0]["top_logprobs"]
        theirs = next(t["logprob"] for t in top if t["id"] == tokens[i])
        differences.append(abs(ours[i - 1] - theirs))
    mean, largest = sum(differences) / len(differences), max(differences)
    held = largest if kind in EXACT_ACTIVATIONS else mean
    return held <= bound, "%d tokens, mean difference %.4f, largest %.4f (bound %.2f on the %s)" % (
        len(differences), mean, largest, bound, "largest" if kind in EXACT_ACTIVATIONS else "mean")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--score", required=True)
    parser.add_argument("--llama", required=True)
    parser.add_argument("--seen-as", required=True)
    parser.add_argument("--port", type=int, default=18123)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    good = True
    for model in args.models:
        kind = json.loads(run(args.foretoken, "inspect", "-m", model, "--json"))["type"]
        bound, margin = BOUNDS[kind]
        server = Server(args.llama, os.path.join(args.seen_as, os.path.basename(model)), args.port)
        try:
            greedy_good, greedy = compare_greedy(server, args.foretoken, model, margin)
            logprobs_good, logprobs = compare_logprobs(server, args.score, model, kind, bound)
        finally:
            server.stop()
        good = good and greedy_good and logprobs_good
        print("%s (%s): greedy %s: %s; log-probabilities %s: %s" % (os.path.basename(model), kind, "ok" if greedy_good else "BAD", greedy,
                                                                    "ok" if logprobs_good else "BAD", logprobs), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
