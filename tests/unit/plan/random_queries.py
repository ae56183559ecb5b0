"""Random Spark queries over four small tables: joins, groups, windows, unions, nested at will."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from livemart.plan.plan import Inputs

# Types by column: i an integer, s a text, t a timestamp.
TABLES: dict[str, dict[str, str]] = {
    "s.t": {"id": "i", "k": "s", "x": "i", "y": "i", "ts": "t"},
    "s.u": {"k": "s", "g": "s", "v": "i"},
    "s.w": {"k": "s", "x": "i", "g": "s"},
    "s.z": {"g": "s", "x": "i", "q": "i"},
    "s.c": {"moment": "t"},
}
# The one row that says what time it is.
CLOCK = "s.c"
# The columns of each table's key, by place; `s.w` has none, so a row of it may come twice.
KEYS: dict[str, tuple[int, ...]] = {"s.t": (0,), "s.u": (0,), "s.w": (), "s.z": (0, 1), CLOCK: ()}
INPUTS = Inputs(
    columns={name: tuple(columns) for name, columns in TABLES.items()},
    unique={
        name: (tuple(list(TABLES[name])[place] for place in places),)
        for name, places in KEYS.items()
        if places
    },
    clocks=frozenset({CLOCK}),
)

Columns = list[tuple[str, str]]
_FRAMES = (
    "interval 1 hour preceding and current row",
    "interval 2 hours preceding and interval 1 hour preceding",
    "current row and interval 1 hour following",
    "interval 1 hour preceding and interval 1 hour following",
)


def random_query(seed: int) -> str:
    """Return a query; the same seed gives the same one."""
    maker = _Maker(random.Random(seed))
    if maker.chance.random() < 0.4:
        for _ in range(maker.chance.choice([1, 2])):
            text, columns = maker.query(1)
            maker.shared[f"cte{len(maker.shared)}"] = (text, columns)
    text, _ = maker.query(maker.chance.choice([1, 2, 2]))
    if not maker.shared:
        return text
    named = ", ".join(f"{name} as ({inner})" for name, (inner, _) in maker.shared.items())
    return f"with {named} {text}"


def random_asking_query(seed: int) -> str:
    """Return a query that asks correlated subqueries; the same seed gives the same one."""
    text, _ = _Maker(random.Random(seed)).asking(1)
    return text


def random_clock_query(seed: int) -> str:
    """Return a query that compares a time with the clock, anywhere; the same seed, the same one."""
    maker = _Maker(random.Random(seed), reads_clock=True)
    return maker.query(maker.chance.choice([1, 1, 2]))[0]


@dataclass
class _Maker:
    chance: random.Random
    shared: dict[str, tuple[str, Columns]] = field(default_factory=dict)
    reads_clock: bool = False
    _made: int = 0

    def query(self, depth: int) -> tuple[str, Columns]:
        """Return a SELECT and its columns."""
        kinds = {
            self._project: 1,
            self._group: 3,
            self._window: 3,
            self._join: 3,
            self._join_group: 4,
            self._join_framed: 1,
            self._union: 1,
            self._distinct: 1,
            self._top: 1,
        }
        return self.chance.choices(list(kinds), list(kinds.values()))[0](depth)

    # FROM --------------------------------------------------------------------------------------

    def _alias(self) -> str:
        self._made += 1
        return f"r{self._made}"

    def _source(self, depth: int) -> tuple[str, Columns]:
        if depth > 0 and self.chance.random() >= 0.35:
            text, columns = self.query(depth - 1)
            return f"({text})", columns
        if self.shared and self.chance.random() < 0.35:
            name = self.chance.choice(list(self.shared))
            return name, self.shared[name][1]
        name = self.chance.choice(["s.t", "s.t", "s.u", "s.w", "s.z"])
        if self.reads_clock and self.chance.random() < 0.7:
            return self._compared()
        return name, list(TABLES[name].items())

    def _compared(self) -> tuple[str, Columns]:
        """Return `s.t` with a comparison with the clock in the place of one of its columns."""
        alias, test, moments = self._alias(), "", list[str]()
        has_moments = self.chance.random() < 0.3
        for word in ("", *self.chance.choice([(), ("and",), ("or",)])):
            hours = self.chance.choice([0, 1, 3])
            sign = self.chance.choice(["<", "<=", ">", ">="])
            time = self.chance.choice(["ts", "date_trunc('hour', ts)", "ts + interval 30 minutes"])
            time = time.replace("ts", f"{alias}.ts")
            moment = f"(select c.moment from {CLOCK} as c) - interval {hours} hours"
            if has_moments:
                moments.append(moment)
                moment = f"{alias}_p.m{len(moments)}"
            sides = [time, sign, moment] if self.chance.random() < 0.7 else [moment, sign, time]
            test += f" {word} {' '.join(sides)}"
        values = {
            "x": f"case when {test} then {alias}.x else 7 end",
            "y": f"if({test}, 1, 0)",
            "k": f"case when {test} then 'late' else {alias}.k end",
        }
        name = self.chance.choice(list(values))
        listed = ", ".join(
            f"{values[it]} as {it}" if it == name else f"{alias}.{it} as {it}"
            for it in TABLES["s.t"]
        )
        where = f" where {test}" if self.chance.random() < 0.2 else ""
        named = ", ".join(f"{it} as m{number}" for number, it in enumerate(moments, start=1))
        joined = f" cross join (select {named}) as {alias}_p" if moments else ""
        return f"(select {listed} from s.t as {alias}{joined}{where})", list(TABLES["s.t"].items())

    def _framed(self) -> tuple[str, Columns]:
        """Return totals over frames of time, to be joined by key, time or both."""
        alias, measure = self._alias(), self.chance.choice(["sum", "max", "count"])
        frame = self.chance.choice(_FRAMES)
        total = f"{measure}({alias}.x) over (partition by {alias}.k order by {alias}.ts"
        return (
            f"(select {alias}.k as k, {alias}.ts as ts, {total} range between {frame}) as total"
            f" from s.t as {alias})",
            [("k", "s"), ("ts", "t"), ("total", "i")],
        )

    def _joined(self, depth: int) -> tuple[str, list[tuple[str, Columns]], str]:
        """Return FROM, what can be read of it by alias, and WHERE."""
        source, columns = self._source(depth)
        alias = self._alias()
        text, scope, where = f"{source} as {alias}", [(alias, columns)], []
        for _ in range(self.chance.choice([1, 1, 2])):
            is_framed = self.chance.random() < 0.15
            source, columns = self._framed() if is_framed else self._source(depth - 1)
            alias = self._alias()
            condition = self._condition(*self.chance.choice(scope), alias, columns)
            kind = self.chance.choices(
                ["join", "left join", "right join", "left semi join", "left anti join", "cross"],
                [4, 4, 1, 1, 1, 2],
            )[0]
            if kind == "cross":
                text += f" cross join {source} as {alias}"
                where.append(condition)
            else:
                text += f" {kind} {source} as {alias} on {condition}"
            if "semi" not in kind and "anti" not in kind:
                scope.append((alias, columns))
        return text, scope, " where " + " and ".join(where) if where else ""

    def _condition(self, left: str, mine: Columns, right: str, theirs: Columns) -> str:
        found = []
        for _ in range(self.chance.choice([1, 1, 1, 2])):
            name, kind = self.chance.choice(mine)
            others = [other for other, its_kind in theirs if its_kind == kind]
            if others:
                equal = self.chance.choice(["=", "=", "=", "<=>"])
                found.append(f"{left}.{name} {equal} {right}.{self.chance.choice(others)}")
        times = [[name for name, kind in side if kind == "t"] for side in (mine, theirs)]
        if all(times) and self.chance.random() < 0.6:
            # Rows within the reach of a frame below have other times than the row that changed.
            one, other = map(self.chance.choice, times)
            found.append(f"{left}.{one} = {right}.{other}")
        numbers = [[name for name, kind in side if kind == "i"] for side in (mine, theirs)]
        if all(numbers) and self.chance.random() < 0.2:
            one, other = map(self.chance.choice, numbers)
            found.append(f"{left}.{one} {self.chance.choice(['<', '>=', '<>'])} {right}.{other}")
        return " and ".join(dict.fromkeys(found)) or "1 = 1"

    # SELECT ------------------------------------------------------------------------------------

    def _picked(self, columns: Columns, alias: str, kinds: str, count: int = 1) -> Columns:
        found = [(f"{alias}.{name}", kind) for name, kind in columns if kind in kinds]
        return self.chance.sample(found, min(count, len(found)))

    @staticmethod
    def _listed(outputs: Columns) -> tuple[str, Columns]:
        named = [(f"c{place}", kind) for place, (_, kind) in enumerate(outputs)]
        parts = (f"{expr} as c{place}" for place, (expr, _) in enumerate(outputs))
        return ", ".join(parts), named

    def _project(self, depth: int) -> tuple[str, Columns]:
        source, columns = self._source(depth)
        alias = self._alias()
        outputs = self._picked(columns, alias, "sit", self.chance.randint(1, len(columns)))
        numbers = self._picked(columns, alias, "i")
        where = ""
        if numbers and self.chance.random() < 0.5:
            outputs.append((f"coalesce({numbers[0][0]}, 0) + 1", "i"))
        if numbers and self.chance.random() < 0.5:
            tests = ["> 0", "is not null", "in (0, 2)", "<> 1"]
            where = f" where {numbers[0][0]} {self.chance.choice(tests)}"
        listed, named = self._listed(outputs)
        return f"select {listed} from {source} as {alias}{where}", named

    def _distinct(self, depth: int) -> tuple[str, Columns]:
        source, columns = self._source(depth)
        alias = self._alias()
        listed, named = self._listed(self._picked(columns, alias, "sit", 3))
        return f"select distinct {listed} from {source} as {alias}", named

    def _measures(self, columns: Columns, alias: str) -> Columns:
        numbers = [f"{alias}.{name}" for name, kind in columns if kind == "i"]
        found: Columns = [("count(*)", "i")] if self.chance.random() < 0.75 else []
        times = self._picked(columns, alias, "t") if self.reads_clock else []
        if times and self.chance.random() < 0.4:
            end = self.chance.choice([f"max({times[0][0]})", f"min({times[0][0]})"])
            found.append((f"if({end} <= (select c.moment from {CLOCK} as c), 1, 0)", "i"))
        for _ in range(self.chance.randint(0, 3)):
            anything = f"{alias}.{self.chance.choice(columns)[0]}"
            number = self.chance.choice(numbers) if numbers else None
            found.append(
                self.chance.choice(
                    [(f"count(distinct {anything})", "i"), (f"count({anything})", "i")]
                    if number is None
                    else [
                        (f"count(distinct {anything})", "i"),
                        (f"count({anything})", "i"),
                        (f"sum({number})", "i"),
                        (f"max({number})", "i"),
                        (f"min({number})", "i"),
                        (f"coalesce(sum({number}), 0)", "i"),
                        (f"avg({number})", "f"),
                        (f"sum(case when {number} > 0 then 1 end)", "i"),
                    ]
                )
            )
        return found or [("count(*)", "i")]

    def _group(self, depth: int) -> tuple[str, Columns]:
        source, columns = self._source(depth)
        alias = self._alias()
        keys = self._picked(columns, alias, "sit", self.chance.choice([1, 1, 2])) or [("'c'", "s")]
        keys = [
            (f"date_trunc('hour', {expr})", kind)
            if kind == "t" and self.chance.random() < 0.5
            else (expr, kind)
            for expr, kind in keys
        ]
        shown = keys[1:] if self.chance.random() < 0.12 else keys
        listed, named = self._listed([*shown, *self._measures(columns, alias)])
        having = self.chance.choice(["", "", "", "", " having count(*) > 1"])
        by = ", ".join(expr for expr, _ in keys)
        return f"select {listed} from {source} as {alias} group by {by}{having}", named

    def _join(self, depth: int) -> tuple[str, Columns]:
        text, scope, where = self._joined(depth)
        outputs: Columns = []
        for alias, columns in scope:
            outputs += self._picked(columns, alias, "sit", self.chance.choice([0, 1, 2, 2]))
        alias, columns = scope[0]
        listed, named = self._listed(outputs or self._picked(columns, alias, "sitf"))
        return f"select {listed} from {text}{where}", named

    def _join_group(self, depth: int) -> tuple[str, Columns]:
        text, scope, where = self._joined(depth)
        keys: Columns = []
        for alias, columns in self.chance.sample(
            scope, min(len(scope), self.chance.choice([1, 1, 2]))
        ):
            keys += self._picked(columns, alias, "is")
        keys = keys or [("'c'", "s")]
        alias, columns = self.chance.choice(scope)
        listed, named = self._listed([*keys, *self._measures(columns, alias)])
        by = ", ".join(expr for expr, _ in keys)
        return f"select {listed} from {text}{where} group by {by}", named

    def _join_framed(self, depth: int) -> tuple[str, Columns]:
        framed, _ = self._framed()
        one, other = self._alias(), self._alias()
        condition = self.chance.choice(
            [f"{one}.k = {other}.k and {one}.ts = {other}.ts", f"{one}.ts = {other}.ts"]
        )
        kind = self.chance.choice(["join", "left join", "left join"])
        text = f"s.t as {one} {kind} {framed} as {other} on {condition}"
        outputs = self._picked(list(TABLES["s.t"].items()), one, "sit", 3)
        if self.chance.random() < 0.5:
            listed, named = self._listed([*outputs, (f"{other}.total", "i")])
            return f"select {listed} from {text}", named
        listed, named = self._listed([*outputs, (f"max({other}.total)", "i")])
        by = ", ".join(expr for expr, _ in outputs)
        return f"select {listed} from {text} group by {by}", named

    def _union(self, depth: int) -> tuple[str, Columns]:
        sides = [(*self._source(depth), self._alias()) for _ in range(2)]
        kinds = [
            kind
            for kind in "is"
            if all(any(its == kind for _, its in columns) for _, columns, _ in sides)
        ]
        if not kinds:
            return self._project(depth)
        wanted = [self.chance.choice(kinds) for _ in range(self.chance.randint(1, 2))]
        mark = self.chance.random() < 0.4
        texts = []
        for (source, columns, alias), word in zip(sides, ("'p'", "'q'"), strict=True):
            outputs = [self._picked(columns, alias, kind)[0] for kind in wanted]
            listed, named = self._listed([*outputs, (word, "s")] if mark else outputs)
            texts.append(f"select {listed} from {source} as {alias}")
        if self.chance.random() < 0.15:
            values = [("1" if kind == "i" else "'a'", kind) for _, kind in named]
            texts.append(f"select {self._listed(values)[0]}")
        return self.chance.choice([" union all ", " union all ", " union "]).join(texts), named

    # Correlated subqueries ---------------------------------------------------------------------

    def asking(self, depth: int) -> tuple[str, Columns]:
        """Return rows of one source of which each asks another for what shares a key with it."""
        source, columns = self._source(depth)
        alias, where, lateral = self._alias(), "", ""
        outputs = self._picked(columns, alias, "sit", self.chance.randint(1, len(columns)))
        for _ in range(self.chance.choice([1, 1, 2])):
            other, theirs = self._source(depth - 1)
            asked = self._alias()
            condition = self._condition(asked, theirs, alias, columns)
            numbers = [name for name, kind in theirs if kind == "i"]
            kind = self.chance.choice(["exists", "not exists", "scalar", "in", "lateral"])
            if kind == "in":
                name, its = self.chance.choice(columns)
                same = [theirs_name for theirs_name, theirs_kind in theirs if theirs_kind == its]
                if same:
                    test = f"{alias}.{name} in (select {asked}.{self.chance.choice(same)}"
                    test += f" from {other} as {asked})"
                    others = self._picked(columns, alias, "i") or [(f"length('{alias}')", "i")]
                    if self.chance.random() < 0.25:
                        outputs.append((f"case when {test} then 1 else {others[0][0]} end", "i"))
                    elif self.chance.random() < 0.4:
                        where += f" and ({others[0][0]} > 1 or ({others[0][0]} = 0 and {test}))"
                    else:
                        where += f" and {test}"
            elif kind == "lateral" and not lateral and "1 = 1" not in condition:
                listed = ", ".join(f"{asked}.{name} as l{n}" for n, (name, _) in enumerate(theirs))
                every = ", ".join(f"{asked}.{name}" for name, _ in theirs)
                side = self.chance.choice(["cross join", "left join"])
                lateral = f" {side} lateral (select {listed} from {other} as {asked}"
                lateral += f" where {condition} order by {every} limit 1) as lat"
                lateral += " on true" if side == "left join" else ""
                outputs.append(("lat.l0", theirs[0][1]))
            elif kind == "scalar" and numbers:
                measure = self.chance.choice(["max", "count", "sum"])
                value = f"(select {measure}({asked}.{numbers[0]}) from {other} as {asked}"
                value += f" where {condition})"
                outputs.append(
                    (f"coalesce({value}, -1)" if self.chance.random() < 0.5 else value, "i")
                )
            elif "exists" in kind:
                where += f" and {kind} (select 1 from {other} as {asked} where {condition})"
        listed, named = self._listed(outputs)
        where = f" where {where.removeprefix(' and ')}" if where else ""
        text = f"select {listed} from {source} as {alias}{lateral}{where}"
        if self.chance.random() < 0.3:
            grouped = self._alias()
            keys = self._picked(named, grouped, "si") or [("'c'", "s")]
            listed, named = self._listed([*keys, ("count(*)", "i")])
            text = f"select {listed} from ({text}) as {grouped} group by {keys[0][0]}"
        return text, named

    # Windows -----------------------------------------------------------------------------------

    def _window(self, depth: int) -> tuple[str, Columns]:
        source, columns = self._source(depth)
        alias = self._alias()
        partition = self._picked(columns, alias, "is", self.chance.choice([1, 1, 2]))
        outputs = [(f"{alias}.{name}", kind) for name, kind in columns]
        outputs = [output for output in outputs if self.chance.random() < 0.8] or outputs
        if partition and partition[0] not in outputs and self.chance.random() < 0.85:
            outputs.append(partition[0])
        for _ in range(self.chance.choice([1, 1, 2])):
            if self.chance.random() < 0.25:
                partition = self._picked(columns, alias, "is") or partition
            outputs += self._over(columns, alias, partition)
        listed, named = self._listed(outputs)
        return f"select {listed} from {source} as {alias}", named

    def _over(self, columns: Columns, alias: str, partition: Columns) -> Columns:
        """Return one window function, none if the columns do not allow it."""
        by = "partition by " + ", ".join(expr for expr, _ in partition) if partition else ""
        every = ", ".join(f"{alias}.{name}" for name, _ in columns)
        order = f"{alias}.{self.chance.choice(columns)[0]}"
        order += self.chance.choice(["", " desc", " nulls last"])
        numbers = self._picked(columns, alias, "i")
        times = self._picked(columns, alias, "t")
        choices = [
            f"count(*) over ({by})",
            f"row_number() over ({by} order by {every})",
        ]
        if by:
            choices += [f"{name}() over ({by} order by {order})" for name in ("rank", "dense_rank")]
        if numbers:
            number = numbers[0][0]
            choices += [
                f"sum({number}) over ({by})",
                f"sum({number}) over ({by} order by {order})",
                f"lag({number}) over ({by} order by {order}, {every})",
                f"sum({number}) over ({by} order by {every} rows 1 preceding)",
            ]
            for function in ("sum", "max", "count") if times else ():
                frame = f"range between {self.chance.choice(_FRAMES)}"
                down = self.chance.choice(["", "", " desc"])
                choices.append(
                    f"{function}({number}) over ({by} order by {times[0][0]}{down} {frame})"
                )
        return [(self.chance.choice(choices), "i")]

    def _top(self, depth: int) -> tuple[str, Columns]:
        source, columns = self._source(depth)
        alias, outer = self._alias(), self._alias()
        partition = self._picked(columns, alias, "is")
        if not partition:
            return self._project(depth)
        every = ", ".join(f"{alias}.{name}" for name, _ in columns)
        order = self.chance.choice(
            [
                f"rank() over (partition by {partition[0][0]} order by {alias}."
                f"{self.chance.choice(columns)[0]} desc)",
                f"row_number() over (partition by {partition[0][0]} order by {every})",
            ]
        )
        listed = ", ".join(f"{outer}.{name}" for name, _ in columns)
        return (
            f"select {listed} from (select {every}, {order} as place from {source} as {alias})"
            f" as {outer} where {outer}.place <= {self.chance.choice([1, 2])}",
            columns,
        )
