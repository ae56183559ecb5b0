"""Every answer that the models of `tests/projects/histories` may give, in plain Python.

No Spark, no SQL and none of livemart: rows that tie are put in each order that they may come in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import groupby, permutations, product
from math import ceil
from typing import Any

Row = Mapping[str, Any]
Sources = Mapping[str, list[dict[str, Any]]]
Bag = frozenset[tuple[tuple[Any, ...], int]]
# Rows of one group in one order -> rows of the model.
Produce = Callable[[Sequence[Row]], Iterable[tuple[Any, ...]]]

FOREVER = datetime.fromisoformat("9999-12-31T23:59:59.999+00:00")
_MILLISECOND = timedelta(milliseconds=1)


def typed(sources: Sources) -> Sources:
    """Return records with the types that their columns have."""

    def value(name: str, given: Any) -> Any:
        if given is None:
            return None
        if name.endswith("_at"):
            return datetime.fromisoformat(given)
        return Decimal(given) if name in ("amount", "price") else given

    return {
        source: [{name: value(name, given) for name, given in row.items()} for row in rows]
        for source, rows in sources.items()
    }


def illegal(name: str, stored: Sequence[Row], sources: Sources) -> list[str]:
    """Return what of a model's rows no order of what ties gives; groups are named by their key."""
    columns, key, legal = MODELS[name](sources)
    by_group: dict[Any, list[tuple[Any, ...]]] = defaultdict(list)
    for row in stored:
        values = tuple(row[column] for column in columns)
        by_group[values[:key]].append(values)
    answers = {group: set(bags) for group, bags in legal}
    return [
        f"{name} {group}: {sorted(map(str, by_group.get(group, [])))}"
        for group in {*by_group, *answers}
        if _bag(by_group.get(group, [])) not in answers.get(group, {_bag([])})
    ]


def _bag(rows: Iterable[tuple[Any, ...]]) -> Bag:
    return frozenset(Counter(rows).items())


def _orders(rows: Sequence[Row], by: Callable[[Row], Any]) -> Iterator[list[Row]]:
    ordered = [list(tied) for _, tied in groupby(sorted(rows, key=by), by)]
    for choice in product(*(permutations(tied) for tied in ordered)):
        yield [row for tied in choice for row in tied]


def _rising(column: str) -> Callable[[Row], Any]:
    """Order as Spark does: NULL first."""
    return lambda row: (row[column] is not None, row[column] or datetime.min)


def _falling(column: str) -> Callable[[Row], Any]:
    """Order from the newest; NULL last."""
    return lambda row: (
        row[column] is None,
        FOREVER - (FOREVER if row[column] is None else row[column]),
    )


