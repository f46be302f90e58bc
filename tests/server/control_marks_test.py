#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls and thoughts between marks that are control tokens: whole and streamed, with drafters and without, beside text that spells the marks. The model is a
bundled one whose last tokens became control tokens; it knows no tools, so grammars force what it says."""
import json
import re

from gguf_file import with_control_tokens
from server_case import ONE_THREAD, TARGET, ServerCase, main, new_folder
from server_testing import joined_message

CHATS = "/v1/chat/completions"
MESSAGE = {"role": "user", "content": "Is Rome warm?"}
WEATHER = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 9}, "unit": {"enum": ["C", "F"]}}, "required": ["city"]}
NOW = {"type": "object", "additionalProperties": False}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in (("weather", WEATHER), ("now", NOW))]
FORCED = {"type": "function", "function": {"name": "weather"}}
BEGIN = "{% for m in messages %}"
END = "{% endfor %}{{ tools | tojson if tools }}"
# The templates of forms, and their marks.
FORMS = {
    "harmony": (
        BEGIN + "<|start|>{{ m.role }}{% for c in m.tool_calls or [] %} to=functions.{{ c.function.name }}<|channel|>commentary json<|message|>"
        "{{ c.function.arguments | tojson }}{% else %}<|message|>{{ m.content }}{% endfor %}<|end|>" + END + "<|start|>assistant",
        ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"]),
    "mistral": (
        BEGIN + "{{ m.content }}{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif %}"
        "[TOOL_CALLS]{{ c.function.name }}[ARGS]{{ c.function.arguments | tojson }}{% endfor %}{{ m.tool_call_id or '' }}\n" + END,
        ["[TOOL_CALLS]", "[ARGS]"]),
    "deepseek-v3.1": (
        BEGIN + "{{ m.content }}{% for c in m.tool_calls or [] %}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ c.function.name }}<｜tool▁sep｜>"
        "{{ c.function.arguments | tojson }}<｜tool▁call▁end｜><｜tool▁calls▁end｜>{% endfor %}\n" + END,
        ["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]),
    "kimi-k2": (
        BEGIN + "{{ m.content }}{% for c in m.tool_calls or [] %}<|tool_calls_section_begin|><|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>"
        "{{ c.function.arguments | tojson }}<|tool_call_end|><|tool_calls_section_end|>{% endfor %}{{ m.tool_call_id or '' }}\n" + END,
        ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"]),
    "lfm2": (
        BEGIN + "{{ m.content }}{% for c in m.tool_calls or [] %}<|tool_call_start|>[{{ c.function.name }}({% for k, v in c.function.arguments | items %}"
        "{{ k }}='{{ v }}'{% endfor %})]<|tool_call_end|>{% endfor %}\n" + END,
        ["<|tool_call_start|>", "<|tool_call_end|>"]),
    "gemma": (
        BEGIN + "{{ m.content }}{% for c in m.tool_calls or [] %}<|tool_call>call:{{ c.function.name }}{{ '{' }}{% for k, v in c.function.arguments | items %}"
        "{{ k }}:<|\"|>{{ v }}<|\"|>{% endfor %}}<tool_call|>{% endfor %}\n" + END,
        ["<|tool_call>", "<tool_call|>", "<|\"|>"]),
    "hermes": (
        BEGIN + "{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}\n" + END,
        ["<tool_call>", "</tool_call>"]),
}
THINKERS = {  # templates of models that think, and their marks
    "[THINK]": ("{# [THINK] [/THINK] #}" + BEGIN + "{{ m.content }}" + END, ["[THINK]", "[/THINK]"]),
    "<think>": (BEGIN + "{{ m.content }}" + END, ["<think>", "</think>"]),
}


def said(message):
    """A message without what it lacks and without ids."""
    short = {key: message[key] for key in ("content", "reasoning_content") if message.get(key)}
    if message.get("tool_calls"):
        short["tool_calls"] = [call["function"] for call in message["tool_calls"]]
    return short


class ControlMarks(ServerCase):
    FLAGS = (*ONE_THREAD, "-q")

    def marked(self, template, marks, *flags):
        """A server, and the ids of the marks."""
        model = str(new_folder(self.addCleanup) / "marks.gguf")
        ids = with_control_tokens(TARGET, model, marks)
        return self.serve(*(flags or ("--spec-type", "none")), model=model, template=template), ids

    def both(self, server, body):
        """The answer, whole and streamed, which must be the same."""
        body = {"max_tokens": 120, "seed": 3, **body}
        message = said(server.post(CHATS, body)["choices"][0]["message"])
        streamed = said(joined_message(server.stream(CHATS, body))[0])
        self.assertEqual(streamed, message)
        return message

    def test_calls_are_forced_between_control_tokens(self):
        for name, (template, marks) in FORMS.items():
            server, _ = self.marked(template, marks)
            plain = {}
            for seed in range(3):
                body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": FORCED, "temperature": 1, "seed": seed}
                message = plain[seed] = self.both(server, body)
                with self.subTest(form=name, seed=seed):
                    call, = message["tool_calls"]
                    self.assertEqual(call["name"], "weather")
                    arguments = json.loads(call["arguments"])
                    self.assertIn(arguments.get("unit", "C"), ("C", "F"))
                    self.assertLessEqual(len(arguments["city"]), 9)
            for drafter in ("ngram", "suffix", "grammar", "self"):
                drafting, _ = self.marked(template, marks, "--spec-type", drafter, "--verify", "sample-match", "--lookahead", "fixed", "--num-speculative-tokens", "4")
                for seed, message in plain.items():
                    with self.subTest(form=name, seed=seed, drafter=drafter):
                        body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": FORCED, "temperature": 1, "seed": seed}
                        self.assertEqual(self.both(drafting, body), message)

    def test_ids_are_those_of_the_template(self):
        call = {"role": "assistant", "content": "", "tool_calls": [
            {"id": f"toolu_{i}", "type": "function", "function": {"name": name, "arguments": "{}"}} for i, name in enumerate(("now", "weather"))]}
        results = [{"role": "tool", "tool_call_id": f"toolu_{i}", "content": "ok"} for i in (1, 0)]
        messages = [MESSAGE, call, *results]
        for name, ids in (("mistral", r"ok(\w{9})\nok(\w{9})\n$"), ("kimi-k2", r"ok(functions.weather:1)\nok(functions.now:0)\n$")):
            server, _ = self.marked(*FORMS[name])
            text = server.post("/apply-template", {"messages": messages})["prompt"]
            with self.subTest(form=name):
                found = re.search(ids, text)
                self.assertTrue(found, text)
                self.assertNotEqual(found[1], found[2])
                self.assertNotIn("toolu", text)
                self.assertEqual(text, server.post("/apply-template", {"messages": messages})["prompt"])

    def test_a_model_that_thinks_may_do_so_before_it_calls(self):
        template, marks = FORMS["mistral"]
        server, ids = self.marked("{# [THINK] [/THINK] #}" + template, [*marks, "[THINK]", "[/THINK]"])
        bias = {ids["[THINK]"]: 100, ids["[/THINK]"]: 4}
        body = {"messages": [MESSAGE], "tools": TOOLS, "tool_choice": FORCED, "temperature": 1, "logit_bias": bias}
        message = self.both(server, body)
        self.assertEqual(sorted(message), ["reasoning_content", "tool_calls"])
        bias[ids["[THINK]"]] = -100
        self.assertEqual(list(self.both(server, body)), ["tool_calls"])

    @staticmethod
    def thought(server, message):
        """How many tokens it has."""
        return len(server.post("/tokenize", {"content": message.get("reasoning_content", "")})["tokens"])

    def test_a_budget_ends_a_thought(self):
        for name, (template, marks) in THINKERS.items():
            server, ids = self.marked("{# " + " ".join(marks) + " #}" + template, marks)
            begun, _ = self.marked("{# " + " ".join(marks) + " #}" + template + marks[0], marks)
            drafting, _ = self.marked(template + marks[0] + "{# " + marks[1] + " #}", marks, "--spec-type", "ngram", "--lookahead", "fixed")
            for budget in (0, 1, 20):
                body = {"messages": [MESSAGE], "thinking_budget_tokens": budget, "temperature": 1, "max_tokens": 60, "logit_bias": {ids[marks[1]]: -100}}
                answer = self.both(begun, body)
                with self.subTest(marks=name, budget=budget):
                    self.assertLessEqual(self.thought(server, answer), budget + 2)  # a text of its own may begin otherwise
                    self.assertTrue(answer["content"])
                    self.assertTrue(answer.get("reasoning_content") or budget < 20)
                    self.assertEqual(self.both(drafting, body), answer)
                    # An answer that begins with a thought itself.
                    grammar = f"root ::= <[{ids[marks[0]]}]> [a-z ]* <[{ids[marks[1]]}]> [A-Z]"
                    own = self.both(server, {**body, "grammar": grammar})
                    self.assertRegex(own["content"], "^[A-Z]$")
                    self.assertLessEqual(self.thought(server, own), budget + 2)
        plain, _ = self.marked(FORMS["hermes"][0], [])
        reply = plain.post(CHATS, {"messages": [MESSAGE], "thinking_budget_tokens": 4, "max_tokens": 4})
        self.assertIn("thinking_budget_tokens", str(reply["notices"]))

    def test_thoughts_stand_between_control_tokens(self):
        for name, (template, marks) in THINKERS.items():
            server, ids = self.marked(template, marks)
            begin, end = (ids[mark] for mark in marks)
            # The thought holds text that spells its end.
            grammar = f'root ::= <[{begin}]> "Is {marks[1]} it?" <[{end}]> "Yes."'
            body = {"messages": [MESSAGE], "grammar": grammar}
            with self.subTest(marks=name):
                self.assertEqual(self.both(server, body), {"reasoning_content": f"Is {marks[1]} it?", "content": "Yes."})
                self.assertEqual(self.both(server, {**body, "reasoning_format": "none"}), {"content": f"Is {marks[1]} it?Yes."})
                shown = {**body, "reasoning_format": "none", "skip_special_tokens": False}
                self.assertEqual(self.both(server, shown), {"content": f"{marks[0]}Is {marks[1]} it?{marks[1]}Yes."})
                spelled = {"messages": [MESSAGE], "grammar": f'root ::= "{marks[0]} is a mark."'}
                self.assertEqual(self.both(server, spelled), {"content": f"{marks[0]} is a mark."})

    def counted(self, server, body):
        """The tokens of an answer, and how many of them its three usages call reasoning, which must be the same."""
        body = {"max_tokens": 120, "seed": 3, **body}
        counts = [server.post(CHATS, body)["usage"]["completion_tokens_details"]["reasoning_tokens"]]
        chunks = server.stream(CHATS, {**body, "speculative": {"trace": True}, "stream_options": {"include_usage": True}})
        counts.append(chunks[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"])
        tokens = [token for chunk in chunks for token in chunk.get("foretoken", {"tokens": []})["tokens"]]
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], len(tokens))
        if "grammar" not in body:
            asked = {key: value for key, value in body.items() if key not in ("messages", "max_tokens")}
            response = server.post("/v1/responses", {**asked, "input": body["messages"], "max_output_tokens": body["max_tokens"]})
            counts.append(response["usage"]["output_tokens_details"]["reasoning_tokens"])
        self.assertEqual(len(set(counts)), 1, counts)
        return tokens, counts[0]

    def test_tokens_of_thoughts_are_counted(self):
        for name, (template, marks) in THINKERS.items():
            server, ids = self.marked("{# " + " ".join(marks) + " #}" + template, marks)
            begun, _ = self.marked("{# " + " ".join(marks) + " #}" + template + marks[0], marks, "--spec-type", "ngram", "--lookahead", "fixed")
            begin, end = (ids[mark] for mark in marks)
            with self.subTest(marks=name):
                own = {"messages": [MESSAGE], "grammar": f'root ::= <[{begin}]> "Is {marks[1]} it?" <[{end}]> "\n\nYes."'}
                tokens, n = self.counted(server, own)
                self.assertEqual(n, [token["id"] for token in tokens].index(end) + 1)
                self.assertLess(n, len(tokens))
                self.assertEqual(self.counted(server, {**own, "reasoning_format": "none"})[1], 0)
                # The template has begun the thought, which a bias ends early, or never.
                body = {"messages": [MESSAGE], "temperature": 1, "max_tokens": 60, "logit_bias": {end: 9}}
                tokens, n = self.counted(begun, body)
                self.assertEqual(n, [token["id"] for token in tokens].index(end) + 1)
                tokens, n = self.counted(begun, {**body, "logit_bias": {end: -100}})
                self.assertEqual(n, len(tokens))
                self.assertEqual(self.counted(server, {**body, "logit_bias": {begin: -100}})[1], 0)
        # Marks that are text: a token may hold the end of one and what follows it.
        server, _ = self.marked(THINKERS["<think>"][0] + "{# <think></think> #}", [])
        tokens, n = self.counted(server, {"messages": [MESSAGE], "grammar": 'root ::= "<think>Is it?</think>Yes."'})
        texts = ["".join(token["text"] for token in tokens[:i]) for i in range(len(tokens) + 1)]
        self.assertEqual(n, next(i for i, text in enumerate(texts) if "</think>" in text))

    def test_tokens_of_channels_are_counted(self):
        server, ids = self.marked(*FORMS["harmony"])
        message, end = ids["<|message|>"], ids["<|end|>"]
        begins = [server.post("/tokenize", {"content": f"({name}"})["tokens"][1] for name in ("analysis", "final")]
        thoughts = 0
        for seed in range(6):
            bias = {end: 8, begins[0]: 22 + 3 * seed, begins[1]: 22}
            tokens, n = self.counted(server, {"messages": [MESSAGE], "grammar": 'root ::= "Yes."', "max_tokens": 250, "temperature": 1, "seed": seed,
                                              "logit_bias": bias})
            expected = first = 0
            at = [token["id"] for token in tokens]
            while at:  # a message, from its header to its end
                stop = at.index(end) + 1 if end in at else len(at)
                header = "".join(token["text"] for token in tokens[first:first + (at.index(message) if message in at else 0)])
                if "analysis" in header.split("<|channel|>")[-1]:
                    expected += stop
                    thoughts += 1
                first += stop
                at = at[stop:]
            with self.subTest(seed=seed):
                self.assertEqual(n, expected, [token["text"] for token in tokens])
        self.assertGreater(thoughts, 0)

    def test_channels_of_harmony_are_thoughts_and_answers(self):
        server, ids = self.marked(*FORMS["harmony"])
        thoughts = answers = 0
        # The grammar holds the answer. Messages before it are free; a bias keeps them short and few.
        begins = [server.post("/tokenize", {"content": f"({channel}"})["tokens"][1] for channel in ("analysis", "final")]
        for seed in range(8):
            bias = {ids["<|end|>"]: 8, begins[0]: 22 + seed, begins[1]: 22}
            body = {"messages": [MESSAGE], "grammar": 'root ::= "Yes."', "max_tokens": 250, "temperature": 1, "seed": seed, "logit_bias": bias}
            answer = self.both(server, body)
            self.assertNotIn("<|", str(answer))
            thoughts += bool(answer.get("reasoning_content"))
            if "content" in answer:
                answers += 1
                self.assertEqual(answer["content"], "Yes.")
        self.assertGreater(thoughts, 0)
        self.assertGreater(answers, 0)

    def test_a_grammar_names_only_control_tokens(self):
        server, ids = self.marked(*THINKERS["[THINK]"])
        error = server.error("/v1/completions", {"prompt": "a", "grammar": "root ::= <[300]>"})
        self.assertEqual(error["param"], "grammar")
        self.assertIn("<[300]> is no control token", error["message"])
        grammar = f'root ::= "b" <[{ids["[THINK]"]}]> "c"'
        for shown, text in ((True, "b[THINK]c"), (False, "bc")):
            reply = server.post("/v1/completions", {"prompt": "a", "grammar": grammar, "skip_special_tokens": not shown})
            self.assertEqual(reply["choices"][0]["text"], text)


if __name__ == "__main__":
    main()
