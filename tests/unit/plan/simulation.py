"""Plans carried out in DuckDB: what a refresh would make of a change, against a recomputation.

A second engine for the planner's promises alone: which rows a change affects, which rows are enough
to recompute them, and that signed changes add up. How Spark and Delta carry them out is for the
equivalence suite.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from livemart.plan.plan import Plan
from livemart.plan.reading.grouping_sets import SETS, grouping_sets
from livemart.plan.relations.clock import evaluate
from livemart.plan.relations.key_query import RowsOf
from livemart.plan.relations.relation import Restriction
from livemart.plan.sql.flatten import Flat
from livemart.plan.strategies.region import Region
from livemart.plan.strategies.signed import Signed
from livemart.plan.strategies.slices import Slice

Row = tuple[Any, ...]
State = Mapping[str, Sequence[Row]]

_TYPES = {"i": "int", "s": "varchar", "t": "timestamp"}


@dataclass
class _Change:
    """One change of all tables; by occurrence, how often each row came (or went).

    `passed`: the rows now that the clock may have passed.
    """

    old: State
    new: State
    net: dict[int, dict[Row, int]]
    passed: dict[int, set[Row]]

    def touched(self, occurrence: int) -> list[Row]:
        """Return the rows that may matter differently."""
        return list({**self.net[occurrence], **dict.fromkeys(self.passed[occurrence])})


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Return the database of all simulations: to open one takes longer than a query."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    return connection


class Simulation:
    """Carries out plans over tables given by the types of their columns."""

    def __init__(self, tables: Mapping[str, Mapping[str, str]]) -> None:
        self._tables = dict(tables)
        self._connection = _database()
        self._translated: dict[str, str] = {}
        # The rows of each table of a state, as they were made last.
        self._whole: dict[str, Sequence[Row]] = {}

    def faults(self, plan: Plan, old: State, new: State) -> Iterator[str]:
        """Yield what a refresh by this plan gets wrong of a change, in any of its steps."""
        old, new = dict(old), dict(new)
        for stage in plan.stages:
            step = replace(stage.plan, steps=None)
            yield from self._faults_of_step(step, old, new)
            assert step.flat is not None
            for state in (old, new):
                self._tables[stage.relation], state[stage.relation] = self._table(step.flat, state)
        assert plan.whole is not None and plan.flat is not None
        for state in (old, new) if plan.stages else ():
            in_steps, whole = self.result(plan.flat, state), self.result(plan.whole, state)
            if in_steps != whole:
                yield f"in steps {in_steps - whole} instead of {whole - in_steps}"
        yield from self._faults_of_step(replace(plan, steps=None), old, new)

    def left_in_steps(
        self,
        plan: Plan,
        decided: Callable[[Flat], Flat],
        again: Callable[[Flat], Flat],
        old: State,
        new: State,
    ) -> tuple[Counter[Row], list[str]]:
        """Return the rows that a refresh leaves of a query that is cut, and its faults.

        Each stage decides in the way that is not that of the stage before.

        Args:
            decided: puts rows that tie in the order by which the stored ones were decided.
            again: the same for the order by which a refresh decides.
        """
        old, new = dict(old), dict(new)
        faults: list[str] = []
        for stage in plan.stages:
            step = stage.plan.last_step
            decided, again = again, decided
            assert step.flat is not None
            columns, stored = self._table(decided(step.flat), old)
            if step.ties:
                before = self.result(decided(step.flat), old)
                left = self.refreshed(step, before, again(step.flat), old, new)
                rows = [_typed(row, columns.values()) for row in left.elements()]
            else:
                faults += self._faults_of_step(step, old, new)
                _, rows = self._table(step.flat, new)
            self._tables[stage.relation] = columns
            old[stage.relation], new[stage.relation] = stored, rows
        last = plan.last_step
        assert last.flat is not None
        faults += self._faults_of_step(last, old, new)
        return self.result(last.flat, new), faults

    def _table(self, flat: Flat, state: State) -> tuple[dict[str, str], list[Row]]:
        """Return the columns of a query with their types, and its rows."""
        cursor = self._connection.execute(self._translation(self._over_whole(flat, state)))
        columns = {name.lower(): str(kind) for name, kind, *_ in cursor.description}
        return columns, cursor.fetchall()

    def _faults_of_step(self, plan: Plan, old: State, new: State) -> Iterator[str]:
        assert plan.flat is not None
        change = self._change(plan, old, new)
        if any(change.net[clock] and not compared for clock, compared in plan.parameters.items()):
            return
        before, after = self.result(plan.flat, old), self.result(plan.flat, new)
        yield from self._unique(plan, before)
        if plan.region is not None:
            yield from self._region(plan, plan.region, change, before, after)
        if isinstance(plan.strategy, Signed):
            yield from self._signed(plan, plan.strategy, change, before, after)
            yield from self._product_rule(plan, plan.strategy, old, new)

    def result(self, flat: Flat, state: State) -> Counter[Row]:
        """Return the rows of a query."""
        return Counter(self._rows(self._over_whole(flat, state)))

    def _over_whole(self, flat: Flat, state: State) -> str:
        for relation in set(flat.relations):
            name = f"whole_{relation.replace('.', '_')}"
            if self._whole.get(name) is not state[relation]:
                self._whole[name] = state[relation]
                self._create(name, relation, state[relation])
        return flat.render(lambda mention: f"whole_{mention.relation.replace('.', '_')}")

    def refreshed(
        self, plan: Plan, stored: Counter[Row], anew: Flat, old: State, new: State
    ) -> Counter[Row]:
        """Return the rows of a table after a refresh by region that runs the query again."""
        assert plan.flat is not None and plan.region is not None
        change = self._change(plan, old, new)
        affected = self._affected(plan, plan.region, change)
        area = _Area(plan.region, affected, plan.names)
        kept = Counter({row: count for row, count in stored.items() if not area.holds(row)})
        if not affected:
            return kept
        part = self._part(plan, plan.region, area, anew, change)
        return kept + Counter({row: count for row, count in part.items() if area.holds(row)})

    def _change(self, plan: Plan, old: State, new: State) -> _Change:
        assert plan.flat is not None
        mentions = plan.flat.occurrences
        net = {it.index: _net(old[it.relation], new[it.relation]) for it in mentions}
        passed: dict[int, set[Row]] = {it.index: set() for it in mentions}
        for piece in plan.slices:
            clock = mentions[piece.clock_occurrence].relation
            ((before,),), ((after,),) = old[clock], new[clock]
            if before == after:
                continue
            relation = mentions[piece.occurrence].relation
            place = list(self._tables[relation]).index(piece.column)
            for row in new[relation]:
                if _lies_between(piece, row[place], before, after):
                    passed[piece.occurrence].add(row)
        return _Change(old, new, net, passed)

    # Tables ------------------------------------------------------------------------------------

    def _create(self, name: str, relation: str, rows: Sequence[Row]) -> str:
        columns = self._tables[relation]
        source = "where false"
        if rows:
            values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
            source = f"from (values {values}) as v({', '.join(columns)})"
        listed = ", ".join(
            f"cast({column if rows else 'null'} as {_TYPES.get(kind, kind)}) as {column}"
            for column, kind in columns.items()
        )
        self._connection.execute(f"create or replace temp table {name} as select {listed} {source}")
        return name

    def _only_used(self, plan: Plan, occurrence: int, table: str) -> str:
        """Return the table with NULL for what the plan says is not needed."""
        used = plan.used.get(occurrence)
        if used is None:
            return table
        listed = ", ".join(
            column if column in used else f"cast(null as {_TYPES.get(kind, kind)}) as {column}"
            for column, kind in self._tables[self._relation(plan, occurrence)].items()
        )
        return f"(select {listed} from {table})"

    @staticmethod
    def _relation(plan: Plan, occurrence: int) -> str:
        assert plan.flat is not None
        return plan.flat.occurrences[occurrence].relation

    def _translation(self, sql: str) -> str:
        if sql not in self._translated:
            tree = sqlglot.parse_one(sql, dialect="spark")
            for group in list(tree.find_all(exp.Group)):
                _as_in_spark(group)
            self._translated[sql] = tree.sql("duckdb")
        return self._translated[sql]

    def _rows(self, sql: str) -> list[Row]:
        found = self._connection.execute(self._translation(sql)).fetchall()
        return [tuple(map(_plain, row)) for row in found]

    # Promises ----------------------------------------------------------------------------------

    @staticmethod
    def _unique(plan: Plan, rows: Counter[Row]) -> Iterator[str]:
        places = [plan.names.index(name) for name in plan.unique_key]
        keys: Counter[Row] = Counter()
        for row, count in rows.items():
            keys[tuple(row[place] for place in places)] += count
        if places and any(count > 1 for count in keys.values()):
            yield f"{plan.unique_key} is not unique"

    def _region(
        self,
        plan: Plan,
        region: Region,
        change: _Change,
        before: Counter[Row],
        after: Counter[Row],
    ) -> Iterator[str]:
        assert plan.flat is not None
        affected = self._affected(plan, region, change)
        area = _Area(region, affected, plan.names)
        for row in (before - after) + (after - before):
            if not area.holds(row):
                yield f"{row} changed outside of the region"
                return
        if not affected:
            return
        part = self._part(plan, region, area, plan.flat, change)
        wanted = Counter({row: count for row, count in after.items() if area.holds(row)})
        given = Counter({row: count for row, count in part.items() if area.holds(row)})
        if wanted != given:
            yield f"recomputed {given - wanted} instead of {wanted - given}"

    def _part(
        self, plan: Plan, region: Region, area: _Area, query: Flat, change: _Change
    ) -> Counter[Row]:
        """Return the rows of a query over what the region needs of its inputs."""
        names = {}
        for mention in query.occurrences:
            columns = list(self._tables[mention.relation])
            enough = region.restrictions.get(mention.index, ())
            rows = [row for row in change.new[mention.relation] if area.needs(row, columns, enough)]
            table = self._create(f"enough_{mention.index}", mention.relation, rows)
            names[mention.index] = self._only_used(plan, mention.index, table)
        return Counter(self._rows(query.render(lambda mention: names[mention.index])))

    def _affected(self, plan: Plan, region: Region, change: _Change) -> set[Row]:
        for occurrence in change.net:
            relation = self._relation(plan, occurrence)
            rows = change.touched(occurrence)
            self._create(f"touched_{occurrence}", relation, rows)
            present = self._create(f"present_{occurrence}", relation, change.new[relation])
            known = [*change.new[relation], *rows]
            self._create(present.replace("present", "known"), relation, known)
        found: set[Row] = set()
        for item in region.affected:
            if item.occurrence is not None and change.touched(item.occurrence):
                found.update(self._rows(item.sql.render(_table_of)))
        return found

    def _signed(
        self,
        plan: Plan,
        signed: Signed,
        change: _Change,
        before: Counter[Row],
        after: Counter[Row],
    ) -> Iterator[str]:
        if any(
            change.touched(it.occurrence) and not it.keys and it.link is None
            for it in signed.lookups
        ):
            return
        sides: list[tuple[int, list[Row]]] = []
        for sign, state in ((1, change.new), (-1, change.old)):
            anchors = {
                anchor: self._anchor_rows(plan, signed, anchor, change, state, sign)
                for anchor in signed.anchors
            }
            if any(anchors.values()):
                sides.append((sign, self._side(plan, signed, anchors, state)))
        if signed.outputs is None:
            moved: Counter[Row] = Counter()
            for sign, rows in sides:
                for row in rows:
                    moved[row] += sign
            wanted = Counter(after)
            wanted.subtract(before)
            if {row: n for row, n in moved.items() if n} != {r: n for r, n in wanted.items() if n}:
                yield f"moved {moved} instead of {wanted}"
            return
        yield from _added_up(plan, signed, sides, before, after)

    def _product_rule(self, plan: Plan, signed: Signed, old: State, new: State) -> Iterator[str]:
        """Yield what the changed rows of a lookup do not tell, where no other one changes."""
        assert plan.flat is not None
        for lookup in signed.lookups:
            changing = {self._relation(plan, it) for it in (*signed.anchors, lookup.occurrence)}
            others = {it.index for it in plan.flat.occurrences}
            others -= {*signed.anchors, lookup.occurrence}
            if not lookup.is_linear or changing & {self._relation(plan, it) for it in others}:
                continue
            now = {relation: (new if relation in changing else old)[relation] for relation in old}
            change = self._change(plan, old, now)
            moved = self.result(plan.flat, old)
            for sign in (1, -1):
                for parts, state in ((signed.anchors, now), ((lookup.occurrence,), old)):
                    names = {}
                    for mention in plan.flat.occurrences:
                        rows = list(state[mention.relation])
                        if mention.index in parts:
                            net = change.net[mention.index]
                            rows = [row for row, n in net.items() for _ in range(sign * n)]
                        name = f"part_{mention.index}"
                        names[mention.index] = self._create(name, mention.relation, rows)
                    for row in self._rows(_over(plan.flat, names)):
                        moved[row] += sign
            after = self.result(plan.flat, now)
            if {row: n for row, n in moved.items() if n} != dict(after):
                yield f"parts make {moved} instead of {after}"

    def _anchor_rows(
        self, plan: Plan, signed: Signed, anchor: int, change: _Change, state: State, sign: int
    ) -> list[Row]:
        """Return the rows of an anchor that changed, or whose lookups did."""
        relation = self._relation(plan, anchor)
        columns = list(self._tables[relation])
        wanted: dict[str, set[Any]] = defaultdict(set)
        reached = [(it, {*change.touched(it.occurrence)}) for it in signed.lookups]
        for lookup, touched in reached:
            place_of = list(self._tables[self._relation(plan, lookup.occurrence)]).index
            if (link := lookup.link) is not None:
                values = {row[place_of(link.column)] for row in touched}
                linked = self._relation(plan, link.occurrence)
                place = list(self._tables[linked]).index(link.other)
                (other,) = (it for it in signed.lookups if it.occurrence == link.occurrence)
                both = {*change.old[linked], *change.new[linked]}
                # It is gone through in its turn.
                reached.append((other, {row for row in both if row[place] in values}))
            for name, sites in lookup.keys[:1]:
                values = {row[place_of(name)] for row in touched}
                for occurrence, own in sites:
                    if occurrence == anchor:
                        wanted[own] |= values
        rows: list[Row] = []
        for row, count in Counter(state[relation]).items():
            is_found = row in change.passed[anchor] or any(
                row[columns.index(own)] in values for own, values in wanted.items()
            )
            changed = max(0, sign * change.net[anchor].get(row, 0))
            rows += [row] * (count if is_found else changed)
        return rows

    def _side(
        self, plan: Plan, signed: Signed, anchors: Mapping[int, list[Row]], state: State
    ) -> list[Row]:
        assert plan.flat is not None
        names = {}
        for anchor, rows in anchors.items():
            table = self._create(f"side_{anchor}", self._relation(plan, anchor), rows)
            names[anchor] = self._only_used(plan, anchor, table)
        for lookup in signed.lookups:
            relation = self._relation(plan, lookup.occurrence)
            names[lookup.occurrence] = self._create(
                f"side_{lookup.occurrence}", relation, state[relation]
            )
        for found in plan.flat.occurrences:
            # A clock, or a common table expression that is not read.
            if found.index not in names:
                names[found.index] = self._create(
                    f"side_{found.index}", found.relation, state[found.relation]
                )
        return self._rows(plan.flat.render(lambda found: names[found.index]))


def _as_in_spark(group: exp.Group) -> None:
    """Write out what grouping sets mean in Spark: without a row they have no total."""
    if (sets := grouping_sets(group)) is None or not group.find(*SETS):
        return
    select = group.parent
    assert isinstance(select, exp.Select)
    select.having("count(*) > 0", copy=False)
    keys = {key.sql(): key for keys in sets for key in keys}
    for call in select.find_all(exp.GroupingId):
        call.set("expressions", [key.copy() for key in keys.values()])


def _table_of(rows: RowsOf) -> str:
    return f"{rows.kind}_{rows.occurrence}"


def _over(flat: Flat, names: Mapping[int, str]) -> str:
    """Return a query over the given tables."""
    return flat.render(lambda mention: names[mention.index])


class _Area:
    """The affected region: the model's rows in it, and the rows of its inputs that it needs."""

    def __init__(self, region: Region, affected: set[Row], names: Sequence[str]) -> None:
        self._region = region
        self._keys = [names.index(name) for name in region.keys]
        self._time = None if region.time is None else names.index(region.time)
        self._affected = affected
        width = len(self._keys)
        self._intervals: dict[Row, list[tuple[int, int]]] = defaultdict(list)
        self._whole = set()
        for row in affected:
            if self._time is not None and row[width] is None:
                self._whole.add(row[:width])
            elif self._time is not None:
                low, high = row[width] - region.after, row[width] + region.before
                self._intervals[row[:width]].append((low, high))

    def holds(self, row: Row) -> bool:
        key = tuple(row[place] for place in self._keys)
        if self._time is None:
            return key in self._affected
        time = row[self._time]
        return key in self._whole or (
            time is not None and any(low <= time <= high for low, high in self._intervals[key])
        )

    def needs(self, row: Row, columns: Sequence[str], restrictions: Sequence[Restriction]) -> bool:
        return any(self._passes(row, columns, each) for each in restrictions) or not restrictions

    def _passes(self, row: Row, columns: Sequence[str], restriction: Restriction) -> bool:
        for index, name, margin in restriction.keys:
            keys = {affected[index] for affected in self._affected}
            value = _plain(row[columns.index(name)])
            if margin == 0 and value not in keys:
                return False
            times = [time for time in keys if isinstance(time, int)]
            if margin and value is not None and times:
                if not min(times) - margin <= value <= max(times) + margin:
                    return False
            elif margin and value is None and None not in keys:
                return False
        if restriction.time is None:
            return True
        value = _plain(row[columns.index(restriction.time)])
        if self._whole or value is None:
            return bool(self._whole)
        bounds = [bound for found in self._intervals.values() for bound in found]
        low = min(low for low, _ in bounds) - restriction.before
        high = max(high for _, high in bounds) + restriction.after
        return bool(low <= value <= high)


