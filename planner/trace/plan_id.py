"""Plan ids: UUIDs of version 7, ordered by time (RFC 9562; the standard library has them from 3.14)."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID


def plan_id(made_at: datetime, random: bytes) -> UUID:
    """Return the UUIDv7 of a time and ten random bytes: 48 bits of milliseconds, then the random ones."""
    milliseconds = int(made_at.timestamp() * 1_000)
    value = bytearray(milliseconds.to_bytes(6, "big") + random[:10])
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    return UUID(bytes=bytes(value))


def first_id(made_at: datetime) -> UUID:
    """Return the smallest id of a time: those made in an earlier millisecond are below it, no other is."""
    return plan_id(max(made_at, datetime(1970, 1, 1, tzinfo=UTC)), bytes(10))
