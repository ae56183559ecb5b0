"""Describes the session in which a project's SQL is read: settings and some statements.

Used when the project is read. The same holds wherever a statement of the project is run: in a
build, a refresh, a data test and `verify`. The list is closed; every other hook only acts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

# Settings that dbt-spark and every session of the engine have, whatever a project says.
_BASE_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.casesensitive": "false",
    "spark.sql.session.timezone": "utc",
    "spark.sql.variable.substitute": "false",
}
# The only settings that SQL can be changed by ...
_OF_SQL = "spark.sql."
# ... but for these: how and where statements run, and how files are written.
_WITHOUT_MEANING = (
    "spark.sql.adaptive.",
    "spark.sql.autobroadcastjointhreshold",
    "spark.sql.broadcasttimeout",
    "spark.sql.catalog.",
    "spark.sql.catalogimplementation",
    "spark.sql.cbo.",
    "spark.sql.codegen.",
    "spark.sql.debug.",
    "spark.sql.execution.",
    "spark.sql.extensions",
    "spark.sql.files.",
    "spark.sql.hive.",
    "spark.sql.legacy.createhivetablebydefault",
    "spark.sql.inmemorycolumnarstorage.",
    "spark.sql.optimizer.",
    "spark.sql.orc.",
    "spark.sql.parquet.",
    "spark.sql.shuffle.",
    "spark.sql.sources.",
    "spark.sql.statistics.",
    "spark.sql.streaming.",
    "spark.sql.ui.",
    "spark.sql.warehouse.dir",
)
# They may change how SQL is read, or what names and literals mean ...
_OF_READING = (
    "spark.sql.ansi.",
    "spark.sql.casesensitive",
    "spark.sql.functionresolution.",
    "spark.sql.groupby",
    "spark.sql.legacy.",
    "spark.sql.orderby",
    "spark.sql.parser.",
    "spark.sql.timestamptype",
    "spark.sql.variable.",
)
# ... but for these, as all others: they change what an expression gives for a row.
_OF_VALUES = frozenset(
    {
        "spark.sql.legacy.literal.pickminimumprecision",
        "spark.sql.legacy.sizeofnull",
        "spark.sql.legacy.timeparserpolicy",
    }
)
# For what Spark 4.2's generated code gives otherwise than its interpreter.
_INTERPRETED = (
    "set spark.sql.codegen.wholeStage = false",
    "set spark.sql.codegen.factoryMode = NO_CODEGEN",
)
_COMMENT = re.compile(r"\s*(?:/\*.*?\*/|--[^\n]*(?:\n|\Z))", re.DOTALL)
_COMMENT_BEHIND = re.compile(r"\s*/\*(?:(?!\*/).)*\*/\s*\Z", re.DOTALL)
_DEFINES = re.compile(
    r"(?:set|reset|use|declare)\b|add\s+(?:jar|jars|file|files|archive|archives)\b"
    r"|create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+(?:view|function)|function)\b",
    re.IGNORECASE,
)
_FUNCTION = re.compile(
    r"create\s+(?:or\s+replace\s+)?function\s+(?:if\s+not\s+exists\s+)?", re.IGNORECASE
)
_CHANGES = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)|merge\s+into|update|delete\s+from)\b", re.IGNORECASE
)
# A text in quotes or a quoted name; a comment, in which a quote begins none.
_TEXT = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?\*/)|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`(?:[^`]|``)*`",
    re.DOTALL,
)
_ASKS = re.compile(r"(?:select|with|show|desc|describe|explain|values|table|from)\b|\(", re.I)
_SETTING = re.compile(r"set\s+`?([\w.\-]+)`?\s*=\s*(.*)", re.IGNORECASE | re.DOTALL)
_VARIABLE = re.compile(r"set\s+var(?:iable)?\b", re.IGNORECASE)
_TIME_ZONE = re.compile(r"set\s+time\s+zone\b", re.IGNORECASE)
_SHOWS_SETTINGS = re.compile(r"set(?:\s+-v|\s+[\w.\-]+)?\Z", re.IGNORECASE)
_SCHEMA = re.compile(r"(`(?:[^`]|``)+`|\w+)\s*\.\s*(?=`|\w)")
_CREATED = re.compile(
    r"create\s+(?:or\s+replace\s+)?(temp(?:orary)?\s+view|(?:temp(?:orary)?\s+)?function)\s+"
    r"(?:if\s+not\s+exists\s+)?(?:(?:`(?:[^`]|``)+`|\w+)\s*\.\s*)*(`(?:[^`]|``)+`|\w+)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SessionSpec:
    """The settings and statements that give SQL its meaning in a session.

    `settings`: names and values of the profile that hold whatever a statement sets. `statements`
    are run in this order, once.
    """

    settings: tuple[tuple[str, str], ...] = ()
    statements: tuple[str, ...] = ()

    @cached_property
    def is_plain(self) -> bool:
        """True if every session of the engine will do."""
        return not self.settings and not self.statements

    @property
    def text(self) -> str:
        """All of it on one line, for messages and fingerprints."""
        return "; ".join(
            [*(f"{name} = {value}" for name, value in self.settings), *self.statements]
        )

    def then(self, statements: Iterable[str]) -> SessionSpec:
        """Return the spec after these statements; those that change nothing are left out.

        >>> spec = SessionSpec().then(["set a.b=1", "set a.b=1"])
        >>> spec.then(["set a.b=2", "set a.b=1"]).statements
        ('set a.b=1', 'set a.b=2', 'set a.b=1')
        """
        added = tuple(statements)
        if not added or self.statements[-len(added) :] == added:
            return self
        effective: list[str] = []
        named = {name.lower() for name, _ in self.settings}
        values = {name: value for name, value in _BASE_SETTINGS.items() if name not in named}
        for statement in (*self.statements, *added):
            if (setting := _SETTING.match(statement)) is not None:
                name, value = setting[1].lower(), setting[2].strip()
                value = value.lower() if name in _BASE_SETTINGS else value
                if values.get(name) == value:
                    continue
                values[name] = value
            elif effective and effective[-1] == statement:
                continue
            elif not _CREATED.match(statement):
                # It may change any of them.
                values.clear()
            effective.append(statement)
        return SessionSpec(self.settings, tuple(effective))

    def needed_by(self, text: str, keeps: int = 0) -> SessionSpec:
        """Return the spec without the temporary views and functions that a text does not name.

        One that it does not name cannot change it, but can fail to be made. The first statements
        are kept in any case, as many as `keeps` says.
        """
        needed: list[str] = []
        for statement in reversed(self.statements[keeps:]):
            created = _CREATED.match(statement)
            if created is None or re.search(
                rf"(?<!\w){re.escape(created[2].strip('`'))}(?!\w)", text, re.IGNORECASE
            ):
                needed.append(statement)
                text = f"{text}\n{statement}"
        return SessionSpec(self.settings, (*self.statements[:keeps], *reversed(needed)))

    def interpreted(self) -> SessionSpec:
        """Return the spec of a session in which Spark generates no code.

        >>> PLAIN.interpreted().of_a_view == PLAIN
        True
        """
        return SessionSpec(self.settings, (*self.statements, *_INTERPRETED))

    @property
    def of_a_view(self) -> SessionSpec:
        """Return the part that Spark keeps with a view for all its readers: settings and names."""
        statements = [
            it
            for it in self.statements
            if is_setting(it) and not _VARIABLE.match(it) and it not in _INTERPRETED
        ]
        newest = {setting[1].lower(): it for it in statements if (setting := _SETTING.match(it))}
        if len(newest) == len(set(statements)) or not all(map(_SETTING.match, statements)):
            return SessionSpec(self.settings, tuple(statements))
        return SessionSpec(self.settings).then(newest.values())

    def unknown_effect(self) -> str | None:
        """Return a setting that may change how SQL is read, so that no rule holds; else None.

        >>> SessionSpec((("spark.sql.caseSensitive", "true"),)).unknown_effect()
        'spark.sql.caseSensitive = true'
        """
        for name, value in self.settings:
            if _may_change_reading(name):
                return f"{name} = {value}"
        for statement in self.statements:
            setting = _SETTING.match(statement)
            if setting is not None:
                is_unknown = _may_change_reading(setting[1])
            else:
                # Variables, catalogs, everything at once.
                words = re.match(r"(?:declare|use|reset|set)\b", statement, re.IGNORECASE)
                is_unknown = words is not None and not _TIME_ZONE.match(statement)
            if is_unknown:
                return statement
        return None

    def functions(self) -> list[tuple[str, str]]:
        """Return each function's name in lower case, without its schema, and its statement.

        Functions of two schemas may have one name.
        """
        matches = ((_CREATED.match(statement), statement) for statement in self.statements)
        return [
            (it[2].strip("`").lower(), statement)
            for it, statement in matches
            if it is not None and it[1].lower().endswith("function")
        ]


PLAIN = SessionSpec()


def profile_spec(parameters: Mapping[str, str]) -> SessionSpec:
    """Return the session that the parameters of a dbt profile ask for.

    >>> profile_spec({"spark.sql.ansi.enabled": "false", "spark.sql.mapKeyDedupPolicy": "LAST_WIN"})
    SessionSpec(settings=(('spark.sql.mapKeyDedupPolicy', 'LAST_WIN'),), statements=())
    """
    return SessionSpec(
        tuple(
            (name, value)
            for name, value in sorted(parameters.items())
            if not is_without_meaning(name)
            and _BASE_SETTINGS.get(name.lower()) != value.strip().lower()
        )
    )


def defining(statements: Iterable[str], parameters: Mapping[str, str]) -> list[str]:
    """Return the statements, without comments, that define the meaning of SQL.

    Args:
        parameters: of the profile; dbt-spark sets them again before each statement, so that none of
            them can be set otherwise.
    """
    fixed = {name.lower() for name in parameters}
    definitions = []
    for statement in map(remade, map(bare_statement, statements)):
        if not _DEFINES.match(statement) or _SHOWS_SETTINGS.match(statement):
            continue
        setting = _SETTING.match(statement)
        if setting is not None and (setting[1].lower() in fixed or is_without_meaning(setting[1])):
            continue
        if _TIME_ZONE.match(statement) and "spark.sql.session.timezone" in fixed:
            continue
        definitions.append(statement)
    return definitions


def is_defining(statement: str) -> bool:
    """Return True if a statement only defines the meaning of those after it.

    >>> is_defining("/* dbt */ create or replace temporary function net as 'shop.Net'")
    True
    >>> is_defining("grant select on table shop.orders to analysts")
    False
    """
    return _DEFINES.match(bare_statement(statement)) is not None


def remade(statement: str) -> str:
    """Return a statement that makes a function so that it may be run where the function exists.

    Spark's catalog is in memory: in a process that dbt alone runs, no function exists before.

    >>> remade("create function if not exists shop.net(x int) returns int return x")
    'create or replace function shop.net(x int) returns int return x'
    """
    bare = bare_statement(statement)
    matched = _FUNCTION.match(bare)
    return f"create or replace function {bare[matched.end() :]}" if matched else statement


def makes_function(statement: str) -> bool:
    """Return True for a statement that makes a function for all sessions."""
    return _FUNCTION.match(bare_statement(statement)) is not None


def function_schema(statement: str) -> str | None:
    """Return the schema, in lower case, of a function that a statement makes for all sessions.

    >>> function_schema("create or replace function Shop.net(x int) returns int return x")
    'shop'
    >>> function_schema("create function net as 'shop.Net'")
    """
    if (matched := _FUNCTION.match(statement)) is None:
        return None
    named = _SCHEMA.match(statement, matched.end())
    return named[1].strip("`").replace("``", "`").lower() if named is not None else None


def is_asking(statement: str) -> bool:
    """Return True if a statement changes nothing at all.

    >>> is_asking("with q as (select 1) insert into log select * from q")
    False
    >>> is_asking("from t select a where op in ('update', 'insert into')")
    True
    """
    statement = bare_statement(statement)
    if (asks := _ASKS.match(statement)) is None:
        return False
    if asks[0].lower() not in ("with", "from", "("):
        return True
    return _CHANGES.search(without_texts(statement)) is None


def without_texts(statement: str) -> str:
    """Return a statement without comments, each text in quotes emptied: their words are no SQL.

    >>> without_texts("select a from t where op = 'insert into' -- it's new")
    "select a from t where op = ''  "
    """
    return _TEXT.sub(lambda part: " " if part["comment"] else "''", statement)


def is_setting(statement: str) -> bool:
    """Return True if a defining statement may be run again, whatever was run before it.

    >>> is_setting("create or replace temporary function net as 'shop.Net'")
    False
    """
    return re.match(r"(?:set|reset|use|add)\b", statement, re.IGNORECASE) is not None


def bare_statement(statement: str) -> str:
    """Return a statement without the comments before and behind it, and without a semicolon.

    >>> bare_statement('/* {"app": "dbt"} */ set a.b=1;')
    'set a.b=1'
    >>> bare_statement('set a.b=1\\n/* {"app": "dbt"} */;')
    'set a.b=1'
    """
    while (comment := _COMMENT.match(statement)) is not None:
        statement = statement[comment.end() :]
    # dbt moves the semicolon behind its own comment.
    statement = _COMMENT_BEHIND.sub("", statement.strip().removesuffix(";"))
    return statement.strip().removesuffix(";").strip()


def as_sent(statement: str) -> str:
    """Return a statement of dbt's as Spark is to run it, see `remade`.

    Spark takes all that is behind `set` for its value, also a comment of `query-comment`.

    >>> as_sent("set spark.sql.session.timeZone = UTC\\n/* dbt */;")
    'set spark.sql.session.timeZone = UTC'
    """
    bare = bare_statement(statement)
    return bare if is_setting(bare) else remade(statement)


def is_without_meaning(name: str) -> bool:
    """Return True for a setting that cannot change a row."""
    lowered = name.lower()
    return not lowered.startswith(_OF_SQL) or lowered.startswith(_WITHOUT_MEANING)


def _may_change_reading(name: str) -> bool:
    lowered = name.lower()
    return (
        not is_without_meaning(name)
        and lowered.startswith(_OF_READING)
        and lowered not in _OF_VALUES
    )
