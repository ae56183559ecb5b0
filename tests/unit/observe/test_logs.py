"""Log events have a name and keys, one line each, on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
import structlog

from livemart.check.checks import TestResult
from livemart.observe.logs import LogWatcher, configure_logs
from livemart.project.node_results import NodeProgress
from livemart.run.events import (
    BatchBegan,
    BatchEnded,
    BatchOutcome,
    BatchRetried,
    CheckEnded,
    CopyBegan,
    CopyEnded,
    LandingBegan,
    ModelChanged,
    RecordsLanded,
    StepBegan,
)
from livemart.state.drift import DriftedField, DriftKind
from livemart.state.snapshots import LEFT_OUT, SetAside
from tests.unit.observe.outcomes import make_held_outcome, make_landed, make_outcome, make_snapshot


@pytest.fixture(autouse=True)
def _own_configuration() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def events_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    captured = capsys.readouterr()
    assert captured.out == ""
    return [json.loads(line) for line in captured.err.splitlines()]


def test_a_refresh_is_told_with_the_keys_of_its_measurements(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    expected = {
        "level": "info",
        "batch_id": 42,
        "model": "model.livemart.panes",
        "strategy": "signed",
        "reason": None,
        "rows_changed": 118,
        "took_ms": 830,
    }
    watcher = LogWatcher()
    watcher.handle(BatchBegan(42))
    states = make_snapshot().models

    watcher.handle(ModelChanged("model.livemart.panes", "signed", states["model.livemart.panes"]))

    [event] = [event for event in events_of(capsys) if event["event"] == "refresh_completed"]
    assert {key: event[key] for key in expected} == expected


def test_a_snapshot_is_told_with_its_as_of(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")

    LogWatcher().handle(BatchEnded(make_outcome()))

    events = {str(event["event"]): event for event in events_of(capsys)}
    assert events["snapshot_published"]["as_of"] == "2026-03-01 12:05:00+00:00"
    assert events["snapshot_published"]["took_ms"] == 2100


def test_drift_is_told_once_by_source_and_kind(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    watcher = LogWatcher()
    tip, who = (DriftedField(DriftKind.ADDED, name) for name in ("tip", "who"))
    fee = DriftedField(DriftKind.UNDECLARED, "fee", "string", ("totals",))

    # The previous run reported these.
    old = DriftedField(DriftKind.NESTED, "who.x")
    before = {"bronze.orders": (old,)}
    for fields in [(tip, fee, old), (tip, fee), (tip, who, fee)]:
        snapshot = replace(make_snapshot(), drift={"bronze.orders": fields})
        watcher.handle(BatchEnded(BatchOutcome(42, snapshot, drift_before=before)))

    events = [event for event in events_of(capsys) if event["event"] == "schema_drift"]
    keys = ("level", "batch_id", "source", "kind", "fields", "hint")
    added, undeclared = DriftKind.ADDED, DriftKind.UNDECLARED
    assert [tuple(event[key] for key in keys) for event in events] == [
        ("warning", 42, "bronze.orders", kind, told, DriftKind(kind).next_step)
        for kind, told in [
            (added, "tip"),
            (undeclared, "fee (string), unused by totals"),
            (added, "who"),
        ]
    ]


def test_what_landed_is_told_at_once_and_why_records_did_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    watcher = LogWatcher()

    watcher.handle(LandingBegan(42, 3))
    watcher.handle(RecordsLanded(make_landed({"MALFORMED_RECORD": 3, "KEY_MISSING": 1})))

    began, landed, refused = events_of(capsys)
    assert (began["event"], began["batch_id"], began["files"]) == ("landing_began", 42, 3)
    assert (landed["event"], landed["source"]) == ("records_landed", "bronze.orders")
    assert (landed["landed"], landed["dead_letters"]) == (8, 4)
    assert (refused["level"], refused["dead_letters"]) == ("warning", 4)
    assert refused["reasons"] == "KEY_MISSING 1, MALFORMED_RECORD 3"
    assert "`livemart dead-letters show`" in str(refused["hint"])


def test_long_work_says_every_ten_seconds_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    now = [0.0]
    watcher = LogWatcher(clock=lambda: now[0])
    watcher.handle(RecordsLanded(make_landed({})))
    watcher.handle(BatchBegan(42))
    watcher.handle(ModelChanged("model.livemart.panes", "started"))
    watcher.handle(ModelChanged("model.livemart.done", "started"))
    watcher.handle(ModelChanged("model.livemart.done", "unchanged"))
    capsys.readouterr()
    for second in range(1, 32):
        now[0] = float(second)
        watcher.beat()

    events = events_of(capsys)

    assert [event["seconds"] for event in events] == [9, 18, 27]
    assert {(event["event"], event["step"], event["nodes"]) for event in events} == {
        ("still_working", "refreshing", "model.livemart.panes")
    }
    # A stream that waits for records is silent.
    watcher.handle(BatchEnded(make_outcome()))
    capsys.readouterr()
    now[0] = 100.0
    watcher.beat()
    assert events_of(capsys) == []


def test_what_dbt_prints_is_passed_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")

    LogWatcher().handle(
        NodeProgress("model.m.a", "success", "1 of 2 OK created sql table model m.a")
    )

    [event] = events_of(capsys)
    assert (event["event"], event["line"]) == ("dbt", "1 of 2 OK created sql table model m.a")


def test_a_test_is_told_as_it_ends_and_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    watcher = LogWatcher()
    held = make_held_outcome()
    watcher.handle(RecordsLanded(make_landed({})))
    capsys.readouterr()

    rows = ("id=7, n=2", "id=9, n=2")
    failed = TestResult("fail", 3, "full", took_ms=250, place="models/m.yml:4", rows=rows)
    watcher.handle(CheckEnded("test.m.unique_totals.1a", failed))
    watcher.handle(
        CheckEnded("test.m.not_null_totals.2b", TestResult("pass", 0, "full", took_ms=40))
    )
    told = events_of(capsys)
    watcher.handle(BatchEnded(held))
    rest = events_of(capsys)

    assert [(event["event"], event["level"], event["line"]) for event in told] == [
        ("test_failed", "warning", "FAIL 3 unique_totals [in 0.25s]"),
        ("test_passed", "info", "PASS not_null_totals [in 0.04s]"),
    ]
    assert (told[0]["failures"], told[0]["took_ms"], told[0]["batch_id"]) == (3, 250, 42)
    assert (told[0]["place"], told[0]["rows"]) == ("models/m.yml:4", "id=7, n=2; id=9, n=2")
    assert [event["event"] for event in rest] == ["snapshot_held"]


def test_what_passes_in_a_refresh_is_no_news(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    watcher = LogWatcher()
    watcher.handle(RecordsLanded(make_landed({})))
    watcher.handle(BatchBegan(42))
    capsys.readouterr()

    watcher.handle(CheckEnded("test.m.not_null_totals.2b", TestResult("pass", 0, "changes")))
    watcher.handle(
        CheckEnded("test.m.in_time.3c", TestResult("error", None, "full", "no such table"))
    )

    [event] = events_of(capsys)
    assert (event["line"], event["message"]) == ("ERROR in_time [in 0.00s]", "no such table")


def test_text_is_the_name_and_then_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text")
    watcher = LogWatcher()
    watcher.handle(BatchBegan(42))
    capsys.readouterr()

    watcher.handle(BatchRetried(ValueError('disk "full"\nreally'), 1, 3))

    _, line = capsys.readouterr().err.split(" ", 1)
    assert line == (
        'warning batch_retried batch_id=42 failures=1 attempts=3 error="disk \\"full\\"\\nreally"\n'
    )


@pytest.mark.parametrize("sign", ["\r", "\x1b[2J", "\x9b2J", "\u2028", "\u202e"])
def test_a_terminal_obeys_no_sign_of_a_text(sign: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A path that a client asked for would clear the screen, or write over its own line."""
    configure_logs("text")

    structlog.get_logger().info("request_refused", path=f"/x{sign}y")

    [line] = capsys.readouterr().err.splitlines()
    assert line.isprintable() and "path=/x\\" in line


