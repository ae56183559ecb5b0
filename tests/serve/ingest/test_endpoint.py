"""Records come in by HTTP with a token of their source: whole requests, durable, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from livemart.land.group_commit import GroupCommit, IngestBusyError
from livemart.land.ingested_keys import IngestedKeys
from livemart.project.graph import SourceTable
from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.ingest.endpoint import Intake, by_names, open_intake, takes_records
from tests.deliveries import source
from tests.serve.apps import Site, bearer, make_settings, site

NOTES = source("notes", {"id": "string", "n": "int"}, path="notes/*.jsonl")
LINES = source("lines", {"line": "string"}, format="text", path="lines/*.log")
LINE = {"line": "string"}


class Sender:
    """Sends records to a site with a token of `notes` and `lines`."""

    def __init__(self, made: Site, landing: Path) -> None:
        self.site, self.landing = made, landing
        text, _ = made.tokens.create("till", sources=["notes", "shop.lines"])
        made.learn_tokens()
        self.headers = bearer(text)

    def post(
        self, name: str, content: bytes | str, form: str = "application/x-ndjson", **headers: str
    ) -> Response:
        sent = self.headers | {"Content-Type": form} | headers
        return self.site.client.post(f"/v1/ingest/{name}", content=content, headers=sent)

    def stored(self, name: str = "notes") -> list[str]:
        return [path.read_text() for path in sorted((self.landing / name).glob("*"))]


@contextmanager
def sender_of(folder: Path) -> Iterator[Sender]:
    landing = folder / "landing"
    commit = GroupCommit(landing, IngestedKeys(folder / "keys", landing))
    intake = Intake(by_names([NOTES, LINES]), commit)
    with site(folder, intake=intake) as made:
        yield Sender(made, landing)
    commit.close()


@pytest.fixture
def sender(tmp_path: Path) -> Iterator[Sender]:
    with sender_of(tmp_path) as sender:
        yield sender


@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("application/x-ndjson", '{"id":"a","n":1}\n\n{"id":"b"}'),
        ("application/json; charset=utf-8", '[{"id":"a","n":1},\n {"id":"b"}]'),
    ],
)
def test_records_are_durable_when_the_answer_comes(sender: Sender, form: str, content: str) -> None:
    answer = sender.post("notes", content, form)

    assert answer.status_code == 200
    assert answer.json() == {
        "source": "bronze.notes",
        "records": 2,
        "file": answer.json()["file"],
        "repeated": False,
    }
    (text,) = sender.stored()
    assert [json.loads(line) for line in text.splitlines()] == [{"id": "a", "n": 1}, {"id": "b"}]
    assert (sender.landing / answer.json()["file"]).read_text() == text


def test_one_object_and_lines_of_text_are_taken(sender: Sender) -> None:
    assert sender.post("notes", '{"id":\n"a"}', "application/json").json()["records"] == 1
    assert sender.post("lines", "one\n\n \ntwo\n", "text/plain").json()["records"] == 3

    assert sender.stored("lines") == ["one\n \ntwo\n"]


def test_a_key_makes_a_request_safe_to_send_again(sender: Sender) -> None:
    first = sender.post("notes", '{"id":"a"}', **{"Idempotency-Key": "k"})
    again = sender.post("notes", '{"id":"a"}', **{"Idempotency-Key": "k"})
    other = sender.post("notes", '{"id":"b"}', **{"Idempotency-Key": "k"})

    assert again.json() == first.json() | {"repeated": True}
    assert (other.status_code, other.json()["code"]) == (422, "INGEST_KEY_REUSED")
    assert sender.stored() == ['{"id":"a"}\n']


@pytest.mark.parametrize(
    ("content", "form", "status", "code", "detail"),
    [
        ('{"id":"a"}\n{broken', None, 422, "INGEST_RECORDS_REFUSED", "record 2: MALFORMED_RECORD"),
        ('{"id":"a","n":"x"}', None, 422, "INGEST_RECORDS_REFUSED", "record 1: TYPE_MISMATCH: n"),
        ("[1, 2]", "application/json", 422, "INGEST_RECORDS_REFUSED", "record 1"),
        ('[{"id":"a"}', "application/json", 422, "INGEST_RECORDS_REFUSED", "does not end"),
        ("", None, 422, "INGEST_RECORDS_REFUSED", "there is none"),
        ("x", "text/csv", 415, "INGEST_FORM_REFUSED", "application/x-ndjson"),
    ],
)
def test_a_request_is_taken_whole_or_not_at_all(
    sender: Sender, content: str, form: str | None, status: int, code: str, detail: str
) -> None:
    answer = sender.post("notes", content, form or "application/x-ndjson")

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert detail in answer.json()["detail"]
    assert sender.stored() == []


def test_what_is_too_large_is_refused(sender: Sender) -> None:
    answer = sender.post("notes", b" " * (16 << 20) + b'{"id":"a"}')

    assert (answer.status_code, answer.json()["code"]) == (413, "REQUEST_TOO_LARGE")
    assert sender.post("notes", b'{"id":"%s"}' % (b"a" * 100_000)).status_code == 200


def test_a_compressed_body_is_refused(sender: Sender) -> None:
    """Its size says nothing of what it unpacks to."""
    answer = sender.post("notes", b"\x1f\x8b", **{"Content-Encoding": "gzip"})

    assert (answer.status_code, answer.json()["code"]) == (415, "INGEST_FORM_REFUSED")


def test_only_a_token_of_the_source_sends(sender: Sender) -> None:
    made = sender.site

    def code(headers: dict[str, str], name: str = "notes") -> str:
        sent = headers | {"Content-Type": "application/x-ndjson"}
        answer = made.client.post(f"/v1/ingest/{name}", content='{"id":"a"}', headers=sent)
        return str(answer.json().get("code", answer.status_code))

    assert code({}) == "TOKEN_MISSING"
    assert code(bearer("lm_unknown")) == "TOKEN_REFUSED"
    # Who may read everything may send nothing.
    assert code(made.bearer()) == "INGEST_REFUSED"
    assert code(made.bearer("r1")) == "INGEST_REFUSED"
    assert code(sender.headers, "absent") == "INGEST_REFUSED"
    text, _ = made.tokens.create("old", sources=["absent"])
    made.learn_tokens()
    assert code(bearer(text), "absent") == "INGEST_SOURCE_UNKNOWN"
    assert code(sender.headers) == "200"
    # And a token that sends reads nothing.
    assert made.client.get("/v1/models", headers=sender.headers).json().get("models", []) == []


def test_a_sender_is_told_to_wait_or_that_the_disk_refuses(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> None:
        raise IngestBusyError

    with monkeypatch.context() as patch:
        patch.setattr(GroupCommit, "put", busy)
        answer = sender.post("notes", '{"id":"a"}')
    assert (answer.status_code, answer.json()["code"]) == (429, "INGEST_BUSY")
    assert answer.headers["Retry-After"]

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("livemart.land.group_commit.hand_over_below", full)
    answer = sender.post("notes", '{"id":"a"}')
    assert (answer.status_code, answer.json()["code"]) == (503, "INGEST_FAILED")
    assert "No space left" in answer.json()["detail"]


def test_a_sender_whose_bodies_take_the_memory_of_all_is_asked_to_come_again(
    sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection may bring 16 MiB, as slowly as its deadline allows."""
    held = sender.site.app.state.parts[HeldBytes]
    monkeypatch.setattr(held, "_most", 150_000)
    content = b'{"id":"%s"}' % (b"a" * 100_000)
    with held.holding("an answer", "another caller", 60_000, lambda: None):
        refused = sender.post("notes", content)
        kept = held.total
    taken = sender.post("notes", content)

    assert (refused.status_code, refused.json()["code"]) == (429, "INGEST_BUSY")
    assert refused.headers["retry-after"] and kept == 60_000
    assert taken.status_code == 200 and held.total == 0


