"""By the tools a token reaches its scope alone: of another it tells nothing, not even that it is there.

Two tenants hold the same. Every tool is asked with each permission, for the own scope, for the other's and
for none; answers are compared whole, but for the names and ids that were sent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import uuid4

import httpx
import pytest
from mcp import Client
from mcp_types import CallToolResult

from planner import Planner
from planner.granting import PERMISSIONS
from planner.surfaces.mcp.tools import TOOLS
from tests.integration.graph import Connection, rows_of
from tests.isolation.twins import NOBODY, A, B, invalid_tokens, twins
from tests.mcp_service import asking, over_http, served, text_of


@dataclass(frozen=True)
class Asked:
    """A tool and what it is sent; `{scope}` and `{plan}` stand for whom it is sent about."""

    tool: str
    arguments: Mapping[str, Any]

    def about(self, scope: str, plan: str) -> dict[str, Any]:
        places = {"{scope}": scope, "{plan}": f"{scope}:{plan}"}
        return {name: places.get(str(value), value) for name, value in self.arguments.items()}


CALLS = (
    Asked("get_context", {"scope": "{scope}", "question": "gate at 0", "budget_tokens": 300}),
    Asked("read_source", {"scope": "{scope}", "source": "doc.md", "budget_tokens": 300}),
    Asked("read_source", {"plan": "{plan}", "evidence": "E1", "budget_tokens": 300}),
    Asked("verify_citation", {"plan": "{plan}", "evidence": "E1", "quote": "gate"}),
    Asked("why", {"plan": "{plan}", "what": "doc.md", "budget_tokens": 900}),
    Asked("remember", {"scope": "{scope}", "source": "new.md", "text": "New at 50"}),
    Asked("remember", {"scope": "{scope}", "source": "talk", "messages": [{"content": "at 60"}]}),
)
"""Every tool in each way that it is asked; those that leave the least behind first."""

by_call = pytest.mark.parametrize("asked", CALLS, ids=lambda a: f"{a.tool} {','.join(a.arguments)}")


@dataclass
class Tenants:
    """The service, a plan of each tenant, and how to make tokens."""

    base: str
    planner: Planner
    plans: Mapping[str, str]

    def token(self, scope: str, *permissions: str) -> str:
        return self.planner.create_token(scope, label="test", permissions=permissions).text

    def ask(self, asked: Asked, token: str, *about: tuple[str, str]) -> list[tuple[bool, str, str]]:
        """Ask about a scope and a plan, each in turn; names and ids that were sent are masked in answers."""

        async def work(client: Client) -> list[tuple[bool, str, str]]:
            return [
                masked(await client.call_tool(asked.tool, asked.about(scope, plan)), scope, plan)
                for scope, plan in about
            ]

        return asking(partial(over_http, self.base, token), work)


def masked(result: CallToolResult, scope: str, plan: str) -> tuple[bool, str, str]:
    """Return an answer without what was sent, and without the token's own id, which differs by token."""
    structure = dict(result.structured_content)
    structure.pop("token_id", None)
    said = (text_of(result), json.dumps(structure, sort_keys=True))
    text, beside = (each.replace(plan, "PLAN").replace(scope, "SCOPE") for each in said)
    return result.is_error, text, beside


def code_of(answer: tuple[bool, str, str]) -> str | None:
    code = json.loads(answer[2]).get("code") if answer[0] else None
    return None if code is None else str(code)


@contextmanager
def opened(url: str) -> Iterator[Tenants]:
    """Serve the twins."""
    with twins(url) as (planner, plans), served(planner, tokens=True) as base:
        yield Tenants(base, planner, plans)


@pytest.fixture(scope="module")
def tenants(module_database_url: str) -> Iterator[Tenants]:
    with opened(module_database_url) as made:
        yield made


def test_every_tool_is_tried() -> None:
    assert {asked.tool for asked in CALLS} == set(TOOLS)


