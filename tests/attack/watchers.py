# SPDX-License-Identifier: Apache-2.0
"""What is watched while a server is attacked: that it lives, that /health answers soon, how much memory it takes, and that good requests get
their exact answers. Each watcher has `problems()`, a list of sentences that is empty where all was well.
"""
import json
import math
import os
import re
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Health:
    """The 99th percentile of /health, by a process of its own (health_prober.py). The bound holds for the part of each answer's time that the
    process which answers at once, asked right afterwards, did not need: on a busy machine both wait for the CPU. A probe waits at least as long
    as the bound; each one that has no answer by then is a problem by itself."""

    def __init__(self, port, bound_ms=100.0, period_ms=40, source="127.0.0.1"):
        self.bound_ms, self.timeout_s = bound_ms, max(5.0, bound_ms / 1000)
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "health_prober.py"), str(port), str(period_ms), source, str(self.timeout_s)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.samples = []

    def stop(self):
        if not self.samples:
            self.samples = json.loads(self.process.communicate("", timeout=60 + 2 * self.timeout_s)[0])
        return self

    def p99(self, values=None):
        return percentile([health for _, health, _ in self.samples] if values is None else values, 0.99)

    def p99_excess(self):
        return self.p99([max(0.0, health - reference) for _, health, reference in self.samples])

    def report(self):
        reference = self.p99([reference for _, _, reference in self.samples])
        return (f"/health: {len(self.samples)} probes, 99th percentile {self.p99():.1f} ms, {self.p99_excess():.1f} ms above a process that answers at once "
                f"({reference:.1f} ms); median {percentile([health for _, health, _ in self.samples], 0.5):.1f} ms, worst {max((h for _, h, _ in self.samples), default=0):.0f} ms")

    def problems(self):
        if hung := sum(math.isinf(health) for _, health, _ in self.samples):
            return [f"/health: {hung} of {len(self.samples)} probes had no answer within {self.timeout_s:.0f} s"]
        if len(self.samples) < 5:
            return [f"/health: only {len(self.samples)} probes"]
        if self.p99_excess() > self.bound_ms:
            return [f"/health: the 99th percentile is {self.p99_excess():.0f} ms above a process that answers at once; {self.bound_ms:.0f} are allowed"]
        return []


class Memory(threading.Thread):
    """The largest resident size, read 20 times a second; the system's own mark (VmHWM) finds what is shorter."""

    def __init__(self, pid, ceiling_mib):
        super().__init__(daemon=True)
        self.pid, self.ceiling_mib, self.done, self.first_mib, self.peak_mib, self.last_mib = pid, ceiling_mib, threading.Event(), None, 0.0, 0.0
        self.start()

    def read(self):
        try:
            with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
                fields = dict(line.split(":", 1) for line in file)
            self.last_mib = int(fields["VmRSS"].split()[0]) / 1024
            self.peak_mib = max(self.peak_mib, self.last_mib)
            if self.first_mib is None:
                self.first_mib = self.last_mib
            else:
                self.peak_mib = max(self.peak_mib, int(fields["VmHWM"].split()[0]) / 1024)
        except (OSError, KeyError):
            pass

    def run(self):
        while not self.done.wait(0.05):
            self.read()

    def stop(self):
        self.done.set()
        self.join()
        return self

    def report(self):
        return f"memory: {self.first_mib or 0:.0f} MiB at first, {self.peak_mib:.0f} at most, {self.last_mib:.0f} at the end; {self.ceiling_mib:.0f} are allowed"

    def problems(self):
        return [self.report()] if self.peak_mib > self.ceiling_mib else []


class Life:
    """The process is there, and its log holds no report of a sanitizer or of a broken invariant, and nothing that a terminal would obey."""
    CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
    SIGNS = ("AddressSanitizer", "ThreadSanitizer", "LeakSanitizer", "runtime error:", "terminate called", "check failed", "CheckFailed")

    def __init__(self, process, log_text):
        self.process, self.log_text = process, log_text

    def problems(self):
        found = []
        code = self.process.poll()
        if code is not None:
            found.append(f"the server ended with exit code {code}")
        log = self.log_text()
        for at in [log.find(sign) for sign in self.SIGNS]:
            if at >= 0:
                found.append(f"the server's log: {log[max(0, at - 200):at + 1500]}")
                break
        if control := self.CONTROL.search(log):
            found.append(f"a control character in the server's log: {log[max(0, control.start() - 200):control.end() + 50]!r}")
        return found


class GoodClient(threading.Thread):
    """Asks good requests, one after the other. Each answer is the exact one, or a refusal that says "later" (429, 503).

    ask(i) gives (status, what is compared) of the i-th request."""

    def __init__(self, ask, expected, pause=0.02):
        super().__init__(daemon=True)
        self.ask, self.expected, self.pause = ask, expected, pause
        self.done, self.right, self.later, self.wrong = threading.Event(), 0, 0, []
        self.start()

    def run(self):
        i = 0
        while not self.done.wait(self.pause):
            at = i % len(self.expected)
            try:
                status, got = self.ask(at)
            except Exception as error:  # a lost answer is a wrong one
                status, got = 0, repr(error)
            if status in (429, 503):
                self.later += 1
            elif status == 200 and got == self.expected[at]:
                self.right += 1
            elif len(self.wrong) < 20:
                self.wrong.append((at, status, got, self.expected[at]))
            i += 1

    def stop(self):
        self.done.set()
        self.join(150)
        return self

    def report(self):
        return f"good requests: {self.right} right, {self.later} told to come later, {len(self.wrong)} wrong"

    def problems(self):
        found = [f"good request {at}: status {status}, got {str(got)[:500]}, expected {str(expected)[:500]}" for at, status, got, expected in self.wrong[:3]]
        if self.is_alive():
            found.append("a good request was never answered")
        if self.right == 0:
            found.append("no good request was answered")
        return found


def wait_for_end(process, seconds):
    """None, or why it did not end well by itself."""
    begin = time.monotonic()
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return f"it was still there {time.monotonic() - begin:.0f} s after SIGTERM"
    return None if code == 0 else f"exit code {code} after SIGTERM"
