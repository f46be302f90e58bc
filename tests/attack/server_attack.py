#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One `foretoken serve` under hostile requests and slow, greedy and vanishing clients, watched all the while: it must live, answer /health soon, stay
under its memory ceiling, and give good requests their exact answers. Then it is killed in all ways, and started where the system gives it too little.

usage: server_attack.py FORETOKEN MODELS [--seed N] [--seconds S] [--requests N] [--clients N] [--threads N] [--keep FOLDER] [--only PART]
"""
import argparse
import contextlib
import fcntl
import http.client
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import hostile_requests
from hostile_clients import Herd, greedy_body
from server_testing import Server, responses, together
from watchers import GoodClient, Health, Life, Memory, wait_for_end

ANSWER_BYTES = 16 << 20  # no answer to what is sent here has a reason to be longer
ANSWER_S = 900           # waits that only end a hang: a machine may be busy. What is slow is found by the watchers
GRACE_S = 900
GOOD = [{"prompt": "One day, Tom", "max_tokens": 24, "temperature": 0.8, "seed": 3, "logprobs": 2},
        {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0},
        {"prompt": "The cat sat on", "max_tokens": 16, "temperature": 1, "seed": 9, "n": 2},
        {"prompt": "Ben and his mom", "max_tokens": 16, "temperature": 0.7, "seed": 1, "grammar": 'root ::= [a-z ]+ "."'}]


def exact(reply):
    return [(c["index"], c["text"], c["finish_reason"], c["logprobs"]) for c in reply["choices"]], reply["usage"]["completion_tokens"]


def wrong_with(found, refused=False):
    """What is wrong with the answers of a hostile connection; "" where nothing is. refused: each must be a refusal."""
    for status, headers, body in found:
        if refused and status < 400:
            return f"status {status} of what must be refused: {body[:300]!r}"
        if status >= 500 and status not in (501, 503, 505):
            return f"status {status}: {body[:300]!r}"
        if status < 400 or not body or "json" not in headers.get("content-type", ""):
            continue
        try:
            error = json.loads(body)["error"]
            message = error if isinstance(error, str) else error["message"]  # Ollama's is a text
        except (ValueError, KeyError, TypeError):
            return f"status {status} without an error in JSON: {body[:300]!r}"
        if not message or len(message) > 4000 or "\n" in message:
            return f"status {status} with a message of {len(message)} characters, or of several lines: {message[:500]!r}"
    return ""


def answers(data, hostile):
    """[(status, headers, body)]. Raises an error if it is not HTTP. HEAD's answers have a length and no body, and a stream in HTTP/1.0
    ends with its connection: nothing is read of those."""
    return [] if b"HEAD " in hostile.data or b" HTTP/1.0" in hostile.data and b"text/event-stream" in data else responses(data)


class Attackers:
    """Threads that send hostile requests until their number or the time is over."""

    def __init__(self, server, options):
        self.server, self.options = server, options
        self.lock, self.next, self.counts, self.wrong, self.lost = threading.Lock(), 0, {}, [], 0
        self.end = time.monotonic() + options.seconds

    def take(self):
        with self.lock:
            if self.next >= self.options.requests or time.monotonic() > self.end or len(self.wrong) > 20:
                return None
            self.next += 1
            return self.next - 1

    def exchange(self, hostile, thread):
        """(what came back, why it broke off)"""
        data = b""
        with socket.socket() as sock:
            sock.settimeout(ANSWER_S)
            sock.bind((f"127.0.3.{1 + thread}", 0))
            sock.connect(("127.0.0.1", self.server.port))
            sender = threading.Thread(target=self.send, args=(sock, hostile.data), daemon=True) if len(hostile.data) > 100_000 else None
            if sender:
                sender.start()
            else:
                self.send(sock, hostile.data, hostile.end == "half")
            if hostile.end == "reset":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if hostile.end != "half":
                return data, ""
            begin = time.monotonic()
            try:
                while part := sock.recv(1 << 16):
                    data += part
                    if len(data) > ANSWER_BYTES:
                        break
            except TimeoutError:
                return data, f"no end of the answer within {ANSWER_S} s; {len(data)} bytes came"
            except OSError:  # refused while it was still being sent
                return data, ""
            if time.monotonic() - begin > ANSWER_S:
                return data, f"the answer took {time.monotonic() - begin:.0f} s"
        return data, ""

    @staticmethod
    def send(sock, data, end=True):
        with contextlib.suppress(OSError):
            sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)

    def attack(self, number, thread):
        hostile = hostile_requests.make(self.options.seed, number)
        try:
            data, why = self.exchange(hostile, thread)
        except OSError as error:
            data, why = b"", f"no connection: {error!r}"
        try:
            found = answers(data, hostile)
        except Exception as error:
            found, why = [], why or f"no HTTP: {error!r}: {data[:300]!r}"
        if len(data) > ANSWER_BYTES:
            why = f"an answer of {len(data)} bytes"
        why = why or wrong_with(found, hostile.refused)
        with self.lock:
            for status in [status for status, _, _ in found] or ["none"]:
                self.counts[status] = self.counts.get(status, 0) + 1
            if why:
                self.wrong.append((number, hostile.name, why))
                os.makedirs(self.options.keep, exist_ok=True)
                with open(os.path.join(self.options.keep, f"request-{self.options.seed}-{number}"), "wb") as file:
                    file.write(hostile.data)

    def work(self, thread):
        while (number := self.take()) is not None and self.server.process.poll() is None:
            self.attack(number, thread)

    def run(self):
        together([lambda i=i: self.work(i) for i in range(self.options.threads)])

    def report(self):
        return f"hostile requests: {self.next}; answers by status: {dict(sorted(self.counts.items(), key=str))}"

    def problems(self):
        return [f"hostile request {number} ({name}; kept): {why}" for number, name, why in self.wrong[:5]]


FOLDER = tempfile.TemporaryDirectory()
TEMPLATE = os.path.join(FOLDER.name, "template.jinja")
with open(TEMPLATE, "w", encoding="utf-8") as template:
    template.write(hostile_requests.TEMPLATE)


def flags_of(options):
    pair = [os.path.join(options.models, name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf")]
    flags = ["-m", pair[0], "-md", pair[1], "-t", "1", "--chat-template-file", TEMPLATE, "--repack-cache", "off", "--parallel", "4", "--max-queue", "16",
             "--slot-save-path", FOLDER.name]
    if "--max-memory" in subprocess.run([options.program, "serve", "--help-all"], capture_output=True, text=True, check=True).stdout:
        flags += ["--max-memory", f"{options.ceiling_mib}M"]
    return flags


def learn(options):
    with Server(options.program, *flags_of(options), "-q") as server:
        return [exact(server.completion(**body)) for body in GOOD]


def ask_good(server):
    def ask(i):
        status, _, body = server.send("POST", "/v1/completions", GOOD[i])
        return status, exact(json.loads(body)) if status == 200 else body
    return ask


# ---- The attack --------------------------------------------------------------------------------------------------------------------------------

def attack(options, expected):
    """Hostile requests and clients against one server."""
    server = Server(options.program, *flags_of(options))
    files = server.idle_files()
    watchers = [Life(server.process, server.log_text), Memory(server.process.pid, options.ceiling_mib), GoodClient(ask_good(server), expected),
                Health(server.port, options.health_ms)]
    begin = time.monotonic()
    herd, attackers = Herd(server.port, options.clients, options.seed), Attackers(server, options)
    attackers.run()
    print(f"  {time.monotonic() - begin:.0f} s of hostile requests", flush=True)
    herd.stop()
    for watcher in watchers[1:]:
        watcher.stop()
    problems = [problem for watcher in (*watchers, attackers) for problem in watcher.problems()]
    for part in (attackers, herd, *watchers[1:]):
        print("  " + part.report(), flush=True)
    if server.process.poll() is None:
        problems += recovers(server, files, expected)
    return problems + end(server)


def recovers(server, files, expected):
    """When all clients have gone, the server is as it was."""
    problems, last = [], time.monotonic() + 90
    while time.monotonic() < last and (server.busy() or server.open_files() > files):
        time.sleep(0.2)
    if server.open_files() > files:
        problems.append(f"{server.open_files()} descriptors after the attack, {files} before it")
    if (got := [exact(server.completion(**body)) for body in GOOD]) != expected:
        problems.append(f"after the attack good requests got {got}")
    return problems


def end(server):
    problems = []
    server.process.terminate()
    if why := wait_for_end(server.process, GRACE_S):
        problems.append(why)
    close(server, problems)
    return problems


def close(server, problems):
    try:
        server.__exit__()
    except AssertionError as error:  # a sanitizer's report
        problems.append(str(error))


# ---- Without a key ---------------------------------------------------------------------------------------------------------------------------

KEYLESS_MIB = 64  # what clients without a key may make the server take: their connections, no bodies


def keyless(options, expected):
    """Large bodies from many clients without a key: they are refused by their headers and hold next to nothing, and who has a key is answered."""
    key = {"headers": {"Authorization": "Bearer open"}}
    server = Server(options.program, *flags_of(options), "-q", "--api-key", "open")

    def ask(i):
        status, _, body = server.send("POST", "/v1/completions", GOOD[i], **key)
        return status, exact(json.loads(body)) if status == 200 else body

    problems = [] if [ask(i) for i in range(len(GOOD))] == [(200, right) for right in expected] else ["with a key: other texts"]
    memory, good = Memory(server.process.pid, 1 << 20), GoodClient(ask, expected)
    time.sleep(0.2)
    herd = Herd(server.port, 2 * options.clients, options.seed, (greedy_body,), 0.01)
    time.sleep(min(20.0, options.seconds / 10))
    for part in (herd, memory, good):
        part.stop()
    memory.ceiling_mib = memory.first_mib + KEYLESS_MIB
    for part in (memory, good, herd):
        print("  " + part.report(), flush=True)
    problems += memory.problems() + good.problems()
    return problems + end(server)


# ---- Kills -------------------------------------------------------------------------------------------------------------------------------------

LONG = {"prompt": "Once upon a time", "max_tokens": 60, "ignore_eos": True, "seed": 5, "stream": True}


def kills(options, expected):
    """Signals in mid-stream. What was accepted is answered to its end (but for SIGKILL), what was recorded can be read, and a new start is right."""
    problems, draw = [], random.Random(f"kills {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "SIGTERM twice"):
            record = os.path.join(folder, name.replace(" ", "-") + ".jsonl")
            server = Server(options.program, *flags_of(options), "--record", record, "--lookahead", "by-text", "-q")
            streams = [server.begin("/v1/completions", {**LONG, "seed": i}) for i in range(3)]
            server.completion(**GOOD[0])
            time.sleep(draw.random() * 0.2)
            number = getattr(signal, name.split()[0])
            server.process.send_signal(number)
            if name.endswith("twice"):
                server.process.send_signal(number)
            problems += [f"{name}: {why}" for why in killed(server, streams, number, name)]
            if os.path.exists(record) and (why := unreadable(options, record)):
                problems.append(f"{name}: the record of the run: {why}")
            close(server, problems)
        left = [name for name in os.listdir(folder) if not name.endswith(".jsonl")]
        if left:
            problems.append(f"left behind: {left}")
    with Server(options.program, *flags_of(options), "-q") as server:
        if [exact(server.completion(**body)) for body in GOOD] != expected:
            problems.append("a start after kills answers otherwise")
    print("  kills: SIGTERM, SIGINT, SIGHUP, SIGKILL, SIGTERM twice", flush=True)
    return problems


def killed(server, streams, number, name):
    ends = []
    for connection, response in streams:
        try:
            ends.append(response.read().endswith(b"data: [DONE]\n\n"))
        except Exception:  # broken off
            ends.append(False)
        connection.close()
    try:
        code = server.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        return [f"it was still there after {GRACE_S} s"]
    if number == signal.SIGKILL:
        return [] if code == -signal.SIGKILL else [f"exit code {code}"]
    if name.endswith("twice"):
        return [] if code >= 0 or code == -number else [f"exit code {code}"]
    return ([] if code == 0 else [f"exit code {code}"]) + ([] if all(ends) else [f"streams that were accepted ended so: {ends}"])


def unreadable(options, record):
    done = subprocess.run([options.program, "replay", record], capture_output=True, text=True, timeout=GRACE_S, check=False)
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr[-500:]}"


# ---- Limits ------------------------------------------------------------------------------------------------------------------------------------

def limited(*limits):
    def set_limits():
        for name, value in limits:
            resource.setrlimit(name, (value, value))
    return set_limits


def start_under(options, limits, *flags, stderr=subprocess.PIPE):
    """(exit code or None, port, process): of a server that has begun to serve, or ended."""
    process = subprocess.Popen([options.program, "serve", "--port", "0", *flags_of(options), *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=stderr, preexec_fn=limited(*limits))
    line = process.stdout.readline().decode()
    match = re.search(r" at http://127\.0\.0\.1:(\d+)\n", line)
    if match:
        return process, int(match[1])
    process.wait(GRACE_S)
    return process, None


def completion(port, body, timeout=ANSWER_S):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def serves(process, port, expected, seconds_to_end=GRACE_S):
    try:
        for body, right in zip(GOOD, expected):
            status, reply = completion(port, body)
            if status != 200 or exact(reply) != right:
                return [f"status {status}: {str(reply)[:300]}"]
    except (OSError, ValueError) as error:
        return [repr(error)]
    finally:
        process.terminate()
        why = wait_for_end(process, seconds_to_end)
    return [why] if why else []


def little_memory(options, expected):
    """Address space in steps: it serves rightly, or ends with a message; never by a signal."""
    problems, outcomes = [], []
    if "asan" in options.program:
        return []
    # With less than the program itself takes (8.3 MiB) the system ends it before its first instruction.
    for mib in (12, 24, 40, 64, 96, 160, 320, 1000):
        process, port = start_under(options, [(resource.RLIMIT_AS, mib << 20)], "-q")
        if port is None:
            message = process.stderr.read().decode(errors="replace")
            outcomes.append(f"{mib} MiB: exit code {process.returncode}")
            # Below some size the loader of shared libraries gives up before the program begins.
            loader = process.returncode == 127 or "error while loading shared libraries" in message or (mib < 64 and not message)
            if process.returncode < 0 or (not loader and ("terminate" in message or not message.strip())):
                problems.append(f"with {mib} MiB of address space: exit code {process.returncode}: {message[-500:]!r}")
        else:
            outcomes.append(f"{mib} MiB: serves")
            problems += [f"with {mib} MiB of address space: {why}" for why in serves(process, port, expected)]
        process.stdout.close(), process.stderr.close()
    print("  address space: " + "; ".join(outcomes), flush=True)
    return problems


def few_descriptors(options, expected):
    process, port = start_under(options, [(resource.RLIMIT_NOFILE, 40)], "-q")
    if port is None:
        return [f"with 40 descriptors: exit code {process.returncode}: {process.stderr.read()[-300:]!r}"]
    held = []
    for _ in range(80):
        sock = socket.socket()
        sock.settimeout(1)
        with contextlib.suppress(OSError):
            sock.connect(("127.0.0.1", port))
        held.append(sock)
    for sock in held:
        sock.close()
    return [f"with 40 descriptors: {why}" for why in serves(process, port, expected)]


def no_room_for_files(options, expected):
    """A record that cannot grow, as on a full disk: it is said, and requests are answered."""
    with tempfile.TemporaryDirectory() as folder:
        process, port = start_under(options, [(resource.RLIMIT_FSIZE, 300)], "--record", os.path.join(folder, "record.jsonl"), "-q")
        if port is None:
            return [] if process.returncode > 0 else [f"without room for files: exit code {process.returncode}"]
        problems = [f"without room for files: {why}" for why in serves(process, port, expected) if "exit code 1 " not in why]
        left = [name for name in os.listdir(folder) if name != "record.jsonl"]
        return problems + ([f"without room for files: left behind {left}"] if left else [])


def key_files(options, expected):
    """Permissions of a file of keys, by chance: one that others may write is refused at the start."""
    problems, draw = [], random.Random(f"keys {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "keys")
        with open(path, "w", encoding="ascii") as file:
            file.write("open\n")
        for mode in [0o600, 0o602, 0o620] + [0o400 | draw.randrange(0o400) for _ in range(3)]:
            os.chmod(path, mode)
            process, port = start_under(options, [], "-q", "--api-key-file", path)
            if (port is None) != (mode & 0o022 != 0):
                problems.append(f"a file of keys with mode {mode:03o} is {'refused' if port is None else 'taken'}")
            process.terminate()
            message = process.communicate(timeout=GRACE_S)[1].decode(errors="replace")
            if port is None and (process.returncode <= 0 or not message.startswith("foretoken: ") or message.count("\n") != 1):
                problems.append(f"a file of keys with mode {mode:03o}: exit code {process.returncode}: {message[-300:]!r}")
    return problems


def full_log(options, expected):
    with open("/dev/full", "wb") as full:
        process, port = start_under(options, [], stderr=full)
    return [f"with a full log: {why}" for why in serves(process, port, expected)] if port else [f"with a full log: exit code {process.returncode}"]


def stalled_log(options, expected):
    """A reader of the log that stops: its pipe is small and full from the start."""
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    process = None
    try:
        # Nobody reads; what the start says fits, what requests say does not for long.
        process, port = start_under(options, [], stderr=writer)
        if port is None:
            return [f"with a stalled log: exit code {process.returncode}"]
        for _ in range(80):
            completion(port, GOOD[1])
        return [f"with a stalled log: {why}" for why in serves(process, port, expected)]
    except OSError as error:
        process.kill()
        return [f"with a stalled log: {error!r}"]
    finally:
        os.close(reader), os.close(writer)


def limits(options, expected):
    problems = []
    for part in (little_memory, few_descriptors, no_room_for_files, key_files, full_log, stalled_log):
        found = part(options, expected)
        print(f"  {part.__name__.replace('_', ' ')}: {'; '.join(found) or 'fine'}", flush=True)
        problems += found
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("models", type=os.path.abspath)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--seconds", type=float, default=600, help="of hostile requests; kills and limits take about a minute more")
    parser.add_argument("--requests", type=int, default=1 << 60, help="hostile requests at most")
    parser.add_argument("--clients", type=int, default=100, help="slow and greedy clients at once")
    parser.add_argument("--threads", type=int, default=8, help="hostile requests at once")
    parser.add_argument("--ceiling-mib", type=int, default=512, help="the server's resident memory; given to it where it takes such a flag")
    parser.add_argument("--health-ms", type=float, default=100, help="the bound for the 99th percentile of /health")
    parser.add_argument("--keep", default="attack-kept", help="a folder for requests that found something")
    parser.add_argument("--only", choices=("attack", "keyless", "kills", "limits"))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    expected, problems = learn(options), []
    for part in (attack, keyless, kills, limits):
        if options.only in (None, part.__name__):
            begin = time.monotonic()
            print(part.__name__, flush=True)
            problems += part(options, expected)
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    for problem in problems:
        print("PROBLEM " + problem)
    print(f"FAILED with seed {options.seed}" if problems else "passed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
