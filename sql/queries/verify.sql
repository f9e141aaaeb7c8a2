-- Verifying and replanning: what lies beneath a stored plan today, and the ledger's chain. None writes.

-- name: beneath
-- What lies beneath spans of a plan's pool: whether their version is there, when it was erased, the bytes
-- themselves, and what the span ledger and the source say of them. In the order in which they were asked.
SELECT v.version_tx IS NOT NULL, v.erased_tx,
       CASE WHEN w.span_end <= v.byte_length
            THEN substring(v.body FROM (w.span_start + 1)::integer FOR (w.span_end - w.span_start)::integer)
       END,
       s.text_hash, s.kind, c.class
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[], %(starts)s::bigint[], %(ends)s::bigint[])
       WITH ORDINALITY AS w (source_id, version_tx, span_start, span_end, i)
  LEFT JOIN LATERAL (
       SELECT x.version_tx, x.erased_tx, x.body, x.byte_length
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C" AND x.version_tx = w.version_tx
        LIMIT 1
      ) v ON true
  LEFT JOIN LATERAL (
       SELECT y.text_hash, y.kind
         FROM planner.span y
        WHERE y.scope_id = %(scope_id)s AND y.source_id = w.source_id COLLATE "C" AND y.version_tx = w.version_tx
          AND y.span_start = w.span_start AND y.span_end = w.span_end
        LIMIT 1
      ) s ON true
  LEFT JOIN LATERAL (
       SELECT z.class
         FROM planner.source z
        WHERE z.scope_id = %(scope_id)s AND z.source_id = w.source_id COLLATE "C"
        LIMIT 1
      ) c ON true
 ORDER BY w.i

-- name: nodes_as_of
-- What the store holds today of nodes as of a plan: whether they are there, whether a source of theirs was
-- erased since, and their vector. A node that is not there has no row.
SELECT n.node_id,
       EXISTS (SELECT 1
                 FROM planner.node_span ns
                 JOIN planner.source_version v
                   ON v.scope_id = %(scope_id)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
                WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
                  AND v.erased_tx IS NOT NULL),
       e.vec
  FROM unnest(%(nodes)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT x.node_id, x.tx_from
         FROM planner.node x
        WHERE x.scope_id = %(scope_id)s AND x.node_id = w.node_id COLLATE "C"
          AND x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s
        LIMIT 1
      ) n
  LEFT JOIN LATERAL (
       SELECT y.vec
         FROM planner.embedding y
        WHERE y.scope_id = %(scope_id)s AND y.model_id = %(model_id)s AND y.node_id = n.node_id
          AND y.tx_from <= %(as_of)s AND y.tx_to > %(as_of)s
        LIMIT 1
      ) e ON true

-- name: ledger_entries
-- The whole ledger of a scope in order; it is streamed.
SELECT l.tx, l.recorded_at, l.actor, l.action, l.detail, l.entry_hash
  FROM planner.ledger l
 WHERE l.scope_id = %(scope_id)s
 ORDER BY l.tx

-- name: decided_plans
-- The ids of a scope's plans that have a pool, by time, beyond `after`.
SELECT p.plan_id
  FROM planner.plan p
 WHERE p.scope_id = %(scope_id)s AND p.plan_id > %(after)s AND p.plan_hash IS NOT NULL
 ORDER BY p.plan_id
 LIMIT %(limit)s
