#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Agents with long prompts that ask in turn, at a server with memory for a few of them: how many tokens are read again, and how long short answers take.

  foretoken serve -m MODEL.gguf --parallel 3 --cache-tokens 98304 --cache-file agents.blocks -t 2 --port 8080
  long_agents.py --url http://127.0.0.1:8080 [--agents 10] [--tokens 30000] [--questions 3]

A server that speaks llama.cpp's POST /completion will do, so llama-server can stand in its place. Each agent has a prompt of its own; its next
question begins with that prompt, the questions before and their answers. Tokens that are read again are those of the request before, its prompt and its answer,
that the server computed a second time (`timings.prompt_n`).
"""
import argparse
import json
import random
import statistics
import time
import urllib.request


def ask(url, tokens, n_predict):
    body = {"prompt": tokens, "n_predict": n_predict, "temperature": 0, "cache_prompt": True, "ignore_eos": True, "return_tokens": True}
    request = urllib.request.Request(url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
    begin = time.monotonic()
    with urllib.request.urlopen(request, timeout=3600) as reply:
        answer = json.load(reply)
    return answer, time.monotonic() - begin


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--url", required=True)
    for name, value in (("agents", 10), ("tokens", 30000), ("questions", 3), ("question-tokens", 50), ("answer-tokens", 8), ("vocabulary", 1000)):
        p.add_argument(f"--{name}", type=int, default=value)
    args = p.parse_args()
    rng = random.Random(1)

    def some(n):
        return [rng.randrange(300, args.vocabulary) for _ in range(n)]

    texts = [some(args.tokens) for _ in range(args.agents)]
    known = [0] * args.agents  # tokens of each agent that the server has computed
    again = could = 0
    for question in range(args.questions):
        seconds = []
        for agent, text in enumerate(texts):
            text += some(args.question_tokens)
            answer, wall = ask(args.url, text, args.answer_tokens)
            read = answer["timings"]["prompt_n"]
            # The last token of an answer was not computed yet.
            new = len(text) - known[agent]
            again += max(0, read - new)
            could += known[agent]
            text += answer["tokens"]
            known[agent] = len(text) - 1
            seconds.append(wall)
        print(f"question {question + 1}: median of {args.agents} answers of {args.answer_tokens} tokens {statistics.median(seconds):.2f} s "
              f"({min(seconds):.2f}-{max(seconds):.2f})", flush=True)
    print(f"{again} of {could} tokens that were known before were read again ({100 * again / max(1, could):.1f} %)")


if __name__ == "__main__":
    main()
