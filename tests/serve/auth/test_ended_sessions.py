"""A sign-out is remembered by every server of the warehouse, in a file of bounded size."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from livemart.serve.auth.ended_sessions import EndedSessions, SessionId

WEEK = 7 * 86_400


def session(number: int, token_id: str = "a", began: int = 1_000) -> SessionId:
    return SessionId(token_id, f"{number:x}", began)


def test_what_one_server_ends_is_over_at_all_and_after_a_start(tmp_path: Path) -> None:
    path = tmp_path / "_livemart" / "ended_sessions"
    servers = [EndedSessions(path) for _ in range(4)]

    def sign_out(number: int) -> None:
        servers[number % 4].add(session(number), 1_100, 1_000 + WEEK)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(sign_out, range(40)))

    for server in (*servers, EndedSessions(path)):
        assert [server.has(session(number)) for number in (0, 7, 39, 40)] == [True] * 3 + [False]
        assert not server.has(session(0, token_id="b"))
    modes = {file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {0o600}


def test_who_signs_out_without_end_ends_the_own_sessions_alone(tmp_path: Path) -> None:
    path = tmp_path / "ended_sessions"
    ended = EndedSessions(path)
    ended.add(session(1, token_id="b"), 1_100, 1_000 + WEEK)

    for number in range(250):
        ended.add(session(number, began=2_000 + number), 2_000 + number, 2_000 + number + WEEK)

    assert all(ended.has(session(number, began=2_000 + number)) for number in range(250))
    assert ended.has(session(1, token_id="b")) and not ended.has(session(2, token_id="b"))
    assert not ended.has(session(900, began=2_251))
    assert len(path.read_text().splitlines()) <= 102


def test_of_what_is_over_by_itself_one_line_is_left_should_the_clock_be_set_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "ended_sessions"
    ended = EndedSessions(path)
    for number in range(5):
        ended.add(session(number, began=1_000 + number), 1_100, 2_000)

    ended.add(session(9, began=2_001), 2_001, 9_000)

    assert sorted(path.read_text().splitlines()) == ["a * 1004 2000", "a 9 2001 9000"]
    assert all(ended.has(session(number, began=1_000 + number)) for number in range(5))
    assert not ended.has(session(7, began=1_500))


def test_all_sessions_of_a_token_end_at_every_server_and_no_later_one(tmp_path: Path) -> None:
    path = tmp_path / "ended_sessions"
    ended, other_server = EndedSessions(path), EndedSessions(path)

    ended.add_all("a", 2_000)
    # A clock that was set back takes nothing back.
    ended.add_all("a", 1_500)

    found = [other_server.has(session(1, began=began)) for began in (0, 1_999, 2_000, 2_001)]
    assert found == [True, True, True, False]
    assert not other_server.has(session(1, token_id="b"))


@pytest.mark.parametrize("is_kept", [True, False])
def test_without_a_file_a_sign_out_holds_as_long_as_the_server(
    tmp_path: Path, is_kept: bool
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    ended = EndedSessions(tmp_path / "taken" / "ended_sessions" if is_kept else None)

    with capture_logs() as logs:
        ended.add(session(1), 1_000, 2_000)

    assert ended.has(session(1)) and not ended.has(session(2))
    assert [each["event"] for each in logs] == ["sign_out_not_kept"] * is_kept


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", "a.b.1.2", "a.b.-1", "a.b.\u0661"])
def test_what_is_no_session_is_none(text: str) -> None:
    assert SessionId.read(text) is None
