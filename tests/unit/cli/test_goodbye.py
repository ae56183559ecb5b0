"""Who stops a run is told what it waits for, at once and again while it goes on."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from livemart.cli.goodbye import Goodbye


class _Watcher:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.told.append((name, *arguments))


def _goodbye(**options: Any) -> tuple[Goodbye, list[str], _Watcher, _Watcher]:
    said: list[str] = []
    goodbye = Goodbye(timedelta(minutes=1), said.append, **options)
    watcher = _Watcher()
    return goodbye, said, goodbye.hears(watcher), watcher


def test_the_watcher_hears_everything() -> None:
    _, _, hears, watcher = _goodbye()

    hears.step("landing")
    hears.node_changed("model.shop.a", None)

    assert watcher.told == [("step", "landing"), ("node_changed", "model.shop.a", None)]


def test_a_build_names_the_models_that_are_under_way() -> None:
    goodbye, said, hears, _ = _goodbye()
    goodbye.waits = True
    for name in "abcde":
        hears.node_changed(f"model.shop.{name}", None)
    hears.node_changed("model.shop.a", "success")

    goodbye.begin()
    goodbye.end()

    assert said == [
        "stopping: finishing what is under way (b, c, d and 1 more), for 1m at most; once more "
        "gives it up, and readers keep what they have"
    ]


def test_a_micro_batch_is_named_and_a_run_that_waits_for_records_just_stops() -> None:
    goodbye, said, hears, _ = _goodbye()
    goodbye.waits = True
    hears.batch_began(7)
    hears.model_changed("model.shop.totals", "refreshing")
    goodbye.begin()
    hears.batch_ended(None)
    goodbye.begin()
    goodbye.end()

    assert said[0].startswith("stopping: finishing micro-batch 7 (totals), for 1m at most")
    assert said[1:] == ["stopping"]


def test_while_it_starts_nothing_is_waited_for() -> None:
    goodbye, said, _, _ = _goodbye()

    goodbye.begin()

    assert said == ["stopping"]


def test_a_long_wait_is_not_silent() -> None:
    heard = threading.Event()
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        if len(said) == 3:
            heard.set()

    goodbye = Goodbye(timedelta(minutes=1), say, every_s=0.01)
    goodbye.hears(_Watcher())
    goodbye.waits = True
    goodbye.begin()

    assert heard.wait(10)
    goodbye.end()
    assert said[1].startswith("stopping: still finishing what is under way, ")


def test_a_copy_into_the_store_is_waited_for_by_its_name() -> None:
    goodbye, said, hears, _ = _goodbye()
    goodbye.waits = True
    hears.batch_began(7)
    hears.publishing(3)
    hears.batch_ended(None)

    goodbye.begin()
    hears.publishing(None)
    goodbye.begin()
    goodbye.end()

    assert said[0].startswith(
        "stopping: finishing the copy of snapshot 3 into the serving store, for 1m at most"
    )
    assert said[1:] == ["stopping"]


def test_a_landing_is_waited_for_although_the_batch_before_has_ended() -> None:
    goodbye, said, hears, _ = _goodbye()
    goodbye.waits = True
    hears.batch_ended(None)
    hears.landing_began(8, 2)

    goodbye.begin()
    goodbye.end()

    assert said[0].startswith("stopping: finishing the landing of micro-batch 8, for 1m at most")


def test_the_data_tests_of_a_build_are_waited_for_by_name() -> None:
    goodbye, said, hears, _ = _goodbye()
    goodbye.waits = True
    hears.landed(None)
    hears.step("running the data tests")

    goodbye.begin()
    goodbye.end()

    assert said[0].startswith("stopping: finishing what is under way: running the data tests, for")
