"""Random histories for the sources of `tests/projects/tpch`: eight keyed tables that change.

Values are those the queries ask for and a few others, so that small tables give rows; any column
but the keys may be NULL, keys of other tables included. In one batch rows of several tables change.
Where no query asks for a value, it is often one on which engines disagree.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product

from tests.disagreeing_values import KINDS
from tests.equivalence.shapes_history import STARTED_AT, Batch, Record

_WORDS = KINDS["word"].values
_FAR_DAYS = (date(1582, 10, 4), date(1969, 12, 31), date(2262, 4, 12))
_MOST = "9999999999.99"
_NATIONS = ("FRANCE", "GERMANY", "GERMANY", "FRANCE", "BRAZIL", "CANADA", "SAUDI ARABIA")
_REGIONS = ("EUROPE", "AMERICA", "ASIA")
_CUSTOMERS, _SUPPLIERS, _PARTS, _ORDERS = range(1, 13), range(1, 7), range(1, 9), range(1, 41)
_BUYERS = range(1, 9)


@dataclass(frozen=True, slots=True)
class Table:
    """A keyed table: its key columns, the keys there may be, how many come first, a row's rest."""

    keys: tuple[str, ...]
    domain: tuple[tuple[int, ...], ...]
    first: int
    record: Callable[[random.Random], Record]


def history(seed: int, batches: int = 4, changes: int = 16) -> Iterator[Batch]:
    """Yield the batches of one history; the same seed gives the same history.

    Args:
        seed: of the random numbers.
        batches: how many; the first one fills every table.
        changes: about how many rows a later batch inserts, updates or deletes.
    """
    chance = random.Random(seed)
    live: dict[str, dict[tuple[int, ...], Record]] = {name: {} for name in TABLES}
    version = 0
    now = STARTED_AT
    for number in range(batches):
        records: dict[str, list[Record]] = {name: [] for name in TABLES}
        for name, key in _keys_of_a_batch(chance, number, live, changes):
            version += 1
            table, known = TABLES[name], live[name].get(key)
            row = {**_with_nulls(chance, table.record(chance)), "op": "u"}
            if known is not None and chance.random() < 0.35:
                row = {**live[name].pop(key), "op": "d"}
            elif known is not None:
                row |= {column: old for column, old in known.items() if chance.random() < 0.6}
                row["op"] = "u"
            row |= {**dict(zip(table.keys, key, strict=True)), "version": version}
            if row["op"] == "u":
                live[name][key] = row
            records[name].append(row)
        yield Batch(now, records)
        now += timedelta(minutes=5)


