#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a tokenizer.json into a GGUF file with its vocabulary and one small layer of zeros, which llama.cpp loads too.

  vocabulary_file.py FOLDER OUT.gguf --pre NAME [--model gpt2|llama|gemma4|t5] [--exact]

FOLDER holds tokenizer.json and, if there is one, tokenizer_config.json. NAME is the value of tokenizer.ggml.pre. --model llama needs a
BPE on characters (Gemma): the scores of the tokens follow from the order of the merges. --exact sets foretoken.tokenizer.exact, and
tokenizer.ggml.normalizer.nfc where the tokenizer composes characters, so that the ids are those of the model's own tokenizer where
llama.cpp's differ.
"""
import argparse
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from gguf_file import encoded, string, tensor_info  # noqa: E402

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def write_file(path, metadata, width=32):
    """Writes the metadata, and weights that make llama.cpp's programs load the file."""
    n_tokens = len(metadata["tokenizer.ggml.tokens"])
    metadata = {
        "general.architecture": "llama", "llama.context_length": 4096, "llama.embedding_length": width, "llama.block_count": 1,
        "llama.feed_forward_length": width, "llama.attention.head_count": 1, "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": width, "llama.vocab_size": n_tokens, **metadata}
    names = ["attn_norm", "ffn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"]
    tensors = [("token_embd.weight", (width, n_tokens), 1), ("output_norm.weight", (width,), 0)]
    tensors += [(f"blk.0.{name}.weight", (width,) if "norm" in name else (width, width), 0) for name in names]
    with open(path, "wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for key, value in metadata.items():
            file.write(string(key) + encoded(value))
        sizes, offset = [], 0
        for name, shape, kind in tensors:
            file.write(tensor_info(name, shape, kind, offset))
            size = (2 if kind == 1 else 4) * shape[0] * (shape[1] if len(shape) > 1 else 1)
            sizes.append(size + -size % 32)
            offset += sizes[-1]
        file.write(b"\0" * (-file.tell() % 32))
        file.truncate(file.tell() + sum(sizes))


def write_folder(source, out, width=32):
    """Makes a folder as it is downloaded from Hugging Face: the files of `source`, and one small layer of zeros."""
    with open(os.path.join(source, "tokenizer.json"), encoding="utf-8") as file:
        n_tokens = len(tokens_of(json.load(file))[0])
    for name in os.listdir(source):
        os.symlink(os.path.join(os.path.abspath(source), name), os.path.join(out, name))
    with open(os.path.join(out, "config.json"), "w") as file:
        json.dump({"model_type": "llama", "hidden_size": width, "intermediate_size": width, "num_hidden_layers": 1, "num_attention_heads": 1,
                   "max_position_embeddings": 4096, "vocab_size": n_tokens, "tie_word_embeddings": True}, file)
    parts = ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj",
             "input_layernorm", "post_attention_layernorm"]
    shapes = {"model.embed_tokens.weight": [n_tokens, width], "model.norm.weight": [width]}
    shapes.update({f"model.layers.0.{part}.weight": [width] if "norm" in part else [width, width] for part in parts})
    header, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    with open(os.path.join(out, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(file.tell() + at)


def merges_of(model):
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges", [])]


def tokens_of(tokenizer):
    """The texts and types of all ids."""
    model = tokenizer["model"]
    vocabulary = model["vocab"]
    if isinstance(vocabulary, list):  # Unigram: pairs of text and score
        vocabulary = {text: token for token, (text, _) in enumerate(vocabulary)}
    texts = {token: text for text, token in vocabulary.items()}
    types = {token: BYTE if len(text) == 6 and text.startswith("<0x") and model.get("byte_fallback") else NORMAL
             for token, text in texts.items()}
    for added in tokenizer["added_tokens"]:
        texts[added["id"]] = added["content"]
        types[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    unknown = model.get("unk_token") if "unk_token" in model else texts.get(model.get("unk_id"))
    count = max(texts) + 1
    out = [texts.get(token, f"[PAD{token}]") for token in range(count)]
    kinds = [UNKNOWN if text == unknown else types.get(token, UNUSED) for token, text in enumerate(out)]
    return out, kinds, unknown


def scores_of(texts, merges):
    """SentencePiece's scores: a token that an earlier merge makes has the higher one."""
    order = {}
    for merge in merges:
        order.setdefault(merge.replace(" ", ""), len(order))
    return [-float(order.get(text, len(order))) for text in texts]


def metadata_of(folder, model, pre, exact):
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    config = {}
    if os.path.exists(os.path.join(folder, "tokenizer_config.json")):
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as file:
            config = json.load(file)
    texts, types, unknown = tokens_of(tokenizer)
    ids = {text: token for token, text in enumerate(texts)}
    metadata = {"tokenizer.ggml.model": model, "tokenizer.ggml.tokens": texts, "tokenizer.ggml.token_type": types}
    if model == "llama":
        metadata["tokenizer.ggml.scores"] = scores_of(texts, merges_of(tokenizer["model"]))
        metadata["tokenizer.ggml.add_space_prefix"] = False
    elif model == "t5":
        metadata["tokenizer.ggml.scores"] = [float(score) for _, score in tokenizer["model"]["vocab"]] + \
            [0.0] * (len(texts) - len(tokenizer["model"]["vocab"]))
    else:
        metadata["tokenizer.ggml.pre"] = pre
        metadata["tokenizer.ggml.merges"] = merges_of(tokenizer["model"])
    if unknown in ids:
        metadata["tokenizer.ggml.unknown_token_id"] = ids[unknown]
    for name in ("bos", "eos"):
        text = config.get(f"{name}_token")
        text = text["content"] if isinstance(text, dict) else text
        if text in ids:
            metadata[f"tokenizer.ggml.{name}_token_id"] = ids[text]
    metadata["tokenizer.ggml.add_bos_token"] = bool(config.get("add_bos_token")) and "tokenizer.ggml.bos_token_id" in metadata
    if exact:
        metadata["foretoken.tokenizer.exact"] = True
        metadata["tokenizer.ggml.normalizer.nfc"] = "NFC" in json.dumps(tokenizer["normalizer"])
    return metadata


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--pre", required=True)
    parser.add_argument("--model", default="gpt2", choices=["gpt2", "llama", "gemma4", "t5"])
    parser.add_argument("--exact", action="store_true")
    args = parser.parse_args()
    write_file(args.out, metadata_of(args.folder, args.model, args.pre, args.exact))


if __name__ == "__main__":
    main()
