"""The tables, once, as SQLAlchemy metadata: public, so that jobs compose queries over them.

The migrations create them; a test holds the two equal down to collations, checks and storage. Each tenant
table leads with `scope_id`. Rows in transaction time carry `tx_from` and `tx_to` (open: 2**63 - 1). Hashes
are 32 bytes of BLAKE3; ranges are half-open bytes of canonical UTF-8 text. The tables of the trace and of the
lexical index are declared in `schema_trace` and `schema_lexical` and are here as well.
"""

from __future__ import annotations

import sqlalchemy as sa
from pgvector.sqlalchemy import Vector
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB
from sqlalchemy.schema import DDL

from planner.store.columns import ID, TIME, check, column, key, metadata, optional, reference, scope_id, tx_to
from planner.store.schema_lexical import lexical, posting, term, title
from planner.store.schema_trace import (
    api_token,
    delivery,
    expectation,
    plan,
    plan_candidate,
    plan_node,
)

__all__ = [
    "api_token",
    "delivery",
    "derivation",
    "edge",
    "embedding",
    "embedding_model",
    "expectation",
    "ledger",
    "lexical",
    "metadata",
    "node",
    "node_span",
    "plan",
    "plan_candidate",
    "plan_node",
    "posting",
    "scope",
    "scope_model",
    "source",
    "source_version",
    "span",
    "term",
    "title",
    "token_count",
]

# tenants and history

scope = sa.Table(
    "scope",
    metadata,
    scope_id(),
    column("name", ID),
    column("last_tx", sa.BigInteger, server_default=sa.text("0")),
    column("live_nodes", sa.BigInteger, server_default=sa.text("0")),
    column("created_at", TIME),
    optional("lexical", ID),
    column("lexical_nodes", sa.BigInteger, server_default=sa.text("0")),
    column("lexical_terms", sa.BigInteger, server_default=sa.text("0")),
    key("scope_pkey", "scope_id"),
    check("scope_name_check", "name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'"),
    check("scope_counts_check", "last_tx >= 0 AND live_nodes >= 0"),
)

ledger = sa.Table(
    "ledger",
    metadata,
    scope_id(),
    column("tx", sa.BigInteger),
    column("recorded_at", TIME),
    column("actor", sa.Text),
    column("action", sa.Text),
    column("detail", JSONB),
    column("entry_hash", BYTEA),
    key("ledger_pkey", "scope_id", "tx"),
    check("ledger_tx_check", "tx >= 1"),
    check("ledger_hash_check", "length(entry_hash) = 32"),
    reference("ledger_scope_fkey", "scope", "scope_id"),
)

# sources and their span ledger

source = sa.Table(
    "source",
    metadata,
    scope_id(),
    column("source_id", ID),
    column("media_type", sa.Text),
    column("class", sa.Text),
    optional("conversation_id", ID),
    optional("position", sa.BigInteger),
    key("source_pkey", "scope_id", "source_id"),
    check("source_id_check", "octet_length(source_id) BETWEEN 1 AND 512"),
    check("source_class_check", "class IN ('truth', 'cache')"),
    check("source_turn_check", "(conversation_id IS NULL) = (position IS NULL)"),
    reference("source_scope_fkey", "scope", "scope_id"),
)
sa.Index(
    "source_conversation_idx",
    source.c.scope_id,
    source.c.conversation_id,
    source.c.position,
    postgresql_where=source.c.conversation_id.is_not(None),
)

source_version = sa.Table(
    "source_version",
    metadata,
    scope_id(),
    column("source_id", ID),
    column("version_tx", sa.BigInteger),
    optional("body", BYTEA),
    column("byte_length", sa.BigInteger),
    column("text_hash", BYTEA),
    column("parser_version", sa.Text),
    optional("title", sa.Text),
    optional("uri", sa.Text),
    column("trust", sa.Text),
    column("actor", sa.Text),
    column("attributes", JSONB),
    optional("observed_at", TIME),
    optional("extends_tx", sa.BigInteger),
    optional("erased_tx", sa.BigInteger),
    optional("withdrawn_tx", sa.BigInteger),
    key("source_version_pkey", "scope_id", "source_id", "version_tx"),
    check("source_version_body_check", "(body IS NULL) = (erased_tx IS NOT NULL)"),
    check(
        "source_version_length_check",
        "byte_length >= 0 AND (body IS NULL OR octet_length(body) = byte_length)",
    ),
    check("source_version_hash_check", "length(text_hash) = 32"),
    check("source_version_extends_check", "extends_tx < version_tx"),
    check("source_version_withdrawn_check", "withdrawn_tx > version_tx"),
    check("source_version_trust_check", "trust IN ('untrusted', 'external', 'internal', 'verified')"),
    reference("source_version_source_fkey", "source", "scope_id source_id"),
    reference("source_version_ledger_fkey", "ledger", "scope_id version_tx", "scope_id tx"),
)
# Out of line and uncompressed, so that a slice reads only its own chunks.
sa.event.listen(
    source_version,
    "after_create",
    DDL("ALTER TABLE planner.source_version ALTER COLUMN body SET STORAGE EXTERNAL"),  # type: ignore[no-untyped-call]
)

