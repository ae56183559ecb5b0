"""Ranges to read: nothing twice, nothing left out, no partition forgotten."""

from __future__ import annotations

import random

from livemart.land.sources.record_log import plan_ranges


def test_steps_read_each_record_once_and_starve_no_partition() -> None:
    chance = random.Random(7)
    for _ in range(200):
        ends = {name: chance.randrange(60) for name in "abc"}
        after: dict[str, int] = {}
        read: dict[str, list[int]] = {name: [] for name in ends}
        while ranges := plan_ranges(after, ends, 10):
            waiting = [name for name in ends if ends[name] > after.get(name, 0)]
            assert sorted(ranges) == waiting
            # One of each, however much waits elsewhere.
            assert sum(end - start for start, end in ranges.values()) <= 10 + len(ends)
            for name, (start, end) in ranges.items():
                read[name] += range(start, end)
                after[name] = end
        assert read == {name: list(range(end)) for name, end in ends.items()}


def test_without_a_limit_all_is_read() -> None:
    assert plan_ranges({"a": 3}, {"a": 10_000_000, "b": 0}, None) == {"a": (3, 10_000_000)}


def test_an_end_before_what_was_read_reads_nothing() -> None:
    assert plan_ranges({"a": 3}, {"a": 1}, None) == {}
