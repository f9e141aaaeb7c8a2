"""Bad input to every command: one typed problem, the right exit code, nothing printed, nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.acceptance.running import SCOPE, Cli

NUL, SURROGATE, HUGE = "a\0b", "a\udcffb", str(10**30)
NO_PLAN = f"{SCOPE}:01890a5d-ac96-774b-bcce-b302099a8057"
DEEP = "[" * 100_000

USAGE = [
    ("nonsense",),
    ("plan",),
    ("plan", SCOPE, "q", "--batch", "f"),
    ("plan", SCOPE, "q", "--budget", "many"),
    ("config", "--config", NUL),
    ("config", "--set", f"database_url={NUL}"),
    ("ingest", SCOPE),
    ("ingest", SCOPE, ".", "--attr", "novalue"),
    ("ingest", SCOPE, ".", "--attr", "=v"),
    ("ingest", SCOPE, ".", "--attr", "a=1", "--attr", "a=2"),
    ("ingest", SCOPE, ".", "--attr", f"a={NUL}"),
    ("ingest", SCOPE, ".", "--title", SURROGATE),
    ("ingest", SCOPE, ".", "--actor", NUL),
    ("ingest", SCOPE, ".", "--actor", ""),
    ("ingest", SCOPE, ".", "--trust", "blind"),
    ("show", NO_PLAN, "--rejected", "-1"),
    ("source", "list", SCOPE, "--limit", "0"),
    ("source", "list", SCOPE, "--limit", HUGE),
    ("source", "list", SCOPE, "--after", NUL),
    ("source", "show", SCOPE, SURROGATE),
    ("source", "show", SCOPE),
    ("scope",),
    ("db", "dance"),
    ("migrate", "--sql", "--check"),
    ("config", "--set", "alpha"),
    ("deliver",),
    ("deliver", NO_PLAN, "--budget", "many"),
    ("context",),
]

SETTINGS = [
    ("config", "--set", "alpha=2"),
    ("config", "--set", "nonsense=1"),
    ("config", "--database-url", NUL),
    ("config", "--database-url", ""),
    ("config", "--data-dir", ""),
    ("plan", SCOPE, "q", "--set", "cache_discount=1"),
]

REQUESTS = [
    *(("plan", scope, "q") for scope in ("", "-", "a b", "é", NUL, SURROGATE, "x" * 64)),
    *(("plan", SCOPE, text) for text in ("", NUL, SURROGATE, "x" * 100_001)),
    ("plan", SCOPE),
    *(("plan", SCOPE, "q", "--budget", value) for value in ("0", "-5", HUGE)),
    *(("plan", SCOPE, "q", "--context-window", value) for value in ("0", "-5", HUGE)),
    *(("plan", SCOPE, "q", "--hops", value) for value in ("-1", "3", HUGE)),
    *(("plan", SCOPE, "q", "--k", value) for value in ("0", "-1", "65", HUGE)),
    *(("plan", SCOPE, "q", "--as-of", value) for value in ("-1", "0", "1000", HUGE)),
    *(("plan", SCOPE, "q", "--min-score", value) for value in ("-0.1", "1.1", "nan", "inf")),
    ("plan", SCOPE, "q", "--model", "gpt-999"),
    ("plan", SCOPE, "q", "--model", ""),
    ("plan", SCOPE, "q", "--counter", "abacus"),
    ("plan", SCOPE, "q", "--counter", NUL),
    ("plan", SCOPE, "q", "--plan-model", "v9"),
    ("plan", SCOPE, "q", "--method", "guess"),
    ("plan", SCOPE, "q", "--method", "ann"),
    *(("plan", SCOPE, "q", "--seed", value) for value in ("", NUL, SURROGATE, "n=2", "n=nan", "x" * 513)),
    *(
        ("plan", SCOPE, "q", option, value)
        for option in ("--window", "--match", "--must")
        for value in ("", "{", "[]", "1", "{}", "NaN", DEEP, SURROGATE, '{"x": 1}', '{"x": NaN}')
    ),
    ("plan", SCOPE, "q", "--window", '{"from": "2024-05-01"}'),
    ("plan", SCOPE, "q", "--window", '{"from": "2024-05-02T00:00:00Z", "to": "2024-05-01T00:00:00Z"}'),
    ("plan", SCOPE, "q", "--must", '{"field": "trust", "op": "eq", "value": "blind"}'),
    ("plan", SCOPE, "q", "--must", '{"field": "kind", "op": "eq", "value": "a\\u0000"}'),
    ("plan", SCOPE, "q", "--must", '{"field": "kind", "op": "eq", "value": "\\ud800"}'),
    ("plan", SCOPE, "q", "--must", '{"not": ' * 40 + '{"all": []}' + "}" * 40),
    *(("show", plan) for plan in ("", "x", NUL, SURROGATE, f"{NUL}:{NO_PLAN[4:]}")),
    *(("replay", plan) for plan in ("", "x", NUL, SURROGATE, f"{SURROGATE}:{NO_PLAN[4:]}")),
    *(("why", plan, "w") for plan in ("", "x", SURROGATE)),
    *(("why", "PLANNED", what) for what in ("", NUL, SURROGATE, "x" * 10_001)),
    ("ingest", "a b", "."),
    ("scope", "index", "a b"),
    ("source", "list", NUL),
    ("source", "show", "", "x"),
    *(("deliver", plan) for plan in ("", "x", NUL, SURROGATE, f"{NUL}:{NO_PLAN[4:]}")),
    *(
        (*command, option, value)
        for command in (("deliver", "PLANNED"), ("context", SCOPE, "q"))
        for option, values in {
            "--unit": ("page", "", NUL),
            "--budget": ("0", "-5", HUGE),
            "--counter": ("abacus", "", NUL),
            "--neighbours": ("-1", "1001", HUGE),
            "--on-misfit": ("fold", SURROGATE),
            "--max-frac": ("0", "1.5", "nan"),
        }.items()
        for value in values
    ),
    ("context", SCOPE),
    ("context", "a b", "q"),
    ("context", SCOPE, "q", "--must", "{}"),
]  # fmt: skip

MISSING = [
    (("plan", "nobody", "q"), "not_found.scope"),
    (("source", "list", "nobody"), "not_found.scope"),
    (("source", "show", "nobody", "x"), "not_found.scope"),
    (("source", "show", SCOPE, "nothing"), "not_found.source"),
    (("scope", "index", "nobody"), "not_found.scope"),
    (("show", NO_PLAN), "not_found.plan"),
    (("replay", NO_PLAN), "not_found.plan"),
    (("why", NO_PLAN, "w"), "not_found.plan"),
    (("deliver", NO_PLAN), "not_found.plan"),
    (("context", "nobody", "q"), "not_found.scope"),
    (("show", "nobody" + NO_PLAN[len(SCOPE) :]), "not_found.plan"),
    (("plan", "--batch", "nowhere.jsonl"), "ingest.unreadable"),
    (("plan", "--batch", "."), "ingest.unreadable"),
    (("plan", "--batch", NUL), "ingest.unreadable"),
    (("config", "--config", "nowhere.toml"), "settings.invalid"),
]


@pytest.fixture(scope="module")
def written(corpus_url: str) -> Iterator[Callable[[], object]]:
    """Count what a refused command must not add to."""
    tables = ("scope", "ledger", "source_version", "plan", "delivery")
    counts = ", ".join(f"(SELECT count(*) FROM planner.{table})" for table in tables)
    with psycopg.connect(corpus_url, autocommit=True) as conn:
        yield lambda: conn.execute(f"SELECT {counts}").fetchone()


def shown(value: object) -> str:
    return ascii(value)[:60]


@pytest.mark.parametrize("arguments", USAGE, ids=shown)
def test_what_is_not_a_command_line_is_a_usage_problem(
    corpus: Cli, written: Callable[[], object], arguments: tuple[str, ...]
) -> None:
    before = written()
    ran = corpus(*arguments, "--json")
    assert (ran.code, ran.problem["code"], ran.out) == (2, "usage", "")
    assert "--help" in ran.problem["detail"]
    assert written() == before


@pytest.mark.parametrize("arguments", SETTINGS, ids=shown)
def test_a_bad_setting_among_the_arguments_is_named(corpus: Cli, arguments: tuple[str, ...]) -> None:
    ran = corpus(*arguments, "--json")
    assert (ran.code, ran.problem["code"], ran.out) == (2, "settings.invalid", "")
    assert ran.problem["origin"] == "argument"


@pytest.mark.parametrize("arguments", REQUESTS, ids=shown)
def test_a_request_that_cannot_be_meant_is_refused_and_leaves_nothing(
    corpus: Cli, written: Callable[[], object], planned: str, arguments: tuple[str, ...]
) -> None:
    before = written()
    ran = corpus(*(planned if a == "PLANNED" else a for a in arguments), "--json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.problem["code"].startswith("request.")
    assert written() == before


@pytest.mark.parametrize(("arguments", "code"), MISSING, ids=shown)
def test_what_is_not_there_is_named_by_its_code(
    corpus: Cli, written: Callable[[], object], arguments: tuple[str, ...], code: str
) -> None:
    before = written()
    ran = corpus(*arguments, "--json")
    assert (ran.code, ran.problem["code"], ran.out) == (1, code, "")
    assert written() == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "a", "q"),
        ("ingest", "a", "."),
        ("migrate", "--check"),
    ],
    ids=shown,
)
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("postgresql://nobody:secret@127.0.0.1:1/nothing", "store.unavailable"),
        ("postgresql://nobody:secret@host.invalid/nothing", "store.unavailable"),
        ("no url, but secret", "store."),
        ("postgresql://nobody:secret@127.0.0.1:port/", "store."),
    ],
)
def test_a_database_that_cannot_be_reached_is_said_without_its_password(
    cli: Cli, arguments: tuple[str, ...], url: str, code: str
) -> None:
    ran = cli(*arguments, "--database-url", url, "--json")
    assert (ran.code, ran.out) == (1, "")
    assert ran.problem["code"].startswith(code)
    assert "secret" not in ran.err


@pytest.mark.parametrize(
    "arguments", [("scope", "list"), ("plan", "a", "q"), ("ingest", "a", "."), ("show", NO_PLAN)], ids=shown
)
def test_a_given_database_without_a_schema_is_not_migrated_but_names_the_command(
    cli: Cli, empty_database_url: str, arguments: tuple[str, ...]
) -> None:
    ran = cli(*arguments, "--database-url", empty_database_url, "--json")
    assert (ran.code, ran.problem["code"], ran.out) == (1, "store.schema_behind", "")
    assert "planner migrate" in ran.problem["detail"]
    with psycopg.connect(empty_database_url) as conn:
        assert conn.execute("SELECT to_regnamespace('planner')").fetchone() == (None,)


def test_without_json_a_problem_is_one_sentence_on_stderr(corpus: Cli) -> None:
    ran = corpus("plan", "nobody", "q")
    assert (ran.code, ran.out, ran.err) == (1, "", "no scope 'nobody'\n")


def test_a_bad_file_of_settings_names_key_value_and_file(corpus: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.toml"
    file.write_text("[planner]\ndedup_overlap = 0.5\n")
    ran = corpus("plan", SCOPE, "q", "--config", file, "--json")
    assert (ran.code, ran.problem["code"]) == (1, "settings.invalid")
    assert (ran.problem["key"], ran.problem["value"]) == ("dedup_overlap", 0.5)
    assert str(file) in ran.problem["detail"]
