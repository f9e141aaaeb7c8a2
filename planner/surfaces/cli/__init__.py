"""The command line: runs the command and turns what went wrong into a message and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

import typer

from planner.errors import BadCandidate, InsufficientEvidence, PlannerError, RequestError, SettingsError
from planner.surfaces.cli.app import app
from planner.surfaces.cli.output import emit_problem

DONE, FAILED, USAGE, SOME_FAILED, INSUFFICIENT, INTERRUPTED = 0, 1, 2, 3, 4, 130
"""Exit codes; 3 says that some inputs failed, 4 that evidence or budget does not suffice."""

CLICK_ERROR: Final = typer.BadParameter.__mro__[2]
"""What typer raises for a command line that it cannot read; newer versions keep its module to themselves."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `planner` with these arguments (default: the process's) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _prepare_streams()
    as_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        code = app(args=arguments, prog_name="planner", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read the output has gone; keep the interpreter from flushing into the closed pipe.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (KeyboardInterrupt, typer.Abort):
        return INTERRUPTED
    except PlannerError as error:
        emit_problem(error.to_dict(), as_json=as_json)
        return exit_code(error)
    except Exception as error:
        if isinstance(error, CLICK_ERROR):
            emit_problem(_usage_problem(error), as_json=as_json)
            return USAGE
        unexpected = PlannerError(f"unexpected {type(error).__name__}: {error}")
        emit_problem(unexpected.to_dict(), as_json=as_json)
        return FAILED
    return code if isinstance(code, int) else DONE


def exit_code(error: PlannerError) -> int:
    """Return the exit code that stands for an error."""
    if isinstance(error, InsufficientEvidence):
        return INSUFFICIENT
    bad_request = isinstance(error, RequestError) and not isinstance(error, BadCandidate)
    bad_option = isinstance(error, SettingsError) and error.detail.get("origin") == "argument"
    return USAGE if bad_request or bad_option else FAILED


def _prepare_streams() -> None:
    """Let closed streams be empty ones, and a terminal that lacks a sign show its number instead."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY))
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _usage_problem(error: Any) -> dict[str, object]:
    context = error.ctx if hasattr(error, "ctx") else None
    command = context.command_path if context is not None else "planner"
    message = error.format_message().rstrip(".")
    return {
        "type": "urn:planner:error:usage",
        "title": "The command line cannot be read",
        "detail": f"{message}; see {command} --help",
        "code": "usage",
    }
