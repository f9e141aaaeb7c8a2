-- Row security: the second fence, behind the scope_id predicate that every statement carries itself.
--
-- A table with a scope_id is a tenant table, and every tenant table gets the same two policies. `tenant`: the
-- scope that the transaction has set, and nothing where it has set none (an empty setting is none).
-- `owner`: planner_owner sees and may write everything. Row security is forced, so without that policy the
-- owner's backfill would update no row and the check of a new foreign key would pass over orphans.
-- Policies are dropped first, whatever their names, so that nothing of an older version survives.
DO $$
DECLARE
    tenant_table regclass;
    stale        name;
BEGIN
    FOR tenant_table IN
        SELECT c.oid::regclass
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id' AND NOT a.attisdropped
         WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'r'
         ORDER BY c.relname
    LOOP
        FOR stale IN SELECT polname FROM pg_policy WHERE polrelid = tenant_table LOOP
            EXECUTE format('DROP POLICY %I ON %s', stale, tenant_table);
        END LOOP;
        EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', tenant_table);
        EXECUTE format(
            $policy$
            CREATE POLICY tenant ON %s TO planner_writer, planner_reader, planner_inspector
                USING (scope_id = nullif(current_setting('planner.scope_id', true), '')::uuid)
                WITH CHECK (scope_id = nullif(current_setting('planner.scope_id', true), '')::uuid)
            $policy$, tenant_table);
        EXECUTE format('CREATE POLICY owner ON %s TO planner_owner USING (true) WITH CHECK (true)', tenant_table);
    END LOOP;
END $$;
