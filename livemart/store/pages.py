"""Stores the look of the project's pages: those of served models, and dashboards.

Used by publication, which writes them with the rows, and by the pages. It is a separate table with
its own version: a store that was filled before has none, and stays readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from livemart.project.declared.model_page import PageSpec
from livemart.store.column_types import Json, write_json
from livemart.store.connections import optional_content
from livemart.store.served import NO_PAGES, Dashboard, ProjectPages

_VERSION = 1
_PAGES = sa.Table(
    "livemart_pages",
    sa.MetaData(),
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("content", Json, nullable=False),
)


def write_pages(connection: Connection, pages: ProjectPages) -> None:
    """Replace the pages by these, in the transaction under way; write nothing if they are equal."""
    _PAGES.create(connection, checkfirst=True)
    rows = connection.execute(sa.select(_PAGES)).all()
    content: Any = asdict(pages)
    if [(row.version, write_json(row.content)) for row in rows] == [
        (_VERSION, write_json(content))
    ]:
        return
    connection.execute(sa.delete(_PAGES))
    connection.execute(sa.insert(_PAGES).values(version=_VERSION, content=content))


def read_pages(connection: Connection) -> ProjectPages:
    """Return the pages; none if the store has none that this program reads."""
    query = sa.select(_PAGES.c.content).where(_PAGES.c.version == _VERSION)
    if (content := optional_content(connection, query)) is None:
        return NO_PAGES
    models = {name: PageSpec(**_tuples(page)) for name, page in content["models"].items()}
    dashboards = {name: Dashboard(**_tuples(it)) for name, it in content["dashboards"].items()}
    return ProjectPages(models, dashboards)


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(it) if isinstance(it, list) else it for key, it in values.items()}
