"""What v2 asks of the lexical index: counts, the leg itself, and the texts of nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, LiteralString

import numpy as np
from psycopg import sql

from planner.errors import RequestError
from planner.lexical.packing import unpack
from planner.lexical.terms import ANALYSIS
from planner.recall.expansion import Provenance, provenance
from planner.recall.frame import Frame
from planner.recall.semantic import restriction
from planner.recall.v2.bm25 import Corpus, Ints, idf
from planner.recall.v2.names import Holding, Pair
from planner.recall.v2.texts import Place, Text
from planner.store.arrays import Bigints
from planner.store.connect import Connection, run
from planner.store.queries import compose

Voice = tuple[str, str]
"""A source, and somebody who speaks in it."""

SMALL = 2_000
"""In a scope of fewer texts every term finds."""

COMMON = 8
"""In a larger one a term finds that is in at most this part of the texts, or is the rarest of all asked."""


def edges_at(name: LiteralString, node: LiteralString) -> sql.Composed:
    """Return the edges `incoming` to a node or `outgoing` from it, an expression of the statement."""
    return compose(name, node=sql.SQL(node))


@dataclass
class Index:
    """The lexical index of a scope as of one plan; what it has said of terms it keeps."""

    conn: Connection
    frame: Frame
    corpus: Corpus
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, conn: Connection, frame: Frame) -> Index:
        """Read what the scope says of its index. Raises RequestError where it is not built."""
        name = "lexical_corpus" if frame.state.newest else "lexical_corpus_then"
        row = run(conn, name, frame.params).fetchone()
        if row is None or row[0] != ANALYSIS:
            scope = frame.request.scope
            raise RequestError(
                f"score_model v2 needs the lexical index of scope {scope!r}, which is not built; "
                f"`planner scope index {scope} --lexical` builds it",
                field="scope",
            )
        return cls(conn, frame, Corpus(row[1], row[2]))

    def count(self, terms: Iterable[int]) -> None:
        """Have the counts of these terms: in how many nodes each is."""
        unknown = sorted(set(terms) - self.counts.keys())
        if not unknown:
            return
        name = "term_counts" if self.frame.state.newest else "term_counts_then"
        found = run(self.conn, name, {**self.frame.params, "terms": Bigints(np.array(unknown, np.int64))})
        self.counts |= {**dict.fromkeys(unknown, 0), **dict(found.fetchall())}

    def idf(self, term: int) -> int:
        """Return the IDF of a counted term, in 1/256."""
        return idf(self.counts[term], self.corpus.nodes)

    def nearest(self, terms: Ints, weights: Ints, k: int, part: int = COMMON) -> dict[str, int]:
        """Return the k best by the terms that find: scores by node, by (score desc, node_id)."""
        if not len(terms):
            return {}
        counts = np.array([self.counts[term] for term in terms.tolist()])
        limit = self.corpus.nodes if self.corpus.nodes < SMALL else self.corpus.nodes // part
        finds = counts <= max(limit, int(counts.min()))
        params = {
            **self.frame.params,
            "terms": Bigints(terms[finds]),
            "weights": Bigints(weights[finds]),
            "nodes": self.corpus.nodes,
            "length": self.corpus.length,
            "k": k,
        }
        statement = compose("lexical_leg", restriction=restriction(self.frame))
        rows = run(self.conn, statement, params).fetchall()
        return dict(sorted(rows, key=lambda row: (-row[1], row[0]))[:k])

    def holding(self, pairs: Sequence[Pair]) -> list[Holding]:
        """Return the nodes that hold both terms of a pair, anywhere in the scope."""
        if not pairs:
            return []
        ranked = np.array([sorted(pair, key=self.counts.__getitem__) for pair in pairs], dtype=np.int64)
        words = {"rare": Bigints(ranked[:, 0]), "other": Bigints(ranked[:, 1])}
        rows = run(self.conn, "holding_both", {**self.frame.params, **words}).fetchall()
        return [Holding(pairs[place], node_id, unpack(terms)) for place, node_id, terms in rows]

    def texts(self, nodes: Iterable[str]) -> dict[str, Text]:
        """Return the texts of those of these nodes that have one and are inside the restriction."""
        rows = self._of_nodes("texts", nodes, restriction=restriction(self.frame))
        return {node_id: Text(length, terms, context) for node_id, length, terms, context in rows}

    def voices(self, nodes: Iterable[str]) -> dict[str, Voice]:
        """Return in which source these nodes stand, and who speaks; of those alone that somebody says."""
        return {node_id: (source, speaker) for node_id, source, speaker in self._of_nodes("voices", nodes)}

    def beside(self, roots: Iterable[str], steps: int) -> set[str]:
        """Return the nodes up to so many steps before and after the roots, inside the restriction."""
        rows = self._of_nodes(
            "walk",
            roots,
            {"steps": steps},
            restriction=self.frame.restriction,
            incoming=edges_at("incoming", "w.node_id"),
            outgoing=edges_at("outgoing", "w.node_id"),
        )
        return {node_id for (node_id,) in rows}

    def standing(self, nodes: Iterable[str]) -> tuple[dict[str, Place], list[Provenance]]:
        """Return where nodes stand, of those inside the restriction alone; and the provenance of all."""
        rows = self._of_nodes(
            "standing",
            nodes,
            restriction=self.frame.restriction,
            incoming=edges_at("incoming", "n.node_id"),
            outgoing=edges_at("outgoing", "n.node_id"),
            provenance=provenance(),
        )
        places: dict[str, Place] = {}
        for node_id, is_inside, before, after, title, speaker, source_id, *_ in rows:
            if is_inside:
                places.setdefault(node_id, Place(source_id, title, speaker, before, after))
        return places, [Provenance(row[0], *row[6:]) for row in rows if row[6] is not None]

    def _of_nodes(
        self,
        name: LiteralString,
        nodes: Iterable[str],
        more: Mapping[str, object] = MappingProxyType({}),
        **fragments: sql.Composable,
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a statement about nodes; none where there are no nodes."""
        asked = list(nodes)
        if not asked:
            return []
        statement = compose(name, **fragments)
        return run(self.conn, statement, {**self.frame.params, **more, "asked": asked}).fetchall()
