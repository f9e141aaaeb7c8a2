-- Every privilege on anything in the schema, one a line: what, who, which verbs; the owner's own are left out.
-- Roles come first: nobody logs in as one, none bypasses row security.
WITH acl (object, owner, acl, attname) AS (
    SELECT 'schema ' || n.nspname, n.nspowner, n.nspacl, NULL::name
      FROM pg_namespace n WHERE n.nspname = 'planner'
    UNION ALL
    SELECT CASE c.relkind WHEN 'v' THEN 'view ' WHEN 'S' THEN 'sequence ' ELSE 'table ' END || c.relname,
           c.relowner, coalesce(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner)),
           NULL
      FROM pg_class c WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
    UNION ALL
    SELECT CASE c.relkind WHEN 'v' THEN 'view ' ELSE 'table ' END || c.relname, c.relowner, a.attacl, a.attname
      FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE c.relnamespace = 'planner'::regnamespace AND a.attacl IS NOT NULL AND NOT a.attisdropped
    UNION ALL
    SELECT 'function ' || p.proname, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)), NULL
      FROM pg_proc p WHERE p.pronamespace = 'planner'::regnamespace
), granted AS (
    SELECT a.object, coalesce(r.rolname, 'PUBLIC') AS grantee, x.is_grantable,
           x.privilege_type || coalesce('(' || string_agg(a.attname, ', ' ORDER BY a.attname) || ')', '') AS verb
      FROM acl AS a (object, owner, acl, attname)
     CROSS JOIN LATERAL aclexplode(a.acl) AS x
      LEFT JOIN pg_roles r ON r.oid = x.grantee
     WHERE x.grantee <> a.owner
     GROUP BY a.object, r.rolname, x.is_grantable, x.privilege_type, a.attname IS NULL
)
SELECT line FROM (
    SELECT 0, format('role %s%s%s%s', r.rolname,
                     CASE WHEN r.rolcanlogin THEN ' LOGIN' ELSE ' NOLOGIN' END,
                     CASE WHEN r.rolbypassrls THEN ' BYPASSRLS' ELSE ' NOBYPASSRLS' END,
                     CASE WHEN r.rolsuper OR r.rolcreaterole OR r.rolcreatedb THEN ' POWERFUL' ELSE '' END)
      FROM pg_roles r
     WHERE r.rolname IN ('planner_owner', 'planner_writer', 'planner_reader', 'planner_inspector')
    UNION ALL
    SELECT 1, format('owner of everything: %s', string_agg(DISTINCT a.owner::regrole::text, ', '))
      FROM acl AS a (object, owner, acl, attname)
    UNION ALL
    SELECT 2, format('%s %s: %s%s', g.object, g.grantee, string_agg(g.verb, ', ' ORDER BY g.verb),
                     CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
      FROM granted g
     GROUP BY g.object, g.grantee, g.is_grantable
) AS lines (part, line)
 ORDER BY part, line COLLATE "C"
