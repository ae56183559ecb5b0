from __future__ import annotations

import pyarrow as pa
import pytest

from livemart.arrow.time_zone import UTC_ZONE, TimeZone
from livemart.arrow.times import DAY

INSTANT, LOCAL, DATE = pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.date32()
HOUR = DAY // 24
ELSEWHERE = TimeZone(is_utc=False)


@pytest.mark.parametrize(
    ("distance", "kinds", "expected"),
    [
        (0, (INSTANT, INSTANT), 0),
        (0, (DATE, LOCAL), 0),
        (0, (LOCAL, INSTANT), 2 * DAY),
        (HOUR, (INSTANT, INSTANT), 3 * HOUR),
        (HOUR, (DATE, INSTANT), 2 * DAY + HOUR),
        (DAY, (INSTANT, INSTANT), 3 * DAY),
    ],
)
def test_days_and_clocks_of_another_zone_reach_farther(
    distance: int, kinds: tuple[pa.DataType, ...], expected: int
) -> None:
    assert ELSEWHERE.reach(distance, *kinds) == expected
    assert UTC_ZONE.reach(distance, *kinds) == distance


def test_a_frame_of_days_is_not_as_long_each_time() -> None:
    assert ELSEWHERE.counts_exactly(23 * HOUR)
    assert not ELSEWHERE.counts_exactly(24 * HOUR)
    assert UTC_ZONE.counts_exactly(24 * HOUR)
