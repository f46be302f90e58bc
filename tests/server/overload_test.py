#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve` when more is asked of it than it has: memory, connections, descriptors, requests of one client. In each attack the process
stays below its ceiling and /health is answered; with --time within 100 ms in 99 of 100 calls (or as soon as a server that does nothing else, where
the machine is busy).

usage: overload_test.py FORETOKEN MODELS [--time]
"""
import collections
import contextlib
import json
import os
import resource
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server_case import DRAFT, ONE_THREAD, PAIR, PROGRAM, SLOW, TARGET, ServerCase, main, run_program
from server_testing import SECONDS, Server, read_all, request_bytes, responses, together, until

TIMED = "--time" in sys.argv  # also bounds how long /health takes, beside a process that answers at once
MIB = 1 << 20
COMPLETIONS = "/v1/completions"
SHORT = {"prompt": "Once upon a time", "max_tokens": 6, "temperature": 0, "seed": 4}
LONG = {"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True, "temperature": 0, "speculative": {"enabled": False}}
CONTROL = """
import socket, sys
door = socket.create_server(("127.0.0.1", 0), backlog=64)
print(door.getsockname()[1], flush=True)
while True:
    guest, _ = door.accept()
    guest.recv(4096)
    guest.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
    guest.close()
"""


def program_behind(command):
    """A program that is PROGRAM behind a shell's command; who asks for it removes it."""
    with tempfile.NamedTemporaryFile("w", suffix=".sh", delete=False) as script:
        script.write(f'#!/bin/sh\n{command}\nexec "{PROGRAM}" "$@"\n')
    os.chmod(script.name, 0o700)
    return script.name


def p99(seconds):
    return sorted(seconds)[int(0.99 * (len(seconds) - 1))]


class Prober:
    """Asks for /health all the while, on a connection of its own each time, and as often the control."""

    def __init__(self, server, control):
        self.ports, self.times, self.bad = (server.port, control), ([], []), []
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        data = request_bytes("/health")
        while not self.done.is_set():
            for port, times in zip(self.ports, self.times):
                begin = time.monotonic()
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as sock:
                        sock.sendall(data)
                        reply = read_all(sock)
                    if not reply.startswith(b"HTTP/1.1 200"):
                        self.bad.append(reply[:200])
                except OSError as error:
                    self.bad.append(error)
                times.append(time.monotonic() - begin)
            time.sleep(0.005)

    def report(self):
        health, control = (p99(times) for times in self.times)
        return len(self.times[0]), health, control


def await_refusal(socks):
    """Returns once the server has refused one of them, because it has no connection left."""
    poll = select.poll()
    by_number = {sock.fileno(): sock for sock in socks}
    for number in by_number:
        poll.register(number, select.POLLIN)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for number, _ in poll.poll(1000):
            with contextlib.suppress(OSError):
                if b" 503 " in by_number[number].recv(4096, socket.MSG_PEEK).partition(b"\r\n")[0]:
                    return
            poll.unregister(number)
    raise AssertionError("no connection was refused")


