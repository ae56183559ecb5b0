"""The answers by hand: plain Python over the delivered records, no Spark, no SQL, none of livemart.

It follows the landing contract and the descriptions of the marts, as literally as it can. It
refuses a case that the contract leaves open (two different rows of a key at one sequence).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]

WINDOW_HOURS = (1, 24, 168)
PANE = timedelta(minutes=5)
MAX_FUTURE = timedelta(hours=1)
_CENT = Decimal("0.01")
_LARGEST_PRICE = Decimal("99999999.99")
_LARGEST_INT = 2**31


class Ambiguous(Exception):
    """Two different rows of one key have the same sequence: the contract alone does not decide."""


class Rejected(Exception):
    """The record is a dead letter; the text is its reason code."""


@dataclass(frozen=True, slots=True)
class Source:
    """How the records of one source are read: its columns with their type, key and event time."""

    columns: Mapping[str, str]
    key: str
    event_time: str | None = None


ORDERS = Source(
    {
        "order_id": "string",
        "restaurant_id": "string",
        "customer_id": "string",
        "ordered_at": "timestamp",
        "status": "string",
        "currency_code": "string",
        "items": "items",
        "updated_at": "timestamp",
        "op": "string",
    },
    "order_id",
    "ordered_at",
)
RESTAURANTS = Source(
    {
        "restaurant_id": "string",
        "restaurant_name": "string",
        "time_zone": "string",
        "currency_code": "string",
        "updated_at": "timestamp",
        "op": "string",
    },
    "restaurant_id",
)
DISHES = Source(
    {
        "dish_id": "string",
        "restaurant_id": "string",
        "dish_name": "string",
        "updated_at": "timestamp",
        "op": "string",
    },
    "dish_id",
)


@dataclass(slots=True)
class Table:
    """A keyed table: the newest row per key, deletes remembered with their sequence."""

    source: Source
    newest: dict[str, Row] = field(default_factory=dict)
    produced: int = 0
    rejected: list[str] = field(default_factory=list)

    @property
    def rows(self) -> dict[str, Row]:
        """The live rows, by key."""
        return {key: row for key, row in self.newest.items() if row["op"] != "d"}

    def deliver(self, lines: Iterable[str], landed_at: datetime) -> None:
        """Take the lines of a file that landed at an instant (UTC); order does not matter."""
        for line in lines:
            if not line.strip():
                continue
            self.produced += 1
            try:
                row = read_record(line, self.source, landed_at)
            except Rejected as rejected:
                self.rejected.append(str(rejected))
                continue
            key = row[self.source.key]
            known = self.newest.get(key)
            if known is None or _is_newer(row, known):
                self.newest[key] = row


@dataclass(slots=True)
class Market:
    """The landed rows of the reference mart's three keyed sources."""

    orders: Table = field(default_factory=lambda: Table(ORDERS))
    restaurants: Table = field(default_factory=lambda: Table(RESTAURANTS))
    dishes: Table = field(default_factory=lambda: Table(DISHES))

    def deliver_folder(
        self, landing: Path, landed_at: datetime, *, skip: frozenset[Path] = frozenset()
    ) -> frozenset[Path]:
        """Take every file below a landing folder that `skip` does not name.

        Args:
            landing: the landing folder.
            landed_at: when these files landed, UTC; the bound on future orders counts from there.
            skip: files that landed before.

        Returns:
            All files taken so far.
        """
        taken = set(skip)
        for name, table in (
            ("orders", self.orders),
            ("restaurants", self.restaurants),
            ("dishes", self.dishes),
        ):
            for path in sorted((landing / name).glob("[!._]*.jsonl")):
                if path not in taken:
                    table.deliver(path.read_text(encoding="utf-8").split("\n"), landed_at)
                    taken.add(path)
        return frozenset(taken)


@dataclass(frozen=True, slots=True)
class Sale:
    """An order that counts: of a known restaurant, in its currency, not cancelled."""

    restaurant_id: str
    customer_id: str | None
    ordered_at: datetime
    amount: Decimal
    items: tuple[tuple[str, int, Decimal], ...]

    @property
    def pane(self) -> datetime:
        """Start of the five minutes it belongs to."""
        return pane_of(self.ordered_at)


@dataclass(frozen=True, slots=True)
class Totals:
    """Orders, sales and their average in a window; the average is None without orders."""

    order_count: int = 0
    sales_amount: Decimal = Decimal("0.00")

    @property
    def average(self) -> Decimal | None:
        """Sales per order, to the cent, half up."""
        if not self.order_count:
            return None
        return (self.sales_amount / self.order_count).quantize(_CENT, ROUND_HALF_UP)


