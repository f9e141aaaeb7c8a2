"""What the tools say of themselves, and what of an error a model may read."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from planner.errors import (
    EmbedderError,
    InsufficientEvidence,
    IntegrityError,
    PlannerError,
    StoreBusy,
    UnknownScope,
)
from planner.surfaces.mcp import structure
from planner.surfaces.mcp.tools import TOOLS

BUNDLES = {"get_context", "read_source", "why"}


def test_what_brings_stored_text_asks_for_a_budget() -> None:
    for name, tool in TOOLS.items():
        schema = tool.description.input_schema
        assert ("budget_tokens" in schema["required"]) == (name in BUNDLES)


def test_schemas_are_closed_and_small() -> None:
    for tool in TOOLS.values():
        schema = tool.description.input_schema
        Draft202012Validator.check_schema(schema)
        for part in (schema, *schema.get("$defs", {}).values()):
            assert (part["type"], part["additionalProperties"]) == ("object", False)
        assert "null" not in repr(schema)
        assert all("description" in about or "$ref" in about for about in schema["properties"].values())
    assert sum(len(tool.description.model_dump_json()) for tool in TOOLS.values()) < 8_000


def test_hints_say_what_writes() -> None:
    for name, tool in TOOLS.items():
        hints = tool.description.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.idempotent_hint) == (name != "remember", name != "remember")
        assert (hints.destructive_hint, hints.open_world_hint) == (False, False)


@pytest.mark.parametrize(
    "error",
    [
        IntegrityError("the text of STORED@1:0-9 does not match", ref="STORED@1:0-9"),
        EmbedderError("it said STORED"),
        PlannerError("STORED", source="STORED"),
        StoreBusy("STORED", retry_after=2, source="STORED"),
    ],
)
def test_an_error_that_may_name_what_is_stored_says_its_kind_alone(error: PlannerError) -> None:
    said = structure.refused(error)
    assert "STORED" not in repr(said)
    assert (said["code"], said["detail"]) == (error.code, error.title())
    assert said.get("retry_after") == error.detail.get("retry_after")


def test_an_error_about_what_was_sent_says_all() -> None:
    error = InsufficientEvidence("nothing fits", reason="nothing_fits", sufficient_budget=49)
    assert structure.refused(error) == error.to_dict()
    assert structure.refused(UnknownScope("no scope 'x'", scope="x"))["scope"] == "x"
