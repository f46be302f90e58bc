#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a chat template into a GGUF file, as tokenizer.chat_template; the rest of the file stays as it is.

usage: set_chat_template.py MODEL.gguf TEMPLATE.jinja
"""
import os
import struct
import sys

KEY = b"tokenizer.chat_template"
STRING, ARRAY, UINT32 = 8, 9, 4
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by its type


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at]

    def skip(self, kind):
        if kind == STRING:
            self.text()
        elif kind == ARRAY:
            inner, count = self.take("IQ")
            for _ in range(count):
                self.skip(inner)
        else:
            self.at += SIZES[kind]


def padded(size, alignment):
    return (size + alignment - 1) // alignment * alignment


def with_template(data, template):
    reader = Reader(data)
    magic, version, n_tensors, n_values = reader.take("4sIQQ")
    if magic != b"GGUF" or version not in (2, 3):
        raise SystemExit("set_chat_template: this is not a GGUF file of version 2 or 3; name one")
    values, alignment = [], 32
    for _ in range(n_values):
        begin, key, kind = reader.at, reader.text(), reader.take("I")
        if key == b"general.alignment" and kind == UINT32:
            alignment = struct.unpack_from("<I", data, reader.at)[0]
        reader.skip(kind)
        if key != KEY:
            values.append(data[begin:reader.at])
    values.append(struct.pack("<Q", len(KEY)) + KEY + struct.pack("<IQ", STRING, len(template)) + template)
    begin = reader.at
    for _ in range(n_tensors):
        reader.text()
        n_sizes = reader.take("I")
        reader.at += 8 * n_sizes + 4 + 8  # the sizes, the type, the place in the data
    head = struct.pack("<4sIQQ", magic, version, n_tensors, len(values)) + b"".join(values) + data[begin:reader.at]
    return head + bytes(padded(len(head), alignment) - len(head)) + data[padded(reader.at, alignment):]


def main():
    path, template_path = sys.argv[1:3]
    with open(path, "rb") as file, open(template_path, "rb") as template:
        changed = with_template(file.read(), template.read())
    with open(path + ".new", "wb") as file:
        file.write(changed)
    os.replace(path + ".new", path)


if __name__ == "__main__":
    main()
