"""The ledger's chain of hashes: pure, so that a verifier computes it from the rows alone."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from uuid import UUID

from blake3 import blake3

GENESIS = bytes(32)
"""What the first entry of a scope is chained to."""

_TAG = b"planner-ledger\x00v1\x00"


def entry_hash(
    previous: bytes, *, scope_id: UUID, tx: int, recorded_at: datetime, actor: str, action: str, detail: str
) -> bytes:
    """Return the BLAKE3-256 of an entry chained to the one before.

    `detail` is canonical JSON (sorted keys, no spaces). Strings are length-prefixed (u32, little-endian),
    `recorded_at` is microseconds since 1970 in UTC as i64.
    """
    since_epoch = recorded_at - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since_epoch.days * 86_400 + since_epoch.seconds) * 1_000_000 + since_epoch.microseconds
    parts = [_TAG, previous, scope_id.bytes, struct.pack("<qq", tx, micros)]
    for text in (actor, action, detail):
        encoded = text.encode()
        parts += [struct.pack("<I", len(encoded)), encoded]
    return blake3(b"".join(parts)).digest()
