# SPDX-License-Identifier: Apache-2.0
"""Python functions that the library calls: logits processors and drafters.

Contract: the engine's thread calls them, with the interpreter's lock. What a function raises is kept in its `Entry`, whose request or
engine shows it to the caller; nothing is raised into the library. An entry lives until the library releases it.
"""
import ctypes
import itertools
from typing import Any, Dict, Optional

from . import _arrays
from . import _library as lib
from .drafters import Proposal


class Entry:
    """One function or drafter of the caller that the library holds. owner: the engine that calls it. error: what it raised."""

    def __init__(self, subject: Any):
        self.subject = subject
        self.owner: Optional[lib.Handle] = None
        self.error: Optional[BaseException] = None
        self.number = next(_numbers)
        _entries[self.number] = self


_numbers = itertools.count(1)
_entries: Dict[int, Entry] = {}


def _guarded(user: int, action: Any) -> int:
    """Runs action(entry): 0, or 1 after an exception."""
    entry = _entries.get(user)
    if entry is None:
        return 1
    try:
        with lib.inside(entry.owner):
            action(entry)
        return 0
    except BaseException as error:
        entry.error = error
        return 1


def _process(user: int, text: int, count: int, logits: int, vocabulary: int) -> int:
    def action(entry: Entry) -> None:
        given = _arrays.shown(_arrays.copied(logits, vocabulary, "f"))
        returned = entry.subject(_arrays.shown(_arrays.copied(text, count, "i")), given)
        _arrays.write_floats(logits, vocabulary, given if returned is None else returned, "logits")

    return _guarded(user, action)


def _begin(user: int, sequence: int, prompt: int, count: int) -> int:
    return _guarded(user, lambda entry: entry.subject.begin(sequence, _arrays.shown(_arrays.copied(prompt, count, "i"))))


def _propose(user: int, sequence: int, pointer: int) -> int:
    def action(entry: Entry) -> None:
        proposal = Proposal(pointer)
        try:
            for token in entry.subject.propose(sequence, proposal) or ():
                if not proposal.push(token):
                    break
        finally:
            proposal.end()

    return _guarded(user, action)


def _observe(user: int, sequence: int, committed: int, count: int, drafted: int, accepted: int) -> int:
    tokens = _arrays.shown(_arrays.copied(committed, count, "i"))
    return _guarded(user, lambda entry: entry.subject.observe(sequence, tokens, drafted, accepted))


def _end(user: int, sequence: int) -> None:
    _guarded(user, lambda entry: entry.subject.end(sequence))


def _release(user: int) -> None:
    _entries.pop(user, None)


# One for each kind, which live as long as the process; `user` tells entries apart.
_PROCESS, _RELEASE = lib.PROCESSOR(_process), lib.RELEASE(_release)
_BEGIN, _PROPOSE, _OBSERVE, _END = lib.BEGIN(_begin), lib.PROPOSE(_propose), lib.OBSERVE(_observe), lib.END(_end)


def add_processor(options: int, processor: Any) -> Entry:
    """Adds processor(text, logits) to options."""
    if not callable(processor):
        raise TypeError("a processor is a function of (text, logits)")
    entry = Entry(processor)
    lib.call("foretoken_options_add_processor", options, _PROCESS, entry.number, _RELEASE)
    return entry


def set_drafter(options: int, drafter: Any) -> Entry:
    """Gives options a drafter (drafters.Drafter)."""
    entry = Entry(drafter)
    functions = lib.DrafterFunctions(ctypes.sizeof(lib.DrafterFunctions), str(drafter.name).encode(), int(bool(drafter.distributions)),
                                     int(drafter.vocabulary_size), entry.number, _BEGIN, _PROPOSE, _OBSERVE, _END, _RELEASE)
    lib.call("foretoken_options_set_drafter", options, ctypes.byref(functions))
    return entry
