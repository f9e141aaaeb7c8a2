"""The evaluation on a real server: a scratch database, the real path, the same figures every time."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest

from planner import Planner, Settings
from planner.errors import EmptyInput, MalformedInput, StoreError
from planner.evaluation.corpora import Corpus, read_corpus
from planner.evaluation.loading import Labels, load
from planner.evaluation.measure import SPECIFIED_RULE, measure
from planner.evaluation.metrics import Item
from planner.evaluation.report import SPECIFIED
from planner.evaluation.runner import evaluate
from planner.store.scratch import PREFIX, scratch_database
from planner.store.upgrade import check

OWN = Path(__file__).parents[1] / "corpus"


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[..., Corpus]:
    """Give a function that makes a corpus of sources and of one question a list of evidence."""

    def make(sources: list[dict[str, Any]], *evidence: list[dict[str, Any]], **about: Any) -> Corpus:
        rows = [{"scope": "s", "media_type": "text/markdown", **source} for source in sources]
        questions = [
            {"question_id": f"q{i}", "scope": "s", "text": "What is it?", "evidence": items, **about}
            for i, items in enumerate(evidence)
        ]
        for name, lines in (("sources.jsonl", rows), ("questions.jsonl", questions)):
            (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
        return read_corpus(tmp_path)

    return make


def scratch_databases(url: str) -> set[str]:
    with psycopg.connect(url) as conn:
        rows = conn.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (PREFIX,))
        return {name for (name,) in rows}


def without_timings(reports: list[dict[str, Any]]) -> str:
    for report in reports:
        assert report.pop("latency_ms")["plan"]["p50"] > 0
        if SPECIFIED in report:
            without_timings([report[SPECIFIED]])
    return json.dumps(reports, sort_keys=True)


def test_a_scratch_database_is_migrated_and_gone_at_the_end_whatever_happens(server_url: str) -> None:
    before = scratch_databases(server_url)
    with scratch_database(server_url) as url:
        assert check(url).up_to_date
        (made,) = scratch_databases(server_url) - before
        assert made in url
    assert scratch_databases(server_url) == before
    with ExitStack() as still_connected:
        with pytest.raises(ZeroDivisionError), scratch_database(server_url) as url:
            still_connected.enter_context(psycopg.connect(url, autocommit=True))
            raise ZeroDivisionError
        assert scratch_databases(server_url) == before


def test_a_login_that_may_not_make_databases_is_told_what_allows_it(app_login_url: str) -> None:
    with pytest.raises(StoreError, match="CREATEDB"), scratch_database(app_login_url):
        raise AssertionError


def test_two_runs_differ_in_their_timings_alone(server_url: str) -> None:
    own, seen = read_corpus(OWN), []
    variants = [Settings(max_frac_per_source=1.0, plan_model="v2")]
    twice = [
        measure(
            own,
            server_url,
            variants,
            budgets=(128, 512),
            units=("chunk", "auto"),
            limit=9,
            progress=lambda stage, done, total: seen.append((stage, done, total)),
        )
        for _ in range(2)
    ]
    assert without_timings(twice[0]) == without_timings(twice[1])
    stages = {stage.split(":")[1] for stage, done, total in seen if done == total}
    assert len(stages) == 3  # ingest, the specified rule, the variant
    report = twice[0][0]
    assert (report["plan_model"], report["max_frac"], report["asked"]) == ("v2", 1.0, 9)
    specified = report[SPECIFIED]
    assert (specified["score_model"], specified["plan_model"]) == ("v1", "v1")
    assert specified["max_frac"] == SPECIFIED_RULE["max_frac_per_source"]
    assert specified["results"] != report["results"]


def test_the_specified_rule_is_not_measured_twice_nor_where_it_is_not_wanted(server_url: str) -> None:
    how: dict[str, Any] = {"budgets": (64,), "limit": 1}
    own = read_corpus(OWN)
    (default,) = measure(own, server_url, [Settings(**SPECIFIED_RULE)], **how)
    (alone,) = measure(own, server_url, [Settings(max_frac_per_source=1.0)], specified=False, **how)
    assert SPECIFIED not in default
    assert SPECIFIED not in alone


def test_budgets_bind_as_they_are_and_no_operators_maximum_narrows_them(server_url: str) -> None:
    (run,) = evaluate(
        read_corpus(OWN),
        server_url,
        [Settings(max_budget=100, default_budget=50)],
        budgets=(1, 97, 512),
        units=("chunk", "window", "record", "auto"),
        limit=4,
    )
    for asked in run.asked:
        assert [at.budget for at in asked.at] == [1, 97, 512]
        for at in asked.at:
            assert at.selected.used <= at.budget
            assert all(bundle.used <= at.budget for bundle in at.delivered.values())
        nothing, _, some = asked.at
        assert (nothing.selected.found, nothing.sources) == (0, 0)
        assert all(bundle.used == 0 for bundle in nothing.delivered.values())
        assert some.selected.used > 300
    assert {"plan", "recall", "select", "deliver auto"} <= run.timings.keys()
    assert len(run.timings["deliver chunk"]) == 12


def test_no_plan_of_an_evaluation_is_kept_and_the_planners_own_database_is_not_touched(
    database_url: str, server_url: str
) -> None:
    own = read_corpus(OWN)
    with Planner.connect(database_url) as planner:
        evaluate(own, server_url, [Settings()], budgets=(64,), limit=1)
        assert planner.scopes() == ()


def test_labels_become_bytes_of_canonical_text(server_url: str, corpus: Callable[..., Corpus]) -> None:
    told = "\ufefffirst line\r\nsecond line\r\n\r\nGrüße at the end"
    at = told.encode().index("Grüße".encode())
    long = "One sentence, and a long one it is. " * 60
    made = corpus(
        [
            {"source_id": "crlf.md", "text": told},
            {"source_id": "talk", "messages": [{"id": "m", "text": long}, {"id": "n", "text": "Yes."}]},
        ],
        [{"source_id": "crlf.md", "start": at, "end": at + 7}],
        [{"source_id": "talk", "message_id": "m"}, {"source_id": "talk", "message_id": "n"}],
    )
    (run,) = evaluate(made, server_url, [Settings(max_frac_per_source=1.0)], budgets=(20_000,))
    crlf, talk = run.asked
    assert crlf.at[0].selected.found == 1
    assert len(talk.ranks) == talk.at[0].selected.found == 2
    with scratch_database(server_url) as url, Planner.connect(url) as planner:
        load(planner, made, lambda stage, done, total: None)
        labels = Labels(planner, made)
        canonical = told.removeprefix("\ufeff").replace("\r\n", "\n").encode()
        (item,) = labels.items(made.questions[0])
        ((start, end),) = item.ranges
        assert canonical[start:end].decode() == "Grüße"
        message, short = labels.items(made.questions[1])
        assert len(message.ranges) > 1  # a message too long for a span is cut
        assert message.length == len(long.strip().encode())
        assert short == Item("talk", ((len(long.encode()) + 2, len(long.encode()) + 6),))


def test_a_label_on_a_text_that_is_not_kept_byte_for_byte_is_refused(
    server_url: str, corpus: Callable[..., Corpus]
) -> None:
    page = {"source_id": "page", "media_type": "text/html", "text": "<p>It is <b>here</b>.</p>"}
    made = corpus([page], [{"source_id": "page", "start": 0, "end": 9}])
    with pytest.raises(MalformedInput, match="text/html is not ingested byte for byte"):
        evaluate(made, server_url, [Settings()], budgets=(64,))


def test_a_source_that_cannot_be_ingested_is_named(server_url: str, corpus: Callable[..., Corpus]) -> None:
    made = corpus([{"source_id": "blank", "text": "  "}], [])
    with pytest.raises(EmptyInput, match="source 'blank'"):
        evaluate(made, server_url, [Settings()], budgets=(64,))
