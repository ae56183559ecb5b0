"""Describes the bodies of `letters`."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from livemart.serve.http.schemas import Shape


class LetterCountBody(Shape, title="DeadLetterCount"):
    """Dead letters of one source for one reason."""

    source: str
    reason: str
    meaning: str = Field(description="The reason in words, Markdown.")
    letters: int
    first_seen: datetime
    last_seen: datetime


class LetterBody(Shape, title="DeadLetter"):
    """A record that could not land, or a file, or a range of a log."""

    source: str
    reason: str
    detail: str = Field(description="The mistake in this very record.")
    origin: str = Field(description="File and line, or partition and offset.")
    record: str | None = Field(description="As it arrived, up to 8 KiB; null for a file or range.")
    record_bytes: int | None
    is_cut: bool = Field(description="True if only the beginning of the record is kept.")
    batch_id: int
    landed_at: datetime
    redriven_at: datetime | None = Field(description="When it was handed over again, or dismissed.")
    redriven_in: str | None = Field(
        description="In which file below the landing folder; null if dismissed."
    )


class DeadLetters(Shape):
    """Dead letters, the newest first."""

    total: int = Field(description="The number of all letters that were asked for.")
    counts: list[LetterCountBody] = Field(description="Counts of all letters that were asked for.")
    letters: list[LetterBody]
    next: str | None = Field(description="Send it back as `after` for those that follow.")
