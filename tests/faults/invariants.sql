-- What is true of a scope whatever happened to it: each statement finds the rows of the scope `s` that break the
-- invariant in its heading. `open` is the tx_to of what is current.

-- invariant: last_tx is the ledger's newest transaction, and their number
SELECT c.last_tx, max(l.tx), count(l.tx)
  FROM planner.scope c
  LEFT JOIN planner.ledger l ON l.scope_id = %(s)s
 WHERE c.scope_id = %(s)s
 GROUP BY c.last_tx
HAVING c.last_tx <> coalesce(max(l.tx), 0) OR c.last_tx <> count(l.tx);

-- invariant: live_nodes counts the current nodes
SELECT c.live_nodes, count(n.node_id)
  FROM planner.scope c
  LEFT JOIN planner.node n ON n.scope_id = %(s)s AND n.tx_to = %(open)s
 WHERE c.scope_id = %(s)s
 GROUP BY c.live_nodes
HAVING c.live_nodes <> count(n.node_id);

-- invariant: the versions of a node do not overlap
SELECT a.node_id, a.tx_from, b.tx_from
  FROM planner.node a
  JOIN planner.node b ON b.scope_id = %(s)s AND b.node_id = a.node_id AND b.tx_from > a.tx_from
 WHERE a.scope_id = %(s)s AND a.tx_to > b.tx_from;

-- invariant: the versions of an edge do not overlap
SELECT a.src, a.dst, a.predicate, a.tx_from, b.tx_from
  FROM planner.edge a
  JOIN planner.edge b
    ON b.scope_id = %(s)s AND b.src = a.src AND b.dst = a.dst AND b.predicate = a.predicate
   AND b.tx_from > a.tx_from
 WHERE a.scope_id = %(s)s AND a.tx_to > b.tx_from;

-- invariant: a node's vectors of one model do not overlap
SELECT a.model_id, a.node_id, a.tx_from, b.tx_from
  FROM planner.embedding a
  JOIN planner.embedding b
    ON b.scope_id = %(s)s AND b.model_id = a.model_id AND b.node_id = a.node_id AND b.tx_from > a.tx_from
 WHERE a.scope_id = %(s)s AND a.tx_to > b.tx_from;

-- invariant: a scope uses one model at a time
SELECT a.model_id, a.tx_from, b.model_id, b.tx_from
  FROM planner.scope_model a
  JOIN planner.scope_model b
    ON b.scope_id = %(s)s AND b.tx_from < a.tx_to AND b.tx_to > a.tx_from
   AND (b.model_id, b.tx_from) > (a.model_id, a.tx_from)
 WHERE a.scope_id = %(s)s;

-- invariant: a current vector is a current node's
SELECT e.model_id, e.node_id
  FROM planner.embedding e
 WHERE e.scope_id = %(s)s AND e.tx_to = %(open)s
   AND NOT EXISTS (SELECT FROM planner.node n
                    WHERE n.scope_id = %(s)s AND n.node_id = e.node_id AND n.tx_to = %(open)s);

-- invariant: an indexed scope has one row of the index for each version of a node that has a text, as long as that
WITH indexed AS (SELECT FROM planner.scope c WHERE c.scope_id = %(s)s AND c.lexical = 'terms/1'),
worded AS (
       SELECT n.node_id, n.tx_from, n.tx_to
         FROM planner.node n
        WHERE n.scope_id = %(s)s
          AND EXISTS (SELECT FROM planner.node_span ns
                       WHERE ns.scope_id = %(s)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from)
          AND NOT EXISTS (SELECT FROM planner.node_span ns
                            JOIN planner.source_version v
                              ON v.scope_id = %(s)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
                           WHERE ns.scope_id = %(s)s AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from
                             AND v.erased_tx IS NOT NULL)
          AND EXISTS (SELECT FROM indexed)
)
SELECT coalesce(w.node_id, l.node_id), w.tx_from, w.tx_to, l.tx_from, l.tx_to
  FROM worded w
  FULL JOIN (SELECT * FROM planner.lexical WHERE scope_id = %(s)s) l
    ON l.node_id = w.node_id AND l.tx_from = w.tx_from
 WHERE w.node_id IS NULL OR l.node_id IS NULL OR l.tx_to <> w.tx_to;

