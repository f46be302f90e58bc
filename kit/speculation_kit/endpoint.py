# SPDX-License-Identifier: Apache-2.0
"""A server that speaks OpenAI's API: completions and chat completions, whole or streamed.

Contract: an Endpoint may be used by several threads; each has a connection of its own. What the server sends is checked and bounded; KitError
says what is wrong with it, Refused that the server answered with an error. Redirections are not followed.
"""
import http.client
import json
import threading
import time
import urllib.parse

from .errors import KitError, Refused
from .json_input import parse
from .reply import Asked, Reply, StreamedReply, body_of

MOST_BYTES = 32 << 20
PATHS = {"completions": "/completions", "chat": "/chat/completions"}


class Endpoint:
    """name: what reports call it. url: http or https; /v1 is added where the URL has no path. key: a bearer token, or None."""

    def __init__(self, name, url, model=None, key=None, seconds=600.0, extra=None):
        parts = urllib.parse.urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1 or parts.query or parts.fragment or parts.username:
            raise KitError(f"--{name}: '{url}' is no address of a server; give one such as http://127.0.0.1:8080/v1")
        self.name, self.url, self.seconds, self.extra = name, url, seconds, extra or {}
        self._made = (http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection, parts.hostname, port)
        self._base = parts.path.rstrip("/") or "/v1"
        self._headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        self._local = threading.local()
        self.model = model or self._first_model()

    def _first_model(self):
        answer = self._json("GET", "/models", None)
        models = answer.get("data") if isinstance(answer, dict) else None
        first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
        if not isinstance(first.get("id"), str):
            raise KitError(f"{self.url}: its list of models has no name; give --model")
        return first["id"]

    def complete(self, asked: Asked) -> Reply:
        """The whole reply."""
        return Reply.of(self._json("POST", PATHS[asked.kind], body_of(asked, self.model, self.extra)), asked, self.url)

    def stream(self, asked: Asked) -> StreamedReply:
        """The reply as it comes, with its times."""
        body = {**body_of(asked, self.model, self.extra), "stream": True, "stream_options": {"include_usage": True}}
        begin = time.perf_counter()
        response = self._send("POST", PATHS[asked.kind], body)
        gathered, size, ended = StreamedReply(asked, self.url), 0, False
        while True:
            line = self._read(lambda: response.readline(MOST_BYTES))
            size += len(line)
            if size >= MOST_BYTES:
                self._drop()
                raise KitError(f"{self.url}: a reply of more than {MOST_BYTES >> 20} MiB; ask for fewer tokens")
            if not line:
                break
            if line.startswith(b"data:") and not ended:
                data = line[5:].strip()
                ended = data == b"[DONE]"
                if not ended:
                    gathered.add(parse(data, self.url), time.perf_counter() - begin)
        self._read(response.read)  # nothing is left; it tells the connection so
        if not ended:
            raise KitError(f"{self.url}: a streamed reply without its end; look into the server's log")
        return gathered

    def _json(self, method, path, body):
        response = self._send(method, path, body)
        return parse(self._whole(response), self.url + path)

    def _whole(self, response):
        data = self._read(lambda: response.read(MOST_BYTES + 1))
        if len(data) > MOST_BYTES:
            self._drop()
            raise KitError(f"{self.url}: a reply of more than {MOST_BYTES >> 20} MiB; ask for fewer tokens")
        return data

    def _send(self, method, path, body):
        """The response, of status 200. A connection that was kept and has been closed meanwhile is opened again, once."""
        data = None if body is None else json.dumps(body).encode()
        kept = getattr(self._local, "connection", None)
        for connection in ([kept] if kept else []) + [None]:
            try:
                response = self._try(connection or self._open(), method, self._base + path, data)
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                self._drop()
                if connection is None:
                    raise self._unreachable(error) from None
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._drop()
                raise self._unreachable(error) from None
        if response.status != 200:
            text = self._whole(response)[:500].decode(errors="replace").strip()
            raise Refused(f"{self.url}{path}: HTTP {response.status}: {text}; change the request (docs/kit.md) or the server", response.status)
        return response

    def _open(self):
        maker, host, port = self._made
        self._local.connection = maker(host, port, timeout=self.seconds)
        return self._local.connection

    def _try(self, connection, method, path, data):
        connection.request(method, path, data, self._headers)
        return connection.getresponse()

    def _read(self, reader):
        try:
            return reader()
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._drop()
            raise self._unreachable(error) from None

    def _drop(self):
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection:
            connection.close()

    def _unreachable(self, error):
        return KitError(f"{self.url}: {error or type(error).__name__}; is the server there, and does --timeout give it time?")
