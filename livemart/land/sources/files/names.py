"""Names a file so that a source's pattern reads it.

Used to hand over files on behalf of others: by `ingest`, and by its HTTP endpoint.
"""

from __future__ import annotations

import re
import string
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

_SIGNS = string.ascii_letters + string.digits + "-"
_WILD = re.compile(r"\*|\?|\[!?\]?[^]]*\]")


def name_for(pattern: str, stem: str) -> str:
    """Return a path below the landing folder that a pattern reads.

    Args:
        pattern: glob of the source.
        stem: what tells the file from others; letters, digits, `-` and `.`.

    Raises:
        ValueError: the pattern has no place for a name, or none that begins as a name must.

    >>> name_for("orders/*.jsonl", "one"), name_for("*/day=?/[a-c]-*", "one")
    ('orders/one.jsonl', 'ingest/day=0/a-one')
    """
    *folders, last = PurePosixPath(pattern).parts
    if "*" not in last:
        raise ValueError(f"{pattern} matches only fixed file names: put a * into the last part")
    name = "/".join([*(_filled(part, "ingest") for part in folders), _filled(last, stem)])
    if not PurePosixPath(name).match(pattern):
        raise ValueError(f"{pattern}: no name was found that it reads: write a simpler pattern")
    return name


def _filled(part: str, text: str) -> str:
    """Return a name that one part of a pattern matches; its first `*` is `text`."""
    waiting = [text]

    def fill(match: re.Match[str]) -> str:
        if match[0] == "*":
            return waiting.pop() if waiting else ""
        if match[0] == "?":
            return "0"
        return next((sign for sign in _SIGNS if fnmatchcase(sign, match[0])), "")

    return _WILD.sub(fill, part)
