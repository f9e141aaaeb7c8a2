"""Pictures of every page for a reader: desktop, phone, dark. SCREENSHOTS names the folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.browser.conftest import Watched
from tests.viewer_world import World

SIZES = {"desktop": (1280, 900, "light"), "phone": (390, 844, "light"), "dark": (1280, 900, "dark")}


@pytest.mark.parametrize("size", SIZES)
def test_pages_are_pictured(
    window: Callable[..., Watched], service: str, world: World, screenshots: Path, size: str
) -> None:
    width, height, scheme = SIZES[size]
    watched = window(service, width=width, height=height, scheme=scheme)
    for name, path in world.pages().items():
        watched.open(path)
        watched.page.screenshot(path=screenshots / f"{name}-{size}.png", full_page=True)
    assert len(list(screenshots.glob(f"*-{size}.png"))) >= len(world.pages())
