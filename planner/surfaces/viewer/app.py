"""The viewer as an application: its routes, who is let in, and the headers of its answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from planner.errors import Forbidden, PlannerError, Unauthorized
from planner.surfaces.http.asgi import header, sending
from planner.surfaces.http.logs import failed, note, note_error
from planner.surfaces.http.problems import BadMethod, NoRoute, TooLarge, status_of, unexpected
from planner.surfaces.http.security import HEADERS, Access
from planner.surfaces.http.service import Part, Service, while_there
from planner.surfaces.viewer import views
from planner.surfaces.viewer.links import Links
from planner.surfaces.viewer.render import STATIC, render
from planner.surfaces.viewer.sessions import COOKIE, LIFETIME_SECONDS, Sessions, new_id
from planner.surfaces.viewer.visit import Answer, Page, PlainText, Redirect, Visit

View = Callable[[Visit], Answer]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""What a page may load and send: its own files and forms, nothing inline, nothing from elsewhere."""

OURS = {**HEADERS, "Content-Security-Policy": POLICY, "Referrer-Policy": "same-origin"}
"""The headers of a page. Without any referrer a browser would hide from us that a form is our own."""

MAX_FORM_BYTES = 64 * 1024

FOREVER = "public, max-age=31536000, immutable"


class ForgedForm(Forbidden):
    """The form does not belong to this session; load the page again and send it once more"""


def part(service: Service, path: str = "/ui") -> Part:
    """Return the viewer as a part of the application that `create_app` makes."""
    return Part([Route(path, lambda _: RedirectResponse(f"{path}/")), Mount(path, create_viewer(service))])


def create_viewer(service: Service) -> Starlette:
    """Return the viewer of a service, to be mounted wherever it is to stand."""
    desk = Desk(service)
    pages = [Route(path, desk.page(view), methods=["GET"]) for path, view in views.PAGES.items()]
    forms = [Route(path, desk.page(view), methods=["POST"]) for path, view in views.FORMS.items()]
    doors = [
        Route("/login", desk.login_page, methods=["GET"]),
        Route("/login", desk.login, methods=["POST"]),
        Route("/logout", desk.logout, methods=["POST"]),
        Mount("/static", Kept(StaticFiles(directory=STATIC))),
    ]
    return Starlette(
        routes=[*doors, *pages, *forms],
        exception_handlers={404: desk.missing, 405: desk.missing},
    )


