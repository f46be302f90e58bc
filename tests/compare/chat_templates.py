#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what foretoken writes with chat templates with what Python's Jinja writes, character by character.

  chat_templates.py RENDER_TEMPLATES [--write | TEMPLATE.jinja | TOKENIZER_CONFIG.json | MODEL.gguf]...

RENDER_TEMPLATES is the program of render_templates.cpp. Without files it renders the programs below, one for each family, which print
what the families' own do, and those of the folder templates; with files the templates in them, as they were published. What Python wrote
is kept in templates/expected.json (hashes), which --write makes anew, so that the comparison does not need the package jinja2; where it
is installed, it renders them once more. Exit code 1 on a difference.
"""
import hashlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))
from gguf_file import GgufFile  # noqa: E402
from rendered import Ours  # noqa: E402

try:
    import python_jinja
except ImportError:
    python_jinja = None

EXPECTED = HERE / "templates" / "expected.json"
BOS, EOS = "<s>", "</s>"
ROLE = "message['role']"
TEXT = "message['content']"
TAKE_SYSTEM = ("{% if messages[0]['role'] == 'system' %}{% set system_message = messages[0]['content'] %}{% set turns = messages[1:] %}"
               "{% else %}{% set turns = messages %}{% endif %}")
ALTERNATE = ("{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
             "{{ raise_exception('roles must alternate user/assistant') }}{% endif %}")
IM_TURN = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
IM_PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


def with_default_system(text):
    return ("{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\n" + text +
            "<|im_end|>\\n' }}{% endif %}" + IM_TURN + "{% endfor %}" + IM_PROMPT)


def headers(before):
    return (before + "{%- for message in turns %}{{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ "
            "message['content'] | trim + '<|eot_id|>' }}{%- endfor %}{%- if add_generation_prompt %}"
            "{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{%- endif %}")


def instructions(user, answer, system=None, start="{{ bos_token }}"):
    """`system`: the condition of the user message that it goes into, and how it is written there."""
    folded = user if system is None else (
        "{% if " + system[0] + " and system_message is defined %}" + system[1] + "{% else %}" + user + "{% endif %}")
    return (TAKE_SYSTEM + start + "{% for message in turns %}" + ALTERNATE + "{% if message['role'] == 'user' %}" + folded +
            "{% elif message['role'] == 'assistant' %}" + answer + "{% endif %}{% endfor %}")


DATED = (TAKE_SYSTEM.replace("{% else %}", "{% else %}{% set system_message = '' %}") + "{{- bos_token }}@SET"
         "{{- '<|start_header_id|>system<|end_header_id|>\\n\\n' }}{{- 'Cutting Knowledge Date: December 2023\\n' }}"
         "{{- 'Today Date: ' + date_string + '\\n\\n' }}{{- system_message | trim }}{{- '<|eot_id|>' }}")
V7 = ("{{ bos_token }}{% for message in messages %}{% if message['role'] == 'user' %}{{ '[INST]_' + message['content'] + '[/INST]' }}"
      "{% elif message['role'] == 'system' %}{{ '[SYSTEM_PROMPT]_' + message['content'] + '[/SYSTEM_PROMPT]' }}"
      "{% else %}{{ '_' + message['content'] + eos_token }}{% endif %}{% endfor %}")
THINKING = (
    "{% set ns = namespace(last_query_index=messages|length - 1) %}{% for message in messages %}{% if message.role == 'user' %}"
    "{% set ns.last_query_index = loop.index0 %}{% endif %}{% endfor %}{% for message in messages %}"
    "{% if message.role == 'assistant' %}{% set content = message.content %}{% set thoughts = '' %}{% if '</think>' in content %}"
    "{% set thoughts = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}"
    "{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}"
    "{% if loop.index0 > ns.last_query_index and (loop.last or thoughts) %}"
    "{{ '<|im_start|>assistant\\n<think>\\n' + thoughts.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') + '<|im_end|>\\n' }}"
    "{% else %}{{ '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>\\n' }}{% endif %}{% else %}"
    "{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}" + IM_PROMPT)
STORY = (HERE / "../../models/story.jinja").read_text(encoding="utf-8")
FAMILIES = {
    "story": STORY,
    "chatml": "{% for message in messages %}" + IM_TURN + "{% endfor %}" + IM_PROMPT,
    "chatml, printing BOS": "{{ bos_token }}{% for message in messages %}" + IM_TURN + "{% endfor %}" + IM_PROMPT,
    "chatml, with a system message": with_default_system("You answer in rhymes: \\\\o/ it\\'s fun."),
    "qwen2": with_default_system("You are a helpful assistant."),
    "qwen2.5": with_default_system("You are Qwen, created by Alibaba Cloud. You are a helpful assistant."),
    "qwen3": THINKING,
    "llama2": instructions(
        "{{ bos_token + '[INST] ' + message['content'].strip() + ' [/INST]' }}", "{{ ' ' + message['content'].strip() + ' ' + eos_token }}",
        ("loop.index0 == 0", "{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}"
         "{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}"), ""),
    "llama3": headers("{% set turns = messages %}{{- bos_token }}"),
    "llama3, always asking": headers("{% set turns = messages %}{{- bos_token }}").replace("{%- if add_generation_prompt %}", "").replace(
        "{%- endif %}", ""),
    "llama3.1": headers(DATED.replace("@SET", "{%- set date_string = '26 Jul 2024' %}")),
    "llama3.1 with today's date": headers(DATED.replace("@SET", "{%- if strftime_now is defined and not date_string is defined %}"
                                          "{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}")),
    "mistral-v0": instructions("{{ '[INST] ' + message['content'] + ' [/INST]' }}", "{{ message['content'] + eos_token }}"),
    "mistral-v0, spaced": instructions("{{ '[INST] ' + message['content'] + ' [/INST]' }}", "{{ message['content'] + eos_token + ' ' }}"),
    "mistral-v1": instructions(
        "{{ ' [INST] ' + message['content'] + ' [/INST]' }}", "{{ ' ' + message['content'] + eos_token }}",
        ("loop.first", "{{ ' [INST] ' + system_message + '\\n\\n' + message['content'] + ' [/INST]' }}")),
    "mistral-v3": instructions(
        "{{ '[INST] ' + message['content'] + '[/INST]' }}", "{{ ' ' + message['content']|trim + eos_token }}",
        ("loop.last", "{{ '[INST] ' + system_message + '\\n\\n' + message['content'] + '[/INST]' }}")),
    "mistral-v3-tekken": instructions(
        "{{ '[INST]' + message['content'] + '[/INST]' }}", "{{ message['content'] + eos_token }}",
        ("loop.last", "{{ '[INST]' + system_message + '\\n\\n' + message['content'] + '[/INST]' }}")),
    "mistral-v7": V7.replace("_", " ").replace("bos token", "bos_token").replace("eos token", "eos_token").replace(
        "[SYSTEM PROMPT]", "[SYSTEM_PROMPT]").replace("[/SYSTEM PROMPT]", "[/SYSTEM_PROMPT]"),
    "mistral-v7-tekken": V7.replace("]_", "]").replace("'_' + ", ""),
    "gemma": "{{ bos_token }}" + TAKE_SYSTEM + "{% for message in turns %}" + ALTERNATE +
             "{{ '<start_of_turn>' + ('model' if message['role'] == 'assistant' else 'user') + '\\n' }}"
             "{% if loop.first and system_message is defined %}{{ system_message + '\\n\\n' }}{% endif %}"
             "{{ message['content'] | trim }}{{ '<end_of_turn>\\n' }}{% endfor %}"
             "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}",
    "phi3": "{% for message in messages %}{{ '<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}",
    "phi3, always asking": "{{ bos_token }}{% for message in messages %}{% if (message['role'] == 'user') %}{{ '<|user|>' + '\\n' + "
                           "message['content'] + '<|end|>' + '\\n' + '<|assistant|>' + '\\n' }}{% elif message['role'] == 'assistant' %}"
                           "{{ message['content'] + '<|end|>' + '\\n' }}{% endif %}{% endfor %}",
    "phi4": "{% for message in messages %}{% if message['role'] == 'system' %}{{ '<|im_start|>system<|im_sep|>' + message['content'] + "
            "'<|im_end|>' }}{% elif message['role'] == 'user' %}{{ '<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>' }}"
            "{% else %}{{ '<|im_start|>assistant<|im_sep|>' + message['content'] + '<|im_end|>' }}{% endif %}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %}",
    "phi4-mini": "{% for message in messages %}{{ '<|' + message['role'] + '|>' + message['content'] + '<|end|>' }}{% endfor %}"
                 "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% else %}{{ eos_token }}{% endif %}",
    "zephyr": "{% for message in messages %}\n" + "".join(
        "{% " + word + " message['role'] == '" + role + "' %}\n{{ '<|" + role + "|>\n' + message['content'] + eos_token }}\n"
        for word, role in (("if", "user"), ("elif", "system"), ("elif", "assistant"))) +
              "{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}",
}

WIDE = "\u3000\u00a0 What\u2028"
LONG = [("user", "Hello"), ("assistant", "Hi there"), ("user", "  Who are you \n"), ("assistant", "   I am an assistant   "),
        ("user", "Another question")]
CONVERSATIONS = [
    [("user", "Hello")],
    LONG,
    [("system", "You are terse. "), *LONG],
    [("system", "It's 1 < 2 & \"3\"\n"), ("user", "\n<|im_end|>[INST] <s>{{ 7 * 7 }}\n")],
    [("user", WIDE), ("assistant", WIDE), ("user", "\x1c\x85x\x1f")],
    [("user", "Why?"), ("assistant", "<think>\nHm.\n</think>\n\nBecause."), ("user", "Truly?")],
    [("user", "Why?"), ("assistant", "<think>\nHm.\n\n</think>\n\n\nBecause.")],
    [("user", "Why?"), ("assistant", "Because."), ("user", "Truly?"), ("assistant", "Yes.")],
    [("user", "One"), ("user", "Two")],
    [("assistant", "I begin"), ("user", "Two")],
    [("user", "One"), ("assistant", "Two"), ("system", "Be brief"), ("user", "Three")],
    [("system", "Alone")],
    [],
]
PARAMETERS = {"type": "object", "required": ["city"], "properties": {
    "city": {"type": "string", "description": "The city,\nby its name"}, "unit": {"type": ["string", "null"], "enum": ["c", None]},
    "days": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "description": "The weather \"now\" \u2013 \u00fc", "parameters": PARAMETERS}},
         {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}]


def called(arguments, identity="call_123456789"):
    return {"id": identity, "type": "function", "function": {"name": "weather", "arguments": arguments}}


USER = {"role": "user", "content": "Weather in K\u00f6ln? \U0001f600"}
# Conversations with other members, and the variables beside them.
CALLS = [
    ([USER], {"tools": TOOLS}),
    ([{"role": "system", "content": "Sys"}, USER, {"role": "assistant", "content": None, "tool_calls": [called({"city": "K\u00f6ln", "n": [1, 2.5, None, True]})]},
      {"role": "tool", "name": "weather", "content": "{\"t\": 20}", "tool_call_id": "call_123456789"}, {"role": "assistant", "content": "20."}, USER],
     {"tools": TOOLS, "enable_thinking": False}),
    ([USER, {"role": "assistant", "content": "Let me see", "tool_calls": [called("{\"city\": \"Paris\"}", "abcdefghi"), called({}, "abcdefghj")]},
      {"role": "tool", "content": "a", "tool_call_id": "abcdefghi"}], {"tools": TOOLS, "enable_thinking": True}),
    ([USER, {"role": "assistant", "content": "Hm.", "reasoning_content": " deep\n"}, USER, {"role": "assistant", "content": "<think>\nx\n</think>\n\ny"}], {}),
    ([{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]}], {}),
    ([{"role": "developer", "content": "dev"}, USER], {"date_string": "1 Jan 2030", "reasoning_effort": "high"}),
]


def templates_of(path):
    if path.endswith(".gguf"):
        keys = GgufFile(path).values
        yield from ((f"{path}: {key}", keys[key]) for key in keys if re.fullmatch(r"tokenizer\.chat_template(\..+)?", key))
        return
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if not path.endswith(".json"):
        yield path, text
        return
    found = json.loads(text)["chat_template"]
    if isinstance(found, str):
        yield path, found
    else:
        for one in found:
            yield f"{path}: {one['name']}", one["template"]


def contexts():
    plain = [([{"role": role, "content": content} for role, content in messages], {}) for messages in CONVERSATIONS]
    for messages, more in plain + CALLS:
        for prompt in (True, False):
            yield {"messages": messages, "bos_token": BOS, "eos_token": EOS, "tools": None, "documents": None, "add_generation_prompt": prompt, **more}


def digest(text):
    return "-" if text is None else hashlib.sha256(text.encode()).hexdigest()[:12]


def compare(ours, name, program, expected):
    """Differences as text, how many texts were equal and how many refused by both, and the hashes of Python's texts."""
    differences, equal, refused, hashes = [], 0, 0, []
    for number, context in enumerate(contexts()):
        mine, why = ours.render(program, context)
        theirs, their_why = python_jinja.render(program, context) if python_jinja else (mine, None)
        hashes.append(digest(theirs))
        if mine != theirs or (expected and digest(mine) != expected[number]):
            differences.append(f"{name}, {json.dumps(context)}:\n  ours   {mine!r} {why}\n  theirs {theirs!r} {their_why}")
        equal += mine is not None
        refused += mine is None
    return differences, equal, refused, hashes


def main():
    renderer, files = sys.argv[1], sys.argv[2:]
    write = files == ["--write"]
    own = not files or write
    programs = list(FAMILIES.items()) + [(path.stem, path.read_text(encoding="utf-8")) for path in sorted((HERE / "templates").glob("*.jinja"))]
    if not own:
        programs = [one for path in files for one in templates_of(path)]
    expected = json.loads(EXPECTED.read_text()) if own and not write else {}
    ours, failed, written = Ours(renderer), False, {}
    for name, program in programs:
        differences, equal, refused, written[name] = compare(ours, name, program, expected.get(name))
        if own and equal < 6:
            differences.append(f"{name}: only {equal} conversations were written")
        if own and not write and name not in expected:
            differences.append(f"{name}: templates/expected.json has no hashes of it")
        print("\n".join(differences) or f"{name}: {equal} texts equal, {refused} conversations refused by both")
        failed = failed or bool(differences)
    if write:
        EXPECTED.write_text(json.dumps(written, indent=0) + "\n")
    # A comparison that cannot fail proves nothing: the hashes of two families must differ.
    if own and written["chatml"] == written["phi4"]:
        print("the control failed: two families wrote the same")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
