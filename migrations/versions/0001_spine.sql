-- 0001, the spine: every table of the store and of the trace.
--
-- The order lets the same schema distribute by scope_id: tables without foreign keys, then
-- planner.place(table) — nothing on plain PostgreSQL —, then the foreign keys, one ALTER each.
-- scope_id leads every key. Roles, policies, views, functions and grants are not here: they hold no
-- data and are rebuilt from sql/objects at every upgrade.

-- tenants and history ---------------------------------------------------------------------------

CREATE TABLE planner.scope (
    scope_id    uuid        NOT NULL,
    name        text        COLLATE "C" NOT NULL,
    last_tx     bigint      NOT NULL DEFAULT 0,
    live_nodes  bigint      NOT NULL DEFAULT 0,
    created_at  timestamptz NOT NULL,
    CONSTRAINT scope_pkey PRIMARY KEY (scope_id),
    CONSTRAINT scope_name_check CHECK (name ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$'),
    CONSTRAINT scope_counts_check CHECK (last_tx >= 0 AND live_nodes >= 0)
);

CREATE TABLE planner.ledger (
    scope_id    uuid        NOT NULL,
    tx          bigint      NOT NULL,
    recorded_at timestamptz NOT NULL,
    actor       text        NOT NULL,
    action      text        NOT NULL,
    detail      jsonb       NOT NULL,
    entry_hash  bytea       NOT NULL,
    CONSTRAINT ledger_pkey PRIMARY KEY (scope_id, tx),
    CONSTRAINT ledger_tx_check CHECK (tx >= 1),
    CONSTRAINT ledger_hash_check CHECK (length(entry_hash) = 32)
);

-- sources and their span ledger -----------------------------------------------------------------

CREATE TABLE planner.source (
    scope_id        uuid   NOT NULL,
    source_id       text   COLLATE "C" NOT NULL,
    media_type      text   NOT NULL,
    class           text   NOT NULL,
    conversation_id text   COLLATE "C",
    position        bigint,
    CONSTRAINT source_pkey PRIMARY KEY (scope_id, source_id),
    CONSTRAINT source_id_check CHECK (octet_length(source_id) BETWEEN 1 AND 512),
    CONSTRAINT source_class_check CHECK (class IN ('truth', 'cache')),
    CONSTRAINT source_turn_check CHECK ((conversation_id IS NULL) = (position IS NULL))
);

CREATE INDEX source_conversation_idx ON planner.source (scope_id, conversation_id, position)
    WHERE conversation_id IS NOT NULL;

CREATE TABLE planner.source_version (
    scope_id       uuid        NOT NULL,
    source_id      text        COLLATE "C" NOT NULL,
    version_tx     bigint      NOT NULL,
    body           bytea,
    byte_length    bigint      NOT NULL,
    text_hash      bytea       NOT NULL,
    parser_version text        NOT NULL,
    title          text,
    uri            text,
    trust          text        NOT NULL,
    actor          text        NOT NULL,
    attributes     jsonb       NOT NULL,
    observed_at    timestamptz,
    extends_tx     bigint,
    erased_tx      bigint,
    withdrawn_tx   bigint,
    CONSTRAINT source_version_pkey PRIMARY KEY (scope_id, source_id, version_tx),
    CONSTRAINT source_version_body_check CHECK ((body IS NULL) = (erased_tx IS NOT NULL)),
    CONSTRAINT source_version_length_check CHECK (byte_length >= 0 AND (body IS NULL OR octet_length(body) = byte_length)),
    CONSTRAINT source_version_hash_check CHECK (length(text_hash) = 32),
    CONSTRAINT source_version_extends_check CHECK (extends_tx < version_tx),
    CONSTRAINT source_version_withdrawn_check CHECK (withdrawn_tx > version_tx),
    CONSTRAINT source_version_trust_check CHECK (trust IN ('untrusted', 'external', 'internal', 'verified'))
);

-- EXTERNAL: stored out of line and uncompressed, so that a slice reads only its own chunks.
ALTER TABLE planner.source_version ALTER COLUMN body SET STORAGE EXTERNAL;

-- Ordinals follow the order of the key, so the key finds neighbours too; a second index with the same first
-- columns would compete with it, and was chosen for look-ups by range.
CREATE TABLE planner.span (
    scope_id        uuid    NOT NULL,
    source_id       text    COLLATE "C" NOT NULL,
    version_tx      bigint  NOT NULL,
    span_start      bigint  NOT NULL,
    span_end        bigint  NOT NULL,
    kind            text    COLLATE "C" NOT NULL,
    ordinal         integer NOT NULL,
    heading_path    text[]  NOT NULL,
    speaker         text,
    ascii_bytes     bigint  NOT NULL,
    non_ascii_chars bigint  NOT NULL,
    text_hash       bytea   NOT NULL,
    message_id      text    COLLATE "C",
    CONSTRAINT span_pkey PRIMARY KEY (scope_id, source_id, version_tx, span_start, span_end),
    CONSTRAINT span_range_check CHECK (span_start >= 0 AND span_end > span_start),
    CONSTRAINT span_counts_check CHECK (ascii_bytes >= 0 AND non_ascii_chars >= 0 AND ordinal >= 0),
    CONSTRAINT span_hash_check CHECK (length(text_hash) = 32)
);

-- "Is this message there already?" Without one, appending would read the conversation.
CREATE INDEX span_message_idx ON planner.span (scope_id, source_id, message_id) WHERE message_id IS NOT NULL;

CREATE TABLE planner.derivation (
    scope_id        uuid   NOT NULL,
    source_id       text   COLLATE "C" NOT NULL,
    version_tx      bigint NOT NULL,
    from_source_id  text   COLLATE "C" NOT NULL,
    from_version_tx bigint NOT NULL,
    from_start      bigint NOT NULL,
    from_end        bigint NOT NULL,
    CONSTRAINT derivation_pkey PRIMARY KEY
        (scope_id, source_id, version_tx, from_source_id, from_version_tx, from_start, from_end),
    CONSTRAINT derivation_range_check CHECK (from_start >= 0 AND from_end > from_start)
);

CREATE INDEX derivation_from_idx ON planner.derivation (scope_id, from_source_id);

CREATE TABLE planner.token_count (
    scope_id  uuid   NOT NULL,
    text_hash bytea  NOT NULL,
    counter   text   COLLATE "C" NOT NULL,
    tokens    bigint NOT NULL,
    CONSTRAINT token_count_pkey PRIMARY KEY (scope_id, text_hash, counter),
    CONSTRAINT token_count_tokens_check CHECK (tokens >= 0)
);

-- the graph, in transaction time: tx_to = 2^63 - 1 is current ----------------------------------------

CREATE TABLE planner.node (
    scope_id    uuid             NOT NULL,
    node_id     text             COLLATE "C" NOT NULL,
    tx_from     bigint           NOT NULL,
    tx_to       bigint           NOT NULL DEFAULT 9223372036854775807,
    kind        text             COLLATE "C" NOT NULL,
    label       text             NOT NULL,
    attributes  jsonb            NOT NULL,
    confidence  double precision NOT NULL,
    valid_from  timestamptz,
    valid_to    timestamptz,
    observed_at timestamptz,
    CONSTRAINT node_pkey PRIMARY KEY (scope_id, node_id, tx_from),
    CONSTRAINT node_id_check CHECK (octet_length(node_id) BETWEEN 1 AND 512),
    CONSTRAINT node_tx_check CHECK (tx_to > tx_from),
    CONSTRAINT node_confidence_check CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT node_valid_check CHECK (valid_from < valid_to)
);

CREATE TABLE planner.node_span (
    scope_id     uuid   NOT NULL,
    node_id      text   COLLATE "C" NOT NULL,
    node_tx_from bigint NOT NULL,
    source_id    text   COLLATE "C" NOT NULL,
    version_tx   bigint NOT NULL,
    span_start   bigint NOT NULL,
    span_end     bigint NOT NULL,
    CONSTRAINT node_span_pkey PRIMARY KEY
        (scope_id, node_id, node_tx_from, source_id, version_tx, span_start, span_end),
    CONSTRAINT node_span_range_check CHECK (span_start >= 0 AND span_end > span_start)
);

CREATE INDEX node_span_source_idx ON planner.node_span (scope_id, source_id, version_tx, span_start);

CREATE TABLE planner.edge (
    scope_id   uuid             NOT NULL,
    src        text             COLLATE "C" NOT NULL,
    dst        text             COLLATE "C" NOT NULL,
    predicate  text             COLLATE "C" NOT NULL,
    tx_from    bigint           NOT NULL,
    tx_to      bigint           NOT NULL DEFAULT 9223372036854775807,
    confidence double precision NOT NULL,
    valid_from timestamptz,
    valid_to   timestamptz,
    CONSTRAINT edge_pkey PRIMARY KEY (scope_id, src, dst, predicate, tx_from),
    CONSTRAINT edge_ids_check CHECK (octet_length(src) BETWEEN 1 AND 512 AND octet_length(dst) BETWEEN 1 AND 512),
    CONSTRAINT edge_predicate_check CHECK (octet_length(predicate) BETWEEN 1 AND 512),
    CONSTRAINT edge_tx_check CHECK (tx_to > tx_from),
    CONSTRAINT edge_confidence_check CHECK (confidence >= 0 AND confidence <= 1),
    CONSTRAINT edge_valid_check CHECK (valid_from < valid_to)
);

-- In the order in which expansion takes a node's edges, so that a hop reads `fanout` entries and stops.
CREATE INDEX edge_out_idx ON planner.edge (scope_id, src, confidence DESC, predicate, dst);
CREATE INDEX edge_in_idx ON planner.edge (scope_id, dst, confidence DESC, predicate, src);

-- vectors -----------------------------------------------------------------------------------------

CREATE SEQUENCE planner.embedding_model_id_seq AS integer;

CREATE TABLE planner.embedding_model (
    model_id   integer NOT NULL DEFAULT nextval('planner.embedding_model_id_seq'),
    name       text    COLLATE "C" NOT NULL,
    revision   text    COLLATE "C" NOT NULL,
    dimensions integer NOT NULL,
    CONSTRAINT embedding_model_pkey PRIMARY KEY (model_id),
    CONSTRAINT embedding_model_key UNIQUE (name, revision, dimensions),
    CONSTRAINT embedding_model_dimensions_check CHECK (dimensions BETWEEN 1 AND 16000)
);

CREATE TABLE planner.scope_model (
    scope_id uuid    NOT NULL,
    model_id integer NOT NULL,
    tx_from  bigint  NOT NULL,
    tx_to    bigint  NOT NULL DEFAULT 9223372036854775807,
    CONSTRAINT scope_model_pkey PRIMARY KEY (scope_id, model_id, tx_from),
    CONSTRAINT scope_model_tx_check CHECK (tx_to > tx_from)
);

CREATE TABLE planner.embedding (
    scope_id  uuid    NOT NULL,
    model_id  integer NOT NULL,
    node_id   text    COLLATE "C" NOT NULL,
    tx_from   bigint  NOT NULL,
    tx_to     bigint  NOT NULL DEFAULT 9223372036854775807,
    vec       vector  NOT NULL,
    text_hash bytea   NOT NULL,
    CONSTRAINT embedding_pkey PRIMARY KEY (scope_id, model_id, node_id, tx_from),
    CONSTRAINT embedding_tx_check CHECK (tx_to > tx_from),
    CONSTRAINT embedding_hash_check CHECK (length(text_hash) = 32)
);

-- Vectors of unchanged text are found again by its hash. The model comes last: beside the key, an index that
-- begins with scope and model too would be taken for look-ups by node while statistics do not know the model yet.
CREATE INDEX embedding_text_idx ON planner.embedding (scope_id, text_hash, model_id);

-- the trace: no foreign keys out of it, no source text in it ------------------------------------------

CREATE TABLE planner.plan (
    scope_id          uuid        NOT NULL,
    plan_id           uuid        NOT NULL,
    created_at        timestamptz NOT NULL,
    outcome           text        NOT NULL,
    error_code        text,
    error             jsonb,
    plan_hash         bytea,
    pool_hash         bytea,
    plan_model        text        NOT NULL,
    score_model       text        NOT NULL,
    as_of             bigint      NOT NULL,
    request           jsonb       NOT NULL,
    config            jsonb       NOT NULL,
    query_vectors     real[]      NOT NULL,
    counter           text        NOT NULL,
    token_estimate    boolean     NOT NULL,
    budget_requested  bigint      NOT NULL,
    budget            bigint      NOT NULL,
    budget_ceiling    bigint,
    narrowed_by       text,
    max_frac          double precision NOT NULL,
    cap               bigint      NOT NULL,
    used              bigint      NOT NULL,
    stats             jsonb       NOT NULL,
    recall            jsonb       NOT NULL,
    cuts              jsonb       NOT NULL,
    timings           jsonb       NOT NULL,
    versions          jsonb       NOT NULL,
    n_candidates      bigint      NOT NULL,
    n_selected        bigint      NOT NULL,
    n_duplicate       bigint      NOT NULL,
    n_unpackable      bigint      NOT NULL,
    n_over_budget     bigint      NOT NULL,
    n_over_source_cap bigint      NOT NULL,
    n_unsliceable     bigint      NOT NULL,
    CONSTRAINT plan_pkey PRIMARY KEY (scope_id, plan_id),
    CONSTRAINT plan_outcome_check CHECK (outcome IN ('planned', 'refused', 'failed')),
    CONSTRAINT plan_error_check CHECK ((outcome = 'planned') = (error_code IS NULL)),
    CONSTRAINT plan_hash_check CHECK (
        outcome <> 'planned' OR coalesce(length(plan_hash) = 32 AND length(pool_hash) = 32, false)),
    CONSTRAINT plan_budget_check CHECK (used >= 0 AND used <= budget AND budget <= budget_requested AND cap <= budget),
    CONSTRAINT plan_counts_check CHECK (
        n_selected + n_duplicate + n_unpackable + n_over_budget + n_over_source_cap + n_unsliceable = n_candidates)
);

CREATE TABLE planner.plan_candidate (
    scope_id        uuid             NOT NULL,
    plan_id         uuid             NOT NULL,
    rank            integer          NOT NULL,
    selection_order integer,
    source_id       text             COLLATE "C" NOT NULL,
    version_tx      bigint           NOT NULL,
    span_start      bigint           NOT NULL,
    span_end        bigint           NOT NULL,
    kind            text             COLLATE "C" NOT NULL,
    class           text             NOT NULL,
    score           double precision NOT NULL,
    weight          double precision NOT NULL,
    weight_bits     bigint           NOT NULL,
    tokens          bigint           NOT NULL,
    text_hash       bytea            NOT NULL,
    node_id         text             COLLATE "C",
    outcome         text             NOT NULL,
    duplicate_of    integer,
    CONSTRAINT plan_candidate_pkey PRIMARY KEY (scope_id, plan_id, rank),
    CONSTRAINT plan_candidate_range_check CHECK (span_start >= 0 AND span_end > span_start),
    CONSTRAINT plan_candidate_outcome_check CHECK (outcome IN
        ('selected', 'duplicate', 'unpackable', 'over_budget', 'over_source_cap', 'unsliceable')),
    CONSTRAINT plan_candidate_order_check CHECK ((outcome = 'selected') = (selection_order IS NOT NULL)),
    CONSTRAINT plan_candidate_duplicate_check CHECK ((outcome = 'duplicate') = (duplicate_of IS NOT NULL))
);

-- "Which plans used this source?"
CREATE INDEX plan_candidate_source_idx ON planner.plan_candidate (scope_id, source_id) WHERE outcome = 'selected';

CREATE TABLE planner.plan_node (
    scope_id   uuid             NOT NULL,
    plan_id    uuid             NOT NULL,
    node_id    text             COLLATE "C" NOT NULL,
    legs       text[]           NOT NULL,
    score      double precision NOT NULL,
    similarity double precision,
    hops       integer,
    decay      double precision,
    path       jsonb,
    cut        text,
    CONSTRAINT plan_node_pkey PRIMARY KEY (scope_id, plan_id, node_id),
    CONSTRAINT plan_node_cut_check CHECK (cut IN ('max_nodes'))
);

CREATE TABLE planner.delivery (
    scope_id        uuid        NOT NULL,
    delivery_id     uuid        NOT NULL,
    plan_id         uuid,
    created_at      timestamptz NOT NULL,
    unit            text        NOT NULL,
    framing_version text        NOT NULL,
    counter         text        NOT NULL,
    budget          bigint      NOT NULL,
    used            bigint      NOT NULL,
    delivery_hash   bytea       NOT NULL,
    options         jsonb       NOT NULL,
    items           jsonb       NOT NULL,
    skipped         jsonb       NOT NULL,
    cuts            jsonb       NOT NULL,
    CONSTRAINT delivery_pkey PRIMARY KEY (scope_id, delivery_id),
    CONSTRAINT delivery_budget_check CHECK (used >= 0 AND used <= budget),
    CONSTRAINT delivery_hash_check CHECK (length(delivery_hash) = 32)
);

CREATE INDEX delivery_plan_idx ON planner.delivery (scope_id, plan_id);

-- access --------------------------------------------------------------------------------------------

CREATE TABLE planner.api_token (
    scope_id    uuid        NOT NULL,
    token_hash  bytea       NOT NULL,
    label       text        NOT NULL,
    permissions text[]      NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz,
    revoked_at  timestamptz,
    CONSTRAINT api_token_pkey PRIMARY KEY (scope_id, token_hash),
    CONSTRAINT api_token_hash_check CHECK (length(token_hash) = 32),
    CONSTRAINT api_token_permissions_check CHECK (permissions <@ ARRAY['read', 'write', 'erase', 'inspect'])
);

-- No statistics on scope_id: where PostgreSQL has them, a scope that was loaded since, or is too small to be
-- among the most common, is taken to hold one row, every index that begins with scope_id costs the same, and
-- the one that reads the whole scope may win (a plan took 113 ms in place of 13). Without, every scope is
-- taken to hold 1/200 of a table, and the index that binds most columns wins.

ALTER TABLE planner.scope ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.ledger ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.source ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.source_version ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.span ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.derivation ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.token_count ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.node ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.node_span ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.edge ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.scope_model ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.embedding ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.plan ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.plan_candidate ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.plan_node ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.delivery ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.api_token ALTER COLUMN scope_id SET STATISTICS 0;

-- Nor on what a source says: statistics are samples of the values, which erasure would have to find again.

ALTER TABLE planner.source_version ALTER COLUMN body SET STATISTICS 0;
ALTER TABLE planner.source_version ALTER COLUMN title SET STATISTICS 0;
ALTER TABLE planner.source_version ALTER COLUMN uri SET STATISTICS 0;
ALTER TABLE planner.source_version ALTER COLUMN attributes SET STATISTICS 0;
ALTER TABLE planner.span ALTER COLUMN heading_path SET STATISTICS 0;
ALTER TABLE planner.span ALTER COLUMN speaker SET STATISTICS 0;
ALTER TABLE planner.span ALTER COLUMN message_id SET STATISTICS 0;
ALTER TABLE planner.node ALTER COLUMN label SET STATISTICS 0;
ALTER TABLE planner.node ALTER COLUMN attributes SET STATISTICS 0;
ALTER TABLE planner.embedding ALTER COLUMN vec SET STATISTICS 0;

-- placement, then foreign keys -------------------------------------------------------------------------

SELECT planner.place('embedding_model');
SELECT planner.place('scope');
SELECT planner.place('ledger');
SELECT planner.place('source');
SELECT planner.place('source_version');
SELECT planner.place('span');
SELECT planner.place('derivation');
SELECT planner.place('token_count');
SELECT planner.place('node');
SELECT planner.place('node_span');
SELECT planner.place('edge');
SELECT planner.place('scope_model');
SELECT planner.place('embedding');
SELECT planner.place('plan');
SELECT planner.place('plan_candidate');
SELECT planner.place('plan_node');
SELECT planner.place('delivery');
SELECT planner.place('api_token');

ALTER TABLE planner.ledger ADD CONSTRAINT ledger_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.source ADD CONSTRAINT source_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.source_version ADD CONSTRAINT source_version_source_fkey
    FOREIGN KEY (scope_id, source_id) REFERENCES planner.source (scope_id, source_id);
ALTER TABLE planner.source_version ADD CONSTRAINT source_version_ledger_fkey
    FOREIGN KEY (scope_id, version_tx) REFERENCES planner.ledger (scope_id, tx);
ALTER TABLE planner.span ADD CONSTRAINT span_source_version_fkey
    FOREIGN KEY (scope_id, source_id, version_tx)
    REFERENCES planner.source_version (scope_id, source_id, version_tx);
ALTER TABLE planner.derivation ADD CONSTRAINT derivation_source_version_fkey
    FOREIGN KEY (scope_id, source_id, version_tx)
    REFERENCES planner.source_version (scope_id, source_id, version_tx);
ALTER TABLE planner.node ADD CONSTRAINT node_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.node_span ADD CONSTRAINT node_span_node_fkey
    FOREIGN KEY (scope_id, node_id, node_tx_from) REFERENCES planner.node (scope_id, node_id, tx_from);
ALTER TABLE planner.node_span ADD CONSTRAINT node_span_source_version_fkey
    FOREIGN KEY (scope_id, source_id, version_tx)
    REFERENCES planner.source_version (scope_id, source_id, version_tx);
ALTER TABLE planner.edge ADD CONSTRAINT edge_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.scope_model ADD CONSTRAINT scope_model_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.scope_model ADD CONSTRAINT scope_model_model_fkey
    FOREIGN KEY (model_id) REFERENCES planner.embedding_model (model_id);
ALTER TABLE planner.embedding ADD CONSTRAINT embedding_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.embedding ADD CONSTRAINT embedding_model_fkey
    FOREIGN KEY (model_id) REFERENCES planner.embedding_model (model_id);
ALTER TABLE planner.api_token ADD CONSTRAINT api_token_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
