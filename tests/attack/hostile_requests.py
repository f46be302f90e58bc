# SPDX-License-Identifier: Apache-2.0
"""Requests that a server must survive: each is made from a seed and a number alone, so that the one that found a fault can be made again.

Nothing here knows the answers. What holds for every answer is in server_attack.py.
"""
import json
import random

ENDPOINTS = ("/v1/completions", "/v1/chat/completions", "/v1/verify", "/completions", "/chat/completions", "/tokenize", "/detokenize", "/v1/models",
             "/v1/models/other", "/health", "/metrics", "/version", "/speculation", "/", "/page.js", "/nowhere", "/../etc/passwd", "//", "/%2e%2e/",
             "/v1/responses/resp_0123456789abcdef", "/v1/responses//input_items?limit=-1&after=%", "/v1/responses/%00/input_items?order=%ff&=&&after")
READERS = (*ENDPOINTS[:7], "/completion", "/infill", "/v1/embeddings", "/v1/rerank", "/embedding", "/api/embed", "/v1/responses",
           "/v1/responses/resp_0/cancel", "/v1/messages", "/api/chat", "/api/generate", "/slots/0?action=save", "/slots/0?action=restore",
           "/slots/1?action=erase")  # paths that get bodies with other values and other bytes
BODIES = {
    "/v1/completions": {
        "model": "tales-9m-q8_0", "prompt": "Once upon a time", "max_tokens": 4, "temperature": 0.7, "seed": 3, "n": 1, "top_p": 0.9, "top_k": 5,
        "min_p": 0.1, "typical_p": 0.9, "eta": 0.001, "repetition_penalty": 1.1, "repeat_last_n": 8, "frequency_penalty": 0.1, "presence_penalty": 0.1,
        "dry_multiplier": 0.5, "dry_base": 1.7, "dry_allowed_length": 2, "dry_sequence_breakers": ["\n"], "stop": ["end"], "stop_token_ids": [3],
        "logit_bias": {"17": -1}, "logprobs": 2, "echo": False, "stream": False, "min_tokens": 1, "ignore_eos": True, "grammar": "root ::= [a-z]*",
        "prediction": "there was", "speculative": {"type": "ngram", "num_speculative_tokens": 3, "strategy": "sample-match"},
        "stream_options": {"include_usage": True}, "user": "a"},
    "/v1/chat/completions": {
        "messages": [{"role": "system", "content": "short"}, {"role": "user", "content": [{"type": "text", "text": "hello"}]}], "max_tokens": 4,
        "seed": 1, "logprobs": True, "top_logprobs": 2, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {
            "type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}}}, "stream": True, "tools": [], "n": 2},
    "/v1/verify": {
        "prompt": "Once upon a time", "max_tokens": 12, "temperature": 0.7, "seed": 3, "drafts": [17, 300, 5], "generated": [263, 931], "logprobs": 1,
        "stop": ["end"], "stop_token_ids": [3], "min_tokens": 3, "frequency_penalty": 0.1, "dry_multiplier": 0.5, "grammar": "root ::= [a-z ]*",
        "cache_salt": "a", "ignore_eos": True, "speculative": {"strategy": "sample-match"}},
    "/tokenize": {"content": "the end of it", "add_special": True, "parse_special": True, "with_pieces": True},
    "/detokenize": {"tokens": [1, 2, 300], "special": True},
    "/v1/messages": {
        "model": "tales-9m-q8_0", "max_tokens": 4, "system": [{"type": "text", "text": "short", "cache_control": {"type": "ephemeral"}}], "stream": True,
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}]},
                     {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "1"}]}]}],
        "tools": [{"name": "f", "input_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}], "tool_choice": {"type": "any"},
        "thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}, "stop_sequences": ["end"]},
    "/v1/responses": {
        "model": "tales-9m-q8_0", "max_output_tokens": 4, "instructions": "short", "stream": True, "parallel_tool_calls": False, "tool_choice": "required",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}, {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
                  {"type": "function_call_output", "call_id": "a", "output": "1"}, {"type": "reasoning", "summary": []}],
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}}],
        "text": {"format": {"type": "text"}, "verbosity": "low"}, "reasoning": {"effort": "low"}, "metadata": {"a": "b"}, "store": True, "previous_response_id": None},
    "/api/chat": {
        "model": "tales-9m-q8_0", "format": {"type": "object", "properties": {"a": {"type": "integer"}}}, "options": {"num_predict": 4, "seed": 1, "stop": ["end"]},
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
                     {"role": "tool", "tool_name": "f", "content": "1"}], "think": True, "keep_alive": "5m",
        "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]},
    "/api/generate": {"model": "tales-9m-q8_0", "prompt": "hi", "system": "short", "stream": False, "options": {"num_predict": 4}, "raw": False},
    "/completion": {
        "prompt": ["Once upon", 300, "a time"], "n_predict": 4, "temperature": 0.7, "top_k": 5, "samplers": ["top_k", "temperature"], "n_probs": 2,
        "stream": True,
        "logit_bias": [[17, -1], ["there was", False]], "stop": ["end"], "return_tokens": True, "json_schema": {"type": "integer"}, "cache_prompt": True,
        "response_fields": ["content", "timings/prompt_n"], "t_max_predict_ms": 500, "id_slot": 0},
    "/infill": {"input_prefix": "int a", "input_suffix": ";", "input_extra": [{"filename": "a.c", "text": "int b;"}], "prompt": " =", "n_predict": 4,
                "n_indent": 2,
                "samplers": ["top_k", "infill"], "top_k": 5},
    "/v1/embeddings": {"model": "tales-9m-q8_0", "input": ["the end", [17, 18], "of it"], "encoding_format": "base64", "dimensions": 8, "user": "me",
                       "pooling": "mean", "embd_normalize": 2, "add_special_tokens": True},
    "/embedding": {"content": ["the end", "of it"], "pooling": "none", "encoding_format": "float"},
    "/api/embed": {"model": "tales-9m-q8_0", "input": ["the end", "of it"], "truncate": True, "dimensions": 8, "options": {"num_ctx": 64}, "keep_alive": "5m"},
    "/v1/rerank": {"model": "tales-9m-q8_0", "query": "the end", "documents": ["of it", {"text": "of a day"}], "top_n": 1, "return_documents": True,
                   "pooling": "mean"},
    "/slots/0?action=save": {"filename": "one.bin", "cache_salt": "a"},
    "/slots/0?action=restore": {"filename": "../one.bin"},
    "/slots/1?action=erase": {},
    "/props": {"default_generation_settings": {}},
    "/apply-template": {"messages": [{"role": "user", "content": "hi"}], "tools": [{"type": "function", "function": {"name": "f"}}]},
}
NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "-0.0", "0.1e1", "1" + "0" * 400, "9" * 40, "-9223372036854775809",
           "18446744073709551616", "9223372036854775807", "4294967296", "2147483648", "-1", "0", "1.5", "1e308", "00", "+1", ".5", "5.", "0x10", "1_0")
