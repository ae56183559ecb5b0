"""Keeps the panes of a restaurant current in memory, from one snapshot to the next.

Used for trends. A trend is a sum over thousands of panes of which a snapshot changes a few. The
change log says which ones: only those are read again.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise

from livemart.epoch import epoch_micros
from livemart.store.packed import Packed
from livemart.store.served import Published
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import decimal_size

TREND = "restaurant_sales_trend"
# Two weeks: the longest window, and the same one a week before.
LONGEST = timedelta(hours=336)
PANE_START = "pane_started_at"
_OF_PANE = (PANE_START, "order_count", "sales_amount")
# Changed panes are read again from one of these moments on: a query for each.
_BACK = (timedelta(hours=1), timedelta(hours=24), timedelta(hours=168))

Sum = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Panes:
    """Panes of one restaurant that start at `since` or later, in order; empty ones are left out.

    `starts`: microseconds since 1970; `sales_amounts`: in units of `10 ** -scale`; `unknown`:
    starts of panes of which a figure is not known, which is zero here.
    """

    since: datetime
    starts: Sequence[int]
    order_counts: Sequence[int]
    sales_amounts: Sequence[int]
    unknown: frozenset[int]
    scale: int

    def sums(self, moments: Sequence[datetime]) -> list[Sum | None]:
        """Return orders and sales of the points between `moments`, None for an unknown one.

        Args:
            moments: where points start and the last one ends, ascending, none before `since`.
        """
        edges = [epoch_micros(moment) for moment in moments]
        first = bisect_left(self.starts, edges[0])
        places = [bisect_left(self.starts, edge, first) - first for edge in edges]
        last = first + places[-1]
        orders = list(accumulate(self.order_counts[first:last], initial=0))
        sales = list(accumulate(self.sales_amounts[first:last], initial=0))
        sums: list[Sum | None] = [
            (orders[high] - orders[low], sales[high] - sales[low]) for low, high in pairwise(places)
        ]
        for pane in self.unknown:
            if edges[0] <= pane < edges[-1]:
                sums[bisect_right(edges, pane) - 1] = None
        return sums

    def renewed(self, later: Panes, since: datetime) -> Panes:
        """Return these panes up to where `later` begins, and `later`, but none before `since`."""
        first = bisect_left(self.starts, epoch_micros(since))
        last = bisect_left(self.starts, epoch_micros(later.since), first)
        unknown = self.unknown.intersection(self.starts[first:last]) if self.unknown else set()
        return Panes(
            max(since, self.since),
            _join(self.starts[first:last], later.starts),
            _join(self.order_counts[first:last], later.order_counts),
            _join(self.sales_amounts[first:last], later.sales_amounts),
            later.unknown | unknown,
            self.scale,
        )


def read_panes(
    view: SnapshotView, restaurant_ids: Iterable[str], since: datetime
) -> dict[str, Panes]:
    """Return the panes of restaurants that start at `since` or later; none of an unknown one."""
    names = frozenset(restaurant_ids)
    packed = view.packed(TREND, _OF_PANE, tenants=names, time=PANE_START, since=since)
    _, scale = decimal_size(view.models()[TREND].kinds["sales_amount"]) or (0, 0)
    return {name: _panes_of(packed.get(name), since, scale) for name in names}


def follow_panes(
    view: SnapshotView, before: Published, earlier: Mapping[str, Panes], end: datetime
) -> dict[str, Panes]:
    """Return the panes of restaurants as `view` has them, given those of an earlier snapshot.

    Args:
        view: one snapshot.
        before: the snapshot that `earlier` is of.
        earlier: panes by restaurant.
        end: where the windows of `view` end.

    Returns:
        The same restaurants, each with two weeks of panes or more. None if the store does not know
        the changes since any more, or they do not reach back far enough.
    """
    since = end - LONGEST
    earlier = {name: panes for name, panes in earlier.items() if panes.since <= since}
    changed = view.changed_since(TREND, PANE_START, before, frozenset(earlier))
    if changed is None:
        return {}
    current = dict(earlier)
    for start, names in _by_reach(changed, end).items():
        for name, later in read_panes(view, names, start).items():
            if later.scale != earlier[name].scale:
                return {}
            current[name] = earlier[name].renewed(later, since)
    return current


def _by_reach(changed: Mapping[str, datetime], end: datetime) -> dict[datetime, list[str]]:
    """Return which restaurants are read again, by the moment from which on."""
    names_by_start: defaultdict[datetime, list[str]] = defaultdict(list)
    for name, first in changed.items():
        start = next((end - back for back in _BACK if end - back <= first), end - LONGEST)
        names_by_start[start].append(name)
    return names_by_start


def _panes_of(packed: Packed | None, since: datetime, scale: int) -> Panes:
    rows = zip(*(packed[column] for column in _OF_PANE), strict=True) if packed else ()
    # A pane without a start is of no time that is ever asked for.
    panes = sorted(
        ((pane, orders, sales) for pane, orders, sales in rows if pane is not None),
        key=lambda row: row[0],
    )
    unknown = frozenset(pane for pane, orders, sales in panes if orders is None or sales is None)
    return Panes(
        since,
        _compact([pane for pane, _, _ in panes]),
        _compact([0 if pane in unknown else orders for pane, orders, _ in panes]),
        _compact([0 if pane in unknown else sales for pane, _, sales in panes]),
        unknown,
        scale,
    )


def _compact(numbers: list[int]) -> Sequence[int]:
    """Return the numbers in eight bytes each, unless one is too large for that."""
    try:
        return array("q", numbers)
    except OverflowError:
        return numbers


def _join(first: Sequence[int], second: Sequence[int]) -> Sequence[int]:
    if isinstance(first, array) and isinstance(second, array):
        return first + second
    return _compact([*first, *second])
