-- Statements of the store's door: what is asked once, before anything else.

-- name: handshake
-- Versions, where pgvector lives, whether the schema exists and this login may take the planner's roles.
-- Reads only catalogues, which every login may.
SELECT current_setting('server_version'),
       (SELECT x.extversion FROM pg_extension x WHERE x.extname = 'vector'),
       (SELECT x.extnamespace::regnamespace::text FROM pg_extension x WHERE x.extname = 'vector'),
       to_regnamespace('planner') IS NOT NULL,
       (SELECT count(*) = 3
          FROM pg_roles r
         WHERE r.rolname IN ('planner_owner', 'planner_writer', 'planner_reader')
           AND pg_has_role(r.oid, 'MEMBER'));

-- name: schema_revision
-- The schema's alembic revision.
SELECT version_num FROM planner.alembic_version;

-- name: list_scopes
-- Every scope with its size and the embedding model that it uses now, for the owner.
SELECT s.name, s.scope_id, s.last_tx, s.live_nodes, s.created_at,
       (SELECT count(*) FROM planner.source x WHERE x.scope_id = s.scope_id),
       em.name, em.revision, em.dimensions
  FROM planner.scope s
  LEFT JOIN planner.scope_model m ON m.scope_id = s.scope_id AND m.tx_to = 9223372036854775807
  LEFT JOIN planner.embedding_model em ON em.model_id = m.model_id
 ORDER BY s.name;
