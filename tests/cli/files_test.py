#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files that are none, and places where no file can be written: one line of error each, no wait, nothing left.

usage: files_test.py FORETOKEN MODELS
"""
import json
import os
import pathlib
import resource
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAM, MODELS = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
MODEL, DRAFT = str(MODELS / "tales-9m-q8_0.gguf"), str(MODELS / "tales-1m-draft-q8_0.gguf")
SECONDS = 900  # a wait that only ends a hang: a machine may be busy
SHORT = ("-p", "a", "-n", "4", "-q")


def limit_file_sizes(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


class FilesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_it(self, *arguments, **keywords):
        return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS,
                              check=False, env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}, **keywords)

    def fails(self, words, *arguments, **keywords):
        """One short line on standard error; the names in the folder stay the same."""
        before = sorted(os.listdir(self.folder))
        result = self.run_it(*arguments, **keywords)
        self.assertIn(result.returncode, (1, 2), (arguments, result.returncode, result.stderr))
        line = result.stderr.splitlines()[-1]
        self.assertRegex(line, r"\Aforetoken: [^\n]+: [^\n]+; [^\n]+\Z", arguments)
        self.assertLess(len(line), 400)
        for word in words:
            self.assertIn(word, line, arguments)
        self.assertEqual(sorted(os.listdir(self.folder)), before, arguments)


class Inputs(FilesTest):
    def no_files(self):
        """Names of things that are not files; reading some of them would never end."""
        fifo, unix = self.folder / "fifo", self.folder / "socket"
        os.mkfifo(fifo)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(unix))
        return [fifo, unix, self.folder, "/dev/zero", "/dev/null", "/proc/self/mem", "/proc/version"]

    def test_models_are_regular_files(self):
        for path in self.no_files():
            for arguments in (("inspect", path), ("generate", "-m", path, *SHORT), ("generate", "-m", MODEL, "-md", path, *SHORT),
                              ("quantize", path, self.folder / "out.gguf", "Q8_0")):
                with self.subTest(path=path, verb=arguments[0]):
                    self.fails([str(path)], *arguments)

    def test_other_inputs_are_regular_files(self):
        for path in self.no_files():
            if str(path) == "/proc/version":
                continue  # text, as good as any
            for arguments in (("replay", path), ("generate", "-m", MODEL, "--profile", path, *SHORT),
                              ("generate", "-m", MODEL, "--ngram-corpus", path, *SHORT)):
                with self.subTest(path=path, arguments=arguments[:4]):
                    self.fails([str(path)], *arguments)

    def test_devices_and_folders_are_no_texts(self):
        for path in ("/dev/zero", self.folder):
            for flag in ("-f", "--grammar-file", "--json-schema-file", "--speculative-config"):
                with self.subTest(path=path, flag=flag):
                    self.fails([str(path)], "generate", "-m", MODEL, "-n", "4", "-q", flag, path, *(() if flag == "-f" else ("-p", "a")))

    def test_prompts_come_from_pipes_and_process_substitution(self):
        shell = f"'{PROGRAM}' generate -m '{MODEL}' -n 8 --temp 0 -q"
        texts = [subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=True).stdout
                 for command in (shell + " -p 'once upon a time'", "printf %s 'once upon a time' | " + shell + " -f -",
                                 shell + " -f <(printf %s 'once upon a time')", shell + " -f <(sleep 0.3; printf %s 'once upon a time')",
                                 "printf %s 'once upon a time' | " + shell + " -f /dev/stdin")]
        self.assertEqual(set(texts), {texts[0]})
        self.assertTrue(texts[0].strip())

    def test_settings_come_from_process_substitution(self):
        command = f"'{PROGRAM}' generate -m '{MODEL}' -n 4 --temp 0 -q -p a --speculative-config <(echo 'speculative_config: {{method: ngram}}')"
        subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=SECONDS, check=True)


class Outputs(FilesTest):
    def test_a_trace_at_a_limit_of_file_sizes_is_an_error(self):
        out = self.folder / "run.jsonl"
        result = self.run_it("generate", "-m", MODEL, *SHORT, "--record", out, preexec_fn=limit_file_sizes(100))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"run\.jsonl: .*File too large")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_trace_on_a_full_disk_is_an_error(self):
        result = self.run_it("generate", "-m", MODEL, *SHORT, "--record", "/dev/full")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertRegex(result.stderr, r"/dev/full: .*No space left")

    def test_a_trace_is_not_written_through_a_link(self):
        precious = self.folder / "precious"
        precious.write_text("precious")
        link = self.folder / f"run.jsonl.{os.getpid()}.part"
        link.symlink_to(precious)
        # The name of a temporary file could be guessed: links under all that are likely.
        command = f"for i in $(seq 0 3); do ln -s '{precious}' '{self.folder}/run.jsonl.'$$-$i.part; done; " \
                  f"ln -s '{precious}' '{self.folder}/run.jsonl.'$$.part; " \
                  f"exec '{PROGRAM}' generate -m '{MODEL}' -p a -n 4 -q --record '{self.folder}/run.jsonl'"
        subprocess.run(["bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=True)
        self.assertEqual(precious.read_text(), "precious")
        self.assertIn("foretoken_trace", (self.folder / "run.jsonl").read_text())

    def test_a_pipe_without_a_reader_is_no_wait(self):
        os.mkfifo(self.folder / "fifo")
        result = self.run_it("generate", "-m", MODEL, *SHORT, "--record", self.folder / "fifo")
        self.assertEqual(result.returncode, 1, result.stderr)

    def test_manual_pages_that_cannot_be_written_leave_nothing(self):
        self.fails(["File too large"], "man", "--output", self.folder, preexec_fn=limit_file_sizes(100))
        self.fails(["No such file"], "man", "--output", self.folder / "none")

    def test_quantised_models_that_cannot_be_written_leave_nothing(self):
        self.fails(["out.gguf", "File too large"], "quantize", MODEL, self.folder / "out.gguf", "Q4_0", "--allow-requantize",
                   preexec_fn=limit_file_sizes(1 << 20))

    def test_standard_output_at_a_limit_or_a_full_disk_is_an_error(self):
        for words in (("help",), ("help", "generate"), ("generate", "--help"), ("man",), ("man", "chat"), ("completion", "bash"),
                      ("inspect", MODEL), ("tokenize", "-m", MODEL, "-p", "a " * 200)):
            for place, why in ((self.folder / "out", "File too large"), ("/dev/full", "No space left")):
                with self.subTest(words=words, place=place), open(place, "w") as out:
                    result = subprocess.run([PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
                                            timeout=SECONDS, check=False, preexec_fn=limit_file_sizes(100))
                    self.assertEqual(result.returncode, 1)
                    self.assertIn("standard output: " + why, result.stderr)

    def test_kept_tiles_at_a_limit_of_file_sizes_are_done_without(self):
        result = self.run_it("generate", "-m", MODEL, *SHORT, "--spec-type", "none", "--repack-cache", self.folder / "tiles", preexec_fn=limit_file_sizes(1 << 20))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.strip())
        self.assertEqual(os.listdir(self.folder / "tiles"), [])

    def engines(self, *arguments, **keywords):
        """What is kept of costs after a text that is long enough to learn from, whatever the measured costs choose."""
        result = self.run_it("generate", "-m", MODEL, "-md", DRAFT, "-p", "Once", "-n", "240", "--ignore-eos", "-q", "--num-speculative-tokens", "1",
                             *arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr)
        kept = self.folder / "cache" / "foretoken" / "costs.json"
        return json.loads(kept.read_text())["engines"] if kept.exists() else []

    def test_costs_are_kept_for_the_next_engine(self):
        self.assertEqual(self.engines("--repack-cache", "off"), [])
        self.assertEqual(self.engines("--spec-type", "none"), [])
        kept = self.engines()
        self.assertEqual(len(kept), 1)
        self.assertEqual(kept[0]["passes"][0][0], 1)
        self.assertTrue(any(one_us > 0 for one_us, *_ in kept[0]["drafts"]))
        for _, _, _, verified, accepted in kept[0]["verdicts"]:
            self.assertLessEqual(accepted, verified)
        self.assertEqual([engine["key"] for engine in self.engines()], [kept[0]["key"]])
        self.assertEqual(len(self.engines("-t", "1")), 2 if len(os.sched_getaffinity(0)) > 1 else 1)

    def test_costs_that_cannot_be_kept_are_done_without(self):
        self.assertEqual(self.engines(preexec_fn=limit_file_sizes(16)), [])
        folder = self.folder / "cache" / "foretoken"
        folder.chmod(0o777)  # others may write there
        self.assertEqual(self.engines(), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
