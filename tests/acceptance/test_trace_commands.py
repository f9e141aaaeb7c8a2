"""`planner replan`, `diff`, `verify`, `whatif` and `trace prune`: what a stored plan is asked for later."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest

from planner import Planner
from planner.ingest import scope_id
from tests.acceptance.running import SCOPE, Cli

Own = Callable[..., str]


@pytest.fixture
def own(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Give the reference of a plan in a database of the test's own, which the environment names."""
    monkeypatch.setenv("PLANNER_DATABASE_URL", database_url)
    with Planner.connect(database_url) as planner:
        planner.ingest_text("s", "a.md", "# Harbour\n\nThe gate closes at ten.\n")
        return str(planner.plan("s", "When does the gate close?").ref)


def run(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as conn:
        conn.execute("SET session_replication_role = replica")
        assert conn.execute(statement.encode()).rowcount > 0


def test_replan_of_an_untouched_plan_is_identical(corpus: Cli, planned: str) -> None:
    ran = corpus("replan", planned)
    assert ran.code == 0
    assert ran.out.startswith("identical\n")
    told = corpus("replan", planned, "--json").json
    assert (told["identical"], told["drifts"], told["again"]) == (True, [], None)
    kept = corpus("replan", planned, "--keep", "--json").json["again"]
    assert corpus("show", kept, "--json").json["plan_hash"] == told["plan_hash"]


def test_replan_ends_with_1_where_something_drifted_and_says_what(
    cli: Cli, own: str, database_url: str
) -> None:
    run(
        database_url,
        "UPDATE planner.source_version SET body = overlay(body PLACING 'X' FROM 20)",
    )
    ran = cli("replan", own)
    assert ran.code == 1
    assert "not the same plan any more" in ran.out
    assert "drift: source" in ran.out
    assert "its bytes have the hash" in ran.out
    told = cli("replan", own, "--json")
    assert (told.code, [drift["class"] for drift in json.loads(told.out)["drifts"]]) == (1, ["source"])


def test_replan_ends_with_1_where_todays_settings_would_decide_otherwise(corpus: Cli, planned: str) -> None:
    ran = corpus("replan", planned, "--set", "max_frac_per_source=0.9")
    assert ran.code == 1
    assert "drift: policy" in ran.out
    assert "max_frac_per_source was 0.4, is 0.9" in ran.out


def test_diff_lists_what_entered_and_left(corpus: Cli, planned: str) -> None:
    question = corpus("show", planned, "--json").json["request"]["text"]
    more = corpus("plan", SCOPE, question, "--budget", "400", "--json").json["plan"]
    told = corpus("diff", planned, more, "--json").json
    assert told["request"]["budget_tokens"] == [200, 400]
    assert {change["change"] for change in told["changes"]} & {"entered", "moved"}
    out = corpus("diff", planned, more).out
    assert "request budget_tokens: 200, then 400" in out
    assert all(change["ref"] in out for change in told["changes"])
    assert corpus("diff", planned, planned).out == "the same plan\n"


def test_diff_of_different_scopes_is_refused(cli: Cli, own: str, database_url: str) -> None:
    with Planner.connect(database_url) as planner:
        planner.ingest_text("t", "a.md", "The gate closes at ten.")
        foreign = str(planner.plan("t", "When does the gate close?").ref)
    ran = cli("diff", own, foreign, "--json")
    assert (ran.code, ran.problem["code"]) == (2, "request.invalid")
    assert "of different scopes" in ran.problem["detail"]


def test_verify_plan_ends_with_1_where_a_row_was_changed(cli: Cli, own: str, database_url: str) -> None:
    assert cli("verify", "plan", own, "--json").json["ok"] is True
    assert "as written" in cli("verify", "plan", own).out
    run(database_url, "UPDATE planner.plan_candidate SET score = score / 2")
    ran = cli("verify", "plan", own)
    assert (ran.code, "replay: " in ran.out) == (1, True)
    told = cli("verify", "plan", own, "--json")
    assert (told.code, json.loads(told.out)["ok"]) == (1, False)


def test_verify_ledger_ends_with_1_and_names_the_entry(cli: Cli, own: str, database_url: str) -> None:
    held = cli("verify", "ledger", "s", "--json").json
    assert (held["ok"], held["entries"]) == (True, 1)
    run(database_url, "UPDATE planner.ledger SET actor = 'somebody'")
    ran = cli("verify", "ledger", "s")
    assert (ran.code, "ledger entry 1: changed" in ran.out) == (1, True)
    assert held["head"] in ran.out
    assert cli("verify", "ledger", "nowhere", "--json").problem["code"] == "not_found.scope"


def test_whatif_prints_sums_and_the_changed_plans(corpus: Cli, planned: str) -> None:
    arguments = ("whatif", "--plan", planned, "--set", "budget=60", "--set", 'kind_priors={"heading": 0.1}')
    told = corpus(*arguments, "--json").json
    assert told["set"] == {"budget": 60, "kind_priors": {"heading": 0.1}}
    assert (told["plans"], told["plans_changed"]) == (1, 1)
    assert told["tokens_saved"] == told["used"] - told["would_use"] > 0
    out = corpus(*arguments).out
    assert "1 of 1 plans would have changed" in out
    assert f"{told['tokens_saved']} saved" in out
    assert planned in out
    recent = corpus("whatif", "--scope", SCOPE, "--since", "1h", "--set", "plan_model=v2", "--json").json
    assert recent["plans"] >= 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scope", SCOPE), "change something"),
        (("--set", "budget=60"), "name plans, or scopes"),
        (("--scope", SCOPE, "--set", "alpha=0.5"), "cannot be changed"),
        (("--scope", SCOPE, "--set", "dedup_overlap=7"), "dedup_overlap = 7"),
        (("--scope", SCOPE, "--set", "budget=60", "--since", "yesterday"), "is no duration"),
        (("--plan", "x", "--since", "1d", "--set", "budget=60"), "--since is about the plans of --scope"),
    ],
)
def test_whatif_refuses_what_makes_no_sense(corpus: Cli, arguments: tuple[str, ...], said: str) -> None:
    ran = corpus("whatif", *arguments, "--json")
    assert ran.code == 2
    assert said in ran.problem["detail"]