-- invariant: lexical_nodes and lexical_terms count the current rows of the index
SELECT c.lexical_nodes, count(l.doc), c.lexical_terms, coalesce(sum(l.length), 0)
  FROM planner.scope c
  LEFT JOIN planner.lexical l ON l.scope_id = %(s)s AND l.tx_to = %(open)s
 WHERE c.scope_id = %(s)s
 GROUP BY c.lexical_nodes, c.lexical_terms
HAVING c.lexical_nodes <> count(l.doc) OR c.lexical_terms <> coalesce(sum(l.length), 0);

-- invariant: a term counts the current nodes that it is in, and is gone where it is in none
SELECT coalesce(t.term, p.term), t.nodes, p.nodes
  FROM (SELECT * FROM planner.term WHERE scope_id = %(s)s) t
  FULL JOIN (SELECT x.term, count(*) AS nodes
               FROM planner.posting x
               JOIN planner.lexical l ON l.scope_id = %(s)s AND l.doc = x.doc AND l.tx_to = %(open)s
              WHERE x.scope_id = %(s)s
              GROUP BY x.term) p
    ON p.term = t.term
 WHERE t.nodes IS DISTINCT FROM p.nodes;

-- invariant: a source has titles of one time at a time, of versions that say something
SELECT a.source_id, a.form, a.tx_from, a.tx_to
  FROM planner.title a
 WHERE a.scope_id = %(s)s
   AND (NOT EXISTS (SELECT FROM planner.source_version v
                     WHERE v.scope_id = %(s)s AND v.source_id = a.source_id AND v.title IS NOT NULL
                       AND v.version_tx < a.tx_to)
        OR EXISTS (SELECT FROM planner.title b
                    WHERE b.scope_id = %(s)s AND b.source_id = a.source_id
                      AND b.tx_from > a.tx_from AND b.tx_from < a.tx_to));

-- invariant: a current mention leads to the node of a source that has a title
SELECT e.src, e.dst
  FROM planner.edge e
 WHERE e.scope_id = %(s)s AND e.tx_to = %(open)s AND e.predicate = 'mentions'
   AND NOT EXISTS (SELECT FROM planner.node n
                    WHERE n.scope_id = %(s)s AND n.node_id = e.dst AND n.kind = 'source' AND n.tx_to = %(open)s);

-- invariant: a current edge leaves a current node
SELECT e.src, e.dst, e.predicate
  FROM planner.edge e
 WHERE e.scope_id = %(s)s AND e.tx_to = %(open)s
   AND NOT EXISTS (SELECT FROM planner.node n
                    WHERE n.scope_id = %(s)s AND n.node_id = e.src AND n.tx_to = %(open)s);

-- invariant: the spans of a current node are in a version that is there, and is neither erased nor withdrawn
SELECT ns.node_id, ns.source_id, ns.version_tx, ns.span_start
  FROM planner.node_span ns
  JOIN planner.node n ON n.scope_id = %(s)s AND n.node_id = ns.node_id AND n.tx_from = ns.node_tx_from
  LEFT JOIN planner.span p
    ON p.scope_id = %(s)s AND p.source_id = ns.source_id AND p.version_tx = ns.version_tx
   AND p.span_start = ns.span_start AND p.span_end = ns.span_end
  LEFT JOIN planner.source_version v
    ON v.scope_id = %(s)s AND v.source_id = ns.source_id AND v.version_tx = ns.version_tx
 WHERE ns.scope_id = %(s)s AND n.tx_to = %(open)s
   AND (p.source_id IS NULL OR v.body IS NULL OR v.erased_tx IS NOT NULL OR v.withdrawn_tx IS NOT NULL);

-- invariant: a source has a version
SELECT o.source_id
  FROM planner.source o
 WHERE o.scope_id = %(s)s
   AND NOT EXISTS (SELECT FROM planner.source_version v WHERE v.scope_id = %(s)s AND v.source_id = o.source_id);

-- invariant: a body is as long as its version says
SELECT v.source_id, v.version_tx
  FROM planner.source_version v
 WHERE v.scope_id = %(s)s AND octet_length(v.body) <> v.byte_length;

