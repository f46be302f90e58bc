#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/text/tokenizer/split/pattern_vectors_testing.h: the ids that llama.cpp gives for short texts with every pre-tokenizer's name.

  pattern_vectors.py "LLAMA_PREFIX" FOLDER [--peer-folder FROM=TO] > pattern_vectors_testing.h

FOLDER is for temporary files that llama.cpp can read. A small vocabulary is made of the texts themselves: a token for each byte and
one for each two neighbouring bytes, so that a word boundary in another place gives other ids. Names with the same ids form a group;
the groups differ from each other.
"""
import argparse
import os
import random
import sys

import tokenizers
import vocabulary_file

NAMES = """default llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano dbrx smaug-bpe chatglm-bpe glm4 glm5 jais-2
minicpm5 qwen2 deepseek-r1-qwen megrez kormo f2llmv2 stablelm2 hunyuan solar-open grok-2 qwen35 ufakzeka seed-coder laguna bailingmoe
bailingmoe2 llada-moe exaone-moe gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code roberta-bpe modern-bert gigachat
a.x-4.0 mellum mpt olmo jais trillion granite-docling exaone4 smollm starcoder refact command-r codeshell exaone minerva-7b mellum2 falcon
chameleon bloom poro-chat gpt3-finnish viking deepseek-llm deepseek-coder deepseek-v3 hunyuan-dense hy_v4 joyai-llm spark2_5 afmoe tiny_aya
cohere2moe superbpe tekken gpt-4o llama4 kanana2 talkie minimax-m2 granite-embed-multi-97m youtu kimi-k2 k2-horizon""".split()
CHARACTER_NAMES = ["gemma4", "granite-embed-multi-311m", "mmbert", "sarvam-moe", "whitespace"]

TEXTS = [
    "I'll SAY it's DON'T we'RE l'été O'Neill",
    "x1234567y 12 3456 (a) [b] { c }\n",
    "  a   b\t\tc \n\n  d\r\n\r\n e   ",
    "HelloWorld XMLHttp aBC ÉCOLEété ǅx",
    "हिन्दी x\u0302y e\u0301a क\u093fष",
    "你好，世界。カナひら한국어ㄱㄴㄅㄆ、x。",
    "१२३४5678 ①② ½ ក១២៣ ១២ 12345678901",
    ".net $x+=1; //f/\n`~|^<> `a` !?…/ -[x]!\n\n",
    "a_b the the quick fox 3rd é à",
    "<sentinel:12> IMGIMGABCZ <sentinel:>",
    "a\u200cb \u200d! \u00a0c\u2003d\u3000e",
    "€—«x» “q” 😀😀 \u2028\u0085z",
    " " * 12 + "x" + " " * 21 + "\n    !  ",
    "Ωmega Κλ ПриВет ꙀꙁḀ ℂ Ａｂ！（） ",
    "، كيف؟۔ म।.",
    "a  12 d'accord 'sx aB éÉ 中x x中",
    "a'sxa'rexa'vexa'mxa'txa'dxa'llx",
    "\t \t \t \t \t \tx \t \t \t \t \t \tx",
    "zqx zqx",
]
CHARACTER_TEXTS = ["ab a b", "abab\nab a\nb", "é—ab x", "a\n\nb a\n\n\nab", " a  ab   b"]


def run(args, metadata, texts):
    """The ids of each text, or None where llama.cpp does not know the name."""
    path = os.path.join(args.folder, "pattern.gguf")
    vocabulary_file.write_file(path, metadata)
    seen = path
    if args.peer_folder:
        here, there = args.peer_folder.split("=")
        seen = os.path.join(there, os.path.relpath(path, here))
    peer = tokenizers.Peer(args.prefix, seen)
    try:
        return [peer.tokens(text, False) for text in texts]
    finally:
        peer.close()
        os.remove(path)


def alphabet():
    """GPT-2's characters for the bytes."""
    plain = [byte for byte in range(256) if 0x21 <= byte <= 0x7E or 0xA1 <= byte <= 0xAC or byte >= 0xAE]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def literal(text):
    out = ""
    for byte in text.encode():
        char = chr(byte)
        out += {'"': '\\"', "\\": "\\\\", "\n": "\\n", "?": "\\?"}.get(char, char if 32 <= byte < 127 else f"\\{byte:03o}")
    return f'"{out}"'


