# SPDX-License-Identifier: Apache-2.0
"""The program as its users meet it, with tiny models: `NAME_test.py FORETOKEN WRITE_TINY_MODEL [MODELS]`; more arguments are names of tests."""
import json
import os
import pathlib
import pty
import subprocess
import sys
import tempfile
import unittest

PROGRAM, WRITER = (os.path.abspath(path) for path in sys.argv[1:3])
SECONDS = 900  # a wait that only ends a hang: a machine may be busy
FOLDER = tempfile.TemporaryDirectory()
TARGET, DRAFT, OTHER = (str(pathlib.Path(FOLDER.name) / name) for name in ("target.gguf", "draft.gguf", "other.gguf"))
# Tiny models under the names of the bundled ones.
BUNDLED = pathlib.Path(FOLDER.name) / "models"
WITH_BUNDLED = {"FORETOKEN_MODELS": str(BUNDLED)}


def run(*arguments, stdin=b"", environment=None, **options):
    env = {key: value for key, value in os.environ.items() if not key.startswith("FORETOKEN_")}
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, timeout=SECONDS, check=False,
                          env={**env, **(environment or {})}, **options)


def run_in_terminal(*arguments, no_colour=False, term="xterm-256color", typed=b""):
    """(what a terminal shows, standard output and error together; the exit code)"""
    env = {**os.environ, "TERM": term}
    env.pop("NO_COLOR", None)
    if no_colour:
        env["NO_COLOR"] = "1"
    try:
        child, terminal = pty.fork()
    except OSError as error:  # a container without /dev/pts
        raise unittest.SkipTest("no pseudo-terminal to be had: %s" % error)
    if child == 0:
        os.execve(PROGRAM, [PROGRAM, *arguments], env)
    shown = b""
    os.write(terminal, typed)
    while True:
        try:
            block = os.read(terminal, 1 << 16)
        except OSError:  # the terminal's other end is closed
            break
        if not block:
            break
        shown += block
    _, status = os.waitpid(child, 0)
    return shown.decode(errors="replace"), os.waitstatus_to_exitcode(status)


class Transcript(unittest.TestCase):
    maxDiff = None
    WAY_OUT = r"[;?][^\n]*"  # behind what an error says of its place and its cause

    def done(self, *arguments, **keywords):
        result = run(*arguments, **keywords)
        self.assertEqual(result.returncode, 0, result.stderr.decode(errors="replace"))
        return result

    def fails(self, code, words, *arguments, **keywords):
        """One line on standard error with these words, nothing on standard output, this exit code."""
        result = run(*arguments, **keywords)
        error = result.stderr.decode(errors="replace")
        self.assertEqual(result.returncode, code, f"{arguments}: {error}")
        self.assertEqual(result.stdout, b"", arguments)
        self.assertRegex(error, rf"\Aforetoken: [^\n]+: [^\n]+{self.WAY_OUT}\n\Z", f"{arguments}: one line, and a way out")
        for word in [words] if isinstance(words, str) else words:
            self.assertIn(word, error, arguments)

    def quiet(self, *arguments, **keywords):
        """Standard output; there is nothing on standard error."""
        result = self.done(*arguments, **keywords)
        self.assertEqual(result.stderr, b"", arguments)
        return result.stdout.decode()

    def json(self, *arguments, **keywords):
        return json.loads(self.quiet(*arguments, **keywords))

    def file(self, name, text):
        """The path of a new file of this name, which the test's end removes."""
        path = pathlib.Path(self.new_folder()) / name
        path.write_text(text)
        return str(path)

    def new_folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name


def path_of(name):
    return str(pathlib.Path(FOLDER.name) / name)


def write_models():
    subprocess.run([WRITER, FOLDER.name], check=True, timeout=SECONDS)


def main():
    write_models()
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[3:] if not os.path.exists(word)])
