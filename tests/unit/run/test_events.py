from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from livemart.run.events import BatchRecord, RunEvent, StepBegan, to_all


def test_all_that_follow_a_run_get_each_event_in_their_order() -> None:
    course: list[tuple[str, RunEvent]] = []
    report = to_all(
        lambda event: course.append(("notes", event)),
        lambda event: course.append(("shown", event)),
    )

    report(StepBegan("starting Spark"))
    report(StepBegan("reading the project"))

    assert course == [
        ("notes", StepBegan("starting Spark")),
        ("shown", StepBegan("starting Spark")),
        ("notes", StepBegan("reading the project")),
        ("shown", StepBegan("reading the project")),
    ]


@pytest.mark.parametrize("jump", [timedelta(days=-30), timedelta(days=30)])
def test_a_clock_that_jumps_during_a_batch_moves_no_end_and_no_duration(jump: timedelta) -> None:
    began_at = datetime.now(UTC) - jump
    record = BatchRecord(began_at=began_at, began=time.monotonic() - 5)

    record.model_changed("model.shop.totals", "started", None)

    passed = record.now() - began_at
    assert timedelta(seconds=5) <= passed < timedelta(minutes=10)