-- invariant: a version that extends one extends the one before it
SELECT v.source_id, v.version_tx, v.extends_tx
  FROM planner.source_version v
 WHERE v.scope_id = %(s)s AND v.extends_tx IS NOT NULL
   AND v.extends_tx IS DISTINCT FROM (SELECT max(x.version_tx)
                                        FROM planner.source_version x
                                       WHERE x.scope_id = %(s)s AND x.source_id = v.source_id
                                         AND x.version_tx < v.version_tx);

-- invariant: an erased version says nothing
SELECT v.source_id, v.version_tx, p.span_start
  FROM planner.source_version v
  LEFT JOIN planner.span p
    ON p.scope_id = %(s)s AND p.source_id = v.source_id AND p.version_tx = v.version_tx
 WHERE v.scope_id = %(s)s AND v.erased_tx IS NOT NULL
   AND (v.body IS NOT NULL OR v.title IS NOT NULL OR v.uri IS NOT NULL OR v.attributes <> '{}'
        OR p.heading_path <> '{}' OR p.speaker IS NOT NULL OR p.message_id IS NOT NULL);

-- invariant: a plan's counts are those of its candidates
SELECT p.plan_id, p.n_candidates, c.n, p.n_selected, c.selected, p.used, c.used
  FROM planner.plan p
 CROSS JOIN LATERAL (
       SELECT count(*) AS n, count(*) FILTER (WHERE x.outcome = 'selected') AS selected,
              coalesce(sum(x.tokens) FILTER (WHERE x.outcome = 'selected'), 0) AS used
         FROM planner.plan_candidate x
        WHERE x.scope_id = %(s)s AND x.plan_id = p.plan_id
      ) c
 WHERE p.scope_id = %(s)s AND (p.n_candidates, p.n_selected, p.used) <> (c.n, c.selected, c.used);

-- invariant: a candidate is a plan's
SELECT c.plan_id, c.rank
  FROM planner.plan_candidate c
 WHERE c.scope_id = %(s)s
   AND NOT EXISTS (SELECT FROM planner.plan p WHERE p.scope_id = %(s)s AND p.plan_id = c.plan_id);

-- invariant: a recalled node is a plan's
SELECT n.plan_id, n.node_id
  FROM planner.plan_node n
 WHERE n.scope_id = %(s)s
   AND NOT EXISTS (SELECT FROM planner.plan p WHERE p.scope_id = %(s)s AND p.plan_id = n.plan_id);

-- invariant: nothing is of a transaction that has not been
SELECT t.name, t.tx
  FROM planner.scope c
 CROSS JOIN (
       SELECT 'ledger' AS name, tx FROM planner.ledger WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'source_version', greatest(version_tx, erased_tx, withdrawn_tx)
         FROM planner.source_version WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'node', greatest(tx_from, nullif(tx_to, %(open)s)) FROM planner.node WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'edge', greatest(tx_from, nullif(tx_to, %(open)s)) FROM planner.edge WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'embedding', greatest(tx_from, nullif(tx_to, %(open)s))
         FROM planner.embedding WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'scope_model', greatest(tx_from, nullif(tx_to, %(open)s))
         FROM planner.scope_model WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'lexical', greatest(tx_from, nullif(tx_to, %(open)s)) FROM planner.lexical WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'title', greatest(tx_from, nullif(tx_to, %(open)s)) FROM planner.title WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'plan', as_of FROM planner.plan WHERE scope_id = %(s)s
        UNION ALL
       SELECT 'plan_candidate', version_tx FROM planner.plan_candidate WHERE scope_id = %(s)s
      ) t
 WHERE c.scope_id = %(s)s AND t.tx > c.last_tx;

-- invariant: no count is cached of a text that only erased versions had
SELECT t.text_hash, t.counter
  FROM planner.token_count t
 WHERE t.scope_id = %(s)s
   AND NOT EXISTS (SELECT FROM planner.span p
                     JOIN planner.source_version v
                       ON v.scope_id = %(s)s AND v.source_id = p.source_id AND v.version_tx = p.version_tx
                    WHERE p.scope_id = %(s)s AND p.text_hash = t.text_hash AND v.erased_tx IS NULL);
