#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`foretoken serve` as its clients meet it: endpoints, streams, errors, limits, metrics, ends."""
import contextlib
import json
import os
import re
import signal
import subprocess
import time

from server_case import DRAFT, MODELS, ONE_THREAD, PAIR, PROGRAM, SLOW, ServerCase, main, run_program
from server_testing import JSON, SECONDS, cached_tokens, events, joined, reasons, together

LONG = {"prompt": "Once upon a time", "max_tokens": 400, "ignore_eos": True, "temperature": 0, "speculative": {"enabled": False}}
LONGER = {**LONG, "n": 16}  # one after the other where one runs at a time

PARAMETERS = [
    ({"temperature": 0}, ["--temp", "0"]),
    ({"temperature": 0.8, "seed": 7}, ["--temp", "0.8", "-s", "7"]),
    ({"temperature": 1, "seed": 11, "top_k": 20, "top_p": 0.9}, ["--temp", "1", "-s", "11", "--top-k", "20", "--top-p", "0.9"]),
    ({"temperature": 1.3, "seed": 3, "min_p": 0.05, "repetition_penalty": 1.2},
     ["--temp", "1.3", "-s", "3", "--min-p", "0.05", "--repeat-penalty", "1.2"]),
    ({"temperature": 0.9, "seed": 5, "frequency_penalty": 0.5, "presence_penalty": 0.25, "typical_p": 0.9},
     ["--temp", "0.9", "-s", "5", "--frequency-penalty", "0.5", "--presence-penalty", "0.25", "--typical-p", "0.9"]),
    ({"temperature": 0.8, "seed": 2, "stop": [" the", "Lily"]}, ["--temp", "0.8", "-s", "2", "--stop", " the", "--stop", "Lily"]),
    ({"temperature": 0.7, "seed": 1, "logit_bias": {"261": -100, "414": 2}, "min_tokens": 20, "eta": 0.01},
     ["--temp", "0.7", "-s", "1", "--logit-bias", "261=-100", "--logit-bias", "414=2", "--min-tokens", "20", "--eta", "0.01"]),
    ({"temperature": 0.8, "seed": 9, "grammar": "root ::= [a-z ]+ \".\""}, ["--temp", "0.8", "-s", "9", "--grammar", "root ::= [a-z ]+ \".\""]),
]

