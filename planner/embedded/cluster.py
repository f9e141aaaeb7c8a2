"""The data directory: made whole or not at all, and only used by the version that made it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from planner.embedded import binaries
from planner.embedded.identity import Identity
from planner.embedded.layout import PORT, Layout
from planner.errors import EmbeddedServerError

USER = "planner"
DATABASE = "planner"

_UNFINISHED = ".initdb-"


def prepare(layout: Layout, identity: Identity, *, durable: bool) -> None:
    """Make the data directory where there is none. The caller holds the start lock.

    initdb works in a sibling that is renamed at the end: a kill in between leaves only a sibling, which
    the next call removes. Raises EmbeddedServerError; OSError where the folder cannot be written.
    """
    identity.let_in(layout.home)
    for leftover in layout.home.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    if layout.cluster.exists():
        _check_version(layout)
        return
    unfinished = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=layout.home))
    try:
        identity.own(unfinished)
        _initialise(unfinished, identity, durable=durable)
        unfinished.rename(layout.cluster)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def make_socket_dir(layout: Layout, identity: Identity) -> Path:
    """Return an empty socket folder that only the server's user may enter: it is all the authentication.

    Raises EmbeddedServerError where somebody else has made the folder first.
    """
    path = layout.socket_dir
    path.mkdir(mode=0o700, exist_ok=True)
    seen = path.lstat()
    if path.is_symlink() or not path.is_dir() or seen.st_uid not in (os.geteuid(), identity.uid):
        raise EmbeddedServerError(f"the socket folder {path} belongs to user {seen.st_uid}: remove it")
    path.chmod(0o700)
    identity.own(path)
    for leftover in path.iterdir():  # of a killed server; its lock file names a pid that may be in use again
        leftover.unlink()
    return path


def server_options(socket_dir: Path, *, durable: bool) -> list[str]:
    """Return the server's settings: reachable by the socket alone, and no texts of statements in its log."""
    settings = {
        "listen_addresses": "",
        "port": str(PORT),
        "unix_socket_directories": str(socket_dir),
        "unix_socket_permissions": "0700",
        "logging_collector": "off",
        "log_destination": "stderr",
        "log_checkpoints": "off",
        "log_min_error_statement": "panic",
        "timezone": "UTC",
        "log_timezone": "UTC",
    }
    if not durable:
        settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def _initialise(folder: Path, identity: Identity, *, durable: bool) -> None:
    # macOS knows no C.UTF-8; the text-search parser needs a UTF-8 character type all the same.
    names = ["--locale=C", "--lc-ctype=en_US.UTF-8"] if sys.platform == "darwin" else ["--locale=C.UTF-8"]
    options = [
        *("-D", str(folder), "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-instructions"),
        *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", *names),
        *([] if durable else ["--no-sync"]),
    ]
    binaries.run(identity.prefix, "initdb", options, cwd=folder.parent)
    single = [
        "--single",
        *([] if durable else ["-F"]),
        "-c",
        "exit_on_error=on",
        "-D",
        str(folder),
        "postgres",
    ]
    create = f"CREATE DATABASE {DATABASE};\n"
    binaries.run(identity.prefix, "postgres", single, cwd=folder.parent, stdin=create)


def _check_version(layout: Layout) -> None:
    try:
        found = (layout.cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise EmbeddedServerError(
            f"{layout.cluster} is not a PostgreSQL data directory: move it away, or set PLANNER_DATA_DIR"
        ) from None
    if found != (bundled := binaries.major_version()):
        raise EmbeddedServerError(
            f"the data in {layout.cluster} is of PostgreSQL {found}, the embedded server is {bundled}: "
            "dump it with the version that wrote it, or set PLANNER_DATA_DIR to a new folder",
            found=found,
            bundled=bundled,
        )
