"""Only a request that did not cross a network is from this machine."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from livemart.serve.auth.this_machine import (
    is_from_this_machine,
    is_loopback_host,
    is_loopback_name,
)


def request(peer: str | None, host: str, **headers: str) -> Request:
    """Return a request from an address to a host, with more headers."""
    named = {"host": host, **{name.replace("_", "-"): text for name, text in headers.items()}}
    return Request(
        {
            "type": "http",
            "headers": [(name.encode(), text.encode()) for name, text in named.items()],
            "client": None if peer is None else (peer, 4711),
        }
    )


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.10", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.168.1.5", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_loopback_is_known_by_name_and_address(host: str, expected: bool) -> None:
    assert is_loopback_name(host) is expected


@pytest.mark.parametrize("host", ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000"])
@pytest.mark.parametrize("peer", ["127.0.0.1", "::1"])
def test_loopback_from_both_ends_is_this_machine(peer: str, host: str) -> None:
    assert is_from_this_machine(request(peer, host))


@pytest.mark.parametrize("peer", ["192.168.1.5", "testclient", None])
def test_another_peer_is_not_this_machine(peer: str | None) -> None:
    assert not is_from_this_machine(request(peer, "localhost"))


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::1", ""])
def test_a_foreign_name_that_points_here_is_not_this_machine(host: str) -> None:
    asked = request("127.0.0.1", host)

    assert not is_loopback_host(asked)
    assert not is_from_this_machine(asked)


@pytest.mark.parametrize(
    "header", ["forwarded", "x_forwarded_for", "x_forwarded_host", "x_real_ip"]
)
def test_what_a_proxy_passes_on_comes_from_elsewhere(header: str) -> None:
    assert not is_from_this_machine(request("127.0.0.1", "localhost", **{header: "127.0.0.1"}))
