"""One verdict of each source on each record, and what is kept of a refused one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from livemart.land.reasons import LetterReason
from livemart.land.records.by_columns import convert_columns
from livemart.land.records.judge import (
    KEPT_RECORD_BYTES,
    Chunk,
    Group,
    Refused,
    Rules,
    judge,
    verdict,
)
from livemart.land.records.origin import Place
from livemart.project.graph import RowRules
from tests.unit.land.records.rows import NOON, codes, group_of

KINDS = {"id": "string", "at": "timestamp"}


def chunk(group: Group, *records: dict[str, str], refused: tuple[Refused, ...] = ()) -> Chunk:
    rows, _ = convert_columns(group, records)
    return Chunk(rows, range(1, len(records) + 1), lambda row: b"%r" % records[row], refused)


def test_the_first_rule_that_refuses_gives_the_reason() -> None:
    asked = RowRules(("id",), ("at",), horizon=timedelta(days=1), schema_drift="fail")
    rules = Rules(asked, "at")
    group = group_of(KINDS, "json", rules)
    old = "2020-01-01"
    records = {"tip": "1", "who": "x"}, {"at": old}, {"id": "c", "at": old}

    table = judge(group, Place("a"), chunk(group, *records))

    assert codes(table) == ["SCHEMA_DRIFT", "NULL_KEY", "TOO_LATE"]
    assert table.column("_detail_0").to_pylist()[:2] == ["found fields tip, who", "id is NULL"]


@pytest.mark.parametrize("keeps_all", [False, True])
def test_a_good_record_is_kept_only_where_it_may_be_refused_later(keeps_all: bool) -> None:
    rules = RowRules(("id",)), RowRules(event_time_is_fixed=keeps_all)
    group = group_of(KINDS, "json", *map(Rules, rules))

    table = judge(group, Place("a"), chunk(group, {"id": "a"}, {"at": "2026-03-01"}))

    good, refused = table.select(["_origin", "_record", "_record_bytes"]).to_pylist()
    assert good["_origin"] == "a:1"
    assert (good["_record"] is not None, good["_record_bytes"] is not None) == (keeps_all,) * 2
    assert refused["_record"] is not None
    # The second source takes what the first one refuses.
    assert table.column(verdict("code", 1)).null_count == 2


def test_what_could_not_become_a_row_is_refused_by_every_source() -> None:
    group = group_of(KINDS, "json", Rules(RowRules()), Rules(RowRules()))
    raw = b"\x00\xff" + b"x" * 10_000
    refused = Refused(9, LetterReason.MALFORMED_RECORD, "a\0b", raw)

    table = judge(group, Place("a"), chunk(group, {"id": "a"}, refused=(refused,)))

    assert table.schema.equals(group.judged)
    row = table.to_pylist()[1]
    assert (row["_origin"], row["id"], row["_record_bytes"]) == ("a:9", None, len(raw))
    assert row["_record"].startswith("\\x00\\xffx")
    assert row["_record"].endswith("x" * 100)
    assert len(row["_record"]) == KEPT_RECORD_BYTES + 6
    assert [row["_code_0"], row["_code_1"]] == ["MALFORMED_RECORD"] * 2
    assert row["_detail_0"] == "a\\x00b"


def test_a_bound_of_event_time_holds_for_dates_as_well() -> None:
    rules = Rules(RowRules(max_future=timedelta(hours=1)), "on")
    group = group_of({"on": "date"}, "json", rules)

    table = judge(group, Place("a"), chunk(group, {"on": "2026-03-01"}, {"on": "2026-03-02"}))

    assert codes(table) == [None, "FUTURE_EVENT_TIME"]
    assert NOON.isoformat() in table.column("_detail_0")[1].as_py()
