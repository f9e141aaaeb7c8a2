"""What `planner doctor` finds outside the database: the embedder against the scopes, and the counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planner.embedders import embedder as embedder_named
from planner.errors import PlannerError
from planner.pipeline.browse import Scope
from planner.settings import Settings
from planner.store.doctor import Check
from planner.tokens import ENCODINGS
from planner.tokens import counter as counter_named

PROBE = "Does the embedder answer?"


def examine_parts(settings: Settings, scopes: Sequence[Scope]) -> Iterator[Check]:
    """Yield the findings about the configured embedder and counters; of `scopes`, which models they use."""
    yield _embedder(settings, scopes)
    yield _counter(settings)
    for name in sorted(_further_counters(settings)):
        try:
            counter_named(name, {})
            yield Check(f"counter {name}", True, "available")
        except PlannerError as error:
            users = [model for model, entry in settings.models.items() if entry.counter == name]
            said = f"{error} (used by {', '.join(users)})" if users else str(error)
            yield Check(f"counter {name}", None, said)


def _embedder(settings: Settings, scopes: Sequence[Scope]) -> Check:
    try:
        chosen = embedder_named(settings.embedder, settings.embedder_http)
        made = chosen.embed([PROBE])
    except PlannerError as error:
        return Check("embedder", False, str(error), "set `embedder` to one that can be loaded")
    if made.shape != (1, chosen.dimensions):
        said = f"{chosen.name} returned the shape {made.shape} for one text"
        return Check("embedder", False, said, f"it must return (1, {chosen.dimensions})")
    mine = (chosen.name, chosen.revision, chosen.dimensions)
    others = [s.name for s in scopes if s.model and (s.model, s.model_revision, s.dimensions) != mine]
    described = f"{chosen.name} {chosen.revision}".rstrip() + f", {chosen.dimensions} dimensions"
    if others:
        said = f"{described}; the vectors of {', '.join(others)} were made by another model"
        remedy = "use the embedder of those scopes, or move them to this one with `planner reembed`"
        return Check("embedder", False, said, remedy)
    return Check("embedder", True, f"{described}; as every scope that has vectors")


def _counter(settings: Settings) -> Check:
    try:
        default = counter_named(settings.counter, {})
    except PlannerError as error:
        return Check("default counter", False, str(error), "set `counter` to one that is available")
    return Check("default counter", True, f"{default.name} ({default.bound.replace('_', ' ')})")


def _further_counters(settings: Settings) -> set[str]:
    named = {entry.counter for entry in settings.models.values() if entry.counter}
    return (named | set(ENCODINGS)) - {settings.counter}
