"""A browser on the viewer of a real service: pages are watched for errors, and for what leaves the host."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from planner import Planner
from planner.surfaces.http.app import create_app
from planner.surfaces.viewer import part
from tests.http_service import listener
from tests.viewer_world import SCOPE, SETTINGS, World, build

OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)

READER_ZONE = "Europe/Oslo"


@dataclass
class Watched:
    """A page of the browser on the service at `url`, and what went wrong in it."""

    page: Any
    url: str
    wrong: list[str] = field(default_factory=list)

    def open(self, path: str) -> Any:
        """Go to a page of the viewer; return its answer."""
        return self.page.goto(self.url + path)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """Give Debian's Chromium, headless; without it the tests are skipped, or fail under REQUIRE_BROWSER=1.

    A module's and no longer: while it is there an event loop runs, beside which tests elsewhere can run none.
    """
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        program = None
    if program is None:
        reason = "no browser: apt-get install chromium, pip install playwright (or set CHROMIUM to one)"
        if os.environ.get("REQUIRE_BROWSER") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def viewed(viewer_database_url: str) -> Iterator[Planner]:
    """Give the planner whose store is looked at."""
    with Planner.connect(viewer_database_url, settings=SETTINGS) as planner:
        yield planner


@pytest.fixture(scope="session")
def world(viewed: Planner) -> World:
    """Give a store in every state."""
    return build(viewed)


@pytest.fixture(scope="session")
def service(viewed: Planner, world: World) -> Iterator[str]:
    """Give the URL of a service without tokens."""
    with listener(create_app(viewed, tokens=False, parts=[part])) as url:
        yield url


@pytest.fixture(scope="session")
def guarded(viewed: Planner, world: World) -> Iterator[str]:
    """Give the URL of a service that asks for tokens."""
    with listener(create_app(viewed, tokens=True, parts=[part])) as url:
        yield url


@pytest.fixture
def window(chromium: Any) -> Iterator[Callable[..., Watched]]:
    """Give a function that opens a page of its own on a service; at the end nothing may have gone wrong."""
    opened: list[tuple[Any, Watched]] = []

    def make(
        url: str, *, width: int = 1280, height: int = 900, scheme: str = "light", **more: Any
    ) -> Watched:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            timezone_id=READER_ZONE,
            **more,
        )
        watched = Watched(context.new_page(), url)
        _watch(watched)
        opened.append((context, watched))
        return watched

    yield make
    wrong = [said for _, watched in opened for said in watched.wrong]
    for context, _ in opened:
        context.close()
    assert wrong == []


@pytest.fixture
def page(window: Callable[..., Watched], service: str) -> Watched:
    """Give a page on the service without tokens."""
    return window(service)


@pytest.fixture
def token(viewed: Planner, world: World) -> str:
    """Give a token that may look at one scope and write in it."""
    permissions = ["read", "write", "inspect"]
    return viewed.create_token(SCOPE, label="the operator", permissions=permissions).text


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder for screenshots: SCREENSHOTS, else one that pytest keeps for a while."""
    named = os.environ.get("SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _watch(watched: Watched) -> None:
    """Note errors of the console, of scripts, and requests to another host than the service's."""
    own = urlsplit(watched.url).netloc

    def console(message: Any) -> None:
        refused = "Failed to load resource: the server responded with a status of 4" in message.text
        if message.type in ("error", "warning") and not refused:
            watched.wrong.append(f"{watched.page.url}: console {message.type}: {message.text}")

    def request(asked: Any) -> None:
        if urlsplit(asked.url).netloc != own:
            watched.wrong.append(f"{watched.page.url}: asked {asked.url}")

    watched.page.on("console", console)
    watched.page.on("pageerror", lambda error: watched.wrong.append(f"{watched.page.url}: {error}"))
    watched.page.on("request", request)
    watched.page.on("crash", lambda _: watched.wrong.append(f"{watched.page.url}: crashed"))
