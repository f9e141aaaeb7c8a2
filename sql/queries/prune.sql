-- Bounding the trace, as planner_owner. Plan and delivery ids are UUIDs of version 7: a time is a bound on them.

-- name: prunable
-- How much of a scope's trace lies below the bound.
SELECT (SELECT count(*) FROM planner.plan p WHERE p.scope_id = %(scope_id)s AND p.plan_id < %(bound)s),
       (SELECT count(*) FROM planner.delivery d
         WHERE d.scope_id = %(scope_id)s
           AND (d.delivery_id < %(bound)s OR d.plan_id < %(bound)s))

-- name: prune_plans
-- Delete a batch of a scope's plans below the bound, oldest first, with all that hangs on them: their pools,
-- their nodes and their deliveries, later ones too. There are no foreign keys to do it. Plans that somebody else is
-- deleting are passed over: whoever has a plan's row deletes what hangs on it, and nobody waits in a circle.
WITH old AS MATERIALIZED (
    SELECT o.plan_id
      FROM planner.plan o
     WHERE o.scope_id = %(scope_id)s AND o.plan_id < %(bound)s
     ORDER BY o.plan_id
     LIMIT %(batch)s
       FOR UPDATE SKIP LOCKED
), candidate AS (
    DELETE FROM planner.plan_candidate AS c USING old
     WHERE c.scope_id = %(scope_id)s AND c.plan_id = old.plan_id
    RETURNING 1
), node AS (
    DELETE FROM planner.plan_node AS n USING old
     WHERE n.scope_id = %(scope_id)s AND n.plan_id = old.plan_id
    RETURNING 1
), delivered AS (
    DELETE FROM planner.delivery AS d USING old
     WHERE d.scope_id = %(scope_id)s AND d.plan_id = old.plan_id
    RETURNING 1
), plan AS (
    DELETE FROM planner.plan AS p USING old
     WHERE p.scope_id = %(scope_id)s AND p.plan_id = old.plan_id
    RETURNING 1
)
SELECT (SELECT count(*) FROM plan), (SELECT count(*) FROM candidate), (SELECT count(*) FROM node),
       (SELECT count(*) FROM delivered)

-- name: prune_deliveries
-- Delete a batch of the deliveries below the bound that are left: those that no plan came before. The batch is chosen
-- once, in a CTE that is materialised: as a subquery it may be run again for each row, past those already deleted.
WITH old AS MATERIALIZED (
    SELECT o.delivery_id
      FROM planner.delivery o
     WHERE o.scope_id = %(scope_id)s AND o.delivery_id < %(bound)s
     ORDER BY o.delivery_id
     LIMIT %(batch)s
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM planner.delivery AS d USING old
     WHERE d.scope_id = %(scope_id)s AND d.delivery_id = old.delivery_id
    RETURNING 1
)
SELECT count(*) FROM gone
