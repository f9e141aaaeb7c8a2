-- Erasure: what a source said is taken out of every table that holds it. Ids, offsets, hashes and times stay, so
-- that the ledger and the traces of plans remain whole.

-- name: erasable
-- A source and the caches that were made from it, from those in turn, and so on, each with how many of its
-- versions still have their text.
WITH RECURSIVE derived (source_id) AS (
    SELECT s.source_id
      FROM planner.source s
     WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
    UNION
    SELECT c.source_id
      FROM derived r
      JOIN planner.derivation d
        ON d.scope_id = %(scope_id)s AND d.from_source_id = r.source_id
      JOIN planner.source c
        ON c.scope_id = %(scope_id)s AND c.source_id = d.source_id AND c.class = 'cache'
)
SELECT r.source_id,
       (SELECT count(*) FROM planner.source_version v
         WHERE v.scope_id = %(scope_id)s AND v.source_id = r.source_id AND v.erased_tx IS NULL)
  FROM derived r
 ORDER BY r.source_id <> %(source_id)s, r.source_id

-- name: erase_counts
-- Delete the cached token counts of every text of these sources.
DELETE FROM planner.token_count AS t
 WHERE t.scope_id = %(scope_id)s
   AND t.text_hash IN (SELECT s.text_hash FROM planner.span s
                        WHERE s.scope_id = %(scope_id)s AND s.source_id = ANY (%(sources)s::text[]))

-- name: erase_versions
-- Empty what every version of these sources said, and say when.
UPDATE planner.source_version AS v
   SET body = NULL, title = NULL, uri = NULL, attributes = '{}', erased_tx = %(tx)s
 WHERE v.scope_id = %(scope_id)s AND v.source_id = ANY (%(sources)s::text[]) AND v.erased_tx IS NULL

-- name: erase_spans
-- Empty heading paths, speakers and message ids in the span ledger.
UPDATE planner.span AS s SET heading_path = '{}', speaker = NULL, message_id = NULL
 WHERE s.scope_id = %(scope_id)s AND s.source_id = ANY (%(sources)s::text[])

-- name: erase_nodes
-- Empty the labels and attributes of every version of a node that derives from these sources, and of the nodes
-- that stand for them.
UPDATE planner.node AS n SET label = '', attributes = '{}'
 WHERE n.scope_id = %(scope_id)s AND n.node_id = ANY (%(nodes)s::text[])
   AND (n.node_id = ANY (%(source_nodes)s::text[])
        OR EXISTS (SELECT 1 FROM planner.node_span ns
                    WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
                      AND ns.source_id = ANY (%(sources)s::text[])))

-- name: erase_embeddings
-- Delete the vectors of nodes that derive from these sources. A vector that was current with a version of its
-- node which derives from none of them is that version's too, and stays.
DELETE FROM planner.embedding AS e
 WHERE e.scope_id = %(scope_id)s AND e.node_id = ANY (%(nodes)s::text[])
   AND NOT EXISTS (SELECT 1
                     FROM planner.node n
                    WHERE n.scope_id = %(scope_id)s AND n.node_id = e.node_id
                      AND n.tx_from < e.tx_to AND n.tx_to > e.tx_from
                      AND NOT EXISTS (SELECT 1 FROM planner.node_span ns
                                       WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id
                                         AND ns.node_tx_from = n.tx_from
                                         AND ns.source_id = ANY (%(sources)s::text[])))

-- name: scrub
-- Write the tables anew, without the dead rows that still hold what was erased: a plain vacuum frees them, and
-- leaves their bytes. VERBOSE says how many had to stay because some transaction can still see them.
VACUUM (FULL, VERBOSE) {tables}