span = sa.Table(
    "span",
    metadata,
    scope_id(),
    column("source_id", ID),
    column("version_tx", sa.BigInteger),
    column("span_start", sa.BigInteger),
    column("span_end", sa.BigInteger),
    column("kind", ID),
    column("ordinal", sa.Integer),
    column("heading_path", ARRAY(sa.Text)),
    optional("speaker", sa.Text),
    column("ascii_bytes", sa.BigInteger),
    column("non_ascii_chars", sa.BigInteger),
    column("text_hash", BYTEA),
    optional("message_id", ID),
    key("span_pkey", "scope_id", "source_id", "version_tx", "span_start", "span_end"),
    check("span_range_check", "span_start >= 0 AND span_end > span_start"),
    check("span_counts_check", "ascii_bytes >= 0 AND non_ascii_chars >= 0 AND ordinal >= 0"),
    check("span_hash_check", "length(text_hash) = 32"),
    reference("span_source_version_fkey", "source_version", "scope_id source_id version_tx"),
)
sa.Index(
    "span_message_idx",
    *(span.c[name] for name in ("scope_id", "source_id", "message_id")),
    postgresql_where=span.c.message_id.is_not(None),
)

derivation = sa.Table(
    "derivation",
    metadata,
    scope_id(),
    column("source_id", ID),
    column("version_tx", sa.BigInteger),
    column("from_source_id", ID),
    column("from_version_tx", sa.BigInteger),
    column("from_start", sa.BigInteger),
    column("from_end", sa.BigInteger),
    key(
        "derivation_pkey",
        *("scope_id", "source_id", "version_tx"),
        *("from_source_id", "from_version_tx", "from_start", "from_end"),
    ),
    check("derivation_range_check", "from_start >= 0 AND from_end > from_start"),
    reference("derivation_source_version_fkey", "source_version", "scope_id source_id version_tx"),
)
sa.Index("derivation_from_idx", derivation.c.scope_id, derivation.c.from_source_id)

token_count = sa.Table(
    "token_count",
    metadata,
    scope_id(),
    column("text_hash", BYTEA),
    column("counter", ID),
    column("tokens", sa.BigInteger),
    key("token_count_pkey", "scope_id", "text_hash", "counter"),
    check("token_count_tokens_check", "tokens >= 0"),
)

# the graph, in transaction time

node = sa.Table(
    "node",
    metadata,
    scope_id(),
    column("node_id", ID),
    column("tx_from", sa.BigInteger),
    tx_to(),
    column("kind", ID),
    column("label", sa.Text),
    column("attributes", JSONB),
    column("confidence", sa.Double),
    optional("valid_from", TIME),
    optional("valid_to", TIME),
    optional("observed_at", TIME),
    key("node_pkey", "scope_id", "node_id", "tx_from"),
    check("node_id_check", "octet_length(node_id) BETWEEN 1 AND 512"),
    check("node_tx_check", "tx_to > tx_from"),
    check("node_confidence_check", "confidence >= 0 AND confidence <= 1"),
    check("node_valid_check", "valid_from < valid_to"),
    reference("node_scope_fkey", "scope", "scope_id"),
)

node_span = sa.Table(
    "node_span",
    metadata,
    scope_id(),
    column("node_id", ID),
    column("node_tx_from", sa.BigInteger),
    column("source_id", ID),
    column("version_tx", sa.BigInteger),
    column("span_start", sa.BigInteger),
    column("span_end", sa.BigInteger),
    key(
        "node_span_pkey",
        *("scope_id", "node_id", "node_tx_from"),
        *("source_id", "version_tx", "span_start", "span_end"),
    ),
    check("node_span_range_check", "span_start >= 0 AND span_end > span_start"),
    reference("node_span_node_fkey", "node", "scope_id node_id node_tx_from", "scope_id node_id tx_from"),
    reference("node_span_source_version_fkey", "source_version", "scope_id source_id version_tx"),
)
sa.Index(
    "node_span_source_idx",
    *(node_span.c[name] for name in ("scope_id", "source_id", "version_tx", "span_start")),
)

