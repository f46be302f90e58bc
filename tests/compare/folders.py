#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what foretoken makes of a folder (config.json, tokenizer.json, *.safetensors) with three others:

  folders.py --build BUILD [--llama "PREFIX" --seen-as FOLDER] [--work FOLDER] MODEL.gguf...

BUILD is foretoken's build folder. Each file (F32; llama, qwen2, qwen3, qwen3moe, gemma3) is written as a folder of two shards
(write_folder). Then
  - the bits of log-probabilities of the folder and of the file are equal (but of gemma3, whose norms are rounded where 1 is taken off);
  - they are near those of a forward pass in NumPy (64 bits), which reads the folder and follows the networks' definition there:
    halves of a head rotate against each other, one matrix for each expert, Gemma's norms have 1 added;
  - `foretoken quantize` turns the folder into F32 and Q8_0 GGUF files. The F32 file has the bits of the folder, and with --llama,
    llama.cpp generates the same greedy tokens from it as foretoken from the folder. PREFIX runs a program of llama.cpp; FOLDER is where it sees the --work folder.
Needs python3-numpy. Exit code 1 on a difference.
"""
import argparse
import json
import os
import struct
import sys
import tempfile

import numpy as np

from generation import Programs, Server, run

BOUND = 2e-3  # of log-probabilities against NumPy: foretoken computes in F32
TOKENS = [1] + [(37 * i * i + 11 * i) % 240 + 3 for i in range(1, 96)]


def read_folder(folder):
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    tensors = {}
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".safetensors"):
            continue
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        size = struct.unpack("<Q", data[:8])[0]
        for key, entry in json.loads(data[8:8 + size]).items():
            begin, end = entry["data_offsets"]
            assert entry["dtype"] == "F32"
            tensors[key] = np.frombuffer(data[8 + size + begin:8 + size + end], "<f4").reshape(entry["shape"]).astype(np.float64)
    return config, tensors


class Network:
    """A decoder as the folders' own definitions have it."""

    def __init__(self, folder):
        self.config, self.tensors = read_folder(folder)
        self.gemma = self.config["model_type"] == "gemma3_text"

    def get(self, name, default=None):
        return self.config.get(name, default)

    def norm(self, x, name):
        weight = self.tensors[name + ".weight"] + (1 if self.gemma else 0)
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"]) * weight

    def linear(self, x, name):
        y = x @ self.tensors[name + ".weight"].T
        return y + self.tensors[name + ".bias"] if name + ".bias" in self.tensors else y

    def activation(self, x):
        if self.gemma:
            return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
        return x / (1 + np.exp(-x))

    def gated(self, x, name):
        return self.linear(self.activation(self.linear(x, name + ".gate_proj")) * self.linear(x, name + ".up_proj"), name + ".down_proj")

    def experts(self, x, name):
        logits = self.linear(x, name + ".gate")
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        out = np.zeros_like(x)
        for row in range(len(x)):
            chosen = np.argsort(-chances[row], kind="stable")[:self.config["num_experts_per_tok"]]
            weights = chances[row, chosen] / chances[row, chosen].sum()
            for weight, expert in zip(weights, chosen):
                out[row] += weight * self.gated(x[row], f"{name}.experts.{expert}")
        return out

    def rotate(self, x, base, divisor):
        """x: [rows, heads, size]. Halves of a head rotate against each other."""
        size = x.shape[-1]
        angles = np.arange(len(x))[:, None] / divisor / base ** (np.arange(0, size, 2) / size)
        cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
        a, b = x[..., :size // 2], x[..., size // 2:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x, name, layer):
        size, heads, kv_heads = self.config["head_dim"], self.config["num_attention_heads"], self.config["num_key_value_heads"]
        full = not self.gemma or (layer + 1) % self.get("sliding_window_pattern", 6) == 0
        base = self.config["rope_theta"] if full else self.get("rope_local_base_freq", 10000)
        divisor = (self.get("rope_scaling") or {}).get("factor", 1) if full else 1
        q, k, v = (self.linear(x, f"{name}.{part}_proj").reshape(len(x), -1, size) for part in "qkv")
        if f"{name}.q_norm.weight" in self.tensors:
            q, k = self.norm(q, name + ".q_norm"), self.norm(k, name + ".k_norm")
        q, k = self.rotate(q, base, divisor), self.rotate(k, base, divisor)
        k, v = np.repeat(k, heads // kv_heads, 1), np.repeat(v, heads // kv_heads, 1)
        scores = np.einsum("ihd,jhd->hij", q, k) / np.sqrt(size)
        i, j = np.indices(scores.shape[1:])
        seen = j <= i if full else (j <= i) & (j > i - self.config["sliding_window"])
        scores = np.where(seen, scores, -np.inf)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        scores /= scores.sum(-1, keepdims=True)
        return self.linear(np.einsum("hij,jhd->ihd", scores, v).reshape(len(x), -1), name + ".o_proj")

    def scores(self, tokens):
        x = self.tensors["model.embed_tokens.weight"][tokens]
        if self.gemma:
            x = x * np.float64(np.float32(np.sqrt(x.shape[-1])))
        for layer in range(self.config["num_hidden_layers"]):
            name = f"model.layers.{layer}."
            y = self.attention(self.norm(x, name + "input_layernorm"), name + "self_attn", layer)
            x = x + (self.norm(y, name + "post_attention_layernorm") if self.gemma else y)
            y = self.norm(x, name + ("pre_feedforward_layernorm" if self.gemma else "post_attention_layernorm"))
            y = self.experts(y, name + "mlp") if name + "mlp.gate.weight" in self.tensors else self.gated(y, name + "mlp")
            x = x + (self.norm(y, name + "post_feedforward_layernorm") if self.gemma else y)
        head = "lm_head.weight" if "lm_head.weight" in self.tensors else "model.embed_tokens.weight"
        logits = self.norm(x, "model.norm") @ self.tensors[head].T
        logits -= logits.max(-1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
        return logits[np.arange(len(tokens) - 1), tokens[1:]]


def compare(args, model, work, port):
    tool = lambda name: os.path.join(args.build, name)
    programs = Programs(tool("foretoken"), tool("tests/lossless/score_tokens"), 256)
    folder = os.path.join(work, os.path.basename(model).removesuffix(".gguf"))
    run(tool("tests/cli/write_folder"), model, folder, "2")
    for kind in ("F32", "Q8_0"):
        run(programs.foretoken, "quantize", folder, f"{folder}-{kind}.gguf", kind)
    of_file, of_folder = programs.score(model, TOKENS), programs.score(folder, TOKENS)
    same = programs.score(f"{folder}-F32.gguf", TOKENS) == of_folder and (of_file == of_folder or "gemma3" in model)
    worst = np.abs(np.array(of_folder) - Network(folder).scores(TOKENS)).max()
    bad = not same or not worst < BOUND
    print(f"{os.path.basename(model)}: {'the same bits' if same else 'OTHER BITS'}, {worst:.1e} from NumPy", flush=True)
    if args.llama is None:
        return bad
    server = Server(args.llama, os.path.join(args.seen_as, os.path.basename(folder) + "-F32.gguf"), port, 256)
    try:
        theirs = server.complete(TOKENS[:16], 64, 0)["tokens"]
    finally:
        server.stop()
    ours = programs.greedy(folder, TOKENS[:16])
    same = ours[:len(theirs)] == theirs
    print(f"  llama.cpp on the quantised folder: {len(theirs)} greedy tokens, {'equal' if same else f'{theirs} and {ours}'}", flush=True)
    return bad or not same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--llama")
    parser.add_argument("--seen-as")
    parser.add_argument("--work")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        args.seen_as = args.seen_as and os.path.join(args.seen_as, os.path.basename(work))
        different = [compare(args, model, work, 8471 + i) for i, model in enumerate(args.models)]
    sys.exit(1 if any(different) else 0)


if __name__ == "__main__":
    main()
