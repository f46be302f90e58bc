# SPDX-License-Identifier: Apache-2.0
"""Conversations in the shapes of OpenAI's chat completions.

Contract: messages and results are dicts of those shapes. A member that this package cannot follow is an `Error` with its name, never
passed over. Text content only, and calls of tools stay in the text; `foretoken serve` reads them.
"""
import json
import os
import secrets
import time
import uuid
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from . import _library as lib
from .errors import Code, Error
from .options import Kind, Options, option_keys
from .stream import Completion, Stream

_NAMES = {"max_tokens": "max_new_tokens", "max_completion_tokens": "max_new_tokens", "min_tokens": "min_new_tokens"}
_REASONS = {"stop": "stop", "length": "length"}


class Asked(NamedTuple):
    """A request of a conversation: the options of `Engine.generate`, and what its answer needs."""

    options: Dict[str, Any]
    model: str
    logprobs: bool
    usage_in_stream: bool
    id: str
    created: int


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    parts: List[str] = []
    for part in content:
        if part.get("type") != "text":
            raise Error(Code.UNSUPPORTED, "content", f"content: a part of type {part.get('type')!r} is not text; send text")
        parts.append(part["text"])
    return "".join(parts)


def written(engine: Any, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any], as_text: bool) -> Any:
    """A conversation as its template writes it: tokens, or text."""
    form, bytes_of_all = Options(Kind.CHAT, options), 0
    handle = lib.Handle(form, "chat", lib.make("foretoken_chat_create"), "foretoken_chat_free")
    with handle.use() as chat, form.use() as format_options, engine.use() as pointer:
        for message in messages:
            if not isinstance(message.get("role"), str):
                raise Error(Code.INVALID_ARGUMENT, "role", "messages: a message has no role; give each a role and content")
            others = {key: value for key, value in message.items() if key not in ("role", "content") and value is not None}
            data, size = lib.text_bytes(_content(message), "content")
            bytes_of_all += size
            lib.call("foretoken_chat_add", chat, message["role"].encode(errors="replace"), data, size, json.dumps(others).encode() if others else None)
        if as_text:
            return lib.read_text("foretoken_chat_text", chat, pointer, format_options)
        return lib.read_tokens(bytes_of_all + 4096, "foretoken_chat_tokens", chat, pointer, format_options)


def _response_format(value: Mapping[str, Any]) -> Optional[Any]:
    kind = value.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema":
        return value["json_schema"]["schema"]
    raise Error(Code.INVALID_ARGUMENT, "response_format", f"response_format: there is no type {kind!r}; use text, json_object or json_schema")


def request_options(engine: Any, messages: Sequence[Mapping[str, Any]], arguments: Mapping[str, Any]) -> Asked:
    """What a call of chat asks for.

    arguments: max_tokens, max_completion_tokens, temperature, top_p, seed, stop, logprobs, top_logprobs, logit_bias, presence_penalty,
    frequency_penalty, response_format, tools, n (1), stream_options, model (repeated in the answer), and options of the kinds "request" and "chat".
    As with the server, an answer may be as long as fits, and its seed is random; the answer tells it.
    """
    given = {key: value for key, value in arguments.items() if value is not None}
    if given.pop("n", 1) != 1:
        raise Error(Code.UNSUPPORTED, "n", "n: one answer a call; call chat several times")
    usage = bool(given.pop("stream_options", {}).get("include_usage"))
    model = given.pop("model", None)
    top, logprobs = given.pop("top_logprobs", 0), given.pop("logprobs", False)
    form = {key: given.pop(key) for key in option_keys(Kind.CHAT) if key in given}
    if "tools" in given:
        form["tools_json"] = given.pop("tools")
    options: Dict[str, Any] = {}
    if "response_format" in given:
        options["json_schema"] = _response_format(given.pop("response_format"))
    options.update((_NAMES.get(key, key), value) for key, value in given.items())
    options["prompt_tokens"] = written(engine, messages, form, as_text=False)
    if logprobs:
        options["logprobs"] = top
    information = engine.info()
    options.setdefault("max_new_tokens", max(0, information["context_size"] - len(options["prompt_tokens"])))
    options.setdefault("seed", secrets.randbits(32))
    return Asked(options, model or os.path.basename(information["model"]), bool(logprobs), usage, f"chatcmpl-{uuid.uuid4().hex}", int(time.time()))


def _token(engine: Any, token: int, logprob: float) -> Dict[str, Any]:
    piece = engine.token_bytes(token)
    return {"token": piece.decode(errors="replace"), "logprob": float(logprob), "bytes": list(piece)}


def _logprobs(engine: Any, tokens: Sequence[int], logprobs: Any, top: Any) -> Dict[str, Any]:
    rows = [{**_token(engine, token, logprob), "top_logprobs": [_token(engine, *best) for best in (top[i] if top else [])]}
            for i, (token, logprob) in enumerate(zip(tokens, logprobs))]
    return {"content": rows, "refusal": None}


def _usage(done: Completion) -> Dict[str, Any]:
    prompt, generated = len(done.prompt_tokens), len(done.tokens)
    return {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated,
            "prompt_tokens_details": {"cached_tokens": done.statistics["cached_prompt_tokens"]}}


def completion(engine: Any, done: Completion, asked: Asked) -> Dict[str, Any]:
    """A chat.completion."""
    logprobs = _logprobs(engine, done.tokens, done.logprobs, done.top_logprobs) if asked.logprobs and done.logprobs is not None else None
    choice = {"index": 0, "message": {"role": "assistant", "content": done.text, "refusal": None}, "logprobs": logprobs,
              "finish_reason": _REASONS.get(done.finish_reason, done.finish_reason)}
    return {"id": asked.id, "object": "chat.completion", "created": asked.created, "model": asked.model, "choices": [choice], "usage": _usage(done),
            "seed": done.seed}


def chunk(asked: Asked, delta: Dict[str, Any], reason: Optional[str] = None, logprobs: Any = None) -> Dict[str, Any]:
    """A chat.completion.chunk."""
    choice = {"index": 0, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
    return {"id": asked.id, "object": "chat.completion.chunk", "created": asked.created, "model": asked.model, "choices": [choice]}


def ends(asked: Asked, done: Completion) -> List[Dict[str, Any]]:
    """The chunks behind the text: why it ended, and the usage if it was asked for."""
    last = [chunk(asked, {}, _REASONS.get(done.finish_reason, done.finish_reason))]
    if asked.usage_in_stream:
        last.append({**chunk(asked, {}), "choices": [], "usage": _usage(done)})
    return last


def of_round(engine: Any, asked: Asked, found: Any) -> Optional[Dict[str, Any]]:
    """The chunk of a round; None if it has nothing to show."""
    logprobs = _logprobs(engine, found.tokens, found.logprobs, None) if asked.logprobs and found.logprobs else None
    return chunk(asked, {"content": found.text}, None, logprobs) if found.text or logprobs else None


def chunks(engine: Any, stream: Stream, asked: Asked) -> Iterator[Dict[str, Any]]:
    """The chunks of a stream, which is cancelled where the iterator is closed or dropped."""
    with stream:
        yield chunk(asked, {"role": "assistant", "content": ""})
        for found in stream:
            shown = of_round(engine, asked, found)
            if shown is not None:
                yield shown
        yield from ends(asked, stream.result())
