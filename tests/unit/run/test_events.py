from __future__ import annotations

from livemart.run.events import RunEvent, StepBegan, to_all


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
