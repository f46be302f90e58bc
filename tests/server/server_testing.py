# SPDX-License-Identifier: Apache-2.0
"""A `foretoken serve` of its own for a test, and a client of the standard library."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

SECONDS = 900  # a wait that only ends a hang: a machine may be busy
JSON = {"Content-Type": "application/json"}
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:  # nohup: tests go on behind a hangup, but servers that they start hear of it
    signal.signal(signal.SIGHUP, lambda *_: None)


class Server:
    """`with Server(program, flags...) as server`: listening on a free port; ended at the exit. A program that others
    start is a list: ["mpirun", "-n", "2", program]."""

    def __init__(self, program, *flags, env=None, stderr=None, stdin=subprocess.DEVNULL):
        self.log = tempfile.TemporaryFile(mode="w+")
        command = program if isinstance(program, list) else [program]
        self.process = subprocess.Popen([*command, "serve", "--port", "0", *flags], stdin=stdin, stdout=subprocess.PIPE,
                                        stderr=stderr or self.log, text=True, env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        match = re.search(r" at http://(?:127\.0\.0\.1|0\.0\.0\.0):(\d+)\n", line)
        if not match:
            self.process.kill()
            self.process.wait()
            raise RuntimeError(f"no address in {line!r}: {self.log_text()}")
        self.port = int(match.group(1))
        self.sent = 0  # requests of send(), which most others use

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        report = re.search(r"(WARNING: ThreadSanitizer|ERROR: AddressSanitizer|[^\n]*runtime error:).*", self.log_text(), re.DOTALL)
        self.log.close()
        if report:  # of a build with a sanitizer
            raise AssertionError(report.group(0)[:6000])

    def log_text(self):
        # Not by seeking: the server writes at the same offset.
        return os.pread(self.log.fileno(), os.fstat(self.log.fileno()).st_size, 0).decode()

    def wait(self, seconds=SECONDS):
        return self.process.wait(seconds)

    def end(self):
        """Tells it to end, which it must do without an error."""
        self.process.send_signal(signal.SIGTERM)
        assert self.wait() == 0, self.log_text()

    def connect(self, source=None):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS, source_address=(source, 0) if source else None)

    def send(self, method, path, body=None, headers=None, source=None):
        """(status, headers, bytes). source: the client's address."""
        connection = self.connect(source)
        self.sent += 1
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, {**JSON, **(headers or {})})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def get(self, path, **options):
        status, _, body = self.send("GET", path, **options)
        assert status == 200, (status, body)
        return read_json(body)

    def post(self, path, body, **options):
        status, _, data = self.send("POST", path, body, **options)
        assert status == 200, (status, data)
        return read_json(data)

    def completion(self, **body):
        return self.post("/v1/completions", body)

    def error(self, path, body=None, status=400, method="POST", **options):
        """The error of a request that must be refused with this status."""
        got, _, data = self.send(method, path, body, **options)
        assert got == status, (got, data)
        return read_json(data)["error"]

    def streamed(self, path, body):
        """The bytes of a whole streamed reply."""
        status, headers, data = self.send("POST", path, {**body, "stream": True})
        assert (status, headers["Content-Type"]) == (200, "text/event-stream"), (status, headers, data)
        return data

    def stream(self, path, body):
        """The chunks of a whole streamed reply."""
        return events(self.streamed(path, body))

    def ask(self, path, body, headers=None):
        """A connection on which this was asked."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(body), {**JSON, **(headers or {})})
        return connection

    def begin(self, path, body, headers=None):
        """A connection whose reply has begun, and the reply."""
        connection = self.ask(path, body, headers)
        return connection, connection.getresponse()

    def metrics(self):
        """{(name, labels as a frozenset): value}, without the model's label."""
        status, _, body = self.send("GET", "/metrics")
        assert status == 200, body
        values = {}
        for line in body.decode().splitlines():
            if line.startswith("#"):
                continue
            name, labels, value = re.fullmatch(r"([a-z0-9_:]+)(?:\{(.*)\})? (\S+)", line).groups()
            pairs = dict(re.findall(r'(\w+)="([^"]*)"', labels or ""))
            assert pairs.pop("model_name"), line
            values[name.removeprefix("foretoken:"), frozenset(pairs.items())] = float(value)
        return values

    def metric(self, name, **labels):
        return self.metrics().get((name, frozenset(labels.items())), 0.0)

    def await_metric(self, name, value, **labels):
        until(lambda: self.metric(name, **labels) == value, lambda: (name, labels, self.metric(name, **labels), value))

    def await_accepted(self, n, ended=None):
        """Until so many requests run or wait. One of the two alone says less: it passes through numbers while requests arrive. ended: how many had come
        to their length before; those that have since count too."""
        def taken():
            # First those that have ended, so that none counts twice.
            since = 0 if ended is None else self.metric("request_success_total", finished_reason="length") - ended
            return since + self.busy()

        until(lambda: taken() >= n, lambda: (taken(), n))

    def busy(self):
        """How many requests run or wait."""
        health = self.get("/health")
        return health["running"] + health["waiting"]

    def await_idle(self):
        """Until nothing runs and nothing waits. One of the two alone may be 0 between a request's end and the next one's beginning."""
        until(lambda: self.busy() == 0, self.busy)

    def await_log(self, *words, times=1):
        """Until the log has so many lines with all of these words."""
        until(lambda: sum(all(word in line + " " for word in words) for line in self.log_text().splitlines()) >= times, lambda: (words, self.log_text()[-500:]))

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def idle_files(self):
        """Descriptors of a server that listens and has no connection."""
        self.send("GET", "/health")  # what it opens for connections, it opens at the first
        time.sleep(0.3)
        return self.open_files()

    def status_of_process(self, name):
        """A number of /proc/PID/status: Threads, VmRSS (KiB), ..."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))

    def socket(self, receive_buffer=None):
        """A bare connection."""
        sock = socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(SECONDS)
        try:
            sock.connect(("127.0.0.1", self.port))
        except OSError:
            sock.close()
            raise
        return sock

    def exchange(self, data, end=False):
        """What comes back on a connection of its own until the server closes it; end: the client ends its sending first."""
        with self.socket() as sock:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has been refused; the answer is there
                sock.sendall(data)
            if end:
                sock.shutdown(socket.SHUT_WR)
            return read_all(sock)


def request_bytes(path, body=None, *headers, method=None):
    """A request that asks for the connection's end after it, unless a header says otherwise."""
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method or ('GET' if body is None else 'POST')} {path} HTTP/1.1", "Host: localhost", *headers]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    if not any(header.lower().startswith("connection:") for header in headers):
        lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + data


