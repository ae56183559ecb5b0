"""Answers pull queries on any served model: rows by key and time, as JSON, CSV, Arrow or Parquet.

Used by clients that know their models. A caller reads only the rows of their tenants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from starlette.requests import Request
from starlette.responses import Response

from livemart.serve.auth.callers import Caller, CallerOf
from livemart.serve.auth.seal import Seal
from livemart.serve.http.forms import JSON, answer, choose_form, etag_of, is_known
from livemart.serve.http.known_parameters import Moment, parameters_of, refuse_others, refuse_unread
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError
from livemart.serve.http.schemas import answer_shapes
from livemart.serve.live.readings import Readings
from livemart.serve.live.shelf import Answer
from livemart.serve.live.snapshot_json import age_of, json_text, snapshot_head, to_json, to_text
from livemart.serve.models import schemas
from livemart.serve.models.event_ids import EventIds
from livemart.serve.models.row_cursors import RowCursors, order_kinds, snapshot_gone
from livemart.serve.models.row_forms import CONTENTS, FORMS, RowsFormat, choose_rows_format
from livemart.serve.models.row_questions import RowQuestion, read_row_question
from livemart.serve.models.written_rows import SMALL, PullQuery, WrittenRows, write_answer
from livemart.serve.shares.shares import is_crowding, note_rows, shared_turn
from livemart.store.predicates import AskedRows
from livemart.store.served import Published, ServedModel
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import TIMESTAMPS, parse_served_value

_MOST_ROWS = 10_000
# Each page of a walk may have others.
_OF_A_PAGE = ("select", "limit", "after", "format")
_TIMES = (*TIMESTAMPS, "date")

ModelName = Annotated[str, Path(min_length=1, max_length=200, description="As in the project.")]
_HEADERS = {
    "Livemart-Truncated": "`true` if rows were left out.",
    "Livemart-Next": "If rows were left out: sent back as `after` for the rows behind these.",
    "Livemart-Changes-After": "The `after` of the model's stream whose changes follow these rows.",
}
CONDITIONS: dict[str, Any] = {
    "parameters": [
        {
            "name": "conditions",
            "in": "query",
            "description": "`column=operator.value` for any column: eq, neq, gt, gte, lt, lte, "
            "in.(a,b), is.null, is.not_null. A column may come several times.",
            "style": "form",
            "explode": True,
            "schema": {"type": "object", "additionalProperties": {"type": "string"}},
        }
    ]
}

models_router = APIRouter(prefix="/v1/models", tags=["models"])


@models_router.get(
    "",
    operation_id="list_models",
    responses=answer_shapes(schemas.Models),
    dependencies=[Depends(refuse_unread)],
)
async def models(request: Request, caller: CallerOf) -> Response:
    """List the served models that you may read, with columns and key."""
    choose_form(request, [JSON])
    served = await part_of(request, Readings).models()
    listed = [
        {
            "name": model.name,
            "columns": [{"name": name, "type": kind} for name, kind in model.columns],
            "key": list(model.row_key),
            "tenant_column": model.tenant_column,
            **age_of(served.published, model.name),
        }
        for model in served.value.values()
        if may_read(caller, model)
    ]
    body = to_json({**snapshot_head(served.published), "models": listed})
    return answer(
        request, body, etag_of(served.published, "models", [model["name"] for model in listed])
    )


@models_router.get(
    "/{name}",
    operation_id="pull_rows",
    responses=answer_shapes(
        schemas.Rows, CONTENTS, headers=_HEADERS, further={410: "Rows have changed since."}
    ),
    openapi_extra=CONDITIONS,
)
async def rows(
    request: Request,
    caller: CallerOf,
    name: ModelName,
    key: Annotated[
        list[str] | None,
        Query(max_length=20, description="`column:value` of a key column; may be repeated."),
    ] = None,
    from_: Annotated[
        Moment | None, Query(alias="from", description="Start of a span, ISO 8601.")
    ] = None,
    to: Annotated[Moment | None, Query(description="End of a span, not included.")] = None,
    time_column: Annotated[
        str | None,
        Query(
            max_length=200,
            description="The column that `from` and `to` limit, if not the model's own time.",
        ),
    ] = None,
    select: Annotated[
        str | None, Query(description="Columns, with commas between; all if left out.")
    ] = None,
    order: Annotated[
        str | None,
        Query(description="Columns with `.asc` or `.desc`, commas between; then by the key."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS, description="Most rows to return.")] = 1_000,
    after: Annotated[
        str | None,
        Query(description="`next` of the page before: the rows behind it, of its snapshot."),
    ] = None,
    format_: Annotated[
        RowsFormat | None,
        Query(alias="format", description="The form, for a link, which sends no `Accept`."),
    ] = None,
    moving: Annotated[
        bool,
        Query(
            description="A page may be of a later snapshot than the one before: apply the changes "
            "after `Livemart-Changes-After` to the rows of all pages. Needs a model with a key.",
        ),
    ] = False,
) -> Response:
    """Rows of a served model, in the order of its key unless another is asked for.

    The pages of a walk send `next` of the one before as `after`: they have the rows of the first
    page's snapshot. When rows of yours have changed since, the answer is 410; with `moving` the
    walk goes on in the newest snapshot.
    """
    kind = choose_rows_format(request, format_)
    form = FORMS[kind]
    model, published = await find_model(request, caller, name)

    def ask(model: ServedModel) -> tuple[RowQuestion, AskedRows]:
        row_question = read_asked(request, model, select, order)
        times = (from_, to, time_column)
        return row_question, asked_rows(model, caller, row_question, key or (), *times)

    seal = part_of(request, Seal)
    cursors = RowCursors(seal, name, caller.tenants, _question_of(request))

    # The question is read before anything of the store, to refuse it, and again by each reading: a
    # snapshot may have come whose model has other columns.
    def query_of(model: ServedModel) -> PullQuery:
        row_question, asked = ask(model)
        if moving and not model.row_key:
            raise ProblemError(
                "PARAMETER_WRONG",
                "moving: this model has no key, by which changes could be applied to pages of "
                "several snapshots; leave it out",
            )
        since, behind = None, None
        if after is not None:
            since, behind = cursors.read(after, order_kinds(model, row_question.order_by))
        asked |= {"columns": row_question.columns, "behind": behind}
        return PullQuery(model, asked, limit, form.writer, cursors, since, moving)

    row_question, asked = ask(model)
    scope = "all" if caller.tenants is None else sorted(caller.tenants)
    span = (from_, to, time_column)
    equals = sorted((asked["equals"] or {}).items())
    parts = ("rows", name, form.media, scope, equals, *span, limit, after, moving)
    if is_known(request, etag := etag_of(published, *parts, row_question)):
        return answer(request, b"", etag)
    answered = await _write(request, caller, model, query_of)
    published, written = answered.published, answered.value
    note_rows(request, written.count)
    if written.is_gone:
        raise snapshot_gone()
    response = answer(request, written.body, etag_of(published, *parts, row_question), form.media)
    response.headers["Livemart-Truncated"] = "true" if written.is_truncated else "false"
    if written.next is not None:
        response.headers["Livemart-Next"] = written.next
    changes_after = EventIds(seal, name, caller.tenants).write(written.since)
    response.headers["Livemart-Changes-After"] = changes_after
    if kind is not RowsFormat.JSON:
        response.headers["Livemart-Snapshot-Id"] = str(published.snapshot_id)
        response.headers["Livemart-As-Of"] = to_text(published.as_of) or ""
        if age := age_of(published, name):
            response.headers["Livemart-Set-Aside-Since"] = str(age["set_aside_since"])
            response.headers["Livemart-Refreshed-At"] = age["refreshed_at"] or ""
        safe = "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in name)
        response.headers["Content-Disposition"] = f'attachment; filename="{safe}.{kind}"'
    return response


async def _write(
    request: Request,
    caller: Caller,
    model: ServedModel,
    query_of: Callable[[ServedModel], PullQuery],
) -> Answer[WrittenRows]:
    """Return the answer to the query of a model.

    Raises:
        ProblemError: MODEL_UNKNOWN; PARAMETER_WRONG, of the model as it is by now.
    """
    readings = part_of(request, Readings)

    def read(view: SnapshotView, most: int | None = None) -> WrittenRows | None:
        # The store may have moved on to a snapshot without this model, or with other columns.
        served = view.models().get(model.name)
        if served is None:
            raise unknown_model()
        return write_answer(view, query_of(served), most)

    written: Answer[WrittenRows | None] | None = None
    if not is_crowding(request):
        written = await readings.read_fresh(partial(read, most=SMALL))
    if written is None or written.value is None:
        # Others wait neither for the interpreter nor for a process: of these, each has one. A
        # caller who crowds the server has all of it read there.
        async with shared_turn(request, caller, "large", 1):
            written = await readings.read_aside(write_answer, query_of(model))
    if written.value is None:
        written = await readings.read_fresh(read)
    assert written.value is not None
    return Answer(written.published, written.value)


def may_read(caller: Caller, model: ServedModel) -> bool:
    """Return True if the caller may read the rows of the model that are theirs.

    A token that only sends records has no tenants: no model is there for it.
    """
    return caller.is_admin or (model.tenant_column is not None and bool(caller.tenants))


def unknown_model() -> ProblemError:
    """Return the one answer for a model that is not served, and for one that is not theirs."""
    return ProblemError("MODEL_UNKNOWN", "no model of this name exists that you may read")


def readable_model(models: Mapping[str, ServedModel], caller: Caller, name: str) -> ServedModel:
    """Return a model that the caller may read.

    Raises:
        ProblemError: MODEL_UNKNOWN.
    """
    model = models.get(name)
    if model is None or not may_read(caller, model):
        raise unknown_model()
    return model


async def find_model(request: Request, caller: Caller, name: str) -> tuple[ServedModel, Published]:
    """Return a served model that the caller may read, and the snapshot that has it.

    Raises:
        ProblemError: MODEL_UNKNOWN, NOTHING_PUBLISHED.
    """
    served = await part_of(request, Readings).models()
    return readable_model(served.value, caller, name), served.published


def _question_of(request: Request) -> str:
    """Return a text of all parameters that decide which rows there are, and their order."""
    asked = request.query_params.multi_items()
    return json_text(sorted(pair for pair in asked if pair[0] not in _OF_A_PAGE))


def read_asked(
    request: Request, model: ServedModel, select: str | None = None, order: str | None = None
) -> RowQuestion:
    """Return the question of a query to a model; each condition is under the column's name.

    Raises:
        ProblemError: PARAMETER_UNKNOWN, PARAMETER_REPEATED, PARAMETER_WRONG.
    """
    named = parameters_of(request.scope["route"])
    refuse_others(request, {**dict.fromkeys(model.kinds, True), **named})
    asked = request.query_params.multi_items()
    conditions = [(column, text) for column, text in asked if column not in named]
    return read_row_question(model, conditions, select, order)


def asked_rows(
    model: ServedModel,
    caller: Caller,
    row_question: RowQuestion,
    keys: Sequence[str],
    start: datetime | None,
    end: datetime | None,
    time_column: str | None,
) -> AskedRows:
    """Return the rows that a query asks for, those of the caller's tenants.

    Args:
        model: whose rows.
        caller: who asks.
        row_question: the conditions on columns, and the order.
        keys: the parameters `key`.
        start: the parameter `from`.
        end: the parameter `to`.
        time_column: the parameter of this name.

    Raises:
        ProblemError: PARAMETER_WRONG.
    """
    kinds = model.kinds
    allowed = list(dict.fromkeys([*model.row_key, *filter(None, [model.tenant_column])]))
    equals = {}
    for text in keys:
        # The longest name that fits: a name, too, may hold a colon.
        fitting = [name for name in allowed if text.startswith(f"{name}:")]
        if not fitting:
            offered = ", ".join(f"{name}:<value>" for name in allowed) or "nothing"
            raise ProblemError("PARAMETER_WRONG", f"key: write one of {offered}; found {text[:80]}")
        column = max(fitting, key=len)
        value = text[len(column) + 1 :]
        if column in equals:
            raise ProblemError(
                "PARAMETER_WRONG", f"key: name {column} once; found another: {text[:80]}"
            )
        try:
            equals[column] = parse_served_value(kinds[column], value)
        except ValueError as error:
            raise ProblemError("PARAMETER_WRONG", f"key: {column}: {str(error)[:120]}") from None
    column = time_column or model.time_column or ""
    if (start or end or time_column is not None) and kinds.get(column) not in _TIMES:
        times = ", ".join(name for name, kind in model.columns if kind in _TIMES) or "none"
        raise ProblemError("PARAMETER_WRONG", f"time_column: times of this model are: {times}")
    return {
        "tenants": caller.tenants,
        "equals": equals,
        "since": None if start is None else (column, _utc(start)),
        "until": None if end is None else (column, _utc(end)),
        "conditions": row_question.conditions,
        "order_by": row_question.order_by,
        "descending": row_question.descending,
    }


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ProblemError("PARAMETER_WRONG", "from, to: outside of the calendar") from None
