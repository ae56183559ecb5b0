"""Decides who asks: a bearer token, a session cookie made from one, or anybody at this machine.

Used by every route, and by streams for as long as they are open. `Caller.tenants` says whose rows a
caller may see, and every query is held to it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends
from itsdangerous import BadSignature
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from livemart.serve.auth.attempts import Attempts
from livemart.serve.auth.book import TokenBook
from livemart.serve.auth.ended_sessions import EndedSessions, SessionId
from livemart.serve.auth.signing_key import SessionSigner, SigningKey
from livemart.serve.auth.this_machine import is_from_this_machine, is_loopback_host
from livemart.serve.auth.tokens import Token
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.rare_log import RareLog
from livemart.settings import Settings

_COOKIE = "livemart_session"
# A session is renewed once a quarter of it has passed: rarely, so that no answer that was under way
# at a sign-out brings it back.
_FRESH = 4
# However often it is renewed, a session ends so long after the sign-in.
_LONGEST = timedelta(days=7)
# Clocks of servers that share a key may differ by so much. A session that was signed later is of a
# clock that was ahead and was set back: it would last as long as that was ahead.
_AHEAD = timedelta(minutes=5)
_RENEWED = "renewed_session"


@dataclass(frozen=True, slots=True)
class Guard:
    """Holds the tokens and facts that callers are judged by.

    `book`: the tokens; `attempts`: wrong ones; `is_loopback`: the server is bound to this machine
    alone; `now`: the wall clock, UTC; `key`: signs sessions;
    `ended`: those that were signed out; `log`: who came in, left or was refused.
    """

    book: TokenBook
    attempts: Attempts
    is_loopback: bool
    now: Callable[[], datetime]
    key: SigningKey = field(default_factory=SigningKey)
    ended: EndedSessions = field(default_factory=EndedSessions)
    log: RareLog = field(default_factory=RareLog)

    @property
    def is_open(self) -> bool:
        """True if anybody at this machine is an admin: bound to loopback, and no token was made."""
        return self.is_loopback and self.book.is_empty


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller, and the rows that it may see.

    A query is held to the rows of `tenants`, None for all. `token_id` is None at this machine
    without tokens. The caller may send records to `sources`. `session` is that of a browser.
    """

    tenants: frozenset[str] | None
    token_id: str | None = None
    ends_at: datetime | None = None
    sources: frozenset[str] = frozenset()
    session: SessionId | None = None

    @property
    def is_admin(self) -> bool:
        """True if this caller may read everything."""
        return self.tenants is None

    @property
    def is_local(self) -> bool:
        """True if no one has to show a token here."""
        return self.token_id is None

    def may_see(self, tenant_id: str) -> bool:
        """Return True if the tenant, should there be one of this id, is this caller's."""
        return self.tenants is None or tenant_id in self.tenants


@dataclass(frozen=True, slots=True)
class Session:
    """A signed session, to be kept by the browser."""

    value: str
    lasts: timedelta
    is_secure: bool

    def keep(self, response: Response) -> None:
        """Set the cookie: no script reads it, no other site sends it along with a form."""
        response.set_cookie(
            cookie_name(self.is_secure),
            self.value,
            max_age=int(self.lasts.total_seconds()),
            path="/",
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )


def cookie_name(is_secure: bool) -> str:
    """Return the name of the session's cookie.

    A browser takes a cookie whose name begins with `__Host-` from no other host, and not over plain
    http. So a neighbouring site cannot put its own in its place.
    """
    return f"__Host-{_COOKIE}" if is_secure else _COOKIE


def sign_in(request: Request, token: str, *, ends_others: bool = False) -> Session:
    """Return a new session of a valid token; the browser's previous one ends.

    `ends_others`: so do all other sessions of the token, in every browser.

    Raises:
        ProblemError: ORIGIN_REFUSED, TOKEN_REFUSED, TOO_MANY_ATTEMPTS, STORE_UNREACHABLE.
    """
    check_origin(request)
    valid_token = _verify(request, token.strip())
    guard = part_of(request, Guard)
    _end_session(request)
    began = int(guard.now().timestamp())
    if ends_others:
        guard.ended.add_all(valid_token.token_id, began)
        # Later than all that have ended.
        began += 1
    _tell(request, "signed_in", valid_token.token_id)
    session = SessionId(valid_token.token_id, secrets.token_hex(8), began)
    return _session_of(request, valid_token, session)


def renewed_session(scope: Mapping[str, Any]) -> str | None:
    """Return the header `Set-Cookie` of a session that is used and a while old, or None.

    A page that stays open all day would be signed out in the middle of service.
    """
    session = scope.get("state", {}).get(_RENEWED)
    if not isinstance(session, Session):
        return None
    response = Response()
    session.keep(response)
    return response.headers["set-cookie"]


