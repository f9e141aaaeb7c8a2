"""Compiles a filter (data) into a SQL predicate over `planner.node n`, with every value a parameter.

A comparison that meets a missing value is false, not unknown, so that `not` means what it says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from planner.request import All, AnyOf, Condition, Filter, Not, Scalar, Window
from planner.store.queries import compose
from planner.types import TRUST_ORDER

TRUE: sql.Composable = sql.SQL("true")

_NODE_COLUMNS = {"kind": "n.kind", "label": "n.label", "confidence": "n.confidence"}
_PROVENANCE_COLUMNS = {"source_id": "ns.source_id", "class": "src.class", "trust": "v.trust"}


@dataclass(slots=True)
class Compiler:
    """Collects the parameters of all the filters of one request; `prefix` keeps their names apart."""

    params: dict[str, Any] = field(default_factory=dict)

    def predicate(self, tree: Filter | None) -> sql.Composable:
        """Return the predicate of a filter; no filter is true."""
        if tree is None:
            return TRUE
        if isinstance(tree, All):
            return self._joined(tree.all, " AND ", "true")
        if isinstance(tree, AnyOf):
            return self._joined(tree.any, " OR ", "false")
        if isinstance(tree, Not):
            return sql.SQL("NOT ({})").format(self.predicate(tree.not_))
        return sql.SQL("coalesce({}, false)").format(self._condition(tree))

    def window(self, window: Window | None) -> sql.Composable:
        """Return the predicate of a window on the node's valid interval or observation time."""
        if window is None:
            return TRUE
        valid = window.axis == "valid"
        parts: list[sql.Composable] = []
        if window.from_ is not None:
            starts = "(n.valid_to IS NULL OR n.valid_to > {})" if valid else "n.observed_at >= {}"
            parts.append(sql.SQL(starts).format(self._param(window.from_)))
        if window.to is not None:
            ends = "(n.valid_from IS NULL OR n.valid_from < {})" if valid else "n.observed_at < {}"
            parts.append(sql.SQL(ends).format(self._param(window.to)))
        return sql.SQL("coalesce({}, false)").format(sql.SQL(" AND ").join(parts))

    def _joined(self, parts: Sequence[Filter], glue: str, empty: str) -> sql.Composable:
        if not parts:
            return sql.SQL(empty)
        return sql.SQL("({})").format(sql.SQL(glue).join(self.predicate(part) for part in parts))

    def _condition(self, condition: Condition) -> sql.Composable:
        name = condition.field
        if name.startswith("attributes."):
            return self._attribute(name.removeprefix("attributes.").split("."), condition)
        if name in _NODE_COLUMNS:
            return self._column(sql.SQL(_NODE_COLUMNS[name]), condition)
        inner = (
            self._trust(condition)
            if name == "trust"
            else self._column(sql.SQL(_PROVENANCE_COLUMNS[name]), condition)
        )
        return compose("filter_by_provenance", condition=inner)

    def _trust(self, condition: Condition) -> sql.Composable:
        """Trust classes are ordered: gte and lte mean at least and at most that trusted."""
        if condition.op not in ("gte", "lte"):
            return self._column(sql.SQL("v.trust"), condition)
        at = TRUST_ORDER.index(condition.value)
        levels = TRUST_ORDER[at:] if condition.op == "gte" else TRUST_ORDER[: at + 1]
        return sql.SQL("v.trust = ANY ({})").format(self._param(list(levels)))

    def _column(self, column: sql.Composable, condition: Condition) -> sql.Composable:
        value = list(condition.value) if isinstance(condition.value, tuple) else condition.value
        ops = {**_TEXT_OPS, **_NUMBER_OPS} if condition.field == "confidence" else _TEXT_OPS
        return sql.SQL(ops[condition.op]).format(column, self._param(value))

    def _attribute(self, path: list[str], condition: Condition) -> sql.Composable:
        at = sql.SQL("(n.attributes #> {})").format(self._param(path))
        value, op = condition.value, condition.op
        if op == "in":
            assert isinstance(value, tuple)
            parts = [self._equals(at, item) for item in value]
            return sql.SQL("({})").format(sql.SQL(" OR ").join(parts)) if parts else sql.SQL("false")
        if op == "eq":
            return self._equals(at, value)  # type: ignore[arg-type]  # only `in` takes a list
        if op == "contains":
            text = sql.SQL(
                "CASE jsonb_typeof({0}) WHEN 'string' THEN position({1} IN {0} #>> '{{}}') > 0"
                " WHEN 'array' THEN {0} @> to_jsonb({1}::text) END"
            )
            return text.format(at, self._param(value))
        kind = "string" if isinstance(value, str) else "number"
        cast = "{0} #>> '{{}}'" if kind == "string" else "({0} #>> '{{}}')::numeric"
        inner = sql.SQL(_TEXT_OPS[op] if kind == "string" else _NUMBER_OPS[op]).format(
            sql.SQL(cast).format(at), self._param(value)
        )
        return sql.SQL("CASE WHEN jsonb_typeof({}) = {} THEN {} END").format(at, sql.Literal(kind), inner)

    def _equals(self, at: sql.Composable, value: Scalar) -> sql.Composable:
        if value is None:
            return sql.SQL("({0} IS NULL OR {0} = 'null'::jsonb)").format(at)
        return sql.SQL("{} = {}::jsonb").format(at, self._param(json.dumps(value)))

    def _param(self, value: object) -> sql.Composable:
        name = f"f{len(self.params)}"
        self.params[name] = value
        return sql.Placeholder(name)


_TEXT_OPS = {
    "eq": "{} = {}",
    "in": "{} = ANY ({})",
    "prefix": "starts_with({}, {})",
    "contains": "position({1} IN {0}) > 0",
    "gte": '{} COLLATE "C" >= {}',
    "lte": '{} COLLATE "C" <= {}',
}
_NUMBER_OPS = {"gte": "{} >= {}", "lte": "{} <= {}"}
