# SPDX-License-Identifier: Apache-2.0
"""The prompts that servers are compared with: built in, or from a file.

Contract: a file has JSON lines, each an object with `prompt`, or with `turns`, of which the first one counts; as `foretoken certify` reads them.
"""
from .errors import KitError
from .json_input import is_list_of, objects, read_text

MOST_CHARACTERS = 1 << 20
BUILT_IN = [
    "Once upon a time",
    "The old man looked at the sea and said",
    "One, two, three, four, five, six, seven,",
    "A list of things to buy:\n1. bread\n2. milk\n3.",
    "The cat sat on the mat. The cat sat on the mat. The cat",
    "There was a girl who had a red ball. One day she",
]


def _one(place, value):
    prompt, turns = value.get("prompt"), value.get("turns")
    if prompt is None and is_list_of(turns, lambda turn: isinstance(turn, str)) and turns:
        prompt = turns[0]
    if not isinstance(prompt, str) or not prompt:
        raise KitError(f"{place}: no text `prompt`; write {{\"prompt\": \"...\"}}")
    if len(prompt) > MOST_CHARACTERS:
        raise KitError(f"{place}: a prompt of {len(prompt)} characters; {MOST_CHARACTERS} are the most")
    return prompt


def read(path=None, most=0):
    """The prompts of a file, or the built-in ones; only the first `most` if that is not 0."""
    found = [_one(place, value) for place, value in objects(read_text(path), path)] if path else list(BUILT_IN)
    if not found:
        raise KitError(f"{path}: no prompts; write one JSON object on each line")
    return found[:most] if most else found
