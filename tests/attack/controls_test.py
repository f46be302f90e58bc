#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the attack suite finds, it is shown to find: planted defects in the reader of models, and servers that hang, leak, crash, answer wrongly, say
nonsense or write to the terminal. A suite that passes these by has found nothing when it says so.

usage: controls_test.py MODEL_ATTACK CHAT_ATTACK
"""
import http.client
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_attack
import sharing_attack
from server_testing import together
from watchers import GoodClient, Health, Life, Memory, wait_for_end

MODEL_ATTACK, CHAT_ATTACK = (os.path.abspath(path) for path in sys.argv[1:3])
# A server with a defect that its first argument names. It says its port, and answers /health and everything else with "{}".
DEFECTIVE = """
import os, socket, sys, time
defect, kept = sys.argv[1], []
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
print(listener.getsockname()[1], flush=True)
if defect == "stays": import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)
for n in range(1 << 30):
    sock, _ = listener.accept()
    data = sock.recv(65536)
    if defect == "hangs" and n % 10 == 9: time.sleep(2.5)
    if defect == "leaks": kept.append(bytearray(b"x" * (4 << 20)))
    if defect == "crashes" and n == 20: os.abort()
    if defect == "reports" and n == 3: print("==1==ERROR: AddressSanitizer: heap-use-after-free", file=sys.stderr, flush=True)
    if defect == "writes to the terminal" and n == 3: print("path=/\\x1b[2J", file=sys.stderr, flush=True)
    text = b"wrong" if defect == "answers wrongly" and n % 7 == 6 else b"{}"
    sock.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\nConnection: close\\r\\n\\r\\n" % len(text) + text)
    sock.close()