def _added_up(
    plan: Plan,
    signed: Signed,
    sides: Sequence[tuple[int, list[Row]]],
    before: Counter[Row],
    after: Counter[Row],
) -> Iterator[str]:
    """Yield where stored totals plus the signed change are not the new totals."""
    assert signed.outputs is not None
    roles = {plan.names.index(output.name): output for output in signed.outputs}
    keys = [place for place, output in roles.items() if output.role == "key"]
    measures = [place for place in roles if place not in keys]
    rows = next(place for place, output in roles.items() if output.role == "count_rows")
    totals = {tuple(row[place] for place in keys): list(row) for row in before}
    valued: dict[tuple[Row, int], set[int]] = defaultdict(set)
    for sign, found in sides:
        for row in found:
            key = tuple(row[place] for place in keys)
            total = totals.setdefault(
                key, [None if n in measures else v for n, v in enumerate(row)]
            )
            for place in measures:
                total[place] = (total[place] or 0) + sign * (row[place] or 0)
                if row[place] is not None:
                    valued[key, place].add(sign)
    wanted = {tuple(row[place] for place in keys): row for row in after}
    for key, total in totals.items():
        if not total[rows]:
            if not keys:
                # The engine computes a total of no rows again.
                return
            if key in wanted:
                yield f"{key} is lost"
            continue
        for place in measures:
            may_be_null = total[place] == 0 and roles[place].role == "sum"
            if may_be_null and not roles[place].is_never_null:
                # The engine recomputes the group where a sum may have become NULL.
                continue
            if key not in wanted or total[place] != wanted[key][place]:
                yield f"{key}: {total} instead of {wanted.get(key)}"
                return
    for key in wanted.keys() - totals.keys():
        yield f"{key} is missing"


