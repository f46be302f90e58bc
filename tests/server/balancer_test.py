#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Three replicas behind haproxy with deploy/haproxy.cfg: conversations stay with a replica, and replicas that end or die cost no wrong text.
Usage: balancer_test.py FORETOKEN MODELS DEPLOY. The exit code is 77 without haproxy."""
import collections
import json
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import replicas
from server_testing import events, joined

FORETOKEN, MODELS, CONFIGURATION = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]) / "haproxy.cfg"
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"


def message(role, content):
    return {"role": role, "content": content}


def user(text):
    return message("user", text)


def growing_chat(first, turns=3, tokens=8):
    """The bodies of one conversation's requests, with answers made up."""
    messages, bodies = list(first), []
    for turn in range(turns):
        bodies.append({"messages": list(messages), "max_tokens": tokens, "temperature": 0})
        messages += [message("assistant", f"and then {turn}"), user(f"what did they do on day {turn}?")]
    return bodies


def round_robin(text):
    return re.sub(r"\n  (balance|hash-type|hash-balance-factor) [^\n]*", "", text).replace("\nbackend replicas\n", "\nbackend replicas\n  balance roundrobin\n")


def unbounded(text):
    """Without the bound, which counts a request until its connection is released, and so might move the next one."""
    return re.sub(r"\n  hash-balance-factor [^\n]*", "", text)


