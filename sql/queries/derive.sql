-- Derived text: what a cache was made from, and whether that still holds.
--
-- A cache is a source of class `cache`; each version of it names the spans that it was made from, by their
-- versions. A version can only name versions before it, so that there is no circle.

-- name: derivable
-- Of spans that a cache is to be made from: whether the ledger has each, whether its text is erased, and the span
-- that stands for it now with how far its source is trusted. A plan names the version that a node was derived from,
-- which may be an old one; where the newest chain of the source has the same text, that is what was read. Not so
-- of the cache itself (`source_id`), which may be made from its version before. In the order in which they were
-- asked.
SELECT s.kind IS NOT NULL, v.erased_tx IS NOT NULL, coalesce(n.version_tx, w.version_tx),
       coalesce(n.span_start, w.span_start), coalesce(n.span_end, w.span_end), coalesce(n.trust, v.trust)
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[], %(starts)s::bigint[], %(ends)s::bigint[])
       WITH ORDINALITY AS w (source_id, version_tx, span_start, span_end, i)
  LEFT JOIN LATERAL (
       SELECT y.kind, y.text_hash
         FROM planner.span y
        WHERE y.scope_id = %(scope_id)s AND y.source_id = w.source_id COLLATE "C" AND y.version_tx = w.version_tx
          AND y.span_start = w.span_start AND y.span_end = w.span_end
        LIMIT 1
      ) s ON true
  LEFT JOIN LATERAL (
       SELECT x.erased_tx, x.trust
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = w.source_id COLLATE "C" AND x.version_tx = w.version_tx
        LIMIT 1
      ) v ON true
  LEFT JOIN LATERAL (
       SELECT z.version_tx, z.span_start, z.span_end, c.trust
         FROM planner.span z
         JOIN planner.source_version c
           ON c.scope_id = %(scope_id)s AND c.source_id = w.source_id COLLATE "C" AND c.version_tx = z.version_tx
        WHERE z.scope_id = %(scope_id)s AND z.source_id = w.source_id COLLATE "C" AND z.source_id <> %(source_id)s
          AND z.kind = s.kind AND z.text_hash = s.text_hash
          AND z.version_tx >= (SELECT max(b.version_tx)
                                 FROM planner.source_version b
                                WHERE b.scope_id = %(scope_id)s AND b.source_id = w.source_id COLLATE "C"
                                  AND b.extends_tx IS NULL)
        ORDER BY z.version_tx <> w.version_tx, abs(z.span_start - w.span_start), z.version_tx, z.span_start
        LIMIT 1
      ) n ON true
 ORDER BY w.i

-- name: stale_derivation
-- A fragment: whether the source version `v` (v.source_id, v.version_tx) is stale as of `as_of`, always false for
-- what was not derived. It is, where for something that it was made from, or that this was made from in turn, at
-- version V, one of these holds at or before as_of: the source has a version after V that does not extend the one
-- before it (a turn that is appended changes nothing that was cited); the source was withdrawn; it was erased. A
-- cache may be made from its own version before, which a newer version of itself does not make stale.
--
-- Withdrawal and erasure mark the newest version of a source, so that the newest as of then tells; OFFSET 0 keeps
-- each step a look-up by key.
EXISTS (WITH RECURSIVE origin (source_id, version_tx, is_self) AS (
            SELECT d.from_source_id, d.from_version_tx, d.from_source_id = d.source_id
              FROM planner.derivation d
             WHERE d.scope_id = %(scope_id)s AND d.source_id = v.source_id AND d.version_tx = v.version_tx
            UNION
            SELECT f.from_source_id, f.from_version_tx, f.from_source_id = o.source_id
              FROM origin o
             CROSS JOIN LATERAL (
                   SELECT e.from_source_id, e.from_version_tx
                     FROM planner.derivation e
                    WHERE e.scope_id = %(scope_id)s AND e.source_id = o.source_id AND e.version_tx = o.version_tx
                   OFFSET 0
                  ) f
        )
        SELECT 1
          FROM (SELECT o.source_id, o.is_self, min(o.version_tx) AS version_tx
                  FROM origin o
                 GROUP BY o.source_id, o.is_self) first
         CROSS JOIN LATERAL (
               SELECT x.version_tx, x.withdrawn_tx, x.erased_tx
                 FROM planner.source_version x
                WHERE x.scope_id = %(scope_id)s AND x.source_id = first.source_id AND x.version_tx <= %(as_of)s
                ORDER BY x.version_tx DESC
                LIMIT 1
              ) newest
         WHERE newest.withdrawn_tx <= %(as_of)s
            OR newest.erased_tx <= %(as_of)s
            OR (NOT first.is_self
                AND EXISTS (SELECT 1
                              FROM planner.source_version y
                             WHERE y.scope_id = %(scope_id)s AND y.source_id = first.source_id
                               AND y.version_tx > first.version_tx AND y.version_tx <= newest.version_tx
                               AND y.extends_tx IS NULL)))
