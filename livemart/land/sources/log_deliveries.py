"""Reads deliveries of a record log: ranges of offsets, by partition.

Used by landing for sources of every kind but files. The receipt of a delivery is
`{"read": {partition: [from, to]}, "lost": [...]}`: the ranges that it reads, and the `LostRecords`
that the log no longer held when they were to be read. If there are any, the receipt has the
`identities` of the partitions that are read.

Records lost from a log before they were read have expired, or were in exchanged partitions. They
stop landing, unless the source says from where to go on (`after_loss`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, TypeVar

import pyarrow as pa
import structlog

from livemart.errors import SourceError
from livemart.land.reasons import LetterReason
from livemart.land.records.judge import Group
from livemart.land.records.messages.message import Record
from livemart.land.records.messages.read import read_messages
from livemart.land.records.messages.registry import RegistryAwayError
from livemart.land.records.origin import Place
from livemart.land.sources.delivery import Delivery, DeliveryProblem
from livemart.land.sources.record_log import (
    BoundedRecordLog,
    CompactedRecordLog,
    DatedRecordLog,
    LastingRecordLog,
    LogProgress,
    RecordLog,
    SteadyRecordLog,
    plan_ranges,
)
from livemart.project.graph import AfterLoss

_T = TypeVar("_T")

_RUN_RECORDS = 8_192
# A question only about waiting times is given up after so many seconds.
_TIMES_S = 2.0
_PART_RECORDS = 100_000
# The length of records is unknown before they are read.
_RECORD_BYTES = 512
# While servers of a cluster come and go, one may not know yet of all records. Records count as lost
# if they are missing in each of so many looks, with seconds between them, as in Spark's Kafka
# source.
_LOOKS = 3
_BETWEEN_LOOKS_S = 1.0
_LOSSES = ("SOURCE_RECORDS_LOST", "SOURCE_LOG_REPLACED")
Why = Literal["expired", "gone", "replaced"]
# The identity of a partition of which the source knows that it is gone.
GONE = ""


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
            try:
                yield from read_messages(group, place, run)
            except RegistryAwayError as error:
                raise unreadable_log(self.kind, self.partition, error) from error

    def _records(self) -> Iterator[Record]:
        try:
            yield from self.log.read(self.partition, self.start, self.end)
        except Exception as error:
            raise unreadable_log(self.kind, self.partition, error) from error


@dataclass(frozen=True, slots=True)
class LogPlan:
    """The records of a log that a new micro-batch reads."""

    delivery: Delivery | None
    """None if nothing waits."""
    offsets: Mapping[str, int]
    """The offsets behind the records to read, by partition."""
    ends: Mapping[str, int]
    """The offsets behind all records, by partition."""
    identities: Mapping[str, str]
    """The identities of the partitions, where they are known."""


class LogDeliveries:
    """The deliveries of one record log."""

    def __init__(self, kind: str, log: RecordLog, after_loss: AfterLoss = "stop") -> None:
        self.kind = kind
        self._log = log
        self._after_loss = after_loss

    @property
    def has_plain_options(self) -> bool:
        """Whether its kind says that its options hold no secret, so that they may be kept."""
        return bool(getattr(self._log, "has_plain_options", False))

    def ends(self) -> Mapping[str, int]:
        """Return the offset behind the newest record that is to be read, by partition.

        Raises:
            SourceError: SOURCE_UNREADABLE.
        """
        return self._bounded(self._by_partition("its end", self._log.ends))

    def _bounded(self, ends: Mapping[str, int]) -> Mapping[str, int]:
        if not isinstance(self._log, BoundedRecordLog):
            return ends
        bounds = self._by_partition("its bounds", self._log.bounds)
        return {name: min(end, bounds.get(name, end)) for name, end in ends.items()}

    def is_behind(self, after: Mapping[str, int], until: Mapping[str, int]) -> bool:
        """Return whether records between two offsets are there, by partition."""
        starts = self._by_partition("its start", self._log.starts)
        return any(
            end > max(after.get(name, 0), starts.get(name, 0)) for name, end in until.items()
        )

    def plan(
        self, relations: Iterable[str], reached: LogProgress, max_records: int | None
    ) -> LogPlan:
        """Return the input of a new micro-batch for source tables that have read equally far.

        Raises:
            SourceError: SOURCE_UNREADABLE, SOURCE_RECORDS_LOST, SOURCE_LOG_REPLACED.
        """
        asked = tuple(relations)
        return self._confirmed(
            lambda now: now._plan(asked, reached, max_records),
            lambda plan: plan.delivery is not None and bool(plan.delivery.receipt["lost"]),
        )

    def _confirmed(
        self, ask: Callable[[LogDeliveries], _T], has_losses: Callable[[_T], bool]
    ) -> _T:
        """Return the first answer without a loss, or the last one, whose losses are real.

        Raises:
            SourceError: of the last look, if it stops landing.
        """
        for _ in range(_LOOKS - 1):
            try:
                if not has_losses(answer := ask(self._steady())):
                    return answer
            except SourceError as error:
                if error.code not in _LOSSES:
                    raise
            time.sleep(_BETWEEN_LOOKS_S)
        return ask(self._steady())

    def _steady(self) -> LogDeliveries:
        """Return the deliveries of the log as it is now, for the questions of one plan."""
        log = self._log
        if not isinstance(log, SteadyRecordLog):
            return self
        return LogDeliveries(self.kind, self._asked("its partitions", log.steady), self._after_loss)

    def _plan(
        self, relations: tuple[str, ...], reached: LogProgress, max_records: int | None
    ) -> LogPlan:
        starts = self._by_partition("its start", self._log.starts)
        after, identities_before = dict(reached.offsets or ()), dict(reached.identities)
        # A partition that came back under the name of a removed one is another one.
        after = {
            partition: at
            for partition, at in after.items()
            if partition not in starts or identities_before.get(partition) != GONE
        }
        identities, losses = self._losses(after, identities_before, starts)
        if losses and self._after_loss == "stop":
            raise lost_error(self.kind, relations, losses)
        self._refuse_absent()
        newest = self._by_partition("its end", self._log.ends)
        ends = self._bounded(newest)
        begins: Mapping[str, int] = {}
        if reached.offsets is None and isinstance(self._log, BoundedRecordLog):
            begins = self._by_partition("where to begin", self._log.begins)
        # Who begins with a log begins with what it holds; nothing of it has expired for them.
        begin = after | {
            name: after.get(name, max(start, begins.get(name, start)))
            for name, start in starts.items()
        }
        receipt: dict[str, Any] = {"read": {}, "lost": []}
        for loss in losses:
            name = loss.partition
            if name in starts:
                begin[name] = starts[name] if self._after_loss == "earliest" else ends[name]
            receipt["lost"].append(
                asdict(loss if loss.end is None else replace(loss, end=begin[name]))
            )
        self._refuse_shorter(begin, newest)
        ranges = plan_ranges(begin, ends, max_records)
        receipt["read"] = {name: list(range_) for name, range_ in ranges.items()}
        if read_identities := {name: identities[name] for name in ranges if name in identities}:
            receipt["identities"] = read_identities
        offsets = {**begin, **{name: end for name, (_, end) in ranges.items()}}
        # Who begins behind the start has to keep where, though nothing is there yet.
        if not ranges and not losses and not begins:
            return LogPlan(None, offsets, ends, identities)
        return LogPlan(Delivery(self.kind, relations, receipt), offsets, ends, identities)

    def _losses(
        self, after: Mapping[str, int], before: Mapping[str, str], starts: Mapping[str, int]
    ) -> tuple[dict[str, str], list[LostRecords]]:
        """Return the identities of partitions, and the records lost from those that were read."""
        if isinstance(log := self._log, CompactedRecordLog):
            is_compacted = self._asked("how it drops records", log.is_compacted)
            starts = dict.fromkeys(starts, 0) if is_compacted else starts
        if not isinstance(self._log, LastingRecordLog):
            return {}, list(lost_records(after, starts, {}))
        log = self._log
        now = self._by_partition("its partitions", log.identities)
        pairs = {name: (before.get(name), now.get(name)) for name in after if log.is_selected(name)}
        absent = {name: GONE for name in pairs if name not in starts}
        return {**before, **now, **absent}, list(lost_records(after, starts, pairs))

    def _refuse_absent(self) -> None:
        log = self._log
        if isinstance(log, LastingRecordLog):
            absent = self._by_partition("its partitions", lambda: dict.fromkeys(log.absent(), 0))
            if absent:
                raise UnreadableLogError(
                    "SOURCE_UNREADABLE",
                    f"{self.kind}: missing: {', '.join(absent)}",
                    hint="create it, or correct `options` of the source; nothing of a batch lands "
                    "until it is there",
                )

    def _refuse_shorter(self, begin: Mapping[str, int], ends: Mapping[str, int]) -> None:
        for name, end in sorted(ends.items()):
            if end < begin.get(name, 0):
                raise SourceError(
                    "SOURCE_LOG_REPLACED",
                    f"{self.kind}: {name}: was read to offset {begin[name]}, ends at {end} now",
                    hint="an emptied or new log needs another name; restore the old one, or "
                    "read all logs and files again with `build --new-epoch`",
                )

    def oldest_at(self, offsets: Mapping[str, int]) -> datetime | None:
        """Return when the first record behind some offsets was written, UTC, if the kind knows.

        None if it takes long to say.
        """
        if not isinstance(self._log, DatedRecordLog):
            return None
        asked_at = time.monotonic()
        times: list[datetime] = []
        try:
            for name, offset in offsets.items():
                moment = self._log.written_at(name, offset)
                if moment is not None:
                    times.append(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
                # Many partitions may take long, and records wait for it.
                if time.monotonic() - asked_at > _TIMES_S:
                    return None
        # It is code of others, and nothing that landing needs.
        except Exception as error:
            structlog.get_logger().debug("log_times_unknown", kind=self.kind, error=str(error))
            return None
        return min(times, default=None)

    def _by_partition(self, part: str, ask: Callable[[], Mapping[str, _T]]) -> Mapping[str, _T]:
        return self._asked(part, lambda: dict(ask()))

    def _asked(self, part: str, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        # It is code of others.
        except Exception as error:
            raise unreadable_log(self.kind, part, error) from error

    def check(self, delivery: Delivery, batch_id: int) -> Delivery:
        """Return the part that a replay still can read.

        Raises:
            SourceError: SOURCE_RECORDS_LOST, SOURCE_UNREADABLE.
        """
        return self._confirmed(lambda now: now._check(delivery), lambda it: it is not delivery)

    def _check(self, delivery: Delivery) -> Delivery:
        ranges: Mapping[str, list[int]] = delivery.receipt["read"]
        starts = self._by_partition("its start", self._log.starts)
        _, losses = self._losses(
            {name: start for name, (start, _) in ranges.items()},
            delivery.receipt.get("identities", {}),
            starts,
        )
        if not losses:
            return delivery
        if self._after_loss == "stop":
            raise lost_error(self.kind, delivery.relations, losses)
        receipt = {**delivery.receipt, "read": dict(ranges)}
        receipt["lost"] = list(delivery.receipt["lost"])
        for loss in losses:
            start, end = ranges[loss.partition]
            begin = end if loss.end is None else min(loss.end, end)
            receipt["read"][loss.partition] = [begin, end]
            receipt["lost"].append(asdict(LostRecords(loss.partition, start, begin, "expired")))
        return replace(delivery, receipt=receipt)

    def size(self, delivery: Delivery) -> int:
        """Return about how many bytes its records are."""
        ranges: Mapping[str, tuple[int, int]] = delivery.receipt["read"]
        return sum(end - start for start, end in ranges.values()) * _RECORD_BYTES

    def problems(self, delivery: Delivery) -> Sequence[DeliveryProblem]:
        """Return the records that the log no longer held."""
        losses = (LostRecords(**loss) for loss in delivery.receipt["lost"])
        return [
            DeliveryProblem(f"{it.partition}@{it.start}", LetterReason.RECORDS_EXPIRED, str(it))
            for it in losses
        ]

    def parts(self, delivery: Delivery, record_format: str) -> Sequence[LogPart]:
        """Return its parts to read."""
        return [
            LogPart(self.kind, self._log, name, first, min(first + _PART_RECORDS, end))
            for name, (start, end) in delivery.receipt["read"].items()
            for first in range(start, end, _PART_RECORDS)
        ]


def unreadable_log(kind: str, place: str, error: Exception) -> SourceError:
    """Return the error for a record log that cannot be read; denied access is not waited for."""
    message = f"{kind}: {place}: {type(error).__name__}: {error}"
    if isinstance(error, PermissionError):
        return SourceError(
            "SOURCE_ACCESS_DENIED",
            message,
            hint="correct user, password and certificates in `options` of the source and in the "
            "environment, or grant read access on its server, then start again; nothing of the "
            "batch has landed",
        )
    return UnreadableLogError(
        "SOURCE_UNREADABLE",
        message,
        hint="check that the source can be reached; nothing of its batch lands until it can be "
        "read",
    )


@dataclass(frozen=True, slots=True)
class LostRecords:
    """The records that a partition lost: `start` is the first offset that was not read.

    `end`: the offset behind the last that is lost, None if unknown.
    """

    partition: str
    start: int
    end: int | None
    why: Why

    def __str__(self) -> str:
        match self.why:
            case "expired":
                last = None if self.end is None else self.end - 1
                return f"records {self.start} to {last} had expired before they were read"
            case "gone":
                return (
                    f"the partition is gone: it was read to offset {self.start}, and what it held "
                    "from there on was not read"
                )
            case "replaced":
                return (
                    "another partition has its name: the one before was read to offset "
                    f"{self.start}, and what it held from there on was not read"
                )


def lost_records(
    after: Mapping[str, int],
    starts: Mapping[str, int],
    identities: Mapping[str, tuple[str | None, str | None]],
) -> Iterator[LostRecords]:
    """Yield the lost records of a log, by partition in their order.

    Args:
        after: offset behind the last record that was read.
        starts: offset of the oldest record that is there.
        identities: before and now, of partitions whose absence or exchange is a loss.

    >>> [str(it) for it in lost_records({"a": 3}, {"a": 5}, {})]
    ['records 3 to 4 had expired before they were read']
    >>> [it.why for it in lost_records({"a": 3, "b": 1}, {"b": 0}, {"b": ("x", "y")})]
    ['replaced']
    """
    for name, offset in sorted(after.items()):
        before, now = identities.get(name, (None, None))
        if before == GONE:
            continue
        if name not in starts:
            if name in identities:
                yield LostRecords(name, offset, None, "gone")
        elif before is not None and now is not None and before != now:
            yield LostRecords(name, offset, None, "replaced")
        elif starts[name] > offset:
            yield LostRecords(name, offset, starts[name], "expired")


def lost_error(kind: str, relations: Iterable[str], losses: Sequence[LostRecords]) -> SourceError:
    """Return the error that stops landing because records were lost."""
    lines = "; ".join(f"{loss.partition}: {loss}" for loss in losses)
    return SourceError(
        "SOURCE_RECORDS_LOST",
        f"{', '.join(relations)}: {kind}: {lines}",
        hint="restore the records; or set in the source's meta.livemart how to continue, "
        "`after_loss: earliest` (with the oldest record that exists) or `after_loss: latest` "
        "(with records that arrive from now on). A dead letter then documents the loss",
    )
