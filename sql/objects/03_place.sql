-- Where a table lives: nowhere special on plain PostgreSQL, distributed by scope_id on Citus.
--
-- A migration calls place(table) between CREATE TABLE and the foreign keys, the order that a distributed
-- engine needs. Calling it again changes nothing. embedding_model is small and shared: a reference table;
-- every other table is a tenant's and lies beside its scope.
CREATE OR REPLACE FUNCTION planner.place(table_name text) RETURNS void
LANGUAGE plpgsql SECURITY INVOKER
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    target CONSTANT regclass := format('planner.%I', table_name)::regclass;
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = target) THEN
        RETURN;
    END IF;
    IF table_name = 'embedding_model' THEN
        PERFORM create_reference_table(target);
    ELSIF table_name = 'scope' THEN
        PERFORM create_distributed_table(target, 'scope_id', colocate_with => 'none');
    ELSE
        PERFORM create_distributed_table(target, 'scope_id', colocate_with => 'planner.scope');
    END IF;
END $$;

COMMENT ON FUNCTION planner.place(text) IS 'Distribute a new table by scope_id where Citus is installed';
