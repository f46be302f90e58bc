#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""foretoken-train as its users meet it: errors, exit codes, and runs that are killed.

usage: train_cli_test.py FORETOKEN_TRAIN WRITE_TINY_MODEL
"""
import os
import pathlib
import pty
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, WRITER = (os.path.abspath(path) for path in sys.argv[1:3])
SECONDS = 900  # a wait that only ends a hang: a machine may be busy
SEED = 20240517
WORDS = "the one fox met hen and ran but saw how old big red sun sea".split()


def arguments_of(words):
    """One string as the arguments that a shell would make of it."""
    return words.split() if isinstance(words, str) else [str(word) for word in words]


class TrainTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        subprocess.run([WRITER, str(cls.folder)], check=True, timeout=SECONDS)
        noise = random.Random(SEED)
        text = "\n<|endoftext|>\n".join(" ".join(noise.choices(WORDS, k=60)) for _ in range(60))
        (cls.folder / "text.txt").write_text(text)
        (cls.folder / "empty.txt").write_text(" \n")
        (cls.folder / "binary.txt").write_bytes(bytes(range(256)))

    def start(self, words):
        return subprocess.Popen([PROGRAM, *arguments_of(words)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_it(self, words):
        return subprocess.run([PROGRAM, *arguments_of(words)], cwd=self.folder, capture_output=True, check=False,
                              timeout=SECONDS)

    def done(self, words):
        result = self.run_it(words)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result.stderr.decode()

    def fails(self, code, says, words):
        """An error on standard error that says this, nothing on standard output, this exit code."""
        result = self.run_it(words)
        error = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, f"{words}: {error}")
        self.assertIn(says, error)
        self.assertRegex(error, r"(?m)^foretoken-train: ")
        self.assertEqual(result.stdout, b"")
        return error

    def bytes_of(self, name):
        return (self.folder / name).read_bytes()


class Killed(TrainTest):
    KILLS = 10
    MODEL = ("model --vocabulary target.gguf --text text.txt --layers 1 --width 16 --heads 2 --kv-heads 1 --ff 24 "
             "--context 64 --window 32 --batch 2 --steps 200 --seed 3 -t 1 --checkpoint-seconds 0 --out ")

    def kill_at_random(self, process, watched, noise):
        """After a few changes of the watched file and a moment more, or on its way to the first of them."""
        def state():
            try:
                status = os.stat(watched)
                return status.st_ino, status.st_size
            except FileNotFoundError:
                return None
        changes, seen, moments = noise.randrange(7), state(), [time.monotonic()]
        while len(moments) <= changes and process.poll() is None and time.monotonic() < moments[0] + SECONDS:
            now = state()
            if now != seen:
                seen = now
                moments.append(time.monotonic())
        # Somewhere within the next step, or on the way to the first one.
        step = moments[-1] - moments[-2] if changes > 1 and len(moments) > 2 else 0.02
        time.sleep(noise.random() * min(step, 0.1))
        ended = process.poll()
        process.send_signal(signal.SIGKILL)
        _, error = process.communicate(timeout=SECONDS)
        self.assertIsNone(ended, "the run ended before it was killed: " + error.decode(errors="replace"))
        return error.decode()

    def test_a_model_ends_as_the_unbroken_run_does(self):
        noise = random.Random(SEED)
        self.done(self.MODEL + "unbroken.gguf")
        resumed = set()
        for _ in range(self.KILLS):
            process = self.start(self.MODEL + "killed.gguf")
            error = self.kill_at_random(process, self.folder / "killed.gguf.checkpoint", noise)
            resumed.update(line for line in error.splitlines() if line.startswith("resumed at step"))
            self.assertFalse((self.folder / "killed.gguf").exists(), "no file before the end")
        self.assertGreaterEqual(len(resumed), 3, f"the kills fell at too few places: {resumed}")
        self.assertIn("resumed at step", self.done(self.MODEL + "killed.gguf"))
        self.assertEqual(self.bytes_of("killed.gguf"), self.bytes_of("unbroken.gguf"))

    def test_samples_end_as_those_of_the_unbroken_run(self):
        noise = random.Random(SEED + 1)
        words = "sample --model target.gguf --text text.txt --tokens 30000 --new-tokens 200 -t 1 --out "
        self.done(words + "unbroken.txt")
        part, resumed = self.folder / "killed.txt.part", 0
        for _ in range(3):
            resumed += part.exists() and part.stat().st_size > 1000
            process = self.start(words + "killed.txt")
            while not (part.exists() and part.stat().st_size > 1000) and process.poll() is None:
                time.sleep(0.001)
            time.sleep(noise.random() * 0.1)
            self.assertIsNone(process.poll(), "the run ended before it was killed")
            process.kill()
            process.communicate(timeout=SECONDS)
            self.assertFalse((self.folder / "killed.txt").exists(), "no file before the end")
        self.assertGreater(resumed, 0)
        self.done(words + "killed.txt")
        self.assertEqual(self.bytes_of("killed.txt"), self.bytes_of("unbroken.txt"))
        self.assertFalse(part.exists())


class Checkpoints(TrainTest):
    MODEL = Killed.MODEL.replace("--steps 200", "--steps 4") + "model.gguf"

    def test_of_other_settings_and_damaged_ones_are_refused_and_restart_begins_anew(self):
        self.done(self.MODEL)
        wanted, checkpoint = self.bytes_of("model.gguf"), self.folder / "model.gguf.checkpoint"
        self.fails(1, "model.gguf.checkpoint: a checkpoint of other settings", self.MODEL + " --rate 0.01")
        self.fails(1, "model.gguf.checkpoint: a checkpoint of other settings", self.MODEL + " --text text.txt")
        checkpoint.write_bytes(checkpoint.read_bytes()[:-1000])
        self.fails(1, "model.gguf.checkpoint: the checkpoint is damaged", self.MODEL)
        self.assertEqual(self.bytes_of("model.gguf"), wanted)
        self.assertNotIn("resumed", self.done(self.MODEL + " --restart"))
        self.assertEqual(self.bytes_of("model.gguf"), wanted)
        (self.folder / "model.gguf").unlink()
        self.assertIn("resumed at step 4", self.done(self.MODEL + " --export-only"))
        self.assertEqual(self.bytes_of("model.gguf"), wanted)


class Shown(TrainTest):
    def test_the_name_of_the_program(self):
        result = self.run_it("model --help")
        self.assertTrue(result.stdout.decode().startswith("usage: foretoken-train model "), result.stdout[:80])

    def test_a_dumb_terminal_gets_no_escape_sequences(self):
        master, slave = pty.openpty()
        words = Killed.MODEL.replace("--steps 200", "--steps 20") + "shown.gguf"
        process = subprocess.Popen([PROGRAM, *arguments_of(words)], cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=slave, env={**os.environ, "TERM": "dumb"})
        os.close(slave)
        text = b""
        try:
            while part := os.read(master, 1 << 16):
                text += part
        except OSError:  # the end of a terminal
            pass
        os.close(master)
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertIn(b"\rstep ", text)
        self.assertNotIn(b"\x1b", text)


class Distilled(TrainTest):
    def test_a_draft_from_text_and_samples_is_the_same_each_time(self):
        words = ("distill --target target.gguf --text text.txt --held-out text.txt --samples 2000 --layers 1 --width 32 "
                 "--heads 2 --ff 48 --window 32 --batch 2 --steps 6 --seed 5 --out ")
        said = self.done(words + "a.gguf")
        self.assertIn("held-out KL", said)
        self.assertNotIn("\r", said, "no progress line in a pipe")
        self.done(words + "b.gguf")
        self.assertEqual(self.bytes_of("a.gguf.samples.txt"), self.bytes_of("b.gguf.samples.txt"))
        self.assertEqual(self.bytes_of("a.gguf"), self.bytes_of("b.gguf"))


class Refusals(TrainTest):
    RUN = " --out out.gguf --steps 1"

    def test_of_verbs_and_flags(self):
        self.fails(2, "'teach' is not a verb", "teach")
        self.fails(2, "--colour", "distill --colour red")
        self.fails(2, "--mix: 1.5", "distill --mix 1.5")
        self.fails(2, "out: no file", "distill --target target.gguf --steps 1")
        self.fails(2, "either --steps or --minutes", "distill --out out.gguf --steps 1 --minutes 1")
        self.fails(2, "vocabulary: none", "model --text text.txt" + self.RUN)
        self.fails(2, "model: none", "sample --text text.txt --out out.txt --tokens 5")

    def test_of_text(self):
        model = "model --vocabulary target.gguf --width 16 --heads 2" + self.RUN
        self.fails(2, "text: none", model)
        self.fails(1, "empty.txt: holds no text", model + " --text empty.txt")
        self.fails(1, "binary.txt: byte 0x00 at 0 is not text", model + " --text binary.txt")
        self.fails(2, "the share of text.txt is 0", model + " --text text.txt:0")

    def test_of_targets_and_shapes(self):
        distill = "distill --text text.txt" + self.RUN
        self.fails(1, "text.txt", distill + " --target text.txt")
        mamba = self.bytes_of("target.gguf").replace(b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0llama",
                                                     b"general.architecture\x08\0\0\0\x05\0\0\0\0\0\0\0mamba")
        (self.folder / "mamba.gguf").write_bytes(mamba)
        self.assertNotEqual(mamba, self.bytes_of("target.gguf"))
        self.fails(1, "mamba", distill + " --target mamba.gguf")
        self.fails(2, "context of 256", distill + " --target target.gguf")
        self.fails(2, "shape: ", distill + " --target target.gguf --window 32 --heads 3")
        hybrid = distill + " --target target.gguf --window 32 --layers 2 --convolutions "
        self.fails(2, "convolutions: 2 is none of the 2 blocks", hybrid + "0,2")
        self.fails(2, "convolutions: '1,1' names a block twice", hybrid + "1,1")
        self.fails(2, "convolutions: no block is left for attention", hybrid + "0,1")
        self.fails(2, "--convolutions", hybrid + "first")
        self.assertFalse(list(self.folder.glob("out.*")), "nothing is written before the work begins")

    def test_of_targets_that_lack_a_tensor(self):
        """Another name for the tensor takes it away; its data stay."""
        whole = self.bytes_of("target.gguf")
        # Each verb with two of them: verbs share a reader, and a start of the program takes a second.
        for name, verbs in ((b"blk.0.attn_q.weight", ("mtp", "eagle")), (b"blk.1.ffn_norm.weight", ("block", "distill")),
                            (b"output_norm.weight", ("mtp", "eagle", "block", "distill"))):
            lacking = whole.replace(name, name[:-1] + b"_")
            self.assertNotEqual(lacking, whole)
            (self.folder / "lacking.gguf").write_bytes(lacking)
            for verb in verbs:
                error = self.fails(1, f"lacking.gguf: tensor {name.decode()}: missing", f"{verb} --text text.txt --target lacking.gguf --window 32" + self.RUN)
                self.assertEqual(error.count("\n"), 1, "one line")

    def test_of_inputs_that_are_no_files(self):
        os.mkfifo(self.folder / "fifo")
        model = "model --vocabulary target.gguf --width 16 --heads 2" + self.RUN
        for path in ("fifo", "/dev/zero", "."):
            self.fails(1, path + ":", f"mtp --text text.txt --target {path} --window 32" + self.RUN)
        for path in ("/dev/zero", "."):
            self.fails(1, path + ":", f"{model} --text {path}")

    def test_of_outputs_at_a_limit_of_file_sizes(self):
        """An error, not a signal; and nothing half-written."""
        result = subprocess.run([PROGRAM, *arguments_of(Killed.MODEL + "limited.gguf")], cwd=self.folder, capture_output=True, check=False,
                                timeout=SECONDS, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"limited.gguf.checkpoint: ", result.stderr)
        self.assertIn(b"File too large", result.stderr)
        self.assertFalse(list(self.folder.glob("limited*")))

    def test_of_places(self):
        self.fails(1, "no/place.gguf", "distill --text text.txt --target target.gguf --steps 1 --window 32 "
                   "--samples 100 --out no/place.gguf")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
