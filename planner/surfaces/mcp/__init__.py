"""The tools of a language model (Model Context Protocol): on standard input and output, and over HTTP.

What is stored leaves as the text of a bundle alone; what stands beside it, and whatever describes the tools,
holds nothing of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.surfaces.http.service import Part, Service


def part(service: Service) -> Part:
    """Return the tools as a part of the HTTP service."""
    from planner.surfaces.mcp.http import mounted  # noqa: PLC0415  # on stdio nothing of HTTP is installed

    return mounted(service)