class Balancer(unittest.TestCase):
    def begin(self, edit=lambda text: text, flags=("--parallel", "4")):
        self.servers = replicas.start(FORETOKEN, MODELS, 3, *flags)
        for server in self.servers:
            self.addCleanup(server.__exit__)
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.balancer = self.enterContext(replicas.Balancer(CONFIGURATION, self.servers, folder, edit))
        replicas.until(10, lambda: self.balancer.send("GET", "/health")[0] == 200)

    def ask(self, path, body, expected=200):
        """(the reply, the number of the replica that gave it)"""
        status, headers, data = self.balancer.send("POST", path, body)
        self.assertEqual(status, expected, data)
        return json.loads(data), int(headers["x-replica"])

    def all_at_once(self, count, pause, work, between=lambda i: None):
        threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for i, thread in enumerate(threads):
            thread.start()
            time.sleep(pause)
            between(i)
        for thread in threads:
            thread.join()

    def test_the_beginning_of_a_text_chooses_the_replica_in_every_form_of_request(self):
        self.begin(unbounded)
        used = collections.Counter()

        def stays(path, bodies, expected=200):
            chosen = {self.ask(path, body, expected)[1] for body in bodies}
            self.assertEqual(len(chosen), 1, bodies)
            used.update(chosen)

        for i in range(8):
            parts = [{"type": "text", "text": f"the dog number {i}"}]
            stays(CHAT, growing_chat([user(f"a tale of {i} cats")]))
            stays(CHAT, growing_chat([message("system", "you tell tales"), user(f"a tale of {i} birds")]))
            stays(CHAT, growing_chat([message("developer", "you tell tales"), user(parts)]))
            stays(CHAT, growing_chat([user(parts)]))
            stays(CHAT, [{"prompt_cache_key": f"key {i}", "messages": [user(f"tale {n}")], "max_tokens": 1} for n in range(3)])
            tale = f"Once upon a time there were {i} dogs. " + 40 * "They ran. "
            stays(COMPLETION, [{"prompt": tale + more, "max_tokens": 1} for more in ("", "Then", "Then they")])
            stays(COMPLETION, [{"prompt": [5 + i] * 200 + [n], "max_tokens": 1} for n in range(3)])
            # It does not fit the balancer's buffer, nor the model's context.
            stays(CHAT, growing_chat([user(f"{i} " + 20000 * "so long ")]), expected=400)
        self.assertEqual(set(used), {0, 1, 2})
        self.assertLess(max(used.values()), 2 * sum(used.values()) / 3, used)

    def test_a_system_prompt_that_all_share_is_spread_over_all_replicas(self):
        self.begin(unbounded)
        used = collections.Counter(self.ask(CHAT, growing_chat([message("system", "you tell tales"), user(f"tale {i}")], 1)[0])[1] for i in range(30))
        self.assertEqual(set(used), {0, 1, 2}, used)

    def test_one_text_that_everybody_asks_for_does_not_wait_for_one_replica(self):
        body = {"prompt": "Once upon a time", "max_tokens": 200, "ignore_eos": True, "temperature": 0}
        used = []
        for edit in (unbounded, lambda text: text):
            self.begin(edit)
            found = []
            self.all_at_once(24, 0, lambda i: found.append(self.ask(COMPLETION, body)))
            self.assertEqual(len({reply["choices"][0]["text"] for reply, _ in found}), 1)
            used.append(len({replica for _, replica in found}))
        self.assertEqual(used[0], 1)
        self.assertGreater(used[1], 1)

    def test_more_of_the_prompts_is_found_in_the_cache_than_with_round_robin(self):
        chats = [growing_chat([message("system", "you tell tales of dogs and birds " * 8), user(f"tale {i} of the sea and of the lake")], 4) for i in range(10)]
        shares = []
        for edit in (round_robin, lambda text: text):
            self.begin(edit)
            usages = [self.ask(CHAT, chat[turn])[0]["usage"] for turn in range(4) for chat in chats]
            shares.append(sum(u["prompt_tokens_details"]["cached_tokens"] for u in usages) / sum(u["prompt_tokens"] for u in usages))
        self.assertGreater(shares[1], shares[0] + 0.05, shares)

    def test_draining_a_replica_loses_no_request(self):
        self.begin()
        bodies = [{"prompt": f"Once upon a time {i % 40}", "max_tokens": 60, "ignore_eos": True, "temperature": 0, "stream": i % 2 == 1} for i in range(120)]
        right = {body["prompt"]: self.servers[0].completion(**{**body, "stream": False})["choices"][0]["text"] for body in bodies[:40]}
        seen = {}

        def work(i):
            status, _, data = self.balancer.send("POST", COMPLETION, bodies[i])
            good = status == 200
            seen[i] = (joined(events(data))[0] if bodies[i]["stream"] else json.loads(data)["choices"][0]["text"]) if good else (status, data)

        # Long answers, so that the replica refuses requests for a while before it ends.
        long = [self.servers[1].begin(COMPLETION, {"prompt": f"{i}", "max_tokens": 480, "ignore_eos": True, "n": 4, "stream": True}) for i in range(4)]
        self.all_at_once(120, 0.01, work, lambda i: i == 30 and self.servers[1].process.send_signal(signal.SIGTERM))
        for connection, reply in long:
            self.assertTrue(reply.read().endswith(b"data: [DONE]\n\n"))
            connection.close()
        self.assertEqual(self.servers[1].wait(), 0)
        self.assertEqual([seen.get(i) for i in range(120)], [right[body["prompt"]] for body in bodies])

    def test_a_replica_that_is_killed_costs_retries_and_no_wrong_text(self):
        self.begin()

        def complete(i, tries):
            body = {"prompt": "Once upon a time", "max_tokens": 40, "seed": i % 5, "temperature": 0.8}
            for _ in range(tries):
                try:
                    status, _, data = self.balancer.send("POST", COMPLETION, body)
                    if status == 200:
                        return json.loads(data)["choices"][0]["text"]
                except (OSError, replicas.HTTPException):
                    pass
                time.sleep(0.1)
            return None

        right = [complete(i, 1) for i in range(5)]
        self.assertEqual(len(set(right)), 5)
        seen = {}

        def work(i):
            seen[i] = complete(i, 5)

        self.all_at_once(120, 0.01, work, lambda i: i == 50 and self.servers[0].process.kill())
        self.assertEqual([seen.get(i) for i in range(120)], [right[i % 5] for i in range(120)])


if __name__ == "__main__":
    if not shutil.which("haproxy"):
        print("no haproxy")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], verbosity=2)
