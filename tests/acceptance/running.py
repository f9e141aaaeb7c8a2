"""What running a command gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SCOPE = "cli"


@dataclass(frozen=True)
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        assert self.code in (0, 3), self.err
        return json.loads(self.out)

    @property
    def problem(self) -> dict[str, Any]:
        """The one problem object on stderr."""
        assert self.code != 0
        problem = json.loads(self.err)
        assert {"type", "title", "detail", "code"} <= set(problem)
        return problem


Cli = Callable[..., Ran]
