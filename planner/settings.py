"""The `[planner]` configuration: one frozen model, validated when it is loaded, never clamped.

Values come from `planner.toml`, then `PLANNER_*` variables, then arguments; the later wins, and
`Loaded.origins` says which did. What none gives is as the profile says, else the default. Tables
(`kind_priors`, `models`, `embedder_http`) are merged key by key over the defaults of the same origin order;
in a variable they are written as JSON.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from planner.errors import SettingsError
from planner.types import Unit

Fraction = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]

NOT_EMPTY = r"^[^\x00]+$"
"""An empty value would mean libpq's own defaults, or the folder where one happens to be."""

Profile = Literal["diverse", "document"]

DIVERSE: Profile = "diverse"

PROFILES: Mapping[Profile, Mapping[str, Any]] = MappingProxyType(
    {
        DIVERSE: MappingProxyType({"max_frac_per_source": 0.4}),
        "document": MappingProxyType({"max_frac_per_source": 1.0}),
    }
)
"""Defaults that go together, by name: several sources, or as much as one of them holds (decision 0022)."""

DEFAULT_KIND_PRIORS: Mapping[str, float] = MappingProxyType(
    {"paragraph": 1.0, "message": 1.0, "code": 0.9, "cell": 0.8, "heading": 0.6, "body": 1.0}
)


class ModelEntry(BaseModel):
    """A language model that evidence is planned for: its context window in tokens, and its counter."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    context_window: Count
    counter: str | None = None


class HttpEndpoint(BaseModel):
    """An OpenAI-compatible service of embeddings, for `embedder = "http"` (docs/embedders.md).

    `model` and `revision` name its vectors in the store, wherever it runs. The key is read from the
    environment variable `api_key_env`, so that no file and no setting holds it. A request has at most
    `batch_size` texts of `batch_chars` characters in all, and `timeout_s` to be answered; one that failed in
    passing is sent again at most `retries` times.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    url: str = Field(pattern=r"^https?://[^\s/@?#]+(/[^\s@?#]*)?$", description="as https://host/v1")
    model: str = Field(pattern=NOT_EMPTY)
    dimensions: Annotated[int, Field(ge=1, le=16_000)]
    revision: str = Field(default="", pattern=r"^[^\x00]*$")
    request_dimensions: bool = Field(default=False, description="ask for vectors of `dimensions`")
    api_key_env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    batch_size: Annotated[int, Field(ge=1, le=2_048)] = 64
    batch_chars: Annotated[int, Field(ge=1, le=10_000_000)] = 64_000
    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    retries: Annotated[int, Field(ge=0, le=10)] = 4


DEFAULT_MODELS: Mapping[str, ModelEntry] = MappingProxyType(
    {
        "gpt-4": ModelEntry(context_window=8_192, counter="openai:cl100k_base"),
        "gpt-4o": ModelEntry(context_window=128_000, counter="openai:o200k_base"),
        "gpt-4.1": ModelEntry(context_window=1_047_576, counter="openai:o200k_base"),
        "claude-sonnet-4": ModelEntry(context_window=200_000),
        "llama-3.1-8b": ModelEntry(context_window=131_072),
    }
)


