"""Whether questions can be answered at this moment: the schema, the pool, the embedder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from planner.engine import Engine
from planner.errors import PlannerError, SchemaAhead, SchemaBehind, StoreBusy

OK, BUSY, UNKNOWN = "ok", "busy", "unknown"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Each part is `ok`, or the code of what is wrong; a pool may be `busy`, the schema `unknown` then."""

    schema: str
    pool: str
    embedder: str

    @property
    def ready(self) -> bool:
        """Whether questions can be answered; a pool that is busy answers some."""
        return self.embedder == OK and (self.pool == BUSY or (self.schema, self.pool) == (OK, OK))

    def to_dict(self) -> dict[str, Any]:
        """Return the state of each part as JSON data."""
        return {"ready": self.ready, "schema": self.schema, "pool": self.pool, "embedder": self.embedder}


def ready(engine: Engine) -> Readiness:
    """Look at each part. The embedder is made where it was not yet, but embeds nothing: that may cost."""
    schema, pool = _database(engine)
    try:
        engine.embedder()
        embedder = OK
    except PlannerError as error:
        embedder = error.code
    return Readiness(schema, pool, embedder)


def _database(engine: Engine) -> tuple[str, str]:
    """Return the states of the schema and of the pool."""
    try:
        engine.store.check_schema()
    except (SchemaBehind, SchemaAhead) as error:
        return error.code, OK
    except StoreBusy:
        return UNKNOWN, BUSY
    except PlannerError as error:
        return UNKNOWN, error.code
    return OK, OK
