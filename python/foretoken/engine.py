# SPDX-License-Identifier: Apache-2.0
"""A model that generates text, with its drafters.

Contract: an `Engine` may be used by many threads; its requests run together. The interpreter's lock is released while the library works, in
each step of a request and while a model is opened. An engine is closed when it is dropped, at the end of a `with` block and at exit.
"""
import os
import time
from typing import Any, ContextManager, Dict, Iterable, List, Optional, Sequence, Union

from . import _arrays
from . import _library as lib
from . import chat as chats
from .errors import Code, Error
from .models import bundled_model
from .options import Kind, Options
from .stream import Stream

INFORMATION = ("model", "architecture", "vocabulary_size", "context_size", "embedding_size", "end_tokens", "methods", "method", "strategies",
               "strategy", "controller", "num_speculative_tokens", "max_sequences", "lossless", "threads", "isa", "memory_bytes", "running",
               "waiting")
_LISTS = ("end_tokens", "methods", "strategies")
_TEXTS = ("model", "architecture", "method", "strategy", "controller", "isa")
Path = Union[str, "os.PathLike[str]"]


class Engine:
    """A model, and a thread that runs its requests.

    model: a GGUF file or a folder; None: the bundled model. draft_model: a path or several; None: those beside the model, and
    without a model too. drafter: a `Drafter` of the caller. options: of the kind "engine" and all settings of speculation
    (`option_keys("engine")`). Errors: those of files and options, with their names. Opening a model cannot be interrupted.
    """

    def __init__(self, model: Optional[Path] = None, draft_model: Union[None, Path, Sequence[Path]] = None, *, drafter: Any = None, **options: Any):
        drafts = [draft_model] if draft_model is None or isinstance(draft_model, (str, os.PathLike)) else [*draft_model, None]
        values = {"model": bundled_model() if model is None else model, "draft_model": drafts[0], **options}
        if len(drafts) > 2:
            values["draft_models"] = drafts[1:-1]
        made = Options(Kind.ENGINE, values, drafter=drafter)
        with made.use() as pointer:
            self._handle = lib.Handle(self, "engine", lib.make("foretoken_engine_open", pointer), "foretoken_engine_close")
        self._drafters, self._before = made.callbacks, []  # type: ignore[var-annotated]
        for entry in self._drafters:
            entry.owner = self._handle

    def generate(self, prompt: Union[str, Sequence[int], None] = None, *, processors: Iterable[Any] = (), **options: Any) -> Stream:
        """Starts a request; a `Stream`, which iterates over its rounds.

        prompt: text, or token ids. processors: functions of (text, logits) that edit logits, float32 [vocabulary], in place or return
        others; text is int32 tokens, drafts included. They must be pure functions, and run on the engine's thread. options: of the kind
        "request" (`option_keys("request")`): max_new_tokens, temperature, seed, stop, logprobs, json_schema ... Errors: INVALID_ARGUMENT,
        TOO_LARGE, BUSY, STOPPED, IO, NO_MEMORY.
        """
        self._handle.check()
        if prompt is not None:
            options["prompt" if isinstance(prompt, (str, bytes)) else "prompt_tokens"] = prompt
        request = Options(Kind.REQUEST, options, processors)
        for entry in request.callbacks:
            entry.owner = self._handle
        drafters = [entry for entry in self._drafters if entry.error is None]  # those that failed before fail no later request
        with self._handle.use() as engine, request.use() as pointer:
            return Stream(self, self._handle, lib.make("foretoken_engine_submit", engine, pointer), request.callbacks, drafters)

    def chat(self, messages: Sequence[Dict[str, Any]], *, stream: bool = False, processors: Iterable[Any] = (), **arguments: Any) -> Any:
        """A conversation in the shapes of OpenAI's chat completions: a dict, or with stream=True an iterator of chunks.

        arguments: those of `chat.request_options`. Errors: those of `generate`, and NOT_FOUND where the model has no template.
        """
        asked = chats.request_options(self, messages, arguments)
        running = self.generate(processors=processors, **asked.options)
        return chats.chunks(self, running, asked) if stream else chats.completion(self, running.result(), asked)

    def chat_tokens(self, messages: Sequence[Dict[str, Any]], **options: Any) -> List[int]:
        """The prompt tokens of a conversation by the model's template. options: of the kind "chat"."""
        return chats.written(self, messages, options, as_text=False)

    def chat_text(self, messages: Sequence[Dict[str, Any]], **options: Any) -> str:
        """The prompt of a conversation as text, for people."""
        return chats.written(self, messages, options, as_text=True)

    def tokenize(self, text: str, *, add_special: bool = True, parse_special: bool = False) -> List[int]:
        """Text to tokens. add_special: begin and end tokens as the model wants them. parse_special: names of control tokens are tokens."""
        data, size = lib.text_bytes(text, "text")
        with self._handle.use() as engine:
            return lib.read_tokens(size + 16, "foretoken_engine_tokenize", engine, data, size, int(add_special), int(parse_special))

    def detokenize(self, tokens: Sequence[int], *, special: bool = False) -> str:
        """Tokens to text; special: control tokens by their names. Errors: INVALID_ARGUMENT (an unknown token)."""
        return self._text_bytes(tokens, special).decode(errors="replace")

    def _text_bytes(self, tokens: Sequence[int], special: bool) -> bytes:
        numbers = _arrays.tokens_in(tokens, "tokens")
        with self._handle.use() as engine:
            return lib.read_bytes("foretoken_engine_detokenize", engine, _arrays.address(numbers), len(numbers), int(special))

    def token_bytes(self, token: int) -> bytes:
        """The bytes of one token as they stand within a text, which may be a part of a character; control tokens by their names."""
        if not self._before:  # a text before it, so that a space at the token's front stays
            self._before = self.tokenize("a", add_special=False)
        return self._text_bytes([*self._before, token], True)[len(self._text_bytes(self._before, True)):]

    def info(self) -> Dict[str, Any]:
        """What the engine is, by the names of `INFORMATION`: numbers, texts, lists; memory in bytes."""
        found: Dict[str, Any] = {}
        with self._handle.use() as engine:
            for key in INFORMATION:
                text = lib.read_text("foretoken_engine_info", engine, key.encode())
                found[key] = text if key in _TEXTS else text.split(",") if key in _LISTS and text else [] if key in _LISTS else int(text)
        found["end_tokens"] = [int(token) for token in found["end_tokens"]]
        found["lossless"] = bool(found["lossless"])
        return found

    def use(self) -> ContextManager[int]:
        """A block in which the address of the C object stays valid; for this package."""
        return self._handle.use()

    def drain(self) -> None:
        """No request is accepted any more; those that were accepted run to their ends."""
        with self._handle.use() as engine:
            lib.call("foretoken_engine_drain", engine)

    def stop(self) -> None:
        """Every request that has not ended fails with STOPPED, and none is accepted any more."""
        with self._handle.use() as engine:
            lib.call("foretoken_engine_stop", engine)

    def wait_idle(self, timeout: Optional[float] = None) -> None:
        """Waits until no request runs or waits. timeout: seconds. Errors: DEADLINE."""
        self._handle.refuse_inside()
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = 50 if until is None else max(0, min(50, int((until - time.monotonic()) * 1000)))
            try:
                with self._handle.use() as engine:
                    return lib.call("foretoken_engine_wait_idle", engine, left)
            except Error as error:
                if error.code != Code.DEADLINE or (until is not None and time.monotonic() >= until):
                    raise

    def close(self) -> None:
        """Stops the engine: requests that run fail with STOPPED, and their streams stay readable. May be called again."""
        try:
            self.stop()
        except Error:  # closed before, or of the parent process
            return
        self._handle.close()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
