"""`make bench-rules`: what a refresh costs by each rule of the planner, beside a recomputation.

Models of `tests/projects/shapes` over histories of two sizes. A batch changes one sale in a
thousand, and brings refunds, visits and a changed shop. Each model is then computed again by Spark
and written as a Delta table. JSON lines on standard output, progress on standard error.

`rule_NAME_full_over_refresh`: the time of a recomputation over that of a refresh, with those of its
stages. `rule_NAME_growth`: the time of a refresh at the large history over that at the small one.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from bench.live import deliver_rows
from bench.mart import open_mart
from bench.refresh import add_rounds, label_of, report, working_folder
from livemart.epoch import epoch_micros
from livemart.storage.location import StoragePlace

_PROJECT = Path(__file__).resolve().parents[1] / "tests" / "projects" / "shapes"
_END = datetime(2026, 3, 1, 12, tzinfo=UTC)
_STEP = timedelta(minutes=5)
_DAYS = 60
_SALES_OF_A_SHOP, _SALES_OF_A_CUSTOMER, _PRODUCTS = 1_000, 20, 1_000
_TIME = pa.timestamp("us", tz="UTC")
_REF = re.compile(r"ref\('(\w+)'\)")
_LINE = pa.struct([("product_id", pa.string()), ("quantity", pa.int32())])

# Models by the way in which they are refreshed; those that multiply all sales are left out.
RULES: Mapping[str, tuple[str, ...]] = {
    "append": ("project_append_only", "project_filter", "explode_in_select", "array_condition"),
    "signed": (
        *("group_count_sum", "group_two_keys", "group_average", "group_having", "group_date"),
        *("group_ratio_of_sums", "join_two_dimensions_grouped", "global_count", "hours_totaled"),
    ),
    "region": (
        *("group_minimum_maximum", "group_distinct", "group_percentile", "group_session"),
        *("join_dimension", "join_dimension_left", "join_left_aggregated", "join_full"),
        *("exists", "not_exists", "in_subquery", "correlated_subquery", "union_distinct"),
        *("except_rows", "intersect_rows", "explode_then_group", "collected_in_windows"),
        *("latest_per_key", "qualify_filter", "top_three_with_ties", "lag_lead", "running_range"),
        *("share_of_partition", "window_over_join", "two_windows_chained", "rows_frame"),
    ),
    "clock": (
        *("clock_scalar", "clock_rows", "clock_three_windows", "clock_distinct_customers"),
        "clock_window_before",
    ),
    "running": ("running_unbounded", "hours_running", "last_known_value"),
    "staged": (
        *("group_over_group", "limit_of_groups", "group_rollup", "group_cube", "global_aggregate"),
        *("groups_ranked_in_one_select", "hours_ranked", "value_of_groups", "totals_in_branches"),
        *("full_join_of_groups", "two_partitions", "windows_of_three_partitions", "pivoted"),
        *("scalar_subquery", "limit_ordered", "top_of_totals"),
    ),
}

Columns = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Changes:
    """Records that arrive until `now`, by source."""

    now: datetime
    rows: Columns

    def deliver(self, landing: StoragePlace, number: int) -> None:
        """Put the records below the landing folder."""
        for source, rows in self.rows.items():
            deliver_rows(landing, source, number, rows.drop_columns(["updated_at"]))


@dataclass(frozen=True, slots=True)
class Shops:
    """Draws the records of all sources; the history has `sales` sales."""

    sales: int

    def history(self) -> Columns:
        """Return the rows of each source that are there before the first batch."""
        rng = np.random.default_rng([7, self.sales])
        span = _DAYS * 86_400_000_000
        times = epoch_micros(_END) - 1 - rng.integers(span, size=self.sales)
        count = self.sales // 10
        return {
            "shops": self._shops(rng, np.arange(self._shop_count), 0),
            "products": _products(rng, np.arange(_PRODUCTS), 0),
            "sales": self._sales(rng, np.arange(self.sales), times, 0),
            "refunds": self._refunds(rng, np.arange(count), times[:count], 0),
            "visits": self._visits(rng, times[: self.sales // 4]),
        }

    def changes(self, number: int) -> Changes:
        """Return a batch: one in a thousand sales, a third of them older ones, a few deleted."""
        rng = np.random.default_rng([8, self.sales, number])
        count, now = max(10, self.sales // 1_000), _END + _STEP * (number + 1)
        numbers = self.sales + np.arange(number * count, (number + 1) * count)
        numbers[: count // 3] = rng.choice(self.sales, count // 3, replace=False)
        times = epoch_micros(now) - 1 - rng.integers(300_000_000, size=count)
        sales = self._sales(rng, numbers, times, number + 1, deleted=count // 20)
        few = count // 10
        refunds = self.sales + np.arange(number * few, (number + 1) * few)
        return Changes(
            now,
            {
                "sales": sales,
                "refunds": self._refunds(rng, refunds, times[:few], number + 1),
                "visits": self._visits(rng, times[: count // 4]),
                "shops": self._shops(rng, rng.integers(self._shop_count, size=1), number + 1),
            },
        )

    @property
    def _shop_count(self) -> int:
        return max(1, self.sales // _SALES_OF_A_SHOP)

    def _sales(
        self, rng: np.random.Generator, numbers: Any, times: Any, version: int, deleted: int = 0
    ) -> pa.Table:
        count = len(numbers)
        products = rng.integers(_PRODUCTS, size=count)
        quantities = pa.array(rng.integers(1, 6, size=count), pa.int32())
        lines = pa.StructArray.from_arrays([_names("p", products), quantities], fields=list(_LINE))
        ends = pa.array(np.arange(count + 1), pa.int32())
        customers = max(1, self.sales // _SALES_OF_A_CUSTOMER)
        operations = np.full(count, "c", dtype=object)
        operations[:deleted] = "d"
        return _stamped(
            {
                "sale_id": _names("s", numbers),
                "shop_id": _names("h", rng.integers(self._shop_count, size=count)),
                "product_id": _names("p", products),
                "customer_id": _names("c", rng.integers(customers, size=count)),
                "quantity": quantities,
                "amount": _amounts(rng, count),
                # Quarters: their sums do not depend on the order of rows.
                "weight": pa.array(rng.integers(400, size=count) / 4),
                "tags": pa.ListArray.from_arrays(
                    ends, _names("t", rng.integers(5, size=count)).cast(pa.string())
                ),
                "lines": pa.ListArray.from_arrays(ends, lines),
                "sold_at": pa.array(times).cast(_TIME),
            },
            version,
            pa.array(operations, pa.string()),
        )

    def _refunds(
        self, rng: np.random.Generator, numbers: Any, times: Any, version: int
    ) -> pa.Table:
        count = len(numbers)
        return _stamped(
            {
                "refund_id": _names("r", numbers),
                "sale_id": _names("s", rng.integers(self.sales, size=count)),
                "refund": _amounts(rng, count),
                "refunded_at": pa.array(times).cast(_TIME),
            },
            version,
        )

    def _shops(self, rng: np.random.Generator, numbers: Any, version: int) -> pa.Table:
        commission = pa.array(rng.integers(1_000, size=len(numbers))).cast(pa.decimal128(19, 0))
        return _stamped(
            {
                "shop_id": _names("h", numbers),
                "shop_name": _names("shop ", numbers),
                "region": _names("region ", rng.integers(20, size=len(numbers))),
                "commission": pa.array(
                    [value.scaleb(-4) for value in commission.to_pylist()], pa.decimal128(5, 4)
                ),
            },
            version,
        )

    def _visits(self, rng: np.random.Generator, times: Any) -> pa.Table:
        count = len(times)
        customers = max(1, self.sales // _SALES_OF_A_CUSTOMER)
        visited_at = pa.array(times).cast(_TIME)
        return pa.table(
            {
                "shop_id": _names("h", rng.integers(self._shop_count, size=count)),
                "customer_id": _names("c", rng.integers(customers, size=count)),
                "seconds": pa.array(rng.integers(600, size=count), pa.int32()),
                "visited_at": visited_at,
                "updated_at": visited_at,
            }
        )


def _products(rng: np.random.Generator, numbers: Any, version: int) -> pa.Table:
    return _stamped(
        {
            "product_id": _names("p", numbers),
            "category": _names("category ", rng.integers(20, size=len(numbers))),
            "list_price": _amounts(rng, len(numbers)),
        },
        version,
    )


def _stamped(columns: dict[str, Any], version: int, operations: pa.Array | None = None) -> pa.Table:
    count = len(next(iter(columns.values())))
    at = _END + _STEP * version
    return pa.table(
        {
            **columns,
            "version": pa.array(np.full(count, version)),
            "op": operations if operations is not None else pa.repeat(pa.scalar("c"), count),
            "updated_at": pa.repeat(pa.scalar(at, _TIME), count),
        }
    )


def _names(prefix: str, numbers: Any) -> pa.Array:
    return pa.array([f"{prefix}{number}" for number in numbers.tolist()], pa.string())


def _amounts(rng: np.random.Generator, count: int) -> pa.Array:
    cents = pa.array(rng.integers(100, 10_000, size=count))
    return pa.array([value / 100 for value in cents.to_pylist()]).cast(pa.decimal128(12, 2))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the figures; return 1 if rows differ."""
    known = [name for names in RULES.values() for name in names]
    parser = argparse.ArgumentParser(prog="python -m bench.rules", description=__doc__)
    parser.add_argument("--small", type=int, default=200_000, help="sales of the small history")
    parser.add_argument("--large", type=int, default=2_000_000, help="sales of the large one")
    add_rounds(parser, warm_up=3, batches=5)
    parser.add_argument("--folder", type=Path, help="where to work (8 GB)")
    parser.add_argument("--rules", nargs="+", choices=known, default=known, metavar="MODEL")
    given = parser.parse_args(arguments)
    found = []
    for sales in (given.small, given.large):
        with working_folder(given.folder) as folder:
            found.append(_measure(folder, sales, given))
    (small, _, is_small_equal), (large, full, is_large_equal) = found
    ratios = {name: full[name] / large[name] for name in given.rules}
    report("rules_equal", int(is_small_equal and is_large_equal))
    report("rules_full_over_refresh_median", median(ratios.values()))
    report("rules_full_over_refresh_least", min(ratios.values()))
    for way, names in RULES.items():
        for name in filter(ratios.__contains__, names):
            report(f"rule_{name}_full_over_refresh", ratios[name])
            report(f"rule_{name}_growth", large[name] / small[name])
            report(f"rule_{name}_refresh_{label_of(given.large)}_s/{way}", large[name])
    return 0 if is_small_equal and is_large_equal else 1


