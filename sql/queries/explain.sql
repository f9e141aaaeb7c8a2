-- Why: what a plan's trace does not hold about what it left out, read from the store as of the plan.
--
-- The trace says what recall found; these statements say why the rest was not found. They are asked on demand,
-- a constant number of them however many spans are asked about, and read nothing of another scope.

-- name: explain_named
-- What a name stands for: a span of the ledger or of some node's provenance, a node, a source.
SELECT EXISTS (SELECT 1 FROM planner.span s
                WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
                  AND s.version_tx = %(version_tx)s AND s.span_start = %(start)s AND s.span_end = %(end)s)
       OR
       EXISTS (SELECT 1 FROM planner.node_span ns
                WHERE ns.scope_id = %(scope_id)s AND ns.source_id = %(source_id)s
                  AND ns.version_tx = %(version_tx)s AND ns.span_start = %(start)s AND ns.span_end = %(end)s),
       EXISTS (SELECT 1 FROM planner.node n WHERE n.scope_id = %(scope_id)s AND n.node_id = %(name)s),
       EXISTS (SELECT 1 FROM planner.source c WHERE c.scope_id = %(scope_id)s AND c.source_id = %(name)s)

-- name: explain_span
-- The span by which a span of the ledger takes part in plans: itself where a node has it among its provenance,
-- else the one of equal text in another version, since an unchanged paragraph keeps its node and that node
-- keeps the version it was derived from.
SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
  FROM planner.span asked
  JOIN planner.span same
    ON same.scope_id = %(scope_id)s AND same.source_id = asked.source_id AND same.text_hash = asked.text_hash
  JOIN planner.node_span ns
    ON ns.scope_id = %(scope_id)s AND ns.source_id = same.source_id AND ns.version_tx = same.version_tx
   AND ns.span_start = same.span_start AND ns.span_end = same.span_end
  JOIN planner.node n
    ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
 WHERE asked.scope_id = %(scope_id)s AND asked.source_id = %(source_id)s AND asked.version_tx = %(version_tx)s
   AND asked.span_start = %(start)s AND asked.span_end = %(end)s
 ORDER BY (same.version_tx = asked.version_tx AND same.span_start = asked.span_start) DESC,
          (n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s) DESC,
          same.version_tx DESC, abs(same.span_start - asked.span_start), same.span_start
 LIMIT 1

-- name: explain_node
-- The provenance of a node: of the version that was current at as_of, else of the nearest one; a row of nulls
-- where it has none.
SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
  FROM (SELECT n.node_id, n.tx_from
          FROM planner.node n
         WHERE n.scope_id = %(scope_id)s AND n.node_id = %(name)s
         ORDER BY n.tx_from > %(as_of)s, abs(n.tx_from - %(as_of)s)
         LIMIT 1) v
  LEFT JOIN planner.node_span ns
    ON ns.scope_id = %(scope_id)s AND ns.node_id = v.node_id AND ns.node_tx_from = v.tx_from
 ORDER BY ns.source_id, ns.version_tx, ns.span_start, ns.span_end

-- name: explain_source
-- The spans of a source as of the plan: those of nodes current at as_of, whichever version they were derived
-- from, and those of the version itself (its first one where the source came later), but of the ledger's only
-- those whose text no node has in any version: an unchanged text is named once, as its node names it.
WITH version AS (
    SELECT v.version_tx
      FROM planner.source_version v
     WHERE v.scope_id = %(scope_id)s AND v.source_id = %(name)s
     ORDER BY v.version_tx > %(as_of)s, abs(v.version_tx - %(as_of)s)
     LIMIT 1
), marked AS MATERIALIZED (
    SELECT s.version_tx, s.span_start, s.span_end, s.text_hash,
           EXISTS (SELECT 1 FROM planner.node_span c
                    WHERE c.scope_id = %(scope_id)s AND c.source_id = s.source_id
                      AND c.version_tx = s.version_tx AND c.span_start = s.span_start
                      AND c.span_end = s.span_end) AS carried
      FROM planner.span s
     WHERE s.scope_id = %(scope_id)s AND s.source_id = %(name)s
)
SELECT %(name)s::text, ns.version_tx, ns.span_start, ns.span_end
  FROM planner.node_span ns
  LEFT JOIN planner.node n
    ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
   AND n.tx_from <= %(as_of)s AND n.tx_to > %(as_of)s
 WHERE ns.scope_id = %(scope_id)s AND ns.source_id = %(name)s
   AND (n.node_id IS NOT NULL OR ns.version_tx = (SELECT version_tx FROM version))
UNION
SELECT %(name)s::text, m.version_tx, m.span_start, m.span_end
  FROM (SELECT marked.*, bool_or(marked.carried) OVER (PARTITION BY marked.text_hash) AS text_carried
          FROM marked) m
 WHERE m.version_tx = (SELECT version_tx FROM version) AND NOT m.text_carried
 ORDER BY version_tx, span_start, span_end

