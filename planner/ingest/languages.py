"""The programming languages that are told apart by a file's extension, and how they quote and comment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import regex

PREFIX = "text/x-"
"""The media type of source code is this and its language, as in `text/x-python`."""

_STRINGS = r"""|"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'"""
_SECTIONS = r"(?:public|private|protected|signals)\s*+:"


@dataclass(frozen=True, slots=True)
class Family:
    """Languages that comment alike.

    `tokens` finds what must not be read as code: openers of `closing`, which may run over lines, else
    comments and strings of one line. `aside` matches the lines whose indentation says nothing: comments,
    conditional compilation, the sections of a C++ class. `is_call_like` says that a definition may have no
    keyword, only a name before brackets.
    """

    tokens: regex.Pattern[str]
    closing: Mapping[str, str]
    aside: regex.Pattern[str]
    is_call_like: bool = False


def _family(line_comment: str, closing: Mapping[str, str], *, is_call_like: bool = False) -> Family:
    openers = "|".join(regex.escape(opener) for opener in closing)
    tokens = regex.compile(f"(?:{openers})|{line_comment}[^\\n]*+{_STRINGS}")
    aside = regex.compile(rf"\s*+(?:{line_comment}|#(?:if|ifdef|ifndef|else|elif|endif)\b|{_SECTIONS})")
    return Family(tokens, closing, aside, is_call_like)


_TRIPLE = {'"""': '"""', "'''": "'''"}
_HASH = _family("#", _TRIPLE)
_SHELL = _family("#", _TRIPLE, is_call_like=True)
_SLASH = _family("//", {"/*": "*/", '"""': '"""', "`": "`"}, is_call_like=True)
_DASH = _family(
    "--",
    {
        "/*": "*/",
        "$$": "$$",
        "$body$": "$body$",
        "$function$": "$function$",
        "--[[": "]]",
        "[[": "]]",
        "{-": "-}",
    },
)

_EXTENSIONS: tuple[tuple[Family, Mapping[str, str]], ...] = (
    (
        _HASH,
        {
            "python": "py pyi pyw",
            "ruby": "rb rake",
            "perl": "pl pm",
            "r": "r",
            "julia": "jl",
            "elixir": "ex exs",
            "terraform": "tf",
            "toml": "toml",
            "yaml": "yaml yml",
            "ini": "ini cfg",
        },
    ),
    (_SHELL, {"shell": "sh bash zsh"}),
    (
        _SLASH,
        {
            "javascript": "js mjs cjs jsx",
            "typescript": "ts mts cts tsx",
            "java": "java",
            "kotlin": "kt kts",
            "scala": "scala",
            "groovy": "groovy gradle",
            "c": "c h",
            "cpp": "cc cpp cxx hh hpp hxx",
            "csharp": "cs",
            "go": "go",
            "rust": "rs",
            "swift": "swift",
            "dart": "dart",
            "php": "php",
            "zig": "zig",
            "proto": "proto",
            "css": "css scss less",
        },
    ),
    (_DASH, {"sql": "sql", "lua": "lua", "haskell": "hs", "elm": "elm"}),
)

FAMILIES: Mapping[str, Family] = MappingProxyType(
    {PREFIX + language: family for family, languages in _EXTENSIONS for language in languages}
)
"""How each media type of source code comments."""

BY_EXTENSION: Mapping[str, str] = MappingProxyType(
    {
        extension: PREFIX + language
        for _, languages in _EXTENSIONS
        for language, extensions in languages.items()
        for extension in extensions.split()
    }
)
"""The media type of source code by the extension of its file."""


def quoted_lines(text: str, family: Family) -> Iterator[range]:
    """Yield the lines (from 0) that begin inside a string or comment, as ranges in order.

    What is opened and never closed quotes nothing, and nothing after it does: the reading was wrong.
    """
    position = line = counted = 0
    while match := family.tokens.search(text, position):
        position = match.end()
        closing = family.closing.get(match[0])
        if closing is None:
            continue
        end = text.find(closing, position)
        if end < 0:
            return
        position = end + len(closing)
        first = line + text.count("\n", counted, match.start())
        last = first + text.count("\n", match.start(), position)
        if last > first:
            yield range(first + 1, last + 1)
        line, counted = last, position
