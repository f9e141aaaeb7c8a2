-- Change over time: conversations that grow by their new turns, sources that are withdrawn, versions that go.
--
-- A version with `extends_tx` holds what comes after the version before it. A chain is a version that extends
-- nothing and all that follow it until the next such one; the text of the source is theirs, one after another.

-- name: chain_texts
-- The texts of the newest chain of each of these sources, in order: together they are the source's whole text.
SELECT v.source_id, v.body, v.parser_version
  FROM unnest(%(sources)s::text[]) AS w (source_id)
 CROSS JOIN LATERAL (
       SELECT max(b.version_tx) AS version_tx
         FROM planner.source_version b
        WHERE b.scope_id = %(scope_id)s AND b.source_id = w.source_id COLLATE "C" AND b.extends_tx IS NULL
      ) first
  JOIN planner.source_version v
    ON v.scope_id = %(scope_id)s AND v.source_id = w.source_id COLLATE "C" AND v.version_tx >= first.version_tx
 ORDER BY v.source_id, v.version_tx

-- name: conversation_tail
-- Where a conversation stands: its newest version with what that says of it, and the last span. Two look-ups by
-- key, however long it is.
SELECT v.version_tx, v.title, v.uri, v.trust, v.attributes, v.observed_at, s.class, s.media_type,
       s.conversation_id, s.position, v.erased_tx IS NOT NULL OR v.withdrawn_tx IS NOT NULL,
       p.kind, p.ordinal, p.text_hash
  FROM planner.source s
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.title, x.uri, x.trust, x.attributes, x.observed_at, x.erased_tx, x.withdrawn_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) v
  LEFT JOIN LATERAL (
       SELECT y.kind, y.ordinal, y.text_hash
         FROM planner.span y
        WHERE y.scope_id = %(scope_id)s AND y.source_id = s.source_id AND y.version_tx = v.version_tx
        ORDER BY y.span_start DESC
        LIMIT 1
      ) p ON true
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s

-- name: known_messages
-- Which of these messages a conversation has now, by the ids that they were given, and their pieces' hashes. A
-- message counts by its nodes: a version that left it out ended them.
SELECT DISTINCT s.message_id, s.text_hash
  FROM planner.span s
  JOIN planner.node_span ns
    ON ns.scope_id = %(scope_id)s AND ns.source_id = s.source_id AND ns.version_tx = s.version_tx
   AND ns.span_start = s.span_start AND ns.span_end = s.span_end
  JOIN planner.node n
    ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
   AND n.tx_to = 9223372036854775807
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s
   AND s.message_id IS NOT NULL AND s.message_id = ANY (%(messages)s::text[])

-- name: taken_nodes
-- Which of these nodes are current, and their position in their conversation.
SELECT n.node_id, (n.attributes ->> 'position')::bigint
  FROM planner.node n
 WHERE n.scope_id = %(scope_id)s AND n.node_id = ANY (%(nodes)s::text[]) AND n.tx_to = 9223372036854775807

-- name: vanished_sources
-- The sources that came from a file below one of these folders which is not among the files found there, nor
-- themselves among those kept. The ledger says where a version came from.
SELECT s.source_id, v.version_tx
  FROM planner.source s
 CROSS JOIN LATERAL (
       SELECT x.version_tx, x.erased_tx, x.withdrawn_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) v
  JOIN planner.ledger l
    ON l.scope_id = %(scope_id)s AND l.tx = v.version_tx
 WHERE s.scope_id = %(scope_id)s AND v.erased_tx IS NULL AND v.withdrawn_tx IS NULL
   AND l.detail ->> 'folder' = ANY (%(folders)s::text[]) AND l.detail ->> 'file' <> ALL (%(files)s::text[])
   AND s.source_id <> ALL (%(kept)s::text[])
 ORDER BY s.source_id

-- name: derived_nodes
-- The nodes that derive from these sources in any version of theirs, and whether they do so now; with them the
-- nodes that stand for the sources themselves.
SELECT ns.node_id, bool_or(n.tx_to = 9223372036854775807)
  FROM planner.node_span ns
  JOIN planner.node n
    ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
 WHERE ns.scope_id = %(scope_id)s AND ns.source_id = ANY (%(sources)s::text[])
 GROUP BY ns.node_id
