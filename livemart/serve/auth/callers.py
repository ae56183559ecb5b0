"""Who asks: a bearer token, a session cookie made from one, or anybody at this very machine."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import structlog
from itsdangerous import BadSignature, TimestampSigner
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from livemart.serve.auth.tokens import Scope, Token
from livemart.serve.http.parts import serving_of
from livemart.serve.http.problems import ProblemError

_COOKIE = "livemart_session"
_SALT = "livemart.session"
# Whatever a proxy on this machine adds: such a request comes from elsewhere.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_KEPT_ADDRESSES = 10_000
# A session is renewed once a quarter of it has passed: rarely, so that no answer that was under way
# at a sign-out brings it back.
_FRESH = 4
_RENEWED = "renewed_session"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and what they may see. `token_id` is None at this machine without tokens."""

    scope: Scope
    restaurants: frozenset[str]
    token_id: str | None = None
    name: str = ""
    ends_at: datetime | None = None

    @property
    def is_admin(self) -> bool:
        """True if this caller may read everything."""
        return self.scope == "admin"

    @property
    def is_local(self) -> bool:
        """True if nobody has to show a token here."""
        return self.token_id is None

    @property
    def tenants(self) -> frozenset[str] | None:
        """The restaurants that a query is held to; None is all of them."""
        return None if self.is_admin else self.restaurants

    def may_see(self, restaurant_id: str) -> bool:
        """Return True if the restaurant, should there be one of this id, is this caller's."""
        return self.is_admin or restaurant_id in self.restaurants


@dataclass(frozen=True, slots=True)
class Session:
    """A signed session, to be kept by the browser."""

    value: str
    lasts: timedelta
    is_secure: bool

    def keep(self, response: Response) -> None:
        """Set the cookie: no script reads it, no other site sends it along with a form."""
        response.set_cookie(
            _COOKIE,
            self.value,
            max_age=int(self.lasts.total_seconds()),
            path="/",
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )


def sign_in(request: Request, token: str) -> Session:
    """Return the session of a valid token.

    Raises:
        ProblemError: ORIGIN_REFUSED, TOKEN_REFUSED, TOO_MANY_ATTEMPTS, STORE_UNREACHABLE.
    """
    check_origin(request)
    return _session_of(request, _verify(request, token.strip()))


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
    """Let the browser forget the session.

    Raises:
        ProblemError: ORIGIN_REFUSED.
    """
    check_origin(request)
    is_secure = _is_secure(request)
    response.delete_cookie(_COOKIE, path="/", secure=is_secure, httponly=True, samesite="lax")


def current_caller(request: Request) -> Caller:
    """Return who asks.

    Raises:
        ProblemError: TOKEN_MISSING, TOKEN_REFUSED, TOO_MANY_ATTEMPTS, HOST_REFUSED,
            STORE_UNREACHABLE (also if the tokens could not be read for long).
    """
    serving = serving_of(request)
    _require_trust(request)
    header = request.headers.get("authorization")
    if header is None and serving.is_open:
        _require_this_machine(request)
        return Caller("admin", frozenset())
    if header is not None:
        kind, _, text = header.partition(" ")
        if kind.lower() != "bearer":
            raise _refuse(request, "not a bearer token")
        return _caller_of(_verify(request, text.strip()), None)
    if (cookie := request.cookies.get(_COOKIE)) is not None:
        return _caller_of_session(request, cookie)
    raise ProblemError("TOKEN_MISSING", "send `Authorization: Bearer <token>`, or sign in")


def is_unknown_token(request: Request) -> bool:
    """Return True if a token was sent that looks like one, and that nobody knows (yet)."""
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return kind.lower() == "bearer" and serving_of(request).book.is_unknown(text.strip())


def is_still_allowed(request: HTTPConnection, caller: Caller) -> bool:
    """Return False once the token behind an open stream is revoked or expired."""
    serving = serving_of(request)
    now = serving.now()
    if not serving.book.is_trusted:
        return False
    if caller.token_id is None:
        return serving.is_open
    token = serving.book.by_id(caller.token_id)
    is_over = caller.ends_at is not None and now >= caller.ends_at
    return token is not None and token.is_valid(now) and not is_over


def check_origin(request: Request) -> None:
    """Refuse a form that another site sent; a browser names the origin, other clients need not.

    Raises:
        ProblemError: ORIGIN_REFUSED.
    """
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise ProblemError("ORIGIN_REFUSED", "send the form from the page itself")
    origin = request.headers.get("origin")
    public_url = serving_of(request).settings.public_url
    ours = {request.headers.get("host", ""), urlsplit(public_url or "").netloc}
    if origin is not None and urlsplit(origin).netloc not in ours - {""}:
        raise ProblemError("ORIGIN_REFUSED", "send the form from the page itself")


