# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve` as a child process.

Contract: the server listens when `serve` returns, and is ended when its `Server` is closed or dropped, and with this process, however that
ends: then its standard input ends (--exit-with-stdin).
"""
import collections
import os
import re
import signal
import subprocess
import threading
import weakref
from typing import IO, Any, Optional

from .errors import Code, Error
from .models import bundled_models, program


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    assert process.stdin is not None
    process.stdin.close()


class Server:
    """A server that runs. url: "http://127.0.0.1:PORT"."""

    def __init__(self, process: "subprocess.Popen[str]", url: str):
        self.process, self.url = process, url
        self._finish = weakref.finalize(self, _end, process)

    def close(self) -> None:
        """Ends the server: requests that run get their answers first, for at most 10 seconds. May be called again."""
        self._finish()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def environment() -> "dict[str, str]":
    """The environment of the program, with the folder of the bundled models if there is one."""
    try:
        return {**os.environ, "FORETOKEN_MODELS": str(bundled_models())}
    except Error:
        return dict(os.environ)


def _read_on(file: IO[str], last: "collections.deque[str]") -> threading.Thread:
    """Reads to the end on another thread, so that the server never waits for its reader, and keeps the last lines."""
    def read() -> None:
        with file:
            last.extend(file)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    return reader


def _flag(name: str, value: Any) -> "list[str]":
    flag = "--" + name.replace("_", "-")
    if isinstance(value, bool):
        return [flag] if value else []
    return [part for item in (value if isinstance(value, (list, tuple)) else [value]) for part in (flag, str(item))]


def serve(model: Optional[Any] = None, *, port: int = 0, **flags: Any) -> Server:
    """Starts a server and waits until it listens. model: a path; None: the bundled one. port 0: a free one. flags: those of `foretoken serve` with
    underscores: True sets a flag, a list repeats it. Errors: NOT_FOUND (no program), INVALID_ARGUMENT (it ended; the text has its reason)."""
    command = [program(), "serve", "--exit-with-stdin", "--port", str(port)] + ([] if model is None else ["--model", str(model)])
    for name, value in flags.items():
        if value is not None:
            command += _flag(name, value)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert process.stdout is not None and process.stderr is not None
    last: "collections.deque[str]" = collections.deque(maxlen=50)
    errors = _read_on(process.stderr, last)
    found = re.search(r" at (http://\S+:\d+)", process.stdout.readline())
    if found:
        _read_on(process.stdout, collections.deque(maxlen=0))
        return Server(process, found.group(1))
    _end(process)
    process.stdout.close()
    errors.join(10)
    raise Error(Code.INVALID_ARGUMENT, "serve", f"serve: the server has ended: {''.join(last).strip()}; see `foretoken serve --help`")
