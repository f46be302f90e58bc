#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server whose model files are cut short or written over: it refuses requests with an error that names the file, says so under
/health, and lives."""
import json
import os
import shutil
import time

from server_case import DRAFT, PROGRAM, TARGET, ServerCase, main, new_folder
from server_testing import Server, together

LONG = {"prompt": "once upon a time", "max_tokens": 900, "temperature": 0, "ignore_eos": True}


class ModelFiles(ServerCase):
    def setUp(self):
        self.folder = new_folder(self.addCleanup)
        self.model, self.draft = self.folder / "m.gguf", self.folder / "d.gguf"
        shutil.copyfile(TARGET, self.model)
        shutil.copyfile(DRAFT, self.draft)

    def server(self):
        return Server(PROGRAM, "-m", str(self.model), "-md", str(self.draft), "--repack-cache", str(self.folder / "cache"))

    def tiles(self, stem):
        return next((self.folder / "cache").glob(stem + "-*.tiles"))

    def expect_the_end(self, server, path):
        """Of all requests, but not of the server."""
        for _ in range(2):
            self.assertIn(str(path), server.error("/v1/completions", {"prompt": "a", "max_tokens": 4}, 503)["message"])
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
                kept, asked = path.read_bytes(), lambda: server.send("POST", "/v1/completions", LONG)
                *replies, _ = together([asked, asked, lambda: (time.sleep(0.1), os.truncate(path, 4096))])
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
            connection, response = server.begin("/v1/completions", {**LONG, "stream": True})
            response.readline()
            os.truncate(self.model, 4096)
            rest = response.read().decode()
            connection.close()
            self.assertIn(str(self.model), rest[-600:])
            self.assertIn('"error"', rest)
            self.expect_the_end(server, self.model)


if __name__ == "__main__":
    main()
