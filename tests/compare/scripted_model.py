# SPDX-License-Identifier: Apache-2.0
"""A GGUF file of a model that says what it was told, token by token, in any server, whatever its prompt is: an answer is chosen by a key in the prompt.

  scripted_model("out.gguf", marks={"<tool_call>": USER}, answers={"<key-0>": "Yes.", "<key-1>": "<tool_call>..."}, ending="<|assistant|>\\n")

The prompt ends with `ending`, and has keys, which are tokens of their own: the answer is that of the last one of `answers` that it has. So a session of turns
is scripted, too, if the answer of each turn holds the key of the next one. Behind its answer the model ends it; so it does where anything else was written
than the answers say, as by a server's grammar.

One layer of the architecture llama. A token has a code of +1 and -1. Each head but one attends to the token so many places back, by its rotation alone; the
other one attends to the key, by a dimension that does not rotate. So a row knows the key and the last tokens; a unit of the feed-forward layer for each token
of the answers fires where they are those before it, and adds the code of that token, which the output matrix compares. The margins are wide: no rounding of
16 bits changes an answer.
"""
import array
import collections
import math
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from gguf_file import encoded, string, tensor_info  # noqa: E402

NORMAL, CONTROL, USER = 1, 3, 4  # types of tokens
CODE, BACK, OUT = 64, 7, 128  # dimensions of a code; heads that look back; dimensions of a code at the output
HEADS, FLAGS = BACK + 1, CODE  # the key's head is the last one; where the constant stands, and the key's two dimensions behind it
SEEN, SAID = 2 * CODE, (2 + HEADS) * CODE  # where the codes stand that the heads found, and that of the next token
WIDTH = SAID + OUT
MERGES = 800
BASE = 1e8  # of the rotation: the last of 32 pairs does not rotate


def byte_letters():
    """The letters for which the bytes stand in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b if b in plain else 256 + others.index(b)) for b in range(256)}


LETTERS = byte_letters()


def spelled(text):
    return "".join(LETTERS[b] for b in text.encode())


def divided(text, marks):
    """The text's parts: marks, and what stands between them."""
    parts, at = [], 0
    while at < len(text):
        found = min(((text.find(mark, at), -len(mark), mark) for mark in marks if mark in text[at:]), default=None)
        end = found[0] if found else len(text)
        if end > at:
            parts.append(text[at:end])
        if found:
            parts.append(found[2])
        at = end + (len(found[2]) if found else 0)
    return parts


def joined(parts, pair):
    """The parts of a word, with each pair of them as one."""
    out = []
    for part in parts:
        if out and (out[-1], part) == pair:
            out[-1] += part
        else:
            out.append(part)
    return out


def learned_merges(text, n):
    """Byte-pair encoding: up to n merges, each of the pair that words of the text have most often."""
    counts = collections.Counter(re.findall(r" ?[A-Za-z]+| ?[^\sA-Za-z0-9]+|\s+", text))
    words = [[list(spelled(word)), count] for word, count in counts.items() if count > 1 and len(word) > 1]
    merges = []
    while len(merges) < n:
        pairs = collections.Counter()
        for parts, count in words:
            for pair in zip(parts, parts[1:]):
                pairs[pair] += count
        if not pairs:
            break
        pair = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(pair)
        for word in words:
            word[0] = joined(word[0], pair)
    return merges


class Vocabulary:
    def __init__(self, marks, merges=()):
        self.texts, self.types = [LETTERS[b] for b in range(256)], [NORMAL] * 256
        self.ids = {text: i for i, text in enumerate(self.texts)}
        for pair in merges:
            self.add("".join(pair), NORMAL)
        self.marks = {mark: self.add(mark, kind) for mark, kind in marks.items()}

    def add(self, text, kind):
        if text not in self.ids:
            self.ids[text] = len(self.texts)
            self.texts.append(text)
            self.types.append(kind)
        return self.ids[text]

    def bytes_of(self, text):
        """Tokens of a text as a server divides it where there are no merges."""
        ids = []
        for part in divided(text, self.marks):
            ids += [self.marks[part]] if part in self.marks else [self.ids[letter] for letter in spelled(part)]
        return ids

    def phrases_of(self, text, bare=()):
        """Tokens of an answer: but for marks, each is the shortest text that is none of those before it. Marks of `bare` are spelled."""
        ids, used = [], set()
        for part in divided(text, [mark for mark in self.marks if mark not in bare]):
            if part in self.marks and part not in bare:
                ids.append(self.marks[part])
                continue
            at = 0
            while at < len(part):
                end = at + 1
                while end < len(part) and (part[at:end] in used or part[at:end] in self.marks):
                    end += 1
                used.add(part[at:end])
                ids.append(self.add(spelled(part[at:end]), NORMAL))
                at = end
        return ids


