#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file of the shape of a 1B model of the family llama that goes on as its prompt did, or one of random weights with the same words.

  copying_model.py OUT.gguf --words FILE [FILE ...] [--template FILE] [--random SEED] [--layers 16 --dim 2048 --heads 32 --kv-heads 8 --ff 8192 --vocab 128256]

The copying model finds the last six tokens earlier in its text and says what followed them there: what a trained model does where arguments of a call
repeat what was read. All layers but the first two add nothing to the text, but cost what they cost. The tokens are bytes and merges of what --words has.
Matrices are F16; `foretoken quantize` makes other types of them. Needs python3-numpy.

How it copies: heads of the first layer look 1 to 6 tokens back, by their rotation alone, and write down what stood there. A head of the second layer
asks with the last six tokens for a place whose six tokens before are the same, in dimensions that hardly rotate, and adds the token of that place.
"""
import argparse
import math
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "compare"))
from scripted_model import CONTROL, NORMAL, USER, Vocabulary, Writer, learned_merges

CODE, HEAD, BACK = 64, 64, 6  # dimensions of a token's code and of a head; how many tokens are compared
BASE = 1e12  # of the rotation: from pair STATIC on, a thousand places turn by less than a quarter
STATIC = 10
PART = (HEAD - 2 * STATIC) // BACK  # dimensions of a token in a key
ONE = CODE  # the dimension that is 1 in every embedding
SEEN, SAID = 2 * CODE, (2 + BACK) * CODE  # where the codes of earlier tokens stand, and that of the next token
MARKS = {"<|im_start|>": CONTROL, "<|im_end|>": CONTROL, "<tool_call>": USER, "</tool_call>": USER}


def vocabulary(files, n):
    text = "\n".join(open(file, encoding="utf-8").read() for file in files)
    merges = learned_merges(text, 4000)
    words = Vocabulary(MARKS, merges)
    for i in range(n - len(words.texts)):
        words.add(f"unused{i}", NORMAL)
    return words, merges


def add_keys(out, a, words, merges):
    values = {"general.architecture": "llama", "general.name": "random" if a.random is not None else "copying", "llama.block_count": a.layers,
              "llama.context_length": 8192, "llama.embedding_length": a.dim, "llama.feed_forward_length": a.ff, "llama.attention.head_count": a.heads,
              "llama.attention.head_count_kv": a.kv_heads, "llama.attention.key_length": HEAD, "llama.attention.value_length": HEAD,
              "llama.rope.dimension_count": HEAD, "llama.rope.freq_base": BASE, "llama.attention.layer_norm_rms_epsilon": 1e-6,
              "llama.vocab_size": a.vocab, "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": words.texts,
              "tokenizer.ggml.token_type": words.types, "tokenizer.ggml.merges": [" ".join(pair) for pair in merges],
              "tokenizer.ggml.eos_token_id": words.marks["<|im_end|>"], "tokenizer.ggml.bos_token_id": words.marks["<|im_end|>"],
              "tokenizer.ggml.add_bos_token": False}
    if a.template:
        values["tokenizer.chat_template"] = open(a.template, encoding="utf-8").read()
    for name, value in values.items():
        out.key(name, value)


def shapes(a):
    """Every matrix of a layer: its rows and columns."""
    q, kv = a.heads * HEAD, a.kv_heads * HEAD
    return {"attn_q": (q, a.dim), "attn_k": (kv, a.dim), "attn_v": (kv, a.dim), "attn_output": (a.dim, q), "ffn_gate": (a.ff, a.dim), "ffn_up": (a.ff, a.dim),
            "ffn_down": (a.dim, a.ff)}


def looks_back(matrices):
    """The first layer: all heads of keys and values are the same, and each query head looks another way back."""
    q, k, v, output = (matrices[name] for name in ("attn_q", "attn_k", "attn_v", "attn_output"))
    for pair in range(STATIC):
        k[2 * pair::HEAD, ONE] = 1
        for head in range(BACK):
            angle = (head + 1) * BASE ** (-pair / (HEAD // 2))
            q[head * HEAD + 2 * pair, ONE], q[head * HEAD + 2 * pair + 1, ONE] = 400 * math.cos(angle), -400 * math.sin(angle)
    for i in range(CODE):
        v[i::HEAD, i] = 1
        for head in range(BACK):
            output[SEEN + head * CODE + i, head * HEAD + i] = 1


def finds_what_followed(matrices):
    """The second layer: the last BACK tokens of a row against those before each place."""
    q, k, v, output = (matrices[name] for name in ("attn_q", "attn_k", "attn_v", "attn_output"))
    for back in range(BACK):
        for i in range(PART):
            at = 2 * STATIC + back * PART + i
            q[at, i if back == 0 else SEEN + (back - 1) * CODE + i] = 48
            k[at, SEEN + back * CODE + i] = 1
    for i in range(CODE):
        v[i, i] = 1
        output[SAID + i, i] = 1


def half(matrix):
    return matrix.astype("<f2").tobytes()


def add_tensors(out, a):
    numbers = np.random.default_rng(a.random or 1)

    def add(name, matrix):
        out.tensors.append((name, [matrix.shape[1], matrix.shape[0]], 1, half(matrix)))

    def norm(name, value):
        out.tensors.append((name, [a.dim], 0, np.full(a.dim, value, "<f4").tobytes()))

    codes = np.sign(numbers.standard_normal((a.vocab, CODE), np.float32))
    embedding = numbers.standard_normal((a.vocab, a.dim), np.float32) if a.random is not None else np.zeros((a.vocab, a.dim), np.float32)
    if a.random is None:
        embedding[:, :CODE], embedding[:, ONE] = codes, 1
    add("token_embd.weight", embedding)
    for layer in range(a.layers):
        matrices = {}
        for name, (rows, columns) in shapes(a).items():
            matrices[name] = np.zeros((rows, columns), np.float32)
            if a.random is not None:
                matrices[name] = numbers.standard_normal((rows, columns), np.float32) / columns ** 0.5
        if a.random is None and layer < 2:
            (looks_back, finds_what_followed)[layer](matrices)
        # A norm divides by the root of the mean square; the codes keep their size where it is multiplied back.
        size = CODE + 1 if layer == 0 else CODE * (1 + BACK) + 1
        norm(f"blk.{layer}.attn_norm.weight", 1.0 if a.random is not None else math.sqrt(size / a.dim))
        norm(f"blk.{layer}.ffn_norm.weight", 1.0)
        for name, matrix in matrices.items():
            add(f"blk.{layer}.{name}.weight", matrix)
    norm("output_norm.weight", 1.0)
    output = embedding / a.dim ** 0.5
    if a.random is None:
        output = np.zeros((a.vocab, a.dim), np.float32)
        output[:, SAID:SAID + CODE] = codes
    add("output.weight", output)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--words", nargs="+", required=True)
    p.add_argument("--template")
    p.add_argument("--random", type=int)
    for name, value in (("layers", 16), ("dim", 2048), ("heads", 32), ("kv-heads", 8), ("ff", 8192), ("vocab", 128256)):
        p.add_argument(f"--{name}", type=int, default=value)
    a = p.parse_args()
    if a.heads < BACK or a.dim < SAID + CODE or a.layers < 2:
        p.error(f"the shape is too small: at least {SAID + CODE} wide, 2 layers, {BACK} heads")
    out = Writer()
    words, merges = vocabulary(a.words, a.vocab)
    add_keys(out, a, words, merges)
    add_tensors(out, a)
    out.write(a.out)


if __name__ == "__main__":
    main()
