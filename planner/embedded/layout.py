"""Where the files of an embedded server are."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from planner.errors import EmbeddedServerError

PORT = 5432  # of a Unix socket: only a part of its name
MAX_SOCKET_BYTES = 90  # sun_path holds 104 bytes on macOS, 108 on Linux; the server appends to the name


@dataclass(frozen=True, slots=True)
class Layout:
    """The files in the data folder `home`, an absolute path without symbolic links."""

    home: Path

    @classmethod
    def at(cls, data_dir: Path | None) -> Layout:
        """Return the layout of `data_dir`, by default the platform's folder for user data."""
        chosen = data_dir or platformdirs.user_data_path("planner", appauthor=False)
        return cls(chosen.expanduser().resolve())

    @property
    def cluster(self) -> Path:
        """PostgreSQL's own data directory; it exists only when initdb has finished."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """The log of the running server, or of the last one; the one before is beside it."""
        return self.home / "server.log"

    @property
    def start_lock(self) -> Path:
        """Held, exclusively, by who starts or stops the server."""
        return self.home / "start.lock"

    @property
    def clients_lock(self) -> Path:
        """Held, shared, by each client while it needs the server."""
        return self.home / "clients.lock"

    @property
    def supervisor_lock(self) -> Path:
        """Held, exclusively, by the supervisor while it lives; holds its pid."""
        return self.home / "supervisor.lock"

    @property
    def pin(self) -> Path:
        """Exists while the server shall stay without clients."""
        return self.home / "pinned"

    @property
    def socket_dir(self) -> Path:
        """The socket folder of the next server: a short name in the temporary folder, whatever `home` is."""
        name = f"planner-{hashlib.sha256(os.fsencode(self.home)).hexdigest()[:10]}-{os.geteuid()}"
        for parent in (Path(tempfile.gettempdir()), Path(os.sep, "tmp")):
            if len(os.fsencode(parent / name / f".s.PGSQL.{PORT}")) < MAX_SOCKET_BYTES:
                return parent / name
        raise EmbeddedServerError(f"no temporary folder has a name short enough for a socket: {parent}")
