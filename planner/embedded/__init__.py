"""The embedded server: PostgreSQL with pgvector from a wheel, run for as long as a client needs it.

Every client holds a shared lock that the kernel drops when the client dies, however it dies. A small
detached supervisor (`python -m planner.embedded`) is the parent of the server and ends it once the lock
has been free for a while. Locks, not pid files, say who is there.

Unix only: it needs flock and Unix sockets. Import it where it is used.
"""

from planner.embedded.server import EmbeddedServer, ServerStatus

__all__ = ["EmbeddedServer", "ServerStatus"]
