"""What the pages of the served models say of one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from livemart.serve.page.models_view import build_model, build_rows
from livemart.serve.page.text import DASH
from livemart.store.served import ServedModel

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SHOPS = ServedModel("shops", (("id", "bigint"), ("tags", "json")), ("id",), None)


def test_a_model_says_how_many_rows_it_has_and_when_they_changed() -> None:
    view = build_model(SHOPS, 1234, NOW - timedelta(minutes=4), None, NOW)

    assert (view.row_count, view.changed, view.aside) == ("1,234", "4 min ago", "")
    assert (view.page, view.stream) == ("/models/shops", "/v1/models/shops/stream")


def test_what_is_not_known_is_a_dash() -> None:
    view = build_model(SHOPS, None, None, None, NOW)

    assert (view.row_count, view.changed) == (DASH, DASH)


def test_a_model_that_is_set_aside_says_how_old_its_rows_are() -> None:
    old = build_model(SHOPS, 1, None, (7, NOW - timedelta(hours=2)), NOW)
    never = build_model(SHOPS, 0, None, (7, None), NOW)

    assert old.aside == "set aside since snapshot 7, rows of 2 h ago"
    assert never.aside == "set aside since snapshot 7, never filled"


def test_cells_are_as_the_api_writes_them() -> None:
    rows: list[dict[str, object]] = [
        {"id": 1, "tags": ["a", {"b": None}]},
        {"id": None, "tags": None},
    ]

    assert build_rows(SHOPS, rows) == [["1", '["a", {"b": null}]'], [DASH, DASH]]


def test_long_cells_are_cut_and_bytes_are_counted() -> None:
    wide = ServedModel("wide", (("text", "string"), ("blob", "binary")), (), None)

    ((text, blob),) = build_rows(wide, [{"text": "x" * 5000, "blob": b"y" * 5000}])

    assert (len(text), text[-1], blob) == (301, "\N{HORIZONTAL ELLIPSIS}", "5,000 bytes")
