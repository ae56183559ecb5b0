"""Drift is reported by kind, each with a next step, in the words of the documentation."""

from __future__ import annotations

from pathlib import Path

from livemart.state.drift import DriftedField, DriftKind, by_kind, describe_drift, merge_drift

TIP = DriftedField(DriftKind.ADDED, "tip")
STATUS = DriftedField(DriftKind.CASE_CHANGED, "Status", "the column is status")
FEE = DriftedField(DriftKind.UNDECLARED, "fee", "string", ("orders", "totals"))


def test_what_was_seen_at_several_times_is_one() -> None:
    merged = merge_drift([{"b.y": (TIP,)}, {"b.x": (TIP, STATUS)}, {"b.x": (STATUS,)}, {}])

    assert merged == {"b.x": (TIP, STATUS), "b.y": (TIP,)}
    assert list(merged) == ["b.x", "b.y"]


def test_fields_of_a_kind_are_told_together() -> None:
    who = DriftedField(DriftKind.ADDED, "who")

    told = [describe_drift("b.x", *pair) for pair in by_kind((who, FEE, TIP, STATUS))]

    assert told == [
        "drift b.x: added tip; who",
        "drift b.x: case-changed Status (the column is status)",
        "drift b.x: undeclared fee (string), unused by orders totals",
    ]


def test_every_kind_has_a_next_step_and_stands_in_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "landing.md").read_text(encoding="utf-8")
    section = text.partition("\n## Drift\n")[2].partition("\n## ")[0]

    assert all(kind.next_step for kind in DriftKind)
    assert [kind for kind in DriftKind if f"**{kind}**" not in section] == []
