"""Describes the process that writes a warehouse."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from socket import gethostname


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes a warehouse. `connect_port`: loopback port of its Spark Connect server, if any.

    `host`: name of its machine; empty if it is this one.
    """

    pid: int
    command: str
    started_at: str
    connect_port: int | None = None
    host: str = ""

    def __str__(self) -> str:
        place = f" on {self.host}" if self.host else ""
        return f"process {self.pid}{place} ({self.command}), since {self.started_at}"

    @classmethod
    def of_this_process(cls, *, names_host: bool = False) -> Holder:
        """Return the description of this process."""
        now = datetime.now(UTC).isoformat(sep=" ", timespec="seconds")
        command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200]
        return cls(os.getpid(), command, now, host=gethostname() if names_host else "")
