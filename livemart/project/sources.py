"""Reads `config.meta.livemart` of a source: how its records arrive.

Used when the manifest is read. Every mistake is reported at once, with its file, line and the
nearest valid word.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from functools import cache, partial
from importlib.metadata import entry_points
from pathlib import Path, PurePosixPath
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

from livemart.errors import ConfigError, first_lines, nearest
from livemart.intervals import parse_interval
from livemart.project.declared_columns import DeclaredColumns, outer_type
from livemart.project.graph import (
    Arrival,
    Column,
    EnvelopeOptions,
    Format,
    RecordRules,
    RowRules,
    StreamSpec,
)
from livemart.project.landing_columns import ENVELOPE_COLUMNS, OPERATION, SEQUENCE
from livemart.project.record_logs.avro_schemas import (
    SCHEMA_KEYS,
    SECRETS_KEY,
    read_avro_schemas,
    read_registry_secrets,
)
from livemart.project.record_logs.message_parts import TOMBSTONE, read_message_parts
from livemart.project.record_logs.options import frozen_option
from livemart.project.spark_types import SparkType
from livemart.project.yaml_places import Mistakes, Where, place_of

FORMATS: tuple[str, ...] = get_args(Format)
# The one column of a source of lines.
TEXT_COLUMN = "line"
# Where records come from: the landing folder, or a record log of a kind that a package offers.
FILES_KIND = "files"
SOURCE_KINDS_GROUP = "livemart.sources"
_OF_FILES = ("path", "max_files_per_trigger", "max_bytes_per_trigger")
_OF_LOGS = ("options", "message", "after_loss", *SCHEMA_KEYS, SECRETS_KEY)
_LIMITS = ("max_files_per_trigger", "max_bytes_per_trigger", "max_records_per_trigger")
# Formats in which a message can hold one whole record.
_LOG_FORMATS = ("json", "text", "csv", "avro")
_KEYS = tuple(field.name for part in (Arrival, RecordRules, RowRules) for field in fields(part))
_OPTIONS = tuple(field.name for field in fields(EnvelopeOptions))
# With these a timestamp's unit depends on the digits of its column in the database.
_ADAPTIVE = ("adaptive", "adaptive_time_microseconds")
_TIMESTAMPS = frozenset({"timestamp", "timestamp_ntz"})


def parse_source_spec(
    meta: object,
    columns: Sequence[Column],
    where: Where | str,
    *,
    event_time: str | None = None,
    root: Path = Path(),
) -> tuple[StreamSpec | None, list[ConfigError]]:
    """Return the checked specification of a stream and every mistake in it.

    Args:
        meta: value of `config.meta.livemart`.
        where: place of the source table, for messages; a string is file and node in one.

    Returns:
        The specification (None if there are mistakes) and all mistakes. Codes:
        SOURCE_NOT_A_MAPPING, SOURCE_KEY_UNKNOWN, SOURCE_VALUE_INVALID, SOURCE_COLUMN_UNKNOWN,
        SOURCE_COLUMN_RESERVED, SOURCE_COLUMN_INVALID, SOURCE_KEYS_INCOMPLETE,
        SOURCE_LIMITS_CONFLICT.
    """
    mistakes = Mistakes(place_of(where))
    if not isinstance(meta, Mapping):
        hint = "write keys below it, at least `path: orders/*.jsonl`"
        mistakes.refuse("SOURCE_NOT_A_MAPPING", ("meta",), f"found {meta!r}", hint)
        return None, mistakes.errors
    spec = _Reader(meta, columns, mistakes, root).read(event_time)
    return (None if mistakes.errors else spec), mistakes.errors


class _Reader:
    """Reads one `meta.livemart` and collects its mistakes."""

    def __init__(
        self, meta: Mapping[Any, Any], columns: Sequence[Column], mistakes: Mistakes, root: Path
    ) -> None:
        self._meta = meta
        self._root = root
        self._columns = DeclaredColumns(columns, mistakes)
        self._mistakes = mistakes
        self._refuse = mistakes.refuse

    def read(self, event_time: str | None) -> StreamSpec:
        hint = f"the keys are {', '.join(_KEYS)}"
        self._mistakes.refuse_unknown("SOURCE_KEY_UNKNOWN", self._meta, _KEYS, hint)
        self._columns.check()
        plain = partial(_plain_values, self._meta, self._refuse_value)
        kinds = (FILES_KIND, *_log_kinds(tuple(sys.path)))
        arrival = Arrival(**plain(Arrival, kind=kinds))
        is_of_files = arrival.kind == FILES_KIND
        arrival = replace(
            arrival, path=self._path() if is_of_files else "", options=self._options()
        )
        rules = RecordRules(**plain(RecordRules, format=FORMATS if is_of_files else _LOG_FORMATS))
        envelope, message = rules.envelope, self._message()
        avro_schema, schema_registry, registry_secrets = self._avro_schemas(
            arrival.kind, rules.format
        )
        record_rules = replace(
            rules,
            envelope_options=self._envelope_options(envelope, rules.format),
            message=message,
            avro_schema=avro_schema,
            schema_registry=schema_registry,
            registry_secrets=registry_secrets,
        )
        row_rules = RowRules(
            **plain(RowRules),
            keys=self._column_list("keys"),
            sequence_by=self._sequence_by(envelope),
            apply_as_deletes=self._deletes(envelope, message),
            max_future=self._interval("max_future", timedelta(hours=1)),
            horizon=self._interval("horizon", None),
            lateness=self._lateness(),
        )
        spec = StreamSpec(arrival, record_rules, row_rules)
        self._check_together(spec, event_time)
        return spec

    def _refuse_value(self, key: str, finding: str, hint: str) -> None:
        self._refuse("SOURCE_VALUE_INVALID", ("meta", key), finding, hint)

    def _invalid(self, key: str, hint: str) -> None:
        self._refuse_value(key, f"found {self._meta[key]!r}", hint)

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
        if "**" in value:
            self._invalid("path", "one * stands for the names of one folder: orders/*/*.jsonl")
            return ""
        if any(part.startswith((".", "_")) for part in parts):
            self._invalid("path", "names that start with . or _ are never read: choose another")
            return ""
        return "/".join(parts)

    def _options(self) -> tuple[tuple[str, Any], ...]:
        value = self._meta.get("options", {})
        if not isinstance(value, Mapping):
            self._refuse_option("found no mapping")
            return ()
        options: dict[str, Any] = {}
        for name, option in value.items():
            try:
                options[str(name)] = frozen_option(option)
            except TypeError as error:
                # Its value is not shown: it may be a secret.
                self._refuse_option(f"{name}: found {error}")
        return tuple(sorted(options.items()))

    def _refuse_option(self, finding: str) -> None:
        self._refuse_value(
            "options",
            finding,
            "write names with a text, a number, true or false each, or lists and names of such",
        )

    def _avro_schemas(
        self, kind: str, record_format: str
    ) -> tuple[str | None, str | None, tuple[tuple[str, str], ...]]:
        if kind == FILES_KIND:
            return None, None, ()
        refuse, meta = self._refuse_value, self._meta
        schemas = read_avro_schemas(meta, record_format == "avro", self._root, refuse)
        return *schemas, read_registry_secrets(meta.get(SECRETS_KEY), schemas[1], refuse)

    def _message(self) -> tuple[tuple[str, str], ...]:
        refuse = partial(self._refuse_value, "message")
        return read_message_parts(self._meta.get("message", {}), self._columns, refuse)

    def _column_list(self, key: str) -> tuple[str, ...]:
        value = self._meta.get(key, [])
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            self._invalid(key, "write a list of column names")
            return ()
        if key in self._meta and not names:
            self._invalid(key, f"name at least one column, or leave {key} out")
        for name in names:
            self._columns.require_ordered(name, ("meta", key))
        if len(set(names)) < len(names):
            self._invalid(key, "name each column once")
        return tuple(names)

    def _sequence_by(self, envelope: str | None) -> tuple[str, ...]:
        """Return the declared columns; with an envelope the position that each record names."""
        if envelope is None:
            return self._column_list("sequence_by")
        if "sequence_by" in self._meta:
            self._invalid("sequence_by", f"leave it out: {envelope} says which change is newer")
        return (SEQUENCE,) if "keys" in self._meta else ()

    def _deletes(self, envelope: str | None, message: Sequence[tuple[str, str]]) -> str | None:
        """Return the declared condition; a record that calls itself a delete is one as well."""
        condition = self._condition()
        if "keys" not in self._meta:
            return condition
        if envelope is not None:
            of_record = f"{OPERATION} = 'd'"
        elif (column := dict(message).get(TOMBSTONE)) is not None:
            of_record = f"`{column}` = true"
        else:
            return condition
        return of_record if condition is None else f"{of_record} or ({condition})"

    def _envelope_options(self, envelope: str | None, record_format: str) -> EnvelopeOptions:
        """Return how the records' values are written; every mistake is noted."""
        value = self._meta.get("envelope_options", {})
        if not isinstance(value, Mapping):
            self._invalid("envelope_options", "write names with values: `{schemas: true}`")
            return EnvelopeOptions()
        if envelope is None:
            if value:
                self._invalid("envelope_options", "say `envelope: debezium`, or leave it out")
            return EnvelopeOptions()
        # A record of Avro is never without its schema.
        is_typed = record_format == "avro"
        return _EnvelopeReader(value, self._columns, self._refuse, is_typed).read()

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
            self._refuse_value(
                "apply_as_deletes",
                f"found {value!r}: {first_lines(error)}",
                "write a SQL condition on the row: \"op = 'd'\"",
            )
            return None
        if tree.find(exp.Query, exp.AggFunc, exp.Window):
            self._invalid("apply_as_deletes", "use only columns of the row itself")
        for column in tree.find_all(exp.Column):
            name = str(column.parts[0].name)
            if name.lower() not in (declared.lower() for declared in self._columns.by_name):
                self._refuse(
                    "SOURCE_COLUMN_UNKNOWN",
                    ("meta", "apply_as_deletes"),
                    f"found column {name}{nearest(name, self._columns.by_name)}",
                    "use columns that are declared under `columns`",
                )
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
            self._refuse_value(
                key,
                f"found {error}",
                "write an interval such as `1 hour`, `90 minutes` or `7 days`, or none",
            )
            return default

    def _lateness(self) -> timedelta | Literal["measured"] | None:
        if self._meta.get("lateness") == "measured":
            return "measured"
        return self._interval("lateness", None)

    def _check_together(self, spec: StreamSpec, event_time: str | None) -> None:
        self._check_keys(spec.row_rules)
        self._check_arrival(spec.arrival)
        self._check_records(spec.record_rules, spec.arrival)
        if event_time is not None:
            self._check_event_time(event_time)
        for key in ("event_time_is_fixed", "horizon", "lateness"):
            if event_time is None and self._meta.get(key):
                self._refuse_value(
                    key,
                    f"{key}, but the source has no event_time",
                    f"add `event_time: <column>` to the source's config, or leave {key} out",
                )

    def _check_keys(self, rules: RowRules) -> None:
        if rules.keys and not rules.sequence_by and "sequence_by" not in self._meta:
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

    def _check_arrival(self, arrival: Arrival) -> None:
        for key in _OF_LOGS if arrival.kind == FILES_KIND else _OF_FILES:
            if key in self._meta:
                self._refuse_value(
                    key, f"{key}, but the source is of kind {arrival.kind}", f"leave {key} out"
                )
        limits = [key for key in _LIMITS if self._meta.get(key)]
        if arrival.kind == FILES_KIND and len(limits) > 1:
            self._refuse(
                "SOURCE_LIMITS_CONFLICT",
                ("meta", limits[-1]),
                " and ".join(limits),
                f"Spark takes one limit: keep one of {', '.join(_LIMITS)}",
            )

    def _check_records(self, rules: RecordRules, arrival: Arrival) -> None:
        formats = ("json",) if arrival.kind == FILES_KIND else ("json", "avro")
        if rules.envelope is not None and rules.format not in formats:
            self._refuse_value(
                "envelope",
                f"envelope, but the records are of format {rules.format}",
                f"write `format: {' or '.join(formats)}`, or leave envelope out",
            )
        if rules.format == "text" and list(self._columns.by_name) != [TEXT_COLUMN]:
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                ("columns",),
                f"found columns {', '.join(self._columns.by_name) or 'none'} of lines of text",
                f"declare the one column {TEXT_COLUMN}: SQL takes it apart",
            )

    def _check_event_time(self, event_time: str) -> None:
        if event_time not in self._columns.by_name:
            self._refuse(
                "SOURCE_COLUMN_UNKNOWN",
                ("event_time",),
                f"found column {event_time}{nearest(event_time, self._columns.by_name)}",
                "name a declared column of type timestamp",
            )
            return
        kind = self._columns.by_name[event_time].data_type
        if kind and outer_type(kind) not in ("timestamp", "timestamp_ltz", "timestamp_ntz", "date"):
            self._refuse(
                "SOURCE_COLUMN_INVALID",
                ("event_time",),
                f"found column {event_time} of type {kind}",
                "name a column of type timestamp",
            )


