"""Who runs PostgreSQL: it refuses root."""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from planner.embedded import binaries
from planner.errors import EmbeddedServerError


@dataclass(frozen=True, slots=True)
class Identity:
    """What to put before a command, and the ids that then own its files, as seen from here."""

    prefix: tuple[str, ...]
    uid: int
    gid: int

    def own(self, path: Path) -> None:
        """Hand a file or folder that we made to the identity."""
        if self.uid != os.geteuid():
            os.chown(path, self.uid, self.gid)

    def let_in(self, home: Path) -> None:
        """Let the identity pass through our own folder to what it owns inside."""
        if self.uid != os.geteuid():
            home.chmod(0o711)


def choose(cluster: Path) -> Identity:
    """Return who may run the server of `cluster`.

    An ordinary user runs it. Root runs it as another user of a user namespace, in which the files stay
    root's; where namespaces are denied (most containers), as `nobody`; a cluster of somebody else as its
    owner. Raises EmbeddedServerError where nobody can.
    """
    me, owner = os.geteuid(), _owner(cluster)
    if me != 0:
        if owner not in (None, me):
            raise EmbeddedServerError(
                f"the data folder {cluster.parent} belongs to user {owner}, not to user {me}: "
                "set PLANNER_DATA_DIR to a folder of your own"
            )
        return Identity((), me, os.getegid())
    if sys.platform == "darwin":
        raise EmbeddedServerError("PostgreSQL refuses to run as root: run this as an ordinary user")
    candidates = [] if owner else _namespaced()
    if owner != 0:
        candidates += _demoted(owner)
    for identity in candidates:
        if _works(identity):
            return identity
    raise EmbeddedServerError(
        "PostgreSQL refuses to run as root, and neither in a user namespace (unshare) nor as another user "
        f"(setpriv) could {binaries.program('postgres')} be run: run this as an ordinary user"
    )


def _owner(cluster: Path) -> int | None:
    return cluster.stat().st_uid if cluster.exists() else None


def _namespaced() -> list[Identity]:
    unshare = shutil.which("unshare")
    if unshare is None:
        return []
    name = _nobody()  # initdb looks its user up, so the id must have an entry
    ids = (f"--map-user={name.pw_uid}", f"--map-group={name.pw_gid}")
    return [Identity((unshare, "--user", *ids, "--"), 0, 0)]


def _demoted(owner: int | None) -> list[Identity]:
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return []
    entry = pwd.getpwuid(owner) if owner else _nobody()
    ids = (f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", "--no-new-privs")
    return [Identity((setpriv, *ids, "--"), entry.pw_uid, entry.pw_gid)]


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def _works(identity: Identity) -> bool:
    try:
        binaries.run(identity.prefix, "postgres", ["--version"], cwd=Path(os.sep))
    except EmbeddedServerError:
        return False
    return True
