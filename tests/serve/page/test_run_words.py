from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from livemart.serve.page.run_words import failure_words, waiting_words
from livemart.state.last_run import BuildProgress, LastRun, RunFailure

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOON + timedelta(minutes=12)
FAILED = LastRun(
    *("refresh", 4711, NOON, NOON),
    ending="failed",
    failure=RunFailure(NOON, "MODEL_FAILED", ("model.shop.totals", "model.shop.days"), "secret"),
)


def test_only_admins_read_code_and_models() -> None:
    owners = failure_words(FAILED, LATER, is_admin=False)
    admins = failure_words(FAILED, LATER, is_admin=True)

    assert owners == "The last run failed 12 min ago."
    assert admins == (
        "The last run failed 12 min ago: MODEL_FAILED in model.shop.totals, model.shop.days."
    )


def test_without_a_failure_nothing_is_said() -> None:
    done = replace(FAILED, ending="ok", failure=None)

    assert [failure_words(run, LATER, is_admin=True) for run in (None, done)] == ["", ""]


def test_while_nothing_is_published_the_page_says_how_far_the_build_is() -> None:
    running = replace(FAILED, ending=None)

    assert [
        waiting_words(run, LATER)
        for run in (
            None,
            FAILED,
            running,
            replace(running, progress=BuildProgress(3, 5)),
            replace(running, progress=BuildProgress(0, 1)),
            replace(running, progress=BuildProgress(5, 5)),
        )
    ] == [
        "No snapshot is published yet; this page loads by itself once one is.",
        "The last run failed 12 min ago.",
        "The first build began 12 min ago; this page loads by itself.",
        "Building 3 of 5 models; this page loads by itself.",
        "Building 0 of 1 model; this page loads by itself.",
        "Testing 5 models; this page loads by itself.",
    ]


def test_a_page_does_not_wait_for_models_that_no_exposure_names() -> None:
    ended = replace(FAILED, ending="ok", failure=None)
    running = replace(ended, ending=None, progress=BuildProgress(3, 5))

    said = [waiting_words(run, LATER, serves_nothing=True) for run in (ended, running, FAILED)]

    assert said == [
        "No exposure of the project names a model that has a table, so nothing is served.",
        "Building 3 of 5 models; this page loads by itself.",
        "The last run failed 12 min ago.",
    ]
