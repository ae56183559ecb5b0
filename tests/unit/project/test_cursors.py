from __future__ import annotations

import pytest

from livemart.project.cursors import NoCursor, SparkNeeded


def test_without_spark_every_statement_says_that_it_needs_it() -> None:
    with pytest.raises(SparkNeeded, match="select max"):
        NoCursor().execute("select max(day)\nfrom raw.orders")