class Overload(ServerCase):
    FLAGS = ("-md", DRAFT, *ONE_THREAD)

    @classmethod
    def setUpClass(cls):
        control = subprocess.Popen([sys.executable, "-c", CONTROL], stdout=subprocess.PIPE, text=True)
        cls.addClassCleanup(lambda: (control.kill(), control.wait(), control.stdout.close()))
        cls.control_port = int(control.stdout.readline())

    def limited(self, files, *flags, **options):
        """A server that may have so many files open."""
        program = program_behind(f"ulimit -n {files}")
        self.addCleanup(os.unlink, program)
        server = Server(program, *PAIR, *flags, **options)
        self.addCleanup(server.__exit__)
        return server

    @contextlib.contextmanager
    def health_is_answered(self, server):
        prober = Prober(server, self.control_port)
        prober.thread.start()
        begin = time.monotonic()
        try:
            yield prober
            while len(prober.times[0]) < 50 and time.monotonic() < begin + 2 * SECONDS:
                time.sleep(0.02)
        finally:
            prober.done.set()
            prober.thread.join()
        n, health, control = prober.report()
        print(f"{self.id().split('.')[-1]}: {n} calls of /health, p99 {1000 * health:.1f} ms, control {1000 * control:.1f} ms, "
              f"peak {server.status_of_process('VmHWM') / 1024:.0f} MiB", file=sys.stderr)
        self.assertEqual(prober.bad, [])
        self.assertGreaterEqual(n, 50)
        if TIMED:
            busy = max(1.0, os.getloadavg()[0] / os.cpu_count())  # others wait for the processors, too
            self.assertLessEqual(health, busy * max(0.1, 4 * control))

    def many(self, server, data, n):
        """{status: how many} of n requests at once, each on a connection of its own."""
        def one():
            found = []
            with server.socket() as sock:
                with contextlib.suppress(OSError):  # refused; the answer is there
                    sock.sendall(data)
                with contextlib.suppress(OSError):
                    found = responses(read_all(sock))
            if found and found[0][0] in (429, 503):
                self.assertIn("retry-after", found[0][1])
            return found[0][0] if found else None

        return dict(collections.Counter(together([one] * n)))

    def peak(self, server):
        return server.status_of_process("VmHWM") << 10

    def held(self, server):
        return server.get("/health")["memory"]["requests_bytes"]

    # ---- Memory.

    def test_large_bodies_stay_below_the_ceiling(self):
        server = self.serve("--max-memory", "300M")
        body = b"[" + b" " * (8 * MIB - 2) + b"]"
        with self.health_is_answered(server):
            counts = self.many(server, request_bytes(COMPLETIONS, body), 120)
        self.assertEqual(set(counts) - {400, 503, 413}, set(), counts)
        self.assertLess(self.peak(server), 300 * MIB)
        self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)

    def test_works_on_large_bodies_wait_for_each_other(self):
        server = self.serve("--max-memory", "400M", "--max-body-bytes", str(2 * MIB))
        text = json.dumps({"content": "a" * MIB}).encode()
        values = b'{"content": "a", "x": [' + b"[]," * (2 * MIB // 3 - 20) + b"[]]}"
        with self.health_is_answered(server):
            counts = together([lambda: self.many(server, request_bytes("/tokenize", text), 4),
                               lambda: self.many(server, request_bytes("/tokenize", values), 12),
                               lambda: self.many(server, request_bytes("/tokenize", {"content": "small"}), 20)])
        self.assertLess(self.peak(server), 400 * MIB)
        self.assertIn(200, counts[0])
        self.assertEqual(counts[2], {200: 20})

    def test_a_body_that_takes_more_than_there_is_names_the_flag(self):
        server = self.serve("--max-memory", "256M")
        self.assertIn("--max-memory", server.error("/tokenize", {"content": "a" * (7 * MIB)}, 413)["message"])

    def test_bodies_without_a_key_are_not_read(self):
        server = self.serve("--api-key", "secret", "--quiet")
        before = server.status_of_process("VmRSS")
        with self.health_is_answered(server):
            counts = self.many(server, request_bytes(COMPLETIONS, b" " * (8 * MIB)), 100)
        self.assertEqual(set(counts) - {401, None}, set())
        self.assertLess(server.status_of_process("VmHWM") - before, 40 << 10)

    def test_heads_have_a_number_of_fields_and_count(self):
        server = self.serve()
        before = server.status_of_process("VmRSS")
        head = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
        with self.health_is_answered(server):
            socks = [server.socket() for _ in range(500)]
            for i, sock in enumerate(socks):
                with contextlib.suppress(OSError):
                    sock.sendall(head + (b"a:b\r\n" * 12900 if i % 2 else b"".join(b"f%d: %s\r\n" % (k, b"v" * 500) for k in range(100))))
            time.sleep(0.3)
            held, grown = self.held(server), (server.status_of_process("VmHWM") - before) << 10
            self.assertLess(grown, 90 * MIB)
            self.assertGreater(held, 250 * 50_000)  # those that still arrive
            with socks[1] as sock:
                self.assertEqual(responses(read_all(sock))[0][0], 431)
            for sock in socks:
                sock.close()

    def test_it_gives_up_the_least_first_and_recovers(self):
        server = self.serve("--max-memory", "400M", "--max-queue", "8", **SLOW)
        # Two that wait for the engine: a small one and one with a large prediction.
        small, small_reply = server.begin(COMPLETIONS, {**LONG, "stream": True})
        large = server.socket()
        large.sendall(request_bytes(COMPLETIONS, {**LONG, "prediction": {"type": "content", "content": "x " * (MIB // 2)}}))
        socks, seen = [], {}
        part = request_bytes(COMPLETIONS, b" " * (8 * MIB))[:MIB]
        end = time.monotonic() + 3 * SECONDS
        while "dropping_largest" not in seen and time.monotonic() < end:
            state = server.get("/health")["overload"]
            if state not in seen:
                status, headers, body = server.send("POST", COMPLETIONS, SHORT, {"Connection": "keep-alive"}) if state == "refusing_requests" else \
                    server.send("GET", "/health", headers={"Connection": "keep-alive"})
                seen[state] = (status, {name.lower(): value for name, value in headers.items()}, body)
            socks.append(server.socket())
            with contextlib.suppress(OSError):
                socks[-1].sendall(part)
            time.sleep(0.03)
            if self.refused(socks):
                seen.setdefault("dropping_largest", None)
        self.assertEqual(list(seen)[:2], ["none", "ending_connections"])
        self.assertEqual(seen["none"][1]["connection"].lower(), "keep-alive")
        self.assertEqual(seen["ending_connections"][1]["connection"].lower(), "close")
        self.assertIn("refusing_requests", seen)
        status, headers, body = seen["refusing_requests"]
        self.assertEqual((status, json.loads(body)["error"]["code"]), (503, "overloaded"))
        self.assertIn("retry-after", headers)
        for sock in socks:
            sock.close()
        self.assertEqual(server.get("/health")["status"], "ok")
        until(lambda: server.get("/health")["overload"] == "none")
        self.assertIn(b"[DONE]", small_reply.read())  # the small one was not touched
        small.close()
        large.close()
        self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)
        self.assertLess(self.peak(server), 400 * MIB)
        metrics = server.metrics()
        self.assertEqual(metrics["memory_limit_bytes", frozenset()], 400 * MIB)
        self.assertGreater(metrics["memory_bytes", frozenset({("part", "weights")})], 5e6)

    @staticmethod
    def refused(socks):
        for sock in socks:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                if sock.recv(20, socket.MSG_PEEK):
                    return True
            sock.setblocking(True)
        return False

    def test_waiting_requests_and_answers_not_read_are_counted(self):
        server = self.serve("--max-queue", "100", "--parallel", "2")
        base = self.held(server)
        first = server.socket()
        first.sendall(request_bytes(COMPLETIONS, {**LONG, "n": 8}))
        waiting = server.socket()
        waiting.sendall(request_bytes(COMPLETIONS, {**LONG, "n": 40, "stop": ["x" * 900] * 16, "prediction": {"type": "content", "content": "y " * 50_000}}))
        server.await_accepted(41)
        self.assertGreater(self.held(server) - base, 40 * 100_000)
        waiting.close()
        first.close()
        server.await_idle()
        sock = server.socket(receive_buffer=1)
        sock.sendall(request_bytes(COMPLETIONS, {**LONG, "n": 16, "stream": True, "logprobs": 20, "max_tokens": 200}))
        server.await_metric("request_success_total", 16, finished_reason="length")
        self.assertGreater(self.held(server) - base, 16 * 200 * 20 * 8 // 2)
        sock.close()
        until(lambda: self.held(server) <= base + 20_000)

    def test_what_was_freed_goes_back_to_the_system(self):
        server = self.serve()
        before = server.status_of_process("VmRSS")
        values = b'{"content": "a", "x": [' + b"[]," * (4 * MIB // 3) + b"[]]}"
        self.many(server, request_bytes("/tokenize", values), 6)
        with server.socket():  # the clock runs while there are connections
            until(lambda: server.status_of_process("VmRSS") - before < 40 << 10)

    def test_ceilings_that_do_not_fit_are_errors_of_a_line(self):
        for flags, code in ((("--max-memory", "10M"), 1), (("--max-memory", "much"), 2), (("--client-address-header", "a b"), 2)):
            run = run_program("serve", *PAIR, "--port", "0", *flags)
            self.assertEqual((run.returncode, run.stdout), (code, ""))
            self.assertRegex(run.stderr, r"\Aforetoken: -*(max-memory|client-address-header): [^\n]+\n\Z")

    def test_what_ulimit_leaves_is_known_before_the_model_is_read(self):
        run = subprocess.run(["sh", "-c", f'ulimit -v 120000; exec "{PROGRAM}" serve -m "{TARGET}" -t 1 --port 0 --parallel 256'],
                             capture_output=True, text=True, timeout=900)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, r"\Aforetoken: [^\n]*memory: [^\n]+ulimit -v leaves[^\n]+\n\Z")

    def test_a_control_group_sets_the_ceiling(self):
        with self.control_group(256 * MIB) as enter, Server(enter, *PAIR) as server:
            self.assertEqual(server.get("/health")["memory"]["limit_bytes"], 256 * MIB - 256 * MIB // 10)
            self.many(server, request_bytes(COMPLETIONS, b"[" + b" " * (8 * MIB - 2) + b"]"), 80)
            self.many(server, request_bytes("/tokenize", b'{"content": "a", "x": [' + b"[]," * (MIB // 3) + b"[]]}"), 20)
            self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)

    @contextlib.contextmanager
    def control_group(self, limit):
        """A program that is PROGRAM in a group with this limit of memory."""
        old = os.path.exists("/sys/fs/cgroup/memory")
        folder = f"/sys/fs/cgroup/{'memory/' if old else ''}foretoken-test-{os.getpid()}"
        try:
            os.mkdir(folder)
            with open(f"{folder}/memory.{'limit_in_bytes' if old else 'max'}", "w", encoding="ascii") as file:
                file.write(str(limit))
        except OSError as error:
            self.skipTest(f"no control group can be made: {error}")
        program = program_behind(f"echo $$ > {folder}/cgroup.procs || exit 1")
        try:
            yield program
        finally:
            os.unlink(program)
            end = time.monotonic() + 10
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
                    break
                time.sleep(0.1)

    # ---- Connections and descriptors.

    def test_slow_readers_take_no_worker(self):
        server = self.serve("--parallel", "4", "--max-queue", "200", "--quiet")
        threads = server.status_of_process("Threads")
        with self.health_is_answered(server):
            socks = [server.socket(receive_buffer=1) for _ in range(140)]
            for i, sock in enumerate(socks):
                sock.sendall(request_bytes(COMPLETIONS, {**SHORT, "n": 1, "max_tokens": 12, "logprobs": 20, "stream": i % 2 == 0}))
                sock.sendall(request_bytes("/", method="GET") * 20)
            self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)
            self.assertEqual(server.post("/tokenize", {"content": "a"})["tokens"], server.post("/tokenize", {"content": "a"})["tokens"])
            self.assertLessEqual(server.status_of_process("Threads"), threads)
        for sock in socks:
            sock.close()

    def test_health_is_answered_while_all_connections_are_taken(self):
        server = self.limited(640, "--max-queue", "600", **SLOW)
        with self.health_is_answered(server):
            busy = [server.socket() for _ in range(480)]
            for sock in busy:  # none of them can be closed for others
                sock.sendall(request_bytes(COMPLETIONS, LONG))
            await_refusal(busy)  # the last ones came when all were taken
            status, headers, body = server.send("POST", COMPLETIONS, SHORT)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (503, "no_connection"))
            self.assertIn("Retry-After", headers)
            more = [server.socket() for _ in range(600)]  # heads that never end, and nothing at all
            for sock in more[::2]:
                with contextlib.suppress(OSError):
                    sock.sendall(b"GET /health HTTP/1.1\r\nHost")
            self.assertGreater(len(server.metrics()), 10)
            time.sleep(0.5)
        for sock in busy + more:
            sock.close()
        server.await_idle()
        self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)

    def test_heads_that_never_end_give_way(self):
        server = self.limited(256)
        with self.health_is_answered(server):
            socks = [server.socket() for _ in range(400)]
            for sock in socks:
                with contextlib.suppress(OSError):
                    sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nA")
            time.sleep(6)
            self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)
        for sock in socks:
            sock.close()

    def test_health_is_answered_where_no_descriptor_is_left(self):
        server = self.serve("--max-queue", "200", **SLOW)
        busy = [server.socket() for _ in range(10)]
        for sock in busy:
            sock.sendall(request_bytes(COMPLETIONS, {**LONG, "n": 10}))
        server.await_accepted(100)
        server.get("/health")
        time.sleep(1)  # until that connection is gone
        numbers = [int(name) for name in os.listdir(f"/proc/{server.process.pid}/fd")]
        # As though others of the process had taken the rest: every number that is free is beyond the limit.
        holes = sorted(set(range(max(numbers) + 1)) - set(numbers))
        limit = max(numbers) + 1
        fillers = [server.socket() for _ in holes]
        for sock in fillers:
            sock.sendall(request_bytes(COMPLETIONS, LONG))
        server.await_accepted(100 + len(fillers))
        hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
        time.sleep(1)
        self.assertEqual(server.open_files(), limit)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, hard))
        with self.health_is_answered(server):
            time.sleep(0.5)
        for sock in busy + fillers:
            sock.close()

    def test_health_is_answered_under_everything_at_once(self):
        server = self.serve("--max-memory", "400M", "--max-queue", "8", "--quiet", **SLOW)
        grammar = "root ::= " + " | ".join(f'"{i:05d}" [a-z]{{1,{i % 9 + 2}}} root' for i in range(400)) + ' | "x"'
        body = request_bytes(COMPLETIONS, b" " * MIB)
        sent = {"idle": b"", "slow heads": b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nA", "slow bodies": body[:len(body) // 4],
                "slow readers": request_bytes(COMPLETIONS, {**LONG, "stream": True, "logprobs": 20}),
                "grammars": request_bytes(COMPLETIONS, {**SHORT, "grammar": grammar})}
        socks = []
        with self.health_is_answered(server):
            for data in sent.values():
                for _ in range(100):
                    socks.append(server.socket(receive_buffer=2048))
                    with contextlib.suppress(OSError):
                        socks[-1].sendall(data)
            time.sleep(1)
            self.assertLess(self.peak(server), 400 * MIB)
        for sock in socks:
            sock.close()
        server.await_idle()
        until(lambda: server.send("POST", COMPLETIONS, SHORT)[0] == 200)

    # ---- Limits of one client.

    def test_an_address_has_so_many_connections(self):
        server = self.serve("--max-connections-per-address", "10")
        socks = [server.socket() for _ in range(10)]
        for sock in socks:
            sock.sendall(b"GET /health HTTP/1.1\r\n")
        with server.socket() as sock:
            (status, headers, body), = responses(read_all(sock))
        self.assertEqual((status, json.loads(body)["error"]["code"]), (429, "too_many_connections"))
        self.assertIn("retry-after", headers)
        socks.pop().close()
        until(lambda: server.send("GET", "/health")[0] == 200)
        for sock in socks:
            sock.close()

    def refusals(self, server, headers_of, code="too_many_requests"):
        """How many of 6 long requests are refused, each with these headers."""
        connections, refused = [], 0
        for i in range(6):
            connections.append(server.ask(COMPLETIONS, {**LONG, "stream": True}, headers_of(i)))
            time.sleep(0.05)
        time.sleep(0.2)
        for connection in connections[4:]:
            connection.sock.settimeout(2)
            try:
                response = connection.getresponse()
                refused += response.status == 429
                if response.status == 429:
                    self.assertEqual(json.loads(response.read())["error"]["code"], code)
                    self.assertTrue(response.getheader("Retry-After"))
            except TimeoutError:
                pass
        for connection in connections:
            connection.close()
        server.await_idle()
        return refused

    def test_an_address_has_so_many_requests(self):
        forwarded = lambda i: {"X-Forwarded-For": f"9.9.9.9, 10.0.0.{i}"}
        same = lambda i: {"X-Forwarded-For": f"10.0.0.{i}, 9.9.9.9"}
        limited_server = self.serve("--max-requests-per-address", "4", **SLOW)
        self.assertEqual(self.refusals(limited_server, lambda i: {}), 2)
        self.assertEqual(self.refusals(limited_server, forwarded), 2)  # nobody said that the field is to be believed
        self.assertEqual(limited_server.error(COMPLETIONS, {**SHORT, "n": 5}, 429)["code"], "too_many_requests")
        limited_server.completion(**SHORT, n=4)
        behind = self.serve("--max-requests-per-address", "4", "--client-address-header", "X-Forwarded-For", **SLOW)
        self.assertEqual(self.refusals(behind, forwarded), 0)
        self.assertEqual(self.refusals(behind, same), 2)
        self.assertIn("client=9.9.9.9", behind.log_text())
        default = self.serve("--max-queue", "4", **SLOW)  # addresses of this machine are not limited
        self.assertEqual(self.refusals(default, lambda i: {}, "queue_full"), 1)

    def test_a_key_has_so_many_requests(self):
        server = self.serve("--api-key", "one", "--api-key", "two", "--max-requests-per-key", "4", **SLOW)
        server.metric = lambda name, **labels: 0.0  # /metrics asks for a key, too
        self.assertEqual(self.refusals(server, lambda i: {"Authorization": "Bearer one"}), 2)
        self.assertEqual(self.refusals(server, lambda i: {"X-Api-Key": "one" if i % 2 else "two"}), 0)


if __name__ == "__main__":
    main()
