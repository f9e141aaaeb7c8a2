"""`planner serve` as a process of its own, whose log is read line by line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

COMMAND = (
    sys.executable,
    "-c",
    "import sys; from planner.surfaces.cli import main; sys.exit(main())",
    "serve",
)


@dataclass
class Served:
    """A process that serves: its URL, and what it has logged so far."""

    process: subprocess.Popen[str]
    url: str
    logged: list[dict[str, Any]]
    reader: threading.Thread

    def stop(self) -> int:
        """Tell it to stop; return its exit code, its whole log read."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self) -> int:
        """Wait until it has ended; return its exit code."""
        self.reader.join()
        return self.process.wait()


@contextmanager
def served(*arguments: str) -> Iterator[Served]:
    """Run `planner serve --json` on a free port with these arguments, once it says that it serves."""
    command = [*COMMAND, "--json", "--port", "0", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        stderr = process.stderr
        assert stderr is not None
        first = json.loads(stderr.readline())
        assert first.get("event") == "serving", first
        logged = [first]

        def read() -> None:  # a pipe that nobody reads fills up, and holds whoever writes to it
            logged.extend(json.loads(line) for line in stderr)

        reader = threading.Thread(target=read)
        reader.start()
        try:
            yield Served(process, first["url"], logged, reader)
        finally:
            process.kill()
            reader.join()
