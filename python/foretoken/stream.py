# SPDX-License-Identifier: Apache-2.0
"""What a request gives: rounds as they come, then its completion with statistics.

Contract: a `Stream` is an iterator of rounds. A request whose stream is closed or dropped is cancelled. Ctrl-C works while a stream waits. One
thread at a time reads a stream; any thread may cancel it.
"""
import ctypes
import enum
import functools
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _arrays, callbacks
from . import _library as lib
from .errors import Code, Error

_MAIN_MS, _OTHER_MS = 50, 1000  # how long a thread waits at once: the main one looks at signals in between
_ROUND, _END = 1, 2


class Origin(enum.IntEnum):
    """Where a token came from."""

    PLAIN = 0  # the target's, in a round without drafts
    ACCEPTED = 1  # an accepted draft
    RECOVERED = 2  # the target's, in place of a rejected draft
    BONUS = 3  # the target's, behind drafts that were all accepted


class Round(NamedTuple):
    """One round of a request. text: whole characters, perhaps none yet. logprobs: natural logarithms, None if not asked for."""

    text: str
    tokens: List[int]
    origins: List[Origin]
    logprobs: Optional[List[float]]
    drafted: int
    rejected: List[int]
    drafter: str


@dataclass(frozen=True)
class Completion:
    """What a request gave.

    logprobs: float32 [tokens], and top_logprobs: for each token the best ones as (token, logprob), best first; None if not asked for.
    embedding: float32 [embedding_size], not normalised, or None. statistics: by the names of `statistic_names()`, without rates that have
    no denominator; times are milliseconds.
    """

    text: str
    tokens: List[int]
    prompt_tokens: List[int]
    logprobs: Any
    top_logprobs: Optional[List[List[Tuple[int, float]]]]
    embedding: Any
    finish_reason: str
    strategy: str
    controller: str
    seed: int
    lossless: bool
    statistics: Dict[str, Union[int, float]]


@functools.lru_cache(maxsize=None)
def statistic_names() -> Tuple[str, ...]:
    """The statistics of a completion."""
    names: List[str] = []
    while (name := lib.library().foretoken_result_key(len(names))) is not None:
        names.append(name.decode())
    return tuple(names)


def _statistics(result: int) -> Dict[str, Union[int, float]]:
    found: Dict[str, Union[int, float]] = {}
    for key in statistic_names():
        value = ctypes.c_double()
        try:
            lib.call("foretoken_result_stat", result, key.encode(), ctypes.byref(value))
        except Error as error:
            if error.code != Code.NOT_FOUND:
                raise
            continue
        whole = not key.endswith(("_ms", "_rate", "_length"))
        found[key] = int(value.value) if whole else value.value
    return found


def _top(view: lib.ResultView) -> List[List[Tuple[int, float]]]:
    size = ctypes.sizeof(ctypes.c_size_t)
    offsets = list((ctypes.c_size_t * (view.token_count + 1)).from_buffer_copy(ctypes.string_at(view.top_offsets, (view.token_count + 1) * size)))
    tokens, logprobs = _arrays.copied(view.top_tokens, offsets[-1], "i"), _arrays.copied(view.top_logprobs, offsets[-1], "f")
    return [list(zip(tokens[begin:end], logprobs[begin:end])) for begin, end in zip(offsets, offsets[1:])]


def _completion(result: int) -> Completion:
    view = lib.ResultView.from_address(lib.library().foretoken_result_get(result))
    asked = bool(view.logprobs)
    return Completion(
        text=ctypes.string_at(view.text, view.text_size).decode(errors="replace"), tokens=list(_arrays.copied(view.tokens, view.token_count, "i")),
        prompt_tokens=list(_arrays.copied(view.prompt_tokens, view.prompt_token_count, "i")),
        logprobs=_arrays.shown(_arrays.copied(view.logprobs, view.token_count, "f")) if asked else None,
        top_logprobs=_top(view) if asked else None,
        embedding=_arrays.shown(_arrays.copied(view.embedding, view.embedding_count, "f")) if view.embedding_count else None,
        finish_reason=view.finish_reason.decode(), strategy=view.strategy.decode(), controller=view.controller.decode(), seed=view.seed,
        lossless=view.lossless == 1, statistics=_statistics(result))


