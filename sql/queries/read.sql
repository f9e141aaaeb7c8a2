-- Reading the store: the span ledger, sources and their versions.

-- name: span_row
-- One row of the span ledger.
SELECT s.kind, s.ordinal, s.ascii_bytes, s.non_ascii_chars, s.text_hash, s.heading_path, s.speaker, s.message_id
  FROM planner.span s
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s AND s.version_tx = %(version_tx)s
   AND s.span_start = %(start)s AND s.span_end = %(end)s

-- name: list_sources
-- The sources of a scope, each with its newest version, in order of id, after `after` (keyset pages). Bytes and
-- spans are those of the chain that the version ends.
SELECT s.source_id, s.media_type, s.class, v.version_tx, v.title, v.trust,
       (SELECT sum(c.byte_length)::bigint FROM planner.source_version c
         WHERE c.scope_id = %(scope_id)s AND c.source_id = s.source_id AND c.version_tx >= first.version_tx),
       v.observed_at, v.erased_tx IS NOT NULL, v.withdrawn_tx IS NOT NULL,
       (SELECT count(*) FROM planner.span p
         WHERE p.scope_id = %(scope_id)s AND p.source_id = s.source_id AND p.version_tx >= first.version_tx)
  FROM planner.source s
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.title, x.trust, x.observed_at, x.erased_tx, x.withdrawn_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) v
 CROSS JOIN LATERAL (
       SELECT y.version_tx
         FROM planner.source_version y
        WHERE y.scope_id = %(scope_id)s AND y.source_id = s.source_id AND y.extends_tx IS NULL
        ORDER BY y.version_tx DESC
        LIMIT 1
      ) first
 WHERE s.scope_id = %(scope_id)s AND s.source_id > %(after)s COLLATE "C"
 ORDER BY s.source_id
 LIMIT %(limit)s

-- name: show_source
-- One source with its newest version, described; its length is that of the chain that the version ends.
SELECT s.source_id, s.media_type, s.class, s.conversation_id, s.position, v.version_tx, v.title, v.uri, v.trust,
       v.actor, v.attributes, v.observed_at,
       (SELECT sum(c.byte_length)::bigint FROM planner.source_version c
         WHERE c.scope_id = %(scope_id)s AND c.source_id = s.source_id
           AND c.version_tx >= (SELECT max(b.version_tx)
                                  FROM planner.source_version b
                                 WHERE b.scope_id = %(scope_id)s AND b.source_id = s.source_id
                                   AND b.extends_tx IS NULL)),
       v.text_hash, v.parser_version, l.recorded_at, v.erased_tx IS NOT NULL, v.withdrawn_tx IS NOT NULL,
       (SELECT count(*) FROM planner.source_version x
         WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id),
       v.extends_tx IS NOT NULL
  FROM planner.source s
  JOIN planner.source_version v
    ON v.scope_id = %(scope_id)s AND v.source_id = s.source_id
  JOIN planner.ledger l
    ON l.scope_id = %(scope_id)s AND l.tx = v.version_tx
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
 ORDER BY v.version_tx DESC
 LIMIT 1

-- name: source_spans
-- The span ledger of a source's newest chain, in order.
SELECT s.version_tx, s.span_start, s.span_end, s.kind, s.ordinal, s.ascii_bytes, s.non_ascii_chars, s.text_hash,
       s.heading_path, s.speaker, s.message_id
  FROM planner.span s
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
   AND s.version_tx >= (SELECT max(b.version_tx)
                          FROM planner.source_version b
                         WHERE b.scope_id = %(scope_id)s AND b.source_id = %(source_id)s AND b.extends_tx IS NULL)
 ORDER BY s.ordinal
