#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the scores of pairs of texts with llama.cpp's, for models of the family qwen3 to which a head is added, and prints a table (Markdown).

  ranking.py --foretoken BIN --llama "PREFIX" --seen-as FOLDER [--bound X] MODEL.gguf...

PREFIX and --seen-as are those of generation.py; the model files' folder must be writable. Both programs rank the documents of each query at /v1/rerank.
Pairs that they divide into other tokens are left out: give files of make-arch-gguf `--set tokenizer.ggml.add_space_prefix=false`. The table has the largest
difference of a score, which is a probability, and how far the scores lie apart. With F16 matrices llama.cpp rounds activations to F16: give those models a bound
of their own. Exit code 1 where a difference exceeds the bound or nothing was compared; 77 where PREFIX runs no llama-server.
"""
import argparse
import os
import sys

import generation

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
import gguf_file  # noqa: E402
import server_testing  # noqa: E402

TEMPLATE = "Query:{query};document:{document};"
# Without spaces, which vocabularies made at random have no tokens for.
QUERIES = ["dog", "house", "Lily-went-to-the-park"]
TEXTS = [*generation.PROMPTS, "a dog ran", "the sun", "Lily", generation.TEXT[:300], generation.TEXT[300:500], "house", "one two three"]
DOCUMENTS = [text.replace(" ", "-") for text in TEXTS]


def scores(post, query):
    return {result["index"]: result["relevance_score"] for result in post("/v1/rerank", {"query": query, "documents": DOCUMENTS})["results"]}


def tokens(post):
    pairs = [TEMPLATE.replace("{query}", query).replace("{document}", document) for query in QUERIES for document in DOCUMENTS]
    return [post("/tokenize", {"content": pair, "add_special": False, "parse_special": True})["tokens"] for pair in pairs]


def compare(args, model):
    path = model.removesuffix(".gguf") + ".ranker.gguf"
    gguf_file.with_rerank_head(model, path, TEMPLATE)
    server = generation.Server(args.llama, os.path.join(args.seen_as, os.path.basename(path)), args.port, args.context, "--reranking")
    try:
        wanted, their_tokens = [scores(server.post, query) for query in QUERIES], tokens(server.post)
    finally:
        server.stop()
    with server_testing.Server(args.foretoken, "-m", path, "-t", "1", "-c", str(args.context), "--cache-type-k", "f32", "--cache-type-v", "f32", "-q", "--repack-cache",
                               "off") as server:
        found, our_tokens = [scores(server.post, query) for query in QUERIES], tokens(server.post)
    os.unlink(path)
    equal = [a == b for a, b in zip(our_tokens, their_tokens)]
    pairs = [(ours[i], theirs[i]) for n, (ours, theirs) in enumerate(zip(found, wanted)) for i in ours if equal[n * len(DOCUMENTS) + i]]
    largest, spread = max((abs(a - b) for a, b in pairs), default=1), max(b for _, b in pairs) - min(b for _, b in pairs) if pairs else 0
    good = len(pairs) > 5 and largest <= args.bound < spread
    row = (os.path.basename(model), len(pairs), len(equal), largest, spread, "" if good else "**differs**")
    print("| %s | %d of %d | %.2e | %.3f | %s |" % row, flush=True)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    generation.add_arguments(parser, 8098, 1024, needed=("foretoken", "llama", "seen-as"))
    parser.add_argument("--bound", type=float, default=1e-3)
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    generation.need_server(args.llama)
    print("| model | pairs of the same tokens | largest difference | spread of scores | |\n|---|---|---|---|---|", flush=True)
    results = [compare(args, model) for model in args.models]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
