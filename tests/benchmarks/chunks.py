"""What every contender of `bench_peers` gets: the planner's own spans as chunks, and one vector a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from planner import Planner
from planner.embedders import CallableEmbedder
from planner.evaluation.corpora import Corpus
from planner.ports import Embedder
from planner.tokens import ScriptCounter
from planner.types import SpanRef

Hit = tuple[SpanRef, str]
"""A chunk that was found, and the text that came back with it."""


class Chunk(NamedTuple):
    """A span of the planner's, and what stands for it in another store."""

    ref: SpanRef
    text: str
    vector: list[float]


def remembered(embedder: Embedder) -> Embedder:
    """Return an embedder of the same name that embeds a text once; whoever asks again looks it up."""
    known: dict[str, npt.NDArray[np.float32]] = {}

    def look_up(texts: list[str]) -> npt.NDArray[np.float32]:
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, embedder.embed(missing), strict=True))
        return np.stack([known[text] for text in texts])

    return CallableEmbedder(embedder.name, embedder.dimensions, look_up, embedder.revision)


def chunks_of(
    planner: Planner, corpus: Corpus, embedder: Embedder, *, titles: bool
) -> Mapping[str, Sequence[Chunk]]:
    """Return the chunks of each scope of an ingested corpus; one whose vector is zero is in nobody's store.

    With `titles` the title of its source stands above each text, and is embedded with it.
    """
    found: dict[str, list[Chunk]] = {}
    for source in corpus.sources:
        heading = f"{source.title}\n" if titles and source.title else ""
        refs = [held.ref for held in planner.source(source.scope, source.source_id).spans]
        texts = [heading + planner.slice_text(source.scope, ref) for ref in refs]
        vectors = embedder.embed(texts) if texts else ()
        found.setdefault(source.scope, []).extend(
            Chunk(ref, text, vector.tolist())
            for ref, text, vector in zip(refs, texts, vectors, strict=True)
            if vector.any()
        )
    return found


def packed(hits: Iterable[Hit], budget: int) -> list[SpanRef]:
    """Return what fits in rank order until the first text that does not, in tokens of `utf8-script-v1`."""
    counter, left, shown = ScriptCounter(), budget, []
    for ref, text in hits:
        left -= counter.count(text)
        if left < 0:
            break
        shown.append(ref)
    return shown
