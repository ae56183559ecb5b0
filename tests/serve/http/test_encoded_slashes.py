"""An id with a slash is one segment of a path; a slash that is none separates as ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from livemart.serve.http.encoded_slashes import EncodedSlashes, read_id, shown_path

PREFIX = (b"/v1/restaurants/",)


def asked(raw: bytes, kind: str = "http") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the application is asked, and the scope of the one who asked."""
    seen: list[dict[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)
        scope["route"] = "matched"

    scope = {"type": kind, "raw_path": raw, "path": "decoded by the server"}
    asyncio.run(EncodedSlashes(app, PREFIX)(scope, None, None))  # type: ignore[arg-type]
    return seen[0], scope


@pytest.mark.parametrize("sign", [b"%2F", b"%2f"])
def test_an_encoded_slash_does_not_separate(sign: bytes) -> None:
    inner, outer = asked(b"/v1/restaurants/a" + sign + b"b%20c/metrics?x=%2F")

    assert inner["path"].count("/") == 4
    assert read_id(inner["path"].split("/")[3]) == "a/b c"
    assert shown_path(inner["path"]) == "/v1/restaurants/a%2Fb c/metrics"
    # The measurements ask the one who asked.
    assert outer["route"] == "matched"


def test_an_id_that_was_encoded_twice_is_decoded_once() -> None:
    inner, _ = asked(b"/v1/restaurants/a%252Fb/metrics")

    assert read_id(inner["path"].split("/")[3]) == "a%2Fb"


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"/v1/models/a%2Fb", "http"),
        (b"/v1/restaurants/ab/metrics", "http"),
        (b"/v1/restaurants/a%2Fb", "websocket"),
    ],
)
def test_every_other_path_is_left_as_it_is(raw: bytes, kind: str) -> None:
    inner, outer = asked(raw, kind)

    assert inner is outer and inner["path"] == "decoded by the server"
