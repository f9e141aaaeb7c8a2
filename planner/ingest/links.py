"""Links between sources: Markdown links and wiki-links, resolved to source ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from typing import Any
from urllib.parse import unquote

import regex
from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from planner.ingest.ids import MAX_ID_BYTES, source_node_id
from planner.types import EdgeDraft, NodeDraft

Env = MutableMapping[str, Any]

_WIKI_LINK = regex.compile(r"\[\[([^\[\]|\n]+)(?:\|([^\[\]\n]*))?\]\]")
_SCHEME = regex.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def wiki_links(md: MarkdownIt) -> None:
    """Teach a Markdown parser `[[Name]]` and `[[Name|alias]]`, as tokens of type `wiki_link`."""
    md.inline.ruler.before("link", "wiki_link", _wiki_link)


def link_edges(
    source_id: str, nodes: Iterable[tuple[NodeDraft, str]], md: MarkdownIt, env: Env
) -> Iterator[EdgeDraft]:
    """Yield `links_to` edges from nodes, given with their text, to the nodes of the sources they link to.

    A target need not have arrived. Links to the web, to mail and within the source make no edge.
    """
    for node, text in nodes:
        if not _may_link(text, env):
            continue
        for href in _hrefs(md.parseInline(text, env)):
            target = resolve(source_id, href)
            if target is not None and target != source_id:
                yield EdgeDraft(node.node_id, source_node_id(target), "links_to")


def resolve(source_id: str, href: str) -> str | None:
    """Return the source id that `href` names, seen from a source's folder; None where it names no source.

    `/x` starts at the root of the source ids; fragments and queries are dropped, percent signs decoded.
    """
    path = unquote(href.split("#", 1)[0].split("?", 1)[0])
    if not path or path.startswith("//") or _SCHEME.match(path) or "\0" in path:
        return None
    parts = [] if path.startswith("/") else source_id.split("/")[:-1]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    target = "/".join(parts)
    return target if 0 < len(target.encode()) <= MAX_ID_BYTES else None


def _may_link(text: str, env: Env) -> bool:
    """Tell, without parsing, whether inline markup may hold a link: most text does not."""
    return any(mark in text for mark in ("](", "][", "]]")) or ("]" in text and bool(env.get("references")))


def _wiki_link(state: StateInline, silent: bool) -> bool:
    match = _WIKI_LINK.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        token = state.push("wiki_link", "", 0)
        token.content = match[2] or match[1]
        token.meta = {"name": match[1].strip()}
    state.pos = match.end()
    return True


def _hrefs(tokens: Sequence[Token]) -> Iterator[str]:
    for token in tokens:
        yield from _hrefs(token.children or ())
        if token.type == "link_open":
            yield str(token.attrs["href"])
        elif token.type == "wiki_link":
            name = token.meta["name"].split("#", 1)[0].strip()
            if name:
                # A wiki names pages, not files: [[Name]] is Name.md of the same folder.
                yield name.replace("%", "%25") if name.endswith(".md") else f"{name}.md".replace("%", "%25")
