"""Files of every format in the store: spans are cut from the stored text, and a second run writes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner import Planner
from tests.format_files import FORMATS, file_of
from tests.integration.graph import fresh_scope

TEXTS = ["The pilot boards by the outer buoy.", "潮は三時に満ちる。"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FORMATS:
        (tmp_path / name).write_bytes(file_of(name, TEXTS).replace(b'"id": "c"', b'"id": "chat"'))
    return tmp_path


def test_every_format_is_stored_once_and_cited_from_the_stored_text(planner: Planner, folder: Path) -> None:
    scope = fresh_scope()
    report = planner.ingest(scope, folder)
    assert report.failures == ()
    files = set(FORMATS) - {"conversations.json", "claude.json"}
    assert {source.source_id for source in report.sources} == {*files, "chat", "c"}
    for source in report.sources:
        spans = planner.source(scope, source.source_id).spans
        cited = [planner.slice_text(scope, span.ref) for span in spans]
        assert all(any(text in slice_ for slice_ in cited) for text in TEXTS), source.source_id
    again = planner.ingest(scope, folder)
    assert {source.status for source in again.sources} == {"unchanged"}
    assert not any(again.counts.values())


def test_a_broken_file_of_each_format_is_named_and_the_rest_goes_in(planner: Planner, folder: Path) -> None:
    broken = {
        "b.csv": (b'a,b\n"open', "ingest.malformed"),
        "b.html": (b"<div>" * 5_000, "ingest.malformed"),
        "b.pdf": (b"%PDF-1.7 broken", "ingest.malformed"),
        "b.json": (b'[{"mapping": {}}]', "ingest.malformed"),
        "b.mbox": (b"no mail", "ingest.malformed"),
        "b.eml": (b"Subject: \n\n", "ingest.empty"),
        "b.py": (b"x = '\xff'", "ingest.undecodable"),
    }
    for name, (raw, _) in broken.items():
        (folder / name).write_bytes(raw)
    report = planner.ingest(fresh_scope(), folder)
    assert {Path(f.path).name: f.code for f in report.failures} == {
        n: code for n, (_, code) in broken.items()
    }
    assert len(report.sources) == len(FORMATS)
