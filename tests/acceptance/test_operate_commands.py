"""`planner config`, `migrate` and `doctor`; and the help of every command."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer

from planner.settings import Settings
from planner.surfaces.cli.app import COMMANDS, app
from tests.acceptance.running import SCOPE, Cli

FILES_ALONE = ("eval compare", "eval check")
"""Commands that no setting means anything to."""


def commands() -> list[tuple[str, Any]]:
    """Return every command and subcommand with its words."""
    group: Any = typer.main.get_command(app)
    found: list[tuple[str, Any]] = []
    for name in COMMANDS:
        command = group.get_command(None, name)
        below = getattr(command, "commands", {})
        found += [(f"{name} {sub}", item) for sub, item in below.items()] or [(name, command)]
    return found


def test_config_says_where_each_value_comes_from_and_the_later_wins(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planner.toml").write_text("[planner]\nk = 10\nalpha = 0.5\nroots = 3\n")
    monkeypatch.setenv("PLANNER_K", "20")
    monkeypatch.setenv("PLANNER_ALPHA", "0.6")
    values = cli("config", "--set", "k=30", "--json").json
    assert values.keys() == Settings.model_fields.keys()
    assert values["k"] == {"value": 30, "origin": "argument"}
    assert values["alpha"] == {"value": 0.6, "origin": "environment"}
    assert values["roots"] == {"value": 3, "origin": "file planner.toml"}
    assert values["margin"] == {"value": 32, "origin": "default"}
    assert "file planner.toml" in cli("config").out


def test_config_never_prints_a_password(cli: Cli) -> None:
    url = "postgresql://ada:hidden@db.example/x"
    assert (
        "hidden"
        not in cli("config", "--database-url", url).out + cli("config", "--database-url", url, "--json").out
    )


def test_a_data_folder_as_an_argument_means_its_embedded_server(corpus: Cli, tmp_path: Path) -> None:
    values = corpus("config", "--data-dir", tmp_path, "--json").json
    assert values["database_url"] == {"value": None, "origin": "argument"}
    assert values["data_dir"]["value"] == str(tmp_path)


def test_migrate_makes_the_schema_and_check_tells_before_from_after(
    cli: Cli, empty_database_url: str
) -> None:
    url = ("--database-url", empty_database_url)
    behind = cli("migrate", "--check", *url)
    assert (behind.code, "planner migrate" in behind.out) == (1, True)
    assert cli("migrate", *url, "--json").json["applied"]
    assert cli("migrate", "--check", *url, "--json").json["up_to_date"] is True
    assert cli("migrate", "--no-roles", *url, "--json").json["applied"] == []
    assert cli("scope", "list", *url, "--json").json == {"scopes": []}


def test_the_printed_script_makes_the_same_schema(cli: Cli, empty_database_url: str) -> None:
    script = cli("migrate", "--sql").out
    with psycopg.connect(empty_database_url) as conn:
        conn.execute(script)
    assert cli("migrate", "--check", "--database-url", empty_database_url).code == 0


def test_doctor_finds_a_migrated_database_in_order(corpus: Cli) -> None:
    ran = corpus("doctor", "--json")
    checks = {check["name"]: check["ok"] for check in ran.json["checks"]}
    assert ran.json["ok"] is True
    assert not [name for name, ok in checks.items() if ok is False]
    assert {name for name, ok in checks.items() if ok} >= {
        "server",
        "schema",
        "row security tried",
        "embedder",
    }


@pytest.mark.parametrize(
    ("setting", "check"),
    [("embedder=oracle", "embedder"), ("counter=abacus", "default counter")],
)
def test_doctor_ends_with_1_and_says_what_to_do(corpus: Cli, setting: str, check: str) -> None:
    ran = corpus("doctor", "--set", setting)
    assert ran.code == 1
    (failed,) = [line for line in ran.out.splitlines() if line.startswith("FAIL")]
    assert failed.startswith(f"FAIL  {check}: ")


def test_doctor_reports_a_database_that_cannot_be_used(cli: Cli, empty_database_url: str) -> None:
    empty = cli("doctor", "--database-url", empty_database_url)
    assert (empty.code, "run `planner migrate`" in empty.out) == (1, True)
    away = cli("doctor", "--database-url", "postgresql://ada:secret@127.0.0.1:1/x")
    assert (away.code, "FAIL  database: " in away.out, "secret" in away.out) == (1, True, False)


def test_doctor_notices_vectors_of_another_model(cli: Cli, database_url: str) -> None:
    url = ("--database-url", database_url)
    cli("ingest", SCOPE, "-", *url, stdin=b"Some text.\n")
    with psycopg.connect(database_url) as conn:
        conn.execute("UPDATE planner.embedding_model SET revision = 'older'")
    ran = cli("doctor", *url)
    assert (ran.code, f"the vectors of {SCOPE} were made by another model" in ran.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "command"), commands(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_takes_json_and_a_configuration_and_explains_itself(
    cli: Cli, words: str, command: Any
) -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    assert options >= ({"--json"} if words in FILES_ALONE else {"--json", "--config"})
    ran = cli(*words.split(), "--help")
    assert (ran.code, ran.err) == (0, "")
    assert all(parameter.help for parameter in command.params if "--help" not in parameter.opts)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself_with_an_example(cli: Cli, name: str) -> None:
    module = import_module(f"planner.surfaces.cli.{name}")
    text = module.app.info.help if hasattr(module, "app") else getattr(module, name).__doc__
    assert f"planner {name} " in f"{text} ".replace("\n", " ")
    first = " ".join(text.strip().split("\n\n")[0].split())
    assert first.startswith(COMMANDS[name].removesuffix("."))
