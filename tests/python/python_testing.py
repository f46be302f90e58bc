# SPDX-License-Identifier: Apache-2.0
"""The package as tests use it: `X_test.py LIBRARY PROGRAM MODELS [--without-numpy]`, and a processor that holds a request."""
import concurrent.futures
import os
import pathlib
import sys
import threading
import unittest

WITHOUT_NUMPY = "--without-numpy" in sys.argv
ARGUMENTS = [os.path.abspath(word) for word in sys.argv[1:] if not word.startswith("--")]
LIBRARY, PROGRAM, MODELS = ARGUMENTS[:3]
ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET, DRAFT = os.path.join(MODELS, "tales-9m-q8_0.gguf"), os.path.join(MODELS, "tales-1m-draft-q8_0.gguf")
SECONDS = 900  # a wait that only ends a hang: a machine may be busy

os.environ.update(FORETOKEN_LIBRARY=LIBRARY, FORETOKEN_MODELS=MODELS, FORETOKEN_PROGRAM=PROGRAM, FORETOKEN_THREADS="1")
sys.path.insert(0, str(ROOT / "python"))
if WITHOUT_NUMPY:
    sys.modules["numpy"] = None  # an import of it fails
import foretoken  # noqa: E402


def open_engine(draft=None, **options):
    """An engine that drafts with `draft` or not at all, the same at each start."""
    fixed = {"lookahead": "fixed", "num_speculative_tokens": 4} if draft or "drafter" in options else {"speculative_method": "none"}
    return foretoken.Engine(TARGET, draft, **{"find_drafters": False, "context_size": 256, "threads": 1, "repack_cache": "off", **fixed, **options})


def need_numpy():
    """numpy, or None with --without-numpy; ends the test as skipped where it is missing."""
    if WITHOUT_NUMPY:
        return None
    try:
        import numpy
    except ImportError:
        print("skipped: python3-numpy is not installed; the test without it runs")
        sys.exit(77)
    return numpy


class Gate:
    """A logits processor that lets some calls pass and then waits until it is opened."""

    def __init__(self, free_calls=0):
        self.calls, self.free_calls, self.reached, self.opened = 0, free_calls, threading.Event(), threading.Event()

    def __call__(self, text, logits):
        self.calls += 1
        if self.calls > self.free_calls:
            self.reached.set()
            self.opened.wait(SECONDS)


class TestCase(unittest.TestCase):
    def fails(self, code, field, part, function, *arguments, **named):
        with self.assertRaises(foretoken.Error) as caught:
            function(*arguments, **named)
        error = caught.exception
        self.assertEqual((error.code, error.field), (code, field), error.text)
        self.assertIn(part, error.text)
        self.assertEqual(str(error), error.text)


def at_once(functions):
    """Their results; each runs in a thread of its own."""
    with concurrent.futures.ThreadPoolExecutor(len(functions)) as pool:
        return [task.result(SECONDS) for task in [pool.submit(function) for function in functions]]


def main():
    unittest.main(argv=sys.argv[:1])
