"""Markdown: what becomes a span, where it is, what it is called, and what it links to."""

from __future__ import annotations

import pytest

from planner.errors import EmptyInput, MalformedInput
from planner.ingest import parse, source_node_id
from planner.types import Batch

DOCUMENT = """---
title: Tide tables
date: 2024-05-01
tags: [a, b]
---
# Harbour *guide*

Intro of two
lines.

## Prices

- item one
  continued
- item two
  > quoted

| Name | Price |
|------|------:|
| Berth \\| A | 4 kr |
| 日本 | 五円 |

```python
def f():

    return 1
```

    indented

Setext
------

last 段落。
"""


def spans(batch: Batch) -> list[tuple[str, str]]:
    (source,) = batch.sources
    return [(span.kind, source.text[span.start : span.end].decode()) for span in source.spans]


def markdown(text: str, source_id: str = "docs/guide.md") -> Batch:
    return parse(text.encode(), source_id=source_id)


def test_each_block_is_a_span_at_its_text() -> None:
    assert spans(markdown(DOCUMENT)) == [
        ("heading", "Harbour *guide*"),
        ("paragraph", "Intro of two\nlines."),
        ("heading", "Prices"),
        ("paragraph", "item one\n  continued"),
        ("paragraph", "item two"),
        ("paragraph", "quoted"),
        ("cell", "Name"),
        ("cell", "Price"),
        ("cell", "Berth \\| A"),
        ("cell", "4 kr"),
        ("cell", "日本"),
        ("cell", "五円"),
        ("code", "def f():\n\n    return 1"),
        ("code", "    indented"),
        ("heading", "Setext"),
        ("paragraph", "last 段落。"),
    ]


def test_a_span_has_the_path_of_its_headings_and_is_part_of_the_last() -> None:
    batch = markdown("before\n\n# A\n\n## B\n\none\n\n# C\n\ntwo")
    (source,) = batch.sources
    assert [span.heading_path for span in source.spans] == [
        (),
        ("A",),
        ("A", "B"),
        ("A", "B"),
        ("C",),
        ("C",),
    ]
    whole, before, a, b, one, c, two = (node.node_id for node in batch.nodes)
    assert {(e.src, e.dst) for e in batch.edges if e.predicate == "part_of"} == {
        (before, whole),
        (a, whole),
        (b, a),
        (one, b),
        (c, whole),
        (two, c),
    }


def test_a_heading_in_a_quotation_opens_no_section() -> None:
    (source,) = markdown("# A\n\n> # Quoted\n\nafter").sources
    assert [span.heading_path for span in source.spans] == [("A",), ("A", "Quoted"), ("A",)]


def test_a_node_is_labelled_by_its_heading_and_a_cell_by_row_and_column() -> None:
    labels = [node.label for node in markdown(DOCUMENT).nodes]
    assert labels[0] == "Tide tables"
    assert labels[1:4] == ["Harbour guide", "Harbour guide", "Prices"]
    assert labels[7:13] == ["Prices", "Prices", "Name", "Berth | A / Price", "Name", "日本 / Price"]


def test_code_carries_its_language() -> None:
    languages = [node.attributes.get("language") for node in markdown(DOCUMENT).nodes if node.kind == "code"]
    assert languages == ["python", None]


def test_front_matter_becomes_attributes_of_the_source_and_its_nodes() -> None:
    batch = parse(DOCUMENT.encode(), source_id="a.md", attributes={"tags": "mine"})
    expected = {"title": "Tide tables", "date": "2024-05-01", "tags": "mine"}
    assert batch.sources[0].attributes == expected
    assert all(expected.items() <= node.attributes.items() for node in batch.nodes)


@pytest.mark.parametrize(
    ("text", "given", "title"),
    [
        ("---\ntitle: front\n---\n# First", "given", "given"),
        ("---\ntitle: front\n---\n# First", None, "front"),
        ("## Second\n\n# First\n\n# Other", None, "First"),
        ("no heading", None, "guide"),
    ],
)
def test_the_title_is_given_else_front_matter_else_first_heading_else_the_name(
    text: str, given: str | None, title: str
) -> None:
    assert parse(text.encode(), source_id="docs/guide.md", title=given).sources[0].title == title


@pytest.mark.parametrize(
    ("front", "line"),
    [("a: b\nc: [x", 3), ("a: 2024-13-45", 2), ("a: b\n\tc: d", 3), ('a: "\x01"', 2)],
)
def test_bad_front_matter_is_refused_with_its_line(front: str, line: int) -> None:
    with pytest.raises(MalformedInput, match=f"line {line}") as caught:
        markdown(f"---\n{front}\n---\n{'text ' * 100}")
    assert caught.value.detail["line"] == line


