"""The tools with the protocol's own client: over HTTP and on stdio, in the protocol's new and older form."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND, CallToolResult

from planner import Planner
from planner.demo import corpus_folder
from planner.surfaces.mcp.tools import TOOLS
from planner.tokens import ScriptCounter
from tests.bundle_parser import parse
from tests.mcp_service import Connect, asking, over_http, over_stdio, served, text_of

COUNTER = ScriptCounter()
QUESTION = "When does the storm gate close?"
SCOPE = "handbook"

Call = Callable[..., CallToolResult]


@pytest.fixture(scope="module")
def planner(module_database_url: str) -> Iterator[Planner]:
    """Give a planner whose scope `handbook` holds the shipped corpus."""
    with Planner.connect(module_database_url) as opened:
        assert not opened.ingest(SCOPE, corpus_folder()).failures
        yield opened


@pytest.fixture(scope="module")
def base(planner: Planner) -> Iterator[str]:
    with served(planner) as url:
        yield url


@pytest.fixture(params=["http", "http, legacy", "stdio", "stdio, legacy"])
def connect(request: pytest.FixtureRequest, base: str, module_database_url: str) -> Connect:
    transport, _, legacy = str(request.param).partition(", ")
    mode: Any = "legacy" if legacy else "auto"
    if transport == "http":
        return partial(over_http, base, mode=mode)
    return partial(over_stdio, module_database_url, mode=mode)


@pytest.fixture
def call(base: str) -> Call:
    """Give a function that calls a tool over HTTP."""

    def called(name: str, **arguments: Any) -> CallToolResult:
        async def work(client: Client) -> CallToolResult:
            return await client.call_tool(name, arguments)

        return asking(partial(over_http, base), work)

    return called


def bundle_of(result: CallToolResult, budget: int) -> str:
    """Return the text of an answer that is a bundle within its budget, as the structure beside says."""
    text = text_of(result)
    assert not result.is_error, text
    parse(text)
    said = result.structured_content
    assert COUNTER.count(text) == said["used"] <= said["budget"] <= budget
    return text


def problem_of(result: CallToolResult) -> dict[str, Any]:
    """Return the problem of a refusal, whose text is its sentence."""
    problem = result.structured_content
    assert result.is_error
    assert {"type", "title", "detail", "code"} <= problem.keys()
    assert text_of(result) == problem["detail"]
    return dict(problem)


def test_every_tool_does_its_work(connect: Connect, planner: Planner) -> None:
    async def work(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
        asked = {"scope": SCOPE, "question": QUESTION, "budget_tokens": 300}
        found = await client.call_tool("get_context", asked)
        assert bundle_of(found, 300) == planner.context(SCOPE, QUESTION, budget_tokens=300).text
        plan = found.structured_content["plan"]
        assert str(planner.load(plan).ref) == plan
        await explain(planner, client, plan)
        await read(planner, client, plan)
        await cite(planner, client, plan)
        await remember(client)

    asking(connect, work)


async def explain(planner: Planner, client: Client, plan: str) -> None:
    why = await client.call_tool("why", {"plan": plan, "what": "charter.md", "budget_tokens": 800})
    told = planner.why(plan, "charter.md")
    assert told.sentence in bundle_of(why, 800)
    assert [answer["stage"] for answer in why.structured_content["answers"]] == [
        answer.stage for answer in told.answers
    ]
    short = await client.call_tool("why", {"plan": plan, "what": "charter.md", "budget_tokens": 120})
    assert told.sentence in bundle_of(short, 120)
    assert short.structured_content["lines_left_out"] > 0


async def read(planner: Planner, client: Client, plan: str) -> None:
    begun = await client.call_tool("read_source", {"plan": plan, "evidence": "E1", "budget_tokens": 150})
    ref = planner.evidence_ref(plan, "E1")
    (first, *_) = begun.structured_content["items"]
    assert first["span"]["start"] == ref.start
    assert parse(bundle_of(begun, 150)).envelopes[0].source == ref.source_id
    start, texts = None, []
    while True:
        place = {} if start is None else {"start": start}
        asked = {"scope": SCOPE, "source": "charter.md", "budget_tokens": 150, **place}
        page = await client.call_tool("read_source", asked)
        texts.append(bundle_of(page, 150))
        start = page.structured_content["next_start"]
        if start is None:
            break
    assert len(texts) > 2
    assert "The flood of 1953" in "".join(texts)


async def cite(planner: Planner, client: Client, plan: str) -> None:
    text = planner.load(plan).for_verification()[0].text
    for quote, verdict in ((text, "supported"), ("It is not said.", "not_in_span")):
        cited = {"plan": plan, "evidence": "E1", "quote": quote}
        checked = await client.call_tool("verify_citation", cited)
        assert (checked.is_error, checked.structured_content["verdict"]) == (False, verdict)
        assert text_of(checked).startswith("Supported" if verdict == "supported" else "Not supported")


async def remember(client: Client) -> None:
    note = {
        "scope": "notes",
        "source": "pears.md",
        "text": "Pears are ripe in September.",
        "title": "Pears",
    }
    stored = await client.call_tool("remember", note)
    assert not stored.is_error
    turn = {"content": "The pears are eaten.", "speaker": "Ann", "id": "m1"}
    for _ in range(2):
        said = await client.call_tool("remember", {"scope": "notes", "source": "talk", "messages": [turn]})
        assert not said.is_error, text_of(said)
    found = await client.call_tool(
        "get_context", {"scope": "notes", "question": "pears", "budget_tokens": 300, "unit": "record"}
    )
    assert {e.source for e in parse(bundle_of(found, 300)).envelopes} == {"pears.md", "talk"}


def test_what_a_tool_refuses_is_its_answer(connect: Connect, planner: Planner) -> None:
    plan = str(planner.plan(SCOPE, QUESTION).ref)
    missing = plan[:-4] + "0000"
    question = {"question": QUESTION, "budget_tokens": 300, "scope": SCOPE}
    refusals: list[tuple[str, dict[str, Any], str]] = [
        ("get_context", {**question, "budget_tokens": 3}, "evidence.insufficient"),
        ("get_context", {**question, "scope": "nowhere"}, "not_found.scope"),
        ("get_context", {**question, "counter": "none"}, "request.unknown_counter"),
        ("get_context", {"question": QUESTION, "budget_tokens": 300}, "request.invalid"),
        ("get_context", {"question": QUESTION, "scope": SCOPE}, "request.invalid"),
        ("get_context", {**question, "budget_tokens": "300"}, "request.invalid"),
        ("get_context", {**question, "budget_tokens": 0}, "request.invalid"),
        ("get_context", {**question, "question": "a\0b"}, "request.invalid"),
        ("get_context", {**question, "question": ""}, "request.invalid"),
        ("get_context", {**question, "qestion": ""}, "request.invalid"),
        ("why", {"plan": missing, "what": "x", "budget_tokens": 99}, "not_found.plan"),
        ("why", {"plan": "x", "what": "x", "budget_tokens": 99}, "request.invalid"),
        ("why", {"plan": plan, "what": "charter.md", "budget_tokens": 5}, "evidence.insufficient"),
        ("read_source", {"scope": SCOPE, "source": "none.md", "budget_tokens": 99}, "not_found.source"),
        (
            "read_source",
            {"scope": SCOPE, "source": "charter.md", "budget_tokens": 5},
            "evidence.insufficient",
        ),
        ("read_source", {"plan": plan, "evidence": "E9999", "budget_tokens": 99}, "not_found.span"),
        ("read_source", {"plan": plan, "budget_tokens": 99}, "request.invalid"),
        ("verify_citation", {"plan": plan, "evidence": "E1", "quote": " "}, "request.invalid"),
        ("remember", {"scope": SCOPE, "source": "a.md"}, "request.invalid"),
        ("remember", {"scope": SCOPE, "source": "a.md", "text": " \n"}, "ingest.empty"),
        (
            "remember",
            {"scope": SCOPE, "source": "charter.md", "messages": [{"content": "x"}]},
            "ingest.conflict",
        ),
    ]

    async def work(client: Client) -> None:
        for name, arguments, code in refusals:
            problem = problem_of(await client.call_tool(name, arguments))
            assert problem["code"] == code, (name, arguments, problem)
            if code == "evidence.insufficient":
                enough = {**arguments, "budget_tokens": problem["sufficient_budget"]}
                bundle_of(await client.call_tool(name, enough), enough["budget_tokens"])

    asking(connect, work)


def test_what_is_no_call_is_an_error_of_the_protocol(connect: Connect) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("drop_tables", {})
        assert unknown.value.code == INVALID_PARAMS
        with pytest.raises(MCPError) as no_method:
            await client.list_prompts()
        assert no_method.value.code == METHOD_NOT_FOUND
        assert (await client.list_tools()).tools

    asking(connect, work)


MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "why"}


@pytest.mark.parametrize("headers", [{}, MODERN], ids=["legacy", "modern"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "why", "arguments": [1]}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"arguments": {}}}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}',
        b'{"jsonrpc": "1.0", "id": 1, "method": "tools/list"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}',
        b"\xff\xfe",
    ],
)
def test_what_is_malformed_is_refused_as_such(base: str, body: bytes, headers: dict[str, str]) -> None:
    accepting = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    answer = httpx.post(f"{base}/mcp", content=body, headers={**accepting, **headers})
    text = answer.text.removeprefix("event: message\r\ndata: ")
    assert "error" in json.loads(text), (answer.status_code, answer.text)
    assert "Traceback" not in answer.text
    assert 200 <= answer.status_code < 500


def test_only_a_post_is_answered(base: str) -> None:
    for method in ("GET", "DELETE", "PUT"):
        answer = httpx.request(method, f"{base}/mcp", headers={"Accept": "text/event-stream"})
        assert (answer.status_code, answer.json()["code"]) == (405, "http.method")
        assert answer.headers["allow"] == "POST"


def test_the_operators_budget_bounds_every_text(planner: Planner, module_database_url: str) -> None:
    settings = planner.engine.settings.model_copy(update={"max_budget": 150})
    narrow = Planner.from_pool(planner.engine.store.pool, settings=settings)
    plan = str(planner.plan(SCOPE, QUESTION).ref)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("get_context", {"scope": SCOPE, "question": QUESTION, "unit": "record"}),
        ("read_source", {"scope": SCOPE, "source": "charter.md"}),
        ("why", {"plan": plan, "what": "charter.md"}),
    ]

    async def work(client: Client) -> None:
        for name, arguments in calls:
            bundle_of(await client.call_tool(name, {**arguments, "budget_tokens": 100_000}), 150)

    with served(narrow) as base:
        asking(partial(over_http, base), work)


def test_large_and_odd_arguments_are_answered(call: Call, planner: Planner) -> None:
    huge = "a word " * 20_000
    assert (
        problem_of(call("get_context", scope=SCOPE, question=huge, budget_tokens=99))["code"]
        == "request.invalid"
    )
    nested: Any = 1
    for _ in range(200):
        nested = [nested]
    for value in (nested, {"a": nested}, 1.5, True, None, [], {}):
        refused = call("get_context", scope=SCOPE, question=value, budget_tokens=99)
        assert problem_of(refused)["code"] == "request.invalid"
    text = "A paragraph of some words.\n\n" * 5_000
    assert not call("remember", scope="large", source="large.md", text=text).is_error
    page = call("read_source", scope="large", source="large.md", budget_tokens=2_000)
    bundle_of(page, 2_000)
    assert page.structured_content["left_out"] > 100_000
    whole = call("read_source", scope="large", source="large.md", budget_tokens=2**53)
    assert COUNTER.count(text_of(whole)) == whole.structured_content["used"]
    plan = str(planner.plan(SCOPE, QUESTION).ref)
    quoted = call("verify_citation", plan=plan, evidence="E1", quote="x" * 500_000)
    assert quoted.structured_content["verdict"] == "not_in_span"
