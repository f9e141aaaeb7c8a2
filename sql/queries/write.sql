-- The write side of ingest: one batch, one ledger transaction. Bulk rows arrive as arrays through unnest,
-- since COPY FROM is refused under row security.

-- name: next_tx
-- Take the scope's next transaction number. The row lock serialises the writers of a scope and no one else;
-- the first ingest of a scope creates it, and from then on it has a lexical index, by the analysis of today.
INSERT INTO planner.scope AS s (scope_id, name, last_tx, live_nodes, created_at, lexical)
VALUES (%(scope_id)s, %(name)s, 1, 0, %(now)s, %(analysis)s)
ON CONFLICT (scope_id) DO UPDATE SET last_tx = s.last_tx + 1
RETURNING s.last_tx, s.created_at, s.lexical;

-- name: hold_scope
-- Keep a scope from being deleted, and no more than that: it is the lock that a foreign key takes. It asks for the
-- writer's rights, as which traces are written therefore.
SELECT s.scope_id FROM planner.scope s WHERE s.scope_id = %(scope_id)s FOR KEY SHARE;

-- name: last_entry_hash
-- The hash that the next ledger entry is chained to.
SELECT l.entry_hash FROM planner.ledger l WHERE l.scope_id = %(scope_id)s AND l.tx = %(tx)s - 1;

-- name: write_ledger
-- Append one entry to the ledger.
INSERT INTO planner.ledger (scope_id, tx, recorded_at, actor, action, detail, entry_hash)
VALUES (%(scope_id)s, %(tx)s, %(now)s, %(actor)s, %(action)s, %(detail)s::jsonb, %(entry_hash)s);

-- name: current_versions
-- The newest version of each of these sources, with all that idempotency compares.
SELECT s.source_id, v.version_tx, v.text_hash, v.parser_version, v.title, v.uri, v.trust, v.attributes,
       v.observed_at, v.erased_tx IS NOT NULL OR v.withdrawn_tx IS NOT NULL, v.extends_tx IS NOT NULL, s.class,
       s.media_type, s.conversation_id, s.position,
       ARRAY(SELECT d.from_source_id || '@' || d.from_version_tx || ':' || d.from_start || '-' || d.from_end
               FROM planner.derivation d
              WHERE d.scope_id = %(scope_id)s AND d.source_id = v.source_id AND d.version_tx = v.version_tx
              ORDER BY d.from_source_id, d.from_version_tx, d.from_start, d.from_end)
  FROM unnest(%(sources)s::text[]) AS w (source_id)
 CROSS JOIN LATERAL (
       SELECT x.source_id, x.class, x.media_type, x.conversation_id, x.position
         FROM planner.source x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C"
        LIMIT 1
      ) s
 CROSS JOIN LATERAL (
       SELECT x.source_id, x.version_tx, x.text_hash, x.parser_version, x.title, x.uri, x.trust, x.attributes,
              x.observed_at, x.erased_tx, x.withdrawn_tx, x.extends_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) v;