TEXTS = ('""', '"\\ud800"', '"\\udc00\\ud800"', '"\\u0000"', '"\\u202e"', '"\\u001b[31m"', '"\\ud83d\\ude00"', '"\\u00"', '"\\x41"', '"\ttab"',
         '"\u202ereversed"', '"<|im_start|>system"', '"<s></s><unk>"', '"%s%n{}{0}"', '"' + "\u0301" * 500 + '"', '"' + "\\n" * 500 + '"', "'a'", '"a')
OTHERS = ("null", "true", "false", "[]", "{}", "[null]", "[[]]", '{"":""}', '{"a":{"a":{"a":{}}}}', "[1,2,3]", '["a",1,null]', "", ",", "undefined", "//",
          "[1,]", '{"a":1,}')


class Hostile:
    """What one connection sends. end: what the client does when it has sent all: "half" (closes its direction and reads all), "reset", "leave".
    refused: the only right answer is a refusal."""

    def __init__(self, name, data, end="half", refused=False):
        self.name, self.data, self.end, self.refused = name, data, end, refused


def head(method, path, *fields, version="1.1", host="localhost"):
    lines = [f"{method} {path} HTTP/{version}"] + ([f"Host: {host}"] if host is not None else []) + list(fields)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


def post(path, body, *fields, content_type="application/json"):
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    return head("POST", path, f"Content-Type: {content_type}", f"Content-Length: {len(data)}", *fields) + data


# ---- JSON ----------------------------------------------------------------------------------------------------------------------------------------

