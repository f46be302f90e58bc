#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve` under clients that are slow, broken or too many, and under signals. In each test a bystander asks all the while and must get,
byte for byte, what it gets alone; afterwards the server holds no more than before."""
import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import threading
import time

from server_case import DRAFT, ONE_THREAD, PROGRAM, SLOW, TARGET, ServerCase, main
from server_testing import JSON, SECONDS, Server, events, joined, read_all, request_bytes, responses, together, until

PARALLEL, QUEUE = 4, 20
COMPLETIONS = "/v1/completions"
SHORT = {"prompt": "Once upon a time", "max_tokens": 6, "temperature": 0.8, "seed": 4}
BYSTANDER = {"prompt": "One day, Tom", "max_tokens": 24, "temperature": 0.8, "seed": 3, "logprobs": 2}
LONG = {"prompt": "Once upon a time", "max_tokens": 300, "ignore_eos": True, "temperature": 0.8, "seed": 5}
PAUSE_S = 0.1  # between what the bystander asks
GRACE_S = 30  # what connections have to end when all is computed (apps/server/server.cpp)
WAIT_S = 30  # the server's patience with a client (apps/server/net/http.h)


def exact(reply):
    """What of a reply does not depend on who else asks."""
    return [(choice["index"], choice["text"], choice["finish_reason"], choice["logprobs"]) for choice in reply["choices"]], \
        [reply["usage"][key] for key in ("prompt_tokens", "completion_tokens")]


def body_of(data):
    """The JSON of the one response, a good one."""
    (status, _, body), = responses(data)
    assert status == 200, (status, body)
    return json.loads(body)


def post(body, *headers):
    return request_bytes(COMPLETIONS, body, *headers)


def header_lines(*lines, body=b""):
    return ("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + "".join(line + "\r\n" for line in lines) + "\r\n").encode("latin-1") + body


def chunked(*chunks):
    return header_lines("Transfer-Encoding: chunked", "Connection: close", body=b"".join(chunks))


GOOD_BODY = json.dumps(SHORT).encode()
SIZE = f"Content-Length: {len(GOOD_BODY)}"
# What is sent, and the status that refuses it.
NOT_HTTP = [
    ("garbage", bytes(range(256)) * 8, 400), ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400), ("HTTP/0.9", b"GET /health\r\n", 400), ("HTTP/3.0", b"GET /health HTTP/3.0\r\n\r\n", 400),
    ("only line feeds", b"GET /health HTTP/1.1\nHost: a\n\n", 400), ("no path", b"GET HTTP/1.1\r\n\r\n", 400),
    ("an unknown method", b"FETCH /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 405),
    ("an endless line", b"GET /" + b"a" * (1 << 20), 431), ("an endless header", b"GET / HTTP/1.1\r\nA: " + b"a" * (1 << 20), 431),
    ("10,000 headers", b"GET /health HTTP/1.1\r\n" + b"Header: value\r\n" * 10_000 + b"\r\n", 431),
    ("a long path", b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
    ("a null byte in a header", b"GET /health HTTP/1.1\r\nA: \0\r\n\r\n", 400), ("a null byte in the path", b"GET /\0health HTTP/1.1\r\n\r\n", 400),
    ("a header without a colon", b"GET /health HTTP/1.1\r\nHost\r\n\r\n", 400), ("a folded header", header_lines("A: b", " c"), 400),
    ("a space before the colon", header_lines("Content-Length : 5", body=b"hello"), 400),
    ("percent garbage", b"GET /%zz%00%ff%%2e%2e/%c0%af HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404),
    ("a negative length", header_lines("Content-Length: -1", body=GOOD_BODY), 400),
    ("a length that is not a number", header_lines("Content-Length: many", body=GOOD_BODY), 400),
    ("a signed length", header_lines("Content-Length: +5", body=GOOD_BODY), 400),
    ("an empty length", header_lines("Content-Length:", body=GOOD_BODY), 400),
    ("a length past all integers", header_lines("Content-Length: " + "9" * 40), 400),
    ("a huge length", header_lines("Content-Length: 999999999999"), 413),
    ("two lengths", header_lines("Content-Length: 3", SIZE, body=GOOD_BODY), 400),
    ("a list of lengths", header_lines("Content-Length: 5, 5", body=b"hello"), 400),
    ("a length and chunks", header_lines(SIZE, "Transfer-Encoding: chunked", body=GOOD_BODY), 400),
    ("an unknown encoding", header_lines("Transfer-Encoding: gzip, chunked"), 400),
    ("a chunk of no size", chunked(b"\r\nhello\r\n"), 400), ("a chunk of letters", chunked(b"zz\r\nhello\r\n"), 400),
    ("a negative chunk", chunked(b"-5\r\nhello\r\n"), 400),
    ("a chunk past all integers", chunked(b"f" * 40 + b"\r\n"), 400), ("a huge chunk", chunked(b"fffffffffff\r\n"), 413),
    ("a chunk longer than it says", chunked(b"2\r\nhello\r\n0\r\n\r\n"), 400), ("an endless chunk line", chunked(b"5;" + b"a" * 5000), 400),
    ("too much by its length", header_lines("Content-Length: 9000000", body=b"a" * 9_000_000), 413),
    ("too much in chunks", chunked(*[b"100000\r\n" + b"a" * (1 << 20) + b"\r\n"] * 9), 413),
    ("too much in frames", chunked(*[b"1;" + b"x" * 1000 + b"\r\na\r\n"] * 20_000), 413),
]
NOT_A_REQUEST = [
    ("deep JSON", b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), ("deeper objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    ("a number past doubles", b'{"prompt": "a", "temperature": 1e999}'), ("a long number", b'{"prompt": "a", "seed": ' + b"9" * 100_000 + b"}"),
    ("invalid UTF-8", b'{"prompt": "\xff\xfe"}'), ("overlong UTF-8", b'{"prompt": "\xc0\xaf"}'),
    ("a surrogate in UTF-8", b'{"prompt": "\xed\xa0\x80"}'),
    ("a lone surrogate", b'{"prompt": "\\ud800"}'), ("a key twice", b'{"prompt": "a", "prompt": "b"}'),
    ("text behind it", b'{"prompt": "a"} x'), ("NaN", b'{"prompt": "a", "temperature": NaN}'),
]


class Faults(ServerCase):
    FLAGS = ("-md", DRAFT, *ONE_THREAD)

    def serve(self, *flags, queue=QUEUE, **options):
        server = super().serve("--parallel", str(PARALLEL), "--max-queue", str(queue), *flags, **options)
        server.threads = server.status_of_process("Threads")
        return server

    @contextlib.contextmanager
    def bystander(self, server):
        """Asks all the while, and looks afterwards whether the server is as it was."""
        alone = exact(server.completion(**BYSTANDER))
        self.assertNotEqual(exact(server.completion(**{**BYSTANDER, "seed": 8})), alone)  # the control: replies can differ
        files, done, replies = server.open_files(), threading.Event(), []

        def ask():
            while not done.is_set():
                try:
                    status, _, body = server.send("POST", COMPLETIONS, BYSTANDER)
                    replies.append(exact(json.loads(body)) if status == 200 else (status, body))
                except OSError as error:
                    replies.append(error)
                done.wait(PAUSE_S)

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        self.assertGreater(len(replies), 0)
        self.assertEqual([reply for reply in replies if reply != alone], [])
        self.settles(server, files)

    def settles(self, server, files):
        server.await_idle()
        until(lambda: server.open_files() <= files, lambda: (server.open_files(), files))
        self.assertLessEqual(server.status_of_process("Threads"), server.threads)
        self.assertEqual(server.get("/health")["status"], "ok")

    def test_what_is_not_http_is_refused_at_once(self):
        server = self.serve()
        with self.bystander(server):
            for what, data, expected in NOT_HTTP:
                with self.subTest(what):
                    reply = responses(server.exchange(data))  # which waits for no more bytes of ours
                    self.assertEqual([status for status, _, _ in reply], [expected], reply)
                    self.assertEqual(set(json.loads(reply[0][2])), {"error"})

    def test_odd_but_good_requests_are_answered(self):
        server = self.serve()
        alone = exact(server.completion(**SHORT))
        half = len(GOOD_BODY) // 2
        chunks = [f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in (GOOD_BODY[:half], GOOD_BODY[half:])]
        with self.bystander(server):
            for data in (post(SHORT), b"\r\n\r\n" + post(SHORT), header_lines(SIZE, SIZE, "connection: close", body=GOOD_BODY),
                         chunked(*chunks, b"0\r\n\r\n"), chunked(*chunks, b"000;a=b\r\n\r\n"), post(SHORT, "X: " + "y" * 4000)):
                with self.subTest(data[:60]):
                    self.assertEqual(exact(body_of(server.exchange(data))), alone)

    def test_what_is_not_a_request_is_refused(self):
        server = self.serve()
        with self.bystander(server):
            for what, body in NOT_A_REQUEST:
                with self.subTest(what):
                    (status, _, reply), = responses(server.exchange(post(body)))
                    self.assertEqual(status, 400, reply)
                    self.assertLess(len(reply), 1000)

    def test_a_length_in_dispute_begins_no_second_request(self):
        server = self.serve()
        inner = request_bytes("/tokenize", {"content": "smuggled"})
        with self.bystander(server):
            length = f"Content-Length: {len(inner)}"
            for lines in (("Content-Length: 0", length), ("Content-Length: x",), (length, "Transfer-Encoding: chunked")):
                self.assertEqual(len(responses(server.exchange(header_lines(*lines, body=inner)))), 1)
            server.exchange(request_bytes("/health", inner, method="GET"))  # a body where none is expected is skipped
        self.assertNotIn("/tokenize", server.log_text())

    def test_connections_are_kept_and_requests_in_a_row_answered_in_order(self):
        server = self.serve()
        alone = [server.completion(**{**SHORT, "seed": i})["choices"][0]["text"] for i in range(5)]
        with self.bystander(server):
            row = b"".join(request_bytes(COMPLETIONS, {**SHORT, "seed": i}, "Connection: keep-alive") for i in range(5))
            replies = responses(server.exchange(row + request_bytes("/health")))
            self.assertEqual([json.loads(body)["choices"][0]["text"] for _, _, body in replies[:5]], alone)
            self.assertEqual(json.loads(replies[5][2])["status"], "ok")
            connection = server.connect()
            for i in range(60):
                connection.request("POST" if i % 3 else "GET", COMPLETIONS if i % 3 else "/health", json.dumps(SHORT), JSON)
                response = connection.getresponse()
                self.assertEqual((response.status, bool(response.read())), (200, True))
                first = connection.sock if i == 0 else first
                self.assertIs(connection.sock, first)
            connection.close()

    def test_expect_100_continue(self):
        server = self.serve()
        alone = exact(server.completion(**SHORT))
        with self.bystander(server), server.socket() as sock:
            data = post(SHORT, "Expect: 100-continue")
            head = data.index(b"\r\n\r\n") + 4
            sock.sendall(data[:head])
            self.assertEqual(sock.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
            sock.sendall(data[head:])
            self.assertEqual(exact(body_of(read_all(sock))), alone)

    def test_a_client_that_only_ends_its_sending_gets_its_answer(self):
        server = self.serve()
        alone = exact(server.completion(**LONG))
        with self.bystander(server):
            self.assertEqual(exact(body_of(server.exchange(post(LONG), end=True))), alone)
            (_, _, body), = responses(server.exchange(post({**LONG, "stream": True}), end=True))
            self.assertEqual(joined(events(body)), [alone[0][0][1]])

    def test_clients_that_close_cancel_their_requests(self):
        server = self.serve(**SLOW)
        endless = {**LONG, "max_tokens": 400, "n": 8, "speculative": {"enabled": False}}
        n = 0
        with self.bystander(server):
            for stream in (False, True):
                for way in ("closes", "ends its sending, then closes", "resets"):
                    with self.subTest(way, stream=stream):
                        sock = server.socket()
                        sock.sendall(post({**endless, "stream": stream}))
                        if stream:
                            sock.recv(10)
                        time.sleep(0.1)
                        if way.startswith("ends"):
                            sock.shutdown(socket.SHUT_WR)
                            time.sleep(0.1)
                        if way == "resets":
                            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                        sock.close()
                        n += 1
                        server.await_log("error=client_gone", times=n)
        self.assertGreater(server.metric("request_success_total", finished_reason="abort"), 0)

    def test_a_client_of_the_old_protocol_that_closes_is_found_out(self):
        server = self.serve(**SLOW)
        data = post({**LONG, "max_tokens": 400, "n": 16, "speculative": {"enabled": False}}).replace(b" HTTP/1.1", b" HTTP/1.0", 1)
        sock = server.socket()
        # Its system forgets the connection after a second, not after a minute as by default.
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_LINGER2, 1)
        sock.sendall(data)
        server.await_accepted(16)
        sock.close()
        server.await_log("error=client_gone")
        self.assertEqual(server.metric("request_success_total", finished_reason="length"), 0)

    def test_connections_that_break_in_a_request_leave_nothing(self):
        server = self.serve()
        data = post(SHORT)
        with self.bystander(server):
            for length in (1, 20, data.index(b"\r\n\r\n") + 2, len(data) - 1):
                for reset in (False, True):
                    for _ in range(5):
                        with server.socket() as sock:
                            sock.sendall(data[:length])
                            if reset:
                                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                (status, _, _), = responses(server.exchange(data[:length], end=True))
                self.assertEqual(status, 400)
        self.assertEqual(server.metric("request_success_total", finished_reason="abort"), 0)

    def test_a_thousand_idle_connections_keep_nobody_out(self):
        server = self.serve()
        with self.bystander(server):
            socks = [server.socket() for _ in range(1000)]
            for sock in socks[::2]:
                sock.sendall(b"POST /v1/completions HTTP/1.1\r\nHost")
            for _ in range(20):
                self.assertEqual(server.get("/health")["status"], "ok")
            data = request_bytes("/health")
            for sock in socks[1::2]:
                sock.sendall(data)
            for sock in socks[1::2]:
                self.assertEqual(responses(read_all(sock))[0][0], 200)
            for sock in socks:
                sock.close()

    def test_a_thousand_requests_at_once_are_each_answered(self):
        server = self.serve()
        alone = [exact(server.completion(**{**SHORT, "seed": i})) for i in range(10)]
        files, beside, failed, done = server.open_files(), 0, [], threading.Event()

        def ask_health():
            nonlocal beside
            try:
                while not done.is_set():
                    beside += server.get("/health")["running"] > 0
            except (AssertionError, OSError) as error:
                failed.append(error)

        thread = threading.Thread(target=ask_health)
        socks = [server.socket() for _ in range(1000)]
        thread.start()
        for i, sock in enumerate(socks):
            sock.sendall(post({**SHORT, "seed": i % 10}))
        counts = {}
        for i, sock in enumerate(socks):
            (status, headers, body), = responses(read_all(sock))
            sock.close()
            counts[status] = counts.get(status, 0) + 1
            if status == 200:
                self.assertEqual(exact(json.loads(body)), alone[i % 10])
            else:
                self.assertIn(status, (429, 503))
                self.assertIn("retry-after", headers)
        end = time.monotonic() + SECONDS
        while beside == 0 and not failed and time.monotonic() < end:  # a quick server may have answered all before the thread asked
            server.completion(**LONG)
        done.set()
        thread.join()
        self.assertGreaterEqual(counts[200], PARALLEL + QUEUE)
        self.assertEqual(sum(counts.values()), 1000)
        self.assertEqual(failed, [])
        self.assertGreater(beside, 0)  # answered while others ran
        self.settles(server, files)

    def test_slow_clients_take_no_thread_and_are_cut_in_time(self):
        server = self.serve(queue=60)
        memory = server.status_of_process("VmRSS")
        alone = exact(server.completion(**LONG))
        results = {}

        def stalls(name, data):
            with server.socket() as sock:
                begin = time.monotonic()
                sock.sendall(data)
                results[name] = (read_all(sock), time.monotonic() - begin)

        def drips():  # a header that never ends
            with server.socket() as sock:
                begin = time.monotonic()
                try:
                    for byte in request_bytes("/health", None, "A: " + "b" * 500):
                        sock.sendall(bytes([byte]))
                        time.sleep(0.2)
                    results["drips"] = (b"", 1e9)
                except OSError:
                    results["drips"] = (b"", time.monotonic() - begin)

        def reads_slowly():
            with server.socket(receive_buffer=1) as sock:
                sock.sendall(post({**LONG, "stream": True}))
                data = b""
                for _ in range(50):
                    data += sock.recv(1)
                    time.sleep(0.1)
                results["reads slowly"] = (data + read_all(sock), 0)

        def reads_nothing(end):
            with server.socket(receive_buffer=1) as sock:
                sock.sendall(post({**LONG, "max_tokens": 400, "n": 16, "stream": True, "logprobs": 20, "speculative": {"enabled": False}}))
                while "client_too_slow" not in server.log_text() and time.monotonic() < end:
                    time.sleep(0.2)

        with self.bystander(server):
            data = post(SHORT)
            head = data.index(b"\r\n\r\n") + 4
            cut = [lambda i=i: stalls(("in a header", i), data[:30]) for i in range(150)]
            cut += [lambda i=i: stalls(("in a body", i), data[:head + 5]) for i in range(150)]
            cut += [lambda: stalls("idle", b""), drips, reads_slowly, lambda: reads_nothing(time.monotonic() + 3 * SECONDS)]
            together(cut)
        for name, (data, seconds) in results.items():
            with self.subTest(name):
                if name == "reads slowly":
                    self.assertEqual(joined(events(responses(data)[0][2])), [alone[0][0][1]])
                    continue
                self.assertEqual([status for status, _, _ in responses(data)], [408] if isinstance(name, tuple) else [])
                self.assertGreater(seconds, WAIT_S - 1)  # not before its time
                self.assertNotEqual(seconds, 1e9)  # what drips to its end was not cut
        self.assertIn("error=client_too_slow", server.log_text())
        self.assertLess(server.status_of_process("VmRSS") - memory, 300 << 10)

    def test_a_stream_of_quick_rounds_times_out_too(self):
        server = self.serve("--request-timeout-s", "1", queue=100)
        body = {**LONG, "max_tokens": 400, "n": 100, "stream": True, "speculative": {"enabled": False}}
        (_, _, data), = responses(server.exchange(post(body)))
        self.assertEqual(events(data)[-1].get("error", {}).get("code"), "request_timeout")
        server.await_idle()
        self.assertEqual(server.completion(**SHORT)["usage"]["completion_tokens"], 6)

    def test_sigterm_under_load_answers_all_that_was_accepted(self):
        server = self.serve(**SLOW)
        bodies = [{**LONG, "max_tokens": 20 + i, "seed": i, "stream": i % 2 == 0} for i in range(16)]
        quick = self.serve()  # what each gets alone
        alone = [quick.completion(**{**body, "stream": False})["choices"][0]["text"] for body in bodies]
        texts, outcomes, accepted = {}, [], threading.Event()

        def ask(i):
            (status, _, body), = responses(server.exchange(post(bodies[i])))
            self.assertEqual(status, 200, body)
            texts[i] = joined(events(body))[0] if bodies[i]["stream"] else json.loads(body)["choices"][0]["text"]

        def come_late():
            accepted.wait()
            while True:
                try:
                    reply = server.exchange(post(SHORT))
                except (ConnectionRefusedError, ConnectionResetError):  # it listens no more, or ceased to while this one came
                    return
                if not reply:  # it waits 200 ms for what was on its way (connection.cpp), and this thread may have waited longer
                    return
                (status, headers, _), = responses(reply)
                outcomes.append((status, headers.get("retry-after")))
                time.sleep(0.02)

        def end():
            server.await_accepted(16)
            server.process.send_signal(signal.SIGTERM)
            while server.send("GET", "/health")[0] != 503:
                time.sleep(0.001)
            accepted.set()
            time.sleep(2.5)  # some come late; longer than a server that loses its patience would wait
            server.process.send_signal(signal.SIGSTOP)  # so the work takes longer than connections have after it, and no processor's time
            time.sleep(GRACE_S + 1)
            server.process.send_signal(signal.SIGCONT)

        together([lambda i=i: ask(i) for i in range(16)] + [come_late, end])
        self.assertEqual([texts[i] for i in range(16)], alone)
        self.assertEqual(server.wait(), 0)
        self.assertEqual(set(outcomes), {(503, "5")})

    def stalled(self):
        """A server whose log goes into a small pipe, and the pipe's other end."""
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        try:
            return reader, Server(PROGRAM, "-m", TARGET, "-t", "1", "--spec-type", "none", "--repack-cache", "off", stderr=writer)
        finally:
            os.close(writer)

    def test_a_stalled_reader_of_the_log_stops_nobody(self):
        reader, server = self.stalled()
        n = 6000
        with server, server.socket() as sock:
            for _ in range(n // 100):
                sock.sendall(request_bytes("/" + "x" * 240, None, "Connection: keep-alive") * 100)
                data = b""
                while data.count(b"HTTP/1.1 404 ") < 100 or not data.endswith(b"}"):
                    data += sock.recv(1 << 16)
            self.assertEqual(server.get("/health")["status"], "ok")
            self.assertGreater(server.metric("log_lines_dropped_total"), 0)
            text = b""

            def await_line(pattern):
                nonlocal text
                end = time.monotonic() + SECONDS
                while not (found := re.findall(pattern, text)):
                    self.assertLess(time.monotonic(), end, pattern)
                    text += os.read(reader, 1 << 16)
                return found

            dropped = int(await_line(rb"error=log_stalled lines_dropped=(\d+)\n")[0])
            server.send("GET", "/version")  # it flows again: what follows is there
            await_line(rb"path=/version [^\n]*\n")
            self.assertEqual(server.metric("log_lines_dropped_total"), dropped)
            lines = text.decode().splitlines()
            self.assertEqual([line for line in lines if not line.startswith("time=")], [])
            self.assertEqual(sum("status=" in line for line in lines), n + 3 - dropped)  # /health, /metrics, /version

    def test_a_stalled_reader_of_the_log_holds_up_no_end(self):
        _, server = self.stalled()
        with server:
            for _ in range(100):
                server.send("GET", "/" + "x" * 240)
            server.end()

    def test_large_bodies_hold_up_no_end(self):
        """Work on a body is short, whatever is in it: also that of clients that have gone is done by the time the server ends."""
        body = b'{"x":[' + b"{}," * (8 << 18) + b"{}]}"
        with Server(PROGRAM, "-m", TARGET, "-t", "1", "--repack-cache", "off") as server:
            for path in ("/tokenize", COMPLETIONS) * 4:
                with server.socket() as sock:
                    sock.sendall(request_bytes(path, body))
            server.end()

    def test_a_second_signal_ends_it_soon(self):
        for signals in ((signal.SIGINT, signal.SIGINT), (signal.SIGTERM, signal.SIGINT), (signal.SIGTERM, signal.SIGTERM)):
            with self.subTest(signals=signals):
                server = self.serve(**SLOW)
                stream = {**LONG, "max_tokens": 400, "stream": True, "logprobs": 20, "speculative": {"enabled": False}}
                socks = [server.socket(receive_buffer=1 if i == 0 else None) for i in range(10)]
                for sock in socks:
                    sock.sendall(post(stream))
                server.await_accepted(10)
                server.process.send_signal(signals[0])
                time.sleep(0.3)
                self.assertIsNone(server.process.poll())
                server.process.send_signal(signals[1])
                self.assertEqual(server.wait(), 130)
                for sock in socks[1:]:  # the first reads nothing
                    (status, _, body), = responses(read_all(sock))
                    error = events(body)[-1] if status == 200 else json.loads(body)
                    self.assertEqual((error["error"]["code"], status in (200, 503)), ("stopped", True))
                for sock in socks:
                    sock.close()


if __name__ == "__main__":
    main(open_files=8192)