def aged(url: str, plan: str, age: timedelta) -> str:
    """Give a plan another id, as one that was made so long ago, and return its reference."""
    old = UUID(plan.partition(":")[2])
    time = int((datetime.now(UTC) - age).timestamp() * 1_000)
    new = UUID(bytes=time.to_bytes(6, "big") + old.bytes[6:])
    for table in ("plan", "plan_candidate", "plan_node"):
        run(url, f"UPDATE planner.{table} SET plan_id = '{new}' WHERE scope_id = '{scope_id('s')}'")
    return f"s:{new}"


def test_prune_deletes_what_is_old_and_says_how_much(cli: Cli, own: str, database_url: str) -> None:
    old = aged(database_url, own, timedelta(days=31))
    young = cli("plan", "s", "When does the gate close?", "--json").json["plan"]
    refused = cli("trace", "prune", "--older-than", "30d", "--json")
    assert (refused.code, "1 plans and 0 deliveries" in refused.problem["detail"]) == (2, True)
    assert cli("show", old).code == 0
    ran = cli("trace", "prune", "--older-than", "30d", "--yes")
    assert ran.out.startswith("deleted 1 plans with ")
    assert "VACUUM (ANALYZE) planner.plan" in ran.out
    assert cli("show", old, "--json").problem["code"] == "not_found.plan"
    assert cli("show", young).code == 0
    nothing = cli("trace", "prune", "--older-than", "30d", "--scope", "s", "--json").json
    assert (nothing["plans"], nothing["candidates"], nothing["deliveries"]) == (0, 0, 0)


def test_prune_takes_an_age_and_a_scope_that_is_there(cli: Cli, own: str) -> None:
    for age in ("", "30", "d", "-3d", "30 days", "9999999d"):
        ran = cli("trace", "prune", f"--older-than={age}", "--yes", "--json")
        assert (ran.code, "is no duration" in ran.problem["detail"]) == (2, True)
    ran = cli("trace", "prune", "--older-than", "0s", "--scope", "nowhere", "--yes", "--json")
    assert (ran.code, ran.problem["code"]) == (1, "not_found.scope")
