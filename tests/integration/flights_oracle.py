"""The three answers of an airport, counted by plain Python over the package's own CSV files.

Nothing of `examples/flights` is used: the schedule is converted from New York time by the time zone
database, not taken from the column that the delivery trusts.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

_NEW_YORK = ZoneInfo("America/New_York")


@dataclass(frozen=True, slots=True)
class Departures:
    """Row of `airport_departures`, less its keys."""

    flight_count: int = 0
    cancelled_count: int = 0
    seat_count: int = 0
    unseated_count: int = 0
    miles_flown: int = 0


@dataclass(frozen=True, slots=True)
class _Flight:
    origin: str
    destination: str
    seats: int | None
    miles: int
    is_cancelled: bool
    scheduled_at: datetime


class FlightsOracle:
    """The flights reported before an instant, ready to be counted."""

    def __init__(self, folder: Path, reported_before: datetime) -> None:
        """Read the CSV files in `folder`; keep the flights reported before an instant."""
        self._names = {row["faa"]: row["name"] for row in _rows(folder / "airports.csv")}
        seats = {row["tailnum"]: int(row["seats"]) for row in _rows(folder / "planes.csv")}
        self._flights = []
        for row in _rows(folder / "flights.csv"):
            clock = divmod(int(row["sched_dep_time"]), 100)
            year, month, day = int(row["year"]), int(row["month"]), int(row["day"])
            local = datetime(year, month, day, *clock, tzinfo=_NEW_YORK)
            scheduled_at = local.astimezone(UTC)
            is_cancelled = row["dep_delay"] == "NA"
            late = 0 if is_cancelled else max(0, int(row["dep_delay"]))
            if scheduled_at + timedelta(minutes=late) < reported_before:
                self._flights.append(
                    _Flight(
                        origin=row["origin"],
                        destination=row["dest"],
                        seats=seats.get(row["tailnum"]),
                        miles=int(row["distance"]),
                        is_cancelled=is_cancelled,
                        scheduled_at=scheduled_at,
                    )
                )

    def departures(self, airport: str, hours: int, as_of: datetime) -> Departures:
        """Return what left `airport` in the last `hours` before `as_of`."""
        flights = list(self._window(airport, hours, as_of))
        left = [flight for flight in flights if not flight.is_cancelled]
        return Departures(
            flight_count=len(left),
            cancelled_count=len(flights) - len(left),
            seat_count=sum(flight.seats or 0 for flight in left),
            unseated_count=sum(flight.seats is None for flight in left),
            miles_flown=sum(flight.miles for flight in left),
        )

    def top_destinations(
        self, airport: str, hours: int, as_of: datetime
    ) -> list[tuple[str, str, int]]:
        """Return code, name and flights of the three destinations with most departures."""
        count: Counter[str] = Counter()
        seats: Counter[str] = Counter()
        for flight in self._window(airport, hours, as_of):
            if not flight.is_cancelled:
                count[flight.destination] += 1
                seats[flight.destination] += flight.seats or 0
        best = sorted(count, key=lambda code: (-count[code], -seats[code], code))[:3]
        return [(code, self._names.get(code, code), count[code]) for code in best]

    def hour(self, airport: str, hour: datetime, hours: int) -> Departures:
        """Return what left `airport` in `hour` and the hours before it, `hours` in all."""
        return self.departures(airport, hours, hour + timedelta(hours=1))

    def _window(self, airport: str, hours: int, as_of: datetime) -> Iterator[_Flight]:
        for flight in self._flights:
            is_inside = as_of - timedelta(hours=hours) <= flight.scheduled_at < as_of
            if flight.origin == airport and is_inside:
                yield flight


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
