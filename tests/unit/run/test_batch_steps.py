"""The steps of a micro-batch, for each possible change."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from livemart.land.landing import LandedBatch
from livemart.project.graph import DataTest, Project
from livemart.refresh.frontier import Rebuild, Refresh
from livemart.run.batch_steps import Batch, BatchStep, batch_steps
from livemart.state.snapshots import ModelState, Snapshot
from tests.models import make_model

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TOTALS, SEED, TEST = "model.m.totals", "seed.m.names", "test.m.not_null"
STATE = ModelState(4, "f", "signed", None, 1, 2, 0, "t")
FRONTIER = Snapshot(
    snapshot_id=7,
    epoch="e",
    batch_id=2,
    kind="refresh",
    as_of=NOON,
    sources={"bronze.orders": 9},
    models={TOTALS: STATE, SEED: STATE},
    tests={TEST: "pass"},
    status="published",
    started_at=NOON,
    finished_at=NOON,
)
HELD = replace(FRONTIER, status="held")
LANDED = LandedBatch(3, NOON, {"bronze.orders": 9}, {}, None, has_records=False)
PROJECT = Project(
    *("m", ".", "m", {}),
    {TOTALS: make_model(TOTALS), SEED: make_model(SEED, materialized="seed")},
    {TEST: DataTest(TEST, "not_null", None, None, {}, "error", "select 1", (TOTALS,), TOTALS, "")},
    {},
)
UNCHANGED = Batch(
    kind="refresh",
    project=PROJECT,
    epoch="e",
    landed=LANDED,
    frontier=FRONTIER,
    as_of=NOON,
    sources={"bronze.orders": 9},
    started_at=NOON,
    seeds=frozenset({SEED}),
    starts={TOTALS: Refresh(), SEED: Refresh()},
    unedited={TEST: "pass"},
)
REBUILD = Rebuild("FINGERPRINT_CHANGED", "", 1)

COMPILE, LOAD = BatchStep.COMPILE_FOR_RUN, BatchStep.LOAD_SEEDS
BUILD = [
    *(BatchStep.BUILD_MODELS, BatchStep.CHECK_MODELS),
    *(BatchStep.END_BUILD, BatchStep.APPEND_SNAPSHOT),
]
REFRESH = [BatchStep.REFRESH_MODELS, BatchStep.CHECK_MODELS, BatchStep.APPEND_SNAPSHOT]
RELEASE = [BatchStep.CARRY_MODELS, BatchStep.CHECK_HELD, BatchStep.RELEASE_SNAPSHOT]


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        pytest.param(UNCHANGED, [], id="nothing"),
        pytest.param(replace(UNCHANGED, kind="build"), BUILD, id="a build was asked for"),
        pytest.param(replace(UNCHANGED, kind="build", frontier=None), BUILD, id="first build"),
        pytest.param(
            replace(UNCHANGED, landed=replace(LANDED, has_records=True)), REFRESH, id="records"
        ),
        pytest.param(replace(UNCHANGED, sources={"bronze.orders": 10}), REFRESH, id="a source"),
        pytest.param(replace(UNCHANGED, as_of=NOON + timedelta(minutes=5)), REFRESH, id="as_of"),
        pytest.param(
            replace(UNCHANGED, starts={TOTALS: REBUILD, SEED: Refresh()}), REFRESH, id="a model"
        ),
        pytest.param(replace(UNCHANGED, starts={SEED: Refresh()}), REFRESH, id="a model is gone"),
        pytest.param(
            replace(UNCHANGED, starts={TOTALS: Refresh(), SEED: REBUILD}),
            [LOAD, *REFRESH],
            id="a seed",
        ),
        pytest.param(replace(UNCHANGED, unedited={}), REFRESH, id="a test"),
        pytest.param(replace(UNCHANGED, run_dependent=frozenset({TOTALS})), [], id="another run"),
        pytest.param(
            replace(UNCHANGED, run_dependent=frozenset({TOTALS}), unedited={}),
            [COMPILE, *REFRESH],
            id="a test, and another run",
        ),
        pytest.param(replace(UNCHANGED, frontier=HELD), RELEASE, id="nothing, but it is held"),
        pytest.param(
            replace(UNCHANGED, frontier=HELD, run_dependent=frozenset({TOTALS})),
            [COMPILE, *REFRESH],
            id="held rows that tell of a run",
        ),
    ],
)
def test_what_changed_decides_what_is_done(batch: Batch, expected: list[BatchStep]) -> None:
    assert list(batch_steps(batch)) == expected


def test_only_a_seed_that_is_rebuilt_is_loaded() -> None:
    batch = replace(UNCHANGED, starts={TOTALS: REBUILD, SEED: REBUILD})

    assert batch.changed_seeds == {SEED: REBUILD}
    assert replace(batch, starts={TOTALS: REBUILD, SEED: Refresh()}).changed_seeds == {}