def any_value(draw):
    kind = draw.randrange(6)
    if kind == 0:
        return draw.choice(NUMBERS)
    if kind == 1:
        return draw.choice(TEXTS)
    if kind == 2:
        return json.dumps("".join(chr(draw.choice((draw.randrange(0x20, 0x7F), draw.randrange(0x80, 0xD800), draw.randrange(0x10000, 0x110000))))
                                  for _ in range(draw.randrange(200))), ensure_ascii=draw.random() < 0.5)
    if kind == 3:
        depth = draw.choice((3, 60, 600, 30_000))
        return draw.choice(("[", '{"a":')) * depth + draw.choice(("", "1")) + draw.choice(("]", "}", "")) * depth
    if kind == 4:
        part = draw.choice(("{}", "[]", "1", '"a"', "null", "1.5e3", '{"a":1}'))
        return "[" + ",".join([part] * draw.choice((10, 1000, 20_000))) + "]"
    return draw.choice(OTHERS)


def hostile_json(draw, path):
    """A good body in which some values are others; the text is put together by hand, so that it need not be JSON."""
    body = BODIES.get(path) or draw.choice(list(BODIES.values()))
    parts = []
    changed = set(draw.sample(sorted(body), min(len(body), draw.randint(1, 3))))
    for key, value in body.items():
        if key not in changed and draw.random() < 0.6 and key not in ("prompt", "messages", "max_tokens", "content", "tokens"):
            continue
        text = any_value(draw) if key in changed else json.dumps(value)
        parts.append(f"{json.dumps(key)}:{text}")
        if draw.random() < 0.03:
            parts.append(parts[-1])
    if draw.random() < 0.2:
        parts.append(f"{draw.choice(TEXTS)}:{any_value(draw)}")
    text = "{" + ",".join(parts) + "}"
    if draw.random() < 0.1:
        text = text[:draw.randrange(len(text))]
    if draw.random() < 0.05:
        text = any_value(draw)
    return text


def flipped(draw, data):
    data = bytearray(data)
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return bytes(data)


# ---- Chats ---------------------------------------------------------------------------------------------------------------------------------------

# A template with which each part of a conversation costs something: names are looked up, values written, n rounds made.
TEMPLATE = """{% set ns = namespace(text='') %}{% for a in range(n | default(0)) %}{% for b in range(n) %}{{ x[a] if x is mapping }}{% endfor %}{% endfor %}
{%- for key, value in (x | default({})).items() | sort if x is mapping %}{{ key ~ value }}{% endfor %}{{ tools | tojson if tools }}{{ x | tojson if x }}
{%- for m in messages %}{% set ns.text = ns.text ~ m.role %}{{ m.content | trim }}{{ m | tojson }}{% for w in m.content.split() %}{{ w }}{% endfor %}{% endfor %}"""
# Parts of names that lead from one state of FNV-1a (64 bits, a step for each character) to one other: n rows are 2^n names with one hash.
TWINS = (("\u66b1\u6d77\u8318\u86f0\U00040000", "\u7295\u76a5\u77a9\u57b0\U0006c9e7"),
         ("\u846f\u883f\u7970\u87af\U00040000", "\u6913\u64f2\u704f\u6cf4\U0005bc49"),
         ("\u66cf\u70f0\u769d\u82e8\U00040000", "\u7d87\u4e3a\u764a\u608b\U000705c0"),
         ("\u579a\u6b67\u4f8e\u8d91\U00040000", "\u8a10\u5d1b\u66f9\u89ab\U0007383b"),
         ("\u624e\u6842\u57ff\u530b\U00040000", "\u6a4f\u7eb1\u6852\u8a26\U00073dc6"),
         ("\u593e\u5087\u6789\u85b9\U00040000", "\u5b6c\u8449\u5b99\u8ac4\U0007b58f"),
         ("\u7f5c\u832b\u6c90\u5977\U00040000", "\u66cc\u7e69\u6e32\u66e3\U00059c38"),
         ("\u7d03\u78d9\u85da\u5f84\U00040000", "\u7f83\u74cd\u6c77\u566d\U0006b642"),
         ("\u65c1\u7785\u6d37\u5d0e\U00040000", "\u6601\u6f30\u6cd2\u7c24\U00073b20"),
         ("\u5bee\u87ff\u85eb\u730f\U00040000", "\u5162\u72b9\u66cd\u5f64\U000752d5"),
         ("\u8a96\u77ad\u880b\u7540\U00040000", "\u699f\u5d6c\u5d8e\u729b\U0004434e"),
         ("\u53e6\u72bb\u86fd\u8a39\U00040000", "\u593e\u82b3\u89f2\u6250\U0004ae40"))


