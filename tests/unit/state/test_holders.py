"""A holder says which process of which machine it is."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from livemart.state.holders import Holder


def test_a_process_names_itself_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/usr/bin/livemart", "build", "--select", "a b"])

    here = Holder.of_this_process()
    there = Holder.of_this_process(names_host=True)

    assert (here.pid, here.command, here.host) == (os.getpid(), "livemart build --select 'a b'", "")
    assert str(here).startswith(f"process {os.getpid()} (livemart build")
    assert str(there).startswith(f"process {os.getpid()} on {socket.gethostname()} (livemart build")
