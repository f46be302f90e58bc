#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`serve --max-memory` under chats that want far more memory than there is, by the template's text and by what clients give it: variables, tools,
messages. Several clients ask at once, and the whole process stays below the ceiling.

usage: hostile_chats_test.py FORETOKEN MODELS [ATTACK...]
"""
import json
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from server_case import ONE_THREAD, PROGRAM, ServerCase  # noqa: E402
from server_testing import request_bytes, responses, together  # noqa: E402

ONLY = sys.argv[3:]
SANITIZED = "asan" in PROGRAM or "tsan" in PROGRAM  # a sanitizer needs memory of its own
CEILING_MIB, CLIENTS = 512, 4
LONG = "{% set b = 'a b\\n' * 262144 %}"  # a million characters
WRITES = "{{ messages[0].content }}{{ tools | tojson if tools }}{{ names | tojson if names is defined }}"

TEMPLATES = {
    "captures inside captures": LONG + "{% set x %}{{ b }}" * 300 + "{% endset %}" * 300,
    "filters inside filters": LONG + "{% filter upper %}{{ b }}" * 300 + "{% endfilter %}" * 300,
    "macros inside macros": LONG + "{% macro f(n) %}{{ b }}{{ f(n + 1) if n < 300 }}{% endmacro %}{{ f(0) }}",
    "texts that are joined": LONG + "{{ b" + " ~ b" * 4000 + " }}",
    "a list that is joined": LONG + "{{ [b" + ", b" * 4000 + "] | join | length }}",
    "a text that is split": LONG + "{% set l = [" + "b.split('b'), " * 100 + "] %}",
    "lines": LONG + "{% set l = [" + "b.splitlines(), " * 100 + "] %}",
    "characters": LONG + "{% set l = [" + "b | list, " * 100 + "] %}",
    # Lists in a list: one that grows by one item at a time is copied each time, which takes all the steps before it takes much memory.
    "names of a namespace": "{% set ns = namespace(l=[]) %}{% for i in range(3000) %}{% set ns.m = [] %}{% for j in range(300) %}"
                            "{% set ns.m = ns.m + [namespace(a=i, b=[j])] %}{% endfor %}{% set ns.l = ns.l + [ns.m] %}{% endfor %}",
    "one long word": "{{ 'a' * 16000000 }}",
    "long output of characters": "{{ '\u00e9 ' * 8000000 }}",
    "many parts": "{% set m = messages[0].content %}{% for i in range(99999) %}{{ i }}{{ m }}{% endfor %}{% for i in range(99999) %}{{ i }}{{ m }}{% endfor %}",
    "a long program": "{{ messages[0].content }}" * 30_000,
}
DEEP = "[" * 90 + "]" * 90
BODIES = {
    "many names": {"chat_template_kwargs": {"names": {f"name {i}": i for i in range(100_000)}}},
    "many lists": {"chat_template_kwargs": {"names": [[] for _ in range(400_000)]}},
    "deep lists": {"chat_template_kwargs": {"names": [json.loads(DEEP) for _ in range(4000)]}},
    "many tools": {"tools": [{"type": "function", "function": {"name": f"f{i}", "parameters": {}}} for i in range(20_000)]},
    "many messages": {"messages": [{"role": "user", "content": "a"}] * 60_000},
    "members of messages": {"messages": [{"role": "user", "content": "a", "name": "b" * 40, "tool_calls": [{"a": i} for i in range(20)]}] * 6000},
    "one long message": {"messages": [{"role": "user", "content": "a" * 7_000_000}]},
}


@unittest.skipIf(SANITIZED, "a sanitizer needs more memory")
class HostileChats(ServerCase):
    FLAGS = (*ONE_THREAD, "--parallel", "4", "--max-memory", f"{CEILING_MIB}M", "-q")

    def attack(self, server, name, body):
        body = {"messages": [{"role": "user", "content": "hello"}], **body}
        data = [request_bytes("/v1/chat/completions", {**body, "max_tokens": 1}), request_bytes("/tokenize", body)]
        replies = together([lambda one=one: responses(server.exchange(one)) for one in data * (CLIENTS // 2)])
        statuses = sorted({status for found in replies for status, _, _ in found})
        peak = server.status_of_process("VmHWM") / 1024
        anonymous = server.status_of_process("RssAnon") / 1024
        print(f"{name}: {statuses}, peak {peak:.0f} MiB, anonymous afterwards {anonymous:.0f} MiB", file=sys.stderr)
        self.assertLessEqual(set(statuses), {200, 400, 413, 503}, replies)
        self.assertLessEqual(peak, CEILING_MIB, name)
        reply = server.completion(prompt="Once upon a time", max_tokens=6, temperature=0)
        self.assertEqual(reply["usage"]["completion_tokens"], 6)

    def test_templates_stay_below_the_ceiling(self):
        for name, template in TEMPLATES.items():
            if not ONLY or name in ONLY:
                with self.subTest(name):
                    self.attack(self.serve(template=template), name, {})

    def test_what_clients_give_stays_below_the_ceiling(self):
        for name, body in BODIES.items():
            if not ONLY or name in ONLY:
                with self.subTest(name):
                    self.attack(self.serve(template=WRITES), name, body)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
