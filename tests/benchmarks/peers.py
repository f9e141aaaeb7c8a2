"""LlamaIndex and LangChain over PostgreSQL, set up as their own documentation does; needs the extra `peers`.

Each scope has a table of its own, so that no filter costs them anything. Both compare all vectors, which is
their default; an index of vectors returns no more than it looks at (`hnsw.ef_search`, 40). Texts are indexed
(GIN) under `english`, the default of both, and all `k` of either leg are fused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any
from uuid import UUID

from langchain_core.embeddings import Embeddings
from langchain_postgres import PGEngine
from langchain_postgres import PGVectorStore as LangChainStore
from langchain_postgres.v2.hybrid_search_config import HybridSearchConfig, reciprocal_rank_fusion
from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.retrievers.fusion_retriever import FUSION_MODES
from llama_index.core.schema import BaseNode, TextNode
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.vector_stores.postgres import PGVectorStore as LlamaIndexStore
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

from planner.ports import Embedder
from tests.benchmarks.chunks import Chunk, Hit

Scopes = Mapping[str, Sequence[Chunk]]
Searches = Mapping[str, Callable[[str, str], Iterator[Hit]]]
"""By name, from a scope and a question to what is found, best first."""


class LlamaIndexVectors(BaseEmbedding):
    """LlamaIndex's view of an embedder."""

    _embedder: Embedder = PrivateAttr()

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(model_name=embedder.name)
        self._embedder = embedder

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(self._embedder, text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(self._embedder, query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(self._embedder, query)


class LangChainVectors(Embeddings):
    """LangChain's view of an embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [vector(self._embedder, text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return vector(self._embedder, text)

    async def aembed_query(self, text: str) -> list[float]:
        return vector(self._embedder, text)


class LlamaIndex:
    """A PGVectorStore a scope, and three ways of its documentation to ask it."""

    def __init__(self, conninfo: str, scopes: Scopes, embedder: Embedder, k: int) -> None:
        self._scopes, self._k = scopes, k
        self._stores = {
            scope: LlamaIndexStore.from_params(
                connection_string=url(conninfo, "psycopg2"),
                async_connection_string=url(conninfo, "asyncpg"),
                table_name=f"scope_{number}",
                embed_dim=embedder.dimensions,
                hybrid_search=True,
                text_search_config="english",
            )
            for number, scope in enumerate(scopes)
        }
        for scope, chunks in scopes.items():
            nodes = (TextNode(id_=str(i), text=c.text, embedding=c.vector) for i, c in enumerate(chunks))
            self._stores[scope].add(list[BaseNode](nodes))
        vectors = LlamaIndexVectors(embedder)
        self._indexes = {
            scope: VectorStoreIndex.from_vector_store(store, embed_model=vectors)
            for scope, store in self._stores.items()
        }
        self._default = self._retrievers(VectorStoreQueryMode.DEFAULT)
        self._hybrid = self._retrievers(VectorStoreQueryMode.HYBRID)
        self._fused = self._fusions()

    def vectors(self, scope: str, question: str) -> Iterator[Hit]:
        """By cosine distance alone."""
        return self._hits(scope, self._default[scope], question)

    def hybrid(self, scope: str, question: str) -> Iterator[Hit]:
        """In its mode `hybrid`: what the vectors found, then what the texts found beside."""
        return self._hits(scope, self._hybrid[scope], question)

    def fused(self, scope: str, question: str) -> Iterator[Hit]:
        """By its QueryFusionRetriever: relative scores of vectors and texts, added."""
        return self._hits(scope, self._fused[scope], question)

    def close(self) -> None:
        """Close the connections."""
        for store in self._stores.values():
            asyncio.run(store.close())

    def _retrievers(self, mode: VectorStoreQueryMode) -> dict[str, BaseRetriever]:
        return {
            scope: index.as_retriever(
                vector_store_query_mode=mode, similarity_top_k=self._k, sparse_top_k=self._k
            )
            for scope, index in self._indexes.items()
        }

    def _fusions(self) -> dict[str, BaseRetriever]:
        texts = self._retrievers(VectorStoreQueryMode.SPARSE)
        return {
            scope: QueryFusionRetriever(
                [vectors, texts[scope]],
                llm=MockLLM(),
                similarity_top_k=self._k,
                num_queries=1,
                mode=FUSION_MODES.RELATIVE_SCORE,
                use_async=False,
            )
            for scope, vectors in self._default.items()
        }

    def _hits(self, scope: str, retriever: BaseRetriever, question: str) -> Iterator[Hit]:
        for found in retriever.retrieve(question):
            yield self._scopes[scope][int(found.node.node_id)].ref, found.node.get_content()


class LangChain:
    """A PGVectorStore a scope, asked by vectors alone, and with its hybrid search beside."""

    def __init__(self, conninfo: str, scopes: Scopes, embedder: Embedder, k: int) -> None:
        self._scopes, self._k = scopes, k
        self._engine = PGEngine.from_connection_string(url(conninfo, "asyncpg"))
        self._stores = {
            scope: self._loaded(f"scope_{number}", chunks, embedder)
            for number, (scope, chunks) in enumerate(scopes.items())
        }

    def vectors(self, scope: str, question: str) -> Iterator[Hit]:
        """By cosine distance alone."""
        return self._hits(scope, question)

    def hybrid(self, scope: str, question: str) -> Iterator[Hit]:
        """By reciprocal rank fusion of vectors and texts.

        The configuration is made anew: a store keeps the first question that it was asked in its own, and
        would look for that text for ever (langchain-ai/langchain-postgres#337).
        """
        config = HybridSearchConfig(
            tsv_column="content_tsv",
            fts_query=question,
            fusion_function=reciprocal_rank_fusion,
            primary_top_k=self._k,
            secondary_top_k=self._k,
        )
        return self._hits(scope, question, hybrid_search_config=config)

    def close(self) -> None:
        """Close the connections."""
        asyncio.run(self._engine.close())

    def _loaded(self, table: str, chunks: Sequence[Chunk], embedder: Embedder) -> LangChainStore:
        config = HybridSearchConfig(tsv_column="content_tsv", index_name=f"{table}_tsv")
        self._engine.init_vectorstore_table(table, embedder.dimensions, hybrid_search_config=config)
        vectors = LangChainVectors(embedder)
        loading = LangChainStore.create_sync(self._engine, vectors, table, hybrid_search_config=config)
        loading.add_embeddings(
            [chunk.text for chunk in chunks],
            [chunk.vector for chunk in chunks],
            ids=[str(UUID(int=i)) for i in range(len(chunks))],
        )
        loading.apply_hybrid_search_index()
        return LangChainStore.create_sync(self._engine, vectors, table)

    def _hits(self, scope: str, question: str, **how: Any) -> Iterator[Hit]:
        for found in self._stores[scope].similarity_search(question, k=self._k, **how):
            yield self._scopes[scope][UUID(found.id).int].ref, found.page_content


@contextmanager
def searches(
    conninfo: Callable[[str], str], scopes: Scopes, embedder: Embedder, k: int
) -> Iterator[Searches]:
    """Load both, each into the empty database that `conninfo` makes for a name, and give how to ask them."""
    with (
        closing(LlamaIndex(conninfo("llamaindex"), scopes, embedder, k)) as llama_index,
        closing(LangChain(conninfo("langchain"), scopes, embedder, k)) as langchain,
    ):
        yield {
            "LlamaIndex": llama_index.vectors,
            "LlamaIndex, hybrid": llama_index.hybrid,
            "LlamaIndex, fusion": llama_index.fused,
            "LangChain": langchain.vectors,
            "LangChain, hybrid": langchain.hybrid,
        }


def vector(embedder: Embedder, text: str) -> list[float]:
    """Return a text's vector as a list."""
    row: list[float] = embedder.embed([text])[0].tolist()
    return row


def url(conninfo: str, driver: str) -> str:
    """Return the URL of a server behind a socket as SQLAlchemy has it."""
    given = conninfo_to_dict(conninfo)
    query = {"host": str(given["host"]), "port": str(given["port"])}
    made = URL.create(
        f"postgresql+{driver}", username=str(given["user"]), database=str(given["dbname"]), query=query
    )
    return str(made)
