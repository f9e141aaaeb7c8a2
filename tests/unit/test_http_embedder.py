"""The HTTP embedder against a real server: what it sends, refuses, tries again and hides."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.embedders import HttpEmbedder, embedder
from planner.errors import EmbedderError, SettingsError
from planner.ports import Embedder
from planner.settings import HttpEndpoint, Settings, load
from tests.embedding_server import Answer, Endpoint, data, serving

KEY = "sk-very-secret"

Make = Callable[..., HttpEmbedder]


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as running:
        yield running


@pytest.fixture
def waits() -> list[float]:
    """Collect what the embedder would have slept."""
    return []


@pytest.fixture
def make(endpoint: Endpoint, waits: list[float]) -> Iterator[Make]:
    made: list[HttpEmbedder] = []

    def build(**about: Any) -> HttpEmbedder:
        given = {"url": endpoint.url, "model": "tiny", "dimensions": 2, **about}
        made.append(HttpEmbedder(HttpEndpoint(**given), environ={"EMBED_KEY": KEY}, sleep=waits.append))
        return made[-1]

    yield build
    for model in made:
        model.close()


def test_it_asks_as_the_interface_says_and_is_known_by_model_and_revision(
    make: Make, endpoint: Endpoint
) -> None:
    model = make(revision="2024-02", api_key_env="EMBED_KEY")
    assert isinstance(model, Embedder)
    assert (model.name, model.revision, model.dimensions) == ("tiny", "2024-02", 2)
    vectors = model.embed(["gate", "水門"])
    assert (vectors.dtype, vectors.tolist()) == (np.float32, [[4.0, 1.0], [2.0, 1.0]])
    assert endpoint.asked == [{"path": "/v1/embeddings", "model": "tiny", "input": ["gate", "水門"]}]
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("ending", ["/", "/embeddings"])
def test_the_url_may_name_the_service_or_its_endpoint(make: Make, endpoint: Endpoint, ending: str) -> None:
    make(url=endpoint.url + ending).embed(["a"])
    assert endpoint.asked[0]["path"] == "/v1/embeddings"
    assert "Authorization" not in endpoint.headers[0]


def test_dimensions_are_asked_for_only_where_they_are_to_be(make: Make, endpoint: Endpoint) -> None:
    make(request_dimensions=True).embed(["a"])
    make().embed(["a"])
    assert [asked.get("dimensions") for asked in endpoint.asked] == [2, None]


@pytest.mark.parametrize(("size", "chars"), [(1, 20), (3, 7), (5, 1), (4, 12)])
def test_batches_keep_both_bounds_the_order_and_every_text_that_is_not_blank(
    make: Make, endpoint: Endpoint, size: int, chars: int
) -> None:
    model = make(batch_size=size, batch_chars=chars)

    @settings(deadline=None, max_examples=15)
    @given(st.lists(st.text(alphabet="ab \n", max_size=12), max_size=12))
    def check(texts: list[str]) -> None:
        endpoint.asked.clear()
        vectors = model.embed(texts)
        assert vectors.tolist() == [[float(len(t)), 1.0] if t.strip() else [0.0, 0.0] for t in texts]
        batches = [asked["input"] for asked in endpoint.asked]
        assert [text for batch in batches for text in batch] == [text for text in texts if text.strip()]
        assert all(len(b) <= size and (len(b) == 1 or sum(map(len, b)) <= chars) for b in batches)

    check()


def test_rows_follow_the_index_and_not_the_order_of_the_answer(make: Make, endpoint: Endpoint) -> None:
    body = {"data": list(reversed(data([[1, 0], [0, 1], [3, 3]])["data"]))}
    endpoint.script = [Answer(body=body)]
    assert make().embed(["a", "b", "c"]).tolist() == [[1, 0], [0, 1], [3, 3]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (data([[1.0, 2.0]]), "answered 1 vectors, not one for each of 2 texts"),
        (data([[1.0, 2.0]] * 3), "answered 3 vectors"),
        ({"data": [{"index": 0, "embedding": [1.0, 2.0]}] * 2}, "by index"),
        ({"data": [{"index": i, "embedding": [1.0, 2.0]} for i in (1, 2)]}, "by index"),
        (data([[1.0, 2.0], [1.0, 2.0, 3.0]]), "3 dimensions, the configuration says dimensions = 2"),
        (data([[1.0, 2.0], "AAAA"]), "answered a str"),
        (b'{"data": [{"index": 0, "embedding": [1, NaN]}, {"index": 1, "embedding": [1, 2]}]}', "no finite"),
        (data([[1.0, 2.0], [1.0, 1e39]]), "no finite"),
        (data([[1.0, 2.0], [1.0, 10**400]]), "no finite"),
        (data([[1.0, 2.0], [1.0, None]]), "no finite"),
        (data([[1.0, 2.0], [True, "2"]]), "no finite"),
        (b'{"data": [', "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        ([1, 2], "no JSON"),
        ({"data": {"index": 0}}, "no JSON"),
        ({"data": [{"index": [], "embedding": []}] * 2}, "no JSON"),
        (b" " * 1_100_000, "more than 1000256 bytes"),
    ],
)
def test_what_is_not_one_finite_vector_a_text_is_refused_at_once(
    make: Make, endpoint: Endpoint, body: Any, said: str
) -> None:
    endpoint.script = [Answer(body=body)]
    with pytest.raises(EmbedderError, match="'tiny' at http://127") as caught:
        make().embed(["a", "b"])
    assert said in str(caught.value)
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    "passing", [Answer(500, b"oops"), Answer(503), Answer(429), Answer(body=b"{}", cut=True)]
)
def test_what_fails_in_passing_is_sent_again_after_growing_waits(
    make: Make, endpoint: Endpoint, waits: list[float], passing: Answer
) -> None:
    endpoint.script = [passing] * 4
    assert make().embed(["gate"]).tolist() == [[4.0, 1.0]]
    assert len(endpoint.asked) == 5
    assert all(0.5 * 2**i <= wait <= 0.5 * 2**i + 0.5 for i, wait in enumerate(waits))
    assert len(set(waits)) == 4


def test_retries_are_bounded_and_the_error_says_what_came_last(
    make: Make, endpoint: Endpoint, waits: list[float]
) -> None:
    endpoint.script = [Answer(500, b"first")] * 2 + [Answer(502, b"bad gateway")]
    with pytest.raises(EmbedderError, match=r"answered 502: bad gateway \(tried 3 times\)"):
        make(retries=2).embed(["gate"])
    assert (len(endpoint.asked), len(waits)) == (3, 2)


def test_no_connection_is_tried_again_and_then_named(make: Make, waits: list[float]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        with pytest.raises(EmbedderError, match=r"cannot be reached: .* \(tried 5 times\)"):
            make(url=url).embed(["gate"])
    assert len(waits) == 4


def test_retry_after_is_waited_for_in_seconds_or_until_its_date(
    make: Make, endpoint: Endpoint, waits: list[float]
) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=50), usegmt=True)
    told = ("17", soon, "0", "soon", format_datetime(datetime(2020, 1, 1, tzinfo=UTC), usegmt=True))
    endpoint.script = [Answer(429, headers={"Retry-After": value}) for value in told]
    assert make(retries=5).embed(["gate"]).tolist() == [[4.0, 1.0]]
    assert waits[0] == 17.0
    assert 30 < waits[1] <= 50
    assert all(wait < 20 for wait in waits[2:])


def test_an_endpoint_that_asks_for_too_long_a_wait_is_given_up(
    make: Make, endpoint: Endpoint, waits: list[float]
) -> None:
    endpoint.script = [Answer(429, b"quota", headers={"Retry-After": "3600"})]
    with pytest.raises(EmbedderError, match=r"429: quota, and asks to wait 3600 s \(tried 1 time\)"):
        make().embed(["gate"])
    assert waits == []


@pytest.mark.parametrize("status", [302, 400, 401, 404, 413])
def test_a_refusal_is_not_sent_again(make: Make, endpoint: Endpoint, status: int) -> None:
    endpoint.script = [Answer(status, b"no such model", headers={"Location": endpoint.url})]
    with pytest.raises(EmbedderError, match=f"answered {status}: no such model"):
        make().embed(["gate"])
    assert len(endpoint.asked) == 1


def test_a_hanging_endpoint_is_an_error_after_the_timeout(make: Make, endpoint: Endpoint) -> None:
    endpoint.script = [Answer(hang=True)]
    with pytest.raises(EmbedderError, match=r"did not answer within timeout_s = 0\.2"):
        make(timeout_s=0.2).embed(["gate"])
    assert len(endpoint.asked) == 1


def test_the_key_is_in_no_error_no_repr_no_log_and_no_configuration(
    make: Make, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    model = make(api_key_env="EMBED_KEY", retries=0)
    said = []
    with caplog.at_level(logging.DEBUG):
        for status in (401, 500):
            endpoint.script = [Answer(status, f"Incorrect key: Bearer {KEY}".encode())]
            with pytest.raises(EmbedderError, match=r"Bearer \*\*\*") as caught:
                model.embed(["gate"])
            said += [str(caught.value), repr(caught.value.to_dict()), repr(caught.value.__cause__)]
    shown = Settings(embedder_http=model.endpoint)
    said += [repr(model), repr(model._client.headers), repr(shown), repr(shown.to_dict()), caplog.text]
    assert "401" in caplog.text
    assert [text for text in said if KEY in text] == []


@pytest.mark.parametrize("value", [None, "", "  \n", "two\nlines", "schlüssel"])
def test_a_key_that_is_not_there_or_is_none_is_refused_by_its_variable(value: str | None) -> None:
    about = HttpEndpoint(url="http://localhost/v1", model="m", dimensions=2, api_key_env="THE_KEY")
    with pytest.raises(SettingsError, match="environment variable THE_KEY") as refused:
        HttpEmbedder(about, environ={} if value is None else {"THE_KEY": value})
    assert value is None or not value.strip() or value not in str(refused.value)


def test_the_configuration_makes_it_and_tables_are_merged_key_by_key() -> None:
    environ = {"PLANNER_EMBEDDER_HTTP": '{"url": "http://localhost:1/v1", "model": "m", "dimensions": 3}'}
    loaded = load({"embedder": "http", "embedder_http": {"model": "n", "timeout_s": 5}}, environ=environ)
    chosen = loaded.settings
    made = embedder(chosen.embedder, chosen.embedder_http)
    assert isinstance(made, HttpEmbedder)
    assert (made.name, made.dimensions, made.endpoint.timeout_s) == ("n", 3, 5)
    assert embedder(chosen.embedder, chosen.embedder_http) is made
    made.close()
    with pytest.raises(SettingsError, match=r"\[planner\.embedder_http\]"):
        embedder("http")


@pytest.mark.parametrize(
    ("about", "key"),
    [
        ({"url": "http://me:sk-secret@host/v1"}, "url"),
        ({"url": "http://host/v1?key=sk-secret"}, "url"),
        ({"url": "ftp://host/sk-secret"}, "url"),
        ({"api_key_env": "sk-secret"}, "api_key_env"),
        ({"api_key": "sk-secret"}, "api_key"),
        ({"dimensions": "sk-secret"}, "dimensions"),
        ({"dimensions": 0}, "dimensions"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"model": ""}, "model"),
    ],
)
def test_what_is_refused_of_an_endpoint_is_named_and_shows_no_secret(about: dict[str, Any], key: str) -> None:
    valid = {"url": "http://host/v1", "model": "m", "dimensions": 2}
    with pytest.raises(SettingsError, match=rf"^embedder_http\.{key} = ") as refused:
        load({"embedder_http": {**valid, **about}}, environ={})
    assert "sk-secret" not in str(refused.value.to_dict())
