"""A run says how much memory it holds, with that of its JVM."""

from __future__ import annotations

import os
from pathlib import Path

from livemart.observe.memory_use import memory_use
from livemart.state.last_run import MemoryUse

_PAGE = os.sysconf("SC_PAGE_SIZE")


def _process(proc: Path, name: str, comm: str, pages: int) -> Path:
    folder = proc / name
    folder.mkdir(parents=True)
    (folder / "comm").write_text(f"{comm}\n")
    (folder / "statm").write_text(f"900 {pages} 7 1 0 3 0\n")
    return folder


def test_the_jvm_counts_whichever_thread_has_started_it(tmp_path: Path) -> None:
    threads = _process(tmp_path, "self", "python", 20) / "task"
    for thread, children in (("1", "7 8 "), ("2", "9 "), ("3", None)):
        (threads / thread).mkdir(parents=True)
        if children is not None:
            (threads / thread / "children").write_text(children)
    _process(tmp_path, "7", "java", 300)
    _process(tmp_path, "8", "git", 5)

    # The process 9 has ended since.
    assert memory_use(tmp_path) == MemoryUse(20 * _PAGE, 300 * _PAGE)


def test_a_system_that_does_not_say_is_unknown(tmp_path: Path) -> None:
    assert memory_use(tmp_path) is None


def test_this_process_holds_memory() -> None:
    found = memory_use()

    assert found is None or found.python_bytes > 1_000_000