class Settings(BaseModel):
    """Every value that an operator may set; the defaults are those of the design pages."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    # Where the data is
    database_url: str | None = Field(
        default=None, repr=False, pattern=NOT_EMPTY, description="PostgreSQL URL; none: embedded"
    )
    data_dir: str | None = Field(default=None, pattern=NOT_EMPTY, description="folder of the embedded server")
    pool_size: Annotated[int, Field(ge=1, le=1000)] = 8
    pool_wait_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 2_000
    statement_timeout_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 30_000
    trace: Literal["sync", "off"] = "sync"

    # Ingest
    embedder: str = Field(default="wordllama", description="name of an embedder: wordllama or http")
    embedder_http: HttpEndpoint | None = None
    max_span_chars: Annotated[int, Field(ge=100, le=100_000)] = 900
    max_file_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] = 64 * 1024 * 1024

    # Recall (score_model)
    score_model: Literal["v1", "v2"] = "v2"
    score_weights: str | None = Field(
        default=None, pattern=NOT_EMPTY, description="file of v2's weights; none: the package's"
    )
    alpha: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.7
    hop_decay: Fraction = 0.5
    k: Annotated[int, Field(ge=1, le=900)] = 64
    margin: Annotated[int, Field(ge=1, le=100)] = 32
    hops: Annotated[int, Field(ge=0, le=2)] = 2
    roots: Annotated[int, Field(ge=1, le=1_000)] = 16
    fanout: Annotated[int, Field(ge=1, le=1_000)] = 16
    structured_limit: Annotated[int, Field(ge=1, le=100_000)] = 256
    max_nodes: Annotated[int, Field(ge=1, le=100_000)] = 512
    max_spans: Annotated[int, Field(ge=1, le=100_000)] = 2_048
    min_score: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    method: Literal["auto", "exact", "ann"] = "auto"
    exact_limit: Annotated[int, Field(ge=0)] = 50_000

    # Selection (plan_model)
    profile: Profile = Field(default=DIVERSE, description="defaults that go together; what is set wins")
    plan_model: Literal["v1", "v2"] = "v2"
    kind_priors: Mapping[str, Fraction] = Field(default_factory=lambda: DEFAULT_KIND_PRIORS)
    cache_discount: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.5
    max_frac_per_source: Fraction = PROFILES[DIVERSE]["max_frac_per_source"]
    dedup_overlap: Annotated[float, Field(gt=0.5, le=1, allow_inf_nan=False)] = 0.8

    # Delivery
    unit: Unit = "chunk"
    chunk_share: Fraction = Field(default=0.7, description="of a budget, what `auto` plans with")

    # Budget
    counter: str = "utf8-script-v1"
    default_budget: Count = 4_096
    max_budget: Count | None = None
    models: Mapping[str, ModelEntry] = Field(default_factory=lambda: DEFAULT_MODELS)

    # Service (planner serve)
    deadline_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 30_000
    max_body_bytes: Annotated[int, Field(ge=1, le=1_000_000_000)] = 16 * 1024 * 1024
    max_page: Annotated[int, Field(ge=1, le=1_000)] = 200
    cors_origins: Annotated[
        tuple[Annotated[str, Field(pattern=r"^https?://[^\s/@?#*]+$")], ...],
        BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value),
    ] = ()

    @model_validator(mode="before")
    @classmethod
    def _of_profile(cls, values: Any) -> Any:
        named = values.get("profile") if isinstance(values, Mapping) else None
        bundle = next((bundle for name, bundle in PROFILES.items() if name == named), {})
        return {**bundle, **values} if bundle else values

    @field_validator("kind_priors", "models", mode="before")
    @classmethod
    def _over_defaults(cls, value: object, info: Any) -> object:
        defaults = {"kind_priors": DEFAULT_KIND_PRIORS, "models": DEFAULT_MODELS}[info.field_name]
        return {**defaults, **value} if isinstance(value, Mapping) else value

    @field_validator("kind_priors", "models", mode="after")
    @classmethod
    def _freeze(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return MappingProxyType(dict(value))

    def to_dict(self) -> dict[str, Any]:
        """Return every value as JSON data; the password of `database_url` is masked."""
        out: dict[str, Any] = {name: getattr(self, name) for name in type(self).model_fields}
        out["database_url"] = mask_password(self.database_url)
        out["kind_priors"] = dict(self.kind_priors)
        out["embedder_http"] = self.embedder_http.model_dump() if self.embedder_http else None
        out["models"] = {name: entry.model_dump() for name, entry in self.models.items()}
        return out


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force and, by key, where each value came from."""

    settings: Settings
    origins: Mapping[str, str]


NO_SETTINGS = frozenset({"PLANNER_CONFIG", "PLANNER_TOKEN"})
"""Variables of our prefix that are no settings: the file, and whom `planner mcp` serves."""


