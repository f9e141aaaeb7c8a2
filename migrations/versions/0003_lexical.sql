-- 0003, the lexical index: the terms of every node version that has spans, forward and inverted, and the titles
-- that other sources' texts mention.
--
-- A term is a number: 8 bytes of its hash, the low 3 bits zero. In a sequence these 3 bits say how the term stands
-- there: 1 written with a capital or a digit, 2 apart from the term before it, 4 a word of grammar. A sequence is
-- packed, 8 bytes a term, little-endian. A doc is the number of a node version: its tx_from times 2^20, and its
-- place among the node versions of that transaction.
--
-- The new columns of scope have constant defaults, so that no row is rewritten: a scope without an index is one that
-- `planner scope index` has yet to build. New tables are locked by nobody.

ALTER TABLE planner.scope ADD COLUMN lexical text COLLATE "C";
ALTER TABLE planner.scope ADD COLUMN lexical_nodes bigint NOT NULL DEFAULT 0;
ALTER TABLE planner.scope ADD COLUMN lexical_terms bigint NOT NULL DEFAULT 0;

CREATE TABLE planner.lexical (
    scope_id uuid    NOT NULL,
    node_id  text    COLLATE "C" NOT NULL,
    tx_from  bigint  NOT NULL,
    tx_to    bigint  NOT NULL DEFAULT 9223372036854775807,
    doc      bigint  NOT NULL,
    length   integer NOT NULL,
    terms    bytea   NOT NULL,
    context  bytea   NOT NULL,
    CONSTRAINT lexical_pkey PRIMARY KEY (scope_id, node_id, tx_from),
    CONSTRAINT lexical_doc_key UNIQUE (scope_id, doc),
    CONSTRAINT lexical_tx_check CHECK (tx_to > tx_from),
    CONSTRAINT lexical_doc_check CHECK (doc >> 20 = tx_from),
    CONSTRAINT lexical_length_check CHECK (length * 8 = octet_length(terms) + octet_length(context))
);

-- These two have no foreign key and posting no check: a check of each posting costs a sixth of writing it, a foreign
-- key more than that. Both are written under the lock of the scope's own row, by one function.

CREATE TABLE planner.posting (
    scope_id  uuid     NOT NULL,
    term      bigint   NOT NULL,
    doc       bigint   NOT NULL,
    frequency smallint NOT NULL,
    length    integer  NOT NULL,
    CONSTRAINT posting_pkey PRIMARY KEY (scope_id, term, doc) INCLUDE (frequency, length)
);

-- Half of each page stays free: the counts of frequent terms change in every transaction, and then the row's next
-- version lies beside it and the index is left alone (a third of the time, and a tenth of the disk).
CREATE TABLE planner.term (
    scope_id uuid   NOT NULL,
    term     bigint NOT NULL,
    nodes    bigint NOT NULL,
    CONSTRAINT term_pkey PRIMARY KEY (scope_id, term),
    CONSTRAINT term_nodes_check CHECK (nodes >= 0)
) WITH (fillfactor = 50);

-- Form 0 is the title as it stands, 1 the title without its trailing parenthesis.
CREATE TABLE planner.title (
    scope_id   uuid     NOT NULL,
    source_id  text     COLLATE "C" NOT NULL,
    tx_from    bigint   NOT NULL,
    tx_to      bigint   NOT NULL DEFAULT 9223372036854775807,
    form       smallint NOT NULL,
    first_term bigint   NOT NULL,
    terms      bytea    NOT NULL,
    CONSTRAINT title_pkey PRIMARY KEY (scope_id, source_id, tx_from, form),
    CONSTRAINT title_form_check CHECK (form IN (0, 1)),
    CONSTRAINT title_tx_check CHECK (tx_to > tx_from)
);

CREATE INDEX title_term_idx ON planner.title (scope_id, first_term);

-- No statistics on scope_id, nor on what a source says, which a number of a word still does: 0001 says why.

ALTER TABLE planner.lexical ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.lexical ALTER COLUMN terms SET STATISTICS 0;
ALTER TABLE planner.lexical ALTER COLUMN context SET STATISTICS 0;
ALTER TABLE planner.posting ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.posting ALTER COLUMN term SET STATISTICS 0;
ALTER TABLE planner.term ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.term ALTER COLUMN term SET STATISTICS 0;
ALTER TABLE planner.title ALTER COLUMN scope_id SET STATISTICS 0;
ALTER TABLE planner.title ALTER COLUMN first_term SET STATISTICS 0;
ALTER TABLE planner.title ALTER COLUMN terms SET STATISTICS 0;

SELECT planner.place('lexical');
SELECT planner.place('posting');
SELECT planner.place('term');
SELECT planner.place('title');

ALTER TABLE planner.lexical ADD CONSTRAINT lexical_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
ALTER TABLE planner.title ADD CONSTRAINT title_scope_fkey
    FOREIGN KEY (scope_id) REFERENCES planner.scope (scope_id);
