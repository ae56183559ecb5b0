"""Log events have a name and keys, one line each, on standard error."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import structlog

from livemart.observe.logs import LogWatcher, configure_logs
from livemart.run.batch import BatchOutcome
from tests.unit.observe.outcomes import make_held_outcome, make_outcome


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

    LogWatcher().batch_ended(make_outcome())

    [event] = [each for each in events_of(capsys) if each["event"] == "refresh_completed"]
    assert {key: event[key] for key in expected} == expected


def test_a_snapshot_is_told_with_its_as_of_and_what_landed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logs("json")

    LogWatcher().batch_ended(make_outcome())

    events = {str(event["event"]): event for event in events_of(capsys)}
    assert events["snapshot_published"]["as_of"] == "2026-03-01 12:05:00+00:00"
    assert events["snapshot_published"]["took_ms"] == 2100
    assert events["records_landed"]["dead_letters"] == 2
    assert events["records_landed"]["source"] == "bronze.orders"


def test_a_failing_test_is_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")

    LogWatcher().batch_ended(make_held_outcome())

    events = {str(event["event"]): event for event in events_of(capsys)}
    assert events["test_failed"]["level"] == "warning"
    assert events["test_failed"]["failures"] == 3
    assert "snapshot_held" in events


def test_text_is_the_name_and_then_the_keys(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("text")
    watcher = LogWatcher()
    watcher.batch_began(42)
    capsys.readouterr()

    watcher.retrying(ValueError('disk "full"\nreally'), 1, 3)

    _, line = capsys.readouterr().err.split(" ", 1)
    assert line == (
        'warning batch_retried batch_id=42 failures=1 attempts=3 error="disk \\"full\\"\\nreally"\n'
    )


def test_words_of_single_models_are_for_debugging(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    LogWatcher().model_changed("model.livemart.panes", "signed")
    assert events_of(capsys) == []

    configure_logs("json", debug=True)
    LogWatcher().model_changed("model.livemart.panes", "signed")
    assert [event["event"] for event in events_of(capsys)] == ["model_changed"]


def test_a_batch_without_change_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")

    LogWatcher().batch_ended(BatchOutcome(43, None))

    [event] = events_of(capsys)
    assert (event["event"], event["batch_id"], event["status"]) == ("batch_ended", 43, "unchanged")


def test_the_course_of_a_start_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("json")
    watcher = LogWatcher()

    watcher.step("starting Spark")
    watcher.node_changed("model.livemart.panes", None)
    watcher.node_changed("model.livemart.panes", "success")
    watcher.node_changed("model.livemart.top_dishes", "error")

    actual = [(event["event"], event.get("node")) for event in events_of(capsys)]
    assert actual == [("step_began", None), ("node_ended", "model.livemart.top_dishes")]
