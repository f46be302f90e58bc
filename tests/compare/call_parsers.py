#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of tools as foretoken and llama.cpp read them, from the same answers: models that say what they are told (scripted_model.py), in each form.

  call_parsers.py --foretoken build/release/foretoken --llama "PREFIX" --folder FOLDER --seen-as FOLDER [--forms hermes+glm] [--show all]

PREFIX runs a program of llama.cpp (it gets `llama-server ...` appended); models are written into --folder, which that program sees as --seen-as. Without
--llama, foretoken's replies are held against what the answers mean alone. Each answer is asked for whole and streamed, with tools and the choice auto, at
temperature 0, and every reply is compared with what was written: content, thought, names, and arguments as JSON. A server's grammar may make another answer
of it, which its tokens show; such an answer says nothing about that server's reader. A row of the table has for each server how many answers its grammar
changed, and how many of the others it read as they were meant; "differ" are those of which the servers' replies are not the same. Exit code 1 where a reply
of foretoken is neither what was meant nor has a reason in CHOICES.
"""
import argparse
import dataclasses
import http.client
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from scripted_model import CONTROL, USER, scripted_model
from server_testing import Server, events

CHATS = "/v1/chat/completions"
STRING = {"type": "string"}
SCHEMAS = {
    "weather": {"type": "object", "properties": {"city": STRING, "unit": {"type": "string", "enum": ["C", "F"]}}, "required": ["city"]},
    "note": {"type": "object", "properties": {
        "text": STRING, "tags": {"type": "array", "items": STRING}, "size": {"type": "number"}, "count": {"type": "integer"}, "done": {"type": "boolean"},
        "meta": {"type": "object", "properties": {"author": STRING, "year": {"type": "integer"}}, "required": ["author"]}}, "required": ["text"]},
    "now": {"type": "object", "properties": {}},
}
TOOLS = [{"type": "function", "function": {"name": name, "description": f"does {name}", "parameters": schema}} for name, schema in SCHEMAS.items()]


@dataclasses.dataclass
class Answer:
    text: str = ""
    calls: list = dataclasses.field(default_factory=list)  # (name, arguments)
    thought: str = ""
    compact: bool = False  # JSON without spaces
    cut: float = 1.0  # how much of it is asked for
    behind: str = ""  # text behind the calls
    raw: str = ""  # the answer as it is written, where the form's writing is another


@dataclasses.dataclass
class Form:
    calls: str  # the part of a template that writes a message's calls
    write: object  # the same for (calls, dumps)
    marks: list
    close: str  # the mark behind a call or a value
    kind: int = USER  # type of the marks' tokens
    think: tuple = ("<think>\n", "\n</think>\n\n")
    template: str = ""  # "": ChatML with the above
    ending: str = "<|im_start|>assistant\n"  # of prompts
    end: str = "<|im_end|>"  # the token behind answers
    text: tuple = ("", "")  # around the text of an answer
    begun: bool = False  # the prompt ends with the beginning of a thought
    others: tuple = ()  # other writings of calls: (name, text, calls)


def chatml(form):
    think = f"{{% if m.reasoning_content %}}{form.think[0]}{{{{ m.reasoning_content }}}}{form.think[1]}{{% endif %}}" if form.think else ""
    return ("{% if tools %}<|im_start|>system\nTools: {% for t in tools %}{{ t.function.name }} {% endfor %}<|im_end|>\n{% endif %}{% for m in messages %}{% if m.role == 'tool' %}<|im_start|>user\n"
            "<tool_response>\n{{ m.content }}\n</tool_response><|im_end|>\n{% elif m.role == 'assistant' %}<|im_start|>assistant\n" + think +
            "{{ m.content or '' }}{% if m.tool_calls %}" + form.calls + "{% endif %}<|im_end|>\n{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
            "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n" + (form.think[0] if form.begun else "") + "{% endif %}")


def each(one):
    """A template's loop over calls."""
    return "{% for c in m.tool_calls %}" + one + "{% endfor %}"


def tags_of(one, key):
    return "".join((one, "{% for k, v in c.function.arguments | items %}", key, "{% endfor %}"))


VALUE = "{{ v if v is string else v | tojson }}"
F = "{{ c.function.name }}"
JSON = "{{ c.function.arguments | tojson }}"
OBJECT = '{"name": "' + F + '", "arguments": ' + JSON + "}"


