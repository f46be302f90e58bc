#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Agents that call tools turn after turn, all at once: how many tokens are read again, and when the first token of a turn comes.

  agent_turns.py --foretoken build/release/foretoken --model MODEL.gguf [--agents 10] [--turns 20] [--tool-seconds 6] [--parallel 4] [--ctx-size 4096]

Each turn's answer is a call of a tool, by a seed of its own; the next request has the call, as OpenAI's clients send it back, and what the tool said. Tokens
that are read again are those of the turn before, its prompt and its answer, that were not in the cache. Where the template spells an answer in another way
than the model did, what follows is new text, but counts too. Exit code 1 where some were read again.
"""
import argparse
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "server"))
from server_testing import Server

TEMPLATE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hermes.jinja")
PARAMETERS = {
    "read": {"type": "object", "properties": {"path": {"type": "string", "maxLength": 20}, "line": {"type": "integer"}}, "required": ["path"],
             "additionalProperties": False},
    "now": {"type": "object", "additionalProperties": False},
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in PARAMETERS.items()]


class Agent(threading.Thread):
    def __init__(self, server, number, args):
        super().__init__()
        self.server, self.number, self.args = server, number, args
        self.turns = []  # (prompt tokens, tokens read again, milliseconds to the first token)

    def ask(self, messages, turn):
        body = {"messages": messages, "tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 150, "temperature": 1,
                "seed": 1000 * self.number + turn}
        return self.server.post("/v1/chat/completions", body)

    def run(self):
        messages = [{"role": "system", "content": "You read files."}, {"role": "user", "content": f"I am agent {self.number}. Read the files."}]
        before = 0
        for turn in range(self.args.turns):
            reply = self.ask(messages, turn)
            usage, message = reply["usage"], reply["choices"][0]["message"]
            found = usage["prompt_tokens_details"]["cached_tokens"]
            self.turns.append((usage["prompt_tokens"], max(0, before - found), reply["timings"]["first_token_ms"]))
            before = usage["prompt_tokens"] + usage["completion_tokens"]
            time.sleep(self.args.tool_seconds)
            calls = message.get("tool_calls") or []
            messages.append({"role": "assistant", "content": message["content"], "tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": f"line {turn}: it is {7 * turn} o'clock"} for call in calls]
            if not calls:
                messages.append({"role": "user", "content": "Go on."})


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--model", required=True)
    for name, value in (("agents", 10), ("turns", 20), ("parallel", 4), ("ctx-size", 4096), ("threads", 2)):
        p.add_argument(f"--{name}", type=int, default=value)
    p.add_argument("--tool-seconds", type=float, default=6)
    args = p.parse_args()
    flags = ("-m", args.model, "-t", str(args.threads), "-c", str(args.ctx_size), "--parallel", str(args.parallel), "--repack-cache", "off", "-q")
    with Server(args.foretoken, *flags, "--chat-template-file", TEMPLATE) as server:
        agents = [Agent(server, number, args) for number in range(args.agents)]
        for agent in agents:
            agent.start()
        for agent in agents:
            agent.join()
    again, prompts = (sum(turn[i] for agent in agents for turn in agent.turns) for i in (1, 0))
    second, last = (median([agent.turns[turn][2] for agent in agents]) for turn in (1, -1))
    print(f"{args.agents} agents of {args.turns} turns: {again} of {prompts} tokens of prompts were read again; first token of the last turn over that of the "
          f"second: {last:.1f} ms / {second:.1f} ms = {last / second:.2f}")
    return 1 if again else 0


if __name__ == "__main__":
    sys.exit(main())