def _keys_of_a_batch(
    chance: random.Random,
    number: int,
    live: Mapping[str, Mapping[tuple[int, ...], Record]],
    changes: int,
) -> list[tuple[str, tuple[int, ...]]]:
    if number == 0:
        return [
            (name, key)
            for name, table in TABLES.items()
            for key in chance.sample(table.domain, table.first)
        ]
    picked = []
    for _ in range(chance.choice([changes // 2, changes, 2 * changes])):
        name = chance.choices(list(TABLES), weights=[1, 2, 3, 3, 3, 3, 6, 9])[0]
        known = list(live[name])
        is_known = known and chance.random() < 0.7
        picked.append((name, chance.choice(known if is_known else list(TABLES[name].domain))))
    return list(dict.fromkeys(picked))


def _with_nulls(chance: random.Random, record: Record) -> Record:
    return {name: None if chance.random() < 0.04 else value for name, value in record.items()}


def _day(chance: random.Random) -> date:
    if chance.random() < 0.06:
        return chance.choice(_FAR_DAYS)
    return date(1994, 10, 1) + timedelta(days=chance.choice([0, 40, 92, 120, 165, 166, 300, 500]))


def _region(chance: random.Random) -> Record:
    return {"r_name": chance.choice(_REGIONS), "r_comment": ""}


def _nation(chance: random.Random) -> Record:
    return {
        "n_name": chance.choice(_NATIONS),
        "n_regionkey": chance.randint(1, 3),
        "n_comment": "",
    }


def _supplier(chance: random.Random) -> Record:
    return {
        "s_name": f"Supplier#{chance.randint(1, 9)}",
        "s_address": chance.choice(_WORDS),
        "s_nationkey": chance.randint(1, 5),
        "s_phone": chance.choice(_WORDS),
        "s_acctbal": chance.choice(["10.00", "-3.50", _MOST]),
        "s_comment": chance.choice(["fine", "Customer many Complaints", chance.choice(_WORDS)]),
    }


def _customer(chance: random.Random) -> Record:
    return {
        "c_name": f"Customer#{chance.randint(1, 9)}",
        "c_address": chance.choice(_WORDS),
        "c_nationkey": chance.randint(1, 5),
        "c_phone": f"{chance.choice([13, 31, 23, 77])}-100",
        "c_acctbal": chance.choice(["10.00", "-3.50", "700.00", _MOST]),
        "c_mktsegment": chance.choice(["BUILDING", "BUILDING", "MACHINERY"]),
        "c_comment": chance.choice(_WORDS),
    }


def _part(chance: random.Random) -> Record:
    return {
        "p_name": chance.choice(["forest green", "light green", "forest blue"]),
        "p_mfgr": chance.choice(_WORDS),
        "p_brand": chance.choice(["Brand#12", "Brand#23", "Brand#45"]),
        "p_type": chance.choice(
            ["ECONOMY ANODIZED STEEL", "PROMO BURNISHED COPPER", "SMALL BRUSHED BRASS"]
        ),
        "p_size": chance.choice([1, 5, 15, 23]),
        "p_container": chance.choice(["SM CASE", "MED BOX", "MED BAG", "LG PACK"]),
        "p_retailprice": "901.00",
        "p_comment": "",
    }


def _partsupp(chance: random.Random) -> Record:
    return {
        "ps_availqty": chance.choice([1, 10, 100]),
        "ps_supplycost": chance.choice(["1.00", "-0.01", _MOST]),
        "ps_comment": "",
    }


def _order(chance: random.Random) -> Record:
    return {
        "o_custkey": chance.choice(_BUYERS),
        "o_orderstatus": chance.choice(["F", "O"]),
        "o_totalprice": chance.choice(["100.00", f"-{_MOST}"]),
        "o_orderdate": _day(chance).isoformat(),
        "o_orderpriority": chance.choice(["1-URGENT", "2-HIGH", "5-LOW"]),
        "o_clerk": "",
        "o_shippriority": chance.choice([0, 1]),
        "o_comment": chance.choice(["", "special packages requests"]),
    }


def _line(chance: random.Random) -> Record:
    shipped = _day(chance)
    committed = shipped + timedelta(days=chance.choice([-3, 5, 20]))
    return {
        "l_partkey": chance.choice(_PARTS),
        "l_suppkey": chance.choice(_SUPPLIERS),
        "l_quantity": chance.choice(["1.00", "10.00", "11.00", "36.00", "50.00"]),
        "l_extendedprice": chance.choice(["100.00", _MOST, "33.33"]),
        "l_discount": chance.choice(["0.00", "0.05", "0.06", "0.10"]),
        "l_tax": chance.choice(["0.00", "0.08"]),
        "l_returnflag": chance.choice(["R", "r", "N"]),
        "l_linestatus": chance.choice(["F", "O"]),
        "l_shipdate": shipped.isoformat(),
        "l_commitdate": committed.isoformat(),
        "l_receiptdate": (shipped + timedelta(days=chance.choice([1, 10, 30]))).isoformat(),
        "l_shipinstruct": chance.choice(["DELIVER IN PERSON", "NONE"]),
        "l_shipmode": chance.choice(["MAIL", "SHIP", "AIR", "AIR REG"]),
        "l_comment": "",
    }


def _numbers(*ranges: range) -> tuple[tuple[int, ...], ...]:
    return tuple(product(*ranges))


TABLES: Mapping[str, Table] = {
    "region": Table(("r_regionkey",), _numbers(range(1, 4)), 3, _region),
    "nation": Table(("n_nationkey",), _numbers(range(1, 6)), 5, _nation),
    "supplier": Table(("s_suppkey",), _numbers(_SUPPLIERS), 5, _supplier),
    "customer": Table(("c_custkey",), _numbers(_CUSTOMERS), 10, _customer),
    "part": Table(("p_partkey",), _numbers(_PARTS), 7, _part),
    "partsupp": Table(("ps_partkey", "ps_suppkey"), _numbers(_PARTS, _SUPPLIERS), 30, _partsupp),
    "orders": Table(("o_orderkey",), _numbers(_ORDERS), 32, _order),
    "lineitem": Table(("l_orderkey", "l_linenumber"), _numbers(_ORDERS, range(1, 6)), 130, _line),
}
