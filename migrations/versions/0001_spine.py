"""The spine: every table of the store and of the trace. The DDL is `0001_spine.sql`, beside this file."""

from __future__ import annotations

from pathlib import Path

from alembic import context, op

revision = "0001_spine"
down_revision = None


def upgrade() -> None:
    """Run the DDL as it stands, one statement at a time: Citus parses a query again for each shard.

    A statement ends with `;` at the end of a line, and nothing else does.
    """
    ddl = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    if context.is_offline_mode():
        op.get_context().impl.static_output(ddl)
        return
    for statement in filter(str.strip, ddl.split(";\n")):
        op.get_bind().exec_driver_sql(statement, execution_options={"no_parameters": True})
