"""A foreign project refreshed batch by batch: each model must hold its SQL's rows.

It needs neither `verify` nor the planner. Spark runs the text that dbt compiled on the tables as
they are, and each stored model must hold exactly these rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from livemart.arrow.bags import WEIGHT, net_rows
from livemart.arrow.python_rows import python_rows
from livemart.arrow.types import align
from livemart.project.graph import Model
from livemart.project.sessions import session_of
from livemart.spark.arrow_views import rows_of
from tests.equivalence.shapes_history import Batch
from tests.project_run import PROJECTS, ProjectRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]

# A few rows of a difference are enough to see what is wrong.
SHOWN = 3


def refresh_and_compare(
    spark: SparkSession,
    project: str,
    folder: Path,
    batches: Iterable[Batch],
    *,
    lane: str = "auto",
    zone: str = "UTC",
) -> None:
    """Build a project of `tests/projects` from the first batch, refresh it by each of the others.

    Raises:
        AssertionError: naming the batch and the models that differ, with some of their rows.
    """
    run = ProjectRun(spark, folder / "run", PROJECTS / project, flags={"lane": lane})
    run.set_zone(zone)
    for number, batch in refreshed(run, batches):
        models = list(differing(run)) if number else []
        # Pytest rewrites no assertion of a helper module, so the message lists the rows itself.
        assert models == [], f"{project}, batch {number}, as of {batch.as_of}:\n" + "\n".join(
            models
        )


def refreshed(run: ProjectRun, batches: Iterable[Batch]) -> Iterator[tuple[int, Batch]]:
    """Build a project from the first batch, refresh it by the others; yield each when it is in."""
    for number, batch in enumerate(batches):
        run.now = batch.as_of
        for source, records in batch.records.items():
            if records:
                run.deliver(source, *records)
        outcome = run.refresh() if number else run.build()

        assert outcome.exit_code == 0
        yield number, batch


def differing(run: ProjectRun) -> Iterator[str]:
    """Yield each stored model whose rows are not those of its SQL, with some of them."""
    for model in run.runtime.project.models.values():
        if not model.is_stored or model.compiled_code is None or "random" in _tags(model):
            continue
        # In Arrow: EXCEPT ALL over a union trips over its own constraints in Spark 4.2.0.
        expected = rows_of(session_of(run.spark, model.session).sql(model.compiled_code))
        stored = run.warehouse.read(model.relation)
        recomputed = align(expected, stored.schema, model.relation)
        both = pa.concat_tables([stored, recomputed]).combine_chunks()
        weights = pa.concat_arrays(
            [
                pa.repeat(pa.scalar(1, pa.int64()), stored.num_rows),
                pa.repeat(pa.scalar(-1, pa.int64()), recomputed.num_rows),
            ]
        )
        missing, surplus = _unmatched(python_rows(net_rows(both, weights)))
        if missing or surplus:
            yield f"{model.name}: missing {missing[:SHOWN]}, surplus {surplus[:SHOWN]}"


def _unmatched(difference: list[dict[str, Any]]) -> tuple[list[Row], list[Row]]:
    """Split a difference into missing and surplus rows, without pairs that differ in rounding.

    Spark adds up an average of integers as doubles, so beyond 2^53 its last digits depend on the
    order of the rows.
    """
    weighed = [(row.pop(WEIGHT), tuple(row.values())) for row in difference]
    surplus = [values for weight, values in weighed for _ in range(weight)]
    missing = []
    for values in (values for weight, values in weighed for _ in range(-weight)):
        match = next((row for row in surplus if all(map(_rounds_alike, row, values))), None)
        if match is None:
            missing.append(values)
        else:
            surplus.remove(match)
    return missing, surplus


def _rounds_alike(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and one and other:
        return repr(one) == repr(other) or isclose(one, other, rel_tol=1e-12)
    return repr(one) == repr(other)


def _tags(model: Model) -> list[str]:
    tags = model.config.get("tags", [])
    assert isinstance(tags, list)
    return tags
