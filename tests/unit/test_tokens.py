"""Token counters: known counts, names, bounds and refusals."""

from __future__ import annotations

import sys

import pytest
from blake3 import blake3
from tokenizers import Tokenizer, models, pre_tokenizers

from planner.errors import CounterError, RequestError, UnknownCounter
from planner.ports import Bound, LedgerCounter, TokenCounter
from planner.tokens import (
    ByteCounter,
    CallableCounter,
    OpenAICounter,
    ScriptCounter,
    _openai_counter,
    count_text,
    counter,
    hf_counter,
    ledger_counts,
)

FAMILY = "👩‍👩‍👧"


def word_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel({"harbour": 0, "dawn": 1, "?": 2}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@pytest.mark.parametrize(
    ("text", "ascii_bytes", "non_ascii"),
    [
        ("", 0, 0),
        ("abc\n", 4, 0),
        ("é", 0, 1),
        ("e\u0301", 1, 1),
        ("日本語", 0, 3),
        (FAMILY, 0, 5),
        ("a🇨🇭b", 2, 2),
    ],
)
def test_ledger_counts_are_ascii_bytes_and_other_code_points(
    text: str, ascii_bytes: int, non_ascii: int
) -> None:
    assert ledger_counts(text) == (ascii_bytes, non_ascii)
    assert ledger_counts(text.encode()) == (ascii_bytes, non_ascii)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abc", 1),
        ("abcd", 2),
        ("x" * 18, 5),
        ("x" * 19, 6),
        ("日本語", 3),
        ("aé", 2),
        (FAMILY, 5),
    ],
)
def test_script_counter_is_a_token_per_3_6_ascii_bytes_and_one_per_other_code_point(
    text: str, tokens: int
) -> None:
    assert ScriptCounter().count(text) == tokens


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abc", 3), ("é", 2), ("日本語", 9), (FAMILY, 18)])
def test_byte_counter_counts_utf8_bytes(text: str, tokens: int) -> None:
    assert ByteCounter().count(text) == tokens


@pytest.mark.parametrize(
    ("name", "text", "tokens"),
    [
        ("openai:o200k_base", "hello world", 2),
        ("openai:cl100k_base", "hello world", 2),
        ("openai:o200k_base", "", 0),
        ("openai:cl100k_base", "tiktoken is great!", 6),
        ("openai:cl100k_base", "antidisestablishmentarianism", 6),
    ],
)
def test_openai_counts_are_those_of_the_published_encodings(name: str, text: str, tokens: int) -> None:
    assert counter(name, {}).count(text) == tokens


@pytest.mark.parametrize("name", ["openai:o200k_base", "openai:cl100k_base"])
def test_special_tokens_count_as_plain_text(name: str) -> None:
    assert counter(name, {}).count("<|endoftext|>") == 7


def test_openai_counts_texts_of_any_length() -> None:
    assert counter("openai:o200k_base", {}).count("hello " * 400_000) >= 400_000


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("utf8-script-v1", "estimate"),
        ("utf8-bytes-v1", "upper_bound"),
        ("openai:o200k_base", "exact"),
        ("openai:cl100k_base", "exact"),
    ],
)
def test_each_counter_knows_its_name_and_bound(name: str, bound: Bound) -> None:
    found = counter(name, {})
    assert isinstance(found, TokenCounter)
    assert (found.name, found.bound) == (name, bound)


def test_only_the_two_formulas_plan_without_reading_text() -> None:
    names = ("utf8-script-v1", "utf8-bytes-v1", "openai:o200k_base")
    assert [isinstance(counter(name, {}), LedgerCounter) for name in names] == [True, True, False]


def test_a_local_tokenizer_is_named_by_the_hash_of_its_file() -> None:
    data = word_tokenizer().to_str().encode()
    found = hf_counter(data)
    assert found.name == f"hf:{blake3(data).hexdigest()[:16]}"
    assert (found.bound, found.count("harbour dawn harbour")) == ("exact", 3)
    assert counter(found.name, {found.name: found}) is found


def test_a_local_tokenizer_counts_beyond_its_own_truncation() -> None:
    tokenizer = word_tokenizer()
    tokenizer.enable_truncation(max_length=2)
    tokenizer.enable_padding(length=8)
    assert hf_counter(tokenizer.to_str().encode()).count("dawn dawn dawn") == 3


def test_a_file_that_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(RequestError, match=r"not a tokenizer\.json"):
        hf_counter(b"{}")


def test_a_function_counts_under_its_own_name() -> None:
    words = CallableCounter("words", "estimate", lambda text: len(text.split()))
    assert counter("words", {"words": words}).count("one two three") == 3


@pytest.mark.parametrize("answer", [-1, 1.0, True, None, "3"])
def test_a_function_that_returns_no_count_is_refused(answer: object) -> None:
    broken = CallableCounter("broken", "exact", lambda _text: answer)  # type: ignore[arg-type,return-value]
    with pytest.raises(CounterError, match="'broken' returned"):
        count_text(broken, "text")


def test_a_function_that_raises_is_a_counter_error() -> None:
    broken = CallableCounter("broken", "exact", lambda text: len(text) // 0)
    with pytest.raises(CounterError, match="'broken' failed: ZeroDivisionError"):
        count_text(broken, "text")


@pytest.mark.parametrize("name", ["", "caller", "utf8-script-v1", "openai:o200k_base", "hf:0123456789abcdef"])
def test_a_function_cannot_take_the_name_of_another_counter(name: str) -> None:
    with pytest.raises(RequestError, match="cannot be called"):
        CallableCounter(name, "exact", len)


@pytest.mark.parametrize("name", ["", "utf8", "openai:gpt2", "hf:0123456789abcdef"])
def test_an_unknown_counter_is_refused_with_the_known_ones(name: str) -> None:
    words = CallableCounter("words", "exact", len)
    with pytest.raises(UnknownCounter) as refused:
        counter(name, {"words": words})
    for known in ("utf8-script-v1", "utf8-bytes-v1", "openai:o200k_base", "words"):
        assert known in str(refused.value)


def test_a_counter_without_its_extra_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bpe_openai._bindings", None)
    _openai_counter.cache_clear()
    with pytest.raises(UnknownCounter, match=r"evidence-planner\[openai-tokens\]"):
        counter("openai:cl100k_base", {})
    monkeypatch.undo()
    assert isinstance(counter("openai:cl100k_base", {}), OpenAICounter)
