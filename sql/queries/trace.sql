-- The trace: what a plan decided, written and read back. No source text is in it.

-- name: persist_plan
-- Write one plan with its whole pool in one statement: the counts of the plan row are those of the candidate
-- rows that were really inserted, so its checks hold the two together. Counts made on the way are kept too, but
-- none of a text that was erased since it was read; in one order, or two plans that counted the same texts could
-- wait for each other.
WITH candidate AS (
    INSERT INTO planner.plan_candidate (scope_id, plan_id, rank, selection_order, source_id, version_tx,
           span_start, span_end, kind, class, score, weight, weight_bits, tokens, text_hash, node_id, outcome,
           duplicate_of)
    SELECT %(scope_id)s, %(plan_id)s, r.*
      FROM unnest(%(rank)s::integer[], %(selection_order)s::integer[], %(source_id)s::text[],
                  %(version_tx)s::bigint[], %(start)s::bigint[], %(end)s::bigint[], %(kind)s::text[],
                  %(class)s::text[], %(score)s::double precision[], %(weight)s::double precision[],
                  %(weight_bits)s::bigint[], %(tokens)s::bigint[], %(text_hash)s::bytea[], %(node_id)s::text[],
                  %(candidate_outcome)s::text[], %(duplicate_of)s::integer[]) AS r
    RETURNING outcome
), node AS (
    INSERT INTO planner.plan_node (scope_id, plan_id, node_id, legs, score, similarity, hops, decay, path, cut)
    SELECT %(scope_id)s, %(plan_id)s, r.node_id, string_to_array(r.legs, ','), r.score, r.similarity, r.hops,
           r.decay, r.path::jsonb, r.cut
      FROM unnest(%(n_node_id)s::text[], %(n_legs)s::text[], %(n_score)s::double precision[],
                  %(n_similarity)s::double precision[], %(n_hops)s::integer[], %(n_decay)s::double precision[],
                  %(n_path)s::text[], %(n_cut)s::text[])
           AS r (node_id, legs, score, similarity, hops, decay, path, cut)
), counted AS (
    INSERT INTO planner.token_count (scope_id, text_hash, counter, tokens)
    SELECT %(scope_id)s, r.text_hash, %(counter)s, r.tokens
      FROM unnest(%(t_hash)s::bytea[], %(t_tokens)s::bigint[]) AS r (text_hash, tokens)
     WHERE EXISTS (SELECT FROM unnest(%(source_id)s::text[], %(version_tx)s::bigint[], %(text_hash)s::bytea[])
                               AS c (source_id, version_tx, text_hash)
                     JOIN planner.source_version v
                       ON v.scope_id = %(scope_id)s AND v.source_id = c.source_id COLLATE "C"
                      AND v.version_tx = c.version_tx AND v.erased_tx IS NULL
                    WHERE c.text_hash = r.text_hash)
     ORDER BY r.text_hash
    ON CONFLICT (scope_id, text_hash, counter) DO NOTHING
)
INSERT INTO planner.plan (scope_id, plan_id, created_at, outcome, error_code, error, plan_hash, pool_hash,
       plan_model, score_model, as_of, request, config, query_vectors, counter, token_estimate,
       budget_requested, budget, budget_ceiling, narrowed_by, max_frac, cap, used, stats, recall, cuts, timings,
       versions, n_candidates, n_selected, n_duplicate, n_unpackable, n_over_budget, n_over_source_cap,
       n_unsliceable)
SELECT %(scope_id)s, %(plan_id)s, %(created_at)s, %(outcome)s, %(error_code)s, %(error)s::jsonb, %(plan_hash)s,
       %(pool_hash)s, %(plan_model)s, %(score_model)s, %(as_of)s, %(request)s::jsonb, %(config)s::jsonb,
       %(query_vectors)s::real[], %(counter)s, %(token_estimate)s, %(budget_requested)s, %(budget)s,
       %(budget_ceiling)s, %(narrowed_by)s, %(max_frac)s, %(cap)s, %(used)s, %(stats)s::jsonb, %(recall)s::jsonb,
       %(cuts)s::jsonb, %(timings)s::jsonb, %(versions)s::jsonb, count(*),
       count(*) FILTER (WHERE c.outcome = 'selected'), count(*) FILTER (WHERE c.outcome = 'duplicate'),
       count(*) FILTER (WHERE c.outcome = 'unpackable'), count(*) FILTER (WHERE c.outcome = 'over_budget'),
       count(*) FILTER (WHERE c.outcome = 'over_source_cap'), count(*) FILTER (WHERE c.outcome = 'unsliceable')
  FROM candidate c

-- name: plan_row
-- One plan, as it was recorded.
SELECT p.created_at, p.outcome, p.error, p.plan_hash, p.pool_hash, p.plan_model, p.score_model, p.as_of,
       p.request, p.config, p.query_vectors, p.counter, p.token_estimate, p.budget_requested, p.budget,
       p.budget_ceiling, p.narrowed_by, p.max_frac, p.cap, p.used, p.stats, p.recall, p.cuts, p.timings, p.versions
  FROM planner.plan p
 WHERE p.scope_id = %(scope_id)s AND p.plan_id = %(plan_id)s

-- name: plan_candidates
-- The whole pool of a plan, in rank order.
SELECT c.rank, c.selection_order, c.source_id, c.version_tx, c.span_start, c.span_end, c.kind, c.class, c.score,
       c.weight_bits, c.tokens, c.text_hash, c.node_id, c.outcome, c.duplicate_of
  FROM planner.plan_candidate c
 WHERE c.scope_id = %(scope_id)s AND c.plan_id = %(plan_id)s
 ORDER BY c.rank

-- name: plan_nodes
-- The nodes that a plan's recall found, best first.
SELECT n.node_id, n.legs, n.score, n.similarity, n.hops, n.decay, n.path, n.cut
  FROM planner.plan_node n
 WHERE n.scope_id = %(scope_id)s AND n.plan_id = %(plan_id)s
 ORDER BY n.score DESC, n.node_id

-- name: list_plans
-- A page of a scope's plans, newest first: ids are ordered by time, so that all but the search in questions is
-- a range of the primary key. A question is looked for as it is written, but for upper and lower case.
SELECT p.plan_id, p.created_at, p.outcome, p.error_code,
       coalesce(p.request ->> 'text', p.request -> 'parts' ->> 0),
       p.budget_requested, p.budget, p.cap, p.used, p.counter, p.as_of, p.plan_model, p.score_model,
       p.plan_hash, p.pool_hash, p.n_candidates,
       (SELECT coalesce(sum(t.value::double precision), 0) FROM jsonb_each_text(p.timings) AS t),
       p.n_selected, p.n_duplicate, p.n_unpackable, p.n_over_budget, p.n_over_source_cap, p.n_unsliceable
  FROM planner.plan p
 WHERE p.scope_id = %(scope_id)s AND p.plan_id >= %(first)s AND p.plan_id < %(before)s
   AND (%(outcome)s::text IS NULL OR p.outcome = %(outcome)s)
   AND (%(text)s::text IS NULL
        OR strpos(lower(coalesce(p.request ->> 'text', p.request -> 'parts' ->> 0)), lower(%(text)s)) > 0)
 ORDER BY p.plan_id DESC
 LIMIT %(limit)s
