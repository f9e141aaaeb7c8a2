"""How a migration runs the DDL that lies beside it."""

from __future__ import annotations

from pathlib import Path

from alembic import context, op


def run_ddl(path: Path) -> None:
    """Run a file as it stands, one statement at a time: Citus parses a query again for each shard.

    A statement ends with `;` at the end of a line, and nothing else does. Offline the file is printed.
    """
    ddl = path.read_text(encoding="utf-8")
    if context.is_offline_mode():
        op.get_context().impl.static_output(ddl)
        return
    for statement in filter(str.strip, ddl.split(";\n")):
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
