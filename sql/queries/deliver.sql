-- Delivery: what surrounds the spans that a plan selected, as of the plan, and what was delivered.
--
-- A document is a book, the chain of versions that append made of one source (often a single version), or the
-- books of all sources of one conversation by their positions. A constant number of statements, however many
-- spans are asked about; each finds its rows by key, and none reads a body but by slices.

-- name: deliver_sources
-- These sources, and all others of the conversations that they are turns of. `bases` are the versions that extend
-- nothing: each begins a book, which ends before the next. Then the newest version as of the plan, whether that one
-- was withdrawn by then or is erased, and the newest of all.
WITH asked AS MATERIALIZED (
    SELECT s.source_id, s.class, s.conversation_id, s.position
      FROM unnest(%(sources)s::text[]) AS w (source_id)
     CROSS JOIN LATERAL (
           SELECT x.source_id, x.class, x.conversation_id, x.position
             FROM planner.source x
            WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C"
            LIMIT 1
          ) s
), member AS MATERIALIZED (
    SELECT a.source_id, a.class, a.conversation_id, a.position FROM asked a WHERE a.conversation_id IS NULL
     UNION ALL
    SELECT t.source_id, t.class, c.conversation_id, t.position
      FROM (SELECT DISTINCT a.conversation_id FROM asked a WHERE a.conversation_id IS NOT NULL) c
     CROSS JOIN LATERAL (
           SELECT y.source_id, y.class, y.position
             FROM planner.source y
            WHERE y.scope_id = %(scope_id)s AND y.conversation_id = c.conversation_id
           OFFSET 0
          ) t
)
SELECT m.source_id, m.class, m.conversation_id, m.position, v.bases, v.latest, v.gone, v.newest
  FROM member m
 CROSS JOIN LATERAL (
       SELECT array_agg(z.version_tx ORDER BY z.version_tx) FILTER (WHERE z.extends_tx IS NULL) AS bases,
              max(z.version_tx) FILTER (WHERE z.version_tx <= %(as_of)s) AS latest,
              (array_agg(coalesce(z.withdrawn_tx <= %(as_of)s, false) OR z.erased_tx IS NOT NULL
                         ORDER BY z.version_tx DESC) FILTER (WHERE z.version_tx <= %(as_of)s))[1] AS gone,
              max(z.version_tx) AS newest
         FROM planner.source_version z
        WHERE z.scope_id = %(scope_id)s AND z.source_id = m.source_id
      ) v

-- name: deliver_equals
-- The spans of these books that have one of these texts, in order.
SELECT r.i, s.version_tx, s.span_start, s.span_end, s.kind, s.text_hash
  FROM unnest(%(sources)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[])
       WITH ORDINALITY AS r (source_id, first_tx, last_tx, i)
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.span_start, x.span_end, x.kind, x.text_hash
         FROM planner.span x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = r.source_id COLLATE "C"
          AND x.version_tx BETWEEN r.first_tx AND r.last_tx
          AND x.text_hash = ANY (%(hashes)s::bytea[])
       OFFSET 0
      ) s
 ORDER BY r.i, s.version_tx, s.span_start, s.span_end

-- name: deliver_ordinals
-- The ordinals of these spans in their books, and which of them the ledger does not have.
SELECT w.i, s.ordinal
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[], %(starts)s::bigint[], %(ends)s::bigint[])
       WITH ORDINALITY AS w (source_id, version_tx, span_start, span_end, i)
 CROSS JOIN LATERAL (
       SELECT x.ordinal
         FROM planner.span x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C" AND x.version_tx = w.version_tx
          AND x.span_start = w.span_start AND x.span_end = w.span_end
        LIMIT 1
      ) s

-- name: deliver_lengths
-- How many spans each of these books has: its last one says it.
SELECT r.i, s.ordinal + 1
  FROM unnest(%(sources)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[])
       WITH ORDINALITY AS r (source_id, first_tx, last_tx, i)
 CROSS JOIN LATERAL (
       SELECT x.ordinal
         FROM planner.span x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = r.source_id COLLATE "C"
          AND x.version_tx BETWEEN r.first_tx AND r.last_tx
        ORDER BY x.version_tx DESC, x.span_start DESC, x.span_end DESC
        LIMIT 1
      ) s

