# SPDX-License-Identifier: Apache-2.0
"""The rules of verification on the caller's own logits, without a model.

Contract: the results are those of the engine and of tests/vectors/verification.jsonl. Arrays are numpy's, or sequences of sequences. A
`Verification` is used by one thread at a time.
"""
import ctypes
from typing import Any, Iterable, NamedTuple, Optional, Sequence

from . import _arrays
from . import _library as lib
from .errors import Error
from .options import Kind, Options
from .stream import Origin


class Verified(NamedTuple):
    """accepted: drafts that are kept, from the first on. next: one more token, and its origin. lossless: True: kept tokens have the
    distribution of plain decoding."""

    accepted: int
    next: int
    origin: Origin
    lossless: bool


class Verification:
    """A rule with its settings.

    vocabulary_size: tokens. processors: as of `Engine.generate`. options: of the kind "verification": strategy, temperature, seed ... Errors:
    INVALID_ARGUMENT.
    """

    def __init__(self, vocabulary_size: int, *, processors: Iterable[Any] = (), **options: Any):
        made = Options(Kind.VERIFICATION, {"vocabulary_size": vocabulary_size, **options}, processors)
        with made.use() as pointer:
            self._handle = lib.Handle(self, "verification", lib.make("foretoken_verification_create", pointer), "foretoken_verification_free")
        self._callbacks = made.callbacks

    def verify(self, target_logits: Any, drafts: Sequence[int] = (), *, text: Sequence[int] = (), generated: int = 0,
               position: Optional[int] = None, draft_probabilities: Any = None, draft_logits: Any = None, accept: Any = None,
               recover: Any = None, target: Any = None) -> Verified:
        """Verifies n drafts, at most 64, as an engine does.

        target_logits: float32 [n + 1][vocabulary], the row of each draft and one behind them. draft_probabilities: float32 [n][vocabulary]; None:
        drafts are certain. draft_logits: likewise. text: tokens before the drafts, of which the last `generated` are output. position: of the
        first draft in the text; None: len(text). accept [n], recover [n], target [n + 1]: numbers in [0, 1) in place of the noise of
        seed and position. Errors: INVALID_ARGUMENT.
        """
        n = len(drafts)
        tokens, before = _arrays.tokens_in(drafts, "drafts"), _arrays.tokens_in(text, "text")
        logits, vocabulary = _arrays.rows_in(target_logits, n + 1, None, "target_logits")
        held = {"target_logits": logits}
        for field, rows in (("draft_probabilities", draft_probabilities), ("draft_logits", draft_logits)):
            if rows is not None:
                held[field] = _arrays.rows_in(rows, n, vocabulary, field)[0]
        for field, numbers, count in (("accept", accept, n), ("recover", recover, n), ("target", target, n + 1)):
            if numbers is not None:
                held[field] = _arrays.numbers_in(numbers, count, "d", field)
        given = lib.VerificationInput(ctypes.sizeof(lib.VerificationInput), _arrays.address(before), len(before), generated,
                                      -1 if position is None else position, _arrays.address(tokens), n, vocabulary=vocabulary)
        for field, numbers in held.items():
            setattr(given, field, _arrays.address(numbers))
        return self._run(given)

    def _run(self, given: lib.VerificationInput) -> Verified:
        found = lib.VerifiedView(ctypes.sizeof(lib.VerifiedView))
        try:
            with self._handle.use() as pointer:
                lib.call("foretoken_verification_run", pointer, ctypes.byref(given), ctypes.byref(found))
        except Error as error:
            for entry in self._callbacks:
                raised, entry.error = entry.error, None
                if raised is not None:
                    raise raised from error
            raise
        return Verified(found.accepted, found.next, Origin(found.origin), found.lossless == 1)

    def close(self) -> None:
        """Frees it; may be called again."""
        self._handle.close()
