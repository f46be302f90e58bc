#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fields of requests as clients of OpenAI, llama.cpp, vLLM and SGLang send them: what takes effect, what is told of in `notices`, what
is refused; messages that come back; the model's names; seeds."""
import json

from server_case import DRAFT, ONE_THREAD, PAIR, ServerCase, main, run_program
from server_testing import cached_tokens

TALE = {"prompt": "Once upon a time there was a little girl", "max_tokens": 40, "temperature": 0}
HELLO = {"role": "user", "content": "Tell me a tale."}
TALK = {"messages": [HELLO], "max_tokens": 12, "temperature": 0}

# A field by another name, and by its own: the same text, which is not that without it.
ALIASES = [
    ({"n_predict": 9}, {"max_tokens": 9}), ({"max_new_tokens": 9}, {"max_tokens": 9}), ({"max_completion_tokens": 9}, {"max_tokens": 9}),
    ({"temp": 0.9, "seed": 5}, {"temperature": 0.9, "seed": 5}), ({"temperature": 0.9, "sampling_seed": 5}, {"temperature": 0.9, "seed": 5}),
    ({"temperature": 1.2, "seed": 5, "typ_p": 0.3}, {"temperature": 1.2, "seed": 5, "typical_p": 0.3}),
    ({"repeat_penalty": 1.5, "repeat_last_n": -1}, {"repetition_penalty": 1.5}),
    ({"logit_bias": [[261, False]]}, {"logit_bias": {"261": -100}}), ({"logit_bias": [[261, -100]]}, {"logit_bias": {"261": -100}}),
    ({"stop": ["", "the", None]}, {"stop": "the"}),
]
# At these values a field asks for nothing.
NEUTRAL = [
    {"mirostat": 0, "mirostat_tau": 5, "mirostat_eta": 0.1, "xtc_probability": 0, "xtc_threshold": 0.1, "dynatemp_range": 0, "top_n_sigma": -1,
     "tfs_z": 1, "n_indent": 0, "min_keep": 0, "t_max_predict_ms": 0, "lora": [], "samplers": [], "post_sampling_probs": False},
    {"id_slot": -1, "n_keep": 0, "timings_per_token": False, "return_tokens": False, "n_cache_reuse": 0, "response_fields": []},
    {"use_beam_search": False, "length_penalty": 1.0, "skip_special_tokens": True, "include_stop_str_in_output": False, "priority": 0,
     "bad_words": [], "allowed_token_ids": None, "prompt_logprobs": None, "spaces_between_special_tokens": True, "logits_processors": []},
    {"no_stop_trim": False, "stop_regex": [], "return_hidden_states": False}, {"best_of": 1, "suffix": "", "logprobs": False, "n_probs": 0},
    {"repeat_penalty": 1, "repeat_last_n": 64, "dry_multiplier": 0, "dry_sequence_breakers": ["\n"], "stop": ["", None], "logit_bias": []},
    {"repeat_penalty": 1.7, "repeat_last_n": 0}, {"stream_options": {"include_usage": False}}, {"cache_prompt": True}, {"nothing_of_this_name": None},
    {"user": "u", "metadata": {"a": "b"}, "store": False, "service_tier": "auto"}, {"response_format": {"type": "text", "json_schema": None}},
]
NEUTRAL_CHATS = [
    {"tools": [], "tool_choice": "none", "parallel_tool_calls": True}, {"tools": None, "tool_choice": "auto"}, {"tool_choice": None},
    {"functions": [], "function_call": "none"}, {"modalities": ["text"], "audio": None}, {"chat_template_kwargs": {}, "echo": False},
    {"add_generation_prompt": True, "continue_final_message": False, "add_special_tokens": False}, {"top_logprobs": 0, "logprobs": False},
    {"reasoning_effort": "none", "verbosity": "medium"},
]
# Fields that change no text, and the name that the notice begins with.
NOTICED = [({"id_slot": 3}, "id_slot"), ({"n_keep": 8}, "n_keep"), ({"timings_per_token": True}, "timings_per_token"), ({"priority": 5}, "priority"),
           ({"return_token_ids": True}, "return_token_ids"), ({"request_id": "a"}, "request_id"), ({"max_tokens": 100000}, "max_tokens")]
NOTICED_CHATS = [({"verbosity": "high"}, "verbosity"), ({"tools": [{"type": "function"}], "tool_choice": "none"}, "tools"),
                 ({"tools": [{"type": "retrieval"}]}, "tools")]
