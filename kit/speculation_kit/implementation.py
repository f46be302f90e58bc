# SPDX-License-Identifier: Apache-2.0
"""An implementation of the rules: a Python function, or a command.

Contract: `answers` gives one answer for each round, in order. The function gets a round as a dict (minus infinity in place of null in
logits) and returns the list of tokens that the round emits: the accepted drafts and one more; or None if it has no such rule. The command
reads one round on each line of its standard input, as JSON, and writes such a list or null on one line for each. The implementation is the
user's own code and runs with the user's rights.
"""
import importlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import tempfile

from .errors import KitError
from .json_input import MOST_BYTES, parse
from .vectors import question

LOGITS = ("target_logits", "draft_logits")


def _module(name):
    if not name.endswith(".py"):
        return importlib.import_module(name)
    if not os.path.exists(name):
        raise KitError(f"{name}: no such file; give FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(os.path.basename(name)[:-3], name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_function(named):
    """The function that MODULE:FUNCTION or FILE.py:FUNCTION names."""
    module, _, function = named.rpartition(":")
    if not module or not function:
        raise KitError(f"{named}: no function; write MODULE:FUNCTION or FILE.py:FUNCTION")
    sys.path.insert(0, os.getcwd())
    try:
        found = getattr(_module(module), function, None)
    except KitError:
        raise
    except Exception as error:  # whatever the user's module raises
        raise KitError(f"{module}: {type(error).__name__}: {error}; give a module that can be imported") from error
    if not callable(found):
        raise KitError(f"{module}: has no function {function}; give one that takes a round")
    return found


def _with_infinity(case):
    return {name: [[float("-inf") if x is None else x for x in row] for row in value] if name in LOGITS else value
            for name, value in question(case).items()}


def answers_of_function(function, rounds):
    found = []
    for case in rounds:
        try:
            found.append(function(_with_infinity(case)))
        except Exception as error:  # a round that fails is a wrong answer, and the others are still asked
            found.append(error)
    return found


def _words(command):
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise KitError(f"--command: {error}; write it as for a shell") from None
    if not words:
        raise KitError("--command: empty; give a program and its arguments")
    return words


def answers_of_command(command, rounds, seconds):
    """The command is split as a shell does it, and gets `seconds` for all rounds."""
    words = _words(command)
    asked = "".join(json.dumps(question(case)) + "\n" for case in rounds)
    with tempfile.TemporaryFile() as output:
        try:
            done = subprocess.run(words, input=asked.encode(), stdout=output, timeout=seconds, check=False)
        except OSError as error:
            raise KitError(f"{words[0]}: {error.strerror}; give a program that can be run") from None
        except subprocess.TimeoutExpired:
            raise KitError(f"{words[0]}: not done after {seconds:g} s; it must end when its input ends, or give --timeout") from None
        output.seek(0)
        lines = output.read(MOST_BYTES).decode(errors="replace").splitlines()
    if done.returncode != 0:
        raise KitError(f"{words[0]}: exit code {done.returncode}; it must answer all rounds and end with 0")
    if len(lines) != len(rounds):
        raise KitError(f"{words[0]}: {len(lines)} lines for {len(rounds)} rounds; it must write one line for each")
    return [parse(line, f"{words[0]}, answer {number}") for number, line in enumerate(lines, 1)]
