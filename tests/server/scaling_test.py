#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a request costs the server, by its size: the memory of its process must grow no faster than the request, and with --time
the CPU time, too. (Without a clock, apps/server/growth_test.cpp counts the instructions that reading such requests takes.)

Each case is a way to make a request large. It is sent in sizes that differ by a factor of 16. --time measures the exponent of the
growth: 1 is linear, 2 quadratic. Endpoints are those of `foretoken help --json`, so that a new one needs a case here.

usage: scaling_test.py FORETOKEN MODELS [--time] [--show]
"""
import http.client
import json
import math
import re
import socket
import subprocess
import sys
import time
import unittest

from server_case import ONE_THREAD, ServerCase, main, new_folder, run_program
from server_testing import JSON, SECONDS, read_all, request_bytes

MOST = 1.2  # the exponent; n log n passes, n^1.5 does not
BODY_SIZES = (1 << 15, 1 << 17, 1 << 19)
HEAD_SIZES = (3 << 10, 12 << 10, 48 << 10)  # a header may have 64 KiB
TIMED = "--time" in sys.argv
REPEATS = 6 if TIMED else 1  # at most; the least counts: other work on the machine only ever adds to it
LEAST = 5e-4  # seconds: what is less counts as this, as it is mostly noise
# Bytes of memory that one byte of a request may take at its peak, and what a request takes whatever its size.
MOST_PER_BYTE, MEMORY_OF_ANY = 96, 24 << 20

CHAT, COMPLETIONS, TOKENIZE, DETOKENIZE = "/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"


def listed(item, size, between=","):
    """Items, as text, until they have about this size."""
    return between.join([item] * max(1, size // (len(item) + len(between))))


def numbered(item, size):
    """Different items; their {} is a number."""
    return ",".join(item.format(i) for i in range(max(1, size // (len(item) + 5))))


# Bodies that every endpoint reads, whatever it makes of them.
ANY_BODY = {
    "objects": lambda n: '{"x":[' + listed("{}", n) + "]}",
    "objects in objects": lambda n: '{"x":[' + listed('{"a":{"b":{}}}', n) + "]}",
    "lists": lambda n: '{"x":[' + listed("[]", n) + "]}",
    "lists of lists": lambda n: '{"x":[' + listed("[[],[[]]]", n) + "]}",
    "numbers": lambda n: '{"x":[' + listed("0", n) + "]}",
    "members": lambda n: "{" + numbered('"k{}":0', n) + "}",
    "members near to a field's name": lambda n: "{" + numbered('"temperatur{}":0', n) + "}",
    "members with objects": lambda n: "{" + numbered('"k{}":{{}}', n) + "}",
    "one name again and again": lambda n: "{" + listed('"a":0', n) + "}",
    "a long text": lambda n: '{"x":"' + "a" * n + '"}',
    "escapes": lambda n: '{"x":"' + "\\u00e9" * (n // 6) + '"}',
    "surrogates": lambda n: '{"x":"' + "\\ud83d\\ude00" * (n // 12) + '"}',
    "a long name": lambda n: '{"' + "a" * n + '":0}',
    "a long name with escapes": lambda n: '{"' + "\\n" * (n // 2) + '":0}',
    "a long number": lambda n: '{"x":' + "1" * n + "}",
    "a long fraction": lambda n: '{"x":0.' + "1" * n + "}",
    "deep lists": lambda n: '{"x":' + "[" * n,
    "deep objects": lambda n: '{"x":' * (n // 5),
    "white space": lambda n: '{"x":' + " " * n + "0}",
    "text without an end": lambda n: '{"x":"' + "a" * n,
    "bytes that are not UTF-8": lambda n: b'{"x":"' + b"\xff" * n + b'"}',
    "not JSON": lambda n: "x" * n,
}

TEXTS = {
    "one letter": lambda n: "a" * n,
    "one word": lambda n: "onceuponatime" * (n // 13),
    "words": lambda n: "Once upon a time " * (n // 17),
    "spaces": lambda n: " " * n,
    "lines": lambda n: "\n" * n,
    "spaces and lines": lambda n: " \n" * (n // 2),
    "digits": lambda n: "7" * n,
    "signs": lambda n: "!" * n,
    "emoji": lambda n: "\U0001f600" * (n // 4),
    "letters that no token has": lambda n: "\u0c95" * (n // 3),
    "names of control tokens": lambda n: "<|im_start|></s>" * (n // 16),
    "half a name of a control token": lambda n: "<|im_st" * (n // 7),
    "control characters": lambda n: "\x01" * (n // 6),
}


def text_cases(make):
    """A case for each text: make(text) is the body."""
    return {name: lambda n, text=text: json.dumps(make(text(n)), ensure_ascii=False).encode() for name, text in TEXTS.items()}


def field(name, value, rest=""):
    """A body with one large field; value(n) is JSON."""
    return lambda n: "{" + rest + f'"{name}":' + value(n) + "}"


PROMPT = '"prompt":"Once","max_tokens":1,'
MESSAGE = '"messages":[{"role":"user","content":"Hello"}],"max_tokens":1,'
OLLAMA_MESSAGE = '"stream":false,"messages":[{"role":"user","content":"Hello"}],'


def embedding_cases(name, rest=""):
    """What all endpoints read that embed. The last of many inputs does not fit the context, so that all become tokens and none is computed."""
    return {
        **ANY_BODY,
        **text_cases(lambda text: {name: text}),
        "texts": field(name, lambda n: json.dumps(["a" * (n // 1000)] * 1000 + ["a " * 600]), rest),
        "too many texts": field(name, lambda n: "[" + listed('"a"', n) + "]"),
        "tokens": field(name, lambda n: "[" + listed("17", n) + "]"),
        "lists of tokens": field(name, lambda n: "[" + ("[" + listed("17", min(n // 1000, 1500)) + "],") * 1000 + json.dumps([17] * 600) + "]", rest),
        "empty lists": field(name, lambda n: "[" + listed("[]", n) + "]"),
        "a long pooling": field("pooling", lambda n: '"' + "a" * n + '"', f'"{name}":"a",'),
    }


def sampling_cases(rest):
    """What both endpoints of generation read."""
    return {
        "stop texts": field("stop", lambda n: "[" + listed('"abc"', n) + "]", rest),
        "empty stop texts": field("stop", lambda n: "[" + listed('""', n) + "]", rest),
        "a long stop text": field("stop", lambda n: '"' + "a" * n + '"', rest),
        "stop tokens": field("stop_token_ids", lambda n: "[" + listed("17", n) + "]", rest),
        "stop tokens that are none": field("stop_token_ids", lambda n: "[" + listed("-1", n) + "]", rest),
        "biases": field("logit_bias", lambda n: "{" + ",".join(f'"{i}":1' for i in range(min(4096, n // 10))) + " " * n + "}", rest),
        "biases of no token": field("logit_bias", lambda n: "{" + numbered('"x{}":1', n) + "}", rest),
        "pairs of biases": field("logit_bias", lambda n: "[" + listed("[17,1]", n) + "]", rest),
        "banned tokens": field("logit_bias", lambda n: "[" + listed("[17,false]", n) + "]", rest),
        "breakers": field("dry_sequence_breakers", lambda n: "[" + listed('"a"', n) + "]", '"dry_multiplier":1,' + rest),
        "predictions": field("prediction", lambda n: '{"type":"content","content":"' + "a b " * (n // 4) + '"}', rest),
        "parts of a prediction": field("prediction", lambda n: '{"type":"content","content":[' + listed('{"type":"text","text":"a"}', n) + "]}", rest),
        "methods": field("speculative.type", lambda n: "[" + listed('"ngram"', n) + "]", rest),
        "members of response_format": field("response_format", lambda n: '{"type":"text",' + numbered('"k{}":0', n) + "}", rest),
        "members of structured_outputs": field("structured_outputs", lambda n: "{" + numbered('"k{}":0', n) + "}", rest),
        "members of stream_options": field("stream_options", lambda n: "{" + numbered('"include_usag{}":0', n) + "}", rest),
        "a long model": field("model", lambda n: '"' + "a" * n + '"', rest),
        "values of a foreign field": field("samplers", lambda n: "[" + listed('"top_k"', n) + "]", rest),
    }


CASES = {
    ("POST", COMPLETIONS): {
        **ANY_BODY,
        **text_cases(lambda text: {"prompt": text, "max_tokens": 1}),
        **sampling_cases(PROMPT),
        "prompts": field("prompt", lambda n: "[" + listed('"a"', n) + "]"),
        "tokens": field("prompt", lambda n: "[" + listed("17", n) + "]"),
        "prompts of tokens": field("prompt", lambda n: "[" + listed("[17]", n) + "]"),
    },
    ("POST", CHAT): {
        **ANY_BODY,
        **{"message: " + name: case
           for name, case in text_cases(lambda text: {"messages": [{"role": "user", "content": text}], "max_tokens": 1}).items()},
        **sampling_cases(MESSAGE),
        "messages": field("messages", lambda n: "[" + ",".join([json.dumps({"role": "user", "content": "a" * (n // 1000)})] * 1000) + "]"),
        "too many messages": field("messages", lambda n: "[" + listed('{"role":"user","content":""}', n) + "]"),
        "parts of a message": field("messages", lambda n: '[{"role":"user","content":[' + listed('{"type":"text","text":"a"}', n) + "]}]"),
        "other members of a message": field("messages", lambda n: '[{"role":"user","content":"a",' + numbered('"member{}":1', n) + "}]"),
        "members near to those of a message": field("messages", lambda n: '[{"role":"user","content":"a",' + numbered('"refusa{}":1', n) + "}]"),
        "white space around an answer": lambda n: json.dumps({"messages": [{"role": "assistant", "content": " " * n + "a" + " " * n}], "max_tokens": 1}),
        "thoughts": lambda n: json.dumps({"messages": [{"role": "assistant", "content": "<think></think>" * (n // 15)}], "max_tokens": 1}),
        "tools": field("tools", lambda n: "[" + listed("{}", n) + "]", MESSAGE + '"tool_choice":"none",'),
    },
    ("POST", "/v1/verify"): {
        **ANY_BODY,
        "drafts": field("drafts", lambda n: "[" + listed("17", n) + "]", PROMPT),
        "drafts that are none": field("drafts", lambda n: "[" + listed("[]", n) + "]", PROMPT),
        "drafts in a text": field("drafts", lambda n: '"' + "a b " * (n // 4) + '"', PROMPT),
        "tokens so far": field("generated", lambda n: "[" + listed("17", n) + "]", PROMPT + '"drafts":[],"temperature":0,'),
        "tokens so far that are none": field("generated", lambda n: "[" + listed("-1", n) + "]", PROMPT + '"drafts":[],'),
        "tokens so far, and stop texts": lambda n: json.dumps({"prompt": "a", "drafts": [], "temperature": 0, "max_tokens": 1000,
                                                               "generated": [17] * min(500, n // 100), "stop": ["a" * 1023 + "b"] * 16}),
    },
    ("POST", "/api/chat"): {
        **ANY_BODY,
        "stop texts": field("options", lambda n: '{"num_predict":1,"stop":[' + listed('"abc"', n) + "]}", OLLAMA_MESSAGE),
        "options": field("options", lambda n: "{" + numbered('"num_predic{}":0', n) + "}", OLLAMA_MESSAGE),
        "a long model": field("model", lambda n: '"' + "a" * n + '"', OLLAMA_MESSAGE),
        "too many messages": field("messages", lambda n: "[" + listed('{"role":"user","content":""}', n) + "]"),
        "other members of a message": field("messages", lambda n: '[{"role":"user","content":"a",' + numbered('"member{}":1', n) + "}]"),
        "calls": field("messages", lambda n: '[{"role":"assistant","tool_calls":[' + listed('{"function":{"name":"f","arguments":{}}}', n) + "]}]"),
        "members of arguments": field("messages", lambda n: '[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{' +
                                      numbered('"k{}":1', n) + "}}}]}]"),
        "results": field("messages", lambda n: '[{"role":"assistant","tool_calls":[' + listed('{"function":{"name":"f","arguments":{}}}', n // 2) + "]}," +
                         listed('{"role":"tool","tool_name":"f","content":"1"}', n // 2) + "]"),
        "members of a format": field("format", lambda n: "{" + numbered('"x-{}":1', n) + "}", OLLAMA_MESSAGE + '"options":{"num_predict":1},'),
    },
    ("POST", "/api/generate"): {
        **ANY_BODY,
        **text_cases(lambda text: {"prompt": text, "raw": True, "stream": False, "options": {"num_predict": 1}}),
        **{"message: " + name: case for name, case in text_cases(lambda text: {"prompt": text, "stream": False, "options": {"num_predict": 1}}).items()},
        "tokens to go on from": field("context", lambda n: "[" + listed("17", n) + "]", '"prompt":"a",'),
    },
    ("POST", "/api/show"): ANY_BODY,
    ("POST", "/completion"): {
        **ANY_BODY,
        **text_cases(lambda text: {"prompt": text, "n_predict": 1}),
        **sampling_cases('"prompt":"Once","n_predict":1,'),
        "prompts": field("prompt", lambda n: "[" + listed('"a"', n) + "]"),
        "tokens": field("prompt", lambda n: "[" + listed("17", n) + "]"),
        "tokens and texts": field("prompt", lambda n: "[" + listed('17,"a"', n) + "]"),
        "biases of texts": field("logit_bias", lambda n: "[" + listed('["a",1]', n) + "]", '"prompt":"Once","n_predict":1,'),
        "biases of a long text": field("logit_bias", lambda n: '[["' + "a b " * (n // 4) + '",1]]', '"prompt":"Once","n_predict":1,'),
        "members of a reply": field("response_fields", lambda n: '["' + "timings/" * (n // 8) + '"]', '"prompt":"Once","n_predict":1,'),
        "members of a schema": field("json_schema", lambda n: "{" + numbered('"x-{}":1', n) + "}", '"prompt":"Once","n_predict":1,'),
    },
    ("POST", "/infill"): {
        **ANY_BODY,
        **text_cases(lambda text: {"input_prefix": text, "input_suffix": text, "n_predict": 1}),
        "other files": field("input_extra", lambda n: "[" + listed('{"text":"a"}', n) + "]", '"input_prefix":"a","input_suffix":"b","n_predict":1,'),
        "a long file": field("input_extra", lambda n: '[{"text":"' + "a b " * (n // 4) + '"}]', '"input_prefix":"a","input_suffix":"b","n_predict":1,'),
    },
    ("POST", "/props"): ANY_BODY,
    ("POST", "/v1/embeddings"): embedding_cases("input"),
    ("POST", "/embeddings"): embedding_cases("content"),
    ("POST", "/embedding"): embedding_cases("content"),
    ("POST", "/api/embed"): embedding_cases("input", '"truncate":false,'),
    ("POST", "/api/embeddings"): {**ANY_BODY, **text_cases(lambda text: {"prompt": text})},
    ("POST", "/v1/rerank"): {
        **ANY_BODY,
        "a long query": field("query", lambda n: '"' + "a b " * (n // 4) + '"', '"documents":["a"],'),
        "documents": field("documents", lambda n: json.dumps(["a" * (n // 1000)] * 1000 + ["a " * 600]), '"return_documents":true,"query":"a",'),
        "too many documents": field("documents", lambda n: "[" + listed('"a"', n) + "]", '"query":"a",'),
        "members of a document": field("documents", lambda n: '[{"text":"a",' + numbered('"k{}":0', n) + "}]", '"query":"a",'),
        "texts": field("texts", lambda n: "[" + listed('{"a":0}', n) + "]", '"query":"a",'),
    },
    ("POST", "/v1/reranking"): ANY_BODY,
    ("POST", "/v1/messages"): {
        **ANY_BODY,
        "a long message": lambda n: json.dumps({"messages": [{"role": "user", "content": "a b " * (n // 4)}], "max_tokens": 1}),
        "blocks": field("messages", lambda n: '[{"role":"user","content":[' + listed('{"type":"text","text":"a"}', n) + "]}]", '"max_tokens":1,'),
        "uses of tools": field("messages", lambda n: '[{"role":"assistant","content":[' + listed('{"type":"tool_use","id":"a","name":"f","input":{}}', n) + "]}]",
                               '"max_tokens":1,'),
        "results of tools": field("messages", lambda n: '[{"role":"user","content":[' + listed('{"type":"tool_result","tool_use_id":"a"}', n) + "]}]",
                                  '"max_tokens":1,'),
        "blocks of the system": field("system", lambda n: "[" + listed('{"type":"text","text":"a"}', n) + "]", MESSAGE),
        "members of an input": field("messages", lambda n: '[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{' +
                                     numbered('"k{}":1', n) + "}}]}]", '"max_tokens":1,'),
        "tools": field("tools", lambda n: "[" + listed("{}", n) + "]", MESSAGE),
    },
    ("POST", "/v1/messages/count_tokens"): {
        **ANY_BODY, "a long message": lambda n: json.dumps({"messages": [{"role": "user", "content": "a b " * (n // 4)}]})},
    ("POST", "/v1/responses"): {
        **ANY_BODY,
        "a long input": lambda n: json.dumps({"input": "a b " * (n // 4), "max_output_tokens": 1}),
        "items": field("input", lambda n: "[" + listed('{"role":"user","content":"a"}', n) + "]", '"max_output_tokens":1,'),
        "calls": field("input", lambda n: "[" + listed('{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}', n) + "]", '"max_output_tokens":1,'),
        "results": field("input", lambda n: "[" + listed('{"type":"function_call_output","call_id":"a","output":"1"}', n) + "]", '"max_output_tokens":1,'),
        "metadata": field("metadata", lambda n: "{" + numbered('"k{}":"v"', n) + "}", '"input":"a","max_output_tokens":1,'),
        "items with ids": field("input", lambda n: "[" + numbered('{{"id":"a{}","role":"user","content":"a"}}', n) + "]", '"max_output_tokens":1,'),
        "items that are stored": field("input", lambda n: "[" + listed('{"type":"reasoning"}', n) + ',{"role":"user","content":"a"}]',
                                       '"max_output_tokens":1,'),
        "references": field("input", lambda n: "[" + listed('{"id":"msg_0123456789abcdef_0"}', n) + "]", '"max_output_tokens":1,'),
        "a long id": field("previous_response_id", lambda n: '"' + "a" * n + '"', '"input":"a","max_output_tokens":1,'),
        "tools": field("tools", lambda n: "[" + listed("{}", n) + "]", '"input":"a","max_output_tokens":1,'),
    },
    ("POST", "/apply-template"): {
        **ANY_BODY, "a long message": lambda n: json.dumps({"messages": [{"role": "user", "content": "a b " * (n // 4)}]})},
    ("POST", TOKENIZE): {
        **ANY_BODY,
        **text_cases(lambda text: {"content": text}),
        **{name + ", with pieces": case for name, case in text_cases(lambda text: {"content": text, "with_pieces": True}).items()},
        **{name + ", control tokens": case for name, case in text_cases(lambda text: {"content": text, "parse_special": True}).items()},
        "a message": lambda n: json.dumps({"messages": [{"role": "user", "content": "a b " * (n // 4)}], "with_pieces": True}),
    },
    ("POST", DETOKENIZE): {
        **ANY_BODY,
        "tokens": field("tokens", lambda n: "[" + listed("17", n) + "]"),
        "control tokens": field("tokens", lambda n: "[" + listed("1", n) + "]", '"special":true,'),
        "tokens that are none": field("tokens", lambda n: "[" + listed("-1", n) + "]"),
    },
}

# Requests without a body: their path and header.
ANY_HEAD = {
    "a long query": lambda path, n: (path + "?" + "a=b&" * (n // 4), {}),
    "a long field": lambda path, n: (path, {"X-Long": "a" * n}),
    "many fields": lambda path, n: (path, {f"X-{i}": "a" for i in range(n // 12)}),
    "many ranges": lambda path, n: (path, {"Range": "bytes=" + ",".join(["0-"] * (n // 3))}),
    "many origins": lambda path, n: (path, {"Origin": "https://a.example," * (n // 18)}),
}
LONG_PATHS = {
    "a long path": lambda path, n: (path.replace("*", "a" * n), {}),
    "codes in the path": lambda path, n: (path.replace("*", "%41" * (n // 3)), {}),
    "control characters in the path": lambda path, n: (path.replace("*", "%1b" * (n // 3)), {}),
}
STARS = {"/slots/*": "0?action=save"}
CASES["POST", "/slots/*"] = {**ANY_BODY, "a file's name": field("filename", lambda n: '"' + "a" * n + '"'),
                             "a salt": field("cache_salt", lambda n: '"' + "a" * n + '"', '"filename":"a",')}
for action in ("pull", "push", "create", "copy"):  # not served
    CASES["POST", f"/api/{action}"] = ANY_BODY
CASES["DELETE", "/api/delete"] = ANY_BODY
for known in ("/", "/index.html", "/health", "/metrics", "/version", "/v1/models", "/v1/speculation", "/props", "/slots", "/openapi.json", "/api/tags",
              "/api/ps", "/api/version"):
    CASES["GET", known] = ANY_HEAD
for path in ("/v1/models/*", "/v1/responses/*", "/v1/responses/*/input_items"):
    CASES["GET", path] = {**ANY_HEAD, **LONG_PATHS}
CASES["GET", "/v1/responses/*/input_items"].update({
    "a long query": lambda path, n: (path + "?after=" + "a" * n, {}), "codes in the query": lambda path, n: (path + "?after=" + "%41" * (n // 3), {}),
    "many fields of the query": lambda path, n: (path + "?" + "a=&" * (n // 3), {})})
CASES["POST", "/v1/responses/*/cancel"] = CASES["DELETE", "/v1/responses/*"] = ANY_BODY


def endpoints():
    """(method, path) of every route of the program."""
    rows = json.loads(run_program("help", "--json", check=True).stdout)["endpoints"]
    return {(row["method"], row["path"]) for row in rows}


def exponent(sizes, costs):
    """The slope of the line that fits log(cost) over log(size) best."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(cost, LEAST)) for cost in costs]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys)) / sum((a - x) ** 2 for a in xs)


