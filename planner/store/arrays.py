"""Array literals: how a list becomes one parameter.

psycopg dumps a list element by element; for a trace of 1,600 rows that took 64 ms, one literal a column 16.
A literal is still a parameter: quoted here for the array's own syntax, never pasted into SQL. Vectors and
postings would be long literals, slow to write and to read: their numbers go as one array in binary form.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from psycopg.adapt import Dumper
from psycopg.pq import Format

_REAL, _REALS = 700, 1021
_BIGINT, _BIGINTS = 20, 1016
"""The catalogue's numbers of `real` and `real[]`, `bigint` and `bigint[]`, the same on every server."""


def array_literal(values: Sequence[Any]) -> str:
    """Return `{…}` of values of one sort: str, int, float, bool, bytes, datetime, lists of these, None.

    Floats are written in the shortest form that reads back as the same bits. Raises TypeError otherwise.
    """
    first = next((value for value in values if value is not None), None)
    if first is None:
        return "{" + ",".join(["NULL"] * len(values)) + "}"
    if isinstance(first, str) and None not in values:
        return _quoted_together(values)
    for kind, write in _WRITERS:
        if isinstance(first, kind):
            return "{" + ",".join(["NULL" if value is None else write(value) for value in values]) + "}"
    raise TypeError(f"no array literal for {type(first).__name__}")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _quoted_together(texts: Sequence[str]) -> str:
    """Return the literal of texts, quoted all at once: thousands of ids take a twentieth of the time."""
    joined = "\0".join(texts)
    if joined.count("\0") >= len(texts):
        return "{" + ",".join(map(_quoted, texts)) + "}"  # PostgreSQL refuses the text that holds one
    return "{" + _quoted(joined).replace("\0", '","') + "}"


_WRITERS: tuple[tuple[type, Callable[[Any], str]], ...] = (
    (str, _quoted),
    (bool, lambda value: "t" if value else "f"),
    (int, str),
    (float, repr),
    (bytes, lambda value: '"\\\\x' + value.hex() + '"'),
    (datetime, lambda value: _quoted(value.isoformat())),
    (list, array_literal),
)


@dataclass(frozen=True, slots=True)
class Reals:
    """A parameter of type `real[]`, of one dimension."""

    values: npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Bigints:
    """A parameter of type `bigint[]`, of one dimension."""

    values: npt.NDArray[np.int64]


class RealsDumper(Dumper):
    """Writes `Reals`."""

    format = Format.BINARY
    oid = _REALS

    def dump(self, obj: Reals) -> bytes:
        """Return the array's binary form."""
        return _received(obj.values, _REAL, ">f4")


class BigintsDumper(Dumper):
    """Writes `Bigints`."""

    format = Format.BINARY
    oid = _BIGINTS

    def dump(self, obj: Bigints) -> bytes:
        """Return the array's binary form."""
        return _received(obj.values, _BIGINT, ">i8")


BINARY_ARRAYS: Mapping[type, type[Dumper]] = {Reals: RealsDumper, Bigints: BigintsDumper}
"""The parameters that go in binary, and what writes them."""


def _received(values: npt.NDArray[Any], kind: int, form: str) -> bytes:
    """Return an array as PostgreSQL receives it: a header, then each value behind its length."""
    if not len(values):
        return struct.pack(">iii", 0, 0, kind)
    cells = np.empty(len(values), dtype=[("length", ">i4"), ("value", form)])
    cells["length"], cells["value"] = np.dtype(form).itemsize, values
    return struct.pack(">iiiii", 1, 0, kind, len(values), 1) + cells.tobytes()


def vector_parameters(vectors: Sequence[Sequence[float] | None]) -> dict[str, Any]:
    """Return the components of all vectors, and where each has its `first` and `last`; None for None."""
    first: list[int | None] = []
    last: list[int | None] = []
    end = 0
    for vector in vectors:
        first.append(None if vector is None else end + 1)
        end += 0 if vector is None else len(vector)
        last.append(None if vector is None else end)
    given = [vector for vector in vectors if vector is not None]
    return {"components": Reals(np.array(given, dtype=np.float32).ravel()), "first": first, "last": last}
