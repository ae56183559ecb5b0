"""Random models over the mini project: what the planner reads otherwise than Spark, put together.

Odd names, quoted literals, functions that the parser knows by other names, sessions and hopping
windows through subqueries and unions, sums that overflow, frames below joins, maps. Some read
`drawn`, a stored model of which every column holds values on which engines disagree.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.disagreeing_values import KINDS, drawn, drawn_variant, is_grouped_by_spark

SALES = "{{ ref('stg_shop__sales') }}"
NAMES = "{{ ref('shop_names') }}"
# Columns of a layer, by what they are.
_SPELLINGS = {
    "id": ["sale_id", "SaleId", "`order`", "`größe`"],
    "shop": ["shop_id", "ShopKey", "`group`", "`läden`"],
    "amount": ["amount", "Amount_EUR", "`end`"],
    "at": ["sold_at", "SoldAt", "`timestamp`"],
}
_KEYS = (
    "{shop}", "{shop}", "upper({shop})", "concat('it''s ', {shop})", r"concat('\d', {shop})",
    "to_char({amount}, '999.9')", "date_trunc('HOUR', {at})", "trunc({at}, 'Q')",
    "date_trunc(if({amount} > 5, 'HOUR', 'DAY'), {at})", "floor(log10({amount} + 1))",
    "to_date(date_format({at}, 'yyyy/MM/dd'), 'yyyy/MM/dd')", "array_size(split({id}, ''))",
    "struct({shop}, {amount} > 5 as dear)", "map('shop', {shop})", "{period}", "{period}.start",
    "window({at}, '7 minutes').end", "if({amount} > 5, null, {shop})",
)  # fmt: skip
_MEASURES = (
    "count(*)", "sum({amount})", "max({amount})", "count(distinct {shop})", "min({at})",
    "coalesce(sum(nullif({amount}, 5.5)), 0)", "sum(if({amount} > 5, null, {amount}))",
    "try_cast(sum({amount} * 400000000) as int)", "sum(cast({amount} as bigint))",
    "sum(cast({amount} as decimal(38, 0)) * cast(1e37 as decimal(38, 0)))",
    "coalesce(sum(cast({amount} as decimal(38, 0)) * cast(1e37 as decimal(38, 0))), 0)",
    "cast(sum(cast({amount} as bigint) * 2000000000000000000) as decimal(20, 0))",
    "cast(sum({amount}) as decimal(6, 1))", "cast(count(*) as tinyint)", "avg({amount})",
)  # fmt: skip
DRAWN = "{{ ref('drawn') }}"
# A corrected amount changes some of the columns of `drawn`, and leaves the others.
_PARTS = "if(pmod(hash(amount, '{name}'), 2) = 0, 0, amount)"
_COLUMNS = ", ".join(
    f"{drawn(name, 'sale_id', _PARTS.format(name=name))} as {name}" for name in KINDS
)
DRAWN_MODEL = (
    f"select sale_id as id, shop_id as shop, amount, sold_at, {_COLUMNS},"
    f" {drawn_variant('sale_id', _PARTS.format(name='doc'))} as doc from {SALES}"
)
_GROUPED = [name for name in KINDS if is_grouped_by_spark(name)]
# Floating-point numbers are spelled otherwise by each writer of text.
_ORDERED_TEXTS = [name for name in _GROUPED if name not in ("place", "reals")]
_NUMBERS = ("tiny", "small", "whole", "big", "half", "real", "money", "huge", "fine")
_SUMMED = ("tiny", "small", "whole", "big", "money", "huge", "fine")
# By a column `{c}` of any type, a number `{n}` of which sums do not depend on the order.
_DRAWN_KEYS = (
    "{c}", "{c}", "cast({o} as string)", "to_json(struct({o}))", "date_trunc('HOUR', at)",
    "date_trunc('WEEK', local_at)", "to_date(at)", "year(day)", "hour(at)", "window(at, '1 hour')",
    "session_window(at, '40 minutes')", "map_keys(labels)[0]", "hash({c})", "{n} > 2", "{n} = 0",
    "substring(word, 40)", "word < 'x'", "size(items)", "place.city", "reals[0]", "to_json(doc)",
    "schema_of_variant(doc)", "try_variant_get(doc, '$.a', 'string')", "is_variant_null(doc)",
    "labels", "items", "struct(labels, shop)",
)  # fmt: skip
_DRAWN_MEASURES = (
    "count(*)", "count({c})", "count(distinct {c})", "min({c})", "max({c})", "sum(amount)",
    "max_by(id, struct({c}, id))", "min(struct({c}, id))", "sum({s})", "avg({s})",
    "array_sort(collect_set({o}))", "sum(if({n} > 2, amount, null))", "bit_xor(hash({c}))",
    "max_by(doc, id)", "count(doc)", "sum(try_variant_get(doc, '$', 'int'))",
)  # fmt: skip
_DRAWN_FILTERS = (
    "true", "true", "{n} > 2", "{n} = 0", "{n} <= 0", "{n} in (0, 1)", "word = ''", "word > 'x'",
    "day < date'1582-10-15'", "day = date'9999-12-31'", "at >= timestamp'2262-04-11 23:47:16Z'",
    "at < timestamp'1600-01-01'", "local_at > timestamp_ntz'2026-03-08 02:30:00'",
    "token > X'7f'", "{c} is null", "hour(at) = 1", "size(labels) = 0", "doc is null",
)  # fmt: skip
_DRAWN_FRAMES = (
    "order by {c}, id rows between unbounded preceding and current row", "order by {c}",
    "order by at range between interval 1 hour preceding and current row",
    "order by at range between interval 1440 minutes preceding and interval 30 minutes following",
    "order by local_at range between interval 1 hour preceding and current row",
    "order by day range between interval 1 day preceding and current row",
    "order by money range between 1 preceding and 1 following",
)  # fmt: skip
_OUTPUTS = ("a", "Total", "`select`", "`über`", "n_Rows", "w0", "low", "`Größe`")


def random_model(seed: int) -> str:
    """Return the SQL of a model; the same seed gives the same one."""
    return _Maker(random.Random(seed)).model()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def model(self) -> str:
        shapes = (self._grouped, self._grouped, self._joined, self._framed, self._exploded)
        drawn = (self._drawn_groups, self._drawn_groups, self._drawn_frames, self._drawn_rows)
        return self._chance.choice((*shapes, *drawn, self._drawn_join))()

    def _drawn(self, texts: Sequence[str]) -> str:
        """Return one of some expressions over `drawn`."""
        choice = self._chance.choice
        return choice(texts).format(
            c=choice(_GROUPED), o=choice(_ORDERED_TEXTS), n=choice(_NUMBERS), s=choice(_SUMMED)
        )

    def _drawn_groups(self) -> str:
        keys = list({self._drawn(_DRAWN_KEYS) for _ in range(self._chance.choice([1, 1, 2]))})
        keys.sort()
        measures = [self._drawn(_DRAWN_MEASURES) for _ in range(self._chance.randint(1, 3))]
        return (
            f"select {self._listed([*keys, *measures])} from {DRAWN}"
            f" where {self._drawn(_DRAWN_FILTERS)} group by {', '.join(keys)}"
        )

    def _drawn_frames(self) -> str:
        measure = self._drawn(("sum(amount)", "count({c})", "max({c})", "sum({s})"))
        return (
            f"select id, shop, {measure} over (partition by shop {self._drawn(_DRAWN_FRAMES)})"
            f" as total from {DRAWN} where {self._drawn(_DRAWN_FILTERS)}"
        )

    def _drawn_rows(self) -> str:
        column, text = self._chance.choice(_GROUPED), self._drawn(_DRAWN_KEYS[2:9])
        return self._chance.choice(
            [
                f"select id, {column}, {text} as t from {DRAWN}"
                f" where {self._drawn(_DRAWN_FILTERS)}",
                f"select id, {column} from {DRAWN} qualify row_number() over"
                f" (partition by {column} order by sold_at desc, id) = 1",
                f"select {column} from {DRAWN} where amount > 5 union select {column} from {DRAWN}"
                f" where {self._drawn(_DRAWN_FILTERS)}",
                f"select id, {column} from {DRAWN} order by {column} desc, id limit 5",
                f"select id, lag(id) over (partition by {column} order by id) as last from {DRAWN}",
                f"select id, {column}, doc, array(doc, null) as docs, struct(doc, {column}) as both"
                f" from {DRAWN} where {self._drawn(_DRAWN_FILTERS)}",
                f"select id, shop, doc, lag(doc) over (partition by shop order by id) as last"
                f" from {DRAWN} qualify {text} is not null",
            ]
        )

    def _drawn_join(self) -> str:
        column, kind = self._chance.choice(_GROUPED), self._chance.choice(["join", "left join"])
        operator = self._chance.choice(["=", "<=>"])
        # Either groups, whose region is computed, or rows, which a change of the others looks up.
        few, listed = self._chance.choice(
            [
                ("max(id) as newest from {} where amount > 5 group by 1", "max(f.newest)"),
                ("id as newest from {} where amount > 8", "count(f.newest)"),
            ]
        )
        return (
            f"select d.shop, f.k, count(*) as n, {listed} as newest from {DRAWN} as d"
            f" {kind} (select {column} as k, {few.format(DRAWN)}) as f"
            f" on f.k {operator} d.{column} group by d.shop, f.k"
        )

    def _layer(self, alias: str) -> tuple[str, dict[str, str]]:
        """Return a subquery over the sales and its columns, each with a unique name."""
        names = {what: self._chance.choice(names) for what, names in _SPELLINGS.items()}
        period = self._chance.choice(
            [
                "session_window(sold_at, '6 minutes')",
                "window(sold_at, '10 minutes')",
                "struct(sold_at as start, sold_at as end)",
            ]
        )
        stored = dict(zip(_SPELLINGS, ("sale_id", "shop_id", "amount", "sold_at"), strict=True))
        listed = [f"{stored[what]} as {name}" for what, name in names.items()]
        text = f"select {', '.join([*listed, f'{period} as Period'])} from {SALES}"
        if self._chance.random() < 0.25:
            text += f" union all {text} where amount > 5"
        if self._chance.random() < 0.3:
            text = f"select * from ({text}) as inner_{alias}"
        columns = {what: f"{alias}.{name}" for what, name in names.items()}
        return f"({text}) as {alias}", {**columns, "period": f"{alias}.period"}

    def _measures(self, columns: dict[str, str]) -> list[str]:
        count = self._chance.randint(1, 3)
        return [text.format(**columns) for text in self._chance.sample(_MEASURES, count)]

    def _listed(self, expressions: Sequence[str]) -> str:
        names = self._chance.sample(_OUTPUTS[:-1], len(expressions))
        return ", ".join(f"{text} as {name}" for text, name in zip(expressions, names, strict=True))

    def _grouped(self) -> str:
        source, columns = self._layer("s")
        keys = [
            text.format(**columns)
            for text in self._chance.sample(_KEYS, self._chance.choice([1, 1, 2]))
        ]
        listed = self._listed([*keys, *self._measures(columns)])
        return f"select {listed} from {source} group by {', '.join(keys)}"

    def _joined(self) -> str:
        source, columns = self._layer("s")
        kind = self._chance.choice(["join", "left join", "left semi join"])
        condition = self._chance.choice(
            [
                f"l.ShopId = {columns['shop']}",
                f"concat('it''s ', l.ShopId) = concat('it''s ', {columns['shop']})",
                f"l.ShopId <=> lower(upper({columns['shop']}))",
            ]
        )
        keys = [columns["shop"]] if "semi" in kind else ["l.label", columns["shop"]]
        keys = self._chance.sample(keys, self._chance.randint(1, len(keys)))
        listed = self._listed([*keys, *self._measures(columns)])
        looked_up = f"(select shop_id as ShopId, max(shop_name) as label from {NAMES} group by 1)"
        return (
            f"select {listed} from {source} {kind} {looked_up} as l on {condition}"
            f" group by {', '.join(keys)}"
        )

    def _framed(self) -> str:
        source, columns = self._layer("s")
        measure = self._chance.choice(["sum({amount})", "max({amount})", "count({amount})"])
        frame = self._chance.choice(
            [
                "interval 10 minutes preceding and current row",
                "interval 8 minutes preceding and interval 2 minutes following",
            ]
        )
        total = (
            f"{measure.format(**columns)} over (partition by {columns['shop']}"
            f" order by {columns['at']} range between {frame})"
        )
        totalled = f"select {columns['shop']} as k, {columns['at']} as t, {total} as total"
        if self._chance.random() < 0.4:
            return f"{totalled}, {columns['id']} as `Order` from {source}"
        condition = self._chance.choice(
            ["f.k = o.shop_id and f.t = o.sold_at", "f.t = o.sold_at", "f.k = o.shop_id"]
        )
        kind = self._chance.choice(["join", "left join"])
        listed = "o.sale_id, max(f.total) as Most, count(f.total) as n"
        return (
            f"select {listed} from {SALES} as o {kind} ({totalled} from {source}) as f"
            f" on {condition} group by o.sale_id"
        )

    def _exploded(self) -> str:
        source, columns = self._layer("s")
        mapped = f"select {columns['id']} as id, map({columns['shop']}, {columns['amount']}) as m"
        key = self._chance.choice(["g.k", "l.shop_name", "g.id"])
        exploded = (
            f"select e.id, x.k, x.v from ({mapped} from {source}) as e"
            " lateral view explode(e.m) x as k, v"
        )
        return (
            f"select {key} as `Key`, max(g.v) as most, count(*) as N from ({exploded}) as g"
            f" left join {NAMES} as l on l.shop_id = g.k group by {key}"
        )
