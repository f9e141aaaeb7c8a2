"""What went wrong as RFC 9457 problems: one table from code to status, and what only HTTP can get wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from starlette.responses import Response

from planner.errors import PlannerError, RequestError

PROBLEM = "application/problem+json"

RETRY_AFTER_SECONDS = 1
"""What a busy or unreachable store is given, where the error does not say."""

STATUS: Mapping[str, int] = MappingProxyType(
    {
        "planner.error": 500,
        "settings.invalid": 500,
        "request.invalid": 422,
        "request.unknown_model": 422,
        "request.unknown_counter": 422,
        "request.bad_candidate": 422,
        "not_found": 404,
        "not_found.scope": 404,
        "not_found.plan": 404,
        "not_found.source": 404,
        "not_found.span": 404,
        "ingest.failed": 422,
        "ingest.unreadable": 422,
        "ingest.binary": 415,
        "ingest.undecodable": 422,
        "ingest.empty": 422,
        "ingest.nul": 422,
        "ingest.too_large": 413,
        "ingest.unsupported": 415,
        "ingest.malformed": 422,
        "ingest.conflict": 409,
        "evidence.insufficient": 422,
        "integrity.failed": 500,
        "integrity.replay": 500,
        "embedder.failed": 502,
        "counter.failed": 500,
        "rescorer.failed": 500,
        "store.failed": 500,
        "store.unavailable": 503,
        "store.busy": 503,
        "store.timeout": 504,
        "store.schema_behind": 503,
        "store.schema_ahead": 503,
        "store.unsupported": 503,
        "store.missing_roles": 503,
        "store.migration_busy": 503,
        "embedded.failed": 503,
        "embedded.unavailable": 503,
        "auth.unauthorized": 401,
        "auth.forbidden": 403,
        "call.deadline": 504,
        "call.cancelled": 499,
        "http.no_route": 404,
        "http.method": 405,
        "http.slow_body": 408,
        "http.too_large": 413,
        "http.media_type": 415,
        "http.not_json": 400,
        "http.host": 421,
        "http.origin": 403,
    }
)
"""The status of every code (docs/http.md); 499 is never seen, since whoever asked has gone."""


class NoRoute(PlannerError):
    """There is nothing at this path"""

    code = "http.no_route"


class BadMethod(PlannerError):
    """A path that does not answer this method"""

    code = "http.method"


class SlowBody(PlannerError):
    """The body did not arrive within the request's deadline"""

    code = "http.slow_body"


class TooLarge(PlannerError):
    """The body is larger than max_body_bytes"""

    code = "http.too_large"


class BadMediaType(PlannerError):
    """The body is not application/json"""

    code = "http.media_type"


class NotJson(RequestError):
    """The body is not a JSON object"""

    code = "http.not_json"


class BadHost(PlannerError):
    """A server without tokens answers to names of the loopback interface alone"""

    code = "http.host"


class BadOrigin(PlannerError):
    """A page of another origin may not call a server without tokens"""

    code = "http.origin"


def example(status: int) -> dict[str, Any]:
    """Return what the problem of a status looks like: of its first code, as if nothing more were known."""
    code = next(code for code, its in STATUS.items() if its == status)
    kind = next(kind for kind in _tree(PlannerError) if kind.code == code)
    return {
        "type": f"urn:planner:error:{code}",
        "title": kind.title(),
        "detail": kind.title(),
        "code": code,
        "status": status,
    }


def status_of(code: str) -> int:
    """Return the status of a code; that of the nearest code above it where it has none of its own."""
    while code not in STATUS:
        code = code.rpartition(".")[0] or "planner.error"
    return STATUS[code]


def problem(error: PlannerError, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error as its problem, with the headers that its status asks for."""
    status = status_of(error.code)
    said = {**problem_object(error), "status": status}
    sent = dict(headers or {})
    if status == 503:
        wait = error.detail.get("retry_after")
        seconds = wait if isinstance(wait, (int, float)) and wait > 0 else RETRY_AFTER_SECONDS
        sent["Retry-After"] = str(math.ceil(seconds))
    if status == 401:
        sent["WWW-Authenticate"] = 'Bearer realm="planner"'
    body = json.dumps(said, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")
    return Response(body, status, sent, media_type=PROBLEM)


def problem_object(error: PlannerError) -> dict[str, Any]:
    """Return an error as JSON data."""
    return {name: _plain(value) for name, value in error.to_dict().items()}


def unexpected() -> PlannerError:
    """Return the error that stands for one of ours that nobody foresaw: its text may hold what was sent."""
    return PlannerError("unexpected error; the log has it by the request's id")


def _tree(kind: type[PlannerError]) -> Iterator[type[PlannerError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)


def _plain(value: object) -> Any:
    """Return a fact of an error as JSON data."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return str(value)
