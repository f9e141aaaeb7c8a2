"""Every page in every state, for everybody: what axe says, light and dark; a phone's width; the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.browser.conftest import Watched
from tests.viewer_world import World

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

SOME = ("overview", "plans", "plan", "plan-refused", "why-many", "bundle", "verdict", "compare", "source")
"""Pages that have every part between them."""

RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}}


def _serious(page: Any) -> list[str]:
    found = axe.Axe().run(page, options=RULES).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]} | {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical", "moderate")
        for node in one["nodes"][:3]
    ]


def test_axe_finds_nothing_serious(page: Watched, world: World) -> None:
    found = {}
    for name, path in world.pages().items():
        page.open(path)
        if serious := _serious(page.page):
            found[name] = serious
    assert found == {}


@pytest.mark.parametrize(("width", "scheme"), [(1280, "dark"), (390, "light")])
def test_axe_finds_nothing_serious_in_the_dark_and_on_a_phone(
    window: Callable[..., Watched], service: str, world: World, width: int, scheme: str
) -> None:
    watched, pages = window(service, width=width, scheme=scheme), world.pages()
    for name in SOME:
        watched.open(pages[name])
        assert _serious(watched.page) == [], name


def test_no_page_scrolls_sideways_on_a_phone(
    window: Callable[..., Watched], service: str, world: World
) -> None:
    watched = window(service, width=390, height=844)
    wide = {}
    for name, path in {**world.pages(), **world.hostile_pages()}.items():
        watched.open(path)
        if (over := watched.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")) > 0:
            wide[name] = over
    assert wide == {}


def test_axe_finds_nothing_serious_at_the_door(window: Callable[..., Watched], guarded: str) -> None:
    watched = window(guarded)
    watched.open("/ui/")
    assert _serious(watched.page) == []


def test_the_keyboard_reaches_content_and_search(page: Watched, world: World) -> None:
    page.open(world.pages()["plans"])
    page.page.keyboard.press("Tab")
    assert page.page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("/")
    assert page.page.evaluate("document.activeElement.id") == "text"
    page.open(world.pages()["plan"])
    page.page.keyboard.press("/")
    page.page.keyboard.type("dead letter queue")
    page.page.keyboard.press("Enter")
    page.page.wait_for_load_state("networkidle")
    assert "/why?what=dead" in page.page.url
