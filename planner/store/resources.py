"""Where SQL and migrations lie: in a checkout at the top, in an installed wheel inside the package."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


def sql_dir() -> Path:
    """Return the folder that holds `queries/` and `objects/`. FileNotFoundError: a broken install."""
    return _found("sql", "objects")


def migrations_dir() -> Path:
    """Return alembic's script folder. Raises FileNotFoundError for a broken install."""
    return _found("migrations", "versions")


@cache
def head_revision() -> str:
    """Return the newest revision that this version knows.

    A revision is named for its file, `NNNN_name`, and revisions form one line: the last name is the head.
    (Asking alembic would import it into every command.)
    """
    return revisions()[-1]


@cache
def revisions() -> tuple[str, ...]:
    """Return every revision that this version knows, oldest first."""
    return tuple(sorted(path.stem for path in (migrations_dir() / "versions").glob("[0-9]*.py")))


def _found(name: str, holding: str) -> Path:
    for folder in (_PACKAGE / f"_{name}", _PACKAGE.parent / name):
        if (folder / holding).is_dir():
            return folder
    raise FileNotFoundError(f"evidence-planner is installed without its {name} folder; reinstall it")
