"""The documents say of every dead letter's reason what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from livemart.land.reasons import LetterReason, meaning_of

_LANDING = Path(__file__).resolve().parents[3] / "docs" / "landing.md"


def test_every_reason_has_its_row_in_the_documents() -> None:
    section = _LANDING.read_text(encoding="utf-8").partition("## Dead letters")[2]
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)

    assert rows == [(reason.value, meaning_of(reason)) for reason in LetterReason]
