"""Says which properties of Delta's tables a project may not set, and why.

Used when the project is read: for the `tblproperties` of its nodes, and for what its hooks and its
profile set. Every property that is not named here holds as Delta means it, with the same rows after
a refresh; docs/dbt.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from livemart.errors import ConfigError
from livemart.project.hooks.dbt_hooks import NOT_RENDERED, Hooks
from livemart.project.session_spec import bare_statement
from livemart.project.yaml_places import Mistakes, Where

# The prefix of properties that Spark gives to each new table of its session.
_DEFAULTS = "spark.databricks.delta.properties.defaults."
_FEATURE = "delta.feature."
_HINT = "leave it out; docs/dbt.md#properties-of-tables lists what a table may have"
_SETTING = re.compile(rf"set\s+`?({re.escape(_DEFAULTS)}[\w.\-]+)`?\s*=\s*(.*)", re.I | re.S)
_ALTERED = re.compile(
    r"(?:alter|create|replace)\b.*?(\bunset\s+)?\btblproperties\s*\((.*)\)", re.I | re.S
)
_PAIR = re.compile(r"['\"]?(delta\.[\w.\-]+)['\"]?\s*=?\s*['\"]?([^'\",)]*)", re.I)


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a property is refused, unless its value, in lower case, is one of `harmless`."""

    why: str
    harmless: frozenset[str] = frozenset({"false"})


_MAPPED = "the columns of its files get other names, so a reader of the files finds NULL in them"
_OF_CATALOGS = "its commits are kept by a catalog, and a warehouse has none"
_REFUSED: Mapping[str, _Refused] = {
    "delta.enabledeletionvectors": _Refused(
        "deleted rows stay in their files, so a reader of the files finds them again"
    ),
    "delta.columnmapping.mode": _Refused(_MAPPED, frozenset({"none"})),
    "delta.enabletypewidening": _Refused(
        "readers without Spark cannot open a table whose types were widened"
    ),
    "delta.checkpointpolicy": _Refused(
        "most readers without Spark cannot open it", frozenset({"classic"})
    ),
    "delta.appendonly": _Refused("a refresh takes rows away that a build would not make"),
    "delta.settransactionretentionduration": _Refused(
        "the table forgets which batches it holds, and a batch that is run again comes twice",
        frozenset(),
    ),
    "delta.enablevariantshredding": _Refused("readers without Spark do not know its files"),
    "delta.universalformat.enabledformats": _Refused(_MAPPED, frozenset({""})),
    "delta.enableicebergcompatv1": _Refused(_MAPPED),
    "delta.enableicebergcompatv2": _Refused(_MAPPED),
    "delta.enableicebergcompatv3": _Refused(_MAPPED),
    "delta.coordinatedcommits.commitcoordinator-preview": _Refused(_OF_CATALOGS, frozenset()),
    "delta.coordinatedcommits.commitcoordinatorconf-preview": _Refused(_OF_CATALOGS, frozenset()),
    "delta.coordinatedcommits.tableconf-preview": _Refused(_OF_CATALOGS, frozenset()),
}
# Features that a table may carry: of these every reader, or none but Spark's writer, has to know.
_FEATURES = frozenset(
    {
        "allowcolumndefaults", "appendonly", "changedatafeed", "checkconstraints",
        "checkpointprotection", "clustering", "domainmetadata", "generatedcolumns",
        "identitycolumns", "incommittimestamp", "invariants", "materializepartitioncolumns",
        "rowtracking", "timestampntz", "varianttype",
    }
)  # fmt: skip


def why_refused(name: str, value: object) -> str | None:
    """Return why a table may not have a property of this value; None if it may.

    >>> why_refused("delta.enableDeletionVectors", False) is None
    True
    >>> why_refused("delta.feature.rowTracking", "supported") is None
    True
    """
    lowered = name.strip().lower()
    if lowered.startswith(_FEATURE):
        is_known = lowered.removeprefix(_FEATURE) in _FEATURES
        return None if is_known else "readers without Spark do not know the feature"
    rule = _REFUSED.get(lowered)
    if rule is None or str(value).strip().lower() in rule.harmless:
        return None
    return rule.why


def property_mistakes(properties: object, where: Where) -> list[ConfigError]:
    """Return a mistake for each property of `tblproperties` that a node may not have.

    Codes: TABLE_PROPERTY_REFUSED.
    """
    mistakes = Mistakes(where)
    for name, value in properties.items() if isinstance(properties, Mapping) else ():
        if why := why_refused(str(name), value):
            finding = f"found {name}: {value}: {why}"
            mistakes.refuse("TABLE_PROPERTY_REFUSED", ("tblproperties",), finding, _HINT)
    return mistakes.errors


def session_mistakes(parameters: Mapping[str, str], hooks: Hooks) -> list[ConfigError]:
    """Return a mistake for each property that a profile or a hook gives to tables.

    Args:
        parameters: `server_side_parameters` of the profile.
        hooks: of the project.
    """
    errors = []
    for name, value in parameters.items():
        if name.lower().startswith(_DEFAULTS):
            default = (f"delta.{name[len(_DEFAULTS) :]}", value)
            errors += _refused([default], f"profiles.yml: server_side_parameters: {name}")
    for place, text in hooks.placed():
        statement = bare_statement(text.removeprefix(NOT_RENDERED))
        # A value of a hook that only a build can render may be unknown.
        given = [(name, value) for name, value in _set_by(statement) if "{{" not in value]
        errors += _refused(given, f"{place}: {statement[:80]}")
    return errors


def _set_by(statement: str) -> Iterator[tuple[str, str]]:
    """Yield names and values of the properties that a statement gives to tables."""
    if (setting := _SETTING.match(statement)) is not None:
        yield f"delta.{setting[1][len(_DEFAULTS) :]}", setting[2].strip("'\" ")
    elif (altered := _ALTERED.match(statement)) is not None and altered[1] is None:
        # Spark takes `delta`.`appendOnly` for the name without its quotes.
        yield from _PAIR.findall(altered[2].replace("`", ""))


def _refused(properties: Iterable[tuple[str, str]], place: str) -> list[ConfigError]:
    return [
        ConfigError("TABLE_PROPERTY_REFUSED", f"{place}: found {name}: {value}: {why}", hint=_HINT)
        for name, value in properties
        if (why := why_refused(name, value))
    ]
