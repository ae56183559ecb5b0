"""Reads an operator's settings: flags, then `LIVEMART_*`, `livemart.yml`, and the defaults.

Used by every command. Everything is validated once, before anything runs, and all mistakes are
reported together.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

from livemart.epoch import parse_moment
from livemart.errors import ConfigError, ConfigErrors, nearest
from livemart.extras import install_hint, missing_modules
from livemart.intervals import parse_interval
from livemart.storage.access import check_access
from livemart.storage.location import Location, machine_folder

_PREFIX = "LIVEMART_"
_FILE = "livemart.yml"
_PATHS = ("project_dir", "profiles_dir", "target_path", "warehouse", "landing", "jars", "state")


_NO_MAPPING = "write a YAML mapping, such as 'name: value' or '{name: value, list: [1, 24]}'"


def _read_interval(value: object) -> object:
    return parse_interval(value) if isinstance(value, str) else value


def _read_instant(value: object) -> object:
    """Without a zone an instant is UTC, as in landed records."""
    if isinstance(value, str):
        try:
            return parse_moment(value).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError(
                "write a time, such as 2026-03-01T12:00; it is UTC without a zone"
            ) from None
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return value


def _read_mapping(value: object) -> object:
    """dbt's `--vars` is a YAML mapping in a string."""
    if not isinstance(value, str):
        return value
    try:
        loaded = yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ValueError(_NO_MAPPING) from error
    if loaded is not None and not isinstance(loaded, dict):
        raise ValueError(_NO_MAPPING)
    return loaded or {}


