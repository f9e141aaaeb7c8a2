-- Recall by `score_model: v2`: the lexical leg, the texts of nodes in play, and the links of the best of them.
--
-- Scores are integers, the same here and in Python (planner/recall/v2/bm25.py). Every table reference carries the
-- scope predicate. LIMIT 1 and OFFSET 0 change no result: they keep each join a look-up by its key.

-- name: lexical_corpus
-- What BM25 must know of the scope: whether its index can be read, how many current nodes it has, how long they are.
SELECT s.lexical, s.lexical_nodes, s.lexical_terms FROM planner.scope s WHERE s.scope_id = %(scope_id)s;

-- name: lexical_corpus_then
-- The same as of an older transaction, counted.
SELECT s.lexical, past.nodes, past.terms
  FROM planner.scope s
 CROSS JOIN LATERAL (
       SELECT count(*) AS nodes, coalesce(sum(l.length), 0)::bigint AS terms
         FROM planner.lexical l
        WHERE l.scope_id = %(scope_id)s AND l.tx_from <= %(as_of)s AND l.tx_to > %(as_of)s
      ) past
 WHERE s.scope_id = %(scope_id)s;

-- name: term_counts_then
-- In how many nodes these terms were as of an older transaction, counted.
SELECT r.term, count(*)
  FROM unnest(%(terms)s::bigint[]) AS r (term)
 CROSS JOIN LATERAL (
       SELECT p.doc
         FROM planner.posting p
        WHERE p.scope_id = %(scope_id)s AND p.term = r.term
       OFFSET 0
      ) p
 CROSS JOIN LATERAL (
       SELECT 1
         FROM planner.lexical l
        WHERE l.scope_id = %(scope_id)s AND l.doc = p.doc AND l.tx_from <= %(as_of)s AND l.tx_to > %(as_of)s
        LIMIT 1
      ) l
 GROUP BY r.term;

-- name: lexical_leg
-- The k best nodes by BM25 over these terms, ties of the last included. Docs are walked best first, until k of them
-- are current as of the plan and inside `{restriction}` (on `e`): what restricts is inside, before the limit.
SELECT l.node_id, s.score
  FROM (
       SELECT p.doc,
              sum(r.weight * ((1310720 * c.length * p.frequency)
                              / (8 * c.length * p.frequency + 3 * c.length + 9 * p.length * c.nodes)))::bigint AS score
         FROM (VALUES (%(nodes)s::bigint, %(length)s::bigint)) AS c (nodes, length)
        CROSS JOIN unnest(%(terms)s::bigint[], %(weights)s::bigint[]) AS r (term, weight)
        CROSS JOIN LATERAL (
              SELECT x.doc, x.frequency::bigint AS frequency, x.length::bigint AS length
                FROM planner.posting x
               WHERE x.scope_id = %(scope_id)s AND x.term = r.term
              OFFSET 0
             ) p
        GROUP BY p.doc
        ORDER BY score DESC
      ) s
 CROSS JOIN LATERAL (
       SELECT e.node_id
         FROM planner.lexical e
        WHERE e.scope_id = %(scope_id)s AND e.doc = s.doc AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
          AND {restriction}
        LIMIT 1
      ) l
 ORDER BY s.score DESC
 FETCH FIRST (%(k)s) ROWS WITH TIES;

-- name: texts
-- The terms of nodes inside `{restriction}` (on `e`).
SELECT l.node_id, l.length, l.terms, l.context
  FROM unnest(%(asked)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT e.node_id, e.length, e.terms, e.context
         FROM planner.lexical e
        WHERE e.scope_id = %(scope_id)s AND e.node_id = w.node_id COLLATE "C"
          AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
          AND {restriction}
        LIMIT 1
      ) l;

-- name: voices
-- Of nodes that somebody says: the source of their first span, and who says it.
SELECT w.node_id, ns.source_id, s.speaker
  FROM unnest(%(asked)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT n.node_id, n.tx_from
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = w.node_id COLLATE "C"
          AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
        LIMIT 1
      ) n
 CROSS JOIN LATERAL (
       SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
         FROM planner.node_span ns
        WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
        ORDER BY ns.source_id, ns.version_tx, ns.span_start, ns.span_end
        LIMIT 1
      ) ns
 CROSS JOIN LATERAL (
       SELECT s.speaker
         FROM planner.span s
        WHERE s.scope_id = %(scope_id)s AND s.source_id = ns.source_id AND s.version_tx = ns.version_tx
          AND s.span_start = ns.span_start AND s.span_end = ns.span_end AND s.speaker IS NOT NULL
        LIMIT 1
      ) s;

-- name: walk
-- The nodes up to so many `steps` before and after the roots, as far as they are inside `{restriction}`.
WITH RECURSIVE walk (node_id, is_before, steps) AS (
    SELECT r.node_id COLLATE "C", way.is_before, 0
      FROM unnest(%(asked)s::text[]) AS r (node_id)
     CROSS JOIN (VALUES (true), (false)) AS way (is_before)
    UNION ALL
    SELECT near.node_id, w.is_before, w.steps + 1
      FROM walk w
     CROSS JOIN LATERAL (
           (SELECT x.src AS node_id FROM {incoming} x WHERE x.predicate = 'next' AND w.is_before LIMIT 1)
           UNION ALL
           (SELECT x.dst FROM {outgoing} x WHERE x.predicate = 'next' AND NOT w.is_before LIMIT 1)
          ) near
     CROSS JOIN LATERAL (
           SELECT 1
             FROM planner.node n
            WHERE n.scope_id = %(scope_id)s AND n.node_id = near.node_id
              AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
              AND {restriction}
            LIMIT 1
          ) allowed
     WHERE w.steps < %(steps)s
)
SELECT w.node_id FROM walk w WHERE w.steps > 0;

