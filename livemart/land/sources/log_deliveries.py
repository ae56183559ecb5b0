"""Reads deliveries of a record log: ranges of offsets, by partition.

Used by landing for sources of every kind but files. The receipt of a delivery is
`{"read": {partition: [from, to]}, "expired": {partition: [from, to]}}`: what it reads, and what the
log no longer held when it was to be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import pyarrow as pa
import structlog

from livemart.errors import SourceError
from livemart.land.reasons import LetterReason
from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Record
from livemart.land.records.messages.read import read_messages
from livemart.land.records.origin import Place
from livemart.land.sources.delivery import Delivery, DeliveryProblem
from livemart.land.sources.record_log import DatedRecordLog, RecordLog, plan_ranges

_RUN_RECORDS = 8_192
_PART_RECORDS = 100_000
# Nobody knows how long its records are before they are read.
_RECORD_BYTES = 512


class UnreadableLogError(SourceError):
    """A record log cannot be read; it may come back: `is_retriable`, and a stream waits for it."""

    is_retriable = is_away = True


@dataclass(frozen=True, slots=True)
class LogPart:
    """A range of offsets of one partition."""

    kind: str
    log: RecordLog
    partition: str
    start: int
    end: int

    def read(self, group: Group) -> Iterator[pa.Table]:
        """Yield its records as tables of `group.judged`: good and refused ones."""
        place = Place(self.partition, "@")
        records = self._records()
        while run := list(islice(records, _RUN_RECORDS)):
            yield from read_messages(group, place, run)

    def _records(self) -> Iterator[Record]:
        try:
            yield from self.log.read(self.partition, self.start, self.end)
        except Exception as error:
            raise unreadable_log(self.kind, self.partition, error) from error


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What a new micro-batch reads of a log.

    `delivery`: None if nothing waits; `offsets`: behind what is read; `ends`: of all there is, both
    by partition.
    """

    delivery: Delivery | None
    offsets: Mapping[str, int]
    ends: Mapping[str, int]


class LogDeliveries:
    """The deliveries of one record log.

    Args:
        kind: of source, for messages.
        log: where records are read.
    """

    def __init__(self, kind: str, log: RecordLog) -> None:
        self.kind = kind
        self._log = log

    def ends(self) -> Mapping[str, int]:
        """Return the offset behind the newest record, by partition.

        Raises:
            SourceError: SOURCE_UNREADABLE.
        """
        return self._told("its end", self._log.ends)

    def is_behind(self, after: Mapping[str, int], until: Mapping[str, int]) -> bool:
        """Return whether records between two offsets are there, by partition."""
        starts = self._told("its start", self._log.starts)
        return any(
            end > max(after.get(name, 0), starts.get(name, 0)) for name, end in until.items()
        )

    def plan(
        self, relations: Iterable[str], after: Mapping[str, int], max_records: int | None
    ) -> LogPlan:
        """Return what a new micro-batch reads.

        Args:
            relations: source tables that have read to the same offsets.
            after: those offsets, by partition; empty for one that has read nothing.
            max_records: of one micro-batch; None for all.

        Raises:
            SourceError: SOURCE_UNREADABLE, SOURCE_LOG_REPLACED.
        """
        starts, ends = self._told("its start", self._log.starts), self.ends()
        # Who begins with a log begins with what it holds; nothing of it has expired for them.
        reached = {name: after.get(name, start) for name, start in starts.items()}
        expired = {
            name: (reached[name], start) for name, start in starts.items() if reached[name] < start
        }
        begin = {**after, **{name: max(reached[name], start) for name, start in starts.items()}}
        for name, end in sorted(ends.items()):
            if end < after.get(name, 0):
                raise SourceError(
                    "SOURCE_LOG_REPLACED",
                    f"{self.kind}: {name}: was read to offset {after[name]}, ends at {end} now",
                    hint="an emptied or new log needs a name of its own; put the old one back, or "
                    "read all logs and files anew with `build --new-epoch`",
                )
        ranges = plan_ranges(begin, ends, max_records)
        offsets = {**begin, **{name: end for name, (_, end) in ranges.items()}}
        if not ranges and not expired:
            return LogPlan(None, offsets, ends)
        receipt = {
            "read": {name: list(range_) for name, range_ in ranges.items()},
            "expired": {name: list(range_) for name, range_ in expired.items()},
        }
        return LogPlan(Delivery(self.kind, tuple(relations), receipt), offsets, ends)

    def oldest_at(self, offsets: Mapping[str, int]) -> datetime | None:
        """Return when the first record behind some offsets was written, UTC, if the kind knows.

        Args:
            offsets: of partitions that hold records behind them.
        """
        if not isinstance(self._log, DatedRecordLog):
            return None
        try:
            times = [self._log.written_at(name, offset) for name, offset in offsets.items()]
            known = [time if time.tzinfo else time.replace(tzinfo=UTC) for time in times if time]
        # It is code of others, and nothing that landing needs.
        except Exception as error:
            structlog.get_logger().debug("log_times_unknown", kind=self.kind, error=str(error))
            return None
        return min(known, default=None)

    def _told(self, what: str, ask: Callable[[], Mapping[str, int]]) -> Mapping[str, int]:
        try:
            return dict(ask())
        # It is code of others.
        except Exception as error:
            raise unreadable_log(self.kind, what, error) from error

    def check(self, delivery: Delivery, batch_id: int) -> None:
        """Take a replay as it is: a record that is gone is an error of its reading."""

    def size(self, delivery: Delivery) -> int:
        """Return about how many bytes its records are."""
        ranges: Mapping[str, tuple[int, int]] = delivery.receipt["read"]
        return sum(end - start for start, end in ranges.values()) * _RECORD_BYTES

    def problems(self, delivery: Delivery) -> Sequence[DeliveryProblem]:
        """Return the ranges that the log no longer held."""
        return [
            DeliveryProblem(
                f"{name}@{start}",
                LetterReason.RECORDS_EXPIRED,
                f"records {start} to {end - 1} had expired before they were read: let the log keep "
                "records for longer than livemart may stand still",
            )
            for name, (start, end) in delivery.receipt["expired"].items()
        ]

    def parts(self, delivery: Delivery, record_format: str) -> Sequence[LogPart]:
        """Return what is to be read of it."""
        return [
            LogPart(self.kind, self._log, name, first, min(first + _PART_RECORDS, end))
            for name, (start, end) in delivery.receipt["read"].items()
            for first in range(start, end, _PART_RECORDS)
        ]


def unreadable_log(kind: str, place: str, error: Exception) -> SourceError:
    """Return the error for a record log that cannot be read."""
    return UnreadableLogError(
        "SOURCE_UNREADABLE",
        f"{kind}: {place}: {type(error).__name__}: {error}",
        hint="see that the source can be reached; nothing of its batch lands until it can be read",
    )
