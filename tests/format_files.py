"""The same texts as a file of every format, as programs write them."""

from __future__ import annotations

import base64
import codecs
import csv
import io
import json
from collections.abc import Callable, Sequence
from html import escape

from tests.pdf_files import pdf

Build = Callable[[Sequence[str]], str]


def python_file(texts: Sequence[str]) -> str:
    functions = (f"def f{n}(x):\n    # {text}\n\n    return x" for n, text in enumerate(texts))
    return "import re\n\n" + "\n\n\n".join(functions) + "\n"


def java_file(texts: Sequence[str]) -> str:
    methods = (f"    int f{n}() {{\n        return 1; // {text}\n    }}" for n, text in enumerate(texts))
    return "public class A {\n" + "\n\n".join(methods) + "\n}\n"


def csv_file(texts: Sequence[str]) -> str:
    out = io.StringIO()
    rows = [["name", "text"], *([f"row {n}", text] for n, text in enumerate(texts))]
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()


def tsv_file(texts: Sequence[str]) -> str:
    return "name\ttext\n" + "".join(f"row {n}\t{text}\n" for n, text in enumerate(texts))


def html_file(texts: Sequence[str]) -> str:
    paragraphs = "\n".join(f"<p>{escape(text)}</p>" for text in texts)
    return f"<!doctype html>\n<title>T</title>\n<body>\n<h1>Top</h1>\n{paragraphs}\n"


def chatgpt_file(texts: Sequence[str]) -> str:
    nodes = {
        f"n{n}": {
            "id": f"n{n}",
            "parent": f"n{n - 1}" if n else None,
            "message": {
                "id": f"m{n}",
                "author": {"role": "assistant" if n % 2 else "user"},
                "create_time": 1_714_555_800 + n,
                "content": {"content_type": "text", "parts": [text]},
            },
        }
        for n, text in enumerate(texts)
    }
    conversation = {"id": "c", "title": "T", "current_node": f"n{len(texts) - 1}", "mapping": nodes}
    return json.dumps([conversation], indent=1)


def claude_file(texts: Sequence[str]) -> str:
    messages = [
        {
            "uuid": f"m{n}",
            "sender": "assistant" if n % 2 else "human",
            "created_at": "2024-05-01T09:30:00Z",
            "text": text,
            "content": [{"type": "text", "text": text}],
        }
        for n, text in enumerate(texts)
    ]
    return json.dumps([{"uuid": "c", "name": "T", "chat_messages": messages}], indent=1)


def mail_file(texts: Sequence[str], subject: str = "Tide") -> str:
    body = base64.encodebytes("\n\n".join(texts).encode()).decode()
    return (
        f"From: Aki <aki@example.org>\nSubject: {subject}\nDate: Wed, 01 May 2024 09:30:00 +0900\n"
        "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n" + body
    )


def mbox_file(texts: Sequence[str]) -> str:
    return "\n".join(
        f"From aki@example.org Wed\n{mail_file([text], f'S{n}')}" for n, text in enumerate(texts)
    )


TEXT_FORMATS: dict[str, Build] = {
    "a.py": python_file,
    "A.java": java_file,
    "a.csv": csv_file,
    "a.tsv": tsv_file,
    "a.html": html_file,
    "conversations.json": chatgpt_file,
    "claude.json": claude_file,
    "a.eml": mail_file,
    "a.mbox": mbox_file,
}
OWN_BYTES = ("a.py", "A.java", "a.csv", "a.tsv")
"""The formats whose canonical text is the file's own."""

FORMATS = (*TEXT_FORMATS, "a.pdf")


def file_of(name: str, texts: Sequence[str], newline: str = "\n", *, bom: bool = False) -> bytes:
    """Return a file of the format that its name tells; a PDF has one page for each text, and no newlines."""
    if name == "a.pdf":
        # PDFium passes over a line that is nothing but a full stop.
        return pdf([[f"p {text}" if text else ""] for text in texts])
    raw = TEXT_FORMATS[name](texts).replace("\n", newline).encode()
    return codecs.BOM_UTF8 + raw if bom else raw
