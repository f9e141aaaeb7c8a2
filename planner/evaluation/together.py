"""Several corpora in one scope, so that each question has the sources of all of them to be lost among."""

from __future__ import annotations

from collections.abc import Sequence

from planner.errors import RequestError
from planner.evaluation.corpora import Corpus, Evidence, Question, Source

SCOPE = "together"


def together(corpora: Sequence[Corpus]) -> tuple[Corpus, ...]:
    """Return corpora whose sources and questions share a scope; questions keep their names, in order.

    A source's id becomes `corpus/scope/id`, so that none is in two. Raises RequestError for two of one name.
    """
    names = [corpus.name for corpus in corpora]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise RequestError(f"two corpora are named {twice!r}; corpora that are put together differ by name")
    return tuple(map(_moved, corpora))


def _moved(corpus: Corpus) -> Corpus:
    def source(one: Source) -> Source:
        return one.model_copy(update={"scope": SCOPE, "source_id": _id(one.scope, one.source_id)})

    def question(one: Question) -> Question:
        return one.model_copy(
            update={"scope": SCOPE, "evidence": tuple(evidence(one.scope, item) for item in one.evidence)}
        )

    def evidence(scope: str, one: Evidence) -> Evidence:
        return one.model_copy(update={"source_id": _id(scope, one.source_id)})

    # A scope holds no slash; a name may, and ends at the first.
    name = corpus.name.replace("%", "%25").replace("/", "%2F")

    def _id(scope: str, source_id: str) -> str:
        return f"{name}/{scope}/{source_id}"

    return Corpus(corpus.name, tuple(map(source, corpus.sources)), tuple(map(question, corpus.questions)))
