#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program under little memory: it works, or says in one line that memory is short; no signal ends it.

Address space is limited in levels, from too little to start up to enough. Where a control group with a memory limit can be
made, the program also runs in one, and pages experts there that do not fit. What is shown while a model is loaded is tested here too.

usage: limits_test.py FORETOKEN MODELS_FOLDER WRITE_TINY_MODEL
"""
import http.client
import json
import os
import pathlib
import pty
import re
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, MODELS, WRITER = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).absolute(), os.path.abspath(sys.argv[3])
TARGET, DRAFT = str(MODELS / "tales-9m-q8_0.gguf"), str(MODELS / "tales-1m-draft-q8_0.gguf")
MIB = 1 << 20
FOLDER = tempfile.TemporaryDirectory()
SECONDS = 900  # a wait that only ends a hang: a machine may be busy
BROKEN = ("terminate called", "broken invariant", "an error of the program itself", "bad_alloc")
SERVES = subprocess.run([PROGRAM, "help", "serve"], capture_output=True, timeout=SECONDS, check=False).returncode == 0
SANITIZED = "asan" in PROGRAM or "tsan" in PROGRAM  # their shadow memory needs terabytes of addresses


def limited(mib):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (int(mib * MIB),) * 2)


def run(mib, *arguments):
    return subprocess.run([PROGRAM, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                          preexec_fn=limited(mib), env={**os.environ, "FORETOKEN_THREADS": "2"}, check=False)


def prompt():
    path = pathlib.Path(FOLDER.name) / "prompt.jsonl"
    path.write_text('{"prompt": "Once upon"}\n', encoding="ascii")
    return str(path)


def loads(mib):
    """Whether the system can load the program at all."""
    return run(mib, "--version").returncode == 0


@unittest.skipIf(SANITIZED, "a sanitizer needs more addresses")
class AddressSpace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.least = next(mib for mib in range(8, 200) if loads(mib))
        cls.levels = [cls.least + more for more in (0, 1, 2, 3, 5, 8, 11, 14, 18, 22, 27, 33, 40, 50, 64, 90, 140, 300, 600)]

    def check_refusal(self, where, code, errors):
        self.assertEqual(code, 1, f"{where}: {errors}")
        for word in BROKEN:
            self.assertNotIn(word, errors, where)
        # Progress and notices may come before it.
        lines = [line for line in re.split(r"[\r\n]+", errors) if line.strip()]
        self.assertTrue(lines and lines[-1].startswith("foretoken: ") or len(lines) > 1, f"{where}: {errors!r}")
        said = errors.lower()
        self.assertTrue("memory" in said or "temporarily unavailable" in said, f"{where}: {errors!r}")

    def walk(self, *arguments):
        outcomes = []
        for mib in self.levels:
            if outcomes[-3:] == [0, 0, 0] and mib != self.levels[-1]:
                continue  # it has enough
            done = run(mib, *arguments)
            outcomes.append(done.returncode)
            if done.returncode != 0:
                self.check_refusal(f"{arguments[0]} in {mib} MiB", done.returncode, done.stderr)
        # The walk begins below what it needs and ends above.
        self.assertNotEqual(outcomes[0], 0, outcomes)
        self.assertEqual(outcomes[-1], 0, outcomes)

    def test_no_level_ends_it_by_a_signal(self):
        """The windows in which a stack cannot grow are narrow. They lie where memory is short: behind 3 MiB of levels at which it works, it has enough."""
        outcomes = []
        for quarters in range(4 * self.least, 4 * (self.least + 300)):
            done = run(quarters / 4, "generate", "-m", TARGET, "-md", DRAFT, "-p", "Once", "-n", "2", "-t", "1", "-q", "--repack-cache", "off")
            self.assertIn(done.returncode, (0, 1), f"{quarters / 4} MiB: {done.stderr}")
            outcomes.append(done.returncode)
            if outcomes[-12:] == [0] * 12:
                break
        self.assertEqual(outcomes[-12:], [0] * 12)
        self.assertGreater(outcomes.count(1), 40, outcomes)  # the walk began far below

    def test_generate(self):
        self.walk("generate", "-m", TARGET, "-md", DRAFT, "-p", "Once upon a time", "-n", "8", "-q", "--repack-cache", "off")

    def test_bench(self):
        self.walk("bench", "-m", TARGET, "-n", "4", "--repeats", "1", "--rows", "1", "--contexts", "0", "--json", "--prompts", prompt())

    def test_certify(self):
        self.walk("certify", "-m", TARGET, "-md", DRAFT, "-n", "4", "--ks", "2", "--batch", "1,2", "--prompts", prompt())

    def test_inspect(self):
        outcomes = [run(mib, "inspect", TARGET).returncode for mib in self.levels]
        self.assertLessEqual(set(outcomes), {0, 1})
        self.assertEqual(outcomes[-1], 0)

    @unittest.skipUnless(SERVES, "the program has no server")
    def test_serve_and_one_request(self):
        outcomes = [self.serve(mib) for mib in self.levels]
        self.assertFalse(outcomes[0], outcomes)
        self.assertTrue(outcomes[-1], outcomes)

    def serve(self, mib):
        where = f"serve in {mib} MiB"
        with tempfile.TemporaryFile(mode="w+") as log:
            process = subprocess.Popen([PROGRAM, "serve", "-m", TARGET, "--port", "0", "-t", "2", "-q", "--repack-cache", "off"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True, preexec_fn=limited(mib))
            try:
                ready, _, _ = select.select([process.stdout], [], [], SECONDS)
                line = process.stdout.readline() if ready else ""
                address = re.search(r":(\d+)\n", line)
                answered = self.ask(int(address.group(1)), where) if address else False
                if address:
                    self.assertIsNone(process.poll(), where)
                    process.terminate()
                code = process.wait(SECONDS)
                log.seek(0)
                if address:
                    self.assertEqual(code, 0, f"{where}: {log.read()}")
                else:
                    self.check_refusal(where, code, log.read())
                return answered
            finally:
                process.kill()
                process.wait()
                process.stdout.close()

    def ask(self, port, where):
        """One request: its text, or an error of the server that says why. The server continues."""
        answered = False
        for method, path, body in (("POST", "/v1/completions", json.dumps({"prompt": "Once", "max_tokens": 8, "temperature": 0})),
                                   ("GET", "/health", None)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
            connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
            answer = connection.getresponse()
            text = answer.read().decode()
            connection.close()
            self.assertIn(answer.status, (200, 500, 503), f"{where}: {text}")
            answered |= method == "POST" and answer.status == 200
        return answered


def mixture():
    """The path of a model with 96 MiB of experts."""
    path = pathlib.Path(FOLDER.name) / "mixture.gguf"
    if not path.exists():
        subprocess.run([WRITER, "--mixture", str(path)], check=True)
    return str(path)


class Progress(unittest.TestCase):
    """Loading that takes long, because the process is stopped while it loads."""

    LINE = r"loading mixture\.gguf: repacking \d+ %, 0\.\d\d GiB of 0\.\d\d GiB, \d+\.\d\d GiB/s"

    def stop_while_loading(self, process, seconds):
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        end = time.monotonic() + SECONDS
        while "mixture.gguf" not in maps.read_text(encoding="utf-8") and time.monotonic() < end:
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def test_a_terminal_shows_a_line(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([PROGRAM, "generate", "-m", mixture(), "-p", "one", "-n", "1", "-c", "128", "--repack-cache", "off"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"})
        os.close(theirs)
        self.stop_while_loading(process, 1.2)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # the other end is closed
            pass
        os.close(ours)
        self.assertEqual(process.wait(SECONDS), 0, shown)
        self.assertRegex(shown.decode(), "\r\033\\[K" + self.LINE)

    def test_a_pipe_shows_nothing_but_a_server_logs(self):
        for verb, seconds, lines in ((("generate", "-p", "one", "-n", "1"), 1.2, 0), (("serve", "--port", "0"), 5.2, 1))[:2 if SERVES else 1]:
            process = subprocess.Popen([PROGRAM, *verb, "-m", mixture(), "-c", "128", "--repack-cache", "off"], stdin=subprocess.DEVNULL,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.stop_while_loading(process, seconds)
            process.stdout.readline()  # it is loaded
            if verb[0] == "serve":
                process.terminate()
            _, errors = process.communicate(timeout=SECONDS)
            self.assertEqual(process.returncode, 0, errors)
            memory = r"^foretoken: memory: weights 0\.10 GiB \(0\.09 GiB of experts\), cache 0\.00 GiB, \d+\.\d\d GiB available$"
            self.assertEqual(len(re.findall(memory, errors, re.M)), lines, errors)
            self.assertEqual(len(re.findall("^foretoken: " + self.LINE + "$", errors, re.M)), lines, errors)


LIMITS = ("memory.max", "memory.limit_in_bytes")  # of control groups, version 2 and 1


def control_group():
    """A new one below this process's own, or None where none can be made."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers not in ("", "memory"):
            continue
        group = pathlib.Path("/sys/fs/cgroup") / controllers / own.strip().lstrip("/") / f"foretoken-test-{os.getpid()}"
        try:
            group.mkdir()
            if any((group / name).exists() for name in LIMITS) and (group / "cgroup.procs").exists():
                return group
            group.rmdir()
        except OSError:
            pass
    return None