def _round(view: lib.EventView) -> Round:
    count = view.token_count
    return Round(text=ctypes.string_at(view.text, view.text_size).decode(errors="replace") if view.text_size else "",
                 tokens=list(_arrays.copied(view.tokens, count, "i")), origins=[Origin(o) for o in _arrays.copied(view.origins, count, "B")],
                 logprobs=list(_arrays.copied(view.logprobs, count, "f")) if view.logprobs else None, drafted=view.drafted,
                 rejected=list(_arrays.copied(view.rejected, view.rejected_count, "i")), drafter=(view.drafter or b"").decode())


class Stream:
    """A request that runs: an iterator of `Round`s, made by `Engine.generate`.

    Iterating raises what ended the request: `Error` with STOPPED, DEADLINE, NO_MEMORY, INVALID_FILE, or the exception of a processor or
    drafter of the caller.
    """

    def __init__(self, owner: Any, engine: lib.Handle, pointer: int, entries: Sequence[callbacks.Entry], drafters: Sequence[callbacks.Entry]):
        self._owner, self._engine = owner, engine  # an engine lives as long as its streams
        self._handle = lib.Handle(self, "stream", pointer, "foretoken_stream_free")
        self._processors, self._drafters = list(entries), list(drafters)
        self._reading = threading.Lock()
        self._completion: Optional[Completion] = None
        self._ended = False
        self._failure: Optional[BaseException] = None

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Round:
        found = self.next()
        if found is None:
            raise StopIteration
        return found

    def next(self, timeout: Optional[float] = None) -> Optional[Round]:
        """The next round, or None: the request has ended (`ended`), or none came in `timeout` seconds. timeout None: without limit."""
        self._engine.refuse_inside()
        until = None if timeout is None else time.monotonic() + timeout
        most = _MAIN_MS if threading.current_thread() is threading.main_thread() else _OTHER_MS
        while not self._ended:
            left = most if until is None else max(0, min(most, int((until - time.monotonic()) * 1000)))
            found = self._read(left)
            if found is not None:
                return found
            if until is not None and time.monotonic() >= until:
                return None
        return None

    def _read(self, timeout_ms: int) -> Optional[Round]:
        event = ctypes.c_void_p()
        with self._reading, self._handle.use() as pointer:
            if self._ended:
                return None
            try:
                lib.call("foretoken_stream_next", pointer, timeout_ms, ctypes.byref(event))
            except Error as error:
                self._take(pointer)
                self._failure = error
                self._raise_callback_error(self._processors + self._drafters, error)
                raise
            self._raise_callback_error(self._drafters, None)
            if not event.value:
                if lib.library().foretoken_stream_ended(pointer):
                    self._take(pointer)
                return None
            view = lib.EventView.from_address(event.value)
            if view.kind == _END:
                self._take(pointer)
            return _round(view) if view.kind == _ROUND else None

    def _raise_callback_error(self, entries: Sequence[callbacks.Entry], error: Optional[Error]) -> None:
        for entry in entries:
            if entry.error is not None:
                self._ended, self._failure = True, entry.error
                self.cancel()
                raise entry.error from error

    def _take(self, pointer: int) -> None:
        self._ended = True
        try:
            result = lib.make("foretoken_stream_result", pointer)
        except Error:  # it ended without one
            return
        try:
            self._completion = _completion(result)
        finally:
            lib.library().foretoken_result_free(result)

    @property
    def ended(self) -> bool:
        """True: its end, or its failure, was read."""
        return self._ended

    @property
    def completion(self) -> Optional[Completion]:
        """What the request gave, once it has ended; after a failure what was there until then, or None."""
        return self._completion

    def result(self) -> Completion:
        """Reads the rest, and gives the completion. Errors: those of iterating, also where they were raised before; STOPPED (it is closed)."""
        for _ in self:
            pass
        if self._failure is not None:
            raise self._failure
        if self._completion is None:
            raise Error(Code.STOPPED, "stream", "stream: it has no completion; send the request again")
        return self._completion

    def cancel(self) -> None:
        """The request ends at its next step, with the finish reason "cancelled". Any thread."""
        try:
            with self._handle.use() as pointer:
                lib.library().foretoken_stream_cancel(pointer)
        except Error:  # closed
            return

    def close(self) -> None:
        """Cancels the request if it has not ended; a thread that reads the stream gets STOPPED. May be called again."""
        self.cancel()
        self._handle.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
