# SPDX-License-Identifier: Apache-2.0
"""Replicas of `foretoken serve` behind haproxy with the configuration of deploy/, for tests and measurements."""
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
from http.client import HTTPException  # what a connection that was cut raises

from server_testing import Server


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(seconds, ready):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not ready within {seconds} s")


class Balancer:
    """haproxy with CONFIGURATION, whose replicas' addresses become those of `servers`; `edit` changes its text first. Replies name their replica's number in
    x-replica. It is stopped at the exit of `with`."""

    def __init__(self, configuration, servers, folder, edit=lambda text: text):
        self.port = free_port()
        text = edit(pathlib.Path(configuration).read_text(encoding="utf-8")).replace("bind :8080", f"bind 127.0.0.1:{self.port}")
        lines = [line for line in text.splitlines() if not re.match(r"  server ", line)]
        lines += [f"  server {i} 127.0.0.1:{server.port}" for i, server in enumerate(servers)] + ["  http-response set-header x-replica %s", ""]
        file = pathlib.Path(folder) / "haproxy.cfg"
        file.write_text("\n".join(lines), encoding="utf-8")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(file)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    connect = Server.connect
    send = Server.send
    post = Server.post
    sent = 0


def start(program, models, count, *flags):
    """So many servers of one thread each with the bundled models."""
    return [Server(program, "-q", "-t", "1", *flags, env={**os.environ, "FORETOKEN_MODELS": str(models)}) for _ in range(count)]
