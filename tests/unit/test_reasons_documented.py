"""Every reason code has a section in docs/refresh.md, in alphabetical order."""

from __future__ import annotations

from pathlib import Path

from livemart.plan.reasons import REASON_CODES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "refresh.md"
# Why a refresh of a known model is a rebuild; these come from the state, not from the SQL.
OF_THE_STATE = {"BUILD", "NEW_MODEL", "SELECTED"}


def test_every_reason_code_has_a_section_and_no_other_has() -> None:
    expected = sorted(REASON_CODES | OF_THE_STATE)

    actual = [
        line.removeprefix("### ")
        for line in DOCUMENT.read_text(encoding="utf-8").splitlines()
        if line.startswith("### ")
    ]

    assert actual == expected