UNION ALL
SELECT own.node_id, bool_or(own.tx_to = 9223372036854775807)
  FROM planner.node own
 WHERE own.scope_id = %(scope_id)s AND own.node_id = ANY (%(source_nodes)s::text[])
 GROUP BY own.node_id

-- name: withdraw_versions
-- Mark the newest versions of sources as withdrawn at this transaction; their texts and their past stay.
UPDATE planner.source_version AS v SET withdrawn_tx = %(tx)s
  FROM unnest(%(sources)s::text[], %(versions)s::bigint[]) AS r (source_id, version_tx)
 WHERE v.scope_id = %(scope_id)s AND v.source_id = r.source_id COLLATE "C" AND v.version_tx = r.version_tx

-- name: source_versions
-- Every version of a source in order, what became of it, and what keeps it: whether a current node or a cache
-- derives from it, and how many spans of it kept plans selected.
SELECT v.version_tx, l.recorded_at, v.actor, l.action, v.title, v.byte_length, v.text_hash, v.parser_version,
       v.extends_tx, v.erased_tx, v.withdrawn_tx,
       (SELECT count(*) FROM planner.span s
         WHERE s.scope_id = %(scope_id)s AND s.source_id = v.source_id AND s.version_tx = v.version_tx),
       EXISTS (SELECT 1
                 FROM planner.node_span ns
                 JOIN planner.node n
                   ON n.scope_id = %(scope_id)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
                  AND n.tx_to = 9223372036854775807
                WHERE ns.scope_id = %(scope_id)s AND ns.source_id = v.source_id AND ns.version_tx = v.version_tx),
       EXISTS (SELECT 1 FROM planner.derivation d
                WHERE d.scope_id = %(scope_id)s AND d.from_source_id = v.source_id
                  AND d.from_version_tx = v.version_tx),
       (SELECT count(*) FROM planner.plan_candidate c
         WHERE c.scope_id = %(scope_id)s AND c.source_id = v.source_id AND c.version_tx = v.version_tx
           AND c.outcome = 'selected')
  FROM planner.source_version v
  JOIN planner.ledger l
    ON l.scope_id = %(scope_id)s AND l.tx = v.version_tx
 WHERE v.scope_id = %(scope_id)s AND v.source_id = %(source_id)s
 ORDER BY v.version_tx

-- name: prune_node_spans
-- Forget what nodes derive from these versions; the nodes' own versions come back, to see which lost all.
DELETE FROM planner.node_span AS ns
 WHERE ns.scope_id = %(scope_id)s AND ns.source_id = %(source_id)s AND ns.version_tx = ANY (%(versions)s::bigint[])
RETURNING ns.node_id, ns.node_tx_from

-- name: prune_nodes
-- Delete the versions of nodes that have ended and derive from nothing any more.
DELETE FROM planner.node AS n
 USING unnest(%(nodes)s::text[], %(since)s::bigint[]) AS r (node_id, tx_from)
 WHERE n.scope_id = %(scope_id)s AND n.node_id = r.node_id COLLATE "C" AND n.tx_from = r.tx_from
   AND n.tx_to < 9223372036854775807
   AND NOT EXISTS (SELECT 1 FROM planner.node_span ns
                    WHERE ns.scope_id = %(scope_id)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from)

-- name: prune_embeddings
-- Delete the vectors that were current only with versions of these nodes that are gone.
DELETE FROM planner.embedding AS e
 WHERE e.scope_id = %(scope_id)s AND e.node_id = ANY (%(nodes)s::text[]) AND e.tx_to < 9223372036854775807
   AND NOT EXISTS (SELECT 1 FROM planner.node n
                    WHERE n.scope_id = %(scope_id)s AND n.node_id = e.node_id
                      AND n.tx_from < e.tx_to AND n.tx_to > e.tx_from)

