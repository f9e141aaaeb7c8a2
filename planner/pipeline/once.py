"""A write that is to happen once: the ledger keeps the caller's key with the version that was written for it.

Ingest compares with what is current, so that a repeat writes nothing, until somebody else has written in
between: then it would bring the old text back. A message without an id would be appended again. With a key
the repeat is known by the ledger's entry, in the same transaction as what it stands for, for as long as the
version is kept; no table has to be pruned. What changed nothing has left no entry, and has no key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from planner.errors import ConflictingInput, RequestError
from planner.hashing import text_hash
from planner.store.connect import Connection, run

KEY = re.compile(r"[\x21-\x7e]{1,255}")

LOOKED_AT = 256
"""The newest versions of a source whose keys are remembered."""


@dataclass(frozen=True, slots=True)
class Once:
    """A caller's key and what was sent with it, both as hashes: neither is to be read in the ledger."""

    key: str
    body: str

    @classmethod
    def of(cls, key: str | None, raw: bytes, said: Sequence[Any] | Mapping[str, Any]) -> Once | None:
        """Return the write of a key, None without one. Raises RequestError for what is no key."""
        if key is None:
            return None
        if KEY.fullmatch(key) is None:
            raise RequestError(
                "idempotency_key: 1 to 255 visible ASCII characters, without spaces", field="idempotency_key"
            )
        beside = json.dumps(said, sort_keys=True, default=str).encode()
        return cls(text_hash(key.encode()).hex(), text_hash(beside + b"\0" + raw).hex())

    def to_detail(self) -> dict[str, str]:
        """Return what the ledger says of it."""
        return {"once_key": self.key, "once_body": self.body}


def written_before(
    conn: Connection, scope_id: UUID, once: Once | None, sources: Sequence[str]
) -> dict[str, int] | None:
    """Return the versions of these sources that were written for the key, None where none was.

    Raises ConflictingInput where the key came with something else.
    """
    if once is None:
        return None
    params = {"scope_id": scope_id, "sources": list(sources), "key": once.key, "limit": LOOKED_AT}
    rows = run(conn, "versions_of_key", params).fetchall()
    if any(body != once.body for _, _, body in rows):
        raise ConflictingInput(
            "this idempotency key was used with another body; a key stands for one write",
            field="idempotency_key",
        )
    return {source_id: version_tx for source_id, version_tx, _ in rows} or None
