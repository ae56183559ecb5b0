"""A schema is read once by its number; a registry that is away is no fault of a message."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from email.message import Message
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from livemart.land.records.exact_values import MalformedError
from livemart.land.records.messages.registry import RegistryAwayError, fetch_definitions

SCHEMA = {"type": "record", "name": "order", "fields": [{"name": "id", "type": "string"}]}


def answering(monkeypatch: pytest.MonkeyPatch, answer: Any) -> list[str]:
    """Let every registry answer so, and return the addresses that are asked."""
    asked: list[str] = []

    def open_address(request: urllib.request.Request, timeout: float) -> BytesIO:
        asked.append(request.full_url)
        if isinstance(answer, Exception):
            raise answer
        return BytesIO(json.dumps(answer).encode())

    monkeypatch.setattr(urllib.request, "urlopen", open_address)
    fetch_definitions.cache_clear()
    return asked


def failed(code: int) -> Exception:
    return urllib.error.HTTPError("http://r", code, "no", Message(), BytesIO())


def test_a_schema_is_asked_for_once_under_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, {"schema": json.dumps(SCHEMA)})

    schemas = [fetch_definitions("http://r/", (), 7) for _ in range(3)]

    assert asked == ["http://r/schemas/ids/7"]
    assert schemas[0] is schemas[2] and schemas[0] == (json.dumps(SCHEMA),)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (failed(404), MalformedError, "has no schema 7"),
        ({"schema": "{}", "schemaType": "JSON"}, MalformedError, "is of type JSON"),
        (failed(503), RegistryAwayError, "503"),
        (OSError("refused"), RegistryAwayError, "refused"),
        (["no object"], RegistryAwayError, "TypeError"),
    ],
)
def test_what_may_come_right_by_itself_is_no_fault_of_the_message(
    monkeypatch: pytest.MonkeyPatch, answer: Any, error: type[Exception], text: str
) -> None:
    answering(monkeypatch, answer)

    with pytest.raises(error, match=text):
        fetch_definitions("http://r", (), 7)


def test_an_answer_that_failed_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, failed(503))
    with pytest.raises(RegistryAwayError):
        fetch_definitions("http://r", (), 7)
    monkeypatch.setattr(
        urllib.request,
        "urlopen",
        lambda *_, **__: BytesIO(json.dumps({"schema": json.dumps(SCHEMA)}).encode()),
    )

    assert fetch_definitions("http://r", (), 7) == (json.dumps(SCHEMA),)


def test_a_folder_holds_its_schemas_by_number(tmp_path: Path) -> None:
    (tmp_path / "3.avsc").write_text(json.dumps(SCHEMA))

    assert fetch_definitions(str(tmp_path), (), 3) == (json.dumps(SCHEMA),)
    with pytest.raises(RegistryAwayError, match=r"4\.avsc"):
        fetch_definitions(str(tmp_path), (), 4)
