"""Finding and reading the files of an ingest: the one place where ingest meets the filesystem."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from planner.errors import ConflictingInput, IngestError, OversizedInput, RequestError, UnreadableInput
from planner.ingest.ids import MAX_ID_BYTES

STDIN = "-"
STDIN_ID = "stdin"


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file to ingest and the id of its source; `path` is None for standard input.

    A `problem` found on the way is raised by `read`, so that the other files go on. `folder` is the name of
    the folder that the id is relative to.
    """

    source_id: str
    path: Path | None
    problem: IngestError | None = None
    folder: str | None = None


def discover(paths: Sequence[str | Path]) -> Iterator[InputFile]:
    """Yield the files that arguments name: files, folders (walked sorted), globs, `-` for standard input.

    A source id is the POSIX path below the folder, below the fixed part of the glob, or the file's name.
    Hidden files and folders inside a folder are skipped, links to folders are not followed. What cannot be
    ingested is yielded with its problem: nothing found, unreadable folders, names that are not UTF-8, and
    two files that would have one source id.
    """
    seen: dict[str, Path | None] = {}
    for path in paths:
        for found in _found(str(path)):
            if found.source_id in seen and found.problem is None:
                if _same(seen[found.source_id], found.path):
                    continue
                problem = ConflictingInput(
                    f"{found.path} would have the source id {found.source_id!r} of {seen[found.source_id]}; "
                    "ingest the folder above both",
                )
                yield InputFile(found.source_id, found.path, problem)
                continue
            if found.problem is None:
                seen[found.source_id] = found.path
            yield found


def synced(paths: Sequence[str | Path]) -> frozenset[str]:
    """Return the names of folders that are to be mirrored. Raises RequestError where a path is none."""
    for path in paths:
        if not Path(path).is_dir():
            raise RequestError(
                f"{_text(str(path))} is not a folder; what vanished is known of folders alone", field="sync"
            )
    return frozenset(_folder_name(Path(path)) for path in paths)


def is_seen_whole(files: Sequence[InputFile]) -> bool:
    """Say whether every folder could be read and held a file: an absent volume is an empty folder too."""
    return not any(file.problem and file.path and file.path.is_dir() for file in files)


def read(file: InputFile, max_file_bytes: int, stdin: BinaryIO | None = None) -> bytes:
    """Return the bytes of a file. Raises its problem, UnreadableInput, or OversizedInput before reading."""
    if file.problem is not None:
        raise file.problem
    if file.path is None:
        return _bounded(stdin or sys.stdin.buffer, max_file_bytes)
    try:
        found = file.path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise UnreadableInput(f"{file.path} is not a regular file; pipe it in and name `-`")
        if found.st_size > max_file_bytes:
            raise _oversized(found.st_size, max_file_bytes)
        with file.path.open("rb") as stream:
            return _bounded(stream, max_file_bytes)
    except OSError as error:
        raise _unreadable(str(file.path), error) from None


def _found(argument: str) -> Iterator[InputFile]:
    path = Path(argument)
    if argument == STDIN:
        yield InputFile(STDIN_ID, None)
    elif path.is_dir():
        yield from _folder(path, path)
    elif path.exists() or path.is_symlink():
        yield _file(path, path.parent)
    elif any(sign in argument for sign in "*?["):
        yield from _globbed(path)
    else:
        yield InputFile(_text(argument), path, UnreadableInput(f"{_text(argument)} does not exist"))


def _folder(folder: Path, root: Path) -> Iterator[InputFile]:
    problems: list[OSError] = []
    files: list[Path] = []
    for here, folders, names in os.walk(folder, onerror=problems.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [Path(here, name) for name in names if not name.startswith(".")]
    for error in problems:
        yield InputFile(_text(str(error.filename)), folder, _unreadable(str(error.filename), error))
    yield from (_file(path, root) for path in sorted(files, key=os.fsencode))
    if not files and not problems:
        yield InputFile(_text(str(folder)), folder, UnreadableInput(f"{_text(str(folder))} holds no files"))


def _globbed(pattern: Path) -> Iterator[InputFile]:
    """Expand a glob; `*` does not match hidden names, as in a shell."""
    fixed = next(i for i, part in enumerate(pattern.parts) if any(sign in part for sign in "*?["))
    root, rest = Path(*pattern.parts[:fixed]), Path(*pattern.parts[fixed:])
    hidden = any(part.startswith(".") for part in rest.parts)
    try:
        found = sorted(root.glob(str(rest)), key=os.fsencode)
    except (OSError, ValueError) as error:
        yield InputFile(_text(str(pattern)), pattern, UnreadableInput(f"{_text(str(pattern))}: {error}"))
        return
    matches = [path for path in found if hidden or not _is_hidden(path.relative_to(root))]
    for path in matches:
        if not path.is_dir():
            yield _file(path, root)
        elif "**" not in rest.parts:
            yield from _folder(path, root)
    if not matches:
        yield InputFile(
            _text(str(pattern)), pattern, UnreadableInput(f"{_text(str(pattern))} matches no file")
        )


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _file(path: Path, root: Path) -> InputFile:
    source_id, folder = path.relative_to(root).as_posix(), _folder_name(root)
    shown = _text(source_id)
    if shown != source_id:
        problem = UnreadableInput(f"the name {shown!r} is not UTF-8; rename the file")
        return InputFile(shown, path, problem, folder)
    if len(source_id.encode()) > MAX_ID_BYTES:
        problem = UnreadableInput(f"the path {source_id[:60]}… is longer than {MAX_ID_BYTES} bytes")
        return InputFile(source_id, path, problem, folder)
    return InputFile(source_id, path, None, folder)


def _folder_name(folder: Path) -> str:
    """Return a folder's own name: it is the same on every machine that holds the folder, its path is not."""
    return _text(os.path.basename(os.path.abspath(folder))) or "/"  # noqa: PTH100, PTH119  # `..` is resolved


def _text(name: str) -> str:
    """Return a file name as text that can be shown, whatever its bytes are."""
    return os.fsencode(name).decode("utf-8", "replace")


def _same(one: Path | None, other: Path | None) -> bool:
    if one is None or other is None:
        return one is other
    try:
        return one.samefile(other)
    except OSError:
        return one == other


def _bounded(stream: BinaryIO, max_file_bytes: int) -> bytes:
    # A stream has no size, and a file may grow while it is read.
    raw = stream.read(max_file_bytes + 1)
    if len(raw) > max_file_bytes:
        raise _oversized(None, max_file_bytes)
    return raw


def _oversized(size: int | None, max_file_bytes: int) -> OversizedInput:
    found = f"{size} bytes" if size else "the input"
    return OversizedInput(
        f"{found} exceeds max_file_bytes = {max_file_bytes}; raise the setting or split the file",
        size=size,
        max_file_bytes=max_file_bytes,
    )


def _unreadable(name: str, error: OSError) -> UnreadableInput:
    return UnreadableInput(f"{_text(name)} cannot be read: {error.strerror or error}")
