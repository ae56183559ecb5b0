"""Writes bodies as JSON, each with the head of its snapshot.

Used by all rooms that answer, so that pull, push and page say the same in the same form.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from livemart.store.served import Published

Body = dict[str, Any]


def json_text(body: object) -> str:
    """Return JSON without spaces; a moment is text."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), default=to_text)


def to_json(body: object) -> bytes:
    """Return JSON without spaces, in UTF-8."""
    return json_text(body).encode()


def to_text(moment: datetime | None) -> str | None:
    """Return an instant in ISO 8601, UTC."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def snapshot_head(published: Published) -> Body:
    """Return the head of a body: the snapshot it was read from."""
    return {
        "as_of": to_text(published.as_of),
        "snapshot_id": published.snapshot_id,
        "epoch": published.epoch,
        "published_at": to_text(published.published_at),
    }


def age_of(published: Published, *models: str) -> Body:
    """Return the age of the oldest of the models that are set aside, as a body has it.

    Returns:
        Nothing where the rows of all of them are those of the snapshot.
    """
    aside = [age for model in models if (age := published.refreshed_at(model)) is not None]
    if not aside:
        return {}
    since, refreshed_at = min(aside, key=lambda age: age[0])
    return {"set_aside_since": since, "refreshed_at": to_text(refreshed_at)}


def times_of(server_time: datetime, checked_at: datetime | None) -> Body:
    """Return the times of a body, never kept: the server's clock, and the snapshot's last check.

    That is when it was last known to be the newest; a page computes the age of what it shows.
    """
    return {"server_time": to_text(server_time), "checked_at": to_text(checked_at)}


def with_times(body: bytes, now: datetime, checked_at: datetime | None) -> bytes:
    """Return the JSON object `body` with its times, which are never kept, as first members."""
    return to_json(times_of(now, checked_at))[:-1] + b"," + body[1:]


def event(kind: str, data: bytes, event_id: int | str | None) -> bytes:
    """Return a server-sent event; `data` is JSON, which has its line ends escaped."""
    opening = b"" if event_id is None else f"id: {event_id}\n".encode()
    return opening + f"event: {kind}\ndata: ".encode() + data + b"\n\n"
