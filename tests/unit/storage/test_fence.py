"""Writes below a place ask for the right to write there, and others do not."""

from __future__ import annotations

import pytest

from livemart.storage.fence import fenced, require_right_to_write
from livemart.storage.location import Location

MART = Location.parse("s3://bucket/mart")


def refuse() -> None:
    raise PermissionError("the right is over")


@pytest.mark.parametrize("place", [MART, MART / "gold", MART / "gold" / "orders"])
def test_what_is_below_a_fence_asks_and_only_while_it_stands(place: Location) -> None:
    with fenced(MART, refuse), pytest.raises(PermissionError, match="is over"):
        require_right_to_write(place)

    require_right_to_write(place)


@pytest.mark.parametrize("url", ["s3://bucket/mart2", "s3://bucket", "s3://other/mart"])
def test_what_is_beside_or_above_a_fence_is_free(url: str) -> None:
    with fenced(MART, refuse):
        require_right_to_write(Location.parse(url))
