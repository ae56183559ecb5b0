"""The pages of the served models describe each model."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from livemart.serve.auth.callers import Caller
from livemart.serve.page.models_view import build_model, build_rows
from livemart.serve.page.text import DASH
from livemart.store.served import Published, ServedModel
from tests.serve.page.template_names import by_name

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADMIN = Caller(None)
SHOPS = ServedModel("shops", (("id", "bigint"), ("tags", "json")), ("id",), None)


class Snapshot:
    """The view of a model with 1,234 rows."""

    def __init__(self, changed_at: datetime | None, refreshed_at: str | None = "") -> None:
        set_aside = None if refreshed_at == "" else {"shops": (7, refreshed_at)}
        self.published = Published(9, NOW, NOW, "epoch", NOW, set_aside)
        self._changed_at = changed_at

    def row_count(self, model: str) -> int:
        return 1234

    def changed_at(self, model: str, tenants: frozenset[str] | None) -> datetime | None:
        return self._changed_at


def model_of(snapshot: Any, caller: Caller = ADMIN) -> Any:
    return by_name(build_model(snapshot, SHOPS, caller, NOW))


def test_a_model_says_how_many_rows_it_has_and_when_they_changed() -> None:
    view = model_of(Snapshot(NOW - timedelta(minutes=4)))

    assert (view.row_count, view.changed, view.aside) == ("1,234", "4 min ago", "")


def test_what_is_not_known_is_a_dash_and_the_rows_of_all_are_an_admins_to_know() -> None:
    view = model_of(Snapshot(None), Caller(frozenset({"r1"})))

    assert (view.row_count, view.changed) == (DASH, DASH)


def test_a_model_that_is_set_aside_says_how_old_its_rows_are() -> None:
    old = model_of(Snapshot(None, (NOW - timedelta(hours=2)).isoformat()))
    never = model_of(Snapshot(None, None))

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

    assert (len(text), text[-1], blob) == (161, "\N{HORIZONTAL ELLIPSIS}", "5,000 bytes")