def load(
    arguments: Mapping[str, object] | None = None,
    *,
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Loaded:
    """Load the configuration: file < environment < arguments (those that are not None).

    `file` defaults to `PLANNER_CONFIG`, else `planner.toml` in the working directory where there is one.
    Raises SettingsError naming the key, the value, the range and the origin.
    """
    environ = os.environ if environ is None else environ
    named = file or (Path(environ["PLANNER_CONFIG"]) if environ.get("PLANNER_CONFIG") else None)
    path = named or Path("planner.toml")
    layers = [
        (f"file {path}", _from_file(path, required=named is not None)),
        ("environment", _from_environment(environ)),
        ("argument", {k: v for k, v in (arguments or {}).items() if v is not None}),
    ]
    values: dict[str, Any] = {}
    origins: dict[str, str] = dict.fromkeys(Settings.model_fields, "default")
    for origin, layer in layers:
        _refuse_unknown(layer, origin)
        for key, value in layer.items():
            both_tables = isinstance(value, Mapping) and isinstance(values.get(key), Mapping)
            values[key] = {**values[key], **value} if both_tables else value
            origins[key] = origin
    settings = _valid(values, origins)
    if "profile" in values:
        bundle = PROFILES[settings.profile]
        origins |= dict.fromkeys(bundle.keys() - values.keys(), f"profile {settings.profile}")
    return Loaded(settings, MappingProxyType(origins))


def check_values(values: Mapping[str, Any], origin: str) -> Settings:
    """Return settings with these values, all else default. Raises SettingsError for one that may not be."""
    return _valid(values, dict.fromkeys(values, origin))


def _valid(values: Mapping[str, Any], origins: Mapping[str, str]) -> Settings:
    try:
        return Settings(**values)
    except ValidationError as error:
        raise _explained(error, origins) from None


def mask_password(url: str | None) -> str | None:
    """Return a database URL that can be shown: `user:***@host`, and `password=***` in a query or DSN."""
    if url is None:
        return None
    masked = re.sub(r"(?<=://)([^:/@]*):[^?#]*(?=@)", r"\1:***", url)
    return re.sub(r"(password\s*=\s*)('(?:\\.|[^'\\])*'|[^&\s]+)", r"\1***", masked, flags=re.IGNORECASE)


def _from_file(path: Path, *, required: bool) -> dict[str, Any]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if required:
            raise SettingsError(f"the configuration file {path} does not exist") from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the configuration file {path} is not valid TOML: {error}") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SettingsError(f"the configuration file {path} cannot be read: {reason}") from None
    table = document.get("planner", {})
    if not isinstance(table, dict):
        raise SettingsError(f"[planner] in {path} must be a table")
    return table


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, text in environ.items():
        if not name.startswith("PLANNER_") or name in NO_SETTINGS:
            continue
        key = name.removeprefix("PLANNER_").lower()
        out[key] = parsed(key, text)
    return out


def parsed(key: str, text: str) -> object:
    """Read a setting that is written as text: JSON where it is not a string, the text itself where it is."""
    field = Settings.model_fields.get(key)
    if field is None or field.annotation in (str, str | None):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _refuse_unknown(layer: Mapping[str, object], origin: str) -> None:
    for key in layer:
        if key not in Settings.model_fields:
            near = difflib.get_close_matches(key, Settings.model_fields, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingsError(f"unknown setting {key!r} ({origin}){hint}", key=key, origin=origin)


def _explained(error: ValidationError, origins: Mapping[str, str]) -> SettingsError:
    first = error.errors()[0]
    key = str(first["loc"][0]) if first["loc"] else "planner"
    path = ".".join(str(part) for part in first["loc"]) or key
    value = _shown(key, first["input"])
    origin = origins.get(key, "argument")
    return SettingsError(
        f"{path} = {value!r} ({origin}): {first['msg'].lower()}",
        key=path,
        value=value,
        origin=origin,
        allowed=first["msg"],
    )


def _shown(key: str, value: object) -> object:
    """Return a refused value, hidden where a password or a key may have been written into it."""
    secret = key == "database_url" or (key == "embedder_http" and not isinstance(value, (int, float)))
    return "***" if secret else value