REFUSED = [
    ({"mirostat": 2}, "mirostat", "min_p"), ({"xtc_probability": 0.5}, "xtc_probability", "no such filter"), ({"min_keep": 5}, "min_keep", "best"),
    ({"dynatemp_range": 0.5}, "dynatemp_range", "no such filter"), ({"use_beam_search": True}, "use_beam_search", "no beam search"),
    ({"include_stop_str_in_output": True}, "include_stop_str_in_output", "cut off"), 
    ({"bad_words": ["a"]}, "bad_words", "logit_bias"), ({"max_length": 90}, "max_length", "use max_tokens"), ({"lora": [{"id": 0}]}, "lora", "as it is"),
    ({"t_max_predict_ms": 5}, "t_max_predict_ms", "max_tokens"), ({"samplers": ["top_k"]}, "samplers", "one order"),
    ({"temp": 0.5, "temperature": 0.7}, "temp", "temperature is given too, with another value"),
    ({"n_predict": 3, "max_tokens": 4}, "n_predict", "max_tokens is given too"), ({"max_completion_tokens": 3}, "max_completion_tokens", "another value"),
    ({"repeat_penalty": 1.1, "repetition_penalty": 1.2}, "repeat_penalty", "another value"), ({"seed": 1, "sampling_seed": 2}, "sampling_seed", "another value"),
    ({"max_tokens": None, "n_predict": -3}, "n_predict", "-3 is not in"), ({"dry_multiplier": 1, "dry_sequence_breakers": ["Once upon"]}, "dry_sequence_breakers", "2 tokens"),
    ({"dry_base": 0.5}, "dry_base", "not in"), ({"dry_sequence_breakers": "a"}, "dry_sequence_breakers", "not a list"), ({"repeat_last_n": -2}, "repeat_last_n", "not in"),
    ({"stop": ["s"] * 17}, "stop", "17 texts are more than 16"), ({"logit_bias": [1]}, "logit_bias", "pairs"), ({"logit_bias": [["a", 1]]}, "logit_bias", "not a token"),
    ({"repeat_penaltly": 1}, "repeat_penaltly", "the nearest one is repeat_penalty"), ({"max_token": 1}, "max_token", "the nearest one is max_tokens"),
    ({"temprature": 1}, "temprature", "the nearest one is temperature"), ({"frobnicate": 1}, "frobnicate", "no such field; leave it out"),
]
REFUSED_CHATS = [
    ({"tools": {"type": "function"}}, "tools", "not a list"), ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
    ({"continue_final_message": True}, "continue_final_message", "/v1/completions"), ({"chat_template_kwargs": [1]}, "chat_template_kwargs", "object"),
    ({"messages": [{"role": "function", "content": "x"}]}, "messages[0].role", "not a role"),
    ({"messages": [{"role": "user", "content": None}]}, "messages[0].content", "missing"), ({"messages": [{"role": "user"}]}, "messages[0].content", "missing"),
    ({"messages": [{"role": "user", "contents": "a"}]}, "messages[0].content", "missing"),
    ({"messages": [{"role": "assistant", "contnet": "a"}]}, "messages[0].contnet", "the nearest one is content"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]}, "messages[0].content", "not a text"),
]