def _groups(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


Legal = tuple[tuple[str, ...], int, Iterable[tuple[tuple[Any, ...], Iterable[Bag]]]]


def _each(
    columns: str, rows: Iterable[Row], key: str, by: Callable[[Row], Any], produce: Produce
) -> Legal:
    """Return the answers of a model whose groups are those of one column of its rows."""
    return (
        tuple(columns.split()),
        1,
        [
            (group, [_bag(produce(order)) for order in _orders(members, by)])
            for group, members in _groups(rows, key).items()
        ],
    )


def _by(rows: Iterable[Row], column: str) -> dict[Any, Row]:
    return {row[column]: row for row in rows}


def _member_history(sources: Sources) -> Legal:
    plans = _by(sources["plans"], "plan_id")

    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        for place, row in enumerate(order):
            before = order[place - 1]["changed_at"] if place else None
            until = FOREVER if before is None else before - _MILLISECOND
            price = plans.get(row["plan_id"], {}).get("price")
            values = (row["member_id"], row["change_id"], row["tier"], row["city"], price)
            yield (*values, row["changed_at"], until, place == 0)

    columns = "member_id change_id tier city price valid_from valid_to is_current"
    return _each(columns, sources["changes"], "member_id", _falling("changed_at"), produce)


def _member_steps(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        for place, row in enumerate(order):
            after = order[place + 1]["tier"] if place + 1 < len(order) else None
            before = order[place - 1]["city"] if place else "nowhere"
            values = (row["member_id"], row["change_id"], row["tier"])
            yield (*values, after, before, place + 1)

    columns = "member_id change_id tier next_tier city_before step"
    return _each(columns, sources["changes"], "member_id", _rising("changed_at"), produce)


def _newest(columns: str, make: Callable[[Row, Sources], Iterable[tuple[Any, ...]]]) -> Any:
    """Return the answers of a model made of the newest change of each member."""

    def legal(sources: Sources) -> Legal:
        return _each(
            columns,
            sources["changes"],
            "member_id",
            _falling("changed_at"),
            lambda order: make(order[0], sources),
        )

    return legal


def _plain(columns: str) -> Any:
    names = columns.split()
    return _newest(columns, lambda row, sources: [tuple(row[name] for name in names)])


def _by_max_by(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        timed = [row for row in order if row["changed_at"] is not None]
        tier = timed[0]["tier"] if timed else None
        newest = timed[0]["changed_at"] if timed else None
        yield order[0]["member_id"], tier, newest, len(order)

    columns = "member_id tier changed_at changes"
    return _each(columns, sources["changes"], "member_id", _falling("changed_at"), produce)


def _plan_by_max_by(sources: Sources) -> Legal:
    plans = _by(sources["plans"], "plan_id")

    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        timed = [row for row in order if row["changed_at"] is not None]
        plan = plans.get(timed[0]["plan_id"]) if timed else None
        if plan is not None:
            yield order[0]["member_id"], plan["plan_name"], plan["price"]

    columns = "member_id plan_name price"
    return _each(columns, sources["changes"], "member_id", _falling("changed_at"), produce)


def _first_seen(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        times = [row["changed_at"] for row in order if row["changed_at"] is not None]
        yield order[0]["member_id"], min(times, default=None)

    columns = "member_id first_seen_at"
    return _each(columns, sources["changes"], "member_id", lambda row: 0, produce)


def _filled(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        level = None
        for row in order:
            level = level if row["level"] is None else row["level"]
            yield row["meter_id"], row["reading_id"], row["read_at"], level

    columns = "meter_id reading_id read_at level"
    return _each(columns, sources["readings"], "meter_id", _rising("read_at"), produce)


def _filled_back(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        level = None
        for rows_after, row in enumerate(reversed(order), 1):
            level = level if row["level"] is None else row["level"]
            yield row["meter_id"], row["reading_id"], level, rows_after

    columns = "meter_id reading_id level_after rows_after"
    return _each(columns, sources["readings"], "meter_id", _rising("read_at"), produce)


def _running(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        total = Decimal(0)
        for row in order:
            total += row["amount"]
            yield row["member_id"], row["charge_id"], row["amount"], total

    columns = "member_id charge_id amount running_amount"
    return _each(columns, sources["charges"], "member_id", _rising("charged_at"), produce)


def _moving(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        for place, row in enumerate(order):
            near = order[max(0, place - 1) : place + 2]
            half = 1 if place < ceil(len(order) / 2) else 2
            yield row["member_id"], row["charge_id"], max(it["amount"] for it in near), half

    columns = "member_id charge_id highest_near half"
    return _each(columns, sources["charges"], "member_id", _rising("charged_at"), produce)


def _matches(sources: Sources) -> Legal:
    groups = []
    for charge in sources["charges"]:
        matched: list[Row] = [
            change
            for change in sources["changes"]
            if change["member_id"] == charge["member_id"]
            and None not in (change["changed_at"], charge["charged_at"])
            and change["changed_at"] <= charge["charged_at"]
        ]
        rows = matched or [{"tier": None, "changed_at": None}]
        values = (charge["charge_id"], charge["member_id"], charge["amount"])
        bags = [_bag([(*values, it[0]["tier"])]) for it in _orders(rows, _falling("changed_at"))]
        groups.append(((charge["charge_id"],), bags))
    return ("charge_id", "member_id", "amount", "tier"), 1, groups


def _beside_current(sources: Sources) -> Legal:
    changes = _groups(sources["changes"], "member_id")

    def bags(member: Any, charges: Sequence[Row]) -> Iterator[Bag]:
        known: list[Row] = changes.get((member,), [{"tier": None, "changed_at": None}])
        for order in _orders(known, _falling("changed_at")):
            tier = order[0]["tier"]
            yield _bag((member, row["charge_id"], row["amount"], tier) for row in charges)

    groups = _groups(sources["charges"], "member_id").items()
    columns = ("member_id", "charge_id", "amount", "tier")
    return columns, 1, [(group, list(bags(group[0], rows))) for group, rows in groups]


def _with_plan(row: Row, sources: Sources) -> list[tuple[Any, ...]]:
    plan = _by(sources["plans"], "plan_id").get(row["plan_id"], {})
    city = _by(sources["cities"], "city").get(row["city"], {})
    return [(row["member_id"], row["plan_id"], plan.get("plan_name"), city.get("region"))]


def _region(row: Row, sources: Sources) -> list[tuple[Any, ...]]:
    city = _by(sources["cities"], "city").get(row["city"])
    return [] if city is None else [(row["member_id"], city["region"])]


def _tier_runs(sources: Sources) -> Legal:
    # Each window has its own order, so both places may be any possible ones.
    def bags(rows: Sequence[Row]) -> Iterator[Bag]:
        by = _rising("changed_at")
        tiers = _groups(rows, "tier").values()
        of_tiers = list(product(*(list(_orders(tier, by)) for tier in tiers)))
        for order in _orders(rows, by):
            place = {row["change_id"]: number for number, row in enumerate(order)}
            for choice in of_tiers:
                runs: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
                for tier in choice:
                    for number, row in enumerate(tier):
                        run = place[row["change_id"]] - number
                        runs[row["member_id"], row["tier"], run].append(row)
                yield _bag((*run, len(its), _earliest(its)) for run, its in runs.items())

    groups = _groups(sources["changes"], "member_id").items()
    columns = ("member_id", "tier", "run", "changes", "began_at")
    return columns, 1, [(group, set(bags(rows))) for group, rows in groups]


def _earliest(rows: Iterable[Row]) -> datetime | None:
    times = [row["changed_at"] for row in rows if row["changed_at"] is not None]
    return min(times, default=None)


def _newest_charge(sources: Sources) -> Legal:
    charges = _groups(sources["charges"], "member_id")

    def bags(member: Any) -> Iterator[Bag]:
        # NULL is equal to nothing.
        known = charges.get((member,), []) if member is not None else []
        for order in _orders(known, _falling("charged_at")):
            newest: Row = order[0] if order else {}
            yield _bag([(member, newest.get("charge_id"), newest.get("amount"))])

    members = {row["member_id"] for row in sources["changes"]}
    columns = ("member_id", "charge_id", "amount")
    return columns, 1, [((member,), list(bags(member))) for member in members]


def _two_newest(sources: Sources) -> Legal:
    def produce(order: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
        for place, row in enumerate(order[:2], 1):
            yield row["member_id"], place, row["tier"], row["changed_at"]

    columns = "member_id place tier changed_at"
    return _each(columns, sources["changes"], "member_id", _falling("changed_at"), produce)


def _of_each_city(sources: Sources) -> Legal:
    def bags(rows: Sequence[Row]) -> Iterator[Bag]:
        cities = _groups(rows, "city").values()
        for choice in product(*(_orders(city, _falling("changed_at")) for city in cities)):
            newest = [order[0] for order in choice]
            lowest = min(row["tier"] for row in newest)
            for row in newest:
                if row["tier"] == lowest:
                    yield _bag([(row["member_id"], row["city"], row["tier"])])

    groups = _groups(sources["changes"], "member_id").items()
    return ("member_id", "city", "tier"), 1, [(group, set(bags(rows))) for group, rows in groups]


def _any_city(sources: Sources) -> Legal:
    groups = _groups(sources["changes"], "member_id").items()
    return (
        ("member_id", "city", "changes"),
        1,
        [(key, [_bag([(*key, row["city"], len(rows))]) for row in rows]) for key, rows in groups],
    )


def _in_all(columns: str, by: Callable[[Row], Any], word: Callable[[Sequence[Row]], Any]) -> Any:
    """Return the answers of counts over all members, each in any of its orders."""

    def legal(sources: Sources) -> Legal:
        choices = [
            {frozenset(Counter(word(order)).items()) for order in _orders(rows, by)}
            for rows in _groups(sources["changes"], "member_id").values()
        ]
        bags = set()
        for choice in product(*choices):
            total: Counter[Any] = Counter()
            for counts in choice:
                total.update(dict(counts))
            bags.add(_bag(total.items()))
        return tuple(columns.split()), 0, [((), bags)]

    return legal


MODELS: Mapping[str, Callable[[Sources], Legal]] = {
    "member_history": _member_history,
    "member_steps": _member_steps,
    "current_members": _plain("member_id tier city plan_id changed_at"),
    "current_by_qualify": _plain("member_id tier city"),
    "current_by_max_by": _by_max_by,
    "first_seen": _first_seen,
    "first_city": lambda sources: _each(
        "member_id first_city",
        sources["changes"],
        "member_id",
        _rising("changed_at"),
        lambda order: [(order[0]["member_id"], order[0]["city"])],
    ),
    "readings_filled": _filled,
    "readings_filled_back": _filled_back,
    "running_charges": _running,
    "moving_charges": _moving,
    "charge_matches": _matches,
    "charges_beside_current": _beside_current,
    "current_with_plan": _newest("member_id plan_id plan_name region", _with_plan),
    "newest_plan_by_max_by": _plan_by_max_by,
    "tier_runs": _tier_runs,
    "two_newest": _two_newest,
    "newest_charge": _newest_charge,
    "newest_reading": lambda sources: _each(
        "meter_id reading_id",
        sources["readings"],
        "meter_id",
        _falling("read_at"),
        lambda order: [(order[0]["meter_id"], order[0]["reading_id"])],
    ),
    "newest_of_each_city": _of_each_city,
    "newest_tiers": _newest(
        "member_id tier", lambda row, sources: [(row["member_id"], row["tier"].upper())]
    ),
    "newest_regions": _newest("member_id region", _region),
    "any_city": _any_city,
    "kept_whole": _plain("member_id tier"),
    "members_by_city": _in_all(
        "city members", _falling("changed_at"), lambda order: [order[0]["city"]]
    ),
    "changes_by_tier_before": _in_all(
        "tier_before changes",
        _rising("changed_at"),
        lambda order: [None, *(row["tier"] for row in order[:-1])],
    ),
}