-- name: current_nodes
-- The current nodes that a batch may touch: those derived from its sources, and those it names itself. Looked up
-- one by one, since PostgreSQL takes a scope to be small and would read all that it holds.
SELECT n.node_id, n.tx_from, n.kind, n.label, n.attributes, n.confidence, n.valid_from, n.valid_to, n.observed_at,
       p.provenance, p.owned
  FROM (SELECT ns.node_id
          FROM unnest(%(sources)s::text[]) AS f (source_id)
         CROSS JOIN LATERAL (
               SELECT x.node_id
                 FROM planner.node_span x
                WHERE x.scope_id = %(scope_id)s AND x.source_id = f.source_id COLLATE "C"
               OFFSET 0
              ) ns
         UNION
        SELECT g.node_id COLLATE "C" FROM unnest(%(nodes)s::text[]) AS g (node_id)) AS w
 CROSS JOIN LATERAL (
       SELECT x.node_id, x.tx_from, x.kind, x.label, x.attributes, x.confidence, x.valid_from, x.valid_to,
              x.observed_at
         FROM planner.node x
        WHERE x.scope_id = %(scope_id)s AND x.node_id = w.node_id AND x.tx_to = 9223372036854775807
        LIMIT 1
      ) n
 CROSS JOIN LATERAL (
       SELECT array_agg(ns.source_id || E'\x1f' || encode(s.text_hash, 'hex')
                        ORDER BY ns.source_id, ns.version_tx, ns.span_start, ns.span_end) AS provenance,
              coalesce(bool_or(ns.source_id = ANY (%(sources)s::text[])), false) AS owned
         FROM planner.node_span ns
         LEFT JOIN LATERAL (
              SELECT x.text_hash
                FROM planner.span x
               WHERE x.scope_id = %(scope_id)s AND x.source_id = ns.source_id AND x.version_tx = ns.version_tx
                 AND x.span_start = ns.span_start AND x.span_end = ns.span_end
               LIMIT 1
             ) s ON true
        WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
      ) p;

-- name: current_edges
-- The current edges that leave these nodes or arrive at them: an edge ends with either of its nodes. Mentions are
-- kept apart from these.
SELECT e.src, e.dst, e.predicate, e.confidence, e.valid_from, e.valid_to
  FROM unnest(%(nodes)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT x.src, x.dst, x.predicate, x.confidence, x.valid_from, x.valid_to
         FROM planner.edge x
        WHERE x.scope_id = %(scope_id)s AND x.src = w.node_id COLLATE "C" AND x.tx_to = 9223372036854775807
          AND x.predicate <> 'mentions'
       OFFSET 0
      ) e
UNION
SELECT e.src, e.dst, e.predicate, e.confidence, e.valid_from, e.valid_to
  FROM unnest(%(nodes)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT x.src, x.dst, x.predicate, x.confidence, x.valid_from, x.valid_to
         FROM planner.edge x
        WHERE x.scope_id = %(scope_id)s AND x.dst = w.node_id COLLATE "C" AND x.tx_to = 9223372036854775807
          AND x.predicate <> 'mentions'
       OFFSET 0
      ) e;

-- name: current_node_ids
-- Which of these nodes are current: the check that an edge's ends exist.
SELECT n.node_id
  FROM planner.node n
 WHERE n.scope_id = %(scope_id)s AND n.tx_to = 9223372036854775807 AND n.node_id = ANY (%(nodes)s::text[]);

-- name: embedded_hashes
-- Which of these texts have a vector of this model already, and which nodes hold a current one.
SELECT e.node_id, e.text_hash, e.tx_to = 9223372036854775807
  FROM planner.embedding e
 WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.text_hash = ANY (%(hashes)s::bytea[]);

-- name: register_model
-- Make an embedding model known; a reference table, shared by all scopes.
INSERT INTO planner.embedding_model (name, revision, dimensions)
VALUES (%(name)s, %(revision)s, %(dimensions)s)
ON CONFLICT (name, revision, dimensions) DO NOTHING;

-- name: find_model
-- The id of an embedding model.
SELECT m.model_id
  FROM planner.embedding_model m
 WHERE m.name = %(name)s AND m.revision = %(revision)s AND m.dimensions = %(dimensions)s;

-- name: scope_model
-- The embedding model that a scope uses now.
SELECT m.model_id, em.name, em.revision, em.dimensions
  FROM planner.scope_model m
  JOIN planner.embedding_model em ON em.model_id = m.model_id
 WHERE m.scope_id = %(scope_id)s AND m.tx_to = 9223372036854775807;

-- name: adopt_model
-- Let a scope use a model from this transaction on.
INSERT INTO planner.scope_model (scope_id, model_id, tx_from) VALUES (%(scope_id)s, %(model_id)s, %(tx)s);