def _read_properties(value: object) -> object:
    """Return names and values of Spark's properties, as Spark writes them."""
    properties = _read_mapping(value)
    if not isinstance(properties, dict):
        raise ValueError(_NO_MAPPING)
    texts = {}
    for name, value in properties.items():
        if not isinstance(value, str | int | float):
            raise ValueError(f"write a text, a number, true or false for {name}")
        texts[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def _check_properties(properties: dict[str, str]) -> dict[str, str]:
    for name in properties:
        if not name.startswith("spark."):
            raise ValueError(
                f"write names of Spark's properties, such as spark.executor.memory; found {name!r}"
            )
        if other := _OTHER_SETTINGS.get(name):
            raise ValueError(f"leave out {name}: set `{other}` instead")
        if _OWN_PROPERTIES.match(name):
            raise ValueError(
                f"leave out {name}: livemart sets it, as rows or access depend on it; what is "
                "special to the project's SQL belongs in the profile or in a hook"
            )
    return properties


def _read_place(value: object) -> object:
    """Return a path of a disk, or the location that a URL names."""
    return Location.parse(value).place if isinstance(value, str) else value


def _check_place(place: Path | Location) -> Path | Location:
    if isinstance(place, Path):
        return _check_folder(place)
    try:
        check_access(place, os.environ)
    except ConfigError as error:
        raise ValueError(error.hint) from None
    return place


def _check_landing(place: Path | Location) -> Path | Location:
    if isinstance(place, Location) and ":" in place.path:
        raise ValueError("take a folder without ':' in its path: Spark finds no file below it")
    return _check_place(place)


def _check_warehouse(place: Path | Location) -> Path | Location:
    """deltalake 1.6 makes another URL of a path with such signs: of another folder, or of none."""
    place = _check_place(place)
    if sign := _UNREAD_IN_URLS.search(str(place)):
        raise ValueError(
            f"take a folder without {sign[0]!r} in its path: deltalake reads that as another path"
        )
    return place


def _check_folder(place: Path) -> Path:
    """Refuse a file here, before a command stumbles over it on its way."""
    if os.path.isfile(place):
        raise ValueError("name a folder: a file of this name exists")
    return place


def _refuse_url(value: object) -> object:
    """pydantic would take it for a folder below the working one."""
    if _is_url(value):
        raise ValueError("name a folder of this machine: no URL but of warehouse and landing")
    return value


def _is_url(value: object) -> bool:
    return isinstance(value, str) and "://" in value


def _check_networks(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        try:
            ip_network(name)
        except ValueError:
            raise ValueError(
                f"write addresses or networks, such as 10.0.0.5 or 10.0.0.0/24; found {name!r}"
            ) from None
    return names


def _check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise ValueError(
                f"write origins, such as https://shop.example.com, in lower case and without a "
                f"path; found {origin!r}"
            )
    return origins


def _check_state(folder: Path | None) -> Path | None:
    if folder is not None and not (folder / "manifest.json").is_file():
        raise ValueError(
            "name a folder that holds the manifest.json of an earlier run, such as a copy of target"
        )
    return folder


def _read_words(value: object) -> object:
    return tuple(value.split()) if isinstance(value, str) else value


def _read_store(value: object) -> object:
    """`postgresql://` alone would ask SQLAlchemy for another driver than the one installed."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text.lower() == "none":
        return "none"
    if not _STORE.fullmatch(text):
        raise ValueError(
            "write sqlite:///path/to/file.db, postgresql://user@host/database, or none"
        )
    if missing_modules("serve"):
        raise ValueError(f"{install_hint('serve')}, or write none")
    return text.replace("postgresql://", "postgresql+psycopg://", 1)


# Spark's properties that other settings give, and those that rows depend on.
_OTHER_SETTINGS = {
    "spark.master": "master",
    "spark.driver.memory": "memory",
    "spark.jars.packages": "spark.jars",
}
_OWN_PROPERTIES = re.compile(
    r"spark\.(?:sql|databricks|delta|ui|hadoop\.parquet)\.|"
    r"spark\.hadoop\.fs\.s3a\.(?:bucket\.[^.]+\.)?(?:endpoint|path\.style|input\.stream)|"
    r"spark\.executorEnv\.AWS_|"
    r"spark\.(?:buffer\.pageSize|driver\.extraClassPath|driver\.extraJavaOptions)$"
)
_STORE = re.compile(r"sqlite:///.+|postgresql(\+psycopg)?://.+")
_SQLITE = "sqlite:///"
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^@\s]*@")

# As a browser writes it: no wildcard, which would name every page.
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?|https?://\[[0-9a-f:]+\](:[0-9]+)?")
# Escapes that are decoded in any spelling, characters that no host may hold, and those of no text.
_UNREAD_IN_URLS = re.compile(r"%[0-9A-Fa-f]{2}|[\[\]^|\\\x00-\x1f\x7f\ud800-\udfff]")

Interval = Annotated[timedelta, BeforeValidator(_read_interval)]
Words = Annotated[tuple[str, ...], BeforeValidator(_read_words)]
LocalPath = Annotated[Path, BeforeValidator(_refuse_url), AfterValidator(_check_folder)]
FolderPlace = Annotated[
    Path | Location, BeforeValidator(_read_place), PlainSerializer(str, when_used="json")
]


_WORDS = ("select", "exclude")


@dataclass(frozen=True, slots=True)
class Selection:
    """Words of dbt's, or the name of a selector in `selectors.yml`; all nodes if there are none.

    `state`: folder of an earlier `manifest.json`, which the method `state:` compares with.
    """

    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    selector: str | None = None
    state: Path | None = None

    def __bool__(self) -> bool:
        return bool(self.select or self.exclude or self.selector)

    def __str__(self) -> str:
        return " ".join(self.arguments)

    @property
    def arguments(self) -> list[str]:
        """The flags that say the same to a command.

        >>> Selection(("+orders", "tag:new"), ("customers",)).arguments
        ['--select', '+orders', 'tag:new', '--exclude', 'customers']
        """
        words_by_flag = {
            "--select": self.select,
            "--exclude": self.exclude,
            "--selector": (self.selector,) if self.selector else (),
            "--state": (str(self.state),) if self.state and self else (),
        }
        return [word for flag, words in words_by_flag.items() if words for word in (flag, *words)]


def selection_empty(selection: Selection, why: str) -> ConfigError:
    """Return the error of a selection that leaves nothing to do."""
    return ConfigError(
        "SELECTION_EMPTY",
        f"{selection}: {why}",
        hint="write +name for a model with all that it reads, or name+ for a node with all that "
        "read it; `livemart plan` lists all models",
    )


class Settings(BaseModel):
    """All settings of one run; paths are absolute, times UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)

    project_dir: LocalPath = Path(".")
    profiles_dir: LocalPath | None = None
    target_path: LocalPath | None = None
    warehouse: Annotated[FolderPlace, AfterValidator(_check_warehouse)] = Path("warehouse")
    landing: Annotated[FolderPlace, AfterValidator(_check_landing)] = Path("landing")
    jars: LocalPath | None = None
    target: str | None = None
    vars: Annotated[dict[str, Any], BeforeValidator(_read_mapping)] = Field(default_factory=dict)
    select: Words = ()
    exclude: Words = ()
    selector: Annotated[str, Field(min_length=1)] | None = None
    state: Annotated[LocalPath | None, AfterValidator(_check_state)] = None
    as_of: Annotated[datetime | None, BeforeValidator(_read_instant)] = None
    clock: Literal["wall", "event_time"] = "wall"
    pane: Interval = timedelta(minutes=5)
    every: Interval = timedelta(minutes=5)
    master: str = "local[*]"
    memory: Annotated[str, Field(pattern=r"^\d+[mg]$")] = "3g"
    # May hold secrets: no message, log or repr shows values; `env` hands them over to dbt.
    spark_conf: Annotated[
        dict[str, str], BeforeValidator(_read_properties), AfterValidator(_check_properties)
    ] = Field(default_factory=dict, repr=False)
    cache: Annotated[str, Field(pattern=r"^\d+[mg]$")] | None = None
    lane: Literal["auto", "small", "large"] = "auto"
    small_lane_rows: Annotated[int, Field(gt=0)] = 100_000
    threads: Annotated[int, Field(ge=1, le=64)] = 2
    attempts: Annotated[int, Field(ge=1, le=100)] = 3
    stop_timeout: Interval = timedelta(seconds=60)
    # May hold a password: never shown by repr.
    store: Annotated[str | None, BeforeValidator(_read_store)] = Field(default=None, repr=False)
    retention: Interval = timedelta(days=7)
    change_retention: Interval | None = None
    tenant_column: Annotated[str | None, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] = None
    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535)] = 8000
    public_url: Annotated[str | None, Field(pattern=r"^https?://[^/\s]+$")] = None
    error_base_url: Annotated[str, Field(pattern=r"^https?://\S+$")] = (
        "https://livemart.example/errors#"
    )
    http_ingest: bool = False
    cors_origins: Annotated[Words, AfterValidator(_check_origins)] = ()
    trusted_proxies: Annotated[Words, AfterValidator(_check_networks)] = ("127.0.0.1", "::1")
    address_connections: Annotated[int, Field(ge=1)] = 1_000
    caller_pulls: Annotated[int, Field(ge=1)] = 2
    caller_waiting_pulls: Annotated[int, Field(ge=0)] = 100
    caller_rows: Annotated[int, Field(ge=1)] = 6_000_000
    caller_streams: Annotated[int, Field(ge=1)] = 200
    session_hours: Annotated[int, Field(ge=1, le=24 * 365)] = 12
    # A secret: never shown, neither by repr nor when it is wrong.
    session_key: Annotated[str | None, Field(min_length=32, repr=False)] = None
    log_format: Literal["text", "json"] = "text"
    debug: bool = False

    @property
    def selection(self) -> Selection:
        return Selection(self.select, self.exclude, self.selector, self.state)

    @property
    def cache_bytes(self) -> int | None:
        """Bytes of memory for rows of data files; None: by the machine."""
        if self.cache is None:
            return None
        return int(self.cache[:-1]) << (30 if self.cache.endswith("g") else 20)

    @property
    def farthest(self) -> Path | Location:
        """The warehouse, or the landing folder if that alone is in a bucket.

        Spark needs the access that it asks for: all buckets are of one store.
        """
        places = (self.warehouse, self.landing)
        return next((it for it in places if isinstance(it, Location)), self.warehouse)

    @property
    def kept_changes(self) -> timedelta:
        """How long the changes of served models are kept: unless set, a day within `retention`."""
        usual = min(self.retention, timedelta(hours=24))
        return usual if self.change_retention is None else self.change_retention

    @property
    def store_url(self) -> str | None:
        """Where the serving store is, as SQLAlchemy writes it; None if nothing is served.

        Without the extra `serve` nothing is.
        """
        if self.store == "none" or missing_modules("serve"):
            return None
        return self.store or f"sqlite:///{machine_folder(self.warehouse) / 'serving.db'}"


