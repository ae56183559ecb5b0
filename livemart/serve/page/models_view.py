"""Builds the texts of the pages of served models: rows, columns, tests, key, age, filters.

Used by the page of any project; it knows no model by name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from livemart.serve.auth.callers import Caller
from livemart.serve.models.row_questions import RowQuestion
from livemart.serve.page.charts import is_number
from livemart.serve.page.model_address import OPERATORS, ModelAddress, Pair
from livemart.serve.page.number_formats import PLAIN_NUMBERS, NumberFormats
from livemart.serve.page.text import DASH, age, count
from livemart.store.served import DescribedTest, ModelDescription, ServedModel
from livemart.store.snapshot_view import SnapshotView
from livemart.store.value_forms import json_value

_LONGEST_CELL = 160
_OUTCOMES = {"pass": "passed", "warn": "warned", "fail": "failed", "error": "has an error"}


def build_model(
    view: SnapshotView, model: ServedModel, caller: Caller, now: datetime
) -> dict[str, Any]:
    """Return a model as its pages show it to a caller at `now`, the wall clock, UTC.

    `row_count` is a dash for who may not know; `aside` says so if its rows are those of an earlier
    snapshot, else it is empty.
    """
    aside = ""
    if (set_aside := view.published.refreshed_at(model.name)) is not None:
        since, refreshed_at = set_aside
        rows = "never filled" if refreshed_at is None else f"rows of {age(now - refreshed_at)}"
        aside = f"set aside since snapshot {since}, {rows}"
    changed_at = view.changed_at(model.name, caller.tenants)
    return {
        "name": model.name,
        # Counts the rows of all tenants: only an admin may see it.
        "row_count": count(view.row_count(model.name) if caller.is_admin else None),
        "key": model.row_key,
        "changed": DASH if changed_at is None else age(now - changed_at),
        "aside": aside,
    }


def build_rows(
    model: ServedModel,
    rows: Sequence[Mapping[str, Any]],
    formats: NumberFormats = PLAIN_NUMBERS,
) -> list[list[str]]:
    """Return the cells of rows as text; a dash for NULL.

    Numbers with a format have that; all else is as the API writes it. Long cells are cut: the API
    has them whole.
    """
    return [
        [
            formats.write(name, row[name], formats.code_of(row))
            if name in formats.forms and is_number(kind)
            else _cell(row[name], kind)
            for name, kind in model.columns
        ]
        for row in rows
    ]


def _cell(value: Any, kind: str) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"{count(len(value))} bytes"
    plain = json_value(value, kind)
    if plain is None:
        return DASH
    text = plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    return text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}\N{HORIZONTAL ELLIPSIS}"


def build_about(
    model: ServedModel, description: ModelDescription | None, caller: Caller
) -> dict[str, Any]:
    """Return a model in the words of its project, as far as a caller may know them.

    Tests are of the rows of all tenants, and SQL names other models: both are for admins.
    `is_missing`: the store does not know them. `model_tests`: those of no single column.
    """
    described = description or ModelDescription()
    by_lower = {name.lower(): text for name, text in described.columns.items()}
    names = {name.lower(): name for name in model.kinds}
    tests: dict[str, list[dict[str, str]]] = {}
    of_model: list[dict[str, str]] = []
    for test in described.tests if caller.is_admin else ():
        column = names.get((test.column or "").strip("`").lower())
        (of_model if column is None else tests.setdefault(column, [])).append(_test(test))
    return {
        "paragraphs": [part.strip() for part in described.text.split("\n\n") if part.strip()],
        "columns": {it: by_lower[it.lower()] for it in model.kinds if by_lower.get(it.lower())},
        "tests": tests,
        "model_tests": of_model,
        "sql": described.sql if caller.is_admin else "",
        "compiled_sql": described.compiled_sql if caller.is_admin else "",
        "is_missing": description is None,
    }


def _test(test: DescribedTest) -> dict[str, str]:
    outcome = test.outcome or ""
    name = test.name if test.kind is None or test.column is None else test.kind
    words = _OUTCOMES.get(outcome, outcome or "not run yet")
    return {"name": name, "outcome": outcome, "words": words}


def build_heads(address: ModelAddress, question: RowQuestion) -> list[dict[str, str]]:
    """Return the heads of the columns that are shown; `sort_href` is empty if one has no order.

    `look`: of its values: `number`, `text` or `plain`, which is never broken.
    """
    heads = []
    for name, kind in question.columns_of(address.model):
        sorting, href = ("none", "") if kind == "json" else address.sorted_by(name)
        look = "text" if kind in ("string", "json", "binary") else "plain"
        look = "number" if is_number(kind) else look
        heads.append(
            {"name": name, "kind": kind, "look": look, "sorting": sorting, "sort_href": href}
        )
    return heads


def build_columns(
    address: ModelAddress, question: RowQuestion, about: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return all columns of a model, shown or not.

    `toggle_href` shows or hides one, and is empty for the last one shown.
    """
    model, shown = address.model, question.columns
    views = []
    for name, kind in model.columns:
        others = [other for other in shown if other != name]
        toggled = others if name in shown else [it for it in model.kinds if it in (*shown, name)]
        views.append(
            {
                "name": name,
                "kind": kind,
                "text": about["columns"].get(name, ""),
                "is_key": name in model.row_key,
                "is_shown": name in shown,
                "toggle_href": address.showing(toggled) if toggled else "",
                "tests": about["tests"].get(name, ()),
            }
        )
    return views


def build_conditions(address: ModelAddress) -> list[tuple[str, str]]:
    """Return the conditions of the rows in words, each with the address without it."""
    of_keys = [("key", text) for text in address.all("key")]
    of_time = [(name, text) for name in ("from", "to") for text in address.all(name)]
    pairs: list[Pair] = [*of_keys, *of_time, *address.conditions]
    return [(_condition_words(pair), address.without(pair)) for pair in pairs]


def _condition_words(pair: Pair) -> str:
    name, text = pair
    if name == "key":
        column, _, value = text.partition(":")
        return f"{column} = {value}"
    operator, _, value = text.partition(".")
    if text in OPERATORS:
        return f"{name} {OPERATORS[text]}"
    return f"{name} {OPERATORS[operator]} {value}" if operator in OPERATORS else f"{name} {text}"


def extent_words(
    model: Mapping[str, Any], shown: int, address: ModelAddress, *, has_more: bool
) -> str:
    """Return how many rows are shown, of how many, and in which order."""
    key = ", ".join(model["key"])
    repeats = f"One row per {key}." if key else "No key: equal rows are counted."
    if not shown:
        is_asked = bool(address.conditions or address.first("after") or address.first("key"))
        rows = "No row is like this." if is_asked else "No rows."
        return f"{repeats} {rows}"
    word = "row" if shown == 1 else "rows"
    if address.first("after") is not None:
        rows = f"{count(shown)} {word} behind those of the page before"
    elif has_more:
        rows = f"The first {count(shown)} {word}" if shown > 1 else "The first row"
        if model["row_count"] != DASH and not build_conditions(address):
            rows += f" of {model['row_count']}"
    else:
        rows = f"{count(shown)} {word}"
    chosen = "your choice" if address.first("order") else "the project"
    in_order = f", in the order of {chosen if address.order else 'the key'}"
    is_ordered = has_more and (key or address.order)
    return f"{repeats} {rows}{in_order if is_ordered else ''}."
