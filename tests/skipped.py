"""Says which tests were skipped since a program is not installed, and how to install it.

Each suite keeps its skips by reason; `make test` prints them as its last line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

# The message of a fixture about a missing program.
_REASON = re.compile(r"(?:Skipped: )?(.+?) is not installed \(apt-get install (.+?)\)")
_PLACE = "livemart/skipped"
_MOST_SIGNS = 200
_FOLDER = Path(__file__).parents[1] / ".pytest_cache" / "v" / _PLACE


def keep_skips(config: pytest.Config, reports: Iterable[Any]) -> None:
    """Keep how often each reason was given, under the folders that were run."""
    reasons = Counter(str(report.longrepr[2]) for report in reports)
    # A name of a file; a run may name any number of tests.
    suite = "-".join(Path(path).name for path in config.args)[:_MOST_SIGNS]
    if (cache := getattr(config, "cache", None)) is not None:
        cache.set(f"{_PLACE}/{suite}", dict(reasons))


def render_skips(counts: Mapping[str, int]) -> str:
    """Return one line about tests that need a program, empty if there is none.

    >>> render_skips({"Skipped: PostgreSQL is not installed (apt-get install postgresql)": 12})
    'skipped: 12 tests without PostgreSQL; to run them: apt-get install postgresql'
    """
    programs, packages = [], []
    for reason, count in counts.items():
        if (found := _REASON.match(reason)) is not None:
            programs.append(f"{count} tests without {found[1]}")
            packages.append(found[2])
    if not programs:
        return ""
    return f"skipped: {', '.join(programs)}; to run them: apt-get install {' '.join(packages)}"


def main() -> None:
    """Print the skips of all suites that ran last, if there are any."""
    total: Counter[str] = Counter()
    for path in sorted(_FOLDER.glob("*")):
        total.update(json.loads(path.read_text()))
    if line := render_skips(total):
        print(line)


if __name__ == "__main__":
    main()
