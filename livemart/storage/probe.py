"""Tries whether a bucket refuses the writes that a warehouse in it needs refused.

Used before a runner takes its lease, and by `doctor`. Some servers of S3's protocol take conditions
without a word and write all the same: two commits of one version would both succeed there.
"""

from __future__ import annotations

import time
import uuid
from contextlib import suppress

from livemart.errors import ConfigError
from livemart.storage.storage import Changed, Storage, Taken

# A store tells times in whole seconds.
_RESOLUTION_S = 1.0


def probe_store(storage: Storage, clock_may_differ_s: float) -> None:
    """Create, replace and remove an object of a random name.

    Args:
        storage: where objects will be written.
        clock_may_differ_s: by so much the clock of this machine may be off the store's.

    Raises:
        ConfigError: STORE_UNCONDITIONAL, CLOCK_APART.
    """
    name = f"probe-{uuid.uuid4().hex}"
    began_at = time.time()
    storage.create(name, b"created")
    ended_at = time.time()
    try:
        entry = storage.head(name)
        with suppress(Taken):
            storage.create(name, b"created again")
            raise _unconditional(storage, "If-None-Match")
        if entry is None:
            raise _unconditional(storage, "a read after a write")
        storage.replace_if(name, b"replaced", entry.etag)
        with suppress(Changed):
            storage.replace_if(name, b"replaced again", entry.etag)
            raise _unconditional(storage, "If-Match")
    finally:
        storage.delete([name])
    ahead_s = max(began_at - _RESOLUTION_S - entry.modified_s, entry.modified_s - ended_at)
    if ahead_s > clock_may_differ_s:
        raise ConfigError(
            "CLOCK_APART",
            f"{storage.location}: the store's clock and this machine's are {ahead_s:.0f} s apart",
            hint="set the clock of this machine (NTP): runners on several machines tell by it "
            "which of them may write",
        )


def _unconditional(storage: Storage, condition: str) -> ConfigError:
    return ConfigError(
        "STORE_UNCONDITIONAL",
        f"{storage.location}: the store does not keep {condition}",
        hint="name a bucket of another store, such as S3, or a folder of a disk: "
        "two commits of one version could both succeed here",
    )
