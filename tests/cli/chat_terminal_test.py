#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken chat` on a terminal, typed into by tmux: modes compared, Ctrl-C, the history, Ctrl-D. Exit code 77 (skipped) without tmux.

usage: chat_terminal_test.py FORETOKEN BUNDLED_MODELS
"""
import os
import pathlib
import re
import shlex
import shutil
import sys
import tempfile
import unittest

from screen import Screen

PROGRAM, MODELS = (os.path.abspath(path) for path in sys.argv[1:3])


class Terminal(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def open(self, *arguments, environment=""):
        screen = Screen(f"env -u NO_COLOR FORETOKEN_MODELS={shlex.quote(MODELS)} XDG_STATE_HOME={self.folder}/state LC_ALL=C.UTF-8 {environment} "
                        f"{shlex.join([PROGRAM, 'chat', '--temp', '0', '-s', '1', *arguments])}; echo ended with $?; sleep 1000", ended="ended with")
        self.addCleanup(screen.__exit__)
        screen.wait(r"(?m)^> *$", "the prompt")
        return screen

    def test_modes_are_compared(self):
        screen = self.open("-n", "24", "--lookahead", "fixed")  # no measured cost decides whether there are drafts
        self.assertIn("/help tells the commands", screen.text())
        screen.enter("/target")
        screen.wait(r"(?m)^target: on")
        screen.enter("Once upon a time")
        text = screen.wait(r"(?m)^  target .* 1.00x plain")
        self.assertRegex(text, r"(?m)^  speculative .*tokens/s +[\d.]+x plain .*% of \d+ drafts accepted, same text$")
        coloured = screen.text("-e")
        self.assertIn("\033[36m[speculative]", coloured)
        self.assertRegex(coloured, r"\x1b\[32m>\x1b\[0m[^\n]* /target", "the prompt's colour ends with it")

    def test_ctrl_c_stops_the_answer_and_keeps_the_chat(self):
        # As long as the context: some seconds even for this model, were it not stopped.
        screen = self.open("-n", "500", environment="FORETOKEN_ISA=scalar")
        screen.enter("/chat off")
        screen.wait(r"(?m)^chat: off")
        screen.enter("Once upon a time")
        screen.wait(r"\[?there was", "the beginning of an answer")
        screen.type("C-c")
        text = screen.wait(r"(?m)^  speculative +stopped at \d+")
        self.assertLess(int(re.search(r"stopped at (\d+)", text).group(1)), 500)
        screen.enter("/length 5")
        screen.enter("The dog")
        screen.wait(r"(?m)^  speculative +cut at 5")

    def test_ctrl_c_drops_a_line_and_ctrl_d_ends(self):
        screen = self.open("-n", "4")
        screen.type("-l", "half a line, Café")
        screen.wait("half a line, Café")
        screen.type("C-c")
        screen.wait(r"Ctrl-D or /quit ends the chat")
        screen.enter("/seed 5")
        screen.wait(r"(?m)^seed: 5")
        screen.type("C-d")
        screen.wait(r"(?m)^ended with 0")

    def test_arrows_find_what_was_typed_also_in_the_next_chat(self):
        screen = self.open("-n", "4")
        screen.enter("/seed 11")
        screen.wait(r"(?m)^seed: 11")
        screen.type("Up", "Enter")
        screen.wait(r"(?s)seed: 11.*seed: 11", "the line again")
        screen.enter("/quit")
        screen.wait(r"ended with 0")
        self.assertIn("/seed", (self.folder / "state/foretoken/history").read_text())
        screen = self.open("-n", "4")
        screen.type("Up", "Up")
        screen.wait(r"(?m)^> /seed 11", "the first chat's line")
        screen.type("BSpace", "2", "Enter")
        screen.wait(r"(?m)^seed: 12")

    def test_no_color_means_none(self):
        screen = self.open("-n", "4", environment="NO_COLOR=1")
        screen.enter("/target")
        screen.enter("The dog")
        screen.wait(r"(?m)^  target .* plain")
        self.assertNotIn("\033[", screen.text("-e"))


if __name__ == "__main__":
    if shutil.which("tmux") is None:
        print("skipped: no tmux")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
