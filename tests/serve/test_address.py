"""An address is taken before anything slow begins, and kept for the servers to come."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import pytest

from livemart.errors import StateError
from livemart.serve.address import bound
from tests.serve.apps import make_settings


def test_a_kept_address_refuses_clients_and_takes_one_server_after_the_other(
    tmp_path: Path,
) -> None:
    with bound(make_settings(tmp_path, port=0)) as keeper:
        port = keeper.getsockname()[1]
        settings = make_settings(tmp_path, port=port)
        for _ in range(2):
            with socket.socket() as client:
                assert client.connect_ex(("127.0.0.1", port)) == errno.ECONNREFUSED
            with bound(settings, backlog=5), socket.create_connection(("127.0.0.1", port)):
                pass


def test_an_address_at_which_another_server_listens_is_taken(tmp_path: Path) -> None:
    with bound(make_settings(tmp_path, port=0), backlog=5) as listener:
        settings = make_settings(tmp_path, port=listener.getsockname()[1])
        with pytest.raises(StateError, match="ADDRESS_TAKEN"), bound(settings):
            pass
