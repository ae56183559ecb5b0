"""Serves pages of HTML, each of them complete and from one snapshot.

Used by browsers. Its errors are pages too, with the same status and code as the API's problems. No
page repeats the id that was asked for: an unknown restaurant and a foreign one look alike.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from anyio import from_thread
from fastapi import APIRouter, Form, Query
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles

from livemart.epoch import parse_moment
from livemart.errors import PublishError
from livemart.intervals import is_late, late_after
from livemart.land.letters.chosen_letters import LetterChoice
from livemart.land.reasons import LetterReason
from livemart.project.declared.model_page import NO_PAGE
from livemart.serve.auth import callers
from livemart.serve.auth.callers import AdminOf, Caller, CallerOf
from livemart.serve.http.encoded_slashes import read_id
from livemart.serve.http.parts import part_of
from livemart.serve.http.problems import ProblemError, problem_of
from livemart.serve.letters.pull import LetterDesk, read_place, utc_moment
from livemart.serve.live.hub import Hub
from livemart.serve.live.run_watch import RunWatch
from livemart.serve.live.snapshot_json import times_of
from livemart.serve.models.pull import may_read, readable_model
from livemart.serve.owner.answers import PAGE_PARTS, read_restaurants
from livemart.serve.owner.bodies import restaurants_of
from livemart.serve.owner.facts import WINDOWS, first_window, has_owner_models
from livemart.serve.owner.pull import known_window, unknown_restaurant
from livemart.serve.page.console_view import CONSOLE_PATH, console_values
from livemart.serve.page.letters_view import LETTERS_PATH, build_letters
from livemart.serve.page.model_address import ModelAddress
from livemart.serve.page.model_page import build_page, read_dashboard, read_rows, visible_dashboards
from livemart.serve.page.models_view import build_about, build_model
from livemart.serve.page.run_words import failure_words, waiting_words
from livemart.serve.page.templating import STATIC, render
from livemart.serve.page.text import LocalFormat, age
from livemart.serve.page.view import build_view
from livemart.serve.shares.shares import PULLS, note_rows
from livemart.settings import Settings
from livemart.store.reader import StoreReader
from livemart.store.snapshot_view import SnapshotView

_FIRST_WINDOW = "24h"
_BUTTONS = (("1h", "1 h", ""), ("24h", "24 h", ""), ("168h", "168 h", "(7 days)"))
# Neither another host (`//`, `/\\`) nor a blank that a browser would drop in between.
_OWN_PATH = re.compile(r"/(?![/\\])[!-\[\]-~]*")
# Letters of a page; a record may be 8 KiB.
_MOST_LETTERS = 50
# A longer list is no help: an id in the address is.
_MOST_IN_PICKER = 500

# A user who has signed out, or who follows another at a device, finds no figures on the way back.
# Also, one address gives both a page and the JSON that its script reads.
_UNSTORED = {"Cache-Control": "no-store"}


class _PageRoute(APIRoute):
    """Answers a problem with a page, unless a script asked."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_in_html(request: Request) -> Response:
            try:
                return await answer(request)
            except (ProblemError, PublishError) as error:
                if _wants_json(request):
                    raise
                # It may read the store.
                return await run_in_threadpool(_problem_page, request, error)

        return answer_in_html


def page_router() -> APIRouter:
    """Return the routes of the pages, and of their styles, scripts and icon.

    Style, script and icon are open to all: the form to sign in needs them.
    """
    router = APIRouter(
        include_in_schema=False, default_response_class=HTMLResponse, route_class=_PageRoute
    )
    files = StaticFiles(directory=STATIC)

    async def static_file(request: Request, path: str) -> Response:
        return await files.get_response(path, request.scope)

    router.add_api_route("/static/{path:path}", static_file, methods=["GET"])
    for path, pull in (
        ("/", _first_page),
        ("/r/{restaurant_id}", _restaurant_page),
        ("/models", _models_page),
        ("/models/{name}", _model_page),
        ("/dashboards/{name}", _dashboard_page),
        (LETTERS_PATH, _letters_page),
        (CONSOLE_PATH, _console_page),
    ):
        router.add_api_route(path, pull, methods=["GET"], dependencies=[PULLS])
    router.add_api_route("/login", _sign_in_page, methods=["GET"])
    router.add_api_route("/login", _sign_in, methods=["POST"])
    router.add_api_route("/logout", _sign_out, methods=["POST"])
    return router


