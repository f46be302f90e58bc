# SPDX-License-Identifier: Apache-2.0
"""Drafters in Python, and sessions that draft for texts of the caller.

Contract: a drafter changes the speed and never the text. Its methods run on the engine's thread, one call at a time; what one of them raises
ends the requests that run then and reaches their callers, and the engine goes on without the drafter.
"""
import ctypes
from typing import Any, Iterable, List, NamedTuple, Optional, Sequence

from . import _arrays
from . import _library as lib
from .errors import Code, Error


class Proposal:
    """The draft of one round, which `Drafter.propose` fills; valid during that call."""

    def __init__(self, pointer: int):
        self._pointer: Optional[int] = pointer

    def _use(self) -> int:
        if self._pointer is None:
            raise Error(Code.INVALID_ARGUMENT, "proposal", "proposal: its call of propose has ended; use it there only")
        return self._pointer

    def end(self) -> None:
        """The call ends; called by this package."""
        self._pointer = None

    @property
    def text(self) -> Any:
        """The text so far, drafts included: int32 [at least 1], a copy."""
        count = ctypes.c_size_t()
        tokens = lib.library().foretoken_proposal_text(self._use(), ctypes.byref(count))
        return _arrays.shown(_arrays.copied(tokens, count.value, "i"))

    @property
    def left(self) -> int:
        """How many drafts may still be added."""
        return lib.library().foretoken_proposal_left(self._use())

    def push(self, token: int) -> bool:
        """Adds a certain draft; False if none can be added. A token that is none of the vocabulary ends the draft."""
        return bool(lib.library().foretoken_proposal_push(self._use(), int(token)))

    def draw(self, probabilities: Any) -> Optional[int]:
        """Draws the next draft from float32 [vocabulary] that sum to 1: the token, or None if none can be added."""
        row, count = _arrays.rows_in([probabilities], 1, None, "probabilities")
        token = lib.library().foretoken_proposal_draw(self._use(), _arrays.address(row), count)
        return None if token < 0 else token


class Drafter:
    """Base of drafters: override `propose`, and what else is wanted.

    name: becomes a method ("speculative_method"): letters, digits, '-' and '_'. distributions: True if it calls Proposal.draw.
    vocabulary_size: of its distributions; 0: it has none.
    """

    name: str = "python"
    distributions: bool = False
    vocabulary_size: int = 0

    def begin(self, sequence: int, prompt: Any) -> None:
        """A text begins in a sequence, [0, max_sequences). prompt: int32 tokens."""

    def propose(self, sequence: int, proposal: Proposal) -> Optional[Iterable[int]]:
        """Returns certain drafts, or adds them to the proposal and returns None."""
        raise NotImplementedError

    def observe(self, sequence: int, committed: Any, drafted: int, accepted: int) -> None:
        """A round committed tokens, int32: the accepted drafts and one of the target."""

    def end(self, sequence: int) -> None:
        """The text of a sequence has ended."""


class Drafts(NamedTuple):
    """Drafts of a session: tokens; the probability of each (float32 [n]); distributions (float32 [n][vocabulary]). None: certain."""

    tokens: List[int]
    probabilities: Any
    distributions: Any


class Session:
    """Runs a drafter on texts of the caller, without an engine; for one thread at a time.

    drafter: "ngram", "suffix", "model" with model=PATH, or a `Drafter`. options: of the kind "session". Errors: INVALID_ARGUMENT, and those of
    model files.
    """

    def __init__(self, drafter: Any = "ngram", **options: Any):
        from .options import Kind, Options  # which needs the callbacks, and they this file

        named = isinstance(drafter, str)
        values = {**options, "drafter": drafter} if named else options
        made = Options(Kind.SESSION, values, drafter=None if named else drafter)
        with made.use() as pointer:
            self._handle = lib.Handle(self, "session", lib.make("foretoken_session_open", pointer), "foretoken_session_close")
        self._callbacks = made.callbacks

    def _call(self, name: str, *arguments: Any) -> None:
        with self._handle.use() as pointer:
            lib.call(name, pointer, *arguments)
        for entry in self._callbacks:
            error, entry.error = entry.error, None
            if error is not None:
                raise error

    def begin(self, prompt: Sequence[int]) -> None:
        """Starts a text with at least one token."""
        tokens = _arrays.tokens_in(prompt, "prompt")
        self._call("foretoken_session_begin", _arrays.address(tokens), len(tokens))

    def propose(self, k: int, distributions: bool = False) -> Drafts:
        """Up to k drafts, [0, 64], that continue the text."""
        view = ctypes.POINTER(lib.DraftsView)()
        self._call("foretoken_session_propose", k, int(distributions), ctypes.byref(view))
        drafts = view.contents
        rows = _arrays.copied(drafts.distributions, drafts.count * drafts.vocabulary, "f")
        return Drafts(list(_arrays.copied(drafts.tokens, drafts.count, "i")),
                      _arrays.shown(_arrays.copied(drafts.probabilities, drafts.count, "f")) if drafts.probabilities else None,
                      _arrays.shown(rows, (drafts.count, drafts.vocabulary)) if drafts.distributions else None)

    def observe(self, tokens: Sequence[int]) -> None:
        """The text goes on with these tokens, whatever was drafted."""
        numbers = _arrays.tokens_in(tokens, "tokens")
        self._call("foretoken_session_observe", _arrays.address(numbers), len(numbers))

    def close(self) -> None:
        """Ends the session; may be called again."""
        self._handle.close()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
