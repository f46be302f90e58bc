#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's own paths: their answers are those of OpenAI's completions to the same questions, whole and streamed; what they accept and refuse, and in which
form; gaps that models for code fill; the document of all paths."""
import json

from gguf_file import with_control_tokens
from server_case import PLAIN, TARGET, ServerCase, main, new_folder
from server_testing import together

NAME = "tales-9m-q8_0"
COMPLETION, INFILL = "/completion", "/infill"
TALE = "Once upon a time"
GREEDY = {"temperature": 0, "n_predict": 12}


class Paths(ServerCase):
    FLAGS = (*PLAIN, "--parallel", "4")

    def coder(self, *marks):
        """A server whose model has these control tokens."""
        path = str(new_folder(self.addCleanup) / "coder.gguf")
        with_control_tokens(TARGET, path, list(marks))
        return self.serve(model=path)

    def stream(self, server, body, path=COMPLETION):
        parts = [json.loads(part.removeprefix("data: ")) for part in server.streamed(path, body).decode().split("\n\n")[:-1]]
        self.assertTrue(all(not part["stop"] for part in parts if "stop_type" not in part))
        return parts

    def refused(self, server, body, path=COMPLETION):
        status, _, data = server.send("POST", path, body)
        error = json.loads(data)
        self.assertEqual(list(error), ["error"], error)
        self.assertEqual(list(error["error"]), ["code", "message", "type"])
        self.assertEqual(error["error"]["code"], status)
        return status, error["error"]["message"], error["error"]["type"]

    def test_texts_are_those_of_openai(self):
        server = self.serve()
        for fields in ({}, {"seed": 3, "temperature": 1.2, "top_k": 20, "top_p": 0.9, "min_p": 0.01, "typical_p": 0.9}, {"stop": ["a"]}, {"ignore_eos": True},
                       {"seed": 1, "temperature": 1, "repeat_penalty": 1.3, "repeat_last_n": 16, "presence_penalty": 0.5, "frequency_penalty": 0.5,
                        "dry_multiplier": 0.8}, {"grammar": 'root ::= " one" [a-z ]+'}, {"cache_prompt": False}):
            body = {"prompt": TALE, **GREEDY, **fields}
            theirs = server.completion(**body)
            choice = theirs["choices"][0]
            with self.subTest(fields=fields):
                whole = server.post(COMPLETION, {**body, "return_tokens": True})
                self.assertEqual((whole["content"], whole["stop"], whole["model"]), (choice["text"], True, NAME))
                usage = theirs["usage"]
                self.assertEqual((whole["tokens_evaluated"], whole["tokens_predicted"]), (usage["prompt_tokens"], usage["completion_tokens"]))
                self.assertEqual(len(whole["tokens"]), whole["tokens_predicted"])
                self.assertEqual(whole["tokens_cached"], whole["tokens_evaluated"] + whole["tokens_predicted"] - 1)
                self.assertEqual(whole["timings"]["draft_n"], 0)
                self.assertEqual(whole["generation_settings"]["seed"], theirs["seed"] if "seed" in fields else whole["generation_settings"]["seed"])
                *parts, last = self.stream(server, body)
                self.assertEqual("".join(part["content"] for part in parts), choice["text"])
                self.assertEqual([token for part in parts for token in part["tokens"]], whole["tokens"])
                self.assertEqual([part["tokens_predicted"] for part in parts][-1], whole["tokens_predicted"])
                self.assertEqual({part["tokens_evaluated"] for part in parts}, {whole["tokens_evaluated"]})
                for name in ("stop", "stop_type", "stopping_word", "tokens_predicted", "tokens_evaluated", "prompt", "truncated"):
                    self.assertEqual(last[name], whole[name])
                self.assertEqual((last["content"], last["tokens"]), ("", []))

    def test_tokens_come_only_where_they_are_asked_for(self):
        server = self.serve()
        self.assertEqual(server.post(COMPLETION, {"prompt": TALE, **GREEDY})["tokens"], [])

    def test_tokens_without_a_text_come_too(self):
        server = self.serve()
        body = {"prompt": TALE, "grammar": "root ::= " + "<[1]> " * 150 + '" here"', "n_probs": 1}
        *parts, last = self.stream(server, body)
        self.assertEqual([token for part in parts for token in part["tokens"]][:150], [1] * 150)
        self.assertEqual(sum(len(part["completion_probabilities"]) for part in parts), last["tokens_predicted"])
        self.assertEqual("".join(part["content"] for part in parts).strip(), "here")
        self.assertLess(max(len(part["tokens"]) for part in parts), 70)

    def test_prompts_are_texts_and_tokens(self):
        server = self.serve()
        tokens = server.post("/tokenize", {"content": TALE, "add_special": True})["tokens"]
        of_text = server.post(COMPLETION, {"prompt": TALE, **GREEDY})
        for prompt in (tokens, [TALE], [tokens], {"prompt_string": TALE}, [TALE, *server.post("/tokenize", {"content": ""})["tokens"]]):
            self.assertEqual(server.post(COMPLETION, {"prompt": prompt, **GREEDY})["content"], of_text["content"])
        more = server.post("/tokenize", {"content": "there was"})["tokens"]
        mixed = server.post(COMPLETION, {"prompt": [TALE, 4047, "there was"], **GREEDY})
        self.assertEqual(mixed["content"], server.post(COMPLETION, {"prompt": [*tokens, 4047, *more], **GREEDY})["content"])
        self.assertEqual(mixed["tokens_evaluated"], len(tokens) + 1 + len(more))
        self.assertEqual(server.post(COMPLETION, {"prompt": [1, "Once"], **GREEDY})["prompt"], "<s>Once")  # a text that is not the first begins no text

    def test_prompts_may_name_control_tokens(self):
        server = self.serve()
        tokens = server.post("/tokenize", {"content": "a</s>b", "add_special": True, "parse_special": True})["tokens"]
        self.assertEqual(server.post(COMPLETION, {"prompt": "a</s>b", "n_predict": 1})["tokens_evaluated"], len(tokens))

    def test_several_prompts_and_choices(self):
        server = self.serve()
        prompts = [TALE, [1, 300], [1, "There", 300]]
        each = [server.post(COMPLETION, {"prompt": prompt, **GREEDY})["content"] for prompt in prompts]
        replies = server.post(COMPLETION, {"prompt": prompts, **GREEDY})
        self.assertEqual([(reply["index"], reply["content"]) for reply in replies], list(enumerate(each)))
        parts = self.stream(server, {"prompt": prompts, **GREEDY})
        for i, text in enumerate(each):
            self.assertEqual("".join(part["content"] for part in parts if part["index"] == i), text)
            self.assertEqual([part["stop"] for part in parts if part["index"] == i][-1], True)
        asked = {"prompt": TALE, "seed": 5, "temperature": 1, "n_predict": 8}
        texts = [choice["text"] for choice in server.completion(**asked, n=3)["choices"]]
        self.assertEqual([reply["content"] for reply in server.post(COMPLETION, {**asked, "n_cmpl": 3})], texts)
        self.assertIn("more than", self.refused(server, {"prompt": ["a"] * 500})[1])

    def test_the_length(self):
        server = self.serve()
        prompt = "the end " * 200
        whole = server.post(COMPLETION, {"prompt": prompt, "temperature": 0, "ignore_eos": True})
        self.assertEqual((whole["tokens_evaluated"] + whole["tokens_predicted"], whole["truncated"], whole["stop_type"]), (512, True, "limit"))
        self.assertEqual(whole["generation_settings"]["n_predict"], -1)
        few = server.post(COMPLETION, {"prompt": TALE, **GREEDY, "n_predict": 2})
        self.assertEqual((few["tokens_predicted"], few["truncated"]), (2, False))
        none = server.post(COMPLETION, {"prompt": TALE, **GREEDY, "n_predict": 0})
        self.assertEqual((none["content"], none["tokens_predicted"], none["stop_type"]), ("", 0, "limit"))
        self.assertEqual(server.post(COMPLETION, {"prompt": TALE, "temperature": 0, "max_tokens": 2})["content"], few["content"])

    def test_why_texts_stop(self):
        server = self.serve()
        ended = server.post(COMPLETION, {"prompt": TALE, "temperature": 0, "grammar": 'root ::= " here"'})
        self.assertEqual((ended["content"], ended["stop_type"], ended["stopping_word"]), (" here", "eos", ""))
        text = server.post(COMPLETION, {"prompt": TALE, **GREEDY})["content"]
        for stop in (["zzz", "was"], ["there was", "was"], ["w", "was"]):
            reply = server.post(COMPLETION, {"prompt": TALE, **GREEDY, "stop": stop})
            word = min((word for word in stop if word in text), key=text.index)
            self.assertEqual((reply["content"], reply["stop_type"], reply["stopping_word"]), (text[:text.index(word)], "word", word))

    def test_probabilities(self):
        server = self.serve()
        body = {"prompt": TALE, **GREEDY}
        theirs = server.completion(**body, logprobs=3)["choices"][0]["logprobs"]
        whole = server.post(COMPLETION, {**body, "n_probs": 3, "return_tokens": True})
        found = whole["completion_probabilities"]
        self.assertEqual([entry["logprob"] for entry in found], theirs["token_logprobs"])
        self.assertEqual([entry["token"] for entry in found], theirs["tokens"])
        self.assertEqual([entry["id"] for entry in found], whole["tokens"])
        self.assertEqual([{top["token"]: top["logprob"] for top in entry["top_logprobs"]} for entry in found], theirs["top_logprobs"])
        self.assertTrue(all(bytes(entry["bytes"]).decode() == entry["token"] for entry in found))
        parts = self.stream(server, {**body, "n_probs": 3})
        self.assertEqual([entry for part in parts for entry in part.get("completion_probabilities", [])], found)
        self.assertNotIn("completion_probabilities", server.post(COMPLETION, {**body, "n_probs": 0}))

    def test_biases(self):
        server = self.serve()
        body = {"prompt": TALE, **GREEDY, "n_predict": 1, "return_tokens": True}
        (token,) = server.post(COMPLETION, body)["tokens"]
        word = server.post("/tokenize", {"content": "there"})["tokens"]
        for biases, banned in (([[token, False]], [token]), ({str(token): -100}, [token]), ([["there", False]], word),
                               ({"there": -1, str(token): -2}, [*word, token])):
            reply = server.post(COMPLETION, {**body, "logit_bias": biases})
            self.assertEqual({entry["token"] for entry in reply["generation_settings"]["logit_bias"]}, set(banned))
            if token in banned and -2 not in dict(biases).values():
                self.assertNotEqual(reply["tokens"], [token])
        self.assertNotIn(word[0], server.post(COMPLETION, {**body, "n_predict": 12, "logit_bias": [["there", False]]})["tokens"])

    def test_schemas_keep_their_order(self):
        server = self.serve()
        schema = {"type": "object", "properties": {"z": {"enum": ["C", "F"]}, "a": {"enum": [1, 2]}}, "required": ["z", "a"]}
        reply = server.post(COMPLETION, {"prompt": "A tale", "json_schema": schema})
        self.assertEqual(list(json.loads(reply["content"])), ["z", "a"])

    def test_samplers_choose_the_filters(self):
        server = self.serve()
        asked = {"prompt": TALE, "seed": 4, "n_predict": 8}
        filters = {"temperature": 0.7, "top_k": 5, "min_p": 0.1, "repeat_penalty": 1.5}
        every = ["penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]
        for names in (["top_k"], ["top_k", "temperature"], [], every, ["infill", "min_p"]):
            counted = {name: value for name, value in filters.items() if name in names or name == "repeat_penalty" and "penalties" in names}
            reply = server.post(COMPLETION, {**asked, **filters, "samplers": names})
            self.assertEqual(reply["content"], server.completion(**asked, **counted)["choices"][0]["text"], names)
            self.assertTrue(any(notice.startswith("samplers: ") for notice in reply["notices"]))
        self.assertIn("samplers: ", self.refused(server, {**asked, "samplers": ["magic"]})[1])
        greedy = server.post(COMPLETION, {**asked, "temperature": -1})["content"]
        self.assertEqual(greedy, server.post(COMPLETION, {**asked, "temperature": 0})["content"])

    def test_members_can_be_chosen(self):
        server = self.serve()
        body = {"prompt": TALE, **GREEDY, "n_probs": 1}
        names = ["content", "timings/prompt_n", "generation_settings/n_predict", "no/such", "content/x", "", "/"]
        self.assertEqual(list(server.post(COMPLETION, {**body, "response_fields": names})), ["content", "timings/prompt_n", "generation_settings/n_predict"])
        self.assertEqual(list(server.post(COMPLETION, {**body, "response_fields": ["completion_probabilities"]})), ["completion_probabilities"])
        self.assertEqual(list(server.post(COMPLETION, {**body, "response_fields": ["stop", "completion_probabilities"]})), ["stop", "completion_probabilities"])
        self.assertEqual(list(self.stream(server, {**body, "response_fields": ["stop", "stop_type"]})[-1]), ["stop", "stop_type"])
        self.assertIn("response_fields: ", self.refused(server, {**body, "response_fields": ["a"] * 65})[1])

    def test_what_has_no_effect(self):
        server = self.serve()
        body = {"prompt": TALE, **GREEDY}
        told = {"id_slot": 9, "n_keep": 4, "t_max_predict_ms": 500, "t_max_prompt_ms": 500, "n_indent": 4, "timings_per_token": True, "return_progress": True,
                "echo": True}
        idle = {**told, "mirostat": 0, "mirostat_tau": 5, "xtc_probability": 0, "dynatemp_range": 0, "sse_ping_interval": 5, "lora": []}
        reply = server.post(COMPLETION, {**body, **idle})
        self.assertEqual(reply["content"], server.post(COMPLETION, body)["content"])
        self.assertEqual({notice.partition(":")[0] for notice in reply["notices"]}, set(told))

    def test_what_is_refused(self):
        server = self.serve()
        picture = {"prompt_string": "a", "multimodal_data": ["b"]}
        for fields, begin in (({"mirostat": 2}, "mirostat: "), ({"n_predict": "x"}, "n_predict: "), ({"grammar": "x"}, "grammar: "),
                              ({"n_predit": 1}, "n_predit: no such field; the nearest one is n_predict"), ({"n_probs": 100}, "n_probs: "),
                              ({"prompt": None}, "prompt: it is missing"), ({"prompt": []}, "prompt: "), ({"prompt": [99999]}, "prompt: "),
                              ({"prompt": [[]]}, "prompt: "), ({"prompt": [1, None]}, "prompt: "), ({"prompt": picture}, "prompt: "),
                              ({"prompt": {}}, "prompt: "),
                              ({"logit_bias": [1]}, "logit_bias: "), ({"logit_bias": [["a", "b"]]}, "logit_bias: "),
                              ({"logit_bias": [[99999, 1]]}, "logit_bias: "), ({"logit_bias": [[1, {}]]}, "logit_bias: "), ({"logit_bias": 3}, "logit_bias: "),
                              ({"samplers": "k"}, "samplers: "), ({"response_fields": "a"}, "response_fields: "),
                              ({"t_max_predict_ms": "a"}, "t_max_predict_ms: "), ({"return_tokens": 1}, "return_tokens: "),
                              ({"temperature": 9}, "temperature: "), ({"input_prefix": "a"}, "input_prefix: ")):
            status, message, kind = self.refused(server, {"prompt": "a", **fields})
            self.assertEqual((status, message[:len(begin)], kind), (400, begin, "invalid_request_error"))
        self.assertEqual(self.refused(server, {"prompt": "word " * 600})[::2], (400, "exceed_context_size_error"))
        self.assertEqual(self.refused(server, {"prompt": "a", "model": "other"})[::2], (404, "not_found_error"))
        for body in (b"", b"[]", b"{", b'{"prompt": "a", "prompt": "b"}'):
            for path in (COMPLETION, INFILL):
                self.assertEqual(self.refused(server, body, path)[0], 400)
        self.assertEqual(self.refused(server, {}, "/props")[::2], (501, "not_supported_error"))

    def test_completions_without_v1_are_those_of_openai(self):
        server = self.serve()
        body = {"prompt": TALE, "temperature": 0, "max_tokens": 3}
        text = server.post(COMPLETION, body)["content"]
        for path in ("/completions", "/v1/completions"):
            self.assertEqual(server.post(path, body)["choices"][0]["text"], text)
        self.assertEqual(server.post("/completions", {"prompt": TALE, "temperature": 0, "n_predict": 3})["choices"][0]["text"], text)

    def test_keys(self):
        server = self.serve("--api-key", "secret")
        error = server.error(COMPLETION, {"prompt": "a"}, 401)
        self.assertEqual((error["code"], error["type"]), (401, "authentication_error"))
        for path in ("/props", "/slots", "/openapi.json"):
            server.error(path, status=401, method="GET")
            self.assertEqual(server.send("GET", path, headers={"Authorization": "Bearer secret"})[0], 200)

    def test_props_and_slots(self):
        server = self.serve("--model-name", "tale", template="{{ messages[0].content }}")
        props = server.get("/props")
        self.assertEqual((props["total_slots"], props["model_path"], props["model_alias"]), (4, "tale", "tale"))
        self.assertEqual((props["bos_token"], props["eos_token"], props["chat_template"]), ("<s>", "</s>", "{{ messages[0].content }}"))
        self.assertEqual(props["modalities"], {"vision": False, "audio": False})
        self.assertTrue(props["build_info"].startswith("foretoken-"))
        settings = props["default_generation_settings"]
        self.assertEqual((settings["n_ctx"], settings["params"]["n_predict"], settings["params"]["temperature"]), (512, -1, 1))
        asked = server.post(COMPLETION, {"prompt": "a", "n_predict": 1})["generation_settings"]
        self.assertEqual(set(asked), set(settings["params"]))
        slots = server.get("/slots")
        self.assertEqual([slot["id"] for slot in slots], [0, 1, 2, 3])
        self.assertEqual({(slot["n_ctx"], slot["speculative"], slot["is_processing"]) for slot in slots}, {(512, False, False)})

        def seen():
            while True:
                busy = sum(slot["is_processing"] for slot in server.get("/slots"))
                if busy:
                    return busy

        busy, reply = together([seen, lambda: [server.post(COMPLETION, {"prompt": "a", "ignore_eos": True}) for _ in range(8)]])
        self.assertEqual((busy, len(reply)), (1, 8))

    def test_gaps_need_marks(self):
        server = self.serve()
        status, message, kind = self.refused(server, {"input_prefix": "a", "input_suffix": "b"}, INFILL)
        self.assertEqual((status, kind), (501, "not_supported_error"))
        self.assertIn("<|fim_prefix|>", message)

    def expected_gap(self, server, marks, *parts):
        """The tokens of a prompt: marks by their names, and texts."""
        tokens = server.post("/tokenize", {"content": "", "add_special": True})["tokens"]
        for part in parts:
            tokens += server.post("/tokenize", {"content": part, "parse_special": part in marks})["tokens"][-1 if part in marks else 0:]
        return tokens

    def test_gaps_are_filled(self):
        marks = ["<PRE>", "<SUF>", "<MID>", "<EOT>"]
        server = self.coder(*marks)
        for fields, parts in (({}, ["<PRE>", "Once", "<SUF>", "a king.", "<MID>"]),
                              ({"prompt": "upon"}, ["<PRE>", "Once", "upon", "<SUF>", "a king.", "<MID>"]),
                              ({"input_prefix": "a<MID>"}, ["<PRE>", "a", "<", "MID", ">", "<SUF>", "a king.", "<MID>"]),
                              ({"input_extra": [{"filename": "f", "text": "One"}, {"text": "Two"}]},
                               ["One\n", "Two\n", "<PRE>", "Once", "<SUF>", "a king.", "<MID>"])):
            body = {"input_prefix": "Once", "input_suffix": "a king.", **GREEDY, **fields}
            reply = server.post(INFILL, body)
            if "input_prefix" in fields:
                self.assertEqual(reply["prompt"].count("<MID>"), 2)  # one of them is text
                parts[1:5] = ["a<MID>"]
            expected = self.expected_gap(server, marks, *parts)
            self.assertEqual(reply["tokens_evaluated"], len(expected))
            self.assertEqual(reply["content"], server.post(COMPLETION, {"prompt": expected, **GREEDY})["content"])
            *streamed, last = self.stream(server, body, INFILL)
            self.assertEqual("".join(part["content"] for part in streamed), reply["content"])
            self.assertEqual(last["prompt"], reply["prompt"])

    def test_what_fills_a_gap_ends(self):
        server = self.coder("<PRE>", "<SUF>", "<MID>", "<EOT>")
        (end,) = server.post("/tokenize", {"content": "<EOT>", "parse_special": True})["tokens"][-1:]
        reply = server.post(INFILL, {"input_prefix": "a", "input_suffix": "b", "logit_bias": [[end, 100]], "return_tokens": True})
        self.assertEqual((reply["tokens"], reply["content"], reply["stop_type"]), ([end], "", "eos"))

    def test_other_files_have_marks_of_their_own(self):
        marks = ["<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>", "<file_sep>"]
        server = self.coder(*marks)
        files = [{"filename": "one.c", "text": "int a;"}, {"filename": "two.c", "text": "int b;"}]
        body = {"input_prefix": "Once", "input_suffix": "king.", "input_extra": files, "n_predict": 1}
        reply = server.post(INFILL, body)
        self.assertEqual(reply["tokens_evaluated"], len(self.expected_gap(
            server, marks, "<repo_name>", "repository\n", "<file_sep>", "one.c\nint a;\n", "<file_sep>", "two.c\nint b;\n", "<file_sep>", "file\n\n",
            "<fim_prefix>", "Once", "<fim_suffix>", "king.", "<fim_middle>")))
        # The first of those that do not fit are left out, with a notice.
        long = [{"filename": f"{i}.c", "text": "word " * 200} for i in range(4)]
        reply = server.post(INFILL, {**body, "input_extra": long})
        self.assertIn("input_extra: the first 2 of 4 do not fit and are left out", reply["notices"])
        self.assertNotIn("1.c", reply["prompt"])
        self.assertIn("3.c", reply["prompt"])

    def test_gaps_of_editors(self):
        """A request as llama.vim sends it."""
        server = self.coder("<PRE>", "<SUF>", "<MID>", "<EOT>")
        files = [{"filename": "a.c", "text": "int a;", "time": 3}]
        body = {"id_slot": 0, "input_prefix": "int main() {\n", "input_suffix": "}\n", "input_extra": files, "prompt": "  ret", "n_predict": 8, "stop": [],
                "n_indent": 2, "top_k": 40, "top_p": 0.9, "stream": False, "samplers": ["top_k", "top_p", "infill"], "cache_prompt": True,
                "t_max_prompt_ms": 500, "t_max_predict_ms": 500,
                "response_fields": ["content", "timings/prompt_n", "timings/predicted_ms", "truncated", "tokens_cached"]}
        self.assertEqual(set(server.post(INFILL, body)), set(body["response_fields"]))
        self.assertEqual(server.post(INFILL, {**body, "n_predict": 0, "samplers": [], "response_fields": [""]}), {})

    def test_bad_gaps(self):
        server = self.coder("<PRE>", "<SUF>", "<MID>", "<EOT>")
        good = {"input_prefix": "a", "input_suffix": "b"}
        for fields, begin in (({"input_prefix": 1}, "input_prefix: "), ({"input_suffix": None}, "input_suffix: "), ({"input_extra": "a"}, "input_extra: "),
                              ({"input_extra": [1]}, "input_extra: "), ({"input_extra": [{"text": 1}]}, "input_extra: "), ({"prompt": ["a"]}, "prompt: "),
                              ({"input_prefix": "word " * 600}, "prompt: ")):
            status, message, _ = self.refused(server, {**good, **fields}, INFILL)
            self.assertEqual((status, message[:len(begin)]), (400, begin))


if __name__ == "__main__":
    main()