@dataclass(eq=False)
class _EnvelopeReader:
    """Reads `envelope_options`, and finds columns for which an option is missing."""

    options: Mapping[Any, Any]
    columns: DeclaredColumns
    refuse_at: Callable[..., None]
    is_typed: bool

    def read(self) -> EnvelopeOptions:
        for key in self.options:
            if key not in _OPTIONS:
                self._refuse(
                    f"found {key}{nearest(str(key), _OPTIONS)}",
                    f"the options are {', '.join(_OPTIONS)}",
                )
        options = EnvelopeOptions(
            **_plain_values(self.options, self._refuse_value, EnvelopeOptions),
            table=self._table(),
            timestamp_digits=self._digits(),
        )
        self._check_columns(options)
        return options

    def _refuse(self, finding: str, hint: str) -> None:
        self.refuse_at("SOURCE_VALUE_INVALID", ("meta", "envelope_options"), finding, hint)

    def _refuse_value(self, key: str, finding: str, hint: str) -> None:
        of_connector = "" if key == "schemas" else ", as the connector's own setting"
        self._refuse(finding.replace("found", f"found {key}", 1), hint + of_connector)

    def _table(self) -> str | None:
        value = self.options.get("table")
        if value is None or (isinstance(value, str) and value):
            return value
        self._refuse(f"found table {value!r}", "write its name, as public.orders")
        return None

    def _digits(self) -> tuple[tuple[str, int], ...]:
        value = self.options.get("timestamp_digits", {})
        digits_by_column = value if isinstance(value, Mapping) else {"*": value}
        for column, digits in digits_by_column.items():
            if isinstance(digits, bool) or not isinstance(digits, int) or not 0 <= digits <= 9:
                self._refuse(
                    f"found timestamp_digits {digits!r}",
                    "write a number from 0 to 9, or one for each column",
                )
                return ()
            if column != "*" and column not in self.columns.by_name:
                self._refuse(
                    f"found column {column}{nearest(str(column), self.columns.by_name)}",
                    "name declared columns under timestamp_digits",
                )
        return tuple(sorted((str(column), digits) for column, digits in digits_by_column.items()))

    def _check_columns(self, options: EnvelopeOptions) -> None:
        reserved = {name.lower() for name in ENVELOPE_COLUMNS}
        for name in self.columns.by_name:
            if name.lower() in reserved:
                self.refuse_at(
                    "SOURCE_COLUMN_RESERVED",
                    ("columns", name),
                    f"found column {name}",
                    f"landing adds {', '.join(ENVELOPE_COLUMNS)} itself: do not declare them",
                )
        if options.schemas or self.is_typed:
            return
        for name, kind in self.columns.types().items():
            words = {part.name for part in kind.walk()}
            if "decimal" in words and options.decimal_handling is None:
                self._option_missing(
                    name, kind, "decimal_handling", "as the connector's own setting"
                )
            if words & {*_TIMESTAMPS, "date"} and options.time_precision is None:
                self._option_missing(name, kind, "time_precision", "as the connector's own setting")
            is_adaptive = options.time_precision in _ADAPTIVE
            if words & _TIMESTAMPS and is_adaptive and options.digits_of(name) is None:
                hint = "a plain timestamp of PostgreSQL has 6, a datetime of MySQL 0"
                self._option_missing(name, kind, "timestamp_digits", hint)

    def _option_missing(self, name: str, kind: SparkType, option: str, hint: str) -> None:
        self._refuse(
            f"no {option}, and column {name} is of type {kind}",
            f"add {option} ({hint}), or `schemas: true` if each record holds its schema",
        )


