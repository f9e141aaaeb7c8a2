"""An operator's way through the viewer, click by click."""

from __future__ import annotations

import re
from collections.abc import Callable

from planner import Planner
from tests.browser.conftest import Watched
from tests.viewer_world import EMPTY, LARGE, QUESTION, SCOPE, World


def test_from_the_scopes_to_a_plan_and_why_something_is_not_in_it(page: Watched, world: World) -> None:
    browser = page.page
    page.open("/ui")
    browser.get_by_role("link", name=SCOPE, exact=True).click()
    assert "plans" in browser.locator(".lead").inner_text()
    browser.get_by_role("navigation", name=f"Scope {SCOPE}").get_by_role("link", name="Plans").click()
    assert browser.locator("table.plans tbody tr").count() >= 5
    browser.get_by_label("Question, reference or id").fill("HOW OFTEN")
    browser.get_by_role("button", name="Search").click()
    browser.get_by_role("link", name=QUESTION).first.click()
    browser.wait_for_url(re.compile("/plans/"))
    lead = browser.locator(".lead").inner_text()
    assert re.search(r"\d+ of \d+ candidates selected, \d+ of \d+ tokens used\. Best left out: ", lead)
    browser.get_by_label("Why is this in the plan, or not?").fill("weekdays before 15:00")
    browser.get_by_role("button", name="Ask why").click()
    answer = browser.locator(".verdict-line").inner_text()
    assert answer.startswith("It ")
    assert browser.locator(".phases li").count() == 6


def test_an_answer_becomes_an_expectation_that_is_checked_and_forgotten(
    page: Watched, world: World, viewed: Planner
) -> None:
    browser = page.page
    before = len(viewed.expectations(SCOPE))
    page.open(f"/ui/scopes/{SCOPE}/plans/{world.second.plan_id}/why?what=rollback")
    browser.get_by_label("Why, in your words").fill("asked on Monday")
    browser.get_by_role("button", name="Expect it").click()
    browser.wait_for_url(re.compile("/expectations"))
    assert len(viewed.expectations(SCOPE)) == before + 1
    card = browser.locator(".card.fresh")
    assert "rollback" in card.inner_text()
    assert "asked on Monday" in card.inner_text()
    browser.get_by_role("button", name="Check which fail now").click()
    browser.wait_for_load_state()
    assert re.search(r"fail now|hold now", browser.locator(".lead").inner_text())
    assert browser.locator(".stage").count() == before + 1
    browser.locator(".card", has_text="asked on Monday").get_by_role("button", name="Forget it").click()
    browser.wait_for_load_state()
    assert len(viewed.expectations(SCOPE)) == before


def test_a_point_of_the_plot_says_its_name_and_leads_to_why(page: Watched, world: World) -> None:
    page.open(world.pages()["plan-later"])
    point = page.page.locator(".plot a.pt").first
    named = point.get_attribute("aria-label") or ""
    assert re.search(r"@\d+:\d+-\d+, .*, weight 0\.\d{4}, \d+ tokens", named)
    assert point.locator("title").text_content()
    point.focus()
    page.page.keyboard.press("Enter")
    page.page.wait_for_url(re.compile(r"/why\?what="))
    assert page.page.locator(".card .stage").count() == 1


def test_a_large_pool_is_drawn_in_part_and_listed_by_pages(page: Watched, world: World) -> None:
    browser = page.page
    page.open(world.pages()["plan-large"])
    assert browser.locator(".plot .cell").count() > 1
    assert "too many to draw one by one" in browser.locator(".plot .note").inner_text()
    assert browser.locator("ol.cards > li").count() == 25
    browser.get_by_role("link", name=re.compile("^All .* left out$")).click()
    assert browser.locator("table.pool tbody tr").count() == 100
    browser.get_by_role("link", name="Next").click()
    browser.wait_for_url(re.compile("from=100"))
    assert browser.locator("table.pool tbody tr").count() == 100
    assert "101–200 of " in browser.locator(".pager").inner_text()


def test_a_text_goes_on_over_pages_without_a_gap(page: Watched, world: World) -> None:
    browser, seen = page.page, ""
    page.open(f"/ui/scopes/{LARGE}/source?id=log-1.md")
    while True:
        seen += browser.locator(".source-text").evaluate(
            "node => { const copy = node.cloneNode(true);"
            " copy.querySelectorAll('.at').forEach(at => at.remove()); return copy.textContent; }"
        )
        following = browser.get_by_role("link", name="Next")
        if not following.count():
            break
        following.click()
        browser.wait_for_load_state()
    assert re.findall(r"Entry (\d+):", seen) == [str(i) for i in range(400)]
    assert seen.count("\n\n") == 399


def test_the_marks_of_a_text_lead_to_why(page: Watched, world: World) -> None:
    page.open(world.pages()["source"])
    counts = page.page.locator(".lead").inner_text()
    assert re.search(r"\d+ selected, \d+ left out, \d+ never recalled", counts)
    page.page.locator("a.at.o-selected").first.click()
    page.page.wait_for_url(re.compile("/why"))
    assert "selected" in page.page.locator(".card .stage").first.inner_text()


