# SPDX-License-Identifier: Apache-2.0
"""A terminal of its own, in which tmux runs a command."""
import re
import subprocess
import tempfile
import time

SECONDS = 900  # a wait that only ends a hang: a machine may be busy


class Screen:
    """`with Screen(command) as screen`: gone at the exit, with all that runs in it. ended: what it shows when nothing more will come."""

    def __init__(self, command, columns=100, rows=60, environment=None, ended=None):
        self.folder, self.environment, self.ended = tempfile.TemporaryDirectory(), environment, ended
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), command)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.folder.name + "/tmux", "kill-server"], check=False, capture_output=True)
        self.folder.cleanup()

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.folder.name + "/tmux", *arguments], check=True, capture_output=True, timeout=SECONDS,
                              env=self.environment).stdout.decode()

    def text(self, *flags):
        return self.tmux("capture-pane", "-p", *flags).rstrip("\n")

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def enter(self, line):
        self.type("-l", line)
        self.type("Enter")

    def wait(self, pattern, what=None, flags=()):
        """The screen as soon as it shows the pattern."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            text = self.text(*flags)
            if re.search(pattern, text):
                return text
            if self.ended and self.ended in text:
                break
            time.sleep(0.05)
        raise AssertionError(f"{what or pattern} did not come:\n{self.text()}")
