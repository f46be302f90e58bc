#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the chat templates that foretoken knows with what Jinja makes of them, character by character.

  chat_templates.py RENDER_CHAT [TEMPLATE.jinja | TOKENIZER_CONFIG.json | MODEL.gguf]...

RENDER_CHAT is the program of render_chat.cpp. Without files the programs below are compared, one for each family, which print what
the families' own do; with files the templates in them, as they were published. Exit code 1 on a difference, 77 (skipped) where the
Python package jinja2 is absent.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

try:
    import jinja2
    import jinja2.sandbox
except ImportError:
    print("skipped: no jinja2")
    sys.exit(77)

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
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../models/story.jinja"), encoding="utf-8") as story:
    STORY = story.read()
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
]


def gguf_templates(path):
    """The strings of a GGUF file's keys tokenizer.chat_template*."""
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    with open(path, "rb") as file:
        def number(form):
            return struct.unpack("<" + form, file.read(struct.calcsize(form)))[0]

        def text():
            return file.read(number("Q"))

        def value(kind):
            if kind == 8:
                return text()
            if kind != 9:
                return file.read(sizes[kind])
            kind, count = number("I"), number("Q")
            if kind != 8:
                return file.seek(sizes[kind] * count, 1)
            return [text() for _ in range(count)]

        assert file.read(4) == b"GGUF", path
        number("I"), number("Q")
        for _ in range(number("Q")):
            key = text().decode()
            content = value(number("I"))
            if re.fullmatch(r"tokenizer\.chat_template(\..+)?", key):
                yield f"{path}: {key}", content.decode()


def templates_of(path):
    if path.endswith(".gguf"):
        yield from gguf_templates(path)
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


class Refused(Exception):
    pass


def by_jinja(program, messages, prompt, date):
    def refuse(message):
        raise Refused(message)
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False)
    environment.globals.update(raise_exception=refuse, strftime_now=lambda form: date)
    return environment.from_string(program).render(messages=[{"role": r, "content": c} for r, c in messages], bos_token=BOS, eos_token=EOS,
                                                   add_generation_prompt=prompt)


def by_foretoken(renderer, file, messages, prompt, date):
    words = [word for message in messages for word in message]
    result = subprocess.run([renderer, file, BOS, EOS, "1" if prompt else "0", date, *words], capture_output=True, check=False)
    if result.returncode == 1:
        raise Refused(result.stderr.decode().strip())
    assert result.returncode == 0, result.stderr
    return result.stdout.decode(), result.stderr.decode().strip()


def compare(renderer, name, program):
    """Differences as text, the family as foretoken calls it, and how many conversations were equal and refused."""
    date = "09 Nov 2031" if "strftime_now" in program else ""
    differences, families, equal, refused = [], set(), 0, 0
    with tempfile.NamedTemporaryFile("w", suffix=".jinja", encoding="utf-8") as file:
        file.write(program)
        file.flush()
        for messages in CONVERSATIONS:
            for prompt in (True, False):
                try:
                    ours, family = by_foretoken(renderer, file.name, messages, prompt, date)
                    families.add(family)
                except Refused as why:
                    refused += 1
                    if "of no known family" in str(why):
                        return [f"{name}: {why}"], families, 0, 0
                    continue  # foretoken may refuse more than a template does; it must not print something else
                try:
                    theirs = by_jinja(program, messages, prompt, date)
                except Refused as why:
                    if messages[0][0] == "system" and "gemma" in families and "ystem" in str(why):
                        continue  # early Gemma templates refuse the system message that later ones fold
                    theirs = f"refused: {why}"
                equal += ours == theirs
                if ours != theirs:
                    differences.append(f"{name}, {messages}, prompt {prompt}:\n  ours   {ours!r}\n  theirs {theirs!r}")
    return differences, families, equal, refused


def main():
    renderer, files = sys.argv[1], sys.argv[2:]
    programs = [one for path in files for one in templates_of(path)] if files else list(FAMILIES.items())
    failed = False
    for name, program in programs:
        differences, families, equal, refused = compare(renderer, name, program)
        expected = name.split(",")[0].split(" ")[0]
        if not files and families and families != {expected}:
            differences.append(f"{name}: taken for {', '.join(families)}")
        if not differences and equal < 8:
            differences.append(f"{name}: only {equal} conversations were compared")
        print("\n".join(differences) or f"{name}: {', '.join(families)}, {equal} conversations equal, {refused} refused")
        failed = failed or bool(differences)
    # A comparison that cannot fail proves nothing: one family's program against another's text must differ.
    if not files and by_jinja(FAMILIES["chatml"], LONG, True, "") == by_jinja(FAMILIES["phi4"], LONG, True, ""):
        print("the control failed: two families wrote the same")
        failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