def colliding(n):
    return {"".join(pair[i >> bit & 1] for bit, pair in enumerate(TWINS)): i for i in range(min(n, 1 << len(TWINS)))}


def nested(depth, part):
    return json.loads(part[0] * depth + "1" + part[1] * depth)


def hostile_object(draw):
    n = draw.choice((3, 300, 20_000))
    return draw.choice((lambda: {f"name {i}": i for i in range(n)}, lambda: colliding(n), lambda: {"x": nested(min(n, 90), ('{"a":', "}"))},
                        lambda: {"x": [{} for _ in range(n)]}, lambda: {"": None, "messages ": [], "loop": 1, "range": 2, "content": None, "role": []},
                        lambda: {"a" * n: "b" * n, "c": "\u202e<|im_end|>{{ 1 }}"}))()


def chat(draw):
    """Hostile variables, tools and messages."""
    messages = [{"role": draw.choice(("user", "assistant", "tool", "developer", "other")), "content": draw.choice(("", "a b " * draw.choice((1, 500)), None))}
                for _ in range(draw.choice((1, 5, 800)))]
    if draw.random() < 0.4:
        draw.choice(messages).update({**hostile_object(draw), "tool_calls": [{"function": {"name": "f", "arguments": json.dumps(hostile_object(draw))}}]})
    body = {"messages": messages, "max_tokens": 2}
    if draw.random() < 0.5:
        body["chat_template_kwargs"] = {"x": hostile_object(draw), "n": draw.choice((0, 30, 99_999))}
    if draw.random() < 0.3:
        body["chat_template_kwargs"] = hostile_object(draw)
    if draw.random() < 0.4:
        body["tools"] = [{"type": "function", "function": {"name": f"f{i}", "parameters": hostile_object(draw)}} for i in range(draw.choice((1, 3)))]
    path = draw.choice(("/v1/chat/completions", "/tokenize"))
    return Hostile(f"a chat: {path}", post(path, json.dumps(body)))


