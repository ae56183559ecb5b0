"""Hands the records of many requests over in few files.

Used by the HTTP endpoint of `ingest`: each request is answered when it is durable. Requests that
come while a file is written wait for the next one, so the number of files follows the disk, not the
requests.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import KW_ONLY, dataclass, field

from livemart.land.hand_over import hand_over_below
from livemart.land.ingest import MAX_SPOOL_BYTES, new_stem
from livemart.land.ingested_keys import IngestedKeys
from livemart.land.sources.files.names import name_for
from livemart.land.sources.files.parts import content_of
from livemart.project.graph import SourceTable
from livemart.storage.location import StoragePlace

_LINGER_S = 0.02
_WAITING_BYTES = 64 << 20


class IngestBusyError(Exception):
    """More records wait than memory should hold: the sender is to come again."""


class KeyReusedError(Exception):
    """The key was used for other records."""


@dataclass(frozen=True, slots=True)
class IngestReceipt:
    """The outcome of a request. `is_repeat`: its records were handed over before, by its key."""

    records: int
    file: str
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """Records of one request, as lines. `digest`: of them; `key`: the sender's own, if any."""

    source: SourceTable
    lines: bytes
    records: int
    digest: str
    key: str | None = None
    done: Future[IngestReceipt] = field(default_factory=Future)


@dataclass(eq=False)
class GroupCommit:
    """Writes files in one thread, one at a time; at most `max_waiting` bytes wait.

    The first request of a file waits `linger` seconds for others.
    """

    landing: StoragePlace
    keys: IngestedKeys
    _: KW_ONLY
    linger: float = _LINGER_S
    max_waiting: int = _WAITING_BYTES

    def __post_init__(self) -> None:
        self._requests: queue.SimpleQueue[IngestRequest | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="ingest", daemon=True)
        self._thread.start()

    def put(self, request: IngestRequest) -> None:
        """Take a request; its `done` is set when its records are durable, or cannot be.

        Raises:
            IngestBusyError: too much waits.
        """
        with self._lock:
            if self._waiting + len(request.lines) > self.max_waiting and self._waiting:
                raise IngestBusyError
            self._waiting += len(request.lines)
        self._requests.put(request)

    def close(self) -> None:
        """Hand over all that waits, and end."""
        self._requests.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            first = self._requests.get()
            if first is None:
                return
            requests, size, until = [first], len(first.lines), time.monotonic() + self.linger
            while size < MAX_SPOOL_BYTES:
                try:
                    request = self._requests.get(timeout=max(0.0, until - time.monotonic()))
                except queue.Empty:
                    break
                if request is None:
                    is_open = False
                    break
                requests.append(request)
                size += len(request.lines)
            self._commit(requests)
            with self._lock:
                self._waiting -= size

    def _commit(self, requests: Sequence[IngestRequest]) -> None:
        by_source: dict[str, list[IngestRequest]] = {}
        for request in requests:
            by_source.setdefault(request.source.relation, []).append(request)
        for relation, members in by_source.items():
            try:
                self._commit_source(relation, members)
            # Whatever it is: the waiting requests need an answer.
            except Exception as error:
                for request in members:
                    if not request.done.done():
                        request.done.set_exception(error)

    def _commit_source(self, relation: str, requests: Sequence[IngestRequest]) -> None:
        fresh: list[IngestRequest] = []
        repeats: list[IngestRequest] = []
        by_key: dict[str, IngestRequest] = {}
        for request in requests:
            if request.key is None:
                fresh.append(request)
                continue
            earlier = self.keys.find(relation, request.key)
            first = earlier or by_key.setdefault(request.key, request)
            if first is request:
                fresh.append(request)
            elif first.digest != request.digest:
                request.done.set_exception(KeyReusedError(request.key))
            elif earlier:
                receipt = IngestReceipt(earlier.records, earlier.file, is_repeat=True)
                request.done.set_result(receipt)
            else:
                repeats.append(request)
        if not fresh:
            return
        name = name_for(fresh[0].source.arrival.path, new_stem())
        keys = {key: (first.digest, first.records) for key, first in by_key.items()}
        if keys:
            self.keys.note(relation, name, keys)
        try:
            lines = b"".join(request.lines for request in fresh)
            content = content_of(lines, fresh[0].source.record_rules.format)
            hand_over_below(self.landing, name, content)
        except BaseException:
            if keys:
                self.keys.withdraw(relation, keys)
            raise
        for request in fresh:
            request.done.set_result(IngestReceipt(request.records, name))
        for request in repeats:
            request.done.set_result(IngestReceipt(request.records, name, is_repeat=True))
