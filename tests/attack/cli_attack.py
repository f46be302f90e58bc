#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs under mutated model files, hostile arguments, kills in mid-write and a system that gives too little: an exit code of their own, an
error of one line that a terminal can show, and never half an output.

usage: cli_attack.py FORETOKEN MODEL_ATTACK MODELS [--train FORETOKEN_TRAIN] [--seed N] [--files N] [--kills N] [--keep FOLDER]
"""
import argparse
import hashlib
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SECONDS = 900  # a wait that only ends a hang: a machine may be busy
SIGNS = ("AddressSanitizer", "runtime error:", "LeakSanitizer", "terminate called", "broken invariant")
CONTROL = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


class Programs:
    def __init__(self, options, folder):
        self.options, self.folder, self.problems, self.counts = options, folder, [], {}
        self.draw = random.Random(f"cli {options.seed}")

    def problem(self, what, kept=None):
        self.problems.append(what)
        if kept and os.path.exists(kept):
            os.makedirs(self.options.keep, exist_ok=True)
            if os.path.isdir(kept):
                shutil.copytree(kept, os.path.join(self.options.keep, os.path.basename(kept)), dirs_exist_ok=True)
            else:
                shutil.copy(kept, self.options.keep)

    def run(self, *words, limits=(), stdout=subprocess.PIPE, kept=None, codes=(0, 1, 2), program=None, seconds=SECONDS):
        """Runs one command, looks at how it ended, and gives the result."""
        words = [program or self.options.program, *map(str, words)]
        try:
            done = subprocess.run(words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=seconds, check=False,
                                  preexec_fn=lambda: [resource.setrlimit(name, (value, value)) for name, value in limits])
        except subprocess.TimeoutExpired:
            self.problem(f"{' '.join(words[1:])}: no end within {seconds} s", kept)
            return None
        self.counts[words[1], done.returncode] = self.counts.get((words[1], done.returncode), 0) + 1
        why = self.wrong_with(done, codes)
        if why:
            self.problem(f"{' '.join(words[1:])}: {why}", kept)
        return done

    @staticmethod
    def wrong_with(done, codes):
        errors = done.stderr
        if done.returncode not in codes:
            return f"exit code {done.returncode}: {errors[-1500:]!r}"
        for sign in SIGNS:
            if sign.encode() in errors:
                return f"{sign}: {errors[-1500:]!r}"
        if done.returncode == 0:
            return ""
        lines = errors.splitlines()
        if not lines:  # a verb's own answer, as "they do not fit", stands on standard output
            return "" if done.stdout else f"exit code {done.returncode} without a word"
        if len(lines[-1]) > 2000 or len(errors) > 8000:
            return f"an error message of {len(errors)} bytes"
        if CONTROL.search(errors) or (done.stdout and CONTROL.search(done.stdout)):
            return f"a control character for the terminal: {errors[-300:]!r}"
        return ""


# ---- Mutated files --------------------------------------------------------------------------------------------------------------------------------

def mutated_files(programs, options):
    folder = os.path.join(programs.folder, "mutated")
    subprocess.run([options.model_attack, "--seed", str(options.seed), "--files", str(options.files), "--write", folder], check=True, timeout=SECONDS)
    good, draft = (os.path.join(folder, name) for name in ("good-target.gguf", "good-draft.gguf"))
    text = os.path.join(programs.folder, "text.txt")
    with open(text, "w", encoding="utf-8") as file:
        file.write("the end of it\n" * 200)
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".gguf") or name.startswith("good"):
            continue
        path = os.path.join(folder, name)
        pair = ("-m", good, "-md", path) if name.endswith("-head.gguf") else ("-m", path, "-md", draft)
        runs = [("inspect", path), ("tokenize", "-m", path, "-p", "the end <|im_end|>"), ("generate", *pair, "-p", "the end", "-n", "4", "-t", "1", "-q"),
                ("quantize", path, "out.gguf", "Q8_0", "--allow-requantize"), ("certify", *pair, "-t", "1", "-n", "8", "-q"),
                ("check-pair", *pair, "-t", "1", "-n", "8", "--max-prompts", "1", "--repeats", "1", "-q")]
        for words in [runs[0]] + programs.draw.sample(runs[1:], 2):
            done = programs.run(*words, kept=path)
            out = os.path.join(programs.folder, "out.gguf")
            if words[0] == "quantize" and done is not None and (done.returncode == 0) != os.path.exists(out):
                programs.problem(f"quantize of {name}: exit code {done.returncode}, output {os.path.exists(out)}", path)
            if os.path.exists(out):
                os.remove(out)
        if options.train and programs.draw.random() < 0.1:
            train_verb(programs, options, path, text)


def train_verb(programs, options, path, text):
    verb = programs.draw.choice(("distill", "eagle", "mtp", "block"))
    shape = ("--layers", "1", "--width", "32", "--heads", "2", "--kv-heads", "1", "--ff", "32") if verb == "distill" else ()
    programs.run(verb, "--target", path, "--text", text, "--out", "trained.gguf", "--steps", "1", "--batch", "2", "--window", "16", "-t", "1", *shape,
                 kept=path, program=options.train)
    for name in os.listdir(programs.folder):
        if name.startswith("trained.gguf"):
            os.remove(os.path.join(programs.folder, name))


def special_files(programs, options):
    """Special files in place of a model. The program must not wait for a pipe without a writer."""
    fifo, folder, empty = (os.path.join(programs.folder, name) for name in ("fifo.gguf", "folder.gguf", "empty.gguf"))
    os.mkfifo(fifo)
    os.mkdir(folder)
    open(empty, "w").close()
    good = os.path.join(options.models, "tales-9m-q8_0.gguf")
    for path in (fifo, folder, empty, "/dev/null", "/dev/zero", "/proc/self/mem", "/nowhere/at/all", "a" * 1000, "x\n\x1b[31m.gguf"):
        for words in (("inspect", path), ("generate", "-m", path, "-p", "a", "-n", "1"), ("generate", "-m", good, "-md", path, "-p", "a", "-n", "1"),
                      ("quantize", path, "out.gguf", "Q8_0")):
            programs.run(*words, codes=(1, 2), seconds=20)


# ---- Kills and full disks ---------------------------------------------------------------------------------------------------------------------------

def hash_of(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def forget_whole_parts(folder, pid, whole):
    """A kill between the two steps that name a file (OutputFile) leaves all of it under the first name. Half a file stays, and is found."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(f"out.gguf.{pid}-") and name.endswith(".part") and hash_of(path) == whole:
            os.remove(path)