def read_all(sock):
    data = b""
    while part := sock.recv(1 << 16):
        data += part
    return data


def responses(data):
    """[(status, headers in lower case, body)] of the final responses in what a connection gave."""
    found = []
    while data:
        head, _, data = data.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        status = int(re.match(r"HTTP/1\.1 (\d{3}) ", line)[1])
        headers = {name.lower(): value.strip() for name, value in (field.split(":", 1) for field in fields)}
        if status < 200:
            continue
        body = b""
        if headers.get("transfer-encoding") == "chunked":
            while True:
                size, _, data = data.partition(b"\r\n")
                body, data = body + data[:int(size, 16)], data[int(size, 16) + 2:]
                if int(size, 16) == 0:
                    break
        elif status != 204:
            body, data = data[:int(headers["content-length"])], data[int(headers["content-length"]):]
        found.append((status, headers, body))
    return found


def read_json(text):
    """No member stands twice, but for log-probabilities of tokens by their texts, which may be equal."""
    def members(pairs):
        assert len(dict(pairs)) == len(pairs) or all(isinstance(value, float) for _, value in pairs), [name for name, _ in pairs]
        return dict(pairs)

    return json.loads(text, object_pairs_hook=members)


def events(data):
    assert data.endswith(b"data: [DONE]\n\n"), data[-200:]
    parts = data.decode().split("\n\n")[:-2]
    assert all(part.startswith("data: ") for part in parts), parts
    return [read_json(part.removeprefix("data: ")) for part in parts]


def named_events(data):
    """The data of events, each of which is named by its type."""
    found = []
    for block in data.decode().split("\n\n")[:-1]:
        name, event = re.fullmatch(r"event: (\S+)\ndata: (\{.*\})", block).groups()
        found.append(read_json(event))
        assert found[-1]["type"] == name, block
    return found


def joined(chunks, n=1):
    """The texts of a stream's choices."""
    texts = [""] * n
    for chunk in chunks:
        for choice in chunk["choices"]:
            texts[choice["index"]] += choice["text"] if "text" in choice else choice["delta"].get("content", "")
    return texts


def joined_message(chunks):
    """(the message that the deltas of a chat's stream make, as OpenAI's clients put it together; why it ended)"""
    message, reason = {"content": None, "tool_calls": []}, None
    for choice in (choice for chunk in chunks for choice in chunk["choices"]):
        delta, calls = choice["delta"], message["tool_calls"]
        for key in ("content", "reasoning_content"):
            if delta.get(key):
                message[key] = (message.get(key) or "") + delta[key]
        for call in delta.get("tool_calls", []):
            if call["index"] == len(calls):
                calls.append({"id": call["id"], "type": call["type"], "function": {"arguments": "", **call["function"]}})
            else:
                assert call["index"] == len(calls) - 1, call
                calls[-1]["function"]["arguments"] += call["function"]["arguments"]
        reason = choice["finish_reason"] or reason
    return message, reason


def reasons(chunks, n=1):
    found = [None] * n
    for chunk in chunks:
        for choice in chunk["choices"]:
            found[choice["index"]] = choice["finish_reason"] or found[choice["index"]]
    return found


def cached_tokens(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def until(ready, shown=lambda: None, seconds=SECONDS):
    """Waits for it. shown: what is told where it does not come."""
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, shown()
        time.sleep(0.01)


def together(functions):
    """Their results; each runs in a thread of its own, all begun at once."""
    results = [None] * len(functions)

    def work(i):
        try:
            results[i] = functions[i]()
        except Exception as error:  # shown where the result is used
            results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results