"""


class ModelRunner(unittest.TestCase):
    def attack(self, *flags):
        with tempfile.TemporaryDirectory() as folder:
            keep = os.path.join(folder, "kept")
            done = subprocess.run([MODEL_ATTACK, "--seed", "14", "--first", "100", "--files", "12", "--keep", keep, *flags], capture_output=True, text=True,
                                  timeout=300, check=False)
            kept = sorted(os.listdir(keep)) if os.path.exists(keep) else []
        return done.returncode, done.stdout, kept

    def test_it_finds_each_planted_defect_keeps_the_file_and_reads_all_others(self):
        for plant, says, flags in (("crash", "signal Segmentation fault|AddressSanitizer", ()), ("abort", "signal Aborted|exit code", ()),
                                   ("hang", "took more than 2 s of CPU time", ("--cpu", "2")), ("memory", "MiB of memory", ()),
                                   ("wrong", "plain decoding gave", ()), ("message", "control character", ())):
            with self.subTest(plant):
                code, out, kept = self.attack("--plant", plant, *flags)
                self.assertEqual(code, 1, out)
                self.assertRegex(out, f"FAULT of file 105 .*({says})")
                self.assertIn("14-105.gguf", kept)
                self.assertRegex(out, "12 files, seed 14")

    def test_a_file_depends_on_seed_and_number_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, first, files in (("a", 0, 4), ("b", 2, 1)):
                subprocess.run([MODEL_ATTACK, "--seed", "3", "--first", str(first), "--files", str(files), "--write", os.path.join(folder, name)],
                               check=True, timeout=300)
            (name,) = (name for name in os.listdir(os.path.join(folder, "b")) if re.fullmatch("2(-head)?.gguf", name))
            with open(os.path.join(folder, "a", name), "rb") as a, open(os.path.join(folder, "b", name), "rb") as b:
                self.assertEqual(a.read(), b.read())


class ChatRunner(unittest.TestCase):
    def test_it_finds_each_planted_defect_and_writes_all_other_conversations(self):
        for plant, says in (("crash", "signal Segmentation fault|AddressSanitizer"), ("memory", "MiB of memory"), ("message", "control character"),
                            ("wrong", "questions were asked")):
            with self.subTest(plant), tempfile.TemporaryDirectory() as folder:
                done = subprocess.run([CHAT_ATTACK, "--seed", "14", "--files", "8", "--keep", folder, "--plant", plant], capture_output=True, text=True,
                                      timeout=300, check=False)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stdout, f"FAULT of file 5 .*({says})")
                self.assertRegex(done.stdout, "8 files, seed 14(.|\n)*1 faults")


class Sharing(unittest.TestCase):
    ANN, BOB = (0, None), (1, None)

    def texts(self):
        texts = sharing_attack.Texts()
        random, common = {"temperature": sharing_attack.RANDOM, "cache_prompt": True}, {"temperature": 0, "cache_prompt": True}
        texts.add(self.ANN, [1, 2, 3, 4, 5], common, {"answer": [6, 7, 8, 9]}, new=True)
        texts.add(self.ANN, [100, 101], random, {"answer": [102, 103, 104, 105]}, new=True)
        texts.add(self.BOB, [1, 2, 30, 40, 50], random, {"answer": [60, 70, 80]}, new=True)
        texts.add(self.BOB, [90, 91, 92], {"temperature": 0, "cache_prompt": False}, {"answer": [93, 94]})
        return texts

    def problem(self, prompt, cached=0, drafts=(), tokens=(), owner=BOB):
        return self.texts().problem_with(owner, prompt, {"cached": cached, "tokens": list(tokens) + [[]] * len(drafts), "drafts": list(drafts)})

    def test_what_is_another_s_is_told_from_what_is_one_s_own(self):
        self.assertEqual(self.problem([1, 2, 3, 4], cached=2), "")
        self.assertIn("were in the cache", self.problem([1, 2, 3, 4], cached=3))
        self.assertIn("were in the cache", self.problem([90, 91, 92], cached=1))  # it asked that nothing be kept
        self.assertEqual(self.problem([20, 21], drafts=[[30, 40, 50, 60, 70], [91, 92, 93, 94]]), "")
        self.assertIn("drafts show", self.problem([20, 21], drafts=[[1], [0, 2, 3, 4, 5]]))
        self.assertEqual(self.problem([20, 21], drafts=[[6, 7, 8, 9]]), "")  # common words of an answer
        self.assertEqual(self.problem([3, 4, 5, 6], drafts=[[3, 4, 5, 6]]), "")  # it has said so itself
        self.assertEqual(self.problem([3, 4], tokens=[[5, 6]], drafts=[[], [3, 4, 5, 6]]), "")
        self.assertIn("drafts show", self.problem([2], tokens=[[], [2, 3, 4, 5]], drafts=[[], [2, 3, 4, 5]]))  # before it was said
        self.assertIn("drafts show", self.problem([20], drafts=[[102, 103, 104, 105]]))  # a random answer
        self.assertIn("drafts show", self.problem([1], drafts=[[2, 30, 40, 50]], owner=(1, "salt")))


class Watchers(unittest.TestCase):
    def watch(self, defect, seconds=6.0):
        """{watcher: its problems}"""
        log = tempfile.TemporaryFile(mode="w+")
        self.addCleanup(log.close)
        process = subprocess.Popen([sys.executable, "-c", DEFECTIVE, defect], stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(process.stdout.close)
        port = int(process.stdout.readline())

        def ask(_):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            try:
                connection.request("GET", "/good")
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()

        watchers = {"memory": Memory(process.pid, 150), "good": GoodClient(ask, [b"{}"]), "health": Health(port, bound_ms=1500, period_ms=20)}
        time.sleep(seconds)
        for watcher in watchers.values():
            watcher.stop()
        watchers["life"] = Life(process, lambda: os.pread(log.fileno(), 1 << 20, 0).decode())
        found = {name: watcher.problems() for name, watcher in watchers.items()}
        process.send_signal(signal.SIGKILL)
        process.wait()
        return found

    def test_each_defect_is_seen_by_the_watcher_that_is_there_for_it_and_nothing_is_seen_without_one(self):
        seen = {"hangs": ("health",), "leaks": ("memory",), "crashes": ("life", "good"), "reports": ("life",), "writes to the terminal": ("life",),
                "answers wrongly": ("good",), "none": ()}
        found = dict(zip(seen, together([lambda defect=defect: self.watch(defect) for defect in seen])))
        for defect, watchers in seen.items():
            for watcher in watchers:
                self.assertNotEqual(found[defect][watcher], [], (defect, watcher))
        self.assertEqual(found["none"], {"memory": [], "good": [], "health": [], "life": []})

    def test_a_server_that_outlives_sigterm_is_seen(self):
        for defect, expected, seconds in (("stays", "still there", 1), ("none", "exit code -15", 300)):
            process = subprocess.Popen([sys.executable, "-c", DEFECTIVE, defect], stdout=subprocess.PIPE, text=True)
            process.stdout.readline()
            time.sleep(0.3)
            process.terminate()
            self.assertIn(expected, wait_for_end(process, seconds))
            process.stdout.close()


class Answers(unittest.TestCase):
    def test_wrong_answers_to_hostile_requests_are_told_from_right_ones(self):
        json_type = {"content-type": "application/json"}
        self.assertEqual(server_attack.wrong_with([(400, json_type, b'{"error":{"message":"a: wrong; b"}}'), (200, {}, b"x"), (503, json_type, b"")]), "")
        self.assertEqual(server_attack.wrong_with([(403, json_type, b'{"error":{"message":"a: b; c"}}')], refused=True), "")
        self.assertNotEqual(server_attack.wrong_with([(200, {}, b"x")], refused=True), "")
        for answer in ((500, json_type, b'{"error":{"message":"a"}}'), (400, json_type, b"{}"), (400, json_type, b'{"error":{"message":"a\\nb"}}'),
                       (400, json_type, b'{"error":{"message":"' + b"a" * 5000 + b'"}}'), (404, json_type, b"nothing")):
            self.assertNotEqual(server_attack.wrong_with([answer]), "", answer[2][:80])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
