"""Finding and reading files: ids, order, and every problem named while the rest goes on."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from planner.errors import ConflictingInput, OversizedInput, UnreadableInput
from planner.reading import InputFile, discover, read

MAX = 1_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    for name in ("b.md", "a.md", "sub/c.txt", "sub/deep/d.md", ".hidden.md", ".git/config", "日本 語.md"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}", encoding="utf-8")
    return root


def ids(*arguments: str | Path) -> list[str]:
    return [file.source_id for file in discover(arguments)]


def test_a_folder_is_walked_sorted_without_hidden_files(folder: Path) -> None:
    assert ids(folder) == ["a.md", "b.md", "sub/c.txt", "sub/deep/d.md", "日本 語.md"]


def test_a_file_is_known_by_its_name_even_a_hidden_one(folder: Path) -> None:
    assert ids(folder / "sub" / "c.txt", folder / ".hidden.md") == ["c.txt", ".hidden.md"]


def test_a_glob_is_expanded_below_its_fixed_part(folder: Path) -> None:
    assert ids(f"{folder}/*.md") == ["a.md", "b.md", "日本 語.md"]
    assert ids(f"{folder}/**/*.md") == ["a.md", "b.md", "sub/deep/d.md", "日本 語.md"]
    assert ids(f"{folder}/s*") == ["sub/c.txt", "sub/deep/d.md"]
    assert ids(f"{folder}/sub/[c].txt") == ["c.txt"]


def test_a_name_that_looks_like_a_glob_is_a_name_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].md").write_text("x", encoding="utf-8")
    assert ids(tmp_path / "a[1].md") == ["a[1].md"]


def test_the_same_file_twice_is_one_input(folder: Path) -> None:
    assert ids(folder, folder / "a.md", f"{folder}/a*") == ids(folder)


def test_two_files_of_one_id_conflict(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("other", encoding="utf-8")
    first, second = discover([folder / "a.md", tmp_path / "a.md"])
    assert read(first, MAX) == b"text of a.md"
    with pytest.raises(ConflictingInput, match=r"a\.md"):
        read(second, MAX)


def test_links_in_a_circle_end(folder: Path) -> None:
    (folder / "sub" / "loop").symlink_to(folder)
    (folder / "self.md").symlink_to(folder / "self.md")
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    (folder / "linked.md").symlink_to(folder / "a.md")
    found = {file.source_id: file for file in discover([folder])}
    assert "linked.md" in found
    assert read(found["linked.md"], MAX) == b"text of a.md"
    for name in ("self.md", "gone.md"):
        with pytest.raises(UnreadableInput, match=name):
            read(found[name], MAX)
    assert ids(f"{folder}/**/*.txt") == ["sub/c.txt"]


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("absent.md", "does not exist"),
        ("absent/*.md", "matches no file"),
        ("*.pdf", "matches no file"),
        ("sub/**/*.pdf", "matches no file"),
        ("empty", "holds no files"),
        ("nul\0.md", "does not exist"),
    ],
)
def test_an_argument_that_names_nothing_is_a_problem(folder: Path, argument: str, says: str) -> None:
    (folder / "empty").mkdir()
    (file,) = discover([f"{folder}/{argument}"])
    with pytest.raises(UnreadableInput, match=says):
        read(file, MAX)


def test_a_name_that_is_not_utf8_is_a_problem_and_the_rest_goes_on(folder: Path) -> None:
    raw = os.fsencode(folder) + b"/bad\xff.md"
    Path(os.fsdecode(raw)).write_bytes(b"x")
    found = list(discover([folder]))
    assert len(found) == 6
    (bad,) = (file for file in found if file.problem)
    with pytest.raises(UnreadableInput, match="not UTF-8"):
        read(bad, MAX)
    bad.source_id.encode()


def test_a_size_over_the_limit_is_refused_before_reading(folder: Path) -> None:
    (file,) = discover([folder / "a.md"])
    assert read(file, 12) == b"text of a.md"
    with pytest.raises(OversizedInput, match="max_file_bytes = 11"):
        read(file, 11)


def test_standard_input_is_bounded_too() -> None:
    (file,) = discover(["-"])
    assert file == InputFile("stdin", None)
    assert read(file, 3, io.BytesIO(b"abc")) == b"abc"
    with pytest.raises(OversizedInput):
        read(file, 3, io.BytesIO(b"abcd"))


def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.md")
    file = next(file for file in discover([folder]) if file.source_id == "pipe.md")
    with pytest.raises(UnreadableInput, match="regular file"):
        read(file, MAX)


def test_a_file_that_vanished_is_named(folder: Path) -> None:
    (file,) = discover([folder / "a.md"])
    (folder / "a.md").unlink()
    with pytest.raises(UnreadableInput, match=r"a\.md cannot be read: No such file"):
        read(file, MAX)
