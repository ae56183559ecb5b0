"""A client of server-sent events on a bare socket: it sees what is sent, when, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from tests.waits import PATIENCE_S

SEALED_LETTERS = 54


@dataclass(frozen=True, slots=True)
class Event:
    """One event, or a comment alone (`kind` is then `comment`)."""

    kind: str
    event_id: str | None
    data: Any

    def without_sealed_id(self) -> Event:
        """Return the event without letters that are random: `r1` or `USD` may be among them."""
        is_sealed = len(self.event_id or "") == SEALED_LETTERS
        return replace(self, event_id="sealed") if is_sealed else self


@dataclass(slots=True)
class Stream:
    """An open response. `status` and `headers` are there when it is."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    _reader: asyncio.StreamReader
    _text: str = ""
    # The server said that this was the end; a connection that was cut off says nothing.
    has_ended: bool = False

    async def next(self) -> Event | None:
        """Return the next event that is none of retry and comment; None at the end."""
        while (event := await self.next_of_any_kind()) is not None:
            if event.kind not in ("comment", "retry"):
                return event
        return None

    async def next_of_any_kind(self) -> Event | None:
        """Return the next event, retry or comment; None at the end."""
        block = await asyncio.wait_for(self._block(), PATIENCE_S)
        return None if block is None else _parse(block)

    async def events(self) -> AsyncIterator[Event]:
        """Yield events until the server ends the stream."""
        while (event := await self.next()) is not None:
            yield event

    async def _block(self) -> str | None:
        while "\n\n" not in self._text:
            chunk = await _read_chunk(self._reader)
            if not chunk:
                self.has_ended = chunk is not None
                return None
            self._text += chunk.decode()
        block, _, self._text = self._text.partition("\n\n")
        return block


@asynccontextmanager
async def open_stream(
    address: tuple[str, int], path: str, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Stream]:
    """Ask for a stream; leaving the block breaks the connection off."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        sent = {"Host": f"{address[0]}:{address[1]}", "Accept": "text/event-stream"}
        lines = [f"{name}: {value}" for name, value in {**sent, **(headers or {})}.items()]
        writer.write("\r\n".join([f"GET {path} HTTP/1.1", *lines, "", ""]).encode())
        await writer.drain()
        head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode()
        first, *rest = head.strip().split("\r\n")
        pairs = (line.partition(": ") for line in rest)
        found = {name.lower(): value for name, _, value in pairs}
        body = b""
        if length := found.get("content-length"):
            body = await asyncio.wait_for(reader.readexactly(int(length)), PATIENCE_S)
        yield Stream(int(first.split()[1]), found, body, reader)
    finally:
        writer.close()


async def _read_chunk(reader: asyncio.StreamReader) -> bytes | None:
    """Read one chunk of a chunked body; an empty one ends it, None if it was cut off."""
    try:
        size = int((await reader.readuntil(b"\r\n")).strip(), 16)
        chunk = await reader.readexactly(size + 2)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return chunk[:-2]


def _parse(block: str) -> Event:
    fields: dict[str, list[str]] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields.setdefault(name, []).append(value.removeprefix(" "))
    if "data" in fields:
        kind = fields.get("event", ["message"])[-1]
        event_id = fields["id"][-1] if "id" in fields else None
        return Event(kind, event_id, json.loads("\n".join(fields["data"])))
    if "retry" in fields:
        return Event("retry", None, fields["retry"][-1])
    return Event("comment", None, "\n".join(fields.get("", [])))
