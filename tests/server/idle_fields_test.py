#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fields of OpenAI's, Anthropic's, Ollama's and llama.cpp's APIs that are accepted and change nothing: the log tells of each once for a path, whoever sends
it how often, and of no name that a client has made up."""
import json
import re

from server_case import ONE_THREAD, ServerCase, main

CHAT, TALE, WHOLE = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}, {"prompt": "Once", "max_tokens": 1}, {"stream": False}
# Bodies, each with fields that change nothing in it.
IDLE = [
    ("/v1/chat/completions", CHAT, {"user": "a", "metadata": {"b": "c"}, "store": False, "service_tier": "auto", "prompt_cache_key": "d",
                                    "include_reasoning": True, "reasoning_effort": "low"}),
    ("/v1/completions", TALE, {"user": "a", "mirostat_tau": 5, "length_penalty": 2}),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 1}, {"client_metadata": {"a": "b"}, "safety_identifier": "a", "max_tool_calls": 3,
                                                                "include": ["reasoning.encrypted_content"], "reasoning.effort": "high"}),
    ("/v1/messages", CHAT, {"metadata": {"user_id": "a"}, "service_tier": "auto", "betas": ["a"], "context_management": {"edits": [1]},
                            "output_config.effort": "high"}),
    ("/api/chat", {**CHAT, **WHOLE, "max_tokens": None}, {"keep_alive": "5m", "shift": True, "options.num_ctx": 4096, "options.num_gpu": 1, "think": True}),
    ("/api/generate", {"prompt": "Once", **WHOLE}, {"keep_alive": -1, "truncate": True, "think": "low"}),
    ("/api/show", {}, {"verbose": True, "system": "a"}),
    ("/api/embed", {"input": "a"}, {"keep_alive": "5m", "options": {"num_ctx": 1}}),
    ("/completion", {"prompt": "Once", "n_predict": 1}, {"sse_ping_interval": 3, "adaptive_decay": 0.5, "backend_sampling": True}),
    ("/v1/embeddings", {"input": "a"}, {"user": "a"}),
    ("/v1/rerank", {"query": "a", "documents": ["b"]}, {"user": "a"}),
]
# Values that ask for nothing, and fields that have their own notice or their effect.
TOLD_ELSEWHERE = [("/v1/chat/completions", CHAT, {"user": "", "metadata": {}, "service_tier": None, "priority": 1}), ("/v1/completions", TALE, {"top_k": 5}),
                  ("/v1/messages", CHAT, {"betas": []})]


def body_of(body, fields):
    """The body with the fields; a name with a dot is that of a member."""
    whole = json.loads(json.dumps(body))
    for name, value in fields.items():
        outer, _, inner = name.rpartition(".")
        (whole.setdefault(outer, {}) if outer else whole)[inner] = value
    if "options" in whole:
        whole["options"].setdefault("num_predict", 1)
    return whole


class IdleFields(ServerCase):
    FLAGS = (*ONE_THREAD, "--spec-type", "none")

    def test_each_is_told_once(self):
        server = self.serve("--chat-template", "chatml")
        for path, body, fields in TOLD_ELSEWHERE:
            server.post(path, body_of(body, fields))
        for _ in range(3):
            for path, body, fields in IDLE:
                reply = server.post(path, body_of(body, fields))
                self.assertNotIn("user", str(reply.get("notices", "")) if isinstance(reply, dict) else "")
        # Names that clients make up are told of nowhere.
        for path in ("/v1/chat/completions", "/v1/responses"):
            server.error(path, {**CHAT, "made_up": 1})
        server.post("/v1/chat/completions", {**CHAT, "metadata": {"made_up": "made_up"}, "user": "made_up", "chat_template_kwargs": {"made_up": 1}})
        server.end()
        told = re.findall(r"^time=\S+ path=(\S+) field=(\S+) notice=\"it is accepted and changes nothing; told once\"$", server.log_text(), re.M)
        self.assertEqual(sorted(told), sorted((path, name) for path, _, fields in IDLE for name in fields))

    def test_a_template_that_knows_the_effort_is_none_that_ignores_it(self):
        server = self.serve(template="{% for m in messages %}{{ m.content }}{% endfor %}{{ reasoning_effort }}{{ enable_thinking }}")
        for effort in ("none", "high"):
            server.post("/v1/chat/completions", {**CHAT, "reasoning_effort": effort})
        server.post("/api/chat", {**CHAT, **WHOLE, "max_tokens": None, "think": False, "options": {"num_predict": 1}})
        server.end()
        self.assertNotIn("told once", server.log_text())


if __name__ == "__main__":
    main()
