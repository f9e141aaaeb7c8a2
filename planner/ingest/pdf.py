"""PDF: the text of each page; its number is an attribute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

import regex

from planner.errors import EmptyInput, MalformedInput, UnsupportedInput
from planner.ingest.extracted import Extract, short
from planner.ingest.ids import stem
from planner.types import Batch, SourceDraft

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

PARSER_VERSION = "pdf/1"

_ONE_AT_A_TIME = Lock()
"""PDFium keeps state of its own: two threads may not be inside it."""

_HYPHENATED = regex.compile(r"(?:\ufffe|\x02|\xad)\r?\n?")
_NO_TEXT = regex.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_BLANK_LINES = regex.compile(r"\n(?:[^\S\n]*+\n)++")


def parse_pdf(draft: SourceDraft, max_span_chars: int) -> Batch:
    """Return the batch of a PDF; its canonical text is the text of its pages, as PDFium extracts it.

    A page is a paragraph (or several, where it has blank lines), cut like long prose; words that a line end
    hyphenates are joined. Raises UnsupportedInput without the extra `pdf` or for a file that asks for a
    password, MalformedInput for what is no PDF, and EmptyInput where no page holds text, as scans do.
    """
    title, pages = _read(draft.text)
    extract = Extract()
    for number, page in enumerate(pages, 1):
        for paragraph in _BLANK_LINES.split(page):
            if paragraph.strip():
                extract.add(paragraph.strip(), "paragraph", attributes={"page": number})
    if not extract.text:
        raise EmptyInput("the PDF holds no text; if its pages are scans, recognise them first (OCR)")
    draft = replace(draft, title=draft.title or short(title) or stem(draft.source_id))
    return extract.batch(draft, max_span_chars)


def _read(raw: bytes) -> tuple[str, list[str]]:
    """Return the title and the text of every page."""
    try:
        import pypdfium2  # noqa: PLC0415  # an extra
        from pypdfium2 import raw as pdfium  # noqa: PLC0415
    except ImportError:
        raise UnsupportedInput(
            "reading PDF needs the extra `pdf`: pip install 'evidence-planner[pdf]'", extra="pdf"
        ) from None
    with _ONE_AT_A_TIME:
        try:
            document = pypdfium2.PdfDocument(raw)
        except pypdfium2.PdfiumError as error:
            if error.err_code == pdfium.FPDF_ERR_PASSWORD:
                raise UnsupportedInput("the PDF asks for a password; ingest an unlocked copy") from None
            raise MalformedInput(f"not a readable PDF: {error}") from None
        try:
            title = document.get_metadata_value("Title")
            return _clean(title), [_clean(text) for text in _texts(document)]
        except pypdfium2.PdfiumError as error:
            raise MalformedInput(f"not a readable PDF: {error}") from None
        finally:
            document.close()


def _texts(document: PdfDocument) -> Iterator[str]:
    for number in range(len(document)):
        page = document[number]
        try:
            yield page.get_textpage().get_text_bounded()
        finally:
            page.close()


def _clean(text: str) -> str:
    """Return extracted text without the marks of hyphenation and what is no character."""
    joined = _HYPHENATED.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _NO_TEXT.sub("", joined)