def foreign(draw):
    """A good request in all but one thing, for which it must be refused."""
    path = draw.choice(list(BODIES))
    body = json.dumps(BODIES[path])
    host = draw.choice(("evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "xn--localhost-", "local_host", "EVIL.example."))
    encoding = draw.choice(("gzip", "br", "deflate, gzip", "identity, gzip", "zstd", "x-" + "y" * 100, "GZIP"))
    coded = draw.choice(("/v1%2fmodels", "/v1%2Fchat%2fcompletions", "/%2fhealth", "/v1/%2e%2e%2fmetrics", "/tokenize%2f"))
    return draw.choice((lambda: Hostile(f"host {host}", head("GET", draw.choice(("/health", "/v1/models", "/metrics", "/")), host=host), refused=True),
                        lambda: Hostile(f"host {host}", head("POST", path, "Content-Type: application/json", f"Content-Length: {len(body)}", host=host)
                                        + body.encode(), refused=True),
                        lambda: Hostile(f"encoding {encoding}", post(path, body, f"Content-Encoding: {encoding}"), refused=True),
                        lambda: Hostile(f"path {coded}", head("GET", coded), refused=True),
                        lambda: Hostile(f"path {coded}", post(coded, body), refused=True)))()


# ---- Bombs ---------------------------------------------------------------------------------------------------------------------------------------

def grammar_bomb(draw):
    n = draw.choice((10, 200, 2000))
    return draw.choice((
        lambda: "root ::= " + "(" * n + '"a"' + ")" * n,
        lambda: "root ::= " + '("a"?)' * n,
        lambda: "root ::= [" + "".join(f"\\U{0x4E00 + 2 * i:08X}" for i in range(n)) + "]*",
        lambda: "root ::= " + " | ".join(["root"] * 8) + ' | "a"',
        lambda: "root ::= a" + "".join(f"\na{'b' * i} ::= a{'b' * (i + 1)} a{'b' * (i + 1)}" for i in range(20)) + "\na" + "b" * 20 + ' ::= "x"',
        lambda: 'root ::= "a"{' + str(10 ** draw.randint(1, 12)) + "}",
        lambda: 'root ::= ("a"{0,1000}){0,1000}',
        lambda: "root ::= " + "([a-z]* [a-z]*)*" * 12,
        lambda: 'root ::= ([a-z]{0,300} | [a-y]{0,300} | [a-x]{0,300})*',
        lambda: "root ::= " + " ".join("(" + " | ".join(f'"{chr(97 + i)}"' for i in range(26)) + ")?" for _ in range(min(n, 60))),
        lambda: "root ::= x", lambda: "root ::= \"" + "a" * n, lambda: "\0", lambda: "root ::= [^\\x00-\\U0010FFFF]",
    ))()


def schema_bomb(draw):
    n = draw.choice((5, 100, 1000))
    deep = {"type": "string"}
    for _ in range(min(n, 200)):
        deep = {"type": "object", "properties": {"a": deep}}
    return draw.choice((
        {"$ref": "#"}, {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, deep,
        {"enum": [str(i) * 3 for i in range(n)]}, {"allOf": [{"type": "object", "properties": {f"k{i}": {}}} for i in range(n)]},
        {"anyOf": [{"anyOf": [{"type": "integer", "minimum": i}]} for i in range(n)]},
        {"type": "array", "minItems": 10 ** draw.randint(1, 9), "items": {"type": "integer"}},
        {"type": "string", "minLength": 10 ** draw.randint(1, 9)}, {"type": "string", "pattern": "^(a+)+$"},
        {"type": "string", "pattern": "(((a{0,50}){0,50}){0,50}){0,50}"}, {"type": "string", "pattern": "[" + "a-c" * n + "]"},
        {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(n)}},
        {"type": "object", "properties": {f"k{i}": {"type": "string"} for i in range(min(n, 40))}, "required": [f"k{i}" for i in range(min(n, 40))]},
        {"type": "number", "minimum": -1e308, "maximum": 1e308, "multipleOf": 1e-9}, {"type": "integer", "minimum": -10 ** 18, "maximum": 10 ** 18},
        {"type": "object", "additionalProperties": {"$ref": "#"}}, {"type": "object", "patternProperties": {".*": {"$ref": "#"}}},
        {"not": {"not": {}}}, {"oneOf": [{"$ref": "#"}, {"$ref": "#"}]}, {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 8}}, "$ref": "#/$defs/a"},
        True, False, [], "a", {"type": ["string", "null", "nothing"]}, {"const": [[[[{"a": 1}]]]]}))


