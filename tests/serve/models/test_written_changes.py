"""A page of changes is events that lead from one snapshot to another, or all rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from livemart.serve.auth.seal import Seal
from livemart.serve.auth.signing_key import SigningKey
from livemart.serve.models import written_changes
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.written_changes import Followed, write_page
from livemart.store.positions import Position
from livemart.store.predicates import ColumnCondition
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView
from tests.serve.models.test_written_rows import hard_rows
from tests.store.stores import fill_store

ALL = Followed(EventIds(Seal(SigningKey("k" * 32)), "m", None))
NOWHERE, AT_ONE = Position(0, ""), Position(1, None)


@pytest.fixture
def view(tmp_path: Path) -> Iterator[SnapshotView]:
    """Five rows, then another three."""
    url = f"sqlite:///{tmp_path}/serving.db"
    for number, count in enumerate((5, 8), start=1):
        fill_store(url, {"m": hard_rows(count)}, {"m": ("id",)}, number)
    with closing(StoreReader.open(url)) as reader, reader.snapshot() as view:
        yield view


def test_a_page_that_is_too_large_here_is_left_to_others(
    view: SnapshotView, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {}
    for small, position in ((7, NOWHERE), (8, NOWHERE), (2, AT_ONE), (5, AT_ONE)):
        monkeypatch.setattr(written_changes, "SMALL", small)
        pages[small] = write_page(view, ALL, position, 9, is_small=True)
        whole = write_page(view, ALL, position, 9)
        assert whole is not None and not whole.is_too_large and whole.slices

    found = {at: page and (page.is_reset, page.is_too_large) for at, page in pages.items()}
    assert found == {7: (True, True), 8: (True, False), 2: (False, True), 5: (False, False)}


def test_of_a_model_that_is_not_served_there_is_no_page(view: SnapshotView) -> None:
    assert write_page(view, Followed(replace(ALL.ids, model="other")), NOWHERE, 9) is None


def test_conditions_on_a_column_that_is_another_by_now_end_the_stream(view: SnapshotView) -> None:
    """Its client comes back, and is refused or reads them as they are to be read now."""
    model = view.models()["m"]
    where = (ColumnCondition("id", "lt", 2), ColumnCondition("text", "is", False))
    followed = Followed.of(ALL.ids, model, where)
    page = write_page(view, followed, NOWHERE, 9)

    assert page is not None and b'"row_count":2}' in page.slices[0]
    for kinds in ((model.kinds["id"], "json"), ("double", "string")):
        assert write_page(view, replace(followed, kinds=kinds), NOWHERE, 9) is None


def test_all_rows_that_are_too_long_for_a_stream_are_not_sent(
    view: SnapshotView, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = write_page(view, ALL, NOWHERE, 9)
    assert whole is not None and len(whole.slices) == 2
    size = len(whole.slices[1])
    for most, is_sent in ((size, True), (size - 1, False)):
        monkeypatch.setattr(written_changes, "MOST_RESET_BYTES", most)
        page = write_page(view, ALL, NOWHERE, 9)
        assert page is not None
        assert (bool(page.slices), page.is_too_large) == (is_sent, not is_sent)


def test_a_side_process_that_writes_changes_loads_no_web_framework() -> None:
    """It is started for an answer that someone waits for."""
    program = "import sys, livemart.serve.models.written_changes as it; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert not {"fastapi", "starlette", "pydantic"} & set(done.stdout.split())
