-- Expectations: what plans should hold, in the caller's own words; kept, listed, removed.

-- name: add_expectation
-- Keep an expectation; one that is there already stays as it is.
INSERT INTO planner.expectation (scope_id, expectation_id, created_at, actor, plan_id, request, what, stage, note)
VALUES (%(scope_id)s, %(expectation_id)s, %(created_at)s, %(actor)s, %(plan_id)s, %(request)s::jsonb, %(what)s,
        %(stage)s, %(note)s)
ON CONFLICT (scope_id, expectation_id) DO NOTHING

-- name: expectations
-- A scope's expectations, oldest first, or the one of an id.
SELECT x.expectation_id, x.created_at, x.actor, x.plan_id::text, x.request, x.what, x.stage, x.note
  FROM planner.expectation x
 WHERE x.scope_id = %(scope_id)s AND x.expectation_id = coalesce(%(expectation_id)s::text, x.expectation_id)
 ORDER BY x.created_at, x.expectation_id

-- name: remove_expectation
-- Forget an expectation.
DELETE FROM planner.expectation AS x WHERE x.scope_id = %(scope_id)s AND x.expectation_id = %(expectation_id)s
