#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose model drafts for itself, with a copy that is made while it answers: what it tells of the copy, whose texts stay what they were, what a
later server finds, and that it trusts no kept copy that somebody has changed.

usage: self_draft_test.py FORETOKEN MODELS [WRITE_TINY_MODEL]     with the last one: a model of 300 MB, whose copy nobody asks for
"""
import json
import os
import shutil
import struct
import subprocess
import time
import unittest

from server_case import TARGET, WRITER, ServerCase, main, new_folder
from server_testing import SECONDS

FIXED = ("--lookahead", "fixed", "--num-speculative-tokens", "2")  # what the cost model chooses depends on the machine
STATES = ("none", "refused", "waiting", "making", "ready")


class SelfDraft(ServerCase):
    FLAGS = FIXED

    @classmethod
    def setUpClass(cls):
        cls.folder = new_folder(cls.addClassCleanup)
        cls.kept = cls.folder / "kept"
        if WRITER:
            cls.model, cls.flags = str(cls.folder / "large.gguf"), ()
            subprocess.run([WRITER, "--large", cls.model], check=True)
        else:  # a small model's copy is made if its types are named
            cls.model, cls.flags = str(cls.folder / "alone.gguf"), ("--self-draft", "Q4_0")  # no draft is beside it
            shutil.copy(TARGET, cls.model)

    def open(self, *flags):
        return self.serve(*self.flags, "--repack-cache", str(self.kept), *flags, model=self.model)

    @staticmethod
    def ask(server):
        """(text and log-probabilities of 12 tokens, rounds by drafter)"""
        reply = server.completion(prompt="Once upon a time", max_tokens=12, temperature=0.7, seed=5, logprobs=3, ignore_eos=True)
        return reply["choices"], {name: counts["rounds"] for name, counts in reply["speculation"].get("drafters", {}).items()}

    def copy(self, server):
        copy = server.get("/v1/speculation")["copy"]
        self.assertIn(copy["state"], STATES)
        if "bytes" in copy:
            self.assertLessEqual(copy["made_bytes"], copy["bytes"])
        return copy

    def await_copy(self, server):
        end = time.monotonic() + SECONDS
        while (copy := self.copy(server))["state"] != "ready":
            self.assertIn(copy["state"], ("waiting", "making"))
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(copy["made_bytes"], copy["bytes"])
        self.assertGreater(copy["bytes"], 0)
        values = server.metrics()
        self.assertEqual([values["copy_state", frozenset({("state", state)})] for state in STATES], [0, 0, 0, 0, 1])
        self.assertEqual((values["copy_made_bytes", frozenset()], values["copy_bytes", frozenset()]), (copy["bytes"], copy["bytes"]))
        return copy

    def expect_drafts(self, server, choices):
        """The same text, with drafts of the copy from some time on."""
        end = time.monotonic() + SECONDS
        while True:
            again, rounds = self.ask(server)
            self.assertEqual(again, choices)
            if any(name.startswith("self") for name in rounds):
                return
            self.assertLess(time.monotonic(), end)

    def kept_copies(self):
        return sorted(self.kept.glob("*-copy.*.tiles"))

    def plain(self):
        server = self.open("--spec-type", "none")
        self.assertNotIn("copy", server.get("/v1/speculation"))
        self.assertEqual(server.metric("copy_state", state="none"), 1)
        choices, rounds = self.ask(server)
        self.assertEqual(rounds, {})
        server.end()
        return choices

    def test_a_texts_stay_and_the_copy_is_kept(self):
        choices = self.plain()
        server = self.open()
        self.assertEqual(self.ask(server)[0], choices)  # whether or not the copy is there
        copy = self.await_copy(server)
        self.assertTrue(copy["type"].startswith("Q"), copy)
        self.expect_drafts(server, choices)
        server.end()
        files = self.kept_copies()
        self.assertEqual(len(files), 1, sorted(self.kept.iterdir()))
        made = files[0].stat()
        server = self.open()
        self.await_copy(server)
        self.expect_drafts(server, choices)
        server.end()
        self.assertEqual(self.kept_copies(), files)
        self.assertEqual((files[0].stat().st_ino, files[0].stat().st_size), (made.st_ino, made.st_size))  # it was not made again
        self.check_hostile_copies(files[0], choices)

    def check_hostile_copies(self, file, choices):
        true = self.folder / "true"
        shutil.copy(file, true)
        size = file.stat().st_size

        def flip(at):
            with open(file, "r+b") as stream:
                stream.seek(at)
                byte = stream.read(1)
                stream.seek(at)
                stream.write(bytes([byte[0] ^ 0x55]))

        def zeros():
            file.write_bytes(bytes(size))

        def huge():  # the size of the tiles, with the header's other fields as they were
            with open(file, "r+b") as stream:
                stream.seek(24)
                stream.write(struct.pack("<Q", 1 << 60))

        def link():
            file.unlink()
            file.symlink_to("/dev/zero")

        damages = {"a weight": lambda: flip(size - 4000), "the header": lambda: flip(9), "the checksum": lambda: flip(33),
                   "a short file": lambda: os.truncate(file, size // 2), "a long file": lambda: os.truncate(file, 2 * size), "zeros": zeros,
                   "a size": huge, "a folder": lambda: (file.unlink(), file.mkdir())[0], "a link": link}
        for name, damage in damages.items():
            with self.subTest(name):
                shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink(missing_ok=True)
                shutil.copy(true, file)
                damage()
                server = self.open()
                self.assertEqual(self.ask(server)[0], choices)
                self.await_copy(server)
                self.expect_drafts(server, choices)
                server.end()
                if file.is_file() and not file.is_symlink():
                    self.assertEqual(file.read_bytes(), true.read_bytes())  # made again, to the byte

    @unittest.skipUnless(WRITER, "a small model's copy is only made where its types are named, and then whatever it gains")
    def test_b_a_copy_that_was_seldom_right_is_refused_with_the_reason(self):
        server = self.open()
        self.await_copy(server)
        figures = self.kept / "copies.json"
        for _ in range(40):  # rounds of temperature 0 tell how often a copy is right
            server.completion(prompt="Once upon a time", max_tokens=24, temperature=0, ignore_eos=True)
        server.end()
        known = json.loads(figures.read_text())
        self.assertEqual([(copy["types"], copy["positions"] > 96) for copy in known["copies"]], [("Q2_K", True)])
        known["copies"] = [{**known["copies"][0], "types": types, "agreed": 0} for types in ("Q2_K", "Q3_K", "Q4_K")]
        figures.write_text(json.dumps(known))
        server = self.open()
        copy = self.copy(server)
        self.assertEqual((copy["state"], "bytes" in copy), ("refused", False))
        self.assertRegex(copy["error"], r"its drafts bring about .* \(--self-draft Q._K makes it")
        self.assertEqual(server.metric("copy_state", state="refused"), 1)
        self.assertFalse(any(name.startswith("self") for name in self.ask(server)[1]))


if __name__ == "__main__":
    main()
