"""Serves pages of HTML, each of them complete and from one snapshot.

Used by browsers. Its errors are pages too, with the same status and code as the API's problems. No
page repeats the id that was asked for: an unknown restaurant and a foreign one look alike.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from anyio import from_thread
from fastapi import APIRouter, Form, Query
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from livemart.errors import PublishError
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.reasons import LetterReason
from livemart.serve.auth import callers
from livemart.serve.http.encoded_slashes import read_id
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError, problem_of
from livemart.serve.letters.letter_desk import LetterDesk, read_place, utc_moment
from livemart.serve.live.hub import Hub
from livemart.serve.live.snapshot_json import times_of
from livemart.serve.models.pull import may_read, unknown_model
from livemart.serve.owner.bodies import read_trend, read_window, restaurants_of
from livemart.serve.owner.facts import WINDOWS, first_window, has_owner_models, read_facts
from livemart.serve.owner.owner_problems import OwnerProblemError
from livemart.serve.owner.pull import known_window
from livemart.serve.page.letters_view import LETTERS_PATH, build_letters
from livemart.serve.page.models_view import ModelView, build_model, build_rows
from livemart.serve.page.text import DASH, age
from livemart.serve.page.view import build_view
from livemart.settings import Settings
from livemart.store.reader import StoreReader
from livemart.store.served import ServedModel
from livemart.store.snapshot_view import SnapshotView

_HERE = Path(__file__).parent
_FIRST_WINDOW = "24h"
_BUTTONS = (("1h", "1 h", ""), ("24h", "24 h", ""), ("168h", "168 h", "(7 days)"))
# Neither another host (`//`, `/\\`) nor a blank that a browser would drop in between.
_OWN_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
# Rows of a model on its page: the API has them all.
_MOST_SHOWN = 100
# Letters of a page; a record may be 8 KiB.
_MOST_LETTERS = 50
# A longer list is no help: an id in the address is.
_MOST_IN_PICKER = 500

_PRIVATE = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie, Accept"}
# Who has signed out, or sits down at a device after another, finds no figures on the way back; and
# at one address there are both a page and what its script reads.
_UNSTORED = {**_PRIVATE, "Cache-Control": "no-store"}

_templates = Environment(
    loader=FileSystemLoader(_HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


# Unlike the filter `urlencode`, which leaves slashes.
_templates.filters["segment"] = lambda text: quote(text, safe="")


def page_router() -> APIRouter:
    """Return the routes that answer in HTML, and what the pages are made of.

    Style, script and icon are open to all: the form to sign in needs them.
    """
    router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
    files = StaticFiles(directory=_HERE / "static")

    async def static_file(request: Request, path: str) -> Response:
        return await files.get_response(path, request.scope)

    router.add_api_route("/static/{path:path}", static_file, methods=["GET"])
    router.add_api_route("/", _first_page, methods=["GET"])
    router.add_api_route("/r/{restaurant_id}", _restaurant_page, methods=["GET"])
    router.add_api_route("/models", _models_page, methods=["GET"])
    router.add_api_route("/models/{name}", _model_page, methods=["GET"])
    router.add_api_route(LETTERS_PATH, _letters_page, methods=["GET"])
    router.add_api_route("/login", _sign_in_page, methods=["GET"])
    router.add_api_route("/login", _sign_in, methods=["POST"])
    router.add_api_route("/logout", _sign_out, methods=["POST"])
    return router


def _first_page(request: Request, restaurant: str = "", window: str | None = None) -> Response:
    """Lead to the restaurant that was picked, or else to the caller's first.

    A project without the owner's models leads to what it serves.
    """
    try:
        caller = callers.current_caller(request)
        if window is not None:
            known_window(window)
        with part_of(request, StoreReader).snapshot() as view:
            if not has_owner_models(view):
                return RedirectResponse("/models", status_code=303)
            window = window or first_window(view, caller.tenants) or _FIRST_WINDOW
            offered = [{"id": restaurant}] if restaurant else restaurants_of(view, caller.tenants)
        if not offered:
            raise OwnerProblemError("RESTAURANT_UNKNOWN", "there is no restaurant to show yet")
    except (ProblemError, PublishError) as error:
        return _problem_page(request, error)
    return RedirectResponse(_path_of(offered[0]["id"], window), status_code=303)


def _restaurant_page(request: Request, restaurant_id: str, window: str = _FIRST_WINDOW) -> Response:
    """Answer with the page, or with the two bodies that it is made of for the page's own script.

    Both bodies are read in one transaction: what the script pulls never mixes snapshots.
    """
    restaurant_id = read_id(restaurant_id)
    try:
        caller = callers.current_caller(request)
        hours = WINDOWS[known_window(window)]
        if not caller.may_see(restaurant_id):
            raise _unknown()
        hub, now = part_of(request, Hub), part_of(request, callers.Guard).now
        with part_of(request, StoreReader).snapshot() as view:
            facts = read_facts(view, (restaurant_id,)).get(restaurant_id)
            if facts is None:
                raise _unknown()
            times = times_of(now(), hub.checked(facts.published))
            state = {**read_window(view, facts, hours), **times}
            trend = read_trend(view, facts, hours)
            restaurants = restaurants_of(view, caller.tenants)
        # What its script asks for next must not be of the snapshot before.
        from_thread.run_sync(hub.note_newer, view.published)
    except (ProblemError, PublishError) as error:
        if _wants_json(request):
            raise
        return _problem_page(request, error)
    if _wants_json(request):
        return JSONResponse({"state": state, "trend": trend}, headers=_UNSTORED)
    interval = part_of(request, Settings).every
    return _unstored_page(
        "page.html",
        view=build_view(state, trend, interval=interval),
        windows=[button for button in _BUTTONS if button[0] in facts.windows],
        restaurants=_picker(restaurants),
        most_listed=_MOST_IN_PICKER,
        interval_seconds=interval.total_seconds(),
        is_local=caller.is_local,
        dash=DASH,
    )


def _models_page(request: Request) -> Response:
    try:
        caller = callers.current_caller(request)
        with part_of(request, StoreReader).snapshot() as view:
            served = sorted(view.models().values(), key=lambda model: model.name)
            readable = [model for model in served if may_read(caller, model)]
            values = _of_snapshot(request, caller, view)
            models = [_model_view(model, caller, view, values["now"]) for model in readable]
            has_figures = has_owner_models(view)
    except (ProblemError, PublishError) as error:
        return _problem_page(request, error)
    return _unstored_page(
        "models.html", models=models, has_figures=has_figures, is_admin=caller.is_admin, **values
    )


def _model_page(request: Request, name: str) -> Response:
    """Answer with a model's first rows; its script asks for the same again."""
    try:
        caller = callers.current_caller(request)
        with part_of(request, StoreReader).snapshot() as view:
            model = view.models().get(name)
            if model is None or not may_read(caller, model):
                raise unknown_model()
            values = _of_snapshot(request, caller, view)
            rows = view.rows(name, tenants=caller.tenants, limit=_MOST_SHOWN + 1)
            shown = _model_view(model, caller, view, values["now"])
    except (ProblemError, PublishError) as error:
        return _problem_page(request, error)
    return _unstored_page(
        "model.html",
        model=shown,
        rows=build_rows(model, rows[:_MOST_SHOWN]),
        is_truncated=len(rows) > _MOST_SHOWN,
        interval_seconds=part_of(request, Settings).every.total_seconds(),
        dash=DASH,
        **values,
    )


