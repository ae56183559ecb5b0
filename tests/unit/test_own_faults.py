"""Which errors are livemart's own, and how often each is reported."""

from __future__ import annotations

import errno

import pytest
import structlog

from livemart.conflicts import TableChangedError
from livemart.errors import ConfigError, RefreshError, StateError
from livemart.own_faults import VARIABLE, OwnFaults, is_own_fault


@pytest.mark.parametrize(
    "error",
    [
        KeyError("customerkey"),
        RuntimeError("[INTERNAL_ERROR] in the optimizer"),
        RefreshError("SCHEMA_MISMATCH", "m.t: column n", hint=""),
        MemoryError(),
    ],
)
def test_an_error_that_another_way_may_avoid_is_our_own(error: Exception) -> None:
    assert is_own_fault(error)


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        TableChangedError("TABLE_CHANGED", "m.t", hint=""),
        RuntimeError("ConcurrentModificationException"),
        OSError(errno.ENOSPC, "No space left on device"),
        RuntimeError("java.io.IOException: No space left on device"),
        RuntimeError("[SPARK_JOB_CANCELLED] Job 3 cancelled as part of all jobs"),
        RuntimeError("Job 3 cancelled because SparkContext was shut down"),
        ConnectionRefusedError(),
        StateError("LANDED_TABLE_LOST", "bronze.t", hint=""),
        ConfigError("DBT_FAILED", "no", hint=""),
    ],
)
def test_what_every_way_meets_is_not(error: BaseException) -> None:
    assert not is_own_fault(error)


def fail(text: str) -> Exception:
    try:
        raise KeyError(text)
    except KeyError as error:
        return error


def test_a_traceback_is_told_once_for_each_model_and_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    faults = OwnFaults()

    with structlog.testing.capture_logs() as events:
        for batch in range(3):
            faults.report("strategy_failed", fail(f"in batch {batch}"), model="model.m.a")
            faults.report("strategy_failed", fail(f"in batch {batch}"), model="model.m.b")

    assert [event["model"] for event in events] == ["model.m.a", "model.m.b"]
    assert {event["log_level"] for event in events} == {"error"}
    assert all(event["exc_info"].__traceback__ for event in events)
    assert all("report" in event["hint"] for event in events)


def test_the_tests_of_livemart_are_not_spared() -> None:
    with pytest.raises(KeyError, match="loud"):
        OwnFaults().report("strategy_failed", fail("loud"), model="model.m.a")
