-- The lexical index, written with what it indexes, under the lock of the scope: a row a node version forward, a
-- posting a term of it, and for each term the number of current nodes that it is in. Docs are numbers of node
-- versions, terms are numbers with their 3 low bits zero (0003_lexical.sql).
--
-- PostgreSQL takes a scope to be small, and would read all that the index holds of it to change a few hundred rows.
-- So rows are first looked up by their keys one by one, and then changed by where they lie: nobody moves them
-- meanwhile, since the scope is locked. LIMIT 1 changes no result.

-- name: write_lexical
-- The forward rows of node versions. Their sequences lie one after another in one value.
INSERT INTO planner.lexical (scope_id, node_id, tx_from, tx_to, doc, length, terms, context)
SELECT %(scope_id)s, r.node_id, r.doc >> 20, r.tx_to, r.doc, r.terms + r.context,
       substring(%(packed)s::bytea FROM 8 * r.start + 1 FOR 8 * r.terms),
       substring(%(packed)s::bytea FROM 8 * (r.start + r.terms) + 1 FOR 8 * r.context)
  FROM unnest(%(node_id)s::text[], %(tx_to)s::bigint[], %(doc)s::bigint[], %(start)s::integer[],
              %(terms)s::integer[], %(context)s::integer[])
       AS r (node_id, tx_to, doc, start, terms, context);

-- name: write_postings
-- The postings of these docs, in the order of the key.
INSERT INTO planner.posting (scope_id, term, doc, frequency, length)
SELECT %(scope_id)s, r.term, r.doc, r.frequency::smallint, r.length::integer
  FROM unnest(%(term)s::bigint[], %(doc)s::bigint[], %(frequency)s::bigint[], %(length)s::bigint[])
       AS r (term, doc, frequency, length);

-- name: close_lexical
-- End the current forward rows of these nodes; their terms come back, to be counted down.
UPDATE planner.lexical AS l SET tx_to = %(tx)s
 WHERE l.scope_id = %(scope_id)s
   AND l.ctid = ANY (ARRAY(
       SELECT x.ctid
         FROM unnest(%(nodes)s::text[]) AS r (node_id)
        CROSS JOIN LATERAL (
              SELECT y.ctid
                FROM planner.lexical y
               WHERE y.scope_id = %(scope_id)s AND y.node_id = r.node_id COLLATE "C"
                 AND y.tx_to = 9223372036854775807
               LIMIT 1
             ) x))
RETURNING l.terms, l.context;

-- name: raise_terms
-- Count these terms up, by as many nodes each.
INSERT INTO planner.term AS t (scope_id, term, nodes)
SELECT %(scope_id)s, r.term, r.nodes FROM unnest(%(term)s::bigint[], %(nodes)s::bigint[]) AS r (term, nodes)
ON CONFLICT (scope_id, term) DO UPDATE SET nodes = t.nodes + excluded.nodes;

-- name: lower_terms
-- Count these terms down; each is there.
INSERT INTO planner.term AS t (scope_id, term, nodes)
SELECT %(scope_id)s, r.term, r.nodes FROM unnest(%(term)s::bigint[], %(nodes)s::bigint[]) AS r (term, nodes)
ON CONFLICT (scope_id, term) DO UPDATE SET nodes = t.nodes - excluded.nodes;

-- name: drop_terms
-- A term that is in no current node any more has no count.
DELETE FROM planner.term AS t
 WHERE t.scope_id = %(scope_id)s AND t.term = ANY (%(term)s::bigint[]) AND t.nodes = 0;

-- name: count_lexical
-- Keep how many current nodes the index has, and how long they are together: what BM25 calls the average length.
UPDATE planner.scope AS s
   SET lexical_nodes = s.lexical_nodes + %(nodes)s, lexical_terms = s.lexical_terms + %(terms)s
 WHERE s.scope_id = %(scope_id)s;

-- name: empty_lexical
-- The index of a scope holds nothing.
UPDATE planner.scope AS s SET lexical_nodes = 0, lexical_terms = 0 WHERE s.scope_id = %(scope_id)s;

-- name: delete_postings
-- Delete postings by their whole key: their docs are gone.
DELETE FROM planner.posting AS p
 WHERE p.scope_id = %(scope_id)s
   AND p.ctid = ANY (ARRAY(
       SELECT x.ctid
         FROM unnest(%(term)s::bigint[], %(doc)s::bigint[]) AS r (term, doc)
        CROSS JOIN LATERAL (
              SELECT y.ctid
                FROM planner.posting y
               WHERE y.scope_id = %(scope_id)s AND y.term = r.term AND y.doc = r.doc
               LIMIT 1
             ) x));

