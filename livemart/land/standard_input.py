"""Reads a pipe, or a file that grows, into a spool.

Used by `ingest`. The pipe is read only as fast as its records become durable, so the program that
writes into it waits when the disk does.
"""

from __future__ import annotations

import os
import select
import stat
import time
from threading import Event

from livemart.land.spool import Spool

_BLOCK_BYTES = 1 << 20
_LOOK_S = 0.2


def read_into(
    spool: Spool,
    descriptor: int,
    stop: Event,
    *,
    every: float,
    follows: bool = False,
) -> bool:
    """Read until the end, or until a stop; return whether the end was reached.

    At the end the last record needs no line end; after a stop an incomplete record is not handed
    over.

    Args:
        spool: takes what is read.
        descriptor: of the pipe or file.
        stop: is set to end the reading.
        every: seconds that a whole record waits at most.
        follows: at the end of a file wait for it to grow.
    """
    grows = follows and stat.S_ISREG(os.fstat(descriptor).st_mode)
    while not stop.is_set():
        since = spool.waiting_since
        if since is not None and time.monotonic() - since >= every:
            spool.flush()
        if not select.select([descriptor], [], [], min(_LOOK_S, every))[0]:
            continue
        if block := os.read(descriptor, _BLOCK_BYTES):
            spool.write(block)
        elif grows:
            stop.wait(_LOOK_S)
        else:
            spool.close()
            return True
    spool.flush()
    return False
