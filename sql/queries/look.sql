-- Looking at what is stored, for people: the text of a source with its spans, what plans made of them, and the
-- names of the nodes that recall found.

-- name: text_version
-- One version of a source (the newest where none is named) with the chain that it ends: the text as of then.
SELECT s.media_type, s.class, s.conversation_id, v.version_tx, b.version_tx, n.version_tx, v.title, v.uri, v.trust,
       v.actor, v.observed_at, l.recorded_at, v.erased_tx, n.withdrawn_tx, c.bytes, c.spans
  FROM planner.source s
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.withdrawn_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) n
  JOIN planner.source_version v
    ON v.scope_id = %(scope_id)s AND v.source_id = s.source_id
   AND v.version_tx = coalesce(%(version_tx)s::bigint, n.version_tx)
  JOIN planner.ledger l
    ON l.scope_id = %(scope_id)s AND l.tx = v.version_tx
 CROSS JOIN LATERAL (
       SELECT y.version_tx
         FROM planner.source_version y
        WHERE y.scope_id = %(scope_id)s AND y.source_id = s.source_id AND y.version_tx <= v.version_tx
          AND y.extends_tx IS NULL
        ORDER BY y.version_tx DESC
        LIMIT 1
      ) b
 CROSS JOIN LATERAL (
       SELECT (SELECT sum(z.byte_length)::bigint FROM planner.source_version z
                WHERE z.scope_id = %(scope_id)s AND z.source_id = s.source_id
                  AND z.version_tx BETWEEN b.version_tx AND v.version_tx) AS bytes,
              (SELECT count(*) FROM planner.span p
                WHERE p.scope_id = %(scope_id)s AND p.source_id = s.source_id
                  AND p.version_tx BETWEEN b.version_tx AND v.version_tx) AS spans
      ) c
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s

-- name: text_spans
-- Some spans of a chain, in order.
SELECT s.version_tx, s.span_start, s.span_end, s.kind, s.ordinal, s.ascii_bytes, s.non_ascii_chars, s.text_hash,
       s.heading_path, s.speaker, s.message_id
  FROM planner.span s
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
   AND s.version_tx BETWEEN %(base_tx)s AND %(version_tx)s
 ORDER BY s.ordinal, s.version_tx, s.span_start, s.span_end
OFFSET %(offset)s
 LIMIT %(limit)s

-- name: text_from
-- The first span of a chain that ends behind a place, and where the last of all ends.
SELECT f.version_tx, f.span_start, f.span_end, f.ordinal, l.version_tx, l.span_end
  FROM (SELECT s.version_tx, s.span_start, s.span_end, s.ordinal
          FROM planner.span s
         WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
           AND s.version_tx BETWEEN %(base_tx)s AND %(version_tx)s AND s.version_tx >= %(from_tx)s
           AND (s.version_tx > %(from_tx)s OR s.span_end > %(from_byte)s)
         ORDER BY s.version_tx, s.span_start, s.span_end
         LIMIT 1) f
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.span_end
         FROM planner.span x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = %(source_id)s
          AND x.version_tx BETWEEN %(base_tx)s AND %(version_tx)s
        ORDER BY x.version_tx DESC, x.span_start DESC, x.span_end DESC
        LIMIT 1
      ) l

-- name: text_lengths
-- The versions of a chain between two of them, and how long each one's own text is.
SELECT v.version_tx, v.byte_length
  FROM planner.source_version v
 WHERE v.scope_id = %(scope_id)s AND v.source_id = %(source_id)s
   AND v.version_tx BETWEEN %(first_tx)s AND %(last_tx)s
 ORDER BY v.version_tx

-- name: text_usage
-- What the newest plans made of a source's texts, by the text's hash, since an unchanged text keeps the span of the
-- version that it came with: in how many it was selected or not, and the newest of either. The first row, of a null
-- hash, says how many plans were looked at.
WITH recent AS MATERIALIZED (
    SELECT p.plan_id
      FROM planner.plan p
     WHERE p.scope_id = %(scope_id)s
     ORDER BY p.plan_id DESC
     LIMIT %(plans)s
)
SELECT NULL::bytea, count(*), 0::bigint, NULL::uuid, NULL::uuid
  FROM recent
UNION ALL
(SELECT c.text_hash, count(*) FILTER (WHERE c.outcome = 'selected'), count(*) FILTER (WHERE c.outcome <> 'selected'),
        (array_agg(c.plan_id ORDER BY c.plan_id DESC) FILTER (WHERE c.outcome = 'selected'))[1],
        (array_agg(c.plan_id ORDER BY c.plan_id DESC) FILTER (WHERE c.outcome <> 'selected'))[1]
   FROM recent r
   JOIN planner.plan_candidate c
     ON c.scope_id = %(scope_id)s AND c.plan_id = r.plan_id AND c.source_id = %(source_id)s
  GROUP BY c.text_hash
  ORDER BY c.text_hash)

-- name: node_names
-- What nodes are called, in the version that was current as of a transaction, else the nearest one.
SELECT w.node_id, n.kind, n.label
  FROM unnest(%(nodes)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT x.kind, x.label
         FROM planner.node x
        WHERE x.scope_id = %(scope_id)s AND x.node_id = w.node_id COLLATE "C"
        ORDER BY (x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s) DESC, abs(x.tx_from - %(as_of)s), x.tx_from
        LIMIT 1
      ) n

-- name: step_edges
-- By which edge, as of a transaction, each of these steps from one node to another goes, forwards or backwards: the
-- first in the order in which recall takes them.
SELECT w.i, e.predicate, e.confidence, e.forward
  FROM unnest(%(froms)s::text[], %(tos)s::text[]) WITH ORDINALITY AS w (src, dst, i)
 CROSS JOIN LATERAL (
       SELECT x.predicate, x.confidence, true AS forward
         FROM planner.edge x
        WHERE x.scope_id = %(scope_id)s AND x.src = w.src COLLATE "C" AND x.dst = w.dst COLLATE "C"
          AND x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s
        UNION ALL
       SELECT y.predicate, y.confidence, false
         FROM planner.edge y
        WHERE y.scope_id = %(scope_id)s AND y.src = w.dst COLLATE "C" AND y.dst = w.src COLLATE "C"
          AND y.tx_from <= %(as_of)s AND y.tx_to > %(as_of)s
        ORDER BY 2 DESC, 1, 3 DESC
        LIMIT 1
      ) e
 ORDER BY w.i
