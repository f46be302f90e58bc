#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The files of deploy/ with the programs they are for: haproxy before two replicas, one of them killed; Prometheus, whose counters must be what the
clients saw; promtool. Usage: operations_test.py FORETOKEN MODELS DEPLOY. What is not installed is skipped, and the exit code is 77 if nothing ran."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

FORETOKEN, MODELS, DEPLOY = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Replica:
    def __init__(self):
        self.port = free_port()
        self.process = subprocess.Popen([FORETOKEN, "serve", "--port", str(self.port), "-q"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "FORETOKEN_MODELS": MODELS})
        self.process.stdout.readline()  # it listens

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()


def complete(port, i, tries=1):
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": 40, "seed": i % 5, "temperature": 0.8}).encode()
    for left in reversed(range(tries)):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/completions", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=30) as reply:
                return json.load(reply)
        except OSError:
            if not left:
                raise
            time.sleep(0.1)


def until(seconds, ready):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if ready():
                return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"not ready within {seconds} s")


class Operations(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    @unittest.skipUnless(shutil.which("haproxy"), "no haproxy")
    def test_a_replica_that_is_killed_costs_retries_and_no_wrong_text(self):
        replicas = [Replica(), Replica()]
        port = free_port()
        text = (DEPLOY / "haproxy.cfg").read_text().replace(":8080", f"127.0.0.1:{port}")
        for name, replica in zip(("8081", "8082"), replicas):
            text = text.replace(f"127.0.0.1:{name}", f"127.0.0.1:{replica.port}")
        (self.folder / "haproxy.cfg").write_text(text)
        self.start("haproxy", "-db", "-f", "haproxy.cfg")
        until(10, lambda: complete(port, 0))
        right = [complete(port, i)["choices"][0]["text"] for i in range(5)]
        self.assertEqual(len(set(right)), 5)
        seen = {}

        def ask(i):
            seen[i] = complete(port, i, tries=5)["choices"][0]["text"]

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(120)]
        for i, thread in enumerate(threads):
            thread.start()
            time.sleep(0.01)
            if i == 50:
                replicas[0].stop(signal.SIGKILL)
        for thread in threads:
            thread.join()
        replicas[1].stop()
        self.assertEqual([seen.get(i) for i in range(120)], [right[i % 5] for i in range(120)])

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
    def test_prometheus_counts_what_clients_saw(self):
        replica, port = Replica(), free_port()
        self.addCleanup(replica.stop)
        text = (DEPLOY / "prometheus.yml").read_text().replace("15s", "1s")
        text = re.sub(r"targets: .*", f'targets: ["127.0.0.1:{replica.port}"]', text)
        (self.folder / "prometheus.yml").write_text(text)
        shutil.copy(DEPLOY / "alerts.yml", self.folder)
        self.start("prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data")
        replies = [complete(replica.port, i) for i in range(12)]
        expected = {
            "foretoken:generation_tokens_total": sum(r["usage"]["completion_tokens"] for r in replies),
            "foretoken:spec_decode_num_draft_tokens_total": sum(r["speculation"]["drafted"] for r in replies),
            "foretoken:spec_decode_num_accepted_tokens_total": sum(r["speculation"]["accepted"] for r in replies),
        }

        def value(name):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=sum({name})", timeout=5) as reply:
                found = json.load(reply)["data"]["result"]
            return float(found[0]["value"][1]) if found else None

        until(30, lambda: all(value(name) == count for name, count in expected.items()))

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_accepts_the_configuration(self):
        done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=DEPLOY, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
