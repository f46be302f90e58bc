# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in foretoken, as one exception with a code.

Contract: every failure of the library is an `Error`. Python's own exceptions come only from wrong calls (TypeError) and from
functions of the caller, which reach the caller as they are.
"""
import enum


class Code(enum.IntEnum):
    """Why something failed; the numbers are those of foretoken.h."""

    INVALID_ARGUMENT = 1  # an argument or option out of its range
    NOT_FOUND = 2  # no such file, tensor, metadata key, option
    INVALID_FILE = 3  # a file that is damaged or of another kind
    UNSUPPORTED = 4  # well formed, but not something this build runs
    MISMATCH = 5  # two parts that do not belong together
    TOO_LARGE = 6  # a prompt longer than the context, a limit exceeded
    IO = 7  # the operating system refused
    NO_MEMORY = 8  # no more memory, or no more threads
    BUSY = 9  # a queue is full; the same call may succeed later
    STOPPED = 10  # closed, or accepts nothing more
    DEADLINE = 11  # it did not end in the time that it was given
    RANK_LOST = 12  # a process that computes with this one is gone
    CALLBACK = 13  # a function of the caller failed
    INTERNAL = 14  # a fault in the library; please report it


class Error(Exception):
    """A failure of the library.

    code: a `Code`. field: the option or argument that is wrong ("top_k"), or "". text: one line for a person,
    "<what>: <why>; <what to do>".
    """

    def __init__(self, code: int, field: str, text: str):
        super().__init__(text)
        try:
            self.code: int = Code(code)
        except ValueError:  # of a later library
            self.code = code
        self.field = field
        self.text = text

    def __reduce__(self):
        return Error, (int(self.code), self.field, self.text)
