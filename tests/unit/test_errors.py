"""Errors travel between processes: a pool of workers breaks where one of them does not."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pytest

from planner.errors import InsufficientEvidence, PlannerError


def kinds(base: type[PlannerError]) -> Iterator[type[PlannerError]]:
    yield base
    for kind in base.__subclasses__():
        yield from kinds(kind)


@pytest.mark.parametrize("kind", [*kinds(PlannerError)])
def test_an_error_is_the_same_on_the_other_side(kind: type[PlannerError]) -> None:
    detail = {"reason": "nothing_fits", "sufficient_budget": 7} if kind is InsufficientEvidence else {"a": 1}
    error = kind("It is wrong.", **detail)
    other = pickle.loads(pickle.dumps(error))
    assert (type(other), str(other), vars(other)) == (kind, "It is wrong.", vars(error))
    assert other.to_dict() == error.to_dict()
