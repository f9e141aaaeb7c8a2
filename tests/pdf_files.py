"""A PDF as the tests write it: pages of lines in a font that only says which characters it shows."""

from __future__ import annotations

from collections.abc import Sequence


def pdf(pages: Sequence[Sequence[str]], title: str | None = None) -> bytes:
    """Return a PDF (ISO 32000-1) with one page for each sequence of lines, in any script of the BMP."""
    count = len(pages)
    first_page = 6
    kids = " ".join(f"{first_page + 2 * n} 0 R" for n in range(count))
    named = "" if title is None else f"/Title <feff{title.encode('utf-16-be').hex()}>"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>".encode(),
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /DescendantFonts "
        b"[<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) "
        b"/Ordering (Identity) /Supplement 0 >> /DW 1000 >>] /ToUnicode 4 0 R >>",
        _stream(_CMAP),
        f"<< {named} >>".encode(),
    ]
    for number, lines in enumerate(pages):
        width = 10 * max(map(len, lines)) + 50
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {width} {12 * len(lines) + 50}] /Resources "
            f"<< /Font << /F 3 0 R >> >> /Contents {first_page + 2 * number + 1} 0 R >>".encode(),
            _stream(_shown(lines)),
        ]
    return _file(objects)


_CMAP = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /All def /CMapType 2 def "
    b"1 begincodespacerange <0000> <FFFF> endcodespacerange 1 beginbfrange <0000> <FFFF> <0000> endbfrange "
    b"endcmap end end"
)


def _shown(lines: Sequence[str]) -> bytes:
    # A string of a PDF holds at most 32,767 bytes.
    parts = ([line[at : at + 4_000] for at in range(0, len(line), 4_000)] for line in lines)
    shown = "".join("".join(f"<{s.encode('utf-16-be').hex()}> Tj " for s in line) + "T* " for line in parts)
    return f"BT /F 10 Tf 12 TL 20 {12 * len(lines) + 20} Td {shown} ET".encode()


def _stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(data), data)


def _file(objects: Sequence[bytes]) -> bytes:
    out, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
    return out + b"trailer\n<< /Size %d /Root 1 0 R /Info 5 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        size,
        out.rindex(b"xref\n0 "),
    )