-- name: erase_lexical
-- Delete the forward rows of all versions of these nodes that derive from these sources; what their postings are
-- found by comes back.
DELETE FROM planner.lexical AS l
 WHERE l.scope_id = %(scope_id)s
   AND l.ctid = ANY (ARRAY(
       SELECT x.ctid
         FROM unnest(%(nodes)s::text[]) AS r (node_id)
        CROSS JOIN LATERAL (
              SELECT y.ctid
                FROM planner.lexical y
               WHERE y.scope_id = %(scope_id)s AND y.node_id = r.node_id COLLATE "C"
                 AND EXISTS (SELECT 1 FROM planner.node_span ns
                              WHERE ns.scope_id = %(scope_id)s AND ns.node_id = y.node_id
                                AND ns.node_tx_from = y.tx_from AND ns.source_id = ANY (%(sources)s::text[])
                             OFFSET 0)
              OFFSET 0
             ) x))
RETURNING l.doc, l.terms, l.context;

-- name: prune_lexical
-- Delete the forward rows of these versions of nodes where the version is gone.
DELETE FROM planner.lexical AS l
 WHERE l.scope_id = %(scope_id)s
   AND l.ctid = ANY (ARRAY(
       SELECT x.ctid
         FROM unnest(%(nodes)s::text[], %(since)s::bigint[]) AS r (node_id, tx_from)
        CROSS JOIN LATERAL (
              SELECT y.ctid
                FROM planner.lexical y
               WHERE y.scope_id = %(scope_id)s AND y.node_id = r.node_id COLLATE "C" AND y.tx_from = r.tx_from
                 AND NOT EXISTS (SELECT 1 FROM planner.node n
                                  WHERE n.scope_id = %(scope_id)s AND n.node_id = y.node_id
                                    AND n.tx_from = y.tx_from
                                 OFFSET 0)
               LIMIT 1
             ) x))
RETURNING l.doc, l.terms, l.context;

-- Titles, and the texts that mention them ----------------------------------------------------------------

-- name: current_titles
-- The current titles of these sources.
SELECT t.source_id, t.form, t.terms
  FROM unnest(%(sources)s::text[]) AS r (source_id)
 CROSS JOIN LATERAL (
       SELECT x.source_id, x.form, x.terms
         FROM planner.title x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = r.source_id COLLATE "C" AND x.tx_to = 9223372036854775807
       OFFSET 0
      ) t;

-- name: write_titles
-- New titles of sources.
INSERT INTO planner.title (scope_id, tx_from, source_id, form, first_term, terms)
SELECT %(scope_id)s, %(tx)s, r.source_id, r.form::smallint, r.first_term, r.terms
  FROM unnest(%(source_id)s::text[], %(form)s::integer[], %(first_term)s::bigint[], %(terms)s::bytea[])
       AS r (source_id, form, first_term, terms);

-- name: close_titles
-- End the current titles of these sources.
UPDATE planner.title AS t SET tx_to = %(tx)s
 WHERE t.scope_id = %(scope_id)s
   AND t.ctid = ANY (ARRAY(
       SELECT x.ctid
         FROM unnest(%(sources)s::text[]) AS r (source_id)
        CROSS JOIN LATERAL (
              SELECT y.ctid
                FROM planner.title y
               WHERE y.scope_id = %(scope_id)s AND y.source_id = r.source_id COLLATE "C"
                 AND y.tx_to = 9223372036854775807
              OFFSET 0
             ) x));

-- name: erase_titles
-- Delete all titles that these sources ever had.
DELETE FROM planner.title AS t WHERE t.scope_id = %(scope_id)s AND t.source_id = ANY (%(sources)s::text[]);

-- name: prune_titles
-- Delete the titles of a source that ended before the versions that are left.
DELETE FROM planner.title AS t
 WHERE t.scope_id = %(scope_id)s AND t.source_id = %(source_id)s AND t.tx_to < 9223372036854775807
   AND NOT EXISTS (SELECT 1 FROM planner.source_version v
                    WHERE v.scope_id = %(scope_id)s AND v.source_id = t.source_id AND v.version_tx < t.tx_to);

-- name: titles_by_term
-- The current titles that begin with one of these terms, words of grammar apart.
SELECT t.source_id, t.terms
  FROM planner.title t
 WHERE t.scope_id = %(scope_id)s AND t.first_term = ANY (%(terms)s::bigint[]) AND t.tx_to = 9223372036854775807;

-- name: term_counts
-- In how many current nodes these terms are; none: no row.
SELECT t.term, t.nodes
  FROM planner.term t
 WHERE t.scope_id = %(scope_id)s AND t.term = ANY (%(terms)s::bigint[]);

