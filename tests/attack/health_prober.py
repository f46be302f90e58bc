#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a server's /health again and again, on a connection of its own each time, and beside it a process that answers at once: on a busy machine
the second time says how long anybody waits for the CPU.

usage: health_prober.py PORT PERIOD_MS SOURCE_ADDRESS TIMEOUT_S; ends when its standard input does, and prints
[[seconds, health ms, reference ms], ...]. A probe without an answer within TIMEOUT_S is endless (Infinity); one that is refused, or gets another
status than 200, counts as twice TIMEOUT_S. It runs with real-time priority where it may, so that its own waits are not the server's.
"""
import json
import math
import os
import select
import socket
import sys
import time


def reference():
    """(port, process id) of the process that answers at once, at the usual priority."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    port = listener.getsockname()[1]
    child = os.fork()
    if child:
        listener.close()
        return port, child
    parent = os.getppid()
    listener.settimeout(1)
    while os.getppid() == parent:
        try:
            sock, _ = listener.accept()
            with sock:
                sock.recv(4096)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        except OSError:
            pass
    os._exit(0)


def ask(port, source, timeout_s):
    begin = time.monotonic()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s, source_address=(source, 0)) as sock:
            sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            data = b""
            while part := sock.recv(65536):
                data += part
        if not data.startswith(b"HTTP/1.1 200"):
            return 2 * timeout_s * 1000
    except TimeoutError:
        return math.inf
    except OSError:
        return 2 * timeout_s * 1000
    return (time.monotonic() - begin) * 1000


def main():
    port, period, source, timeout_s = int(sys.argv[1]), float(sys.argv[2]) / 1000, sys.argv[3], float(sys.argv[4])
    reference_port, child = reference()
    try:  # above everybody, also where all of this was started with real-time priority
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(os.sched_getparam(0).sched_priority + 1))
    except OSError:
        pass  # then the reference tells
    begin, found = time.monotonic(), []
    while not select.select([sys.stdin], [], [], period)[0]:
        found.append([time.monotonic() - begin, ask(port, source, timeout_s), ask(reference_port, "127.0.0.1", timeout_s)])
    os.kill(child, 9)
    os.waitpid(child, 0)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