def _first_page(
    request: Request, caller: CallerOf, restaurant: str = "", window: str | None = None
) -> Response:
    """Lead to the restaurant that was picked, or else to the caller's first.

    A project without the owner's models leads to what it serves.
    """
    if window is not None:
        known_window(window)
    with _newest(request) as view:
        if not has_owner_models(view):
            return RedirectResponse("/models", status_code=303)
        window = window or first_window(view, caller.tenants) or _FIRST_WINDOW
        offered = [{"id": restaurant}] if restaurant else restaurants_of(view, caller.tenants)
    if not offered:
        raise ProblemError("RESTAURANT_UNKNOWN", "there is no restaurant to show yet")
    address = f"/r/{quote(offered[0]['id'], safe='')}?window={window}"
    return RedirectResponse(address, status_code=303)


def _restaurant_page(
    request: Request, caller: CallerOf, restaurant_id: str, window: str = _FIRST_WINDOW
) -> Response:
    """Answer with the page, or with its bodies as JSON for the page's own script.

    Both bodies are read in one transaction: a pull of the script never mixes snapshots. Beside them
    is a sentence about a run that failed, empty if none did.
    """
    restaurant_id = read_id(restaurant_id)
    hours = WINDOWS[known_window(window)]
    if not caller.may_see(restaurant_id):
        raise unknown_restaurant()
    hub, now = part_of(request, Hub), part_of(request, callers.Guard).now
    with _newest(request) as view:
        bodies = read_restaurants(view, {restaurant_id: PAGE_PARTS}).get(restaurant_id)
        if bodies is None:
            raise unknown_restaurant()
        restaurants = restaurants_of(view, caller.tenants)
    times = times_of(now(), hub.checked(view.published))
    state = {**json.loads(bodies.get("state", hours)), **times}
    trend = json.loads(bodies.get("trend", hours))
    # The next request of its script must not be answered from the snapshot before.
    from_thread.run_sync(hub.note_newer, view.published)
    failed = _failed(request, caller)
    if _wants_json(request):
        place = state["restaurant"]
        local = LocalFormat.of(place["time_zone"], place["currency_code"])
        # Browsers give some currencies other digits after the point than CLDR.
        money = {"currency": local.currency, "digits": local.digits}
        pulled = {"state": state, "trend": trend, "money": money, "failed": failed}
        return JSONResponse(pulled, headers=_UNSTORED)
    interval = part_of(request, Settings).every
    return _page(
        "page.html",
        state=state,
        failed=failed,
        view=build_view(state, trend, interval=interval),
        step_minutes=trend["step_minutes"],
        windows=[button for button in _BUTTONS if button[0] in bodies.facts.windows],
        restaurants=_picker(restaurants),
        most_listed=_MOST_IN_PICKER,
        interval_seconds=interval.total_seconds(),
        late_after_seconds=late_after(interval).total_seconds(),
        is_local=caller.is_local,
    )


def _models_page(request: Request, caller: CallerOf) -> Response:
    with _newest(request) as view:
        served = sorted(view.models().values(), key=lambda model: model.name)
        values = _of_snapshot(request, caller, view)
        models = [
            build_model(view, model, caller, values["now"])
            for model in served
            if may_read(caller, model)
        ]
        pages = view.pages().models
        titles = {it.name: pages.get(it.name, NO_PAGE).title for it in served}
        dashboards = visible_dashboards(view, caller)
        has_figures = has_owner_models(view)
    return _page(
        "models.html",
        models=models,
        titles=titles,
        dashboards=dashboards,
        has_figures=has_figures,
        **values,
    )


