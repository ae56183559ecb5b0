"""Makes SQL flat: a compiled text with its views inlined and every stored relation a placeholder.

Used for models, tests and verify (ADR-0003). The analyst's text is kept to the letter: only table
names are replaced, at the offsets that the parser reports, so that Spark parses exactly what was
written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from livemart.errors import first_lines
from livemart.plan.reasons import refusal
from livemart.plan.sql.parse import parse, statement, words_of
from livemart.plan.sql.template import Template
from livemart.plan.sql.written import sql_of
from livemart.spark_sql import quoted

_SAMPLE = re.compile(
    r"\s*tablesample\s*\((?:[^()]|\([^()]*\))*\)(?:\s*repeatable\s*\([^()]*\))?", re.IGNORECASE
)

# No relation of a project has this schema.
_STAGES = "__livemart_stage"
# More texts than the models and tests of a project.
_KNOWN_TEXTS = 4_000


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One mention of a stored relation (`schema.identifier`) in a flat text; `text`: as written."""

    index: int
    relation: str
    text: str = field(default="", compare=False)

    @property
    def placeholder(self) -> str:
        """The name that the parser is shown."""
        return f"__livemart_{self.index}__"


@dataclass(frozen=True, slots=True)
class _Mention:
    """Where a text names a stored relation, between two offsets; `rest`: the text behind it.

    `alias`: the name that the text itself gives no alias for; empty if it has one.
    """

    relation: str
    start: int
    end: int
    rest: int
    alias: str


