#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken completion` and `foretoken man`: in real shells, and checked by mandoc and groff, each where it is installed.

usage: completion_test.py FORETOKEN
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from screen import SECONDS, Screen

PROGRAM = os.path.abspath(sys.argv[1])
VERBS = re.findall(r"(?m)^  ([a-z-]+)  +[a-z]", subprocess.run([PROGRAM], capture_output=True, check=True, timeout=SECONDS).stdout.decode())


def run(*arguments, stdin=b"", folder=None):
    result = subprocess.run(arguments, input=stdin, capture_output=True, timeout=SECONDS, check=False, cwd=folder)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def flags_of(verb):
    """All names of flags in the whole help."""
    _, text, _ = run(PROGRAM, verb, "--help-all")
    names = set()
    for left in re.findall(r"(?m)^ {2,6}(-[-a-z].*)", text):
        names.update(re.findall(r"(?<![\w-])--?[a-z][\w-]*", re.split(r"  +|(?<=[a-z]) (?=[A-Z])", left)[0]))
    return names


class Script(unittest.TestCase):
    SHELL = None

    def setUp(self):
        if shutil.which(self.SHELL) is None:
            self.skipTest(f"no {self.SHELL}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script = self.folder / "script"
        code, text, error = run(PROGRAM, "completion", self.SHELL)
        self.assertEqual((code, error), (0, ""))
        self.script.write_text(text)
        self.files = self.folder / "files"
        (self.files / "sub").mkdir(parents=True)
        for name in ("model one.gguf", "model.gguf", "story.txt"):
            (self.files / name).touch()


class Bash(Script):
    SHELL = "bash"

    def offered(self, *words):
        """What Tab offers for the last word, which may be empty."""
        lines = [f"source {shlex.quote(str(self.script))}", f"COMP_WORDS=({shlex.join(words)})", f"COMP_CWORD={len(words) - 1}",
                 "_foretoken 2>errors", 'printf "%s\\n" "${COMPREPLY[@]}"']
        code, text, error = run("bash", "--norc", "-c", "\n".join(lines), folder=self.files)
        self.assertEqual((code, error), (0, ""))
        return [line for line in text.splitlines() if line]

    def test_the_syntax_is_right(self):
        self.assertEqual(run("bash", "-n", str(self.script)), (0, "", ""))

    def test_verbs_and_flags(self):
        self.assertEqual(set(VERBS) - set(self.offered("foretoken", "")), set())
        self.assertEqual(self.offered("foretoken", "gen"), ["generate"])
        self.assertEqual(self.offered("foretoken", "generate", "--spec-ty"), ["--spec-type"])
        self.assertGreater(len(flags_of("generate")), 100)
        for verb in VERBS:
            self.assertEqual(flags_of(verb) - set(self.offered("foretoken", verb, "-")), set(), verb)

    def test_values(self):
        self.assertIn("standalone", self.offered("foretoken", "generate", "--spec-type", ""))
        self.assertEqual(self.offered("foretoken", "generate", "--spec-type", "por"), ["portfolio"])
        self.assertEqual(self.offered("foretoken", "generate", "--spec-type", "=", "eag"), ["eagle"])  # as bash cuts --flag=value
        self.assertEqual(self.offered("foretoken", "chat", "-ctk", "q8"), ["q8_0"])
        self.assertEqual(self.offered("foretoken", "generate", "-n", ""), [])
        self.assertEqual(sorted(self.offered("foretoken", "generate", "-m", "mo")), ["model one.gguf", "model.gguf"])
        self.assertEqual(self.offered("foretoken", "generate", "--repack-cache", ""), ["sub"])
        self.assertIn("model.gguf", self.offered("foretoken", "inspect", ""))
        self.assertEqual(self.offered("foretoken", "help", "tok"), ["tokenize"])
        self.assertEqual(self.offered("foretoken", "completion", ""), ["bash", "zsh", "fish"])

    def test_a_real_tab(self):
        if shutil.which("tmux") is None:
            self.skipTest("no tmux")
        with Screen(f"cd {shlex.quote(str(self.files))}; PS1='$ ' bash --norc", rows=20) as screen:
            screen.type(f"source {self.script}; clear", "Enter", "foretoken gene", "Tab", "--spec-ty", "Tab", "suf", "Tab", "-m story", "Tab")
            self.assertIn("$ foretoken generate --spec-type suffix -m story.txt", screen.wait("story.txt"))


class Zsh(Script):
    SHELL = "zsh"

    def test_the_syntax_is_right_and_completion_finds_it(self):
        self.assertEqual(run("zsh", "-n", str(self.script)), (0, "", ""))
        (self.folder / "_foretoken").write_text(self.script.read_text())
        code, text, error = run("zsh", "-f", "-c", f"fpath=({self.folder} $fpath); autoload -U compinit; compinit -D -u; echo $_comps[foretoken]")
        self.assertEqual((code, text, error), (0, "_foretoken\n", ""))
        code, text, error = run("zsh", "-f", "-c", f"autoload -U compinit; compinit -D -u; source {self.script}; echo $_comps[foretoken]")
        self.assertEqual((code, text, error), (0, "_foretoken\n", ""))

    def test_a_real_tab(self):
        if shutil.which("tmux") is None:
            self.skipTest("no tmux")
        with Screen(f"cd {shlex.quote(str(self.files))}; PS1='$ ' zsh -f", 120, 40) as screen:
            screen.type(f"PS1='$ '; autoload -U compinit; compinit -D -u; source {self.script}; clear", "Enter")
            screen.type("foretoken gene", "Tab", "--spec-ty", "Tab", "suf", "Tab", "-m story", "Tab")
            self.assertRegex(screen.wait("story.txt"), r"foretoken generate --spec-type[= ]suffix -m story.txt")
            for verb in VERBS:  # a wrong specification is an error of _arguments
                screen.type("C-u", f"clear; foretoken {verb} -", "Tab")
            screen.type("C-u", "echo the end", "Enter")
            screen.wait(r"(?m)^the end")
            self.assertNotRegex(screen.text("-S", "-2000"), "invalid|_arguments:|comparguments|parse error")


class Fish(Script):
    SHELL = "fish"

    def offered(self, line):
        code, text, error = run("fish", "--no-config", "-c", f"source {self.script}; complete -C {shlex.quote(line)}", folder=self.files)
        self.assertEqual((code, error), (0, ""))
        return [row.split("\t")[0] for row in text.splitlines()]

    def test_the_syntax_is_right(self):
        self.assertEqual(run("fish", "--no-execute", str(self.script)), (0, "", ""))

    def test_verbs_flags_and_values(self):
        self.assertEqual(set(VERBS) - set(self.offered("foretoken ")), set())
        self.assertEqual(self.offered("foretoken gen"), ["generate"])
        self.assertEqual(self.offered("foretoken generate --spec-typ"), ["--spec-type"])
        self.assertEqual(self.offered("foretoken generate --spec-type por"), ["portfolio"])
        self.assertEqual(self.offered("foretoken chat -ctk q8"), ["q8_0"])
        self.assertEqual(sorted(self.offered("foretoken generate -m mo")), ["model one.gguf", "model.gguf"])
        self.assertEqual(self.offered("foretoken generate -n "), [])
        self.assertEqual(self.offered("foretoken completion z"), ["zsh"])
        long_names = {name for name in flags_of("bench") if name.startswith("--")}
        self.assertEqual(long_names - set(self.offered("foretoken bench --")), set())


class ManPages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.assertEqual(run(PROGRAM, "man", "--output", str(self.folder)), (0, "", ""))
        self.pages = sorted(self.folder.iterdir())

    def test_there_is_one_for_the_program_and_for_each_verb(self):
        self.assertEqual([page.name for page in self.pages], sorted(["foretoken.1", *(f"foretoken-{verb}.1" for verb in VERBS)]))
        self.assertEqual(run(PROGRAM, "man", "generate")[1], (self.folder / "foretoken-generate.1").read_text())
        self.assertEqual(run(PROGRAM, "man")[1], (self.folder / "foretoken.1").read_text())
        self.assertEqual(run(PROGRAM, "man", "--output", "/no/such")[0], 1)
        self.assertEqual(run(PROGRAM, "man", "generat")[0], 2)

    def test_mandoc_finds_no_fault(self):
        if shutil.which("mandoc") is None:
            self.skipTest("no mandoc")
        for page in self.pages:
            _, text, error = run("mandoc", "-T", "lint", "-W", "warning", str(page))
            faults = [line for line in (text + error).splitlines() if "missing date" not in line]
            self.assertEqual(faults, [], page.name)

    def test_groff_shows_every_flag_and_warns_of_nothing(self):
        if shutil.which("groff") is None:
            self.skipTest("no groff")
        for verb in VERBS:
            page = self.folder / f"foretoken-{verb}.1"
            code, text, error = run("groff", "-man", "-Tutf8", "-ww", "-P-c", str(page))
            self.assertEqual((code, error), (0, ""), verb)
            text = re.sub("\x1b\\[[0-9;]*m|.\b", "", text)
            for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXIT STATUS", "SEE ALSO"):
                self.assertRegex(text, f"(?m)^{section}$", verb)
            for flag in flags_of(verb):
                self.assertIn(flag, text, verb)

    def test_man_itself_shows_them(self):
        if shutil.which("man") is None:
            self.skipTest("no man")
        result = subprocess.run(["man", "-l", str(self.folder / "foretoken-chat.1")], capture_output=True, timeout=SECONDS, check=False,
                                env={**os.environ, "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
        if b"minimized" in result.stdout or b"No such option" in result.stderr:
            self.skipTest("man is a stand-in here")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertIn("foretoken chat", result.stdout.decode())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
