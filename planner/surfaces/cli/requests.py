"""Plan requests as people and programs write them: options of a command line, lines of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from planner.errors import RequestError
from planner.request import PlanRequest


def json_value(text: str | bytes, what: str) -> Any:
    """Return JSON data, strictly: no NaN, no infinity. Raises RequestError naming `what`."""
    try:
        return json.loads(text, parse_constant=_refused)
    except UnicodeDecodeError:
        raise RequestError(f"{what} is not valid UTF-8", field=what) from None
    except RecursionError:
        raise RequestError(f"{what} is nested too deeply", field=what) from None
    except ValueError as error:
        raise RequestError(f"{what} is not JSON: {error}", field=what) from None


def json_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Return a JSON object. Raises RequestError naming `what`."""
    value = json_value(text, what)
    if not isinstance(value, dict):
        raise RequestError(f"{what} is not a JSON object", field=what)
    return value


def seed(text: str) -> dict[str, Any]:
    """Read `NODE` or `NODE=score`; a node id that itself ends like `=0.5` needs its score written out."""
    node_id, equals, score = text.rpartition("=")
    if equals:
        try:
            return {"node_id": node_id, "score": float(score)}
        except ValueError:
            pass
    return {"node_id": text}


def from_line(line: bytes, number: int, defaults: Mapping[str, Any]) -> PlanRequest:
    """Read a line of a batch; what it does not say comes from `defaults`. Raises RequestError."""
    data = {**defaults, **json_object(line, f"line {number}")}
    if "scope" not in data:
        raise RequestError("scope: give it in the line, or as the argument SCOPE", field="scope")
    return PlanRequest.parse(data)


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