def killed_writers(programs, options):
    """Signals at random moments of quantize: the output is the one from before, or the whole new one; nothing else lies in the folder."""
    source = os.path.join(options.models, "tales-9m-q8_0.gguf")
    folder = os.path.join(programs.folder, "outputs")
    os.mkdir(folder)
    out = os.path.join(folder, "out.gguf")
    words = [options.program, "quantize", source, out, "F32", "-t", "1"]
    begin = time.monotonic()
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    seconds, whole = time.monotonic() - begin, hash_of(out)
    killed = 0
    for i in range(options.kills):
        before = programs.draw.random() < 0.5
        with open(out, "wb") as file:
            file.write(b"what was there before")
        if not before:
            os.remove(out)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(programs.draw.random() * seconds)
        sent = programs.draw.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL))
        process.send_signal(sent)
        killed += process.wait(SECONDS) != 0
        if sent == signal.SIGKILL:
            forget_whole_parts(folder, process.pid, whole)
        if os.path.exists(out):
            with open(out, "rb") as file:
                old = file.read(100) == b"what was there before"
            if not (old and before) and hash_of(out) != whole:
                programs.problem(f"kill {i} of quantize: half an output is left")
        elif before:
            programs.problem(f"kill {i} of quantize: the output from before is gone")
        if left := [name for name in os.listdir(folder) if name != "out.gguf"]:
            programs.problem(f"kill {i} of quantize: {left} is left")
    print(f"  quantize: {killed} of {options.kills} signals came before its end")


def little_room(programs, options):
    """No space for files, or for standard output; few descriptors; little memory."""
    source = os.path.join(options.models, "tales-9m-q8_0.gguf")
    done = programs.run("quantize", source, "small.gguf", "F16", "-t", "1", limits=[(resource.RLIMIT_FSIZE, 100_000)], codes=(1,))
    if done is not None and (left := [name for name in os.listdir(programs.folder) if name.startswith("small")]):
        programs.problem(f"quantize without room: {left} is left")
    with open("/dev/full", "wb") as full:
        for words in (("inspect", source), ("generate", "-m", source, "-p", "a", "-n", "4", "--temp", "0"), ("tokenize", "-m", source, "-p", "a b c")):
            programs.run(*words, stdout=full, codes=(1,))
    generate = ("generate", "-m", source, "-p", "Once", "-n", "4", "--temp", "0", "-t", "1", "--repack-cache", "off")
    right = programs.run(*generate).stdout
    for count in (3, 4, 6, 10):
        programs.run(*generate, limits=[(resource.RLIMIT_NOFILE, count)], codes=(0, 1, 127))
    if "asan" in options.program:  # it reserves terabytes of addresses
        return
    for mib in (30, 50, 70, 100, 200, 1000):
        done = programs.run(*generate, limits=[(resource.RLIMIT_AS, mib << 20)], codes=(0, 1, 127))
        if done is not None and done.returncode == 0 and done.stdout != right:
            programs.problem(f"generate with {mib} MiB of address space gave another text")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("model_attack", type=os.path.abspath)
    parser.add_argument("models", type=os.path.abspath)
    parser.add_argument("--train", type=os.path.abspath, help="foretoken-train, where it was built")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--files", type=int, default=300, help="mutated files; each goes to three verbs")
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--keep", default="attack-kept", type=os.path.abspath, help="a folder for files that found something")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        programs = Programs(options, folder)
        for part in (mutated_files, special_files, killed_writers, little_room):
            begin, before = time.monotonic(), len(programs.problems)
            part(programs, options)
            print(f"{part.__name__.replace('_', ' ')}: {len(programs.problems) - before} problems, {time.monotonic() - begin:.0f} s", flush=True)
    by_verb = {}
    for (verb, code), count in sorted(programs.counts.items()):
        by_verb.setdefault(verb, {})[code] = count
    print(f"exit codes: {by_verb}")
    for problem in programs.problems[:20]:
        print("PROBLEM " + problem)
    print(f"FAILED with seed {options.seed}: {len(programs.problems)} problems" if programs.problems else "passed")
    return 1 if programs.problems else 0


if __name__ == "__main__":
    sys.exit(main())
