"""Embedders: a vector depends on its text alone; what a callable returns is checked."""

from __future__ import annotations

import logging
import socket
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.embedders import CallableEmbedder, WordLlamaEmbedder, embedder
from planner.errors import EmbedderError, SettingsError
from planner.ports import Embedder

TEXTS = [
    "The storm gate closes at 2.9 m.",
    "水門は潮位が高いと閉まる。",
    "",
    " ",
    "x" * 20_000,
    "gate",
    "👩‍👩‍👧",
]


def test_a_vector_does_not_depend_on_its_batch() -> None:
    model = embedder("wordllama")
    together = model.embed(TEXTS)
    alone = np.concatenate([model.embed([text]) for text in reversed(TEXTS)])[::-1]
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), model.dimensions)
    assert together.tobytes() == np.ascontiguousarray(alone).tobytes()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(max_size=50), max_size=8), st.data())
def test_any_order_gives_the_same_vectors(texts: list[str], data: st.DataObject) -> None:
    model = embedder("wordllama")
    order = data.draw(st.permutations(range(len(texts))))
    shuffled = model.embed([texts[i] for i in order])
    assert model.embed(texts)[order].tobytes() == shuffled.tobytes()


def test_a_text_without_tokens_gives_zeros() -> None:
    assert not embedder("wordllama").embed([""]).any()
    assert embedder("wordllama").embed([]).shape == (0, 256)


def test_like_texts_are_closer_than_unlike_ones() -> None:
    gate, like, unlike = embedder("wordllama").embed(
        ["When does the storm gate close?", "The gate is shut during a storm.", "Fry the onions in butter."]
    )
    assert gate @ like > gate @ unlike


def test_the_model_loads_once_from_many_threads_without_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    model = WordLlamaEmbedder()
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(lambda _: model.embed(["gate"]).tobytes(), range(8)))
    assert len(set(vectors)) == 1


def test_loading_leaves_the_applications_logging_alone() -> None:
    before = (logging.getLogger().level, list(logging.getLogger().handlers))
    WordLlamaEmbedder().embed(["gate"])
    assert (logging.getLogger().level, logging.getLogger().handlers) == before


def test_the_model_is_known_by_name_revision_and_size() -> None:
    model = embedder("wordllama")
    assert isinstance(model, Embedder)
    assert (model.name, model.dimensions) == ("wordllama", 256)
    assert model.revision.endswith("/l2_supercat_256")
    assert embedder("wordllama") is model


def test_an_unknown_embedder_is_refused() -> None:
    with pytest.raises(SettingsError, match="wordllama"):
        embedder("word2vec")


def test_any_callable_embeds() -> None:
    model = CallableEmbedder("lengths", 2, lambda texts: [[len(text), 1] for text in texts], revision="1")
    assert isinstance(model, Embedder)
    assert model.embed(["a", "bcd"]).tolist() == [[1, 1], [3, 1]]
    assert model.embed([]).shape == (0, 2)


@pytest.mark.parametrize(
    "returned",
    [[[1.0]], [1.0, 2.0], [[1.0, 2.0], [3.0, 4.0]], [[1.0, float("nan")]], [[1.0, 1e39]], [["a", "b"]], None],
)
def test_what_is_no_matrix_of_finite_rows_is_refused(returned: object) -> None:
    model = CallableEmbedder("bad", 2, lambda _: returned)  # type: ignore[arg-type,return-value]
    with pytest.raises(EmbedderError, match="'bad'"):
        model.embed(["text"])


def test_an_exception_of_the_callable_is_the_cause() -> None:
    def fail(_: list[str]) -> list[list[float]]:
        raise RuntimeError("no quota")

    with pytest.raises(EmbedderError, match="no quota") as caught:
        CallableEmbedder("remote", 2, fail).embed(["text"])
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(("name", "dimensions"), [("", 2), ("a\0", 2), ("a", 0), ("a", 16_001)])
def test_a_name_or_size_that_no_store_takes_is_refused(name: str, dimensions: int) -> None:
    with pytest.raises(EmbedderError):
        CallableEmbedder(name, dimensions, lambda texts: [[0.0]])
