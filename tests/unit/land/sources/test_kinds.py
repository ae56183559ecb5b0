"""A kind of source is one class and one entry point: the example of the documents is one."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
import yaml

from livemart.errors import ConfigError
from livemart.project.graph import Column, SourceTable
from livemart.project.sources import parse_source_spec
from tests.deliveries import NOON, Shop
from tests.models import stream_spec
from tests.record_logs import install_kind

DOCUMENT = Path(__file__).resolve().parents[4] / "docs" / "sources.md"


def blocks() -> dict[str, str]:
    """Return the blocks of code about a kind of one's own, by their language."""
    section = DOCUMENT.read_text().partition("\n## Kafka")[0]
    return dict(re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL))


def add(database: Path, *orders: tuple[str, datetime, str]) -> None:
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("create table if not exists outbox (id integer primary key, payload)")
        for order_id, at, total in orders:
            payload = f'{{"order_id":"{order_id}","updated_at":"{at.isoformat()}","total":{total}}}'
            connection.execute("insert into outbox (payload) values (?)", (payload,))


@pytest.fixture
def declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceTable:
    """Install the document's package, and return the document's source over `shop.db`."""
    target = re.search(r'^outbox = "(.*)"$', blocks()["toml"], re.MULTILINE)
    assert target is not None
    site = tmp_path / "site"
    install_kind(site, monkeypatch, "outbox", target[1])
    (site / f"{target[1].split(':')[0]}.py").write_text(blocks()["python"])
    table = yaml.safe_load(blocks()["yaml"])["sources"][0]["tables"][0]
    meta = table["config"]["meta"]["livemart"]
    meta["options"]["database"] = str(tmp_path / "shop.db")
    columns = tuple(Column(it["name"], it["data_type"]) for it in table["columns"])
    spec, mistakes = parse_source_spec(meta, columns, "models/_sources.yml: ordering.orders")
    assert not mistakes
    name = table["name"]
    return SourceTable(
        *(f"source.test.ordering.{name}", "ordering", name, "bronze", name, columns),
        *(None, None, spec, "models/_sources.yml"),
    )


def totals(shop: Shop) -> Iterable[tuple[str, str]]:
    return [(name, str(total)) for name, total in shop.rows("orders", "order_id", "total")]


def test_the_outbox_of_the_documents_lands_exactly_once(
    declared: SourceTable, tmp_path: Path
) -> None:
    database = tmp_path / "shop.db"
    add(database, ("a", NOON, "10.5"), ("b", NOON, "7"))
    shop = Shop(None, tmp_path, [declared])
    first = shop.land(0)
    add(database, ("a", NOON + timedelta(minutes=1), "12"), ("c", NOON, '"x"'))
    shop.restart()

    second, third = shop.land(1), shop.land(2)

    assert [batch.counts["bronze.orders"].produced for batch in (first, second, third)] == [2, 2, 0]
    assert totals(shop) == [("a", "12.00"), ("b", "7.00")]
    assert shop.rows("_dead_letters", "origin", "reason") == [("outbox@4", "TYPE_MISMATCH")]


def test_options_that_the_kind_refuses_are_told_before_anything_runs(
    declared: SourceTable, tmp_path: Path
) -> None:
    options = (("database", "x"), ("table", "no table"))
    broken = replace(declared, stream=stream_spec(declared.stream, options=options))

    with pytest.raises(ConfigError, match=r"no table.* is no name of a table") as caught:
        Shop(None, tmp_path, [broken])

    assert caught.value.code == "SOURCE_KIND_BROKEN"