@dataclass(frozen=True)
class Flat(Template[Occurrence]):
    """A SELECT with a hole for each mention of a stored relation."""

    @cached_property
    def text(self) -> str:
        """The text for the parser."""
        return self.render(lambda mention: mention.placeholder)

    @cached_property
    def words(self) -> str:
        """The text by its words alone; see `words_of`."""
        return words_of(self.text)

    @cached_property
    def occurrences(self) -> tuple[Occurrence, ...]:
        """The mentions by their index."""
        return tuple(sorted(set(self.holes), key=lambda mention: mention.index))

    @cached_property
    def stage_relation(self) -> str:
        """The name by which the rest of a query reads its rows, if they are a stage."""
        named = f"{self.words}\n{','.join(mention.relation for mention in self.occurrences)}"
        return f"{_STAGES}.{sha256(named.encode()).hexdigest()[:16]}"

    def schema(self, columns: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
        """Return the columns of each mention, where they are known, as sqlglot asks for them."""
        return {
            mention.placeholder: {name.lower(): "unknown" for name in columns[mention.relation]}
            for mention in self.occurrences
            if mention.relation in columns
        }

    def cut(self, start: int, end: int) -> Template[Occurrence]:
        """Return the text between two offsets of `text`, neither of them within a name."""
        pieces: list[str | Occurrence] = []
        offset = 0
        for piece in self.pieces:
            if isinstance(piece, str):
                part = piece[max(start - offset, 0) : max(end - offset, 0)]
                pieces += [part] if part else []
            elif start <= offset < end:
                pieces.append(piece)
            offset += len(piece if isinstance(piece, str) else piece.placeholder)
        return Template(tuple(pieces))

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The distinct relations read, in order of first appearance."""
        return tuple(dict.fromkeys(occurrence.relation for occurrence in self.occurrences))


def is_stage_relation(relation: str) -> bool:
    """Return True for the name of a stage within a plan; see `Flat.stage_relation`."""
    return relation.startswith(f"{_STAGES}.")


def flatten(text: str, views: Mapping[str, str]) -> Flat:
    """Return the flat text of a SELECT.

    Args:
        text: Spark SQL as dbt compiled it.
        views: SELECT text of every relation that is a view, by `schema.identifier` in lower case.

    Raises:
        Inapplicable: PARSE_UNSUPPORTED, if the text cannot be parsed or names a relation in a way
            that cannot be replaced.
    """
    return Flat(tuple(_flatten(_body(text), views, [], ())))


def _flatten(
    text: str,
    views: Mapping[str, str],
    occurrences: list[Occurrence],
    enclosing: tuple[str, ...],
) -> list[str | Occurrence]:
    parts: list[str | Occurrence] = []
    position = 0
    for mention in _mentions(text):
        relation, end = mention.relation, mention.end
        parts.append(text[position : mention.start])
        if relation in views:
            if relation in enclosing:
                raise refusal("PARSE_UNSUPPORTED", f"{relation} reads itself")
            inner = _flatten(_body(views[relation]), views, occurrences, (*enclosing, relation))
            parts += ["(\n", *inner, "\n)"]
        else:
            occurrence = Occurrence(len(occurrences), relation, text[mention.start : end])
            occurrences.append(occurrence)
            parts.append(occurrence)
        position = mention.rest
        parts.append(text[end:position])
        if mention.alias:
            parts.append(f" as {quoted(mention.alias)}")
    parts.append(text[position:])
    return parts


def lines_of(
    text: str, views: Mapping[str, str], relation: str | None = None
) -> list[tuple[str | None, int]]:
    r"""Return where each line of a flat text is written: view, None for the text, and line there.

    >>> lines_of("select a\nfrom m.v", {"m.v": "select a\nfrom m.t"})[:4]
    [(None, 1), (None, 2), ('m.v', 1), ('m.v', 2)]

    Args:
        text, views: of `flatten`, which could read them.
        relation: of the text, if it is that of a view.
    """
    # A flat text leaves out the empty lines that a config block leaves at the top.
    line = 1 + text[: len(text) - len(text.lstrip())].count("\n")
    text = _body(text)
    lines, position = [(relation, line)], 0
    ends = [(mention.start, mention.relation) for mention in _mentions(text)]
    for end, inner in [*ends, (len(text), "")]:
        for _ in range(text.count("\n", position, end)):
            line += 1
            lines.append((relation, line))
        position = end
        if inner in views:
            # Each view begins a line, and so does the rest behind it.
            lines += [*lines_of(views[inner], views, inner), (relation, line)]
    return lines


# A view is inlined in each text that reads it, and a project is planned again and again.
@lru_cache(maxsize=_KNOWN_TEXTS)
def _mentions(text: str) -> tuple[_Mention, ...]:
    """Return the mentions of stored relations in a text, in their order."""
    mentions = []
    for table in _stored_tables(text):
        relation = f"{table.db}.{table.name}".lower() if table.db else table.name.lower()
        if table.catalog and table.catalog.lower() != "spark_catalog":
            relation = f"{table.catalog.lower()}.{relation}"
        start, end = _span(text, table)
        rest = _behind_sample(text, end) if table.args.get("sample") else end
        mentions.append(_Mention(relation, start, end, rest, "" if table.alias else table.name))
    return tuple(mentions)


def _stored_tables(text: str) -> list[exp.Table]:
    """Return the tables that are not names of common table expressions, in order of their text."""
    tree = parse(text)
    try:
        scopes = traverse_scope(tree)
    except (SqlglotError, RecursionError) as error:
        raise refusal("PARSE_UNSUPPORTED", first_lines(error)) from error
    if not isinstance(tree, exp.Query):
        raise refusal("PARSE_UNSUPPORTED", "not a SELECT")
    cte_reads: set[int] = set()
    for scope in scopes:
        names = {name.lower() for name in scope.cte_sources}
        for table in scope.tables:
            if not table.db and table.name.lower() in names:
                cte_reads.add(id(table))
    tables = [
        table
        for table in tree.find_all(exp.Table)
        if id(table) not in cte_reads and isinstance(table.this, exp.Identifier)
    ]
    for column in tree.find_all(exp.Column):
        if column.args.get("db") is not None and any(
            table.db and table.db == column.text("db") for table in tables
        ):
            message = f"a column is qualified by a schema: {sql_of(column)}"
            raise refusal("PARSE_UNSUPPORTED", message)
    if any(table.args.get("version") for table in tables):
        raise refusal("PARSE_UNSUPPORTED", "an older version of a table")
    for table in tables:
        if not table.db:
            raise refusal("PARSE_UNSUPPORTED", f"{table.name} is named without its schema")
    return sorted(tables, key=lambda table: _span(text, table)[0])


def _span(text: str, table: exp.Table) -> tuple[int, int]:
    """Return the offsets of the (possibly qualified and quoted) name of a table."""
    parts = [part for part in (table.args.get("catalog"), table.args.get("db"), table.this) if part]
    try:
        start = parts[0].meta["start"]
        end = parts[-1].meta["end"] + 1
    except KeyError as error:
        raise refusal("PARSE_UNSUPPORTED", f"no offsets for {table.name}") from error
    # Offsets of quoted identifiers leave the quotes out in some versions of the parser.
    if start > 0 and text[start - 1] == "`":
        start -= 1
    if end < len(text) and text[end] == "`":
        end += 1
    return start, end


def _behind_sample(text: str, start: int) -> int:
    """Return where the sample of a table ends: an alias follows it."""
    if (sample := _SAMPLE.match(text, start)) is None:
        raise refusal("PARSE_UNSUPPORTED", "a sample that is not written plainly")
    return sample.end()


@lru_cache(maxsize=_KNOWN_TEXTS)
def _body(text: str) -> str:
    return statement(text) + "\n"
