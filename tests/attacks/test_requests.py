"""Requests that two servers could read differently, and bytes that are no request: real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.serve.apps import server
from tests.store.stores import fill_store, reference_tables
from tests.waits import PATIENCE_S

_HOST = b"Host: localhost\r\n"
_GET = b"GET /healthz HTTP/1.1\r\n" + _HOST
_POST = b"POST /login HTTP/1.1\r\n" + _HOST + b"Content-Type: application/x-www-form-urlencoded\r\n"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"
# A request that a server would answer which ends the first one too early.
_SECOND = b"GET /openapi.json HTTP/1.1\r\n" + _HOST + b"Connection: close\r\n\r\n"
REFUSED = {
    "two lengths": _POST + b"Content-Length: 7\r\nContent-Length: 8\r\n\r\ntoken=x",
    "a length and chunks": _POST + b"Content-Length: 7\r\n" + _CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and a length": _POST + _CHUNKED + b"Content-Length: 7\r\n\r\n0\r\n\r\n",
    "another coding": _POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "two codings": _POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a coding twice": _POST + _CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a signed length": _POST + b"Content-Length: +7\r\n\r\ntoken=x",
    "a negative length": _POST + b"Content-Length: -7\r\n\r\ntoken=x",
    "a length in hex": _POST + b"Content-Length: 0x7\r\n\r\ntoken=x",
    "a length of 5,000 digits": _POST + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\ntoken=x",
    "a blank before the colon": _POST + b"Content-Length : 7\r\n\r\ntoken=x",
    "a chunk of no size": _POST + _CHUNKED + b"\r\nx\r\ntoken=x\r\n0\r\n\r\n",
    "a bare CR": _GET + b"X: a\rb\r\n\r\n",
    "a NUL": _GET + b"X: a\0b\r\n\r\n",
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": _GET + _HOST + b"\r\n",
    "HTTP 0.9": b"GET /healthz\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    folder: Path = tmp_path_factory.mktemp("requests")
    fill_store(f"sqlite:///{folder}/warehouse/_livemart/serving.db", reference_tables([]))
    with server(folder) as found:
        yield found


@pytest.mark.parametrize("kind", REFUSED)
def test_an_ambiguous_request_is_refused_and_ends_its_connection(
    address: tuple[str, int], kind: str
) -> None:
    """Behind a proxy that reads it otherwise, its rest would be the request of another client."""
    with socket.create_connection(address, PATIENCE_S) as client:
        client.sendall(REFUSED[kind] + _SECOND)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))

    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1 ") == 1
    assert b"content-type: application/problem+json" in head.lower()
    assert b"connection: close" in head.lower()
    assert json.loads(body)["code"] == "REQUEST_REFUSED"


def test_a_request_that_is_unusual_but_clear_is_answered(address: tuple[str, int]) -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    clear = {
        "another protocol, if you like": _GET + upgrade,
        "equal lengths": _POST + b"Content-Length: 7\r\nContent-Length: 7\r\n\r\ntoken=x",
        "bare line ends": b"GET /healthz HTTP/1.1\nHost: localhost\n\n",
        "HTTP 1.0": b"GET /healthz HTTP/1.0\r\n\r\n",
        "4,000 headers": _GET + b"".join(b"X%d: 1\r\n" % n for n in range(4_000)) + b"\r\n",
    }
    with capture_logs() as logged:
        for kind, request in clear.items():
            with socket.create_connection(address, PATIENCE_S) as client:
                client.sendall(request)
                assert client.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 401"), kind

    # No advice of a library to the operator.
    assert [each["event"] for each in logged if each["event"] != "token_refused"] == []