def _lies_between(piece: Slice, time: Any, before: Any, after: Any) -> bool:
    if before is None or after is None:
        return True
    if time is None:
        return False
    low, high = sorted(evaluate(piece.threshold, _plain(clock)) or 0 for clock in (before, after))
    low, high = (low, high - 1) if piece.has_lower_end else (low + 1, high)
    return bool(low - piece.margin <= _plain(time) <= high + piece.margin)


def _net(old: Sequence[Row], new: Sequence[Row]) -> dict[Row, int]:
    counts = Counter(new)
    counts.subtract(Counter(old))
    return {row: count for row, count in counts.items() if count}


def _literal(value: object) -> str:
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else f"'{value}'"


def _typed(row: Row, kinds: Iterable[str]) -> Row:
    """Return a row of plain values with its times."""
    epoch = datetime(1970, 1, 1)
    return tuple(
        epoch + timedelta(microseconds=value)
        if kind == "TIMESTAMP" and isinstance(value, int)
        else value
        for value, kind in zip(row, kinds, strict=True)
    )


def _plain(value: Any) -> Any:
    """Return a value that compares: times in microseconds, doubles rounded."""
    if isinstance(value, datetime):
        return round(value.replace(tzinfo=UTC).timestamp() * 1_000_000)
    return round(value, 6) if isinstance(value, float) else value
