"""Vectors go to the server in binary, all in one array, and come out with the same bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from psycopg import sql

from planner.store.arrays import vector_parameters
from planner.store.connect import run
from tests.integration.graph import Connection

CUT = sql.SQL(
    "SELECT (%(components)s::real[])[r.first : r.last]"
    " FROM unnest(%(first)s::integer[], %(last)s::integer[]) AS r (first, last)"
)

components = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.integers(1, 5).flatmap(
    lambda dimensions: st.lists(st.none() | st.lists(components, min_size=dimensions, max_size=dimensions))
)


@given(given=vectors)
def test_every_vector_is_cut_out_of_the_array_bit_by_bit(
    conn: Connection, given: list[list[float] | None]
) -> None:
    rows = run(conn, sql.Composed([CUT]), vector_parameters(given)).fetchall()
    found = [None if row is None else np.array(row, dtype=np.float32).tobytes() for (row,) in rows]
    assert found == [None if row is None else np.array(row, dtype=np.float32).tobytes() for row in given]
