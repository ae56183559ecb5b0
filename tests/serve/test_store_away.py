"""A store that is away or silent: what is in memory is answered, all else is 503, and never 401."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.serve.apps import site
from tests.store.postgres import Postgres
from tests.store.silent_proxy import silent_proxy
from tests.store.stores import fill_store, reference_tables

CACHED = "/v1/restaurants/r1/metrics"
# Not asked for before the store went away.
OTHERS = ("/v1/restaurants/r2/metrics", "/v1/models/order_arrivals", "/models", "/r/r1")


@dataclass(frozen=True)
class Away:
    """A store that a test can take away and bring back."""

    url: str
    leave: Callable[[], None]
    come_back: Callable[[], None]


@contextmanager
def file_that_is_moved(folder: Path) -> Iterator[Away]:
    file = folder / "serving.db"

    def move(source: str, target: str) -> None:
        for each in folder.glob(f"{source}*"):
            each.rename(folder / each.name.replace(source, target))

    yield Away(
        f"sqlite:///{file}",
        lambda: move("serving.db", "aside.db"),
        lambda: move("aside.db", "serving.db"),
    )


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Away]:
    monkeypatch.setattr("livemart.serve.http.in_time.ANSWERS_WITHIN_S", 0.3)
    if request.param == "sqlite":
        with file_that_is_moved(tmp_path) as away:
            yield away
        return
    server: Postgres = request.getfixturevalue("postgres")
    monkeypatch.setattr("livemart.store.sessions.SILENT_S", 0.3)
    monkeypatch.setattr("livemart.store.sessions._PROBE_S", 2)
    monkeypatch.setattr("livemart.store.connections._CONNECT_SECONDS", 2)
    with silent_proxy(server) as proxy:
        yield Away(proxy.url(server.new_store()), proxy.silence, proxy.speak)


def test_who_asks_of_a_store_that_is_away_is_told_so_and_answered_by_itself_later(
    tmp_path: Path, store: Away
) -> None:
    fill_store(store.url, reference_tables([]))
    with site(tmp_path, page=True, store=store.url) as served:
        token = served.bearer()
        served.until(lambda: served.shows(1))
        before = served.client.get(CACHED, headers=token)

        store.leave()
        served.until(lambda: served.hub.away is not None)
        cached = served.client.get(CACHED, headers=token)
        refused = [served.client.get(path, headers=token) for path in (*OTHERS, "/readyz")]
        unknown = served.client.get(
            CACHED, headers={"Authorization": f"Bearer lm_{'0' * 12}_{'a' * 43}"}
        )
        store.come_back()
        served.until(lambda: served.hub.failure is None)
        after = [served.client.get(path, headers=token).status_code for path in OTHERS]

    assert before.status_code == cached.status_code == 200
    assert before.json()["snapshot_id"] == cached.json()["snapshot_id"] == 1
    assert [answer.status_code for answer in refused] == [503] * 5
    problems = [answer.json() for answer in refused if "json" in answer.headers["content-type"]]
    assert len(problems) >= 3
    for problem in problems:
        assert (problem["code"], problem["snapshot_id"]) == ("STORE_UNREACHABLE", 1)
        assert problem["as_of"] == "2026-03-02T12:00:00Z" and problem["staleness_s"] > 0
    # It may have been created a moment ago, in the unreachable store.
    assert unknown.status_code == 503
    assert after == [200] * 4
