"""The budgets of an evaluation are those that bind: what a counter keeps in reserve is asked for on top."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.ports import Bound
from planner.selection.budget import request_for, resolve_budget


@pytest.mark.parametrize("bound", get_args(Bound))
@given(tokens=st.integers(1, 2**52))
def test_the_request_for_a_budget_is_the_smallest_that_gives_it(bound: Bound, tokens: int) -> None:
    def in_force(requested: int) -> int:
        return resolve_budget(requested, counter="c", bound=bound, max_frac=1.0).budget

    requested = request_for(tokens, bound)
    assert in_force(requested) == tokens
    assert requested == 1 or in_force(requested - 1) < tokens
