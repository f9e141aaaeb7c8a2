-- The four roles, and this login's right to become them.
--
-- Nobody logs in as a role of the planner: a login becomes one for the length of a transaction, so that row
-- security holds even where the login itself would bypass it. Roles belong to the cluster, so a migration of
-- another database may be creating the same ones at this moment: to find that it was first is not an error.
--
-- Membership is granted only where it is missing, and from PostgreSQL 16 on without inheritance: a login that
-- has not yet taken a role sees nothing. `planner migrate --no-roles` leaves this file out.
DO $$
DECLARE
    role_name text;
    modern    CONSTANT boolean := current_setting('server_version_num')::integer >= 160000;
BEGIN
    FOREACH role_name IN ARRAY
        ARRAY['planner_owner', 'planner_writer', 'planner_reader', 'planner_inspector']
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN NOBYPASSRLS', role_name);
            EXCEPTION WHEN duplicate_object OR unique_violation THEN
                NULL;
            END;
        END IF;
        IF NOT pg_has_role(current_user, role_name, CASE WHEN modern THEN 'SET' ELSE 'MEMBER' END) THEN
            BEGIN
                EXECUTE format('GRANT %I TO %I', role_name, current_user)
                     || CASE WHEN modern THEN ' WITH INHERIT FALSE, SET TRUE' ELSE '' END;
            EXCEPTION WHEN unique_violation THEN
                NULL;
            END;
        END IF;
    END LOOP;
END $$;
