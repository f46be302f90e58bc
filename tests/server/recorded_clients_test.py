#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests that terminal agents sent, from a recording in which "text of N characters" stands for a text: each is answered, whole and streamed, in the form of
its path. Skipped (77) without the recording.

usage: recorded_clients_test.py FORETOKEN MODELS RECORDING
"""
import json
import os
import re
import sys

from server_testing import Server, read_json

TOKENS = 16  # of an answer
LIMITS = {"/v1/responses": "max_output_tokens"}
WORDS = "the dog ran to a big red house and saw her mother under the green tree "
REFUSED = {"/api/pull": 501}  # the one model stays


def spoken(value):
    if isinstance(value, dict):
        return {name: spoken(part) for name, part in value.items()}
    if isinstance(value, list):
        return [spoken(part) for part in value]
    if isinstance(value, str) and (size := re.fullmatch(r"text of (\d+) characters", value)):
        n = int(size[1])
        return (WORDS * (n // len(WORDS) + 1))[:n]
    return value


def events_of(data):
    """The data of each event, without what ends OpenAI's streams."""
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n") if line.startswith("data: ")]
    return [read_json(line) for line in lines if line != "[DONE]"]


def is_whole(path, reply):
    """Whether a reply is an answer in the form of its path."""
    if path == "/v1/responses":
        return reply["object"] == "response" and len(reply["output"]) > 0
    if path.startswith("/v1/messages"):
        return reply["type"] == "message" and len(reply["content"]) > 0
    return reply["object"] == "chat.completion" and len(reply["choices"]) == 1


def is_stream(path, events):
    if path == "/v1/responses":
        return events[0]["type"] == "response.created" and events[-1]["type"] in ("response.completed", "response.incomplete")
    if path.startswith("/v1/messages"):
        return events[0]["type"] == "message_start" and events[-1]["type"] == "message_stop"
    return any(event["choices"] and event["choices"][0]["finish_reason"] for event in events)


def answer(server, record):
    """Sends the request as it was, and the other way. The tokens of prompts, or none where it is no request for an answer."""
    path, body = record["path"], spoken(record["body"])
    if record["method"] == "GET" or path in REFUSED:
        status, _, data = server.send(record["method"], path, body or None)
        assert status == REFUSED.get(path, 200), (path, status, data[:300])
        return
    name = next((name for name in ("max_output_tokens", "max_completion_tokens", "max_tokens") if name in body), LIMITS.get(path, "max_tokens"))
    for stream in (True, False):
        sent = {**body, name: TOKENS, "stream": stream}
        if not stream:
            sent.pop("stream_options", None)  # which OpenAI's API refuses then, too
        status, _, data = server.send("POST", path, sent)
        assert status == 200, (record["client"], path, stream, status, data[:300])
        good = is_stream(path, events_of(data)) if stream else is_whole(path, read_json(data))
        assert good, (record["client"], path, stream, data[-600:])
        print(f"ok {record['client'] or '-'} {path} {'streamed' if stream else 'whole'}", flush=True)


def main():
    program, models, recording = sys.argv[1:4]
    if not os.path.exists(recording):
        print(f"skipped: there is no {recording}")
        return 77
    with open(recording, encoding="utf-8") as file:
        records = json.load(file)
    with Server(program, "-m", os.path.join(models, "tales-9m-q8_0.gguf"), "-c", "32768", "-t", "2", "-q", "--repack-cache", "off") as server:
        for record in records:
            answer(server, record)
    print(f"{len(records)} requests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