def _model_page(request: Request, caller: CallerOf, name: str) -> Response:
    """Answer with a model's rows and chart; its script asks for the same again."""
    with _newest(request) as view:
        model = readable_model(view.models(), caller, name)
        page, unknown = view.pages().models.get(name, NO_PAGE).fitted(model.kinds)
        address = ModelAddress.of(model, request.query_params.multi_items(), page)
        if (filtered := address.filtered()) is not None:
            return RedirectResponse(filtered, status_code=303, headers=_UNSTORED)
        values = _of_snapshot(request, caller, view)
        shown, chart = read_rows(request, caller, view, address)
        model_view = build_model(view, model, caller, values["now"])
        about = build_about(model, view.description(name), caller)
    return _page(
        "model.html",
        model=model_view,
        chart=chart,
        here=address.here,
        unknown=unknown if caller.is_admin else (),
        interval_seconds=part_of(request, Settings).every.total_seconds(),
        **build_page(address, shown, model_view, about),
        **values,
    )


def _dashboard_page(request: Request, caller: CallerOf, name: str) -> Response:
    """Answer with the models of a dashboard; its script asks for the same again."""
    with _newest(request) as view:
        values = _of_snapshot(request, caller, view)
        board = read_dashboard(request, view, caller, name, values["now"])
    return _page(
        "dashboard.html",
        board=board,
        here=_target_of(request),
        interval_seconds=part_of(request, Settings).every.total_seconds(),
        **values,
    )