# Read by other parts of the program, never settings of a run.
_OTHER_VARIABLES = frozenset({"DBT", "FAILPOINT", "JVM_OPTIONS", "OWN_FAULTS", "SPARK_LOG"})


def load_settings(
    flags: Mapping[str, object],
    *,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Return the settings of this run.

    Args:
        flags: what the command line gave, by field name; None means not given.
        environ: the environment; the process's own if None.
        directory: what relative paths of flags and environment start from; the working folder
            if None. Those of `livemart.yml` start from its own folder, the project's.

    Raises:
        ConfigErrors: every UNKNOWN_SETTING and WRONG_SETTING at once.
    """
    environ = os.environ if environ is None else environ
    directory = directory.absolute() if directory else _working_folder()
    given = {name: value for name, value in flags.items() if value is not None}
    variables = {
        name.removeprefix(_PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(_PREFIX)
    }
    errors = _unknown_variables(variables)
    # A path that is empty is none, as compose files and unit files write it.
    variables = {
        name: text
        for name, text in variables.items()
        if name in Settings.model_fields and (text or name not in _PATHS)
    }
    project_dir = directory / str(given.get("project_dir") or variables.get("project_dir") or ".")
    in_file, lines = _read_file(project_dir / _FILE, errors)

    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for name, value in in_file.items():
        values[name], origins[name] = value, f"{_FILE}:{lines.get(name, 1)}: {name}"
    if target_path := environ.get("DBT_TARGET_PATH"):
        values["target_path"], origins["target_path"] = target_path, "DBT_TARGET_PATH"
    _make_absolute(values, project_dir)
    for name, text in variables.items():
        values[name], origins[name] = text, f"{_PREFIX}{name.upper()}"
    for name, value in given.items():
        values[name], origins[name] = value, f"--{name.replace('_', '-')}"
    unnamed = {it for it in _PATHS if values.get(it) is None and Settings.model_fields[it].default}
    values |= {name: Settings.model_fields[name].default for name in unnamed}
    _make_absolute(values, directory)
    try:
        settings = Settings(**values)  # type: ignore[arg-type]
        # These hold what the user named, and no default that was made absolute.
        settings.model_fields_set.difference_update(unnamed)
    except ValidationError as error:
        errors += [_explain(detail, origins) for detail in error.errors()]
    if values.get("selector") and (beside := [it for it in _WORDS if values.get(it)]):
        # dbt would take the selector alone.
        errors.append(
            ConfigError(
                "WRONG_SETTING",
                f"{origins['selector']}: found {values['selector']!r} beside "
                + " and ".join(f"{origins[it]} {_spelled(values[it])}" for it in beside),
                hint="leave out one of them: a selector is a complete selection",
            )
        )
    if errors:
        raise ConfigErrors(errors)
    return settings


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise ConfigError(
            "WRONG_SETTING",
            "the working folder was removed, or moved away",
            hint="change to a folder that exists, such as that of the project",
        ) from None


def _spelled(words: object) -> str:
    return words if isinstance(words, str) else " ".join(map(str, words))  # type: ignore[call-overload]


def _unknown_variables(variables: Mapping[str, str]) -> list[ConfigError]:
    """Only near misses: other programs may own variables that begin like ours."""
    names = list(Settings.model_fields)
    return [
        ConfigError(
            "UNKNOWN_SETTING",
            f"environment: found {_PREFIX}{name.upper()}",
            hint=f"write {_PREFIX}{close[0].upper()}, or unset it",
        )
        for name in sorted(variables)
        if name not in names
        and name.upper() not in _OTHER_VARIABLES
        and (close := difflib.get_close_matches(name, names, n=1, cutoff=0.8))
    ]


def _read_file(path: Path, errors: list[ConfigError]) -> tuple[dict[str, object], dict[str, int]]:
    """Return the values of `livemart.yml` and the line of each; mistakes go to `errors`."""
    if not path.is_file():
        return {}, {}
    text = path.read_text(encoding="utf-8")
    try:
        values = yaml.safe_load(text) or {}
        node = yaml.compose(text)
    # ValueError: a day that no calendar has.
    except (yaml.YAMLError, ValueError) as error:
        message = " ".join(str(error).split())
        errors.append(ConfigError("WRONG_SETTING", f"{path}: {message}", hint="write valid YAML"))
        return {}, {}
    if not isinstance(values, dict):
        message = f"{path}:1: found {type(values).__name__}, not a mapping"
        errors.append(ConfigError("WRONG_SETTING", message, hint="write `name: value` lines"))
        return {}, {}
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    lines = {str(key.value): key.start_mark.line + 1 for key, _ in pairs}
    for key, value in pairs:
        # As a value of YAML a time is cut to microseconds, and 20260301 is a number.
        is_time = key.value == "as_of" and isinstance(value, yaml.ScalarNode)
        if is_time and values["as_of"] is not None:
            values["as_of"] = value.value
    return {str(name): value for name, value in values.items()}, lines


def _make_absolute(values: dict[str, object], start: Path) -> None:
    for name in _PATHS:
        if (value := values.get(name)) is not None and not _is_url(value):
            values[name] = Path(os.path.normpath(start / str(value)))
    store = values.get("store")
    if isinstance(store, str) and store.startswith(_SQLITE) and len(store) > len(_SQLITE):
        path = os.path.normpath(start / store.removeprefix(_SQLITE))
        values["store"] = f"{_SQLITE}{path}"


_SIZE = "write a size, such as 512m or 3g"
_HTTP = "write an address, such as https://sales.example.com"
_FORMS = {
    "memory": _SIZE,
    "cache": _SIZE,
    "tenant_column": "write the name of a column: letters, digits and underscores, no digit first",
    "public_url": f"{_HTTP}, without a path",
    "error_base_url": f"{_HTTP}/errors#",
}


def _explain(detail: Mapping[str, Any], origins: Mapping[str, str]) -> ConfigError:
    """Turn one finding of pydantic into place, value found, and the next step."""
    name = str(detail["loc"][0])
    where = origins.get(name, name)
    if detail["type"] == "extra_forbidden":
        words = sorted(Settings.model_fields)
        return ConfigError(
            "UNKNOWN_SETTING",
            f"{where}: unknown setting{nearest(name, words)}",
            hint=f"use one of {', '.join(words)}",
        )
    reason = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "string_pattern_mismatch":
        reason = _FORMS[name]
    value = detail["input"]
    value = str(value) if isinstance(value, Path) else value
    if name == "spark_conf" and isinstance(value, dict):
        value = ", ".join(map(str, value))
    elif name in ("session_key", "spark_conf"):
        value = f"{len(str(value))} characters"
    elif _is_url(value):
        # A query of a URL may hold a secret as well as its password does.
        value = str(value).partition("?")[0]
    message = _PASSWORD.sub(r"\1:***@", f"{where}: found {value!r}")
    expected = str(detail.get("ctx", {}).get("expected", ""))
    close = nearest(
        str(detail["input"]), expected.replace("'", "").replace(" or ", ", ").split(", ")
    )
    return ConfigError("WRONG_SETTING", f"{message}{close}", hint=reason[:1].lower() + reason[1:])
