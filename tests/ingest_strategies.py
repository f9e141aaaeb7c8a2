"""Hypothesis strategies for what authors write: scripts, newlines, Markdown, conversations."""

from __future__ import annotations

import codecs

from hypothesis import settings
from hypothesis import strategies as st

unhurried = settings(deadline=None)
"""Properties state no time: the machine may be busy."""

ALPHABET = "ab Z.!?0,;'\")(-|`*_#>[]\\\t" + "\n" * 4 + "漢字。！？」é\u0301\u200d👩🇯🇵ก็\u3000\ufe0f؟"
"""What cutting and parsing decide on: sentence ends, marks, joiners, flags, Markdown's own signs."""

texts = st.text(st.sampled_from(ALPHABET) | st.characters(exclude_categories=["Cc", "Cs"]), max_size=400)
written = texts.filter(lambda text: bool(text.strip()))

newlines = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def raw_files(draw: st.DrawFn, content: st.SearchStrategy[str]) -> bytes:
    """Return a file as editors save it: any newlines, mixed too, with or without a byte order mark."""
    text = "".join(draw(newlines) if char == "\n" else char for char in draw(content))
    match draw(st.sampled_from(["plain", "bom", "utf-16"])):
        case "plain":
            return text.encode()
        case "bom":
            return codecs.BOM_UTF8 + text.encode()
        case _:
            return codecs.BOM_UTF16_LE + text.encode("utf-16-le")


words = st.text(st.sampled_from("abc 漢字é。."), min_size=1, max_size=40).map(str.strip).filter(bool)
headings = st.builds(lambda level, text: "#" * level + " " + text, st.integers(1, 6), words)
lists = st.lists(words, min_size=1, max_size=4).map(lambda items: "\n".join(f"- {item}" for item in items))
quotes = st.lists(words, min_size=1, max_size=3).map(lambda items: "\n".join(f"> {item}" for item in items))
fences = st.text(st.sampled_from("xy =\n漢"), min_size=1, max_size=60).map(lambda code: f"```py\n{code}\n```")
nested = st.builds(lambda depth, text: "> - " * depth + text, st.integers(1, 60), words)


@st.composite
def tables(draw: st.DrawFn) -> str:
    """Return a table of one to four columns, some cells empty or with an escaped bar."""
    columns = draw(st.integers(1, 4))
    cell = words | st.just("") | st.just("a \\| b")
    rows = draw(st.lists(st.lists(cell, min_size=columns, max_size=columns), min_size=1, max_size=4))
    lines = [rows[0], ["---"] * columns, *rows[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


blocks = headings | lists | quotes | fences | nested | tables() | words | texts
markdown = st.lists(blocks, min_size=1, max_size=12).map("\n\n".join).filter(lambda text: bool(text.strip()))

times = st.sampled_from([None, "2024-05-01T09:30:00", "2024-05-01T09:30:00+09:00", 1_714_555_800, 1.5])
messages = st.fixed_dictionaries(
    {"content": texts},
    optional={
        "speaker": words,
        "role": st.sampled_from(["user", "assistant"]),
        "id": words | st.integers(0, 9),
        "time": times,
    },
)
conversations = st.lists(messages, min_size=1, max_size=8).filter(
    lambda entries: any(entry["content"].strip() for entry in entries)
)
