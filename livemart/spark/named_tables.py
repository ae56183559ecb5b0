"""Takes SQL apart by Spark's own parser: a hole for each table, where the planner cannot read it.

Used by `verify`, which runs a text over other tables than those that it names. It takes a call of
the JVM for each part of the statement: milliseconds, but too long for each micro-batch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livemart.plan.reasons import refusal
from livemart.plan.sql.flatten import Flat, Occurrence
from livemart.plan.sql.parse import statement
from livemart.spark.model_errors import message_of
from livemart.spark_sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# `table a.b` takes no alias.
_TABLE_STATEMENT = re.compile(r"\btable\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Mention:
    """A table that a text names between two offsets; `names`: its name, without the catalog."""

    start: int
    end: int
    names: tuple[str, ...]
    has_alias: bool


def flatten_by_spark(
    spark: SparkSession, text: str, views: Mapping[str, str]
) -> tuple[Flat, frozenset[str]]:
    """Return the flat text of a SELECT, as `flatten` does, whatever Spark can read.

    Besides, the names of the session's temporary views in it, in lower case: they stay as they are.

    Args:
        spark: a session with its own JVM, in which the text has its meaning.
        text: Spark SQL as dbt compiled it.
        views: SELECT text of every relation that is a view, by `schema.identifier` in lower case.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, if Spark cannot read it either, or a table is named without
            its schema or as of an older version.
    """
    temporary: set[str] = set()
    flat = Flat(tuple(_flatten(spark, text, views, [], temporary, ())))
    return flat, frozenset(temporary)


def _flatten(
    spark: SparkSession,
    text: str,
    views: Mapping[str, str],
    occurrences: list[Occurrence],
    temporary: set[str],
    enclosing: tuple[str, ...],
) -> list[str | Occurrence]:
    text = statement(text) + "\n"
    parts: list[str | Occurrence] = []
    position = 0
    for mention in _mentions(spark, text, temporary):
        relation = ".".join(mention.names).lower()
        parts.append(text[position : mention.start])
        if relation in views:
            if relation in enclosing:
                raise refusal("PARSE_UNSUPPORTED", f"{relation} reads itself")
            within = (*enclosing, relation)
            inner = _flatten(spark, views[relation], views, occurrences, temporary, within)
            parts += ["(\n", *inner, "\n)"]
        else:
            written = text[mention.start : mention.end]
            occurrences.append(Occurrence(len(occurrences), relation, written))
            parts.append(occurrences[-1])
        if not (mention.has_alias or _TABLE_STATEMENT.search(text, 0, mention.start)):
            parts.append(f" as {quoted(mention.names[-1])}")
        position = mention.end
    parts.append(text[position:])
    return parts


def _mentions(spark: Any, text: str, temporary: set[str]) -> list[_Mention]:
    """Return the tables of a text that are not names of common table expressions, in its order.

    Args:
        temporary: takes in the temporary views that it names.
    """
    from pyspark.errors import PySparkException

    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except PySparkException as error:
        raise refusal("PARSE_UNSUPPORTED", message_of(error)) from error
    mentions: dict[int, _Mention] = {}
    unqualified: set[str] = set()
    cte_names: set[str] = set()
    for kind, above, node in _nodes(plan):
        if kind == "RelationTimeTravel":
            raise refusal("PARSE_UNSUPPORTED", "an older version of a table")
        if kind == "UnresolvedWith":
            cte_names |= {str(cte._1()).lower() for cte in _items(node.cteRelations())}
        if kind != "UnresolvedRelation":
            continue
        names = tuple(map(str, _items(node.multipartIdentifier())))
        if names[0].lower() == "spark_catalog":
            names = names[1:]
        if len(names) == 1:
            unqualified.add(names[0].lower())
            continue
        # A subquery is met in each node that carries it on. Offsets count characters, as ours do.
        start, last = node.origin().startIndex().get(), node.origin().stopIndex().get()
        mentions[start] = _Mention(start, last + 1, names, above == "SubqueryAlias")
    catalog = spark._jsparkSession.sessionState().catalog()
    for name in sorted(unqualified - cte_names):
        if catalog.getTempView(name).isEmpty():
            raise refusal("PARSE_UNSUPPORTED", f"{name} is named without its schema")
        temporary.add(name)
    return [mentions[start] for start in sorted(mentions)]


def _nodes(plan: Any, above: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield each node of a plan with its class and that of the node above it."""
    kind = str(plan.getClass().getSimpleName())
    yield kind, above, plan
    for below in (plan.children(), plan.innerChildren(), plan.subqueries()):
        for node in _items(below):
            yield from _nodes(node, kind)


def _items(scala_sequence: Any) -> list[Any]:
    return [scala_sequence.apply(place) for place in range(scala_sequence.size())]
