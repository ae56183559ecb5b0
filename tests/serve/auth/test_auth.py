"""Who is let in: tokens, and this machine as long as there is no token."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from livemart.serve.auth import book as token_book
from livemart.serve.auth.attempts import Attempts
from livemart.serve.http.problems import ProblemError
from tests.serve.apps import bearer, site
from tests.serve.auth.filled_site import ORIGIN, TILES, Clock, code_of, fill, other_sign
from tests.store.stores import fill_store, reference_tables


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
            for headers in (bearer("x" * 40), bearer(token[:-1] + other_sign(token[-1])), {}):
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


@pytest.mark.parametrize("path", ["/v1/models/", "/v1/restaurants/", "/login/", "/models/"])
def test_no_answer_leads_to_the_host_that_a_request_names(tmp_path: Path, path: str) -> None:
    """Starlette redirects a path with one slash too many to `http://<Host>/...`."""
    with site(tmp_path, page=True) as one:
        headers = {**one.bearer(), "Host": "evil.example"}
        answer = one.client.get(path, headers=headers, follow_redirects=False)

    assert answer.status_code == 404 and "evil.example" not in str(answer.headers)


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