def read_record(line: str, source: Source, landed_at: datetime) -> dict[str, Any]:
    """Return the row of a record.

    Raises:
        Rejected: with the code of the dead letter.
    """
    try:
        record = json.loads(line, parse_float=Decimal)
    except (ValueError, RecursionError):
        raise Rejected("MALFORMED_RECORD") from None
    if not isinstance(record, dict):
        raise Rejected("MALFORMED_RECORD")
    row = {
        name: None if record.get(name) is None else _value(record[name], kind)
        for name, kind in source.columns.items()
    }
    if row[source.key] is None:
        raise Rejected("NULL_KEY")
    if row["updated_at"] is None:
        raise Rejected("NULL_SEQUENCE")
    if source.event_time is not None:
        event_time = row[source.event_time]
        if event_time is not None and event_time > landed_at + MAX_FUTURE:
            raise Rejected("FUTURE_EVENT_TIME")
    return row


def pane_of(instant: datetime) -> datetime:
    """Return the start of the pane that holds an instant.

    >>> pane_of(datetime(2026, 3, 1, 23, 59, 59, 999999, tzinfo=UTC)).isoformat()
    '2026-03-01T23:55:00+00:00'
    """
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return epoch + (instant - epoch) // PANE * PANE


def sales(market: Market) -> list[Sale]:
    """Return the orders that count, those without a time excepted."""
    currencies = {key: row["currency_code"] for key, row in market.restaurants.rows.items()}
    found = []
    for row in market.orders.rows.values():
        restaurant = row["restaurant_id"]
        currency = currencies.get(restaurant)
        if row["status"] == "cancelled" or row["ordered_at"] is None:
            continue
        if currency is None or row["currency_code"] != currency:
            continue
        items = tuple(row["items"] or ())
        amount = sum((quantity * price for _, quantity, price in items), Decimal("0.00"))
        found.append(Sale(restaurant, row["customer_id"], row["ordered_at"], amount, items))
    return found


def order_totals(
    market: Market, as_of: datetime, *, windows_back: int = 0, cut: timedelta = timedelta(0)
) -> dict[tuple[str, int], Totals]:
    """Return what `restaurant_order_metrics` must say, by restaurant and window length.

    Args:
        market: what has landed.
        as_of: end of the current windows, on a pane boundary, UTC.
        windows_back: 1 for the windows before the current ones.
        cut: how much earlier the windows end; they start where they do.
    """
    totals = {
        (restaurant, hours): Totals()
        for restaurant in market.restaurants.rows
        for hours in WINDOW_HOURS
    }
    for sale in sales(market):
        for hours in WINDOW_HOURS:
            if _is_within(sale.ordered_at, as_of, hours, windows_back, cut):
                known = totals[sale.restaurant_id, hours]
                totals[sale.restaurant_id, hours] = Totals(
                    known.order_count + 1, known.sales_amount + sale.amount
                )
    return totals


def unique_customers(
    market: Market, as_of: datetime, *, cut: timedelta = timedelta(0)
) -> dict[tuple[str, int], int]:
    """Return the different customers of the current windows, by restaurant and window length.

    `cut`: how much earlier the windows end.
    """
    customers: dict[tuple[str, int], set[str]] = {
        (restaurant, hours): set()
        for restaurant in market.restaurants.rows
        for hours in WINDOW_HOURS
    }
    for sale in sales(market):
        for hours in WINDOW_HOURS:
            if sale.customer_id is not None and _is_within(sale.ordered_at, as_of, hours, cut=cut):
                customers[sale.restaurant_id, hours].add(sale.customer_id)
    return {key: len(found) for key, found in customers.items()}


def top_dishes(
    market: Market, as_of: datetime, *, ranks: int = 3
) -> dict[tuple[str, int, int], tuple[str, str, int, Decimal]]:
    """Return what `restaurant_top_dishes` must say, by restaurant, window length and rank.

    Returns:
        (dish_id, dish_name, quantity_sold, sales_amount); the id replaces an unknown name.
    """
    quantities: dict[tuple[str, int], dict[str, int]] = defaultdict(lambda: defaultdict(int))
    amounts: dict[tuple[str, int, str], Decimal] = defaultdict(lambda: Decimal("0.00"))
    for sale in sales(market):
        for hours in WINDOW_HOURS:
            if not _is_within(sale.ordered_at, as_of, hours, 0):
                continue
            for dish_id, quantity, price in sale.items:
                if dish_id is not None:
                    quantities[sale.restaurant_id, hours][dish_id] += quantity
                    amounts[sale.restaurant_id, hours, dish_id] += quantity * price
    names = {key: row["dish_name"] for key, row in market.dishes.rows.items()}
    ranked = {}
    for (restaurant, hours), sold in quantities.items():
        order = sorted(
            sold, key=lambda dish: (-sold[dish], -amounts[restaurant, hours, dish], dish)
        )
        for rank, dish in enumerate(order[:ranks], start=1):
            name = names.get(dish)
            ranked[restaurant, hours, rank] = (
                dish,
                dish if name is None else name,
                sold[dish],
                amounts[restaurant, hours, dish],
            )
    return ranked


