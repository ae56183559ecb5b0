"""Who is let in: tokens, sessions, and this machine as long as there is no token."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fastapi import FastAPI
from itsdangerous import TimestampSigner
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from structlog.testing import capture_logs

from livemart.serve.auth import book as token_book
from livemart.serve.auth import callers
from livemart.serve.auth.attempts import Attempts
from livemart.serve.http.problems import ProblemError
from tests.serve.apps import Site, bearer, site
from tests.store.stores import fill_store, reference_tables

TILES = "/v1/restaurants/r1/metrics"
ORIGIN = {"Origin": "http://127.0.0.1:8000"}


class Clock:
    """A wall clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def fill(one: Site) -> None:
    fill_store(one.url, reference_tables([]))
    one.until(lambda: one.shows(1))


def _other(sign: str) -> str:
    return "0" if sign != "0" else "1"


def code_of(response: object) -> str:
    return str(response.json()["code"])  # type: ignore[attr-defined]


def test_without_tokens_this_machine_may_see_everything(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        assert one.client.get(TILES).status_code == 200


def test_who_came_in_left_or_was_refused_is_in_the_log_and_no_secret_is(tmp_path: Path) -> None:
    """Once a minute for each token or reason: a client does not decide how long the log is."""
    with site(tmp_path, page=True) as one, capture_logs() as told:
        fill(one)
        token = one.make_token("r1")
        for _ in range(3):
            answer = one.client.post("/login", data={"token": token}, headers=ORIGIN)
            assert answer.status_code == 200
            one.client.post("/logout", headers=ORIGIN)
        for _ in range(3):
            for headers in (bearer("x" * 40), bearer(token[:-1] + _other(token[-1])), {}):
                one.client.get(TILES, headers=headers)
            one.client.get(TILES.replace("r1", "r2"), headers=bearer(token))

    events = [event for event in told if event["event"] != "store_unreachable"]
    found = [(event["event"], event["log_level"]) for event in events]
    assert found == [
        ("signed_in", "info"),
        ("signed_out", "info"),
        ("token_refused", "warning"),
        ("request_refused", "info"),
    ]
    token_id = one.tokens.tokens()[0].token_id
    assert [event.get("token_id") for event in events] == [token_id, token_id, None, None]
    assert {event["address"] for event in events} == {"127.0.0.1"}
    assert (events[2]["reason"], events[3]["path"]) == ("unknown", TILES.replace("r1", "r2"))
    assert token not in str(told)


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example:8000"},
        {"Host": "[::1"},
        {"X-Forwarded-For": "127.0.0.1"},
        {"Forwarded": "for=127.0.0.1"},
    ],
)
def test_without_tokens_a_foreign_name_or_a_proxy_is_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    with site(tmp_path) as one:
        fill(one)

        answer = one.client.get(TILES, headers=headers)

        assert (answer.status_code, code_of(answer)) == (403, "HOST_REFUSED")


def test_without_tokens_another_machine_is_refused(tmp_path: Path) -> None:
    with site(tmp_path, peer="192.0.2.1") as one:
        fill(one)

        assert code_of(one.client.get(TILES)) == "HOST_REFUSED"


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "127.0.0.2:1"])
def test_without_tokens_every_name_of_this_machine_will_do(tmp_path: Path, host: str) -> None:
    with site(tmp_path) as one:
        fill(one)

        assert one.client.get(TILES, headers={"Host": host}).status_code == 200