class Meter:
    """CPU time and memory of another process."""

    def __init__(self, pid):
        self.pid, self.clock = pid, ((~pid) << 3) | 2  # as clock_getcpuclockid(3) has it

    def seconds(self):
        return time.clock_gettime(self.clock)

    def kib(self, name):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as file:
            return next(int(line.split()[1]) for line in file if line.startswith(name + ":"))

    def measure(self, work):
        """(seconds, bytes at the peak above what it began with)"""
        with open(f"/proc/{self.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak counts from here
        before, begun = self.kib("VmRSS"), self.seconds()
        work()
        return self.seconds() - begun, (self.kib("VmHWM") - before) << 10


def growth(meter, sizes, send):
    """The exponent of the time, and the (seconds, bytes) of each size. send(size) sends one request."""
    costs = [(math.inf, 0)] * len(sizes)
    for turn in range(REPEATS):
        for i, size in enumerate(sizes):
            seconds, peak = meter.measure(lambda size=size: send(size))
            costs[i] = min(costs[i][0], seconds), max(costs[i][1], peak)
        found = exponent(sizes, [seconds for seconds, _ in costs])
        if turn > 0 and found <= MOST:
            break
    return found, costs


def exchange(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    try:
        connection.request(method, path, body, {**JSON, **(headers or {})})
        response = connection.getresponse()
        while response.read(1 << 16):
            pass
        return response.status
    finally:
        connection.close()


class Endpoints(ServerCase):
    FLAGS = (*ONE_THREAD, "--spec-type", "ngram", "--parallel", "4", "--quiet")

    @classmethod
    def setUpClass(cls):
        cls.server = cls.start("--slot-save-path", str(new_folder(cls.addClassCleanup)), add_cleanup=cls.addClassCleanup)
        cls.meter = Meter(cls.server.process.pid)

    def test_every_endpoint_has_cases(self):
        self.assertEqual(endpoints(), set(CASES))

    def check(self, name, sizes, send, size_of):
        found, costs = growth(self.meter, sizes, send)
        shown = f"{name}: exponent {found:.2f}, {[f'{s * 1e3:.2f} ms, {b >> 10} KiB' for s, b in costs]}"
        if "--show" in sys.argv:
            print(shown, flush=True)
        with self.subTest(name):
            if TIMED:
                self.assertLessEqual(found, MOST, shown)
            for size, (_, peak) in zip(sizes, costs):
                self.assertLessEqual(peak, MOST_PER_BYTE * size_of(size) + MEMORY_OF_ANY, shown)

    def bodies(self, path):
        for name, make in CASES["POST", path].items():
            made = {n: body if isinstance(body, bytes) else body.encode() for n in BODY_SIZES for body in [make(n)]}
            place = path.replace("*", STARS.get(path, "x"))
            self.check(f"{path}: {name}", BODY_SIZES, lambda n: exchange(self.server.port, "POST", place, made[n]), lambda n: len(made[n]))

    def test_bodies(self):
        for method, path in CASES:
            if method == "POST" and not re.fullmatch("/api/(pull|push|create|copy)", path):
                self.bodies(path)

    def test_headers(self):
        for (method, path), cases in CASES.items():
            for name, make in cases.items() if method == "GET" else ():
                made = {n: make(path.replace("*", "x") if "*" in path and "path" not in name else path, n) for n in HEAD_SIZES}
                self.check(f"{path}: {name}", HEAD_SIZES,
                           lambda n: exchange(self.server.port, "GET", made[n][0], headers=made[n][1]), lambda n: n)

    def arrive(self, parts):
        """A request in many sends."""
        with self.server.socket() as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                sock.sendall(part)
            self.assertTrue(read_all(sock))

    def test_requests_that_arrive_in_pieces(self):
        head = (b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n")

        def chunks(n):
            return [head + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\n[\r\n" * n + b"0\r\n\r\n"]

        def bytes_of_body(n):
            return [head + b"Content-Length: %d\r\n\r\n" % n] + [b" "] * n

        def bytes_of_header(n):
            return [bytes([byte]) for byte in b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: " + b"a" * n + b"\r\n\r\n"]

        def requests(n):
            return [b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n" * n + b"GET /version HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"]

        for make, sizes in ((chunks, BODY_SIZES), (bytes_of_body, (1 << 10, 1 << 12, 1 << 14)), (bytes_of_header, (1 << 10, 1 << 12, 1 << 14)),
                            (requests, (1 << 6, 1 << 8, 1 << 10))):
            self.check(make.__name__, sizes, lambda n: self.arrive(make(n)), lambda n: n)


class Answers(ServerCase):
    """Answers that are much larger than their requests."""
    FLAGS, SHARED = (*ONE_THREAD, "--spec-type", "ngram", "--quiet"), ("--parallel", "8", "--max-body-bytes", str(32 << 20))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.meter = Meter(cls.server.process.pid)

    def peak(self, path, body):
        """(bytes of the answer, bytes at the peak above what the server had before)"""
        answers = []
        _, peak = self.meter.measure(lambda: answers.append(self.server.send("POST", path, body)))
        (status, headers, data), = answers
        self.assertEqual(status, 200, data)
        self.assertNotIn("Content-Length", headers)  # else it was too short for this test
        json.loads(data) if not body.get("stream") else self.assertTrue(data.endswith(b"data: [DONE]\n\n"))
        return len(data), peak

    def check(self, path, body):
        self.peak(path, {**body, "max_tokens": 8} if "max_tokens" in body else body)  # what stays in memory once it was needed
        size, peak = self.peak(path, body)
        self.assertGreater(size, 1 << 20, body)
        self.assertLess(peak, size / 2 + (2 << 20), (path, size, peak))

    def test_choices_with_log_probabilities(self):
        body = {"n": 8, "max_tokens": 150, "ignore_eos": True, "seed": 1}
        self.check(CHAT, {**body, "messages": [{"role": "user", "content": "Hello"}], "logprobs": True, "top_logprobs": 20})
        self.check(COMPLETIONS, {**body, "max_tokens": 600, "prompt": "Once", "logprobs": 20})

    def test_a_prompt_that_comes_back(self):
        body = {"prompt": ["Once upon a time there was a boy. " * 50] * 8, "max_tokens": 1, "echo": True, "logprobs": 20}
        self.check(COMPLETIONS, body)
        self.check(COMPLETIONS, {**body, "stream": True})

    def test_tokens_with_pieces(self):
        self.check(TOKENIZE, {"content": "a b c " * 40000, "with_pieces": True})
        text = "Once upon a time, caf\u00e9 \u65e5\u672c \U0001f642\n" * 5000
        tokens = self.server.post(TOKENIZE, {"content": text})["tokens"]
        self.assertEqual(self.server.post(DETOKENIZE, {"tokens": tokens})["content"], text)
        pieces = self.server.post(TOKENIZE, {"content": text, "with_pieces": True})["tokens"]
        self.assertEqual([piece["id"] for piece in pieces], tokens)

    def test_readers_that_take_nothing_hold_no_answers(self):
        n, size = 30, 300000
        request = request_bytes(TOKENIZE, {"content": "a" * size, "with_pieces": True})  # an answer of 8 MB
        before = self.meter.kib("VmRSS")
        socks = []
        try:
            for _ in range(n):
                socks.append(self.server.socket(receive_buffer=4096))
                socks[-1].sendall(request)
            for sock in socks:
                self.assertEqual(sock.recv(1), b"H")  # the answer has begun
            held = (self.meter.kib("VmRSS") - before) << 10
        finally:
            for sock in socks:
                sock.close()
        self.assertLess(held, n * 6 * size + MEMORY_OF_ANY)  # the tokens, 4 bytes each, and what was sent already

    def test_text_without_end_is_refused(self):
        pieces = self.server.post(TOKENIZE, {"content": " together something everything", "with_pieces": True})["tokens"]
        longest = max(pieces, key=lambda piece: len(piece["piece"]))
        n = (9 << 20) // len(longest["piece"])
        self.assertEqual(self.server.error(DETOKENIZE, {"tokens": [longest["id"]] * n})["param"], "tokens")


class Controls(unittest.TestCase):
    """A server whose work and memory grow with the square of the request is found out."""

    SERVER = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        n = len(self.rfile.read(int(self.headers["Content-Length"]))) >> 11
        total, held = 0, bytearray(n * n * 1024)
        for i in range(n):
            for j in range(n * 8): total += i ^ j
        held[::4096] = b"1" * len(held[::4096])
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""

    def test_quadratic_work_and_memory_are_found(self):
        with subprocess.Popen([sys.executable, "-c", self.SERVER], stdout=subprocess.PIPE, text=True) as process:
            try:
                port = int(process.stdout.readline())
                found, costs = growth(Meter(process.pid), BODY_SIZES, lambda n: exchange(port, "POST", "/", b"x" * n))
            finally:
                process.kill()
        if TIMED:
            self.assertGreater(found, 1.5, costs)
        self.assertGreater(costs[-1][1], 32 << 20, costs)

    def test_the_slope_is_that_of_the_growth(self):
        sizes = (1, 4, 16)
        for power in (0, 1, 2):
            self.assertAlmostEqual(exponent(sizes, [3.0 * size**power for size in sizes]), power)


if __name__ == "__main__":
    main()