def keeps_no_session(request: Request) -> bool:
    """Return True if a browser will not keep the session: on http, and not at this machine.

    Only on https or this machine does a browser say where a request comes from; behind a proxy that
    ends https the request is http here all the same.
    """
    is_encrypted = request.url.scheme == "https" or "sec-fetch-site" in request.headers
    told = request.headers.get("x-forwarded-proto", "")
    return _is_secure(request) and not (is_encrypted or told.startswith("https"))


def is_from_this_machine(request: Request) -> bool:
    """Return True if no network lies between: peer and name are loopback, and no proxy spoke."""
    peer = request.client.host if request.client else ""
    is_forwarded = any(name in request.headers for name in _FORWARDED)
    return _is_loopback(peer) and _is_loopback_host(request) and not is_forwarded


class Attempts:
    """Counts wrong tokens by address: so many a minute, then 429 instead of 401."""

    def __init__(self, a_minute: int = 60) -> None:
        self._a_minute = a_minute
        self._seen: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def is_one_too_many(self, address: str) -> bool:
        """Count one wrong token; return True if there were too many."""
        now = monotonic()
        left, at = self._seen.pop(address, (float(self._a_minute), now))
        left = min(self._a_minute, left + (now - at) * self._a_minute / 60) - 1
        self._seen[address] = (max(left, 0.0), now)
        if len(self._seen) > _KEPT_ADDRESSES:
            self._seen.popitem(last=False)
        return left < 0


def _verify(request: Request, text: str) -> Token:
    serving = serving_of(request)
    _require_trust(request)
    token = serving.book.find(text)
    if token is None:
        raise _refuse(request, "unknown")
    if not token.is_valid(serving.now()):
        raise _refuse(request, token.state(serving.now()), token.token_id)
    return token


def _caller_of(token: Token, ends_at: datetime | None) -> Caller:
    ends = [moment for moment in (token.expires_at, ends_at) if moment is not None]
    return Caller(
        token.scope, token.restaurants, token.token_id, token.name, min(ends, default=None)
    )


def _caller_of_session(request: Request, cookie: str) -> Caller:
    serving = serving_of(request)
    lasts = timedelta(hours=serving.settings.session_hours)
    signer = TimestampSigner(serving.book.session_key, salt=_SALT)
    try:
        value, signed_at = signer.unsign(cookie, return_timestamp=True)
    except BadSignature:
        raise _refuse(request, "session of another key") from None
    ends_at = signed_at.astimezone(UTC) + lasts
    token = serving.book.by_id(value.decode())
    if token is None or not token.is_valid(serving.now()) or serving.now() >= ends_at:
        raise _refuse(request, "session is over")
    if ends_at - serving.now() < lasts - lasts / _FRESH:
        setattr(request.state, _RENEWED, _session_of(request, token))
    return _caller_of(token, ends_at)


def _session_of(request: Request, token: Token) -> Session:
    """Return a session that begins now, and never outlives its token."""
    serving = serving_of(request)
    lasts = timedelta(hours=serving.settings.session_hours)
    if token.expires_at is not None:
        lasts = min(lasts, token.expires_at - serving.now())
    signer = TimestampSigner(serving.book.session_key, salt=_SALT)
    return Session(signer.sign(token.token_id).decode(), lasts, _is_secure(request))


def _refuse(request: Request, reason: str, token_id: str | None = None) -> ProblemError:
    """Return one answer for every kind of wrong token; the log says which it was."""
    address = request.client.host if request.client else ""
    structlog.get_logger().debug("token_refused", reason=reason, token_id=token_id, address=address)
    if serving_of(request).attempts.is_one_too_many(address):
        return ProblemError("TOO_MANY_ATTEMPTS", "wait before the next attempt")
    return ProblemError("TOKEN_REFUSED", "it is unknown, expired or revoked; sign in again")


def _require_trust(request: Request) -> None:
    serving = serving_of(request)
    if not serving.book.is_trusted:
        raise ProblemError("STORE_UNREACHABLE", "tokens cannot be read at the moment; try again")


def _require_this_machine(request: Request) -> None:
    """Without tokens anybody here is let in; a name or a proxy from elsewhere is not 'here'.

    The name guards against a foreign site whose own name was made to point at this machine.
    """
    if not is_from_this_machine(request):
        raise ProblemError("HOST_REFUSED", "without tokens only 127.0.0.1 or localhost may ask")


def is_loopback_name(host: str) -> bool:
    """Return True for `localhost` and loopback addresses."""
    return host == "localhost" or _is_loopback(host)


def _is_secure(request: Request) -> bool:
    """A browser keeps a secure cookie on https alone, and a plain one only this machine sees."""
    public_url = serving_of(request).settings.public_url or ""
    return public_url.startswith("https:") or not _is_loopback_host(request)


def _is_loopback_host(request: Request) -> bool:
    host = request.headers.get("host", "")
    try:
        return is_loopback_name(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


@lru_cache(maxsize=1_000)
def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
