"""Sends an answer in the form that its caller accepts, or 304 if the caller has it already.

Used by every route that answers with a body. `Accept` decides the form, `If-None-Match` the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from livemart.serve.http.problems import ProblemError
from livemart.store.served import Published

JSON = "application/json"
CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
PARQUET = "application/vnd.apache.parquet"
EVENTS = "text/event-stream"


def choose_form(request: Request, offered: Sequence[str]) -> str:
    """Return the offered form that `Accept` likes best; of equals, the first one offered.

    Raises:
        ProblemError: FORM_NOT_OFFERED.
    """
    header = ",".join(request.headers.getlist("accept")).strip()
    if not header or header == "*/*":
        return offered[0]
    wishes = read_wishes(header)
    liked = [(_liking(form, wishes), -index, form) for index, form in enumerate(offered)]
    liking, _, form = max(liked)
    if liking <= 0:
        raise ProblemError("FORM_NOT_OFFERED", f"offered here: {', '.join(offered)}")
    return form


def etag_of(published: Published, *parts: object) -> str:
    """Return a strong tag: the snapshot, and a hash of all else that decides the bytes.

    One snapshot may be published again, with another model or with rows that were mended.
    """
    of_snapshot = (published.epoch, published.published_at.isoformat())
    return tag_of(str(published.snapshot_id), *of_snapshot, *parts)


def tag_of(name: str, *parts: object) -> str:
    """Return a strong tag that begins with a name: a hash of all that decides the bytes."""
    text = "\0".join(map(str, parts))
    digest = hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f'"{name}-{digest}"'


def is_known(request: Request, etag: str) -> bool:
    """Return True if the caller says that it has the answer of this tag."""
    header = request.headers.get("if-none-match")
    if header is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return etag in tags or "*" in tags


def answer(request: Request, body: bytes, etag: str, form: str = JSON) -> Response:
    """Return the body, or 304 if the caller has it."""
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if is_known(request, etag):
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=form)


def read_wishes(header: str) -> list[tuple[str, float]]:
    """Return the names in a header such as `Accept`, each with its weight from 0 to 1."""
    wishes = []
    for part in header.split(","):
        kind, *parameters = (piece.strip().lower() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, value = parameter.partition("=")
            if name.strip() == "q":
                try:
                    weight = min(1.0, max(0.0, float(value)))
                except ValueError:
                    weight = 0.0
        wishes.append((kind, weight))
    return wishes


def _liking(form: str, wishes: Sequence[tuple[str, float]]) -> float:
    """The most exact wish counts: `text/csv;q=0` refuses a form that `*/*` takes."""
    for pattern in (form, f"{form.partition('/')[0]}/*", "*/*"):
        weights = [weight for kind, weight in wishes if kind == pattern]
        if weights:
            return max(weights)
    return 0.0
