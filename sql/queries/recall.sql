-- Recall (Phase A): from a question to candidates, in one snapshot of one scope.
--
-- Every table reference carries the scope predicate: the first fence, and what makes each statement one
-- task on one shard where the schema is distributed. Ties are left to Python; nothing here decides a hash.

-- name: scope_state
-- What a plan must know of its scope before it asks: the newest transaction, how many nodes are live, the
-- embedding model at as_of, and whether the scope's own HNSW index is there and valid.
SELECT s.last_tx, s.live_nodes, m.model_id, em.name, em.revision, em.dimensions,
       EXISTS (SELECT 1
                 FROM pg_class c
                 JOIN pg_index i ON i.indexrelid = c.oid
                WHERE c.relnamespace = 'planner'::regnamespace
                  AND c.relname = 'embedding_hnsw_' || replace(s.scope_id::text, '-', '') || '_' || m.model_id
                  AND i.indisvalid)
  FROM planner.scope s
  LEFT JOIN planner.scope_model m
         ON m.scope_id = %(scope_id)s
        AND m.tx_from <= coalesce(%(as_of)s, s.last_tx) AND m.tx_to > coalesce(%(as_of)s, s.last_tx)
  LEFT JOIN planner.embedding_model em ON em.model_id = m.model_id
 WHERE s.scope_id = %(scope_id)s;

-- name: structured
-- The structured leg: the nodes that satisfy `match`, and the seeds; `{match}` and `{must}` are compiled
-- filters. One row more than the limit is read, so that a cut is noticed. The window does not bound this leg.
(SELECT 'match' AS leg, n.node_id
   FROM planner.node n
  WHERE n.scope_id = %(scope_id)s AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
    AND {match} AND {must}
  ORDER BY n.node_id
  LIMIT %(structured_limit)s + 1)
UNION ALL
(SELECT 'seed', n.node_id
   FROM planner.node n
  WHERE n.scope_id = %(scope_id)s AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
    AND n.node_id = ANY (%(seeds)s::text[])
    AND {must})