def test_from_the_first_token_on_everybody_needs_one(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        assert one.client.get(TILES).status_code == 200

        own = one.bearer("r1")

        answer = one.client.get(TILES)
        assert (answer.status_code, code_of(answer)) == (401, "TOKEN_MISSING")
        assert answer.headers["www-authenticate"] == 'Bearer realm="livemart"'
        assert one.client.get(TILES, headers=own).status_code == 200


def test_a_token_that_another_process_makes_is_known_within_seconds(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)

        text, made = one.tokens.create("till", tenants=["r1"])
        one.until(lambda: one.client.get(TILES).status_code == 401)
        assert one.client.get(TILES, headers=bearer(text)).status_code == 200

        one.tokens.revoke(made.token_id)
        one.until(lambda: one.client.get(TILES, headers=bearer(text)).status_code == 401)


def test_a_network_host_never_is_open(tmp_path: Path) -> None:
    with site(tmp_path, host="0.0.0.0") as one:
        fill(one)

        assert code_of(one.client.get(TILES)) == "TOKEN_MISSING"


@pytest.mark.parametrize(
    "header", ["", "Bearer", "Bearer ", "Basic dTpw", "Bearer lm_0_0", "Bearer \xe4", "x" * 5000]
)
def test_whatever_is_no_token_is_refused_alike(tmp_path: Path, header: str) -> None:
    with site(tmp_path) as one:
        fill(one)
        one.bearer("r1")

        headers = [(b"authorization", header.encode("latin-1"))]
        answer = one.client.get(TILES, headers=headers)

        assert (answer.status_code, code_of(answer)) == (401, "TOKEN_REFUSED")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_a_token_ends_at_its_time(tmp_path: Path) -> None:
    clock = Clock()
    with site(tmp_path, now=clock) as one:
        fill_store(one.url, reference_tables([]), now=clock.now)
        one.until(lambda: one.shows(1))
        own = bearer(one.make_token("r1", lasts=timedelta(seconds=30)))
        assert one.client.get(TILES, headers=own).status_code == 200

        clock.now += timedelta(seconds=30)

        assert one.client.get(TILES, headers=own).status_code == 401


def test_too_many_wrong_tokens_are_429_and_a_right_one_is_let_in(tmp_path: Path) -> None:
    with site(tmp_path, attempts=3) as one:
        fill(one)
        own = one.bearer("r1")
        wrong = bearer("lm_wrong")

        codes = [code_of(one.client.get(TILES, headers=wrong)) for _ in range(4)]

        assert codes == ["TOKEN_REFUSED"] * 3 + ["TOO_MANY_ATTEMPTS"]
        answer = one.client.get(TILES, headers=wrong)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "5")
        assert one.client.get(TILES, headers=own).status_code == 200


def test_attempts_are_counted_by_address_and_forgotten() -> None:
    passed = [0.0]
    attempts = Attempts(a_minute=2, clock=lambda: passed[0])

    found = [attempts.is_one_too_many("a") for _ in range(3)] + [attempts.is_one_too_many("b")]
    passed[0] = 30.0
    found += [attempts.is_one_too_many("a") for _ in range(2)]

    assert found == [False, False, True, False, False, True]


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
            _other(cookie[0]) + cookie[1:],
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


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/restaurants/", "/login/", "/models/"])
def test_no_answer_leads_to_the_host_that_a_request_names(tmp_path: Path, path: str) -> None:
    """Starlette redirects a path with one slash too many to `http://<Host>/...`."""
    with site(tmp_path, page=True) as one:
        headers = {**one.bearer(), "Host": "evil.example"}
        answer = one.client.get(path, headers=headers, follow_redirects=False)

    assert answer.status_code == 404 and "evil.example" not in str(answer.headers)


def test_a_header_counts_before_a_cookie(tmp_path: Path) -> None:
    with site(tmp_path) as one:
        fill(one)
        with_login(one)
        one.client.post("/login", data={"token": one.make_token("r1")})

        answer = one.client.get(TILES, headers=one.bearer("r2"))

        assert answer.status_code == 404


def test_a_problem_of_every_code_has_a_title_and_a_status() -> None:
    problem = ProblemError("TOO_MANY_STREAMS", "later")

    assert (problem.status, problem.headers) == (503, {"Retry-After": "5"})


def test_a_token_revoked_while_the_clock_was_set_back_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    with site(tmp_path, now=clock) as one:
        fill(one)
        text, made = one.tokens.create("till", tenants=["r1"])
        one.learn_tokens()
        assert one.client.get(TILES, headers=bearer(text)).status_code == 200

        clock.now -= timedelta(hours=1)
        one.tokens.revoke(made.token_id)

        one.until(lambda: one.client.get(TILES, headers=bearer(text)).status_code == 401)


def test_a_server_that_may_not_believe_its_tokens_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with site(tmp_path) as one:
        fill(one)
        assert one.client.get("/readyz").status_code == 200

        monkeypatch.setattr(token_book, "_TRUSTED_FOR_S", 0.0)

        answer = one.client.get("/readyz")
        assert (answer.status_code, code_of(answer)) == (503, "STORE_UNREACHABLE")


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


def test_a_token_ends_by_the_clock_and_a_jump_ends_or_revives_none_for_good(
    tmp_path: Path,
) -> None:
    """A time of the calendar has no other measure; what was revoked has one, and stays so."""
    clock = Clock()
    with site(tmp_path, now=clock) as one:
        fill(one)
        headers = bearer(one.make_token("r1", lasts=timedelta(hours=1)))
        found = []
        for moved in (timedelta(), timedelta(days=1), timedelta(days=-1)):
            clock.now += moved
            found.append(one.client.get(TILES, headers=headers).status_code)

    assert found == [200, 401, 200]