def _letters_page(
    request: Request,
    source: str = "",
    reason: str = "",
    from_: Annotated[str, Query(alias="from")] = "",
    to: str = "",
    redriven: str = "",
    after: str = "",
) -> Response:
    """Answer admins with the dead letters at this machine, in the names of `/v1/dead-letters`.

    A form sends each of its fields, empty ones as empty text.
    """
    try:
        caller = callers.require_admin(callers.current_caller(request))
        if reason and reason not in LetterReason.__members__:
            raise ProblemError("PARAMETER_WRONG", f"reason: one of {', '.join(LetterReason)}")
        choice = LetterChoice(
            source or None, reason or None, _time("from", from_), _time("to", to), bool(redriven)
        )
        place = read_place(after) if after else None
        desk = part_of(request, LetterDesk)
        desk.versions()
        page = desk.read(choice, _MOST_LETTERS, place)
    except (ProblemError, PublishError) as error:
        return _problem_page(request, error)
    asked = {"source": source, "reason": reason, "from": from_, "to": to, "redriven": redriven}
    return _unstored_page(
        "letters.html",
        view=build_letters(page, choice, part_of(request, Settings), is_first=place is None),
        asked=asked,
        path=LETTERS_PATH,
        is_local=caller.is_local,
    )


def _time(name: str, text: str) -> datetime | None:
    try:
        return utc_moment(datetime.fromisoformat(text) if text else None)
    except ValueError:
        detail = f"{name}: write a time of UTC, 2026-03-01T12:00"
        raise ProblemError("PARAMETER_WRONG", detail) from None


