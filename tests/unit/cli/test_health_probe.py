"""A probe asks a server for `/healthz`, and never waits for one that is silent."""

from __future__ import annotations

import socket

import pytest

from livemart.cli.health_probe import HealthProbe


@pytest.fixture
def listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def answer(listener: socket.socket, text: bytes) -> bytes:
    """Take the next request and answer it; return the request."""
    with listener.accept()[0] as connection:
        request = connection.recv(1_000)
        connection.sendall(text)
    return request


@pytest.mark.parametrize(("status", "expected"), [(b"200 OK", True), (b"500 Oh", False)])
def test_an_answer_is_heard_once(listener: socket.socket, status: bytes, expected: bool) -> None:
    probe = HealthProbe(listener.getsockname())
    with listener:
        assert not probe.is_answered(0.0)
        assert not probe.is_answered(0.1)
        request = answer(listener, b"HTTP/1.1 " + status + b"\r\n\r\n")
        is_heard = False
        while probe.is_asking:
            is_heard = probe.is_answered(0.2)

    assert request.startswith(b"GET /healthz HTTP/1.1\r\n")
    assert is_heard is expected
    assert not probe.is_answered(0.3)


def test_a_silent_server_is_asked_again_over_another_connection(listener: socket.socket) -> None:
    probe = HealthProbe(listener.getsockname())
    with listener:
        for now in (0.0, 0.1, 5.2, 5.3, 5.4):
            assert not probe.is_answered(now)
        first, second = listener.accept()[0], listener.accept()[0]
        with first, second:
            assert first.recv(1_000) == second.recv(1_000) != b""
        probe.close()


def test_where_nobody_listens_nothing_is_heard(listener: socket.socket) -> None:
    probe = HealthProbe(listener.getsockname())
    listener.close()

    assert [probe.is_answered(now) for now in (0.0, 0.1, 0.2, 2.1, 2.2)] == [False] * 5
