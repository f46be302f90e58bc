#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many short requests of all kinds to one `foretoken serve`, some of them broken off, each reply compared whole with what the request gets alone;
memory, descriptors and threads must stay level, and the metrics must count what the clients saw. With --hostile, other clients send hostile requests
(tests/attack/hostile_requests.py) all the while.

usage: soak.py FORETOKEN MODELS [--requests N] [--connections N] [--disconnects SHARE] [--hostile CLIENTS] [--json FILE] [...]
"""
import argparse
import contextlib
import json
import os
import random
import socket
import statistics
import struct
import sys
import threading
import time

from server_testing import Server, events, request_bytes

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "attack"))
import hostile_requests

OPENINGS = ("Once upon a time", "One day, Tom", "Lily saw a big dog", "The sun was warm and", "There was a little boy who", "Ben and his mom went to",
            "In a small house lived", "The cat sat on", "Anna had a red ball.", "It was a cold day and", "A bird sang", "Sam liked to")
ENDINGS = ("", " in the park", ". He was very happy. \"Look!\" he said.")
GRAMMARS = ('root ::= [a-z ]+ "."', 'root ::= ("yes" | "no" | " maybe") [a-z]*')
TYPES = ("none", "ngram", "standalone", "suffix", "standalone", ["standalone", "suffix"])
WRONG = ({"temperature": 3}, {"max_tokens": -2}, {"prompt": []}, {"seed": "x"}, {"logit_bias": {"a": 1}}, {"speculative": {"type": "magic"}},
         {"grammar": "root ="}, {"n": 0}, {"max_token": 2}, {"model": "other"})
FLAT = 0.03  # growth of the resident size that still counts as none
# The same beside hostile clients: the allocator keeps what the largest of their requests that met took, and ever more of them meet (60,000 requests:
# 74, 83, 85, 88 MiB). If what they send were kept, it would be 30 MiB for 1,600 of their requests.
FLAT_UNDER_ATTACK_KIB = 24 << 10


class Case:
    """A request that may be sent often: its bytes whole and streamed, and, once known, what it gets."""

    def __init__(self, draw):
        self.chat = draw.random() < 0.2
        self.n = 2 if draw.random() < 0.15 else 1
        self.path = "/v1/chat/completions" if self.chat else "/v1/completions"
        self.body = self.wrong(draw) if draw.random() < 0.05 else self.right(draw)
        self.whole = request_bytes(self.path, self.body, "Connection: keep-alive")
        with_usage = {"stream": True, "stream_options": {"include_usage": True}}
        self.streamed = request_bytes(self.path, {**self.body, **with_usage}, "Connection: keep-alive")
        self.expected = None  # (status, what exact() keeps)

    def right(self, draw):
        text = draw.choice(OPENINGS) + draw.choice(ENDINGS)
        body = {"messages": [{"role": "user", "content": text}]} if self.chat else {"prompt": text}
        body.update(max_tokens=draw.randint(1, 24), seed=draw.randint(0, 99), temperature=draw.choice((0, 0.7, 1.0)), n=self.n)
        for share, fields in ((0.2, {"top_k": draw.choice((5, 40))}), (0.2, {"top_p": 0.9}), (0.15, {"min_p": 0.05}),
                              (0.15, {"repetition_penalty": 1.2}),
                              (0.1, {"frequency_penalty": 0.5, "presence_penalty": 0.25}), (0.1, {"logit_bias": {"261": -100, "414": 2}}),
                              (0.2, {"stop": [" the", "Lily"]}), (0.15, {"logprobs": True, "top_logprobs": 2} if self.chat else {"logprobs": 2}),
                              (0.1, {"prediction": {"type": "content", "content": text + " there was a little girl named Lily."}}),
                              (0.08, {"grammar": draw.choice(GRAMMARS)}), (0.1, {"ignore_eos": True})):
            if draw.random() < share:
                body.update(fields)
        if draw.random() < 0.6:
            body["speculative"] = {"type": draw.choice(TYPES), "num_speculative_tokens": draw.randint(0, 8)}
        return body

    def wrong(self, draw):
        body = {**({"messages": [{"role": "user", "content": "a"}]} if self.chat else {"prompt": "a"}), "max_tokens": 2, **draw.choice(WRONG)}
        if self.chat and "prompt" in body:
            body["messages"] = body.pop("prompt")
        return body


def exact(reply):
    """What of a whole reply does not depend on the machine's pace nor on who else asks."""
    if "error" in reply:
        return reply["error"]
    choices = [(choice["text"] if "text" in choice else choice["message"]["content"], choice["finish_reason"],
                choice["logprobs"] and {key: values for key, values in choice["logprobs"].items() if values is not None})
               for choice in reply["choices"]]
    return choices, [reply["usage"][key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")], reply["seed"]


def exact_of_stream(data, n):
    """The same of a streamed one."""
    texts, reasons, logprobs, usage, seed = [""] * n, [None] * n, [None] * n, None, None
    for chunk in events(data):
        if "error" in chunk:
            return chunk["error"]
        usage, seed = chunk.get("usage") or usage, chunk.get("seed", seed)
        for choice in chunk["choices"]:
            i = choice["index"]
            texts[i] += choice["text"] if "text" in choice else choice["delta"].get("content") or ""
            reasons[i] = choice["finish_reason"] or reasons[i]
            for key, values in (choice.get("logprobs") or {}).items():
                if values is not None:
                    logprobs[i] = logprobs[i] or {}
                    logprobs[i][key] = logprobs[i].get(key, []) + values
    return list(zip(texts, reasons, logprobs)), [usage[key] for key in ("prompt_tokens", "completion_tokens", "total_tokens")], seed


class Client:
    """A kept connection, as thin as it can be."""

    def __init__(self, port):
        self.port, self.sock, self.data = port, None, b""

    def open(self):
        if self.sock is None:
            self.sock = socket.create_connection(("127.0.0.1", self.port), timeout=120)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.data = b""
        return self.sock

    def close(self, reset=False):
        if self.sock is None:
            return
        if reset:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        self.sock = None

    def until(self, mark):
        while (found := self.data.find(mark)) < 0:
            part = self.sock.recv(1 << 16)
            if not part:
                raise ConnectionError(f"closed after {self.data[:200]!r}")
            self.data += part
        part, self.data = self.data[:found], self.data[found + len(mark):]
        return part

    def take(self, size):
        while len(self.data) < size:
            part = self.sock.recv(1 << 16)
            if not part:
                raise ConnectionError("closed in a body")
            self.data += part
        part, self.data = self.data[:size], self.data[size:]
        return part

    def ask(self, request):
        """(status, body)"""
        self.open().sendall(request)
        head = self.until(b"\r\n\r\n").decode("latin-1").lower()
        if "transfer-encoding: chunked" in head:
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.take(size + 2)[:-2]
            self.take(2)
        else:
            body = self.take(int(head.partition("content-length: ")[2].partition("\r\n")[0]))
        if "connection: close" in head:
            self.close()
        return int(head[9:12]), body


def growth(samples, warm_up):
    """The growth of the resident size, [(requests, KiB)], after the warm-up: by the medians of its first and last tenth, and by the slope."""
    kept = [(n, rss) for n, rss in samples if n > samples[-1][0] * warm_up]
    tenth = max(1, len(kept) // 10)
    first, last = (statistics.median(rss for _, rss in part) for part in (kept[:tenth], kept[-tenth:]))
    slope = statistics.linear_regression([n for n, _ in kept], [rss for _, rss in kept]).slope
    return {"first_kib": first, "last_kib": last, "growth": last / first - 1, "growth_by_slope": slope * (kept[-1][0] - kept[0][0]) / first,
            "bytes_per_request": slope * 1024}


def flat(memory):
    return max(memory["growth"], memory["growth_by_slope"]) <= FLAT


def controls(cases):
    """What the verdicts must tell apart, they do: other requests' replies, and a leak of a few bytes a request."""
    good = [case for case in cases if case.expected[0] == 200]
    assert len(good) > len(cases) / 2 and len({json.dumps(case.expected) for case in good}) > len(good) / 2
    noise = random.Random(0)
    level = [(n, 70_000 + noise.randrange(500)) for n in range(1000, 101_000, 1000)]
    assert flat(growth(level, 0.1)) and not flat(growth([(n, rss + 30 * n / 1024) for n, rss in level], 0.1))


class Soak:
    def __init__(self, server, cases, options):
        self.server, self.cases, self.options = server, cases, options
        self.lock = threading.Lock()
        self.sent = 0
        self.seen = {}  # by status
        self.choices = self.tokens = 0  # of good replies
        self.left = self.left_choices = self.broken = 0  # clients that went: after a whole request; before one
        self.wrong = []
        self.samples = []  # (requests, KiB, descriptors, threads)
        self.hostile, self.over = 0, threading.Event()

    def sample(self, n):
        self.samples.append((n, self.server.status_of_process("VmRSS"), self.server.open_files(), self.server.status_of_process("Threads")))

    def next(self):
        every = min(1000, max(1, self.options.requests // 50))
        with self.lock:
            if self.sent == self.options.requests or len(self.wrong) > 20:
                return False
            self.sent += 1
            if self.sent % every == 0:
                self.sample(self.sent)
            return True

    def work(self, number):
        draw, client = random.Random(f"{self.options.seed}/{number}"), Client(self.server.port)
        while self.next():
            case, stream = draw.choice(self.cases), draw.random() < 0.4
            try:
                if draw.random() < self.options.disconnects:
                    self.go_away(client, case, stream, draw)
                else:
                    self.compare(client, case, stream)
            except Exception as error:  # a lost reply is a wrong one
                client.close()
                with self.lock:
                    self.wrong.append({"request": case.body, "error": repr(error)})
        client.close()

    def compare(self, client, case, stream):
        while True:
            status, body = client.ask(case.streamed if stream else case.whole)
            with self.lock:
                self.seen[status] = self.seen.get(status, 0) + 1
            if status != 429:
                break
            time.sleep(0.05)
        got = exact_of_stream(body, case.n) if stream and status == 200 else exact(json.loads(body))
        with self.lock:
            if status == 200 and not isinstance(got, dict):
                self.choices += case.n
                self.tokens += got[1][1]
            if (status, got) != case.expected:
                self.wrong.append({"request": case.body, "stream": stream, "status": status, "got": got, "expected": case.expected})

    def go_away(self, client, case, stream, draw):
        data, how = case.streamed if stream else case.whole, draw.randrange(3)
        sock = client.open()
        if how == 0:
            sock.sendall(data[:draw.randrange(1, len(data))])
            client.close()
            with self.lock:
                self.broken += 1
            return
        sock.sendall(data)
        if how == 1:
            time.sleep(draw.random() * 0.01)
        else:
            sock.recv(draw.randrange(1, 200))
        client.close(reset=draw.random() < 0.5)
        with self.lock:
            self.left += 1
            self.left_choices += case.n if case.expected[0] == 200 else 0

    def be_hostile(self):
        """Hostile requests, one after the other, as long as good ones are sent. What they are answered, tests/attack looks at."""
        while not self.over.is_set():
            with self.lock:
                self.hostile += 1
                made = hostile_requests.make(self.options.seed, self.hostile)
            with contextlib.suppress(OSError), self.server.socket() as sock:
                sock.sendall(made.data)
                if made.end == "half":
                    sock.shutdown(socket.SHUT_WR)
                    while sock.recv(1 << 16):
                        pass
            self.over.wait(self.options.hostile_pause)

    def run(self):
        begin = time.monotonic()
        threads = [threading.Thread(target=self.work, args=(i,)) for i in range(self.options.connections)]
        enemies = [threading.Thread(target=self.be_hostile) for _ in range(self.options.hostile)]
        for thread in (*threads, *enemies):
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begin
        self.over.set()
        for thread in enemies:
            thread.join()
        return seconds

    def check_counts(self, problems):
        """The server's counts, against the clients'. What a client that went was answered, only the server knows."""
        own = self.server.sent  # before this one
        metrics = self.server.metrics()

        def total(name, **labels):
            return sum(value for (key, found), value in metrics.items() if key == name and frozenset(labels.items()) <= found)

        ok, gone = total("http_responses_total", status="200"), total("http_responses_total", status="499")
        bad = total("http_responses_total", status="400")
        choices = sum(total("request_success_total", finished_reason=reason) for reason in ("stop", "length"))
        aborted, tokens = total("request_success_total", finished_reason="abort"), total("generation_tokens_total")
        seen = self.seen.get(200, 0)
        if self.hostile:  # whose share of the counts only the server knows
            if seen + own > ok or self.choices > choices or self.tokens > tokens:
                problems.append(f"the server counted less than its clients: {ok} responses, {choices} choices, {tokens} tokens")
            return {"responses_200": ok, "responses_400": bad, "responses_499": gone}
        counts = {"responses_200": ok, "responses_400": bad, "responses_499": gone, "choices": choices, "aborted": aborted,
                  "generation_tokens": tokens}
        # A reset may overtake the request that it follows: the server's system then drops what was not read, and nobody counts it.
        stayed, went = seen + own + self.seen.get(400, 0), self.left + self.broken
        if not seen + own <= ok or not stayed + went // 2 <= ok + gone + bad <= stayed + went:
            problems.append(f"responses: {counts}, but the clients saw {self.seen} beside {own}, {self.left} left and {self.broken} broke off")
        if not self.choices <= choices or not choices + aborted <= self.choices + self.left_choices:
            problems.append(f"choices: {counts}, but the clients saw {self.choices}, and {self.left_choices} of those who left")
        if tokens < self.tokens or (self.left == 0 and tokens != self.tokens):
            problems.append(f"tokens: {tokens}, but the clients saw {self.tokens}")
        return counts


def serve(options, parallel):
    pair = [os.path.join(options.models, name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf")]
    return Server(os.path.abspath(options.program), "-m", pair[0], "-md", pair[1], "-t", str(options.threads), "--chat-template", "chatml", "-q",
                  "--repack-cache", "off", "--parallel", str(parallel), "--max-queue", str(4 * options.connections), *options.serve)


def learn(options, cases):
    """What each request gets alone."""
    with serve(options, 1) as server:
        client = Client(server.port)
        for case in cases:
            status, body = client.ask(case.whole)
            case.expected = status, exact(json.loads(body))
        client.close()


def settle(server, files):
    for name in ("num_requests_running", "num_requests_waiting"):
        server.await_metric(name, 0)
    await_files(server, files)


def await_files(server, files):
    end = time.monotonic() + 10
    while server.open_files() > files and time.monotonic() < end:
        time.sleep(0.1)


def measure(options, cases):
    with serve(options, options.parallel) as server:
        files, threads = server.idle_files(), server.status_of_process("Threads")
        soak = Soak(server, cases, options)
        own_begin = time.process_time()
        seconds = soak.run()
        own_seconds = time.process_time() - own_begin
        settle(server, files)
        problems = [f"reply: {json.dumps(wrong)}" for wrong in soak.wrong[:3]]
        counts = soak.check_counts(problems)
        memory = growth([(n, rss) for n, rss, _, _ in soak.samples], options.warm_up)
        if options.hostile:
            if memory["last_kib"] - memory["first_kib"] > FLAT_UNDER_ATTACK_KIB:
                problems.append(f"memory: it grew by more than {FLAT_UNDER_ATTACK_KIB >> 10} MiB")
        elif not flat(memory):
            problems.append(f"memory: it grew by more than {FLAT:.0%}")
        await_files(server, files)
        if server.open_files() > files:
            problems.append(f"descriptors: {server.open_files()} at the end, {files} at the start")
        most_files, most_threads = (max(sample[i] for sample in soak.samples) for i in (2, 3))
        if most_files > files + 2 * (options.connections + options.hostile) or most_threads > threads:
            problems.append(f"{most_files} descriptors and {most_threads} threads for {options.connections} connections; {threads} threads at the start")
        server.process.terminate()
        if server.wait() != 0:
            problems.append(f"exit code {server.process.returncode}")
    return {"requests": soak.sent, "hostile": soak.hostile, "seconds": seconds, "requests_per_second": soak.sent / seconds, "client_cpu_seconds": own_seconds,
            "distinct": len(cases), "seen": soak.seen, "left": soak.left, "broken": soak.broken, "wrong": len(soak.wrong),
            "choices": soak.choices, "tokens": soak.tokens, "counts": counts, "memory": memory, "most_files": most_files,
            "most_threads": most_threads, "samples": soak.samples, "problems": problems}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models")
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=24)
    parser.add_argument("--parallel", type=int, default=16)
    parser.add_argument("--threads", type=int, default=1, help="of the server's engine")
    parser.add_argument("--distinct", type=int, default=600, help="different requests")
    parser.add_argument("--disconnects", type=float, default=0.05, help="share of the requests whose clients go away")
    parser.add_argument("--hostile", type=int, default=0, help="clients that send hostile requests meanwhile")
    parser.add_argument("--hostile-pause", type=float, default=0.05, help="seconds between two of such a client")
    parser.add_argument("--warm-up", type=float, default=0.2, help="share of the requests before memory must be level")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="more flags for the server; last")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    cases = [Case(draw) for _ in range(options.distinct)]
    learn(options, cases)
    controls(cases)
    result = measure(options, cases)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
    memory = result["memory"]
    print("{requests} requests, {distinct} distinct, in {seconds:.1f} s: {requests_per_second:.0f} a second; the clients took "
          "{client_cpu_seconds:.1f} s of a core".format(**result))
    if options.hostile:
        print("{hostile} hostile requests beside them".format(**result))
    print("replies by status {seen}, {left} clients left, {broken} broke off in a request; {wrong} wrong".format(**result))
    print(f"memory {memory['first_kib'] / 1024:.1f} -> {memory['last_kib'] / 1024:.1f} MiB ({memory['growth']:+.2%}; by slope "
          f"{memory['growth_by_slope']:+.2%}, {memory['bytes_per_request']:.0f} bytes a request)")
    print("at most {most_files} descriptors and {most_threads} threads".format(**result))
    for problem in result["problems"]:
        print("PROBLEM " + problem)
    print("FAILED" if result["problems"] else "passed")
    return 1 if result["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
