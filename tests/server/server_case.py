# SPDX-License-Identifier: Apache-2.0
"""Tests of `foretoken serve` with the bundled models, as ctest starts them: NAME_test.py FORETOKEN MODELS [WRITE_TINY_MODEL]; more arguments are those of
unittest, names of tests among them."""
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

from server_testing import SECONDS, Server

try:
    import jsonschema
except ImportError:
    jsonschema = None

PROGRAM, MODELS = (os.path.abspath(path) for path in sys.argv[1:3])
WRITER = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 and os.path.exists(sys.argv[3]) else None
TARGET, DRAFT = (os.path.join(MODELS, name) for name in ("tales-9m-q8_0.gguf", "tales-1m-draft-q8_0.gguf"))
ONE_THREAD = ("-t", "1", "--repack-cache", "off")
PLAIN = (*ONE_THREAD, "-q", "--spec-type", "none")
PAIR = ("-m", TARGET, "-md", DRAFT, *ONE_THREAD)
SLOW = {"env": {"FORETOKEN_ISA": "scalar"}}  # a model so slow that a test can do something meanwhile


def run_program(*arguments, **options):
    """The program with these arguments, when it has ended."""
    return subprocess.run([PROGRAM, *arguments], **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "timeout": SECONDS, **options})


def new_folder(add_cleanup):
    """A folder that is there until the test, or its class, has ended: addCleanup, addClassCleanup."""
    folder = tempfile.TemporaryDirectory()
    add_cleanup(folder.cleanup)
    return pathlib.Path(folder.name)


def recurrent_model(folder):
    """The path of a tiny model with recurrent layers, which is written there."""
    subprocess.run([WRITER, "--recurrent", folder / "recurrent.gguf"], check=True)
    return str(folder / "recurrent.gguf")


class ServerCase(unittest.TestCase):
    """Servers of TARGET with these flags. Where SHARED is not None, all tests of the class share one, which has those flags, too."""

    FLAGS, SHARED, OPTIONS = PLAIN, None, {}

    @classmethod
    def setUpClass(cls):
        if cls.SHARED is not None:
            cls.server = cls.start(*cls.SHARED, add_cleanup=cls.addClassCleanup, **cls.OPTIONS)

    @classmethod
    def start(cls, *flags, add_cleanup, model=TARGET, template=None, common=None, **options):
        with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
            if template is not None:
                file.write(template)
                file.flush()
                flags += ("--chat-template-file", file.name)
            server = Server(PROGRAM, "-m", model, *(cls.FLAGS if common is None else common), *flags, **options)
        add_cleanup(server.__exit__)
        return server

    def serve(self, *flags, **options):
        """A server of its own, which ends with the test. template: the text of a chat template; common: flags in the place of FLAGS."""
        return self.start(*flags, add_cleanup=self.addCleanup, **options)


def main(open_files=None):
    """open_files: how many the test may need."""
    if open_files:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, open_files) if hard > 0 else open_files, hard))
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[3:] if not word.startswith("--") and not os.path.exists(word)], verbosity=2)
