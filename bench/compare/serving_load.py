#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many clients at once: `foretoken serve` with and without speculation, and llama-server, in turn, on the same files.

  serving_load.py --foretoken build/release/foretoken --model TARGET.gguf [--draft DRAFT.gguf] [--widths 1,2,4,8,16] [--requests 4] [--tokens 64]
                  [--repeats 5] [--threads 2] [--ctx-size 1024] [--temperature 0] [--flag=--lookahead --flag=fixed ...] [--json FILE]
                  [--llama "PREFIX" --seen-as FOLDER [--llama-flag=...]...]

For each width W: W clients, each with its own connection, send --requests completions one after the other, --tokens tokens each, end tokens ignored, no
prompt twice. The figure is the number of all tokens divided by the time from the first request to the last reply. Each repeat runs every server once;
a server that is not being measured uses no CPU. Ratios are taken within a repeat; the table shows medians (least to most).

PREFIX runs a program of llama.cpp (it gets `llama-server ...` appended); FOLDER is where that program sees the model files' folder. It runs plain and,
where there is a draft, with `--spec-type draft-simple`.
"""
import argparse
import http.client
import json
import os
import random
import shlex
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time

import measured

WORDS = ("the little girl old dog ran to a big red house and saw her mother under green tree near blue lake who said it was time for lunch but "
         "they did not want go home so he took ball in his hand then put on table with cake bread milk bird sang song about sun moon").split()


def text(rng, words):
    return "Once upon a time, " + " ".join(rng.choice(WORDS) for _ in range(words))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Contender:
    """A server, and what it is asked for."""

    def __init__(self, name, command, port, extra):
        self.name, self.command, self.port, self.extra = name, command, port, extra

    def ask(self, connection, prompt, args):
        body = {"prompt": prompt, "max_tokens": args.tokens, "temperature": args.temperature, "seed": 1, "ignore_eos": True, **self.extra}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = json.loads(response.read())
        if response.status != 200:
            sys.exit(f"serving_load: {self.name}: {response.status} {data}")
        if data["usage"]["completion_tokens"] != args.tokens:
            sys.exit(f"serving_load: {self.name}: {data['usage']}, wanted {args.tokens} tokens")
        return data

    def load(self, width, args, rng):
        """(tokens per second, sums of drafts and accepted drafts)"""
        prompts = [[text(rng, args.words) for _ in range(args.requests)] for _ in range(width)]
        drafted, accepted = [0] * width, [0] * width
        ready = threading.Barrier(width + 1)

        def client(i):
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=900)
            connection.connect()
            ready.wait()
            for prompt in prompts[i]:
                timings = self.ask(connection, prompt, args).get("timings", {})
                drafted[i] += timings.get("draft_n", 0)
                accepted[i] += timings.get("draft_n_accepted", 0)
            connection.close()

        threads = [threading.Thread(target=client, args=(i,)) for i in range(width)]
        for thread in threads:
            thread.start()
        ready.wait()
        begin = time.monotonic()
        for thread in threads:
            thread.join()
        return width * args.requests * args.tokens / (time.monotonic() - begin), sum(drafted), sum(accepted)


def healthy(port):
    try:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False


def start(command, port):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    end = time.monotonic() + 300
    while not healthy(port):
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(f"serving_load: {' '.join(command)}: did not start")
        time.sleep(0.1)
    return process


def contenders(args):
    port = free_port()
    most = max(args.widths)
    draft = ["-md", args.draft] if args.draft else []
    ours = [args.foretoken, "serve", "-m", args.model, *draft, "--port", str(port), "--parallel", str(most), "-c", str(args.ctx_size), "-t", str(args.threads),
            "--quiet", *args.flag]
    found = [Contender("plain", ours, port, {"speculative": {"enabled": False}}), Contender("speculative", ours, port, {})]
    if args.llama:
        inside = lambda path: os.path.join(args.seen_as, os.path.basename(path))
        drafts = args.draft and not args.llama_plain
        kinds = [("llama-server", [])] + ([("llama-server -md", ["-md", inside(args.draft), "--spec-type", "draft-simple"])] if drafts else [])
        for name, flags in kinds:
            port = free_port()
            command = [*shlex.split(args.llama), "llama-server", "-m", inside(args.model), "--host", "127.0.0.1", "--port", str(port), "-np", str(most),
                       "-c", str(most * args.ctx_size), "-t", str(args.threads), "-tb", str(args.threads), *flags, *args.llama_flag]
            found.append(Contender(name, command, port, {"cache_prompt": False}))
    return found


def show(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--draft", default="")
    p.add_argument("--widths", default="1,2,4,8,16", type=lambda s: [int(x) for x in s.split(",")])
    p.add_argument("--requests", type=int, default=4)
    p.add_argument("--tokens", type=int, default=64)
    p.add_argument("--words", type=int, default=24, help="words in a prompt")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--ctx-size", type=int, default=1024)
    p.add_argument("--temperature", type=float, default=0)
    p.add_argument("--flag", action="append", default=[])
    p.add_argument("--llama", default="")
    p.add_argument("--seen-as", default="")
    p.add_argument("--llama-plain", action="store_true", help="run llama-server only without a draft model")
    p.add_argument("--llama-flag", action="append", default=[])
    p.add_argument("--json", default="")
    args = p.parse_args()
    servers = contenders(args)
    processes = [start(command, port) for command, port in {s.port: (s.command, s.port) for s in servers}.values()]
    rng, report = random.Random(7), {}
    try:
        for server in servers:
            server.load(1, args, rng)  # first touches of weights
        names = [s.name for s in servers]
        print("| clients | " + " | ".join(f"{n} tokens/s" for n in names) + " | speculative / plain | drafts accepted"
              + "".join(f" | speculative / {n}" for n in names[2:]) + " |\n|" + "---|" * (3 + len(names) + len(names[2:])), flush=True)
        for width in args.widths:
            rates, drafts = {n: [] for n in names}, [0, 0]
            for repeat in range(args.repeats):
                for server in servers[repeat % len(servers):] + servers[:repeat % len(servers)]:
                    rate, drafted, accepted = server.load(width, args, rng)
                    rates[server.name].append(rate)
                    if server.name == "speculative":
                        drafts = [drafts[0] + drafted, drafts[1] + accepted]
            over = {n: [a / b for a, b in zip(rates["speculative"], rates[n])] for n in names if n != "speculative"}
            report[width] = {"tokens_per_second": rates, "speculative_over": over, "drafted": drafts[0], "accepted": drafts[1]}
            print(f"| {width} | " + " | ".join(f"{statistics.median(rates[n]):.1f}" for n in names) + f" | {show(over['plain'])} | {drafts[1]} of {drafts[0]}"
                  + "".join(f" | {show(over[n])}" for n in names[2:]) + " |", flush=True)
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if args.json:
        measured.write(args.json, {"model": os.path.basename(args.model), "draft": os.path.basename(args.draft), "threads": args.threads,
                                   "clients": report})


if __name__ == "__main__":
    main()
