"""Writes the OpenAPI document of the application, so that generators make good clients of it.

Used by the application. The routes say the most; here are the parts that belong to all of them,
and corrections of what FastAPI writes by itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI

from livemart.serve.auth.callers import cookie_name
from livemart.serve.http.schemas import Problem
from livemart.serve.owner.schemas import StateBody

_PLACE = "#/components/schemas/"
_NEEDS_NO_CALLER = ("/healthz", "/readyz")
# A browser's session sends no records.
_TOKEN_ALONE = ("post",)


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the document: the generated one, with problems and the two ways to sign in."""
    document = FastAPI.openapi(app)
    parts = document.setdefault("components", {})
    shapes = parts.setdefault("schemas", {})
    # No route names the data of a stream's events.
    state = StateBody.model_json_schema(ref_template=f"{_PLACE}{{model}}")
    shapes |= {**state.pop("$defs"), "State": state, "Problem": Problem.model_json_schema()}
    # FastAPI's shape of a wrong parameter is never sent.
    for unused in ("HTTPValidationError", "ValidationError"):
        shapes.pop(unused, None)
    parts["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {
            "type": "apiKey",
            "in": "cookie",
            "name": cookie_name(is_secure=False),
            "description": f"`{cookie_name(is_secure=True)}` away from the server's machine.",
        },
    }
    for path, method, operation in operations_of(document):
        if path not in _NEEDS_NO_CALLER:
            ways = ["token"] if method in _TOKEN_ALONE else ["token", "session"]
            operation["security"] = [{way: []} for way in ways]
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _without_null(parameter["schema"])
    return _by_title(document)


def operations_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield path, method and description of each operation."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield path, method, operation


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter that may be left out; no query or header writes a null."""
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **choices[0]}


def _by_title(document: dict[str, Any]) -> dict[str, Any]:
    """Name each schema by its title, which may differ from the name of its class."""
    shapes = document["components"]["schemas"]
    titles = {name: shape.get("title", name) for name, shape in shapes.items()}
    document["components"]["schemas"] = {titles[name]: shape for name, shape in shapes.items()}
    text = json.dumps(document)
    for name, title in titles.items():
        text = text.replace(f'{_PLACE}{name}"', f'{_PLACE}{title}"')
    named: dict[str, Any] = json.loads(text)
    return named
