"""A project of many small models: three sources, four layers, four ways to be refreshed.

A hundred models are 10 that append, 20 that add signed changes, 55 that recompute a region and 15
that are recomputed in full. Spark and DuckDB read the same SQL. Used by `bench.models`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

# Models of a unit by what they do; the number of models is a multiple of their sum.
UNIT = 20
MIX: Mapping[str, int] = MappingProxyType({"append": 2, "signed": 4, "region": 11, "full": 3})
KINDS = 8
_PROJECT = """\
name: many_models
version: "1.0.0"
config-version: 2
profile: many_models
model-paths: [models]
models:
  many_models: {+materialized: table, +file_format: delta}
flags: {send_anonymous_usage_stats: false}
"""
_PROFILES = """\
many_models:
  target: local
  outputs: {local: {type: spark, method: session, schema: mart, host: NA, threads: 1}}
"""
_SOURCES = """\
version: 2
sources:
  - name: raw
    schema: raw
    tables:
      - name: shops
        config:
          meta:
            livemart:
              {format: json, path: shops/*.jsonl, keys: [shop_id], sequence_by: [updated_at]}
        columns:
          - {name: shop_id, data_type: string}
          - {name: city, data_type: string}
          - {name: updated_at, data_type: timestamp}
      - name: orders
        config:
          meta:
            livemart:
              {format: json, path: orders/*.jsonl, keys: [order_id], sequence_by: [updated_at]}
        columns:
          - {name: order_id, data_type: string}
          - {name: shop_id, data_type: string}
          - {name: customer_id, data_type: string}
          - {name: kind, data_type: string}
          - {name: amount, data_type: "decimal(12,2)"}
          - {name: ordered_at, data_type: timestamp}
          - {name: updated_at, data_type: timestamp}
      - name: events
        config: {meta: {livemart: {format: json, path: events/*.jsonl}}}
        columns:
          - {name: event_id, data_type: string}
          - {name: shop_id, data_type: string}
          - {name: kind, data_type: string}
          - {name: amount, data_type: "decimal(12,2)"}
          - {name: happened_at, data_type: timestamp}
"""
_APPEND = """\
select event_id, shop_id, amount, happened_at, {number} as list
from {{{{ source('raw', 'events') }}}}
where kind = '{kind}'
"""
_PREVIOUS = """\
select
    order_id, shop_id, customer_id, amount, amount + {number} as amount_raised,
    lag(amount) over (partition by customer_id order by ordered_at, order_id) as amount_before
from {{{{ source('raw', 'orders') }}}}
where {condition}
"""
_NEWEST = """\
select customer_id, shop_id, order_id, amount, amount + {number} as amount_raised
from (
    select
        *,
        row_number() over (partition by customer_id order by ordered_at desc, order_id) as place
    from {{{{ source('raw', 'orders') }}}}
    where kind = '{kind}'
) as numbered
where place = 1
"""
_TOTALS = """\
select shop_id, count(*) as entries, sum(amount) as amount, {number} as list
from {{{{ ref('{read}') }}}}
group by shop_id
"""
_EXTREMES = """\
select
    shop_id, max(amount + {number}) as most, min(amount) as least,
    count(distinct customer_id) as customers
from {{{{ ref('{read}') }}}}
group by shop_id
"""
_SHOPS = """\
select
    shops.shop_id, shops.city, coalesce(totals.entries, 0) as entries,
    totals.amount + {number} as amount_raised, extremes.most, extremes.customers,
    row_number() over (
        partition by shops.city order by coalesce(totals.entries, 0) desc, shops.shop_id
    ) as place_in_city
from {{{{ source('raw', 'shops') }}}} as shops
left join {{{{ ref('{read}') }}}} as totals on shops.shop_id = totals.shop_id
left join {{{{ ref('{other}') }}}} as extremes on shops.shop_id = extremes.shop_id
"""
_RANKED = """\
select
    shop_id, entries, amount, {number} as list,
    row_number() over (order by amount desc, shop_id) as place
from {{{{ ref('{read}') }}}}
"""
_FIRST = """\
select shop_id, city, entries, {number} as list
from {{{{ ref('{read}') }}}}
order by entries desc, shop_id
limit 20
"""
_LEAST = "kind >= '{kind}'"
_ASKING = """\
{% if execute %}
    {% set newest = run_query("select max(kind) from " ~ source('raw', 'orders'))[0][0] %}
{% else %}
    {% set newest = '' %}
{% endif %}
"""


@dataclass(frozen=True, slots=True)
class WrittenModel:
    """A model's file: its name, the way in which it is refreshed, and its SQL with Jinja."""

    name: str
    way: str
    sql: str


def models(count: int) -> Iterator[WrittenModel]:
    """Yield models, readers after what they read.

    Raises:
        ValueError: `count` is no multiple of `UNIT`.
    """
    if count <= 0 or count % UNIT:
        raise ValueError(f"{count} models: give a multiple of {UNIT}")
    units = count // UNIT
    for number in range(2 * units):
        yield _written("append", "append", number, _APPEND)
    for number in range(2 * units):
        yield _previous(number, _LEAST)
    for number in range(2 * units):
        yield _written("newest", "region", number, _NEWEST)
    for number in range(4 * units):
        read = "append" if number % 2 else "previous"
        yield _written("totals", "signed", number, _TOTALS, f"{read}_{number // 2}")
    for number in range(3 * units):
        read = "newest" if number % 2 else "previous"
        yield _written("extremes", "region", number, _EXTREMES, f"{read}_{number // 2}")
    for number in range(4 * units):
        extremes = f"extremes_{number % (3 * units)}"
        yield _written("shops", "region", number, _SHOPS, f"totals_{number}", extremes)
    for number in range(2 * units):
        yield _written("ranked", "full", number, _RANKED, f"totals_{number}")
    for number in range(units):
        yield _written("first", "full", number, _FIRST, f"shops_{4 * number}")


def plain() -> WrittenModel:
    """Return the model that `asking` edits."""
    return _previous(0, _LEAST)


def asking() -> WrittenModel:
    """Return an edited model: the same rows, but its SQL names the newest kind of the orders."""
    model = _previous(0, f"{_LEAST} and kind <= '{{{{ newest }}}}'")
    return WrittenModel(model.name, model.way, _ASKING + model.sql)


def kind_name(number: int) -> str:
    """Return the kind of a record: in the order of the numbers."""
    return f"k{number:02}"


def _previous(number: int, condition: str) -> WrittenModel:
    return _written("previous", "region", number, _PREVIOUS, condition=condition)


def write_project(folder: Path, count: int) -> Path:
    """Write a project of so many models, with its profile, and return its folder."""
    (folder / "models").mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(_PROJECT)
    (folder / "profiles.yml").write_text(_PROFILES)
    (folder / "models" / "sources.yml").write_text(_SOURCES)
    for model in models(count):
        write_model(folder, model)
    return folder


def write_model(folder: Path, model: WrittenModel) -> None:
    """Write the file of a model; one that is there is edited."""
    (folder / "models" / f"{model.name}.sql").write_text(model.sql)


def _written(
    name: str, way: str, number: int, sql: str, read: str = "", other: str = "", condition: str = ""
) -> WrittenModel:
    kind = kind_name(number % KINDS)
    condition = condition.replace("{kind}", kind)
    text = sql.format(number=number, kind=kind, read=read, other=other, condition=condition)
    return WrittenModel(f"{name}_{number}", way, text)