def _plain_values(
    given: Mapping[Any, Any],
    refuse: Callable[[str, str, str], None],
    part: type,
    **words_of: Sequence[str],
) -> dict[str, Any]:
    """Return the given values of those fields of a dataclass that hold a word, a flag or a count.

    Args:
        given: values by name.
        refuse: is called with each mistake: the name, the value, what should be there.
        part: the dataclass; what is not given, or wrong, has its default.
        words_of: the words of a field, if its type does not list them.
    """
    values: dict[str, Any] = {}
    for name, kind in get_type_hints(part).items():
        words = words_of.get(name) or _words_in(kind)
        if name not in given or not (words or kind in (bool, int | None)):
            continue
        value = given[name]
        if words:
            is_right, hint = value in words, f"write one of {', '.join(words)}"
        elif kind is bool:
            is_right, hint = isinstance(value, bool), "write true or false"
        else:
            is_right = value is None or (type(value) is int and value > 0)
            hint = "write a whole number above zero"
        if is_right:
            values[name] = value
        else:
            refuse(name, f"found {value!r}{nearest(str(value), words)}", hint)
    return values


def _words_in(kind: Any) -> tuple[str, ...]:
    """Return the words that are all that a type allows, besides None."""
    parts = get_args(kind)
    if parts and all(isinstance(part, str) for part in parts):
        return parts
    of_parts = [_words_in(part) for part in parts if part is not NoneType]
    return of_parts[0] if len(of_parts) == 1 else ()


@cache
def _log_kinds(places: tuple[str, ...]) -> tuple[str, ...]:
    """Return the kinds of record logs that installed packages offer, sorted.

    Args:
        places: where Python finds packages: all of them are looked into, which takes some ms.
    """
    return tuple(sorted({entry.name for entry in entry_points(group=SOURCE_KINDS_GROUP)}))
