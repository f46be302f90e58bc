#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose model files are cut short or written over: it refuses requests with an error that names the file, says so under
/health, and lives.

usage: model_files_test.py FORETOKEN MODELS
"""
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import time
import unittest

from server_testing import Server

PROGRAM, MODELS = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
LONG = {"prompt": "once upon a time", "max_tokens": 900, "temperature": 0, "ignore_eos": True}


class ModelFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model, self.draft = self.folder / "m.gguf", self.folder / "d.gguf"
        shutil.copyfile(MODELS / "tales-9m-q8_0.gguf", self.model)
        shutil.copyfile(MODELS / "tales-1m-draft-q8_0.gguf", self.draft)

    def server(self):
        return Server(PROGRAM, "-m", str(self.model), "-md", str(self.draft), "--repack-cache", str(self.folder / "cache"))

    def tiles(self, stem):
        return next((self.folder / "cache").glob(stem + "-*.tiles"))

    def expect_the_end(self, server, path):
        """Of all requests, but not of the server."""
        for _ in range(2):
            status, _, body = server.send("POST", "/v1/completions", {"prompt": "a", "max_tokens": 4})
            self.assertEqual(status, 503, body)
            self.assertIn(str(path), json.loads(body)["error"]["message"])
        status, _, body = server.send("GET", "/health")
        self.assertEqual(status, 503)
        health = json.loads(body)
        self.assertEqual(health["status"], "error")
        self.assertIn(str(path), health["error"])
        self.assertEqual(server.send("GET", "/metrics")[0], 200)
        self.assertIsNone(server.process.poll())

    def test_files_that_are_cut_short_while_requests_run(self):
        for which in ("model", "draft", "tiles"):
            with self.subTest(file=which), self.server() as server:
                path = {"model": self.model, "draft": self.draft, "tiles": self.tiles("m")}[which]
                kept, replies = path.read_bytes(), []
                threads = [threading.Thread(target=lambda: replies.append(server.send("POST", "/v1/completions", LONG))) for _ in range(2)]
                for thread in threads:
                    thread.start()
                time.sleep(0.1)
                os.truncate(path, 4096)
                for thread in threads:
                    thread.join()
                for status, _, body in replies:
                    self.assertIn(status, (200, 503), body)  # 200: it had ended before
                self.expect_the_end(server, path)
                path.write_bytes(kept)

    def test_files_that_are_written_over_while_nothing_runs(self):
        for which in ("model", "tiles"):
            with self.subTest(file=which), self.server() as server:
                path = {"model": self.model, "tiles": self.tiles("m")}[which]
                server.post("/v1/completions", {"prompt": "a", "max_tokens": 4})
                self.assertEqual(server.get("/health")["status"], "ok")
                with open(path, "r+b") as file:
                    file.seek(8192)
                    file.write(b"x")
                self.expect_the_end(server, path)

    def test_a_stream_ends_with_the_error(self):
        with self.server() as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps({**LONG, "stream": True}), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.readline()
            os.truncate(self.model, 4096)
            rest = response.read().decode()
            connection.close()
            self.assertIn(str(self.model), rest[-600:])
            self.assertIn('"error"', rest)
            self.expect_the_end(server, self.model)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
