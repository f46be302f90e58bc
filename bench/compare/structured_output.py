#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers under a JSON Schema: without drafts, with drafts of what the schema forces, with n-gram lookup beside them, and llama-server's, in turn.

  structured_output.py --foretoken build/release/foretoken --model TARGET.gguf [--repeats 5] [--threads 2]
                       [--llama "PREFIX" --seen-as FOLDER]

One request at a time, an order with nine fields, temperature 0. The figure is the tokens of an answer over the time of its request, the prompt's few
tokens included; medians (least to most), ratios are those of a repeat. foretoken's answers must be the same in all modes. PREFIX and FOLDER as in
serving_load.py.
"""
import argparse
import http.client
import json
import os
import shlex
import signal
import statistics
import sys
import time

from serving_load import Contender, free_port, show, start

TEXT = {"type": "string", "minLength": 8, "maxLength": 16}
ADDRESS = {"street": TEXT, "postal_code": {"type": "string", "pattern": "^[0-9]{5}$"}, "country": {"enum": ["Germany", "France", "Italy", "Spain"]}}
ORDER = {"order_number": {"type": "integer", "minimum": 1000, "maximum": 9999}, "customer_name": TEXT,
         "delivery_address": {"type": "object", "properties": ADDRESS, "required": list(ADDRESS), "additionalProperties": False},
         "express_delivery": {"type": "boolean"}, "status": {"enum": ["received", "processing", "shipped", "delivered"]}}
SCHEMA = {"type": "object", "properties": ORDER, "required": list(ORDER), "additionalProperties": False}


def ask(contender):
    """(text, tokens, seconds)"""
    body = {"prompt": "The order as JSON: ", "max_tokens": 400, "temperature": 0, "seed": 1, "json_schema": SCHEMA, **contender.extra}
    connection = http.client.HTTPConnection("127.0.0.1", contender.port, timeout=600)
    begin = time.monotonic()
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    response = connection.getresponse()
    data = json.loads(response.read())
    seconds = time.monotonic() - begin
    if response.status != 200:
        sys.exit(f"structured_output: {contender.name}: {response.status} {data}")
    text = data["choices"][0]["text"]
    if set(json.loads(text)) != set(ORDER):
        sys.exit(f"structured_output: {contender.name}: {text!r} is not an order")
    return text, data["usage"]["completion_tokens"], seconds


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--foretoken", required=True)
    p.add_argument("--model", required=True)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--llama", default="")
    p.add_argument("--seen-as", default="")
    args = p.parse_args()
    port = free_port()
    commands = {port: [args.foretoken, "serve", "-m", args.model, "--port", str(port), "-c", "1024", "-t", str(args.threads), "--quiet"]}
    ours = [Contender("plain", None, port, {"speculative": {"enabled": False}}), Contender("forced", None, port, {"speculative": {"type": "grammar"}}),
            Contender("forced, ngram", None, port, {})]
    theirs = []
    if args.llama:
        port = free_port()
        commands[port] = [*shlex.split(args.llama), "llama-server", "-m", os.path.join(args.seen_as, os.path.basename(args.model)), "--host", "127.0.0.1",
                          "--port", str(port), "-np", "1", "-c", "1024", "-t", str(args.threads)]
        theirs = [Contender("llama-server", None, port, {"cache_prompt": False})]
    rates = {c.name: [] for c in ours + theirs}
    processes = [start(command, port) for port, command in commands.items()]
    try:
        for repeat in range(args.repeats + 1):  # the first warms up
            texts = set()
            for contender in ours + theirs:
                text, tokens, seconds = ask(contender)
                if contender in ours:
                    texts.add(text)
                if repeat > 0:
                    rates[contender.name].append(tokens / seconds)
            if len(texts) != 1:
                sys.exit(f"structured_output: different texts: {texts}")
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGTERM)
    print(f"{texts.pop()}\n{'':16}{'tokens per second':24}{'over plain':24}")
    for name, values in rates.items():
        print(f"{name:16}{show(values):24}{show([a / b for a, b in zip(values, rates['plain'])]):24}")


if __name__ == "__main__":
    main()
