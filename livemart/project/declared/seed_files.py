"""Finds mistakes in the file of a seed that dbt meets once it loads the file.

Used when the project is read. dbt counts the rows of a file from 0, without its first line.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import ascii_lowercase

from livemart.errors import ConfigError


@dataclass(frozen=True, slots=True)
class SeedFile:
    """The columns of a seed's file, and its first mistakes.

    `header`: the columns as dbt names them, empty if the file cannot be read. `findings`: line,
    finding and next step of each mistake. The line is None for the setting `delimiter`.
    """

    header: tuple[str, ...] = ()
    findings: tuple[tuple[int | None, str, str], ...] = ()


def seed_file_mistakes(
    seed: SeedFile, file: str, name: str, delimiter_place: str
) -> Iterator[ConfigError]:
    """Yield SEED_FILE_INVALID for what no seed can hold, MODEL_COLUMN_TWICE for a repeated name.

    Args:
        file: of the seed, as messages name it.
        name: of the seed.
        delimiter_place: where its `delimiter` is set.
    """
    for line, finding, hint in seed.findings:
        place = delimiter_place if line is None else f"{file}:{line}"
        yield ConfigError("SEED_FILE_INVALID", f"{place}: seed {name}: {finding}", hint=hint)
    for column, count in Counter(seed.header).items():
        if count > 1:
            yield ConfigError(
                "MODEL_COLUMN_TWICE",
                f"{file}:1: seed {name}: columns.{column}: found {column} {count} times",
                hint=f"rename one in the file: dbt would call the second {column}_2",
            )


@lru_cache(maxsize=256)
def read_seed(path: Path, delimiter: str, checksum: str) -> SeedFile:
    """Return the columns and the mistakes of a seed's file.

    Args:
        checksum: of its rows; another one has it read again.
    """
    if len(delimiter) != 1:
        hint = 'write one character; a tab is "\\t" in double quotes'
        return SeedFile((), ((None, f"found delimiter {delimiter}", hint),))
    line = 0
    header: tuple[str, ...] = ()
    long_rows: list[tuple[int, int]] = []
    try:
        # As dbt reads it: the line ends of every system are one.
        with path.open(encoding="utf-8-sig") as file:
            rows = csv.reader(file, delimiter=delimiter)
            header = _named(next(rows, []))
            if not header:
                hint = "write the names of the columns there"
                return SeedFile((), ((1, "found no name of a column in the first line", hint),))
            line = rows.line_num
            for row in rows:
                if len(row) > len(header):
                    long_rows.append((line + 1, len(row)))
                line = rows.line_num
    except OSError:
        return SeedFile(header)
    except UnicodeDecodeError:
        finding = "found a character that is not in UTF-8"
        return SeedFile(header, ((1, finding, "save the file in UTF-8"),))
    except (csv.Error, ValueError) as error:
        return SeedFile(header, ((line + 1, f"found no CSV: {error}", "mend the line"),))
    if not long_rows:
        return SeedFile(header)
    first, count = long_rows[0]
    more = f", and so {len(long_rows) - 1:,} times below" if len(long_rows) > 1 else ""
    finding = f"found {count} values for {len(header)} columns{more}"
    hint = f"put a value that holds `{delimiter}` in double quotes, or name the column"
    return SeedFile(header, ((first, finding, hint),))


def _named(names: list[str]) -> tuple[str, ...]:
    """Return the names of columns; dbt calls one without a name by a letter.

    >>> _named(["id", ""])
    ('id', 'b')
    """
    letters = len(ascii_lowercase)
    return tuple(
        name or ascii_lowercase[place % letters] * (place // letters + 1)
        for place, name in enumerate(names)
    )
