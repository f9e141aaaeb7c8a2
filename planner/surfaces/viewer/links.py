"""The addresses of the viewer's pages. A token is in none of them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlencode

from planner.types import PlanRef, SpanRef

Parameter = str | int | None


@dataclass(frozen=True, slots=True)
class Links:
    """Addresses below the path at which the viewer stands, such as `/ui`."""

    root: str

    @property
    def home(self) -> str:
        """The page that everybody begins at."""
        return f"{self.root}/"

    @property
    def login(self) -> str:
        """Where a token is given."""
        return f"{self.root}/login"

    @property
    def logout(self) -> str:
        """Where a session ends."""
        return f"{self.root}/logout"

    def static(self, name: str) -> str:
        """Return the address of a file of ours."""
        return f"{self.root}/static/{name}"

    def scope(self, scope: str, page: str = "", **query: Parameter) -> str:
        """Return a scope's overview, or a page of it: plans, sources, source, compare, expectations."""
        return _with(f"{self.root}/scopes/{quote(scope)}{'/' if page else ''}{page}", query)

    def plan(self, ref: PlanRef, page: str = "", **query: Parameter) -> str:
        """Return a plan's page, or another: pool, recall, why, bundle, verdict, expect."""
        return self.scope(ref.scope, f"plans/{ref.plan_id}{'/' if page else ''}{page}", **query)

    def source(self, scope: str, source_id: str, anchor: str = "", **query: Parameter) -> str:
        """Return the page of a source's text."""
        return self.scope(scope, "source", id=source_id, **query) + (f"#{anchor}" if anchor else "")

    def span(self, scope: str, ref: SpanRef, plan: PlanRef | None = None) -> str:
        """Return the place of a span in the text of its source, marked by what a plan made of it."""
        about = {"version": ref.version_tx, "plan": plan.plan_id if plan else None, "at": ref.start}
        return self.source(scope, ref.source_id, anchor_of(ref), **about)


def anchor_of(ref: SpanRef) -> str:
    """Return the name of a span on the page of its source."""
    return f"s{ref.version_tx}-{ref.start}-{ref.end}"


def _with(path: str, query: dict[str, Parameter]) -> str:
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
