"""Random models over the mini project: what the planner reads otherwise than Spark, put together.

Odd names, quoted literals, functions that the parser knows by other names, sessions and hopping
windows through subqueries and unions, sums that overflow, frames below joins, maps.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

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
_OUTPUTS = ("a", "Total", "`select`", "`über`", "n_Rows", "w0", "low", "`Größe`")


def random_model(seed: int) -> str:
    """Return the SQL of a model; the same seed gives the same one."""
    return _Maker(random.Random(seed)).model()


class _Maker:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def model(self) -> str:
        shapes = (self._grouped, self._grouped, self._joined, self._framed, self._exploded)
        return self._chance.choice(shapes)()

    def _layer(self, alias: str) -> tuple[str, dict[str, str]]:
        """Return a subquery over the sales and its columns, each under a name of its own."""
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
