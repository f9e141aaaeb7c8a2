"""Problems: every code of the tree has a status, in the code and in the docs, and holds what JSON can."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner import errors
from planner.errors import (
    Forbidden,
    InsufficientEvidence,
    PlannerError,
    RequestError,
    StoreBusy,
    StoreUnavailable,
    Unauthorized,
)
from planner.surfaces.http import problems
from planner.surfaces.http.problems import STATUS, problem, status_of

DOCS = Path(__file__).resolve().parents[2] / "docs" / "http.md"


def tree(root: type[PlannerError] = PlannerError) -> Iterator[type[PlannerError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


def test_every_code_of_the_tree_has_a_status_and_no_other_code_has_one() -> None:
    ours = {kind.code for kind in tree() if kind.__module__ in (errors.__name__, problems.__name__)}
    assert set(STATUS) == ours
    assert set(STATUS.values()) <= {400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 499} | {
        500,
        502,
        503,
        504,
    }


def test_the_docs_have_the_same_table() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.+?) \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    listed = {code: int(status) for status, codes in rows for code in re.findall(r"`([a-z_.]+)`", codes)}
    assert listed == dict(STATUS)


def test_a_code_that_is_not_listed_has_the_status_of_the_one_above_it() -> None:
    assert status_of("not_found.of_a_later_version") == 404
    assert status_of("store.of_a_later_version") == 500
    assert status_of("of_a_later_version") == 500


def test_a_problem_says_what_the_error_says() -> None:
    error = InsufficientEvidence("too small", reason="nothing_fits", sufficient_budget=70, plan="s:1")
    answer = problem(error)
    assert answer.media_type == "application/problem+json"
    assert json.loads(answer.body) == {**error.to_dict(), "status": 422}
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("error", "name", "value"),
    [
        (StoreBusy(retry_after=2.2), "retry-after", "3"),
        (StoreUnavailable(), "retry-after", "1"),
        (StoreBusy(retry_after="soon"), "retry-after", "1"),
        (Unauthorized(), "www-authenticate", 'Bearer realm="planner"'),
    ],
)
def test_a_status_brings_the_header_that_it_asks_for(error: PlannerError, name: str, value: str) -> None:
    assert problem(error).headers[name] == value
    assert name not in problem(Forbidden()).headers


def test_facts_that_json_cannot_hold_are_written_out() -> None:
    facts = {"a": math.inf, "b": b"x", "c": {1: {2.5}}, "d": ("\ud800",), "e": None}
    said = json.loads(problem(RequestError("no\ud800", **facts)).body)
    assert (said["a"], said["b"], said["c"], said["d"]) == ("inf", "b'x'", {"1": [2.5]}, ["\ud800"])
    assert said["detail"] == "no\ud800"