-- name: standing
-- Where nodes stand: whether that is inside `{restriction}`, between which nodes, in which spans; `{provenance}` is
-- that of `expand`.
SELECT w.node_id, n.is_inside, before.src, after.dst, v.title, s.speaker,
       ns.source_id, ns.version_tx, ns.span_start, ns.span_end,
       s.kind, src.class, s.ascii_bytes, s.non_ascii_chars, s.text_hash, v.byte_length, v.erased, v.stale
  FROM unnest(%(asked)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (
       SELECT n.node_id, n.tx_from, {restriction} AS is_inside
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = w.node_id COLLATE "C"
          AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
        LIMIT 1
      ) n
{provenance}
  LEFT JOIN LATERAL (SELECT x.src FROM {incoming} x WHERE x.predicate = 'next' LIMIT 1) before ON true
  LEFT JOIN LATERAL (SELECT x.dst FROM {outgoing} x WHERE x.predicate = 'next' LIMIT 1) after ON true;

-- name: incoming
-- A fragment of the others: the edges that arrive at `{node}`, in index order. OFFSET 0 keeps conditions on the
-- predicate out: with them PostgreSQL has been seen to read the index of all edges that leave a node.
(SELECT e.src, e.confidence, e.predicate
   FROM planner.edge e
  WHERE e.scope_id = %(scope_id)s AND e.dst = {node} AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
  ORDER BY e.confidence DESC, e.predicate, e.src
 OFFSET 0);

-- name: outgoing
-- A fragment of the others: the edges that leave `{node}`, in index order.
(SELECT e.dst, e.confidence, e.predicate
   FROM planner.edge e
  WHERE e.scope_id = %(scope_id)s AND e.src = {node} AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
  ORDER BY e.confidence DESC, e.predicate, e.dst
 OFFSET 0);

-- name: links
-- What the best nodes lead to: `out` and `in` are edges of the caller's own, `mentions` the sources that a node's text
-- names, with how many texts name each (1,000 at most are counted), `mentioned` the nodes that name its source.
(SELECT 'mentions' AS link, h.node_id, near.dst AS other, near.confidence, known.times
   FROM unnest(%(hits)s::text[]) AS h (node_id)
  CROSS JOIN LATERAL (
        SELECT x.dst, x.confidence FROM {outgoing} x WHERE x.predicate = 'mentions' LIMIT %(links)s
       ) near
  CROSS JOIN LATERAL (
        SELECT count(*) AS times
          FROM (SELECT 1 FROM {naming} x WHERE x.predicate = 'mentions' LIMIT 1000) x
       ) known
  WHERE %(outwards)s)
UNION ALL
(SELECT 'mentioned', h.node_id, near.src, near.confidence, 1
   FROM unnest(%(hits)s::text[], %(named)s::text[]) AS h (node_id, source)
  CROSS JOIN LATERAL (
        SELECT x.src, x.confidence FROM {to_source} x WHERE x.predicate = 'mentions' LIMIT %(links)s
       ) near
  WHERE %(inwards)s)
UNION ALL
(SELECT 'out', h.node_id, near.dst, near.confidence, 1
   FROM unnest(%(hits)s::text[]) AS h (node_id)
  CROSS JOIN LATERAL (
        SELECT x.dst, x.confidence
          FROM {outgoing} x
         WHERE x.predicate NOT IN ('mentions', 'next', 'part_of')
         LIMIT %(fanout)s
       ) near
  WHERE %(outwards)s)
UNION ALL
(SELECT 'in', h.node_id, near.src, near.confidence, 1
   FROM unnest(%(hits)s::text[]) AS h (node_id)
  CROSS JOIN LATERAL (
        SELECT x.src, x.confidence
          FROM {incoming} x
         WHERE x.predicate NOT IN ('mentions', 'next', 'part_of')
         LIMIT %(fanout)s
       ) near
  WHERE %(inwards)s);

-- name: openings
-- The first nodes of sources, given by the nodes that stand for them; a source is found by any part of it. Ordinals
-- go on where a conversation is appended to, offsets begin anew.
SELECT w.node_id, first.node_id
  FROM unnest(%(sources)s::text[]) AS w (node_id)
 CROSS JOIN LATERAL (SELECT x.src FROM {incoming} x WHERE x.predicate = 'part_of' LIMIT 1) part
 CROSS JOIN LATERAL (
       SELECT ns.source_id
         FROM planner.node_span ns
        WHERE ns.scope_id = %(scope_id)s AND ns.node_id = part.src
        ORDER BY ns.node_id, ns.node_tx_from, ns.source_id
        LIMIT 1
      ) of_part
 CROSS JOIN LATERAL (
       SELECT n.node_id
         FROM planner.node_span ns
        CROSS JOIN LATERAL (
              SELECT n.node_id
                FROM planner.node n
               WHERE n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
                 AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
                 AND {restriction}
               LIMIT 1
             ) n
        CROSS JOIN LATERAL (
              SELECT s.ordinal
                FROM planner.span s
               WHERE s.scope_id = %(scope_id)s AND s.source_id = ns.source_id AND s.version_tx = ns.version_tx
                 AND s.span_start = ns.span_start AND s.span_end = ns.span_end
               LIMIT 1
             ) s
        WHERE ns.scope_id = %(scope_id)s AND ns.source_id = of_part.source_id
        ORDER BY s.ordinal, n.node_id
        LIMIT %(openings)s
      ) first;
