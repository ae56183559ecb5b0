"""Reads how much memory a run holds: this process, and the JVM that it has started.

Used by the notes of a run. Linux says so below /proc; elsewhere nothing is known.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from livemart.state.last_run import MemoryUse
from livemart.storage.opening import open_storage
from livemart.storage.storage import Storage


def memory_use(proc: Path = Path("/proc")) -> MemoryUse | None:
    """Return the memory of this process and its JVM; None where the system does not say."""
    processes = open_storage(proc)
    python_bytes = _resident_bytes(processes, "self")
    if python_bytes is None:
        return None
    resident = (_resident_bytes(processes, pid) for pid in _jvms(processes))
    return MemoryUse(python_bytes, sum(size for size in resident if size is not None))


def _jvms(processes: Storage) -> list[str]:
    """Return the ids of the JVMs below this process.

    Each thread names the processes that it has started; one may end between two looks.
    """
    threads = processes.folders("self/task")
    pids = [pid for it in threads for pid in _text(processes, f"self/task/{it}/children").split()]
    return [pid for pid in pids if _text(processes, f"{pid}/comm").strip() == "java"]


def _resident_bytes(processes: Storage, pid: str) -> int | None:
    words = _text(processes, f"{pid}/statm").split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") if len(words) > 1 else None


def _text(processes: Storage, name: str) -> str:
    with suppress(OSError):
        return processes.get(name).decode(errors="replace")
    return ""
