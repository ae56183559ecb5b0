"""Rows that pass a filter are searched once for all callers."""

from __future__ import annotations

import numpy as np
import pyarrow.dataset as pds

from livemart.delta.matches import RecentMatches


def test_equal_filters_share_what_is_known_of_them() -> None:
    recent = RecentMatches()
    recent.of(pds.field("n").isin([1, 2])).places["a"] = np.array([3])

    assert recent.of(pds.field("n").isin([1, 2])).places["a"].tolist() == [3]
    assert recent.of(pds.field("n").isin([1, 3])).places == {}
    assert recent.of(pds.field("m").isin([1, 2])).places == {}


def test_the_filters_asked_for_last_are_known() -> None:
    recent = RecentMatches()
    for number in range(4):
        recent.of(pds.field("n") == number).places["a"] = np.array([number])
    recent.of(pds.field("n") == 0)
    recent.of(pds.field("n") == 4)

    assert recent.of(pds.field("n") == 0).places["a"].tolist() == [0]
    assert recent.of(pds.field("n") == 1).places == {}