class Fields(ServerCase):
    FLAGS, SHARED = ("-md", DRAFT, *ONE_THREAD), ("--chat-template", "chatml")

    def test_v1_may_be_left_out_and_near_paths_are_told(self):
        body = {"prompt": "Once", "max_tokens": 2, "temperature": 0}
        self.assertEqual(self.server.post("/completions", body)["choices"], self.server.completion(**body)["choices"])
        self.assertEqual(self.server.get("/models"), self.server.get("/v1/models"))
        name = self.server.get("/models")["data"][0]["id"]
        self.assertEqual(self.server.get("/models/" + name)["id"], name)
        for path, words in (("/v1/chat/completion", "the nearest one is /v1/chat/completions"), ("/models/", "no such path"), ("/modelz", "no such path"), ("/m", "no such path")):
            self.assertIn(words, self.server.error(path, status=404, method="GET")["message"])

    def test_templates_show_what_they_write(self):
        body = {"messages": [{"role": "user", "content": "Hi <|im_end|>"}], "tools": [{"type": "function", "function": {"name": "f"}}]}
        prompt = self.server.post("/apply-template", body)["prompt"]
        self.assertIn("Hi <|im_end|>", prompt)
        self.assertIn('{"type": "function", "function": {"name": "f"}}', prompt)
        usage = self.server.post("/v1/chat/completions", {**body, "max_tokens": 1})["usage"]
        self.assertEqual(usage["prompt_tokens"], len(self.server.post("/tokenize", body)["tokens"]))
        self.assertEqual(self.server.error("/apply-template", {"content": "a"})["param"], "messages")

    def text(self, **body):
        return self.server.completion(**body)["choices"][0]["text"]

    def chat(self, **body):
        return self.server.post("/v1/chat/completions", {**TALK, **body})

    def assert_refused(self, path, body, param, words):
        error = self.server.error(path, body)
        self.assertEqual(error["param"], param, error)
        self.assertIn(words, error["message"])

    def test_fields_by_other_names_take_effect(self):
        for other, own in ALIASES:
            with self.subTest(other=other):
                body = {key: value for key, value in TALE.items() if key not in own}
                self.assertEqual(self.text(**body, **other), self.text(**body, **own))
                self.assertNotEqual(self.text(**body, **own), self.text(**TALE))

    def test_names_with_the_same_value_agree(self):
        same = {"n_predict": 40, "max_new_tokens": 40, "temp": 0.0, "repeat_penalty": 1.5, "repetition_penalty": 1.5}
        self.assertEqual(self.text(**TALE, **same), self.text(**TALE, repetition_penalty=1.5))

    def test_a_length_of_minus_one_is_what_fits(self):
        for field in ("max_tokens", "n_predict", "max_completion_tokens"):
            reply = self.server.completion(prompt="Once", temperature=0, ignore_eos=True, **{field: -1})
            self.assertEqual(reply["usage"]["total_tokens"], 512)
            self.assertEqual(reply["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.server.completion(prompt="Once", ignore_eos=True)["usage"]["completion_tokens"], 16)  # the control: absent

    def test_more_tokens_than_fit_are_those_that_fit_and_told(self):
        reply = self.server.completion(prompt="Once", temperature=0, ignore_eos=True, max_tokens=4096)
        self.assertEqual(reply["usage"]["total_tokens"], 512)
        self.assertRegex(reply["notices"][0], r"\Amax_tokens: 4096 .* 512; \d+ fit\Z")

    @staticmethod
    def generated(n, *flags):
        """The greedy text of the program with these flags."""
        done = run_program("generate", *PAIR, "-p", TALE["prompt"], "-n", str(n), "--temp", "0", *flags, "--json", "-q", check=True)
        return json.loads(done.stdout)["text"]

    def test_repeat_penalty_has_a_window(self):
        whole, usual, short = (self.generated(120, "--repeat-penalty", "1.3", "--repeat-last-n", str(window)) for window in (-1, 64, 8))
        self.assertEqual(len({whole, usual, short}), 3)
        body = {**TALE, "max_tokens": 120}
        self.assertEqual(self.text(**body, repetition_penalty=1.3), whole)
        self.assertEqual(self.text(**body, repeat_penalty=1.3), usual)  # llama.cpp's own window
        self.assertEqual(self.text(**body, repeat_penalty=1.3, repeat_last_n=8), short)
        self.assertEqual(self.text(**body, repetition_penalty=1.3, repeat_last_n=8), short)

    def test_dry_takes_effect_and_stops_at_its_breakers(self):
        wanted = self.generated(60, "--dry-multiplier", "2", "--dry-base", "1.5", "--dry-allowed-length", "1", "--dry-penalty-last-n", "100",
                                "--dry-sequence-breaker", ".")
        body = {**TALE, "max_tokens": 60, "dry_multiplier": 2, "dry_base": 1.5, "dry_allowed_length": 1, "dry_penalty_last_n": 100}
        self.assertEqual(self.text(**body, dry_sequence_breakers=["."]), wanted)
        self.assertNotEqual(self.text(**{**TALE, "max_tokens": 60}), wanted)
        self.assertNotEqual(self.text(**body, dry_sequence_breakers=[" the", " a", " was", " and"]), self.text(**body, dry_sequence_breakers=[]))

    def test_n_probs_are_logprobs(self):
        own = self.server.completion(**TALE, logprobs=3)["choices"]
        self.assertEqual(self.server.completion(**TALE, n_probs=3)["choices"], own)
        self.assertEqual(self.chat(n_probs=2)["choices"], self.chat(logprobs=True, top_logprobs=2)["choices"])
        self.assertEqual(len(own[0]["logprobs"]["tokens"]), 40)

    def test_cache_prompt_says_whether_blocks_are_used_again(self):
        body = {**TALE, "prompt": "Once upon a time there was a girl who had a dog and a cat. " * 6, "max_tokens": 8}
        self.server.completion(**body)
        replies = [self.server.completion(**body, **fields) for fields in ({}, {"cache_prompt": True}, {"cache_prompt": False})]
        cached = [cached_tokens(reply) for reply in replies]
        self.assertGreater(min(cached[:2]), 0)
        self.assertEqual(cached[2], 0)
        self.assertEqual(len({reply["choices"][0]["text"] for reply in replies}), 1)

    def test_prompts_may_have_no_special_tokens(self):
        with_bos, without = (self.server.completion(**TALE, add_special_tokens=add)["usage"]["prompt_tokens"] for add in (True, False))
        self.assertEqual(with_bos, without + 1)

    def test_sixteen_stops_are_taken(self):
        plain = self.text(**TALE)
        self.assertEqual(self.text(**TALE, stop=[f"no {i}" for i in range(15)] + [plain[20:24]]), plain[:plain.index(plain[20:24])])

    def test_neutral_values_are_accepted(self):
        plain, plain_chat = self.server.completion(**TALE), self.chat()
        for fields in NEUTRAL + NEUTRAL_CHATS:
            with self.subTest(fields=fields):
                reply = self.chat(**fields)
                self.assertEqual(reply["choices"], plain_chat["choices"])
                if fields in NEUTRAL:
                    reply = self.server.completion(**TALE, **fields)
                    self.assertEqual(reply["choices"], plain["choices"])
                self.assertNotIn("notices", reply)

    def test_what_changes_nothing_is_told(self):
        def check(path, body, fields, words):
            with self.subTest(fields=fields):
                whole = self.server.post(path, {**body, **fields})
                last = self.server.stream(path, {**body, **fields})[-1]
                for reply in (whole, last):
                    self.assertEqual(len(reply["notices"]), 1)
                    self.assertTrue(reply["notices"][0].startswith(words), reply["notices"])
                if "max_tokens" not in fields:
                    self.assertEqual(whole["choices"], self.server.post(path, body)["choices"])

        for fields, words in NOTICED:
            check("/v1/completions", TALE, fields, words)
        for fields, words in NOTICED + NOTICED_CHATS:
            check("/v1/chat/completions", TALK, fields, words)

    def test_settings_without_effect_are_told(self):
        reply = self.server.completion(**TALE, speculative={"enabled": False, "p_min": 0.5})
        self.assertEqual([notice.split(":")[0] for notice in reply["notices"]], ["draft_p_min"])
        self.assertNotIn("notices", self.server.completion(**TALE, speculative={"p_min": 0.5}))

    def test_what_would_change_the_text_is_refused(self):
        for path, body, rows in (("/v1/completions", TALE, REFUSED), ("/v1/chat/completions", TALK, REFUSED_CHATS)):
            for fields, param, words in rows:
                with self.subTest(fields=fields):
                    self.assert_refused(path, {**body, **fields}, param, words)

    def test_own_messages_come_back(self):
        first = self.chat()["choices"][0]["message"]
        bare = {"role": "assistant", "content": first["content"]}
        more = {"role": "user", "content": "And then?"}
        wanted = self.chat(messages=[HELLO, bare, more])
        same = [first, {**bare, "refusal": None, "annotations": [], "audio": None, "function_call": None, "tool_calls": []},
                {**bare, "tool_calls": None, "name": None}, {"role": "assistant", "content": None, "refusal": first["content"]},
                {"role": "assistant", "content": [{"type": "text", "text": first["content"], "annotations": [], "logprobs": []}]},
                {"role": "assistant", "content": [{"type": "output_text", "text": first["content"]}]}]
        for message in same:
            with self.subTest(message=message):
                reply = self.chat(messages=[HELLO, message, more])
                self.assertEqual(reply["choices"], wanted["choices"])
                self.assertNotIn("notices", reply)
        for empty in ({"role": "assistant", "content": None}, {"role": "assistant"}, {"role": "assistant", "content": ""}):
            self.assertEqual(self.chat(messages=[HELLO, empty, more])["usage"]["prompt_tokens"],
                             self.chat(messages=[HELLO, {"role": "assistant", "content": []}, more])["usage"]["prompt_tokens"])

    def test_tokens_of_a_chat_are_those_of_its_prompt(self):
        messages = [HELLO, {"role": "assistant", "content": "There was a cat."}, HELLO]
        tokens = self.server.post("/tokenize", {"messages": messages})["tokens"]
        self.assertEqual(len(tokens), self.chat(messages=messages)["usage"]["prompt_tokens"])
        self.assertEqual(self.server.completion(prompt=tokens, max_tokens=12, temperature=0)["choices"][0]["text"],
                         self.chat(messages=messages)["choices"][0]["message"]["content"])
        fewer = self.server.post("/tokenize", {"messages": messages, "add_generation_prompt": False})["tokens"]
        self.assertEqual(fewer, tokens[:len(fewer)])
        self.assertLess(len(fewer), len(tokens))
        self.assert_refused("/tokenize", {"messages": messages, "content": "a"}, "messages", "keep one")
        self.assert_refused("/tokenize", {}, "content", "missing")

    def test_seeds_of_the_server_come_back_as_they_were(self):
        body = {**TALE, "temperature": 1}
        seeds = set()
        for fields in ({}, {}, {"seed": None}, {"seed": -1}, {"seed": -1}, {"sampling_seed": -1}):
            reply = self.server.completion(**body, **fields)
            seed = reply["seed"]
            self.assertLess(seed, 2**53)
            self.assertEqual(seed, int(float(seed)))  # what JavaScript makes of it
            self.assertEqual(self.server.completion(**body, seed=float(seed))["choices"], reply["choices"])
            seeds.add(seed)
        self.assertEqual(len(seeds), 6)
        self.assertGreater(max(seeds), 2**32)  # not that few either

    def test_drafts_do_not_change_what_the_new_names_give(self):
        for fields in ({"repeat_penalty": 1.3}, {"dry_multiplier": 1.5, "dry_allowed_length": 1}, {"temp": 0.9, "typ_p": 0.9}):
            body = {"prompt": TALE["prompt"], "max_tokens": 40, "temp": 0, "seed": 1, **fields}
            self.assertEqual(self.text(**body), self.text(**body, speculative={"enabled": False}))


class Names(ServerCase):
    FLAGS = ("-md", DRAFT, *ONE_THREAD)

    def assert_model(self, server, name, served):
        body = {**TALE, "model": name, "max_tokens": 1}
        if served:
            self.assertEqual(server.completion(**body)["model"], served, name)
            self.assertEqual(server.get("/v1/models/" + name)["id"], served)
        else:
            error = server.error("/v1/completions", body, 404)
            self.assertEqual((error["code"], error["param"], error["type"]), ("model_not_found", "model", "invalid_request_error"), name)
            server.error("/v1/models/" + name, status=404, method="GET")

    def test_a_name_that_is_no_model_s_is_shown_in_one_line(self):
        server = self.serve()
        for name in ("\n" * 200, "\x1b[31mred\u202e", "a" * 62 + "\U0001f600" * 4):
            message = server.error("/v1/completions", {**TALE, "model": name, "max_tokens": 1}, 404)["message"]
            self.assertTrue(message.isprintable() and len(message) < 400, message)

    def test_a_model_has_its_file_s_name(self):
        server = self.serve()
        for name in ("tales-9m-q8_0", "tales-9m-q8_0.gguf"):
            self.assert_model(server, name, "tales-9m-q8_0")
        for name in ("gpt-5", "tales", "tales-9m-q8_0.gguf2"):
            self.assert_model(server, name, None)
        self.assertEqual(server.completion(**TALE)["model"], "tales-9m-q8_0")  # and none at all

    def test_names_are_added(self):
        server = self.serve("--alias", "tales,gpt-4o", "--alias", "story-teller")
        self.assertEqual([(model["id"], model["aliases"]) for model in server.get("/v1/models")["data"]],
                         [("tales", ["gpt-4o", "story-teller", "tales-9m-q8_0", "tales-9m-q8_0.gguf"])])
        for name in ("tales", "gpt-4o", "story-teller", "tales-9m-q8_0", "tales-9m-q8_0.gguf"):
            self.assert_model(server, name, "tales")
        self.assert_model(server, "gpt-5", None)
        self.assertIn('model_name="tales"', server.send("GET", "/metrics")[2].decode())

    def test_any_name_can_be_taken(self):
        server = self.serve("--any-model")
        for name in ("gpt-5", "tales-9m-q8_0"):
            self.assert_model(server, name, "tales-9m-q8_0")
        server.error("/v1/completions", {**TALE, "model": 3})

    def test_empty_names_are_refused(self):
        for names in ("", "a,", ",a"):
            result = run_program("serve", *PAIR, "--alias", names)
            self.assertEqual(result.returncode, 2)
            self.assertRegex(result.stderr, r"\Aforetoken: [^\n]*--alias[^\n]*empty[^\n]*\n\Z")


if __name__ == "__main__":
    main()
