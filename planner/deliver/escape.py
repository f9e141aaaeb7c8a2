"""Why nothing that is delivered can look like a delimiter: reversible escaping of bodies and labels.

A delimiter begins with `<` and at least eight hex digits. Whatever looks like that gets a backslash behind
the bracket; ordinary text, code and markup have nothing that does, and stay as they are.
"""

from __future__ import annotations

import re
from functools import cache
from html.entities import html5
from typing import Final

import regex

BRACKETS: Final = frozenset(
    "<\uff1c\ufe64\u2039\u02c2\u1438\u16b2\u3111\U0001d236\u276c\u276e\u2770\u2329\u3008\u27e8\u27ea\u300a"
    "\u00ab\u226a\u22d8\u22d6\u227a\u2989\u2991\u29fc\u2aa1\u2af7"
)
"""The less-than sign, its wide and small forms, and what is drawn like it."""

_ANY: Final = "".join(sorted(BRACKETS))

_NAMES: Final = "|".join(sorted((name for name, text in html5.items() if text in BRACKETS), reverse=True))

_CODES: Final = "|".join(f"{ord(bracket)}" for bracket in _ANY)
_HEX_CODES: Final = "|".join(f"{ord(bracket):x}" for bracket in _ANY)

_OPENER: Final = (
    rf"(?:[{_ANY}]"
    rf"|&(?:amp;|\#0*+38;|\#x0*+26;)*+(?i:{_NAMES}|\#0*+(?:{_CODES});?+|\#x0*+(?:{_HEX_CODES});?+)"
    r"|(?i:%(?:25)*+3c|\\x3c|\\u003c))"
)
"""A bracket, also as a character reference, perhaps encoded more than once, or as URLs and JSON write it."""

_LOOKALIKES: Final = (
    "\\uFF21-\\uFF26\\uFF41-\\uFF46"  # full-width
    "\\u249C-\\u24A1\\u24B6-\\u24BB\\u24D0-\\u24D5\\U0001F110-\\U0001F115\\U0001F130-\\U0001F135"  # enclosed
    "\\U0001D400-\\U0001D6A3"  # mathematical
    "ℂℬℰℱℯⅅⅆⅇⅭⅮⅽⅾ"
    "ᴀʙᴄᴅᴇꜰᴬᴮᴰᴱᵃᵇᶜᵈᵉᶠₐₑ"
    "АВСЕавсеԁьЬΑΒΕαβς"  # Cyrillic and Greek
)

_DIGIT: Final = rf"(?:[0-9A-Fa-f\p{{N}}{_LOOKALIKES}]|(?!{_OPENER})&(?:\#x?0*+)?\w{{1,32}}+;?+)"
"""A hex digit, or what is drawn like one; any character reference counts as one."""

_INVISIBLE: Final = r"\p{C}\p{M}\p{Default_Ignorable_Code_Point}"
_BETWEEN: Final = rf"[{_INVISIBLE}\p{{Z}}\u2800/\\]*+"
"""What may stand between bracket and tag unseen, or nearly so; a backslash, so that escaping nests."""

_NUMBER: Final = r"[ \t]*+[0-9]++(?:\Z|[\n;,:.)\]}]|[ \t]++[^\s\P{ASCII}<>&%\\])"
"""What is compared in code, and no tag: nothing closes a bracket behind it."""

_TAG: Final = rf"(?!{_NUMBER})(?={_BETWEEN}{_DIGIT}(?:[{_INVISIBLE}]*+{_DIGIT}){{7}})"

_MAY_OPEN: Final = re.compile(rf"[{_ANY}&%\\]")

_UNFIT: Final = regex.compile(r'["\\]|[[\p{C}\p{Zl}\p{Zp}]--[\u200C\u200D]]', regex.V1)
"""What a quoted label may not hold as it is; joiners, which spelling needs, stay."""


def escape(text: str) -> str:
    """Return `text` so that nothing in it looks like a delimiter of any tag; time is linear."""
    return text if _MAY_OPEN.search(text) is None else _patterns()[0].sub(r"\1\\", text)


def unescape(text: str) -> str:
    """Return what was escaped."""
    return text if _MAY_OPEN.search(text) is None else _patterns()[1].sub(r"\1", text)


def quote(label: str) -> str:
    """Return a label in quotation marks, on one line, without control and bidirectional characters."""
    return escape(f'"{_UNFIT.sub(_as_code, label)}"')


def _as_code(match: regex.Match[str]) -> str:
    character = match[0]
    return "\\" + character if character in '"\\' else f"\\u{{{ord(character):x}}}"


@cache
def _patterns() -> tuple[regex.Pattern[str], regex.Pattern[str]]:
    """Return what finds the openers of delimiters, and the escaped ones; made when first needed."""
    return regex.compile(f"({_OPENER}){_TAG}"), regex.compile(rf"({_OPENER})\\{_TAG}")
