"""TPC-H and Nexmark as models: refreshed along random histories, they equal their own SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.equivalence import nexmark_history, tpch_history
from tests.equivalence.recomputed import refresh_and_compare


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "lane"), [(1, "auto"), (2, "small"), (3, "large")])
def test_tpch_refreshed_equals_its_own_sql(tmp_path: Path, seed: int, lane: str) -> None:
    refresh_and_compare("tpch", tmp_path, tpch_history.history(seed, 4), lane=lane)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("seed", "lane"), [(1, "auto"), (2, "small"), (3, "large")])
def test_nexmark_refreshed_equals_its_own_sql(tmp_path: Path, seed: int, lane: str) -> None:
    refresh_and_compare("nexmark", tmp_path, nexmark_history.history(seed, 4), lane=lane)