class Kept:
    """Middleware by which browsers keep our files: their address changes with what they hold."""

    def __init__(self, app: ASGIApp) -> None:
        """Wrap an application."""
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Add the header to what was found."""

        def keep(message: Message, headers: MutableHeaders) -> None:
            headers.update(HEADERS)
            if message["status"] < 300:
                headers["Cache-Control"] = FOREVER

        await self.app(scope, receive, sending(send, keep))


class Desk:
    """Lets requests in and answers them; the pages themselves are functions that run in a thread."""

    def __init__(self, service: Service) -> None:
        """Take what the surfaces of the application share."""
        self.service = service
        self.sessions = Sessions()

    def page(self, view: View) -> Callable[[Request], Any]:
        """Return the endpoint of a page or a form."""

        async def endpoint(request: Request) -> Response:
            links = _links(request)
            session = request.cookies.get(COOKIE) or ""
            try:
                access = await self._access(session)
            except Unauthorized:
                self.sessions.close(session)
                return _leave(links, request)
            try:
                form = await self._form(request, session) if request.method == "POST" else {}
                query = request.query_params
                several = {name: tuple(query.getlist(name)) for name in query}
                visit = Visit(
                    self.service.planner, access, links, request.path_params, dict(query), form, several
                )
                return await self._answer(request, lambda: self._rendered(view, visit, request, session))
            except PlannerError as error:
                note_error(request.scope, error)
                return self._error(request, error, access)
            except Exception as error:  # the error page is HTML here, whatever went wrong
                failed("failed", error)
                return self._error(request, unexpected(), access)

        return endpoint

    async def login_page(self, request: Request) -> Response:
        """Ask for a token; without tokens there is nothing to ask for."""
        if not self.service.tokens:
            return RedirectResponse(_links(request).home, 303)
        return self._login(request)

    async def login(self, request: Request) -> Response:
        """Take a token, and begin a session of a new id."""
        links, session = _links(request), request.cookies.get(COOKIE) or ""
        try:
            form = await self._form(request, session)
            token = form.get("token", "").strip()
            grant = await self._call(self.service.planner.authenticate, token)
            access = Access(grant)
            access.require("inspect")
            access.require("read")
        except PlannerError as error:
            note_error(request.scope, error)
            return self._login(request, error)
        response = RedirectResponse(_within(form.get("next", ""), links), 303)
        self.sessions.close(session)
        _set_cookie(response, request, self.sessions.open(token))
        return response

    async def logout(self, request: Request) -> Response:
        """End the session."""
        session = request.cookies.get(COOKIE) or ""
        try:
            await self._form(request, session)
        except PlannerError as error:
            return self._error(request, error, None)
        self.sessions.close(session)
        response = RedirectResponse(_links(request).login, 303)
        response.delete_cookie(COOKIE, path=_links(request).root or "/")
        return response

    async def missing(self, request: Request, error: Exception) -> Response:
        """Answer what no page is at."""
        wrong = BadMethod() if getattr(error, "status_code", 404) == 405 else NoRoute()
        return self._error(request, wrong, None)

    async def _access(self, session: str) -> Access:
        """Return what a session may reach. Raises Unauthorized, StoreError."""
        if not self.service.tokens:
            return Access()
        token = self.sessions.token(session)
        if token is None:
            raise Unauthorized("no session")
        return Access(await self._call(self.service.planner.authenticate, token))

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        return await self.service.calls.run(function, *args, deadline_ms=self.service.limits.deadline_ms)

    async def _answer(self, request: Request, work: Callable[[], Response]) -> Response:
        response: Response = await while_there(request, lambda: self._call(work))
        return response

    async def _form(self, request: Request, session: str) -> Mapping[str, str]:
        """Return the fields of a form of ours. Raises TooLarge, ForgedForm."""
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_FORM_BYTES:
                raise TooLarge(f"a form may have {MAX_FORM_BYTES} bytes at most", limit=MAX_FORM_BYTES)
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not (session and self.sessions.is_form_token(session, fields.pop("form_token", ""))):
            raise ForgedForm()
        return fields

    def _rendered(self, view: View, visit: Visit, request: Request, session: str) -> Response:
        """Make a page and its HTML, in a thread."""
        for permission in ("inspect", "read"):
            visit.access.require(permission)
        if "scope" in visit.path:
            visit.access.scope(visit.path["scope"])  # whatever else is asked, another's is as none
        answer = view(visit)
        if isinstance(answer, Redirect):
            return RedirectResponse(answer.url, 303)
        if isinstance(answer, PlainText):
            return PlainTextResponse(
                answer.text.encode("utf-8", "backslashreplace"),
                headers={"Content-Security-Policy": f"{POLICY}; sandbox", "Cache-Control": "no-store"},
            )
        note(request.scope, plan=_plan_of(visit))
        return self._html(request, answer, visit.access)

    def _login(self, request: Request, error: PlannerError | None = None) -> Response:
        asked = request.query_params.get("next", "")
        status = 200 if error is None else status_of(error.code)
        page = Page("login.html", {"error": error, "next": asked}, status)
        return self._html(request, page, None)

    def _error(self, request: Request, error: PlannerError, access: Access | None) -> Response:
        status = status_of(error.code)
        return self._html(request, Page("error.html", {"error": error, "status": status}, status), access)

    def _html(self, request: Request, page: Page, access: Access | None) -> Response:
        """Render a page, and give a visitor without a session one to whom forms can be bound."""
        session = request.cookies.get(COOKIE) or new_id()
        context = {
            "links": _links(request),
            "form_token": self.sessions.form_token(session),
            "grant": access.grant if access else None,
            "is_in": access is not None,
            "tokens": self.service.tokens,
            "now": self.service.planner.engine.clock(),
            "scope": request.path_params.get("scope"),
            "tab": page.template.removesuffix(".html"),
            **page.context,
        }
        html = render(page.template, context)
        response = HTMLResponse(html.encode("utf-8", "backslashreplace"), page.status)
        response.headers.update(OURS)
        if COOKIE not in request.cookies:
            _set_cookie(response, request, session)
        return response


def _links(request: Request) -> Links:
    return Links(request.scope.get("root_path", "").rstrip("/"))


def _leave(links: Links, request: Request) -> Response:
    """Send a visitor without a session to the door, and back afterwards where it asked for a page."""
    here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = links.login if request.method != "GET" else f"{links.login}?{urlencode({'next': here})}"
    return RedirectResponse(target, 303)


def _within(target: str, links: Links) -> str:
    """Return an address where it is one of ours, else the first page."""
    parts = urlsplit(target)
    is_ours = not parts.scheme and not parts.netloc and target.startswith(f"{links.root}/")
    return target if is_ours and not target.startswith("//") and "\\" not in target else links.home


def _set_cookie(response: Response, request: Request, session: str) -> None:
    response.set_cookie(
        COOKIE,
        session,
        max_age=LIFETIME_SECONDS,
        path=_links(request).root or "/",
        secure="https" in (request.url.scheme, header(request.scope, "x-forwarded-proto")),
        httponly=True,
        samesite="strict",
    )


def _plan_of(visit: Visit) -> str | None:
    return f"{visit.path['scope']}:{visit.path['plan']}" if "plan" in visit.path else None
