"""Takes records by HTTP: acknowledged records are durable, and land exactly once.

Used if the setting `http_ingest` is on. Records are judged as landing will judge them, and a
request is taken whole or not at all: its sender still has what is wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from livemart.land.group_commit import GroupCommit, IngestBusyError, IngestRequest, KeyReusedError
from livemart.land.ingest import group_of, read_project, records_of
from livemart.land.ingested_keys import IngestedKeys
from livemart.land.records.judge import refused_by, verdict
from livemart.land.records.origin import Place
from livemart.land.records.parse import parse_runs
from livemart.land.records.runs import Lines
from livemart.land.sources.files.blocks import BYTE_ORDER_MARK
from livemart.land.sources.files.elements import Elements, as_lines
from livemart.land.sources.files.names import name_for
from livemart.project.graph import SourceTable
from livemart.project.sources import FILES_KIND
from livemart.serve.auth.callers import Caller, CallerOf
from livemart.serve.http.held_bytes import HeldBytes
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import Shape, answer_shapes
from livemart.serve.shares.shares import ingest_turn, owner_of
from livemart.settings import Settings
from livemart.state.places import LocalFolder

MOST_INGEST_BYTES = 16 << 20
INGEST_PATH = "/v1/ingest/"
_SHOWN_MISTAKES = 5
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl")
# Which forms a source of a format takes.
_FORMS: Mapping[str, tuple[str, ...]] = {
    "json": (*_LINES, "application/json"),
    "text": ("text/plain",),
}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "JSON lines, an array of objects or one object; lines for a source of text.",
        "content": {
            "application/x-ndjson": {"schema": {"type": "string", "format": "binary"}},
            "application/json": {"schema": {}},
            "text/plain": {"schema": {"type": "string"}},
        },
    }
}


class Ingested(Shape):
    """Records that are durable."""

    source: str
    records: int = Field(description="How many of this request.")
    file: str = Field(description="Below the landing folder; others' records are in it, too.")
    repeated: bool = Field(description="They were stored before, for the same Idempotency-Key.")


@dataclass(frozen=True, slots=True)
class Intake:
    """Takes records. `sources`: those of lines, by each of their names."""

    sources: Mapping[str, SourceTable]
    commit: GroupCommit


ingest_router = APIRouter(prefix="/v1/ingest", tags=["ingest"])


@ingest_router.post(
    "/{source}",
    operation_id="send_records",
    responses=answer_shapes(
        Ingested, has_304=False, further={415: "Records are not taken in this form."}
    ),
    openapi_extra=_BODY,
)
async def take_records(
    request: Request,
    caller: CallerOf,
    source: Annotated[str, Path(min_length=1, max_length=200)],
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> Response:
    """Take records: JSON lines or an array for a source of JSON, lines for one of text.

    The answer comes when they are durable; the next refresh lands each once. A request with an
    `Idempotency-Key` may be sent again for a day.
    """
    if request.headers.get("authorization") is None:
        raise ProblemError("TOKEN_MISSING", "send `Authorization: Bearer <token>`")
    intake = part_of(request, Intake)
    table = intake.sources.get(source)
    names = (source,) if table is None else table.names
    if caller.sources.isdisjoint(names):
        raise ProblemError(
            "INGEST_REFUSED", f"it needs one of `livemart token create --ingest {source[:80]}`"
        )
    if table is None:
        raise ProblemError(
            "INGEST_SOURCE_UNKNOWN", "the project has no such source of JSON lines or text"
        )
    form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    forms = _FORMS[table.record_rules.format]
    if form not in forms or request.headers.get("content-encoding", "identity") != "identity":
        raise ProblemError("INGEST_FORM_REFUSED", f"send {', '.join(forms)}, not compressed")
    async with _held_body(request, caller) as body, ingest_turn(request, caller):
        ingest_request = await run_in_threadpool(_take, table, body, form, idempotency_key)
    try:
        intake.commit.put(ingest_request)
        receipt = await asyncio.wrap_future(ingest_request.done)
    except IngestBusyError:
        raise ProblemError("INGEST_BUSY", "the disk is slow; send it again later") from None
    except KeyReusedError:
        raise ProblemError(
            "INGEST_KEY_REUSED", "send other records under another Idempotency-Key"
        ) from None
    except OSError as error:
        raise ProblemError("INGEST_FAILED", error.strerror or "the disk refuses") from error
    return JSONResponse(
        {
            "source": table.relation,
            "records": receipt.records,
            "file": receipt.file,
            "repeated": receipt.is_repeat,
        }
    )


@asynccontextmanager
async def _held_body(request: Request, caller: Caller) -> AsyncIterator[bytes]:
    """Yield the body; its bytes count as the caller's while it arrives and waits.

    Raises:
        ProblemError: INGEST_BUSY, if the memory is needed for others.
    """
    held, owner, body = part_of(request, HeldBytes), owner_of(request, caller), bytearray()
    try:
        async with asyncio.timeout(None) as patience:
            async for chunk in request.stream():
                body += chunk
                held.hold(patience, owner, len(body), lambda: patience.reschedule(0))
            yield bytes(body)
    except TimeoutError:
        raise ProblemError(
            "INGEST_BUSY", "too many large bodies are under way; send fewer at once"
        ) from None
    finally:
        held.release(patience)


def _take(table: SourceTable, body: bytes, form: str, key: str | None) -> IngestRequest:
    """Return the records of a request.

    Raises:
        ProblemError: INGEST_RECORDS_REFUSED, with the first that cannot land.
    """
    content = body.removeprefix(BYTE_ORDER_MARK)
    if form == "application/json":
        content, is_open = _lines_of_json(content)
        if is_open:
            raise _refused(["the array does not end"])
    all_lines, record_format = enumerate(content.split(b"\n"), 1), table.record_rules.format
    lines = [(number, line) for number, line in all_lines if any(records_of(line, record_format))]
    if not lines:
        raise _refused(["there is none"])
    mistakes, count = [], 0
    for judged in parse_runs(group_of(table), Place("record"), [Lines(lines)]):
        count += judged.num_rows
        wrong = refused_by(judged, 0)
        mistakes += [
            f"{row['_origin'].replace(':', ' ')}: {row[verdict('code', 0)]}: "
            f"{row[verdict('detail', 0)]}"
            for row in wrong.slice(0, _SHOWN_MISTAKES + 1).to_pylist()
        ]
    if mistakes:
        raise _refused(mistakes)
    data = b"".join(line + b"\n" for _, line in lines)
    return IngestRequest(table, data, count, hashlib.sha256(data).hexdigest(), key)


def _lines_of_json(content: bytes) -> tuple[bytes, bool]:
    """Return an array's elements, or one object, as lines; and whether the array does not end."""
    if content.lstrip()[:1] != b"[":
        return content.replace(b"\n", b" "), False
    elements = Elements()
    ended = elements.read(content)
    rest = elements.end()
    return as_lines([*ended, *([rest] if rest[1].strip() else [])]), elements.is_open