# Body (merged into a good one), field that the error names, words of its message.
GOOD = {"prompt": "Once", "max_tokens": 2}
BAD_COMPLETIONS = [
    ({"prompt": None}, "prompt", "missing"), ({"prompt": 3}, "prompt", "not a prompt"), ({"prompt": []}, "prompt", "empty list"),
    ({"prompt": [1, "a"]}, "prompt", "not a token"), ({"prompt": [999999]}, "prompt", "999999 is not a token"),
    ({"prompt": ["a", {}]}, "prompt", "not a prompt"), ({"prompt": "word " * 600}, "prompt", "do not fit a context"),
    ({"model": 3}, "model", "not a text"),
    ({"max_tokens": -2}, "max_tokens", "-2 is not in"), ({"max_tokens": 1.5}, "max_tokens", "not a whole number"),
    ({"max_tokens": "9"}, "max_tokens", "not a whole number"), ({"max_completion_tokens": 3}, "max_completion_tokens", "max_tokens is given too"),
    ({"min_tokens": 3}, "min_tokens", "more than max_tokens"), ({"ignore_eos": 1}, "ignore_eos", "neither true nor false"),
    ({"temperature": 2.1}, "temperature", "2.1 is not in [0, 2]"), ({"temperature": "hot"}, "temperature", "not a number"),
    ({"temperature": True}, "temperature", "not a number"), ({"top_p": -0.1}, "top_p", "not in [0, 1]"), ({"top_k": -2}, "top_k", "-2 is not in"),
    ({"min_p": 2}, "min_p", "not in"), ({"typical_p": 2}, "typical_p", "not in"), ({"eta": 1}, "eta", "not in"),
    ({"repetition_penalty": 0}, "repetition_penalty", "not in"), ({"frequency_penalty": 3}, "frequency_penalty", "not in [-2, 2]"),
    ({"presence_penalty": -3}, "presence_penalty", "not in [-2, 2]"), ({"seed": 1.5}, "seed", "not a whole number"),
    ({"seed": "x"}, "seed", "not a whole number"), ({"stop": ["a"] * 17}, "stop", "17 texts are more than 16"),
    ({"stop": [3]}, "stop", "not a text"), ({"stop": "x" * 1025}, "stop", "at most 1024 bytes"),
    ({"stop_token_ids": [-1]}, "stop_token_ids", "not a token"), ({"stop_token_ids": 3}, "stop_token_ids", "not a list"),
    ({"logit_bias": {"99999": 1}}, "logit_bias", "\"99999\" is not a token"), ({"logit_bias": {"a": 1}}, "logit_bias", "not a token"),
    ({"logit_bias": {"3": 101}}, "logit_bias", "not in [-100, 100]"), ({"logit_bias": [1]}, "logit_bias", "not an object of ids"),
    ({"n": 0}, "n", "0 is not in"), ({"n": 100}, "n", "more than the"), ({"prompt": ["a"] * 100}, "prompt", "more than the"),
    ({"stream": "yes"}, "stream", "neither true nor false"), ({"stream_options": {"include_usage": True}}, "stream_options", "stream is not true"),
    ({"stream": True, "stream_options": {"usage": True}}, "stream_options.usage", "no such field"), ({"logprobs": 21}, "logprobs", "not in [0, 20]"),
    ({"logprobs": True}, "logprobs", "not a whole number"), ({"echo": True, "logprobs": 21}, "logprobs", "not in [0, 20]"),
    ({"best_of": 2}, "best_of", "use n"), ({"suffix": "end"}, "suffix", "only continued"),
    ({"response_format": {"type": "xml"}}, "response_format", "json_schema"), ({"grammar": "root ="}, "grammar", "line 1"),
    ({"prediction": "text"}, "prediction", "not an object"), ({"prediction": {"type": "x", "content": "a"}}, "prediction.type", "content"),
    ({"prediction": {"type": "content"}}, "prediction.content", "missing"), ({"speculative": 3}, "speculative", "not an object"),
    ({"speculative": {"type": "magic"}}, "speculative.type", "magic"), ({"speculative": {"type": "eagle"}}, "speculative.type", "eagle"),
    ({"speculative": {"num_speculative_tokens": 65}}, "speculative.num_speculative_tokens", "not in [0, 64]"),
    ({"speculative": {"p_min": 2}}, "speculative.p_min", "not in"), ({"speculative": {"n_min": 65}}, "speculative.n_min", "not in [0, 64]"),
    ({"speculative": {"n_min": 3, "num_speculative_tokens": 2}}, "speculative.n_min", "3 is more than the 2"),
    ({"speculative.n_min": 17}, "speculative.n_min", "17 is more than the 16"),
    ({"speculative": {"n_min": 2, "strategy": "residual"}}, "speculative.n_min", "would bias the text"),
    ({"speculative": {"strategy": "magic"}}, "speculative.strategy", "magic"), ({"speculative": {"strategy": 3}}, "speculative.strategy", "not a text"),
    ({"speculative": {"strategy": "synthetic"}}, "speculative.strategy", "synthetic"),
    ({"speculative": {"synthetic_acceptance_rate": 1}}, "speculative.synthetic_acceptance_rate", "no such field"),
    ({"speculative": {"strategy": "greedy"}, "temperature": 0.7}, "speculative.strategy", "use temperature 0"),
    ({"speculative": {"strategy": "residual", "type": "ngram"}}, "speculative.strategy", "ngram reports none; use sample-match"),
    ({"speculative.strategy": "block", "speculative": {"strategy": "residual"}}, "speculative.strategy", "another value"),
    ({"speculative": {"enabled": 1}}, "speculative.enabled", "neither"), ({"speculative": {"trace": True}}, "speculative.trace", "stream"),
    ({"speculative": {"tokens": 1}}, "speculative.tokens", "no such field"), ({"speculative.n_max": 99}, "speculative.n_max", "not in"),
    ({"speculative.n_max": 1, "speculative": {"num_speculative_tokens": 2}}, "speculative.n_max", "another value"),
    ({"max_token": 3}, "max_token", "the nearest one is max_tokens"), ({"messages": []}, "messages", "no such field"),
    ({"tools": []}, "tools", "no such field"),
]
MESSAGE = {"role": "user", "content": "Once"}
BAD_CHATS = [
    ({"messages": None}, "messages", "1 to 4096"), ({"messages": []}, "messages", "1 to 4096"), ({"messages": "hi"}, "messages", "1 to 4096"),
    ({"messages": ["hi"]}, "messages[0]", "not an object"), ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
    ({"messages": [MESSAGE, {"role": "robot", "content": "x"}]}, "messages[1].role", "'robot' is not a role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content", "not a text"),
    ({"logprobs": 1}, "logprobs", "neither true nor false"),
    ({"top_logprobs": 3}, "top_logprobs", "logprobs is not true"), ({"tools": "a"}, "tools", "not a list"),
    ({"prompt": "a"}, "prompt", "no such field"), ({"echo": True}, "echo", "do not repeat"),
    ({"messages": [{"role": "user", "content": "word " * 600}]}, "messages", "do not fit"),
]
BAD_BODIES = [(b"", "it is empty"), (b"{", "not valid JSON"), (b"[1]", "not an object"), (b'{"prompt": "\xff"}', "not valid JSON"),
              (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"), (b'{"prompt": "a", "prompt": "b"}', "given twice"), (b'{"prompt": "a"}\0', "NUL byte")]


class OneServer(ServerCase):
    """What changes nothing shares a server."""
    FLAGS, SHARED = ("-md", DRAFT, *ONE_THREAD), ("--parallel", "4", "--max-queue", "20", "--chat-template", "chatml")

    def generate(self, *flags):
        result = run_program("generate", *PAIR, *flags, "--json", "-q")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def assert_error(self, reply, status, param, words):
        got, headers, body = reply
        self.assertEqual(got, status, body)
        self.assertEqual(headers["Content-Type"], "application/json")
        error = json.loads(body)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertEqual(error["param"], param, error)
        self.assertIn(words, error["message"])
        self.assertRegex(error["message"], r"\A[^\n]+: [^\n]+\Z")
        return error

    def test_the_small_endpoints(self):
        models = self.server.get("/v1/models")
        self.assertEqual([model["id"] for model in models["data"]], ["tales-9m-q8_0"])
        self.assertEqual(self.server.get("/v1/models/tales-9m-q8_0"), models["data"][0])
        self.assertEqual(self.server.get("/v1/models/tales%2D9m-q8_0"), models["data"][0])
        self.assertIs(models["data"][0]["meta"]["chat_template"], True)
        for other in ("gpt-5", "tales-9m-q8_0/", "tales-9m", "a%20b/c"):
            error = self.assert_error(self.server.send("GET", "/v1/models/" + other), 404, "model", "use 'tales-9m-q8_0'")
            self.assertEqual(error["code"], "model_not_found")
        self.assert_error(self.server.send("GET", "/v1/models/"), 404, None, "no such path")
        self.assert_error(self.server.send("DELETE", "/v1/models/tales-9m-q8_0"), 405, None, "use GET")
        self.assertEqual(self.server.get("/health")["status"], "ok")
        self.assertRegex(self.server.get("/version")["version"], r"\A\d+\.\d+\.\d+\Z")
        for path in ("/", "/index.html"):
            status, headers, page = self.server.send("GET", path)
            self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
            self.assertIn(b"<!DOCTYPE html>", page)
        speculation = self.server.get("/v1/speculation")
        self.assertEqual((speculation["method"], speculation["lossless"]), ("standalone", True))
        self.assertLessEqual({"greedy", "residual", "sample-match", "block", "relaxed"}, set(speculation["strategies"]))
        self.assertLessEqual({"rounds", "drafted", "accepted"}, set(speculation["totals"]))

    def test_tokens_and_back(self):
        text = "Once upon a time, größer: 日本"
        tokens = self.server.post("/tokenize", {"content": text})["tokens"]
        self.assertEqual(self.server.post("/detokenize", {"tokens": tokens})["content"], text)
        pieces = self.server.post("/tokenize", {"content": "Once upon", "with_pieces": True})["tokens"]
        self.assertEqual([piece["piece"] for piece in pieces], [" Once", " upon"])
        self.assertEqual([piece["id"] for piece in pieces], self.server.post("/tokenize", {"content": "Once upon"})["tokens"])
        with_special = self.server.post("/tokenize", {"content": "Once", "add_special": True})["tokens"]
        self.assertEqual(with_special[1:], self.server.post("/tokenize", {"content": "Once"})["tokens"])
        self.assert_error(self.server.send("POST", "/tokenize", {"contents": "a"}), 400, "content", "missing")
        self.assert_error(self.server.send("POST", "/detokenize", {"tokens": [-1]}), 400, "tokens", "not a token")

    def test_characters_of_several_tokens_stream_whole(self):
        text = "é日本🙂\u0301\u200d🙂x"  # the vocabulary has bytes of most of them alone
        body = {"prompt": "Once", "max_tokens": 80, "grammar": f'root ::= "{text}"'}
        for speculative in ({}, {"enabled": False}, {"type": "ngram"}, {"num_speculative_tokens": 8}):
            with self.subTest(speculative=speculative):
                self.assertEqual(self.server.completion(**body, speculative=speculative)["choices"][0]["text"], text)
                self.assertEqual(joined(self.server.stream("/v1/completions", {**body, "speculative": speculative})), [text])

    def test_streamed_whole_and_generated_texts_are_one(self):
        for fields, flags in PARAMETERS:
            with self.subTest(fields=fields):
                body = {"prompt": "Once upon a time", "max_tokens": 48, **fields}
                whole = self.server.completion(**body)
                chunks = self.server.stream("/v1/completions", body)
                generated = self.generate("-p", "Once upon a time", "-n", "48", *flags)
                choice = whole["choices"][0]
                self.assertEqual(choice["text"], generated["text"])
                self.assertEqual(joined(chunks), [generated["text"]])
                self.assertEqual([choice["finish_reason"]], reasons(chunks))
                self.assertEqual(choice["finish_reason"], generated["finish_reason"])
                self.assertEqual(whole["usage"]["completion_tokens"], len(generated["token_ids"]))
                self.assertEqual(whole["usage"]["prompt_tokens"], len(generated["prompt_token_ids"]))

    def test_the_texts_of_other_drafters_are_the_same(self):
        body = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.8, "seed": 4}
        texts = {self.server.completion(**body, speculative=speculative)["choices"][0]["text"]
                 for speculative in ({}, {"enabled": False}, {"type": "ngram"}, {"type": ["standalone", "suffix"]}, {"type": "none"},
                                     {"num_speculative_tokens": 5}, {"p_min": 0.9}, {"num_speculative_tokens": 0})}
        self.assertEqual(len(texts), 1, texts)
        other = self.server.completion(**{**body, "seed": 5})["choices"][0]["text"]
        self.assertNotIn(other, texts)

    def test_settings_of_a_request_take_hold(self):
        body = {"prompt": "Once upon a time there was a little girl", "max_tokens": 40, "temperature": 0}
        off = self.server.completion(**body, speculative={"enabled": False})
        self.assertEqual((off["timings"]["draft_n"], off["speculation"]["method"], off["speculation"]["drafters"]), (0, "none", {}))
        dotted = self.server.completion(**body, **{"speculative.type": "ngram", "speculative.n_max": 3})
        self.assertEqual((dotted["speculation"]["method"], dotted["speculation"]["num_speculative_tokens"]), ("ngram", 3))
        self.assertLessEqual(set(dotted["speculation"]["drafters"]), {"ngram"})
        self.assertLessEqual(len(dotted["speculation"]["k_histogram"]), 4)
        self.assertEqual(off["choices"], dotted["choices"])

    def test_strategies_of_requests(self):
        body = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0.9, "seed": 4}
        speculation = self.server.get("/v1/speculation")
        choices = {row["name"]: row for row in speculation["choices"]["strategies"]}
        self.assertEqual(list(choices), speculation["strategies"])
        for strategy, row in choices.items():
            self.assertTrue(row["help"])
            temperature = 0 if strategy == "greedy" else 0.9
            reply = self.server.completion(**{**body, "temperature": temperature}, speculative={"strategy": strategy})
            lossless = strategy not in ("typical-acceptance", "logit-comparison", "relaxed")
            self.assertEqual(row["lossless"], lossless)
            self.assertEqual((reply["speculation"]["strategy"], reply["speculation"]["lossless"]), (strategy, lossless))
            last = self.server.stream("/v1/completions", {**body, "temperature": temperature, "speculative.strategy": strategy})[-1]
            self.assertEqual((last["speculation"]["strategy"], last["speculation"]["lossless"]), (strategy, lossless))
        plain = self.server.completion(**body)
        self.assertEqual(plain["speculation"]["strategy"], "sample-match")
        for same in ("auto", "sample-match"):
            self.assertEqual(self.server.completion(**body, speculative={"strategy": same})["choices"], plain["choices"])
        # A rule of the flag's, and its other names.
        self.assertEqual(self.server.completion(**body, speculative={"strategy": "rejection-sampling"})["speculation"]["strategy"], "residual")

    def test_methods_of_requests(self):
        methods = self.server.get("/v1/speculation")["choices"]["methods"]
        self.assertLessEqual({"ngram", "suffix", "prediction", "grammar", "portfolio", "none"}, {row["name"] for row in methods})
        for row in methods:
            reply = self.server.completion(prompt="Once upon a time", max_tokens=8, speculative={"type": row["name"]})
            self.assertEqual(reply["speculation"]["method"], row["name"])

    def test_drafts_may_have_a_least_length(self):
        # What the cost model drafts is its own affair; but no draft is shorter, and no text another.
        body = {"prompt": "Once upon a time", "max_tokens": 60, "temperature": 0}
        plain = self.server.completion(**body, speculative={"enabled": False})
        for speculative in ({"n_min": 3, "p_min": 0.5}, {"n_min": 0}, {"n_min": 1, "type": "ngram"}):
            reply = self.server.completion(**body, speculative=speculative)
            self.assertEqual(reply["choices"], plain["choices"])
            self.assertEqual(sum(reply["speculation"]["k_histogram"][1:speculative["n_min"]]), 0)

    def test_chats_follow_the_template(self):
        body = {"messages": [{"role": "system", "content": "Tell tales."}, {"role": "user", "content": [{"type": "text", "text": "A girl?"}]}],
                "max_completion_tokens": 24, "temperature": 0.8, "seed": 6}
        whole = self.server.post("/v1/chat/completions", body)
        generated = self.generate("-p", "A girl?", "--chat", "--system", "Tell tales.", "--chat-template", "chatml", "-n", "24", "--temp", "0.8",
                                  "-s", "6")
        self.assertEqual(whole["choices"][0]["message"], {"role": "assistant", "content": generated["text"], "refusal": None})
        chunks = self.server.stream("/v1/chat/completions", body)
        self.assertEqual(chunks[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual(joined(chunks), [generated["text"]])
        self.assertEqual({chunk["object"] for chunk in chunks}, {"chat.completion.chunk"})

    def test_templates_get_tools_calls_and_variables_as_they_were_written(self):
        program = ("{% for m in messages %}{{ m.role }} {{ m.content }} {{ m.tool_calls | tojson if m.tool_calls }}{{ m.tool_call_id }}\n{% endfor %}"
                   "{{ tools | tojson }} {{ enable_thinking }}")
        server = self.serve("--chat-template-kwargs", '{"enable_thinking": true}', template=program)
        arguments = {"z": 1, "a": [None, "\u00e9"]}
        call = {"type": "function", "id": "c", "function": {"name": "f", "arguments": json.dumps(arguments)}}
        body = {"messages": [MESSAGE, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "4", "tool_call_id": "c"}],
                "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}], "chat_template_kwargs": {"enable_thinking": False},
                "max_tokens": 4, "temperature": 0}
        call["function"]["arguments"] = arguments
        written = (f"user Once \nassistant None {json.dumps([call], ensure_ascii=False)}\ntool 4 c\n"
                   f"{json.dumps(body['tools'], ensure_ascii=False)} False")
        call["function"]["arguments"] = json.dumps(arguments)
        reply = server.post("/v1/chat/completions", body)
        tokens = server.post("/tokenize", {"content": written, "add_special": True})["tokens"]
        plain = server.completion(prompt=tokens, max_tokens=4, temperature=0)
        self.assertEqual(reply["usage"]["prompt_tokens"], len(tokens))
        self.assertEqual(reply["choices"][0]["message"]["content"], plain["choices"][0]["text"])
        self.assertIn("returned as text", reply["notices"][0])
        same = {key: body[key] for key in ("messages", "tools", "chat_template_kwargs")}
        self.assertEqual(server.post("/tokenize", same)["tokens"], tokens)
        del same["chat_template_kwargs"]  # then those of the flag count
        thinking = server.post("/tokenize", {"content": written.removesuffix("False") + "True", "add_special": True})["tokens"]
        self.assertEqual(server.post("/tokenize", same)["tokens"], thinking)

    def test_several_choices_differ_and_are_repeatable(self):
        body = {"prompt": "Once upon a time", "max_tokens": 16, "temperature": 1, "seed": 3}
        one = self.server.completion(**body)
        four = self.server.completion(**body, n=4)
        self.assertEqual([choice["index"] for choice in four["choices"]], [0, 1, 2, 3])
        self.assertEqual(four["choices"][0]["text"], one["choices"][0]["text"])
        self.assertGreater(len({choice["text"] for choice in four["choices"]}), 1)
        self.assertEqual(four["usage"]["prompt_tokens"], one["usage"]["prompt_tokens"])
        chunks = self.server.stream("/v1/completions", {**body, "n": 4})
        self.assertEqual(joined(chunks, 4), [choice["text"] for choice in four["choices"]])
        pair = self.server.completion(**{**body, "prompt": ["Once upon a time", "The dog"]}, n=2)
        self.assertEqual([choice["text"] for choice in pair["choices"][:2]], [choice["text"] for choice in four["choices"][:2]])
        self.assertEqual(len(pair["choices"]), 4)

    def test_prompts_as_tokens_and_echoes(self):
        tokens = self.server.post("/tokenize", {"content": "Once upon a time", "add_special": True})["tokens"]
        body = {"max_tokens": 8, "temperature": 0}
        text = self.server.completion(prompt="Once upon a time", **body)["choices"][0]["text"]
        self.assertEqual(self.server.completion(prompt=tokens, **body)["choices"][0]["text"], text)
        echoed = {"prompt": "Once upon a time", "echo": True, **body}
        self.assertEqual(self.server.completion(**echoed)["choices"][0]["text"], "Once upon a time" + text)
        self.assertEqual(joined(self.server.stream("/v1/completions", echoed)), ["Once upon a time" + text])
        self.assertEqual(self.server.completion(prompt="Once", max_tokens=0)["choices"][0]["text"], "")
        self.assertEqual(self.server.completion(prompt="Once", max_tokens=0)["choices"][0]["finish_reason"], "length")

    @staticmethod
    def joined_logprobs(chunks, index=0):
        """Those of a stream's choice."""
        parts = [choice["logprobs"] for chunk in chunks for choice in chunk["choices"] if choice["index"] == index and choice["logprobs"]]
        return {key: [value for part in parts for value in part[key]] for key in parts[0]}

    def test_logprobs_of_completions(self):
        body = {"prompt": "Once upon a time", "max_tokens": 12, "temperature": 0, "logprobs": 3}
        logprobs = self.server.completion(**body)["choices"][0]["logprobs"]
        expected = self.generate("-p", "Once upon a time", "-n", "12", "--temp", "0", "--logprobs", "3")["logprobs"]
        self.assertEqual(logprobs["token_logprobs"], [token["logprob"] for token in expected])
        self.assertEqual([sorted(top.values(), reverse=True) for top in logprobs["top_logprobs"]],
                         [[other["logprob"] for other in token["top"]] for token in expected])
        self.assertEqual("".join(logprobs["tokens"]), self.server.completion(**body)["choices"][0]["text"])
        self.assertEqual(self.joined_logprobs(self.server.stream("/v1/completions", body)), logprobs)

    def test_logprobs_of_echoed_prompts(self):
        prompt, more = "Once upon a time, there was", 6
        body = {"prompt": prompt, "max_tokens": more, "temperature": 0, "logprobs": 2}
        plain = self.server.completion(**body)["choices"][0]
        choice = self.server.completion(**body, echo=True)["choices"][0]
        logprobs = choice["logprobs"]
        n = len(self.server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"])
        self.assertEqual(choice["text"], prompt + plain["text"])
        self.assertEqual({len(values) for values in logprobs.values()}, {n + more})
        self.assertEqual((logprobs["token_logprobs"][0], logprobs["top_logprobs"][0]), (None, None))
        for key in ("tokens", "token_logprobs", "top_logprobs"):
            self.assertEqual(logprobs[key][n:], plain["logprobs"][key])
        offsets = logprobs["text_offset"]
        self.assertEqual(offsets[n:], [offset + len(prompt) for offset in plain["logprobs"]["text_offset"]])
        for i in range(1, n):  # all of the text, token by token
            self.assertEqual(prompt[offsets[i]:offsets[i + 1]], logprobs["tokens"][i].lstrip() if i == 1 else logprobs["tokens"][i])
            self.assertLessEqual(logprobs["token_logprobs"][i], max(logprobs["top_logprobs"][i].values()))
        # Generated token by token, the prompt has the same: each is computed from the tokens before it.
        tokens = self.server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
        for i in (1, n // 2, n - 1):
            one = self.server.completion(prompt=tokens[:i], max_tokens=1, temperature=0, logprobs=20, logit_bias={str(tokens[i]): 100})["choices"][0]
            self.assertEqual(one["logprobs"]["token_logprobs"], [logprobs["token_logprobs"][i]])
        for fields in ({}, {"max_tokens": 0}, {"prompt": tokens}, {"n": 2, "temperature": 0.9, "seed": 3}):
            whole = self.server.completion(**{**body, "echo": True, **fields})
            count = len(whole["choices"])
            chunks = self.server.stream("/v1/completions", {**body, "echo": True, **fields})
            self.assertEqual(joined(chunks, count), [one["text"] for one in whole["choices"]])
            for i, one in enumerate(whole["choices"]):
                self.assertEqual(self.joined_logprobs(chunks, i), one["logprobs"])
                self.assertEqual(one["logprobs"]["token_logprobs"][:n], logprobs["token_logprobs"][:n])
        scored = self.server.completion(**{**body, "max_tokens": 0}, echo=True)
        self.assertEqual((scored["choices"][0]["text"], scored["usage"]["completion_tokens"]), (prompt, 0))

    def test_logprobs_of_chats(self):
        body = {"messages": [MESSAGE], "max_tokens": 12, "temperature": 0, "logprobs": True, "top_logprobs": 2}
        content = self.server.post("/v1/chat/completions", body)["choices"][0]["logprobs"]["content"]
        self.assertEqual(len(content), 12)
        for token in content:
            self.assertEqual(len(token["top_logprobs"]), 2)
            self.assertEqual(bytes(token["bytes"]).decode(errors="replace"), token["token"])
            self.assertEqual(token["logprob"], token["top_logprobs"][0]["logprob"])  # greedy
        streamed = []
        for chunk in self.server.stream("/v1/chat/completions", body):
            streamed += (chunk["choices"][0]["logprobs"] or {"content": []})["content"]
        self.assertEqual(streamed, content)

    def test_usage_comes_last_where_it_is_asked_for(self):
        body = {"prompt": "Once upon a time", "max_tokens": 9, "temperature": 0}
        chunks = self.server.stream("/v1/completions", {**body, "stream_options": {"include_usage": True}})
        self.assertEqual(chunks[-1]["choices"], [])
        self.assertEqual({json.dumps(chunk["usage"]) for chunk in chunks[:-1]}, {"null"})
        usage = self.server.completion(**body)["usage"]
        for key in ("prompt_tokens", "completion_tokens", "total_tokens"):
            self.assertEqual(chunks[-1]["usage"][key], usage[key])
        self.assertNotIn("usage", self.server.stream("/v1/completions", body)[-1])
        last = chunks[-2]
        self.assertEqual(last["choices"][0]["finish_reason"], "length")
        self.assertEqual(last["timings"]["draft_n"], last["speculation"]["drafted"])

    def test_traces_show_each_round(self):
        body = {"prompt": "Once upon a time", "max_tokens": 30, "temperature": 0.8, "seed": 8}
        chunks = self.server.stream("/v1/completions", {**body, "speculative": {"trace": True}})
        rounds = [chunk["foretoken"] for chunk in chunks if "foretoken" in chunk]
        self.assertEqual([shown["round"] for shown in rounds], list(range(1, len(rounds) + 1)))
        tokens = [token for shown in rounds for token in shown["tokens"]]
        self.assertEqual("".join(token["text"] for token in tokens), joined(chunks)[0])
        stats = chunks[-1]["speculation"]
        for origin in ("accepted", "recovered", "bonus", "plain"):
            self.assertEqual(sum(token["origin"] == origin for token in tokens), stats[origin], origin)
        self.assertEqual(sum(shown["drafted"] for shown in rounds), stats["drafted"])
        self.assertEqual(sum(len(shown["rejected"]) for shown in rounds), stats["drafted"] - stats["accepted"])
        for shown in rounds:
            self.assertEqual(shown["drafter"] is None, shown["drafted"] == 0)

    def test_fields_without_effect_are_taken(self):
        body = {"prompt": "Once upon a time", "max_tokens": 5, "temperature": 0}
        with_more = {**body, "user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto", "best_of": 1, "stop": None,
                     "response_format": {"type": "text"}, "model": "tales-9m-q8_0"}
        self.assertEqual(self.server.completion(**with_more)["choices"], self.server.completion(**body)["choices"])

    def test_bad_completions_name_the_field(self):
        for fields, param, words in BAD_COMPLETIONS:
            with self.subTest(fields=json.dumps(fields)[:80]):
                self.assert_error(self.server.send("POST", "/v1/completions", {**GOOD, **fields}), 400, param, words)
        self.assertEqual(len(self.server.completion(**GOOD)["choices"]), 1)  # the control: the good one is good

    def test_bad_chats_name_the_field(self):
        good = {"messages": [MESSAGE], "max_tokens": 2}
        for fields, param, words in BAD_CHATS:
            with self.subTest(fields=json.dumps(fields)[:80]):
                self.assert_error(self.server.send("POST", "/v1/chat/completions", {**good, **fields}), 400, param, words)
        self.server.post("/v1/chat/completions", good)

    def test_bad_bodies_and_paths(self):
        for body, words in BAD_BODIES:
            with self.subTest(body=body[:40]):
                self.assert_error(self.server.send("POST", "/v1/completions", body), 400, None, words)
        marked = b"\xef\xbb\xbf" + json.dumps({"messages": [{**MESSAGE, "name": "me"}], "max_tokens": 2}).encode()
        self.assertEqual(self.server.send("POST", "/v1/chat/completions", marked)[0], 200)  # a byte order mark
        self.assert_error(self.server.send("GET", "/v1/nothing"), 404, None, "no such path")
        self.assert_error(self.server.send("GET", "/v1/completions"), 405, None, "use POST")
        self.assert_error(self.server.send("POST", "/v1/completions", GOOD, {"Content-Type": "multipart/form-data; boundary=x"}), 415, None, "form")
        refused = {**GOOD, "stream": True, "speculative": {"type": "eagle"}}
        self.assert_error(self.server.send("POST", "/v1/completions", refused), 400, "speculative.type", "eagle")
        refused = {**GOOD, "stream": True, "speculative": {"strategy": "residual", "type": "suffix"}}
        self.assert_error(self.server.send("POST", "/v1/completions", refused), 400, "speculative.strategy", "suffix reports none")

    def test_connections_serve_several_requests(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/completions", json.dumps({**GOOD, "temperature": 0}), JSON)
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            response.read()
        sock = connection.sock
        connection.request("GET", "/health")
        self.assertEqual(connection.getresponse().status, 200)
        self.assertIs(connection.sock, sock)
        connection.close()

    def test_what_is_no_http_is_refused(self):
        for data in (b"hello\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00" * 3 + b"\r\n\r\n"):
            reply = self.server.exchange(data)
            self.assertTrue(reply == b"" or b" 400 " in reply or b" 505 " in reply, reply)
        self.assertEqual(self.server.get("/health")["status"], "ok")

    def test_sixteen_clients_get_what_each_gets_alone(self):
        bodies = []
        for i in range(16):
            fields = PARAMETERS[i % len(PARAMETERS)][0]
            bodies.append({"prompt": ["Once upon a time", "The dog", "One day, Tom", "Lily saw"][i % 4], "max_tokens": 12 + 3 * i, **fields})
        alone = [self.server.completion(**body)["choices"] for body in bodies]

        def ask(i):
            if i % 3 == 0:
                return joined(self.server.stream("/v1/completions", bodies[i]))
            return [choice["text"] for choice in self.server.completion(**bodies[i])["choices"]]

        shared = together([lambda i=i: ask(i) for i in range(16)])
        self.assertEqual(shared, [[choice["text"] for choice in choices] for choices in alone])


class OwnServers(ServerCase):
    """What changes a server has one of its own."""
    FLAGS = ("-md", DRAFT, *ONE_THREAD)

    def test_keys_open(self):
        server = self.serve("--api-key", "one", "--api-key", "two")
        self.assertEqual(server.send("GET", "/health")[0], 200)
        self.assertEqual(server.send("GET", "/")[0], 200)
        for path in ("/v1/models", "/metrics", "/nothing"):
            for headers in ({}, {"Authorization": "Bearer thre"}, {"Authorization": "one"}, {"Authorization": "Bearer "}):
                self.assertEqual(server.error(path, status=401, method="GET", headers=headers)["code"], "invalid_api_key")
        for key in ("one", "two"):
            self.assertEqual(server.send("GET", "/v1/models", headers={"Authorization": "Bearer " + key})[0], 200)
        server.error("/v1/completions", GOOD, 401)

    def test_predictions_are_drafts(self):
        server = self.serve("--lookahead", "fixed")  # drafts whatever it costs
        body = {"prompt": "Once upon a time", "max_tokens": 40, "temperature": 0}
        text = server.completion(**body)["choices"][0]["text"]
        prediction = {"prediction": {"type": "content", "content": text}, "speculative": {"type": "prediction"}}
        reply = server.completion(**body, **prediction)
        self.assertEqual(reply["choices"][0]["text"], text)
        details = reply["usage"]["completion_tokens_details"]
        drafter = reply["speculation"]["drafters"]["prediction"]
        self.assertEqual(details["accepted_prediction_tokens"], drafter["accepted"])
        self.assertEqual(details["rejected_prediction_tokens"], drafter["drafted"] - drafter["accepted"])
        self.assertGreater(drafter["accepted"], 20)
        wrong = {"prediction": {"type": "content", "content": "9 8 7 6 5"}}
        self.assertEqual(server.completion(**body, **wrong)["choices"][0]["text"], text)

    def test_several_draft_models_have_names_that_requests_choose(self):
        head = os.path.join(MODELS, "tales-9m-eagle-q8_0.gguf")
        server = self.serve("-md", head, "--lookahead", "fixed")
        listed = server.get("/v1/speculation")
        self.assertEqual(listed["method"], "standalone,eagle")
        self.assertEqual([(draft["name"], draft["method"]) for draft in listed["draft_models"]],
                         [("standalone", "standalone"), ("eagle", "eagle")])
        self.assertEqual([draft["name"] for draft in server.get("/v1/models")["data"][0]["drafts"]], ["standalone", "eagle"])
        body = {"prompt": "Once upon a time", "max_tokens": 30, "temperature": 0}
        texts = set()
        for name, drafter in (("eagle", "eagle"), ("standalone:tales-1m-draft-q8_0", "standalone"), ("standalone", "standalone")):
            reply = server.completion(**body, speculative={"type": name})
            self.assertEqual(list(reply["speculation"]["drafters"]), [drafter])
            texts.add(reply["choices"][0]["text"])
        texts.add(server.completion(**body, speculative={"type": "none"})["choices"][0]["text"])
        self.assertEqual(len(texts), 1)
        self.assertIn("standalone:absent", server.error("/v1/completions", {**body, "speculative": {"type": "standalone:absent"}})["message"])

    def test_a_copy_of_the_model_is_a_drafter_like_others(self):
        server = self.serve("--lookahead", "fixed", "--spec-type", "self", "--self-draft", "Q4_0", common=ONE_THREAD)
        listed = server.get("/v1/speculation")
        self.assertEqual(listed["method"], "self")
        self.assertEqual((listed["copy"]["state"], listed["copy"]["type"]), ("ready", "Q4_0"))  # it was made before
        self.assertEqual(listed["copy"]["made_bytes"], listed["copy"]["bytes"])
        self.assertIn("self", [row["name"] for row in listed["choices"]["methods"]])
        for drafts in (listed["draft_models"], server.get("/v1/models")["data"][0]["drafts"]):
            self.assertEqual([(draft["name"], draft["method"], draft["type"]) for draft in drafts], [("self", "self", "Q4_0")])
        reply = server.completion(prompt="Once upon a time", max_tokens=30, temperature=0)
        stats = reply["speculation"]
        counts = stats["drafters"]["self"]
        self.assertEqual((counts["drafted"], counts["accepted"]), (stats["drafted"], stats["accepted"]))
        self.assertGreater(counts["accepted"], 0)
        self.assertEqual(server.get("/v1/speculation")["drafters"], {"self": counts})
        for name, value in (("rounds", counts["rounds"]), ("draft_tokens", counts["drafted"]), ("accepted_tokens", counts["accepted"])):
            self.assertEqual(server.metric(f"spec_decode_drafter_{name}_total", drafter="self"), value)

    def test_a_server_of_one_rule_takes_no_other(self):
        server = self.serve("--synthetic-acceptance-rate", "0.5", "--lookahead", "fixed")
        self.assertEqual(server.get("/v1/speculation")["strategies"], [])
        self.assertEqual(server.error("/v1/completions", {**GOOD, "speculative": {"strategy": "residual"}})["param"], "speculative.strategy")
        self.assertIs(server.completion(**GOOD)["speculation"]["lossless"], False)

    def test_requests_of_several_rules_get_what_each_gets_alone(self):
        # With a draft length that follows no clock; the seed's text, whatever the others' rules.
        server = self.serve("--parallel", "6", "--max-queue", "20", "--lookahead", "fixed")
        rules = ["auto", "greedy", "residual", "sample-match", "block", "target-probability", "typical-acceptance", "relaxed", "logit-comparison"]
        bodies = [{"prompt": "Once upon a time", "max_tokens": 20 + i, "temperature": 0 if rule == "greedy" else 0.9, "seed": i,
                   "speculative": {"strategy": rule}} for i, rule in enumerate(rules)]
        alone = [server.completion(**body)["choices"] for body in bodies]
        shared = together([lambda body=body: server.completion(**body)["choices"] for body in bodies])
        self.assertEqual(shared, alone)

    def test_bodies_have_a_limit(self):
        server = self.serve("--max-body-bytes", "2000")
        body = json.dumps({**GOOD, "user": "x" * 3000}).encode()
        self.assertEqual(server.error("/v1/completions", body, 413)["code"], "request_too_large")
        connection = server.connect()
        connection.request("POST", "/v1/completions", iter([body[:1500], body[1500:]]), encode_chunked=True,
                           headers={"Transfer-Encoding": "chunked", **JSON})
        self.assertEqual(connection.getresponse().status, 413)
        connection.close()
        self.assertEqual(server.completion(**GOOD, user="x" * 1500)["usage"]["completion_tokens"], 2)

    def test_metrics_are_what_clients_saw(self):
        server = self.serve("--parallel", "3", "--max-queue", "20", "--lookahead", "fixed", "--use-relaxed-acceptance-for-thinking",
                            "--thinking-begin", "time", "--thinking-end", "zebra")
        bodies = [{"prompt": "Once upon a time", "max_tokens": 10 + i, "temperature": 0.8, "seed": i, "n": 1 + i % 2} for i in range(8)]
        bodies[3]["speculative"] = {"enabled": False}
        replies = together([lambda body=body: server.completion(**body) for body in bodies])
        chunks = server.stream("/v1/completions", {**bodies[0], "stream_options": {"include_usage": True}})
        usages = [reply["usage"] for reply in replies] + [chunks[-1]["usage"]]
        stats = [reply["speculation"] for reply in replies] + [chunks[-2]["speculation"]]
        seen = server.metrics()

        def total(name, **labels):
            return sum(value for (key, found), value in seen.items() if key == name and frozenset(labels.items()) <= found)

        self.assertEqual(total("prompt_tokens_total"), sum(usage["prompt_tokens"] for usage in usages))
        self.assertEqual(total("generation_tokens_total"), sum(usage["completion_tokens"] for usage in usages))
        self.assertEqual(total("request_success_total"), sum(body["n"] for body in bodies) + bodies[0]["n"])
        for name, key in (("num_drafts", "draft_rounds"), ("num_draft_tokens", "drafted"), ("num_accepted_tokens", "accepted"),
                          ("num_relaxed_tokens", "accepted_relaxed")):
            self.assertGreater(sum(stat[key] for stat in stats), 0, key)
            self.assertEqual(total(f"spec_decode_{name}_total"), sum(stat[key] for stat in stats), name)
        for name, key in (("draft", "drafted"), ("judged", "judged"), ("accepted", "accepted")):
            for position in range(8):
                self.assertEqual(total(f"spec_decode_num_{name}_tokens_per_pos_total", position=str(position)),
                                 sum((stat[f"{key}_per_position"] + [0] * 8)[position] for stat in stats), (name, position))
        for kind in ("recovered", "bonus", "plain"):
            self.assertEqual(total("spec_decode_num_target_tokens_total", kind=kind), sum(stat[kind] for stat in stats))
        self.assertEqual(total("spec_decode_num_wasted_tokens_total"), sum(stat["drafted"] - stat["accepted"] for stat in stats))
        self.assertEqual(total("spec_decode_drafter_draft_tokens_total"), sum(stat["drafted"] for stat in stats))
        self.assertEqual(total("time_to_first_token_seconds_count"), total("request_success_total"))
        self.assertEqual(total("inter_token_latency_seconds_count"), total("generation_tokens_total") - total("request_success_total"))
        self.assertEqual(total("num_requests_running"), 0)
        totals = server.get("/v1/speculation")["totals"]
        self.assertEqual(totals["drafted"], sum(stat["drafted"] for stat in stats))

    def test_metrics_are_prometheus_text(self):
        server = self.serve()
        server.completion(**GOOD)
        status, headers, body = server.send("GET", "/metrics")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"))
        types = dict(re.findall(r"# TYPE (\S+) (\S+)", body.decode()))
        for name, kind in types.items():
            self.assertTrue(name.startswith("foretoken:"), name)
            self.assertEqual(name.endswith("_total"), kind == "counter", name)

    def test_a_client_that_goes_cancels_its_request(self):
        server = self.serve(**SLOW)
        for stream in (True, False):
            with self.subTest(stream=stream):
                before = server.metric("generation_tokens_total")
                connection = server.ask("/v1/completions", {**LONGER, "stream": stream})
                if stream:
                    response = connection.getresponse()
                    response.read1(10)
                    response.close()
                else:
                    server.await_metric("num_requests_running", 1)
                connection.close()
                server.await_metric("request_success_total", 1 + (not stream), finished_reason="abort")
                self.assertLess(server.metric("generation_tokens_total") - before, 400)
                server.await_idle()
        self.assertEqual(server.log_text().count("client_gone"), 2)

    def test_a_waiting_client_that_goes_leaves_the_queue(self):
        server = self.serve("--parallel", "1", "--max-queue", "6", **SLOW)
        first, _ = server.begin("/v1/completions", {**LONG, "stream": True, "n": 6})
        second = server.ask("/v1/completions", LONG)
        server.await_metric("num_requests_waiting", 6)
        status, headers, body = server.send("POST", "/v1/completions", GOOD)
        self.assertEqual((status, json.loads(body)["error"]["code"]), (429, "queue_full"))
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        second.close()
        server.await_log("error=client_gone")
        third = server.ask("/v1/completions", GOOD)  # there is room again
        server.await_metric("num_requests_waiting", 6)
        first.close()
        self.assertEqual(third.getresponse().status, 200)
        third.close()

    def test_long_requests_time_out(self):
        server = self.serve("--request-timeout-s", "1", **SLOW)
        status, headers, body = server.send("POST", "/v1/completions", LONGER)
        self.assertEqual((status, json.loads(body)["error"]["code"]), (503, "request_timeout"))
        self.assertIn("Retry-After", headers)
        chunks = server.stream("/v1/completions", LONGER)
        self.assertEqual(chunks[-1]["error"]["code"], "request_timeout")
        server.await_idle()
        self.assertEqual(server.send("POST", "/v1/completions", GOOD)[0], 200)

    def check_that_accepted_requests_are_answered(self, server, end):
        body = {**LONG, "max_tokens": 200}
        replies = []

        def ask():
            replies.append(server.completion(**body))

        def drain():
            server.await_accepted(3)
            end()
            while server.send("GET", "/health")[0] != 503:
                time.sleep(0.001)
            status, headers, reply = server.send("POST", "/v1/completions", GOOD)
            self.assertEqual((status, json.loads(reply)["error"]["code"]), (503, "draining"))
            self.assertIn("Retry-After", headers)

        together([ask, ask, ask, drain])
        self.assertEqual([len(reply["choices"]) for reply in replies], [1, 1, 1])
        self.assertEqual({reply["usage"]["completion_tokens"] for reply in replies}, {200})
        self.assertEqual(server.wait(), 0)

    def test_sigterm_answers_what_was_accepted(self):
        server = self.serve("--parallel", "1", "--max-queue", "4", **SLOW)
        self.check_that_accepted_requests_are_answered(server, lambda: server.process.send_signal(signal.SIGTERM))

    def test_the_end_of_its_input_answers_what_was_accepted(self):
        server = self.serve("--parallel", "1", "--max-queue", "4", "--exit-with-stdin", stdin=subprocess.PIPE, **SLOW)
        server.process.stdin.write("what nobody reads\n" * 10_000)  # more than a pipe holds
        server.process.stdin.flush()
        self.check_that_accepted_requests_are_answered(server, server.process.stdin.close)

    def test_the_end_of_its_input_is_no_second_signal(self):
        server = self.serve("--parallel", "1", "--exit-with-stdin", stdin=subprocess.PIPE, **SLOW)
        connection, response = server.begin("/v1/completions", {**LONG, "stream": True})
        server.process.send_signal(signal.SIGTERM)
        while server.send("GET", "/health")[0] != 503:
            time.sleep(0.001)
        server.process.stdin.close()
        self.assertEqual(reasons(events(response.read())), ["length"])
        connection.close()
        self.assertEqual(server.wait(), 0)

    def test_its_input_may_end_before_it_listens(self):
        flags = ("--port", "0", "--exit-with-stdin")
        result = run_program("serve", *PAIR, *flags, stdin=None, input="")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_its_input_may_end_while_it_loads(self):
        read_end, write_end = os.pipe()
        os.set_blocking(write_end, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write_end, bytes(4096))
        os.set_blocking(write_end, True)
        # The pipe is full and nobody reads it: the line about the key, which comes before it listens, is never written.
        command = [PROGRAM, "serve", *PAIR, "--port", "0", "--api-key", "k", "--exit-with-stdin"]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end)
        self.addCleanup(lambda: (process.kill(), process.wait(), os.close(read_end), os.close(write_end)))
        process.stdin.close()
        self.assertEqual(process.wait(SECONDS), 0)
        self.assertEqual(process.stdout.read(), b"")
        process.stdout.close()

    def test_an_input_that_is_not_asked_for_may_end(self):
        server = self.serve(stdin=subprocess.PIPE)
        server.process.stdin.close()
        server.completion(**GOOD)
        self.assertIsNone(server.process.poll())

    def test_a_closed_input_cannot_end(self):
        command = ["sh", "-c", 'exec "$@" <&-', "sh", PROGRAM, "serve", *PAIR, "--exit-with-stdin"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        self.assertEqual(result.returncode, 2)
        self.assertRegex(result.stderr, r"\Aforetoken: --exit-with-stdin: standard input is closed; give it a pipe, .*\n\Z")

    def test_a_second_interrupt_stops(self):
        server = self.serve("--parallel", "1", **SLOW)
        connection, response = server.begin("/v1/completions", {**LONGER, "stream": True})
        waiting = server.ask("/v1/completions", LONGER)
        server.await_metric("num_requests_waiting", 31)
        server.process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        self.assertIsNone(server.process.poll())
        server.process.send_signal(signal.SIGINT)
        self.assertEqual(server.wait(), 130)
        self.assertEqual(events(response.read())[-1]["error"]["code"], "stopped")
        self.assertEqual(waiting.getresponse().status, 503)
        connection.close()
        waiting.close()

    def test_logs_have_a_line_for_each_request_and_no_texts(self):
        server = self.serve()
        server.completion(**{**GOOD, "prompt": "secret words"})
        server.stream("/v1/completions", {**GOOD, "prompt": "secret words"})
        server.send("POST", "/v1/completions", {**GOOD, "prompt": "secret words", "n": 0})
        server.send("GET", "/nothing")
        server.end()
        lines = server.log_text().splitlines()
        self.assertEqual(len(lines), 4, lines)
        for line in lines:
            self.assertRegex(line, r'\Atime=\S+Z( \w+=([\w./:,+@-]+|"[^"]*"))+\Z')
        self.assertNotIn("secret", "\n".join(lines))
        self.assertEqual(sum("completion_tokens=2" in line for line in lines), 2)
        for status, n in ((200, 2), (400, 1), (404, 1)):
            self.assertEqual(sum(line.endswith(f"status={status}") for line in lines), n, lines)

    def test_logs_are_text_whatever_clients_send(self):
        server = self.serve()
        server.exchange(b"GET /a%ff%1b[31mb HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        server.end()
        self.assertIn("\N{REPLACEMENT CHARACTER}\\u001b[31mb", server.log_text())  # which is strict

    def test_prompts_are_logged_where_that_is_asked_for(self):
        server = self.serve("--log-prompts")
        server.completion(**{**GOOD, "prompt": "secret \"words\"\n"})
        server.end()
        self.assertIn(r'prompt="secret \"words\"\n"', server.log_text())

    def test_a_taken_port_is_an_error_of_one_line(self):
        server = self.serve()
        result = run_program("serve", *PAIR, "--port", str(server.port))
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"\Aforetoken: [^\n]+: [^\n]+; [^\n]+\n\Z")


class EngineMetrics(ServerCase):
    """What the engine counts of its passes and rounds, beside what the replies say."""
    FLAGS, FIXED = ("-md", DRAFT, *ONE_THREAD), ("--lookahead", "fixed", "--num-speculative-tokens", "4")

    @staticmethod
    def by(seen, name, label):
        return {dict(labels)[label]: value for (key, labels), value in seen.items() if key == f"spec_decode_{name}"}

    def test_nothing_is_counted_before_the_first_request(self):
        server = self.serve()
        seen = server.metrics()
        self.assertEqual(seen["spec_decode_rows_used_total", frozenset()], 0)
        self.assertEqual(seen["spec_decode_chosen_num_tokens_count", frozenset()], 0)
        for name, label in (("verify_passes_total", "rows"), ("fallback_rounds_total", "reason"), ("overhead_seconds_total", "part")):
            self.assertEqual(self.by(seen, name, label), {}, name)

    def test_rounds_and_rows_are_those_of_the_replies(self):
        server = self.serve(*self.FIXED, "--parallel", "3", "--max-queue", "20")
        bodies = [{"prompt": "Once upon a time", "max_tokens": 20 + i, "temperature": 0.8, "seed": i, "n": 1 + i % 2,
                   "speculative": {"enabled": i != 4}} for i in range(8)]
        replies = together([lambda body=body: server.completion(**body) for body in bodies])
        stats = [reply["speculation"] for reply in replies]
        seen = server.metrics()
        rounds, drafted = (sum(stat[key] for stat in stats) for key in ("rounds", "drafted"))
        self.assertEqual(server.metric("spec_decode_rows_used_total"), rounds + drafted)
        plain = self.by(seen, "fallback_rounds_total", "reason")
        self.assertEqual(sum(plain.values()), rounds - sum(stat["draft_rounds"] for stat in stats))
        self.assertEqual(plain["disabled"], stats[4]["rounds"])
        self.assertEqual(self.by(seen, "fallback_seconds_total", "reason").keys(), plain.keys())
        lengths = [sum((stat["k_histogram"] + [0] * 65)[k] for stat in stats) for k in range(65)]
        for bound, value in self.by(seen, "chosen_num_tokens_bucket", "le").items():
            self.assertEqual(value, sum(lengths[:65 if bound == "+Inf" else int(bound) + 1]), bound)
        self.assertEqual(seen["spec_decode_chosen_num_tokens_sum", frozenset()], drafted)
        self.assertEqual(self.by(seen, "overhead_seconds_total", "part").keys(), {"sample", "rollback", "control"})
        self.assertGreaterEqual(seen["spec_decode_rows_budget", frozenset()], 3 * 5)
        for name, value in server.metrics().items():  # a scrape counts nothing twice
            if name[0].endswith(("_total", "_count", "_sum", "_bucket")) and "http" not in name[0]:
                self.assertEqual(value, seen[name], name)

    def test_passes_are_counted_by_their_rows(self):
        server = self.serve(*self.FIXED, "--parallel", "1")
        stats = [server.completion(prompt="Once upon a time", max_tokens=40 + i, temperature=0)["speculation"] for i in range(3)]
        seen = server.metrics()
        passes = self.by(seen, "verify_passes_total", "rows")
        self.assertEqual(sum(passes.values()), sum(stat["target_forwards"] for stat in stats))
        self.assertEqual(passes["prompt"], 3)
        self.assertEqual(passes["5-8"], sum(stat["k_histogram"][4] for stat in stats))
        seconds = self.by(seen, "verify_seconds_total", "rows")
        self.assertEqual(seconds.keys(), passes.keys())
        self.assertTrue(all(value > 0 for value in seconds.values()), seconds)
        # The same passes, but for those that read prompts.
        self.assertAlmostEqual(sum(seconds.values()) - seconds["prompt"], sum(stat["verify_ms"] for stat in stats) / 1000, 6)
        self.assertEqual(seen["spec_decode_cost_model_error_ratio_count", frozenset()], sum(passes.values()) - 3)

    def test_the_cost_of_rows_is_told(self):
        server = self.serve()
        costs = server.get("/v1/speculation")["verify_us"]
        self.assertEqual(min(costs, key=int), "1")
        self.assertGreater(len(costs), 2)
        server.completion(prompt="Once upon a time", max_tokens=60, temperature=0)
        costs = sorted((int(rows), us) for rows, us in server.get("/v1/speculation")["verify_us"].items())
        self.assertGreater(costs[0][1], 0)
        for (_, fewer), (_, more) in zip(costs, costs[1:]):
            self.assertGreaterEqual(more, fewer)

    def test_prefix_hits_are_those_of_the_replies(self):
        body = {"prompt": "Once upon a time there was a girl who had a dog and a cat. " * 4, "max_tokens": 2}
        for flags, searched in (((), True), (("--prefix-cache", "off"), False)):
            with self.subTest(flags=flags):
                server = self.serve(*flags)
                replies = [server.completion(**body) for _ in range(3)]
                cached = sum(map(cached_tokens, replies))
                self.assertEqual(cached > 0, searched)
                self.assertEqual(server.metric("prefix_cache_hits_total"), cached)
                self.assertEqual(server.metric("prefix_cache_queries_total"), sum(reply["usage"]["prompt_tokens"] for reply in replies) if searched else 0)

    def test_preemptions_are_counted(self):
        server = self.serve("--parallel", "4", "--cache-tokens", "512")
        self.assertEqual(server.metric("num_preemptions_total"), 0)
        server.completion(**{**LONG, "max_tokens": 250, "temperature": 1, "n": 4})
        self.assertGreater(server.metric("num_preemptions_total"), 0)


if __name__ == "__main__":
    main()
