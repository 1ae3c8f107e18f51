"""Tables of an older unhans become those of this one: all steps in one transaction, after a copy was made."""

from __future__ import annotations

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from unhans.errors import ProjectProblem
from unhans.store.copying import copy_sqlite

_STEPS = Path(__file__).parent / "migrations"


def migrate(connection: Connection, file: Path | None, create: bool) -> None:
    """Bring the tables to the newest version inside the caller's transaction; refuse those that are newer still."""
    config = Config()
    config.set_main_option("script_location", str(_STEPS).replace("%", "%%"))
    config.attributes["connection"] = connection
    newest, known = _versions(config)
    found = MigrationContext.configure(connection).get_current_revision()
    if found == newest:
        return
    if found is None and not create:
        raise ProjectProblem("The database has no tables of unhans. Nothing was changed; bring it back from a backup.")
    if found is not None and found not in known:
        raise ProjectProblem("The database was made by a newer version of unhans. Nothing was changed; update unhans.")
    if found is not None and file is not None:
        # the copy reads the last committed state; this transaction holds the lock, so nobody changes it meanwhile
        copy_sqlite(file, file.with_name(f"{file.stem}.before-{found}{file.suffix}"))
    logging.getLogger("alembic").setLevel(logging.WARNING)
    command.upgrade(config, "head")


def _versions(config: Config) -> tuple[str | None, set[str]]:
    scripts = ScriptDirectory.from_config(config)
    return scripts.get_current_head(), {step.revision for step in scripts.walk_revisions()}
