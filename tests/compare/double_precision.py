#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A decoder of gemma4 files (dense or mixture, F32 or F16, without per-layer inputs and shared caches) in double precision, written from the
definitions with numpy. It shares no code with foretoken or llama.cpp; gelu.py tells with it which of the two is nearer.

  double_precision.py --score BIN [--write BIN] MODEL.gguf...

Compares foretoken's log-probabilities of a fixed text of random tokens (BIN is score_tokens) with this decoder's, and takes the same measure of what
llama.cpp's rounded GELU would change. Exit code 1 where foretoken's differ by more than BOUND, or where the rounded GELU's do not. With --write (BIN
is write_tiny_model) the model is made before. Exit code 77 without numpy.
"""
import argparse
import math
import os
import random
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from gguf_file import GgufFile  # noqa: E402

BOUND = 1e-4
SMALLEST_SUM = 2.0 ** -14  # the weights of the chosen experts are divided by their sum, but by no less than this


class File(GgufFile):
    """Metadata without the name of the architecture, and tensors: arrays of doubles, the slowest dimension first."""

    def __init__(self, path):
        super().__init__(path)
        self.places = {name: (shape[::-1], kind, self.begin + offset) for name, shape, kind, offset in self.tensors}

    def key(self, name, default=None):
        return self.values.get(f"{self.values['general.architecture']}.{name}", default)

    def tensor(self, name):
        if name not in self.places:
            return None
        shape, kind, begin = self.places[name]
        if kind not in (0, 1):
            raise ValueError("%s: only F32 and F16 can be read" % name)
        code = "<f4" if kind == 0 else "<f2"
        return np.frombuffer(self.data, code, int(np.prod(shape)), begin).reshape(shape).astype(np.float64)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * x * (1 + 0.044715 * x * x)))


def gelu_by_table(x):
    rounded = gelu(x.astype(np.float16).astype(np.float64)).astype(np.float16).astype(np.float64)
    return np.where(x <= -10, 0.0, np.where(x >= 10, x, rounded))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Model:
    def __init__(self, path):
        self.file = File(path)
        self.eps = self.file.key("attention.layer_norm_rms_epsilon")
        self.tensors = {name: self.file.tensor(name) for name in self.file.places}

    def norm(self, x, weights=None):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return y if weights is None else y * weights

    def rotate(self, heads, has_window):
        """heads: [positions, heads, size]; the pairs are i and i + half."""
        kind = "_swa" if has_window else ""
        size, base = self.file.key("rope.dimension_count" + kind), self.file.key("rope.freq_base" + kind, 10000.0)
        half = size // 2
        frequencies = base ** (-2.0 * np.arange(half) / size)
        if not has_window and "rope_freqs.weight" in self.tensors:
            frequencies = frequencies / self.tensors["rope_freqs.weight"]
        angles = np.arange(len(heads))[:, None, None] * frequencies
        a, b = heads[..., :half], heads[..., half:size]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles), heads[..., size:]], -1)

    def attention(self, x, of, has_window):
        n = len(x)
        h = self.norm(x, of("attn_norm"))
        size = self.file.key("attention.key_length_swa" if has_window else "attention.key_length")
        project = lambda name: (h @ of(name).T).reshape(n, -1, size)
        q, k = project("attn_q"), project("attn_k")
        v = self.norm(k if of("attn_v") is None else project("attn_v"))
        q = self.rotate(self.norm(q, of("attn_q_norm")), has_window)
        k = self.rotate(self.norm(k, of("attn_k_norm")), has_window)
        group = q.shape[1] // k.shape[1]
        k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
        scores = np.einsum("ihd,jhd->hij", q, k)
        back = np.arange(n)[:, None] - np.arange(n)[None, :]
        seen = (back >= 0) & (back < (self.file.key("attention.sliding_window") if has_window else n))
        mixed = np.einsum("hij,jhd->ihd", softmax(np.where(seen, scores, -np.inf)), v).reshape(n, -1)
        return self.norm(mixed @ of("attn_output").T, of("post_attention_norm"))

    def experts(self, x, of, function, routing, swapped):
        logits = (self.norm(x) / math.sqrt(x.shape[1]) * of("ffn_gate_inp", "scale")) @ of("ffn_gate_inp").T
        p, used = softmax(logits), self.file.key("expert_used_count")
        order = np.argsort(-p, axis=1, kind="stable")
        ranked = np.take_along_axis(logits, order, 1)
        for layer, position in swapped:
            if layer == len(routing):
                order[position, [used - 1, used]] = order[position, [used, used - 1]]
        routing.append({"chosen": np.sort(order[:, :used], 1), "margin": ranked[:, used - 1] - ranked[:, used]})
        h, y = self.norm(x, of("pre_ffw_norm_2")), np.zeros_like(x)
        gate_up, down, scales = of("ffn_gate_up_exps"), of("ffn_down_exps"), of("ffn_down_exps", "scale")
        for i in range(len(x)):
            chosen = order[i, :used]
            weights = p[i, chosen] / max(p[i, chosen].sum(), SMALLEST_SUM) * scales[chosen]
            for expert, weight in zip(chosen, weights):
                gate, up = np.split(gate_up[expert] @ h[i], 2)
                y[i] += weight * (down[expert] @ (function(gate) * up))
        return self.norm(y, of("post_ffw_norm_2"))

    def feed_forward(self, x, of, function, routing, swapped):
        h = self.norm(x, of("ffn_norm"))
        y = (function(h @ of("ffn_gate").T) * (h @ of("ffn_up").T)) @ of("ffn_down").T
        if of("ffn_gate_inp") is not None:
            y = self.norm(y, of("post_ffw_norm_1")) + self.experts(x, of, function, routing, swapped)
        return self.norm(y, of("post_ffw_norm"))

    def run(self, tokens, table=False, swapped=()):
        """(log-probabilities [position, token], of each layer with experts the chosen ones and by how much the last of them won). With table, GELU is
        that of llama.cpp's CPU code: between -10 and 10, argument and result are rounded to F16. swapped: (layer, position) where the best expert that
        was not chosen takes the place of the last that was."""
        function, routing = gelu_by_table if table else gelu, []
        embeddings = self.tensors["token_embd.weight"]
        x = embeddings[tokens] * math.sqrt(embeddings.shape[1])
        for i, has_window in enumerate(self.file.key("attention.sliding_window_pattern")):
            of = lambda name, kind="weight": self.tensors.get("blk.%d.%s.%s" % (i, name, kind))
            x = x + self.attention(x, of, has_window)
            x = x + self.feed_forward(x, of, function, routing, swapped)
            x = x * of("layer_output_scale")[0]
        logits = self.norm(x, self.tensors["output_norm.weight"]) @ self.tensors.get("output.weight", embeddings).T
        cap = self.file.key("final_logit_softcapping")
        logits = cap * np.tanh(logits / cap) if cap else logits
        return np.log(softmax(logits)), routing


def of_tokens(logprobs, tokens):
    """Of each token after the first."""
    return [float(row[token]) for row, token in zip(logprobs, tokens[1:])]


def largest_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--score", required=True)
    parser.add_argument("--write")
    parser.add_argument("models", nargs="+")
    args = parser.parse_args()
    all_good = True
    for path in args.models:
        if args.write:
            subprocess.run([args.write, "--gemma4", path], check=True)
        model = Model(path)
        tokens = [1] + random.Random(1).choices(range(3, len(model.tensors["token_embd.weight"])), k=99)
        done = subprocess.run([args.score, path, ",".join(map(str, tokens)), "128"], capture_output=True, text=True, check=True)
        exact = of_tokens(model.run(tokens)[0], tokens)
        ours = largest_difference(exact, [float(x) for x in done.stdout.split()])
        rounded = largest_difference(exact, of_tokens(model.run(tokens, table=True)[0], tokens))
        good = ours <= BOUND < rounded
        print("%s: %d tokens, largest difference of foretoken %.7f, of a GELU rounded to F16 %.7f: %s" % (
            path, len(exact), ours, rounded, "ok" if good else "BAD"))
        all_good = all_good and good
    sys.exit(0 if all_good else 1)


if __name__ == "__main__":
    main()
