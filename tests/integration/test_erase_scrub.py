"""`--scrub`: after an erasure the bytes are still in the tables' files, after a scrub in no file at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import psycopg
import pytest

from planner import Planner
from planner.embedders import CallableEmbedder
from planner.lexical.packing import numbers, pack, unpack
from planner.lexical.terms import numbered
from tests.integration.graph import Connection

WORD = "Quixotrope"
MARK = np.array([0.123456, -0.654321, 0.987654, 0.135791, -0.246801, 0.314159], dtype=np.float32)
"""The direction in which the erased text is embedded, unlike any other."""


def embed(texts: list[str]) -> np.ndarray[Any, Any]:
    plain = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], dtype=np.float32)
    return np.array([MARK if WORD in text else plain for text in texts])


@pytest.fixture
def conn(database_url: str) -> Iterator[Connection]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def opened(database_url: str) -> Iterator[Planner]:
    with Planner.connect(database_url, embedder=CallableEmbedder("marked", 6, embed)) as planner:
        long = " ".join(f"{WORD} {i} and so on." for i in range(2_000))
        about: dict[str, Any] = {"uri": f"file:{WORD}", "attributes": {"by": WORD}, "title": f"A {WORD}"}
        planner.ingest_text("s", "long.md", f"# {WORD}\n\n{long}\n", **about)
        planner.ingest_text("s", "long.md", f"# {WORD}\n\nShort {WORD}.\n", **about)
        planner.ingest_text("s", "other.md", "# Another\n\nAn innocent paragraph.\n")
        planner.append("s", "talk.json", [{"speaker": WORD, "content": f"{WORD}.", "id": f"id {WORD}"}])
        planner.build_index("s")
        planner.plan("s", "innocent", hops=0, counter="openai:o200k_base")
        yield planner


def files_with(conn: Connection, needles: Sequence[bytes]) -> set[str]:
    """Return which relations (else files) of the database hold one of the needles on disk."""
    conn.execute("CHECKPOINT")
    names = dict(
        conn.execute(
            "SELECT pg_relation_filepath(c.oid), coalesce(t.relname || '''s toast', c.relname)"
            " FROM pg_class c LEFT JOIN pg_class t ON t.reltoastrelid = c.oid"
            " WHERE pg_relation_filepath(c.oid) IS NOT NULL"
        ).fetchall()
    )
    folder = "SELECT 'base/' || oid FROM pg_database WHERE datname = current_database()"
    found = conn.execute(
        "SELECT path FROM (SELECT d.folder || '/' || f.name AS path"
        f" FROM ({folder}) AS d (folder), pg_ls_dir(d.folder) AS f (name)) p,"
        " unnest(%s::bytea[]) AS needle WHERE position(needle IN pg_read_binary_file(path)) > 0",
        (list(needles),),
    )
    return {names.get(path, path) for (path,) in found}


def needles_of(conn: Connection) -> list[bytes]:
    """Return the word, and as the server's pages hold them the vector of its texts and its terms."""
    row = conn.execute("SELECT vec::real[] FROM planner.embedding ORDER BY vec::text LIMIT 1").fetchone()
    assert row is not None
    terms = [pack(np.array([term], dtype=np.int64)) for term in numbered(WORD)]
    bare = [pack(numbers(unpack(term))) for term in terms]
    return [WORD.encode(), np.array(row[0], dtype="<f4").tobytes(), *terms, *bare]


def test_only_after_a_scrub_is_no_byte_of_it_left_in_any_file_of_the_database(
    opened: Planner, conn: Connection
) -> None:
    conn.execute("ANALYZE")
    needles = needles_of(conn)
    tables = {"source_version", "source_version's toast", "span", "node", "embedding"}
    index = {"lexical", "posting", "posting_pkey", "term", "term_pkey", "title", "title_term_idx"}
    assert files_with(conn, needles) >= {*tables, *index, "span_message_idx"}
    for source in ("long.md", "talk.json"):
        opened.erase("s", source)
    conn.execute("VACUUM")
    assert files_with(conn, needles)  # freed, and still there
    erased = opened.erase("s", "long.md", scrub=True)
    assert (erased.tx, erased.held_back) == (None, 0)
    assert files_with(conn, needles) == set()
    assert opened.plan("s", "innocent", hops=0).spans
    assert opened.build_index("s").built is False  # the scope's own index was written anew as well


def test_right_after_an_erasure_the_bytes_are_still_there(opened: Planner, conn: Connection) -> None:
    needles = needles_of(conn)
    for source in ("long.md", "talk.json"):
        opened.erase("s", source)
    tables = {"source_version", "source_version's toast", "span", "node", "embedding"}
    assert files_with(conn, needles) >= {*tables, "lexical", "posting", "term", "title"}


def test_a_scrub_says_what_a_transaction_that_is_still_open_holds_back(
    opened: Planner, conn: Connection, database_url: str
) -> None:
    with psycopg.connect(database_url) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1 FROM pg_class")
        held = opened.erase("s", "long.md", scrub=True).held_back
        assert held is not None
        assert held > 0
        assert files_with(conn, [WORD.encode()])
    opened.erase("s", "talk.json")
    assert opened.erase("s", "long.md", scrub=True).held_back == 0
    assert files_with(conn, [WORD.encode()]) == set()
