"""Colors of the page against WCAG 2.2: 1.4.3 for text, 1.4.11 for lines and controls.

axe measures text only, and only what a test happens to show.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import livemart.serve.page

_CSS = (Path(livemart.serve.page.__path__[0]) / "static" / "page.css").read_text(encoding="utf-8")
_TEXT = [
    ("ink", "ground"),
    ("ink", "surface"),
    ("quiet", "ground"),
    ("quiet", "surface"),
    ("accent", "ground"),
    ("accent", "surface"),
    ("on-accent", "accent"),
    ("up", "surface"),
    ("down", "surface"),
    ("alert-ink", "alert"),
    ("bad-ink", "bad"),
]
_LINES = [
    ("edge", "ground"),
    ("edge", "surface"),
    ("accent", "surface"),
    ("before", "surface"),
    *((f"look-{number}", "surface") for number in range(4)),
    ("down", "surface"),
    ("alert-edge", "ground"),
    ("alert-edge", "alert"),
    ("bad-edge", "ground"),
    ("bad-edge", "bad"),
]


def _schemes() -> dict[str, dict[str, str]]:
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
        for block in re.findall(r":root \{(.*?)\}", _CSS, re.DOTALL)
    )
    return {"light": light, "dark": {**light, **dark}}


def _luminance(color: str) -> float:
    """Return the relative luminance as WCAG defines it."""
    digits = color[1:] if len(color) == 7 else "".join(2 * digit for digit in color[1:])
    channels = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(_TEXT, 4.5), (_LINES, 3.0)], ids=["text", "lines"])
def test_colors_are_told_apart(scheme: str, pairs: list[tuple[str, str]], least: float) -> None:
    colors = _schemes()[scheme]

    too_low = {
        f"{front} on {back}": round(contrast, 2)
        for front, back in pairs
        if (contrast := _contrast(colors[front], colors[back])) < least
    }

    assert too_low == {}


def test_contrast_is_that_of_wcag() -> None:
    assert round(_contrast("#000", "#ffffff"), 2) == 21.0
    assert round(_contrast("#777777", "#fff"), 2) == 4.48
