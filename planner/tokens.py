"""Token counters (selection.md, "Token counters"): offline, each with a name and a declared bound.

A tokenizer of Hugging Face's format is made from its file's bytes, so that nothing here reads a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Final, Protocol

from blake3 import blake3
from tokenizers import Tokenizer

from planner.errors import CounterError, PlannerError, RequestError, UnknownCounter
from planner.ports import Bound, TokenCounter

CALLER: Final = "caller"
"""The counter's name where candidates come with token counts of the caller's own."""

ENCODINGS: Final = ("openai:o200k_base", "openai:cl100k_base")

_ASCII = bytes(range(0x80))
_CONTINUATION = bytes(range(0x80, 0xC0))


def ledger_counts(text: bytes | str) -> tuple[int, int]:
    """Return `(ascii_bytes, non_ascii_chars)` of a text or its valid UTF-8, as the span ledger keeps them."""
    data = text.encode() if isinstance(text, str) else text
    non_ascii_bytes = data.translate(None, _ASCII)
    return len(data) - len(non_ascii_bytes), len(non_ascii_bytes.translate(None, _CONTINUATION))


@dataclass(frozen=True, slots=True)
class ScriptCounter:
    """`ceil(ascii_bytes / 3.6) + non_ascii_code_points`, in integers: the default, an estimate."""

    name: str = "utf8-script-v1"
    bound: Bound = "estimate"

    def count(self, text: str) -> int:
        """Return the estimate for `text`."""
        return self.count_ledger(*ledger_counts(text), 0)

    def count_ledger(self, ascii_bytes: int, non_ascii_chars: int, byte_length: int) -> int:
        """Return the estimate from the ledger's figures; the length is not needed."""
        return (5 * ascii_bytes + 17) // 18 + non_ascii_chars


@dataclass(frozen=True, slots=True)
class ByteCounter:
    """The number of UTF-8 bytes: byte-level BPE never makes more tokens than bytes."""

    name: str = "utf8-bytes-v1"
    bound: Bound = "upper_bound"

    def count(self, text: str) -> int:
        """Return the bytes of `text`."""
        return len(text.encode())

    def count_ledger(self, ascii_bytes: int, non_ascii_chars: int, byte_length: int) -> int:
        """Return the length, which the ledger knows."""
        return byte_length


class _Encoding(Protocol):
    def count(self, text: str) -> int: ...


@dataclass(frozen=True, slots=True)
class OpenAICounter:
    """One of OpenAI's encodings, special tokens as plain text; needs the extra `openai-tokens`."""

    name: str
    encoding: _Encoding
    bound: Bound = "exact"

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""
        return self.encoding.count(text)


@dataclass(frozen=True, slots=True)
class HuggingFaceCounter:
    """A local `tokenizer.json`, without the special tokens that its template adds; see `hf_counter`."""

    name: str
    tokenizer: Tokenizer
    bound: Bound = "exact"

    def count(self, text: str) -> int:
        """Return the number of tokens of `text`."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids)


@dataclass(frozen=True, slots=True)
class CallableCounter:
    """Any function that counts a text, under a name and with a bound that its owner declares."""

    name: str
    bound: Bound
    function: Callable[[str], int]

    def __post_init__(self) -> None:
        """Refuse a name that is empty or means another counter. Raises RequestError."""
        reserved = (CALLER, *_LEDGER_COUNTERS, *ENCODINGS)
        if not self.name or self.name in reserved or self.name.startswith("hf:"):
            raise RequestError(
                f"a counter cannot be called {self.name!r}; taken are {', '.join(reserved)} and hf:…"
            )

    def count(self, text: str) -> int:
        """Return the function's count."""
        return self.function(text)


_LEDGER_COUNTERS: Mapping[str, TokenCounter] = {c.name: c for c in (ScriptCounter(), ByteCounter())}


def count_text(counter: TokenCounter, text: str) -> int:
    """Return a counter's count of `text`.

    A counter may be anybody's code: whatever it raises, and whatever else it returns than an integer, 0 or
    more, is a CounterError.
    """
    try:
        tokens = counter.count(text)
    except PlannerError:
        raise
    except Exception as error:
        raise CounterError(f"counter {counter.name!r} failed: {type(error).__name__}: {error}") from error
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise CounterError(f"counter {counter.name!r} returned {tokens!r}; a count is an integer, 0 or more")
    return tokens


def hf_counter(tokenizer_json: bytes) -> HuggingFaceCounter:
    """Make a counter, named by the BLAKE3 of the bytes of a `tokenizer.json`. Raises RequestError."""
    try:
        tokenizer = Tokenizer.from_buffer(tokenizer_json)
    except Exception as error:  # the library raises bare Exception for whatever it cannot read
        raise RequestError(f"this is not a tokenizer.json: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return HuggingFaceCounter(f"hf:{blake3(tokenizer_json).hexdigest()[:16]}", tokenizer)


def counter(name: str, extra: Mapping[str, TokenCounter]) -> TokenCounter:
    """Return the counter of that name, built in or among `extra` (by name). Raises UnknownCounter."""
    if name in _LEDGER_COUNTERS:
        return _LEDGER_COUNTERS[name]
    if name in ENCODINGS:
        return _openai_counter(name)
    if name in extra:
        return extra[name]
    known = ", ".join((*_LEDGER_COUNTERS, *ENCODINGS, *sorted(extra)))
    hint = "; hf: counters are made from a local tokenizer.json" if name.startswith("hf:") else ""
    raise UnknownCounter(f"no token counter {name!r}; there are {known}{hint}", counter=name)


@cache
def _openai_counter(name: str) -> OpenAICounter:
    try:
        # The Rust core, not the package's wrapper, which refuses long texts and obeys variables of its own.
        bindings = import_module("bpe_openai._bindings")
    except ModuleNotFoundError:
        raise UnknownCounter(
            f"counter {name!r} needs the extra: pip install 'evidence-planner[openai-tokens]'", counter=name
        ) from None
    return OpenAICounter(name, bindings.tokenizer_for_encoding(name.removeprefix("openai:")))
