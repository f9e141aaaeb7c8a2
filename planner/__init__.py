"""Reproducible evidence plans for language models, decided inside PostgreSQL."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.async_planner import AsyncPlanner
    from planner.client import Planner
    from planner.deliver.unplanned import deliver
    from planner.errors import InsufficientEvidence, PlannerError
    from planner.request import PlanRequest
    from planner.settings import Settings
    from planner.types import Delivery, EvidencePlan, IngestReport, PlanRef, SpanRef

__all__ = [
    "AsyncPlanner",
    "Delivery",
    "EvidencePlan",
    "IngestReport",
    "InsufficientEvidence",
    "PlanRef",
    "PlanRequest",
    "Planner",
    "PlannerError",
    "Settings",
    "SpanRef",
    "deliver",
]

_HOMES = {
    "AsyncPlanner": "async_planner",
    "Delivery": "types",
    "EvidencePlan": "types",
    "IngestReport": "types",
    "InsufficientEvidence": "errors",
    "PlanRef": "types",
    "PlanRequest": "request",
    "Planner": "client",
    "PlannerError": "errors",
    "Settings": "settings",
    "SpanRef": "types",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the client brings in the whole database stack."""
    if name == "deliver":
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
