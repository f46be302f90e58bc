# SPDX-License-Identifier: Apache-2.0
"""Gives a GGUF file a head that scores pairs of texts, as conversions of Qwen3-Reranker have it."""
import random
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, LIST, U32, F32 = 8, 9, 4, 0


def string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0]

    def skip_value(self, kind):
        if kind == STRING:
            n = self.take("Q")
            self.at += n
        elif kind == LIST:
            inner, n = self.take("I"), self.take("Q")
            for _ in range(n):
                self.skip_value(inner)
        else:
            self.at += SIZES[kind]

    def text(self):
        n = self.take("Q")
        self.at += n
        return self.data[self.at - n:self.at].decode()


def add_rerank_head(source, path, pair_template, labels=2, seed=1, width=None):
    """Writes source with the head's tensor and keys to path. pair_template: None: none; width: of the tensor, if not the model's. Returns the rows of the
    head."""
    data = open(source, "rb").read()
    reader = Reader(data)
    assert reader.take("I") == 0x46554747 and reader.take("I") == 3
    n_tensors, n_keys = reader.take("Q"), reader.take("Q")
    keys, texts, numbers = reader.at, {}, {}
    for _ in range(n_keys):
        key, kind = reader.text(), reader.take("I")
        begin = reader.at
        reader.skip_value(kind)
        if kind == STRING:
            texts[key] = data[begin + 8:reader.at].decode()
        elif kind == U32:
            numbers[key] = struct.unpack_from("<I", data, begin)[0]
    tensors, align = reader.at, numbers.get("general.alignment", 32)
    for _ in range(n_tensors):
        reader.text()
        n_dims = reader.take("I")
        reader.at += 8 * n_dims + 4 + 8
    infos, begin = reader.at, reader.at + -reader.at % align
    weights = data[begin:] + b"\0" * (-(len(data) - begin) % align)
    arch = texts["general.architecture"]
    dim = width or numbers[arch + ".embedding_length"]
    draws = random.Random(seed)
    rows = [[draws.gauss(0, 1) for _ in range(dim)] for _ in range(labels)]
    new = [string(arch + ".pooling_type") + struct.pack("<II", U32, 4)]
    if pair_template is not None:
        new.append(string("tokenizer.chat_template.rerank") + struct.pack("<I", STRING) + string(pair_template))
    new.append(string(arch + ".classifier.output_labels") + struct.pack("<IIQ", LIST, STRING, labels) + b"".join(string(f"label {i}") for i in range(labels)))
    info = string("cls.output.weight") + struct.pack("<IQQIQ", 2, dim, labels, F32, len(weights))
    head = b"GGUF" + struct.pack("<IQQ", 3, n_tensors + 1, n_keys + len(new)) + data[keys:tensors] + b"".join(new) + data[tensors:infos] + info
    with open(path, "wb") as file:
        file.write(head + b"\0" * (-len(head) % align) + weights + b"".join(struct.pack(f"<{dim}f", *row) for row in rows))
    return [list(struct.unpack(f"<{dim}f", struct.pack(f"<{dim}f", *row))) for row in rows]
