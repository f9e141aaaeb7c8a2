-- The ground: pgvector, the schema, and the roles' way to pgvector's types.
--
-- The extension stays in whatever schema it was installed in. Only where it is missing is it created, which
-- takes a superuser. The schema and all in it belong to planner_owner; the login only has to be allowed to
-- create a schema in this database, once.
CREATE EXTENSION IF NOT EXISTS vector;

DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'planner') THEN
        CREATE SCHEMA planner AUTHORIZATION planner_owner;
    END IF;
END $$;

DO $$
DECLARE
    vector_schema text;
    role_name     text;
BEGIN
    SELECT n.nspname INTO vector_schema
      FROM pg_extension x
      JOIN pg_namespace n ON n.oid = x.extnamespace
     WHERE x.extname = 'vector';
    FOREACH role_name IN ARRAY
        ARRAY['planner_owner', 'planner_writer', 'planner_reader', 'planner_inspector']
    LOOP
        IF NOT has_schema_privilege(role_name, vector_schema, 'USAGE') THEN
            EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', vector_schema, role_name);
        END IF;
    END LOOP;
END $$;
