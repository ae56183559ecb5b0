"""Finds names that differ in writing alone: of tables and columns, and livemart's own.

Used when the manifest is read. Spark does not tell names apart by letter case, and the folder of a
table has its name in lower case; dbt takes such names for different ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from livemart.errors import ConfigError
from livemart.project.graph import Model, SourceTable

_OWN_TABLES = frozenset({"livemart.clock", "livemart.watermarks", "livemart.lateness"})
# Tables that landing keeps beside those of a schema that it lands in.
_OF_LANDING = re.compile(r"_(dead_letters|redriven_letters|deletes_.*)", re.S)
# Spark's catalog holds no folder whose name begins so; `_livemart` is that of the engine itself.
_HIDDEN = ("_", ".")


@dataclass(frozen=True, slots=True)
class _Claim:
    """A node that calls a table its own."""

    node: str
    file: str
    relation: str
    """In lower case."""
    written: str
    """As the project spells it."""
    group: str = ""
    """The name of a source, in lower case."""
    is_written: bool = True
    """Whether the node's rows go there: a source that livemart does not land is only read."""

    def is_mistaken_for(self, other: _Claim) -> bool:
        """Return True if the two cannot both have their table."""
        if self.is_written and other.is_written:
            return True
        # Two names for one table that is only read are right, as long as they do not look like two.
        return self.group != "" and self.group == other.group and self.written != other.written


def names_in_two_cases(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each name that differs by letter case alone from an earlier one, and that one.

    >>> list(names_in_two_cases(["id", "ID", "total", "id"]))
    [('ID', 'id')]
    """
    first: dict[str, str] = {}
    for name in dict.fromkeys(names):
        if first.setdefault(name.lower(), name) != name:
            yield name, first[name.lower()]


def table_mistakes(
    models: Iterable[Model], sources: Iterable[SourceTable]
) -> Iterator[ConfigError]:
    """Yield a mistake for each node without its own table: NAMES_CLASH, NAME_RESERVED.

    An ephemeral model has no table. A source that livemart does not land may name any.
    """
    sources = list(sources)
    own_tables = _OWN_TABLES | {source.relation for source in sources if source.is_provided}
    own_tables |= {f"{it.schema.lower()}.lateness" for it in sources if it.is_watermarks}
    landed_schemas = {source.schema.lower() for source in sources if source.stream}
    claims: dict[str, list[_Claim]] = {}
    for claim in (*_claims_of_models(models), *_claims_of_sources(sources)):
        place = f"{claim.file}: {claim.node}: found"
        schema, _, identifier = claim.relation.partition(".")
        is_landings = schema in landed_schemas and _OF_LANDING.fullmatch(identifier)
        if claim.is_written and (claim.relation in own_tables or is_landings):
            yield ConfigError(
                "NAME_RESERVED",
                f"{place} table {claim.written}, which livemart itself writes",
                hint=f"give it another {_renamed(claim)}",
            )
        if claim.is_written and claim.relation.startswith(_HIDDEN):
            yield ConfigError(
                "NAME_RESERVED",
                f"{place} table {claim.written}: a folder of the warehouse that begins with "
                f"{claim.relation[0]} holds no tables",
                hint="give it a `schema` that begins with a letter",
            )
        earlier = claims.setdefault(claim.relation, [])
        first = next((other for other in earlier if claim.is_mistaken_for(other)), None)
        if first is not None:
            yield ConfigError(
                "NAMES_CLASH",
                f"{place} table {claim.written}, and {first.node} ({first.file}) has "
                f"{first.written}: they are the same table",
                hint="Spark and the warehouse ignore letter case in names: give one "
                f"of them another {_renamed(claim)}",
            )
        earlier.append(claim)
    yield from _mark_mistakes(sources)


def _claims_of_models(models: Iterable[Model]) -> Iterator[_Claim]:
    for model in models:
        if model.materialized != "ephemeral":
            kind, _, label = model.unique_id.split(".", 2)
            written = f"{model.schema}.{model.identifier}"
            yield _Claim(f"{kind} {label}", model.file, model.relation, written)


def _claims_of_sources(sources: Iterable[SourceTable]) -> Iterator[_Claim]:
    for source in sources:
        if not source.is_provided:
            yield _Claim(
                f"source {source.source_name}.{source.name}",
                source.file,
                source.relation,
                f"{source.schema}.{source.identifier}",
                group=source.source_name.lower(),
                is_written=source.stream is not None,
            )


def _renamed(claim: _Claim) -> str:
    return "`identifier` or `schema`" if claim.group else "name, `alias` or `schema`"


def _mark_mistakes(sources: Iterable[SourceTable]) -> Iterator[ConfigError]:
    """Yield a mistake for each source whose column of `livemart.watermarks` is another's."""
    first: dict[str, SourceTable] = {}
    for source in sources:
        if source.stream is None or source.row_rules.lateness is None:
            continue
        other = first.setdefault(source.watermark, source)
        if other is not source:
            yield ConfigError(
                "NAMES_CLASH",
                f"{source.file}: source {source.source_name}.{source.name}: found a lateness, but "
                f"its column {source.watermark} of livemart.watermarks is that of source "
                f"{other.source_name}.{other.name} ({other.file})",
                hint="give one of them another `name`",
            )
