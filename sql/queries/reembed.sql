-- Moving a scope to another embedding model: its vectors are made beside those in use, then one transaction
-- switches. Until then a scope's model is what it was, and nobody reads the new vectors.

-- name: halt_writers
-- Keep the scope's other writers out until the end of the transaction, as taking a number would; return its
-- newest transaction.
SELECT s.last_tx FROM planner.scope s WHERE s.scope_id = %(scope_id)s FOR NO KEY UPDATE;

-- name: worded
-- A fragment of others: whether a version of a node `n` has a text. One of which a part is erased has none any more.
--
-- OFFSET 0 and LIMIT 1 change no result, here and below. They keep each test and each join a look-up by its
-- whole key: PostgreSQL knows nothing of a model that is new, and would read all its vectors for each node.
EXISTS (SELECT FROM planner.node_span ns
         WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
        OFFSET 0)
AND NOT EXISTS (SELECT FROM planner.node_span ns
                 CROSS JOIN LATERAL (
                       SELECT v.erased_tx
                         FROM planner.source_version v
                        WHERE v.scope_id = %(scope_id)s AND v.source_id = ns.source_id
                          AND v.version_tx = ns.version_tx
                        LIMIT 1
                      ) v
                 WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
                   AND v.erased_tx IS NOT NULL
                OFFSET 0)

-- name: reembed_pending
-- A fragment of the others: whether a node `n` is current, has a text, and has no current vector of the model.
n.tx_to = 9223372036854775807 AND {worded}
AND NOT EXISTS (SELECT FROM planner.embedding e
                 WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.node_id = n.node_id
                   AND e.tx_to = 9223372036854775807
                OFFSET 0)

-- name: reembed_count
-- How many nodes are pending.
SELECT count(*) FROM planner.node n WHERE n.scope_id = %(scope_id)s AND {pending};

-- name: reembed_nodes
-- The next pending nodes, by id beyond `after`: many at a time, since each look passes over what is done.
SELECT n.node_id, n.tx_from
  FROM planner.node n
 WHERE n.scope_id = %(scope_id)s AND n.node_id > %(after)s COLLATE "C" AND {pending}
 ORDER BY n.node_id
 LIMIT %(limit)s;

-- name: spans_of_versions
-- What some versions of nodes are embedded and indexed by: their label and their spans, with what these stand in, a
-- row a span, those of a node together.
SELECT w.node_id, n.tx_from, n.kind, n.label,
       s.source_id, s.version_tx, s.span_start, s.span_end, s.kind, s.text_hash, v.title, s.heading_path, s.speaker
  FROM unnest(%(nodes)s::text[], %(versions)s::bigint[]) WITH ORDINALITY AS w (node_id, tx_from, i)
 CROSS JOIN LATERAL (
       SELECT n.tx_from, n.kind, n.label
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = w.node_id COLLATE "C" AND n.tx_from = w.tx_from
        LIMIT 1
      ) n
 CROSS JOIN LATERAL (
       SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
         FROM planner.node_span ns
        WHERE ns.scope_id = %(scope_id)s AND ns.node_id = w.node_id COLLATE "C" AND ns.node_tx_from = w.tx_from
       OFFSET 0
      ) ns
 CROSS JOIN LATERAL (
       SELECT s.source_id, s.version_tx, s.span_start, s.span_end, s.kind, s.text_hash, s.heading_path, s.speaker
         FROM planner.span s
        WHERE s.scope_id = %(scope_id)s AND s.source_id = ns.source_id AND s.version_tx = ns.version_tx
          AND s.span_start = ns.span_start AND s.span_end = ns.span_end
        LIMIT 1
      ) s
 CROSS JOIN LATERAL (
       SELECT v.title
         FROM planner.source_version v
        WHERE v.scope_id = %(scope_id)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
        LIMIT 1
      ) v
 ORDER BY w.i;

-- name: reembed_known
-- Which of these texts the model has embedded before, for whatever node of the scope.
SELECT w.text_hash
  FROM unnest(%(hashes)s::bytea[]) AS w (text_hash)
 CROSS JOIN LATERAL (
       SELECT 1
         FROM planner.embedding e
        WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.text_hash = w.text_hash
        LIMIT 1
      ) known;

-- name: write_reembedded
-- Vectors of the new model, for the nodes that are pending still: the scope is locked, and what was changed,
-- closed or erased since its text was read is passed over. A text that this model has embedded before brings
-- no vector: it has one.
INSERT INTO planner.embedding (scope_id, model_id, tx_from, node_id, text_hash, vec)
SELECT %(scope_id)s, %(model_id)s, %(tx)s, r.node_id, r.text_hash, made.vec
  FROM unnest(%(node_id)s::text[], %(node_tx_from)s::bigint[], %(text_hash)s::bytea[], %(first)s::integer[],
              %(last)s::integer[])
       AS r (node_id, node_tx_from, text_hash, first, last)
 CROSS JOIN LATERAL (
       SELECT 1
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = r.node_id COLLATE "C" AND n.tx_from = r.node_tx_from
          AND {pending}
        LIMIT 1
      ) still
 CROSS JOIN LATERAL (
       SELECT coalesce((%(components)s::real[])[r.first : r.last]::vector,
                       (SELECT e.vec FROM planner.embedding e
                         WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s
                           AND e.text_hash = r.text_hash
                         LIMIT 1)) AS vec
      ) made
 WHERE made.vec IS NOT NULL;

-- name: close_scope_model
-- The model that the scope used is not its model from this transaction on.
UPDATE planner.scope_model AS m SET tx_to = %(tx)s
 WHERE m.scope_id = %(scope_id)s AND m.tx_to = 9223372036854775807;

-- name: close_model_vectors
-- The current vectors of that model end with it; plans as of before read them still.
UPDATE planner.embedding AS e SET tx_to = %(tx)s
 WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.tx_to = 9223372036854775807;

-- name: unused_vector_indexes
-- HNSW indexes of a model that their scope has left, or of a scope that is gone: they cost disk and nobody
-- reads them. Over all scopes, as the owner.
SELECT c.relname::text
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_am a ON a.oid = c.relam
 WHERE c.relnamespace = 'planner'::regnamespace AND a.amname = 'hnsw'
   AND c.relname ~ '^embedding_hnsw_[0-9a-f]+_[0-9]+$'
   AND NOT EXISTS (SELECT FROM planner.scope_model m
                    WHERE m.tx_to = 9223372036854775807
                      AND c.relname =
                          'embedding_hnsw_' || replace(m.scope_id::text, '-', '') || '_' || m.model_id)
 ORDER BY c.relname;
