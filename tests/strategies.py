"""Hypothesis strategies for selection: candidates, pools, policies and budgets."""

from __future__ import annotations

from hypothesis import strategies as st

from planner.selection.budget import resolve_budget
from planner.settings import DEFAULT_KIND_PRIORS
from planner.types import Budget, Candidate, SelectionPolicy

TEXT_PIECES = (
    "a",
    "word ",
    "\n",
    "é",
    "漢字",
    "かな",
    "👩‍👩‍👧",
    "🇨🇭",
    "e\u0301",
    "ก็",
    "\u200d",
    "\U0010ffff",
)
SOURCE_IDS = ("a", "b.md", "Z", "é", "日本", "\U0001f600", "\uffff")

texts = st.lists(st.sampled_from(TEXT_PIECES), max_size=30).map("".join)
scores = st.one_of(
    st.sampled_from((0.0, -0.0, 5e-324, 0.1, 0.25, 0.5, 1.0)),
    st.floats(min_value=0.0, max_value=1.0, allow_nan=False),
)
token_counts = st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 2_000))


@st.composite
def candidates(draw: st.DrawFn, *, longest: int = 60) -> Candidate:
    """Draw a candidate on a short stretch of few sources, so that overlaps, nests and ties are common."""
    start = draw(st.integers(0, 120))
    return Candidate(
        source_id=draw(st.sampled_from(SOURCE_IDS)),
        version_tx=draw(st.integers(1, 2)),
        start=start,
        end=start + draw(st.integers(1, longest)),
        kind=draw(st.sampled_from(sorted(DEFAULT_KIND_PRIORS))),
        source_class=draw(st.sampled_from(("truth", "cache"))),
        score=draw(scores),
        tokens=draw(token_counts),
        sliceable=draw(st.sampled_from((True, True, True, True, False))),
    )


def pools(*, max_size: int = 40) -> st.SearchStrategy[list[Candidate]]:
    """Pools without a repeated span."""
    return st.lists(candidates(), max_size=max_size, unique_by=lambda c: c.ref)


policies = st.builds(
    SelectionPolicy,
    kind_priors=st.just(DEFAULT_KIND_PRIORS),
    cache_discount=st.sampled_from((0.25, 0.5, 0.9)),
    dedup_overlap=st.sampled_from((0.51, 0.75, 0.8, 1.0)),
    plan_model=st.sampled_from(("v1", "v2")),
)


@st.composite
def budgets(draw: st.DrawFn, *, most: int = 3_000) -> Budget:
    """Draw budgets of every bound, with and without ceilings; some of them leave nothing."""
    return resolve_budget(
        draw(st.integers(1, most)),
        counter="caller",
        bound=draw(st.sampled_from(("exact", "upper_bound", "estimate"))),
        max_frac=draw(st.sampled_from((0.01, 0.1, 0.4, 0.7, 1.0))),
        max_budget=draw(st.none() | st.integers(1, most)),
        context_window=draw(st.none() | st.integers(1, 2 * most)),
    )