def _of_snapshot(request: Request, caller: callers.Caller, view: SnapshotView) -> dict[str, Any]:
    """Return what both pages of the served models say of the snapshot, and of who asks."""
    published = view.published
    now, every = part_of(request, callers.Guard).now(), part_of(request, Settings).every
    passed = now - part_of(request, Hub).checked(published)
    return {
        "snapshot_id": published.snapshot_id,
        "epoch": published.epoch,
        "published_at": published.published_at,
        "now": now,
        "age": age(passed),
        "is_stale": passed > 2 * every,
        "is_local": caller.is_local,
    }


def _model_view(
    model: ServedModel, caller: callers.Caller, view: SnapshotView, now: datetime
) -> ModelView:
    return build_model(
        model,
        # Of all tenants together: no one else's to know.
        view.row_count(model.name) if caller.is_admin else None,
        view.changed_at(model.name, caller.tenants),
        view.published.refreshed_at(model.name),
        now,
    )


def _sign_in_page(request: Request) -> Response:
    return _form(request, next="/")


def _sign_in(
    request: Request, token: Annotated[str, Form()] = "", next: Annotated[str, Form()] = "/"
) -> Response:
    target = _own_path(next)
    try:
        session = callers.sign_in(request, token)
    except ProblemError as problem:
        refusal = f"{problem.title}: {problem.detail}."
        page = _form(request, status=problem.status, refusal=refusal, next=target)
        page.headers.update(problem.headers)
        return page
    response = RedirectResponse(target, status_code=303)
    session.keep(response)
    return response


def _sign_out(request: Request) -> Response:
    response = RedirectResponse("/login", status_code=303)
    try:
        callers.sign_out(request, response)
    except ProblemError as problem:
        return _problem_page(request, problem)
    return response


def _problem_page(request: Request, error: Exception) -> Response:
    """Return a problem as a page; who is not signed in gets the form, wherever they wanted to."""
    problem = problem_of(error)
    if problem.status == 401:
        page = _form(request, status=401, next=_own_path(_target_of(request)))
    else:
        is_passing = problem.status in (429, 500, 503)
        # What the first page has to say of itself does not lead there again.
        is_first = request.url.path == "/" or problem.code == "MODEL_UNKNOWN"
        page = _page(
            "message.html",
            status=problem.status,
            title=problem.title,
            detail=f"{problem.detail[:1].upper()}{problem.detail[1:]}.",
            code=problem.code,
            href=_own_path(_target_of(request)) if is_passing else "/models" if is_first else "/",
            action=(
                "Try again" if is_passing else "Served models" if is_first else "To the first page"
            ),
        )
    page.headers.update(problem.headers)
    return page


def _form(request: Request, *, next: str, status: int = 200, refusal: str = "") -> Response:
    is_plain = callers.keeps_no_session(request)
    return _page("sign_in.html", status=status, refusal=refusal, next=next, is_plain=is_plain)


def _page(name: str, *, status: int = 200, **values: Any) -> Response:
    return HTMLResponse(
        _templates.get_template(name).render(**values),
        status_code=status,
        headers=_PRIVATE,
    )


def _unstored_page(name: str, **values: Any) -> Response:
    page = _page(name, **values)
    page.headers.update(_UNSTORED)
    return page


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _unknown() -> ProblemError:
    return OwnerProblemError("RESTAURANT_UNKNOWN", "no such restaurant, or it is not yours to see")


def _picker(restaurants: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return id and label of each restaurant; outlets of one name are told apart by their ids."""
    names = Counter(one["name"] for one in restaurants)
    return [(one["id"], _label(one, is_alone=names[one["name"]] == 1)) for one in restaurants]


def _label(restaurant: dict[str, Any], *, is_alone: bool) -> str:
    name, restaurant_id = restaurant["name"], str(restaurant["id"])
    if not name:
        return restaurant_id
    return str(name) if is_alone else f"{name} ({restaurant_id})"


def _path_of(restaurant_id: str, window: str) -> str:
    return f"/r/{quote(restaurant_id, safe='')}?window={window}"


def _target_of(request: Request) -> str:
    """Return path and query as they were sent: what is decoded could not be told apart again."""
    path = request.scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")
    return (path or "/") + (f"?{request.url.query}" if request.url.query else "")


def _own_path(target: str) -> str:
    """Return `target` if it is a path of this site, else `/`: no open redirect."""
    return target if _OWN_PATH.fullmatch(target) else "/"
