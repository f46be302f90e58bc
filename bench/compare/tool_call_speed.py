#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of tools under their schemas: tokens per second without drafts, by default, and llama-server's, in turn, on the same file.

  tool_call_speed.py --foretoken build/release/foretoken --model TARGET.gguf [--repeats 5] [--threads 2] [--temperature 0]
                     [--llama "PREFIX" --seen-as FOLDER [--llama-spec ngram-simple ...]]

Each repeat is a conversation of its own: a user asks for an edit of a file, the model called `edit_file` with some lines of code, and is asked to do it again.
With a model of copying_model.py, as with a trained one, the arguments repeat what was read; with one of random weights they are random text that the schema
allows. Every server first reads the conversation (one token is asked for), then the whole answer is timed, at its client: the figure is tokens over time.
foretoken's calls must be valid by their schemas, and the same in all modes; of llama-server's it is told how many were valid. Medians (least to most);
ratios are those of a repeat.
`--words FILE` writes such conversations to a file from which copying_model.py can take its words, and ends.
PREFIX and FOLDER as in serving_load.py; each --llama-spec runs llama-server once more, with that kind of speculation. Needs python3-jsonschema.
"""
import argparse
import http.client
import json
import os
import random
import shlex
import signal
import sys
import time

import jsonschema

from serving_load import Contender, free_port, show, start


def of_object(**properties):
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def text(most):
    return {"type": "string", "minLength": 1, "maxLength": most}


TOOLS = {
    "edit_file": ("Replaces one text in a file.", of_object(file_path=text(60), old_string=text(400), new_string=text(400), replace_all={"type": "boolean"})),
    "read_file": ("Reads lines of a file.", of_object(file_path=text(60), offset={"type": "integer", "minimum": 0, "maximum": 9999},
                                                      limit={"type": "integer", "minimum": 1, "maximum": 2000})),
    "run_command": ("Runs a command of the shell.", of_object(command=text(120), description=text(60),
                                                              timeout_ms={"type": "integer", "minimum": 0, "maximum": 600000})),
    "search_files": ("Finds a pattern in files.", of_object(pattern=text(40), include_glob=text(24),
                                                            output_mode={"enum": ["content", "files_with_matches", "count"]})),
    "book_train": ("Books seats in a train.", of_object(
        departure_station=text(16), arrival_station=text(16), departure_time={"type": "string", "pattern": "^[0-2][0-9]:[0-5][0-9]$"},
        travel_class={"enum": ["first_class", "second_class"]}, number_of_passengers={"type": "integer", "minimum": 1, "maximum": 9},
        payment_method={"enum": ["credit_card", "bank_transfer", "voucher"]}, window_seat_preferred={"type": "boolean"})),
}
NAMES = "total count index size width limit offset value price amount score level depth rate weight length".split()


def schema(name):
    return TOOLS[name][1]


def offered(names):
    return [{"type": "function", "function": {"name": name, "description": TOOLS[name][0], "parameters": schema(name)}} for name in names]


def lines(rng, a, b, c, d):
    return "\n".join([f"    def {a}_of(self, {b}, {c}):", f"        {d} = self.{b} + {c} * {rng.randrange(100)}", f"        if {d} > {b}:",
                      f"            return {c} - {d}", f"        return {d} / {rng.randrange(2, 50)}"])


def edit(rng):
    names = rng.sample(NAMES, 10)
    return {"file_path": f"src/{names[8]}/{names[9]}.py", "old_string": lines(rng, *names[:4]), "new_string": lines(rng, *names[4:8]),
            "replace_all": rng.random() < 0.5}


def conversation(rng):
    call = {"id": "call00001", "type": "function", "function": {"name": "edit_file", "arguments": json.dumps(edit(rng))}}
    return [{"role": "system", "content": "You are an agent that edits files."},
            {"role": "user", "content": f"Write the function anew for task {rng.randrange(10 ** 6)}."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call00001", "content": "The file is locked."},
            {"role": "user", "content": "It is free again; do it."}]


def send(contender, body):
    connection = http.client.HTTPConnection("127.0.0.1", contender.port, timeout=600)
    begin = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    data = json.loads(response.read())
    if response.status != 200:
        sys.exit(f"tool_call_speed: {contender.name}: {response.status} {data}")
    return data, time.monotonic() - begin


def call_of(data):
    """The one call of a reply, if its schema allows it."""
    try:
        call, = (call["function"] for call in data["choices"][0]["message"]["tool_calls"])
        jsonschema.validate(json.loads(call["arguments"]), schema(call["name"]))
    except (TypeError, ValueError, KeyError, jsonschema.ValidationError):
        return None
    return call["name"], call["arguments"]


def ask(contender, messages, most, args):
    """(call, tokens, seconds)"""
    body = {"messages": messages, "tools": offered(args.tools.split(",")), "tool_choice": "required", "parallel_tool_calls": False,
            "temperature": args.temperature, "seed": 1, **contender.extra}
    send(contender, {**body, "max_tokens": 1})
    data, seconds = send(contender, {**body, "max_tokens": most})
    return call_of(data), data["usage"]["completion_tokens"], seconds


def write_words(path):
    rng = random.Random(0)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(60):
            file.write(json.dumps(offered(TOOLS)) + "\n")
            for message in conversation(rng):
                calls = [call["function"]["arguments"] for call in message.get("tool_calls", [])]
                file.write("\n".join([message["role"], message["content"], *calls]) + "\n")


def contenders(args):
    """Ours, all of one server; theirs; and the command of each port."""
    port = free_port()
    commands = {port: [args.foretoken, "serve", "-m", args.model, "--port", str(port), "-c", "4096", "-t", str(args.threads), "--quiet"]}
    ours = [Contender("plain", None, port, {"speculative": {"enabled": False}}), Contender("default", None, port, {})]
    theirs = []
    for kind in ["", *args.llama_spec] if args.llama else []:
        port = free_port()
        model = os.path.join(args.seen_as, os.path.basename(args.model))
        commands[port] = [*shlex.split(args.llama), "llama-server", "-m", model, "--host", "127.0.0.1", "--port", str(port), "-np", "1", "-c", "4096",
                          "-t", str(args.threads), "--jinja", *(["--spec-type", kind] if kind else [])]
        theirs.append(Contender(f"llama-server {kind}".strip(), None, port, {}))
    return ours, theirs, commands


class Results:
    def __init__(self, contenders):
        self.rates, self.valid, self.tokens = {c.name: [] for c in contenders}, {c.name: 0 for c in contenders}, []

    def take(self, contender, call, tokens, seconds):
        self.rates[contender.name].append(tokens / seconds)
        self.valid[contender.name] += call is not None
        self.tokens.append(tokens)

    def print(self):
        print(f"{min(self.tokens)} to {max(self.tokens)} tokens\n{'':28}{'valid':8}{'tokens per second':24}{'over plain':24}")
        for name, values in self.rates.items():
            over = show([a / b for a, b in zip(values, self.rates["plain"])])
            print(f"{name:28}{f'{self.valid[name]}/{len(values)}':8}{show(values):24}{over:24}")


def repeat_all(ours, theirs, args):
    """Every conversation once with each; llama-server writes as many tokens as ours did, since nothing ends the blanks of a model of random weights there."""
    results, rng = Results(ours + theirs), random.Random(1)
    for repeat in range(args.repeats + 1):  # the first warms up
        messages = conversation(rng)
        answers = {contender: ask(contender, messages, args.tokens, args) for contender in ours}
        calls = {call for call, _, _ in answers.values()}
        if len(calls) != 1 or None in calls:
            sys.exit(f"tool_call_speed: not one valid call: {calls}")
        most = answers[ours[0]][1]
        answers |= {contender: ask(contender, messages, most, args) for contender in theirs}
        for contender, answer in answers.items():
            if repeat > 0:
                results.take(contender, *answer)
    print(calls.pop())
    return results


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--words")
    p.add_argument("--foretoken")
    p.add_argument("--model")
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--temperature", type=float, default=0)
    p.add_argument("--tokens", type=int, default=1000, help="of an answer, at most")
    p.add_argument("--tools", default="edit_file,read_file,run_command,search_files,book_train")
    p.add_argument("--llama", default="")
    p.add_argument("--seen-as", default="")
    p.add_argument("--llama-spec", action="append", default=[])
    args = p.parse_args()
    if args.words:
        return write_words(args.words)
    if not args.foretoken or not args.model:
        p.error("--foretoken and --model are needed")
    ours, theirs, commands = contenders(args)
    processes = [start(command, port) for port, command in commands.items()]
    try:
        repeat_all(ours, theirs, args).print()
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
    return 0


if __name__ == "__main__":
    sys.exit(main())
