-- Tuning, as planner_owner: what keeps plans fast, and never changes what they say.

-- name: stale_tables
-- The tables whose statistics are missing or far behind what was written since. Fresh loads are asked about
-- before autovacuum has seen them, and a plan without statistics reads a whole source for one span.
SELECT c.relname
  FROM pg_class c
  LEFT JOIN pg_stat_all_tables t ON t.relid = c.oid
 WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'r'
   AND c.relname IN ('source', 'source_version', 'span', 'node', 'node_span', 'edge', 'embedding')
   AND (c.reltuples < 0 OR t.n_mod_since_analyze > 500 + 0.2 * c.reltuples)
 ORDER BY c.relname;

-- name: analyze
-- Refresh statistics; a table that somebody else is tending is passed over.
ANALYZE (SKIP_LOCKED) {tables};

-- name: vector_index_state
-- Whether an index of this name exists, and whether it is valid.
SELECT i.indisvalid
  FROM pg_class c
  JOIN pg_index i ON i.indexrelid = c.oid
 WHERE c.relnamespace = 'planner'::regnamespace AND c.relname = %(name)s;

-- name: drop_vector_index
-- Remove what an interrupted build left behind.
DROP INDEX CONCURRENTLY IF EXISTS planner.{name};

-- name: create_vector_index
-- A scope's own index over its current vectors of one model: one index over many tenants loses recall.
CREATE INDEX CONCURRENTLY {name}
    ON planner.embedding USING hnsw ((vec::{kind}({dimensions})) {operators})
 WHERE scope_id = {scope_id} AND model_id = {model_id} AND tx_to = 9223372036854775807;

-- name: sample_no_vectors
-- Keep ANALYZE from sampling the index's expression: erasure would have to find the samples again.
ALTER INDEX planner.{name} ALTER COLUMN 1 SET STATISTICS 0;