def test_replay_replan_and_verify_load_by_themselves(page: Watched, world: World) -> None:
    page.open(f"/ui/scopes/{SCOPE}/plans/{world.first.plan_id}/verdict")
    lines = page.page.locator(".verdict-line")
    lines.nth(2).wait_for()
    said = lines.all_inner_texts()
    assert said[0].startswith("✓ Identical")
    assert said[1].startswith("✗ Not the same plan any more")
    assert said[2].startswith("✓ Every row")
    assert "its text was erased by transaction" in page.page.locator(".evidence-row").first.inner_text()


def test_two_plans_are_ticked_and_compared(page: Watched, world: World) -> None:
    browser = page.page
    page.open(f"/ui/scopes/{SCOPE}/plans?text=how+often")
    button = browser.get_by_role("button", name="Compare the two that are ticked")
    assert button.is_disabled()
    for ref in (world.first, world.second):
        browser.locator(f"input[value='{ref.plan_id}']").check()
    button.click()
    browser.wait_for_url(re.compile("/compare"))
    assert browser.locator("#a").input_value() == world.first.plan_id
    assert re.search(r"\d+ entered, \d+ left, \d+ moved", browser.locator(".lead").inner_text())
    assert "absent from pool" in browser.locator("table.changes").inner_text()


def test_the_bundle_is_the_text_that_delivery_gives_and_looking_keeps_none(
    page: Watched, world: World, viewed: Planner
) -> None:
    kept = len(viewed.deliveries(world.second))
    page.open(world.pages()["bundle"])
    made = viewed.deliver(world.second, "auto", budget_tokens=300, keep=False)
    shown = page.page.locator(".bundle > div").all_text_contents()
    assert "\n".join(shown) + "\n" == made.text
    figures = page.page.locator(".side table").first.inner_text()
    framing, labels, bodies = (
        int(re.search(rf"{n}\s+(\d+)", figures)[1]) for n in ("framing", "labels", "bodies")
    )
    assert framing + labels + bodies == made.used
    raw = page.page.request.get(page.url + world.pages()["bundle"] + "&raw=1")
    assert raw.text() == made.text
    assert raw.headers["content-type"] == "text/plain; charset=utf-8"
    assert len(viewed.deliveries(world.second)) == kept


def test_the_list_of_plans_refreshes_itself(page: Watched, world: World, viewed: Planner) -> None:
    page.open(f"/ui/scopes/{EMPTY}/plans")
    assert page.page.locator(".empty-title").inner_text() == "No plans yet"
    viewed.plan(EMPTY, "Was anything asked meanwhile?", budget_tokens=100)
    page.page.get_by_role("link", name="Was anything asked meanwhile?").wait_for(timeout=20_000)


def test_times_are_told_in_the_readers_zone_and_hashes_can_be_copied(
    window: Callable[..., Watched], service: str, world: World, viewed: Planner
) -> None:
    watched = window(service, permissions=["clipboard-read", "clipboard-write"], locale="en-GB")
    watched.open(world.pages()["plan"])
    plan = viewed.load(world.first)
    time = watched.page.locator(".crumbs time")
    hour = watched.page.evaluate(
        """at => new Intl.DateTimeFormat('en-GB', {dateStyle: 'medium', timeStyle: 'medium'})
            .format(new Date(at))""",
        time.get_attribute("datetime"),
    )
    assert time.inner_text() == hour
    assert (time.get_attribute("datetime") or "").startswith(f"{plan.created_at:%Y-%m-%dT%H:%M:%S}")
    watched.page.get_by_role("button", name="Copy the plan hash").click()
    watched.page.get_by_role("button", name="Copied").or_(
        watched.page.locator(".copy", has_text="Copied")
    ).first.wait_for()
    assert watched.page.evaluate("navigator.clipboard.readText()") == plan.plan_hash


def test_refused_failed_and_erased_say_what_they_are(page: Watched, world: World) -> None:
    said = {}
    for name in (
        "plan-refused",
        "plan-empty",
        "plan-failed",
        "plan",
        "source-erased",
        "source-withdrawn",
        "source-older",
    ):
        page.open(world.pages()[name])
        said[name] = page.page.locator("main").inner_text()
    assert re.search(r"Refused: .* a budget of \d+ would do", said["plan-refused"])
    assert "Refused: the pool is empty" in said["plan-empty"]
    assert "Failed: " in said["plan-failed"]
    assert "rescorer.failed" in said["plan-failed"]
    assert "Erased. The plan keeps the hash of what stood here." in said["plan"]
    assert "erased 2 selected spans since" in said["plan"]
    assert "newer version" in said["plan"]
    assert "Erased at transaction" in said["source-erased"]
    assert "Withdrawn at transaction" in said["source-withdrawn"]
    assert "An older version." in said["source-older"]


def test_every_page_works_without_scripts(window: Callable[..., Watched], service: str, world: World) -> None:
    watched = window(service, java_script_enabled=False)
    for name, path in world.pages().items():
        answer = watched.open(path)
        assert answer.status in (200, 404, 422), name
        assert watched.page.locator("h1").count() == 1, name
    watched.open(f"/ui/scopes/{SCOPE}/plans/{world.first.plan_id}/verdict")
    watched.page.get_by_role("link", name="Replay now").click()
    assert watched.page.locator(".verdict-line").count() == 3
