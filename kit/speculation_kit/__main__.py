# SPDX-License-Identifier: Apache-2.0
"""The command line: `vectors` checks an implementation of the rules, `compare` two servers.

Exit codes: 0 right, or exact; 1 wrong, different or not shown; 2 input that is wrong, or a server that cannot be used.
"""
import argparse
import json
import math
import os
import sys

from . import comparison, implementation, prompts, report, vectors
from .endpoint import Endpoint
from .errors import KitError
from .json_input import parse

MOST = 1_000_000


def whole(least, most=MOST):
    def read(text):
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not in [{least}, {most}]")
        return value
    read.__name__ = "whole number"
    return read


def real(least, most):
    def read(text):
        value = float(text)
        if not (math.isfinite(value) and least <= value <= most):
            raise argparse.ArgumentTypeError(f"{value} is not in [{least:g}, {most:g}]")
        return value
    read.__name__ = "number"
    return read


def several(one):
    def read(text):
        return [one(part.strip()) for part in text.split(",")] if text != "none" else []
    read.__name__ = "list"
    return read


def endpoint_kind(text):
    if text not in ("completions", "chat"):
        raise argparse.ArgumentTypeError(f"'{text}' is neither completions nor chat")
    return text


def add_vectors(commands):
    parser = commands.add_parser("vectors", help="run the test vectors against an implementation of the rules")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument("--function", metavar="FILE.py:NAME", help="a Python function, in a file or a MODULE, that takes a round")
    who.add_argument("--command", metavar="COMMAND", help="a program that reads rounds on its standard input, one a line, and answers each")
    parser.add_argument("--vectors", metavar="FILE", help="default: the verification.jsonl that comes with the kit")
    parser.set_defaults(run=run_vectors)
    return parser


def add_compare(commands):
    parser = commands.add_parser("compare", help="compare a server that speculates with one that does not")
    add = parser.add_argument
    add("--plain", required=True, metavar="URL", help="a server without speculation, as http://127.0.0.1:8080/v1")
    add("--speculative", required=True, metavar="URL", help="a server of the same model with it")
    add("--model", metavar="NAME", help="the model's name in requests; default: the first that each server lists")
    add("--api-key-env", metavar="NAME", help="the environment variable with the key that both servers get")
    add("--endpoints", type=several(endpoint_kind), default=["completions", "chat"], metavar="LIST", help="completions,chat (the default), or one")
    add("--prompts", metavar="FILE", help="JSON lines with `prompt`; default: six built-in ones")
    add("--max-prompts", type=whole(0), default=0, metavar="N", help="only the first N; default 0: all")
    add("--temperatures", type=several(real(0, 10)), default=[0.0, 1.0], metavar="LIST", help="default 0,1")
    add("--seeds", type=several(whole(0, 2**31)), default=[1, 2], metavar="LIST",
        help="of drawn texts; none: seeds are not shared, so that distributions are compared at once; default 1,2")
    add("--max-tokens", type=whole(1), default=48, metavar="N", help="of each text; default 48")
    add("--logprob-tolerance", type=real(0, 100), default=0.01, metavar="X", help="how much log-probabilities may differ; default 0.01")
    add("--samples", type=whole(20), default=600, metavar="N", help="texts drawn of each prompt for a comparison of distributions; default 600")
    add("--sample-prompts", type=whole(1), default=4, metavar="N", help="prompts that they are drawn for, the first ones; default 4")
    add("--sample-tokens", type=whole(1, 64), default=4, metavar="N", help="tokens of such a text; default 4")
    add("--false-alarms", type=real(1e-9, 0.5), default=0.001, metavar="P", help="the probability that equal distributions fail; default 0.001")
    add("--speed-pairs", type=whole(0), default=12, metavar="N", help="pairs of requests that are timed; 0: none; default 12")
    add("--parallel", type=whole(1, 256), default=4, metavar="N", help="requests at a time while texts are drawn; default 4")
    add("--extra", default="{}", metavar="JSON", help="further fields of every request, as '{\"ignore_eos\": true}'")
    add("--timeout", type=real(0.001, 86400), default=600.0, metavar="S", help="seconds to wait for a part of a reply; default 600")
    parser.set_defaults(run=run_compare)
    return parser


def run_vectors(options):
    rounds = vectors.read(options.vectors)
    if options.function:
        answers = implementation.answers_of_function(implementation.load_function(options.function), rounds)
    else:
        answers = implementation.answers_of_command(options.command, rounds, options.timeout)
    outcomes = [vectors.outcome(case, answer) for case, answer in zip(rounds, answers)]
    return report.vectors_json(outcomes), report.vectors_markdown(outcomes)


def _key(variable):
    if variable is None:
        return None
    key = os.environ.get(variable, "")
    if not key or not key.isascii() or not key.isprintable():
        raise KitError(f"--api-key-env: the variable {variable} holds no key; set it")
    return key


def run_compare(options):
    extra = parse(options.extra, "--extra")
    if not isinstance(extra, dict):
        raise KitError("--extra: no JSON object; write '{\"name\": value}'")
    if not options.endpoints or not options.temperatures:
        raise KitError("--endpoints, --temperatures: an empty list; name at least one")
    plan = comparison.Plan(prompts.read(options.prompts, options.max_prompts), options.endpoints, options.temperatures, options.seeds,
                           options.max_tokens, options.samples, options.sample_prompts, options.sample_tokens, options.false_alarms,
                           options.logprob_tolerance, options.speed_pairs, options.parallel)
    key = _key(options.api_key_env)
    servers = [Endpoint(name, url, options.model, key, options.timeout, extra)
               for name, url in (("plain", options.plain), ("speculative", options.speculative))]
    result = comparison.run(*servers, plan, lambda line: print(line, file=sys.stderr, flush=True))
    return report.comparison_json(result), report.comparison_markdown(result)


def write(path, text):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise KitError(f"{path}: {error.strerror}; give a file that can be written") from None


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="speculation_kit", description="Checks speculative decoding of any engine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (add_vectors(commands), add_compare(commands)):
        command.add_argument("--json", metavar="FILE", help="where the report is written as JSON")
        command.add_argument("--markdown", metavar="FILE", help="where it is written in Markdown; default: standard output")
    commands.choices["vectors"].add_argument("--timeout", type=real(0.001, 86400), default=600.0, metavar="S", help="seconds for the command")
    options = parser.parse_args(arguments)
    try:
        value, markdown = options.run(options)
        if options.json:
            write(options.json, json.dumps(value, indent=1) + "\n")
        if options.markdown:
            write(options.markdown, markdown)
        else:
            print(markdown, end="")
    except KitError as error:
        print(f"speculation_kit: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0 if value["verdict"] in ("right", "exact") else 1


def run():
    """The entry of an archive that `python3 -m zipapp` makes."""
    sys.exit(main())


if __name__ == "__main__":
    run()
