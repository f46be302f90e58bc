# SPDX-License-Identifier: Apache-2.0
"""Numbers between Python and the library: numpy arrays where numpy is there, else array.array.

Contract: what comes out is a copy, so it lives as long as Python holds it. What goes in is checked for its shape; memory of
an input is valid while the returned object is held.
"""
import array
import ctypes
import itertools
from typing import Any, List, Optional, Sequence, Tuple

from .errors import Code, Error

try:
    import numpy
except ImportError:  # optional
    numpy = None  # type: ignore[assignment]

_SIZES = {"i": 4, "f": 4, "d": 8, "B": 1, "Q": 8}
_NAMES = {"i": "int32", "f": "float32", "d": "float64", "B": "uint8", "Q": "uint64"}


def copied(pointer: Optional[int], count: int, letter: str) -> array.array:
    """[count] numbers at an address."""
    out = array.array(letter)
    if pointer and count:
        out.frombytes(ctypes.string_at(pointer, count * _SIZES[letter]))
    return out


def shown(numbers: array.array, shape: Optional[Tuple[int, ...]] = None) -> Any:
    """What a caller gets: a numpy array of the shape; without numpy an array.array, or a list of them for two dimensions."""
    if numpy is not None:
        flat = numpy.frombuffer(numbers, _NAMES[numbers.typecode]) if len(numbers) else numpy.zeros(0, _NAMES[numbers.typecode])
        return flat.reshape(shape) if shape else flat
    if shape is None or len(shape) == 1:
        return numbers
    return [numbers[row * shape[1]:(row + 1) * shape[1]] for row in range(shape[0])]


def tokens_in(tokens: Sequence[int], field: str) -> array.array:
    """Token ids as int32. Errors: INVALID_ARGUMENT (no int32)."""
    try:
        return array.array("i", tokens)
    except OverflowError as why:
        raise Error(Code.INVALID_ARGUMENT, field, f"{field}: {why}; give token ids of the model") from None


def _flat(rows: Any) -> array.array:
    out = array.array("f")
    for row in rows:
        out.extend(array.array("f", row))
    return out


def rows_in(rows: Any, count: int, columns: Optional[int], field: str) -> Tuple[Any, int]:
    """float32 [count][columns], without gaps, and its columns; columns None: as many as it has. Errors: INVALID_ARGUMENT."""
    if numpy is not None:
        matrix = numpy.ascontiguousarray(rows, dtype=numpy.float32)
        shape: Tuple[int, ...] = matrix.shape
        if count == 0 and matrix.size == 0:
            return matrix, columns or 0
    else:
        lengths: List[int] = [len(row) for row in rows]
        if count == 0 and not lengths:
            return array.array("f"), columns or 0
        shape = (len(lengths), lengths[0]) if len(set(lengths)) == 1 else (len(lengths),)
        matrix = _flat(rows)
    if len(shape) != 2 or shape[0] != count or (columns is not None and shape[1] != columns):
        wanted = f"[{count}][{'vocabulary' if columns is None else columns}]"
        raise Error(Code.INVALID_ARGUMENT, field, f"{field}: its shape is {list(shape)}, not {wanted}; give a row for each position")
    return matrix, shape[1]


def numbers_in(numbers: Any, count: int, letter: str, field: str) -> array.array:
    """[count] numbers. Errors: INVALID_ARGUMENT."""
    out = array.array(letter, itertools.chain(numbers))
    if len(out) != count:
        raise Error(Code.INVALID_ARGUMENT, field, f"{field}: it has {len(out)} numbers, not {count}; give one for each position")
    return out


def address(numbers: Any) -> Optional[int]:
    """Where the numbers are; None if there are none."""
    if isinstance(numbers, array.array):
        return numbers.buffer_info()[0] if len(numbers) else None
    return numbers.ctypes.data if numbers.size else None


def write_floats(pointer: int, count: int, numbers: Any, field: str) -> None:
    """Copies [count] numbers to an address as float32. Errors: INVALID_ARGUMENT (another count)."""
    source = numbers_in(numbers, count, "f", field) if numpy is None else numpy.ascontiguousarray(numbers, dtype=numpy.float32)
    if numpy is not None and source.shape != (count,):
        raise Error(Code.INVALID_ARGUMENT, field, f"{field}: its shape is {list(source.shape)}, not [{count}]; give one number for each token")
    ctypes.memmove(pointer, address(source), count * 4)