-- name: prune_edges
-- Delete ended edges at those of these nodes of which no version is left.
DELETE FROM planner.edge AS e
 USING unnest(%(nodes)s::text[]) AS r (node_id)
 WHERE e.scope_id = %(scope_id)s AND (e.src = r.node_id COLLATE "C" OR e.dst = r.node_id COLLATE "C")
   AND e.tx_to < 9223372036854775807
   AND NOT EXISTS (SELECT 1 FROM planner.node n
                    WHERE n.scope_id = %(scope_id)s AND n.node_id = r.node_id COLLATE "C")

-- name: prune_derivations
-- Forget what these versions of a cache were made from.
DELETE FROM planner.derivation AS d
 WHERE d.scope_id = %(scope_id)s AND d.source_id = %(source_id)s AND d.version_tx = ANY (%(versions)s::bigint[])

-- name: prune_spans
-- Delete the span ledger of these versions.
DELETE FROM planner.span AS s
 WHERE s.scope_id = %(scope_id)s AND s.source_id = %(source_id)s AND s.version_tx = ANY (%(versions)s::bigint[])

-- name: prune_versions
-- Delete these versions of a source; nothing refers to them any more.
DELETE FROM planner.source_version AS v
 WHERE v.scope_id = %(scope_id)s AND v.source_id = %(source_id)s AND v.version_tx = ANY (%(versions)s::bigint[])

-- name: lock_scope
-- Keep out the scope's writers and the traces of its plans until the end of the transaction, before it is deleted.
SELECT s.live_nodes FROM planner.scope s WHERE s.scope_id = %(scope_id)s FOR UPDATE

-- name: empty_scope
-- Delete everything in a scope but its ledger, as planner_owner. One list; a test compares it with the catalogue.
-- Foreign keys are checked at the end of the statement, when both ends are gone.
WITH api_token AS (DELETE FROM planner.api_token AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     expectation AS (DELETE FROM planner.expectation AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     delivery AS (DELETE FROM planner.delivery AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     plan_node AS (DELETE FROM planner.plan_node AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     plan_candidate AS (DELETE FROM planner.plan_candidate AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     plan AS (DELETE FROM planner.plan AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     title AS (DELETE FROM planner.title AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     term AS (DELETE FROM planner.term AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     posting AS (DELETE FROM planner.posting AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     lexical AS (DELETE FROM planner.lexical AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     embedding AS (DELETE FROM planner.embedding AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     scope_model AS (DELETE FROM planner.scope_model AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     edge AS (DELETE FROM planner.edge AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     node_span AS (DELETE FROM planner.node_span AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     node AS (DELETE FROM planner.node AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     token_count AS (DELETE FROM planner.token_count AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     derivation AS (DELETE FROM planner.derivation AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     span AS (DELETE FROM planner.span AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     source_version AS (DELETE FROM planner.source_version AS x WHERE x.scope_id = %(scope_id)s RETURNING 1),
     source AS (DELETE FROM planner.source AS x WHERE x.scope_id = %(scope_id)s RETURNING 1)
SELECT (SELECT count(*) FROM source), (SELECT count(*) FROM source_version), (SELECT count(*) FROM node),
       (SELECT count(*) FROM plan), (SELECT count(*) FROM api_token)

-- name: vacuum_versions
-- Free the deleted versions. The foreign key to the ledger has no index of its own: deleting an entry looks
-- through the scope's versions, and would find each of them dead, once for every entry.
VACUUM (SKIP_LOCKED) planner.source_version

-- name: delete_scope
-- Delete the ledger of an emptied scope, and the scope, as planner_owner.
WITH ledger AS (DELETE FROM planner.ledger AS x WHERE x.scope_id = %(scope_id)s)
DELETE FROM planner.scope AS x WHERE x.scope_id = %(scope_id)s

-- name: scope_indexes
-- The names of a scope's own vector indexes, valid or not.
SELECT c.relname
  FROM pg_class c
 WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'i'
   AND starts_with(c.relname::text, %(prefix)s::text)
 ORDER BY c.relname
