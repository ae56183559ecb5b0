"""An answer is compressed as its client asks, and is the same answer; a stream never waits."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pytest
from starlette.types import Message, Receive, Scope, Send

from livemart.serve.http.compressed import Compressed, choose_coding
from livemart.serve.http.forms import EVENTS, JSON

# Not the same letter: it must be worth its while.
BODY = b"".join(b"%d," % n for n in range(20_000))
SMALL = b'{"rows":[]}'


@dataclass(frozen=True)
class Sent:
    """The messages of an answer, each as it was sent."""

    messages: list[Message]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): text.decode() for name, text in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.messages[1:])


def ask(headers: Mapping[str, str], *bodies: bytes, form: str = JSON, status: int = 200) -> Sent:
    """Return what a client with these headers is sent of an answer."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        given = {
            "content-type": form,
            "content-length": str(len(b"".join(bodies))),
            "etag": '"7-x"',
            "vary": "Accept, Accept-Encoding",
        }
        raw = [(name.encode(), text.encode()) for name, text in given.items()]
        await send({"type": "http.response.start", "status": status, "headers": raw})
        for place, body in enumerate(bodies):
            more = place < len(bodies) - 1
            await send({"type": "http.response.body", "body": body, "more_body": more})

    messages: list[Message] = []

    async def take(message: Message) -> None:
        messages.append(message)

    async def receive() -> Message:
        raise AssertionError("nothing is received")

    asked = [(name.encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "method": "GET", "headers": asked}
    asyncio.run(Compressed(answer)(scope, receive, take))
    return Sent(messages)


def decode(sent: Sent) -> bytes:
    """Return the body as the client reads it."""
    match sent.headers.get("content-encoding"):
        case "gzip":
            return gzip.decompress(sent.body)
        case "zstd":
            whole = pa.CompressedInputStream(pa.BufferReader(sent.body), "zstd").read()
            return bytes(whole)
    return sent.body


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ([], None),
        ([""], None),
        (["gzip, deflate, br, zstd"], "zstd"),
        (["gzip", "deflate"], "gzip"),
        (["GZIP;Q=0.3"], "gzip"),
        (["gzip;q=1.0, zstd;q=0.9"], "gzip"),
        (["gzip;q=0"], None),
        (["gzip;q=0, zstd"], "zstd"),
        # Not all that say so know zstd.
        (["*"], "gzip"),
        (["*, gzip;q=0"], None),
        (["identity"], None),
        (["identity;q=0.5, gzip;q=0.4"], None),
        (["identity;q=0.4, gzip;q=0.4"], "gzip"),
        (["xgzip, gzipped, br"], None),
        (["gzip;q=many"], None),
    ],
)
def test_the_coding_that_is_liked_best_is_taken(accepted: list[str], coding: str | None) -> None:
    chosen = choose_coding(accepted)

    assert chosen == (None if coding is None else (coding, 1_000))


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a_compressed_answer_is_the_same_answer_with_a_weak_tag(coding: str) -> None:
    sent = ask({"accept-encoding": coding}, BODY)

    assert sent.headers["content-encoding"] == coding and decode(sent) == BODY
    assert int(sent.headers["content-length"]) == len(sent.body) < len(BODY) / 2
    assert (sent.headers["etag"], sent.headers["vary"]) == ('W/"7-x"', "Accept, Accept-Encoding")


@pytest.mark.parametrize(
    "headers", [{}, {"accept-encoding": "br"}, {"accept-encoding": "gzip;q=0"}]
)
def test_who_takes_no_coding_gets_the_bytes_and_the_strong_tag(headers: dict[str, str]) -> None:
    sent = ask(headers, BODY)

    assert sent.body == BODY and "content-encoding" not in sent.headers
    assert sent.headers["etag"] == '"7-x"'


def test_a_small_answer_is_compressed_only_where_it_must_be() -> None:
    small = ask({"accept-encoding": "gzip"}, SMALL)
    forced = ask({"accept-encoding": "gzip, identity;q=0"}, SMALL)

    assert small.body == SMALL and "content-encoding" not in small.headers
    assert forced.headers["content-encoding"] == "gzip" and decode(forced) == SMALL
    # One tag of an answer for each client, however large it is by now.
    assert small.headers["etag"] == forced.headers["etag"] == 'W/"7-x"'


@pytest.mark.parametrize("accepted", ["gzip", "gzip, identity;q=0", "zstd, identity;q=0"])
def test_an_answer_without_a_body_has_none_and_the_same_tag(accepted: str) -> None:
    sent = ask({"accept-encoding": accepted}, b"", status=304)

    assert (sent.body, sent.headers["etag"]) == (b"", 'W/"7-x"')
    assert "content-encoding" not in sent.headers


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_an_answer_in_pieces_is_compressed_piece_by_piece(coding: str) -> None:
    sent = ask({"accept-encoding": coding}, BODY, BODY[:10], b"")

    assert decode(sent) == BODY + BODY[:10]
    assert "content-length" not in sent.headers and len(sent.messages) == 4


@pytest.mark.parametrize("accepted", ["gzip", "zstd", "gzip, identity;q=0"])
def test_events_pass_as_they_come(accepted: str) -> None:
    """Each is sent when it is written: nothing is kept back to compress it with the next."""
    events = (b"retry: 3000\n\n", b"event: change\ndata: {}\n\n" * 100, b": keep-alive\n\n")

    sent = ask({"accept-encoding": accepted}, *events, form=EVENTS)

    assert [message.get("body") for message in sent.messages[1:]] == list(events)
    assert "content-encoding" not in sent.headers


@pytest.mark.parametrize(
    ("site", "cookie", "is_compressed"),
    [
        ("cross-site", True, False),
        ("same-site", True, False),
        ("same-origin", True, True),
        ("none", True, True),
        ("cross-site", False, True),
    ],
)
def test_no_foreign_page_learns_by_sizes_what_its_visitor_may_read(
    site: str, cookie: bool, is_compressed: bool
) -> None:
    """BREACH: by what it lets compress together with a secret, and by how much that saves."""
    headers = {"accept-encoding": "gzip", "sec-fetch-site": site}

    sent = ask(headers | ({"cookie": "livemart_session=x"} if cookie else {}), BODY)

    assert ("content-encoding" in sent.headers) is is_compressed
