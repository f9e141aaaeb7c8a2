"""The viewer as HTTP: who is let in, what a forged form does, and the headers of every answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.testclient import TestClient

from planner import Planner
from planner.surfaces.http.app import create_app
from planner.surfaces.viewer import part
from planner.surfaces.viewer.app import MAX_FORM_BYTES
from planner.surfaces.viewer.sessions import COOKIE, LIFETIME_SECONDS, MOST, Sessions
from tests.viewer_world import HOSTILE, SCOPE, SETTINGS, World, build

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


@pytest.fixture(scope="module")
def viewed(module_database_url: str) -> Iterator[Planner]:
    with Planner.connect(module_database_url, settings=SETTINGS) as planner:
        yield planner


@pytest.fixture(scope="module")
def world(viewed: Planner) -> World:
    return build(viewed)


@pytest.fixture
def open_door(viewed: Planner, world: World) -> Iterator[TestClient]:
    app = create_app(viewed, tokens=False, parts=[part])
    with TestClient(app, base_url="http://localhost", follow_redirects=False) as client:
        yield client


@pytest.fixture
def guarded(viewed: Planner, world: World) -> Iterator[TestClient]:
    app = create_app(viewed, tokens=True, parts=[part])
    with TestClient(app, base_url="https://viewer.example", follow_redirects=False) as client:
        yield client


def form_token(client: TestClient, path: str) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', client.get(path).text)
    assert found, path
    return found[1]


def enter(client: TestClient, token: str, **more: str) -> object:
    fields = {"form_token": form_token(client, "/ui/login"), "token": token, **more}
    return client.post("/ui/login", data=fields)


def test_every_answer_forbids_what_a_page_does_not_need(open_door: TestClient, world: World) -> None:
    paths = {**world.pages(), **{f"hostile-{name}": path for name, path in world.hostile_pages().items()}}
    for name, path in {**paths, "css": "/ui/static/viewer.css", "js": "/ui/static/viewer.js"}.items():
        answer = open_door.get(path)
        assert answer.status_code in (200, 404, 422), name
        assert answer.headers["x-content-type-options"] == "nosniff", name
        assert answer.headers["x-frame-options"] == "DENY", name
        if name in ("css", "js"):
            assert "immutable" in answer.headers["cache-control"]
            continue
        said = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
        assert said == POLICY, name
        assert answer.headers["referrer-policy"] == "same-origin", name
        assert answer.headers["cache-control"] == "no-store", name
        assert not re.search(r"<[^>]+ style=|<style|<script(?![^>]* src=)| on\w+=\"", answer.text), name


def test_plain_text_is_sandboxed(open_door: TestClient, world: World) -> None:
    answer = open_door.get(f"/ui/scopes/{HOSTILE}/plans/{world.hostile.plan_id}/bundle?raw=1&budget=5000")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["content-security-policy"].endswith("; sandbox")


def test_without_a_session_the_door_is_shown_and_leads_back(guarded: TestClient, viewed: Planner) -> None:
    wanted = f"/ui/scopes/{SCOPE}/plans?text=how+often"
    refused = guarded.get(wanted)
    assert refused.status_code == 303
    door = urlsplit(refused.headers["location"])
    assert door.path == "/ui/login"
    assert parse_qs(door.query) == {"next": [wanted]}
    token = viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text
    entered = enter(guarded, token, next=wanted)
    assert (entered.status_code, entered.headers["location"]) == (303, wanted)
    assert guarded.get(wanted).status_code == 200
    assert token not in str(entered.headers)
    assert guarded.get("/ui/").headers["location"] == f"/ui/scopes/{SCOPE}"


def test_the_cookie_is_kept_from_scripts_other_sites_and_plain_connections(
    guarded: TestClient, viewed: Planner
) -> None:
    token = viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text
    anonymous = guarded.get("/ui/login").headers["set-cookie"]
    entered = enter(guarded, token).headers["set-cookie"]
    for cookie in (anonymous, entered):
        parts = {piece.strip().lower() for piece in cookie.split(";")[1:]}
        assert {"httponly", "samesite=strict", "secure", "path=/ui", f"max-age={LIFETIME_SECONDS}"} <= parts
    assert anonymous.split(";")[0] != entered.split(";")[0]


def test_a_plain_connection_gets_no_secure_cookie_but_one_behind_tls_does(open_door: TestClient) -> None:
    assert "secure" not in open_door.get("/ui/scopes/nobody").headers["set-cookie"].lower()
    open_door.cookies.clear()
    behind = open_door.get("/ui/scopes/nobody", headers={"X-Forwarded-Proto": "https"})
    assert "secure" in behind.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/ui/\\evil", "/v1/plans", "javascript:1"]
)
def test_the_door_leads_nowhere_else(guarded: TestClient, viewed: Planner, target: str) -> None:
    token = viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text
    assert enter(guarded, token, next=target).headers["location"] == "/ui/"


@pytest.mark.parametrize("permissions", [["read"], ["inspect"], ["write", "erase"]])
def test_a_token_that_may_not_look_does_not_enter(
    guarded: TestClient, viewed: Planner, permissions: list[str]
) -> None:
    token = viewed.create_token(SCOPE, label="t", permissions=permissions).text
    refused = enter(guarded, token)
    assert refused.status_code == 403
    assert "does not permit" in refused.text
    assert guarded.get("/ui/").headers["location"].startswith("/ui/login")


def test_a_wrong_token_is_refused_and_not_shown(guarded: TestClient) -> None:
    refused = enter(guarded, "handbook.not-a-token")
    assert refused.status_code == 401
    assert "not-a-token" not in refused.text


def test_a_revoked_token_ends_the_session_at_once(guarded: TestClient, viewed: Planner) -> None:
    made = viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"])
    enter(guarded, made.text)
    assert guarded.get(f"/ui/scopes/{SCOPE}").status_code == 200
    viewed.revoke_token(SCOPE, made.token.token_id)
    assert guarded.get(f"/ui/scopes/{SCOPE}").headers["location"].startswith("/ui/login")


def test_a_session_reaches_its_scope_alone(guarded: TestClient, viewed: Planner, world: World) -> None:
    enter(guarded, viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text)
    for path in (*world.hostile_pages().values(), f"/ui/scopes/{SCOPE}/plans/{world.hostile.plan_id}"):
        answer = guarded.get(path)
        assert answer.status_code == 404, path
        assert "Mallory" not in answer.text
    other = f"/ui/scopes/{SCOPE}/compare?a={world.first.plan_id}&b={world.hostile}"
    assert guarded.get(other).status_code == 404


def test_logging_out_ends_the_session(guarded: TestClient, viewed: Planner) -> None:
    enter(guarded, viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text)
    session = guarded.cookies[COOKIE]
    token = form_token(guarded, f"/ui/scopes/{SCOPE}")
    assert guarded.post("/ui/logout", data={"form_token": "0" * 64}).status_code == 403
    assert guarded.post("/ui/logout", data={"form_token": token}).headers["location"] == "/ui/login"
    guarded.cookies.set(COOKIE, session)
    assert guarded.get(f"/ui/scopes/{SCOPE}").headers["location"].startswith("/ui/login")


WRITES = ("plans/{plan}/expect", "expectations", "expectations/remove")


@pytest.mark.parametrize("path", WRITES)
@pytest.mark.parametrize("forged", ["", "0" * 64, "another session's"])
def test_a_forged_form_writes_nothing(
    open_door: TestClient, viewed: Planner, world: World, path: str, forged: str
) -> None:
    kept, plans = viewed.expectations(SCOPE), viewed.plans(SCOPE, limit=100).plans
    if forged.startswith("another"):
        forged = form_token(open_door, f"/ui/scopes/{SCOPE}")
        open_door.cookies.set(COOKIE, "x" * 43)
    fields = {"form_token": forged, "what": "rollback", "expectation": kept[0].ref.expectation_id}
    answer = open_door.post(f"/ui/scopes/{SCOPE}/{path.format(plan=world.first.plan_id)}", data=fields)
    assert answer.status_code == 403
    assert "form" in answer.text
    assert viewed.expectations(SCOPE) == kept
    assert viewed.plans(SCOPE, limit=100).plans == plans


def test_a_token_without_write_adds_no_expectation(
    guarded: TestClient, viewed: Planner, world: World
) -> None:
    enter(guarded, viewed.create_token(SCOPE, label="t", permissions=["read", "inspect"]).text)
    why = f"/ui/scopes/{SCOPE}/plans/{world.first.plan_id}/why?what=rollback"
    assert "does not permit" in guarded.get(why).text
    kept = viewed.expectations(SCOPE)
    fields = {"form_token": form_token(guarded, f"/ui/scopes/{SCOPE}"), "what": "rollback"}
    answer = guarded.post(f"/ui/scopes/{SCOPE}/plans/{world.first.plan_id}/expect", data=fields)
    assert answer.status_code == 403
    assert viewed.expectations(SCOPE) == kept


def test_a_form_has_a_size(open_door: TestClient, world: World) -> None:
    fields = {"form_token": form_token(open_door, f"/ui/scopes/{SCOPE}"), "what": "x" * MAX_FORM_BYTES}
    answer = open_door.post(f"/ui/scopes/{SCOPE}/plans/{world.first.plan_id}/expect", data=fields)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "plans?after=x",
        "plans?outcome=x",
        "plans/x",
        "plans/{plan}?from=-1",
        "plans/{plan}?from=99999999999999999999",
        "plans/{plan}/pool?outcome=selected",
        "plans/{plan}/recall?from=9999999999",
        "plans/{plan}/why?what=%00",
        "plans/{plan}/bundle?unit=x",
        "plans/{plan}/bundle?budget=0",
        "plans/{plan}/bundle?neighbours=5000",
        "plans/{plan}/bundle?counter=x",
        "compare?a=x&b=y",
        "source",
        "source?id=%00",
        "source?id=handbook%2Fretries.md&version=0",
        "source?id=handbook%2Fretries.md&from=x",
        "sources?after=%00",
    ],
)
def test_bad_input_is_a_page_that_says_what_would_be_right(
    open_door: TestClient, world: World, path: str
) -> None:
    answer = open_door.get(f"/ui/scopes/{SCOPE}/{path.format(plan=world.first.plan_id)}")
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(("method", "path"), [("GET", "/ui/nothing"), ("POST", "/ui/scopes/handbook/plans")])
def test_what_is_not_there_is_a_page_too(open_door: TestClient, method: str, path: str) -> None:
    answer = open_door.request(method, path)
    assert answer.status_code == (404 if method == "GET" else 405)
    assert "<h1>" in answer.text


def test_what_nobody_foresaw_is_a_page_without_its_message(
    open_door: TestClient, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr(Planner, "overview", broken)
    answer = open_door.get(f"/ui/scopes/{SCOPE}")
    assert answer.status_code == 500
    assert "a secret" not in answer.text


def test_sessions_end_by_age_and_make_room() -> None:
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    first = sessions.open("one")
    assert sessions.token(first) == "one"
    for number in range(MOST):
        last = sessions.open(str(number))
    assert sessions.token(first) is None
    assert sessions.token(last) == str(MOST - 1)
    now = LIFETIME_SECONDS
    assert sessions.token(last) is None
    assert sessions.token("") is None
