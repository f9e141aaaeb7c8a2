"""A body leaves only through `seal`: a search of the code for any other way out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PLANNER = Path(__file__).resolve().parents[2] / "planner"
ENVELOPE = PLANNER / "deliver" / "envelope.py"


def test_one_function_escapes_bodies() -> None:
    callers = {
        (path.name, function.name)
        for path in PLANNER.rglob("*.py")
        for function in _functions(path)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "escape"
    }
    assert ("envelope.py", "seal") in callers
    assert callers - {("envelope.py", "seal"), ("escape.py", "quote")} == _foreign_escapes()


def _foreign_escapes() -> set[tuple[str, str]]:
    """Return the callers of other functions of that name, such as that of `rich.markup`."""
    return {
        (path.name, function.name)
        for path in PLANNER.rglob("*.py")
        if "planner.deliver.escape" not in path.read_text(encoding="utf-8") and path.name != "escape.py"
        for function in _functions(path)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "escape"
    }


def test_envelopes_are_made_by_one_function() -> None:
    makers = [
        (path.name, function.name)
        for path in PLANNER.rglob("*.py")
        for function in _functions(path)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Envelope"
    ]
    assert set(makers) == {("envelope.py", "seal")}


def test_only_the_envelope_builds_delimiters() -> None:
    built = [
        (path.name, node.lineno)
        for path in PLANNER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.JoinedStr) and _begins_a_delimiter(node)
    ]
    assert [name for name, _ in built] == ["envelope.py"]


def test_a_delivery_is_made_by_one_function_from_what_is_in_the_bundle() -> None:
    makers = {
        (path.name, function.name)
        for path in PLANNER.rglob("*.py")
        for function in _functions(path)
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "Delivery"
    }
    assert makers == {("deliver.py", "_delivery")}
    [function] = [f for f in _functions(PLANNER / "deliver" / "deliver.py") if f.name == "_delivery"]
    [text] = [
        node for node in ast.walk(function) if isinstance(node, ast.Assign) and _names(node) == ["text"]
    ]
    assert ast.unparse(text) == "text = bundle.text(bundle.contents)"


def test_the_text_that_was_read_is_asked_for_in_two_places() -> None:
    """`group.py` hands it to `seal`; `cut.py` only looks for where grapheme clusters end."""
    readers = {
        path.name
        for path in (PLANNER / "deliver").glob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("text", "slice")
        and "texts" in ast.unparse(call.func.value)
    }
    assert readers == {"group.py", "cut.py"}


def _functions(path: Path) -> Iterator[ast.FunctionDef]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _begins_a_delimiter(node: ast.JoinedStr) -> bool:
    """Tell whether an f-string writes a bracket, then a tag: `<{tag}>`."""
    return any(
        isinstance(before, ast.Constant)
        and str(before.value).endswith("<")
        and isinstance(value, ast.FormattedValue)
        and "tag" in ast.unparse(value.value)
        for before, value in zip(node.values, node.values[1:], strict=False)
    )


def _names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]