def objects(before, after, between="", name="name", arguments="arguments", around=("", ""), comma=""):
    def write(calls, dumps):
        return around[0] + before + (after + between + comma + before).join(dumps({name: n, arguments: a}) for n, a in calls) + after + around[1]
    return write


def named(before, middle, after, around=("", ""), between="", numbered=False):
    def write(calls, dumps):
        return around[0] + between.join(f"{before}{n}{f':{i}' if numbered else ''}{middle}{dumps(a)}{after}" for i, (n, a) in enumerate(calls)) + around[1]
    return write


def tagged(open_, name, key, value_end, end, around=("", ""), between="\n"):
    """name: has {}; key: has {}, or two, the second of which says whether the value is a text."""
    def write(calls, dumps):
        return around[0] + between.join(open_ + name.format(n) + "".join(
            key.format(k, str(isinstance(v, str)).lower()) + (v if isinstance(v, str) else dumps(v)) + value_end for k, v in a.items()) + end for n, a in calls) + around[1]
    return write


DEEPSEEK = ["<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"]
KIMI = ["<|tool_calls_section_begin|>", "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>", "<|tool_calls_section_end|>"]
HARMONY = ["<|start|>", "<|channel|>", "<|message|>", "<|constrain|>", "<|end|>", "<|return|>", "<|call|>"]
THINK = ["<think>", "</think>"]
FORMS = {
    "hermes": Form(each("\n<tool_call>\n" + OBJECT + "\n</tool_call>"), objects("<tool_call>\n", "\n</tool_call>", "\n"), ["<tool_call>", "</tool_call>", *THINK],
                   "</tool_call>"),
    "qwen-coder": Form(each(tags_of("\n<tool_call>\n<function=" + F + ">\n", "<parameter={{ k }}>\n" + VALUE + "\n</parameter>\n") + "</function>\n</tool_call>"),
                       tagged("<tool_call>\n", "<function={}>\n", "<parameter={}>\n", "\n</parameter>\n", "</function>\n</tool_call>"),
                       ["<tool_call>", "</tool_call>", *THINK], "</parameter>"),
    "glm": Form(each(tags_of("\n<tool_call>" + F + "\n", "<arg_key>{{ k }}</arg_key>\n<arg_value>" + VALUE + "</arg_value>\n") + "</tool_call>"),
                tagged("<tool_call>", "{}\n", "<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>\n", "</tool_call>"),
                ["<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", *THINK], "</arg_value>"),
    "seed-oss": Form(each(tags_of("\n<seed:tool_call>\n<function=" + F + ">\n", "<parameter={{ k }}>" + VALUE + "</parameter>\n") + "</function>\n</seed:tool_call>"),
                     tagged("<seed:tool_call>\n", "<function={}>\n", "<parameter={}>", "</parameter>\n", "</function>\n</seed:tool_call>"),
                     ["<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>"], "</parameter>", think=("<seed:think>", "</seed:think>\n")),
    "minimax-m2": Form("\n<minimax:tool_call>\n" + each(tags_of('<invoke name="' + F + '">\n', '<parameter name="{{ k }}">' + VALUE + "</parameter>\n") + "</invoke>\n") +
                       "</minimax:tool_call>",
                       tagged("", '<invoke name="{}">\n', '<parameter name="{}">', "</parameter>\n", "</invoke>\n", ("<minimax:tool_call>\n", "</minimax:tool_call>"), ""),
                       ["<minimax:tool_call>", "</minimax:tool_call>", *THINK], "</parameter>"),
    "deepseek-v3.1": Form("<｜tool▁calls▁begin｜>" + each("<｜tool▁call▁begin｜>" + F + "<｜tool▁sep｜>" + JSON + "<｜tool▁call▁end｜>") + "<｜tool▁calls▁end｜>",
                          named(DEEPSEEK[1], DEEPSEEK[2], DEEPSEEK[3], (DEEPSEEK[0], DEEPSEEK[4])), [*DEEPSEEK, *THINK], DEEPSEEK[3]),
    "deepseek": Form("<｜tool▁calls▁begin｜>" + each("<｜tool▁call▁begin｜>function<｜tool▁sep｜>" + F + "\n```json\n" + JSON + "\n```<｜tool▁call▁end｜>") + "<｜tool▁calls▁end｜>",
                     named(DEEPSEEK[1] + "function" + DEEPSEEK[2], "\n```json\n", "\n```" + DEEPSEEK[3], (DEEPSEEK[0], DEEPSEEK[4])), [*DEEPSEEK, *THINK],
                     "\n```" + DEEPSEEK[3]),
    "kimi-k2": Form("", named(KIMI[1] + "functions.", KIMI[2], KIMI[3], (KIMI[0], KIMI[4]), numbered=True), [*KIMI, *THINK], KIMI[3], think=("<think>", "</think>"),
                    ending="<|im_assistant|>assistant<|im_middle|>", template=(
                        "{% if tools %}<|im_system|>tool_declare<|im_middle|>{% for t in tools %}{{ t.function.name }} {% endfor %}<|im_end|>{% endif %}"
                        "{% for m in messages %}<|im_{{ m.role }}|>{{ m.role }}<|im_middle|>{% if m.role == 'assistant' %}<think>{{ m.reasoning_content or '' }}</think>"
                        "{{ m.content or '' }}{% if m.tool_calls %}<|tool_calls_section_begin|>" + each(
                            "<|tool_call_begin|>{{ c.id }}<|tool_call_argument_begin|>" + JSON + "<|tool_call_end|>") + "<|tool_calls_section_end|>{% endif %}"
                        "{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}")),
    "mistral": Form("", named("[TOOL_CALLS]", "[ARGS]", ""), ["[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]"], "", CONTROL, ("[THINK]", "[/THINK]"), ending="[/INST]",
                    end="</s>", template=(
                        "{% if tools %}[AVAILABLE_TOOLS]{% for t in tools %}{{ t.function.name }} {% endfor %}[/AVAILABLE_TOOLS]{% endif %}{% for m in messages %}"
                        "{% if m.role == 'system' %}[SYSTEM_PROMPT]{{ m.content }}[/SYSTEM_PROMPT]{% elif m.role == 'user' %}[INST]{{ m.content }}[/INST]"
                        "{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]{% else %}{% if m.content is string %}{{ m.content }}{% else %}"
                        "{% for part in m.content or [] %}{% if part.type == 'thinking' %}[THINK]{{ part.thinking }}[/THINK]{% else %}{{ part.text }}{% endif %}{% endfor %}"
                        "{% endif %}" + "{% for c in m.tool_calls or [] %}[TOOL_CALLS]" + F + "[ARGS]" + JSON + "{% endfor %}</s>{% endif %}{% endfor %}")),
    "mistral-list": Form("[TOOL_CALLS][" + each('{"name": "' + F + '", "arguments": ' + JSON + ', "id": "{{ c.id }}"}{% if not loop.last %}, {% endif %}') + "]",
                         lambda calls, dumps: "[TOOL_CALLS]" + dumps([{"name": n, "arguments": a, "id": f"abcdefgh{i}"} for i, (n, a) in enumerate(calls)]),
                         ["[TOOL_CALLS]"], "]", CONTROL, None),
    "nemotron": Form("<TOOLCALL>[" + each(OBJECT + "{% if not loop.last %}, {% endif %}") + "]</TOOLCALL>",
                     lambda calls, dumps: "<TOOLCALL>" + dumps([{"name": n, "arguments": a} for n, a in calls]) + "</TOOLCALL>", [*THINK], "</TOOLCALL>"),
    "command-r": Form("<|START_ACTION|>[" + each('{"tool_call_id": "{{ loop.index0 }}", "tool_name": "' + F + '", "parameters": ' + JSON +
                                                 "}{% if not loop.last %}, {% endif %}") + "]<|END_ACTION|>",
                      lambda calls, dumps: "<|START_ACTION|>" + dumps([{"tool_call_id": str(i), "tool_name": n, "parameters": a} for i, (n, a) in enumerate(calls)]) +
                      "<|END_ACTION|>", ["<|START_ACTION|>", "<|END_ACTION|>", "<|START_THINKING|>", "<|END_THINKING|>"], "<|END_ACTION|>", CONTROL,
                      ("<|START_THINKING|>", "<|END_THINKING|>")),
    "llama": Form(each('{"name": "' + F + '", "parameters": ' + JSON + "}"), objects("", "", arguments="parameters"), [], "", USER, None),
    "granite": Form("<|tool_call|>[" + each(OBJECT + "{% if not loop.last %}, {% endif %}") + "]",
                    lambda calls, dumps: "<|tool_call|>" + dumps([{"name": n, "arguments": a} for n, a in calls]), ["<|tool_call|>"], "]", CONTROL, None),
    "phi-4": Form("<|tool_call|>[" + each(OBJECT + "{% if not loop.last %}, {% endif %}") + "]<|/tool_call|>",
                  lambda calls, dumps: "<|tool_call|>" + dumps([{"name": n, "arguments": a} for n, a in calls]) + "<|/tool_call|>",
                  ["<|tool_call|>", "<|/tool_call|>"], "<|/tool_call|>", CONTROL, None),
    "deepseek-v3.2": Form("{# dsml_token #}\n\n<｜DSML｜function_calls>\n" + each(
        '<｜DSML｜invoke name="' + F + '">\n{% for k, v in c.function.arguments | items %}<｜DSML｜parameter name="{{ k }}" string="{{ "true" if v is string else "false" }}">' +
        VALUE + "</｜DSML｜parameter>\n{% endfor %}</｜DSML｜invoke>\n") + "</｜DSML｜function_calls>",
        tagged("", '<｜DSML｜invoke name="{}">\n', '<｜DSML｜parameter name="{}" string="{}">', "</｜DSML｜parameter>\n", "</｜DSML｜invoke>\n",
               ("\n\n<｜DSML｜function_calls>\n", "</｜DSML｜function_calls>"), ""), ["｜DSML｜", *THINK], "</｜DSML｜parameter>"),
    "harmony": Form("", lambda calls, dumps: "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{n} <|constrain|>json<|message|>{dumps(a)}" for n, a in calls), HARMONY, "<|call|>", CONTROL,
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"), text=("<|channel|>final<|message|>", ""), ending="<|start|>assistant", end="<|return|>", template=(
            "<|start|>system<|message|>Valid channels: analysis, commentary, final.<|end|>{% if tools %}<|start|>developer<|message|>{% for t in tools %}{{ t.function.name }} {% endfor %}<|end|>{% endif %}"
            "{% for m in messages %}{% if m.role == 'assistant' %}{% if m.thinking %}<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>{% endif %}"
            "{% if m.tool_calls %}{% for c in m.tool_calls %}<|start|>assistant to=functions." + F + "<|channel|>commentary json<|message|>" + JSON +
            "<|call|>{% endfor %}{% else %}<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>{% endif %}{% else %}<|start|>{{ m.role }}<|message|>"
            "{{ m.content }}<|end|>{% endif %}{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}")),
}
ROME = [("weather", {"city": "Rome"})]
ROME_NOW = [*ROME, ("now", {})]
HERMES_OTHERS = (
    ("one line", '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>', ROME),
    ("the name last", '<tool_call>\n{"arguments": {"city": "Rome"}, "name": "weather"}\n</tool_call>', ROME),
    ("no end", '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}', ROME),
    ("two in one mark", '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n{"name": "now", "arguments": {}}\n</tool_call>', ROME_NOW),
    ("no line between", '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call><tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>', ROME_NOW),
    ("empty lines between", '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>\n',
     ROME_NOW),
    ("indented", '<tool_call>\n{\n  "name": "weather",\n  "arguments": {\n    "city": "Rome"\n  }\n}\n</tool_call>', ROME))