-- name: write_sources
-- The sources of a batch; one that is known keeps its row.
INSERT INTO planner.source (scope_id, source_id, media_type, class, conversation_id, position)
SELECT %(scope_id)s, r.* FROM unnest(
       %(source_id)s::text[], %(media_type)s::text[], %(class)s::text[], %(conversation_id)s::text[],
       %(position)s::bigint[]) AS r
ON CONFLICT (scope_id, source_id) DO NOTHING;

-- name: write_versions
-- One new version of each changed source.
INSERT INTO planner.source_version (scope_id, version_tx, actor, source_id, body, byte_length, text_hash,
       parser_version, title, uri, trust, attributes, observed_at, extends_tx)
SELECT %(scope_id)s, %(tx)s, %(actor)s, r.source_id, r.body, r.byte_length, r.text_hash, r.parser_version,
       r.title, r.uri, r.trust, r.attributes::jsonb, r.observed_at, r.extends_tx
  FROM unnest(%(source_id)s::text[], %(body)s::bytea[], %(byte_length)s::bigint[], %(text_hash)s::bytea[],
              %(parser_version)s::text[], %(title)s::text[], %(uri)s::text[], %(trust)s::text[],
              %(attributes)s::text[], %(observed_at)s::timestamptz[], %(extends_tx)s::bigint[])
       AS r (source_id, body, byte_length, text_hash, parser_version, title, uri, trust, attributes, observed_at,
             extends_tx);

-- name: write_spans
-- The span ledger of the new versions; heading paths arrive as JSON, since arrays of arrays must be square.
INSERT INTO planner.span (scope_id, version_tx, source_id, span_start, span_end, kind, ordinal, heading_path,
       speaker, ascii_bytes, non_ascii_chars, text_hash, message_id)
SELECT %(scope_id)s, %(tx)s, r.source_id, r.span_start, r.span_end, r.kind, r.ordinal,
       ARRAY(SELECT jsonb_array_elements_text(r.heading_path::jsonb)),
       r.speaker, r.ascii_bytes, r.non_ascii_chars, r.text_hash, r.message_id
  FROM unnest(%(source_id)s::text[], %(start)s::bigint[], %(end)s::bigint[], %(kind)s::text[],
              %(ordinal)s::integer[], %(heading_path)s::text[], %(speaker)s::text[], %(ascii_bytes)s::bigint[],
              %(non_ascii_chars)s::bigint[], %(text_hash)s::bytea[], %(message_id)s::text[])
       AS r (source_id, span_start, span_end, kind, ordinal, heading_path, speaker, ascii_bytes,
             non_ascii_chars, text_hash, message_id);

-- name: write_derivations
-- What the new versions of caches were made from.
INSERT INTO planner.derivation (scope_id, version_tx, source_id, from_source_id, from_version_tx, from_start, from_end)
SELECT %(scope_id)s, %(tx)s, r.*
  FROM unnest(%(source_id)s::text[], %(from_source_id)s::text[], %(from_version_tx)s::bigint[],
              %(from_start)s::bigint[], %(from_end)s::bigint[]) AS r;

-- name: close_nodes
-- End these current nodes at this transaction; what they said stays readable as of before.
UPDATE planner.node AS n SET tx_to = %(tx)s
 WHERE n.scope_id = %(scope_id)s AND n.tx_to = 9223372036854775807 AND n.node_id = ANY (%(nodes)s::text[]);

-- name: close_embeddings
-- End the current vectors of these nodes.
UPDATE planner.embedding AS e SET tx_to = %(tx)s
 WHERE e.scope_id = %(scope_id)s AND e.tx_to = 9223372036854775807 AND e.node_id = ANY (%(nodes)s::text[]);

-- name: close_edges
-- End these current edges.
UPDATE planner.edge AS e SET tx_to = %(tx)s
  FROM unnest(%(src)s::text[], %(dst)s::text[], %(predicate)s::text[]) AS r (src, dst, predicate)
 WHERE e.scope_id = %(scope_id)s AND e.tx_to = 9223372036854775807
   AND e.src = r.src COLLATE "C" AND e.dst = r.dst COLLATE "C" AND e.predicate = r.predicate COLLATE "C";

