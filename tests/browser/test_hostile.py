"""What a stranger wrote shows as text, in every view, and does nothing."""

from __future__ import annotations

import re

from tests.browser.conftest import Watched
from tests.delivery_strategies import INSTRUCTION
from tests.viewer_world import World


def test_hostile_content_is_text_in_every_view(page: Watched, world: World) -> None:
    silent = []
    for name, path in world.hostile_pages().items():
        page.open(path)
        page.page.wait_for_timeout(50)
        found = page.page.evaluate(
            """() => {
                const all = query => [...document.querySelectorAll(query)];
                const acts = name => name.startsWith("on") || name === "style";
                const target = node => new URL(node.href || node.action || node.src, location.href);
                return {
                    pwned: window.pwned === undefined,
                    made: all("main :is(img, script, b, i, u, svg[onload], iframe)").length,
                    handlers: all("*").filter(node => node.getAttributeNames().some(acts)).length,
                    scripts: all("script").filter(node => !node.src || node.textContent).length,
                    links: all("a[href], form, [src]").filter(n => target(n).origin !== origin).length,
                };
            }"""
        )
        assert found == {"pwned": True, "made": 0, "handlers": 0, "scripts": 0, "links": 0}, name
        seen = page.page.locator("body").inner_text() + page.page.locator("main").inner_html()
        if INSTRUCTION not in seen:
            silent.append(name)
    assert silent == []


def test_what_reorders_a_line_is_written_out(page: Watched, world: World) -> None:
    page.open(world.hostile_pages()["source"])
    text = page.page.locator(".source-text").inner_text()
    assert "\\u202egnp.exe" in text
    assert "\u202e" not in page.page.locator("main").inner_text()


def test_the_bundle_shows_envelopes_that_nothing_inside_forged(page: Watched, world: World) -> None:
    page.open(world.hostile_pages()["bundle"])
    first = page.page.locator(".b-framing").first.inner_text()
    tag = re.search(r"<([0-9a-f]{8})>end", first)
    assert tag
    labels = page.page.locator(".b-label").all_inner_texts()
    assert labels
    assert all(line.startswith(f"<{tag[1]}>") for label in labels for line in label.splitlines())
    assert all(f"<{tag[1]}>" not in body for body in page.page.locator(".b-body").all_inner_texts())