-- name: explain_texts
-- The canonical texts in which a phrase can be, with their spans: those that hold `needle`, or all of them.
-- A phrase may cross from one span into the next, so whole texts are searched; they are streamed. A span of the
-- ledger counts unless its text is a node's in another version only, by which it is named then.
WITH holding AS MATERIALIZED (
    SELECT v.source_id, v.version_tx
      FROM planner.source_version v
     WHERE v.scope_id = %(scope_id)s AND v.body IS NOT NULL
       AND (%(needle)s::bytea IS NULL OR position(%(needle)s::bytea IN v.body) > 0)
), marked AS MATERIALIZED (
    SELECT s.source_id, s.version_tx, s.span_start, s.span_end, s.text_hash,
           EXISTS (SELECT 1 FROM planner.node_span c
                    WHERE c.scope_id = %(scope_id)s AND c.source_id = s.source_id
                      AND c.version_tx = s.version_tx AND c.span_start = s.span_start
                      AND c.span_end = s.span_end) AS carried
      FROM planner.span s
     WHERE s.scope_id = %(scope_id)s AND s.source_id IN (SELECT h.source_id FROM holding h)
), own AS (
    SELECT m.source_id, m.version_tx, m.span_start, m.span_end
      FROM (SELECT marked.*,
                   bool_or(marked.carried) OVER (PARTITION BY marked.source_id, marked.text_hash) AS text_carried
              FROM marked) m
     WHERE m.carried OR NOT m.text_carried
     UNION
    SELECT ns.source_id, ns.version_tx, ns.span_start, ns.span_end
      FROM planner.node_span ns
     WHERE ns.scope_id = %(scope_id)s AND ns.source_id IN (SELECT h.source_id FROM holding h)
), spans AS MATERIALIZED (
    SELECT o.source_id, o.version_tx,
           array_agg(o.span_start ORDER BY o.span_start, o.span_end) AS starts,
           array_agg(o.span_end ORDER BY o.span_start, o.span_end) AS ends
      FROM own o
      JOIN holding h ON h.source_id = o.source_id AND h.version_tx = o.version_tx
     GROUP BY o.source_id, o.version_tx
)
SELECT v.source_id, v.version_tx, v.body, s.starts, s.ends
  FROM spans s
  JOIN planner.source_version v
    ON v.scope_id = %(scope_id)s AND v.source_id = s.source_id AND v.version_tx = s.version_tx

-- name: explain_carriers
-- The nodes that have these spans among their provenance, in every version of theirs, or (position 0) all
-- versions of one node; each judged by the request's filters. `{restriction}` is `must` and window together.
WITH carrier AS (
    SELECT t.i, ns.node_id, ns.node_tx_from
      FROM unnest(%(sources)s::text[], %(versions)s::bigint[], %(starts)s::bigint[], %(ends)s::bigint[])
           WITH ORDINALITY AS t (source_id, version_tx, span_start, span_end, i)
      JOIN planner.node_span ns
        ON ns.scope_id = %(scope_id)s AND ns.source_id = t.source_id COLLATE "C"
       AND ns.version_tx = t.version_tx AND ns.span_start = t.span_start AND ns.span_end = t.span_end
    UNION ALL
    SELECT 0, x.node_id, x.tx_from
      FROM planner.node x
     WHERE x.scope_id = %(scope_id)s AND x.node_id = %(node_id)s
)
SELECT c.i, n.node_id, n.tx_from, n.tx_to, {must}, {restriction}, {match}
  FROM carrier c
  JOIN planner.node n
    ON n.scope_id = %(scope_id)s AND n.node_id = c.node_id AND n.tx_from = c.node_tx_from

-- name: explain_versions
-- What became of source versions: when they were erased, and which version was the newest as of the plan.
SELECT v.source_id, v.version_tx, v.erased_tx,
       (SELECT max(x.version_tx) FROM planner.source_version x
         WHERE x.scope_id = %(scope_id)s AND x.source_id = v.source_id AND x.version_tx <= %(as_of)s)
  FROM (SELECT DISTINCT t.source_id, t.version_tx
          FROM unnest(%(sources)s::text[], %(versions)s::bigint[]) AS t (source_id, version_tx)) t
  JOIN planner.source_version v
    ON v.scope_id = %(scope_id)s AND v.source_id = t.source_id COLLATE "C" AND v.version_tx = t.version_tx

-- name: explain_universe
-- Every vector that the semantic leg could have found: the scope's, as of the plan, inside the restriction.
-- Ranks are counted from it in Python, exactly as recall decides them; the rows are streamed.
SELECT e.node_id, e.vec
  FROM planner.embedding e
 WHERE e.scope_id = %(scope_id)s AND e.model_id = %(model_id)s
   AND e.tx_from <= %(as_of)s AND e.tx_to > %(as_of)s
   AND {restriction}

-- name: explain_reach
-- Which of these nodes a walk would have reached without the limit of `fanout`: from the roots, and from what
-- was found but was no root. `{edges}` are the arms of recall's own walk. Of the paths that reach a node at one
-- hop the first is kept, since any shows that there is one.
WITH RECURSIVE walk (is_root, node_id, hops, path) AS (
    SELECT f.is_root, f.node_id COLLATE "C", 0, ARRAY[f.node_id COLLATE "C"]
      FROM unnest(%(found)s::text[], %(is_root)s::boolean[]) AS f (node_id, is_root)
    UNION ALL
    SELECT step.is_root, step.node_id, step.hops, step.path
      FROM (SELECT DISTINCT ON (w.is_root, near.node_id)
                   w.is_root, near.node_id, w.hops + 1 AS hops, w.path || near.node_id AS path
              FROM walk w
             CROSS JOIN LATERAL ({edges}) near
             WHERE w.hops < %(hops)s
             ORDER BY w.is_root, near.node_id, path) step
)
SELECT DISTINCT ON (w.node_id, w.is_root) w.node_id, w.is_root, w.path
  FROM walk w
 WHERE w.hops > 0 AND w.node_id = ANY (%(nodes)s::text[])
 ORDER BY w.node_id, w.is_root, w.hops, w.path