edge = sa.Table(
    "edge",
    metadata,
    scope_id(),
    column("src", ID),
    column("dst", ID),
    column("predicate", ID),
    column("tx_from", sa.BigInteger),
    tx_to(),
    column("confidence", sa.Double),
    optional("valid_from", TIME),
    optional("valid_to", TIME),
    key("edge_pkey", "scope_id", "src", "dst", "predicate", "tx_from"),
    check("edge_ids_check", "octet_length(src) BETWEEN 1 AND 512 AND octet_length(dst) BETWEEN 1 AND 512"),
    check("edge_predicate_check", "octet_length(predicate) BETWEEN 1 AND 512"),
    check("edge_tx_check", "tx_to > tx_from"),
    check("edge_confidence_check", "confidence >= 0 AND confidence <= 1"),
    check("edge_valid_check", "valid_from < valid_to"),
    reference("edge_scope_fkey", "scope", "scope_id"),
)
# In the order in which expansion takes a node's edges.
sa.Index("edge_out_idx", edge.c.scope_id, edge.c.src, edge.c.confidence.desc(), edge.c.predicate, edge.c.dst)
sa.Index("edge_in_idx", edge.c.scope_id, edge.c.dst, edge.c.confidence.desc(), edge.c.predicate, edge.c.src)

# vectors

_model_id = sa.Sequence("embedding_model_id_seq", data_type=sa.Integer, metadata=metadata)

embedding_model = sa.Table(
    "embedding_model",
    metadata,
    column("model_id", sa.Integer, server_default=_model_id.next_value()),
    column("name", ID),
    column("revision", ID),
    column("dimensions", sa.Integer),
    key("embedding_model_pkey", "model_id"),
    sa.UniqueConstraint("name", "revision", "dimensions", name="embedding_model_key"),
    check("embedding_model_dimensions_check", "dimensions BETWEEN 1 AND 16000"),
)

scope_model = sa.Table(
    "scope_model",
    metadata,
    scope_id(),
    column("model_id", sa.Integer, autoincrement=False),
    column("tx_from", sa.BigInteger),
    tx_to(),
    key("scope_model_pkey", "scope_id", "model_id", "tx_from"),
    check("scope_model_tx_check", "tx_to > tx_from"),
    reference("scope_model_scope_fkey", "scope", "scope_id"),
    reference("scope_model_model_fkey", "embedding_model", "model_id"),
)

embedding = sa.Table(
    "embedding",
    metadata,
    scope_id(),
    column("model_id", sa.Integer),
    column("node_id", ID),
    column("tx_from", sa.BigInteger),
    tx_to(),
    column("vec", Vector()),
    column("text_hash", BYTEA),
    key("embedding_pkey", "scope_id", "model_id", "node_id", "tx_from"),
    check("embedding_tx_check", "tx_to > tx_from"),
    check("embedding_hash_check", "length(text_hash) = 32"),
    reference("embedding_scope_fkey", "scope", "scope_id"),
    reference("embedding_model_fkey", "embedding_model", "model_id"),
)
sa.Index("embedding_text_idx", embedding.c.scope_id, embedding.c.text_hash, embedding.c.model_id)

WORDS = {
    source_version: ("body", "title", "uri", "attributes"),
    span: ("heading_path", "speaker", "message_id"),
    node: ("label", "attributes"),
    embedding: ("vec",),
    lexical: ("terms", "context"),
    posting: ("term",),
    term: ("term",),
    title: ("first_term", "terms"),
}
"""The columns that hold what a source says; erasure empties them."""

# No statistics on these, nor on scope_id: the migration says why.
for _table in metadata.tables.values():
    for _name in ("scope_id", *WORDS.get(_table, ())):
        if _name in _table.columns:
            sa.event.listen(
                _table,
                "after_create",
                DDL(f"ALTER TABLE {_table.fullname} ALTER COLUMN {_name} SET STATISTICS 0"),  # type: ignore[no-untyped-call]
            )