@by_call
@pytest.mark.parametrize("permission", [*PERMISSIONS, "all"])
def test_another_scope_answers_as_none_and_keeps_its_rows(
    tenants: Tenants, rows: Connection, asked: Asked, permission: str
) -> None:
    permissions = PERMISSIONS if permission == "all" else (permission,)
    token = tenants.token(A, *permissions)
    before = rows_of(rows, B)
    theirs = tenants.plans[B]
    others = ((B, theirs), (NOBODY, theirs), (NOBODY, str(uuid4())), (B, str(uuid4())))
    foreign, *missing = tenants.ask(asked, token, *others)
    assert missing == [foreign] * 3
    may = TOOLS[asked.tool].permission in permissions
    assert code_of(foreign) in (("not_found.scope", "not_found.plan") if may else ("auth.forbidden",))
    assert rows_of(rows, B) == before
    assert rows_of(rows, NOBODY) == dict.fromkeys(before, 0)


@by_call
def test_the_id_of_another_s_plan_is_none_in_the_own_scope(tenants: Tenants, asked: Asked) -> None:
    if "plan" not in asked.arguments:
        return
    token = tenants.token(A, *PERMISSIONS)
    theirs, none = tenants.ask(asked, token, (A, tenants.plans[B]), (A, str(uuid4())))
    assert theirs == none
    assert code_of(theirs) == "not_found.plan"


@by_call
def test_each_tool_asks_for_its_permission_alone(tenants: Tenants, asked: Asked) -> None:
    needed = TOOLS[asked.tool].permission
    rest = [permission for permission in PERMISSIONS if permission != needed]
    (refused,) = tenants.ask(asked, tenants.token(A, *rest), (A, tenants.plans[A]))
    assert code_of(refused) == "auth.forbidden"
    assert json.loads(refused[2])["permission"] == needed
    (done,) = tenants.ask(asked, tenants.token(A, needed), (A, tenants.plans[A]))
    assert code_of(done) is None


@pytest.mark.parametrize("permission", PERMISSIONS)
def test_a_tool_is_listed_for_whom_it_is_permitted(tenants: Tenants, permission: str) -> None:
    async def work(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    listed = asking(partial(over_http, tenants.base, tenants.token(A, permission)), work)
    assert listed == [name for name, tool in TOOLS.items() if tool.permission == permission]


def post(tenants: Tenants, authorization: str | None, **arguments: object) -> tuple[int, dict[str, str], str]:
    """Call a tool with a header; return status, headers and body, but for what no two answers share."""
    call = {"name": "get_context", "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream"}
    if authorization is not None:
        headers["Authorization"] = authorization
    answer = httpx.post(f"{tenants.base}/mcp", json=message, headers=headers)
    kept = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "date")}
    return answer.status_code, kept, answer.text


def test_a_token_that_is_not_valid_is_like_any_other(tenants: Tenants) -> None:
    answers = [
        post(tenants, f"Bearer {token}", scope=scope, question="at 0", budget_tokens=300)
        for token in invalid_tokens(tenants.planner).values()
        for scope in (A, B, NOBODY)
    ]
    assert all(answer == answers[0] for answer in answers)
    status, headers, text = answers[0]
    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="planner"')
    assert json.loads(text)["code"] == "auth.unauthorized"
    assert A not in text


@pytest.mark.parametrize("header", [None, "", "Basic {token}", "{token}", "Bearer", "Bearer {token} {token}"])
def test_without_a_token_there_is_no_answer(tenants: Tenants, header: str | None) -> None:
    token = tenants.token(A, *PERMISSIONS)
    sent = None if header is None else header.format(token=token)
    asked = {"question": "at 0", "budget_tokens": 300}
    own, other = (post(tenants, sent, scope=scope, **asked) for scope in (A, B))
    assert own == other
    assert own[0] == 401


def test_the_same_content_is_answered_the_same(database_url: str) -> None:
    with opened(database_url) as made:
        for asked in CALLS:
            a, b = (
                made.ask(asked, made.token(scope, *PERMISSIONS), (scope, made.plans[scope]))
                for scope in (A, B)
            )
            assert not a[0][0], a
            assert without_ids(a) == without_ids(b)


def without_ids(answers: list[tuple[bool, str, str]]) -> str:
    """Leave out ids and what is made of them: a bundle's tag where a plan's name is in what it is made of."""
    text = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", repr(answers))
    return re.sub(r"<[0-9a-f]{8}>", "<TAG>", text)