def code(name, n):
    numbers = random.Random(name)
    return [1.0 if numbers.getrandbits(1) else -1.0 for _ in range(n)]


class Writer:
    """GGUF: keys, and tensors, vectors of 32-bit numbers and matrices of 16-bit ones."""

    def __init__(self):
        self.keys, self.tensors = [], []

    def key(self, name, value):
        self.keys.append(string(name) + encoded(value))

    def tensor(self, name, rows, width):
        """Rows are {column: number}; one row alone is a vector."""
        data, is_matrix, halves = bytearray(), len(rows) > 1, {}
        for row in rows:
            line = array.array("H", bytes(2 * width)) if is_matrix else array.array("f", bytes(4 * width))
            for column, number in row.items():
                if is_matrix and number not in halves:
                    halves[number] = struct.unpack("<H", struct.pack("<e", number))[0]
                line[column] = halves[number] if is_matrix else number
            data += line.tobytes()
        self.tensors.append((name, [width] + [len(rows)] * is_matrix, int(is_matrix), bytes(data)))

    def write(self, path):
        with open(path, "wb") as file:
            file.write(b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)) + b"".join(self.keys))
            offset = 0
            for name, shape, kind, data in self.tensors:
                file.write(tensor_info(name, shape, kind, offset))
                offset += len(data) + -len(data) % 32
            file.write(b"\0" * (-file.tell() % 32))
            for *_, data in self.tensors:
                file.write(data + b"\0" * (-len(data) % 32))


