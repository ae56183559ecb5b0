"""The transaction id under which a table is committed in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.refresh.context import BatchContext


def test_the_tags_of_a_batch_are_those_of_its_epoch(tmp_path: Path) -> None:
    context = BatchContext(cast(Any, None), Warehouse(tmp_path), "e", 3, "auto", 10, 1)

    assert context.tags == Tags("e", 3)