-- name: deliver_passages
-- From a place in each of these books, so many spans back and ahead (null: all of them), the place's own among
-- those ahead. What a turn's node says comes with it: its time, and its role beside a speaker.
SELECT r.i, s.version_tx, s.span_start, s.span_end, s.kind, s.ordinal, s.heading_path, s.speaker, s.text_hash,
       t.node_id IS NOT NULL, t.at, t.observed_at, t.role
  FROM unnest(%(sources)s::text[], %(firsts)s::bigint[], %(lasts)s::bigint[], %(versions)s::bigint[],
              %(starts)s::bigint[], %(ends)s::bigint[], %(back)s::bigint[], %(ahead)s::bigint[])
       WITH ORDINALITY
       AS r (source_id, first_tx, last_tx, version_tx, span_start, span_end, back, ahead, i)
 CROSS JOIN LATERAL (
       (SELECT x.version_tx, x.span_start, x.span_end, x.kind, x.ordinal, x.heading_path, x.speaker, x.text_hash
          FROM planner.span x
         WHERE x.scope_id = %(scope_id)s AND x.source_id = r.source_id COLLATE "C" AND x.version_tx >= r.first_tx
           AND (x.version_tx, x.span_start, x.span_end) < (r.version_tx, r.span_start, r.span_end)
         ORDER BY x.version_tx DESC, x.span_start DESC, x.span_end DESC
         LIMIT r.back)
       UNION ALL
       (SELECT y.version_tx, y.span_start, y.span_end, y.kind, y.ordinal, y.heading_path, y.speaker, y.text_hash
          FROM planner.span y
         WHERE y.scope_id = %(scope_id)s AND y.source_id = r.source_id COLLATE "C" AND y.version_tx <= r.last_tx
           AND (y.version_tx, y.span_start, y.span_end) >= (r.version_tx, r.span_start, r.span_end)
         ORDER BY y.version_tx, y.span_start, y.span_end
         LIMIT r.ahead)
      ) s
  LEFT JOIN LATERAL (
       SELECT n.node_id, n.valid_from AS at, n.observed_at, n.attributes ->> 'role' AS role
         FROM planner.node_span ns
         JOIN planner.node n
           ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
        WHERE s.kind = 'message'
          AND ns.scope_id = %(scope_id)s AND ns.source_id = r.source_id COLLATE "C"
          AND ns.version_tx = s.version_tx AND ns.span_start = s.span_start AND ns.span_end = s.span_end
        ORDER BY (n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s) DESC, n.valid_from, n.node_id
        LIMIT 1
      ) t ON true

-- name: deliver_turns
-- The same of nodes by their ids, as of the plan: an unchanged turn keeps the node that an older version gave it.
SELECT n.node_id, n.valid_from, n.observed_at, n.attributes ->> 'role'
  FROM planner.node n
 WHERE n.scope_id = %(scope_id)s AND n.node_id = ANY (%(nodes)s::text[])
   AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s

-- name: deliver_volumes
-- What is said once of each of these source versions, of an erased one only that; and what derived text was made
-- from: `{stale}` says whether that has changed since.
SELECT v.source_id, v.version_tx, v.byte_length, v.trust, CASE WHEN v.erased_tx IS NULL THEN v.actor END, v.title,
       v.uri, CASE WHEN v.erased_tx IS NULL THEN v.observed_at END, v.erased_tx IS NOT NULL, m.refs,
       m.refs IS NOT NULL AND {stale}
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[]) AS w (source_id, version_tx)
 CROSS JOIN LATERAL (
       SELECT x.source_id, x.version_tx, x.byte_length, x.trust, x.actor, x.title, x.uri, x.observed_at, x.erased_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C" AND x.version_tx = w.version_tx
        LIMIT 1
      ) v
 CROSS JOIN LATERAL (
       SELECT array_agg(e.from_source_id || '@' || e.from_version_tx || ':' || e.from_start || '-' || e.from_end
                        ORDER BY e.from_source_id, e.from_version_tx, e.from_start, e.from_end) AS refs
         FROM planner.derivation e
        WHERE e.scope_id = %(scope_id)s AND e.source_id = v.source_id AND e.version_tx = v.version_tx
      ) m

-- name: persist_delivery
-- Write down one delivery: what each envelope holds, what was skipped and cut, and no text. One that is there was
-- written by an attempt whose answer was lost.
INSERT INTO planner.delivery (scope_id, delivery_id, plan_id, created_at, unit, framing_version, counter, budget,
       used, delivery_hash, options, items, skipped, cuts)
VALUES (%(scope_id)s, %(delivery_id)s, %(plan_id)s, %(created_at)s, %(unit)s, %(framing_version)s, %(counter)s,
       %(budget)s, %(used)s, %(delivery_hash)s, %(options)s::jsonb, %(items)s::jsonb, %(skipped)s::jsonb,
       %(cuts)s::jsonb)
ON CONFLICT (scope_id, delivery_id) DO NOTHING

-- name: plan_deliveries
-- The deliveries of a plan, oldest first.
SELECT d.delivery_id, d.created_at, d.unit, d.framing_version, d.counter, d.budget, d.used, d.delivery_hash,
       d.options, d.items, d.skipped, d.cuts
  FROM planner.delivery d
 WHERE d.scope_id = %(scope_id)s AND d.plan_id = %(plan_id)s
 ORDER BY d.delivery_id
