"""The planner reads SQL as Spark runs it: models whose SQL the two may read differently.

Each model is refreshed through records that come, change, move and go; after each batch Spark runs
the analyst's text in full.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.equivalence.recomputed import differing
from tests.integration.mini import Mini, sale, visit
from tests.project_run import reasons, strategies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SALES = "{{ ref('stg_shop__sales') }}"
SESSIONS = f"(select session_window(sold_at, '5 minutes') as w, shop_id, amount from {SALES})"
TOTALLED = (
    "(select shop_id, sold_at, sum(amount) over (partition by shop_id order by sold_at"
    f" range between interval 10 minutes preceding and current row) as recent from {SALES})"
)
UNITS = f"(select *, if(amount > 2, 'HOUR', 'MINUTE') as unit from {SALES})"
MAPPED = f"(select sale_id, shop_id, map(shop_id, amount, 'x', 1) as m from {SALES})"
# Name: strategy, SQL. Literals and functions that the parser reads as others.
PRINTED = {
    "doubled_quote": f"select concat('it''s ', shop_id) as label, max(amount) as most"
    f" from {SALES} group by concat('it''s ', shop_id)",
    "escapes": r"select concat('\d\x41', shop_id) as label, max(amount) as most"
    rf" from {SALES} group by concat('\d\x41', shop_id)",
    "raw_literal": r"select concat(r'\d', shop_id) as label, max(amount) as most"
    rf" from {SALES} group by concat(r'\d', shop_id)",
    "to_char": "select to_char(amount, '999.9') as label, max(sold_at) as last_at"
    f" from {SALES} group by to_char(amount, '999.9')",
    "to_date": "select to_date(day, 'yyyy/MM/dd') as day, max(amount) as most"
    f" from (select date_format(sold_at, 'yyyy/MM/dd') as day, amount from {SALES}) as s"
    " group by to_date(day, 'yyyy/MM/dd')",
    "quarter": "select trunc(sold_at, 'Q') as began, count(distinct shop_id) as shops"
    f" from {SALES} group by trunc(sold_at, 'Q')",
    "sized": "select array_size(split(sale_id, '')) as size, max(amount) as most"
    f" from {SALES} group by array_size(split(sale_id, ''))",
    "logged": "select floor(log10(amount)) as size, max(sold_at) as last_at"
    f" from {SALES} group by floor(log10(amount))",
    "unit_column": "select date_trunc(s.unit, s.sold_at) as began, max(s.amount) as most"
    f" from {UNITS} as s group by date_trunc(s.unit, s.sold_at)",
    "variant_field": "select variant_get(parse_json(to_json(struct(shop_id))), '$.shop_id',"
    f" 'string') as shop, max(amount) as most from {SALES}"
    " group by variant_get(parse_json(to_json(struct(shop_id))), '$.shop_id', 'string')",
    "looked_up": "select l.label, max(s.amount) as most"
    f" from (select concat('it''s ', shop_id) as key, amount from {SALES}) as s"
    " join (select concat('it''s ', shop_id) as key, upper(shop_id) as label"
    " from {{ ref('shop_names') }}) as l on s.key = l.key group by l.label",
    "running": "select sale_id, shop_id, sold_at, to_char(amount, '999.9') as label,"
    " sum(amount) over (partition by shop_id order by sold_at"
    f" range between interval 10 minutes preceding and current row) as recent from {SALES}",
    "captured": "select transform(array(1, 2), shop_id -> concat(shop_id, s.shop_id)) as label,"
    f" max(amount) as most from {SALES} as s"
    " group by transform(array(1, 2), shop_id -> concat(shop_id, s.shop_id))",
}
# Bounds that move when rows come between, and rows within a frame's reach of a change.
ELASTIC = {
    "session": f"select s.w.start as began, count(*) as n from {SESSIONS} as s group by s.w",
    "session_of_shop": "select s.shop_id, s.w as period, sum(s.amount) as total"
    f" from {SESSIONS} as s group by s.shop_id, s.w",
    "session_of_union": "select u.w.end as ended, count(distinct u.shop_id) as shops from"
    f" (select w, shop_id from {SESSIONS} as s union all select window(sold_at, '5 minutes'),"
    f" shop_id from {SALES}) as u group by u.w",
    "session_renamed": f"with a as (select w as v, amount from {SESSIONS} as s),"
    " b as (select struct(v) as z, amount from a)"
    " select b.z.v.start as began, max(b.amount) as most from b group by b.z.v",
    "hopping": "select h.w.start as began, max(h.most) as most from"
    " (select window(sold_at, '10 minutes', '5 minutes') as w, shop_id, max(amount) as most"
    f" from {SALES} group by window(sold_at, '10 minutes', '5 minutes'), shop_id) as h"
    " group by h.w",
    "frame_below_join": "select s.sale_id, s.amount, t.recent"
    f" from {SALES} as s join {TOTALLED} as t"
    " on s.shop_id = t.shop_id and s.sold_at = t.sold_at",
    "frame_below_left_join": "select s.sale_id, max(t.recent) as recent"
    f" from {SALES} as s left join {TOTALLED} as t"
    " on s.sold_at = t.sold_at group by s.sale_id",
    "frame_below_semi_join": "select s.shop_id, count(*) as n, max(s.amount) as most"
    f" from {SALES} as s left semi join {TOTALLED} as t"
    " on s.sold_at = t.sold_at and t.recent > 4 group by s.shop_id",
}
# Aggregates that Spark has without DISTINCT only.
NESTED = {
    "exploded_map": "select g.k, max(g.v) as most, max(l.shop_name) as name"
    f" from (select k, v from {MAPPED} as s lateral view explode(s.m) g as k, v) as g"
    " join {{ ref('shop_names') }} as l on l.shop_id = g.k group by g.k",
    "exploded_name": "select l.shop_name, max(g.v) as most"
    f" from (select k, v from {MAPPED} as s lateral view explode(s.m) g as k, v) as g"
    " join {{ ref('shop_names') }} as l on l.shop_id = g.k group by l.shop_name",
    "map_key": "select map('shop', shop_id) as m, max(amount) as most"
    f" from {SALES} group by map('shop', shop_id)",
    "map_among_keys": "select shop_id, map('shop', shop_id) as m, max(amount) as most"
    f" from {SALES} group by shop_id, map('shop', shop_id)",
    "map_counted": "select map('shop', shop_id) as m, count(*) as n, sum(amount) as total"
    f" from {SALES} group by map('shop', shop_id)",
    "map_rows": f"select sale_id, m from {MAPPED} as s",
    "struct_key": "select struct(shop_id, amount > 2 as is_dear) as s, max(amount) as most"
    f" from {SALES} group by struct(shop_id, amount > 2 as is_dear)",
    "array_key": "select array(shop_id, 'x') as a, count(*) as n"
    f" from {SALES} group by array(shop_id, 'x')",
    "variant_below_join": "select s.shop_id, max(variant_get(s.v, '$.a', 'string')) as a,"
    " max(l.shop_name) as name from (select shop_id,"
    f" parse_json(to_json(struct(amount as a))) as v from {SALES}) as s"
    " join {{ ref('shop_names') }} as l on l.shop_id = variant_get(s.v, '$.a', 'string')"
    " or l.shop_id = s.shop_id group by s.shop_id",
    "map_looked_up": "select t.sale_id, t.m['x'] as x, l.shop_name"
    f" from {MAPPED} as t left join {{{{ ref('shop_names') }}}} as l on l.shop_id = t.shop_id",
}


def batches() -> list[list[dict[str, Any]]]:
    """Return records of sales: new, corrected, moved in time, between two others, deleted."""
    return [
        [sale(str(n), "abc"[n % 3], f"{n}.50", minutes=-200 + 9 * n) for n in range(12)],
        [sale("20", "a", "3.25", minutes=-196), sale("21", "d", "99.95", minutes=-150)],
        [sale("3", "b", "17.00", minutes=-170, updated=1), sale("22", "a", "5", minutes=-186.5)],
        [sale("4", op="d", updated=2), sale("5", "a", "5.50", minutes=-100, updated=2)],
        [sale("6", "e", "6.50", minutes=-146, updated=3), sale("22", op="d", updated=3)],
    ]


@pytest.mark.extended
@pytest.mark.parametrize(
    "models",
    [
        pytest.param(PRINTED, id="printed"),
        pytest.param(ELASTIC, id="elastic"),
        pytest.param(NESTED, id="nested"),
    ],
)
def test_every_batch_holds_the_rows_of_the_whole_text(
    spark: SparkSession, tmp_path: Path, models: dict[str, str]
) -> None:
    mini = Mini(spark, tmp_path)
    for name, text in models.items():
        mini.edit(f"models/{name}.sql", text)
    first, *later = batches()
    mini.deliver("sales", *first)
    mini.deliver("visits", visit("a"))
    mini.build()
    for number, records in enumerate(later):
        mini.deliver("sales", *records)
        mini.refresh()

        assert list(differing(mini)) == [], f"after batch {number}"
        print(
            {
                n: (s, reasons(mini.newest)[n])
                for n, s in strategies(mini.newest).items()
                if n in models
            }
        )
