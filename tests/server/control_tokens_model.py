# SPDX-License-Identifier: Apache-2.0
"""A copy of a GGUF file in which the last ordinary tokens of the vocabulary are control tokens with chosen names."""
import pathlib
import struct

STRING, ARRAY, CONTROL = 8, 9, 3
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a value, by its type


def end_of_value(data, kind, at):
    if kind == STRING:
        return at + 8 + struct.unpack_from("<Q", data, at)[0]
    if kind != ARRAY:
        return at + SIZES[kind]
    kind, count = struct.unpack_from("<IQ", data, at)
    if kind != STRING:
        return at + 12 + count * SIZES[kind]
    at += 12
    for _ in range(count):
        at = end_of_value(data, STRING, at)
    return at


def with_control_tokens(path, out, marks):
    """Writes the copy and returns the number of each mark's token."""
    data = pathlib.Path(path).read_bytes()
    n_tensors, n_keys = struct.unpack_from("<QQ", data, 8)
    at, keys, ids = 24, [], {}
    for _ in range(n_keys):
        begin, name_end = at, end_of_value(data, STRING, at)
        name = data[begin + 8:name_end].decode()
        kind = struct.unpack_from("<I", data, name_end)[0]
        at = end_of_value(data, kind, name_end + 4)
        value = data[begin:at]
        if name in ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type"):
            count = struct.unpack_from("<Q", data, name_end + 8)[0]
            first = count - len(marks)
            ids = {mark: first + i for i, mark in enumerate(marks)}
            if name.endswith("tokens"):
                kept = name_end + 16
                for _ in range(first):
                    kept = end_of_value(data, STRING, kept)
                value = data[begin:kept] + b"".join(struct.pack("<Q", len(mark.encode())) + mark.encode() for mark in marks)
            else:
                value = value[:len(value) - 4 * len(marks)] + struct.pack("<i", CONTROL) * len(marks)
        keys.append(value)
    tensors = at
    for _ in range(n_tensors):
        at = end_of_value(data, STRING, at)
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 12
    head = data[:24] + b"".join(keys) + data[tensors:at]
    pathlib.Path(out).write_bytes(head + b"\0" * (-len(head) % 32) + data[at + -at % 32:])
    return ids