class ControlGroup(unittest.TestCase):
    def setUp(self):
        self.group = control_group()
        if self.group is None:
            self.skipTest("no control group with a memory limit can be made here")
        self.addCleanup(self.leave)

    def leave(self):
        for _ in range(50):
            try:
                return self.group.rmdir()
            except OSError:
                time.sleep(0.1)

    def limit(self, mib):
        name = next(name for name in LIMITS if (self.group / name).exists())
        (self.group / name).write_text(str(mib * MIB))

    def inside(self, *arguments):
        def enter():
            (self.group / "cgroup.procs").write_text("0")

        return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=SECONDS, preexec_fn=enter, check=False)

    def test_generate_refuses_before_the_system_kills(self):
        self.limit(6)
        done = self.inside("generate", "-m", TARGET, "-p", "Once", "-n", "4", "-c", "4096", "-q", "--repack-cache", "off")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("memory", done.stderr)

    @unittest.skipIf(SANITIZED, "a sanitizer needs more memory")
    def test_experts_that_do_not_fit_are_paged(self):
        model, tiles = mixture(), pathlib.Path(FOLDER.name) / "tiles"
        flags = ("generate", "-m", model, "-p", "one day the little dog", "-n", "24", "--temp", "0", "--ignore-eos", "--logprobs", "2",
                 "--json", "-c", "128", "-t", "2", "--repack-cache")
        enough = subprocess.run([PROGRAM, *flags, "off"], capture_output=True, text=True, timeout=SECONDS, check=True)
        self.limit(64)
        refused = self.inside(*flags, "off")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("leave --repack-cache on", refused.stderr)
        for start in ("first", "second"):
            done = self.inside(*flags, str(tiles))
            self.assertEqual(done.returncode, 0, f"{start}: {done.stderr}")
            self.assertRegex(done.stderr, r"memory: the experts take 0\.09 GiB, and 0\.0\d of 0\.0\d GiB are left for them")
            for field in ("token_ids", "logprobs"):
                self.assertEqual(json.loads(done.stdout)[field], json.loads(enough.stdout)[field], start)
        unwritable = self.inside(*flags, str(pathlib.Path(model) / "tiles"))
        self.assertEqual(unwritable.returncode, 1)
        self.assertIn("no file can hold them", unwritable.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
