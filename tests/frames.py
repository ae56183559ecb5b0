"""Stand-ins for frames of Spark that give rows at hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa


def frame_of(rows: pa.Table, **methods: Any) -> SimpleNamespace:
    """Return a frame that gives these rows to `rows_of`, with other methods that a test asks."""
    nothing = [pa.nulls(0, field.type) for field in rows.schema]
    batches = rows.to_batches() or [pa.record_batch(nothing, schema=rows.schema)]
    return SimpleNamespace(_collect_as_arrow=lambda **_: batches, **methods)
