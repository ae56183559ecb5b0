"""Mistakes that a refresh could make, planted one at a time: the suite must see each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from livemart.arrow.bags import NEW_COUNT, WEIGHT
from livemart.delta.row_filter import NO_ROW
from livemart.delta.warehouse import Warehouse
from livemart.plan.plan import Plan
from livemart.plan.relations.join import Join
from livemart.plan.sql.template import Template
from livemart.plan.strategies.running import not_carried_on
from livemart.plan.strategies.signed import not_additive
from livemart.refresh import region as region_refresh
from livemart.refresh import running as running_refresh
from livemart.refresh import signed as signed_refresh
from livemart.refresh import touched_rows as clock_windows
from livemart.refresh.inputs import Input, PinnedInputs
from livemart.refresh.model_run import ModelRun
from livemart.refresh.pinned_table import PinnedTable
from livemart.refresh.running import Starts
from livemart.state.places import LocalFolder
from tests.project_run import reasons

if TYPE_CHECKING:
    from tests.equivalence.conftest import BuiltMart

pytestmark = [pytest.mark.extended, pytest.mark.timeout(1800)]
Mutant = Callable[[pytest.MonkeyPatch], None]


def post_images_only(patch: pytest.MonkeyPatch) -> None:
    """Old images are forgotten: what a row was is never taken away."""
    real = PinnedInputs.resolve

    def resolve(
        self: PinnedInputs, plan: Plan, relation: str
    ) -> tuple[PinnedTable, tuple[Input, ...]]:
        stored, inputs = real(self, plan, relation)
        return stored, tuple(
            replace(it, images=it.images.filter(pc.greater(it.images.column(WEIGHT), 0)))
            for it in inputs
        )

    patch.setattr(PinnedInputs, "resolve", resolve)


def no_frame_margin(patch: pytest.MonkeyPatch) -> None:
    """A change is thought to touch its own row of a RANGE frame alone."""
    _recompute_running_totals(patch)
    real = region_refresh._islands

    def islands(points: pa.Table, keys: int, before: int, after: int) -> pa.Table:
        return real(points, keys, 0, 0)

    patch.setattr(region_refresh, "_islands", islands)


def no_rekey(patch: pytest.MonkeyPatch) -> None:
    """Changes on the other side of a join are not traced to the rows they touch."""
    _no_signed_change(patch)
    patch.setattr(Join, "_rekeyed", lambda self, want, changed: [])
    patch.setattr(Join, "_affected_by_right", lambda self, want, has_time: [])


def equals_instead_of_null_safe(patch: pytest.MonkeyPatch) -> None:
    """Keys that are NULL find nothing."""
    _no_signed_change(patch)
    real = region_refresh._semi_join

    def semi_join(*arguments: Any) -> Template[Any]:
        pieces = real(*arguments).pieces
        return Template(
            tuple(it.replace("<=>", "=") if isinstance(it, str) else it for it in pieces)
        )

    patch.setattr(region_refresh, "_semi_join", semi_join)


def no_tombstones(patch: pytest.MonkeyPatch) -> None:
    """Rows whose group became empty stay."""
    for module, name in (
        (region_refresh, "refresh_region"),
        (signed_refresh, "refresh_signed"),
        (running_refresh, "refresh_running"),
    ):
        real = getattr(module, name)

        def kept(run: ModelRun, strategy: Any, real: Any = real) -> pa.Table | None:
            found = real(run, strategy)
            if found is None:
                return None
            keys = run.plan.unique_key
            coming = found.filter(pc.greater(found.column(NEW_COUNT), 0)).select(list(keys))
            listed = {tuple(row.values()) for row in coming.to_pylist()}
            mask = [
                row[NEW_COUNT] > 0 or not keys or tuple(row[key] for key in keys) in listed
                for row in found.to_pylist()
            ]
            return found.filter(pa.array(mask, pa.bool_()))

        patch.setattr(f"livemart.refresh.strategy.{name}", kept)


def no_expiry(patch: pytest.MonkeyPatch) -> None:
    """Windows against the clock never let a row go."""
    for module in (clock_windows, signed_refresh):
        patch.setattr(module, "moved_rows", lambda run, source: NO_ROW)


def double_replay(patch: pytest.MonkeyPatch) -> None:
    """A signed change is applied twice."""
    real = Warehouse.changes

    def changes(self: Warehouse, relation: str, from_version: int, to_version: int) -> pa.Table:
        found = real(self, relation, from_version, to_version)
        doubled = pc.multiply(found.column(WEIGHT), 2)
        return found.set_column(found.column_names.index(WEIGHT), WEIGHT, doubled)

    patch.setattr(Warehouse, "changes", changes)


def carried_twice(patch: pytest.MonkeyPatch) -> None:
    """Running totals start from twice what was there."""
    real = running_refresh._starts

    def starts(*arguments: Any) -> tuple[Starts, pa.Table]:
        found, kept = real(*arguments)
        first, *others = found.carried
        doubled = pc.multiply(first, 2).cast(first.type)
        return replace(found, carried=(doubled, *others)), kept

    patch.setattr(running_refresh, "_starts", starts)


def _no_signed_change(patch: pytest.MonkeyPatch) -> None:
    def refuse(run: ModelRun, strategy: Any) -> pa.Table | None:
        raise not_additive("it is not to be")

    patch.setattr("livemart.refresh.strategy.refresh_signed", refuse)


def _recompute_running_totals(patch: pytest.MonkeyPatch) -> None:
    def refuse(run: ModelRun, strategy: Any) -> pa.Table | None:
        raise not_carried_on("they are not to be")

    patch.setattr("livemart.refresh.strategy.refresh_running", refuse)


MUTANTS: tuple[Mutant, ...] = (
    post_images_only,
    no_frame_margin,
    no_rekey,
    equals_instead_of_null_safe,
    no_tombstones,
    no_expiry,
    double_replay,
    carried_twice,
)


def test_without_a_mutant_the_histories_are_equal(built_mart: BuiltMart) -> None:
    assert _first_difference(built_mart) is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught(
    built_mart: BuiltMart, monkeypatch: pytest.MonkeyPatch, mutant: Mutant
) -> None:
    mutant(monkeypatch)
    # Plans are made with the mistake, too, and not taken from the build.
    LocalFolder(built_mart.run.root / "warehouse").compiled_project.unlink()
    built_mart.run.restart()

    assert _first_difference(built_mart) is not None


def _first_difference(mart: BuiltMart) -> str | None:
    """Refresh batch by batch; return the first model that differs, or how the refresh failed."""
    run = mart.run
    for batch in mart.batches[1:3]:
        batch.arrive(run)
        run.refresh()
        for reason in reasons(run.newest).values():
            if reason is not None:
                # The change set contradicted the stored rows: seen before anything was compared.
                return reason
        if run.newest.status != "published":
            # A data test has seen it, and readers never do.
            return "held"
        for comparison in run.verify():
            if not comparison.is_equal:
                return comparison.model
    return None
