"""The tables of the lexical index, part of `planner.store.schema`.

A term is a number, its low 3 bits zero; `planner.lexical.packing` says what a sequence of them holds. A `doc`
numbers a node version: its tx_from times 2**20, and its place among the versions of that transaction.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import BYTEA
from sqlalchemy.schema import DDL

from planner.store.columns import ID, check, column, key, metadata, reference, scope_id, tx_to

lexical = sa.Table(
    "lexical",
    metadata,
    scope_id(),
    column("node_id", ID),
    column("tx_from", sa.BigInteger),
    tx_to(),
    column("doc", sa.BigInteger),
    column("length", sa.Integer),
    column("terms", BYTEA),
    column("context", BYTEA),
    key("lexical_pkey", "scope_id", "node_id", "tx_from"),
    sa.UniqueConstraint("scope_id", "doc", name="lexical_doc_key"),
    check("lexical_tx_check", "tx_to > tx_from"),
    check("lexical_doc_check", "doc >> 20 = tx_from"),
    check("lexical_length_check", "length * 8 = octet_length(terms) + octet_length(context)"),
    reference("lexical_scope_fkey", "scope", "scope_id"),
)

posting = sa.Table(
    "posting",
    metadata,
    scope_id(),
    column("term", sa.BigInteger),
    column("doc", sa.BigInteger),
    column("frequency", sa.SmallInteger),
    column("length", sa.Integer),
    sa.PrimaryKeyConstraint(
        *("scope_id", "term", "doc"), name="posting_pkey", postgresql_include=["frequency", "length"]
    ),
)

term = sa.Table(
    "term",
    metadata,
    scope_id(),
    column("term", sa.BigInteger),
    column("nodes", sa.BigInteger),
    key("term_pkey", "scope_id", "term"),
    check("term_nodes_check", "nodes >= 0"),
)
# Counts change all the time: the next version of a row finds room beside it.
sa.event.listen(
    term,
    "after_create",
    DDL("ALTER TABLE planner.term SET (fillfactor = 50)"),  # type: ignore[no-untyped-call]
)

title = sa.Table(
    "title",
    metadata,
    scope_id(),
    column("source_id", ID),
    column("tx_from", sa.BigInteger),
    tx_to(),
    column("form", sa.SmallInteger),
    column("first_term", sa.BigInteger),
    column("terms", BYTEA),
    key("title_pkey", "scope_id", "source_id", "tx_from", "form"),
    check("title_form_check", "form IN (0, 1)"),
    check("title_tx_check", "tx_to > tx_from"),
    reference("title_scope_fkey", "scope", "scope_id"),
)
sa.Index("title_term_idx", title.c.scope_id, title.c.first_term)
