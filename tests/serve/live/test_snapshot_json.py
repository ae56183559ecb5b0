"""Every body describes its snapshot in one form, without the server's time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

from livemart.serve.live.snapshot_json import (
    age_of,
    event,
    snapshot_head,
    to_json,
    to_text,
    with_times,
)
from livemart.store.served import Published
from tests.store.stores import NOON

PUBLISHED = Published(7, None, NOON, "epoch", NOON)


def test_an_instant_is_utc_and_json_has_no_blank() -> None:
    lisbon = datetime(2026, 7, 1, 13, tzinfo=timezone(timedelta(hours=1)))

    assert (to_text(lisbon), to_text(None)) == ("2026-07-01T12:00:00Z", None)
    assert to_json({"a": ["é", None]}) == '{"a":["é",null]}'.encode()
    assert snapshot_head(PUBLISHED) == {
        "as_of": None,
        "snapshot_id": 7,
        "epoch": "epoch",
        "published_at": "2026-03-02T12:00:00Z",
    }


def test_the_age_of_a_body_is_that_of_the_oldest_of_its_models() -> None:
    aside = {"old": (3, "2026-03-01T10:00:00+00:00"), "new": (5, "2026-03-01T11:00:00+00:00")}
    published = replace(PUBLISHED, set_aside={**aside, "never": (6, None)})

    assert age_of(PUBLISHED, "old") == age_of(published, "other") == {}
    assert age_of(published, "new", "old", "other") == {
        "set_aside_since": 3,
        "refreshed_at": "2026-03-01T10:00:00Z",
    }
    assert age_of(published, "never")["refreshed_at"] is None


def test_times_come_first_and_leave_the_kept_body_as_it_is() -> None:
    body = to_json({"value": "}"})

    served = with_times(body, NOON, None)

    assert served.endswith(body[1:])
    assert json.loads(served) == {
        "server_time": "2026-03-02T12:00:00Z",
        "checked_at": None,
        "value": "}",
    }


def test_an_event_is_one_line_of_data_whatever_text_it_holds() -> None:
    data = to_json({"name": "two\nlines\r\n\r\nevent: forged"})

    sent = event("change", data, "5d01c3aa-7")

    assert sent.split(b"\n")[:2] == [b"id: 5d01c3aa-7", b"event: change"]
    assert sent.endswith(b"\n\n") and sent.count(b"\n") == 4 and b"\r" not in sent
    assert event("reset", b"{}", None) == b"event: reset\ndata: {}\n\n"
