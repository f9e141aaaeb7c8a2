"""A released migration is never edited: a database that ran it would differ from one that runs it now."""

from __future__ import annotations

from alembic.config import Config
from alembic.script import ScriptDirectory
from blake3 import blake3

from planner.store.resources import head_revision, migrations_dir, revisions


def test_every_migration_is_listed_with_its_hash_in_frozen_txt() -> None:
    folder = migrations_dir()
    listed = (folder / "frozen.txt").read_text(encoding="utf-8").splitlines()
    wanted = [
        f"{blake3(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted((folder / "versions").iterdir())
        if path.suffix in (".py", ".sql")
    ]
    assert [line for line in listed if not line.startswith("#")] == wanted


def test_revisions_are_one_line_and_are_named_for_their_files() -> None:
    config = Config()
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    found = ScriptDirectory.from_config(config)
    assert found.get_heads() == [head_revision()]
    assert tuple(script.revision for script in found.walk_revisions())[::-1] == revisions()