def _project_of(rules: Sequence[str], folder: Path) -> Path:
    """Copy the project with these models, and those that they read."""
    shutil.copytree(_PROJECT, folder, ignore=shutil.ignore_patterns("target", "logs"))
    texts = {path.stem: path.read_text() for path in (folder / "models").glob("*.sql")}
    kept, added = set[str](), {*rules}
    while added:
        kept |= added
        added = {name for it in added for name in _REF.findall(texts[it])} - kept
    for name in texts.keys() - kept:
        (folder / "models" / f"{name}.sql").unlink()
    return folder


def _measure(
    folder: Path, sales: int, given: argparse.Namespace
) -> tuple[dict[str, float], Mapping[str, float], bool]:
    """Return seconds of a refresh and of a recomputation by model, and whether rows are equal."""
    began, shops = time.monotonic(), Shops(sales)

    def say(text: str) -> None:
        seconds = time.monotonic() - began
        print(f"{label_of(sales)} {seconds:7.1f} s  {text}", file=sys.stderr, flush=True)

    # One model after the other, so that each has the machine.
    project = _project_of(given.rules, folder / "project")
    with open_mart(folder, say, project, {"threads": 1}) as mart:
        for source, rows in shops.history().items():
            mart.land(source, [rows])
        say("landed the history")
        build_s, _ = mart.build()
        say(f"built in {build_s:.1f} s")
        batches = [shops.changes(number) for number in range(given.warm_up + given.batches)]
        rounds = mart.refresh(batches)[given.warm_up :]
        _, is_equal = mart.recompute(folder / "scratch", given.rules)
    refreshed = {
        name: median(each.models_ms[name] + each.stages_ms.get(name, 0) for each in rounds) / 1000
        for name in given.rules
    }
    return refreshed, mart.recomputed_s, is_equal


if __name__ == "__main__":
    sys.exit(main())
