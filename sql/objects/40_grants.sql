-- What each role may do. Everything is taken away first, so that this file is the whole truth.
--
-- Row security says which rows, this file says which verbs. History is append-only by privilege: the ledger,
-- spans, provenance and the trace are inserted and never updated, and a version's row is closed, not changed.
-- Columns that may be updated are named one by one.
REVOKE ALL ON SCHEMA planner FROM PUBLIC, planner_writer, planner_reader, planner_inspector;
REVOKE ALL ON ALL TABLES IN SCHEMA planner FROM PUBLIC, planner_writer, planner_reader, planner_inspector;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA planner FROM PUBLIC, planner_writer, planner_reader, planner_inspector;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA planner FROM PUBLIC, planner_writer, planner_reader, planner_inspector;

GRANT USAGE ON SCHEMA planner TO planner_writer, planner_reader, planner_inspector;

-- Every role may ask which revision the schema has.
GRANT SELECT ON planner.alembic_version TO planner_writer, planner_reader, planner_inspector;

-- The reader reads everything but tokens, and writes what a plan leaves behind.
GRANT SELECT ON
    planner.scope, planner.ledger, planner.source, planner.source_version, planner.span, planner.derivation,
    planner.token_count, planner.node, planner.node_span, planner.edge, planner.embedding_model,
    planner.scope_model, planner.embedding, planner.plan, planner.plan_candidate, planner.plan_node,
    planner.delivery, planner.expectation, planner.lexical, planner.posting, planner.term, planner.title,
    planner.plan_overview, planner.plan_evidence, planner.plan_rejected, planner.plan_sources,
    planner.source_usage, planner.plan_latency
    TO planner_reader, planner_writer;
GRANT INSERT ON
    planner.plan, planner.plan_candidate, planner.plan_node, planner.delivery, planner.token_count
    TO planner_reader, planner_writer;
GRANT EXECUTE ON FUNCTION
    planner.canonical_slice(uuid, text, bigint, bigint, bigint),
    planner.span_row(uuid, text, bigint, bigint, bigint)
    TO planner_reader, planner_writer;

-- The writer adds to the store.
GRANT INSERT ON
    planner.scope, planner.ledger, planner.source, planner.source_version, planner.span, planner.derivation,
    planner.node, planner.node_span, planner.edge, planner.embedding_model, planner.scope_model,
    planner.embedding, planner.lexical, planner.posting, planner.term, planner.title
    TO planner_writer;
GRANT USAGE ON SEQUENCE planner.embedding_model_id_seq TO planner_writer;

-- It counts its scope's transactions and live nodes, and what its lexical index holds.
GRANT UPDATE (last_tx, live_nodes, lexical, lexical_nodes, lexical_terms) ON planner.scope TO planner_writer;
GRANT UPDATE (nodes) ON planner.term TO planner_writer;

-- It closes what is no longer current.
GRANT UPDATE (withdrawn_tx) ON planner.source_version TO planner_writer;
GRANT UPDATE (tx_to) ON planner.node TO planner_writer;
GRANT UPDATE (tx_to) ON planner.edge TO planner_writer;
GRANT UPDATE (tx_to) ON planner.scope_model TO planner_writer;
GRANT UPDATE (tx_to) ON planner.embedding TO planner_writer;
GRANT UPDATE (tx_to) ON planner.lexical TO planner_writer;
GRANT UPDATE (tx_to) ON planner.title TO planner_writer;

-- Erasure empties columns, and deletes the rows that are nothing without their text.
GRANT UPDATE (body, title, uri, attributes, erased_tx) ON planner.source_version TO planner_writer;
GRANT UPDATE (heading_path, speaker, message_id) ON planner.span TO planner_writer;
GRANT UPDATE (label, attributes) ON planner.node TO planner_writer;
GRANT DELETE ON
    planner.embedding, planner.token_count, planner.lexical, planner.posting, planner.term, planner.title
    TO planner_writer;

-- Expectations are added and removed, never changed.
GRANT INSERT, DELETE ON planner.expectation TO planner_writer;

-- Tokens are made, looked up and revoked by the writer alone.
GRANT SELECT, INSERT ON planner.api_token TO planner_writer;
GRANT UPDATE (revoked_at) ON planner.api_token TO planner_writer;

-- The inspector reads the views, and what they read.
GRANT SELECT ON
    planner.plan_overview, planner.plan_evidence, planner.plan_rejected, planner.plan_sources,
    planner.source_usage, planner.plan_latency,
    planner.scope, planner.source_version, planner.plan, planner.plan_candidate
    TO planner_inspector;