def show(name, kind, values):
    print(f"inline constexpr {kind} k{name}[] = {{")
    for value in values:
        print(f"    {value},")
    print("};")


def show_groups(title, names, texts, results):
    groups = []
    for name in names:
        if results[name] not in groups:
            groups.append(results[name])
    show(f"{title}Names", "NamedGroup", [f'{{"{name}", {groups.index(results[name])}}}' for name in names])
    lines = [[" ".join(map(str, ids)) for ids in group] for group in groups]
    distinct = list(dict.fromkeys(group[text] for text in range(len(texts)) for group in lines))
    show(f"{title}Ids", "std::string_view", [f'"{ids}"' for ids in distinct])
    print(f"// [group][text]: places in k{title}Ids.\ninline constexpr std::uint8_t k{title}Groups[][{len(texts)}] = {{")
    for group in lines:
        print("    {" + ", ".join(str(distinct.index(ids)) for ids in group) + "},")
    print("};")
    print(f"{title}: {len(names)} names, {len(groups)} groups", file=sys.stderr)


def bytes_part(args):
    characters = alphabet()
    pairs = sorted({(a, b) for text in TEXTS for a, b in zip(text.encode(), text.encode()[1:])})
    random.Random(5).shuffle(pairs)
    tokens = characters + [characters[a] + characters[b] for a, b in pairs] + ["zqx", "<s>"]
    metadata = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.bos_token_id": len(tokens) - 1,
        "tokenizer.ggml.token_type": [1] * (len(tokens) - 1) + [3],
        "tokenizer.ggml.merges": [f"{characters[a]} {characters[b]}" for a, b in pairs]}
    results = {name: run(args, {**metadata, "tokenizer.ggml.pre": name}, TEXTS) for name in NAMES}
    show("Texts", "std::string_view", map(literal, TEXTS))
    print("// The two bytes of each token from 256 on, best merge first. The last two tokens are zqx and <s>.")
    show("Pairs", "std::uint16_t", [", ".join(f"0x{a:02X}{b:02X}" for a, b in pairs[i:i + 12]) for i in range(0, len(pairs), 12)])
    show_groups("Byte", NAMES, TEXTS, results)


def characters_part(args):
    marked = [text.replace(" ", "▁") for text in CHARACTER_TEXTS]
    singles = sorted(set("".join(marked)))
    pairs = sorted({a + b for text in marked for a, b in zip(text, text[1:]) if "\n" not in a + b})
    random.Random(6).shuffle(pairs)
    tokens = ["<bos>"] + [f"<0x{byte:02X}>" for byte in range(256)] + singles + pairs + ["\n\n"]
    metadata = {
        "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.token_type": [3] + [6] * 256 + [1] * (len(tokens) - 257),
        "tokenizer.ggml.merges": [f"{pair[0]} {pair[1]}" for pair in pairs]}
    results = {}
    for name in CHARACTER_NAMES:
        # llama.cpp stops at runs of white space with the last of these names.
        given = [text if name != "whitespace" or text.split() == text.split(" ") else "" for text in CHARACTER_TEXTS]
        results[name] = run(args, {**metadata, "tokenizer.ggml.pre": name}, given)
    show("CharacterTexts", "std::string_view", map(literal, CHARACTER_TEXTS))
    print("// The tokens behind <bos> and the 256 byte tokens: characters, then pairs of them, best merge first, then two newlines.")
    show("Characters", "std::string_view", map(literal, singles))
    show("CharacterPairs", "std::string_view", map(literal, pairs))
    show_groups("Character", CHARACTER_NAMES, CHARACTER_TEXTS, results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("prefix")
    parser.add_argument("folder")
    parser.add_argument("--peer-folder", metavar="FROM=TO")
    args = parser.parse_args()
    print("""// SPDX-License-Identifier: Apache-2.0
// text/tokenizer/split/pattern_vectors_testing.h: llama.cpp 0.7.0's ids for short texts, with every name of a pre-tokenizer. Made by
// tests/compare/pattern_vectors.py. Names of one group have the same ids, and the groups differ.
#pragma once

#include <cstdint>
#include <string_view>

// clang-format off
namespace foretoken::text::vectors {

struct NamedGroup {
  std::string_view name;
  int group;
};
""")
    bytes_part(args)
    print()
    characters_part(args)
    print("\n}  // namespace foretoken::text::vectors")


if __name__ == "__main__":
    main()
