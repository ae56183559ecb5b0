"""Defines record logs: numbered records in partitions, which landing reads by ranges.

Used by every kind of source that is no folder of files. A kind is a class with these three methods;
what was read, in which steps, and again after a crash, is landing's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from livemart.land.records.messages.message import Record

Ranges = Mapping[str, tuple[int, int]]


class RecordLog(Protocol):
    """A topic, a stream, a journal. Picklable: Spark's workers read from it as well.

    Its partitions have names, each its own. Within a partition each record has an offset, which
    never becomes another record's; offsets rise, and may leave numbers out. An exception of a
    method stops the batch, which is then tried again.
    """

    def starts(self) -> Mapping[str, int]:
        """Return the offset of the oldest record that is still there, by partition."""
        ...

    def ends(self) -> Mapping[str, int]:
        """Return the offset that the next record will have, by partition."""
        ...

    def read(self, partition: str, start: int, end: int) -> Iterator[Record]:
        """Yield the records from `start` to before `end`, in order.

        A record is its offset and content, or a `Message`, which has a key, headers and time too.
        """
        ...


@runtime_checkable
class DatedRecordLog(RecordLog, Protocol):
    """A record log that also knows when its records were written; no kind need be one."""

    def written_at(self, partition: str, offset: int) -> datetime | None:
        """Return when the first record from an offset on was written; None if unknown.

        A time without a zone is UTC.
        """
        ...


@runtime_checkable
class BoundedRecordLog(RecordLog, Protocol):
    """A record log of which a source need not read all; no kind need be one."""

    def begins(self) -> Mapping[str, int]:
        """Return the offset at which a source begins that has read nothing, by partition.

        A partition that is left out, and one that comes later, is read from its start.
        """
        ...

    def bounds(self) -> Mapping[str, int]:
        """Return the offset before which reading finally ends, by partition, where it does."""
        ...


@runtime_checkable
class LastingRecordLog(RecordLog, Protocol):
    """A record log that reports a removed partition, or another one of its name."""

    def identities(self) -> Mapping[str, str]:
        """Return an identity that no other partition of that name has, if known; never empty."""
        ...

    def is_selected(self, partition: str) -> bool:
        """Return whether the source's options ask for a partition, be it there or not."""
        ...

    def absent(self) -> Collection[str]:
        """Return the parts that the options name and the log lacks."""
        ...


@runtime_checkable
class CompactedRecordLog(RecordLog, Protocol):
    """A record log of which records may go, from its start as well, that newer ones replace."""

    def is_compacted(self) -> bool:
        """Return whether records that are not there any more are no loss."""
        ...


@runtime_checkable
class SteadyRecordLog(RecordLog, Protocol):
    """A record log that need not ask the same again for each question; no kind need be one."""

    def steady(self) -> RecordLog:
        """Return the log as it is now; all questions of one plan are put to it, and no more."""
        ...


def check_name(name: object) -> Iterator[str]:
    """Yield the mistakes of a name that is put before the names of partitions."""
    if not isinstance(name, str) or re.search(r"[\s/@]", name):
        yield f"name: found {name!r}: write a word without blanks, / and @"


@dataclass(frozen=True, slots=True)
class LogProgress:
    """How far source tables have read a log.

    `offsets`: behind the last record of each partition, None if nothing was read; `identities`: of
    the partitions that were read, where they are known.
    """

    offsets: tuple[tuple[str, int], ...] | None = None
    identities: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, offsets: Mapping[str, int] | None, identities: Mapping[str, str]) -> LogProgress:
        """Return the same, in the order of the names."""
        pairs = None if offsets is None else tuple(sorted(offsets.items()))
        return cls(pairs, tuple(sorted(identities.items())))


def waiting_records(after: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
    """Return how many offsets wait to be read, by partition; those of which none does are left out.

    >>> waiting_records({"a": 10}, {"a": 40, "b": 10, "c": 0})
    {'a': 30, 'b': 10}
    """
    return {
        name: end - after.get(name, 0)
        for name, end in sorted(ends.items())
        if end > after.get(name, 0)
    }


def plan_ranges(
    after: Mapping[str, int], ends: Mapping[str, int], max_records: int | None
) -> Ranges:
    """Return the next ranges to read, by partition: about `max_records`, of each in proportion.

    Args:
        after: offset behind the last record that was read; a partition that is not there begins
            with 0.
        ends: offset behind the newest record.
        max_records: None for all; of each partition at least one is read.

    >>> plan_ranges({"a": 10}, {"a": 40, "b": 10, "c": 0}, 20)
    {'a': (10, 25), 'b': (0, 5)}
    """
    waiting = waiting_records(after, ends)
    total = sum(waiting.values())
    if max_records is None or total <= max_records:
        quota = waiting
    else:
        quota = {name: max(1, count * max_records // total) for name, count in waiting.items()}
    return {name: (after.get(name, 0), after.get(name, 0) + count) for name, count in quota.items()}