def _letters_page(
    request: Request,
    caller: AdminOf,
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
    if reason and reason not in LetterReason.__members__:
        raise ProblemError("PARAMETER_WRONG", f"reason: one of {', '.join(LetterReason)}")
    choice = LetterChoice(
        source or None, reason or None, _time("from", from_), _time("to", to), bool(redriven)
    )
    place = read_place(after) if after else None
    desk = part_of(request, LetterDesk)
    desk.versions()
    page = desk.read(choice, _MOST_LETTERS, place)
    note_rows(request, len(page.letters))
    return _page(
        "letters.html",
        asked={"source": source, "reason": reason, "from": from_, "to": to, "redriven": redriven},
        path=LETTERS_PATH,
        is_local=caller.is_local,
        **build_letters(page, choice, part_of(request, Settings), is_first=place is None),
    )


def _console_page(request: Request, caller: AdminOf, node: str = "") -> Response:
    """Answer admins with how the project runs, from the warehouse at this machine."""
    now = part_of(request, callers.Guard).now()
    return _page(
        "console.html",
        here=_target_of(request),
        is_local=caller.is_local,
        **console_values(request, now, node or None),
    )


def _newest(request: Request) -> AbstractContextManager[SnapshotView]:
    """Open the newest snapshot; while the store is known to be away, no thread waits for it."""
    if (away := part_of(request, Hub).away) is not None:
        raise away
    return part_of(request, StoreReader).snapshot()


def _time(name: str, text: str) -> datetime | None:
    try:
        return utc_moment(parse_moment(text)) if text else None
    except ValueError:
        detail = f"{name}: write a time of UTC, 2026-03-01T12:00"
        raise ProblemError("PARAMETER_WRONG", detail) from None


def _of_snapshot(request: Request, caller: Caller, view: SnapshotView) -> dict[str, Any]:
    """Return the snapshot and the caller, as both pages of the served models show them."""
    now, every = part_of(request, callers.Guard).now(), part_of(request, Settings).every
    passed = part_of(request, Hub).age(view.published, now)
    return {
        "published": view.published,
        "now": now,
        "age": age(passed),
        "failed": _failed(request, caller),
        "is_stale": is_late(passed, every),
        "is_local": caller.is_local,
        "is_admin": caller.is_admin,
    }


def _failed(request: Request, caller: Caller) -> str:
    """Return a page's sentence about a run that failed; '' if none did."""
    run, now = part_of(request, RunWatch).newest(), part_of(request, callers.Guard).now()
    return failure_words(run, now, is_admin=caller.is_admin)


def _sign_in_page(request: Request) -> Response:
    return _form(request, "/")


def _sign_in(
    request: Request,
    token: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",
    everywhere: Annotated[bool, Form()] = False,
) -> Response:
    target = _own_path(next)
    try:
        session = callers.sign_in(request, token, ends_others=everywhere)
    except ProblemError as problem:
        refusal = f"{problem.title}: {problem.detail}."
        return _form(request, target, problem, refusal=refusal)
    response = RedirectResponse(target, status_code=303)
    session.keep(response)
    return response


def _sign_out(request: Request) -> Response:
    response = RedirectResponse("/login", status_code=303)
    callers.sign_out(request, response)
    return response


def _problem_page(request: Request, error: Exception) -> Response:
    """Return a problem as a page; who is not signed in gets the form, wherever they wanted to."""
    problem = problem_of(error)
    target = _own_path(_target_of(request))
    if problem.status == 401:
        return _form(request, target, problem)
    if problem.status in (429, 500, 503):
        href, action = target, "Try again"
    elif problem.status in (400, 410, 422) and (path := _model_path(request)) is not None:
        href, action = path, "All rows"
    elif request.url.path == "/" or problem.code in ("MODEL_UNKNOWN", "DASHBOARD_UNKNOWN"):
        # A problem of the first page does not lead there again.
        href, action = "/models", "Served models"
    else:
        href, action = "/", "To the first page"
    detail = f"{problem.detail[:1].upper()}{problem.detail[1:]}."
    if is_waiting := problem.code == "NOTHING_PUBLISHED":
        runs, now = part_of(request, RunWatch), part_of(request, callers.Guard).now()
        detail = waiting_words(runs.newest(), now, serves_nothing=runs.serves_nothing())
    return _page(
        "message.html",
        status=problem.status,
        headers=problem.headers,
        title=problem.title,
        detail=detail,
        is_waiting=is_waiting,
        code=problem.code,
        href=href,
        action=action,
    )


def _model_path(request: Request) -> str | None:
    """Return the path of a model's page without its query; None for another page."""
    path = _own_path(_target_of(request).partition("?")[0])
    return path if path.startswith("/models/") else None


def _form(
    request: Request, target: str, problem: ProblemError | None = None, *, refusal: str = ""
) -> Response:
    """Return the form to sign in, which leads to `target`."""
    return _page(
        "sign_in.html",
        status=problem.status if problem else 200,
        headers=problem.headers if problem else None,
        refusal=refusal,
        next=target,
        is_plain=callers.keeps_no_session(request),
    )


def _page(
    name: str, *, status: int = 200, headers: Mapping[str, str] | None = _UNSTORED, **values: Any
) -> Response:
    return HTMLResponse(render(name, **values), status, headers)


def _wants_json(request: Request) -> bool:
    accepted = request.headers.get("accept", "")
    return "application/json" in accepted and "text/html" not in accepted


def _picker(restaurants: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return id and label of each restaurant; outlets of one name are labelled with their ids."""
    names = Counter(one["name"] for one in restaurants)

    def label(name: str | None, restaurant_id: str) -> str:
        if not name:
            return restaurant_id
        return name if names[name] == 1 else f"{name} ({restaurant_id})"

    return [(one["id"], label(one["name"], one["id"])) for one in restaurants]


def _target_of(request: Request) -> str:
    """Return path and query as they were sent: decoded ones could not be encoded back."""
    path = request.scope.get("raw_path", b"").partition(b"?")[0].decode("latin-1")
    return (path or "/") + (f"?{request.url.query}" if request.url.query else "")


def _own_path(target: str) -> str:
    """Return `target` if it is a path of this site, else `/`: no open redirect."""
    return target if _OWN_PATH.fullmatch(target) else "/"
