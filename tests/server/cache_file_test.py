#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve --cache-file`: what a later server reads again, whose texts come back, what damage and a full disk cost, and what of it
the log and the metrics tell."""
import resource
import struct

from server_case import PLAIN, TARGET, ServerCase, main, new_folder, recurrent_model
from server_testing import cached_tokens

ANN, BOB = ({"Authorization": f"Bearer {key}"} for key in ("ann-key", "bob-key"))
COUNTS = ("blocks", "bytes", "failed", "blocks_read_total", "tokens_read_total", "bytes_read_total", "blocks_written_total", "bytes_written_total",
          "refused_total")


def tokens(first, n=200):
    return [3 + (first * 31 + 7 * i + i // 13) % 290 for i in range(n)]


class CacheFile(ServerCase):
    FLAGS = [flag for flag in PLAIN if flag != "-q"]

    def setUp(self):
        self.folder = new_folder(self.addCleanup)
        self.file = self.folder / "blocks"

    def open(self, *flags, **options):
        return self.serve("--cache-file", str(self.file), "--cache-file-mb", "64", *flags, **options)

    def end(self, server):
        """The log's lines of the file."""
        server.end()
        return self.told(server)

    @staticmethod
    def told(server):
        return [line for line in server.log_text().splitlines() if "event=cache_file" in line]

    @staticmethod
    def ask(server, first, who=None, **fields):
        """(cached tokens, text)"""
        body = {"prompt": tokens(first), "max_tokens": 5, "temperature": 0, "ignore_eos": True, **fields}
        reply = server.post("/v1/completions", body, headers=who)
        return cached_tokens(reply), reply["choices"][0]["text"]

    @staticmethod
    def counts(server):
        metrics = server.metrics()
        return {name: int(metrics[f"cache_file_{name}", frozenset()]) for name in COUNTS}

    def test_a_later_server_reads_nothing_again(self):
        for target in (TARGET, recurrent_model(self.folder)):
            self.file.unlink(missing_ok=True)
            server = self.open(model=target)
            cached, text = self.ask(server, 1)
            self.assertEqual(cached, 0)
            self.assertEqual(self.end(server), [])
            self.assertEqual(self.file.stat().st_mode & 0o777, 0o600)
            server = self.open(model=target)
            self.assertEqual(self.ask(server, 1), (199, text))  # the last token is computed for its logits
            counts = self.counts(server)
            self.assertEqual((counts["tokens_read_total"], counts["blocks_read_total"]), (204, 7))  # the answer's tokens among them
            self.assertEqual((counts["blocks_written_total"], counts["refused_total"], counts["failed"]), (0, 0, 0))
            self.assertGreaterEqual(counts["blocks"], 7)
            self.assertGreater(counts["bytes_read_total"], 0)
            self.assertGreater(counts["bytes"], counts["bytes_read_total"])
            self.assertEqual(server.metric("prefix_cache_hits_total"), 199)
            self.end(server)

    def test_each_client_finds_its_own(self):
        keys = self.folder / "keys"
        keys.write_text("ann-key\nbob-key\n")
        keys.chmod(0o600)
        server = self.open("--api-key-file", str(keys))
        for who, salt in ((ANN, ""), (ANN, "a")):
            self.assertEqual(self.ask(server, 1, who, cache_salt=salt)[0], 0)
        self.assertEqual(self.end(server), [])
        keys.write_text("bob-key\nann-key\n")  # the order says nothing
        server = self.open("--api-key-file", str(keys))
        self.assertEqual(self.ask(server, 1, BOB)[0], 0)
        self.assertEqual(self.ask(server, 1, BOB, cache_salt="a")[0], 0)
        self.assertEqual(self.ask(server, 1, ANN, cache_salt="b")[0], 0)
        self.assertEqual(self.ask(server, 1, ANN)[0], 199)
        self.assertEqual(self.ask(server, 1, ANN, cache_salt="a")[0], 199)

    def test_what_has_no_room_in_memory_comes_back(self):
        server = self.open("--cache-tokens", "512")
        texts = [self.ask(server, i) for i in range(4)]
        self.assertEqual([cached for cached, _ in texts], [0] * 4)
        for i in range(4):
            self.assertEqual(self.ask(server, i), (199, texts[i][1]))
        counts = self.counts(server)
        self.assertGreaterEqual(counts["tokens_read_total"], 2 * 192)
        self.assertGreaterEqual(counts["blocks_written_total"], 2 * 6)
        self.assertEqual(counts["blocks"], counts["blocks_written_total"])

    def test_damage_costs_what_it_hits(self):
        server = self.open()
        wanted = self.ask(server, 1)[1]
        self.end(server)
        good = self.file.read_bytes()
        # Heads stand before bytes. The last block of a text is written first, and before it the text with which the server measures at its start.
        size, = struct.unpack_from("<q", good, 80)  # of a block; the head of each of the 8 takes 232
        head, block = (lambda i: 4096 + (7 - i) * 232), (lambda i: len(good) - (i + 1) * size)
        for bad, cached, refused in (
                (good[:-1], 0, 1),                                              # torn in the first block of the text
                (good[:block(2) + 300] + b"?" + good[block(2) + 301:], 64, 1),  # other bytes
                (good[:head(4) + 60] + b"?" + good[head(4) + 61:], 128, 1)):    # another head of a record
            self.file.write_bytes(bad)
            server = self.open()
            self.assertEqual(self.ask(server, 1), (cached, wanted))
            self.assertEqual(self.counts(server)["refused_total"], refused)
            server.process.kill()
            server.wait()
            self.assertEqual(self.told(server), [])

    def test_a_file_that_is_none_is_told_and_left_alone(self):
        server = self.open()
        self.ask(server, 1)
        self.end(server)
        for bad in (b"a letter to somebody", b"GGUF" * 5000, self.file.read_bytes()[:50]):
            self.file.write_bytes(bad)
            self.file.chmod(0o600)
            server = self.open()
            self.assertEqual([self.ask(server, 1)[0] for _ in range(2)], [0, 199])  # memory serves as ever
            self.assertEqual(self.counts(server), dict.fromkeys(COUNTS, 0))
            self.assertEqual(self.end(server), [])
            told = [line for line in server.log_text().splitlines() if "cache file" in line]
            self.assertEqual(len(told), 1, told)
            self.assertIn("it is no file of cache blocks", told[0])
            self.assertEqual(self.file.read_bytes(), bad)

    def test_a_full_disk_is_told_at_once_and_once(self):
        server = self.open("--cache-tokens", "512")
        for i in range(4):
            self.ask(server, i)
        blocks = self.counts(server)["blocks"]
        self.assertGreater(self.file.stat().st_size, 1 << 20)  # the log is a file, too
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (self.file.stat().st_size, resource.RLIM_INFINITY))
        self.assertEqual(self.counts(server)["failed"], 0)
        for i in range(4, 9):
            self.assertEqual(self.ask(server, i)[0], 0)
        self.assertEqual(self.counts(server)["failed"], 1)
        self.assertGreaterEqual(self.counts(server)["blocks"], blocks - 1)
        self.assertEqual(self.ask(server, 0)[0], 199)  # what it has is still used
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        told = self.end(server)
        self.assertEqual(len(told), 1, told)
        self.assertRegex(told[0], "event=cache_file error=.*cannot write: File too large; check the folder, its permissions and free space")
        lines = server.log_text().splitlines()
        at = next(i for i, line in enumerate(lines) if "event=cache_file" in line)
        self.assertTrue(any("path=/v1/completions" in line for line in lines[at + 1:]), "it is told while the server runs")


if __name__ == "__main__":
    main()
