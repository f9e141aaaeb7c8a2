"""JSON as callers send it, read strictly: it says which part is wrong, and never what nobody can store."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from planner.errors import RequestError


def json_object(text: str | bytes, what: str) -> dict[str, Any]:
    """Return a JSON object, read strictly: no NaN, no infinity. Raises RequestError naming `what`."""
    try:
        value = json.loads(text, parse_constant=_refused)
    except UnicodeDecodeError:
        raise RequestError(f"{what} is not valid UTF-8", field=what) from None
    except RecursionError:
        raise RequestError(f"{what} is nested too deeply", field=what) from None
    except ValueError as error:
        raise RequestError(f"{what} is not JSON: {error}", field=what) from None
    if not isinstance(value, dict):
        raise RequestError(f"{what} is not a JSON object", field=what)
    return value


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
