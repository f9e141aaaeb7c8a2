"""The configuration: precedence, origins and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from pydantic import ValidationError

from planner.errors import SettingsError
from planner.settings import DEFAULT_KIND_PRIORS, PROFILES, Profile, Settings, load, mask_password


def write(folder: Path, text: str) -> Path:
    path = folder / "planner.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_defaults_are_those_of_the_pages() -> None:
    settings = load(environ={}, file=None).settings
    assert settings.kind_priors == {
        "paragraph": 1.0,
        "message": 1.0,
        "code": 0.9,
        "cell": 0.8,
        "heading": 0.6,
        "body": 1.0,
    }
    assert (settings.cache_discount, settings.max_frac_per_source, settings.dedup_overlap) == (0.5, 0.4, 0.8)
    assert (settings.score_model, settings.plan_model) == ("v2", "v2")
    assert (settings.counter, settings.max_budget) == ("utf8-script-v1", None)


def test_arguments_win_over_variables_over_file_over_defaults(tmp_path: Path) -> None:
    file = write(tmp_path, "[planner]\nk = 10\nhops = 0\nfanout = 3\n")
    environ = {"PLANNER_K": "11", "PLANNER_HOPS": "1", "OTHER_K": "5"}
    loaded = load({"k": 12, "roots": None}, file=file, environ=environ)
    settings = loaded.settings
    assert (settings.k, settings.hops, settings.fanout, settings.roots) == (12, 1, 3, 16)
    origins = [loaded.origins[key] for key in ("k", "hops", "fanout", "roots")]
    assert origins == ["argument", "environment", f"file {file}", "default"]


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    file = write(tmp_path, "[planner]\nk = 10\n")
    assert load(environ={"PLANNER_CONFIG": str(file)}).settings.k == 10


def test_the_working_directory_s_file_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "[planner]\nk = 9\n")
    monkeypatch.chdir(tmp_path)
    assert load(environ={}).settings.k == 9


def test_tables_are_merged_key_by_key(tmp_path: Path) -> None:
    file = write(tmp_path, "[planner.kind_priors]\ncode = 0.7\nfigure = 0.3\n")
    environ = {"PLANNER_KIND_PRIORS": '{"code": 0.8}', "PLANNER_MODELS": '{"mine": {"context_window": 9}}'}
    settings = load(file=file, environ=environ).settings
    assert settings.kind_priors == {**DEFAULT_KIND_PRIORS, "figure": 0.3, "code": 0.8}
    assert settings.models["mine"].context_window == 9
    assert "gpt-4o" in settings.models


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("cache_discount", 0.0, "greater than 0"),
        ("cache_discount", 1.0, "less than 1"),
        ("max_frac_per_source", 0.0, "greater than 0"),
        ("max_frac_per_source", 1.1, "less than or equal to 1"),
        ("dedup_overlap", 0.5, "greater than 0.5"),
        ("dedup_overlap", 1.01, "less than or equal to 1"),
        ("dedup_overlap", float("nan"), "finite"),
        ("alpha", 1.5, "less than or equal to 1"),
        ("hop_decay", 0.0, "greater than 0"),
        ("k", 0, "greater than or equal to 1"),
        ("k", 901, "less than or equal to 900"),
        ("k", 1.5, "valid integer"),
        ("k", "10", "valid integer"),
        ("k", True, "valid integer"),
        ("hops", 3, "less than or equal to 2"),
        ("margin", 0, "greater than or equal to 1"),
        ("min_score", 1.5, "less than or equal to 1"),
        ("max_budget", 0, "greater than or equal to 1"),
        ("default_budget", -1, "greater than or equal to 1"),
        ("plan_model", "v3", "'v1' or 'v2'"),
        ("profile", "wide", "'diverse' or 'document'"),
        ("profile", [], "'diverse' or 'document'"),
        ("method", "fast", "'auto', 'exact' or 'ann'"),
        ("trace", "async", "'sync' or 'off'"),
        ("counter", 5, "valid string"),
        ("models", {"m": {"context_window": 0}}, "greater than or equal to 1"),
        ("models", {"m": {"context_window": 8, "price": 1}}, "not permitted"),
        ("models", "gpt", "valid dictionary"),
    ],
)
def test_a_value_out_of_range_is_refused_by_key_value_range_and_origin(
    key: str, value: object, allowed: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        load({key: value}, environ={})
    message = str(refused.value)
    assert message.startswith(key)
    assert "(argument)" in message
    assert allowed in message
    shown = (
        value["m"]["price" if "price" in value["m"] else "context_window"]
        if isinstance(value, dict)
        else value
    )
    assert repr(shown) in message


def test_a_profile_gives_defaults_and_what_is_set_wins_whoever_sets_it(tmp_path: Path) -> None:
    assert load(environ={}).settings == load({"profile": "diverse"}, environ={}).settings
    file = write(tmp_path, "[planner]\nprofile = 'document'\n")
    loaded = load(file=file, environ={})
    assert loaded.settings.max_frac_per_source == 1.0
    assert loaded.origins["max_frac_per_source"] == "profile document"
    assert loaded.origins["profile"] == f"file {file}"
    set_beside = load(file=file, environ={"PLANNER_MAX_FRAC_PER_SOURCE": "0.7"})
    assert set_beside.settings.max_frac_per_source == 0.7
    assert set_beside.origins["max_frac_per_source"] == "environment"
    assert load({"profile": "diverse"}, file=file, environ={}).settings.max_frac_per_source == 0.4


@pytest.mark.parametrize("name", get_args(Profile))
def test_every_profile_is_a_bundle_of_settings_that_may_be(name: Profile) -> None:
    settings = Settings(profile=name)
    assert {key: getattr(settings, key) for key in PROFILES[name]} == PROFILES[name]
    assert settings == Settings(profile=name, **PROFILES[name])


@pytest.mark.parametrize("prior", [0.0, -0.1, 1.01, float("inf")])
def test_a_kind_prior_out_of_range_is_refused_by_its_kind(prior: float) -> None:
    with pytest.raises(SettingsError, match=r"^kind_priors\.code = "):
        load({"kind_priors": {"code": prior}}, environ={})


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"PLANNER_CACHE_DISCOUNT": "2"}, r"cache_discount = 2 \(environment\): .*less than 1"),
        ({"PLANNER_K": "many"}, r"k = 'many' \(environment\)"),
        ({"PLANNER_KIND_PRIORS": "[1]"}, r"kind_priors = \[1\] \(environment\)"),
    ],
)
def test_a_bad_variable_is_refused(environ: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(environ=environ)


@pytest.mark.parametrize("name", ["cache_discont", "PLANNER_CACHE_DISCONT"])
def test_an_unknown_setting_is_refused_with_the_nearest_name(name: str) -> None:
    arguments, environ = ({}, {name: "0.5"}) if name.isupper() else ({name: 0.5}, {})
    with pytest.raises(SettingsError, match=r"'cache_discont' .* did you mean 'cache_discount'\?"):
        load(arguments, environ=environ)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[planner\n", "not valid TOML"),
        ("planner = 3\n", "must be a table"),
        ("[planner]\nk = 0\n", r"k = 0 \(file "),
        ("[planner]\nkay = 1\n", "unknown setting 'kay'"),
    ],
)
def test_a_bad_file_is_refused_by_its_path(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError, match=message) as refused:
        load(file=file, environ={})
    assert str(file) in str(refused.value)


def test_a_named_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        load(file=tmp_path / "absent.toml", environ={})
    with pytest.raises(SettingsError, match="cannot be read"):
        load(file=tmp_path, environ={})


def test_settings_and_their_tables_are_frozen() -> None:
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.k = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        settings.kind_priors["code"] = 0.1  # type: ignore[index]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:p@secret/@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://host/db?user=me&password=secret", "postgresql://host/db?user=me&password=***"),
        ("host=h password=secret dbname=d", "host=h password=*** dbname=d"),
        ("host=h password='se cret' dbname=d", "host=h password=*** dbname=d"),
        (r"host=h password='it\'s secret' dbname=d", "host=h password=*** dbname=d"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    settings = Settings(database_url=url)
    assert mask_password(url) == settings.to_dict()["database_url"] == shown
    assert "secret" not in repr(settings)
    assert "se cret" not in repr(settings)


def test_a_refused_database_url_is_not_shown() -> None:
    with pytest.raises(SettingsError) as refused:
        load({"database_url": ["postgresql://me:secret@host/db"]}, environ={})
    assert "secret" not in str(refused.value.to_dict())
