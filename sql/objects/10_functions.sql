-- The slice API: the bytes of a span and its row of the ledger, for people and jobs that work in SQL.
--
-- Both run with the caller's rights and carry the scope as an explicit predicate, so that a scope which is
-- not the caller's answers as one that does not exist: no row. The planner's own queries call neither (a
-- function that reads tables returns nothing inside a distributed query).

-- What an older version left behind goes: functions of this schema that are not named here or in 03_place.
DO $$
DECLARE
    leftover regprocedure;
BEGIN
    FOR leftover IN
        SELECT p.oid::regprocedure
          FROM pg_proc p
         WHERE p.pronamespace = 'planner'::regnamespace
           AND p.proname NOT IN ('place', 'canonical_slice', 'span_row')
    LOOP
        EXECUTE format('DROP FUNCTION %s', leftover);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION planner.canonical_slice(
    scope uuid, source text, version_tx bigint, span_start bigint, span_end bigint
) RETURNS text
LANGUAGE sql STABLE SECURITY INVOKER PARALLEL SAFE
AS $$
    SELECT CASE WHEN canonical_slice.span_start >= 0
                 AND canonical_slice.span_end >= canonical_slice.span_start
                 AND canonical_slice.span_end <= v.byte_length
                THEN convert_from(
                         -- least() keeps the casts in range also where they are folded before the test.
                         substring(v.body FROM (least(canonical_slice.span_start, v.byte_length) + 1)::integer
                                   FOR (least(canonical_slice.span_end, v.byte_length)
                                        - least(canonical_slice.span_start, v.byte_length))::integer),
                         'UTF8')
           END
      FROM planner.source_version v
     WHERE v.scope_id = canonical_slice.scope
       AND v.source_id = canonical_slice.source
       AND v.version_tx = canonical_slice.version_tx
$$;

COMMENT ON FUNCTION planner.canonical_slice(uuid, text, bigint, bigint, bigint) IS
    'Bytes [span_start, span_end) of a source version''s canonical UTF-8 text. Null where the version is '
    'unknown, erased or shorter; error 22021 where a bound cuts a character in two';

CREATE OR REPLACE FUNCTION planner.span_row(
    scope uuid, source text, version_tx bigint, span_start bigint, span_end bigint
) RETURNS SETOF planner.span
LANGUAGE sql STABLE SECURITY INVOKER PARALLEL SAFE ROWS 1
AS $$
    SELECT s.*
      FROM planner.span s
     WHERE s.scope_id = span_row.scope
       AND s.source_id = span_row.source
       AND s.version_tx = span_row.version_tx
       AND s.span_start = span_row.span_start
       AND s.span_end = span_row.span_end
$$;

COMMENT ON FUNCTION planner.span_row(uuid, text, bigint, bigint, bigint) IS
    'The row of the span ledger with exactly this key, or none';