def test_words_of_single_models_are_for_debugging(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    LogWatcher().handle(ModelChanged("model.livemart.panes", "signed"))
    assert events_of(capsys) == []

    configure_logs("json", debug=True)
    LogWatcher().handle(ModelChanged("model.livemart.panes", "signed"))
    assert [event["event"] for event in events_of(capsys)] == ["model_changed"]


def test_a_batch_without_change_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    LogWatcher().handle(BatchEnded(BatchOutcome(43, None)))
    assert events_of(capsys) == []
    configure_logs("json", debug=True)

    LogWatcher().handle(BatchEnded(BatchOutcome(43, None)))

    [event] = events_of(capsys)
    assert (event["event"], event["batch_id"], event["status"]) == ("batch_ended", 43, "unchanged")


def test_a_pass_without_news_leaves_no_line_and_one_with_work_says_when_it_began(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    watcher = LogWatcher()
    watcher.handle(BatchBegan(43))
    watcher.handle(BatchEnded(BatchOutcome(43, None)))
    assert events_of(capsys) == []

    watcher.handle(BatchBegan(44))
    for word in ("refreshing", "signed"):
        watcher.handle(ModelChanged("model.livemart.panes", word))

    assert [(event["event"], event["batch_id"]) for event in events_of(capsys)] == [
        ("batch_began", 44)
    ]


def test_the_course_of_a_start_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    watcher = LogWatcher()

    watcher.handle(StepBegan("starting Spark"))
    watcher.handle(NodeProgress("model.livemart.panes", None))
    watcher.handle(NodeProgress("model.livemart.panes", "success"))
    watcher.handle(NodeProgress("model.livemart.top_dishes", "error"))

    actual = [(event["event"], event.get("node")) for event in events_of(capsys)]
    assert actual == [("step_began", None), ("node_ended", "model.livemart.top_dishes")]


def test_a_copy_into_the_store_is_told_once_nothing_else_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    now = [0.0]
    watcher = LogWatcher(clock=lambda: now[0])
    watcher.handle(RecordsLanded(make_landed({})))
    watcher.handle(BatchBegan(42))
    now[0] = 5.0
    watcher.handle(CopyBegan(7))
    now[0] = 10.0
    watcher.beat()
    watcher.handle(BatchEnded(make_outcome()))
    told = [event.get("step") for event in events_of(capsys) if event["event"] == "still_working"]
    for second in range(11, 27):
        now[0] = float(second)
        watcher.beat()

    assert told == ["refreshing"]
    assert [(event["step"], event["seconds"]) for event in events_of(capsys)] == [
        ("copying snapshot 7 into the serving store", 14)
    ]
    watcher.handle(CopyEnded())
    now[0] = 100.0
    watcher.beat()
    assert events_of(capsys) == []


def test_a_look_for_records_is_silent_until_it_takes_long(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")
    now = [0.0]
    watcher = LogWatcher(clock=lambda: now[0])

    watcher.handle(LandingBegan(42, 0))
    assert events_of(capsys) == []
    now[0] = 11.0
    watcher.beat()

    [event] = events_of(capsys)
    assert (event["event"], event["step"]) == ("still_working", "landing")


def test_an_idle_hour_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    now = [0.0]
    watcher = LogWatcher(clock=lambda: now[0])
    for minute in range(0, 130, 5):
        now[0] = minute * 60.0
        watcher.handle(LandingBegan(43, 0))
        watcher.handle(BatchBegan(43))
        watcher.handle(BatchEnded(BatchOutcome(43, None)))
        watcher.beat()

    told = events_of(capsys)

    assert [(event["event"], event["seconds"]) for event in told] == [
        ("nothing_new", 3600),
        ("nothing_new", 3600),
    ]


def test_what_is_left_out_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    aside = {f"model.m.{n}": SetAside(7, None, "f", f"model.m.{n}", LEFT_OUT) for n in range(200)}

    LogWatcher().handle(BatchEnded(BatchOutcome(42, replace(make_snapshot(), set_aside=aside))))

    told, _ = events_of(capsys)
    assert (told["event"], told["level"], told["count"]) == ("models_left_out", "info", 200)
    assert str(told["models"]).split() == [f"model.m.{n}" for n in range(5)]
