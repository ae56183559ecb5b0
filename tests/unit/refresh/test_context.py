"""The transaction id under which a table is committed in a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from livemart.delta.tags import Tags
from livemart.delta.warehouse import Warehouse
from livemart.refresh.context import BatchContext


def test_a_commit_carries_the_fingerprint_of_its_model(tmp_path: Path) -> None:
    context = BatchContext(
        *(cast(Any, None), Warehouse(tmp_path), "e", 3, "auto", 10, 1),
        fingerprints={"m.a": "f"},
    )

    assert context.tag("m.a", 2) == Tags("e", 3).rows("m.a", 2, "f")
    assert context.tag("m.b", 0) == Tags("e", 3).rows("m.b", 0, None)
