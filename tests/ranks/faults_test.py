#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose network runs on several ranks, of which one is killed (SIGKILL) or stopped (SIGSTOP) under load: all
ranks are gone in time, with an error that names it; clients saw whole answers or were told; and a server that is
started again answers as before.

usage: faults_test.py MPIRUN FORETOKEN MODELS [--ranks N] [--kills N] [--seed S] (run by ctest)
"""
import argparse
import http.client
import json
import os
import pathlib
import random
import re
import signal
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "server"))
from server_testing import JSON, Server  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("mpirun")
parser.add_argument("foretoken")
parser.add_argument("models", type=pathlib.Path)
parser.add_argument("--ranks", type=int, default=2)
parser.add_argument("--kills", type=int, default=2, help="how many times a rank is killed")
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--seconds", type=float, default=900,
                    help="after a fault all ranks must have ended within them; the default only ends a hang: a machine may be busy")
ARGUMENTS = parser.parse_args()

END_S = ARGUMENTS.seconds
PROMPTS = ["Once upon a time", "The dog ran", "A little girl saw", "In the big red house"]
WHOLE, TOLD, CUT, GONE = "whole", "told", "cut", "gone"  # gone: nobody listens any more


def start():
    models = [str(ARGUMENTS.models / name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf")]
    return Server([ARGUMENTS.mpirun, "-n", str(ARGUMENTS.ranks), ARGUMENTS.foretoken], "-m", models[0], "-md", models[1],
                  "-t", "1", "-q", env={"FORETOKEN_THREADS": "1"})


def rank_processes(mpirun):
    """{rank: process id} of the processes that mpirun has started, itself or through another one."""
    ranks = {}
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            parent, seen = int(folder.name), 0
            while parent > 1 and parent != mpirun and seen < 4:
                parent, seen = int((pathlib.Path("/proc") / str(parent) / "stat").read_text().rsplit(")", 1)[1].split()[1]), seen + 1
            environment = (folder / "environ").read_bytes().split(b"\0")
            program = os.readlink(folder / "exe")
        except OSError:  # it has ended
            continue
        variables = dict(entry.split(b"=", 1) for entry in environment if b"=" in entry)
        rank = variables.get(b"OMPI_COMM_WORLD_RANK", variables.get(b"PMI_RANK"))
        if parent == mpirun and rank is not None and program == os.path.realpath(ARGUMENTS.foretoken):
            ranks[int(rank)] = int(folder.name)
    return ranks


def complete(port, prompt, stream):
    """(outcome, text) of one request."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    body = {"prompt": prompt, "max_tokens": 60, "temperature": 0, "ignore_eos": True, "stream": stream}
    try:
        connection.connect()
    except OSError:
        return GONE, ""
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), JSON)
        reply = connection.getresponse()
        data = reply.read().decode()
    except (OSError, http.client.HTTPException):
        return CUT, ""
    finally:
        connection.close()
    if reply.status != 200:
        assert reply.status == 503, (reply.status, data)
        return TOLD, data
    if not stream:
        return WHOLE, json.loads(data)["choices"][0]["text"]
    events = [line.removeprefix("data: ") for line in data.splitlines() if line.startswith("data: ")]
    if any('"error"' in event for event in events):
        return TOLD, data
    if not events or events[-1] != "[DONE]":
        return CUT, data
    return WHOLE, "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1])


class Load:
    """Clients that ask all the time until the server is gone."""

    def __init__(self, port):
        self.outcomes, self.stopping = [], False
        self.threads = [threading.Thread(target=self.ask, args=(port, i)) for i in range(len(PROMPTS))]
        for thread in self.threads:
            thread.start()

    def ask(self, port, i):
        stream = i % 2 == 0
        while not self.stopping:
            outcome, text = complete(port, PROMPTS[i], stream)
            self.outcomes.append((i, stream, outcome, text))
            if outcome in (CUT, GONE):
                return
            if outcome == TOLD:
                time.sleep(0.05)

    def end(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def check(rank, how, noise, expected):
    """One fault: how long until all ranks were gone, and what the clients saw."""
    with start() as server:
        ranks = rank_processes(server.process.pid)
        assert sorted(ranks) == list(range(ARGUMENTS.ranks)), ranks
        if not expected:
            expected.extend(complete(server.port, prompt, False)[1] for prompt in PROMPTS)
        load = Load(server.port)
        time.sleep(noise.uniform(0.3, 2.0))
        begin = time.monotonic()
        os.kill(ranks[rank], how)
        while rank_processes(server.process.pid) or server.process.poll() is None:
            seconds = time.monotonic() - begin
            assert seconds < END_S, f"ranks still run {seconds:.1f} s after {how.name} of rank {rank}: {server.log_text()}"
            time.sleep(0.05)
        seconds = time.monotonic() - begin
        load.end()
        log = server.log_text()
    assert re.search(rf"rank {rank}\b[^\n]* on ", log), f"no error names rank {rank}: {log}"
    counts = {WHOLE: 0, TOLD: 0, CUT: 0, GONE: 0}
    for i, _, outcome, text in load.outcomes:
        counts[outcome] += 1
        assert outcome != WHOLE or text == expected[i], f"an answer is another one: {text!r}"
        assert outcome != TOLD or not re.search(r"rank \d", text) or '"rank_lost"' in text, f"another code for a lost rank: {text}"
    print(f"{how.name} of rank {rank}: all gone after {seconds:.1f} s; {counts[WHOLE]} whole answers, {counts[TOLD]} were told,"
          f" {counts[CUT]} were cut off", flush=True)
    assert rank == 0 or counts[CUT] == 0, "clients of rank 0 were cut off"


def drains(expected):
    """SIGTERM to a worker: every answer that was begun is whole, and all ranks end without an error."""
    with start() as server:
        ranks = rank_processes(server.process.pid)
        load = Load(server.port)
        time.sleep(0.5)
        os.kill(ranks[ARGUMENTS.ranks - 1], signal.SIGTERM)
        code = server.process.wait(timeout=END_S)
        load.end()
        assert code == 0, f"exit code {code} after SIGTERM to a worker: {server.log_text()}"
    for i, _, outcome, text in load.outcomes:
        assert outcome in (TOLD, GONE) or (outcome == WHOLE and text == expected[i]), (outcome, text)
    assert any(outcome == WHOLE for _, _, outcome, _ in load.outcomes), load.outcomes


def main():
    noise, expected = random.Random(ARGUMENTS.seed), []
    faults = [(i % ARGUMENTS.ranks, signal.SIGKILL) for i in range(ARGUMENTS.kills)]
    faults += [(rank, signal.SIGSTOP) for rank in range(ARGUMENTS.ranks)]
    for rank, how in faults:
        check(rank, how, noise, expected)
    drains(expected)
    with start() as server:
        for prompt, text in zip(PROMPTS, expected):
            assert complete(server.port, prompt, False) == (WHOLE, text), "a server that was started again answers otherwise"


if __name__ == "__main__":
    main()