def sales_trend(
    market: Market,
) -> dict[tuple[str, datetime], tuple[Totals, dict[int, Totals]]]:
    """Return what `restaurant_sales_trend` must say, by restaurant and pane.

    Returns:
        the pane's own totals, and by window length those of the window that ends with the pane.
    """
    panes: dict[str, dict[datetime, Totals]] = defaultdict(dict)
    for sale in sales(market):
        known = panes[sale.restaurant_id].get(sale.pane, Totals())
        panes[sale.restaurant_id][sale.pane] = _plus(known, Totals(1, sale.amount))
    trend = {}
    for restaurant, own in panes.items():
        for pane, totals in own.items():
            end = pane + PANE
            running = {
                hours: _sum(
                    other
                    for start, other in own.items()
                    if end - timedelta(hours=hours) <= start < end
                )
                for hours in WINDOW_HOURS
            }
            trend[restaurant, pane] = (totals, running)
    return trend


def customers_of_whole_hours(
    market: Market, as_of: datetime, window_hours: Sequence[int] = (24, 168)
) -> dict[tuple[str, int], int]:
    """Return the true numbers behind `restaurant_customer_estimates`, where there is any."""
    end = as_of.replace(minute=0, second=0, microsecond=0)
    customers: dict[tuple[str, int], set[str]] = defaultdict(set)
    for sale in sales(market):
        for hours in window_hours:
            is_inside = end - timedelta(hours=hours) <= sale.ordered_at < end
            if is_inside and sale.customer_id is not None:
                customers[sale.restaurant_id, hours].add(sale.customer_id)
    return {key: len(found) for key, found in customers.items()}


def newest_order(market: Market) -> datetime | None:
    """Return the newest event time that landed and is still there."""
    times = [row["ordered_at"] for row in market.orders.rows.values() if row["ordered_at"]]
    return max(times, default=None)


def _is_newer(row: Row, known: Row) -> bool:
    if row["updated_at"] != known["updated_at"]:
        return bool(row["updated_at"] > known["updated_at"])
    is_delete, was_delete = row["op"] == "d", known["op"] == "d"
    if is_delete or was_delete:
        return is_delete and not was_delete
    if row != known:
        raise Ambiguous(f"{row} and {known}")
    return False


def _is_within(
    instant: datetime,
    as_of: datetime,
    hours: int,
    windows_back: int = 0,
    cut: timedelta = timedelta(0),
) -> bool:
    length = timedelta(hours=hours)
    end = as_of - length * windows_back
    return end - length <= instant < end - cut


def _plus(left: Totals, right: Totals) -> Totals:
    return Totals(left.order_count + right.order_count, left.sales_amount + right.sales_amount)


def _sum(totals: Iterable[Totals]) -> Totals:
    result = Totals()
    for each in totals:
        result = _plus(result, each)
    return result


def _value(found: Any, kind: str) -> Any:
    if kind == "string":
        if not isinstance(found, str):
            raise Rejected("TYPE_MISMATCH")
        return found
    if kind == "timestamp":
        return _timestamp(found)
    if not isinstance(found, list):
        raise Rejected("TYPE_MISMATCH")
    return list(_items(found))


def _timestamp(found: Any) -> datetime:
    if not isinstance(found, str):
        raise Rejected("TYPE_MISMATCH")
    try:
        instant = datetime.fromisoformat(found)
    except ValueError:
        raise Rejected("TYPE_MISMATCH") from None
    if instant.tzinfo is None:
        return instant.replace(tzinfo=UTC)
    return instant.astimezone(UTC)


def _items(found: Sequence[Any]) -> Iterator[tuple[str | None, int, Decimal]]:
    """Return (dish, quantity, unit price); what is missing counts as nothing sold."""
    for item in found:
        if item is None:
            continue
        if not isinstance(item, dict):
            raise Rejected("TYPE_MISMATCH")
        dish_id = item.get("dish_id")
        quantity = item.get("quantity")
        price = item.get("unit_price")
        if not isinstance(dish_id, str | None):
            raise Rejected("TYPE_MISMATCH")
        if quantity is not None and (
            isinstance(quantity, bool)
            or not isinstance(quantity, int)
            or not -_LARGEST_INT <= quantity < _LARGEST_INT
        ):
            raise Rejected("TYPE_MISMATCH")
        yield dish_id, quantity or 0, Decimal(0) if price is None else _price(price)


def _price(found: Any) -> Decimal:
    if isinstance(found, bool) or not isinstance(found, int | Decimal):
        raise Rejected("TYPE_MISMATCH")
    try:
        price = Decimal(found)
        if price != price.quantize(_CENT) or abs(price) > _LARGEST_PRICE:
            raise Rejected("TYPE_MISMATCH")
    except InvalidOperation:
        raise Rejected("TYPE_MISMATCH") from None
    return price
