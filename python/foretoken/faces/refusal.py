# SPDX-License-Identifier: Apache-2.0
"""Errors in the words of the design whose names the caller used.

Contract: an `Error` of a face names the argument that the caller gave, never the option of the library that it stands for.
"""
import contextlib
from typing import Iterator, Mapping, NoReturn

from ..errors import Code, Error


def refuse(field: str, why: str, way_out: str) -> NoReturn:
    """Raises INVALID_ARGUMENT with "<field>: <why>; <way out>"."""
    raise Error(Code.INVALID_ARGUMENT, field, f"{field}: {why}; {way_out}")


@contextlib.contextmanager
def in_own_words(names: Mapping[str, str]) -> Iterator[None]:
    """A block whose errors name arguments as the caller does. names: the caller's name by the library's."""
    try:
        yield
    except Error as error:
        field = error.field or error.text.partition(":")[0]
        own = names.get(field)
        if own is None:
            raise
        raise Error(error.code, own, error.text.replace(field, own)) from error
