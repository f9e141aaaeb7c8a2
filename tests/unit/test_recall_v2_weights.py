"""Files of weights: the table keeps the order of all sums that terms can have, and what is wrong is named."""

from __future__ import annotations

import itertools
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from planner.errors import SettingsError
from planner.recall.v2.bm25 import GRID
from planner.recall.v2.weights import TERMS, bounds, weights

PACKAGED = json.loads(files("planner.recall.v2").joinpath("weights.json").read_bytes())


def written(folder: Path, changes: dict[str, Any]) -> str:
    path = folder / "weights.json"
    path.write_text(json.dumps({**PACKAGED, **changes}), encoding="utf-8")
    return str(path)


def test_the_map_is_strictly_increasing_over_all_sums_and_stays_inside() -> None:
    found = weights()
    least, most = (GRID * bound for bound in bounds(found.of))
    assert (least, most) == (-GRID * found.of["spk"], GRID * sum(found.of.values()))
    scores = [found.score(total) for total in range(least, most + 1)]
    assert all(a < b for a, b in itertools.pairwise(scores))
    assert scores[0] > 0 and scores[-1] < 1


def test_every_knot_is_met() -> None:
    found = weights()
    assert [found.score(round(x * GRID * found.per)) for x, _ in found.knots] == [y for _, y in found.knots]


def test_a_file_of_ones_own_is_read_and_what_it_leaves_out_weighs_nothing(tmp_path: Path) -> None:
    found = weights(written(tmp_path, {"version": "own/3", "weights": {"cov": 40}, "fitted": {"by": "hand"}}))
    assert (found.version, found.of) == ("own/3", {**dict.fromkeys(TERMS, 0), "cov": 40})


def test_the_name_is_of_the_numbers_not_of_the_file(tmp_path: Path) -> None:
    ours = weights()
    assert ours.name.startswith(f"{ours.version}+")
    assert weights(written(tmp_path, {"fitted": {"by": "hand"}})).name == ours.name
    without = {term: weight for term, weight in ours.of.items() if weight}
    assert weights(written(tmp_path, {"weights": {**without}})).name == ours.name
    names = {
        weights(written(tmp_path, changes)).name
        for changes in (
            {"weights": {**PACKAGED["weights"], "cos": PACKAGED["weights"]["cos"] + 1}},
            {"knots": [[-32, 99], *PACKAGED["knots"][1:]]},
            {"version": "v2/other"},
        )
    }
    assert len(names | {ours.name}) == 4


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    before = weights(written(tmp_path, {"version": "own/1"}))
    after = weights(written(tmp_path, {"version": "own/2"}))
    assert (before.version, after.version) == ("own/1", "own/2")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": {"cov": 1, "fame": 2}}, "'fame' is no term of the score; the terms are cos, "),
        ({"weights": {"cov": -1}}, "greater than or equal to 0"),
        ({"weights": {"cov": 1.5}}, "weights.cov"),
        ({"weights": {"cov": 0}}, "no term has a weight above 0"),
        ({"weights": {"spk": 999}}, "knots must reach from -999 to 999"),
        ({"knots": [[-32, 1], [400, 500], [300, 600]]}, "(400, 500) is followed by (300, 600)"),
        ({"knots": [[-32, 5], [400, 5]]}, "knots must rise"),
        ({"knots": [[-32, 0], [400, 5]]}, "knots"),
        ({"knots": [[-32, 1], [400, 1_000_000]]}, "knots"),
        ({"knots": [[-32, 1]]}, "at least 2 items"),
        ({"per": 0}, "per"),
        ({"version": "two words"}, "version"),
        ({"wieghts": {}}, "unknown field 'wieghts'"),
    ],
)
def test_a_bad_file_is_refused_by_name_with_what_is_wrong(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    path = written(tmp_path, changes)
    with pytest.raises(SettingsError) as refused:
        weights(path)
    assert said in str(refused.value)
    assert path in str(refused.value)
    assert refused.value.detail["key"] == "score_weights"


def test_what_is_no_file_of_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\xff not JSON")
    for path in (tmp_path / "nowhere", tmp_path, tmp_path / "text"):
        with pytest.raises(SettingsError, match=str(path)):
            weights(str(path))
    with pytest.raises(SettingsError):
        weights("a\0b")