def test_it_is_off_unless_it_is_asked_for(tmp_path: Path) -> None:
    with site(tmp_path) as made:
        answer = made.client.post("/v1/ingest/notes", content="{}", headers=made.bearer())

    assert answer.status_code == 404


def test_sources_of_lines_take_records() -> None:
    others = [
        source("rows", format="parquet", path="rows/*"),
        source("log", kind="outbox", path=""),
        source("fixed", path="fixed.jsonl"),
    ]

    assert [takes_records(it) for it in (NOTES, LINES, *others)] == [True, True, *[False] * 3]


@pytest.mark.parametrize(
    ("each", "takes"),
    [
        (source("orders"), True),
        (source("lines", LINE, format="text", path="lines/*.log"), True),
        (source("table", format="csv", path="table/*.csv"), False),
        (source("rows", format="parquet", path="rows/*.parquet"), False),
        # No name could be given to what is taken.
        (source("one", path="orders/the-one.jsonl"), False),
        (source("log", kind="kafka"), False),
        (replace(source("static"), stream=None), False),
    ],
    ids=lambda value: value.name if isinstance(value, SourceTable) else str(value),
)
def test_a_source_takes_what_can_be_handed_over_line_by_line(
    each: SourceTable, takes: bool
) -> None:
    assert takes_records(each) is takes


def test_a_name_that_two_sources_have_is_nobodys() -> None:
    orders = source("orders")
    other = replace(orders, unique_id="source.test.web.orders", source_name="web", schema="web")

    names = by_names([orders, other])

    assert "orders" not in names
    assert names["shop.orders"] is orders and names["web.orders"] is other


def test_the_door_is_shut_unless_it_is_opened(tmp_path: Path) -> None:
    with open_intake(make_settings(tmp_path)) as intake:
        assert intake is None