-- name: holding_both
-- For each pair of terms, the first of which is rare, the nodes that hold both as of a transaction, with their terms.
-- LIMIT 1 changes no result: it keeps each join a look-up by its whole key.
SELECT w.i - 1, l.node_id, l.terms
  FROM unnest(%(rare)s::bigint[], %(other)s::bigint[]) WITH ORDINALITY AS w (rare, other, i)
 CROSS JOIN LATERAL (
       SELECT p.doc
         FROM planner.posting p
        WHERE p.scope_id = %(scope_id)s AND p.term = w.rare
       OFFSET 0
      ) p
 CROSS JOIN LATERAL (
       SELECT 1
         FROM planner.posting o
        WHERE o.scope_id = %(scope_id)s AND o.term = w.other AND o.doc = p.doc
        LIMIT 1
      ) o
 CROSS JOIN LATERAL (
       SELECT x.node_id, x.terms
         FROM planner.lexical x
        WHERE x.scope_id = %(scope_id)s AND x.doc = p.doc
          AND x.tx_from <= %(as_of)s AND x.tx_to > %(as_of)s
        LIMIT 1
      ) l;

-- name: current_mentions
-- The current `mentions` edges that leave these nodes, or arrive at those ones.
SELECT e.src, e.dst
  FROM planner.edge e
 WHERE e.scope_id = %(scope_id)s AND e.src = ANY (%(nodes)s::text[]) AND e.predicate = 'mentions'
   AND e.tx_to = 9223372036854775807
UNION
SELECT e.src, e.dst
  FROM planner.edge e
 WHERE e.scope_id = %(scope_id)s AND e.dst = ANY (%(targets)s::text[]) AND e.predicate = 'mentions'
   AND e.tx_to = 9223372036854775807;

-- Building the index of a scope that has none, beside its writers ------------------------------------------

-- name: lexical_state
-- What the scope says of its index.
SELECT s.lexical FROM planner.scope s WHERE s.scope_id = %(scope_id)s;

-- name: mark_lexical
-- Say how far the scope's index is: null, building, or the analysis that it is made by.
UPDATE planner.scope AS s SET lexical = %(lexical)s WHERE s.scope_id = %(scope_id)s;

-- name: clear_lexical
-- Delete an index that was made by another analysis.
WITH posting AS (DELETE FROM planner.posting AS p WHERE p.scope_id = %(scope_id)s),
     term AS (DELETE FROM planner.term AS t WHERE t.scope_id = %(scope_id)s),
     title AS (DELETE FROM planner.title AS t WHERE t.scope_id = %(scope_id)s)
DELETE FROM planner.lexical AS l WHERE l.scope_id = %(scope_id)s;

-- name: titled_sources
-- The sources that are there, with the titles of their newest versions.
SELECT s.source_id, v.title
  FROM planner.source s
 CROSS JOIN LATERAL (
       SELECT x.title, x.erased_tx, x.withdrawn_tx
         FROM planner.source_version x
        WHERE x.scope_id = %(scope_id)s AND x.source_id = s.source_id
        ORDER BY x.version_tx DESC
        LIMIT 1
      ) v
 WHERE s.scope_id = %(scope_id)s AND v.erased_tx IS NULL AND v.withdrawn_tx IS NULL
 ORDER BY s.source_id;

-- name: unindexed
-- A fragment of the others: whether a version of a node `n` has a text and no row of the index.
{worded}
AND NOT EXISTS (SELECT FROM planner.lexical l
                 WHERE l.scope_id = %(scope_id)s AND l.node_id = n.node_id AND l.tx_from = n.tx_from
                OFFSET 0)

-- name: unindexed_count
-- How many versions of nodes are not in the index.
SELECT count(*) FROM planner.node n WHERE n.scope_id = %(scope_id)s AND {unindexed};

-- name: unindexed_versions
-- The next of them, in the order of the key.
SELECT n.node_id, n.tx_from
  FROM planner.node n
 WHERE n.scope_id = %(scope_id)s AND n.node_id >= %(node_id)s COLLATE "C"
   AND (n.node_id > %(node_id)s COLLATE "C" OR n.tx_from > %(tx_from)s)
   AND {unindexed}
 ORDER BY n.node_id, n.tx_from
 LIMIT %(limit)s;

-- name: unindexed_still
-- Which of these are still there and not in the index, now that the scope is locked, when they end, and the place
-- that the next row of their transaction has. Its bounds are columns: row security lets no shift into an index.
SELECT n.node_id, n.tx_from, n.tx_to,
       coalesce((SELECT max(l.doc) + 1 FROM planner.lexical l
                  WHERE l.scope_id = %(scope_id)s AND l.doc >= n.first AND l.doc < n.beyond),
                n.first)
  FROM unnest(%(nodes)s::text[], %(since)s::bigint[]) WITH ORDINALITY AS r (node_id, tx_from, i)
 CROSS JOIN LATERAL (
       SELECT n.node_id, n.tx_from, n.tx_to, n.tx_from << 20 AS first, (n.tx_from + 1) << 20 AS beyond
         FROM planner.node n
        WHERE n.scope_id = %(scope_id)s AND n.node_id = r.node_id COLLATE "C" AND n.tx_from = r.tx_from
          AND {unindexed}
        LIMIT 1
      ) n
 ORDER BY r.i;
