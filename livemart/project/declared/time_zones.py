"""Recognizes the time zones that a session of Spark can have.

Used for what the profile and the hooks of a project set, before Spark is started. Java takes names
of regions letter by letter (`utc` is none), and offsets in some forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from zoneinfo import available_timezones

from livemart.errors import ConfigError, nearest
from livemart.project.session_spec import bare_statement

_SETTING = "spark.sql.session.timezone"
_SET = re.compile(rf"set\s+`?{re.escape(_SETTING)}`?\s*=\s*(.*)", re.IGNORECASE | re.DOTALL)
_SET_ZONE = re.compile(r"set\s+time\s+zone\s+(?:'([^']*)'|\"([^\"]*)\")\Z", re.IGNORECASE)
_OFFSET = re.compile(
    r"Z|(?:UTC|GMT|UT)?[+-](?:0?\d|1[0-8])(?::\d{1,2}(?::\d\d)?|\d\d(?:\d\d)?)?|UTC|GMT|UT"
)
# Names that Java has beside the regions: Spark itself says which of them are none.
_OF_JAVA = re.compile(r"[A-Z]{3}|SystemV/.*")


def zone_mistake(zone: str) -> str | None:
    """Return the message about a time zone that Spark does not know; None if it knows it.

    >>> zone_mistake("Europe/Lisbonn")
    'no time zone Europe/Lisbonn, did you mean Europe/Lisbon?'
    >>> zone_mistake("+01:00") is None
    True
    """
    names = _regions()
    if not names or zone in names or _OFFSET.fullmatch(zone) or _OF_JAVA.fullmatch(zone):
        return None
    in_lower_case = {name.lower(): name for name in names}
    same = in_lower_case.get(zone.lower())
    close = f", did you mean {same}?" if same else nearest(zone, sorted(names))
    return f"no time zone {zone or 'without a name'}{close}"


def zone_mistakes(
    parameters: Mapping[str, str], sent: Iterable[tuple[str, str]]
) -> list[ConfigError]:
    """Return a mistake for each unknown time zone that a profile or a hook sets.

    Args:
        parameters: `server_side_parameters` of the profile.
        sent: place and text of each statement of a hook.

    Codes: SESSION_SETTING_REFUSED.
    """
    return [
        ConfigError(
            "SESSION_SETTING_REFUSED",
            f"{place}: found {mistake}",
            hint="write the zone as Area/City, such as Europe/Lisbon, or as an offset, +01:00",
        )
        for place, zone in _zones(parameters, sent)
        if (mistake := zone_mistake(zone))
    ]


def _zones(
    parameters: Mapping[str, str], sent: Iterable[tuple[str, str]]
) -> Iterator[tuple[str, str]]:
    for name, value in parameters.items():
        # `utc` is what every session has: it is not set at all.
        if name.lower() == _SETTING and str(value).strip().lower() != "utc":
            yield f"profiles.yml: server_side_parameters: {name}", str(value)
    for place, text in sent:
        statement = bare_statement(text)
        if (setting := _SET.match(statement)) is not None:
            yield f"{place}: {statement[:80]}", setting[1].strip()
        elif (zone := _SET_ZONE.match(statement)) is not None:
            yield f"{place}: {statement[:80]}", zone[1] or zone[2] or ""


@cache
def _regions() -> frozenset[str]:
    """Return the names of regions; none on a machine without any, where Spark is asked alone."""
    return frozenset(available_timezones())
