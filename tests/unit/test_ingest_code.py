"""Source code: definitions in several languages, what belongs to them, and what is cut."""

from __future__ import annotations

import pytest

from planner.ingest import parse
from planner.types import Batch
from tests.ledger_checks import check_graph, check_ledger, texts

PYTHON = '''"""Tides.

def not_code():
    """
import os
from re import (
    compile,
)

LIMIT = 2.9


# Close the gate.
@decorated(
    level=1,
)
async def close(
    gate: str,
) -> None:
    text = """
class NotAClass:
    """
# a comment at the margin

    return None


class 門(Base):
    """A gate."""

    width = 3
    def open(self):
        return 1

    @property
    def shut(self):
        class Inner:
            def deep(self): ...
        return Inner

if __name__ == "__main__":
    close("north")
'''

JAVA = """package tide;

/**
 * A gate; class NotThis {
 */
@Deprecated
public final class Gate<T> extends Base {
    private int width = 3;

    @Override
    public String toString() {
        return "class Nor this {";
    }

    static class Lock
    {
        void turn(int times)
        {
            if (times > 0) {
                turn(times - 1);
            }
        }
    }
}
"""


def labelled(batch: Batch) -> list[tuple[str, str]]:
    """Return the label of every span's node and the first line of its text."""
    return [
        (node.label, text.split("\n")[0].strip())
        for node, (_, text) in zip(batch.nodes[1:], texts(batch), strict=True)
    ]


def code(text: str, source_id: str) -> Batch:
    batch = parse(text.encode(), source_id=source_id)
    check_ledger(batch, 900)
    check_graph(batch)
    assert {kind for kind, _ in texts(batch)} == {"code"}
    return batch


def test_python_is_read_by_definition_then_by_blank_lines() -> None:
    assert labelled(code(PYTHON, "src/tide.py")) == [
        ("tide.py", '"""Tides.'),
        ("tide.py", "LIMIT = 2.9"),
        ("close", "# Close the gate."),
        ("門", "class 門(Base):"),
        ("門", "width = 3"),
        ("門.open", "def open(self):"),
        ("門.shut", "@property"),
        ("tide.py", 'if __name__ == "__main__":'),
    ]


def test_java_is_read_by_class_and_method() -> None:
    assert labelled(code(JAVA, "Gate.java")) == [
        ("Gate.java", "package tide;"),
        ("Gate", "/**"),
        ("Gate.toString", "@Override"),
        ("Gate.Lock", "static class Lock"),
        ("Gate.Lock.turn", "void turn(int times)"),
    ]


@pytest.mark.parametrize(
    ("source_id", "text", "names"),
    [
        (
            "a.go",
            "// F does.\nfunc (r *T) F(a int) error {\n\treturn nil\n}\ntype T struct {\n\tA int\n}\n",
            "F T",
        ),
        ("a.go", "var q = `\nfunc no() {\n\tx\n}\n`\n", "a.go"),
        (
            "a.ts",
            "export const f = async (a) => {\n  a;\n};\nclass K {\n  g(a) {\n    a;\n  }\n}\n",
            "f K K.g",
        ),
        (
            "a.rs",
            "#[test]\npub fn f<'a>(x: &'a str) {\n    x\n}\nimpl T for S {\n    fn g() {}\n}\n",
            "f S S.g",
        ),
        ("a.c", "int f(void)\n{\n    g();\n#ifdef X\n    h();\n#endif\n}\n", "f"),
        ("a.cpp", "class Q {\npublic:\n  int g() {\n    return 1;\n  }\n};\n", "Q Q.g"),
        (
            "a.sql",
            "CREATE OR REPLACE FUNCTION s.f() AS $$\nSELECT 1;\n\nSELECT 2;\n$$;\n\nSELECT 3;\n",
            "s.f a.sql",
        ),
        ("a.sql", "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix ON t (a);\n", "ix"),
        ("a.sh", "set -e\nf() {\n  echo\n}\nif x; then\n  y\nfi\n", "a.sh f a.sh"),
        ("a.rb", "module M\n  class C\n    def self.f\n      1\n    end\n  end\nend\n", "M M.C M.C.self.f"),
        ("a.yaml", "a:\n  b: 1\n\n# c\nd:\n  - e\n", "a.yaml a.yaml"),
    ],
)
def test_other_languages_are_read_by_the_same_rule(source_id: str, text: str, names: str) -> None:
    assert [label for label, _ in labelled(code(text, source_id))] == names.split()


def test_a_method_is_part_of_its_class_and_has_its_path() -> None:
    batch = code(PYTHON, "tide.py")
    by_label = {node.label: node.node_id for node in reversed(batch.nodes)}
    parts = {(edge.src, edge.dst) for edge in batch.edges if edge.predicate == "part_of"}
    assert (by_label["門.open"], by_label["門"]) in parts
    assert (by_label["close"], by_label["tide.py"]) in parts
    assert [span.heading_path for span in batch.sources[0].spans][5:7] == [("門", "open"), ("門", "shut")]


def test_the_language_is_an_attribute() -> None:
    assert {node.attributes.get("language") for node in code(JAVA, "Gate.java").nodes[1:]} == {"java"}
    named = parse(b"x = 1", source_id="stdin", media_type="text/x-python")
    assert named.nodes[1].attributes == {"language": "python"}


def test_a_long_definition_is_cut_at_blank_lines_and_keeps_its_name() -> None:
    body = "\n\n".join(f"    step_{n} = compute({n})" for n in range(100))
    batch = code(f"def long():\n{body}\n\n\ndef short():\n    pass\n", "a.py")
    assert len(batch.nodes) > 4
    assert {label for label, _ in labelled(batch)[:-1]} == {"long"}
    assert all(text.strip().startswith(("def", "step_")) for _, text in texts(batch))


def test_an_unclosed_quote_or_comment_quotes_nothing() -> None:
    text = 'x = """ never closed\n\ndef f():\n    pass\n\n\ndef g():\n    pass\n'
    assert [label for label, _ in labelled(code(text, "a.py"))] == ["a.py", "f", "g"]


@pytest.mark.parametrize(
    "text",
    [
        "".join("    " * n + f"class C{n}:\n" for n in range(300)) + "    " * 300 + "pass\n",
        "x = " + "(" * 20_000 + ")" * 20_000 + "\n",
        "{" * 50_000,
        '"""' * 30_001,
        "/*" * 50_000,
        "class " * 20_000,
    ],
    ids=lambda text: text[:12],
)
@pytest.mark.parametrize("source_id", ["a.py", "a.java", "a.sql"])
def test_what_is_nested_without_end_is_read(text: str, source_id: str) -> None:
    check_ledger(parse(f"word\n{text}".encode(), source_id=source_id), 900)
