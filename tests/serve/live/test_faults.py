"""A fault is logged once for its kind until recovery, and each subject recovers by itself."""

from __future__ import annotations

from structlog.testing import capture_logs

from livemart.errors import PublishError
from livemart.serve.live.faults import Faults

AWAY = PublishError("STORE_UNREACHABLE", "the store is away", hint="wait")
EMPTY = PublishError("STORE_EMPTY", "nothing is published", hint="build")


def test_a_kind_of_fault_is_told_once_until_all_is_well() -> None:
    faults = Faults()

    with capture_logs() as told:
        faults.report("tokens", AWAY)
        faults.report("snapshots", AWAY)
        faults.report("snapshots", EMPTY)
        faults.resolve("tokens")
        faults.report("tokens", AWAY)
        faults.resolve("tokens")
        faults.resolve("snapshots")
        faults.resolve("snapshots")
        faults.report("tokens", AWAY)

    assert [it["event"] for it in told] == [
        *("store_unreachable", "store_unreachable", "store_back", "store_unreachable")
    ]
    assert "nothing is published" in told[1]["error"]


def test_answers_are_refused_with_the_newest_fault_that_still_holds() -> None:
    faults = Faults()
    newest = [faults.newest]

    faults.report("snapshots", EMPTY)
    newest.append(faults.newest)
    faults.report("tokens", AWAY)
    newest.append(faults.newest)
    faults.report("snapshots", EMPTY)
    newest.append(faults.newest)
    faults.resolve("snapshots")
    newest.append(faults.newest)
    faults.resolve("tokens")
    newest.append(faults.newest)

    assert newest == [None, EMPTY, AWAY, EMPTY, AWAY, None]


def test_a_fault_of_ours_is_told_with_its_traceback_and_refuses_as_any_other() -> None:
    faults = Faults()

    with capture_logs() as told:
        for _ in range(2):
            faults.report("snapshots", ZeroDivisionError("by zero"))

    (event,) = told
    assert (event["event"], event["part"]) == ("look_failed", "snapshots")
    assert isinstance(event["exc_info"], ZeroDivisionError)
    assert faults.newest is not None and faults.newest.code == "STORE_UNREACHABLE"
    assert "ZeroDivisionError: by zero" in str(faults.newest)
