# SPDX-License-Identifier: Apache-2.0
"""JSON that others wrote, and text files.

Contract: every function gives what it promises or raises KitError. Sizes are bounded.
"""
import json

from .errors import KitError

MOST_BYTES = 64 << 20


def parse(text, what):
    """The JSON value that a text (or bytes) holds."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise KitError(f"{what}: no JSON ({error}); it must be a JSON value") from None


def is_whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_list_of(value, check):
    return isinstance(value, list) and all(check(item) for item in value)


def read_text(path):
    """A text file of at most MOST_BYTES, in UTF-8."""
    try:
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise KitError(f"{path}: {error.strerror}; give a file that can be read") from None
    if len(data) > MOST_BYTES:
        raise KitError(f"{path}: larger than {MOST_BYTES >> 20} MiB; give a smaller file")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise KitError(f"{path}: byte {error.start} is no UTF-8; give a text file") from None


def objects(text, what):
    """(place, object) for each line of JSON lines that is not empty."""
    found = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        place = f"{what}, line {number}"
        value = parse(line, place)
        if not isinstance(value, dict):
            raise KitError(f"{place}: no JSON object; write one object on each line")
        found.append((place, value))
    return found
