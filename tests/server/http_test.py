#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve` as clients of HTTP meet it: versions, headers, keys, hosts, origins, connections."""
import datetime
import email.utils
import json
import resource
import signal
import socket
import subprocess
import tempfile
import time

from server_case import DRAFT, ONE_THREAD, PAIR, PROGRAM, SLOW, ServerCase, main, new_folder, run_program
from server_testing import SECONDS, Server, events, joined, read_all, request_bytes, responses

COMPLETIONS = "/v1/completions"
SHORT = {"prompt": "Once upon a time", "max_tokens": 6, "temperature": 0}
HEADER_BYTES = 64 << 10  # docs/serving.md


def get(path="/health", *lines, version="1.1", host="localhost"):
    fields = [f"Host: {host}"] if host is not None else []
    return "\r\n".join([f"GET {path} HTTP/{version}", *fields, *lines, "", ""]).encode()


def post(body, *lines, version="1.1", path=COMPLETIONS, content_type="application/json"):
    data = json.dumps(body).encode()
    fields = [f"Content-Type: {content_type}"] if content_type is not None else []
    return "\r\n".join([f"POST {path} HTTP/{version}", "Host: localhost", f"Content-Length: {len(data)}", *fields, *lines, "", ""]).encode() + data


class Served(ServerCase):
    FLAGS, SHARED = ("-md", DRAFT, *ONE_THREAD, "--parallel", "4"), ("--max-queue", "20")

    def ask(self, data):
        """The one response, on a connection that the client asks to end."""
        head, _, rest = data.partition(b"\r\n\r\n")
        (reply,) = responses(self.server.exchange(head + b"\r\nConnection: close\r\n\r\n" + rest))
        return reply

    def status(self, data):
        return self.ask(data)[0]

    def code(self, data):
        status, _, body = self.ask(data)
        return status, json.loads(body)["error"]["code"]