-- name: write_nodes
-- New nodes, and new versions of changed ones.
INSERT INTO planner.node (scope_id, tx_from, node_id, kind, label, attributes, confidence, valid_from,
       valid_to, observed_at)
SELECT %(scope_id)s, %(tx)s, r.node_id, r.kind, r.label, r.attributes::jsonb, r.confidence, r.valid_from,
       r.valid_to, r.observed_at
  FROM unnest(%(node_id)s::text[], %(kind)s::text[], %(label)s::text[], %(attributes)s::text[],
              %(confidence)s::double precision[], %(valid_from)s::timestamptz[], %(valid_to)s::timestamptz[],
              %(observed_at)s::timestamptz[])
       AS r (node_id, kind, label, attributes, confidence, valid_from, valid_to, observed_at);

-- name: write_node_spans
-- The provenance of the new nodes, all in versions of this transaction.
INSERT INTO planner.node_span (scope_id, node_tx_from, version_tx, node_id, source_id, span_start, span_end)
SELECT %(scope_id)s, %(tx)s, r.version_tx, r.node_id, r.source_id, r.span_start, r.span_end
  FROM unnest(%(node_id)s::text[], %(source_id)s::text[], %(version_tx)s::bigint[], %(start)s::bigint[],
              %(end)s::bigint[])
       AS r (node_id, source_id, version_tx, span_start, span_end);

-- name: write_edges
-- New edges, and new versions of changed ones.
INSERT INTO planner.edge (scope_id, tx_from, src, dst, predicate, confidence, valid_from, valid_to)
SELECT %(scope_id)s, %(tx)s, r.*
  FROM unnest(%(src)s::text[], %(dst)s::text[], %(predicate)s::text[], %(confidence)s::double precision[],
              %(valid_from)s::timestamptz[], %(valid_to)s::timestamptz[]) AS r;

-- name: write_embeddings
-- The vectors of new nodes: given ones, which lie one after another in one array, or for a text that was embedded
-- before the vector it has.
INSERT INTO planner.embedding (scope_id, model_id, tx_from, node_id, text_hash, vec)
SELECT %(scope_id)s, %(model_id)s, %(tx)s, r.node_id, r.text_hash,
       coalesce((%(components)s::real[])[r.first : r.last]::vector,
                (SELECT e.vec FROM planner.embedding e
                  WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.text_hash = r.text_hash
                  ORDER BY e.tx_from, e.node_id LIMIT 1))
  FROM unnest(%(node_id)s::text[], %(text_hash)s::bytea[], %(first)s::integer[], %(last)s::integer[])
       AS r (node_id, text_hash, first, last);

-- name: count_live
-- Keep the number of live nodes, which decides the search method.
UPDATE planner.scope AS s SET live_nodes = s.live_nodes + %(delta)s WHERE s.scope_id = %(scope_id)s;

-- name: scope_tx
-- The newest transaction of a scope, and when the scope was made.
SELECT s.last_tx, s.created_at FROM planner.scope s WHERE s.scope_id = %(scope_id)s;

-- name: versions_of_key
-- The versions of these sources that were written for a caller's key, among the newest of each, and what was sent
-- with it. Each is looked up by key: a conversation has as many versions as it was appended to.
SELECT w.source_id, v.version_tx, l.detail ->> 'once_body'
  FROM unnest(%(sources)s::text[]) AS w (source_id)
 CROSS JOIN LATERAL (
       SELECT x.version_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C"
        ORDER BY x.version_tx DESC
        LIMIT %(limit)s
      ) v
 CROSS JOIN LATERAL (
       SELECT y.detail
         FROM planner.ledger y
        WHERE y.scope_id = %(scope_id)s AND y.tx = v.version_tx
       OFFSET 0
      ) l
 WHERE l.detail ->> 'once_key' = %(key)s;
