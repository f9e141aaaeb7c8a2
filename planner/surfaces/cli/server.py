"""The server that a command needs before, or without, a planner on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from planner.settings import Settings

if TYPE_CHECKING:
    from planner.embedded import EmbeddedServer


def embedded(settings: Settings) -> EmbeddedServer:
    """Return the embedded server of the data folder in force, not started by this."""
    from planner.embedded import EmbeddedServer  # noqa: PLC0415  # Unix only, and an extra

    return EmbeddedServer(Path(settings.data_dir) if settings.data_dir else None)


@contextmanager
def reached(settings: Settings) -> Iterator[str]:
    """Give the URL of the database in force; an embedded server is started and kept until the end."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    with embedded(settings) as server:
        yield server.url