-- name: nearest
-- The first statement of recall: the structured leg, and for each formulation of the question the nearest
-- embedded nodes. All that restricts is inside, before the limit: `{current}` is the transaction-time
-- predicate (at the newest as_of a constant, which the scope's partial index needs), `{restriction}` holds
-- window and `must` on the node. `{distance}` is pgvector's cosine distance, cast where an index is typed;
-- it finds candidates, and never decides their order.
WITH near AS MATERIALIZED (
    SELECT q.part, e.node_id, e.distance, e.vec
      FROM unnest(%(queries)s::vector[]) WITH ORDINALITY AS q (vec, part)
     CROSS JOIN LATERAL (
           SELECT e.node_id, e.vec, {distance} AS distance
             FROM planner.embedding e
            WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND {current}
              AND {restriction}
            ORDER BY {distance}
            LIMIT %(fetch)s
          ) e
)
SELECT 'semantic' AS leg, node_id, part, distance, vec FROM near
UNION ALL
SELECT leg, node_id, NULL, NULL, NULL FROM ({structured}) structured

-- name: expand
-- The second statement: from the roots one or two hops over edges current at as_of, then every node that is
-- in play to its provenance and the span ledger.
--
-- Each arm of the recursion reads a node's edges in the order of its index and stops after `fanout`; a node
-- that `{restriction}` excludes is neither returned nor walked through. Every path goes on, not only the best
-- one to each node: a worse path may end where the better one would return to itself.
-- Vectors come only for nodes whose similarity is not known yet.
--
-- LIMIT 1 and OFFSET 0 change no result: each key has one row. They keep every join a look-up by its whole key,
-- where a join that PostgreSQL may reorder has been seen to read all nodes of the scope for each of them.
WITH RECURSIVE walk (node_id, hops, decay, path) AS (
    SELECT r.node_id COLLATE "C", 0, 1.0::double precision, ARRAY[r.node_id COLLATE "C"]
      FROM unnest(%(roots)s::text[]) AS r (node_id)
    UNION ALL
    SELECT near.node_id, w.hops + 1,
           w.decay * (near.confidence * %(hop_decay)s::double precision),
           w.path || near.node_id
      FROM walk w
     CROSS JOIN LATERAL (
           SELECT either.node_id, either.confidence
             FROM ({edges}) AS either
            ORDER BY either.confidence DESC, either.predicate, either.node_id
            LIMIT %(fanout)s
          ) near
     WHERE w.hops < %(hops)s
), reached AS MATERIALIZED (
    SELECT DISTINCT ON (w.node_id) w.node_id, w.hops, w.decay, w.path
      FROM walk w
     WHERE w.hops > 0
     ORDER BY w.node_id, w.decay DESC, w.path
), play AS (
    SELECT r.node_id, r.hops, r.decay, r.path FROM reached r
    UNION ALL
    SELECT k.node_id COLLATE "C", NULL, NULL, NULL
      FROM unnest(%(known)s::text[]) AS k (node_id)
     WHERE NOT EXISTS (SELECT 1 FROM reached r WHERE r.node_id = k.node_id)
)
SELECT p.node_id, p.hops, p.decay, p.path, e.vec,
       ns.source_id, ns.version_tx, ns.span_start, ns.span_end,
       s.kind, src.class, s.ascii_bytes, s.non_ascii_chars, s.text_hash,
       v.byte_length, v.erased, v.stale
  FROM play p
 CROSS JOIN LATERAL (
       SELECT n.node_id, n.tx_from
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = p.node_id
          AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
        LIMIT 1
      ) n
  LEFT JOIN LATERAL (
       SELECT e.vec
         FROM planner.embedding e
        WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s AND e.node_id = p.node_id
          AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
          AND p.hops IS NOT NULL AND p.node_id <> ALL (%(similar)s::text[])
        LIMIT 1
      ) e ON true
{provenance}

-- name: provenance
-- A fragment of `expand` and of others: from a node `n` to its spans, their sources and the span ledger. `{stale}`
-- says of a cache whether what it was made from has changed.
  LEFT JOIN LATERAL (
       SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
         FROM planner.node_span ns
        WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
       OFFSET 0
      ) ns ON true
  LEFT JOIN LATERAL (
       SELECT src.class
         FROM planner.source src
        WHERE src.scope_id = %(scope_id)s AND src.source_id = ns.source_id
        LIMIT 1
      ) src ON true
  LEFT JOIN LATERAL (
       SELECT v.title, v.byte_length, v.erased_tx IS NOT NULL AS erased,
              CASE WHEN src.class = 'cache' THEN {stale} ELSE false END AS stale
         FROM planner.source_version v
        WHERE v.scope_id = %(scope_id)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
        LIMIT 1
      ) v ON true
  LEFT JOIN LATERAL (
       SELECT s.kind, s.speaker, s.ascii_bytes, s.non_ascii_chars, s.text_hash
         FROM planner.span s
        WHERE s.scope_id = %(scope_id)s AND s.source_id = ns.source_id AND s.version_tx = ns.version_tx
          AND s.span_start = ns.span_start AND s.span_end = ns.span_end
        LIMIT 1
      ) s ON true

-- name: edges_out
-- A fragment of `expand`: the edges that leave `w.node_id`, in index order, no further than `fanout`; LIMIT 1 as
-- above. Mentions are not walked.
(SELECT x.dst AS node_id, x.confidence, x.predicate
   FROM planner.edge x
  CROSS JOIN LATERAL (
        SELECT 1
          FROM planner.node n
         WHERE n.scope_id = %(scope_id)s AND n.node_id = x.dst
           AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
           AND {restriction}
         LIMIT 1
       ) allowed
  WHERE x.scope_id = %(scope_id)s AND x.src = w.node_id
    AND x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s
    AND x.predicate <> 'mentions' AND x.dst <> ALL (w.path)
  ORDER BY x.confidence DESC, x.predicate, x.dst
  LIMIT %(fanout)s)

-- name: edges_in
-- A fragment of `expand`: the edges that arrive at `w.node_id`, in index order, no further than `fanout`.
(SELECT x.src AS node_id, x.confidence, x.predicate
   FROM planner.edge x
  CROSS JOIN LATERAL (
        SELECT 1
          FROM planner.node n
         WHERE n.scope_id = %(scope_id)s AND n.node_id = x.src
           AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
           AND {restriction}
         LIMIT 1
       ) allowed
  WHERE x.scope_id = %(scope_id)s AND x.dst = w.node_id
    AND x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s
    AND x.predicate <> 'mentions' AND x.src <> ALL (w.path)
  ORDER BY x.confidence DESC, x.predicate, x.src
  LIMIT %(fanout)s)

-- name: restrict_embedding
-- A fragment of `nearest`: the restriction of an embedding by its node, where window or `must` ask for one.
EXISTS (SELECT 1 FROM planner.node n
         WHERE n.scope_id = %(scope_id)s AND n.node_id = e.node_id
           AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
           AND {restriction})

-- name: filter_by_provenance
-- A fragment of filters on source_id, class and trust: true where one span of the node's provenance satisfies
-- `{condition}`.
EXISTS (SELECT 1
          FROM planner.node_span ns
          JOIN planner.source src
            ON src.scope_id = %(scope_id)s AND src.source_id = ns.source_id
          JOIN planner.source_version v
            ON v.scope_id = %(scope_id)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
         WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
           AND {condition})

-- name: slices
-- The bytes of spans, cut out of their canonical texts in the database: EXTERNAL storage makes that a read of
-- the slice alone. Null where the version is missing, erased or shorter than the span. The LIMIT keeps the join
-- a look-up by key, where a hash join would read every version of the scope.
SELECT w.i, CASE WHEN w.span_end <= v.byte_length
                 THEN substring(v.body FROM (w.span_start + 1)::integer FOR (w.span_end - w.span_start)::integer)
            END
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[], %(starts)s::bigint[], %(ends)s::bigint[])
       WITH ORDINALITY AS w (source_id, version_tx, span_start, span_end, i)
  LEFT JOIN LATERAL (
       SELECT x.body, x.byte_length
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C" AND x.version_tx = w.version_tx
        LIMIT 1
      ) v ON true
 ORDER BY w.i

-- name: counted
-- The cached exact token counts of texts, by hash.
SELECT t.text_hash, t.tokens
  FROM planner.token_count t
 WHERE t.scope_id = %(scope_id)s AND t.counter = %(counter)s AND t.text_hash = ANY (%(hashes)s::bytea[])