class Protocol(Served):
    def test_a_client_of_http_1_0_gets_no_chunks(self):
        text = self.server.completion(**SHORT)["choices"][0]["text"]
        raw = self.server.exchange(post({**SHORT, "stream": True}, version="1.0"))
        head, _, body = raw.partition(b"\r\n\r\n")
        self.assertNotIn(b"transfer-encoding", head.lower())
        self.assertIn(b"connection: close", head.lower())
        self.assertEqual(joined(events(body)), [text])
        status, headers, _ = self.ask(post({**SHORT, "stream": True}))  # the control: HTTP/1.1 does
        self.assertEqual((status, headers.get("transfer-encoding")), (200, "chunked"))

    def test_a_connection_of_http_1_0_is_kept_where_that_is_asked_for(self):
        raw = self.server.exchange(get(version="1.0", host=None))
        self.assertIn(b"Connection: close\r\n", raw)
        raw = self.server.exchange(get("/health", "Connection: keep-alive", version="1.0") + get("/version", version="1.0"))
        first, second = responses(raw)
        self.assertEqual((first[1]["connection"], second[1]["connection"]), ("keep-alive", "close"))

    def test_chunked_requests_of_http_1_0_are_refused(self):
        body = json.dumps(SHORT).encode()
        chunks = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
        for version, status in (("1.0", 400), ("1.1", 200)):
            head = post(SHORT, "Connection: close", version=version).partition(b"\r\n\r\n")[0]
            data = head.replace(f"Content-Length: {len(body)}".encode(), b"Transfer-Encoding: chunked") + b"\r\n\r\n" + chunks
            self.assertEqual(responses(self.server.exchange(data))[0][0], status)

    def test_header_lines_may_be_long_up_to_the_limit_of_the_header(self):
        for size in (5_000, 20_000, HEADER_BYTES - 200):
            self.assertEqual(self.status(get("/health", "X-Long: " + "x" * size)), 200, size)
        self.assertEqual(self.status(get("/health", *[f"X-{i}: {'y' * 990}" for i in range(60)])), 200)
        for lines in (("X-Long: " + "x" * HEADER_BYTES,), [f"X-{i}: {'y' * 990}" for i in range(70)]):
            status, headers, _ = self.ask(get("/health", *lines))
            self.assertEqual((status, headers["connection"]), (431, "close"))
        self.assertEqual(self.status(get("/" + "a" * 20_000)), 404)

    def test_trailers_are_taken(self):
        body = json.dumps(SHORT).encode()
        data = post(SHORT).partition(b"\r\n\r\n")[0].replace(f"Content-Length: {len(body)}".encode(), b"Transfer-Encoding: chunked\r\nTrailer: X-Sum")
        data += b"\r\nConnection: close\r\n\r\n" + f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n"
        ((status, _, reply),) = responses(self.server.exchange(data))
        self.assertEqual((status, json.loads(reply)["usage"]["completion_tokens"]), (200, 6))

    def test_one_100_continue_and_no_other(self):
        data = post({**SHORT, "max_tokens": 400}, "Expect: 100-continue", "Connection: close")
        head = data.index(b"\r\n\r\n") + 4
        for end in (False, True):  # a client that ends its sending, too
            with self.server.socket() as sock:
                sock.sendall(data[:head])
                self.assertEqual(sock.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
                sock.sendall(data[head:])
                if end:
                    sock.shutdown(socket.SHUT_WR)
                self.assertNotIn(b" 100 ", read_all(sock))
        raw = self.server.exchange(post({**SHORT, "temperature": 9}, "Expect: 100-continue", "Connection: close"))
        self.assertLessEqual(raw.count(b" 100 "), 1)

    def test_keep_alive_says_what_happens(self):
        with self.server.socket() as sock:
            for _ in range(8):  # more than some servers keep a connection for
                sock.sendall(get())
                raw = b""
                while b"}" not in raw:
                    raw += sock.recv(4096)
                ((_, headers, _),) = responses(raw)
                self.assertEqual(headers["connection"], "keep-alive")
            self.assertEqual(headers["keep-alive"], "timeout=30")
            time.sleep(7)  # longer than what the library before announced
            sock.sendall(get("/health", "Connection: close"))
            ((_, headers, _),) = responses(read_all(sock))
            self.assertEqual(headers["connection"], "close")
            self.assertNotIn("keep-alive", headers)

    def test_targets_may_name_the_host(self):
        for target in ("http://localhost/health", f"http://127.0.0.1:{self.server.port}/health", "HTTP://LOCALHOST/health?x=y"):
            self.assertEqual(self.status(get(target)), 200, target)
        self.assertEqual(self.status(get("http://localhost/nothing")), 404)
        self.assertEqual(self.status(get("ftp://localhost/health")), 400)
        self.assertEqual(self.status(get("localhost:80")), 400)

    def test_there_is_one_host(self):
        self.assertEqual(self.status(get(host=None)), 400)
        self.assertEqual(self.status(get("/health", "Host: localhost")), 400)
        self.assertEqual(responses(self.server.exchange(get(version="1.0", host=None)))[0][0], 200)

    def test_every_reply_has_a_date_and_an_id_that_is_in_the_log(self):
        for data, status in ((get(), 200), (get("/nothing"), 404), (post({"prompt": 3}), 400), (post(SHORT), 200), (post({**SHORT, "stream": True}), 200),
                             (get(host=None), 400), (b"nonsense\r\n\r\n", 400), (get("/health", "X: " + "x" * HEADER_BYTES), 431)):
            with self.subTest(data[:60]):
                got, headers, _ = self.ask(data)
                self.assertEqual(got, status)
                age = datetime.datetime.now(datetime.timezone.utc) - email.utils.parsedate_to_datetime(headers["date"])
                self.assertLess(abs(age.total_seconds()), 10)
                self.assertRegex(headers["x-request-id"], r"\Areq-[0-9a-f]{16}\Z")
                self.server.await_log(f"request_id={headers['x-request-id']} ", f"status={status}")

    def test_a_sane_id_of_the_client_is_kept(self):
        for name in ("my-id.1:2_3", "A" * 128):
            self.assertEqual(self.ask(get("/health", "X-Request-ID: " + name))[1]["x-request-id"], name)
        self.server.await_log("request_id=my-id.1:2_3 ")
        for name in ("a b", "a\"b", "A" * 129, "\xe4", "a=b"):
            self.assertRegex(self.ask(get("/health", "X-Request-ID: " + name))[1]["x-request-id"], r"\Areq-")

    def test_paths_steer_no_terminal_that_shows_the_log(self):
        self.assertEqual(self.status(get("/%1b[2J%c2%9b31m%e2%80%ae%0ax%7f")), 404)
        self.server.await_log('path="/\\u001b[2J\\u009b31m\\u202e\\nx\\u007f"', "status=404")
        self.assertNotRegex(self.server.log_text(), "[\033\u009b\u202e\177]")

    def test_bodies_are_declared_as_json(self):
        for kind in ("application/json", "APPLICATION/JSON; charset=utf-8", "application/vnd.api+json"):
            self.assertEqual(self.status(post(SHORT, content_type=kind)), 200, kind)
        for kind in (None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonp"):
            status, _, body = self.ask(post(SHORT, content_type=kind))
            self.assertEqual(status, 415, kind)
            self.assertIn("-H 'Content-Type: application/json'", json.loads(body)["error"]["message"])

    def test_ranges_and_encodings_are_not_for_it(self):
        _, _, whole = self.ask(get("/"))
        ranges = "Range: bytes=" + ",".join(["0-"] * 2500)  # overlapping ones: 2,500 pages in one reply
        before = self.server.status_of_process("VmRSS")
        for line in ("Range: bytes=0-9", ranges):
            status, headers, page = self.ask(get("/", line, "Accept-Encoding: gzip, br, deflate"))
            self.assertEqual((status, page == whole, headers.get("content-encoding")), (200, True, None))
        self.assertEqual(headers["content-length"], str(len(whole)))
        for path, body in ((COMPLETIONS, SHORT), ("/tokenize", {"content": "Once"})):
            plain, asked = self.ask(post(body, path=path)), self.ask(post(body, ranges, path=path))
            self.assertEqual((asked[0], asked[1].get("content-range")), (200, None), path)
            self.assertLess(abs(len(asked[2]) - len(plain[2])), 200, path)
        # Readers that take nothing hold little.
        socks = [self.server.socket(receive_buffer=4096) for _ in range(60)]
        for sock in socks:
            sock.sendall(get("/", ranges))
        self.server.get("/health")
        self.assertLess(self.server.status_of_process("VmRSS") - before, 60 * 3 * len(whole) // 1024 + (16 << 10))
        for sock in socks:
            sock.close()

    def test_pages_of_other_sites_send_nothing_blindly(self):
        """What a page may send without asking first has no effect, whatever it says of itself."""
        counted = ("prompt_tokens_total", "generation_tokens_total")
        before = [self.server.metric(name) for name in counted]
        bodies = {COMPLETIONS: SHORT, "/v1/chat/completions": {"messages": [{"role": "user", "content": "a"}], "max_tokens": 1},
                  "/tokenize": {"content": "a"}, "/detokenize": {"tokens": [5]}}
        page = ("Origin: https://evil.example", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Site: cross-site")
        for path, body in bodies.items():
            for kind in (None, "text/plain", "text/plain; charset=application/json", "application/x-www-form-urlencoded",
                         "multipart/form-data; boundary=x", "text/plain, application/json"):
                for lines in ((), ("Origin: null",)):
                    self.assertEqual(self.status(post(body, *lines, path=path, content_type=kind)), 415, (path, kind))
                self.assertIn(self.status(post(body, *page, path=path, content_type=kind)), (403, 415), (path, kind))
            # A page that gets round the question (a plug-in, a fault of a browser) is still named by the browser.
            for origin in ("https://evil.example", "null", f"http://localhost:{self.server.port + 1}"):
                for site in ("cross-site", "same-site"):
                    reply = self.code(post(body, f"Origin: {origin}", f"Sec-Fetch-Site: {site}", path=path))
                    self.assertEqual(reply, (403, "origin_not_allowed"), (path, origin, site))
            self.assertEqual(self.status(get(path)), 405, path)
            self.assertEqual(self.code(post(body, path=path).replace(b"Host: localhost", b"Host: evil.example")), (403, "host_not_allowed"))
        self.assertEqual([self.server.metric(name) for name in counted], before)
        own = ("Origin: http://localhost", "Sec-Fetch-Site: same-origin")
        self.assertEqual(self.status(post(SHORT, *own)), 200)
        self.assertEqual(self.status(post(SHORT, "Sec-Fetch-Site: none")), 200)
        self.assertEqual(self.status(get("/", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate")), 200)  # a link to the page

    def test_head_is_get_without_the_body(self):
        raw = self.server.exchange(get("/health", "Connection: close").replace(b"GET", b"HEAD"))
        head, _, body = raw.partition(b"\r\n\r\n")
        self.assertEqual((b" 200 " in head, body), (True, b""))
        self.assertRegex(head, rb"Content-Length: [1-9]")

    def test_pages_may_not_use_it_unless_they_are_allowed(self):
        _, headers, _ = self.ask(get("/health", "Origin: https://example.org"))
        self.assertEqual([name for name in headers if name.startswith("access-control")], [])
        self.assertEqual(self.status(get(COMPLETIONS, "Origin: https://example.org", "Access-Control-Request-Method: POST").replace(b"GET", b"OPTIONS")), 405)

    def test_names_of_others_are_refused_on_this_machine(self):
        for host in ("localhost", "LOCALHOST:80", "127.0.0.1", f"127.0.0.1:{self.server.port}", "[::1]:8080"):
            self.assertEqual(self.status(get(host=host)), 200, host)
        for host in ("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8080", ""):
            self.assertEqual(self.code(get("/v1/models", host=host)), (403, "host_not_allowed"), host)
        self.assertEqual(self.code(get("http://evil.example/v1/models")), (403, "host_not_allowed"))

    def test_no_page_shows_the_page_in_a_frame(self):
        for path in ("/", "/index.html"):
            _, headers, _ = self.ask(get(path))
            self.assertEqual((headers.get("x-frame-options"), headers.get("content-security-policy")), ("DENY", "frame-ancestors 'none'"), path)

    def test_a_coded_slash_is_none(self):
        self.assertEqual(self.status(get("/v1/models")), 200)
        self.assertEqual(self.status(get("/v1/m%6Fdels")), 200)  # the control: other codes are what they stand for
        for path in ("/v1%2Fmodels", "/v1%2fmodels", "/%2Fhealth", "/%2fmetrics", "%2Fhealth", "/v1/%2e%2e%2fhealth"):
            self.assertIn(self.status(get(path)), (400, 404), path)
        self.assertEqual(self.status(post(SHORT, path="/v1%2Fcompletions")), 404)

    def test_encoded_bodies_are_refused(self):
        for encoding in ("gzip", "br", "deflate, gzip", "identity, gzip", "x"):
            status, _, body = self.ask(post(SHORT, f"Content-Encoding: {encoding}"))
            self.assertEqual((status, json.loads(body)["error"]["code"]), (415, "unsupported_media_type"), encoding)
            self.assertIn("Content-Encoding", json.loads(body)["error"]["message"])
        for encoding in ("identity", "Identity", ""):
            self.assertEqual(self.status(post(SHORT, f"Content-Encoding: {encoding}")), 200, encoding)


class Names(ServerCase):
    def test_a_models_name_may_have_a_coded_slash(self):
        with Server(PROGRAM, *PAIR, "--model-name", "maker/tales") as server:
            for name in ("maker/tales", "maker%2Ftales", "maker%2ftales"):
                self.assertEqual(server.get(f"/v1/models/{name}")["id"], "maker/tales")

    def test_an_open_server_says_so_and_knows_its_names(self):
        def statuses(server, *hosts):
            return [status for host in hosts for status, _, _ in responses(server.exchange(get("/v1/models", "Connection: close", host=host)))]

        own = ("localhost", "127.0.0.1:8080", "192.168.7.9", "[fe80::1]:80", socket.gethostname())
        others = ("evil.example", "192.168.7.9.evil.example", "localhost.evil.example")
        with Server(PROGRAM, *PAIR, "--host", "0.0.0.0") as server:
            self.assertEqual(server.log_text().count("--host 0.0.0.0: everybody who reaches it there may use it"), 1)
            self.assertEqual(statuses(server, *own), [200] * len(own))
            self.assertEqual(statuses(server, *others), [403] * len(others))
        with Server(PROGRAM, *PAIR, "--host", "0.0.0.0", "--api-key", "key") as server:  # the control: a key is asked for, so names are not
            self.assertNotIn("everybody", server.log_text())
            self.assertEqual(statuses(server, *own, *others), [401] * (len(own) + len(others)))
        with Server(PROGRAM, *PAIR) as server:
            self.assertNotIn("everybody", server.log_text())

    def test_a_key_file_that_others_may_write_is_refused(self):
        path = new_folder(self.addCleanup) / "keys"
        path.write_text("key\n")
        for mode, good in ((0o622, False), (0o660, False), (0o606, False), (0o600, True), (0o644, True)):
            path.chmod(mode)
            done = run_program("serve", "-m", "/nonexistent", "--api-key-file", path)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("/nonexistent" if good else "others may write to it", done.stderr)

    def test_too_few_open_files_are_an_error_of_the_start(self):
        def start(files):
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))  # noqa: E731
            process = subprocess.Popen([PROGRAM, "serve", *PAIR, "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                       preexec_fn=limit)
            line = process.stdout.readline()
            process.terminate()
            _, errors = process.communicate(timeout=SECONDS)
            return " at http://" in line, process.returncode, errors

        for files in (24, 31):
            listened, code, errors = start(files)
            self.assertEqual((listened, code), (False, 1), errors)
            self.assertIn(f"may have {files} files open, and it needs 32", errors)
        self.assertTrue(start(32)[0])


class Keys(Served):
    OPTIONS = {"env": {"FORETOKEN_API_KEY": "from-environment"}}

    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as file:
            file.write("# keys\n\nfrom-file-1\r\nfrom-file-2\n")
            file.flush()
            cls.SHARED = ("--api-key-file", file.name, "--api-key", "from-command-line")
            super().setUpClass()

    def test_keys_open_however_they_are_given(self):
        for key in ("from-file-1", "from-file-2", "from-environment", "from-command-line"):
            for line in (f"Authorization: Bearer {key}", f"authorization: bearer {key}", f"Authorization: BEARER  {key}", f"X-Api-Key: {key}"):
                self.assertEqual(self.status(get("/v1/models", line)), 200, line)
        for line in ("Authorization: Bearer from-file", "Authorization: Bearer", "Authorization: Basic from-file-1", "X-Api-Key: # keys", "X-Api-Key:", "A: b"):
            status, headers, _ = self.ask(get("/v1/models", line))
            self.assertEqual((status, headers.get("www-authenticate")), (401, "Bearer"), line)
        self.assertEqual(self.status(get("/health")), 200)

    def test_the_command_line_is_warned_of(self):
        self.assertIn("--api-key: others on this machine can read the command line", self.server.log_text())

    def test_a_key_is_looked_at_before_the_body_comes(self):
        with self.server.socket() as sock:
            sock.sendall(post(SHORT, "Expect: 100-continue").partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            ((status, headers, _),) = responses(read_all(sock))  # no "100 Continue", and the connection ends
        self.assertEqual((status, headers["connection"]), (401, "close"))

    def test_a_file_without_keys_is_an_error(self):
        empty = tempfile.NamedTemporaryFile()
        self.addCleanup(empty.close)
        for path, code in (("/nonexistent", 1), (empty.name, 2)):
            done = run_program("serve", *PAIR, "--api-key-file", path)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (code, 1), done.stderr)


class Origins(Served):
    SHARED = ("--cors-origin", "https://example.org", "--cors-origin", "http://localhost:3000", "--api-key", "key", "--allowed-host", "Tales.example")

    def test_allowed_pages_read_answers(self):
        for origin in ("https://example.org", "http://localhost:3000"):
            for data in (get("/health", f"Origin: {origin}"), get("/v1/models", f"Origin: {origin}"),
                         post(SHORT, f"Origin: {origin}", "X-Api-Key: key"), post({**SHORT, "stream": True}, f"Origin: {origin}", "X-Api-Key: key")):
                _, headers, _ = self.ask(data)
                self.assertEqual((headers["access-control-allow-origin"], headers["vary"]), (origin, "Origin"))
        for origin in ("https://example.com", "https://example.org.evil", "null"):
            self.assertNotIn("access-control-allow-origin", self.ask(get("/health", f"Origin: {origin}"))[1])

    def test_allowed_pages_of_other_sites_may_send(self):
        for site in ("cross-site", "same-site"):
            self.assertEqual(self.status(post(SHORT, "Origin: https://example.org", f"Sec-Fetch-Site: {site}", "X-Api-Key: key")), 200)
            self.assertEqual(self.status(post(SHORT, "Origin: https://example.com", f"Sec-Fetch-Site: {site}", "X-Api-Key: key")), 403)

    def test_browsers_may_ask_first(self):
        asked = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,content-type,x-stainless-os")
        status, headers, body = self.ask(get(COMPLETIONS, "Origin: https://example.org", *asked).replace(b"GET", b"OPTIONS").replace(b"\r\n\r\n", b"\r\nContent-Length: 0\r\n\r\n"))
        self.assertEqual((status, body), (204, b""))
        self.assertEqual(headers["access-control-allow-origin"], "https://example.org")
        self.assertEqual(headers["access-control-allow-headers"], "authorization,content-type,x-stainless-os")
        self.assertIn("POST", headers["access-control-allow-methods"])
        status, headers, _ = self.ask(get(COMPLETIONS, "Origin: https://evil.example", *asked).replace(b"GET", b"OPTIONS"))
        self.assertEqual((status, "access-control-allow-origin" in headers), (401, False))

    def test_names_that_were_allowed_are_known(self):
        for host, status in (("tales.example", 200), ("TALES.example:443", 200), ("localhost", 200), ("other.example", 403)):
            self.assertEqual(self.status(get(host=host)), status, host)

    def test_bad_origins_are_errors_of_a_line(self):
        for flags in (("--cors-origin", "example.org"), ("--cors-origin", "https://example.org/"), ("--allowed-host", "http://a")):
            done = run_program("serve", *PAIR, *flags)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)


class AnyOrigin(Served):
    SHARED = ("--cors-origin", "*")

    def test_all_pages_read_answers(self):
        self.assertEqual(self.ask(get("/health", "Origin: https://a.example"))[1]["access-control-allow-origin"], "*")


class Threads(Served):
    SHARED, OPTIONS = ("--max-queue", "300"), SLOW

    def test_idle_slow_waiting_and_streaming_connections_take_no_threads(self):
        threads = self.server.status_of_process("Threads")
        body = {"prompt": "Once upon a time", "max_tokens": 300, "ignore_eos": True, "temperature": 0, "speculative": {"enabled": False}}
        idle = [self.server.socket() for _ in range(500)]
        slow = [self.server.socket() for _ in range(200)]
        busy = [self.server.socket() for _ in range(100)]
        for sock in slow:
            sock.sendall(post(body)[:60])
        for i, sock in enumerate(busy):
            sock.sendall(post({**body, "stream": i % 2 == 0}))
        self.server.await_accepted(100)
        self.assertLessEqual(self.server.status_of_process("Threads"), threads)
        # The answers of the busy ones are not there yet: /health does not wait for a worker.
        self.assertEqual(self.server.get("/health")["status"], "ok")
        for sock in idle + slow + busy:
            sock.close()
        self.server.await_idle()


class Ends(ServerCase):
    FLAGS = ("-md", DRAFT, *ONE_THREAD)

    def test_sighup_drains(self):
        server = self.serve(**SLOW)
        body = {"prompt": "Once upon a time", "max_tokens": 60, "ignore_eos": True, "temperature": 0, "stream": True}
        with server.socket() as sock:
            sock.sendall(request_bytes(COMPLETIONS, body))
            server.await_accepted(1)
            server.process.send_signal(signal.SIGHUP)
            ((status, _, reply),) = responses(read_all(sock))
        self.assertEqual((status, events(reply)[-1]["choices"][0]["finish_reason"]), (200, "length"))
        self.assertEqual(server.wait(), 0)

    def test_nohup_keeps_it(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child inherits
        try:
            server = self.serve()
        finally:
            signal.signal(signal.SIGHUP, before)
        server.process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        self.assertEqual(server.get("/health")["status"], "ok")


if __name__ == "__main__":
    main(open_files=8192)
