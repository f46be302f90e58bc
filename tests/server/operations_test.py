#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prometheus with the files of deploy/: its counters must be what the clients saw, and promtool must accept the rules. balancer_test.py tests haproxy.
Usage: operations_test.py FORETOKEN MODELS DEPLOY. What is not installed is skipped, and the exit code is 77 if nothing ran."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import replicas

FORETOKEN, MODELS, DEPLOY = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])


class Operations(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    @unittest.skipUnless(shutil.which("prometheus"), "no prometheus")
    def test_prometheus_counts_what_clients_saw(self):
        [replica] = replicas.start(FORETOKEN, MODELS, 1)
        self.addCleanup(replica.__exit__)
        port = replicas.free_port()
        text = (DEPLOY / "prometheus.yml").read_text().replace("15s", "1s")
        text = re.sub(r"targets: .*", f'targets: ["127.0.0.1:{replica.port}"]', text)
        (self.folder / "prometheus.yml").write_text(text)
        shutil.copy(DEPLOY / "alerts.yml", self.folder)
        self.start("prometheus", "--config.file=prometheus.yml", f"--web.listen-address=127.0.0.1:{port}", "--storage.tsdb.path=data")
        replies = [replica.completion(prompt="Once upon a time", max_tokens=40, seed=i % 5, temperature=0.8) for i in range(12)]
        expected = {
            "foretoken:generation_tokens_total": sum(r["usage"]["completion_tokens"] for r in replies),
            "foretoken:spec_decode_num_draft_tokens_total": sum(r["speculation"]["drafted"] for r in replies),
            "foretoken:spec_decode_num_accepted_tokens_total": sum(r["speculation"]["accepted"] for r in replies),
        }

        def value(name):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?query=sum({name})", timeout=5) as reply:
                found = json.load(reply)["data"]["result"]
            return float(found[0]["value"][1]) if found else None

        replicas.until(30, lambda: all(value(name) == count for name, count in expected.items()))

    @unittest.skipUnless(shutil.which("promtool"), "no promtool")
    def test_promtool_accepts_the_configuration(self):
        done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=DEPLOY, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    result = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2).result
    if not result.wasSuccessful():
        sys.exit(1)
    sys.exit(77 if len(result.skipped) == result.testsRun else 0)