@pytest.mark.parametrize(
    "front",
    [
        'a: "x\\0y"',
        "a: .nan",
        "a: !!binary aGk=",
        "a: &a [*a]",
        "a: " + "[" * 5_000,
        "a: " + "x" * 70_000,
        "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d]",
    ],
)
def test_front_matter_that_no_store_can_hold_is_refused(front: str) -> None:
    with pytest.raises(MalformedInput):
        markdown(f"---\n{front}\n---\ntext")


@pytest.mark.parametrize(
    "text", ["---\n\ntext: [\n\n---\nmore", "---\njust words\n---\nmore", "---\nopen: x\n"]
)
def test_a_rule_at_the_start_is_no_front_matter(text: str) -> None:
    batch = markdown(text)
    assert batch.sources[0].attributes == {}
    assert spans(batch)[0][1].split()[0] in {"text:", "just", "open:"}


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[x](other.md)", "docs/other.md"),
        ("[x](other.md#part)", "docs/other.md"),
        ("[x](../up.md 'title')", "up.md"),
        ("[x](./a%20b.md)", "docs/a b.md"),
        ("[x](日本.md)", "docs/日本.md"),
        ("[x](/top.md?v=1)", "top.md"),
        ("[x][ref]\n\n[ref]: ref.md", "docs/ref.md"),
        ("- > [x](in/list.md)", "docs/in/list.md"),
        ("| [x](cell.md) |\n|---|", "docs/cell.md"),
        ("# To [x](head.md)", "docs/head.md"),
        ("[[Name]]", "docs/Name.md"),
        ("[[Two words|alias]] and more", "docs/Two words.md"),
        ("[[Name#part]]", "docs/Name.md"),
        ("[[100%]]", "docs/100%.md"),
        ("[x](http://web.example/a.md)", None),
        ("[x](mailto:a@b.example)", None),
        ("[x](//host/a.md)", None),
        ("[x](../../above.md)", None),
        ("[x](#part)", None),
        ("[x](guide.md)", None),
        ("`[x](code.md)` and ``[[code]]``", None),
        ("    [x](code.md)", None),
        ("[x](a%00b.md)", None),
        (f"[x]({'a' * 600}.md)", None),
        ("![x](picture.png)", None),
    ],
)
def test_a_link_leads_to_the_node_of_its_target(link: str, target: str | None) -> None:
    batch = markdown(link)
    found = [(edge.src, edge.dst) for edge in batch.edges if edge.predicate == "links_to"]
    assert found == ([(batch.nodes[1].node_id, source_node_id(target))] if target else [])


def test_the_same_link_twice_is_one_edge() -> None:
    batch = markdown("[a](x.md) [b](x.md#y)\n\n[c](x.md)")
    assert [e.src for e in batch.edges if e.predicate == "links_to"] == [n.node_id for n in batch.nodes[1:]]


def test_text_nested_deeper_than_any_parser_follows_is_kept() -> None:
    assert spans(markdown("> " * 5_000 + "deep words"))[-1] == ("paragraph", "deep words")
    assert spans(markdown("- " * 5_000 + "deep words"))[-1] == ("paragraph", "deep words")


def test_a_long_heading_is_cut_and_its_label_bounded() -> None:
    batch = markdown(f"# {'long words ' * 500}\n\ntext")
    assert {kind for kind, _ in spans(batch)} == {"heading", "paragraph"}
    assert all(len(node.label) <= 200 for node in batch.nodes)
    assert all(len(part) <= 200 for span in batch.sources[0].spans for part in span.heading_path)


def test_code_is_cut_at_blank_lines_and_keeps_its_indentation() -> None:
    functions = "\n\n".join(f"    def f{n}():\n        return {n}" for n in range(60))
    parts = [text for kind, text in spans(markdown(f"```\n{functions}\n```")) if kind == "code"]
    assert "".join(parts) == functions
    assert len(parts) > 1
    assert all(part.startswith("    def") for part in parts)


@pytest.mark.parametrize("text", ["---\na: b\n---\n", "***\n", "[a]: b.md\n", "```\n```\n", "#\n"])
def test_markup_without_text_is_empty(text: str) -> None:
    with pytest.raises(EmptyInput):
        markdown(text)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_newlines_and_byte_order_mark_make_no_difference(newline: str, mark: bytes) -> None:
    raw = mark + DOCUMENT.replace("\n", newline).encode()
    assert parse(raw, source_id="docs/guide.md") == markdown(DOCUMENT)
