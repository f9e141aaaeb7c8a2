"""Canonical text: UTF-8 without a BOM, `\\n` newlines, otherwise the author's bytes (store.md)."""

from __future__ import annotations

import codecs

from planner.errors import BinaryInput, EmptyInput, NulInput, UndecodableInput

MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"%PDF-", "PDF"),
    (b"PK\x03\x04", "ZIP (or an office document)"),
    (b"\x89PNG\r\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x1f\x8b", "gzip"),
    (b"\x7fELF", "ELF"),
    (b"\xd0\xcf\x11\xe0", "OLE (an old office document)"),
    (b"\xfd7zXZ", "xz"),
    (b"7z\xbc\xaf", "7z"),
    (b"SQLite format 3\0", "SQLite"),
)
MAX_CONTROL_SHARE = 0.01
"""More control characters than this is no text; a stray one in a scraped page is."""

_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
_ASCII = bytes(range(0x80))
_CONTINUATION = bytes(range(0x80, 0xC0))


def canonical_text(raw: bytes) -> bytes:
    """Return the canonical text of an input.

    UTF-16 is accepted with its byte order mark. Raises BinaryInput, NulInput, UndecodableInput (naming the
    byte offset in `raw`) and EmptyInput (nothing but white space).
    """
    for magic, name in MAGIC:
        if raw.startswith(magic):
            raise BinaryInput(f"the input is {name}, not text; convert it to Markdown or plain text")
    text = _decoded(raw)
    if not text.strip():
        raise EmptyInput("the input holds nothing but white space" if raw else "the input is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n").encode()


def counts(text: bytes) -> tuple[int, int]:
    """Return `(ascii_bytes, non_ascii_chars)` of UTF-8: bytes below 0x80, code points from U+0080."""
    high = text.translate(None, _ASCII)
    return len(text) - len(high), len(high.translate(None, _CONTINUATION))


def _decoded(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = _strictly(raw, "utf-16")
        if (at := text.find("\0")) >= 0:
            raise NulInput(f"a NUL at character {at}; remove it", offset=2 + 2 * at)
        return text
    if (at := raw.find(b"\0")) >= 0:
        raise NulInput(f"a NUL byte at offset {at}; remove it, or convert the input to UTF-8", offset=at)
    clean = len(raw.translate(None, _CONTROLS))
    if len(raw) - clean > MAX_CONTROL_SHARE * len(raw):
        at = next(i for i, byte in enumerate(raw) if byte in _CONTROLS)
        raise BinaryInput(
            f"the input is binary: {len(raw) - clean} of {len(raw)} bytes are control characters, the first "
            f"0x{raw[at]:02x} at offset {at}",
            offset=at,
        )
    return _strictly(raw, "utf-8").removeprefix("\ufeff")


def _strictly(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        # The UTF-16 codec counts from the byte order mark's end.
        at = error.start
        raise UndecodableInput(
            f"not valid {encoding.upper()} at byte offset {at} (0x{raw[at]:02x}: {error.reason}); "
            "save the input as UTF-8",
            offset=at,
        ) from None