def _refused(mistakes: list[str]) -> ProblemError:
    shown = "; ".join(mistakes[:_SHOWN_MISTAKES])
    more = "; and more" if len(mistakes) > _SHOWN_MISTAKES else ""
    return ProblemError("INGEST_RECORDS_REFUSED", f"nothing was stored: {shown}{more}")


@contextmanager
def open_intake(settings: Settings) -> Iterator[Intake | None]:
    """Yield the intake of records; None if the setting `http_ingest` is off.

    Raises:
        ConfigError: whatever keeps dbt from reading the project.
    """
    if not settings.http_ingest:
        yield None
        return
    project = read_project(settings)
    sources = [source for source in project.sources.values() if takes_records(source)]
    keys = IngestedKeys(LocalFolder(settings.warehouse).ingested_keys, settings.landing)
    commit = GroupCommit(settings.landing, keys)
    try:
        yield Intake(by_names(sources), commit)
    finally:
        commit.close()


def takes_records(source: SourceTable) -> bool:
    """Return whether records can be handed over to a source line by line."""
    stream = source.stream
    if stream is None or stream.arrival.kind != FILES_KIND:
        return False
    if stream.record_rules.format not in _FORMS:
        return False
    try:
        name_for(stream.arrival.path, "a")
    except ValueError:
        return False
    return True


def by_names(sources: list[SourceTable]) -> dict[str, SourceTable]:
    """Return the sources by each name that is one's alone."""
    # A source that is called as its schema has two names that are one.
    counts = Counter(name for source in sources for name in set(source.names))
    return {name: source for source in sources for name in source.names if counts[name] == 1}
