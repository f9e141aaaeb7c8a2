-- Upkeep: what `migrate` asks before it changes anything, and what `doctor` looks at.
--
-- These are the owner's and the catalogue's questions. Where one reads tenant tables over all scopes, it runs
-- as planner_owner; none writes.

-- name: server_facts
-- The server's version as a number; pgvector as installed here and as the server could install it; the login.
SELECT current_setting('server_version_num')::integer,
       (SELECT x.extversion FROM pg_extension x WHERE x.extname = 'vector'),
       (SELECT a.default_version FROM pg_available_extensions a WHERE a.name = 'vector'),
       (SELECT x.extnamespace::regnamespace::text FROM pg_extension x WHERE x.extname = 'vector'),
       current_user::text,
       current_database()::text,
       (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user),
       (SELECT r.rolbypassrls FROM pg_roles r WHERE r.rolname = current_user);

-- name: role_facts
-- Of the roles asked for, those that exist: whether this login may become one, and whether it could bypass
-- row security or log in itself, which a role of the planner must not.
SELECT r.rolname::text,
       pg_has_role(current_user, r.oid,
                   CASE WHEN current_setting('server_version_num')::integer >= 160000 THEN 'SET' ELSE 'MEMBER' END),
       r.rolsuper OR r.rolbypassrls,
       r.rolcanlogin
  FROM pg_roles r
 WHERE r.rolname = ANY (%(roles)s)
 ORDER BY r.rolname;

-- name: schema_facts
-- Whether the schema and its revision table exist, and the schema's comment, which records the objects.
SELECT n.oid IS NOT NULL,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = n.oid AND c.relname = 'alembic_version'),
       obj_description(n.oid, 'pg_namespace')
  FROM (VALUES ('planner')) AS wanted (name)
  LEFT JOIN pg_namespace n ON n.nspname = wanted.name;

-- name: take_lock
-- One migration at a time in a database, and one piece of upkeep. Tried, never waited for: whoever waits has a
-- snapshot, and CREATE INDEX CONCURRENTLY would wait for that in turn.
SELECT pg_try_advisory_lock(%(key)s);

-- name: release_lock
-- The end of it; a lost connection releases the lock as well.
SELECT pg_advisory_unlock(%(key)s);

-- name: unfenced_tables
-- Tenant tables whose fence has a hole: row security not enabled or not forced, or one of the two policies
-- missing.
SELECT c.relname::text
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id' AND NOT a.attisdropped
 WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT (c.relrowsecurity AND c.relforcerowsecurity
            AND (SELECT array_agg(p.polname::text ORDER BY p.polname) FROM pg_policy p WHERE p.polrelid = c.oid)
                = ARRAY['owner', 'tenant'])
 ORDER BY c.relname;

-- name: any_scope
-- One scope, if there is one: for the probe of row security.
SELECT s.scope_id, s.name FROM planner.scope s ORDER BY s.scope_id LIMIT 1;

-- name: foreign_rows
-- The tenant tables in which a row of another scope than the given one is visible. One list, so that the
-- whole probe is one round trip; a test compares it with the catalogue.
SELECT t.name
  FROM (VALUES
    ('scope', EXISTS (SELECT FROM planner.scope WHERE scope_id <> %(scope_id)s)),
    ('ledger', EXISTS (SELECT FROM planner.ledger WHERE scope_id <> %(scope_id)s)),
    ('source', EXISTS (SELECT FROM planner.source WHERE scope_id <> %(scope_id)s)),
    ('source_version', EXISTS (SELECT FROM planner.source_version WHERE scope_id <> %(scope_id)s)),
    ('span', EXISTS (SELECT FROM planner.span WHERE scope_id <> %(scope_id)s)),
    ('derivation', EXISTS (SELECT FROM planner.derivation WHERE scope_id <> %(scope_id)s)),
    ('token_count', EXISTS (SELECT FROM planner.token_count WHERE scope_id <> %(scope_id)s)),
    ('node', EXISTS (SELECT FROM planner.node WHERE scope_id <> %(scope_id)s)),
    ('node_span', EXISTS (SELECT FROM planner.node_span WHERE scope_id <> %(scope_id)s)),
    ('edge', EXISTS (SELECT FROM planner.edge WHERE scope_id <> %(scope_id)s)),
    ('scope_model', EXISTS (SELECT FROM planner.scope_model WHERE scope_id <> %(scope_id)s)),
    ('embedding', EXISTS (SELECT FROM planner.embedding WHERE scope_id <> %(scope_id)s)),
    ('lexical', EXISTS (SELECT FROM planner.lexical WHERE scope_id <> %(scope_id)s)),
    ('posting', EXISTS (SELECT FROM planner.posting WHERE scope_id <> %(scope_id)s)),
    ('term', EXISTS (SELECT FROM planner.term WHERE scope_id <> %(scope_id)s)),
    ('title', EXISTS (SELECT FROM planner.title WHERE scope_id <> %(scope_id)s)),
    ('plan', EXISTS (SELECT FROM planner.plan WHERE scope_id <> %(scope_id)s)),
    ('plan_candidate', EXISTS (SELECT FROM planner.plan_candidate WHERE scope_id <> %(scope_id)s)),
    ('plan_node', EXISTS (SELECT FROM planner.plan_node WHERE scope_id <> %(scope_id)s)),
    ('delivery', EXISTS (SELECT FROM planner.delivery WHERE scope_id <> %(scope_id)s)),
    ('expectation', EXISTS (SELECT FROM planner.expectation WHERE scope_id <> %(scope_id)s))
  ) AS t (name, visible)
 WHERE t.visible
 ORDER BY t.name;

