#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's named slots: the cache of a text goes to a file and comes back, also to another server, for the client whose text it is. Members
and refusals are those of llama-server."""
import json
import resource
import threading

from server_case import ONE_THREAD, ServerCase, main, new_folder, recurrent_model
from server_testing import together

TOKENS = [3 + 7 * i % 290 for i in range(150)]
ANN, BOB = ({"Authorization": f"Bearer {key}"} for key in ("ann-key", "bob-key"))


class Slots(ServerCase):
    FLAGS = (*ONE_THREAD, "--spec-type", "none")

    def setUp(self):
        self.folder = new_folder(self.addCleanup)
        self.files = self.folder / "slots"
        self.files.mkdir(mode=0o700)
        self.keys = self.folder / "keys"
        self.keys.write_text("ann-key\nbob-key\n")
        self.keys.chmod(0o600)

    def open(self, *flags, parallel=2, **options):
        return self.serve("--slot-save-path", str(self.files), "--parallel", str(parallel), *flags, **options)

    def ask(self, server, prompt=TOKENS, who=None, **fields):
        body = {"prompt": prompt, "n_predict": 5, "temperature": 0, "ignore_eos": True, **fields}
        return server.post("/completion", body, headers=who)

    def cached(self, server, prompt=TOKENS, who=None, **fields):
        return self.ask(server, prompt, who, **fields)["timings"]["cache_n"]

    def act(self, server, action, slot=0, name=None, who=None, **fields):
        """(status, reply, or the message of an error)"""
        body = {**fields, **({} if name is None else {"filename": name})}
        status, _, data = server.send("POST", f"/slots/{slot}?action={action}", body, headers=who)
        reply = json.loads(data)
        if status == 200:
            return status, reply
        self.assertEqual(reply["error"]["code"], status)
        self.assertNotIn(str(self.folder), reply["error"]["message"])
        return status, reply["error"]["message"]

    def done(self, *args, **options):
        status, reply = self.act(*args, **options)
        self.assertEqual(status, 200, reply)
        return reply

    def test_save_erase_restore(self):
        server = self.open()
        first = self.ask(server)
        self.assertEqual((first["id_slot"], first["timings"]["cache_n"], first["tokens_cached"]), (0, 0, 154))
        saved = self.done(server, "save", name="one.bin")
        self.assertEqual(list(saved), ["id_slot", "filename", "n_saved", "n_written", "timings"])
        self.assertEqual((saved["id_slot"], saved["filename"], saved["n_saved"]), (0, "one.bin", 154))
        self.assertEqual(saved["n_written"], (self.files / "one.bin").stat().st_size)
        self.assertGreaterEqual(saved["timings"]["save_ms"], 0)
        self.assertEqual((self.files / "one.bin").stat().st_mode & 0o777, 0o600)
        self.assertEqual(self.done(server, "erase"), {"id_slot": 0, "n_erased": 154})
        self.assertEqual(self.done(server, "erase"), {"id_slot": 0, "n_erased": 0})
        self.assertEqual(self.cached(server), 0)
        server.end()
        self.assertRegex(server.log_text(), rf"path=/slots/0 action=save tokens=154 bytes={saved['n_written']} work_ms=\S+ status=200")
        other = self.open()
        restored = self.done(other, "restore", name="one.bin", slot=1)
        self.assertEqual(list(restored), ["id_slot", "filename", "n_restored", "n_read", "timings"])
        self.assertEqual((restored["id_slot"], restored["n_restored"], restored["n_read"]), (1, 154, saved["n_written"]))
        self.assertGreaterEqual(restored["timings"]["restore_ms"], 0)
        again = self.ask(other)
        self.assertEqual((again["timings"]["cache_n"], again["content"]), (149, first["content"]))
        # A later turn reads what is new, too.
        text = TOKENS + self.ask(other, return_tokens=True)["tokens"]
        self.assertEqual(self.cached(other, text + [20] * 9), 154)

    def test_a_request_names_its_slot(self):
        server = self.open()
        for slot, n in ((1, 150), (0, 100)):
            self.assertEqual(self.ask(server, TOKENS[:n], id_slot=slot)["id_slot"], slot)
        self.assertEqual([self.done(server, "save", slot, "x")["n_saved"] for slot in (0, 1)], [104, 154])
        reply = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 2, "id_slot": 1})
        self.assertNotIn("notices", reply)
        self.assertLess(self.done(server, "save", 1, "x")["n_saved"], 104)
        self.assertEqual(self.ask(server, id_slot=2)["notices"], ["id_slot: there are 2 slots; it changes nothing"])

    def test_recurrent_states_come_back(self):
        model, wanted = recurrent_model(self.folder), None
        for restores in (False, True):
            server = self.open(model=model)
            if restores:
                self.assertEqual(self.done(server, "restore", name="x")["n_restored"], 154)
            reply = self.ask(server, id_slot=0)
            self.assertEqual(reply["timings"]["cache_n"], 149 if restores else 0)
            self.assertEqual(reply["content"], wanted or reply["content"])
            wanted = reply["content"]
            if not restores:
                self.done(server, "save", name="x")

    def test_what_is_one_clients_stays_one_clients(self):
        keys = ("--api-key-file", str(self.keys))
        server = self.open(*keys)
        self.ask(server, who=ANN)
        self.assertEqual(self.act(server, "save", name="x", who=BOB)[0], 400)
        self.assertEqual(self.done(server, "erase", who=BOB)["n_erased"], 0)
        self.assertEqual(self.act(server, "save", name="x", who=ANN, cache_salt="a")[0], 400)
        self.assertEqual(list(self.files.iterdir()), [])
        self.done(server, "save", name="x", who=ANN)
        self.ask(server, who=BOB)
        before = (self.files / "x").read_bytes()
        self.assertIn("no file that this client saved", self.act(server, "save", name="x", who=BOB)[1])
        self.assertEqual((self.files / "x").read_bytes(), before)
        other = self.open(*keys)
        self.assertIn("another client saved it", self.act(other, "restore", name="x", who=BOB)[1])
        self.done(other, "restore", name="x", who=ANN)
        self.assertEqual([self.cached(other, who=who) for who in (BOB, ANN)], [0, 149])
        server.error("/slots/0?action=erase", {}, 401)
        # The salt of requests is one of the file, too.
        self.ask(other, TOKENS[20:], who=ANN, id_slot=1, cache_salt="a")
        self.done(other, "save", 1, "y", who=ANN, cache_salt="a")
        self.assertEqual(self.act(server, "restore", 1, "y", who=ANN)[0], 400)
        self.done(server, "restore", 1, "y", who=ANN, cache_salt="a")
        self.assertEqual([self.cached(server, TOKENS[20:], who=ANN, cache_salt=salt) for salt in ("", "a")], [0, 128])

    def test_what_is_refused(self):
        plain = self.serve()
        for action in ("save", "restore", "erase", "other"):
            status, message = self.act(plain, action, name="x")
            self.assertEqual((status, "--slot-save-path" in message), (501, True))
        server = self.open()
        self.ask(server)
        self.done(server, "save", name="good")
        for slot in (-1, 2, 99999999999, "x", "0x", "%00", "1e0", "+1"):
            self.assertEqual(self.act(server, "save", slot, "x")[0], 400)
        for action in ("", "Save", "%00", "save%20", "saveerase"):
            self.assertIn("use save, restore or erase", self.act(server, action, name="x")[1])
        for name in ("", ".", "..", "../x", "a/b", "/etc/passwd", "a\\b", ".x", "a..b", "a\nb", "a\x00b", "\x7f", "x" * 201, 3, None, [], {}):
            for action in ("save", "restore"):
                self.assertEqual(self.act(server, action, 0, name)[0], 400, name)
        self.assertEqual(self.act(server, "restore", name="missing")[0], 400)
        self.assertEqual(self.act(server, "save", name="x", filenam="y")[0], 400)
        for body in (b"", b"[]", b"{", b'{"filename":"a","filename":"b"}'):
            server.error("/slots/0?action=save", body)
        server.post("/slots/0?action=erase", b"")
        server.error("/slots/0", {"filename": "a"})
        good = (self.files / "good").read_bytes()
        for bad in (b"", b"GGUF", good[:5000], good[:-1], good + b"x", good[:9000] + b"x" + good[9001:]):
            (self.files / "bad").write_bytes(bad)
            (self.files / "bad").chmod(0o600)
            self.assertEqual(self.act(server, "restore", name="bad")[0], 400)
        self.assertEqual({file.name for file in self.files.iterdir()}, {"good", "bad"})
        for flags in (("--slot-save-path", str(self.folder / "none")), ("--slot-save-path", str(self.files), "--prefix-cache", "off")):
            with self.assertRaisesRegex(RuntimeError, "slot"):
                self.serve(*flags)

    def test_a_full_disk_leaves_no_file(self):
        server = self.open()
        self.ask(server)
        self.done(server, "save", name="x")
        before = (self.files / "x").read_bytes()
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (20000, resource.RLIM_INFINITY))
        for name in ("x", "y"):
            status, message = self.act(server, "save", name=name)
            self.assertEqual((status, "check the folder, its permissions and free space" in message), (500, True), message)
        self.assertEqual({file.name: file.read_bytes() for file in self.files.iterdir()}, {"x": before})
        self.assertEqual(self.cached(server), 149)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.done(server, "save", name="y")

    def test_while_requests_run(self):
        server = self.open(parallel=4)
        wanted = self.ask(server, n_predict=60)["content"]
        ended = threading.Event()

        def act():
            """Some are refused, because another one is at work."""
            seen = set()
            while not ended.is_set():
                for action in ("save", "erase", "restore"):
                    seen.add(self.act(server, action, name="x")[0])
            return seen

        def ask():
            try:
                return [self.ask(server, n_predict=60)["content"] for _ in range(12)]
            finally:
                ended.set()

        *texts, first, second = together([ask, ask, act, act])
        self.assertEqual(texts, [[wanted] * 12] * 2)
        self.assertIn(200, first | second)
        self.assertLessEqual(first | second, {200, 400, 503})
        self.assertLessEqual({file.name for file in self.files.iterdir()}, {"x"})


if __name__ == "__main__":
    main()
