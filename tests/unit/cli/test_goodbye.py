"""A stopped run reports the work that it waits for, at once and repeatedly."""

from __future__ import annotations

import threading
from datetime import timedelta

from livemart.cli.goodbye import Goodbye
from livemart.project.node_results import NodeProgress
from livemart.run.events import (
    BatchBegan,
    BatchEnded,
    CopyBegan,
    CopyEnded,
    LandingBegan,
    ModelChanged,
    RecordsLanded,
    StepBegan,
)
from tests.unit.observe.outcomes import make_landed, make_outcome


def _goodbye() -> tuple[Goodbye, list[str]]:
    said: list[str] = []
    return Goodbye(timedelta(minutes=1), said.append), said


def test_a_build_names_the_models_that_are_under_way() -> None:
    goodbye, said = _goodbye()
    goodbye.waits = True
    for name in "abcde":
        goodbye.handle(NodeProgress(f"model.shop.{name}", None))
    goodbye.handle(NodeProgress("model.shop.a", "success"))

    goodbye.begin()
    goodbye.end()

    assert said == [
        "stopping: finishing the work in progress (b, c, d and 1 more), for 1m at most; repeat to "
        "give it up: readers keep the last snapshot"
    ]


def test_a_micro_batch_is_named_and_a_run_that_waits_for_records_just_stops() -> None:
    goodbye, said = _goodbye()
    goodbye.waits = True
    goodbye.handle(BatchBegan(7))
    goodbye.handle(ModelChanged("model.shop.totals", "refreshing"))
    goodbye.begin()
    goodbye.handle(BatchEnded(make_outcome()))
    goodbye.begin()
    goodbye.end()

    assert said[0].startswith("stopping: finishing micro-batch 7 (totals), for 1m at most")
    assert said[1:] == ["stopping"]


def test_while_it_starts_nothing_is_waited_for() -> None:
    goodbye, said = _goodbye()

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
    goodbye.waits = True
    goodbye.begin()

    assert heard.wait(10)
    goodbye.end()
    assert said[1].startswith("stopping: still finishing the work in progress, ")


def test_a_copy_into_the_store_is_waited_for_by_its_name() -> None:
    goodbye, said = _goodbye()
    goodbye.waits = True
    goodbye.handle(BatchBegan(7))
    goodbye.handle(CopyBegan(3))
    goodbye.handle(BatchEnded(make_outcome()))

    goodbye.begin()
    goodbye.handle(CopyEnded())
    goodbye.begin()
    goodbye.end()

    assert said[0].startswith(
        "stopping: finishing the copy of snapshot 3 into the serving store, for 1m at most"
    )
    assert said[1:] == ["stopping"]


def test_a_landing_is_waited_for_although_the_batch_before_has_ended() -> None:
    goodbye, said = _goodbye()
    goodbye.waits = True
    goodbye.handle(BatchEnded(make_outcome()))
    goodbye.handle(LandingBegan(8, 2))

    goodbye.begin()
    goodbye.end()

    assert said[0].startswith("stopping: finishing the landing of micro-batch 8, for 1m at most")


def test_the_data_tests_of_a_build_are_waited_for_by_name() -> None:
    goodbye, said = _goodbye()
    goodbye.waits = True
    goodbye.handle(RecordsLanded(make_landed({})))
    goodbye.handle(StepBegan("running the data tests"))

    goodbye.begin()
    goodbye.end()

    assert said[0].startswith(
        "stopping: finishing the work in progress: running the data tests, for"
    )
