"""Every reason code is given by some code, and has a section in docs/refresh.md, in order."""

from __future__ import annotations

from pathlib import Path

from livemart.plan.reasons import REASON_CODES

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "refresh.md"
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


def test_every_reason_code_is_given_somewhere() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "livemart").rglob("*.py"))
        if path.name != "reasons.py"
    ]

    never_given = [
        code
        for code in sorted(REASON_CODES | OF_THE_STATE)
        if not any(f'"{code}"' in text for text in sources)
    ]

    assert never_given == []
