"""Texts as one array literal: quoted together as one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planner.store.arrays import array_literal


@given(st.lists(st.text(st.sampled_from('a"\\\\,{}\0é '), max_size=6), min_size=1))
def test_texts_are_quoted_together_as_they_are_one_by_one(texts: list[str]) -> None:
    one_by_one = [array_literal([text, None])[1 : -len(",NULL}")] for text in texts]
    assert array_literal(texts) == "{" + ",".join(one_by_one) + "}"
