# SPDX-License-Identifier: Apache-2.0
"""Requests of OpenAI's API and what is read from their replies.

Contract: a reply's JSON is untrusted: `of` and `add` raise KitError where it has not the API's shape.
"""
from typing import Any, Dict, List, NamedTuple, Optional

from .errors import KitError
from .json_input import is_list_of, is_number, is_whole

TOP = 5  # likeliest tokens that come with each token


class Asked(NamedTuple):
    """kind: "completions" or "chat". seed: None: the server's choice. logprobs: whether tokens come with their log-probabilities."""

    kind: str
    prompt: str
    temperature: float
    seed: Optional[int]
    max_tokens: int
    logprobs: bool = False


def body_of(asked, model, extra):
    body: Dict[str, Any] = {"model": model, "temperature": asked.temperature, "max_tokens": asked.max_tokens}
    if asked.seed is not None:
        body["seed"] = asked.seed
    if asked.kind == "chat":
        body["messages"] = [{"role": "user", "content": asked.prompt}]
    else:
        body["prompt"] = asked.prompt
    if asked.logprobs:
        body.update({"logprobs": True, "top_logprobs": TOP} if asked.kind == "chat" else {"logprobs": TOP})
    return {**body, **extra}


def _text(value):
    return value if isinstance(value, str) else ""


def _number(value):
    return value if is_number(value) else None


def _list(value):
    return value if isinstance(value, list) else []


def _object(value):
    return value if isinstance(value, dict) else {}


class Reply:
    """text: with what a model thought before it. tokens: their texts, or their ids where the server gives `token_ids`; None where neither came.
    logprobs: of these tokens; tops: {token: log-probability} of the likeliest at each place. drafted, accepted: where the server counts them."""

    def __init__(self, asked, url):
        self.text, self.finish, self.completion_tokens, self.drafted, self.accepted = "", None, None, None, None
        self._asked, self._url, self._tokens, self._ids = asked, url, [], []
        self.logprobs: List[Optional[float]] = []
        self.tops: List[Dict[str, float]] = []

    @staticmethod
    def of(value, asked, url):
        reply = Reply(asked, url)
        choice = reply._choice(value)
        if choice is None:
            raise KitError(f"{url}: a reply without choices; is it a server of OpenAI's API?")
        reply._take(choice, choice.get("message"))
        return reply

    @property
    def tokens(self):
        return self._ids or self._tokens or None

    def _choice(self, value):
        """The only choice of a reply or of an event, None where it has none; takes what stands beside it."""
        if not isinstance(value, dict):
            raise KitError(f"{self._url}: a reply that is no object; is it a server of OpenAI's API?")
        if value.get("error"):
            raise KitError(f"{self._url}: {str(value['error'])[:500]}; look into the server's log")
        usage, timings = _object(value.get("usage")), _object(value.get("timings"))
        if is_whole(usage.get("completion_tokens")):
            self.completion_tokens = usage["completion_tokens"]
        if is_whole(timings.get("draft_n")):
            self.drafted, self.accepted = timings["draft_n"], _number(timings.get("draft_n_accepted")) or 0
        choices = value.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return choices[0]
        return None

    def _take(self, choice, message):
        if self._asked.kind == "chat":
            message = _object(message)
            self.text += _text(message.get("reasoning_content") or message.get("reasoning")) + _text(message.get("content"))
        else:
            self.text += _text(choice.get("text"))
        self.finish = choice.get("finish_reason") or self.finish
        if is_list_of(choice.get("token_ids"), is_whole):
            self._ids += choice["token_ids"]
        logprobs = _object(choice.get("logprobs"))
        if self._asked.kind == "chat":
            self._take_chat(logprobs.get("content"))
        else:
            self._take_completion(logprobs)

    def _take_chat(self, content):
        for entry in _list(content):
            entry = _object(entry)
            top = [_object(other) for other in _list(entry.get("top_logprobs"))]
            self._tokens.append(_text(entry.get("token")))
            self.logprobs.append(_number(entry.get("logprob")))
            self.tops.append({_text(other.get("token")): other["logprob"] for other in top if is_number(other.get("logprob"))})

    def _take_completion(self, logprobs):
        tokens, numbers, tops = (logprobs.get(name) for name in ("tokens", "token_logprobs", "top_logprobs"))
        if not is_list_of(tokens, lambda token: isinstance(token, str)):
            return
        numbers = numbers if isinstance(numbers, list) and len(numbers) == len(tokens) else [None] * len(tokens)
        tops = tops if isinstance(tops, list) and len(tops) == len(tokens) else [None] * len(tokens)
        self._tokens += tokens
        self.logprobs += [_number(number) for number in numbers]
        self.tops += [{token: number for token, number in _object(top).items() if is_number(number)} for top in tops]


class StreamedReply(Reply):
    """first_s: from the request to the first text; total_s: to the end. None until they are known."""

    def __init__(self, asked, url):
        super().__init__(asked, url)
        self.first_s: Optional[float] = None
        self.total_s: Optional[float] = None

    def add(self, event, seconds):
        """One event, that came so many seconds behind the request."""
        choice = self._choice(event)
        if choice is not None:
            self._take(choice, choice.get("delta"))
        if self.text and self.first_s is None:
            self.first_s = seconds
        self.total_s = seconds