def bomb(draw):
    name, path, body = draw.choice((
        lambda: ("a bias for each token", "/v1/completions", {"prompt": "a", "max_tokens": 2, "logit_bias": {str(i): -100 for i in range(draw.choice((5000, 20_000)))}}),
        lambda: ("many choices", "/v1/completions", {"prompt": "a", "max_tokens": 2, "n": draw.choice((8, 64, 128, 10 ** 6))}),
        lambda: ("best_of", "/v1/completions", {"prompt": "a", "max_tokens": 2, "best_of": 10 ** 9}),
        lambda: ("all log-probabilities", "/v1/completions", {"prompt": "the end " * draw.choice((1, 20)), "max_tokens": 8, "n": 4, "logprobs": 20, "echo": True}),
        lambda: ("many prompts", "/v1/completions", {"prompt": ["a"] * draw.choice((100, 5000)), "max_tokens": 1}),
        lambda: ("tokens out of range", "/v1/completions", {"prompt": [draw.choice((-1, 10 ** 6, 2 ** 63, 3)) for _ in range(draw.choice((1, 1000)))], "max_tokens": 1}),
        lambda: ("a long prompt", "/v1/completions", {"prompt": "word " * draw.choice((500, 50_000)), "max_tokens": 1}),
        lambda: ("one long word", "/v1/completions", {"prompt": "a" * draw.choice((5_000, 100_000)), "max_tokens": 1}),
        lambda: ("combining characters", "/tokenize", {"content": "e\u0301\u0300" * draw.choice((100, 20_000)), "with_pieces": draw.random() < 0.5}),
        lambda: ("a long text in pieces", "/tokenize", {"content": "a b" * draw.choice((1000, 100_000)), "with_pieces": True}),
        lambda: ("many inputs", "/v1/embeddings", {"input": draw.choice((["a"], ["a b " * 100], [[17] * 500], [[]])) * draw.choice((200, 2048, 2049, 100_000)),
                                                   "dimensions": draw.choice((None, 1, 10 ** 9)), "encoding_format": draw.choice(("float", "base64"))}),
        lambda: ("all rows", "/embedding", {"content": ["a b " * 100] * draw.choice((10, 400, 2048)), "pooling": "none", "embd_normalize": draw.randint(-2, 65)}),
        lambda: ("many documents", "/v1/rerank", {"query": "a", draw.choice(("documents", "texts")): ["the end " * draw.choice((1, 50))] * draw.choice((100, 2047, 2048)),
                                                  "top_n": draw.choice((1, 10 ** 6)), "return_documents": True}),
        lambda: ("many tokens", "/detokenize", {"tokens": [draw.randrange(4000) for _ in range(draw.choice((100, 50_000)))]}),
        lambda: ("many stops", "/v1/completions", {"prompt": "a", "max_tokens": 2, "stop": ["x" * i for i in range(1, draw.choice((5, 500)))]}),
        lambda: ("long stops", "/v1/completions", {"prompt": "a", "max_tokens": 2, "stop": ["x" * 100_000]}),
        lambda: ("a long conversation", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}] * draw.choice((10, 5000)), "max_tokens": 1}),
        lambda: ("a grammar", "/v1/completions", {"prompt": "a", "max_tokens": 4, "grammar": grammar_bomb(draw), "stream": draw.random() < 0.3}),
        lambda: ("a grammar", "/v1/completions", {"prompt": "a", "max_tokens": 4, "n": 4, "grammar": grammar_bomb(draw)}),
        lambda: ("a schema", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "response_format": {
            "type": "json_schema", "json_schema": {"name": "a", "schema": schema_bomb(draw)}}}),
        lambda: ("tools", "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "max_tokens": 4, "stream": draw.random() < 0.5, "tools": [
            {"type": "function", "function": {"name": f"f{i}" * draw.choice((1, 60)), "parameters": schema_bomb(draw)}} for i in range(draw.choice((1, 30)))],
            "tool_choice": draw.choice(("auto", "required"))}),
        lambda: ("a pattern", "/v1/completions", {"prompt": "a", "max_tokens": 4, "regex": draw.choice(("(a*)*b", "(" * 500 + "a" + ")" * 500, "a{1000000}", "[^\\d\\D]", "\\p{Greek}+"))}),
        lambda: ("dry breakers", "/v1/completions", {"prompt": "a b " * 30, "max_tokens": 4, "dry_multiplier": 1, "dry_sequence_breakers": ["ab"[i % 2] * (i % 40 + 1) for i in range(1000)]}),
        lambda: ("empty objects", draw.choice(list(BODIES)), {"x": [{} for _ in range(draw.choice((1000, 20_000)))]}),
        lambda: ("many keys", draw.choice(list(BODIES)), {f"k{i}": 1 for i in range(draw.choice((100, 20_000)))}),
        lambda: ("a prediction", "/v1/completions", {"prompt": "a", "max_tokens": 3, "prediction": "a b c " * draw.choice((10, 20_000))}),
    ))()
    return Hostile(f"{name}: {path}", post(path, json.dumps(body)))


# ---- HTTP ----------------------------------------------------------------------------------------------------------------------------------------

def ranges(draw):
    parts = draw.choice(("0-", "0-0", "-1", "5-1", "0-18446744073709551615", ",".join(["0-"] * 2500), ",".join(f"{i}-{i + 5000}" for i in range(1000))))
    return f"Range: bytes={parts}"


def field(draw):
    return draw.choice((
        ranges(draw), "Host: other", "Host: a\r\nHost: b", "Content-Length: 5", "Content-Length: 5\r\nContent-Length: 6", "Content-Length: -1",
        "Content-Length: 99999999999999999999", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, chunked",
        "Connection: close", "Connection: keep-alive", "Connection: upgrade\r\nUpgrade: h2c", "Upgrade: websocket", "Expect: 100-continue",
        "Expect: 200-maybe", "Accept-Encoding: gzip, br, " + "x," * 200, "Accept-Encoding: *;q=0", "Authorization: Bearer " + "k" * draw.choice((1, 5000)),
        "Authorization: Basic " + "=" * 100, "Origin: http://evil.example", "Origin: null", "Cookie: " + "a=b;" * 500, "X-Request-Id: " + "i" * 3000,
        "X-Request-Id: \x1b[31mred", "Content-Type: text/plain", "Content-Type: application/json; charset=utf-16", "Content-Type: multipart/form-data",
        "Content-Encoding: gzip", "If-None-Match: *", "If-Modified-Since: never", "Sec-Fetch-Site: cross-site", "X: " + "y" * draw.choice((100, 70_000)),
        "\r\n".join(["A: b"] * draw.choice((50, 3000))), "bad field", ": empty", "A\0: b", "A : b", " folded: b", "\u00e9: \u00e9"))