def sign_out(request: Request, response: Response) -> None:
    """End the session, at the server and in the browser: a copy of the cookie opens nothing.

    Raises:
        ProblemError: ORIGIN_REFUSED.
    """
    check_origin(request)
    if (session := _end_session(request)) is not None:
        _tell(request, "signed_out", session.token_id)
    is_secure = _is_secure(request)
    name = cookie_name(is_secure)
    response.delete_cookie(name, path="/", secure=is_secure, httponly=True, samesite="lax")


def current_caller(request: Request) -> Caller:
    """Return who asks.

    Raises:
        ProblemError: TOKEN_MISSING, TOKEN_REFUSED, TOO_MANY_ATTEMPTS, HOST_REFUSED,
            STORE_UNREACHABLE (also if the tokens could not be read for long).
    """
    guard = part_of(request, Guard)
    _require_trust(guard)
    header = request.headers.get("authorization")
    if header is None and guard.is_open:
        # A proxy, or a foreign site's own name for this machine, is not 'here'.
        if not is_from_this_machine(request):
            raise ProblemError("HOST_REFUSED", "without tokens only 127.0.0.1 or localhost may ask")
        return Caller(tenants=None)
    if header is not None:
        if (text := _bearer_of(request)) is None:
            raise _refuse(request, "not a bearer token")
        return _caller_of(_verify(request, text), None)
    if _cookie_of(request) is not None:
        return _caller_of_session(request)
    raise ProblemError("TOKEN_MISSING", "send `Authorization: Bearer <token>`, or sign in")


def shown_token_id(request: Request) -> str | None:
    """Return the id of the token that a request shows, or its session; None if it shows none.

    Only that it is no other's: it may be revoked or expired.
    """
    if "authorization" in request.headers:
        text = _bearer_of(request)
        token = None if text is None else part_of(request, Guard).book.find(text)
        return None if token is None else token.token_id
    signed = _signed(request)
    return None if signed is None else signed[0].token_id


async def require_caller(request: Request) -> Caller:
    """Return who asks; on the event loop, since it asks only memory.

    A token that looks like one and is not known may be a moment old: it is looked for once more.
    """
    text, book = _bearer_of(request), part_of(request, Guard).book
    if text is not None and book.is_unknown(text):
        await book.learn_soon()
    return current_caller(request)


CallerOf = Annotated[Caller, Depends(require_caller)]


async def require_admin(caller: CallerOf) -> Caller:
    """Return who asks, if it may read everything; to any other there is no such path.

    Raises:
        ProblemError: NOT_FOUND.
    """
    if not caller.is_admin:
        raise ProblemError("NOT_FOUND", "no such path; /openapi.json lists all")
    return caller


AdminOf = Annotated[Caller, Depends(require_admin)]


def is_still_allowed(request: HTTPConnection, caller: Caller) -> bool:
    """Return False once the token of a stream is revoked or expired, or its session over."""
    guard = part_of(request, Guard)
    now = guard.now()
    if not guard.book.is_trusted:
        return False
    if caller.token_id is None:
        return guard.is_open
    if caller.session is not None and guard.ended.has(caller.session):
        return False
    token = guard.book.by_id(caller.token_id)
    is_over = caller.ends_at is not None and now >= caller.ends_at
    return token is not None and token.is_valid(now) and not is_over


def check_origin(request: Request) -> None:
    """Refuse a form that another site sent; a browser names the origin, other clients need not.

    Raises:
        ProblemError: ORIGIN_REFUSED.
    """
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    public_url = part_of(request, Settings).public_url
    ours = {request.headers.get("host", ""), urlsplit(public_url or "").netloc} - {""}
    # An origin is a scheme and a host. Any other text is none of ours, also one that no URL can be.
    is_foreign = origin is not None and origin.partition("://")[2] not in ours
    if is_foreign or site not in ("same-origin", "none"):
        raise ProblemError("ORIGIN_REFUSED", "send the form from the page itself")


def keeps_no_session(request: Request) -> bool:
    """Return True if a browser will not keep the session: on http, and not at this machine.

    Only on https or this machine does a browser say where a request comes from; behind a proxy that
    ends https the request is http here all the same.
    """
    is_encrypted = request.url.scheme == "https" or "sec-fetch-site" in request.headers
    forwarded_proto = request.headers.get("x-forwarded-proto", "")
    return _is_secure(request) and not (is_encrypted or forwarded_proto.startswith("https"))


