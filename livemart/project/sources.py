"""`config.meta.livemart`: how a dbt source arrives, and how a model may be refreshed.

Every mistake is found and reported at once, with its file, line and the nearest valid word.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import PurePosixPath
from typing import Any, get_args

import yaml

from livemart.errors import ConfigError
from livemart.intervals import parse_interval
from livemart.project.graph import Column, Policy, StreamSpec
from livemart.project.types import TYPE_WORDS, TypeSyntaxError, parse_type

RESERVED_COLUMNS = ("_landed_at", "_batch_id", "_origin", "_rescued_data")
# Names that landed rows are given on their way into a table.
_INTERNAL_COLUMN = re.compile(
    r"_(record|record_bytes|(code|detail)_[0-9]+|(old|new)_count|weight|kind|is_delete|rank"
    r"|position|change_type|operation|copy)"
)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORMATS = ("json", "csv")
DRIFTS = ("rescue", "evolve", "fail")
POLICIES: tuple[str, ...] = get_args(Policy)

_KEYS = tuple(each.name for each in fields(StreamSpec))
# Keys and sequences need types whose values can be compared.
_UNORDERED = ("array", "map", "struct", "binary")


@dataclass(frozen=True, slots=True)
class Where:
    """Where a configuration stands: `file`, what it configures, and the line of each of its keys.

    `lines`: path below the node (("columns", "order_id"), ("meta", "keys")) to its line, from 1.
    """

    file: str
    node: str
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    def at(self, *path: str) -> str:
        """Return `file:line: node: key`, with the line of the nearest known parent."""
        parents = (path[:size] for size in range(len(path), -1, -1))
        line = next((self.lines[parent] for parent in parents if parent in self.lines), None)
        place = f"{self.file}:{line}" if line else self.file
        key = ".".join(("meta.livemart", *path[1:]) if path[:1] == ("meta",) else path)
        return f"{place}: {self.node}: {key}"


def parse_source_spec(
    meta: object,
    columns: Sequence[Column],
    where: Where | str,
    *,
    event_time: str | None = None,
) -> tuple[StreamSpec | None, list[ConfigError]]:
    """Return the checked specification of a stream and every mistake in it.

    Args:
        meta: value of `config.meta.livemart`.
        columns: the declared columns of the source table.
        where: place of the source table, for messages; a string is file and node in one.
        event_time: the source's `event_time`, if it has one.

    Returns:
        The specification (None if there are mistakes) and all mistakes. Codes:
        SOURCE_NOT_A_MAPPING, SOURCE_KEY_UNKNOWN, SOURCE_VALUE_INVALID, SOURCE_COLUMN_UNKNOWN,
        SOURCE_COLUMN_RESERVED, SOURCE_COLUMN_INVALID, SOURCE_KEYS_INCOMPLETE,
        SOURCE_LIMITS_CONFLICT.
    """
    place = _place(where)
    if not isinstance(meta, Mapping):
        mistake = ConfigError(
            "SOURCE_NOT_A_MAPPING",
            f"{place.at('meta')}: found {meta!r}",
            hint="write keys below it, at least `path: orders/*.jsonl`",
        )
        return None, [mistake]
    reader = _Reader(meta, columns, place)
    spec = reader.read(event_time)
    return (None if reader.mistakes else spec), reader.mistakes


def parse_model_policy(meta: object, where: Where | str) -> tuple[Policy, list[ConfigError]]:
    """Return the refresh policy of a model and every mistake; the only key is `refresh`.

    Args:
        meta: value of `config.meta.livemart` of a model, or None.
        where: place of the model, for messages.
    """
    place = _place(where)
    if meta is None:
        return "auto", []
    if not isinstance(meta, Mapping):
        mistake = ConfigError(
            "MODEL_NOT_A_MAPPING",
            f"{place.at('meta')}: found {meta!r}",
            hint="write `livemart: {refresh: auto}`",
        )
        return "auto", [mistake]
    mistakes = [
        ConfigError(
            "MODEL_KEY_UNKNOWN",
            f"{place.at('meta', str(key))}: found key {key}{nearest(str(key), ('refresh',))}",
            hint="the only key on a model is `refresh`",
        )
        for key in meta
        if key != "refresh"
    ]
    policy = meta.get("refresh", "auto")
    if policy not in POLICIES:
        mistakes.append(
            ConfigError(
                "MODEL_POLICY_UNKNOWN",
                f"{place.at('meta', 'refresh')}: found {policy}{nearest(str(policy), POLICIES)}",
                hint=f"write one of {', '.join(POLICIES)}",
            )
        )
        return "auto", mistakes
    return policy, mistakes


def nearest(word: str, known: Iterable[str]) -> str:
    """Return `, did you mean ...?`, or an empty string.

    >>> nearest("sequence", ("keys", "sequence_by"))
    ', did you mean sequence_by?'
    """
    found = difflib.get_close_matches(word, list(known), n=1)
    return f", did you mean {found[0]}?" if found else ""


def source_lines(text: str, source: str, table: str) -> dict[tuple[str, ...], int]:
    """Return the line of every key of one source table in a YAML file, for `Where.lines`."""
    return _node_lines(text, ("sources", source), ("tables", table))


def model_lines(text: str, model: str) -> dict[tuple[str, ...], int]:
    """Return the line of every key of one model in a YAML file, for `Where.lines`."""
    return _node_lines(text, ("models", model))


class _Reader:
    """Reads one `meta.livemart` and collects what is wrong with it."""

    def __init__(self, meta: Mapping[Any, Any], columns: Sequence[Column], where: Where) -> None:
        self._meta = meta
        self._columns = {column.name: column for column in columns}
        self._where = where
        self.mistakes: list[ConfigError] = []

    def read(self, event_time: str | None) -> StreamSpec:
        for key in self._meta:
            if key not in _KEYS:
                self._refuse(
                    "SOURCE_KEY_UNKNOWN",
                    ("meta", str(key)),
                    f"found key {key}{nearest(str(key), _KEYS)}",
                    f"the keys are {', '.join(_KEYS)}",
                )
        self._check_columns()
        spec = StreamSpec(
            format=self._word("format", FORMATS, "json"),  # type: ignore[arg-type]
            path=self._path(),
            keys=self._column_list("keys"),
            sequence_by=self._column_list("sequence_by"),
            apply_as_deletes=self._condition(),
            event_time_is_fixed=self._flag("event_time_is_fixed"),
            schema_drift=self._word("schema_drift", DRIFTS, "rescue"),  # type: ignore[arg-type]
            max_future=self._interval("max_future", timedelta(hours=1)),
            max_age=self._interval("max_age", None),
            max_files_per_trigger=self._count("max_files_per_trigger"),
            max_bytes_per_trigger=self._count("max_bytes_per_trigger"),
        )
        self._check_together(spec, event_time)
        return spec

    def _refuse(self, code: str, path: tuple[str, ...], found: str, hint: str) -> None:
        self.mistakes.append(ConfigError(code, f"{self._where.at(*path)}: {found}", hint=hint))

    def _invalid(self, key: str, hint: str) -> None:
        self._refuse("SOURCE_VALUE_INVALID", ("meta", key), f"found {self._meta[key]!r}", hint)

    def _word(self, key: str, known: Sequence[str], default: str) -> str:
        value = self._meta.get(key, default)
        if value in known:
            return str(value)
        self._refuse(
            "SOURCE_VALUE_INVALID",
            ("meta", key),
            f"found {value!r}{nearest(str(value), known)}",
            f"write one of {', '.join(known)}",
        )
        return default

    def _path(self) -> str:
        if "path" not in self._meta:
            self._refuse(
                "SOURCE_VALUE_INVALID",
                ("meta",),
                "no path",
                "say which files below the landing folder it reads: `path: orders/*.jsonl`",
            )
            return ""
        value = self._meta["path"]
        parts = PurePosixPath(value).parts if isinstance(value, str) else ()
        if not parts or parts[0] == "/" or ".." in parts or "\\" in value or ":" in parts[0]:
            self._invalid("path", "write a glob below the landing folder, such as orders/*.jsonl")
            return ""
        if any(part.startswith((".", "_")) for part in parts):
            self._invalid("path", "names that start with . or _ are never read: choose another")
            return ""
        return "/".join(parts)

    def _column_list(self, key: str) -> tuple[str, ...]:
        value = self._meta.get(key, [])
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._invalid(key, "write a list of column names")
            return ()
        if key in self._meta and not names:
            self._invalid(key, f"name at least one column, or leave {key} out")
        for name in names:
            self._declared(name, ("meta", key))
        if len(set(names)) < len(names):
            self._invalid(key, "name each column once")
        return tuple(names)

    def _declared(self, name: str, path: tuple[str, ...]) -> None:
        if name not in self._columns:
            self._refuse(
                "SOURCE_COLUMN_UNKNOWN",
                path,
                f"found column {name}{nearest(name, self._columns)}",
                "declare it under `columns` with its data_type, or name one that is declared",
            )
        elif (kind := self._columns[name].data_type) and _outer(kind) in _UNORDERED:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                path,
                f"found column {name} of type {kind}",
                "choose a column whose values can be compared: a number, a string, a time",
            )

    def _condition(self) -> str | None:
        value = self._meta.get("apply_as_deletes")
        if value is None:
            return None
        if not isinstance(value, str) or not value.strip():
            self._invalid("apply_as_deletes", "write a SQL condition on the row: \"op = 'd'\"")
            return None
        import sqlglot
        from sqlglot import exp

        try:
            tree = sqlglot.parse_one(value, dialect="spark")
        except sqlglot.errors.SqlglotError as error:
            reason = str(error).splitlines()[0]
            self._refuse(
                "SOURCE_VALUE_INVALID",
                ("meta", "apply_as_deletes"),
                f"found {value!r}: {reason}",
                "write a SQL condition on the row: \"op = 'd'\"",
            )
            return None
        if tree.find(exp.Query, exp.AggFunc, exp.Window):
            self._invalid("apply_as_deletes", "use only columns of the row itself")
        for column in tree.find_all(exp.Column):
            name = str(column.parts[0].name)
            if name.lower() not in (known.lower() for known in self._columns):
                self._refuse(
                    "SOURCE_COLUMN_UNKNOWN",
                    ("meta", "apply_as_deletes"),
                    f"found column {name}{nearest(name, self._columns)}",
                    "use columns that are declared under `columns`",
                )
        return value

    def _flag(self, key: str) -> bool:
        value = self._meta.get(key, False)
        if not isinstance(value, bool):
            self._invalid(key, "write true or false")
            return False
        return value

    def _interval(self, key: str, default: timedelta | None) -> timedelta | None:
        if key not in self._meta:
            return default
        value = self._meta[key]
        if value is None or str(value).lower() == "none":
            return None
        try:
            return parse_interval(str(value))
        except ValueError as error:
            self._refuse(
                "SOURCE_VALUE_INVALID",
                ("meta", key),
                f"found {error}",
                "write an interval such as `1 hour`, `90 minutes` or `7 days`, or none",
            )
            return default

    def _count(self, key: str) -> int | None:
        value = self._meta.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self._invalid(key, "write a whole number above zero")
            return None
        return int(value)

    def _check_columns(self) -> None:
        seen: dict[str, str] = {}
        for name, column in self._columns.items():
            path = ("columns", name)
            if name.lower() in RESERVED_COLUMNS:
                self._refuse(
                    "SOURCE_COLUMN_RESERVED",
                    path,
                    f"found column {name}",
                    f"landing adds {', '.join(RESERVED_COLUMNS)} itself: do not declare them",
                )
            elif _INTERNAL_COLUMN.fullmatch(name.lower()):
                self._refuse(
                    "SOURCE_COLUMN_RESERVED",
                    path,
                    f"found column {name}",
                    "landing works with a column of this name: choose another",
                )
            elif not IDENTIFIER.fullmatch(name):
                self._refuse(
                    "SOURCE_COLUMN_INVALID",
                    path,
                    f"found {name!r}",
                    "use letters, digits and _, and do not start with a digit",
                )
            if name.lower() in seen:
                self._refuse(
                    "SOURCE_COLUMN_INVALID",
                    path,
                    f"found {name} beside {seen[name.lower()]}",
                    "Spark does not tell columns apart by case: keep one of them",
                )
            seen[name.lower()] = name
            self._check_type(column)
        if not self._columns:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                ("columns",),
                "no columns",
                "declare each column with its data_type: they are the schema",
            )

    def _check_type(self, column: Column) -> None:
        path = ("columns", column.name, "data_type")
        if not column.data_type:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                path,
                "no data_type",
                "declare a Spark type: string, bigint, decimal(10,2), timestamp, array<...>",
            )
            return
        try:
            parse_type(column.data_type)
        except TypeSyntaxError as error:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                path,
                f"{column.data_type}: {error}{nearest(error.word.lower(), TYPE_WORDS)}",
                "declare a Spark type: string, bigint, decimal(10,2), timestamp, array<...>",
            )

    def _check_together(self, spec: StreamSpec, event_time: str | None) -> None:
        if spec.keys and not spec.sequence_by and "sequence_by" not in self._meta:
            self._refuse(
                "SOURCE_KEYS_INCOMPLETE",
                ("meta", "keys"),
                "keys without sequence_by",
                "name the columns that say which of two versions of a row is newer",
            )
        for key in ("sequence_by", "apply_as_deletes", "event_time_is_fixed"):
            if self._meta.get(key) and "keys" not in self._meta:
                self._refuse(
                    "SOURCE_KEYS_INCOMPLETE",
                    ("meta", key),
                    f"{key} without keys",
                    f"name the key columns under `keys`, or leave {key} out",
                )
        if spec.max_files_per_trigger and spec.max_bytes_per_trigger:
            self._refuse(
                "SOURCE_LIMITS_CONFLICT",
                ("meta", "max_bytes_per_trigger"),
                "max_files_per_trigger and max_bytes_per_trigger",
                "Spark takes one of the two: remove one",
            )
        if event_time is not None:
            self._check_event_time(event_time)
        for key in ("event_time_is_fixed", "max_age"):
            if event_time is None and self._meta.get(key):
                self._refuse(
                    "SOURCE_VALUE_INVALID",
                    ("meta", key),
                    f"{key}, but the source has no event_time",
                    f"add `event_time: <column>` to the source's config, or leave {key} out",
                )

    def _check_event_time(self, event_time: str) -> None:
        if event_time not in self._columns:
            self._refuse(
                "SOURCE_COLUMN_UNKNOWN",
                ("event_time",),
                f"found column {event_time}{nearest(event_time, self._columns)}",
                "name a declared column of type timestamp",
            )
            return
        kind = self._columns[event_time].data_type
        if kind and _outer(kind) not in ("timestamp", "timestamp_ltz", "timestamp_ntz", "date"):
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                ("event_time",),
                f"found column {event_time} of type {kind}",
                "name a column of type timestamp",
            )


def _place(where: Where | str) -> Where:
    if isinstance(where, Where):
        return where
    file, _, node = where.partition(": ")
    return Where(file, node)


def _outer(data_type: str) -> str:
    return re.split(r"[<(\s]", data_type.strip().lower(), maxsplit=1)[0]


def _node_lines(text: str, *steps: tuple[str, str]) -> dict[tuple[str, ...], int]:
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return {}
    for group, name in steps:
        node = _named(_child(node, group), name)
    if node is None:
        return {}
    lines: dict[tuple[str, ...], int] = {(): node.start_mark.line + 1}
    for column in getattr(_child(node, "columns"), "value", []):
        name_node = _child(column, "name")
        if name_node is not None:
            lines["columns", str(name_node.value)] = column.start_mark.line + 1
    config = _child(node, "config")
    for place in (node, config):
        for key, value in _pairs(place):
            lines.setdefault((key.value,), key.start_mark.line + 1)
            if key.value == "meta":
                lines |= _meta_lines(value)
    return lines


def _meta_lines(meta: yaml.Node) -> dict[tuple[str, ...], int]:
    lines: dict[tuple[str, ...], int] = {}
    for key, value in _pairs(meta):
        if key.value == "livemart":
            lines["meta",] = key.start_mark.line + 1
            for inner, _ in _pairs(value):
                lines["meta", str(inner.value)] = inner.start_mark.line + 1
    return lines


def _pairs(node: yaml.Node | None) -> list[tuple[Any, Any]]:
    return list(node.value) if isinstance(node, yaml.MappingNode) else []


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    return next((value for key, value in _pairs(node) if key.value == name), None)


def _named(node: yaml.Node | None, name: str) -> yaml.Node | None:
    for item in node.value if isinstance(node, yaml.SequenceNode) else []:
        found = _child(item, "name")
        if found is not None and found.value == name:
            return item  # type: ignore[no-any-return]
    return None
