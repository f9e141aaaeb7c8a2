"""The trace's tables, the expectations and the access tokens, part of `planner.store.schema`.

No foreign keys lead out of a trace, and it never holds source text: it outlives what it speaks of.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB

from planner.store.columns import ID, TIME, check, column, key, metadata, optional, reference, scope_id

plan = sa.Table(
    "plan",
    metadata,
    scope_id(),
    column("plan_id", sa.Uuid),
    column("created_at", TIME),
    column("outcome", sa.Text),
    optional("error_code", sa.Text),
    optional("error", JSONB),
    optional("plan_hash", BYTEA),
    optional("pool_hash", BYTEA),
    column("plan_model", sa.Text),
    column("score_model", sa.Text),
    column("as_of", sa.BigInteger),
    column("request", JSONB),
    column("config", JSONB),
    column("query_vectors", ARRAY(sa.REAL)),
    column("counter", sa.Text),
    column("token_estimate", sa.Boolean),
    column("budget_requested", sa.BigInteger),
    column("budget", sa.BigInteger),
    optional("budget_ceiling", sa.BigInteger),
    optional("narrowed_by", sa.Text),
    column("max_frac", sa.Double),
    column("cap", sa.BigInteger),
    column("used", sa.BigInteger),
    column("stats", JSONB),
    column("recall", JSONB),
    column("cuts", JSONB),
    column("timings", JSONB),
    column("versions", JSONB),
    column("n_candidates", sa.BigInteger),
    column("n_selected", sa.BigInteger),
    column("n_duplicate", sa.BigInteger),
    column("n_unpackable", sa.BigInteger),
    column("n_over_budget", sa.BigInteger),
    column("n_over_source_cap", sa.BigInteger),
    column("n_unsliceable", sa.BigInteger),
    key("plan_pkey", "scope_id", "plan_id"),
    check("plan_outcome_check", "outcome IN ('planned', 'refused', 'failed')"),
    check("plan_error_check", "(outcome = 'planned') = (error_code IS NULL)"),
    check(
        "plan_hash_check",
        "outcome <> 'planned' OR coalesce(length(plan_hash) = 32 AND length(pool_hash) = 32, false)",
    ),
    check(
        "plan_budget_check", "used >= 0 AND used <= budget AND budget <= budget_requested AND cap <= budget"
    ),
    check(
        "plan_counts_check",
        "n_selected + n_duplicate + n_unpackable + n_over_budget + n_over_source_cap + n_unsliceable"
        " = n_candidates",
    ),
)

plan_candidate = sa.Table(
    "plan_candidate",
    metadata,
    scope_id(),
    column("plan_id", sa.Uuid),
    column("rank", sa.Integer),
    optional("selection_order", sa.Integer),
    column("source_id", ID),
    column("version_tx", sa.BigInteger),
    column("span_start", sa.BigInteger),
    column("span_end", sa.BigInteger),
    column("kind", ID),
    column("class", sa.Text),
    column("score", sa.Double),
    column("weight", sa.Double),
    column("weight_bits", sa.BigInteger),
    column("tokens", sa.BigInteger),
    column("text_hash", BYTEA),
    optional("node_id", ID),
    column("outcome", sa.Text),
    optional("duplicate_of", sa.Integer),
    key("plan_candidate_pkey", "scope_id", "plan_id", "rank"),
    check("plan_candidate_range_check", "span_start >= 0 AND span_end > span_start"),
    check(
        "plan_candidate_outcome_check",
        "outcome IN ('selected', 'duplicate', 'unpackable', 'over_budget', 'over_source_cap', 'unsliceable')",
    ),
    check("plan_candidate_order_check", "(outcome = 'selected') = (selection_order IS NOT NULL)"),
    check("plan_candidate_duplicate_check", "(outcome = 'duplicate') = (duplicate_of IS NOT NULL)"),
)
# "Which plans used this source?"
sa.Index(
    "plan_candidate_source_idx",
    plan_candidate.c.scope_id,
    plan_candidate.c.source_id,
    postgresql_where=plan_candidate.c.outcome == "selected",
)

plan_node = sa.Table(
    "plan_node",
    metadata,
    scope_id(),
    column("plan_id", sa.Uuid),
    column("node_id", ID),
    column("legs", ARRAY(sa.Text)),
    column("score", sa.Double),
    optional("similarity", sa.Double),
    optional("hops", sa.Integer),
    optional("decay", sa.Double),
    optional("path", JSONB),
    optional("cut", sa.Text),
    key("plan_node_pkey", "scope_id", "plan_id", "node_id"),
    check("plan_node_cut_check", "cut IN ('max_nodes')"),
)

delivery = sa.Table(
    "delivery",
    metadata,
    scope_id(),
    column("delivery_id", sa.Uuid),
    optional("plan_id", sa.Uuid),
    column("created_at", TIME),
    column("unit", sa.Text),
    column("framing_version", sa.Text),
    column("counter", sa.Text),
    column("budget", sa.BigInteger),
    column("used", sa.BigInteger),
    column("delivery_hash", BYTEA),
    column("options", JSONB),
    column("items", JSONB),
    column("skipped", JSONB),
    column("cuts", JSONB),
    key("delivery_pkey", "scope_id", "delivery_id"),
    check("delivery_budget_check", "used >= 0 AND used <= budget"),
    check("delivery_hash_check", "length(delivery_hash) = 32"),
)
sa.Index("delivery_plan_idx", delivery.c.scope_id, delivery.c.plan_id)

expectation = sa.Table(
    "expectation",
    metadata,
    scope_id(),
    column("expectation_id", ID),
    column("created_at", TIME),
    column("actor", sa.Text),
    column("plan_id", sa.Uuid),
    column("request", JSONB),
    column("what", sa.Text),
    column("stage", sa.Text),
    optional("note", sa.Text),
    key("expectation_pkey", "scope_id", "expectation_id"),
    check("expectation_id_check", "expectation_id ~ '^[0-9a-f]{16}$'"),
    reference("expectation_scope_fkey", "scope", "scope_id"),
)

api_token = sa.Table(
    "api_token",
    metadata,
    scope_id(),
    column("token_hash", BYTEA),
    column("label", sa.Text),
    column("permissions", ARRAY(sa.Text)),
    column("created_at", TIME),
    optional("expires_at", TIME),
    optional("revoked_at", TIME),
    key("api_token_pkey", "scope_id", "token_hash"),
    check("api_token_hash_check", "length(token_hash) = 32"),
    check("api_token_permissions_check", "permissions <@ ARRAY['read', 'write', 'erase', 'inspect']"),
    reference("api_token_scope_fkey", "scope", "scope_id"),
)
