-- Alone: every tenant table and view, which the files after this one change, locked at once before the first change.
--
-- To change a policy takes a lock that nobody else may share. Taken one by one while planners work, such locks meet
-- those of a writer that goes through the tables in another order, and one of the two has to be broken off. So
-- nothing is waited for while anything is held: `scope` first, in which most work begins, then the others as they
-- are free. Where one is not, all are given back, it is waited for alone, and it begins again. Each wait is bounded
-- by lock_timeout (02_session).
DO $$
DECLARE
    others CONSTANT regclass[] := ARRAY(
        SELECT c.oid::regclass
          FROM pg_class c
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope_id' AND NOT a.attisdropped
         WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind IN ('r', 'v') AND c.relname <> 'scope'
         ORDER BY c.relkind, c.relname);
    busy regclass;
BEGIN
    FOR attempt IN 1..50 LOOP
        busy := NULL;
        BEGIN
            LOCK TABLE planner.scope IN ACCESS EXCLUSIVE MODE;
            FOREACH busy IN ARRAY others LOOP
                EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE NOWAIT', busy);
            END LOOP;
            RETURN;
        EXCEPTION WHEN lock_not_available THEN
            IF busy IS NULL THEN
                RAISE;
            END IF;
        END;
        BEGIN
            EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', busy);
            RAISE EXCEPTION USING ERRCODE = 'PLFRE';
        EXCEPTION WHEN SQLSTATE 'PLFRE' THEN
            NULL;
        END;
    END LOOP;
    RAISE EXCEPTION 'could not obtain a lock on all tables at once, the last to be in use was %', busy
        USING ERRCODE = 'lock_not_available';
END $$;
