"""Reproducible evidence plans for language models, decided inside PostgreSQL."""

from planner.client import Planner
from planner.errors import InsufficientEvidence, PlannerError
from planner.request import PlanRequest
from planner.settings import Settings
from planner.types import EvidencePlan, IngestReport, PlanRef, SpanRef

__all__ = [
    "EvidencePlan",
    "IngestReport",
    "InsufficientEvidence",
    "PlanRef",
    "PlanRequest",
    "Planner",
    "PlannerError",
    "Settings",
    "SpanRef",
]
