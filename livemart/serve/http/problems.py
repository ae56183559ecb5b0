"""Answers with a problem: every answer that is not a success has one shape (RFC 9457).

Used by every route and by the envelope round them. A problem says what the caller may know; the
words of an exception stay in the log.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from livemart.errors import PublishError
from livemart.serve.http.encoded_slashes import shown_path
from livemart.serve.http.parts import part_of
from livemart.serve.http.rare_log import RareLog
from livemart.settings import Settings
from livemart.state.project_graph import SERVES_NOTHING

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5

# By code: status and title. The title names the kind of problem and never changes with the request.
PROBLEMS: Mapping[str, tuple[int, str]] = {
    "TOKEN_MISSING": (401, "A token is needed"),
    "TOKEN_REFUSED": (401, "This token is not valid"),
    "HOST_REFUSED": (403, "Only this machine may ask"),
    "ORIGIN_REFUSED": (403, "The form was sent from elsewhere"),
    "NOT_FOUND": (404, "Nothing here"),
    "MODEL_UNKNOWN": (404, "Unknown model"),
    "DASHBOARD_UNKNOWN": (404, "Unknown dashboard"),
    "RESTAURANT_UNKNOWN": (404, "Unknown restaurant"),
    "WINDOW_UNKNOWN": (422, "Unknown window"),
    "LETTERS_MISSING": (404, "No dead letters are kept here"),
    "METHOD_REFUSED": (405, "This method is not offered here"),
    "FORM_NOT_OFFERED": (406, "No form that was asked for is offered"),
    "REQUEST_TIMEOUT": (408, "The request did not come in time"),
    "SNAPSHOT_GONE": (410, "The snapshot of the pages before is gone"),
    "REQUEST_TOO_LARGE": (413, "The request is too large"),
    "REQUEST_REFUSED": (400, "The request cannot be read"),
    "POSITION_REFUSED": (400, "This position was not given for this query"),
    "PARAMETER_UNKNOWN": (400, "Unknown parameter"),
    "PARAMETER_REPEATED": (400, "A parameter came several times"),
    "PARAMETER_WRONG": (422, "A parameter is wrong"),
    "MODEL_TOO_LARGE": (422, "The model is too large to be sent whole"),
    "TOO_MANY_ATTEMPTS": (429, "Too many wrong tokens"),
    "TOO_MANY_AT_ONCE": (429, "Too many requests at once"),
    "TOO_MANY_ROWS": (429, "Too many rows in a minute"),
    "TOO_MANY_CONNECTIONS": (503, "Too many connections are open"),
    "TOO_MANY_STREAMS": (503, "Too many streams are open"),
    "NOTHING_PUBLISHED": (503, "Nothing is published yet"),
    "STORE_UNREACHABLE": (503, "The serving store does not answer"),
    "STORE_STALE": (503, "The newest snapshot is old"),
    "READER_ENDED": (503, "The process that read the answer ended"),
    "SERVER_ENDING": (503, "The server is ending"),
    "SERVER_FAILED": (500, "The server failed"),
    "INGEST_REFUSED": (403, "This token may not send these records"),
    "INGEST_SOURCE_UNKNOWN": (404, "No records are taken for this source"),
    "INGEST_FORM_REFUSED": (415, "Records are not taken in this form"),
    "INGEST_RECORDS_REFUSED": (422, "A record cannot land"),
    "INGEST_KEY_REUSED": (422, "This key was used for other records"),
    "INGEST_BUSY": (429, "More records wait than can be held"),
    "INGEST_FAILED": (503, "Records cannot be stored"),
}


class ProblemError(Exception):
    """A request that is answered with a problem.

    Args:
        code: stable name of the problem, with a section in `docs/errors.md`.
        detail: what was found, for the caller's eyes; never says whether a foreign thing exists.
        headers: sent along, beside those that belong to the status.
    """

    def __init__(self, code: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.status, self.title = PROBLEMS[code]
        # Further members of the body, beside those that every problem has.
        self.members: Mapping[str, Any] = {}
        self.headers = dict(headers or {})
        if self.status == 401:
            attribute = ', error="invalid_token"' if code == "TOKEN_REFUSED" else ""
            self.headers.setdefault("WWW-Authenticate", f'Bearer realm="livemart"{attribute}')
        if self.status in (429, 503):
            self.headers.setdefault("Retry-After", str(RETRY_AFTER_S))

    def body(self, request: Request) -> dict[str, Any]:
        """Return the problem as JSON values; `type` begins with the setting `error_base_url`."""
        return self._body(part_of(request, Settings).error_base_url, shown_path(request.url.path))

    def response(self, request: Request) -> Response:
        """Return the answer to `request`."""
        return Response(
            json.dumps(self.body(request), ensure_ascii=True),
            self.status,
            {"Cache-Control": "no-store", **self.headers},
            MEDIA_TYPE,
        )

    def message(self, error_base_url: str, path: str) -> bytes:
        """Return a whole answer, after which the connection ends: for who sent no whole request.

        Args:
            error_base_url: what `type` begins with.
            path: what was asked for; empty if that is not known.
        """
        body = json.dumps(self._body(error_base_url, path)).encode()
        headers = {
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "Cache-Control": "no-store",
            **self.headers,
            "Connection": "close",
        }
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + body

    def _body(self, error_base_url: str, path: str) -> dict[str, Any]:
        return {
            "type": f"{error_base_url}{self.code}",
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            "instance": path,
            **self.members,
        }


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that an exception is reported as; its own words stay in the log."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, PublishError):
        if error.code == "STORE_EMPTY":
            return ProblemError("NOTHING_PUBLISHED", "the first snapshot is not published yet")
        return ProblemError("STORE_UNREACHABLE", "the serving store does not answer; try again")
    if isinstance(error, RequestValidationError):
        return _wrong_parameter(error)
    if isinstance(error, HTTPException):
        return _of_status(error)
    return ProblemError("SERVER_FAILED", "the reason is in the log of the server")


def install_problems(
    app: FastAPI,
    held_snapshot: Callable[[], Mapping[str, Any]] = dict,
    serves_nothing: Callable[[], bool] = bool,
) -> None:
    """Answer every expected exception of `app` with a problem; `Envelope` has the others.

    Args:
        app: the server's.
        held_snapshot: members that a problem of a store that is away has besides.
        serves_nothing: returns True if the project has no model to serve.
    """

    log = RareLog()

    async def answer(request: Request, error: Exception) -> Response:
        problem = problem_of(error)
        if problem.code == "STORE_UNREACHABLE":
            problem.members = held_snapshot()
        if problem.code == "NOTHING_PUBLISHED" and await run_in_threadpool(serves_nothing):
            problem = ProblemError(problem.code, SERVES_NOTHING)
        # The hub tells when the store goes away, and nothing being published yet is no fault.
        if problem.status == 500:
            log.tell(
                "request_failed",
                problem.code,
                path=shown_path(request.url.path),
                code=problem.code,
                error=str(error),
            )
        return problem.response(request)

    for kind in (ProblemError, PublishError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def _of_status(error: HTTPException) -> ProblemError:
    match error.status_code:
        case 400 if isinstance(error.__cause__, ProblemError):
            # FastAPI has its own error for whatever ends the reading of a body.
            return error.__cause__
        case 404:
            return ProblemError("NOT_FOUND", "no such path; /openapi.json lists all")
        case 405:
            detail = "the header Allow names the methods of this path"
            allowed = (error.headers or {}).get("Allow", "").split(",")
            methods = {method.strip() for method in allowed}
            # HEAD is offered wherever GET is, and no route knows of it.
            offered = methods | {"HEAD"} if "GET" in methods else methods
            headers = {"Allow": ", ".join(sorted(offered))}
            return ProblemError("METHOD_REFUSED", detail, headers=headers)
        case status if status < 500:
            return ProblemError("REQUEST_REFUSED", HTTPStatus(status).phrase.lower())
    return ProblemError("SERVER_FAILED", "the reason is in the log of the server")


def _wrong_parameter(error: RequestValidationError) -> ProblemError:
    first = error.errors()[0]
    name = str(first["loc"][-1])
    value = first.get("input")
    reason = str(first["msg"])
    reason = reason[:1].lower() + reason[1:]
    # The value that was sent may be long; it is only ever text in JSON.
    excerpt = "" if value is None or isinstance(value, dict) else f"; found {str(value)[:80]}"
    return ProblemError("PARAMETER_WRONG", f"{name}: {reason}{excerpt}")
