"""A foreign project of every SQL shape, refreshed along random histories, equals its own SQL.

Independent of `verify` and of the planner: the text that dbt compiled is run by Spark on the tables
as they are, and each stored model must hold exactly these rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from livemart.project.graph import Model
from tests.equivalence.project_run import ProjectRun
from tests.equivalence.shapes_history import history

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROJECT = Path(__file__).resolve().parents[1] / "projects" / "shapes"
# A few rows of a difference are enough to see what is wrong.
SHOWN = 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_shape_refreshed_equals_its_own_sql(tmp_path: Path) -> None:
    _refresh_and_compare(tmp_path, seed=7, batches=3, lane="auto")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(100, 110))
def test_every_shape_refreshed_along_more_histories_equals_its_own_sql(
    tmp_path: Path, seed: int
) -> None:
    _refresh_and_compare(tmp_path, seed=seed, batches=8, lane=("small", "large")[seed % 2])


def _refresh_and_compare(folder: Path, *, seed: int, batches: int, lane: str) -> None:
    run = ProjectRun(PROJECT, folder / "run", lane=lane)
    for number, batch in enumerate(history(seed, batches)):
        run.deliver(batch.records)
        done = run.refresh(batch.as_of) if number else run.build(batch.as_of)

        assert done.exit_code == 0
        differing = list(_differing(run)) if number else []
        assert differing == [], f"seed {seed}, batch {number}, as of {batch.as_of}"


def _differing(run: ProjectRun) -> Iterator[str]:
    """Yield each stored model whose rows are not those of its SQL, with some of them."""
    for model in run.runtime.project.models.values():
        if not model.is_stored or "random" in _tags(model):
            continue
        assert model.compiled_code is not None
        expected = _comparable(run.spark.sql(model.compiled_code))
        stored = run.spark.read.format("delta").load(str(run.warehouse.path(model.relation)))
        actual = _comparable(stored.select(*expected.columns))
        missing = expected.exceptAll(actual).limit(SHOWN).collect()
        surplus = actual.exceptAll(expected).limit(SHOWN).collect()
        if missing or surplus:
            yield f"{model.name}: missing {missing}, surplus {surplus}"


def _tags(model: Model) -> list[str]:
    tags = model.config.get("tags", [])
    assert isinstance(tags, list)
    return tags


def _comparable(frame: DataFrame) -> DataFrame:
    """Return the frame with its maps as text: Spark compares no maps."""
    return frame.selectExpr(
        *(
            f"cast(`{name}` as string) as `{name}`" if kind.startswith("map") else f"`{name}`"
            for name, kind in frame.dtypes
        )
    )