def _bearer_of(request: Request) -> str | None:
    """Return the text of the bearer token that a request shows; None if it shows none."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else None


def _cookie_of(request: Request) -> str | None:
    return request.cookies.get(cookie_name(_is_secure(request)))


def _verify(request: Request, text: str) -> Token:
    guard = part_of(request, Guard)
    _require_trust(guard)
    token, now = guard.book.find(text), guard.now()
    if token is None:
        raise _refuse(request, "unknown")
    if not token.is_valid(now):
        raise _refuse(request, token.state(now), token.token_id)
    return token


def _caller_of(token: Token, ends_at: datetime | None, session: SessionId | None = None) -> Caller:
    ends = [moment for moment in (token.expires_at, ends_at) if moment is not None]
    tenants = None if token.scope == "admin" else token.tenants
    return Caller(tenants, token.token_id, min(ends, default=None), token.sources, session)


def _caller_of_session(request: Request) -> Caller:
    guard = part_of(request, Guard)
    lasts = timedelta(hours=part_of(request, Settings).session_hours)
    signed = _signed(request)
    if signed is None:
        raise _refuse(request, "session of another key")
    session, signed_at = signed
    ends_at = min(signed_at + lasts, _last_end(request, session))
    token, now = guard.book.by_id(session.token_id), guard.now()
    is_over = now >= ends_at or signed_at > now + _AHEAD or guard.ended.has(session)
    if token is None or not token.is_valid(now) or is_over:
        raise _refuse(request, "session is over")
    if signed_at + lasts - now < lasts - lasts / _FRESH:
        setattr(request.state, _RENEWED, _session_of(request, token, session))
    return _caller_of(token, ends_at, session)


def _end_session(request: Request) -> SessionId | None:
    """End the session that the browser has, at the server; return it, None if it has none."""
    guard = part_of(request, Guard)
    signed = _signed(request)
    if signed is None:
        return None
    session, _ = signed
    ends_at = session.began + int(_longest(request).total_seconds())
    guard.ended.add(session, int(guard.now().timestamp()), ends_at)
    return session


def _signed(request: Request) -> tuple[SessionId, datetime] | None:
    """Return the session of the cookie, and when that was signed; None if it is none of ours."""
    if (cookie := _cookie_of(request)) is None:
        return None
    signer = SessionSigner(part_of(request, Guard).key.text)
    try:
        value, signed_at = signer.unsign(cookie, return_timestamp=True)
    except BadSignature:
        return None
    session = SessionId.read(value.decode("ascii", "replace"))
    return None if session is None else (session, signed_at.astimezone(UTC))


def _session_of(request: Request, token: Token, session: SessionId) -> Session:
    """Return a session as it is signed now, at its begin or when it is renewed.

    It never outlives its token.
    """
    guard = part_of(request, Guard)
    now = guard.now()
    lasts = timedelta(hours=part_of(request, Settings).session_hours)
    lasts = min(lasts, _last_end(request, session) - now)
    if token.expires_at is not None:
        lasts = min(lasts, token.expires_at - now)
    signer = SessionSigner(guard.key.text)
    return Session(signer.sign(str(session)).decode(), lasts, _is_secure(request))


def _longest(request: Request) -> timedelta:
    return max(_LONGEST, timedelta(hours=part_of(request, Settings).session_hours))


def _last_end(request: Request, session: SessionId) -> datetime:
    return datetime.fromtimestamp(session.began, UTC) + _longest(request)


def _refuse(request: Request, reason: str, token_id: str | None = None) -> ProblemError:
    """Return one answer for every kind of wrong token; the log says which it was."""
    guard, address = part_of(request, Guard), _address_of(request)
    # By reason, not by address: a client with many addresses could fill a disk with lines.
    keys: dict[str, Any] = {"reason": reason, "token_id": token_id, "address": address}
    guard.log.tell("token_refused", reason, **keys)
    if guard.attempts.is_one_too_many(address):
        return ProblemError("TOO_MANY_ATTEMPTS", "wait before the next attempt")
    return ProblemError("TOKEN_REFUSED", "it is unknown, expired or revoked; sign in again")


def _tell(request: Request, event: str, token_id: str) -> None:
    log = part_of(request, Guard).log
    log.tell(event, token_id, level="info", token_id=token_id, address=_address_of(request))


def _address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def _require_trust(guard: Guard) -> None:
    if not guard.book.is_trusted:
        raise ProblemError("STORE_UNREACHABLE", "tokens cannot be read at the moment; try again")


def _is_secure(request: Request) -> bool:
    """A browser keeps a secure cookie on https alone, and a plain one only this machine sees."""
    public_url = part_of(request, Settings).public_url or ""
    return public_url.startswith("https:") or not is_loopback_host(request)
