"""Stores the project's description of each served model: texts, tests with their outcome, SQL.

Used by publication, which writes it with the rows, and by the page of a model. It is a separate
table with its own version: a store that was filled before has none, and stays readable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.store.column_types import Json, PlainText, write_json
from livemart.store.connections import optional_content
from livemart.store.served import DescribedTest, ModelDescription

_VERSION = 1
_DESCRIPTIONS = sa.Table(
    "livemart_descriptions",
    sa.MetaData(),
    sa.Column("model", PlainText, primary_key=True),
    sa.Column("digest", PlainText, nullable=False),
    sa.Column("content", Json, nullable=False),
)


def write_descriptions(
    connection: Connection, descriptions: Mapping[str, ModelDescription]
) -> None:
    """Replace the descriptions of all models by these, in the transaction under way.

    Only those that differ are written: most snapshots change none.
    """
    _DESCRIPTIONS.create(connection, checkfirst=True)
    query = sa.select(_DESCRIPTIONS.c.model, _DESCRIPTIONS.c.digest)
    digests = {row.model: row.digest for row in connection.execute(query)}
    rows = {name: _row(name, description) for name, description in descriptions.items()}
    changed = [row for name, row in rows.items() if digests.get(name) != row["digest"]]
    replaced = [*(digests.keys() - rows.keys()), *(row["model"] for row in changed)]
    for name in replaced:
        connection.execute(sa.delete(_DESCRIPTIONS).where(_DESCRIPTIONS.c.model == name))
    if changed:
        connection.execute(sa.insert(_DESCRIPTIONS), changed)


def read_description(connection: Connection, model: str) -> ModelDescription | None:
    """Return the description of a model; None if the store has none that this program reads."""
    query = sa.select(_DESCRIPTIONS.c.content).where(_DESCRIPTIONS.c.model == model)
    content = optional_content(connection, query)
    if content is None or content.pop("version") != _VERSION:
        return None
    tests = tuple(DescribedTest(**test) for test in content.pop("tests"))
    return ModelDescription(tests=tests, **content)


def _row(name: str, description: ModelDescription) -> dict[str, Any]:
    content = {"version": _VERSION, **asdict(description)}
    digest = hashlib.sha256(write_json(content).encode()).hexdigest()[:32]
    return {"model": name, "digest": digest, "content": content}
