#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares embeddings with llama.cpp's on the same model files, and prints a table (Markdown).

  embeddings.py --foretoken BIN --llama "PREFIX" --seen-as FOLDER [--bound X] [--context N] MODEL.gguf...

PREFIX and --seen-as are those of generation.py. For each pooling both programs embed the same tokens, which llama.cpp makes of some texts, with caches in F32.
The table has the largest difference of a number of the embeddings of length 1, and the smallest cosine of two that should be equal. Exit code 1 where a difference
exceeds the bound; 77 where PREFIX runs no llama-server. With weights of 8 bits and fewer both programs round activations, each in its way: give those models a
bound of their own.
"""
import argparse
import os
import sys

import generation

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import server_testing  # noqa: E402

POOLINGS = ("mean", "cls", "last")
TEXTS = [*generation.PROMPTS, "a", "Lily", generation.TEXT, generation.TEXT[:300]]


def llama(args, model, pooling):
    seen = os.path.join(args.seen_as, os.path.basename(model))
    server = generation.Server(args.llama, seen, args.port, args.context, "--embedding", "--pooling", pooling)
    try:
        tokens = [server.post("/tokenize", {"content": text, "add_special": True})["tokens"] for text in TEXTS]
        return tokens, [entry["embedding"] for entry in server.post("/v1/embeddings", {"input": tokens})["data"]]
    finally:
        server.stop()


def ours(args, model, pooling, tokens):
    with server_testing.Server(args.foretoken, "-m", model, "-t", "1", "-c", str(args.context), "--cache-type-k", "f32", "--cache-type-v", "f32", "-q",
                               "--repack-cache", "off") as server:
        return [entry["embedding"] for entry in server.post("/v1/embeddings", {"input": tokens, "pooling": pooling})["data"]]


def compare(args, model, pooling):
    tokens, wanted = llama(args, model, pooling)
    rows = list(zip(ours(args, model, pooling, tokens), wanted, strict=True))
    largest = max(abs(x - y) for found, want in rows for x, y in zip(found, want, strict=True))
    cosine = min(sum(x * y for x, y in zip(found, want)) for found, want in rows)
    good = largest <= args.bound
    print("| %s | %s | %d | %.2e | %.7f | %s |" % (os.path.basename(model), pooling, len(rows), largest, cosine, "" if good else "**differs**"), flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    generation.add_arguments(parser, 8099, 512, needed=("foretoken", "llama", "seen-as"))
    parser.add_argument("--bound", type=float, default=1e-3)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    generation.need_server(args.llama)
    print("| model | pooling | embeddings | largest difference | smallest cosine | |\n|---|---|---|---|---|---|", flush=True)
    results = [compare(args, model, pooling) for model in args.models for pooling in POOLINGS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
