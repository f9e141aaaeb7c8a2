-- The overview: what a scope's plans did over a time, counted from the newest of them.
--
-- A plan's id is ordered by its time, so a time is a range of the primary key. How many plans are looked at is
-- bounded, the newest first; whoever shows the figures says how many there were.

-- name: overview_plans
-- Plans by bucket of time (counted from 0), and all of them in the row of a null bucket: outcomes, budgets, what
-- the caps stranded, what became of the candidates, and how long they took in milliseconds.
WITH p AS MATERIALIZED (
    SELECT x.plan_id, x.outcome, x.budget, x.used, (x.stats ->> 'budget_stranded_by_cap')::bigint AS stranded,
           x.n_candidates, x.n_selected, x.n_duplicate, x.n_unpackable, x.n_over_budget, x.n_over_source_cap,
           x.n_unsliceable,
           least(greatest(floor(extract(epoch FROM x.created_at - %(since)s::timestamptz) / %(width)s), 0),
                 %(last)s)::integer AS bucket,
           (SELECT sum(t.took::double precision) FROM jsonb_each_text(x.timings) AS t (stage, took)) AS took
      FROM planner.plan x
     WHERE x.scope_id = %(scope_id)s AND x.plan_id >= %(first)s AND x.plan_id < %(end)s
     ORDER BY x.plan_id DESC
     LIMIT %(limit)s
)
SELECT p.bucket, count(*),
       count(*) FILTER (WHERE p.outcome = 'planned'), count(*) FILTER (WHERE p.outcome = 'refused'),
       count(*) FILTER (WHERE p.outcome = 'failed'),
       coalesce(sum(p.budget) FILTER (WHERE p.outcome = 'planned'), 0)::bigint,
       coalesce(sum(p.used), 0)::bigint, coalesce(sum(p.stranded), 0)::bigint,
       count(*) FILTER (WHERE p.stranded > 0),
       coalesce(sum(p.n_candidates), 0)::bigint, coalesce(sum(p.n_selected), 0)::bigint,
       coalesce(sum(p.n_duplicate), 0)::bigint, coalesce(sum(p.n_unpackable), 0)::bigint,
       coalesce(sum(p.n_over_budget), 0)::bigint, coalesce(sum(p.n_over_source_cap), 0)::bigint,
       coalesce(sum(p.n_unsliceable), 0)::bigint,
       percentile_cont(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY p.took)
  FROM p
 GROUP BY GROUPING SETS ((p.bucket), ())
 ORDER BY p.bucket

-- name: overview_errors
-- Why plans were refused or failed: the code of the error, the most frequent first.
SELECT p.error_code, count(*)
  FROM (SELECT x.error_code
          FROM planner.plan x
         WHERE x.scope_id = %(scope_id)s AND x.plan_id >= %(first)s AND x.plan_id < %(end)s
         ORDER BY x.plan_id DESC
         LIMIT %(limit)s) p
 WHERE p.error_code IS NOT NULL
 GROUP BY p.error_code
 ORDER BY count(*) DESC, p.error_code

-- name: overview_stages
-- How long each stage took, in milliseconds: the median and the 95th percentile.
SELECT t.stage, percentile_cont(ARRAY[0.5, 0.95]) WITHIN GROUP (ORDER BY t.took::double precision)
  FROM (SELECT x.timings
          FROM planner.plan x
         WHERE x.scope_id = %(scope_id)s AND x.plan_id >= %(first)s AND x.plan_id < %(end)s
         ORDER BY x.plan_id DESC
         LIMIT %(limit)s) p
 CROSS JOIN LATERAL jsonb_each_text(p.timings) AS t (stage, took)
 GROUP BY t.stage
 ORDER BY t.stage

-- name: overview_sources
-- The sources that gave the most tokens to the newest plans, with the title of their newest version.
SELECT c.source_id, v.title, c.plans, c.spans, c.tokens
  FROM (SELECT y.source_id, count(DISTINCT y.plan_id) AS plans, count(*) AS spans, sum(y.tokens)::bigint AS tokens
          FROM (SELECT x.plan_id
                  FROM planner.plan x
                 WHERE x.scope_id = %(scope_id)s AND x.plan_id >= %(first)s AND x.plan_id < %(end)s
                 ORDER BY x.plan_id DESC
                 LIMIT %(plans)s) p
          JOIN planner.plan_candidate y
            ON y.scope_id = %(scope_id)s AND y.plan_id = p.plan_id AND y.outcome = 'selected'
         GROUP BY y.source_id
         ORDER BY sum(y.tokens) DESC, y.source_id
         LIMIT %(top)s) c
  LEFT JOIN LATERAL (
       SELECT z.title
         FROM planner.source_version z
        WHERE z.scope_id = %(scope_id)s AND z.source_id = c.source_id
        ORDER BY z.version_tx DESC
        LIMIT 1
      ) v ON true
 ORDER BY c.tokens DESC, c.source_id
