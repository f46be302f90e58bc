#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a client waits for its first token, alone and while another client's long prompt is read.

  first_token.py --foretoken build/release/foretoken --model TARGET.gguf [--draft DRAFT.gguf] [--prompt-tokens 2000] [--samples 30] [--threads 2]
                 [--decoding 0] [--plain] [--json FILE]

The time is that from sending a streamed request of about 20 tokens to its first event with text. Idle and disturbed samples alternate; a disturbed one
begins at a random moment of the reading of a prompt that no cache knows, and counts only if the long prompt was still being read when its first token
came. --decoding N: N more clients decode all the time, in both kinds of samples; --plain: nobody drafts.
"""
import argparse
import http.client
import json
import random
import signal
import statistics
import subprocess
import threading
import time

WORDS = "the little girl old dog ran to a big red house and saw her mother under green tree near blue lake".split()


def body(args, prompt, tokens, stream):
    request = {"prompt": prompt, "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": stream}
    if args.plain:
        request["speculative"] = {"enabled": False}
    return json.dumps(request)


class Client:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)

    def whole(self, args, prompt, tokens):
        self.connection.request("POST", "/v1/completions", body(args, prompt, tokens, False), {"Content-Type": "application/json"})
        reply = json.loads(self.connection.getresponse().read())
        if "error" in reply:
            raise SystemExit(f"first_token: {reply['error']['message']}")
        return reply

    def first_token_s(self, args, prompt):
        begin = time.monotonic()
        self.connection.request("POST", "/v1/completions", body(args, prompt, 4, True), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        while b'"text"' not in (line := response.readline()):
            if not line:
                raise SystemExit("first_token: the stream ended without text")
        waited = time.monotonic() - begin
        response.read()
        return waited


def text(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words))


def long_prompt(client, args, rng):
    """A text of about the wanted number of tokens."""
    words = args.prompt_tokens
    for _ in range(3):
        client.connection.request("POST", "/tokenize", json.dumps({"content": text(rng, words)}))
        n = len(json.loads(client.connection.getresponse().read())["tokens"])
        words = words * args.prompt_tokens // n
    return lambda: text(rng, words)


def measure(args, port):
    rng = random.Random(3)
    client, other = Client(port), Client(port)
    fresh = long_prompt(other, args, rng)
    going = True

    def decode(seed):
        mine, random_words = Client(port), random.Random(seed)
        while going:
            mine.whole(args, text(random_words, 8), 64)

    decoders = [threading.Thread(target=decode, args=(i,)) for i in range(args.decoding)]
    for thread in decoders:
        thread.start()
    begin = time.monotonic()
    other.whole(args, fresh(), 1)
    reading_s = time.monotonic() - begin
    idle, disturbed, skipped = [], [], 0
    while len(disturbed) < args.samples and skipped < args.samples:
        idle.append(client.first_token_s(args, text(rng, 18)))
        ended = []
        reader = threading.Thread(target=lambda prompt=fresh(): (other.whole(args, prompt, 1), ended.append(time.monotonic())))
        reader.start()
        time.sleep(rng.uniform(0.02, 0.8) * reading_s)
        waited = client.first_token_s(args, text(rng, 18))
        if ended:
            skipped += 1
        else:
            disturbed.append(waited)
        reader.join()
    going = False
    for thread in decoders:
        thread.join()
    return reading_s, idle, disturbed


def show(name, values):
    ms = sorted(1000 * v for v in values)
    print(f"{name:10} median {statistics.median(ms):8.2f} ms, {ms[0]:.2f} to {ms[-1]:.2f}, nine in ten below {ms[int(0.9 * (len(ms) - 1))]:.2f} ({len(ms)} samples)")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--draft", default="")
    p.add_argument("--prompt-tokens", type=int, default=2000)
    p.add_argument("--samples", type=int, default=30)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--decoding", type=int, default=0)
    p.add_argument("--plain", action="store_true")
    p.add_argument("--json", default="")
    args = p.parse_args()
    draft = ["-md", args.draft] if args.draft else []
    server = subprocess.Popen([args.foretoken, "serve", "-m", args.model, *draft, "--port", "0", "--parallel", str(3 + args.decoding), "-c",
                               str(args.prompt_tokens + 512), "-t", str(args.threads), "--quiet"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(server.stdout.readline().rsplit(":", 1)[1])
        reading_s, idle, disturbed = measure(args, port)
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    print(f"a prompt of {args.prompt_tokens} tokens is read in {1000 * reading_s:.0f} ms")
    show("idle", idle)
    show("disturbed", disturbed)
    print(f"ratio of medians {statistics.median(disturbed) / statistics.median(idle):.2f}, worst over median idle {max(disturbed) / statistics.median(idle):.2f}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"reading_s": reading_s, "idle_s": idle, "disturbed_s": disturbed}, file)


if __name__ == "__main__":
    main()