CODER_OTHERS = (
    ("one line", "<tool_call><function=weather><parameter=city>Rome</parameter></function></tool_call>", ROME),
    ("no first mark", "<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call>", ROME),
    ("no end", "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>", ROME),
    ("no line in the value", "<tool_call>\n<function=weather>\n<parameter=city>Rome</parameter>\n</function>\n</tool_call>", ROME),
    ("no line between", "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n</tool_call><tool_call>\n<function=now>\n</function>\n</tool_call>",
     ROME_NOW),
    ("two in one mark", "<tool_call>\n<function=weather>\n<parameter=city>\nRome\n</parameter>\n</function>\n<function=now>\n</function>\n</tool_call>", ROME_NOW))
GLM_OTHERS = (
    ("one line", "<tool_call>weather<arg_key>city</arg_key><arg_value>Rome</arg_value></tool_call>", ROME),
    ("no arguments, one line", "<tool_call>now</tool_call>", [("now", {})]),
    ("no line between", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n</tool_call><tool_call>now\n</tool_call>", ROME_NOW),
    ("lines around the value", "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>\nRome\n</arg_value>\n</tool_call>", ROME))
DEEPSEEK_OTHERS = (
    ("lines", "<｜tool▁calls▁begin｜>\n<｜tool▁call▁begin｜>weather<｜tool▁sep｜>{\"city\": \"Rome\"}<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜>\n"
     "<｜tool▁calls▁end｜>", ROME_NOW),
    ("no section", '<｜tool▁call▁begin｜>weather<｜tool▁sep｜>{"city": "Rome"}<｜tool▁call▁end｜>', ROME))
KIMI_OTHERS = (
    ("spaces", '<|tool_calls_section_begin|> <|tool_call_begin|> functions.weather:0 <|tool_call_argument_begin|> {"city": "Rome"} <|tool_call_end|> <|tool_calls_section_end|>', ROME),
    ("no functions.", '<|tool_calls_section_begin|><|tool_call_begin|>weather:0<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>', ROME),
    ("numbers go on", '<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:7<|tool_call_argument_begin|>{"city": "Rome"}<|tool_call_end|><|tool_calls_section_end|>', ROME))
MISTRAL_OTHERS = (
    ("a space", '[TOOL_CALLS]weather[ARGS] {"city": "Rome"}', ROME),
    ("an id", '[TOOL_CALLS]weather[CALL_ID]abcdefgh1[ARGS]{"city": "Rome"}', ROME))
HARMONY_OTHERS = (
    ("the recipient first", '<|start|>assistant to=functions.weather<|channel|>commentary json<|message|>{"city": "Rome"}'.removeprefix("<|start|>assistant"), ROME),
    ("no constraint", '<|channel|>commentary to=functions.weather<|message|>{"city": "Rome"}', ROME),
    ("code", '<|channel|>commentary to=functions.weather code<|message|>{"city": "Rome"}', ROME),
    ("analysis channel", '<|channel|>analysis to=functions.weather <|constrain|>json<|message|>{"city": "Rome"}', ROME),
    ("a call's end", '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Rome"}<|call|>', ROME))
OTHERS = {"hermes": HERMES_OTHERS, "qwen-coder": CODER_OTHERS, "glm": GLM_OTHERS, "deepseek-v3.1": DEEPSEEK_OTHERS, "kimi-k2": KIMI_OTHERS, "mistral": MISTRAL_OTHERS,
          "harmony": HARMONY_OTHERS}
for form_name, others in OTHERS.items():
    FORMS[form_name].others = others
for form_name in ("hermes", "qwen-coder", "glm", "seed-oss", "minimax-m2", "deepseek-v3.1"):
    FORMS[form_name + ", thinking"] = dataclasses.replace(FORMS[form_name], begun=True, others=())

STRINGS = {
    "quotes": 'He said "no", twice.', "backslashes": "C:\\new\\table \\u0041 \\", "lines": "one\ntwo\n\n\tthree", "unicode": "Zürich ☂ 東京 \U0001f600 e\u0301",
    "JSON": '{"a": [1, "b"], "c": {}}', "a list": '["a", "b"]', "tags": "<b>bold</b> & </p> < >", "a line break at the end": "end\n", "a line break first": "\nx",
    "spaces": "  x  ", "empty": "", "a number": "42", "a truth": "true", "null": "null", "a quoted text": '"quoted"', "a brace": "}", "a comma": '", "b": "c',
    "code": 'if (a < b) {\n  printf("%d\\n", a);\n}', "crlf": "a\r\nb",
}


def answers_of(form):
    rome, oslo = ("weather", {"city": "Rome"}), ("weather", {"city": "Oslo", "unit": "F"})
    note = ("note", {"text": "Buy milk, then eggs.", "tags": ["a", "b c"]})
    full = ("note", {"text": "x", "tags": [], "size": -2.5, "count": 12, "done": True, "meta": {"author": "Jo \"J\" Doe", "year": 1999}})
    answers = {
        "text": Answer("Rome is warm today."), "text, unicode": Answer("Zürich ☂ 東京 \U0001f600."), "text, lines": Answer("One.\n\n- two\n- three"),
        "text, tags": Answer("It is a < b, and <tool is no call: <x>y</x>."), "text, JSON": Answer('As JSON: {"name": "weather", "city": [1]}.'),
        "text, code": Answer("So:\n```json\n{\"a\": 1}\n```\nDone."),
        "call": Answer(calls=[rome]), "call, enum": Answer(calls=[oslo]), "call, compact": Answer(calls=[oslo], compact=True), "call, no arguments": Answer(calls=[("now", {})]),
        "call, nested": Answer(calls=[full]), "call, nested, compact": Answer(calls=[full], compact=True), "call, list": Answer(calls=[note]),
        "call, other order": Answer(calls=[("weather", {"unit": "C", "city": "Rome"})]), "call, optional left out": Answer(calls=[("note", {"text": "x", "count": 0})]),
        "text, call": Answer("I shall look.", [rome]), "text, line, call": Answer("I shall look.\n\n", [rome]), "two calls": Answer(calls=[rome, oslo]),
        "two tools": Answer(calls=[rome, ("now", {})]), "three calls": Answer("Three:", [note, ("now", {}), full]), "now, now": Answer(calls=[("now", {}), ("now", {})]),
        "unknown tool": Answer(calls=[("fly", {"to": "Rome"})]), "unknown argument": Answer(calls=[("weather", {"city": "Rome", "day": "today"})]),
        "missing argument": Answer(calls=[("weather", {"unit": "C"})]), "other type": Answer(calls=[("note", {"text": "x", "count": "many"})]),
        "other enum": Answer(calls=[("weather", {"city": "Rome", "unit": "kelvin"})]),
    }
    for name, text in STRINGS.items():
        answers[f"string, {name}"] = Answer(calls=[("note", {"text": text})])
    for n in (1, 2, 5):
        if len(form.close) > n:
            answers[f"string, mark without {n}"] = Answer(calls=[("note", {"text": f"a {form.close[:-n]} b"})])
    if form.think:
        if form.kind == USER:
            answers["thought, mark"] = Answer("Yes.", [rome], f"I may write {(form.marks or [form.close])[0]} then.")
        answers["thought, lines"] = Answer("Yes.", thought="One.\n\nTwo: {\"a\": 1}\n- three")
        answers["cut in a thought"] = Answer("Yes.", thought="Hm, is it? I do not know it at all, or do I?", cut=0.4)
        answers.update({"thought, text": Answer("Yes.", thought="Hm, is it?"), "thought, call": Answer(calls=[rome], thought="I must look."),
                        "thought, text, call": Answer("I look.", [rome], "I must\n\nlook <b>."), "thought, two calls": Answer(calls=[rome, oslo], thought="Both.")})
    answers["call, text behind"] = Answer(calls=[rome], behind="That is all.")
    for label, text, calls in form.others:
        answers[f"other: {label}"] = Answer(calls=calls, raw=text)
    for cut in (0.3, 0.5, 0.7, 0.85, 0.95):
        answers[f"cut at {cut}"] = Answer("Look:", [note], cut=cut)
    return answers


def written(form, answer):
    def dumps(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":") if answer.compact else (", ", ": "))
    thought = form.think[0] * (not form.begun) + answer.thought + form.think[1] if answer.thought or form.begun else ""
    text = form.text[0] + answer.text + form.text[1] if answer.text else ""
    if text and answer.calls and form.text[0]:
        text = f"<|channel|>commentary<|message|>{answer.text}<|end|><|start|>assistant"
    return thought + (answer.raw or text + (form.write(answer.calls, dumps) if answer.calls else "") + answer.behind)


