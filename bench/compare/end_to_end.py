#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole texts, plain and speculative: foretoken beside llama.cpp, in turn, on the same files and prompts.

  end_to_end.py --foretoken build/release/foretoken --llama "PREFIX" --seen-as FOLDER -m TARGET.gguf -md DRAFT.gguf
                [--prompts FILE.jsonl] [-n 128] [-k 7] [--repeats 5] [--threads 2] [--ctx-size 2048]
                [--spec-type mtp|self] [--self-draft TYPE] [--acceptance-length L] [--json FILE]

PREFIX runs a program of llama.cpp (it gets `llama-server ...` appended); FOLDER is where that program sees the models' folder. Each repeat
runs `foretoken bench --repeats 1`, then a llama-server without a draft, then one with it; every text is greedy and has N tokens. Rates are
of decoding alone, sums over the prompts; the table shows medians (least-most) of the repeats, and ratios of medians.

--spec-type mtp drafts with the MTP head of the target's file in both programs. With --spec-type self foretoken drafts with a copy of the target that it
makes itself, and only llama-server gets -md: such a copy as a file, by llama-quantize.

--acceptance-length L lets both programs accept drafts at random, so that a round of K drafts gives L tokens on average, the target's own
token included (llama-server --spec-synth-len L, foretoken --synthetic-acceptance-rate (L - 1) / K). It is for models with random weights,
whose drafts would be accepted always or never. Both programs report the length that they reached: see the row `length`.
"""
import argparse
import contextlib
import json
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import measured

START_SECONDS, TEXT_SECONDS = 300, 600
PROMPTS = [
    "Once upon a time, there was a little girl who lived by the sea. Every morning she walked down to the harbour and",
    "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is Madrid. The capital of",
    "To make bread you need flour, water, salt and yeast. First,",
    "It was a dark night, and the wind blew through the trees. Nobody saw the two men who",
]


def write_prompts(folder):
    path = os.path.join(folder, "prompts.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for prompt in PROMPTS:
            file.write(json.dumps({"prompt": prompt}) + "\n")
    return path


def read_prompts(path):
    prompts = []
    with open(path, encoding="utf-8") as file:
        for line in filter(str.strip, file):
            entry = json.loads(line)
            prompts.append(entry["prompt"] if "prompt" in entry else entry["turns"][0])
    return prompts


def foretoken_once(args):
    command = [args.foretoken, "bench", "--json", "-m", args.model, "--prompts", args.prompts, "-n", str(args.n), "--ignore-eos",
               "--repeats", "1", "--rows", "1", "--contexts", "0", "-t", str(args.threads), "-c", str(args.ctx_size), "--temp", "0",
               "--num-speculative-tokens", str(args.k)]
    if args.draft and args.spec_type != "self":
        command += ["-md", args.draft]
    if args.spec_type:
        command += ["--spec-type", args.spec_type]
    if args.self_draft:
        command += ["--self-draft", args.self_draft]
    if args.acceptance_length:
        # The rate gives this length in rounds of exactly K drafts.
        command += ["--lookahead", "fixed", "--synthetic-acceptance-rate", "%.6f" % ((args.acceptance_length - 1) / args.k)]
    result = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if result.returncode != 0:
        sys.exit("end_to_end.py: foretoken failed; its message stands above")
    reply = json.loads(result.stdout)
    speculative = reply["speculative"]
    return {"plain": reply["plain"]["tokens_per_second"], "speculative": speculative["tokens_per_second"],
            "length": speculative.get("mean_acceptance_length", 1.0)}


@contextlib.contextmanager
def llama_server(args, flags):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = shlex.split(args.llama) + ["llama-server", "--host", "127.0.0.1", "--port", str(port), "-m", seen(args, args.model),
                                         "-t", str(args.threads), "-c", str(args.ctx_size), "-np", "1", *flags]
    url = "http://127.0.0.1:%d" % port
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_until_ready(server, url, log)
            yield url
        finally:
            server.terminate()
            server.wait(30)


def wait_until_ready(server, url, log):
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if server.poll() is not None:
            log.seek(0)
            sys.exit("end_to_end.py: llama-server ended:\n" + log.read().decode(errors="replace")[-2000:])
        try:
            with urllib.request.urlopen(url + "/health", timeout=5) as reply:
                if reply.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.1)
    sys.exit("end_to_end.py: llama-server was not ready after %d s" % START_SECONDS)


def llama_once(args, flags):
    """(tokens per second, mean acceptance length) over all prompts."""
    tokens, ms, drafted, accepted = 0, 0.0, 0, 0
    with llama_server(args, flags) as url:
        for i, prompt in enumerate([args.texts[0], *args.texts]):  # the first one warms up
            body = {"prompt": prompt, "n_predict": args.n, "temperature": 0, "ignore_eos": True, "cache_prompt": False}
            request = urllib.request.Request(url + "/completion", json.dumps(body).encode(), {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=TEXT_SECONDS) as reply:
                timings = json.load(reply)["timings"]
            if i == 0:
                continue
            tokens += timings["predicted_n"]
            ms += timings["predicted_ms"]
            drafted += timings.get("draft_n", 0)
            accepted += timings.get("draft_n_accepted", 0)
    rounds = tokens - accepted  # each gives one token of the target's own
    return 1000 * tokens / ms, tokens / rounds if drafted else 1.0


def llama_both(args):
    plain, _ = llama_once(args, [])
    flags = ["--spec-type", args.llama_spec_type, "--spec-draft-n-max", str(args.k)]
    if args.draft:
        flags += ["-md", seen(args, args.draft)]
    if args.acceptance_length:
        flags += ["--spec-synth-len", str(args.acceptance_length)]
    speculative, length = llama_once(args, flags)
    return {"plain": plain, "speculative": speculative, "length": length}


def seen(args, path):
    return os.path.join(args.seen_as, os.path.basename(path))


def show(values):
    return "%.1f (%.1f-%.1f)" % (statistics.median(values), min(values), max(values))


def table(args, ours, theirs):
    print("%s with %s, K = %d, %d prompts of %d tokens, %d threads, %d repeats" %
          (os.path.basename(args.model), os.path.basename(args.draft or args.spec_type or "n-grams"), args.k, len(args.texts), args.n, args.threads,
           args.repeats))
    print("| | foretoken tokens/s | llama.cpp tokens/s | foretoken / llama.cpp |\n|---|---|---|---|")
    for key in ("plain", "speculative"):
        a, b = [run[key] for run in ours], [run[key] for run in theirs]
        print("| %s | %s | %s | %.2f |" % (key, show(a), show(b), statistics.median(a) / statistics.median(b)))
    gains = [[run["speculative"] / run["plain"] for run in runs] for runs in (ours, theirs)]
    print("| speculative / plain | %s | |" % " | ".join("%.2f (%.2f-%.2f)" % (statistics.median(g), min(g), max(g)) for g in gains))
    print("| length | %.2f | %.2f | |" % tuple(statistics.median(run["length"] for run in runs) for runs in (ours, theirs)), flush=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--llama", required=True, metavar="PREFIX")
    parser.add_argument("--seen-as", required=True, metavar="FOLDER")
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("-md", "--draft", help="default: none, and n-gram lookup in both programs")
    parser.add_argument("--spec-type", choices=["mtp", "self"], help="default: as foretoken takes the files")
    parser.add_argument("--self-draft", metavar="TYPE", help="with --spec-type self: the types of foretoken's copy; default: what was measured of this model")
    parser.add_argument("--llama-spec-type", help="default: draft-simple, ngram-simple without a draft, draft-mtp with --spec-type mtp")
    parser.add_argument("--prompts", help="JSON lines with `prompt` or `turns`")
    parser.add_argument("-n", type=int, default=128)
    parser.add_argument("-k", type=int, default=7)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ctx-size", type=int, default=2048)
    parser.add_argument("--acceptance-length", type=float)
    parser.add_argument("--json", default="", metavar="FILE", help="writes all figures there")
    args = parser.parse_args()
    usual = "draft-mtp" if args.spec_type == "mtp" else "draft-simple" if args.draft else "ngram-simple"
    args.llama_spec_type = args.llama_spec_type or usual
    if args.acceptance_length and not 1 <= args.acceptance_length <= args.k + 1:
        parser.error("--acceptance-length: not in [1, %d], what %d drafts can give" % (args.k + 1, args.k))
    return args


def main():
    args = parse()
    with tempfile.TemporaryDirectory() as folder:
        args.prompts = args.prompts or write_prompts(folder)
        args.texts = read_prompts(args.prompts)
        ours, theirs = [], []
        for _ in range(args.repeats):
            ours.append(foretoken_once(args))
            theirs.append(llama_both(args))
        table(args, ours, theirs)
        if args.json:
            measured.write(args.json, {"model": os.path.basename(args.model), "draft": os.path.basename(args.draft or ""), "k": args.k,
                                       "threads": args.threads, "foretoken": ours, "llama_cpp": theirs})


if __name__ == "__main__":
    main()
