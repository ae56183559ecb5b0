"""Finds records lost from a log before they were read: expired, or in exchanged partitions.

Used where ranges are planned and where they are read again. Lost records stop landing, unless the
source says from where to go on (`after_loss`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from livemart.errors import SourceError

Why = Literal["expired", "gone", "replaced"]
# The identity of a partition of which the source knows that it is gone.
GONE = ""


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