def meant(answer):
    return {"content": answer.text + answer.behind, "reasoning_content": answer.thought, "calls": [(name, arguments) for name, arguments in answer.calls]}


class Peer(Server):
    """llama-server, with the same methods."""

    def __init__(self, prefix, *flags):
        self.log, self.sent = tempfile.TemporaryFile(mode="w+"), 0
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([*shlex.split(prefix), "llama-server", "--port", str(self.port), *flags], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        for _ in range(1200):
            try:
                if self.send("GET", "/health")[0] == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(self.log_text())


def arguments_of(text):
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    return arguments if isinstance(arguments, dict) else {"no JSON": text}


def short(message):
    calls = [(call["function"]["name"], arguments_of(call["function"].get("arguments", ""))) for call in message.get("tool_calls") or []]
    return {"content": message.get("content") or "", "reasoning_content": message.get("reasoning_content") or "", "calls": calls}


def together(chunks):
    message, calls = {"content": "", "reasoning_content": ""}, []
    for chunk in chunks:
        for choice in chunk.get("choices", []):
            for key in message:
                message[key] += choice["delta"].get(key) or ""
            for call in choice["delta"].get("tool_calls") or []:
                while len(calls) <= call["index"]:
                    calls.append({"function": {"name": "", "arguments": ""}})
                for key, text in call["function"].items():
                    calls[call["index"]]["function"][key] += text or ""
    return short({**message, "tool_calls": calls})


def replies(server, key, tokens):
    """{"whole", "streamed", "said"}: two messages, and the text of the tokens; {"error"} where there is none."""
    body = {"messages": [{"role": "user", "content": f"Well? {key}"}], "tools": TOOLS, "tool_choice": "auto", "temperature": 0, "max_tokens": tokens,
            "parallel_tool_calls": True}
    status, _, data = server.send("POST", CHATS, {**body, "logprobs": True, "top_logprobs": 1})
    if status != 200:
        return {"error": data.decode()[:400]}
    choice = json.loads(data)["choices"][0]
    said = b"".join(bytes(token["bytes"]) for token in (choice.get("logprobs") or {"content": []})["content"] or []).decode(errors="replace")
    status, _, data = server.send("POST", CHATS, {**body, "stream": True})
    streamed = together(events(data)) if status == 200 else {"error": data.decode()[:400]}
    return {"whole": short(choice["message"]), "streamed": streamed, "said": said, "reason": choice["finish_reason"]}


def run_form(args, name, form, kind):
    """{answer's name: (answer, text, {server: replies})}"""
    answers = answers_of(form)
    texts = {label: written(form, answer) for label, answer in answers.items()}
    keys = {label: f"<key-{i}>" for i, label in enumerate(answers)}
    template = form.template or chatml(form)
    ending, end = form.ending + (form.think[0] if form.begun else ""), form.end
    path = os.path.join(args.folder, f"call-parsers-{os.getpid()}.gguf")
    marks = {end: CONTROL, "<|im_start|>": CONTROL, "[/INST]": CONTROL, "<|im_middle|>": CONTROL, **{mark: kind for mark in form.marks if mark != end}}
    said = scripted_model(path, marks, {keys[label]: text for label, text in texts.items()}, ending, end=end, template=template)
    found = {label: (answer, texts[label], {}) for label, answer in answers.items()}
    servers = {"foretoken": lambda: Server(args.foretoken, "-m", path, "-t", "1", "-q", "--spec-type", "none", "--repack-cache", "off")}
    if args.llama:
        servers["llama.cpp"] = lambda: Peer(args.llama, "-m", os.path.join(args.seen_as, os.path.basename(path)), "--jinja", "-t", "1", "-np", "1", "-c", "4096",
                                            "--no-warmup", *shlex.split(args.llama_flags))
    for server_name, start in servers.items():
        with start() as server:
            for label, (answer, text, by_server) in found.items():
                n = len(said[keys[label]])
                by_server[server_name] = replies(server, keys[label], int(n * answer.cut) if answer.cut < 1 else n + 40)
                by_server[server_name]["script"] = "".join(said[keys[label]])
    os.remove(path)
    return end, found


def changed(reply, text, answer, end):
    """Whether the server's grammar made another answer of it."""
    said = reply["said"].removesuffix(end)
    return not text.startswith(said) if answer.cut < 1 else said != text


# What foretoken reads otherwise than it was meant, on purpose: {(form, answer): why}, with regular expressions.
CHOICES = []


def choice(form, label):
    return next((why for f, a, why in CHOICES if re.fullmatch(f, form) and re.fullmatch(a, label)), None)


def bare(message):
    """Without white space around texts, which servers leave out or do not."""
    calls = [(name, packed(str(arguments)) if "no JSON" in arguments else arguments) for name, arguments in message.get("calls", [])]
    return {**message, **{key: value.strip() for key, value in message.items() if isinstance(value, str)}, "calls": calls}


def packed(text):
    return re.sub(r"\s", "", text)


def is_beginning(got, goal):
    """Whether a reply is what is left of an answer that was cut: a call that has no name yet is left out, or is text."""
    if "calls" not in got or len(got["calls"]) > len(goal["calls"]) or not goal["reasoning_content"].startswith(got["reasoning_content"]):
        return False
    for (name, arguments), (whole_name, whole) in zip(got["calls"], goal["calls"]):
        text = arguments.get("no JSON")
        if name != whole_name or (arguments != whole if text is None else not packed(json.dumps(whole, ensure_ascii=False)).startswith(packed(text))):
            return False
    content = got["content"].strip()
    return goal["content"].startswith(content) if got["calls"] or len(content) < len(goal["content"]) else content.startswith(goal["content"])


def is_meant(reply, answer):
    goal = meant(answer)
    if answer.cut < 1:
        return all(is_beginning(reply[way], goal) for way in ("whole", "streamed"))
    return all(bare(reply[way]) == bare(goal) for way in ("whole", "streamed"))


def compared(end, form, found, show):
    counts, bad = {}, 0
    for label, (answer, text, by_server) in found.items():
        states = {}
        for server, reply in by_server.items():
            state = "error" if "error" in reply else "changed" if changed(reply, text, answer, end) else "right" if is_meant(reply, answer) else "wrong"
            states[server] = state
            counts[server, state] = counts.get((server, state), 0) + 1
        ours, theirs = states["foretoken"], states.get("llama.cpp")
        differ = ours != "error" and theirs in ("right", "wrong") and ours in ("right", "wrong") and any(
            bare(by_server["foretoken"][way]) != bare(by_server["llama.cpp"][way]) for way in ("whole", "streamed"))
        counts["differ"] = counts.get("differ", 0) + differ
        unequal = ours != "error" and by_server["foretoken"]["whole"] != by_server["foretoken"]["streamed"]
        counts["unequal"] = counts.get("unequal", 0) + unequal
        why = choice(form, label)
        bad += bool((ours in ("wrong", "error") or unequal) and not why)
        if show == "all" or show == "wrong" and (ours != "right" or differ or unequal) or show == "ours" and (ours != "right" or unequal):
            print(f"## {form}: {label}: {states}{' differ' if differ else ''}{' WHOLE AND STREAMED DIFFER' if unequal else ''}{f' ({why})' if why else ''}\n   {text!r}")
            for server, reply in by_server.items():
                if "error" in reply:
                    print(f"   {server}: {reply['error']}")
                    continue
                print(f"   {server}: {json.dumps(reply['whole'], ensure_ascii=False)[:400]} {reply['reason']}")
                if reply["streamed"] != reply["whole"]:
                    print(f"   {server}, streamed: {json.dumps(reply['streamed'], ensure_ascii=False)}")
                if states[server] == "changed":
                    same = len(os.path.commonprefix([reply["said"], text]))
                    print(f"   {server} wrote {reply['said'][:same]!r}, then {reply['said'][same:same + 40]!r}")
    return counts, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--foretoken", required=True)
    parser.add_argument("--llama", default="")
    parser.add_argument("--llama-flags", default="")
    parser.add_argument("--folder", required=True)
    parser.add_argument("--seen-as", default="/models")
    parser.add_argument("--forms", default="+".join(FORMS), help="names with + between them")
    parser.add_argument("--kinds", default="", help="control, user or both: the type of the marks' tokens; default: as the vocabularies have them")
    parser.add_argument("--show", choices=["ours", "wrong", "all", "none"], default="wrong")
    args = parser.parse_args()
    kinds = {"control": [CONTROL], "user": [USER], "both": [CONTROL, USER], "": [None]}[args.kinds]
    rows, bad = [], 0
    for name in args.forms.split("+"):
        for kind in kinds:
            form = FORMS[name]
            end, found = run_form(args, name, form, kind or form.kind)
            counts, wrong = compared(end, name, found, args.show)
            bad += wrong
            cells = [str(counts.get((server, state), 0)) for server in ("foretoken", "llama.cpp")[:2 if args.llama else 1] for state in ("right", "wrong", "changed", "error")]
            rows.append(f"| {name}, {'control' if (kind or form.kind) == CONTROL else 'user-defined'} | {len(found)} | {' | '.join(cells)} | {counts['differ']} | {counts['unequal']} |")
            sys.stdout.flush()
    columns = [f"{server}: {state}" for server in ("foretoken", "llama.cpp")[:2 if args.llama else 1] for state in ("right", "wrong", "changed", "error")]
    print(f"| form | answers | {' | '.join(columns)} | differ | whole and streamed differ |\n" + "|---" * (len(columns) + 4) + "|\n" + "\n".join(rows))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
