"""Describes how each model can be refreshed: strategy, keys, margins, reasons with a suggestion.

Used by the command `plan`. A reason names the line of the model, or view, that it comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from functools import partial
from typing import Any

from livemart.errors import first_names
from livemart.intervals import format_interval
from livemart.plan.places import ReasonPlace, reason_place
from livemart.plan.plan import Plan
from livemart.plan.project_plans import views_of
from livemart.plan.reasons import WRITTEN_BY_DBT, Reason
from livemart.plan.stored_queries import StoredQuery
from livemart.plan.strategies.signed import Append
from livemart.project.graph import Model, Project, names_apart, short_name
from livemart.project.questions import Question
from livemart.project.session_spec import SessionSpec

_QUESTIONS = {
    "rows": "{}",
    "schema": "the columns of {}",
    "columns": "the columns of {}",
    "relation": "whether {} exists",
}
# A macro may ask with a page of SQL.
_SHOWN_SIGNS = 200
# A key without a test has all columns of a row.
_SHOWN_KEYS = 10
# A refresh has no strategy for them.
_OF_DBT_ALONE = ("seed", "snapshot")
_NOTHING: Mapping[str, Sequence[str]] = {"defined_by": (), "only_in_a_build": ()}


def describe_plans(
    project: Project,
    plans: Mapping[str, Plan],
    stored: Mapping[str, StoredQuery],
    selected: frozenset[str] | None = None,
) -> dict[str, Any]:
    """Return `{"session": {...}, "models": [...]}`, models in dependency order.

    Seeds and dbt snapshots are left out. A session has `defined_by` (settings and statements that
    hold wherever SQL is run) and `only_in_a_build` (the work of other hooks, and of a
    materialization of the project's own). A model `asks` the
    questions that dbt asked the warehouse to compile it. It `lacks` those of them, and of the views
    in it, that are about a missing table: with the table the SQL may be another one. `stamps` are
    the columns that say which run wrote a row. `refused` has the reason of each strategy that the
    SQL does not allow, in the order in which they are tried. `stages` have relation, strategy and
    keys of the parts of the model that have a table, each before those that read it.

    Args:
        plans: by unique id.
        stored: the queries of `plans` that have a table, by unique id.
        selected: unique ids to list; all if None.
    """
    return {
        "session": _session(project.session, (*project.acting_hooks, *_of_dbt_alone(project))),
        "models": [
            _describe(project, project.models[unique_id], plan)
            | {
                "stages": [
                    _stage(stored[stage])
                    for stage in (stored[unique_id].stages if unique_id in stored else ())
                ]
            }
            for unique_id, plan in plans.items()
            if project.models[unique_id].materialized not in (*_OF_DBT_ALONE, "ephemeral")
            and (selected is None or unique_id in selected)
        ],
    }


def _cut(text: str) -> str:
    """Return the beginning of a statement; the report itself keeps all of it."""
    return text if len(text) <= _SHOWN_SIGNS else f"{text[:_SHOWN_SIGNS]} ..."


def render_plans(report: Mapping[str, Any]) -> str:
    """Return the report as lines for a terminal."""
    models: Sequence[Mapping[str, Any]] = report["models"]
    if not models:
        return "no models to plan: seeds, dbt snapshots and ephemeral models have no strategy"
    names = names_apart(model["unique_id"] for model in models)
    width = max(map(len, names.values()))
    common: Mapping[str, Sequence[str]] = report["session"]
    lines = list(_session_lines(common, _NOTHING))
    for model in models:
        name = names[model["unique_id"]]
        line = f"{name:<{width}}  {model['strategy']:<6}"
        details = []
        if model["keys"]:
            details.append(_keys(model["keys"]))
        if model["time"]:
            details.append(f"time {model['time']['column']}")
            reaches = [
                f"{model['time'][side]} {side} a change"
                for side in ("before", "after")
                if model["time"][side] != "0s"
            ]
            details += [f"reaches {' and '.join(reaches)}"] if reaches else []
        if model["windows"]:
            details.append(f"windows against the clock over {', '.join(model['windows'])}")
        lines.append(f"{line}  {', '.join(details)}".rstrip())
        for stage in model["stages"]:
            keys = f", {_keys(stage['keys'])}" if stage["keys"] else ""
            lines.append(
                f"{'':<{width}}  reads its stage {stage['relation']}: {stage['strategy']}{keys}"
            )
        for reason in model["reasons"]:
            lines += [f"{'':<{width}}  {line}" for line in reason_lines(reason)]
        for strategy, reason in model["refused"].items():
            # Without a frame no reader expects totals to be carried on.
            if reason not in model["reasons"] and (strategy != "running" or model["time"]):
                advice = f"; {reason['suggestion']}" if reason["suggestion"] else ""
                lines.append(f"{'':<{width}}  not {strategy}: {reason['message']}{advice}")
        lines += [f"{'':<{width}}  {line}" for line in _session_lines(model["session"], common)]
        if model["stamps"]:
            stamps = ", ".join(model["stamps"])
            lines.append(f"{'':<{width}}  stamped by the run that writes a row: {stamps}")
        lines += [f"{'':<{width}}  asks the warehouse: {_cut(text)}" for text in model["asks"]]
        if model["lacks"]:
            lines.append(
                f"{'':<{width}}  planned without tables that do not exist yet: "
                f"{'; '.join(model['lacks'])}"
            )
            lines.append(
                f"{'':<{width}}    next: `plan` again after the first snapshot: the SQL, strategy "
                "and reasons may be others"
            )
    return "\n".join(lines)


def _keys(keys: Sequence[str]) -> str:
    """Return the columns of a key; the report itself keeps all of them."""
    return f"keys ({first_names(keys, _SHOWN_KEYS)})"


def reason_lines(reason: Mapping[str, Any]) -> Iterator[str]:
    """Yield a reason of a model as lines: code, place and message, and the next step below."""
    yield f"{reason['code']}: {reason['place']}: {reason['message']}"
    if reason["suggestion"]:
        yield f"  next: {reason['suggestion']}"


def full_models(report: Mapping[str, Any]) -> list[str]:
    """Return the names of models that fall back to full, see `names_apart`.

    One whose author asked for it does not, nor does one that dbt makes.
    """
    names = names_apart(map(id_in_report, report["models"]))
    return [
        names[id_in_report(model)]
        for model in report["models"]
        if model["strategy"] == "full"
        and model["policy"] != "full"
        and not any(reason["code"] in WRITTEN_BY_DBT for reason in model["reasons"])
    ]


def id_in_report(model: Mapping[str, Any]) -> str:
    """Return the unique id of a model of a report; its name in a report that has no ids."""
    return str(model.get("unique_id", model["name"]))


def _describe(project: Project, model: Model, plan: Plan) -> dict[str, Any]:
    region = None if isinstance(plan.strategy, Append) else plan.region
    time = None
    if region is not None and region.time is not None:
        time = {
            "column": region.time,
            # A change at t touches [t - region.after, t + region.before].
            "before": _interval(region.after),
            "after": _interval(region.before),
        }
    place = partial(reason_place, project, model, views_of(project, model.session))
    return {
        "name": short_name(model.unique_id),
        "unique_id": model.unique_id,
        "strategy": plan.strategy.name,
        "policy": model.policy,
        "keys": list(plan.unique_key or (region.keys if region else ())),
        "region_keys": list(region.keys) if region else [],
        "time": time,
        "windows": sorted({piece.column for piece in plan.slices}),
        "file": model.file,
        "session": _session(model.session, (*_own_materialization(model), *model.acting_hooks)),
        "stamps": sorted(plan.stamps),
        "asks": list(map(_question_text, project.questions.get(model.unique_id, ()))),
        "lacks": list(
            dict.fromkeys(
                _question_text(question)
                for part in project.parts(model.unique_id)
                for question in project.questions.get(part, ())
                if question.is_lacking
            )
        ),
        "reasons": [_described(reason, place) for reason in plan.reasons],
        "refused": {key: _described(reason, place) for key, reason in plan.refused.items()},
    }


def _described(
    reason: Reason, place_of_line: Callable[[int | None], ReasonPlace]
) -> dict[str, Any]:
    """Return a reason with the line in its own file."""
    place = place_of_line(reason.line)
    return asdict(reason) | {"line": place.line, "place": str(place)}


def _stage(query: StoredQuery) -> dict[str, Any]:
    region = query.plan.region
    keys = query.plan.unique_key or (region.keys if region else ())
    return {
        "relation": query.relation,
        "strategy": query.plan.strategy.name,
        "keys": list(keys),
    }


def _question_text(question: Question) -> str:
    return _QUESTIONS[question.kind].format(" ".join(question.about.split()))


def _own_materialization(model: Model) -> Iterator[str]:
    """Yield the work of a materialization that is none of dbt's, unless a refresh runs it."""
    if model.is_custom and not model.is_stored:
        yield f"its materialization {model.config.get('materialized', '')}".strip()


def _of_dbt_alone(project: Project) -> Iterator[str]:
    """Yield the actions of hooks of nodes that are not listed."""
    for model in project.models.values():
        if model.materialized in _OF_DBT_ALONE:
            yield from (f"{model.file}: {hook}" for hook in model.acting_hooks)


def _session(session: SessionSpec, acting: Sequence[str]) -> dict[str, list[str]]:
    settings = [f"{name} = {value}" for name, value in session.settings]
    return {"defined_by": [*settings, *session.statements], "only_in_a_build": list(acting)}


def _session_lines(
    session: Mapping[str, Sequence[str]], common: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    """Yield the definitions of a session beside `common`, and the actions of its hooks."""
    for statement in session["defined_by"]:
        if statement not in common["defined_by"]:
            yield f"session: {' '.join(statement.split())}"
    for statement in session["only_in_a_build"]:
        yield f"only in a build: {' '.join(statement.split())}"


def _interval(micros: int) -> str:
    return format_interval(timedelta(microseconds=micros))