-- name: foreign_tokens
-- The same for access tokens, which the reader may not read at all.
SELECT 'api_token' WHERE EXISTS (SELECT FROM planner.api_token WHERE scope_id <> %(scope_id)s);

-- name: vector_indexes
-- Every HNSW index of the schema and whether it is valid; one that failed to build concurrently is not.
SELECT c.relname::text, i.indisvalid AND i.indisready
  FROM pg_index i
  JOIN pg_class c ON c.oid = i.indexrelid
  JOIN pg_am a ON a.oid = c.relam
 WHERE c.relnamespace = 'planner'::regnamespace AND a.amname = 'hnsw'
 ORDER BY c.relname;

-- name: dangling_edges
-- Current edges with an end that is no current node, by scope. Edges have no foreign key: a node may come
-- later than an edge to it, and closes without it.
SELECT s.name, count(*)
  FROM planner.scope s
  JOIN planner.edge e ON e.scope_id = s.scope_id AND e.tx_to = 9223372036854775807
 WHERE NOT EXISTS (SELECT FROM planner.node n
                    WHERE n.scope_id = s.scope_id AND n.node_id = e.src AND n.tx_to = 9223372036854775807)
    OR NOT EXISTS (SELECT FROM planner.node n
                    WHERE n.scope_id = s.scope_id AND n.node_id = e.dst AND n.tx_to = 9223372036854775807)
 GROUP BY s.name
 ORDER BY s.name;

-- name: ledger_gaps
-- Scopes whose ledger is not exactly 1 … last_tx.
SELECT s.name, s.last_tx, count(l.tx)
  FROM planner.scope s
  LEFT JOIN planner.ledger l ON l.scope_id = s.scope_id
 GROUP BY s.scope_id, s.name, s.last_tx
HAVING count(l.tx) <> s.last_tx OR coalesce(max(l.tx), 0) <> s.last_tx
 ORDER BY s.name;

-- name: index_faults
-- Each scope with how far its lexical index is, and what in it is wrong: by how much the counts of nodes and of
-- their terms are off, how many current nodes and rows of the index are without each other, how many terms count
-- other than the postings of current nodes say.
SELECT s.name, s.lexical,
       s.lexical_nodes - held.nodes,
       s.lexical_terms - held.terms,
       CASE WHEN s.lexical = %(analysis)s THEN lone.nodes + alone.rows ELSE 0 END,
       other.terms
  FROM planner.scope s
 CROSS JOIN LATERAL (
       SELECT count(*) AS nodes, coalesce(sum(l.length), 0)::bigint AS terms
         FROM planner.lexical l
        WHERE l.scope_id = s.scope_id AND l.tx_to = 9223372036854775807
      ) held
 CROSS JOIN LATERAL (
       SELECT count(*) AS nodes
         FROM planner.node n
        WHERE n.scope_id = s.scope_id AND n.tx_to = 9223372036854775807
          AND EXISTS (SELECT FROM planner.node_span ns
                       WHERE ns.scope_id = s.scope_id AND ns.node_id = n.node_id AND ns.node_tx_from = n.tx_from)
          AND NOT EXISTS (SELECT FROM planner.lexical l
                           WHERE l.scope_id = s.scope_id AND l.node_id = n.node_id AND l.tx_from = n.tx_from
                             AND l.tx_to = n.tx_to)
      ) lone
 CROSS JOIN LATERAL (
       SELECT count(*) AS rows
         FROM planner.lexical l
        WHERE l.scope_id = s.scope_id AND l.tx_to = 9223372036854775807
          AND NOT EXISTS (SELECT FROM planner.node n
                           WHERE n.scope_id = s.scope_id AND n.node_id = l.node_id AND n.tx_from = l.tx_from
                             AND n.tx_to = l.tx_to)
      ) alone
 CROSS JOIN LATERAL (
       SELECT count(*) AS terms
         FROM (SELECT t.term, t.nodes FROM planner.term t WHERE t.scope_id = s.scope_id) kept
         FULL JOIN (SELECT p.term, count(*) AS nodes
                      FROM planner.posting p
                      JOIN planner.lexical l
                        ON l.scope_id = s.scope_id AND l.doc = p.doc AND l.tx_to = 9223372036854775807
                     WHERE p.scope_id = s.scope_id
                     GROUP BY p.term) counted
           ON counted.term = kept.term
        WHERE kept.nodes IS DISTINCT FROM counted.nodes
      ) other
 ORDER BY s.name;

-- name: miscounted_scopes
-- Scopes whose kept count of live nodes is not the count.
SELECT s.name, s.live_nodes, count(n.node_id)
  FROM planner.scope s
  LEFT JOIN planner.node n ON n.scope_id = s.scope_id AND n.tx_to = 9223372036854775807
 GROUP BY s.scope_id, s.name, s.live_nodes
HAVING count(n.node_id) <> s.live_nodes
 ORDER BY s.name;
