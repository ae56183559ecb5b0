"""Notes the tables that a data test makes while dbt compiles it.

Used by `Dbt`. Packages that watch data keep what a test counts in such tables, under a name that
says when: in a run of dbt's they last until its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from livemart.project.cursors import SessionFactory, SparkCursor
from livemart.project.session_spec import bare_statement
from livemart.spark_sql import unquoted

_PART = r"(?:`(?:[^`./]|``)+`|\w+)"
_MAKES = re.compile(
    rf"create\s+(?:or\s+replace\s+)?table\s+(?:{_PART}\s*\.\s*)?({_PART})\s*\.\s*({_PART})"
    r"(?!\s*\.|\w)",
    re.IGNORECASE,
)


class MakingCursor(SparkCursor):
    """A cursor that notes in `tables` each table, `schema.identifier`, that a statement makes."""

    def __init__(
        self, session: SessionFactory, parameters: Mapping[str, str], tables: list[str]
    ) -> None:
        super().__init__(session, parameters)
        self._tables = tables

    def execute(self, sql: str, *parameters: object) -> None:
        super().execute(sql, *parameters)
        relation = made_relation(sql)
        if relation is not None and relation not in self._tables:
            self._tables.append(relation)


def made_relation(statement: str) -> str | None:
    """Return the table, in lower case, that a statement makes, whatever was there.

    One that it makes `if not exists` is to stay, and so is not meant. Nor is one without a schema.

    >>> made_relation("/* dbt */ create or replace table `Watch`.`n__7` using delta as select 1")
    'watch.n__7'
    """
    if (match := _MAKES.match(bare_statement(statement))) is None:
        return None
    return ".".join(unquoted(part).lower() for part in match.groups())