def rotation_rows():
    """The rows of Q: a constant for each head, turned back by the places that it looks back. Keys are the same constant for every token."""
    rows = []
    for head in range(HEADS):
        for pair in range(CODE // 2):
            angle = (head + 1) * BASE ** (-pair / (CODE // 2))
            if head == BACK:
                rows += [{FLAGS: 1000.0 if pair == CODE // 2 - 1 else 0.0}, {}]
            elif pair == CODE // 2 - 1:
                rows += [{}, {}]
            else:
                rows += [{FLAGS: 350 * math.cos(angle)}, {FLAGS: -350 * math.sin(angle)}]
    return rows


def units(contexts, codes):
    """The rows of the gate: how much of a context of (key, tokens, the last one first) a row has, from -1 where one token is another, to 1."""
    rows = []
    for key, tokens, _ in contexts:
        row = {SEEN + BACK * CODE + i: x for i, x in enumerate(codes(key))}
        for back, token in enumerate(tokens):
            at = SEEN + (back - 1) * CODE if back else 0
            row.update({at + i: x for i, x in enumerate(codes(token))})
        # One token that is another leaves at least CODE/2 less, nearly always.
        rows.append({**row, FLAGS: -(len(row) - 12.0)})
    return rows


def scripted_model(path, marks, answers, ending, context=4096, end="<|end_of_answer|>", begin=None, bare=(), template=None,
                   read=""):
    """marks: {text: CONTROL or USER}; answers: {key: text}, the last one of a prompt counts; end: the control token that ends answers; begin: the token
    before all prompts, if any; bare: marks that answers spell in letters; read: a text such as prompts have, whose words give MERGES, so that long prompts
    have fewer tokens than bytes (`ending` is a mark then). Returns the tokens of each answer as texts."""
    merges = learned_merges(read, MERGES)
    if merges and ending not in marks:
        raise ValueError("with merges, prompts end with a mark: what stands before it does not change its token")
    words = Vocabulary({**{end: CONTROL}, **marks, **{key: USER for key in answers}}, merges)
    tail = words.bytes_of(ending)
    keys = [words.marks[key] for key in answers]
    contexts, said = [], {}
    for key, text in answers.items():
        tokens = words.phrases_of(text, bare)
        said[key] = tokens
        before = list(tail)
        for token in [*tokens, words.marks[end]]:
            contexts.append((words.marks[key], tuple(reversed(before[-BACK - 1:])), token))
            before.append(token)
    if len({(key, tokens) for key, tokens, _ in contexts}) < len(contexts):
        raise ValueError("an answer repeats itself: the last tokens do not say what follows")
    if not contexts or not tail:
        raise ValueError("a script needs an answer, and the text with which prompts end")

    made = {}

    def codes(token):
        if token not in made:
            made[token] = code(f"token {words.texts[token]}", CODE)
        return made[token]

    out = Writer()
    for name, value in {"general.architecture": "llama", "general.name": "scripted", "llama.block_count": 1, "llama.context_length": context,
                        "llama.embedding_length": WIDTH, "llama.feed_forward_length": len(contexts) + -len(contexts) % 32,
                        "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": 1, "llama.attention.key_length": CODE,
                        "llama.attention.value_length": CODE, "llama.rope.dimension_count": CODE, "llama.rope.freq_base": BASE,
                        "llama.attention.layer_norm_rms_epsilon": 1e-6, "llama.vocab_size": len(words.texts), "tokenizer.ggml.model": "gpt2",
                        "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": words.texts, "tokenizer.ggml.token_type": words.types,
                        "tokenizer.ggml.merges": [" ".join(pair) for pair in merges], "tokenizer.ggml.eos_token_id": words.marks[end],
                        "tokenizer.ggml.bos_token_id": words.marks[begin or end], "tokenizer.ggml.add_bos_token": begin is not None}.items():
        out.key(name, value)
    if template:
        out.key("tokenizer.chat_template", template)
    rows = []
    for token in range(len(words.texts)):
        rank = (keys.index(token) + 1) / len(keys) if token in keys else 0.0
        rows.append({**dict(enumerate(codes(token))), FLAGS: 1.0, FLAGS + 1: rank, FLAGS + 2: math.sqrt(1 - rank * rank)})
    out.tensor("token_embd.weight", rows, WIDTH)
    size = CODE + 2  # the square of an embedding's length
    out.tensor("blk.0.attn_norm.weight", [{i: math.sqrt(size / WIDTH) for i in range(WIDTH)}], WIDTH)
    out.tensor("blk.0.attn_q.weight", rotation_rows(), WIDTH)
    constant = [{FLAGS: 1.0} if i % 2 == 0 else {} for i in range(CODE - 2)]
    out.tensor("blk.0.attn_k.weight", [*constant, {FLAGS + 1: 0.25 * len(keys)}, {}], WIDTH)
    out.tensor("blk.0.attn_v.weight", [{i: 1.0} for i in range(CODE)], WIDTH)
    out.tensor("blk.0.attn_output.weight", [{row - SEEN: 1.0} if SEEN <= row < SAID else {} for row in range(WIDTH)], HEADS * CODE)
    out.tensor("blk.0.ffn_norm.weight", [{i: math.sqrt((size + HEADS * CODE) / WIDTH) for i in range(WIDTH)}], WIDTH)
    idle = [{} for _ in range(-len(contexts) % 32)]
    out.tensor("blk.0.ffn_gate.weight", units(contexts, codes) + idle, WIDTH)
    out.tensor("blk.0.ffn_up.weight", [{FLAGS: 1.0} for _ in contexts] + idle, WIDTH)
    next_codes = [code(f"next {words.texts[token]}", OUT) for _, _, token in contexts]
    columns = len(contexts) + len(idle)
    out.tensor("blk.0.ffn_down.weight", [{}] * SAID + [{i: next_code[row] for i, next_code in enumerate(next_codes)} for row in range(OUT)], columns)
    out.tensor("output_norm.weight", [{i: 10.0 for i in range(WIDTH)}], WIDTH)
    ends = {FLAGS: 5.0 * OUT}  # where no unit fires; one that does adds 12 times OUT
    out.tensor("output.weight", [{**{SAID + i: x for i, x in enumerate(code(f"next {text}", OUT))}, **(ends if i == words.marks[end] else {})}
                                 for i, text in enumerate(words.texts)], WIDTH)
    out.write(path)
    return {key: [words.texts[token] for token in tokens] for key, tokens in said.items()}
