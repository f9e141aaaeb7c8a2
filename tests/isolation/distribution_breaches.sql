-- What in the schema would keep it from being distributed by scope_id: one row a breach, (rule, what).
-- Shared tables, which have no scope_id, are the reference table and alembic's own.
WITH tables AS (
    SELECT c.oid, c.relname, a.attnum AS scope_column, a.attnotnull, a.atttypid
      FROM pg_class c
      LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id' AND NOT a.attisdropped
     WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'p')
), shared AS (
    SELECT oid FROM tables WHERE relname IN ('embedding_model', 'alembic_version')
), tenant AS (
    SELECT t.* FROM tables t WHERE t.oid NOT IN (SELECT oid FROM shared)
)
SELECT 'neither tenant nor shared', relname FROM tenant WHERE scope_column IS NULL
UNION ALL
SELECT 'scope_id may be null', relname FROM tenant WHERE NOT attnotnull
UNION ALL
SELECT 'scope_id is no uuid', relname FROM tenant WHERE atttypid <> 'uuid'::regtype
UNION ALL
SELECT 'no primary key', t.relname
  FROM tables t
 WHERE NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conrelid = t.oid AND k.contype = 'p')
UNION ALL
-- A foreign key from a tenant table to a shared one is allowed and has no scope.
SELECT 'key', k.conname
  FROM pg_constraint k JOIN tenant t ON t.oid = k.conrelid
 WHERE k.contype IN ('p', 'u', 'f', 'x') AND k.conkey[1] IS DISTINCT FROM t.scope_column
   AND NOT (k.contype = 'f' AND k.confrelid IN (SELECT oid FROM shared))
UNION ALL
SELECT 'foreign key between kinds', k.conname
  FROM pg_constraint k
 WHERE k.contype = 'f' AND k.conrelid IN (SELECT oid FROM shared)
UNION ALL
SELECT 'foreign key action', k.conname
  FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid
 WHERE k.contype = 'f' AND (k.confupdtype <> 'a' OR k.confdeltype IN ('n', 'd'))
UNION ALL
SELECT 'deferrable', k.conname
  FROM pg_constraint k JOIN tables t ON t.oid = k.conrelid
 WHERE k.condeferrable
UNION ALL
-- Excepted is a scope's own partial index, which names its scope in the predicate.
SELECT 'index', c.relname
  FROM pg_index i JOIN tenant t ON t.oid = i.indrelid JOIN pg_class c ON c.oid = i.indexrelid
 WHERE i.indkey[0] IS DISTINCT FROM t.scope_column
   AND coalesce(pg_get_expr(i.indpred, i.indrelid), '') NOT LIKE '%(scope_id = ''%'
UNION ALL
SELECT 'identity', t.relname || '.' || a.attname
  FROM pg_attribute a JOIN tables t ON t.oid = a.attrelid
 WHERE a.attidentity <> ''
UNION ALL
SELECT 'serial', t.relname || '.' || a.attname
  FROM pg_depend d
  JOIN pg_class s ON s.oid = d.objid AND s.relkind = 'S'
  JOIN tables t ON t.oid = d.refobjid
  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = d.refobjsubid
 WHERE d.classid = 'pg_class'::regclass AND d.deptype = 'a'
UNION ALL
SELECT 'trigger', g.tgname
  FROM pg_trigger g JOIN tables t ON t.oid = g.tgrelid
 WHERE NOT g.tgisinternal
