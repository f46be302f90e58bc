# SPDX-License-Identifier: Apache-2.0
"""Options by name, as docs/c.md and docs/configuration.md list them.

Contract: values are Python's: numbers, switches, texts, lists (of tokens, of texts), dicts (logit_bias, schemas); None leaves the library's
default. The library checks names and ranges, and an `Error` has the option's name as its field.
"""
import enum
import json
from typing import Any, ContextManager, Iterable, List, Mapping, Union

from . import _arrays, callbacks
from ._library import Handle, call, library, make, text_bytes
from .errors import Code, Error


class Kind(enum.IntEnum):
    """What options are for."""

    ENGINE = 0
    REQUEST = 1
    CHAT = 2
    VERIFICATION = 3
    SESSION = 4


_TOKENS = {"prompt_tokens", "drafts", "generated", "stop_token_ids", "end_tokens", "dry_breakers"}
_JSON = {"json_schema", "tools_json", "template_kwargs_json"}


def option_keys(kind: Union[Kind, str]) -> List[str]:
    """The names of a kind's options: "engine", "request", "chat", "verification", "session"."""
    number = Kind[kind.upper()] if isinstance(kind, str) else kind
    keys: List[str] = []
    while True:
        key = library().foretoken_options_key(number, len(keys))
        if key is None:
            return keys
        keys.append(key.decode())


def _text(key: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return "true" if value else "false"
    if key in _JSON:
        return json.dumps(value)
    if isinstance(value, Mapping):
        return ",".join(f"{token}={_text(key, number)}" for token, number in value.items())
    if isinstance(value, Iterable):
        return ",".join(str(_text(key, item)) for item in value)
    return str(value)


class Options:
    """Options of the library, which this package makes for each call."""

    def __init__(self, kind: Kind, values: Mapping[str, Any], processors: Iterable[Any] = (), drafter: Any = None):
        self._kind = kind
        self._handle = Handle(self, "options", make("foretoken_options_create", int(kind)), "foretoken_options_free")
        self.callbacks: List[callbacks.Entry] = []
        for key, value in values.items():
            if value is not None:
                self._set(key, value)
        with self._handle.use() as pointer:
            for processor in processors:
                self.callbacks.append(callbacks.add_processor(pointer, processor))
            if drafter is not None:
                self.callbacks.append(callbacks.set_drafter(pointer, drafter))

    def _set(self, key: str, value: Any) -> None:
        name = key.encode(errors="replace")
        plain = isinstance(value, (str, bytes))
        with self._handle.use() as pointer:
            if key in _TOKENS and not plain:
                tokens = _arrays.tokens_in(value, key)
                call("foretoken_options_set_tokens", pointer, name, _arrays.address(tokens), len(tokens))
                return
            for item in value if key == "stop" and not plain else [value]:
                self._set_text(pointer, key, name, _text(key, item))

    def _set_text(self, pointer: int, key: str, name: bytes, text: Any) -> None:
        try:
            call("foretoken_options_set", pointer, name, *text_bytes(text, key))
        except Error as error:
            if error.code != Code.NOT_FOUND or key in option_keys(self._kind):
                raise
            way = f"foretoken.option_keys({self._kind.name.lower()!r}) lists those there are"
            raise Error(error.code, error.field, f"{error.field}: there is no such key; {way}") from None

    def use(self) -> ContextManager[int]:
        """A block in which the address of the C object stays valid."""
        return self._handle.use()
