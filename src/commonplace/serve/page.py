"""The page over HTTP: sessions, the login, CSRF, security headers, and faults as sentences.

What the pages say and do is in `commonplace.ui`, which is loaded by the first request for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, quote, unquote

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect

from commonplace.serve.context import RECORD, AppContext
from commonplace.serve.http_io import CLIENT_GONE, read_body, send_reply
from commonplace.serve.page_sessions import Sessions
from commonplace.serve.routes import STATUS, ProtocolRoutes, Reply
from commonplace.serve.telemetry import log_bug
from commonplace.wire.errors import Fault, Forbidden, NotFound, Unauthenticated, ValidationError, internal_error
from commonplace.wire.record import Principal

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from commonplace.ui.page import Answer, Download, PageRequest

PREFIX = "/ui"
HTML = "text/html; charset=utf-8"
#: Nothing inline, nothing from elsewhere, in nobody's frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
#: A picture may be styled by itself, and may do nothing else.
_PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    # `no-referrer` would make browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
_MAX_FIELDS = 5000
_STALE_FORM = (
    "this form is of another session, or from before the server was started again: load the page and try again"
)


class PageEndpoint:
    def __init__(self, context: AppContext) -> None:
        self._context = context
        self._sessions = Sessions(context.engine.clock)
        self._kept: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visit = Visit(scope, self._sessions)
        try:
            async with asyncio.timeout(self._context.config.request_timeout):
                reply = await self._reply(visit, receive)
        except ClientDisconnect:
            scope[RECORD].status = CLIENT_GONE
            return
        except Fault as fault:
            reply = self._refusal(visit, fault)
        except TimeoutError:
            reply = self._refusal(visit, self._context.timed_out())
        except Exception as error:
            log_bug(scope[RECORD].operation, error, id=scope[RECORD].id)
            reply = self._refusal(visit, internal_error(id=scope[RECORD].id))
        if isinstance(reply, Reply):
            await send_reply(scope, send, reply)
        else:
            await _send_download(scope, send, reply)

    async def _reply(self, visit: Visit, receive: Receive) -> Reply | Download:
        record, path = visit.scope[RECORD], visit.path
        if path.startswith("static/"):
            record.operation = "page_static"
            return _static(path.removeprefix("static/"))
        if visit.comes_from_elsewhere:
            record.operation = "page_bounce"
            return Reply(_bounce(visit), 200, {**_HEADERS, "Content-Type": HTML})  # the cookie that is there stays
        if visit.method == "POST":
            visit.form = await self._form(visit, receive)
        if path in ("login", "logout"):
            record.operation = f"page_{path}"
            return await (self._login(visit) if path == "login" else self._logout(visit))
        return await self._page(visit)

    async def _page(self, visit: Visit) -> Reply | Download:
        from commonplace.ui.page import PageRequest
        from commonplace.ui.routes import find_route

        record = visit.scope[RECORD]
        found = find_route("GET" if visit.method == "HEAD" else visit.method, visit.path)
        if not isinstance(found, list):
            record.operation = found[0].operation
        try:
            who, visit.open = await self._admit(visit)
        except Unauthenticated:
            if visit.method == "POST":
                raise
            return visit.redirect(f"{visit.base}/login?next={quote(visit.target, safe='')}")
        visit.who = record.who = who
        self._context.authenticator.spend(who)
        if isinstance(found, list):
            if found:
                raise ValidationError(f"{visit.method[:20]} does not work here")
            raise NotFound("there is no such page")
        route, named = found
        latencies = self._context.metrics.latencies if who.is_operator else dict
        call = PageRequest(
            self._context.engine, who, named, visit.query, visit.form, visit.base, visit.fragment, latencies, self._kept
        )
        return await self._send(visit, call, await route.handler(call))

    async def _send(self, visit: Visit, call: PageRequest, answer: Answer) -> Reply | Download:
        from commonplace.ui.page import Redirect, TemplatePage
        from commonplace.ui.routes import tabs

        if isinstance(answer, Redirect):
            return visit.redirect(answer.to)
        if isinstance(answer, TemplatePage):
            waiting, more = ([], None) if visit.fragment else await call.engine.reviews.page(call.who, limit=99)
            values = {
                **visit.values, "call": call, "tabs": tabs(call), "now": self._context.engine.clock(),
                "waiting": f"{len(waiting)}{'+' if more else ''}" if waiting else "", **answer.values,
            }  # fmt: skip
            return visit.reply(_render(answer.template, values), answer.status)
        return answer

    async def _admit(self, visit: Visit) -> tuple[Principal, bool]:
        token = self._sessions.token(visit.session)
        return await self._context.authenticator.admit(None if token is None else f"Bearer {token}")

    async def _form(self, visit: Visit, receive: Receive) -> Mapping[str, list[str]]:
        """What was sent, if it is from a form of this session."""
        headers = Headers(scope=visit.scope)
        if headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            raise ValidationError("send a form as the page does")
        body = await read_body(headers, receive, self._context.config.max_body)
        try:
            form = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            raise ValidationError("the form could not be read") from None
        if not self._sessions.is_csrf(visit.session, next(iter(form.get("csrf", ())), "")):
            raise Forbidden(_STALE_FORM)
        return form

    async def _login(self, visit: Visit) -> Reply:
        wanted = _own_path(visit.base, next(iter(visit.form.get("next", ())), visit.query.get("next", "")))
        problem, status = None, 200
        if visit.method == "POST":
            token = next(iter(visit.form.get("token", ())), "").strip()
            try:
                who, _ = await self._context.authenticator.admit(f"Bearer {token}")
            except Unauthenticated as fault:
                problem, status = fault.summary, 401
                visit.scope[RECORD].fault = fault.code
            else:
                visit.scope[RECORD].who = who
                self._context.authenticator.spend(who)
                visit.renew(self._sessions.log_in(token, who))
                return visit.redirect(wanted)
        values = {**visit.values, "next": wanted, "problem": problem}
        return visit.reply(_render("login.html", values), status)

    async def _logout(self, visit: Visit) -> Reply:
        if visit.method == "POST":
            self._sessions.log_out(visit.session)
            visit.renew(self._sessions.fresh())
        return visit.redirect(f"{visit.base}/login")

    def _refusal(self, visit: Visit, fault: Fault) -> Reply:
        visit.scope[RECORD].fault = fault.code
        self._context.engine.redactor.redact_fault(fault, visit.scope[RECORD].who)
        values = {**visit.values, "sentence": fault.summary, "code": fault.code}
        return visit.reply(_render("error.html", values), STATUS[fault.code])


class Visit:
    """One request of a browser, and the session that it belongs to."""

    def __init__(self, scope: Scope, sessions: Sessions) -> None:
        self.scope = scope
        self._sessions = sessions
        self.method: str = scope["method"]
        prefix: str = scope[RECORD].prefix
        self.base = f"{prefix}{PREFIX}"
        self.path = scope["path"].removeprefix(PREFIX).strip("/")
        text = scope["query_string"].decode("latin-1")
        self.query = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=100)) if text else {}
        self.target = f"{self.base}/{quote(self.path)}" + (f"?{text}" if text else "")
        headers = Headers(scope=scope)
        self.fragment = headers.get("hx-request") == "true"
        self._site = headers.get("sec-fetch-site", "")
        self._secure = scope.get("scheme") == "https"
        # Cookies do not tell ports apart, and several servers may run on one machine.
        port = (scope.get("server") or ("", None))[1]
        # A cookie of the whole host, which `__Host-` stands for, would be that of whatever else is served there.
        secure = "__Secure-commonplace" if prefix else "__Host-commonplace"
        self._cookie = secure if self._secure else f"commonplace_{port}"
        self._cookie_path = "/" if self._cookie.startswith("__Host-") else self.base
        given = sessions.known(_cookie(headers, self._cookie))
        self._set = given is None
        self.session = given if given is not None else sessions.fresh()
        self.form: Mapping[str, list[str]] = {}
        self.who: Principal | None = None
        self.open = False

    @property
    def comes_from_elsewhere(self) -> bool:
        """Whether a link on another site led here: then the browser has kept the cookie back, which is SameSite."""
        return self._set and self.method == "GET" and self._site in ("cross-site", "same-site")

    def renew(self, session: str) -> None:
        self.session, self._set = session, True

    @property
    def values(self) -> dict[str, Any]:
        """What every template may name."""
        return {
            "base": self.base, "csrf": self._sessions.csrf(self.session), "who": self.who, "open": self.open,
            "active": self.path.partition("/")[0], "tabs": [], "waiting": "",
        }  # fmt: skip

    def reply(self, body: bytes, status: int = 200, **more: str) -> Reply:
        headers = {**_HEADERS, "Content-Type": HTML, **more}
        if self._set:
            secure = "; Secure" if self._secure else ""
            rest = f"Path={self._cookie_path}; HttpOnly; SameSite=Strict{secure}"
            headers["Set-Cookie"] = f"{self._cookie}={self.session}; {rest}"
        return Reply(body, status, headers)

    def redirect(self, to: str) -> Reply:
        # htmx follows a redirect and would put a whole page into a part of one.
        return self.reply(b"", 204, **{"HX-Redirect": to}) if self.fragment else self.reply(b"", 303, Location=to)


def _cookie(headers: Headers, name: str) -> str | None:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value


def _own_path(base: str, path: str) -> str:
    """Where to go after the login: a page of ours and nowhere else, as an address may spell it in a header."""
    own = path == base or path.startswith(f"{base}/")
    clean = all("!" <= c <= "~" and c != "\\" for c in path)
    # Browsers take dots for what they mean, encoded or not; proxies also slashes.
    leads_up = {".", ".."} & set(unquote(path.partition("?")[0].partition("#")[0]).split("/"))
    return path if own and clean and not leads_up else f"{base}/"


def _bounce(visit: Visit) -> bytes:
    return _render("bounce.html", {**visit.values, "to": visit.target})


def _render(template: str, values: Mapping[str, Any]) -> bytes:
    from commonplace.ui.templating import render

    return render(template, values)


def _static(name: str) -> Reply:
    from commonplace.ui.templating import CONTENT_TYPES, static_file

    content = static_file(name)
    if content is None:
        raise NotFound("there is no such file")
    kind = CONTENT_TYPES[name.rpartition(".")[2]]
    return Reply(content, 200, {**_HEADERS, **_FOR_EVER, "Content-Type": kind})


async def _send_download(scope: Scope, send: Send, answer: Download) -> None:
    """As it is made; the first piece is waited for, so that a refusal is still a page."""
    headers = {**_HEADERS, "Content-Type": answer.content_type, "Cache-Control": "no-store"}
    headers["X-Content-Type-Options"] = "nosniff"
    if answer.name:
        headers["Content-Disposition"] = f'attachment; filename="{answer.name}"'
    else:
        headers["Content-Security-Policy"] = _PICTURE_POLICY
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": 200, "headers": raw})
    if scope["method"] != "HEAD":
        async for chunk in answer.chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def _error_page(fault: Fault, prefix: str) -> bytes:
    """For what is refused before a page is asked: a foreign Host or Origin."""
    values: dict[str, Any] = {
        "base": f"{prefix}{PREFIX}",
        "csrf": "",
        "who": None,
        "open": False,
        "active": "",
        "tabs": [],
        "waiting": "",
    }
    return _render("error.html", {**values, "sentence": fault.summary, "code": fault.code})


#: It has no routes for machines; what is refused below its prefix is told to people.
PAGE = ProtocolRoutes(PREFIX, (), error_page=_error_page)