def framed(draw):
    """A good request in a bad frame."""
    path = draw.choice(ENDPOINTS)
    body = json.dumps(BODIES.get(path, {"a": 1})).encode()
    method = draw.choice(("GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "get", "PO ST", "M" * 300))
    version = draw.choice(("1.1", "1.1", "1.1", "1.0", "0.9", "2.0", "1.01", "9"))
    fields = [field(draw) for _ in range(draw.randrange(4))]
    if draw.random() < 0.7:
        fields.append(f"Content-Length: {len(body) + draw.choice((0, 0, 0, 1, -1, 100))}")
        fields.append("Content-Type: application/json")
    draw.shuffle(fields)
    host = draw.choice(("localhost", "localhost", "localhost", None, "evil.example", "127.0.0.1:1", "", "a b", "[::1]"))
    if draw.random() < 0.1:
        path = draw.choice(("http://other/health", "*", "health", "/health?" + "q=1&" * 500, "/" + "a/" * 3000, "/%00", "/\xff", "/health#x", "/health;a=b"))
    return Hostile(f"framing: {method} {path[:40]}", head(method, path, *fields, version=version, host=host) + body)


def chunks(draw):
    body = json.dumps(BODIES["/v1/completions"]).encode()
    size = draw.choice((1, 7, 1000))
    parts = [body[i:i + size] for i in range(0, len(body), size)]
    data = b"".join(f"{len(part) + draw.choice((0,) * 200 + (1, -1)):x}{draw.choice(('', '', ';a=b', ';' + 'x' * 50))}\r\n".encode() + part + b"\r\n" for part in parts)
    data += draw.choice((b"0\r\n\r\n", b"0\r\nTrailer: a\r\n\r\n", b"", b"0\r\n" + b"T: a\r\n" * 2000 + b"\r\n", b"-1\r\n\r\n", b"0" * 100 + b"\r\n\r\n", b"0\n\n"))
    version = draw.choice(("1.1", "1.1", "1.0"))
    return Hostile("chunks", head("POST", "/v1/completions", "Content-Type: application/json", "Transfer-Encoding: chunked", version=version) + data)


def pipelined(draw):
    """Several requests at once, the last of which may be cut."""
    data = b"".join(draw.choice((lambda: head("GET", draw.choice(ENDPOINTS)), lambda: post("/tokenize", '{"content": "a"}'),
                                 lambda: post("/v1/completions", '{"prompt": "a", "max_tokens": 1}'), lambda: head("HEAD", "/"),
                                 lambda: post("/v1/completions", "{"), lambda: head("GET", "/health", ranges(draw))))()
                    for _ in range(draw.choice((2, 5, 40))))
    return Hostile("pipelined", data[:draw.randrange(len(data))] if draw.random() < 0.3 else data, draw.choice(("half", "half", "reset", "leave")))


def make(seed, number):
    draw = random.Random(f"{seed}/{number}")
    kind = draw.random()
    if draw.random() < 0.2:
        found = draw.choice((chat, chat, foreign))(draw)
    elif kind < 0.35:
        path = draw.choice(READERS)
        found = Hostile(f"JSON: {path}", post(path, hostile_json(draw, path)))
    elif kind < 0.55:
        found = bomb(draw)
    elif kind < 0.75:
        found = framed(draw)
    elif kind < 0.82:
        found = chunks(draw)
    elif kind < 0.88:
        found = pipelined(draw)
    elif kind < 0.93:
        path = draw.choice(READERS)
        found = Hostile(f"bytes: {path}", post(path, flipped(draw, json.dumps(BODIES.get(path, BODIES["/tokenize"])).encode())))
    elif kind < 0.97:
        found = framed(draw)
        found = Hostile("flipped " + found.name, flipped(draw, found.data))
    else:
        found = Hostile("noise", draw.randbytes(draw.choice((1, 100, 5000))))
    if draw.random() < 0.05:
        found.end = draw.choice(("reset", "leave"))
    return found
