"""Who asks is decided by the token alone, or by this machine as long as there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from starlette.requests import Request

from livemart.serve.auth.attempts import Attempts
from livemart.serve.auth.callers import (
    Caller,
    Guard,
    check_origin,
    current_caller,
    is_still_allowed,
    keeps_no_session,
    require_admin,
)
from livemart.serve.auth.tokens import Token
from livemart.serve.http.problems import ProblemError
from livemart.settings import Settings, load_settings
from tests.serve.http.requests import request_of

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
TILL = Token("a", "", "till", "tenants", frozenset({"r1"}), NOON, NOON + timedelta(hours=1), None)
BOSS = Token("b", "", "boss", "admin", frozenset(), NOON, None, None)


class Book:
    """Tokens by their text."""

    is_trusted = True

    def __init__(self, **tokens: Token) -> None:
        self.tokens = tokens

    @property
    def is_empty(self) -> bool:
        return not self.tokens

    def find(self, text: str) -> Token | None:
        return self.tokens.get(text)

    def by_id(self, token_id: str) -> Token | None:
        return next((it for it in self.tokens.values() if it.token_id == token_id), None)


def asking(
    book: Any,
    headers: Mapping[str, str] | None = None,
    *,
    now: datetime = NOON,
    is_loopback: bool = True,
    client: str = "127.0.0.1",
    scheme: str = "http",
    **settings: str,
) -> Request:
    parts = {
        Guard: Guard(book, Attempts(2), is_loopback, lambda: now),
        Settings: load_settings(settings, environ={}),
    }
    return request_of(headers, parts, client=client, scheme=scheme)


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


def code_of(request: Request) -> str:
    with pytest.raises(ProblemError) as caught:
        current_caller(request)
    return caught.value.code


def test_a_caller_sees_the_rows_of_the_token_and_no_longer_than_it_holds() -> None:
    book = Book(till=TILL, boss=BOSS)

    till = current_caller(asking(book, bearer("till")))
    boss = current_caller(asking(book, bearer(" boss ")))

    assert (till.tenants, till.ends_at, till.is_admin) == (TILL.tenants, TILL.expires_at, False)
    assert till.may_see("r1") and not till.may_see("r2")
    assert boss.is_admin and boss.may_see("r2") and not boss.is_local
    assert code_of(asking(book, bearer("till"), now=NOON + timedelta(hours=1))) == "TOKEN_REFUSED"


def test_this_machine_is_let_in_until_there_is_a_token() -> None:
    caller = current_caller(asking(Book()))

    assert caller.is_admin and caller.is_local
    assert code_of(asking(Book(), {"host": "evil.example"})) == "HOST_REFUSED"
    assert code_of(asking(Book(), is_loopback=False)) == "TOKEN_MISSING"
    assert code_of(asking(Book(boss=BOSS))) == "TOKEN_MISSING"


def test_what_is_wrong_is_counted_and_nothing_says_what_was_wrong() -> None:
    request = asking(Book(boss=BOSS), bearer("guess"))

    assert [code_of(request) for _ in range(3)] == [
        *("TOKEN_REFUSED", "TOKEN_REFUSED", "TOO_MANY_ATTEMPTS")
    ]
    assert code_of(asking(Book(boss=BOSS), {"Authorization": "Basic boss"})) == "TOKEN_REFUSED"


def test_tokens_that_were_not_read_lately_let_nobody_in() -> None:
    book = Book(boss=BOSS)
    book.is_trusted = False

    assert code_of(asking(book, bearer("boss"))) == "STORE_UNREACHABLE"
    assert not is_still_allowed(asking(book), Caller(None, "b"))


def test_an_open_stream_ends_with_its_token_and_that_of_nobody_with_the_first_one() -> None:
    here = Caller(None)
    till = Caller(frozenset({"r1"}), "a", NOON + timedelta(minutes=5))

    assert is_still_allowed(asking(Book()), here)
    assert not is_still_allowed(asking(Book(boss=BOSS)), here)
    assert is_still_allowed(asking(Book(till=TILL)), till)
    assert not is_still_allowed(asking(Book(till=TILL), now=NOON + timedelta(minutes=5)), till)
    assert not is_still_allowed(asking(Book(boss=BOSS)), till)


def test_to_others_there_is_no_path_for_admins() -> None:
    assert asyncio.run(require_admin(Caller(None))) == Caller(None)
    with pytest.raises(ProblemError) as caught:
        asyncio.run(require_admin(Caller(frozenset())))
    assert caught.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        ({}, True),
        ({"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8000"}, True),
        ({"origin": "https://shop.example"}, True),
        ({"sec-fetch-site": "cross-site"}, False),
        ({"origin": "http://evil.example"}, False),
        ({"origin": "null"}, False),
    ],
)
def test_a_form_of_another_site_is_refused(headers: dict[str, str], is_ours: bool) -> None:
    request = asking(Book(), headers, public_url="https://shop.example")

    if is_ours:
        check_origin(request)
    else:
        with pytest.raises(ProblemError, match="ORIGIN_REFUSED"):
            check_origin(request)


@pytest.mark.parametrize(
    ("headers", "scheme", "is_lost"),
    [
        ({}, "http", False),
        ({"host": "shop.example"}, "http", True),
        ({"host": "shop.example"}, "https", False),
        ({"host": "shop.example", "x-forwarded-proto": "https"}, "http", False),
    ],
)
def test_a_session_that_a_browser_will_not_keep_is_known(
    headers: dict[str, str], scheme: str, is_lost: bool
) -> None:
    assert keeps_no_session(asking(Book(), headers, scheme=scheme)) is is_lost
