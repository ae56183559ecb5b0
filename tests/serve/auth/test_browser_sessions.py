"""The session of a browser, from the token that it is made from to its end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from itsdangerous import TimestampSigner
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.serve.auth import callers
from tests.serve.apps import Site, site
from tests.serve.auth.filled_site import ORIGIN, TILES, Clock, code_of, fill, other_sign


def with_login(one: Site) -> None:
    """Add the routes that the page has, without the page."""

    async def login(request: Request) -> Response:
        form = await request.form()
        session = callers.sign_in(request, str(form["token"]))
        response = JSONResponse({"signed": "in"})
        session.keep(response)
        return response

    async def logout(request: Request) -> Response:
        response = JSONResponse({"signed": "out"})
        callers.sign_out(request, response)
        return response

    app = one.client.app
    assert isinstance(app, FastAPI)
    app.add_api_route("/login", login, methods=["POST"])
    app.add_api_route("/logout", logout, methods=["POST"])


def browser(
    one: Site, token: str, cookie: dict[str, str] | None = None, *, everywhere: bool = False
) -> dict[str, str]:
    """Sign in by the page's form, with a cookie or without one; return the session's cookie."""
    one.client.cookies.clear()
    form = {"token": token, **({"everywhere": "true"} if everywhere else {})}
    one.client.post("/login", data=form, headers={**ORIGIN, **(cookie or {})})
    session = one.client.cookies["livemart_session"]
    one.client.cookies.clear()
    return {"Cookie": f"livemart_session={session}"}


def test_a_session_is_made_from_a_token_and_sees_the_same(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        with_login(one)
        token = one.make_token("r1")

        answer = one.client.post("/login", data={"token": f" {token}\n"})

        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 200
        assert {"HttpOnly", "SameSite=lax", "Path=/", "Max-Age=43200"} <= set(cookie.split("; "))
        assert "Secure" not in cookie and token not in cookie
        assert one.client.get(TILES).status_code == 200
        assert one.client.get("/v1/restaurants/r2/metrics").status_code == 404
        one.client.post("/logout")
        assert one.client.get(TILES).status_code == 401


def test_a_session_away_from_this_machine_is_secure(tmp_path: Path) -> None:
    with site(tmp_path, host="0.0.0.0", public_url="https://sales.example") as one:
        fill(one)
        with_login(one)
        token = one.make_token("r1")

        answer = one.client.post("/login", data={"token": token})

        cookie = answer.headers["set-cookie"].split("; ")
        assert cookie[0].startswith("__Host-livemart_session=")
        assert {"Secure", "Path=/"} <= set(cookie) and "Domain" not in answer.headers["set-cookie"]
        found = [
            one.client.get(TILES, headers={"Cookie": sent}).status_code
            for sent in (cookie[0], cookie[0].removeprefix("__Host-"))
        ]
        left = one.client.post("/logout", headers={"Cookie": cookie[0]}).headers["set-cookie"]

    # The name that another site of the domain could set is not looked at.
    assert found == [200, 401]
    assert left.startswith("__Host-livemart_session=") and "Secure" in left.split("; ")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": ""},
        {"Origin": "http://127.0.0.1:9000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    with site(tmp_path) as one:
        fill(one)
        with_login(one)
        token = one.make_token("r1")

        for path in ("/login", "/logout"):
            answer = one.client.post(path, data={"token": token}, headers=headers)

            assert (answer.status_code, code_of(answer)) == (403, "ORIGIN_REFUSED")
            assert "set-cookie" not in answer.headers


def test_a_form_of_our_own_page_is_taken(tmp_path: Path) -> None:
    with site(tmp_path, public_url="https://sales.example") as one:
        fill(one)
        with_login(one)
        token = one.make_token("r1")

        for origin in ("http://127.0.0.1:8000", "https://sales.example"):
            headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
            answer = one.client.post("/login", data={"token": token}, headers=headers)

            assert answer.status_code == 200


def test_a_session_ends_with_its_token_its_time_and_its_key(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        with_login(one)
        text, made = one.tokens.create("owner", tenants=["r1"])
        one.learn_tokens()
        one.client.post("/login", data={"token": text})
        cookie = one.client.cookies["livemart_session"]
        assert one.client.get(TILES).status_code == 200

        one.client.cookies.clear()
        for forged in (
            cookie[:-9] + "AAAAAAAA" + cookie[-1],
            other_sign(cookie[0]) + cookie[1:],
            "",
            made.token_id,
        ):
            answer = one.client.get(TILES, headers={"Cookie": f"livemart_session={forged}"})
            assert code_of(answer) == "TOKEN_REFUSED"
        one.client.cookies["livemart_session"] = cookie
        assert one.client.get(TILES).status_code == 200
        one.tokens.revoke(made.token_id)
        one.learn_tokens()
        assert code_of(one.client.get(TILES)) == "TOKEN_REFUSED"


def test_a_session_lasts_so_many_hours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site(tmp_path, session_hours=1) as one:
        fill(one)
        with_login(one)
        one.client.post("/login", data={"token": one.make_token("r1")})
        assert one.client.get(TILES).status_code == 200
        signed_at = TimestampSigner.get_timestamp

        monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda s: signed_at(s) - 3600)
        one.client.post("/login", data={"token": one.make_token("r1")})

        assert code_of(one.client.get(TILES)) == "TOKEN_REFUSED"


@pytest.mark.parametrize(
    ("after", "token_lasts", "max_age"),
    [
        (timedelta(minutes=20), None, None),
        (timedelta(hours=5), None, 12 * 3600),
        # Never beyond the token's own end.
        (timedelta(hours=5), timedelta(hours=8), 3 * 3600),
    ],
)
def test_a_session_that_is_used_is_renewed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: timedelta,
    token_lasts: timedelta | None,
    max_age: int | None,
) -> None:
    clock = Clock()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(clock.now.timestamp()))
    with site(tmp_path, now=clock) as one:
        fill(one)
        with_login(one)
        one.client.post("/login", data={"token": one.make_token("r1", lasts=token_lasts)})
        clock.now += after
        one.learn_tokens()

        answer = one.client.get(TILES)
        again = one.client.get(TILES)

        assert answer.status_code == again.status_code == 200
        assert "set-cookie" not in again.headers
        if max_age is None:
            assert "set-cookie" not in answer.headers
            return
        cookie = answer.headers["set-cookie"].split("; ")
        assert {"HttpOnly", "SameSite=lax", "Path=/", f"Max-Age={max_age}"} <= set(cookie)
        clock.now += timedelta(seconds=max_age - 1)
        one.learn_tokens()
        one.client.cookies["livemart_session"] = cookie[0].partition("=")[2]
        assert one.client.get(TILES).status_code == 200
        clock.now += timedelta(hours=12)
        one.learn_tokens()
        one.client.cookies["livemart_session"] = cookie[0].partition("=")[2]
        assert one.client.get(TILES).status_code == 401


def test_who_signs_out_has_no_session_any_more_wherever_its_cookie_is(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        fill(one)
        token = one.make_token("r1")
        cookies = [browser(one, token) for _ in range(2)]
        before = [one.client.get(TILES, headers=cookie).status_code for cookie in cookies]

        one.client.post("/logout", headers={**ORIGIN, **cookies[0]})
        after = [one.client.get(TILES, headers=cookie).status_code for cookie in cookies]
    with site(tmp_path, page=True) as one:
        one.learn_tokens()
        later = [one.client.get(TILES, headers=cookie).status_code for cookie in cookies]

    assert before == [200, 200]
    # The other browser of the same token is another session.
    assert after == later == [401, 200]


def test_who_signs_in_again_leaves_no_earlier_session_in_that_browser(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        fill(one)
        token, other_token = one.make_token("r1"), one.make_token("r1")
        first, elsewhere = browser(one, token), browser(one, token)
        refused = one.client.post(
            "/login", data={"token": "lm_wrong"}, headers={**ORIGIN, **first}
        ).status_code
        kept = one.client.get(TILES, headers=first).status_code

        second = browser(one, other_token, first)

        found = [one.client.get(TILES, headers=it).status_code for it in (first, second, elsewhere)]

    # A sign-in that fails ends nothing.
    assert (refused, kept) == (401, 200)
    assert found == [401, 200, 200]


def test_a_sign_in_ends_all_other_sessions_of_the_token_on_request(tmp_path: Path) -> None:
    with site(tmp_path, page=True) as one:
        fill(one)
        token, other_token = one.make_token("r1"), one.make_token("r1")
        others = [browser(one, token) for _ in range(2)]
        of_other_token = browser(one, other_token)

        mine = browser(one, token, everywhere=True)

        found = [one.client.get(TILES, headers=it).status_code for it in (*others, mine)]
        unharmed = one.client.get(TILES, headers=of_other_token).status_code
        as_program = one.client.get(TILES, headers={"Authorization": f"Bearer {token}"})
    with site(tmp_path, page=True) as one:
        one.learn_tokens()
        later = [one.client.get(TILES, headers=it).status_code for it in (*others, mine)]

    assert found == later == [401, 401, 200]
    assert (unharmed, as_program.status_code) == (200, 200)


def test_a_session_that_is_always_used_ends_after_a_week(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(clock.now.timestamp()))
    with site(tmp_path, now=clock) as one:
        fill(one)
        with_login(one)
        one.client.post("/login", data={"token": one.make_token("r1")})
        began, hours = clock.now, 0
        while one.client.get(TILES).status_code == 200 and hours < 1_000:
            hours += 4
            clock.now = began + timedelta(hours=hours)
            one.learn_tokens()

    assert hours == 7 * 24


def test_a_header_counts_before_a_cookie(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        with_login(one)
        one.client.post("/login", data={"token": one.make_token("r1")})

        answer = one.client.get(TILES, headers=one.bearer("r2"))

        assert answer.status_code == 404


def test_a_session_of_a_clock_that_was_set_back_does_not_last_until_it_is_that_late_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(clock.now.timestamp()))
    with site(tmp_path, now=clock) as one:
        fill(one)
        with_login(one)
        token, real = one.make_token("r1"), clock.now
        found = {}
        for ahead in (timedelta(minutes=4), timedelta(days=400)):
            clock.now = real + ahead
            one.client.post("/login", data={"token": token})
            clock.now = real
            found[ahead.days] = one.client.get(TILES).status_code

    assert found == {0: 200, 400: 401}


def test_who_signed_out_stays_so_though_the_clock_jumps_ahead_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: int(clock.now.timestamp()))
    with site(tmp_path, page=True, now=clock) as one:
        fill(one)
        token, real, cookies = one.make_token("r1"), clock.now, []
        for ahead in (timedelta(), timedelta(days=400)):
            clock.now = real + ahead
            one.client.post("/login", data={"token": token}, headers=ORIGIN)
            cookies.append({"Cookie": f"livemart_session={one.client.cookies['livemart_session']}"})
            one.client.post("/logout", headers={**ORIGIN, **cookies[-1]})
            one.client.cookies.clear()
        clock.now = real

        assert one.client.get(TILES, headers=cookies[0]).status_code == 401
