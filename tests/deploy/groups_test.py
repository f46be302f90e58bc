#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Groups of two ranks behind haproxy with deploy/haproxy.cfg, one of which loses a rank under load: every request gets the right text.
Usage: groups_test.py FORETOKEN MODELS DEPLOY MPIRUN. The exit code is 77 without haproxy."""
import collections
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import replicas  # noqa: E402

FORETOKEN, MODELS, DEPLOY, MPIRUN = sys.argv[1:5]
GROUPS, REQUESTS, TEXTS = 2, 100, 20
TRIES = 5


def body(i):
    return {"prompt": f"Once upon a time {i % TEXTS}", "max_tokens": 40, "ignore_eos": True, "temperature": 0}


class Groups(unittest.TestCase):
    def setUp(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        start = folder / "foretoken"
        start.write_text("#!/bin/sh\nexport OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1\n"
                         f"exec '{MPIRUN}' -n 2 '{FORETOKEN}' \"$@\"\n", encoding="utf-8")
        start.chmod(0o755)
        self.groups = replicas.start(start, MODELS, GROUPS, "--parallel", "4")
        for group in self.groups:
            self.addCleanup(group.__exit__)
        self.balancer = self.enterContext(replicas.Balancer(pathlib.Path(DEPLOY) / "haproxy.cfg", self.groups, folder))
        replicas.until(10, lambda: self.balancer.send("GET", "/health")[0] == 200)

    def text(self, i):
        """Its text, asked for again where the connection was cut or no group could answer."""
        for _ in range(TRIES):
            try:
                status, _, data = self.balancer.send("POST", "/v1/completions", body(i))
            except (OSError, replicas.HTTPException):
                status = None
            if status == 200:
                return json.loads(data)["choices"][0]["text"]
            time.sleep(0.3)
        return None

    def test_a_group_that_loses_a_rank_costs_no_wrong_text(self):
        right = [self.text(i) for i in range(TEXTS)]
        self.assertNotIn(None, right)
        seen = {}

        def ask(i):
            seen[i] = self.text(i)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(REQUESTS)]
        for i, thread in enumerate(threads):
            thread.start()
            time.sleep(0.02)
            if i == REQUESTS // 3:
                ranks = subprocess.run(["pgrep", "-P", str(self.groups[0].process.pid)], capture_output=True, text=True, check=True).stdout.split()
                os.kill(int(ranks[-1]), signal.SIGKILL)
        for thread in threads:
            thread.join()
        wrong = collections.Counter(seen.get(i) for i in range(REQUESTS) if seen.get(i) != right[i % TEXTS])
        self.assertEqual(wrong, {})
        self.assertNotEqual(self.groups[0].wait(900), 0)


if __name__ == "__main__":
    if not shutil.which("haproxy"):
        print("skipped: there is no haproxy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
