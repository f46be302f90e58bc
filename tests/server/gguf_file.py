# SPDX-License-Identifier: Apache-2.0
"""GGUF files of tests: read, changed, and written again."""
import mmap
import random
import struct

FORMS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # of values, by their types
STRING, LIST = 8, 9
CONTROL = 3  # a token's type
F32 = 0  # a tensor's type


def string(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return struct.pack("<Q", len(data)) + data


def encoded(value):
    """A bool, an int, a float, a text, bytes (a list of u8), or a list of texts, floats or ints, with its type before it."""
    for kind, number in ((bool, 7), (int, 4), (float, 6)):
        if isinstance(value, kind):
            return struct.pack("<I" + FORMS[number], number, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + string(value)
    if isinstance(value, bytes):
        return struct.pack("<IIQ", LIST, 0, len(value)) + value
    if not value or isinstance(value[0], (str, bytes)):
        return struct.pack("<IIQ", LIST, STRING, len(value)) + b"".join(map(string, value))
    kind = 6 if isinstance(value[0], float) else 5
    return struct.pack(f"<IIQ{len(value)}{FORMS[kind]}", LIST, kind, len(value), *value)


def tensor_info(name, shape, kind, offset):
    return string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


class GgufFile:
    """values: of its keys; keys: as the file has them; tensors: [(name, shape, type, place behind `begin`)]; data: all of the file."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        assert self.data[:4] == b"GGUF", path
        self.at, self.keys, self.values, self.tensors, self.more = 8, {}, {}, [], b""
        n_tensors, n_keys = self.take("Q"), self.take("Q")
        for _ in range(n_keys):
            name, begin = self.text(), self.at
            self.values[name] = self.value(self.take("I"))
            self.keys[name] = self.data[begin:self.at]
        for _ in range(n_tensors):
            name, shape = self.text(), [self.take("Q") for _ in range(self.take("I"))]
            self.tensors.append((name, shape, self.take("I"), self.take("Q")))
        self.alignment = self.values.get("general.alignment", 32)
        self.begin = self.at + -self.at % self.alignment

    def take(self, form):
        self.at += struct.calcsize("<" + form)
        return struct.unpack_from("<" + form, self.data, self.at - struct.calcsize("<" + form))[0]

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == LIST:
            kind, n = self.take("I"), self.take("Q")
            return [self.value(kind) for _ in range(n)]
        return self.take(FORMS[kind])

    def set(self, name, value):
        self.values[name], self.keys[name] = value, encoded(value)

    def add(self, name, shape, data):
        """A tensor of 32-bit numbers."""
        self.more += b"\0" * (-(len(self.data) - self.begin + len(self.more)) % self.alignment)
        self.tensors.append((name, shape, F32, len(self.data) - self.begin + len(self.more)))
        self.more += data

    def write(self, path):
        head = b"GGUF" + struct.pack("<IQQ", 3, len(self.tensors), len(self.keys)) + b"".join(string(name) + value for name, value in self.keys.items())
        head += b"".join(tensor_info(*tensor) for tensor in self.tensors)
        with open(path, "wb") as file:
            file.write(head + b"\0" * (-len(head) % self.alignment) + self.data[self.begin:] + self.more)


def with_key(path, out, name, value):
    file = GgufFile(path)
    file.set(name, value)
    file.write(out)


def with_control_tokens(path, out, marks):
    """Writes a copy in which the last tokens of the vocabulary are control tokens with these names, and returns the number of each mark's token."""
    file = GgufFile(path)
    texts, types = (file.values[f"tokenizer.ggml.{name}"] for name in ("tokens", "token_type"))
    first = len(texts) - len(marks)
    file.set("tokenizer.ggml.tokens", texts[:first] + marks)
    file.set("tokenizer.ggml.token_type", types[:first] + [CONTROL] * len(marks))
    file.write(out)
    return {mark: first + i for i, mark in enumerate(marks)}


def with_rerank_head(path, out, pair_template, labels=2, seed=1, width=None):
    """Writes a copy with a head that scores pairs of texts, as conversions of Qwen3-Reranker have it, and returns the head's rows. pair_template: None:
    none; width: of the tensor, if not the model's."""
    file = GgufFile(path)
    family = file.values["general.architecture"]
    dim, draws = width or file.values[family + ".embedding_length"], random.Random(seed)
    rows = [struct.pack(f"<{dim}f", *(draws.gauss(0, 1) for _ in range(dim))) for _ in range(labels)]
    file.set(family + ".pooling_type", 4)
    if pair_template is not None:
        file.set("tokenizer.chat_template.rerank", pair_template)
    file.set(family + ".classifier.output_labels", [f"label {i}" for i in range(labels)])
    file.add("cls.output.weight", [dim, labels], b"".join(rows))
    file.write(out)
    return [list(struct.unpack(f"<{dim}f", row)) for row in rows]
