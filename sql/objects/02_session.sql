-- The session of a migration: everything that follows is done, and owned, by planner_owner.
--
-- pgvector's schema is on the path because the tables say `vector` without a schema. A migration waits only
-- briefly for a lock, so that it never stalls a queue of readers behind it; it fails and can be repeated.
SET ROLE planner_owner;

SET lock_timeout = '5s';

-- On Citus one shard after the other: it refuses a foreign key to a reference table otherwise. Elsewhere a name
-- that nobody reads.
SET citus.multi_shard_modify_mode = 'sequential';

SELECT set_config('search_path', 'planner, ' || quote_ident(n.nspname), false)
  FROM pg_extension x
  JOIN pg_namespace n ON n.oid = x.extnamespace
 WHERE x.extname = 'vector';
