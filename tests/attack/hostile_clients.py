# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, greedy or gone: many at once, moved by one thread. Each is a generator that is called again and again until it ends or its
connection does; then another takes its place."""
import errno
import json
import random
import socket
import struct
import threading

from hostile_requests import head, post

LONG = {"prompt": "Once upon a time", "max_tokens": 200, "ignore_eos": True, "stream": True, "seed": 5}


def send(sock, data):
    """How much of it the system took; -1: the connection has ended."""
    try:
        return sock.send(data)
    except BlockingIOError:
        return 0
    except OSError:
        return -1


def sending(sock, data, pace=None):
    """Sends all of it, `pace` bytes at a time (or all that fits)."""
    while data:
        sent = send(sock, data[:pace or len(data)])
        if sent < 0:
            return False
        data = data[sent:]
        yield
    return True


def receive(sock, most):
    """Bytes, None where there are none now, or b"" at the end."""
    try:
        return sock.recv(most)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def slow_head(sock, draw):
    yield from sending(sock, head("GET", "/health", "A: " + "b" * 10_000), 1)


def slow_body(sock, draw):
    yield from sending(sock, post("/v1/completions", json.dumps({"prompt": "a" * 100_000}))[:200])
    yield from sending(sock, b" " * 100_000, 1)


def slow_reader(sock, draw):
    request = draw.choice((head("GET", "/"), head("GET", "/metrics") * 20, post("/v1/completions", json.dumps(LONG)),
                           head("GET", "/", "Range: bytes=" + ",".join(["0-"] * 2500)), head("GET", "/") * 50,
                           post("/tokenize", json.dumps({"content": "a b " * 50_000, "with_pieces": True}))))
    yield from sending(sock, request)
    for _ in range(2000):
        if receive(sock, 1) == b"":
            return
        yield


def never_reads(sock, draw):
    yield from sending(sock, head("GET", "/") * 100)
    for _ in range(300):
        yield


def idle(sock, draw):
    for _ in range(600):
        if receive(sock, 100) == b"":
            return
        yield


def half_closed(sock, draw):
    yield from sending(sock, post("/v1/completions", json.dumps(LONG))[:draw.choice((30, 100, 10_000))])
    sock.shutdown(socket.SHUT_WR)
    for _ in range(600):
        if receive(sock, 65536) == b"":
            return
        yield


def reset(sock, draw):
    yield from sending(sock, post("/v1/completions", json.dumps({**LONG, "seed": draw.randrange(99)})))
    for _ in range(draw.randrange(20)):
        if receive(sock, draw.choice((1, 100, 65536))) == b"":
            return
        yield
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def greedy_body(sock, draw):
    """A whole request as large as it may be, whose answer is not awaited soon."""
    body = draw.choice((b'{"prompt": "' + b"a" * 4_000_000 + b'"', b'{"x": [' + b"{}," * 300_000 + b"{}]}", b"[" * 1_000_000,
                        b'{"prompt": ["' + b'a","' * 500_000 + b'a"]}'))
    yield from sending(sock, post(draw.choice(("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize", "/nowhere")), body))
    for _ in range(draw.randrange(200)):
        yield


def many_streams(sock, draw):
    yield from sending(sock, post("/v1/completions", json.dumps({**LONG, "n": draw.choice((1, 4))})))
    while receive(sock, 65536) != b"":
        yield


KINDS = (slow_head, slow_body, slow_reader, slow_reader, never_reads, idle, half_closed, reset, greedy_body, many_streams)


class Herd(threading.Thread):
    """`size` clients at once, from several loopback addresses: the first third from one address, the rest from many."""

    def __init__(self, port, size, seed, kinds=KINDS, step_s=0.05):
        super().__init__(daemon=True)
        self.port, self.size, self.draw, self.kinds, self.step_s = port, size, random.Random(f"herd {seed}"), kinds, step_s
        self.done, self.begun, self.refused, self.alive = threading.Event(), {}, 0, []
        self.start()

    def open(self, place):
        sock = socket.socket()
        sock.setblocking(False)
        source = "127.0.1.1" if place * 3 < self.size else f"127.0.2.{1 + place % 200}"
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            sock.bind((source, 0))
            error = sock.connect_ex(("127.0.0.1", self.port))
        except OSError:
            sock.close()
            return None
        if error not in (0, errno.EINPROGRESS):
            sock.close()
            self.refused += 1
            return None
        kind = self.draw.choice(self.kinds)
        self.begun[kind.__name__] = self.begun.get(kind.__name__, 0) + 1
        return sock, kind(sock, self.draw)

    def move(self, client):
        """False: it has ended."""
        sock, steps = client
        try:
            next(steps)
            return True
        except (StopIteration, OSError):
            sock.close()
            return False

    def run(self):
        clients = [None] * self.size
        while not self.done.wait(self.step_s):
            for place, client in enumerate(clients):
                if client is None:
                    clients[place] = self.open(place)
                elif not self.move(client):
                    clients[place] = None
        for client in clients:
            if client:
                client[0].close()

    def stop(self):
        self.done.set()
        self.join()
        return self

    def report(self):
        return "slow and greedy clients: " + ", ".join(f"{count} {name}" for name, count in sorted(self.begun.items()))
