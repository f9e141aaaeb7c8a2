-- The trace for people and jobs: views that stay while the tables beneath them may change.
--
-- All are security_invoker: a view shows what its reader may see, and row security applies to the reader.
-- Text is read from the source version at this moment, never from the trace, so that an erased source is
-- gone from here as well: its rows stay, with a null text and origin_erased.

-- What an older version left behind goes: views of this schema that are not named here.
DO $$
DECLARE
    leftover regclass;
BEGIN
    FOR leftover IN
        SELECT c.oid::regclass
          FROM pg_class c
         WHERE c.relnamespace = 'planner'::regnamespace AND c.relkind = 'v'
           AND c.relname NOT IN ('plan_overview', 'plan_evidence', 'plan_rejected', 'plan_sources',
                                 'source_usage', 'plan_latency')
    LOOP
        EXECUTE format('DROP VIEW %s', leftover);
    END LOOP;
END $$;

CREATE OR REPLACE VIEW planner.plan_overview WITH (security_invoker = true) AS
SELECT p.scope_id,
       s.name AS scope,
       p.plan_id,
       s.name || ':' || p.plan_id AS plan,
       p.created_at,
       p.request ->> 'text' AS question,
       p.outcome,
       p.error_code,
       p.budget_requested,
       p.budget,
       p.narrowed_by,
       p.cap,
       p.used,
       p.counter,
       p.token_estimate,
       p.n_candidates,
       p.n_selected,
       p.n_duplicate,
       p.n_unpackable,
       p.n_over_budget,
       p.n_over_source_cap,
       p.n_unsliceable,
       p.as_of,
       p.plan_model,
       p.score_model,
       encode(p.plan_hash, 'hex') AS plan_hash,
       encode(p.pool_hash, 'hex') AS pool_hash
  FROM planner.plan p
  JOIN planner.scope s ON s.scope_id = p.scope_id;

COMMENT ON VIEW planner.plan_overview IS 'One row a plan: what was asked, what came of it, how the budget went';

CREATE OR REPLACE VIEW planner.plan_evidence WITH (security_invoker = true) AS
SELECT c.scope_id,
       c.plan_id,
       c.selection_order,
       c.rank,
       c.source_id,
       v.title,
       v.uri,
       v.trust,
       c.class,
       c.version_tx,
       c.span_start,
       c.span_end,
       c.kind,
       c.node_id,
       c.score,
       c.weight,
       c.tokens,
       CASE WHEN c.span_end <= v.byte_length
            THEN convert_from(
                     substring(v.body FROM (c.span_start + 1)::integer FOR (c.span_end - c.span_start)::integer),
                     'UTF8')
       END AS text,
       v.erased_tx IS NOT NULL AS origin_erased
  FROM planner.plan_candidate c
  LEFT JOIN planner.source_version v
         ON v.scope_id = c.scope_id AND v.source_id = c.source_id AND v.version_tx = c.version_tx
 WHERE c.outcome = 'selected';

COMMENT ON VIEW planner.plan_evidence IS
    'One row a selected span, with its source and its text as they are now; order by plan_id, selection_order';

CREATE OR REPLACE VIEW planner.plan_rejected WITH (security_invoker = true) AS
SELECT c.scope_id,
       c.plan_id,
       c.rank,
       c.outcome,
       c.source_id,
       v.title,
       c.class,
       c.version_tx,
       c.span_start,
       c.span_end,
       c.kind,
       c.node_id,
       c.score,
       c.weight,
       c.tokens,
       c.duplicate_of AS duplicate_of_rank,
       o.source_id AS duplicate_of_source_id,
       o.version_tx AS duplicate_of_version_tx,
       o.span_start AS duplicate_of_start,
       o.span_end AS duplicate_of_end,
       v.erased_tx IS NOT NULL AS origin_erased
  FROM planner.plan_candidate c
  LEFT JOIN planner.plan_candidate o
         ON o.scope_id = c.scope_id AND o.plan_id = c.plan_id AND o.rank = c.duplicate_of
  LEFT JOIN planner.source_version v
         ON v.scope_id = c.scope_id AND v.source_id = c.source_id AND v.version_tx = c.version_tx
 WHERE c.outcome <> 'selected';

COMMENT ON VIEW planner.plan_rejected IS
    'One row a span that was not selected, and why; a duplicate names the span that stands for it';

CREATE OR REPLACE VIEW planner.plan_sources WITH (security_invoker = true) AS
SELECT p.scope_id,
       p.plan_id,
       c.source_id,
       c.n_candidates,
       c.n_selected,
       c.n_over_source_cap,
       c.tokens,
       p.cap,
       p.budget,
       c.tokens::double precision / nullif(p.cap, 0) AS share_of_cap,
       c.tokens::double precision / nullif(p.budget, 0) AS share_of_budget
  FROM planner.plan p
  JOIN (SELECT x.scope_id, x.plan_id, x.source_id,
               count(*) AS n_candidates,
               count(*) FILTER (WHERE x.outcome = 'selected') AS n_selected,
               count(*) FILTER (WHERE x.outcome = 'over_source_cap') AS n_over_source_cap,
               coalesce(sum(x.tokens) FILTER (WHERE x.outcome = 'selected'), 0)::bigint AS tokens
          FROM planner.plan_candidate x
         GROUP BY x.scope_id, x.plan_id, x.source_id) c
    ON c.scope_id = p.scope_id AND c.plan_id = p.plan_id;

COMMENT ON VIEW planner.plan_sources IS 'One row a plan and source: tokens of it that were selected, against the cap';

CREATE OR REPLACE VIEW planner.source_usage WITH (security_invoker = true) AS
SELECT c.scope_id,
       c.source_id,
       c.version_tx,
       c.plan_id,
       p.created_at,
       p.request ->> 'text' AS question,
       c.n_selected,
       c.tokens
  FROM (SELECT x.scope_id, x.source_id, x.version_tx, x.plan_id,
               count(*) AS n_selected,
               sum(x.tokens)::bigint AS tokens
          FROM planner.plan_candidate x
         WHERE x.outcome = 'selected'
         GROUP BY x.scope_id, x.source_id, x.version_tx, x.plan_id) c
  JOIN planner.plan p ON p.scope_id = c.scope_id AND p.plan_id = c.plan_id;

COMMENT ON VIEW planner.source_usage IS 'One row a source version and plan that used it: which answers rest on this source?';

CREATE OR REPLACE VIEW planner.plan_latency WITH (security_invoker = true) AS
SELECT p.scope_id,
       p.plan_id,
       p.created_at,
       p.outcome,
       p.n_candidates,
       t.stage,
       t.took::double precision AS milliseconds
  FROM planner.plan p
 CROSS JOIN LATERAL jsonb_each_text(p.timings) AS t (stage, took);

COMMENT ON VIEW planner.plan_latency IS 'One row a plan and stage: milliseconds that the stage took';
